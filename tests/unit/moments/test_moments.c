/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/layouts.h"
#include "tests/support/slow_moments.h"

static void *room_for(size_t n, size_t size)
{
    void *p;
    CHECK_OK(fkt_alloc_bytes(&p, n, size));
    return p;
}

static struct fkt_moments *fresh(uint32_t classes, uint32_t m, uint32_t rq, uint64_t n_max)
{
    struct fkt_moments *out;
    CHECK_OK(fkt_moments_new(&out, classes, ONE_PART(m, rq), n_max));
    return out;
}

static void check_packed(struct fkt_moments *m, const int64_t *want)
{
    const int64_t *got;
    size_t block = fkt_moments_block(fkt_moments_length(m));
    CHECK_OK(fkt_moments_packed(m, &got));
    for (size_t i = 0; i < fkt_moments_classes(m) * block; i++)
        if (got[i] != want[i])
            fail_msg("class %zu, entry %zu: got %lld, want %lld", i / block, i % block, (long long)got[i],
                     (long long)want[i]);
}

static void block_sizes(void **state)
{
    (void)state;
    CHECK(fkt_moments_block(0) == 1);
    CHECK(fkt_moments_block(1) == 3);
    CHECK(fkt_moments_block(2) == 6);
    CHECK(fkt_moments_block(128) == 129 * 130 / 2);
    CHECK(fkt_moments_block(129) == 130 * 131 / 2);
    CHECK(fkt_moments_block(((size_t)1 << 32) - 2) == (((size_t)1 << 32) - 1) * ((size_t)1 << 31));
    CHECK(fkt_moments_block((size_t)1 << 33) == 0);
    CHECK(fkt_moments_block(SIZE_MAX - 1) == 0);
    CHECK(fkt_moments_block(SIZE_MAX) == 0);
}

static void agrees_with_slow_loops(void **state)
{
    /* the last two hold 32 and 81 rows per class: several flushes each */
    const struct {
        uint32_t classes, used, m, rq;
        size_t n;
    } shapes[] = {
        {1, 1, 1, 64, 1000},     {1, 1, 65, 256, 1},      {3, 3, 2, 4096, 0},       {10, 7, 65, 256, 2000},
        {100, 40, 3, 100, 1000}, {2, 2, 129, 4096, 1500}, {2000, 1, 129, 256, 300}, {100, 5, 129, 4096, 1000},
    };
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        uint32_t k = shapes[s].classes, m = shapes[s].m;
        size_t n = shapes[s].n, block = fkt_moments_block(m), done = 0, step = 1;
        uint32_t *labels = room_for(n, sizeof *labels);
        int32_t *q = room_for(n * m, sizeof *q);
        int64_t *want = room_for(k * block, sizeof *want);
        struct fkt_moments *a = fresh(k, m, shapes[s].rq, 0), *b = fresh(k, m, shapes[s].rq, n ? n : 1);
        CHECK(fkt_moments_classes(a) == k && fkt_moments_length(a) == m);
        random_records(labels, q, n, shapes[s].used, m, shapes[s].rq, s);
        slow_moments(want, k, m, labels, q, n);
        CHECK_OK(fkt_moments_add(a, labels, q, n));
        check_packed(a, want);
        check_packed(a, want); /* a second flush changes nothing */
        for (; done < n; done += step, step = n - done < step * 2 ? n - done : step * 2)
            CHECK_OK(fkt_moments_add(b, labels + done, q + done * m, step));
        check_packed(b, want);
        fkt_moments_free(a), fkt_moments_free(b);
        fkt_free(labels), fkt_free(q), fkt_free(want);
    }
    CHECK(fkt_alloc_live() == 0);
}

static void shapes_are_checked(void **state)
{
    struct fkt_moments *m = (void *)&m;
    (void)state;
    CHECK_STATUS(fkt_moments_new(&m, 0, ONE_PART(4, 256), 0), FKT_E_ARG);
    CHECK(m == NULL);
    CHECK_STATUS(fkt_moments_new(&m, 4, ONE_PART(0, 256), 0), FKT_E_ARG);
    CHECK_STATUS(fkt_moments_new(&m, 4, ONE_PART(4, 63), 0), FKT_E_ARG);
    CHECK_STATUS(fkt_moments_new(&m, 4, ONE_PART(4, 4097), 0), FKT_E_ARG);
    CHECK_STATUS(fkt_moments_new(&m, UINT32_MAX, ONE_PART(UINT32_MAX, 256), 0), FKT_E_ARG);
    CHECK_STATUS(fkt_moments_new(&m, UINT32_MAX, ONE_PART(1U << 20, 256), 0), FKT_E_ARG);
    CHECK_STATUS(fkt_moments_new(&m, 1, ONE_PART(1, 256), (uint64_t)1 << 45), FKT_E_ARG); /* 2^45 * 2^16 = 2^61 */
    CHECK_OK(fkt_moments_new(&m, 1, ONE_PART(1, 256), ((uint64_t)1 << 45) - 1));
    fkt_moments_free(m);
    fkt_moments_free(NULL);
}

