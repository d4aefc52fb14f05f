/* SPDX-License-Identifier: Apache-2.0 */
/* key_file.c - key files (docs/formats.md).
 *
 *   site.key       {"schema": "fedkt.key/1", "name", "public": 64 hex, "secret": 128 hex}      0600, stays
 *   site.key.pub   {"schema": "fedkt.site/1", "name", "key": 64 hex, "proof": 128 hex}         is sent to the operator
 *
 * The secret is the 32-byte seed of RFC 8032 and then the public key, as everywhere in the house. A file whose public
 * half does not follow from the seed is refused: signing with it would give the seed away (signature.c of round). The
 * proof is an Ed25519 signature over the digest labelled "fedkt-site-1" of name and key, so that nobody can enrol a key
 * that is not his, or another name for somebody's key.
 *
 * Secrets in memory: the file is read into a buffer of our own, and what jansson makes of it is wiped as jansson frees
 * it. For that its free function is another one while a key is read or written: one that plain free agrees with, so
 * that nothing depends on when it is put in and taken out. */
#include "task/key_file.h"

#include "base/file.h"
#include "base/private.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"
#include "crypto/sign.h"
#include "task/service.h"
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_SCHEMA "fedkt.key/1"
#define SITE_SCHEMA "fedkt.site/1"
#define PROOF_LABEL "fedkt-site-1"
#define FILE_MAX 4096

static void wiping_free(void *p)
{
    if (p) fkt_wipe(p, malloc_usable_size(p));
    free(p);
}

/* Between these two jansson leaves nothing behind. */
static void guard_json(void) { json_set_alloc_funcs(malloc, wiping_free); }
static void unguard_json(void) { json_set_alloc_funcs(malloc, free); }

static fkt_status set_name(struct cli_site *s, const char *name)
{
    fkt_status st = *name ? fkt_service_check_name(name, "the key") : FKT_OK;
    if (st == FKT_OK) snprintf(s->name, sizeof s->name, "%s", name);
    return st;
}

fkt_status cli_key_make(struct cli_key *out, const char *name)
{
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(set_name(&out->site, name ? name : ""));
    FKT_TRY(fkt_sa_identity(out->site.key, out->secret, NULL));
out:
    return st;
}

void cli_key_wipe(struct cli_key *k) { fkt_wipe(k, sizeof *k); }

void cli_fingerprint(char out[CLI_FINGERPRINT], const uint8_t key[FKT_SA_KEY])
{
    char hex[2 * FKT_SA_KEY + 1];
    fkt_hex(hex, key, FKT_SA_KEY);
    snprintf(out, CLI_FINGERPRINT, "%.4s %.4s %.4s %.4s %.4s", hex, hex + 4, hex + 8, hex + 12, hex + 16);
}

