/* SPDX-License-Identifier: Apache-2.0 */
/* ct_crypto.c - crypto/ with its secrets marked: keys, seeds, shares, coefficients, accumulators, plaintexts. */
#include "crypto/agree.h"
#include "crypto/digest.h"
#include "crypto/group.h"
#include "crypto/seal.h"
#include "crypto/shamir.h"
#include "crypto/sign.h"
#include "crypto/stream.h"
#include "tests/ct/ct.h"

#include <string.h>

static struct fkt_entropy_seeded seeded;
static struct fkt_entropy entropy = {ct_fill, &seeded, 0};

static int digest(void)
{
    uint8_t key[32] = {1}, part[100] = {2}, out[32];
    struct fkt_digest d;
    SECRET(key, sizeof key);
    SECRET(part, sizeof part);
    fkt_digest_init(&d, "label", key);
    fkt_digest_add(&d, part, sizeof part);
    fkt_digest_add_u32(&d, 7);
    fkt_digest_end(&d, out);
    CT_CHECK(ct_tainted(out, sizeof out));
    return 0;
}

static int same(void)
{
    uint8_t a[32] = {1}, b[32] = {1};
    int equal;
    SECRET(a, sizeof a);
    SECRET(b, sizeof b);
    equal = fkt_same(a, b, sizeof a);
    CT_CHECK(ct_tainted(&equal, 1));
    PUBLIC(&equal, sizeof equal);
    CT_CHECK(equal == 1);
    return 0;
}

static int agree(void)
{
    uint8_t a[32] = {3}, b[32] = {4}, pa[32], pb[32], x[32], y[32];
    SECRET(a, sizeof a);
    SECRET(b, sizeof b);
    fkt_agree_public(pa, a);
    fkt_agree_public(pb, b);
    CT_CHECK(ct_tainted(pa, sizeof pa));
    PUBLIC(pa, sizeof pa);
    PUBLIC(pb, sizeof pb);
    CT_CHECK(fkt_agree(x, a, pb) == FKT_OK && fkt_agree(y, b, pa) == FKT_OK);
    CT_CHECK(ct_tainted(x, sizeof x));
    PUBLIC(x, sizeof x);
    PUBLIC(y, sizeof y);
    CT_CHECK(memcmp(x, y, sizeof x) == 0);
    return 0;
}

static int sign(void)
{
    uint8_t seed[32] = {5}, pk[32], sk[64], sig[64];
    SECRET(seed, sizeof seed);
    fkt_sign_keypair(pk, sk, seed);
    CT_CHECK(ct_tainted(pk, sizeof pk));
    PUBLIC(pk, sizeof pk);
    PUBLIC(sk + 32, 32); /* the public key again */
    fkt_sign(sig, "message", 7, sk);
    CT_CHECK(ct_tainted(sig, 32));
    PUBLIC(sig, sizeof sig);
    CT_CHECK(fkt_verify(sig, "message", 7, pk) == 1);
    return 0;
}

static int seal(void)
{
    uint8_t key[32] = {6}, plain[80] = {7}, sealed[96], out[80];
    SECRET(key, sizeof key);
    SECRET(plain, sizeof plain);
    fkt_seal(sealed, plain, sizeof plain, key);
    CT_CHECK(ct_tainted(sealed, sizeof sealed));
    PUBLIC(sealed, sizeof sealed);
    CT_CHECK(fkt_unseal(out, sealed, sizeof out, key) == 1);
    CT_CHECK(ct_tainted(out, sizeof out));
    PUBLIC(out, sizeof out);
    CT_CHECK(out[0] == 7 && out[1] == 0);
    sealed[5] ^= 1;
    CT_CHECK(fkt_unseal(out, sealed, sizeof out, key) == 0);
    return 0;
}

