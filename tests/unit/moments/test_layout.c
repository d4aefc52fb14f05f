/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of a layout, and moments of several parts and of pooled layouts, against plain loops over the definition. */
#include "tests/support/layouts.h"
#include "tests/support/slow_moments.h"

enum { K = 5, N = 700 };

/* Every number of the vector is named once, in the order of fedkt/layout.h. */
static void numbers_stand_side_by_side(void **state)
{
    const struct fkt_moments_layout layouts[] = {{1, {3}, {64}, 0},
                                                 {1, {3}, {64}, 1},
                                                 {2, {3, 2}, {64, 100}, 0},
                                                 {2, {3, 2}, {64, 100}, 1},
                                                 {4, {1, 2, 1, 5}, {64, 64, 64, 64}, 0},
                                                 {4, {1, 2, 1, 5}, {64, 64, 64, 64}, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const struct fkt_moments_layout *l = &layouts[i];
        size_t at = 0;
        for (uint32_t k = 0; k < K; k++) {
            CHECK(fkt_layout_count(l, K, k) == at++);
            for (uint32_t p = 0; p < l->parts; p++) {
                CHECK(fkt_layout_sum(l, K, k, p) == at);
                at += l->length[p];
                if (l->pooled) continue;
                CHECK(fkt_layout_moment(l, K, k, p) == at);
                at += l->length[p] * (l->length[p] + 1) / 2;
            }
        }
        for (uint32_t p = 0; l->pooled && p < l->parts; p++) {
            for (uint32_t k = 0; k < K; k++) CHECK(fkt_layout_moment(l, K, k, p) == at);
            at += l->length[p] * (l->length[p] + 1) / 2;
        }
        CHECK(fkt_layout_numbers(l, K) == at);
    }
    CHECK(fkt_layout_numbers(&layouts[0], K) == K * fkt_moments_block(3));
}

static void bad_layouts_have_no_numbers(void **state)
{
    const struct fkt_moments_layout bad[] = {{0, {3}, {64}, 0},
                                             {5, {3, 3, 3, 3}, {64, 64, 64, 64}, 0},
                                             {2, {3, 0}, {64, 64}, 0},
                                             {1, {UINT32_MAX}, {64}, 0},
                                             {4, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}, {64}, 1}};
    struct fkt_moments_layout a = {2, {3, 2}, {64, 100}, 0}, b = a;
    struct fkt_moments *m;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(fkt_layout_numbers(&bad[i], UINT32_MAX) == 0);
        CHECK_STATUS(fkt_moments_new(&m, UINT32_MAX, &bad[i], 0), FKT_E_ARG);
    }
    CHECK(fkt_layout_numbers(&a, 0) == 0 && fkt_layout_length(&a) == 5 && fkt_layout_equal(&a, &b));
    b.pooled = 1;
    CHECK(!fkt_layout_equal(&a, &b));
    b = a;
    b.rq[1]++;
    CHECK(!fkt_layout_equal(&a, &b));
    b = a;
    b.length[0]++;
    CHECK(!fkt_layout_equal(&a, &b));
    b = a;
    b.parts = 1;
    CHECK(!fkt_layout_equal(&a, &b));
}

/* Records of all parts side by side, each part in its ball. */
static void make_records(uint32_t *labels, int32_t *q, size_t n, const struct fkt_moments_layout *l, uint64_t seed)
{
    const size_t length = fkt_layout_length(l);
    size_t before = 0;
    for (uint32_t p = 0; p < l->parts; before += l->length[p++]) {
        int32_t *part;
        CHECK_OK(fkt_alloc(&part, n * l->length[p]));
        random_records(labels, part, n, K - 1, l->length[p], l->rq[p], seed + p);
        for (size_t r = 0; r < n; r++)
            memcpy(q + r * length + before, part + r * l->length[p], l->length[p] * sizeof *q);
        fkt_free(part);
    }
}

static void check_holds(struct fkt_moments *m, const int64_t *want)
{
    const int64_t *got;
    CHECK_OK(fkt_moments_packed(m, &got));
    for (size_t i = 0; i < fkt_moments_numbers(m); i++)
        if (got[i] != want[i]) fail_msg("number %zu: got %lld, want %lld", i, (long long)got[i], (long long)want[i]);
}

