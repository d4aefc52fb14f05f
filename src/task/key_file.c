/* SPDX-License-Identifier: Apache-2.0 */
/* key_file.c - key files (docs/formats.md).
 *
 *   site.key       {"schema": "fedkt.key/1", "name", "public": 64 hex, "secret": 128 hex}      0600, stays
 *   site.key.pub   {"schema": "fedkt.site/1", "name", "key": 64 hex, "proof": 128 hex}         is sent to the operator
 *
 * The secret is the 32-byte seed of RFC 8032 followed by the public key, as everywhere in this library. A file whose
 * public half does not follow from the seed is refused: signing with it would reveal the seed (signature.c). The proof
 * is an Ed25519 signature over the digest labelled "fedkt-site-1" of name and key: it prevents the enrolment of a key
 * without its secret, or of another site's key under a new name.
 *
 * jansson frees memory without wiping it, so it never gets the secret: the digits are taken out of a file's text before
 * jansson reads it, and put into the text that jansson has made before that is written. */
#include "fedkt/keys.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/private.h"
#include "base/text.h"
#include "base/wipe.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"
#include "crypto/sign.h"
#include "task/service.h"
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_SCHEMA "fedkt.key/1"
#define SITE_SCHEMA "fedkt.site/1"
#define PROOF_LABEL "fedkt-site-1"
#define FILE_MAX 4096
#define SECRET_DIGITS (2 * FKT_SA_SECRET)

/* The value of "secret" in a JSON text; NULL: there is none after `from`. A quote inside a JSON string follows a
 * backslash, so nothing inside a string looks like this key. */
static char *secret_value(char *from, size_t *len)
{
    static const char key[] = "\"secret\"", blanks[] = " \t\r\n";
    while ((from = strstr(from, key)) != NULL) {
        from += sizeof key - 1;
        from += strspn(from, blanks);
        if (*from != ':') continue;
        from++;
        from += strspn(from, blanks);
        if (*from != '"') continue;
        *len = strcspn(++from, "\"");
        return from;
    }
    return NULL;
}

/* Moves the digits of the secret out of the text; "" when their number is wrong. */
static void take_secret(char *text, char digits[SECRET_DIGITS + 1])
{
    size_t n;
    digits[0] = '\0';
    for (char *s = secret_value(text, &n); s; s = secret_value(s + n, &n)) {
        if (n == SECRET_DIGITS) snprintf(digits, SECRET_DIGITS + 1, "%.*s", (int)n, s);
        fkt_wipe(s, n);
        memset(s, '0', n);
    }
}

static fkt_status set_name(struct fkt_site_key *s, const char *name)
{
    fkt_status st = *name ? fkt_service_check_name(name, "the key") : FKT_OK;
    if (st == FKT_OK) snprintf(s->name, sizeof s->name, "%s", name);
    return st;
}

fkt_status fkt_key_make(struct fkt_key *out, const char *name)
{
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(set_name(&out->site, name ? name : ""));
    FKT_TRY(fkt_sa_identity(out->site.key, out->secret, NULL));
out:
    return st;
}

void fkt_key_clear(struct fkt_key *k)
{
    if (k) fkt_wipe(k, sizeof *k);
}

void fkt_fingerprint(char out[FKT_FINGERPRINT], const uint8_t key[FKT_SA_KEY])
{
    char hex[2 * FKT_SA_KEY + 1];
    fkt_hex(hex, key, FKT_SA_KEY);
    snprintf(out, FKT_FINGERPRINT, "%.4s %.4s %.4s %.4s %.4s", hex, hex + 4, hex + 8, hex + 12, hex + 16);
}

/* Takes ownership of j (NULL: out of memory). secret: the digits of its "secret", which j holds as zeros; NULL: it
 * has none. */
