/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/entropy.h"
#include "fedkt/advanced/privacy.h"
#include "privacy/rounded_gaussian.h"
#include "tests/support/layouts.h"
#include "tests/support/check.h"

enum { K = 3, M = 4, BLOCK = (M + 1) * (M + 2) / 2 };

static void make_plan(struct fkt_privacy_plan *p, enum fkt_adjacency adjacency)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 1, .delta = 1e-5, .adjacency = adjacency, .split_count = 1, .parts = 1, .part = {{64, 24, 75}}};
    CHECK_OK(fkt_privacy_plan(p, &s));
}

static void make_exact(int64_t *exact)
{
    for (int i = 0; i < K * BLOCK; i++) exact[i] = i % BLOCK == 0 ? 1000 + i : (i % 7) * 100;
}

/* The order is a promise: class by class n, S, then M row by row, each with its own sigma, whatever is in the class. */
static void noise_comes_in_the_promised_order(void **state)
{
    struct fkt_privacy_plan p;
    struct fkt_ledger l;
    struct fkt_entropy_seeded a, b;
    struct fkt_entropy ea, eb;
    struct fkt_rounded_gaussian g;
    int64_t exact[K * BLOCK], noised[K * BLOCK];
    (void)state;
    for (int run = 0; run < 3 << K; run++) { /* every adjacency, with every choice of empty classes */
        const int adjacency = run % 3, empty = run / 3;
        make_exact(exact);
        for (int c = 0; c < K; c++)
            if (empty >> c & 1) memset(exact + c * BLOCK, 0, BLOCK * sizeof *exact);
        make_plan(&p, (enum fkt_adjacency)adjacency);
        CHECK_OK(fkt_ledger_init(&l, p.mu * p.mu, 0));
        fkt_entropy_seeded_init(&a, 5, 0);
        fkt_entropy_seeded(&ea, &a);
        fkt_entropy_seeded_init(&b, 5, 0);
        fkt_entropy_seeded(&eb, &b);
        CHECK_OK(fkt_privacy_release(noised, exact, K, ONE_PART(M, 64), &p, &l, &ea));
        fkt_rounded_gaussian_init(&g, &eb);
        for (int c = 0, at = 0; c < K; c++)
            for (int i = -2; i < M; i++)
                for (int j = i < 0 ? 0 : i; j < (i == -2 ? 1 : M); j++, at++) {
                    const double sigma = i == -2   ? p.sigma_count
                                         : i == -1 ? p.sigma[0].sum
                                         : i == j  ? p.sigma[0].moment
                                                   : p.sigma[0].cross;
                    struct fkt_gaussian_scale s;
                    int64_t noise = 0;
                    if (sigma > 0) {
                        CHECK_OK(fkt_gaussian_scale_init(&s, sigma));
                        CHECK_OK(fkt_rounded_gaussian_draw(&g, &s, &noise));
                    }
                    CHECK(noised[at] == exact[at] + noise);
                }
        fkt_rounded_gaussian_clear(&g);
        CHECK(l.entries == 1 && l.spent_mu2 >= p.mu * p.mu);
        if (adjacency == FKT_ADJACENCY_REPLACE)
            for (int c = 0; c < K; c++) CHECK(noised[c * BLOCK] == exact[c * BLOCK]);
    }
}

static void in_place_and_from_the_os(void **state)
{
    struct fkt_privacy_plan p;
    struct fkt_ledger l;
    int64_t exact[K * BLOCK], x[K * BLOCK], y[K * BLOCK];
    (void)state;
    make_exact(exact);
    memcpy(x, exact, sizeof x);
    make_plan(&p, FKT_ADJACENCY_ADD_REMOVE);
    CHECK_OK(fkt_ledger_init(&l, 2 * p.mu * p.mu, 0));
    CHECK_OK(fkt_privacy_release(x, x, K, ONE_PART(M, 64), &p, &l, NULL));
    CHECK_OK(fkt_privacy_release(y, exact, K, ONE_PART(M, 64), &p, &l, NULL));
    CHECK(memcmp(x, y, sizeof x) && memcmp(x, exact, sizeof x));
    memcpy(y, x, sizeof y);
    CHECK_STATUS(fkt_privacy_release(x, exact, K, ONE_PART(M, 64), &p, &l, NULL), FKT_E_BUDGET);
    CHECK(*fkt_error_hint() && l.entries == 2);
    assert_memory_equal(x, y, sizeof x); /* a refused release writes nothing */
}

static fkt_status fill_then_fail(void *self, uint8_t *out, size_t len)
{
    int *left = self;
    if ((*left)-- == 0) return fkt_fail(FKT_E_ENTROPY, "the source ran dry");
    for (size_t i = 0; i < len; i++) out[i] = (uint8_t)(i * 197 + i / 7 * 31 + i / 64 * 53 + (size_t)*left * 11);
    return FKT_OK;
}

