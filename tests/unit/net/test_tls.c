/* SPDX-License-Identifier: Apache-2.0 */
/* The server's certificate: made once, the same pin ever after, and what is wrong with a pair is said in a sentence.
 * The openssl program is the stranger who evaluates what was made. */
#include "net/tls.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static struct scratch s;

static int setup(void **state)
{
    (void)state;
    scratch_init(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_release(&s);
    return 0;
}

/* Runs a shell line in the scratch folder; its output, without the last line's end. */
static const char *shell(const char *line)
{
    static char out[8192];
    char command[2048];
    snprintf(command, sizeof command, "cd '%s' && { %s ; } 2>&1", s.dir, line);
    FILE *p = popen(command, "r");
    CHECK(p != NULL);
    size_t n = fread(out, 1, sizeof out - 1, p);
    while (n && out[n - 1] == '\n') n--;
    out[n] = '\0';
    if (pclose(p) != 0) fail_msg("%s: %s", line, out);
    return out;
}

static void check_says(const char *text)
{
    if (!strstr(fkt_error_text(), text)) fail_msg("'%s' does not say '%s'", fkt_error_text(), text);
}

static void makes_a_pair_once(void **state)
{
    struct fkt_tls a, b;
    struct stat sb;
    char pin[FKT_TLS_PIN];
    (void)state;
    CHECK_OK(fkt_tls_own(&a, s.dir, "fed.example.org"));
    CHECK(a.made == 1);
    CHECK(stat(scratch_path(&s, "tls.key"), &sb) == 0 && (sb.st_mode & 07777) == 0600);
    CHECK_OK(fkt_tls_own(&b, s.dir, "another.example.org"));
    CHECK(b.made == 0);
    assert_string_equal(a.pin, b.pin);
    assert_string_equal(a.key, b.key);
    assert_string_equal(a.certificate, b.certificate);
    CHECK_OK(fkt_tls_pin_of(pin, scratch_path(&s, "tls.pem")));
    assert_string_equal(a.pin, pin);
    CHECK(strlen(pin) == FKT_TLS_PIN - 1 && strncmp(pin, "sha256//", 8) == 0);
    assert_string_equal(shell("ls"), "tls.key\ntls.pem");
    fkt_tls_clear(&a);
    fkt_tls_clear(&b);
    CHECK(fkt_alloc_live() == 0);
}

static void openssl_agrees(void **state)
{
    struct fkt_tls t;
    const char *text;
    (void)state;
    CHECK_OK(fkt_tls_own(&t, s.dir, "fed.example.org"));
    assert_string_equal(t.pin + 8, shell("openssl x509 -in tls.pem -noout -pubkey | openssl pkey -pubin -outform der "
                                         "| openssl dgst -sha256 -binary | openssl base64 -A"));
    assert_string_equal(t.pin + 8, shell("openssl pkey -in tls.key -pubout -outform der | openssl dgst -sha256 -binary "
                                         "| openssl base64 -A"));
    CHECK(strstr(shell("openssl verify -x509_strict -purpose sslserver -verify_hostname fed.example.org -CAfile "
                       "tls.pem -partial_chain tls.pem"),
                 "tls.pem: OK") != NULL);
    text = shell("openssl x509 -in tls.pem -noout -text");
    CHECK(strstr(text, "ASN1 OID: prime256v1") && strstr(text, "ecdsa-with-SHA256"));
    CHECK(strstr(text, "Basic Constraints: critical\n                CA:FALSE"));
    CHECK(strstr(text, "Key Usage: critical\n                Digital Signature\n"));
    CHECK(strstr(text, "TLS Web Server Authentication"));
    CHECK(strstr(text, "DNS:fed.example.org\n"));
    shell("openssl x509 -in tls.pem -noout -checkend 315360000"); /* ten years of 365 days */
    CHECK(strlen(shell("openssl x509 -in tls.pem -noout -serial")) > strlen("serial=") + 24);
    fkt_tls_clear(&t);
}

static void check_names(const char *host, const char *want)
{
    struct fkt_tls t;
    shell("rm -f tls.pem tls.key");
    CHECK_OK(fkt_tls_own(&t, s.dir, host));
    fkt_tls_clear(&t);
    const char *text = shell("openssl x509 -in tls.pem -noout -ext subjectAltName | tail -n 1");
    assert_string_equal(text + strspn(text, " "), want);
}

static void names_are_right(void **state)
{
    static const char *const wrong[] = {"", "a b", "x,DNS:y", "-a", "[::1", "a/b", "[]", "b\xc3\xbc.de", "1.2.3.4:5"};
    struct fkt_tls t;
    char lengthy[300];
    (void)state;
    check_names("fed.example.org", "DNS:fed.example.org");
    check_names("10.1.2.3", "IP Address:10.1.2.3");
    check_names("[2001:db8::7]", "IP Address:2001:DB8:0:0:0:0:0:7");
    check_names("127.0.0.1", "IP Address:127.0.0.1, DNS:localhost, IP Address:0:0:0:0:0:0:0:1");
    check_names("localhost", "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1");
    check_names("::1", "IP Address:0:0:0:0:0:0:0:1, DNS:localhost, IP Address:127.0.0.1");
    shell("rm -f tls.pem");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) CHECK_STATUS(fkt_tls_own(&t, s.dir, wrong[i]), FKT_E_ARG);
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[254] = '\0';
    CHECK_STATUS(fkt_tls_own(&t, s.dir, lengthy), FKT_E_ARG);
    lengthy[253] = '\0';
    CHECK_OK(fkt_tls_own(&t, s.dir, lengthy));
    fkt_tls_clear(&t);
}

