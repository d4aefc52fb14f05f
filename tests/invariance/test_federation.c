/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol changes nothing: with the noise switched off, the total that comes out of a whole round of masks, shares
 * and lost sites is, to the last bit, the sum that one process gets by adding the same sites' integers up. */
#include "fedkt/advanced/simulate.h"
#include "tests/support/check.h"
#include "tests/support/small_task.h"

enum { RECORDS = 240 };

struct world {
    struct fkt_pipeline *pipeline;
    struct fkt_dataset *ds;
    size_t train[RECORDS];
};

/* The task of the walk with a federation for `sites`, and no noise in the round. */
static void federate_task(struct fkt_task *out, const struct world *w, uint32_t sites, uint32_t dropped,
                          uint8_t *secrets)
{
    const struct fkt_task *t = fkt_pipeline_task(w->pipeline);
    const uint64_t seed = 3;
    uint8_t *roster;
    struct fkt_federation_choices c = {
        .sites = sites, .dropped = dropped, .records = RECORDS, .noise = FKT_NOISE_PLACE_CENTRAL};
    struct fkt_task_choices choices = {.name = "small",
                                       .classes = (const char *const *)t->classes,
                                       .n_classes = t->n_classes,
                                       .privacy = {.epsilon = 10, .delta = 1e-6},
                                       .federation = &c};
    CHECK_OK(fkt_alloc(&roster, (size_t)sites * FKT_SA_KEY));
    CHECK_OK(fkt_federation_keys(roster, secrets, sites, &seed));
    c.roster = roster;
    CHECK_OK(fkt_task_make_into(out, &choices,
                                &(struct fkt_part_choice){.codec = fkt_pipeline_codec(w->pipeline),
                                                          .calibration = fkt_pipeline_calibration(w->pipeline, 0),
                                                          .coordinates = t->part[0].coordinates.kind},
                                1));
    fkt_free(roster);
}

static void check_rounds(const struct world *w, struct fkt_simulation_spec spec)
{
    struct fkt_simulation sim;
    struct fkt_federate_result r;
    struct fkt_task task;
    const int64_t *plain;
    uint32_t parts, lost;
    uint8_t *secrets;
    size_t length;
    spec.pipeline = w->pipeline;
    spec.data = w->ds;
    spec.train = w->train;
    spec.n_train = RECORDS;
    spec.keep = 1;
    CHECK_OK(fkt_simulation_size(&spec, &parts, &lost));
    CHECK_OK(fkt_alloc(&secrets, (size_t)parts * FKT_SA_SECRET));
    federate_task(&task, w, parts, lost, secrets);
    length = task.n_classes * fkt_moments_block(task.part[0].coordinates.length);
    CHECK_OK(fkt_simulate(&sim, &spec));
    CHECK(sim.parts == parts && sim.n_lost == lost);
    CHECK_OK(fkt_moments_packed(sim.total, &plain));
    for (unsigned threads = 1; threads <= 3; threads += 2) { /* again and again, from what was kept */
        struct fkt_simulation_round round = {.task = &task, .secrets = secrets, .threads = threads};
        CHECK_OK(fkt_simulation_aggregate(&r, &sim, &round));
        CHECK(r.survivors == sim.survivors);
        for (uint32_t i = 0; i < parts; i++) CHECK(r.survived[i] == sim.survived[sim.roster[i]]);
        if (memcmp(r.total, plain, length * sizeof *plain)) fail_msg("%u sites: another sum", parts);
        fkt_federate_clear(&r);
    }
    fkt_simulation_clear(&sim);
    fkt_task_clear(&task);
    fkt_free(secrets);
}

static void a_round_gives_the_plain_sum(void **state)
{
    struct world w;
    (void)state;
    for (size_t i = 0; i < RECORDS; i++) w.train[i] = i;
    CHECK_OK(small_pipeline(&w.pipeline, &w.ds, RECORDS, 10, FKT_COORDINATE_GAIN_SHAPE));
    check_rounds(
        &w, (struct fkt_simulation_spec){.partition = {.rule = FKT_PARTITION_IID, .sites = 3}, .participation = 1});
    check_rounds(&w,
                 (struct fkt_simulation_spec){.partition = {.rule = FKT_PARTITION_DIRICHLET, .sites = 12, .alpha = 0.2},
                                              .participation = 1});
    check_rounds(&w,
                 (struct fkt_simulation_spec){.partition = {.rule = FKT_PARTITION_DIRICHLET, .sites = 70, .alpha = 1},
                                              .participation = 0.9});
    check_rounds(&w, (struct fkt_simulation_spec){.partition = {.rule = FKT_PARTITION_IID, .sites = 20},
                                                  .participation = 0.8,
                                                  .dropout = {[FKT_SA_STATE_ADVERTISE] = 0.06,
                                                              [FKT_SA_STATE_SHARE] = 0.06,
                                                              [FKT_SA_STATE_MASK] = 0.12,
                                                              [FKT_SA_STATE_CONFIRM] = 0.06,
                                                              [FKT_SA_STATE_REVEAL] = 0.06}});
    fkt_pipeline_free(w.pipeline);
    fkt_dataset_free(w.ds);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_round_gives_the_plain_sum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