static int stream_of(enum fkt_keystream kind)
{
    static uint32_t a[5000];
    static uint64_t b[5000];
    uint8_t key[32] = {8}, bytes[100];
    struct fkt_stream *s = NULL;
    CT_CHECK(fkt_stream_new(&s, kind) == FKT_OK);
    for (size_t i = 0; i < 5000; i++) a[i] = (uint32_t)(b[i] = i);
    SECRET(key, sizeof key);
    SECRET(a, sizeof a);
    SECRET(b, sizeof b);
    for (int subtract = 0; subtract < 2; subtract++) {
        CT_CHECK(fkt_stream_add32(s, key, a, 5000, subtract) == FKT_OK);
        CT_CHECK(fkt_stream_add64(s, key, b, 5000, subtract) == FKT_OK);
    }
    CT_CHECK(fkt_stream_bytes(s, key, bytes, sizeof bytes) == FKT_OK);
    CT_CHECK(ct_tainted(a, sizeof a) && ct_tainted(b, sizeof b) && ct_tainted(bytes, sizeof bytes));
    PUBLIC(a, sizeof a);
    PUBLIC(b, sizeof b);
    for (size_t i = 0; i < 5000; i++) CT_CHECK(a[i] == i && b[i] == i);
    fkt_stream_free(s);
    return 0;
}

static int aes(void) { return stream_of(FKT_KEYSTREAM_AES); }
static int chacha20(void) { return stream_of(FKT_KEYSTREAM_CHACHA20); }

/* Joined from the last t, so that both signs of a weight occur. */
static int shamir_of(const uint32_t *x, size_t n, size_t t)
{
    uint8_t secret[32], shares[20 * 32], got[32];
    CT_CHECK(fkt_scalar_random(secret, &entropy) == FKT_OK);
    CT_CHECK(ct_tainted(secret, sizeof secret));
    CT_CHECK(fkt_shamir_split(shares, secret, x, n, t, &entropy) == FKT_OK);
    CT_CHECK(ct_tainted(shares, 32 * n));
    CT_CHECK(fkt_shamir_join(got, shares + 32 * (n - t), x + (n - t), t) == FKT_OK);
    CT_CHECK(ct_tainted(got, sizeof got));
    PUBLIC(got, sizeof got);
    PUBLIC(secret, sizeof secret);
    CT_CHECK(memcmp(got, secret, sizeof got) == 0);
    return 0;
}

static int shamir(void)
{
    uint32_t near[20], far[20];
    for (uint32_t i = 0; i < 20; i++) {
        near[i] = i + 1;
        far[i] = 4294967295u - 214748364u * (i * 7 % 20);
    }
    CT_CHECK(shamir_of(near, 1, 1) == 0 && shamir_of(near, 20, 13) == 0 && shamir_of(far, 20, 20) == 0);
    return 0;
}

static int refused_share(void)
{
    static const uint32_t x[2] = {1, 2};
    uint8_t shares[64], out[32];
    memset(shares, 0xff, sizeof shares);
    SECRET(shares, sizeof shares);
    CT_CHECK(fkt_shamir_join(out, shares, x, 2) == FKT_E_PEER_FORMAT);
    return 0;
}

static int group(void)
{
    uint8_t a[32], b[32], h[32] = {9}, s[32], p[32];
    CT_CHECK(fkt_scalar_random(a, &entropy) == FKT_OK && fkt_scalar_random(b, &entropy) == FKT_OK);
    fkt_scalar_fold(s, a, h, b);
    CT_CHECK(ct_tainted(s, sizeof s));
    CT_CHECK(fkt_point_base(p, s) == FKT_OK);
    CT_CHECK(ct_tainted(p, sizeof p));
    PUBLIC(p, sizeof p);
    CT_CHECK(fkt_point_ok(p) == 1);
    return 0;
}

int main(void)
{
    static const struct ct_case cases[] = {
        {"digest", digest},     {"same", same},     {"agree", agree},
        {"sign", sign},         {"seal", seal},     {"aes", aes},
        {"chacha20", chacha20}, {"shamir", shamir}, {"refused share", refused_share},
        {"group", group},
    };
    fkt_entropy_seeded_init(&seeded, 1, 0);
    return ct_main(cases, sizeof cases / sizeof cases[0]);
}
