/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of guiding images by gradient, and of keeping images of a run, until
 * it succeeds. Nothing may leak. */
#include "pipeline/partial.h"
#include "tests/support/guided_case.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

static struct guided_case c;
static struct scratch dir;

static fkt_status guide(void)
{
    struct fkt_guided *g = NULL;
    uint8_t rgb[GUIDED_N * GUIDED_PIXELS];
    fkt_status st;
    FKT_TRY(fkt_guided_new(&g, &c.spec));
    FKT_TRY(fkt_guided_run(g, c.image, c.u, c.s, GUIDED_N, rgb, NULL));
out:
    fkt_guided_free(g);
    return st;
}

static fkt_status keep(void)
{
    static const uint8_t rgb[GUIDED_PIXELS];
    struct fkt_partial *p = NULL;
    fkt_status st;
    FKT_TRY(fkt_partial_open(&p, scratch_path(&dir, "out"), "key", sizeof rgb, 1));
    FKT_TRY(fkt_partial_add(p, rgb, 1));
    fkt_partial_remove(p);
out:
    fkt_partial_free(p);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    scratch_init(&dir);
    guided_case_init(&c);
    c.spec.steps = 2;
    c.spec.backend = &fkt_learner_ref;
    CHECK(sweep_allocations(guide, NULL) > 20);
    c.spec.backend = &fkt_learner_onednn;
    CHECK(sweep_allocations(guide, NULL) > 20);
    CHECK(sweep_allocations(keep, NULL) > 2);
    guided_case_release(&c);
    scratch_release(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
