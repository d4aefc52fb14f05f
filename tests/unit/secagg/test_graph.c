/* SPDX-License-Identifier: Apache-2.0 */
/* The ring against a slow implementation that follows docs/protocol.md 5 exactly, and properties of any graph. */
#include "fedkt/advanced/secagg.h"

#include "crypto/digest.h"
#include "crypto/stream.h"
#include "secagg/graph.h"
#include "tests/support/check.h"

static struct fkt_sa_params shape(uint32_t sites, uint32_t degree)
{
    return (struct fkt_sa_params){.sites = sites, .degree = degree};
}

/* Twice as many words as sites are more than any draw of these tests needs. Gives how many were rejected. */
static uint32_t slow_ring(uint32_t *ring, uint32_t sites, const uint8_t session[32], const uint8_t seed[32])
{
    struct fkt_stream *s = NULL;
    struct fkt_digest d;
    uint8_t key[32], *bytes = NULL, *at;
    uint32_t rejected = 0;
    fkt_digest_init(&d, "fedkt/1 graph", seed);
    fkt_digest_add(&d, session, 32);
    fkt_digest_end(&d, key);
    CHECK_OK(fkt_alloc(&bytes, 8 * (size_t)sites));
    CHECK_OK(fkt_stream_new(&s, FKT_KEYSTREAM_CHACHA20));
    CHECK_OK(fkt_stream_bytes(s, key, bytes, 8 * (size_t)sites));
    fkt_stream_free(s);
    at = bytes;
    for (uint32_t i = 0; i < sites; i++) ring[i] = i;
    for (uint64_t i = sites - 1; i >= 1; i--) {
        uint64_t w;
        for (;; rejected++) {
            w = at[0] + 256 * (at[1] + 256 * (at[2] + UINT64_C(256) * at[3]));
            at += 4;
            if (w < (UINT64_C(1) << 32) / (i + 1) * (i + 1)) break;
        }
        uint32_t swap = ring[i];
        ring[i] = ring[w % (i + 1)];
        ring[w % (i + 1)] = swap;
    }
    fkt_free(bytes);
    return rejected;
}

static void same_as_slow(void **state)
{
    static const uint32_t sizes[] = {4, 5, 6, 7, 51, 1000, 65535, 65536};
    uint8_t session[32] = {1}, seed[32] = {2};
    uint32_t *ring = NULL, rejected = 0, plain = 0;
    (void)state;
    CHECK_OK(fkt_alloc(&ring, 65536));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (seed[1] = 0; seed[1] < 6; seed[1]++) {
            const struct fkt_sa_params p = shape(sizes[i], 2);
            struct fkt_sa_graph g;
            uint32_t bad = slow_ring(ring, sizes[i], session, seed);
            CHECK_OK(fkt_sa_graph_make(&g, &p, session, seed));
            CHECK(memcmp(ring, g.ring, sizes[i] * sizeof *ring) == 0);
            for (uint32_t j = 0; j < sizes[i]; j++) CHECK(g.place[g.ring[j]] == j);
            rejected += bad > 0, plain += bad == 0;
            fkt_sa_graph_clear(&g);
            CHECK(g.ring == NULL && g.place == NULL);
        }
    CHECK(rejected >= 3 && plain >= 3); /* both ways were walked: fixed seeds, 12 rings with half a rejection each */
    fkt_free(ring);
}

/* Ascending, without itself, all different, and mutual. */
static void check_graph(uint32_t sites, uint32_t degree)
{
    const struct fkt_sa_params p = shape(sites, degree);
    const uint8_t session[32] = {3}, seed[32] = {4};
    struct fkt_sa_graph g;
    uint32_t *all = NULL;
    uint8_t *joined = NULL;
    CHECK_OK(fkt_sa_graph_make(&g, &p, session, seed));
    CHECK_OK(fkt_alloc(&all, (size_t)sites * degree));
    CHECK_OK(fkt_alloc(&joined, (size_t)sites * sites));
    for (uint32_t i = 0; i < sites; i++) {
        uint32_t *n = all + (size_t)i * degree;
        fkt_sa_graph_neighbours(&g, i, n);
        for (uint32_t j = 0; j < degree; j++) {
            CHECK(n[j] < sites && n[j] != i && (j == 0 || n[j] > n[j - 1]));
            joined[(size_t)i * sites + n[j]] = 1;
        }
    }
    for (uint32_t i = 0; i < sites; i++)
        for (uint32_t j = 0; j < sites; j++) CHECK(joined[(size_t)i * sites + j] == joined[(size_t)j * sites + i]);
    fkt_free(joined);
    fkt_free(all);
    fkt_sa_graph_clear(&g);
}

static void regular_and_mutual(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 24; n++) {
        check_graph(n, n - 1);
        for (uint32_t k = 2; k <= n - 2; k += 2) check_graph(n, k);
    }
    check_graph(1000, 96);
}

static void neighbours_are_near(void **state)
{
    const struct fkt_sa_params p = shape(100, 32);
    const uint8_t session[32] = {5}, seed[32] = {6};
    struct fkt_sa_graph g;
    uint32_t n[32];
    (void)state;
    CHECK_OK(fkt_sa_graph_make(&g, &p, session, seed));
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t after = 0;
        fkt_sa_graph_neighbours(&g, i, n);
        for (int j = 0; j < 32; j++) {
            const uint32_t way = (g.place[n[j]] + 100 - g.place[i]) % 100;
            CHECK(way <= 16 || way >= 84);
            CHECK(fkt_sa_graph_after(&g, i, n[j]) == (way <= 16));
            CHECK(fkt_sa_graph_after(&g, n[j], i) == (way > 16));
            after += (uint32_t)fkt_sa_graph_after(&g, i, n[j]);
        }
        CHECK(after == 16);
    }
    fkt_sa_graph_clear(&g);
}

static void witnesses(void **state)
{
    const struct fkt_sa_params p = shape(100, 32);
    const uint8_t session[32] = {5}, seed[32] = {7};
    struct fkt_sa_graph g;
    uint32_t w[32];
    (void)state;
    CHECK_OK(fkt_sa_graph_make(&g, &p, session, seed));
    fkt_sa_graph_witnesses(&g, w);
    for (int j = 0; j < 32; j++) CHECK(g.place[w[j]] < 32 && (j == 0 || w[j] > w[j - 1]));
    fkt_sa_graph_clear(&g);
}

static void seed_and_session_count(void **state)
{
    const struct fkt_sa_params p = shape(1000, 2);
    uint8_t session[32] = {8}, seed[32] = {9};
    struct fkt_sa_graph a, b;
    (void)state;
    CHECK_OK(fkt_sa_graph_make(&a, &p, session, seed));
    for (int turn = 0; turn < 3; turn++) {
        if (turn == 1) session[31] ^= 0x80;
        if (turn == 2) session[31] ^= 0x80, seed[31] ^= 0x80;
        CHECK_OK(fkt_sa_graph_make(&b, &p, session, seed));
        CHECK((memcmp(a.ring, b.ring, 1000 * sizeof *a.ring) == 0) == (turn == 0));
        fkt_sa_graph_clear(&b);
    }
    fkt_sa_graph_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_slow), cmocka_unit_test(regular_and_mutual),     cmocka_unit_test(neighbours_are_near),
        cmocka_unit_test(witnesses),    cmocka_unit_test(seed_and_session_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
