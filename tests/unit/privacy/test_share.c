/* SPDX-License-Identifier: Apache-2.0 */
/* Whole noise shares against the oracle: the same stream gives the same numbers and the same refusals. */
#include "fedkt/advanced/privacy.h"

#include "crypto/entropy.h"
#include "tests/unit/privacy/share_case.h"

enum { N = 12 };

static fkt_status status_of(const char *name)
{
    return !strcmp(name, "FKT_E_ARG") ? FKT_E_ARG : !strcmp(name, "FKT_E_MISMATCH") ? FKT_E_MISMATCH : FKT_OK;
}

/* Two coordinates inside the plan's radius. */
static const struct fkt_moments_layout *of_plan(const struct fkt_share_plan *p)
{
    static struct fkt_moments_layout l;
    l = fkt_layout_one(2, (uint32_t)p->plan.spec.part[0].radius);
    return &l;
}

static void check_gather(const json_t *c, const struct fkt_share_plan *p)
{
    int64_t total[N], want[N], got[N];
    struct fkt_sigmas sigmas;
    CHECK(vectors_ints(c, "total", total, N) == N && vectors_ints(c, "noised", want, N) == N);
    CHECK_OK(fkt_privacy_gather(got, total, 2, of_plan(p), p, (uint32_t)vectors_int(c, "gathered")));
    CHECK_OK(fkt_privacy_total_sigmas(&sigmas, p, (uint32_t)vectors_int(c, "gathered")));
    assert_memory_equal(got, want, sizeof want);
    const double sigma[3] = {sigmas.count, sigmas.part[0].sum, sigmas.part[0].moment};
    for (size_t i = 0; i < 3; i++)
        CHECK_REL(sigma[i], json_number_value(json_array_get(json_object_get(c, "sigma"), i)), 1e-12);
    CHECK_OK(fkt_privacy_gather(total, total, 2, of_plan(p), p, p->counted)); /* in place */
    assert_memory_equal(total, want, sizeof want);
}

static void one_case(const json_t *c)
{
    static const int64_t zero[N];
    struct fkt_share_plan p;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy e;
    int64_t exact[N], want[N], x[N], kept[N];
    const fkt_status verdict = status_of(vectors_text(c, "verdict"));
    share_case_plan(&p, c);
    CHECK(vectors_int(c, "classes") == 2 && vectors_int(c, "length") == 2);
    CHECK(vectors_ints(c, "exact", exact, N) == N);
    fkt_entropy_seeded_init(&seeded, (uint64_t)vectors_int(c, "seed"), 3);
    fkt_entropy_seeded(&e, &seeded);
    memset(x, 0x55, sizeof x);
    const fkt_status got = fkt_privacy_share(x, exact, 2, of_plan(&p), &p, &e);
    if (got != verdict)
        fail_msg("%s: got %s (%s), want %s", vectors_text(c, "name"), fkt_status_name(got), fkt_error_text(),
                 vectors_text(c, "verdict"));
    if (verdict != FKT_OK) {
        assert_memory_equal(x, zero, sizeof x);
        memset(x, 0x55, sizeof x);
        memcpy(kept, x, sizeof x);
        if (verdict == FKT_E_ARG) {
            CHECK_STATUS(fkt_privacy_gather(x, exact, 2, of_plan(&p), &p, p.sites), FKT_E_ARG);
            assert_memory_equal(x, kept, sizeof x);
        }
        return;
    }
    CHECK(vectors_ints(c, "x", want, N) == N);
    assert_memory_equal(x, want, sizeof want);
    fkt_entropy_seeded_init(&seeded, (uint64_t)vectors_int(c, "seed"), 3);
    CHECK_OK(fkt_privacy_share(exact, exact, 2, of_plan(&p), &p, &e)); /* in place */
    assert_memory_equal(exact, want, sizeof want);
    check_gather(c, &p);
}

static void shares_are_the_oracles(void **state)
{
    json_t *root, *cases = vectors_open(&root, "privacy_shares.json");
    (void)state;
    CHECK(json_array_size(cases) == 42);
    for (size_t i = 0; i < json_array_size(cases); i++) one_case(json_array_get(cases, i));
    json_decref(root);
}

static void make_plan(struct fkt_share_plan *p)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 1, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{64, 24, 75}}};
    CHECK_OK(fkt_privacy_plan_shares(p, &s, 180, 240));
}

