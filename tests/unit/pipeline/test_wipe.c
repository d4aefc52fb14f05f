/* SPDX-License-Identifier: Apache-2.0 */
/* Exact moments, latents and what is computed from them leave no copy in memory that goes back to the allocator.
 *
 * A whole run is made twice: first to learn what the secrets look like as bytes (latent, vector and integers of one
 * record, its row of doubles, moments of a site and of all, a class's mean), then with every freed block searched for
 * them. */
#include "fedkt/advanced/synth.h"
#include "fedkt/classifier.h"
#include "fedkt/advanced/simulate.h"
#include "simulate/site_moments.h"
#include "base/wipe.h"
#include "pipeline/pipeline.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"

#include <stdatomic.h>

enum { RECORDS = 60, SITES = 4, LENGTH = 9, NEEDLES = 7 };
enum { LATENT, VECTOR, INTEGERS, ROW, OF_SITE, OF_ALL, MEAN };
static const char *const needle_name[NEEDLES] = {"a latent",       "a record vector",  "a record's integers",
                                                 "a record's row", "a site's moments", "the total",
                                                 "a class's mean"};
static struct {
    uint8_t bytes[128];
    size_t len;
} needle[NEEDLES];
static atomic_size_t found[NEEDLES], blocks;
static struct scratch dir;

static void look(const void *block, size_t bytes)
{
    atomic_fetch_add(&blocks, 1);
    for (int i = 0; i < NEEDLES; i++)
        if (memmem(block, bytes, needle[i].bytes, needle[i].len)) atomic_fetch_add(&found[i], 1);
}

static void learn(int which, const void *bytes, size_t len)
{
    CHECK(len <= sizeof needle[which].bytes);
    memcpy(needle[which].bytes, bytes, len);
    needle[which].len = len;
}

/* Record 0 by hand; nothing of it is in a block of ours. */
static void learn_record(const struct fkt_pipeline *pipeline, const struct fkt_dataset *ds)
{
    static uint8_t rgb[16 * 16 * 3];
    float z[8];
    double u[8], w[LENGTH], row[LENGTH];
    int32_t q[LENGTH];
    CHECK_OK(fkt_dataset_read(ds, 0, 16, FKT_FILTER_BILINEAR, rgb, NULL));
    CHECK_OK(fkt_codec_encode(fkt_pipeline_codec(pipeline), rgb, 1, z));
    CHECK_OK(fkt_pipeline_record(pipeline, (const float *const[]){z}, u, w, q));
    for (int i = 0; i < LENGTH; i++) row[i] = q[i];
    learn(LATENT, z, sizeof z);
    learn(VECTOR, w, sizeof w);
    learn(INTEGERS, q, sizeof q);
    learn(ROW, row, sizeof row);
}

static void make_task(struct fkt_task *out, const struct fkt_pipeline *pipeline, uint8_t *secrets)
{
    const struct fkt_task *t = fkt_pipeline_task(pipeline);
    uint8_t roster[SITES * FKT_SA_KEY];
    struct fkt_federation_choices c = {
        .sites = SITES, .records = RECORDS, .noise = FKT_NOISE_PLACE_CENTRAL, .roster = roster};
    struct fkt_task_choices choices = {.name = "small",
                                       .classes = (const char *const *)t->classes,
                                       .n_classes = t->n_classes,
                                       .privacy = {.epsilon = 10, .delta = 1e-6},
                                       .federation = &c};
    CHECK_OK(fkt_federation_keys(roster, secrets, SITES, NULL));
    CHECK_OK(fkt_task_make_into(out, &choices,
                                &(struct fkt_part_choice){.codec = fkt_pipeline_codec(pipeline),
                                                          .calibration = fkt_pipeline_calibration(pipeline, 0),
                                                          .coordinates = t->part[0].coordinates.kind},
                                1));
}

/* Exact moments through a file, and heads of them as a simulation's reference has. */
static void use_total(const struct fkt_pipeline *pipeline, const struct fkt_dataset *ds, struct fkt_moments *total,
                      int first)
{
    const struct fkt_task *t = fkt_pipeline_task(pipeline);
    const struct fkt_noise_scale silence = {.unit = t->part[0].coordinates.radius / t->part[0].coordinates.rq};
    const struct fkt_estimate_options raw = {FKT_ESTIMATOR_RAW, 0, 0};
    const char *path = scratch_path(&dir, "moments.safetensors");
    struct fkt_records *records = NULL, *more = NULL;
    struct fkt_moments *again = NULL;
    struct fkt_gaussians g = {0};
    struct fkt_heads heads = {0};
    const int64_t *exact;
    CHECK_OK(fkt_records_new(&records, FKT_ADJACENCY_ADD_REMOVE));
    CHECK_OK(fkt_records_new(&more, FKT_ADJACENCY_ADD_REMOVE));
    CHECK_OK(fkt_records_read(records, ds, NULL, RECORDS, NULL));
    CHECK_OK(fkt_moments_save(total, t, records, path, 1));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &again));
    CHECK_OK(fkt_moments_load(again, t, path, more));
    CHECK_OK(fkt_moments_packed(again, &exact));
    if (first) learn(OF_ALL, exact, 10 * sizeof *exact);
    CHECK_OK(fkt_gaussians_estimate(&g, exact, t->n_classes, LENGTH, &silence, &raw));
    if (first) learn(MEAN, g.mean, LENGTH * sizeof *g.mean);
    CHECK_OK(fkt_heads_fit(&heads, &g, t, FKT_HEADS_DEFAULT, NULL));
    fkt_heads_clear(&heads);
    fkt_gaussians_clear(&g);
    fkt_moments_free(again);
    fkt_records_free(records);
    fkt_records_free(more);
}

