/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/text.h"
#include "fedkt/keys.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned mode_of(const char *path)
{
    struct stat sb;
    CHECK(stat(path, &sb) == 0);
    return sb.st_mode & 0777;
}

static void a_key_survives_its_files(void **state)
{
    struct scratch s;
    struct fkt_key k, back;
    struct fkt_site_key site;
    char hex[65], print[FKT_FINGERPRINT];
    (void)state;
    scratch_init(&s);
    umask(0);
    CHECK_OK(fkt_key_make(&k, "Hôpital Saint-Louis"));
    CHECK_OK(fkt_key_save(&k, scratch_path(&s, "key"), 0, NULL));
    CHECK_OK(fkt_site_key_save(&k, scratch_path(&s, "pub"), 0));
    CHECK(mode_of(scratch_path(&s, "key")) == 0600);
    CHECK_OK(fkt_key_load(&back, scratch_path(&s, "key")));
    assert_memory_equal(&back, &k, sizeof k);
    CHECK_OK(fkt_site_key_load(&site, scratch_path(&s, "pub")));
    assert_memory_equal(&site, &k.site, sizeof site);
    fkt_hex(hex, k.site.key, sizeof k.site.key);
    fkt_fingerprint(print, k.site.key);
    CHECK(strlen(print) == 24 && !strncmp(print, hex, 4) && !strncmp(print + 20, hex + 16, 4));
    fkt_key_clear(&back);
    CHECK(back.secret[0] == 0 && back.secret[31] == 0 && back.site.name[0] == 0);
    CHECK_OK(fkt_key_make(&back, NULL)); /* no name, and never the same key again */
    CHECK(back.site.name[0] == 0 && memcmp(back.site.key, k.site.key, FKT_SA_KEY) != 0);
    CHECK_OK(fkt_key_save(&back, scratch_path(&s, "nameless"), 0, NULL));
    CHECK_OK(fkt_site_key_save(&back, scratch_path(&s, "nameless.pub"), 0));
    CHECK_OK(fkt_site_key_load(&site, scratch_path(&s, "nameless.pub")));
    CHECK_OK(fkt_key_load(&back, scratch_path(&s, "nameless")));
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

/* A pair that does not belong together is not written, also not over a good one. */
static void a_key_that_could_not_be_loaded_is_not_saved(void **state)
{
    struct fkt_key good, bad, back;
    struct fkt_site_key site;
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_key_make(&good, "a"));
    CHECK_OK(fkt_key_make(&bad, "b"));
    CHECK_OK(fkt_key_save(&good, scratch_path(&s, "key"), 0, NULL));
    memcpy(bad.site.key, good.site.key, sizeof bad.site.key);
    CHECK_STATUS(fkt_key_save(&bad, scratch_path(&s, "key"), 1, NULL), FKT_E_ARG);
    CHECK_OK(fkt_key_load(&back, scratch_path(&s, "key")));
    assert_memory_equal(&back, &good, sizeof back);
    CHECK_OK(fkt_site_key_save(&bad, scratch_path(&s, "pub"), 0)); /* its proof is of another key */
    memset(&site, 1, sizeof site);
    CHECK_STATUS(fkt_site_key_load(&site, scratch_path(&s, "pub")), FKT_E_PEER_AUTH);
    CHECK(!site.name[0] && !site.key[0] && !site.key[FKT_SA_KEY - 1]); /* nothing unproven is handed out */
    fkt_key_clear(&good);
    fkt_key_clear(&bad);
    fkt_key_clear(&back);
    scratch_release(&s);
}

static void nothing_is_overwritten_unasked(void **state)
{
    struct scratch s;
    struct fkt_key k, other, back;
    struct fkt_site_key old;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_key_make(&k, "one"));
    CHECK_OK(fkt_key_make(&other, "two"));
    CHECK_OK(fkt_key_save(&k, scratch_path(&s, "key"), 0, NULL));
    CHECK_STATUS(fkt_key_save(&other, scratch_path(&s, "key"), 0, NULL), FKT_E_EXISTS);
    CHECK_OK(fkt_key_load(&back, scratch_path(&s, "key")));
    assert_string_equal(back.site.name, "one");
    CHECK(chmod(scratch_path(&s, "key"), 0644) == 0);
    CHECK_OK(fkt_key_save(&other, scratch_path(&s, "key"), 1, &old));
    assert_memory_equal(&old, &k.site, sizeof old);
    CHECK(mode_of(scratch_path(&s, "key")) == 0600);
    CHECK_OK(fkt_key_load(&back, scratch_path(&s, "key")));
    assert_string_equal(back.site.name, "two");
    CHECK_OK(fkt_key_save(&k, scratch_path(&s, "fresh"), 1, &old));
    CHECK(old.name[0] == '\0' && old.key[0] == 0 && old.key[31] == 0);
    CHECK_OK(fkt_file_write(scratch_path(&s, "thesis"), "words", 5, FKT_FILE_PRIVATE));
    CHECK_STATUS(fkt_key_save(&k, scratch_path(&s, "thesis"), 1, NULL), FKT_E_EXISTS);
    CHECK_OK(fkt_site_key_save(&k, scratch_path(&s, "pub"), 0));
    CHECK_STATUS(fkt_key_save(&k, scratch_path(&s, "pub"), 1, NULL), FKT_E_EXISTS);
    CHECK_STATUS(fkt_site_key_save(&k, scratch_path(&s, "pub"), 0), FKT_E_EXISTS);
    CHECK_OK(fkt_site_key_save(&k, scratch_path(&s, "pub"), 1));
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