/* Three good records, then a call that must fail: it must change nothing. */
static void a_failing_add_adds_nothing(void **state)
{
    const uint32_t labels[3] = {0, 1, 1};
    const int32_t q[6] = {64, 0, 0, -64, 10, 20};
    const struct {
        uint32_t label;
        int32_t q0, q1;
        fkt_status want;
    } bad[] = {
        {2, 1, 1, FKT_E_ARG},
        {UINT32_MAX, 1, 1, FKT_E_ARG},
        {0, 65, 0, FKT_E_NUMERIC},
        {0, 0, -65, FKT_E_NUMERIC},
        {0, 64, 1, FKT_E_NUMERIC},
        {1, -46, 45, FKT_E_NUMERIC},
        {0, INT32_MAX, 0, FKT_E_NUMERIC},
        {0, INT32_MIN, INT32_MIN, FKT_E_NUMERIC},
        {0, 65536, 65536, FKT_E_NUMERIC},
    };
    int64_t want[12];
    struct fkt_moments *m = fresh(2, 2, 64, 3);
    (void)state;
    slow_moments(want, 2, 2, labels, q, 3);
    CHECK_OK(fkt_moments_add(m, labels, q, 3));
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        const uint32_t l[2] = {0, bad[b].label};
        const int32_t r[4] = {3, 4, bad[b].q0, bad[b].q1};
        CHECK_STATUS(fkt_moments_add(m, l, r, 2), bad[b].want);
        check_packed(m, want);
    }
    CHECK_OK(fkt_moments_add(m, labels, (const int32_t[2]){-45, 45}, 1)); /* 4050 <= 4096 */
    fkt_moments_free(m);
}

static void n_max_is_per_class(void **state)
{
    const uint32_t labels[4] = {1, 0, 1, 1};
    const int32_t q[4] = {1, 2, 3, 4};
    int64_t want[6];
    struct fkt_moments *m = fresh(2, 1, 64, 2), *other = fresh(2, 1, 64, 2);
    (void)state;
    CHECK_STATUS(fkt_moments_add(m, labels, q, 4), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "class 1"));
    CHECK_OK(fkt_moments_add(m, labels, q, 3));
    CHECK_STATUS(fkt_moments_add(m, labels + 3, q + 3, 1), FKT_E_NUMERIC);
    slow_moments(want, 2, 1, labels, q, 3);
    check_packed(m, want);
    CHECK_OK(fkt_moments_add(other, labels, q, 1));
    CHECK_STATUS(fkt_moments_merge(m, other), FKT_E_NUMERIC);
    check_packed(m, want);
    CHECK_STATUS(fkt_moments_add_packed(m, want), FKT_E_NUMERIC);
    check_packed(m, want);
    fkt_moments_free(m), fkt_moments_free(other);
}

static void merging_is_adding(void **state)
{
    enum { N = 500, M = 17, K = 4, B = (M + 1) * (M + 2) / 2 };
    uint32_t labels[N];
    static int32_t q[N * M];
    static int64_t want[K * B];
    struct fkt_moments *a = fresh(K, M, 256, 0), *b = fresh(K, M, 256, 400), *wrong;
    (void)state;
    random_records(labels, q, N, K, M, 256, 77);
    CHECK_OK(fkt_moments_add(a, labels, q, 200));
    CHECK_OK(fkt_moments_add(b, labels + 200, q + 200 * M, N - 200));
    CHECK_OK(fkt_moments_merge(a, b)); /* rows of both still unflushed */
    slow_moments(want, K, M, labels, q, N);
    check_packed(a, want);
    slow_moments(want, K, M, labels + 200, q + 200 * M, N - 200);
    check_packed(b, want); /* the source is unchanged */
    CHECK_OK(fkt_moments_merge(b, b));
    for (size_t i = 0; i < K * B; i++) want[i] *= 2;
    check_packed(b, want);
    CHECK_OK(fkt_moments_add(b, labels, q, 10));
    CHECK_OK(fkt_moments_merge(b, b)); /* with rows waiting */
    for (size_t i = 0; i < K * B; i++) want[i] *= 2;
    static int64_t ten[K * B];
    slow_moments(ten, K, M, labels, q, 10);
    for (size_t i = 0; i < K * B; i++) want[i] += 2 * ten[i];
    check_packed(b, want);

    const uint32_t shapes[][3] = {{K + 1, M, 256}, {K, M + 1, 256}, {K, M, 255}};
    for (size_t s = 0; s < 3; s++) {
        wrong = fresh(shapes[s][0], shapes[s][1], shapes[s][2], 0);
        CHECK_STATUS(fkt_moments_merge(b, wrong), FKT_E_MISMATCH);
        fkt_moments_free(wrong);
    }
    check_packed(b, want);
    fkt_moments_free(a), fkt_moments_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_sizes),        cmocka_unit_test(agrees_with_slow_loops),
        cmocka_unit_test(shapes_are_checked), cmocka_unit_test(a_failing_add_adds_nothing),
        cmocka_unit_test(n_max_is_per_class), cmocka_unit_test(merging_is_adding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