static void whole_run(int first)
{
    size_t train[RECORDS], length;
    uint8_t secrets[SITES * FKT_SA_SECRET];
    struct fkt_pipeline_options options = {.threads = 1};
    struct fkt_simulation_spec spec = {.train = train,
                                       .n_train = RECORDS,
                                       .participation = 1,
                                       .keep = 1,
                                       .threads = 2,
                                       .partition = {.rule = FKT_PARTITION_IID, .sites = SITES}};
    struct fkt_simulation sim;
    struct fkt_federate_result r;
    struct fkt_task task;
    struct fkt_pipeline *pipeline;
    struct fkt_dataset *ds;
    struct fkt_moments *m = NULL;
    for (size_t i = 0; i < RECORDS; i++) train[i] = i;
    CHECK_OK(small_pipeline(&pipeline, &ds, RECORDS, 10, FKT_COORDINATE_GAIN_SHAPE));
    spec.pipeline = pipeline;
    spec.data = ds;
    if (first) learn_record(pipeline, ds);
    CHECK_OK(fkt_encodings_open(&options.encodings, scratch_path(&dir, first ? "kept" : "kept again")));
    CHECK_OK(fkt_pipeline_encode(pipeline, ds, train, RECORDS, scratch_path(&dir, "z"), 1, &options));
    fkt_encodings_close(options.encodings);
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_latents(pipeline, scratch_path(&dir, "z"), m, NULL));
    fkt_moments_free(m);
    CHECK_OK(fkt_simulate(&sim, &spec));
    make_task(&task, pipeline, secrets);
    length = task.n_classes * fkt_moments_block(LENGTH);
    if (first) {
        int64_t *site = malloc(length * sizeof *site);
        CHECK(site);
        CHECK_OK(fkt_site_moments_get(sim.site_moments, 1, site));
        learn(OF_SITE, site, 10 * sizeof *site);
        free(site);
    }
    CHECK_OK(fkt_simulation_aggregate(&r, &sim,
                                      &(struct fkt_simulation_round){.task = &task, .secrets = secrets, .threads = 2}));
    fkt_federate_clear(&r);
    use_total(pipeline, ds, sim.total, first);
    fkt_simulation_clear(&sim);
    fkt_task_clear(&task);
    fkt_pipeline_free(pipeline);
    fkt_dataset_free(ds);
    CHECK(fkt_alloc_live() == 0);
}

static void nothing_exact_is_left(void **state)
{
    size_t left = 0;
    (void)state;
    scratch_init(&dir);
    whole_run(1);
    for (int i = 0; i < NEEDLES; i++) { /* a needle of zeros would be found everywhere, or say nothing */
        size_t used = 0;
        for (size_t b = 0; b < needle[i].len; b++) used += needle[i].bytes[b] != 0;
        CHECK(used >= 9);
    }
    fkt_alloc_watch(look);
    whole_run(0);
    fkt_alloc_watch(NULL);
    CHECK(atomic_load(&blocks) > 100);
    for (int i = 0; i < NEEDLES; i++) {
        if (atomic_load(&found[i])) print_error("%s is left in %zu blocks\n", needle_name[i], atomic_load(&found[i]));
        left += atomic_load(&found[i]);
    }
    assert_int_equal(left, 0);
    scratch_release(&dir);
}

/* The hook itself: it sees what is freed and what growth leaves behind, and a wiped block is zeros. */
static void the_hook_sees(void **state)
{
    char *p = NULL;
    (void)state;
    memset(found, 0, sizeof found);
    for (int i = 0; i < NEEDLES; i++) learn(i, "unmistakable", 12);
    fkt_alloc_watch(look);
    CHECK_OK(fkt_alloc(&p, 40));
    memcpy(p + 20, "unmistakable", 12);
    CHECK_OK(fkt_realloc(&p, 400));
    assert_int_equal(atomic_load(&found[0]), 1);
    fkt_free_secret(p);
    assert_int_equal(atomic_load(&found[0]), 1);
    CHECK_OK(fkt_alloc(&p, 40));
    memcpy(p, "unmistakable", 12);
    fkt_free(p);
    assert_int_equal(atomic_load(&found[0]), 2);
    fkt_free_secret(NULL);
    fkt_alloc_watch(NULL);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_exact_is_left),
        cmocka_unit_test(the_hook_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
