/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the whole pipeline fails in turn: one clear status, nothing leaked, nothing under a final
 * name. */
#include "base/file.h"
#include "fedkt/advanced/simulate.h"
#include "task/task.h"
#include "tests/support/guided_task.h"
#include "tests/support/scratch.h"
#include "tests/support/small_service.h"
#include "tests/support/small_task.h"
#include "tests/support/sweep.h"

#include <unistd.h>

static const struct fkt_round_facts facts = {1, 1, 0, 0};

static struct scratch scratch;

/* images -> moments -> file -> moments -> release -> file -> release */
static fkt_status release_pipeline(void)
{
    struct fkt_pipeline_options o = {.threads = 1};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_moments *m = NULL, *again = NULL;
    struct fkt_records *records = NULL, *read = NULL;
    struct fkt_release r = {0}, back = {0};
    struct fkt_release_file *file = NULL;
    struct fkt_ledger ledger;
    const char *saved = scratch_path(&scratch, "moments"), *path = scratch_path(&scratch, "release");
    uint64_t seed = 1;
    size_t shared;
    fkt_status st;
    FKT_TRY(small_pipeline(&pipeline, &ds, 10, 5, FKT_COORDINATE_GAIN_SHAPE));
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &m));
    FKT_TRY(fkt_records_new(&records, FKT_ADJACENCY_ADD_REMOVE));
    o.records = records;
    FKT_TRY(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &o));
    FKT_TRY(fkt_moments_save(m, fkt_pipeline_task(pipeline), records, saved, 1));
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &again));
    FKT_TRY(fkt_records_new(&read, FKT_ADJACENCY_ADD_REMOVE));
    FKT_TRY(fkt_moments_load(again, fkt_pipeline_task(pipeline), saved, read));
    FKT_TRY(fkt_records_merge(records, read, &shared));
    FKT_TRY(fkt_ledger_init(&ledger, 100, 0));
    FKT_TRY(fkt_release_reserve(&file, fkt_pipeline_task(pipeline), fkt_pipeline_calibration(pipeline, 0), &facts, path,
                                1));
    FKT_TRY(fkt_release_make_into(&r, fkt_pipeline_task(pipeline), fkt_pipeline_calibration(pipeline, 0), again, &facts,
                                  &ledger, &seed));
    FKT_TRY(fkt_release_write(file, &r));
    FKT_TRY(fkt_release_load_into(&back, path));
out:
    fkt_release_file_free(file);
    fkt_records_free(records);
    fkt_records_free(read);
    fkt_moments_free(again);
    fkt_release_clear(&back);
    fkt_release_clear(&r);
    fkt_moments_free(m);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    return st;
}

/* Images to moments with encodings that are kept: made in the first run, found in the others. */
static fkt_status kept_pipeline(void)
{
    struct fkt_pipeline_options o = {.threads = 1};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_moments *m = NULL;
    fkt_status st;
    FKT_TRY(small_pipeline(&pipeline, &ds, 10, 5, FKT_COORDINATE_GAIN_SHAPE));
    FKT_TRY(fkt_encodings_open(&o.encodings, scratch_path(&scratch, "kept")));
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &m));
    FKT_TRY(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &o));
out:
    fkt_encodings_close(o.encodings);
    fkt_moments_free(m);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    return st;
}

static void forget_kept(fkt_status st)
{
    (void)st;
    fkt_remove_tree(scratch_path(&scratch, "kept"));
}

/* release -> images and heads */
static fkt_status use_pipeline(void)
{
    struct fkt_generate_options o = {.per_class = 1,
                                     .grid_columns = 1,
                                     .threads = 1,
                                     .force = 1,
                                     .push_layout = 1,
                                     .publisher = {"CC-BY-4.0", "somebody", "https://example.org", "2026-11-17"}};
    struct fkt_estimate_options rie = {FKT_ESTIMATOR_RIE, 0, 0};
    struct fkt_release r = {0};
    struct fkt_gaussians g = {0};
    struct fkt_heads h = {0};
    fkt_status st;
    FKT_TRY(fkt_release_load_into(&r, scratch_path(&scratch, "release")));
    FKT_TRY(fkt_release_gaussians(&r, 0, &rie, &g));
    FKT_TRY(fkt_heads_fit(&h, &g, &r.task, FKT_HEADS_DEFAULT, &r));
    FKT_TRY(fkt_generate(&r, scratch_path(&scratch, "images"), &o));
out:
    fkt_heads_clear(&h);
    fkt_gaussians_clear(&g);
    fkt_release_clear(&r);
    return st;
}

