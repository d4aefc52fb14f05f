/* SPDX-License-Identifier: Apache-2.0 */
/* signature.c - the operator's signature of a task: Ed25519 (RFC 8032) over the digest labelled "fedkt-task-1" of one
 * part, the 32 bytes of the task's hash (docs/protocol.md 2.1, docs/formats.md).
 *
 * The signature is not under the task's hash: for the protocol a signed task and an unsigned one are the same. It shows
 * who is responsible for the parameters; the hash ensures that all sites have the same ones. A site that has its
 * operator's key compares it; a site without it still detects changes after signing.
 *
 * The public half in a secret key is never trusted: signing with another one and the same seed reveals the seed (the
 * double public key attack). It is derived again, and must match. */
#include "task/service.h"

#include "task/task.h"

#include "base/text.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"
#include "crypto/sign.h"

#include <string.h>

#define LABEL "fedkt-task-1"

static fkt_status to_sign(const struct fkt_task *t, uint8_t digest[FKT_DIGEST_BYTES])
{
    struct fkt_digest d;
    uint8_t hash[32];
    if (!fkt_unhex(hash, t->sha256, sizeof hash)) return fkt_fail(FKT_E_STATE, "task '%s' has no hash", t->name);
    fkt_digest_init(&d, LABEL, NULL);
    fkt_digest_add(&d, hash, sizeof hash);
    fkt_digest_end(&d, digest);
    return FKT_OK;
}

fkt_status fkt_task_sign(struct fkt_task *t, const uint8_t secret[FKT_SA_SECRET])
{
    uint8_t digest[FKT_DIGEST_BYTES], key[FKT_SIGN_PUBLIC], pair[FKT_SIGN_SECRET];
    fkt_status st = to_sign(t, digest);
    if (st != FKT_OK) return st;
    fkt_sign_keypair(key, pair, secret);
    if (fkt_same(pair, secret, sizeof pair)) {
        fkt_sign(t->signature.bytes, digest, sizeof digest, pair);
        memcpy(t->signature.key, key, sizeof key);
        t->signature.there = 1;
    } else {
        st = fkt_fail(FKT_E_ARG, "the two halves of the secret key do not match");
    }
    fkt_wipe(pair, sizeof pair);
    return st;
}

fkt_status fkt_task_verify(const struct fkt_task *t, const uint8_t *operator_key)
{
    const struct fkt_signature *s = &t->signature;
    uint8_t digest[FKT_DIGEST_BYTES];
    char hex[2 * FKT_SA_KEY + 1];
    fkt_status st = to_sign(t, digest);
    if (st != FKT_OK) return st;
    if (!s->there) {
        const int early = t->service.address[0] && !t->service.pin[0];
        return fkt_hint_code(fkt_fail(FKT_E_STATE, "task '%s' is not signed", t->name),
                             early ? FKT_HINT_TASK_EARLY : FKT_HINT_TASK_SIGN,
                             early ? "ask the operator for the task that the server has signed with its pin"
                                   : "ask the operator to sign it");
    }
    if (!fkt_verify(s->bytes, digest, sizeof digest, s->key))
        return fkt_fail_hint(FKT_E_PEER_AUTH, "fetch the task from the operator again",
                             "the signature of task '%s' is invalid: the task was changed after it was signed",
                             t->name);
    fkt_hex(hex, s->key, sizeof s->key);
    if (operator_key && memcmp(operator_key, s->key, sizeof s->key) != 0)
        return fkt_fail_hint(FKT_E_PEER_AUTH, "ask the operator for the task and the key over another channel",
                             "task '%s' is signed by %.16s..., not by the operator's key", t->name, hex);
    return FKT_OK;
}

json_t *fkt_signature_json(const struct fkt_signature *s)
{
    char key[2 * sizeof s->key + 1], bytes[2 * sizeof s->bytes + 1];
    fkt_hex(key, s->key, sizeof s->key);
    fkt_hex(bytes, s->bytes, sizeof s->bytes);
    return json_pack("{s:s s:s}", "key", key, "bytes", bytes);
}

fkt_status fkt_signature_take(struct fkt_signature *s, const json_t *j)
{
    const char *key, *bytes;
    json_error_t e;
    if (json_unpack_ex((json_t *)(uintptr_t)j, &e, JSON_STRICT, "{s:s s:s}", "key", &key, "bytes", &bytes) != 0)
        return fkt_fail(FKT_E_FORMAT, "signature: %s", e.text);
    if (!fkt_unhex(s->key, key, sizeof s->key))
        return fkt_fail(FKT_E_FORMAT, "signature: the key is not 64 lower-case hexadecimal digits");
    if (!fkt_unhex(s->bytes, bytes, sizeof s->bytes))
        return fkt_fail(FKT_E_FORMAT, "signature: it is not 128 lower-case hexadecimal digits");
    s->there = 1;
    return FKT_OK;
}
