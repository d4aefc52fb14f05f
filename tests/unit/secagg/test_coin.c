/* SPDX-License-Identifier: Apache-2.0 */
/* The coin's tree: one root from every leaf, one value behind it, and no way to bend either. */
#include "crypto/digest.h"
#include "crypto/group.h"
#include "crypto/shamir.h"
#include "secagg/coin.h"
#include "tests/support/check.h"

#define MOST 40U

static uint8_t session[FKT_SA_SESSION] = {1};
static uint8_t scalar[MOST][32], point[MOST][32], keys[MOST][2][32];
static struct fkt_sa_leaf leaf[MOST];

static int make_leaves(void **state)
{
    struct fkt_entropy_seeded s;
    struct fkt_entropy e;
    (void)state;
    fkt_entropy_seeded_init(&s, 4, 1);
    fkt_entropy_seeded(&e, &s);
    for (uint32_t i = 0; i < MOST; i++) {
        CHECK_OK(fkt_scalar_random(scalar[i], &e));
        CHECK_OK(fkt_point_base(point[i], scalar[i]));
        CHECK_OK(e.fill(e.self, keys[i][0], sizeof keys[i]));
        leaf[i] = (struct fkt_sa_leaf){3 * i + 1, keys[i][0], keys[i][1], point[i]};
    }
    return 0;
}

/* A slow twin, straight from docs/protocol.md 4: levels as lists. value: what the points hide, folded the same way. */
static void slow_root(uint8_t root[64], uint8_t value[32], uint32_t throw_number, uint32_t n)
{
    uint8_t node[MOST][64], v[MOST][32], wide[64], h[32];
    struct fkt_digest d;
    for (uint32_t i = 0; i < n; i++) {
        fkt_digest_init(&d, "fedkt/1 leaf", NULL);
        fkt_digest_add(&d, session, 32);
        fkt_digest_add_u32(&d, throw_number);
        fkt_digest_add_u32(&d, 3 * i + 1);
        fkt_digest_add(&d, keys[i][0], 32);
        fkt_digest_add(&d, keys[i][1], 32);
        fkt_digest_add(&d, point[i], 32);
        fkt_digest_end(&d, node[i]);
        memcpy(node[i] + 32, point[i], 32);
        memcpy(v[i], scalar[i], 32);
    }
    for (; n > 1; n = (n + 1) / 2)
        for (uint32_t i = 0; i < n; i += 2) {
            if (i + 1 == n) {
                memmove(node[i / 2], node[i], 64);
                memmove(v[i / 2], v[i], 32);
                continue;
            }
            fkt_digest_init(&d, "fedkt/1 node", NULL);
            for (int part = 0; part < 4; part++) fkt_digest_add(&d, node[i] + 32 * part, 32); /* two nodes in a row */
            fkt_digest_end(&d, node[i / 2]);
            for (int half = 0; half < 2; half++) {
                fkt_digest_init(&d, half ? "fedkt/1 fold 1" : "fedkt/1 fold 0", NULL);
                fkt_digest_add(&d, node[i / 2], 32);
                fkt_digest_end(&d, wide + 32 * half);
            }
            fkt_scalar_reduce(h, wide);
            fkt_scalar_fold(v[i / 2], v[i], h, v[i + 1]);
            CHECK_OK(fkt_point_base(node[i / 2] + 32, v[i / 2]));
        }
    memcpy(root, node[0], 64);
    memcpy(value, v[0], 32);
}

static void every_shape(void **state)
{
    uint8_t want[64], value[32], v[32], root[64], path[64 * 8], seed[32], other[32];
    uint8_t said[MOST][32];
    (void)state;
    for (uint32_t n = 1; n <= MOST; n++) {
        struct fkt_sa_coin c;
        CHECK_OK(fkt_sa_coin_build(&c, session, 2, leaf, n));
        slow_root(want, value, 2, n);
        CHECK(fkt_same(fkt_sa_coin_root(&c), want, 64));
        memcpy(said, scalar, sizeof said);
        fkt_sa_coin_open(&c, said[0], v);
        CHECK(fkt_same(v, value, 32));
        CHECK_OK(fkt_sa_coin_seed(seed, session, want, v));
        v[0] ^= 1;
        CHECK_STATUS(fkt_sa_coin_seed(other, session, want, v), FKT_E_PEER_AUTH);
        CHECK(!fkt_same(other, seed, 32));
        for (uint32_t i = 0; i < n; i++) {
            const size_t len = fkt_sa_coin_path_bytes(n, i);
            CHECK(len <= sizeof path);
            fkt_sa_coin_path(&c, i, path);
            CHECK_OK(fkt_sa_coin_climb(root, session, 2, &leaf[i], n, i, path, len));
            CHECK(fkt_same(root, want, 64));
        }
        fkt_sa_coin_clear(&c);
        CHECK(c.nodes == NULL);
    }
}

