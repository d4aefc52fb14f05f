/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/layouts.h"
#include "tests/support/slow_moments.h"

/* Two classes of length 2 at Rq = 64; per class: n S0 S1 M00 M01 M11. */
enum { N0, S0, S1, M00, M01, M11, BLOCK };
#define RQ 64
#define RQ2 (RQ * RQ)

static struct fkt_moments *fresh(uint64_t n_max)
{
    struct fkt_moments *out;
    CHECK_OK(fkt_moments_new(&out, 2, ONE_PART(2, RQ), n_max));
    return out;
}

static void check_holds(struct fkt_moments *m, const int64_t *want)
{
    const int64_t *got;
    CHECK_OK(fkt_moments_packed(m, &got));
    CHECK(!memcmp(got, want, 2 * BLOCK * sizeof *got));
}

static void honest_sums_are_added(void **state)
{
    const uint32_t labels[4] = {0, 1, 1, 0};
    const int32_t q[8] = {64, 0, -3, 4, 0, -64, -64, 0};
    int64_t once[2 * BLOCK], twice[2 * BLOCK];
    const int64_t *own;
    struct fkt_moments *m = fresh(0);
    (void)state;
    slow_moments(once, 2, 2, labels, q, 4);
    for (size_t i = 0; i < 2 * BLOCK; i++) twice[i] = 2 * once[i];
    CHECK_OK(fkt_moments_add_packed(m, once));
    check_holds(m, once);
    CHECK_OK(fkt_moments_add(m, labels, q, 4)); /* rows wait while packed ones come in */
    check_holds(m, twice);
    CHECK_OK(fkt_moments_packed(m, &own));
    CHECK_OK(fkt_moments_add_packed(m, own)); /* its own integers */
    for (size_t i = 0; i < 2 * BLOCK; i++) twice[i] *= 2;
    check_holds(m, twice);
    fkt_moments_free(m);
}

static void each_impossible_entry_is_refused(void **state)
{
    const int64_t n = 5;
    const struct {
        int entry;
        int64_t value;
        const char *why;
    } bad[] = {
        {N0, -1, "count"},
        {N0, INT64_MIN, "count"},
        {N0, 11, "count"},
        {N0, INT64_MAX, "count"},
        {N0, 0, "sum"}, /* sums of no records */
        {S0, n * RQ + 1, "sum"},
        {S0, -n * RQ - 1, "sum"},
        {S1, INT64_MAX, "sum"},
        {S1, INT64_MIN, "sum"},
        {M00, -1, "diagonal"},
        {M11, INT64_MIN, "diagonal"},
        {M00, n * RQ2 + 1, "diagonal"},
        {M11, INT64_MAX, "diagonal"},
        {M01, n * RQ2 + 1, "a moment"},
        {M01, -n * RQ2 - 1, "a moment"},
        {M01, INT64_MIN, "a moment"},
        {M11, n * RQ2 - 99, "trace"},
        {M00, n * RQ2 - 100 + 1, "trace"},
    };
    struct fkt_moments *m = fresh(10);
    const int64_t good[2 * BLOCK] = {n, 7, -7, 100, -50, 100, n, n * RQ, -n * RQ, n * RQ2, 0, 0};
    (void)state;
    CHECK_OK(fkt_moments_add_packed(m, good));
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        int64_t packed[2 * BLOCK];
        memcpy(packed, good, sizeof packed);
        memcpy(packed + BLOCK, good, sizeof packed / 2); /* class 0 is fine, class 1 is not */
        packed[BLOCK + bad[b].entry] = bad[b].value;
        CHECK_STATUS(fkt_moments_add_packed(m, packed), FKT_E_NUMERIC);
        if (!strstr(fkt_error_text(), bad[b].why) || !strstr(fkt_error_text(), "class 1"))
            fail_msg("case %zu: '%s' does not name class 1 and '%s'", b, fkt_error_text(), bad[b].why);
        check_holds(m, good);
    }
    fkt_moments_free(m);
}

static void extremes_on_the_bound_are_taken(void **state)
{
    const int64_t n = 10, edge[2 * BLOCK] = {n, n * RQ, -n * RQ, n * RQ2, -n * RQ2, 0, n, 0, 0, 0, n * RQ2, n * RQ2};
    const int64_t one[2 * BLOCK] = {0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}, none[2 * BLOCK] = {0};
    struct fkt_moments *m = fresh(10);
    (void)state;
    CHECK_OK(fkt_moments_add_packed(m, edge));
    CHECK_STATUS(fkt_moments_add_packed(m, one), FKT_E_NUMERIC); /* an eleventh record of class 1 */
    CHECK_OK(fkt_moments_add_packed(m, none));
    check_holds(m, edge);
    fkt_moments_free(m);
}

static void sums_near_2_to_the_61_do_not_wrap(void **state)
{
    for (uint32_t rq = 64; rq <= 4096; rq *= 8) {
        const int64_t rq2 = (int64_t)rq * rq, most = (((int64_t)1 << 61) - 1) / rq2, half = most / 2;
        const int64_t a[3] = {half, half * rq, half * rq2};
        const int64_t b[3] = {most - half, -(most - half) * rq, (most - half) * rq2};
        const uint32_t label = 0;
        const int32_t q = (int32_t)rq;
        const int64_t *got;
        struct fkt_moments *m;
        CHECK_OK(fkt_moments_new(&m, 1, ONE_PART(1, rq), 0));
        CHECK_OK(fkt_moments_add_packed(m, a));
        CHECK_OK(fkt_moments_add_packed(m, b));
        CHECK_OK(fkt_moments_packed(m, &got));
        CHECK(got[0] == most && got[2] == most * rq2);
        CHECK(got[2] > ((int64_t)1 << 61) - 1 - rq2 && got[2] < (int64_t)1 << 61);
        CHECK_STATUS(fkt_moments_add(m, &label, &q, 1), FKT_E_NUMERIC);
        CHECK_STATUS(fkt_moments_add_packed(m, (const int64_t[3]){1, 0, 0}), FKT_E_NUMERIC);
        CHECK_STATUS(fkt_moments_merge(m, m), FKT_E_NUMERIC);
        CHECK_OK(fkt_moments_packed(m, &got));
        CHECK(got[0] == most && got[2] == most * rq2);
        fkt_moments_free(m);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_sums_are_added),
        cmocka_unit_test(each_impossible_entry_is_refused),
        cmocka_unit_test(extremes_on_the_bound_are_taken),
        cmocka_unit_test(sums_near_2_to_the_61_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
