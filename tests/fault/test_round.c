/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the whole walk fails in turn: one clear status, nothing leaked, nothing under a final name. */
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"
#include "tests/support/sweep.h"

#include <unistd.h>

static const struct fkt_round_facts facts = {1, 1, 0, 0};

static struct scratch scratch;

/* images -> moments -> release -> file -> release */
static fkt_status release_walk(void)
{
    struct fkt_walk_options o = {.threads = 1};
    struct fkt_walk *walk = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_moments *m = NULL;
    struct fkt_release r = {0}, back = {0};
    struct fkt_ledger ledger;
    uint64_t seed = 1;
    fkt_status st;
    FKT_TRY(small_walk(&walk, &ds, 10, 5, FKT_COORD_GAIN_SHAPE));
    FKT_TRY(fkt_walk_moments_new(walk, &m));
    FKT_TRY(fkt_walk_moments(walk, ds, NULL, 0, m, &o));
    FKT_TRY(fkt_ledger_init(&ledger, 100, 0));
    FKT_TRY(fkt_release_make(&r, fkt_walk_task(walk), fkt_walk_calibration(walk), m, &facts, &ledger, &seed));
    FKT_TRY(fkt_release_save(&r, scratch_path(&scratch, "release"), 1));
    FKT_TRY(fkt_release_load(&back, scratch_path(&scratch, "release")));
out:
    fkt_release_release(&back);
    fkt_release_release(&r);
    fkt_moments_free(m);
    fkt_dataset_free(ds);
    fkt_walk_free(walk);
    return st;
}

/* release -> images and heads */
static fkt_status use_walk(void)
{
    struct fkt_generate_options o = {.per_class = 1, .grid_columns = 1, .threads = 1, .force = 1};
    struct fkt_estimate_options rie = {FKT_RIE, 0, 0};
    struct fkt_release r = {0};
    struct fkt_gaussians g = {0};
    struct fkt_heads h = {{0}};
    fkt_status st;
    FKT_TRY(fkt_release_load(&r, scratch_path(&scratch, "release")));
    FKT_TRY(fkt_release_gaussians(&r, &rie, &g));
    FKT_TRY(fkt_heads_fit(&h, &g));
    FKT_TRY(fkt_generate(&r, scratch_path(&scratch, "images"), &o));
out:
    fkt_heads_release(&h);
    fkt_gaussians_release(&g);
    fkt_release_release(&r);
    return st;
}

static fkt_status simulate_walk(void)
{
    struct fkt_walk *walk = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_simulation sim = {0};
    size_t train[10];
    struct fkt_simulation_spec spec = {.train = train,
                                       .n_train = 10,
                                       .participation = 1,
                                       .threads = 1,
                                       .partition = {.rule = FKT_PARTITION_IID, .sites = 3}};
    fkt_status st;
    for (size_t i = 0; i < 10; i++) train[i] = i;
    FKT_TRY(small_walk(&walk, &ds, 10, 5, FKT_COORD_CLIP));
    spec.walk = walk;
    spec.data = ds;
    FKT_TRY(fkt_simulate(&sim, &spec));
out:
    fkt_simulation_release(&sim);
    fkt_dataset_free(ds);
    fkt_walk_free(walk);
    return st;
}

static void drop_release(fkt_status st)
{
    (void)st;
    unlink(scratch_path(&scratch, "release"));
}

static void the_way_to_a_release(void **state)
{
    (void)state;
    CHECK(sweep_allocations(release_walk, drop_release) > 20);
}

static void what_a_release_gives(void **state)
{
    (void)state;
    CHECK_OK(release_walk());
    CHECK(sweep_allocations(use_walk, NULL) > 20);
}

static void many_sites(void **state)
{
    (void)state;
    CHECK(sweep_allocations(simulate_walk, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_to_a_release),
        cmocka_unit_test(what_a_release_gives),
        cmocka_unit_test(many_sites),
    };
    int failed;
    scratch_init(&scratch);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&scratch);
    return failed;
}