static void depths(void **state)
{
    (void)state;
    CHECK(fkt_sa_coin_path_bytes(1, 0) == 0);
    CHECK(fkt_sa_coin_path_bytes(3, 0) == 128 && fkt_sa_coin_path_bytes(3, 2) == 64);
    CHECK(fkt_sa_coin_path_bytes(5, 4) == 64 && fkt_sa_coin_path_bytes(6, 5) == 128);
    CHECK(fkt_sa_coin_path_bytes(65536, 77) == 64 * 16);
    CHECK(fkt_sa_coin_path_bytes(0, 0) == 0 && fkt_sa_coin_path_bytes(5, 5) == 0);
    CHECK(fkt_sa_coin_path_bytes(UINT32_MAX, 0) == 64 * 32);
}

/* A bit anywhere: no climb may reach the same root, and a bad point is refused as such. */
static void a_flipped_bit(void **state)
{
    const uint32_t n = 13, at = 6;
    uint8_t path[256], root[64], good[64], coin_point[32];
    struct fkt_sa_leaf own = leaf[at];
    struct fkt_sa_coin c;
    (void)state;
    CHECK_OK(fkt_sa_coin_build(&c, session, 1, leaf, n));
    memcpy(good, fkt_sa_coin_root(&c), 64);
    CHECK(fkt_sa_coin_path_bytes(n, at) == sizeof path);
    fkt_sa_coin_path(&c, at, path);
    for (size_t bit = 0; bit < 8 * sizeof path; bit += bit % 8 == 7 ? 1 : 7) { /* the ends of every byte */
        fkt_status st;
        path[bit / 8] ^= (uint8_t)(1U << bit % 8);
        st = fkt_sa_coin_climb(root, session, 1, &own, n, at, path, sizeof path);
        CHECK(st == FKT_OK || st == FKT_E_PEER_AUTH);
        CHECK(!fkt_same(root, good, 64));
        CHECK(st == FKT_OK || bit / 8 % 64 >= 32); /* a digest alone is never refused */
        path[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    memcpy(coin_point, point[at], 32);
    coin_point[31] ^= 0x80; /* not canonical */
    own.commitment = coin_point;
    CHECK_STATUS(fkt_sa_coin_climb(root, session, 1, &own, n, at, path, sizeof path), FKT_E_PEER_AUTH);
    memset(coin_point, 0, 32); /* the identity */
    CHECK_STATUS(fkt_sa_coin_climb(root, session, 1, &own, n, at, path, sizeof path), FKT_E_PEER_AUTH);
    fkt_sa_coin_clear(&c);
}

/* Another place, site, key, session, throw or number of leaves is another root or an invalid path. */
static void a_wrong_place(void **state)
{
    const uint32_t n = 16, at = 6;
    uint8_t path[256], root[64], good[64], key[32] = {7}, elsewhere[32] = {2};
    struct fkt_sa_leaf own = leaf[at];
    struct fkt_sa_coin c;
    (void)state;
    CHECK_OK(fkt_sa_coin_build(&c, session, 1, leaf, n));
    memcpy(good, fkt_sa_coin_root(&c), 64);
    fkt_sa_coin_path(&c, at, path);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_OK(fkt_sa_coin_climb(root, session, 1, &own, n, i, path, sizeof path));
        CHECK(fkt_same(root, good, 64) == (i == at));
    }
    CHECK_OK(fkt_sa_coin_climb(root, session, 2, &own, n, at, path, sizeof path));
    CHECK(!fkt_same(root, good, 64));
    CHECK_OK(fkt_sa_coin_climb(root, elsewhere, 1, &own, n, at, path, sizeof path));
    CHECK(!fkt_same(root, good, 64));
    own.site++;
    CHECK_OK(fkt_sa_coin_climb(root, session, 1, &own, n, at, path, sizeof path));
    CHECK(!fkt_same(root, good, 64));
    own = leaf[at], own.mask_key = key;
    CHECK_OK(fkt_sa_coin_climb(root, session, 1, &own, n, at, path, sizeof path));
    CHECK(!fkt_same(root, good, 64));
    own = leaf[at];
    CHECK_STATUS(fkt_sa_coin_climb(root, session, 1, &own, n, n, path, sizeof path), FKT_E_PEER_FORMAT);
    CHECK_STATUS(fkt_sa_coin_climb(root, session, 1, &own, 0, 0, path, 0), FKT_E_PEER_FORMAT);
    CHECK_STATUS(fkt_sa_coin_climb(root, session, 1, &own, n, at, path, sizeof path - 64), FKT_E_PEER_FORMAT);
    CHECK_STATUS(fkt_sa_coin_climb(root, session, 1, &own, n + 1, at, path, sizeof path), FKT_E_PEER_FORMAT);
    CHECK_STATUS(fkt_sa_coin_climb(root, session, 1, &own, 65537, 0, path, 64 * 17), FKT_E_PEER_FORMAT);
    fkt_sa_coin_clear(&c);
}

/* A scalar that opens another commitment makes a V that is not the root's: it gives no seed. */
static void a_false_scalar(void **state)
{
    uint8_t said[MOST][32], v[32], seed[32];
    (void)state;
    for (uint32_t n = 1; n <= 9; n++) {
        struct fkt_sa_coin c;
        CHECK_OK(fkt_sa_coin_build(&c, session, 1, leaf, n));
        for (uint32_t i = 0; i < n; i++)
            for (int how = 0; how < 2; how++) {
                memcpy(said, scalar, sizeof said);
                if (how == 0) said[i][0] ^= 1;
                else memset(said[i], 0, 32);
                fkt_sa_coin_open(&c, said[0], v);
                CHECK_STATUS(fkt_sa_coin_seed(seed, session, fkt_sa_coin_root(&c), v), FKT_E_PEER_AUTH);
                for (int b = 0; b < 32; b++) CHECK(seed[b] == 0);
            }
        fkt_sa_coin_clear(&c);
    }
}

static void a_bad_commitment(void **state)
{
    struct fkt_sa_leaf bad[3] = {leaf[0], leaf[1], leaf[2]};
    const uint8_t zero[32] = {0};
    struct fkt_sa_coin c;
    (void)state;
    for (int i = 0; i < 3; i++) {
        bad[i].commitment = zero;
        for (uint32_t n = (uint32_t)i + 1; n <= 3; n++) {
            CHECK_STATUS(fkt_sa_coin_build(&c, session, 1, bad, n), FKT_E_PEER_AUTH);
            CHECK(c.nodes == NULL);
        }
        bad[i] = leaf[i];
    }
}

/* Throws, sets of leaves and sessions give seeds that differ; the complete graph has one of its own. */
static void seeds_differ(void **state)
{
    uint8_t seed[8][32], said[MOST][32], v[32], plain[32];
    uint32_t n = 0;
    struct fkt_digest d;
    (void)state;
    for (uint32_t t = 1; t <= 3; t++)
        for (uint32_t leaves = 6; leaves <= 7; leaves++) {
            struct fkt_sa_coin c;
            CHECK_OK(fkt_sa_coin_build(&c, session, t, leaf, leaves));
            memcpy(said, scalar, sizeof said);
            fkt_sa_coin_open(&c, said[0], v);
            CHECK_OK(fkt_sa_coin_seed(seed[n++], session, fkt_sa_coin_root(&c), v));
            fkt_sa_coin_clear(&c);
        }
    CHECK_OK(fkt_sa_coin_seed(seed[n++], session, NULL, NULL));
    fkt_digest_init(&d, "fedkt/1 seed", NULL);
    fkt_digest_add(&d, session, 32);
    fkt_digest_end(&d, plain);
    CHECK(fkt_same(plain, seed[n - 1], 32));
    session[0] ^= 1;
    CHECK_OK(fkt_sa_coin_seed(seed[n++], session, NULL, NULL));
    session[0] ^= 1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) CHECK(!fkt_same(seed[i], seed[j], 32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape),   cmocka_unit_test(depths),         cmocka_unit_test(a_flipped_bit),
        cmocka_unit_test(a_wrong_place), cmocka_unit_test(a_false_scalar), cmocka_unit_test(a_bad_commitment),
        cmocka_unit_test(seeds_differ),
    };
    return cmocka_run_group_tests(tests, make_leaves, NULL);
}