static fkt_status save_json(json_t *j, const char *secret, const char *path, int flags)
{
    char *text = NULL, *value;
    struct fkt_file f = {0};
    size_t n;
    fkt_status st;
    FKT_TRY(fkt_json_text(&text, j, 2));
    if (secret && (value = secret_value(text, &n)) && n == SECRET_DIGITS) memcpy(value, secret, n);
    FKT_TRY(fkt_file_begin(&f, path, flags));
    setvbuf(f.stream, NULL, _IONBF, 0); /* a buffer of stdio would keep the secret */
    fwrite(text, 1, strlen(text), f.stream);
    st = fkt_file_commit(&f);
out:
    fkt_free_secret(text);
    return st;
}

/* The whole of a small regular file into `text`, with a NUL after it; *sb is of the file that was read. */
static fkt_status read_small(const char *path, char text[FILE_MAX + 1], size_t *len, struct stat *sb)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = 1;
    fkt_status st = FKT_OK;
    *len = 0;
    if (fd < 0 || fstat(fd, sb) != 0) st = fkt_io_fail("read", path);
    else if (!S_ISREG(sb->st_mode)) st = fkt_fail(FKT_E_IO, "cannot read '%s': not a regular file", path);
    else if (sb->st_size > FILE_MAX)
        st = fkt_hint_code(
            fkt_fail(FKT_E_FORMAT, "'%s' is too large for a key: %lld bytes", path, (long long)sb->st_size),
            FKT_HINT_KEY_FILE, "give a key file");
    while (st == FKT_OK && n > 0 && *len < FILE_MAX) {
        n = read(fd, text + *len, FILE_MAX - *len);
        if (n > 0) *len += (size_t)n;
        else if (n < 0 && errno == EINTR) n = 1;
        else if (n < 0) st = fkt_io_fail("read", path);
    }
    if (fd >= 0) close(fd);
    text[*len] = '\0';
    return st;
}

static fkt_status take_name(struct fkt_site_key *s, const char *name)
{
    fkt_status st = set_name(s, name);
    return st == FKT_OK ? st : fkt_fail(FKT_E_FORMAT, "its name is too long or not plain text");
}

/* secret: its digits, which j does not hold */
static fkt_status take_key(struct fkt_key *k, json_t *j, const char *secret)
{
    const char *schema, *name, *public_hex, *zeros;
    uint8_t derived[FKT_SIGN_PUBLIC], pair[FKT_SIGN_SECRET];
    json_error_t e;
    fkt_status st;
    if (json_unpack_ex(j, &e, JSON_STRICT, "{s:s s:s s:s s:s}", "schema", &schema, "name", &name, "public", &public_hex,
                       "secret", &zeros) != 0)
        return fkt_fail(FKT_E_FORMAT, "%s", e.text);
    if (strcmp(schema, KEY_SCHEMA) != 0) return fkt_fail(FKT_E_FORMAT, "schema is not '" KEY_SCHEMA "'");
    FKT_TRY(take_name(&k->site, name));
    if (!fkt_unhex(k->site.key, public_hex, FKT_SA_KEY) || !fkt_unhex(k->secret, secret, FKT_SA_SECRET)) {
        st = fkt_fail(FKT_E_FORMAT, "its keys are not 64 and 128 lower-case hexadecimal digits");
        goto out;
    }
    fkt_sign_keypair(derived, pair, k->secret);
    if (!fkt_same(pair, k->secret, sizeof pair) || !fkt_same(derived, k->site.key, sizeof derived))
        st = fkt_fail(FKT_E_FORMAT, "its public key does not follow from its secret");
    fkt_wipe(pair, sizeof pair);
out:
    return st;
}

static int is_of(const json_t *j, const char *schema)
{
    const char *has = json_string_value(json_object_get(j, "schema"));
    return has && !strcmp(has, schema);
}