static fkt_status simulate_pipeline(void)
{
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_simulation sim = {0};
    size_t train[10];
    struct fkt_simulation_spec spec = {.train = train,
                                       .n_train = 10,
                                       .participation = 1,
                                       .keep = 1,
                                       .threads = 1,
                                       .partition = {.rule = FKT_PARTITION_IID, .sites = 3}};
    fkt_status st;
    for (size_t i = 0; i < 10; i++) train[i] = i;
    FKT_TRY(small_pipeline(&pipeline, &ds, 10, 5, FKT_COORDINATE_CLIP));
    spec.pipeline = pipeline;
    spec.data = ds;
    FKT_TRY(fkt_simulate(&sim, &spec));
out:
    fkt_simulation_clear(&sim);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    return st;
}

/* task -> round with a lost site -> release */
static fkt_status federate_pipeline(void)
{
    const struct fkt_round_facts four_of_five = {5, 4, 1, 0};
    const uint64_t seed = 1;
    const struct fkt_federate_loss lost = {2, FKT_SA_STATE_MASK};
    struct small_federation *f = malloc(sizeof *f);
    struct fkt_federate_spec spec = {.task = &f->task,
                                     .secrets = f->secrets,
                                     .moments = small_moments,
                                     .lost = &lost,
                                     .n_lost = 1,
                                     .insecure_seed = &seed,
                                     .threads = 1};
    struct fkt_federate_result r = {0};
    struct fkt_release release = {0};
    struct fkt_task copy = {0};
    fkt_status st;
    FKT_TRY(small_federation_init(f, (struct fkt_federation_choices){.sites = 5, .dropped = 1, .corrupt = 1}, 10));
    FKT_TRY(fkt_federate(&r, &spec));
    FKT_TRY(fkt_release_gather_into(&release, &f->task, &f->calibration, r.total, &four_of_five, 1));
    FKT_TRY(fkt_task_save(&f->task, scratch_path(&scratch, "task"), 1));
    FKT_TRY(fkt_task_load_into(&copy, scratch_path(&scratch, "task")));
out:
    fkt_task_clear(&copy);
    fkt_release_clear(&release);
    fkt_federate_clear(&r);
    small_federation_release(f);
    free(f);
    return st;
}

/* task with a codec and a guide -> release -> file -> release */
static fkt_status guided_release(void)
{
    const uint64_t seed = 1;
    struct guided_task *g = calloc(1, sizeof *g);
    struct fkt_moments *m = NULL;
    struct fkt_release r = {0}, back = {0};
    struct fkt_ledger ledger;
    fkt_status st;
    FKT_TRY(guided_task(g, 1, 8, (struct fkt_task_choices){.joined = 1, .pooled = 1}));
    FKT_TRY(fkt_moments_new(&m, fkt_task_classes(&g->task), fkt_task_layout(&g->task), 0));
    FKT_TRY(fkt_ledger_init(&ledger, 1e6, 0));
    FKT_TRY(fkt_release_make_into(&r, &g->task, g->calibration, m, &facts, &ledger, &seed));
    FKT_TRY(fkt_release_save(&r, scratch_path(&scratch, "guided"), 1));
    FKT_TRY(fkt_release_load_into(&back, scratch_path(&scratch, "guided")));
out:
    fkt_release_clear(&back);
    fkt_release_clear(&r);
    fkt_moments_free(m);
    guided_parts_clear(g);
    free(g);
    return st;
}

/* task with a server -> signed -> file -> task -> copy -> another pin */
static fkt_status served_task(void)
{
    struct small_federation *f = calloc(1, sizeof *f);
    struct fkt_task back = {0}, copy = {0};
    fkt_status st;
    FKT_TRY(small_service_init(f, NULL));
    FKT_TRY(fkt_task_sign(&f->task, small_operator(f)));
    FKT_TRY(fkt_task_save(&f->task, scratch_path(&scratch, "served"), 1));
    FKT_TRY(fkt_task_load_into(&back, scratch_path(&scratch, "served")));
    FKT_TRY(fkt_task_copy(&copy, &back));
    FKT_TRY(fkt_task_verify(&copy, NULL));
    FKT_TRY(fkt_task_pin(&copy, SERVICE_PIN));
out:
    fkt_task_clear(&copy);
    fkt_task_clear(&back);
    small_federation_release(f);
    free(f);
    return st;
}