static void parts_and_pooled_agree_with_slow_loops(void **state)
{
    /* the last two flush: their rows take more than 8 MB */
    const struct fkt_moments_layout layouts[] = {{1, {7}, {256}, 1},
                                                 {2, {5, 9}, {64, 4096}, 0},
                                                 {2, {5, 9}, {64, 4096}, 1},
                                                 {3, {1, 65, 2}, {100, 256, 64}, 0},
                                                 {4, {3, 1, 4, 1}, {64, 65, 66, 4096}, 1},
                                                 {2, {1600, 7}, {4096, 64}, 0},
                                                 {2, {1300, 300}, {256, 64}, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const struct fkt_moments_layout *l = &layouts[i];
        const size_t length = fkt_layout_length(l), numbers = fkt_layout_numbers(l, K);
        uint32_t *labels;
        int32_t *q;
        int64_t *want;
        const int64_t *packed;
        struct fkt_moments *a, *b, *c;
        CHECK_OK(fkt_alloc(&labels, N));
        CHECK_OK(fkt_alloc(&q, N * length));
        CHECK_OK(fkt_alloc(&want, numbers));
        CHECK_OK(fkt_moments_new(&a, K, l, 0));
        CHECK_OK(fkt_moments_new(&b, K, l, N));
        CHECK_OK(fkt_moments_new(&c, K, l, 0));
        make_records(labels, q, N, l, i);
        slow_parts(want, K, l, labels, q, N);
        CHECK(fkt_moments_length(a) == length && fkt_moments_numbers(a) == numbers);
        CHECK(fkt_layout_equal(fkt_moments_layout(a), l));
        CHECK_OK(fkt_moments_add(a, labels, q, N));
        for (size_t done = 0, step = 1; done < N; done += step, step = N - done < 2 * step ? N - done : 2 * step)
            CHECK_OK(fkt_moments_add(done < N / 3 ? b : c, labels + done, q + done * length, step));
        CHECK_OK(fkt_moments_merge(b, c)); /* rows that wait on both sides */
        check_holds(a, want);
        check_holds(b, want);
        fkt_moments_free(c);
        CHECK_OK(fkt_moments_new(&c, K, l, 0));
        CHECK_OK(fkt_moments_packed(a, &packed));
        CHECK_OK(fkt_moments_add_packed(c, packed)); /* honest sums pass the checks */
        check_holds(c, want);
        fkt_moments_free(a), fkt_moments_free(b), fkt_moments_free(c);
        fkt_free(labels), fkt_free(q), fkt_free(want);
    }
    CHECK(fkt_alloc_live() == 0);
}

/* Each part has its own ball: a vector that fits the other part's is refused, and nothing is added. */
static void each_part_is_checked_against_its_ball(void **state)
{
    const struct fkt_moments_layout l = {2, {2, 2}, {64, 100}, 0};
    const uint32_t label = 0;
    const int64_t none[2 * 11] = {0};
    struct fkt_moments *m;
    (void)state;
    CHECK_OK(fkt_moments_new(&m, 2, &l, 0));
    CHECK_STATUS(fkt_moments_add(m, &label, (const int32_t[]){65, 0, 0, 0}, 1), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "part 1 of record 0"));
    CHECK_STATUS(fkt_moments_add(m, &label, (const int32_t[]){64, 0, 80, 61}, 1), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "part 2 of record 0"));
    check_holds(m, none);
    CHECK_OK(fkt_moments_add(m, &label, (const int32_t[]){64, 0, 80, 60}, 1));
    fkt_moments_free(m);
}