static void a_key_that_others_can_read_is_refused(void **state)
{
    static const mode_t bad[] = {0640, 0604, 0620, 0602, 0610, 0601, 0666, 0644, 0777};
    static const mode_t good[] = {0600, 0400, 0700};
    struct scratch s;
    struct fkt_key k;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_key_make(&k, NULL));
    CHECK_OK(fkt_key_save(&k, scratch_path(&s, "key"), 0, NULL));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(chmod(scratch_path(&s, "key"), bad[i]) == 0);
        CHECK_STATUS(fkt_key_load(&k, scratch_path(&s, "key")), FKT_E_STATE);
        CHECK(strstr(fkt_error_hint(), "chmod 600") != NULL);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(chmod(scratch_path(&s, "key"), good[i]) == 0);
        CHECK_OK(fkt_key_load(&k, scratch_path(&s, "key")));
    }
    scratch_release(&s);
}

static void names_are_plain(void **state)
{
    char longest[FKT_KEY_NAME + 1];
    struct fkt_key k;
    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[FKT_KEY_NAME] = '\0';
    CHECK_STATUS(fkt_key_make(&k, longest), FKT_E_ARG);
    CHECK_OK(fkt_key_make(&k, longest + 1));
    CHECK_STATUS(fkt_key_make(&k, "a\nb"), FKT_E_ARG);
    CHECK_STATUS(fkt_key_make(&k, " a"), FKT_E_ARG);
    CHECK_STATUS(fkt_key_make(&k, "\xff"), FKT_E_ARG);
}

struct change {
    const char *key, *value; /* NULL: the key is removed */
    fkt_status want;
};

/* One key of a good file changed; the file stands at s/"bent" then. */
static void bend(struct scratch *s, const char *name, const struct change *c)
{
    json_t *j = json_load_file(scratch_path(s, name), 0, NULL);
    char *text;
    if (c->value) json_object_set_new(j, c->key, json_loads(c->value, JSON_DECODE_ANY, NULL));
    else json_object_del(j, c->key);
    text = json_dumps(j, 0);
    CHECK_OK(fkt_file_write(scratch_path(s, "bent"), text, strlen(text), FKT_FILE_PRIVATE | FKT_FILE_REPLACE));
    free(text);
    json_decref(j);
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define SMALL_ORDER "\"0100000000000000000000000000000000000000000000000000000000000000\""

static void hostile_files_are_refused(void **state)
{
    static const struct change secret[] = {
        {"schema", "\"fedkt.key/2\"", FKT_E_FORMAT},
        {"schema", NULL, FKT_E_FORMAT},
        {"name", NULL, FKT_E_FORMAT},
        {"name", "7", FKT_E_FORMAT},
        {"name", "\"a\\nb\"", FKT_E_FORMAT},
        {"public", "\"" ZEROS "\"", FKT_E_FORMAT},
        {"public", "\"00\"", FKT_E_FORMAT},
        {"secret", "\"" ZEROS ZEROS "\"", FKT_E_FORMAT},
        {"secret", "\"" ZEROS "\"", FKT_E_FORMAT},
        {"secret", "null", FKT_E_FORMAT},
        {"extra", "1", FKT_E_FORMAT},
        {"name", "\"another\"", FKT_OK},
    };
    static const struct change public_part[] = {
        {"schema", "\"fedkt.key/1\"", FKT_E_FORMAT},
        {"schema", "\"fedkt.site/2\"", FKT_E_FORMAT},
        {"schema", NULL, FKT_E_FORMAT},
        {"name", "\"another\"", FKT_E_PEER_AUTH},
        {"name", "\"\"", FKT_E_PEER_AUTH},
        {"name", "\" a\"", FKT_E_FORMAT},
        {"key", SMALL_ORDER, FKT_E_PEER_AUTH},
        {"key", "\"" ZEROS "\"", FKT_E_PEER_AUTH},
        {"key", "7", FKT_E_FORMAT},
        {"proof", "\"" ZEROS ZEROS "\"", FKT_E_PEER_AUTH},
        {"proof", "\"" ZEROS "\"", FKT_E_FORMAT},
        {"proof", NULL, FKT_E_FORMAT},
        {"extra", "1", FKT_E_FORMAT},
    };
    struct scratch s;
    struct fkt_key k, got;
    struct fkt_site_key site;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_key_make(&k, "one"));
    CHECK_OK(fkt_key_save(&k, scratch_path(&s, "key"), 0, NULL));
    CHECK_OK(fkt_site_key_save(&k, scratch_path(&s, "pub"), 0));
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) {
        bend(&s, "key", &secret[i]);
        if (fkt_key_load(&got, scratch_path(&s, "bent")) != secret[i].want)
            fail_msg("key %zu (%s): %s", i, secret[i].key, fkt_error_text());
        if (secret[i].want != FKT_OK) CHECK(got.secret[0] == 0 && got.secret[63] == 0);
    }
    for (size_t i = 0; i < sizeof public_part / sizeof *public_part; i++) {
        bend(&s, "pub", &public_part[i]);
        if (fkt_site_key_load(&site, scratch_path(&s, "bent")) != public_part[i].want)
            fail_msg("pub %zu (%s): %s", i, public_part[i].key, fkt_error_text());
    }
    CHECK_STATUS(fkt_site_key_load(&site, scratch_path(&s, "key")), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "holds a secret key") != NULL);
    CHECK_STATUS(fkt_key_load(&got, scratch_path(&s, "nowhere")), FKT_E_IO);
    CHECK_STATUS(fkt_key_load(&got, "/dev/null"), FKT_E_IO);
    CHECK_OK(fkt_file_write(scratch_path(&s, "empty"), "", 0, FKT_FILE_PRIVATE));
    CHECK_STATUS(fkt_key_load(&got, scratch_path(&s, "empty")), FKT_E_FORMAT);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