#define SESSION "1111111111111111111111111111111111111111111111111111111111111111"

/* digests -> asked, reserved, taken over, spent; then looked at */
static fkt_status site_account(void)
{
    const struct fkt_dataset_options limit = {.limit = 10};
    const struct fkt_pipeline_options one = {.threads = 1};
    const char *path = scratch_path(&scratch, "ledger");
    struct fkt_dataset *ds = NULL;
    struct fkt_ledger_contents book = {0};
    enum fkt_ledger_session stands = FKT_LEDGER_SESSION_UNKNOWN;
    struct fkt_records *records = NULL;
    char owner[FKT_LEDGER_NAME];
    struct fkt_ledger_charge c = {.dataset = "a",
                                  .task_sha256 = SESSION,
                                  .mu = 0.1,
                                  .budget_epsilon = 1,
                                  .budget_delta = 1e-5,
                                  .accounting = FKT_ACCOUNTING_ZCDP};
    char other[] = SESSION;
    fkt_status st;
    other[0] = '2';
    unlink(path);
    FKT_TRY(fkt_dataset_open(&ds, "demo:train", &limit));
    FKT_TRY(fkt_records_new(&records, FKT_ADJACENCY_ADD_REMOVE));
    FKT_TRY(fkt_records_read(records, ds, NULL, 0, &one));
    FKT_TRY(fkt_records_list(records, &c.records, &c.n_records));
    FKT_TRY(fkt_ledger_file_ask(path, &c, NULL));
    FKT_TRY(fkt_ledger_file_reserve(path, &c, SESSION, NULL));
    FKT_TRY(fkt_ledger_file_reserve(path, &c, other, NULL)); /* takes over */
    FKT_TRY(fkt_ledger_file_spend(path, other));
    FKT_TRY(fkt_ledger_file_session(path, other, SESSION, "a", &stands));
    FKT_TRY(fkt_ledger_file_owner(path, c.records, c.n_records, owner));
    FKT_TRY(fkt_ledger_file_read(&book, path, NULL));
    CHECK(stands == FKT_LEDGER_SESSION_SPENT && book.n == 1 && book.accounts[0].n == 1);
    CHECK(book.accounts[0].records == 10 && !strcmp(owner, "a"));
out:
    fkt_ledger_contents_clear(&book);
    fkt_records_free(records);
    fkt_dataset_free(ds);
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
    CHECK(sweep_allocations(release_pipeline, drop_release) > 20);
}

static void encodings_that_are_kept(void **state)
{
    (void)state;
    CHECK(sweep_allocations(kept_pipeline, forget_kept) > 20);
    CHECK_OK(kept_pipeline());
    CHECK(sweep_allocations(kept_pipeline, NULL) > 20);
    forget_kept(FKT_OK);
}

static void what_a_release_gives(void **state)
{
    (void)state;
    CHECK_OK(release_pipeline());
    CHECK(sweep_allocations(use_pipeline, NULL) > 20);
}

static void a_round_in_memory(void **state)
{
    (void)state;
    CHECK(sweep_allocations(federate_pipeline, NULL) > 100);
}

static void a_task_with_a_server(void **state)
{
    (void)state;
    CHECK(sweep_allocations(guided_release, NULL) > 20);
    CHECK(sweep_allocations(served_task, NULL) > 20);
}

static void many_sites(void **state)
{
    (void)state;
    CHECK(sweep_allocations(simulate_pipeline, NULL) > 20);
}

static void the_account_of_a_site(void **state)
{
    (void)state;
    CHECK(sweep_allocations(site_account, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_to_a_release),    cmocka_unit_test(what_a_release_gives),
        cmocka_unit_test(encodings_that_are_kept), cmocka_unit_test(many_sites),
        cmocka_unit_test(a_round_in_memory),       cmocka_unit_test(a_task_with_a_server),
        cmocka_unit_test(the_account_of_a_site),
    };
    int failed;
    scratch_init(&scratch);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&scratch);
    return failed;
}
