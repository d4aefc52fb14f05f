/* SPDX-License-Identifier: Apache-2.0 */
/* ct_secagg.c - what a site does with its secrets, with them marked: its vector, seeds, mask and channel keys, the
 * shares it seals and opens (docs/protocol.md 3.1, 3.3, 3.4). What it sends is public from there on. */
#include "fedkt/advanced/secagg.h"

#include "crypto/agree.h"
#include "crypto/entropy.h"
#include "crypto/seal.h"
#include "crypto/shamir.h"
#include "secagg/mask.h"
#include "secagg/share.h"
#include "tests/ct/ct.h"

#include <string.h>

enum { SITES = 3, LENGTH = 700 };

static const uint8_t session[FKT_SA_SESSION] = {1}, seed[32] = {2};
static struct fkt_entropy_seeded seeded;
static struct fkt_entropy entropy = {ct_fill, &seeded, 0};

struct site {
    uint8_t channel[32], mask_seed[32], self_seed[32], mask[32]; /* secret */
    uint8_t channel_key[32], mask_key[32];                       /* sent to all */
};

static int site_new(struct site *s, uint32_t number)
{
    CT_CHECK(entropy.fill(entropy.self, s->channel, 32) == FKT_OK);
    CT_CHECK(fkt_scalar_random(s->mask_seed, &entropy) == FKT_OK);
    CT_CHECK(fkt_scalar_random(s->self_seed, &entropy) == FKT_OK);
    fkt_sa_mask_secret(s->mask, s->mask_seed, session, number);
    CT_CHECK(ct_tainted(s->mask, 32));
    fkt_agree_public(s->channel_key, s->channel);
    fkt_agree_public(s->mask_key, s->mask);
    PUBLIC(s->channel_key, 32);
    PUBLIC(s->mask_key, 32);
    return 0;
}

/* y = x + self mask +- pair masks, packed; gives the packed vector as the server sees it. */
static int masked(uint8_t *packed, size_t bytes, const struct site *sites, uint32_t i, const struct fkt_sa_params *p)
{
    struct fkt_sa_vector v;
    struct fkt_stream *stream = NULL;
    int64_t x[LENGTH];
    uint8_t key[32];
    for (int64_t n = 0; n < LENGTH; n++) x[n] = (n % 2 ? -1 : 1) * (n + i);
    SECRET(x, sizeof x);
    CT_CHECK(fkt_stream_new(&stream, (enum fkt_keystream)p->keystream) == FKT_OK &&
             fkt_sa_vector_init(&v, p) == FKT_OK);
    fkt_sa_vector_set(&v, x);
    fkt_sa_self_key(key, sites[i].self_seed, session, i);
    CT_CHECK(ct_tainted(key, 32));
    CT_CHECK(fkt_sa_vector_mask(&v, stream, key, 0) == FKT_OK);
    for (uint32_t j = 0; j < SITES; j++) {
        if (j == i) continue;
        CT_CHECK(fkt_sa_pair_key(key, sites[i].mask, sites[j].mask_key, session, seed, i, j) == FKT_OK);
        fkt_sa_stream_key(key, key, seed);
        CT_CHECK(ct_tainted(key, 32));
        CT_CHECK(fkt_sa_vector_mask(&v, stream, key, j < i) == FKT_OK);
    }
    fkt_sa_vector_pack(&v, packed);
    CT_CHECK(ct_tainted(packed, bytes));
    PUBLIC(packed, bytes);
    fkt_sa_vector_clear(&v);
    fkt_stream_free(stream);
    return 0;
}

