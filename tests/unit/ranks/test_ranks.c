/* SPDX-License-Identifier: Apache-2.0 */
/* Shards cover every item once; ranks agree on one failure; a reduction adds every rank's number once, whatever their
 * number; no message is left over. */
#include "ranks/ranks.h"

#include "tests/support/check.h"
#include "tests/support/thread_ranks.h"

#define T(f) cmocka_unit_test(f)

static void shards_cover_every_item_once(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= 9; size++)
        for (size_t n = 0; n <= 25; n++) {
            size_t next = 0, least = SIZE_MAX, most = 0;
            for (uint32_t rank = 0; rank < size; rank++) {
                const struct fkt_ranks r = {.rank = rank, .size = size};
                size_t first, end;
                fkt_ranks_shard(&r, n, &first, &end);
                assert_int_equal(first, next);
                assert_true(end >= first);
                next = end;
                if (end - first < least) least = end - first;
                if (end - first > most) most = end - first;
            }
            assert_int_equal(next, n);
            assert_true(most - least <= 1);
        }
}

static void a_shard_of_very_many_items(void **state)
{
    const struct fkt_ranks last = {.rank = 6, .size = 7};
    size_t first, end;
    (void)state;
    fkt_ranks_shard(&last, SIZE_MAX, &first, &end);
    assert_true(end == SIZE_MAX && end - first == SIZE_MAX / 7);
    fkt_ranks_shard(NULL, 5, &first, &end);
    assert_true(first == 0 && end == 5);
}

struct said {
    fkt_status own[THREAD_RANKS_MAX], got[THREAD_RANKS_MAX], again[THREAD_RANKS_MAX];
    char text[THREAD_RANKS_MAX][64], hint[THREAD_RANKS_MAX][64];
};

static void agree(void *ctx, struct fkt_ranks *r)
{
    struct said *s = ctx;
    fkt_status st = s->own[r->rank];
    if (st != FKT_OK) st = fkt_fail_hint(st, "a hint", "rank %u has a problem", r->rank);
    s->got[r->rank] = fkt_ranks_agree(r, st);
    snprintf(s->text[r->rank], sizeof *s->text, "%s", s->got[r->rank] == FKT_OK ? "" : fkt_error_text());
    snprintf(s->hint[r->rank], sizeof *s->hint, "%s", s->got[r->rank] == FKT_OK ? "" : fkt_error_hint());
    s->again[r->rank] = fkt_ranks_agree(r, s->got[r->rank]);
}

static void all_have_one_failure(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= 5; size++)
        for (uint32_t bad = 0; bad <= size; bad++) { /* size: none */
            struct said s = {0};
            char want[64] = "";
            if (bad < size) s.own[bad] = FKT_E_FORMAT;
            if (bad + 1 < size) s.own[bad + 1] = FKT_E_IO;
            if (bad < size) snprintf(want, sizeof want, "rank %u has a problem", bad);
            assert_int_equal(thread_ranks(size, agree, &s), 0);
            for (uint32_t i = 0; i < size; i++) {
                assert_int_equal(s.got[i], bad < size ? FKT_E_FORMAT : FKT_OK);
                assert_int_equal(s.again[i], s.got[i]);
                assert_string_equal(s.text[i], want);
                assert_string_equal(s.hint[i], bad < size ? "a hint" : "");
            }
        }
}

/* A rank that stopped because another one failed does not hide that failure. */
static void a_stop_explains_less(void **state)
{
    struct said s = {.own = {FKT_E_STOPPED, FKT_OK, FKT_E_NUMERIC, FKT_E_STOPPED}};
    (void)state;
    assert_int_equal(thread_ranks(4, agree, &s), 0);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(s.got[i], FKT_E_NUMERIC);
        assert_string_equal(s.text[i], "rank 2 has a problem");
    }
}

struct tree {
    uint64_t sum[THREAD_RANKS_MAX];
    fkt_status st[THREAD_RANKS_MAX];
};

static fkt_status take(void *ctx, struct fkt_ranks *r, uint32_t peer)
{
    uint64_t more;
    fkt_status st = fkt_ranks_recv(r, peer, &more, sizeof more);
    if (st == FKT_OK) *(uint64_t *)ctx += more;
    return st;
}

static fkt_status give(void *ctx, struct fkt_ranks *r, uint32_t peer)
{
    return fkt_ranks_send(r, peer, ctx, sizeof(uint64_t));
}

static void reduce(void *ctx, struct fkt_ranks *r)
{
    struct tree *t = ctx;
    t->sum[r->rank] = UINT64_C(1) << (4 * r->rank);
    t->st[r->rank] = fkt_ranks_reduce(r, take, give, &t->sum[r->rank]);
}

static void a_reduction_takes_each_rank_once(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= 13; size++) {
        struct tree t = {{0}, {0}};
        uint64_t want = 0;
        assert_int_equal(thread_ranks(size, reduce, &t), 0);
        for (uint32_t i = 0; i < size; i++) want += UINT64_C(1) << (4 * i);
        assert_true(t.sum[0] == want);
        for (uint32_t i = 0; i < size; i++) assert_int_equal(t.st[i], FKT_OK);
    }
}

static fkt_status no_send(void *self, uint32_t to, const void *bytes, size_t n)
{
    (void)self, (void)to, (void)bytes, (void)n;
    return FKT_E_IO;
}

static void a_rank_that_is_gone(void **state)
{
    struct fkt_ranks r = {.rank = 3, .size = 4, .send = no_send};
    (void)state;
    CHECK_STATUS(fkt_ranks_agree(&r, FKT_OK), FKT_E_IO);
    assert_string_equal(fkt_error_text(), "rank 0 of 4 does not answer");
    assert_int_equal(r.failed, 2);
}

static int tell(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)what, (void)done, (void)total;
    ++*(int *)self;
    return 0;
}

static int yes(void *self)
{
    (void)self;
    return 1;
}

static void an_alarm_stops_work(void **state)
{
    int calls = 0;
    const struct fkt_progress inner = {tell, &calls};
    struct fkt_ranks r = {.size = 2};
    struct fkt_ranks_watch w;
    (void)state;
    fkt_ranks_watch(&w, &r, &inner);
    assert_int_equal(w.hook.step(w.hook.self, "x", 1, 2), 0);
    r.alarmed = yes;
    assert_int_equal(w.hook.step(w.hook.self, "x", 1, 2), 1);
    assert_int_equal(calls, 1);
    fkt_ranks_watch(&w, NULL, NULL);
    assert_int_equal(w.hook.step(w.hook.self, "x", 1, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(shards_cover_every_item_once), T(a_shard_of_very_many_items),       T(all_have_one_failure),
        T(a_stop_explains_less),         T(a_reduction_takes_each_rank_once), T(a_rank_that_is_gone),
        T(an_alarm_stops_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
