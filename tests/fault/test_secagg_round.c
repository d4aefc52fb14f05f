/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a whole round fails in turn, in any party: a site without memory leaves, and the others go on
 * without it; a server without memory ends the round. Never a wrong sum, never a leak, and the checks of sa_watch.h
 * hold. */
#include "tests/support/check.h"
#include "tests/support/sa_watch.h"

struct ends {
    unsigned sums, shorter, aborts;
};

static void one(const struct fkt_sa_params *p, size_t n, struct ends *ends)
{
    const size_t live = fkt_alloc_live();
    struct sa_world w;
    struct sa_watch v;
    fkt_status st;
    CHECK_OK(sa_world_init(&w, p, 12));
    assert_int_equal(sa_watch_init(&v, &w), 0);
    fkt_alloc_fault_at(n, 0);
    st = sa_world_run(&w);
    fkt_alloc_fault_at(0, 0);
    sa_world_finish_wire(&w);
    if (st == FKT_OK) {
        const int64_t *total;
        const uint8_t *survivors;
        uint32_t all = 0;
        sa_world_check(&w);
        CHECK_OK(fkt_sa_server_total(w.server, &total, &survivors));
        for (uint32_t i = 0; i < p->sites; i++) all += survivors[i];
        ends->sums++;
        ends->shorter += all < p->sites;
    } else {
        CHECK_STATUS(st, FKT_E_NOMEM);
        ends->aborts++;
    }
    if (v.broken[0] && !strstr(v.broken, "do not decode")) fail_msg("allocation %zu: %s", n, v.broken);
    sa_watch_release(&v);
    sa_world_release(&w);
    if (fkt_alloc_live() != live) fail_msg("allocation %zu: memory was not given back", n);
}

/* Until forty in a row change nothing: fewer may, where the fault hits the observer's own decoding of a message. */
static void sweep(struct fkt_sa_params p, size_t stride)
{
    struct ends ends = {0, 0, 0};
    unsigned untouched = 0;
    for (size_t n = 1; untouched < 40; n += stride) {
        const struct ends before = ends;
        one(&p, n, &ends);
        untouched = ends.sums > before.sums && ends.shorter == before.shorter ? untouched + 1 : 0;
        CHECK(n < 20000);
    }
    CHECK(ends.aborts > 10 && ends.shorter > 10);
}

static void whole_rounds(void **state)
{
    (void)state;
    sweep(sa_params(4, 1, 0, 0, 0, 3, 20), 2);
    sweep(sa_params(6, 1, 0, 4, 3, 3, 40), 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