/* The server's part, all public: the sum without the self masks. */
static int masking(enum fkt_sa_keystream keystream, uint32_t bits)
{
    struct fkt_sa_params p = {.length = LENGTH, .bits = bits, .keystream = keystream};
    struct fkt_sa_vector total;
    struct fkt_stream *stream = NULL;
    struct site sites[SITES];
    uint8_t packed[8 * LENGTH], key[32];
    int64_t sum[LENGTH];
    CT_CHECK(fkt_stream_new(&stream, (enum fkt_keystream)keystream) == FKT_OK &&
             fkt_sa_vector_init(&total, &p) == FKT_OK);
    for (uint32_t i = 0; i < SITES; i++) CT_CHECK(site_new(&sites[i], i) == 0);
    for (uint32_t i = 0; i < SITES; i++) {
        CT_CHECK(masked(packed, ((size_t)LENGTH * bits + 7) / 8, sites, i, &p) == 0);
        CT_CHECK(fkt_sa_vector_add_packed(&total, packed) == FKT_OK);
        PUBLIC(sites[i].self_seed, 32); /* revealed */
        fkt_sa_self_key(key, sites[i].self_seed, session, i);
        CT_CHECK(fkt_sa_vector_mask(&total, stream, key, 1) == FKT_OK);
    }
    fkt_sa_vector_signed(&total, sum);
    for (int64_t n = 0; n < LENGTH; n++) CT_CHECK(sum[n] == (n % 2 ? -1 : 1) * (SITES * n + 3));
    fkt_sa_vector_clear(&total);
    fkt_stream_free(stream);
    return 0;
}

static int masking_aes_23(void) { return masking(FKT_SA_KEYSTREAM_AES_256_CTR, 23); }
static int masking_aes_32(void) { return masking(FKT_SA_KEYSTREAM_AES_256_CTR, 32); }
static int masking_chacha20_45(void) { return masking(FKT_SA_KEYSTREAM_CHACHA20, 45); }
static int masking_chacha20_62(void) { return masking(FKT_SA_KEYSTREAM_CHACHA20, 62); }

/* Two secrets in shares, sealed to each neighbour, opened there, and joined again. */
static int sealing(void)
{
    static const uint32_t points[SITES] = {1, 2, 3};
    struct site sites[SITES];
    uint8_t s[SITES * 32], u[SITES * 32], commitment[32], opened[SITES * 32], got[32];
    for (uint32_t i = 0; i < SITES; i++) CT_CHECK(site_new(&sites[i], i) == 0);
    CT_CHECK(fkt_shamir_split(s, sites[0].mask_seed, points, SITES, 2, &entropy) == FKT_OK);
    CT_CHECK(fkt_shamir_split(u, sites[0].self_seed, points, SITES, 2, &entropy) == FKT_OK);
    fkt_sa_self_commitment(commitment, session, 0, sites[0].self_seed);
    CT_CHECK(ct_tainted(commitment, sizeof commitment));
    for (uint32_t j = 1; j < SITES; j++) {
        uint8_t to[32], from[32], there_to[32], there_from[32], plain[64], sealed[FKT_SA_SEALED], out[64];
        CT_CHECK(fkt_sa_seal_keys(to, from, sites[0].channel, sites[j].channel_key, session, seed, 0, j) == FKT_OK);
        CT_CHECK(fkt_sa_seal_keys(there_to, there_from, sites[j].channel, sites[0].channel_key, session, seed, j, 0) ==
                 FKT_OK);
        CT_CHECK(ct_tainted(to, 32) && ct_tainted(there_from, 32));
        memcpy(plain, s + 32 * j, 32);
        memcpy(plain + 32, u + 32 * j, 32);
        fkt_seal(sealed, plain, sizeof plain, to);
        CT_CHECK(ct_tainted(sealed, sizeof sealed));
        PUBLIC(sealed, sizeof sealed);
        CT_CHECK(fkt_unseal(out, sealed, sizeof out, there_from) == 1);
        CT_CHECK(ct_tainted(out, sizeof out));
        memcpy(opened + 32 * (j - 1), out + 32, 32);
    }
    CT_CHECK(fkt_shamir_join(got, opened, points + 1, 2) == FKT_OK);
    PUBLIC(got, sizeof got);
    PUBLIC(sites[0].self_seed, 32);
    CT_CHECK(memcmp(got, sites[0].self_seed, 32) == 0);
    return 0;
}

int main(void)
{
    static const struct ct_case cases[] = {
        {"masking, AES, 23 bits", masking_aes_23},
        {"masking, AES, 32 bits", masking_aes_32},
        {"masking, ChaCha20, 45 bits", masking_chacha20_45},
        {"masking, ChaCha20, 62 bits", masking_chacha20_62},
        {"sealing", sealing},
    };
    fkt_entropy_seeded_init(&seeded, 2, 0);
    return ct_main(cases, sizeof cases / sizeof cases[0]);
}