/* strict: the file must belong to this user or root, and no other user may read it. */
static fkt_status load_key(struct fkt_key *out, const char *path, int strict)
{
    char text[FILE_MAX + 1];
    size_t len;
    char secret[SECRET_DIGITS + 1];
    struct stat sb;
    json_t *j = NULL;
    json_error_t e;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(read_small(path, text, &len, &sb));
    take_secret(text, secret);
    j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (is_of(j, SITE_SCHEMA))
        st = fkt_fail_hint(FKT_E_FORMAT, "give the one without .pub", "it holds only the public part");
    else if (is_of(j, FKT_TASK_SCHEMA)) st = fkt_fail(FKT_E_FORMAT, "it is a task");
    else if (strict && is_of(j, KEY_SCHEMA)) { /* the mode of a file that is not a key does not matter */
        FKT_TRY(fkt_private_check(&sb, path, 0));
        st = take_key(out, j, secret);
    } else if (!j) { /* jansson's own message repeats part of the text */
        st = fkt_fail(FKT_E_FORMAT, "line %d is not JSON", e.line);
    } else st = take_key(out, j, secret);
    if (st != FKT_OK)
        fkt_hint_code(fkt_fail_in(st, "'%s' is not a key file", path), FKT_HINT_KEY_FILE, "give a key file");
out:
    json_decref(j);
    fkt_wipe(text, sizeof text);
    fkt_wipe(secret, sizeof secret);
    if (st != FKT_OK) fkt_key_clear(out);
    return st;
}

fkt_status fkt_key_load(struct fkt_key *out, const char *path) { return load_key(out, path, 1); }

/* Checks that `path` is free or a key file. */
static fkt_status only_over_a_key(const char *path, struct fkt_site_key *site)
{
    struct fkt_key old;
    struct stat sb;
    fkt_status st;
    if (lstat(path, &sb) != 0 && errno == ENOENT) return FKT_OK;
    st = load_key(&old, path, 0);
    if (site) *site = old.site;
    fkt_key_clear(&old);
    if (st == FKT_OK) return FKT_OK;
    return fkt_fail_hint(FKT_E_EXISTS, "choose another name, or move that file away",
                         "'%s' is not a key file: it is not replaced", path);
}

/* A file that fkt_key_load would refuse must not be written. */
static fkt_status check_key(const struct fkt_key *k)
{
    struct fkt_site_key copy;
    uint8_t derived[FKT_SIGN_PUBLIC], pair[FKT_SIGN_SECRET];
    fkt_status st = set_name(&copy, k->site.name);
    fkt_sign_keypair(derived, pair, k->secret);
    if (st == FKT_OK && (!fkt_same(pair, k->secret, sizeof pair) || !fkt_same(derived, k->site.key, sizeof derived)))
        st = fkt_fail(FKT_E_ARG, "the public key does not follow from the secret key");
    fkt_wipe(pair, sizeof pair);
    return st;
}

fkt_status fkt_key_save(const struct fkt_key *k, const char *path, int force, struct fkt_site_key *old)
{
    char public_hex[2 * FKT_SA_KEY + 1], secret[SECRET_DIGITS + 1], zeros[SECRET_DIGITS + 1];
    fkt_status st;
    if (old) memset(old, 0, sizeof *old);
    st = check_key(k);
    if (st == FKT_OK && force) st = only_over_a_key(path, old);
    if (st != FKT_OK) return st;
    fkt_hex(public_hex, k->site.key, FKT_SA_KEY);
    fkt_hex(secret, k->secret, FKT_SA_SECRET);
    memset(zeros, '0', SECRET_DIGITS);
    zeros[SECRET_DIGITS] = '\0';
    st = save_json(json_pack("{s:s s:s s:s s:s}", "schema", KEY_SCHEMA, "name", k->site.name, "public", public_hex,
                             "secret", zeros),
                   secret, path, FKT_FILE_PRIVATE | (force ? FKT_FILE_REPLACE : 0));
    fkt_wipe(secret, sizeof secret);
    return st;
}