/* One record of class 0 and two of class 1; then one number is made impossible for the part that it is in. */
static void impossible_parts_are_refused(void **state)
{
    const struct fkt_moments_layout plain = {2, {1, 1}, {64, 100}, 0}, pooled = {2, {1, 1}, {64, 100}, 1};
    /* plain: n S M S M, n S M S M; pooled: n S S, n S S, M M */
    const int64_t good[2][10] = {{1, 5, 25, 100, 10000, 2, 128, 8192, -200, 20000},
                                 {1, 5, 100, 2, 128, -200, 8217, 30000}};
    const struct {
        int pooled, at;
        int64_t value;
        const char *why;
    } bad[] = {
        {0, 1, 65, "a sum"},       {0, 2, 4097, "diagonal"},       {0, 3, -101, "a sum"},   {0, 4, 10001, "diagonal"},
        {0, 9, 20001, "diagonal"}, {0, 7, -1, "diagonal"},         {1, 1, 65, "a sum"},     {1, 2, 101, "a sum"},
        {1, 4, -129, "a sum"},     {1, 6, 3 * 4096 + 1, "pooled"}, {1, 7, 30001, "pooled"}, {1, 7, -1, "pooled"},
        {1, 3, -1, "the count"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct fkt_moments_layout *l = bad[i].pooled ? &pooled : &plain;
        int64_t x[10];
        struct fkt_moments *m;
        CHECK_OK(fkt_moments_new(&m, 2, l, 0));
        memcpy(x, good[bad[i].pooled], sizeof x);
        CHECK_OK(fkt_moments_add_packed(m, x));
        x[bad[i].at] = bad[i].value;
        CHECK_STATUS(fkt_moments_add_packed(m, x), FKT_E_NUMERIC);
        if (!strstr(fkt_error_text(), bad[i].why)) fail_msg("row %zu: %s", i, fkt_error_text());
        check_holds(m, good[bad[i].pooled]);
        fkt_moments_free(m);
    }
}

/* Pooled second moments hold all classes, so all records together have the bound of one class. */
static void pooled_records_are_bounded_together(void **state)
{
    const struct fkt_moments_layout l = {1, {1}, {64}, 1};
    const int64_t most = (((int64_t)1 << 61) - 1) / (64 * 64);
    struct fkt_moments *m, *other;
    (void)state;
    CHECK_OK(fkt_moments_new(&m, 3, &l, 0));
    CHECK_OK(fkt_moments_new(&other, 3, &l, 0));
    CHECK_STATUS(fkt_moments_add_packed(m, (const int64_t[]){most, 0, 1, 0, 0, 0, 0}), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "the dataset"));
    CHECK_STATUS(fkt_moments_add_packed(m, (const int64_t[]){most, 0, most, 0, most, 0, 0}), FKT_E_NUMERIC);
    CHECK_OK(fkt_moments_add_packed(m, (const int64_t[]){most - 1, 0, 1, 0, 0, 0, 0}));
    CHECK_OK(fkt_moments_add_packed(other, (const int64_t[]){0, 0, 0, 0, 1, 0, 0}));
    CHECK_STATUS(fkt_moments_merge(m, other), FKT_E_NUMERIC);
    CHECK_STATUS(fkt_moments_add(m, (const uint32_t[]){2}, (const int32_t[]){1}, 1), FKT_E_NUMERIC);
    fkt_moments_free(m), fkt_moments_free(other);
}

static void other_layouts_are_not_merged(void **state)
{
    const struct fkt_moments_layout l[] = {{2, {2, 2}, {64, 100}, 0},
                                           {2, {2, 2}, {64, 100}, 1},
                                           {1, {2}, {64}, 0},
                                           {2, {2, 2}, {64, 101}, 0},
                                           {2, {2, 3}, {64, 100}, 0}};
    struct fkt_moments *a, *b;
    (void)state;
    CHECK_OK(fkt_moments_new(&a, 2, &l[0], 0));
    for (size_t i = 1; i < sizeof l / sizeof *l; i++) {
        CHECK_OK(fkt_moments_new(&b, 2, &l[i], 0));
        CHECK_STATUS(fkt_moments_merge(a, b), FKT_E_MISMATCH);
        CHECK(strstr(fkt_error_text(), i < 3 ? "another layout" : "another shape"));
        fkt_moments_free(b);
    }
    fkt_moments_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_stand_side_by_side),
        cmocka_unit_test(bad_layouts_have_no_numbers),
        cmocka_unit_test(parts_and_pooled_agree_with_slow_loops),
        cmocka_unit_test(each_part_is_checked_against_its_ball),
        cmocka_unit_test(impossible_parts_are_refused),
        cmocka_unit_test(pooled_records_are_bounded_together),
        cmocka_unit_test(other_layouts_are_not_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