/* What jansson says of bad text repeats some of it: that must not reach a terminal or a log. */
static void no_sentence_holds_a_secret(void **state)
{
    struct scratch s;
    struct fkt_key k;
    char secret[129], text[512];
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_key_make(&k, NULL));
    fkt_hex(secret, k.secret, sizeof k.secret);
    snprintf(text, sizeof text, "{\"schema\": \"fedkt.key/1\", \"secret\": \"%s\" oh}", secret);
    CHECK_OK(fkt_file_write(scratch_path(&s, "bad"), text, strlen(text), FKT_FILE_PRIVATE));
    CHECK_STATUS(fkt_key_load(&k, scratch_path(&s, "bad")), FKT_E_FORMAT);
    secret[8] = '\0';
    CHECK(strstr(fkt_error_text(), secret) == NULL && strstr(fkt_error_hint(), secret) == NULL);
    scratch_release(&s);
}

static char looked_for[129];
static unsigned freed, found;

/* What jansson frees. */
static void looking_free(void *p)
{
    if (p) {
        const size_t n = malloc_usable_size(p);
        freed++;
        found += memmem(p, n, looked_for, 16) != NULL || memmem(p, n, looked_for + 48, 16) != NULL;
    }
    free(p);
}

/* jansson does not wipe what it frees, and its functions for memory are the embedder's: the secret stays out of it. */
static void jansson_never_gets_the_secret(void **state)
{
    struct scratch s;
    struct fkt_key k, back;
    struct fkt_site_key site;
    char text[1024];
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_key_make(&k, "a \"secret\": \"name\""));
    fkt_hex(looked_for, k.secret, sizeof k.secret);
    json_set_alloc_funcs(malloc, looking_free);
    CHECK_OK(fkt_key_save(&k, scratch_path(&s, "key"), 0, NULL));
    CHECK_OK(fkt_key_load(&back, scratch_path(&s, "key")));
    assert_memory_equal(&back, &k, sizeof k);
    CHECK_STATUS(fkt_site_key_load(&site, scratch_path(&s, "key")), FKT_E_FORMAT);
    snprintf(text, sizeof text, "{\"secret\" : \"%.100s\", \"secret\":\n\"%s\"}", looked_for, looked_for);
    CHECK_OK(fkt_file_write(scratch_path(&s, "twice"), text, strlen(text), FKT_FILE_PRIVATE));
    CHECK_STATUS(fkt_key_load(&back, scratch_path(&s, "twice")), FKT_E_FORMAT);
    json_set_alloc_funcs(malloc, free);
    CHECK(freed > 10 && found == 0);
    scratch_release(&s);
}

static void large_files_are_not_read(void **state)
{
    struct scratch s;
    struct fkt_key k;
    char text[4097];
    (void)state;
    scratch_init(&s);
    memset(text, ' ', sizeof text);
    CHECK_OK(fkt_file_write(scratch_path(&s, "large"), text, sizeof text, FKT_FILE_PRIVATE));
    CHECK_STATUS(fkt_key_load(&k, scratch_path(&s, "large")), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "too large") != NULL);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_survives_its_files),
        cmocka_unit_test(a_key_that_could_not_be_loaded_is_not_saved),
        cmocka_unit_test(nothing_is_overwritten_unasked),
        cmocka_unit_test(a_key_that_others_can_read_is_refused),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(no_sentence_holds_a_secret),
        cmocka_unit_test(jansson_never_gets_the_secret),
        cmocka_unit_test(large_files_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