/* A crash after the key and before the certificate; and the certificate taken away by hand. */
static void the_key_is_what_counts(void **state)
{
    struct fkt_tls a, b;
    (void)state;
    CHECK_OK(fkt_tls_own(&a, s.dir, "localhost"));
    shell("rm tls.pem");
    CHECK_OK(fkt_tls_own(&b, s.dir, "localhost"));
    CHECK(b.made == 1);
    assert_string_equal(a.pin, b.pin);
    assert_string_equal(a.key, b.key);
    fkt_tls_clear(&a);
    fkt_tls_clear(&b);
    shell("rm tls.key");
    CHECK_STATUS(fkt_tls_own(&a, s.dir, "localhost"), FKT_E_MISMATCH);
    check_says("but no key");
    assert_string_equal(shell("ls"), "tls.pem");
    CHECK(a.key == NULL && a.certificate == NULL);
}

static fkt_status read_pair(const char *certificate, const char *key)
{
    struct fkt_tls t;
    fkt_status st = fkt_tls_read(&t, scratch_path(&s, certificate), scratch_path(&s, key));
    fkt_tls_clear(&t);
    CHECK(fkt_alloc_live() == 0);
    return st;
}

static void reads_what_others_made(void **state)
{
    struct fkt_tls t;
    (void)state;
    shell("openssl req -x509 -newkey rsa:2048 -nodes -keyout a.key -out a.pem -subj /CN=a -days 2 2>/dev/null");
    shell("openssl req -x509 -newkey ed25519 -nodes -keyout b.key -out b.pem -subj /CN=b -days 2 2>/dev/null");
    CHECK_OK(read_pair("a.pem", "a.key"));
    CHECK_OK(read_pair("b.pem", "b.key"));
    /* A chain, with a key among it: the pin is the first one's, and the key does not go out with the certificates. */
    shell("cat b.pem b.key a.pem > chain.pem; chmod 600 chain.pem; openssl rsa -traditional -in a.key -out old.key "
          "2>/dev/null");
    CHECK_OK(read_pair("a.pem", "old.key"));
    CHECK_OK(fkt_tls_read(&t, scratch_path(&s, "chain.pem"), scratch_path(&s, "chain.pem")));
    CHECK(strstr(t.certificate, "PRIVATE") == NULL);
    CHECK(strstr(strstr(t.certificate, "BEGIN") + 1, "BEGIN") != NULL);
    assert_string_equal(t.pin + 8, shell("openssl x509 -in b.pem -noout -pubkey | openssl pkey -pubin -outform der | "
                                         "openssl dgst -sha256 -binary | openssl base64 -A"));
    fkt_tls_clear(&t);
}

static void says_what_is_wrong(void **state)
{
    char pin[FKT_TLS_PIN];
    (void)state;
    shell("for i in a b; do openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $i.key -out "
          "$i.pem -subj /CN=$i -days 2 2>/dev/null; done");
    CHECK_OK(read_pair("a.pem", "a.key"));
    CHECK_STATUS(read_pair("a.pem", "b.key"), FKT_E_MISMATCH);
    check_says("do not belong together");
    shell("openssl pkey -in a.key -aes256 -passout pass:secret -out locked.key");
    CHECK_STATUS(read_pair("a.pem", "locked.key"), FKT_E_FORMAT);
    check_says("is encrypted");
    shell("openssl ec -in a.key -aes256 -passout pass:secret -out locked.old.key 2>/dev/null");
    CHECK_STATUS(read_pair("a.pem", "locked.old.key"), FKT_E_FORMAT);
    check_says("is encrypted");
    shell("openssl x509 -in a.pem -signkey a.key -days -1 -out past.pem 2>/dev/null");
    CHECK_STATUS(read_pair("past.pem", "a.key"), FKT_E_MISMATCH);
    check_says("expired on 20");
    CHECK_OK(fkt_tls_pin_of(pin, scratch_path(&s, "past.pem")));
    shell("head -c 300 /dev/urandom > garbage; : > empty; head -c 200 a.pem > half.pem; head -c 100 a.key > half.key; "
          "cat a.pem half.pem > tail.pem; printf '\\0' | cat a.key - > nul.key");
    static const char *const no_certificate[] = {"garbage", "empty", "half.pem", "a.key", "tail.pem"};
    for (size_t i = 0; i < sizeof no_certificate / sizeof *no_certificate; i++) {
        CHECK_STATUS(read_pair(no_certificate[i], "a.key"), FKT_E_FORMAT);
        check_says("there is no readable certificate in '");
        CHECK_STATUS(fkt_tls_pin_of(pin, scratch_path(&s, no_certificate[i])), FKT_E_FORMAT);
    }
    static const char *const no_key[] = {"garbage", "empty", "half.key", "a.pem", "nul.key"};
    for (size_t i = 0; i < sizeof no_key / sizeof *no_key; i++) {
        CHECK_STATUS(read_pair("a.pem", no_key[i]), FKT_E_FORMAT);
        check_says("there is no readable private key in '");
    }
    CHECK_STATUS(read_pair("nowhere", "a.key"), FKT_E_IO);
    CHECK_STATUS(read_pair("a.pem", "nowhere"), FKT_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_a_pair_once, setup, teardown),
        cmocka_unit_test_setup_teardown(openssl_agrees, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_right, setup, teardown),
        cmocka_unit_test_setup_teardown(the_key_is_what_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_what_others_made, setup, teardown),
        cmocka_unit_test_setup_teardown(says_what_is_wrong, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
