/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c - a site's signature over a whole request, written and checked (docs/http.md 2.1).
 *
 *   Authorization: Fedkt site=3, nonce=<32 hex>, seq=<decimal>, sig=<128 hex>
 *
 * Ed25519 over H("fedkt-http-1"; task, nonce, seq, site, method, target, SHA-256 of the body): it covers everything
 * that the server acts upon. The nonce belongs to one run of the server and the sequence number only grows, so a
 * request is accepted once; the task's hash binds it to this task. TLS already encrypts and orders the bytes; the
 * signature says which enrolled key they come from, also behind a proxy that ends the TLS connection.
 *
 * Why not RFC 9421 (HTTP message signatures): its canonical form is long, and a header of one form can be
 * compared byte by byte. The parser accepts only what the writer makes.
 *
 * Cost: one hash of the body, one Ed25519 operation (about 60 us to check). */
#include "net/auth.h"

#include "base/text.h"
#include "crypto/digest.h"
#include "crypto/hash.h"
#include "crypto/sign.h"

#include <inttypes.h>
#include <string.h>

static void digest(uint8_t out[FKT_DIGEST_BYTES], const struct fkt_auth_request *r, const uint8_t *nonce, uint64_t seq,
                   uint32_t site)
{
    struct fkt_digest d;
    struct fkt_hash h;
    uint8_t number[8], body[FKT_HASH_BYTES];
    for (int i = 0; i < 8; i++) number[i] = (uint8_t)(seq >> (8 * i));
    fkt_hash_init(&h);
    if (r->len) fkt_hash_add(&h, r->body, r->len);
    fkt_hash_end(&h, body);
    fkt_digest_init(&d, "fedkt-http-1", NULL);
    fkt_digest_add(&d, r->task, 32);
    fkt_digest_add(&d, nonce, FKT_AUTH_NONCE);
    fkt_digest_add(&d, number, sizeof number);
    fkt_digest_add_u32(&d, site);
    fkt_digest_add(&d, r->method, strlen(r->method));
    fkt_digest_add(&d, r->target, strlen(r->target));
    fkt_digest_add(&d, body, sizeof body);
    fkt_digest_end(&d, out);
}

void fkt_auth_write(char out[FKT_AUTH_HEADER], const struct fkt_auth_request *r, const uint8_t secret[64])
{
    uint8_t what[FKT_DIGEST_BYTES], signature[FKT_SIGN_BYTES];
    char nonce[2 * FKT_AUTH_NONCE + 1], hex[2 * FKT_SIGN_BYTES + 1];
    digest(what, r, r->nonce, r->sequence, r->site);
    fkt_sign(signature, what, sizeof what, secret);
    fkt_hex(nonce, r->nonce, FKT_AUTH_NONCE);
    fkt_hex(hex, signature, sizeof signature);
    snprintf(out, FKT_AUTH_HEADER, "Fedkt site=%" PRIu32 ", nonce=%s, seq=%" PRIu64 ", sig=%s", r->site, nonce,
             r->sequence, hex);
}

static int take(const char **at, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0) return 0;
    *at += n;
    return 1;
}

/* Decimal digits without leading zeros. */
static int take_number(const char **at, uint64_t *out, uint64_t max)
{
    const char *s = *at;
    uint64_t x = 0;
    size_t n = 0;
    for (; s[n] >= '0' && s[n] <= '9'; n++) {
        const uint64_t digit = (uint64_t)(s[n] - '0');
        if (x > (max - digit) / 10) return 0;
        x = 10 * x + digit;
    }
    if (n == 0 || (n > 1 && s[0] == '0')) return 0;
    *out = x;
    *at = s + n;
    return 1;
}

static int take_hex(const char **at, uint8_t *out, size_t n)
{
    char digits[2 * FKT_SIGN_BYTES + 1];
    if (strnlen(*at, 2 * n) < 2 * n) return 0;
    memcpy(digits, *at, 2 * n);
    digits[2 * n] = '\0';
    *at += 2 * n;
    return fkt_unhex(out, digits, n);
}

int fkt_auth_read(struct fkt_auth_claim *out, const char *header)
{
    struct fkt_auth_claim c;
    uint64_t site = 0;
    memset(&c, 0, sizeof c);
    memset(out, 0, sizeof *out);
    if (!take(&header, "Fedkt site=") || !take_number(&header, &site, UINT32_MAX)) return 0;
    if (!take(&header, ", nonce=") || !take_hex(&header, c.nonce, sizeof c.nonce)) return 0;
    if (!take(&header, ", seq=") || !take_number(&header, &c.sequence, INT64_MAX)) return 0;
    if (!take(&header, ", sig=") || !take_hex(&header, c.signature, sizeof c.signature) || *header) return 0;
    c.site = (uint32_t)site;
    *out = c;
    return 1;
}

int fkt_auth_right(const struct fkt_auth_claim *c, const struct fkt_auth_request *r, const uint8_t key[32])
{
    uint8_t what[FKT_DIGEST_BYTES];
    digest(what, r, c->nonce, c->sequence, c->site);
    return fkt_verify(c->signature, what, sizeof what, key);
}