static void proof_digest(const struct fkt_site_key *s, uint8_t out[FKT_DIGEST_BYTES])
{
    struct fkt_digest d;
    fkt_digest_init(&d, PROOF_LABEL, NULL);
    fkt_digest_add(&d, s->name, strlen(s->name));
    fkt_digest_add(&d, s->key, sizeof s->key);
    fkt_digest_end(&d, out);
}

fkt_status fkt_site_key_save(const struct fkt_key *k, const char *path, int force)
{
    uint8_t digest[FKT_DIGEST_BYTES], proof[FKT_SIGN_BYTES];
    char key[2 * FKT_SA_KEY + 1], hex[2 * sizeof proof + 1];
    proof_digest(&k->site, digest);
    fkt_sign(proof, digest, sizeof digest, k->secret);
    fkt_hex(key, k->site.key, FKT_SA_KEY);
    fkt_hex(hex, proof, sizeof proof);
    return save_json(
        json_pack("{s:s s:s s:s s:s}", "schema", SITE_SCHEMA, "name", k->site.name, "key", key, "proof", hex), NULL,
        path, force ? FKT_FILE_REPLACE : 0);
}

static fkt_status take_site(struct fkt_site_key *s, json_t *j)
{
    const char *schema, *name, *key, *hex;
    uint8_t digest[FKT_DIGEST_BYTES], proof[FKT_SIGN_BYTES];
    json_error_t e;
    fkt_status st;
    if (is_of(j, KEY_SCHEMA))
        return fkt_fail_hint(FKT_E_FORMAT, "never send a secret key: give the file that ends in .pub",
                             "it holds a secret key");
    if (is_of(j, FKT_TASK_SCHEMA)) return fkt_fail(FKT_E_FORMAT, "it is a task");
    if (json_unpack_ex(j, &e, JSON_STRICT, "{s:s s:s s:s s:s}", "schema", &schema, "name", &name, "key", &key, "proof",
                       &hex) != 0)
        return fkt_fail(FKT_E_FORMAT, "%s", e.text);
    if (strcmp(schema, SITE_SCHEMA) != 0) return fkt_fail(FKT_E_FORMAT, "schema is not '" SITE_SCHEMA "'");
    FKT_TRY(take_name(s, name));
    if (!fkt_unhex(s->key, key, FKT_SA_KEY) || !fkt_unhex(proof, hex, sizeof proof))
        st = fkt_fail(FKT_E_FORMAT, "key and proof are not 64 and 128 lower-case hexadecimal digits");
    if (st != FKT_OK) goto out;
    proof_digest(s, digest);
    if (!fkt_sign_key_ok(s->key) || !fkt_verify(proof, digest, sizeof digest, s->key))
        st = fkt_fail_hint(
            FKT_E_PEER_AUTH, "ask for the file again, as it was made, unchanged",
            "its proof is invalid: its author does not have the secret key, or its name or key was changed");
out:
    return st;
}

fkt_status fkt_site_key_load(struct fkt_site_key *out, const char *path)
{
    char text[FILE_MAX + 1];
    size_t len;
    char secret[SECRET_DIGITS + 1];
    struct stat sb;
    json_t *j = NULL;
    json_error_t e;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(read_small(path, text, &len, &sb));
    take_secret(text, secret); /* it may be the secret key, given by mistake */
    fkt_wipe(secret, sizeof secret);
    j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    st = j ? take_site(out, j) : fkt_fail(FKT_E_FORMAT, "line %d is not JSON", e.line);
    if (st != FKT_OK)
        fkt_hint_code(fkt_fail_in(st, "'%s' is not the public key of a site", path), FKT_HINT_SITE_KEY_FILE,
                      "give the file that ends in .pub");
out:
    if (st != FKT_OK) memset(out, 0, sizeof *out); /* nothing of it is proven */
    json_decref(j);
    fkt_wipe(text, sizeof text);
    return st;
}