static void a_failure_on_the_way_leaves_nothing(void **state)
{
    static const int64_t zero[K * BLOCK];
    struct fkt_privacy_plan p;
    struct fkt_ledger l;
    int64_t x[K * BLOCK];
    int left = 1;
    struct fkt_entropy e = {fill_then_fail, &left, 0};
    (void)state;
    make_exact(x);
    make_plan(&p, FKT_ADJACENCY_ADD_REMOVE);
    CHECK_OK(fkt_ledger_init(&l, 1e9, 0));
    CHECK_STATUS(fkt_privacy_release(x, x, K, ONE_PART(M, 64), &p, &l, &e), FKT_E_ENTROPY);
    assert_memory_equal(x, zero, sizeof x);
    CHECK(l.entries == 1); /* the draws may have been seen: the debit stands */
}

static void false_plans_are_refused(void **state)
{
    struct fkt_privacy_plan p;
    struct fkt_ledger l;
    int64_t x[K * BLOCK], before[K * BLOCK];
    (void)state;
    make_exact(x);
    memcpy(before, x, sizeof x);
    CHECK_OK(fkt_ledger_init(&l, 1e9, 0));
    for (int which = 0; which < 8; which++) {
        make_plan(&p, FKT_ADJACENCY_ADD_REMOVE);
        switch (which) {
        case 0: p.sigma_count = 0; break;
        case 1: p.sigma_count *= 0.9; break;
        case 2: p.sigma[0].sum *= 0.9; break;
        case 3: p.sigma[0].moment *= 0.9; break;
        case 4: p.sigma[0].cross *= 0.999; break;
        case 5: p.mu *= 0.99; break;
        case 6: p.mu = NAN; break;
        case 7: p.sigma[0].sum = INFINITY; break;
        }
        CHECK_STATUS(fkt_privacy_release(x, x, K, ONE_PART(M, 64), &p, &l, NULL), FKT_E_ARG);
    }
    make_plan(&p, FKT_ADJACENCY_ADD_REMOVE);
    CHECK_STATUS(fkt_privacy_release(x, x, 0, ONE_PART(M, 64), &p, &l, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_release(x, x, K, ONE_PART(0, 64), &p, &l, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_release(x, x, UINT32_MAX, ONE_PART(UINT32_MAX, 64), &p, &l, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_release(x, x, K, ONE_PART(M, 64), &p, NULL, NULL), FKT_E_ARG);
    assert_memory_equal(x, before, sizeof x);
    CHECK(l.entries == 0 && l.spent_mu2 == 0);
}

static void sums_outside_the_ball_are_refused(void **state)
{
    /* index in the block, value: more than n*Rq, than n*Rq^2, a negative square, a negative count, numbers near
     * wrapping */
    const struct {
        int at;
        int64_t value;
    } bad[] = {{1, 64001},         {2, -64001}, {1 + M, 4096001}, {1 + M, -1},          {2 + M, 4096001},
               {2 + M, INT64_MIN}, {0, -1},     {0, INT64_MAX},   {0, (int64_t)1 << 52}};
    struct fkt_privacy_plan p;
    struct fkt_ledger l;
    int64_t x[K * BLOCK];
    (void)state;
    make_plan(&p, FKT_ADJACENCY_ADD_REMOVE);
    CHECK_OK(fkt_ledger_init(&l, 1e9, 0));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_exact(x);
        x[0] = 1000;
        x[bad[i].at] = bad[i].value;
        CHECK_STATUS(fkt_privacy_release(x, x, K, ONE_PART(M, 64), &p, &l, NULL), FKT_E_MISMATCH);
    }
    CHECK(l.entries == 0);
    make_exact(x);
    x[0] = 1000;
    x[1] = 64000;
    for (int i = 1 + M; i < BLOCK; i++) x[i] = 0;
    x[1 + M] = 4096000;
    CHECK_OK(fkt_privacy_release(x, x, K, ONE_PART(M, 64), &p, &l, NULL));
    make_exact(x); /* every entry in its range, but the trace is that of longer records */
    x[0] = 1000;
    for (int i = 1 + M; i < BLOCK; i++) x[i] = 0;
    x[1 + M] = 4000000;
    x[1 + M + M] = 4000000;
    CHECK_STATUS(fkt_privacy_release(x, x, K, ONE_PART(M, 64), &p, &l, NULL), FKT_E_MISMATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_comes_in_the_promised_order),   cmocka_unit_test(in_place_and_from_the_os),
        cmocka_unit_test(a_failure_on_the_way_leaves_nothing), cmocka_unit_test(false_plans_are_refused),
        cmocka_unit_test(sums_outside_the_ball_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