/* Takes j and wipes its text; NULL: memory is out. */
static fkt_status save_json(json_t *j, const char *path, int flags)
{
    char *text = j ? json_dumps(j, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    struct fkt_file f = {0};
    fkt_status st = FKT_OK;
    json_decref(j);
    if (!text) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON");
        goto out;
    }
    FKT_TRY(fkt_file_begin(&f, path, flags));
    setvbuf(f.stream, NULL, _IONBF, 0); /* no buffer that would keep a secret */
    fwrite(text, 1, strlen(text), f.stream);
    fputc('\n', f.stream);
    st = fkt_file_commit(&f);
out:
    wiping_free(text);
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
        st = fkt_fail_hint(FKT_E_FORMAT, "give a file made by 'fedkt keygen'",
                           "'%s' is too large for a key: %lld bytes", path, (long long)sb->st_size);
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

static fkt_status take_name(struct cli_site *s, const char *name)
{
    fkt_status st = set_name(s, name);
    return st == FKT_OK ? st : fkt_fail(FKT_E_FORMAT, "its name is too long or not plain text");
}

static fkt_status take_key(struct cli_key *k, json_t *j)
{
    const char *schema, *name, *public_hex, *secret;
    uint8_t derived[FKT_SIGN_PUBLIC], pair[FKT_SIGN_SECRET];
    json_error_t e;
    fkt_status st;
    if (json_unpack_ex(j, &e, JSON_STRICT, "{s:s s:s s:s s:s}", "schema", &schema, "name", &name, "public", &public_hex,
                       "secret", &secret) != 0)
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

/* strict: only when it is this user's, or root's, and nobody else can read it. */
static fkt_status load_key(struct cli_key *out, const char *path, int strict)
{
    char text[FILE_MAX + 1];
    size_t len;
    struct stat sb;
    json_t *j = NULL;
    json_error_t e;
    fkt_status st;
    memset(out, 0, sizeof *out);
    guard_json();
    FKT_TRY(read_small(path, text, &len, &sb));
    j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (is_of(j, SITE_SCHEMA))
        st = fkt_fail_hint(FKT_E_FORMAT, "give the one without .pub", "it holds the public part alone");
    else if (is_of(j, FKT_TASK_SCHEMA)) st = fkt_fail(FKT_E_FORMAT, "it is a task");
    else if (strict && is_of(j, KEY_SCHEMA)) { /* of a task or an image the mode is no matter */
        FKT_TRY(fkt_private_check(&sb, path, 0));
        st = take_key(out, j);
    } else if (!j) { /* what jansson says of bad text repeats part of it, which may be the secret */
        st = fkt_fail(FKT_E_FORMAT, "line %d is not JSON", e.line);
    } else st = take_key(out, j);
    if (st != FKT_OK) fkt_hint(fkt_fail_in(st, "'%s' is no key file", path), "give a file made by 'fedkt keygen'");
out:
    json_decref(j);
    unguard_json();
    fkt_wipe(text, sizeof text);
    if (st != FKT_OK) cli_key_wipe(out);
    return st;
}

fkt_status cli_key_load(struct cli_key *out, const char *path) { return load_key(out, path, 1); }

/* What stands there, when something does, is a key of ours. */
static fkt_status only_over_a_key(const char *path, struct cli_site *site)
{
    struct cli_key old;
    struct stat sb;
    fkt_status st;
    if (lstat(path, &sb) != 0 && errno == ENOENT) return FKT_OK;
    st = load_key(&old, path, 0);
    if (site) *site = old.site;
    cli_key_wipe(&old);
    if (st == FKT_OK) return FKT_OK;
    return fkt_fail_hint(FKT_E_EXISTS, "choose another name, or move that file away",
                         "'%s' is no key file that could be replaced, even with --force", path);
}

fkt_status cli_key_save(const struct cli_key *k, const char *path, int force, struct cli_site *old)
{
    char public_hex[2 * FKT_SA_KEY + 1], secret[2 * FKT_SA_SECRET + 1];
    fkt_status st = FKT_OK;
    if (old) memset(old, 0, sizeof *old);
    if (force) st = only_over_a_key(path, old);
    if (st != FKT_OK) return st;
    fkt_hex(public_hex, k->site.key, FKT_SA_KEY);
    fkt_hex(secret, k->secret, FKT_SA_SECRET);
    guard_json();
    st = save_json(json_pack("{s:s s:s s:s s:s}", "schema", KEY_SCHEMA, "name", k->site.name, "public", public_hex,
                             "secret", secret),
                   path, FKT_FILE_PRIVATE | (force ? FKT_FILE_REPLACE : 0));
    unguard_json();
    fkt_wipe(secret, sizeof secret);
    return st;
}

static void proof_digest(const struct cli_site *s, uint8_t out[FKT_DIGEST_BYTES])
{
    struct fkt_digest d;
    fkt_digest_init(&d, PROOF_LABEL, NULL);
    fkt_digest_add(&d, s->name, strlen(s->name));
    fkt_digest_add(&d, s->key, sizeof s->key);
    fkt_digest_end(&d, out);
}

fkt_status cli_site_save(const struct cli_key *k, const char *path, int force)
{
    uint8_t digest[FKT_DIGEST_BYTES], proof[FKT_SIGN_BYTES];
    char key[2 * FKT_SA_KEY + 1], hex[2 * sizeof proof + 1];
    proof_digest(&k->site, digest);
    fkt_sign(proof, digest, sizeof digest, k->secret);
    fkt_hex(key, k->site.key, FKT_SA_KEY);
    fkt_hex(hex, proof, sizeof proof);
    return save_json(
        json_pack("{s:s s:s s:s s:s}", "schema", SITE_SCHEMA, "name", k->site.name, "key", key, "proof", hex), path,
        force ? FKT_FILE_REPLACE : 0);
}

static fkt_status take_site(struct cli_site *s, json_t *j)
{
    const char *schema, *name, *key, *hex;
    uint8_t digest[FKT_DIGEST_BYTES], proof[FKT_SIGN_BYTES];
    json_error_t e;
    fkt_status st;
    if (is_of(j, KEY_SCHEMA))
        return fkt_fail_hint(FKT_E_FORMAT, "a secret key is never given away: take the file that ends in .pub",
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
        st = fkt_fail_hint(FKT_E_PEER_AUTH, "ask for the file again, as 'fedkt keygen' wrote it",
                           "its proof is false: whoever made it does not hold the key, or name or key were changed");
out:
    return st;
}

fkt_status cli_site_load(struct cli_site *out, const char *path)
{
    char text[FILE_MAX + 1];
    size_t len;
    struct stat sb;
    json_t *j = NULL;
    json_error_t e;
    fkt_status st;
    memset(out, 0, sizeof *out);
    guard_json(); /* somebody may give his secret key by mistake */
    FKT_TRY(read_small(path, text, &len, &sb));
    j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    st = j ? take_site(out, j) : fkt_fail(FKT_E_FORMAT, "line %d is not JSON", e.line);
    if (st != FKT_OK)
        fkt_hint(fkt_fail_in(st, "'%s' is no public key of a site", path),
                 "give the file that ends in .pub, made by 'fedkt keygen'");
out:
    json_decref(j);
    unguard_json();
    fkt_wipe(text, sizeof text);
    return st;
}

fkt_status cli_site_key(const char *option, const char *text, uint8_t key[FKT_SA_KEY])
{
    struct cli_site site;
    fkt_status st;
    if (fkt_unhex(key, text, FKT_SA_KEY)) return FKT_OK;
    st = fkt_hint(fkt_fail_in(cli_site_load(&site, text), "--%s", option),
                  "give 64 lower-case hexadecimal digits, or the file that ends in .pub");
    if (st == FKT_OK) memcpy(key, site.key, FKT_SA_KEY);
    return st;
}