static void sizes_and_shares_are_checked(void **state)
{
    struct fkt_share_plan p;
    int64_t x[N] = {10, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0};
    struct fkt_sigmas sigma;
    (void)state;
    make_plan(&p);
    CHECK_STATUS(fkt_privacy_share(x, x, 0, ONE_PART(2, 64), &p, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_share(x, x, 2, ONE_PART(0, 64), &p, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_share(x, x, UINT32_MAX, ONE_PART(UINT32_MAX, 64), &p, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_share(x, x, UINT32_MAX, ONE_PART(2, 64), &p, NULL),
                 FKT_E_ARG); /* 2^34 numbers fit memory */
    CHECK(x[0] == 10);
    CHECK_STATUS(fkt_privacy_gather(x, x, 2, ONE_PART(2, 64), &p, 179), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_gather(x, x, 2, ONE_PART(2, 64), &p, 241), FKT_E_ARG);
    CHECK_OK(fkt_privacy_gather(x, x, 2, ONE_PART(2, 64), &p, 180));
    CHECK_STATUS(fkt_privacy_total_sigmas(&sigma, &p, 179), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_total_sigmas(&sigma, &p, 241), FKT_E_ARG);
    CHECK_OK(fkt_privacy_total_sigmas(&sigma, &p, 180));
    CHECK_REL(sigma.part[0].sum, p.plan.sigma[0].sum, 1e-12);
    CHECK_REL(sigma.part[0].moment, p.plan.sigma[0].moment, 1e-12);
    const double k2 = (double)p.count_scale * p.count_scale;
    CHECK_REL(sigma.count, sqrt(p.plan.sigma_count * p.plan.sigma_count + (k2 + 2) / (12 * k2)), 1e-12);
    CHECK_OK(fkt_privacy_gather(x, x, 2, ONE_PART(2, 64), &p, 240));
    CHECK_OK(fkt_privacy_total_sigmas(&sigma, &p, 240)); /* surplus noise: 240/180 of the variance */
    CHECK_REL(sigma.part[0].sum * sigma.part[0].sum, p.plan.sigma[0].sum * p.plan.sigma[0].sum * 240 / 180, 1e-12);
}

/* Errors of rounding have mean 0 and the claimed variance over any two neighbouring integers, on both sides of 0.
 * (Noise that is spread over several integers weighs the two alike: share_plan.md, step 8.) */
static void rounding_of_counts_has_no_direction(void **state)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 10, .delta = 1e-5, .split_count = 40, .parts = 1, .part = {{64, 20, 40}}};
    struct fkt_share_plan p;
    (void)state;
    CHECK_OK(fkt_privacy_plan_shares(&p, &s, 16, 20));
    const int64_t k = p.count_scale;
    CHECK(k > 1);
    for (int64_t from = -4 * k; from <= 4 * k; from += k) {
        int64_t sum = 0, squares = 0;
        for (int64_t t = from; t < from + 2 * k; t++) {
            int64_t x[6] = {t};
            CHECK_OK(fkt_privacy_gather(x, x, 1, ONE_PART(2, 64), &p, 16));
            sum += k * x[0] - t;
            squares += (k * x[0] - t) * (k * x[0] - t);
        }
        CHECK(sum == 0);
        CHECK(squares == 2 * k * (k * k + 2) / 12);
    }
}

static void extreme_totals_are_rounded_too(void **state)
{
    struct fkt_share_plan p;
    int64_t x[6] = {INT64_MIN, 0, 0, 0, 0, 0}, y[6];
    (void)state;
    make_plan(&p);
    CHECK(p.count_scale == 2);
    CHECK_OK(fkt_privacy_gather(y, x, 1, ONE_PART(2, 64), &p, 180));
    CHECK(y[0] == INT64_MIN / 2);
    x[0] = INT64_MAX;
    CHECK_OK(fkt_privacy_gather(y, x, 1, ONE_PART(2, 64), &p, 180));
    CHECK(y[0] == (int64_t)1 << 62);
    x[0] = -3;
    CHECK_OK(fkt_privacy_gather(y, x, 1, ONE_PART(2, 64), &p, 180));
    CHECK(y[0] == -2);
}

/* A class without records gets the noise that it would get with some: the same stream, the same differences. */
static void noise_does_not_depend_on_the_records(void **state)
{
    static const int64_t full[3 * 6] = {9, 5, 5, 90, 30, 90, 8, 4, -4, 80, 20, 80, 7, 3, 3, 70, 10, 70};
    struct fkt_share_plan p;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy e;
    int64_t first[3 * 6], x[3 * 6];
    (void)state;
    make_plan(&p);
    for (int empty = 0; empty < 8; empty++) {
        int64_t exact[3 * 6];
        for (int i = 0; i < 3 * 6; i++) exact[i] = empty >> (i / 6) & 1 ? 0 : full[i];
        fkt_entropy_seeded_init(&seeded, 8, 0);
        fkt_entropy_seeded(&e, &seeded);
        CHECK_OK(fkt_privacy_share(x, exact, 3, ONE_PART(2, 64), &p, &e));
        for (int i = 0; i < 3 * 6; i++) {
            x[i] -= exact[i] * (i % 6 == 0 ? p.count_scale : 1);
            if (empty == 0) first[i] = x[i];
        }
        assert_memory_equal(x, first, sizeof x);
    }
    for (int c = 0; c < 3; c++) CHECK(first[6 * c] || first[6 * c + 1] || first[6 * c + 3]);
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
    enum { K = 20 };
    static const int64_t zero[K * 6];
    struct fkt_share_plan p;
    int64_t x[K * 6];
    int left = 1;
    struct fkt_entropy e = {fill_then_fail, &left, 0};
    (void)state;
    make_plan(&p);
    for (int i = 0; i < K * 6; i++) x[i] = i % 6 == 0 ? 1000 : 3;
    CHECK_STATUS(fkt_privacy_share(x, x, K, ONE_PART(2, 64), &p, &e), FKT_E_ENTROPY);
    assert_memory_equal(x, zero, sizeof x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_the_oracles),
        cmocka_unit_test(sizes_and_shares_are_checked),
        cmocka_unit_test(noise_does_not_depend_on_the_records),
        cmocka_unit_test(rounding_of_counts_has_no_direction),
        cmocka_unit_test(extreme_totals_are_rounded_too),
        cmocka_unit_test(a_failure_on_the_way_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
