/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/release.h"
#include "task/task.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_federation.h"
#include "tests/support/layouts.h"
#include "tests/support/small_task.h"

static const struct fkt_round_facts facts = {3, 2, 0, 0};

struct scene {
    struct scratch scratch;
    struct fkt_pipeline *pipeline;
    struct fkt_dataset *ds;
    struct fkt_moments *moments;
    struct fkt_release release;
};

static void scene_init(struct scene *s, uint64_t seed)
{
    struct fkt_pipeline_options o = {0};
    struct fkt_ledger ledger;
    scratch_init(&s->scratch);
    CHECK_OK(small_pipeline(&s->pipeline, &s->ds, 200, 2, FKT_COORDINATE_GAIN_SHAPE));
    CHECK_OK(fkt_pipeline_moments_new(s->pipeline, &s->moments));
    CHECK_OK(fkt_pipeline_moments(s->pipeline, s->ds, NULL, 0, s->moments, &o));
    CHECK_OK(fkt_ledger_init(&ledger, 10, 0));
    CHECK_OK(fkt_release_make_into(&s->release, fkt_pipeline_task(s->pipeline),
                                   fkt_pipeline_calibration(s->pipeline, 0), s->moments, &facts, &ledger, &seed));
    CHECK_NEAR(ledger.spent_mu2, s->release.plan.mu * s->release.plan.mu, 1e-12);
}

static void scene_release(struct scene *s)
{
    fkt_release_clear(&s->release);
    fkt_moments_free(s->moments);
    fkt_dataset_free(s->ds);
    fkt_pipeline_free(s->pipeline);
    scratch_release(&s->scratch);
    CHECK(fkt_alloc_live() == 0);
}

static void a_release_survives_its_file(void **state)
{
    struct scene s;
    struct fkt_release back;
    struct fkt_pipeline *pipeline;
    size_t n;
    (void)state;
    scene_init(&s, 5);
    CHECK_OK(fkt_release_save(&s.release, scratch_path(&s.scratch, "r"), 0));
    CHECK_OK(fkt_release_load_into(&back, scratch_path(&s.scratch, "r")));
    n = back.task.n_classes * fkt_moments_block(back.task.part[0].coordinates.length);
    assert_memory_equal(back.moments, s.release.moments, n * sizeof *back.moments);
    assert_string_equal(back.sha256, s.release.sha256);
    CHECK(back.insecure_seed && back.facts.sites == 3 && back.facts.survivors == 2);
    CHECK_OK(fkt_release_pipeline(&back, NULL, &pipeline));
    fkt_pipeline_free(pipeline);
    fkt_release_clear(&back);
    scene_release(&s);
}

/* The seed gives the same bytes again, another seed others, and without one the mark is absent. */
static void the_seed_is_marked(void **state)
{
    struct scene a, b;
    struct fkt_ledger ledger;
    struct fkt_release fresh;
    char *json;
    (void)state;
    scene_init(&a, 5);
    scene_init(&b, 5);
    CHECK_OK(fkt_release_save(&a.release, scratch_path(&a.scratch, "r"), 0));
    CHECK_OK(fkt_release_save(&b.release, scratch_path(&b.scratch, "r"), 0));
    assert_string_equal(a.release.sha256, b.release.sha256);
    CHECK_OK(fkt_release_certificate(&a.release, &json));
    CHECK(strstr(json, "INSECURE") && strstr(json, "\"private\": false"));
    fkt_string_free(json);
    CHECK_OK(fkt_ledger_init(&ledger, 10, 0));
    CHECK_OK(fkt_release_make_into(&fresh, fkt_pipeline_task(a.pipeline), fkt_pipeline_calibration(a.pipeline, 0),
                                   a.moments, &facts, &ledger, NULL));
    CHECK_OK(fkt_release_certificate(&fresh, &json));
    CHECK(!strstr(json, "INSECURE") && strstr(json, "\"private\": true"));
    CHECK(memcmp(fresh.moments, a.release.moments, 64) != 0);
    fkt_string_free(json);
    fkt_release_clear(&fresh);
    fkt_release_clear(&b.release);
    fkt_moments_free(b.moments);
    fkt_dataset_free(b.ds);
    fkt_pipeline_free(b.pipeline);
    scratch_release(&b.scratch);
    scene_release(&a);
}

static void check_ledger_word(const struct fkt_release *r, const char *want, int warned)
{
    char *json = NULL, line[64];
    snprintf(line, sizeof line, "\"ledger\": \"%s\"", want);
    CHECK_OK(fkt_release_certificate(r, &json));
    if (!strstr(json, line)) fail_msg("no %s in %s", line, json);
    CHECK(!strstr(json, "kept its ledger in memory") == !warned);
    fkt_string_free(json);
}

/* What paid is derived from the ledger that was debited, and is read back from the file. */
static void the_certificate_says_which_ledger_paid(void **state)
{
    const struct fkt_record_digest records[2] = {{{1}}, {{2}}};
    struct scene s;
    struct fkt_ledger once;
    struct fkt_ledger_spent spent;
    struct fkt_release r, back;
    struct fkt_round_facts simulated = facts;
    const struct fkt_task *task;
    (void)state;
    scene_init(&s, 5);
    task = fkt_pipeline_task(s.pipeline);
    check_ledger_word(&s.release, "memory", 1);
    const struct fkt_ledger_charge charge = {.dataset = "d",
                                             .records = records,
                                             .n_records = 2,
                                             .task_sha256 = task->sha256,
                                             .mu = s.release.plan.mu,
                                             .adjacency = task->privacy.adjacency,
                                             .delta = task->privacy.delta};
    CHECK_OK(fkt_ledger_file_pay(&once, scratch_path(&s.scratch, "l.db"), &charge, &spent));
    CHECK(spent.mu2 > 0 && once.spent_mu2 == 0);
    CHECK_OK(fkt_release_make_into(&r, task, fkt_pipeline_calibration(s.pipeline, 0), s.moments, &facts, &once, NULL));
    check_ledger_word(&r, "file", 0);
    CHECK_OK(fkt_release_save(&r, scratch_path(&s.scratch, "r"), 0));
    CHECK_OK(fkt_release_load_into(&back, scratch_path(&s.scratch, "r")));
    check_ledger_word(&back, "file", 0);
    fkt_release_clear(&back);
    fkt_release_clear(&r);
    CHECK_STATUS(
        fkt_release_make_into(&r, task, fkt_pipeline_calibration(s.pipeline, 0), s.moments, &facts, &once, NULL),
        FKT_E_BUDGET); /* it was for one release */
    CHECK_OK(fkt_ledger_init(&once, 10, 0));
    simulated.simulated = 1;
    CHECK_OK(
        fkt_release_make_into(&r, task, fkt_pipeline_calibration(s.pipeline, 0), s.moments, &simulated, &once, NULL));
    check_ledger_word(&r, "none (simulation)", 0);
    fkt_release_clear(&r);
    memset(once.task_sha256, 'a', sizeof once.task_sha256 - 1); /* paid for another task */
    CHECK_STATUS(
        fkt_release_make_into(&r, task, fkt_pipeline_calibration(s.pipeline, 0), s.moments, &facts, &once, NULL),
        FKT_E_MISMATCH);
    scene_release(&s);
}

static void an_empty_ledger_draws_nothing(void **state)
{
    struct scene s;
    struct fkt_ledger ledger;
    struct fkt_release r;
    (void)state;
    scene_init(&s, 5);
    CHECK_OK(fkt_ledger_init(&ledger, 1e-6, 0));
    CHECK_STATUS(fkt_release_make_into(&r, fkt_pipeline_task(s.pipeline), fkt_pipeline_calibration(s.pipeline, 0),
                                       s.moments, &facts, &ledger, NULL),
                 FKT_E_BUDGET);
    CHECK(r.moments == NULL && ledger.spent_mu2 == 0);
    scene_release(&s);
}

/* Replaces the first `from` in a metadata string of the file by `to` of the same length, and loads it. */
static fkt_status load_changed(struct scratch *s, const char *from, const char *to)
{
    struct fkt_release r;
    FILE *f = fopen(scratch_path(s, "r"), "rb");
    static char bytes[1 << 20];
    size_t n = fread(bytes, 1, sizeof bytes, f), len = strlen(from);
    fkt_status st;
    char *at = NULL;
    fclose(f);
    assert_int_equal(len, strlen(to));
    for (size_t i = 0; i + len <= n && !at; i++)
        if (!memcmp(bytes + i, from, len)) at = bytes + i;
    if (!at) fail_msg("'%s' is not in the file", from);
    memcpy(at, to, len);
    f = fopen(scratch_path(s, "changed"), "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    st = fkt_release_load_into(&r, scratch_path(s, "changed"));
    if (st == FKT_OK) fkt_release_clear(&r);
    return st;
}

static fkt_status flip_byte(struct scratch *s, const char *tensor)
{
    struct fkt_safetensors *file;
    struct fkt_release r;
    static char bytes[1 << 20];
    size_t n, at;
    FILE *f = fopen(scratch_path(s, "r"), "rb");
    fkt_status st;
    n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    CHECK_OK(fkt_safetensors_parse(&file, bytes, n, "r"));
    at = (size_t)((const char *)fkt_safetensors_find(file, tensor)->data - bytes);
    fkt_safetensors_free(file);
    bytes[at] ^= 1;
    f = fopen(scratch_path(s, "changed"), "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    st = fkt_release_load_into(&r, scratch_path(s, "changed"));
    if (st == FKT_OK) fkt_release_clear(&r);
    return st;
}

static void a_changed_release_is_refused(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, 5);
    CHECK_OK(fkt_release_save(&s.release, scratch_path(&s.scratch, "r"), 0));
    CHECK_STATUS(load_changed(&s.scratch, "fedkt.release/1", "fedkt.release/9"), FKT_E_FORMAT);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"private\\\":false", "\\\"private\\\":true "), FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"epsilon\\\":2.0", "\\\"epsilon\\\":1.0"), FKT_E_MISMATCH);
    CHECK_STATUS(
        load_changed(&s.scratch, "\\\"adjacency\\\":\\\"add-remove\\\"", "\\\"adjacency\\\":\\\"add-remote\\\""),
        FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"survivors\\\":2", "\\\"survivors\\\":4"), FKT_E_FORMAT);
    /* one bit of one noised moment, of one calibration number */
    CHECK_STATUS(flip_byte(&s.scratch, "moments"), FKT_E_MISMATCH);
    CHECK_STATUS(flip_byte(&s.scratch, "map"), FKT_E_MISMATCH);
    scene_release(&s);
}

/* Noise in shares: 8 sites of which 2 may be lost and 1 may collude, 7 in the total. */
struct shared {
    struct scratch scratch;
    struct small_federation f;
    struct fkt_federate_result round;
    struct fkt_release release;
};

static const struct fkt_round_facts seven_of_eight = {8, 7, 1, 0};

static void shared_init(struct shared *s)
{
    const uint64_t seed = 2;
    struct fkt_federate_loss lost = {3, FKT_SA_STATE_MASK};
    struct fkt_federate_spec spec = {.task = &s->f.task,
                                     .secrets = s->f.secrets,
                                     .moments = small_moments,
                                     .lost = &lost,
                                     .n_lost = 1,
                                     .insecure_seed = &seed,
                                     .threads = 1};
    scratch_init(&s->scratch);
    CHECK_OK(small_federation_init(&s->f, (struct fkt_federation_choices){.sites = 8, .dropped = 2, .corrupt = 1}, 2));
    CHECK_OK(fkt_federate(&s->round, &spec));
    CHECK(s->round.survivors == 7);
    CHECK_OK(fkt_release_gather_into(&s->release, &s->f.task, &s->f.calibration, s->round.total, &seven_of_eight, 1));
}

static void shared_release(struct shared *s)
{
    fkt_release_clear(&s->release);
    fkt_federate_clear(&s->round);
    small_federation_release(&s->f);
    scratch_release(&s->scratch);
    CHECK(fkt_alloc_live() == 0);
}

/* The plan is the promise of five shares; the estimators reckon with the seven that are there. */
static void promise_and_noise_are_kept_apart(void **state)
{
    struct shared s;
    struct fkt_release back;
    char *json;
    (void)state;
    shared_init(&s);
    CHECK(s.release.shares.counted == 5);
    CHECK_REL(s.release.sigma.part[0].sum, s.release.plan.sigma[0].sum * sqrt(7.0 / 5), 1e-9);
    CHECK_REL(s.release.sigma.part[0].moment, s.release.plan.sigma[0].moment * sqrt(7.0 / 5), 1e-9);
    CHECK_REL(s.release.sigma.count, s.release.plan.sigma_count * sqrt(7.0 / 5), 1e-2); /* and the rounding */
    CHECK_NEAR(s.release.plan.epsilon_spent, 2, 1e-3);
    CHECK(s.release.plan.epsilon_spent <= 2);
    CHECK_OK(fkt_release_save(&s.release, scratch_path(&s.scratch, "r"), 0));
    CHECK_OK(fkt_release_load_into(&back, scratch_path(&s.scratch, "r")));
    CHECK_REL(back.sigma.part[0].sum, s.release.sigma.part[0].sum, 1e-12);
    CHECK(back.shares.counted == 5 && back.facts.survivors == 7 && back.plan.mu == s.release.plan.mu);
    CHECK_OK(fkt_release_certificate(&back, &json));
    CHECK(strstr(json, "\"noise\": \"distributed: ") && strstr(json, "\"accounting\": \"gdp\""));
    CHECK(strstr(json, "\"counted\": 5") && strstr(json, "\"in_total\": 7"));
    CHECK(strstr(json, "\"surplus_variance\": 0.3999999999999999"));
    CHECK(strstr(json, "\"holds_against\": \"nobody: the noise came from a known seed\""));
    fkt_string_free(json);
    fkt_release_clear(&back);
    shared_release(&s);
}

static void holds_against_is(struct fkt_release *r, const char *words)
{
    char *json, want[400];
    CHECK_OK(fkt_release_certificate(r, &json));
    snprintf(want, sizeof want, "\"holds_against\": \"%s\"", words);
    if (!strstr(json, want)) fail_msg("no '%s' in: %s", want, json);
    CHECK_OK(fkt_certificate_check(r, json));
    fkt_string_free(json);
}

/* A promise is not made to whom it does not hold: not to a server that is the same process as the sites, and to nobody
 * who knows the seed. */
static void against_whom_it_holds(void **state)
{
    struct shared s;
    struct scene plain;
    (void)state;
    shared_init(&s);
    holds_against_is(&s.release, "nobody: the noise came from a known seed");
    s.release.insecure_seed = 0;
    s.release.facts.simulated = 1;
    holds_against_is(&s.release, "readers of the release; one process held all records and keys");
    s.release.facts.simulated = 0;
    holds_against_is(
        &s.release, "readers of the release and the server with up to 1 colluding site, assuming that every survivor "
                    "outside the colluding ones added its share; towards the server as long as the cryptography holds");
    s.release.task.federation.corrupt = 2;
    s.release.task.federation.degree = 6; /* a sparse graph */
    s.release.task.federation.security = 47;
    holds_against_is(
        &s.release, "readers of the release and the server with up to 2 colluding sites, assuming that every survivor "
                    "outside the colluding ones added its share; towards the server as long as the cryptography holds, "
                    "and except with probability 2^-47 for each round begun");
    shared_release(&s);
    scene_init(&plain, 5);
    plain.release.insecure_seed = plain.release.facts.simulated = 0;
    holds_against_is(&plain.release, "readers of the release; whoever added the noise saw exact sums");
    plain.release.facts.simulated = 1;
    holds_against_is(&plain.release, "readers of the release; one process held all records and keys");
    scene_release(&plain);
}

static void a_changed_word_about_shares_is_refused(void **state)
{
    struct shared s;
    (void)state;
    shared_init(&s);
    CHECK_OK(fkt_release_save(&s.release, scratch_path(&s.scratch, "r"), 0));
    CHECK_STATUS(load_changed(&s.scratch, "\\\"counted\\\":5", "\\\"counted\\\":6"), FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"in_total\\\":7", "\\\"in_total\\\":8"), FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"survivors\\\":7", "\\\"survivors\\\":5"), FKT_E_FORMAT);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"survivors\\\":7", "\\\"survivors\\\":8"), FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"gdp\\\"", "\\\"gdq\\\""), FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "nobody: the noise", "reader: the noise"), FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"noise\\\":\\\"distributed: d", "\\\"noise\\\":\\\"distributed: D"),
                 FKT_E_MISMATCH);
    shared_release(&s);
}

/* A task says where its noise comes from, and nobody can go the other way. */
static void each_task_has_one_way(void **state)
{
    struct shared s;
    struct scene plain;
    struct fkt_release r;
    struct fkt_moments *m;
    struct fkt_ledger ledger;
    (void)state;
    shared_init(&s);
    scene_init(&plain, 5);
    CHECK_OK(fkt_ledger_init(&ledger, 1e9, 0));
    CHECK_OK(fkt_moments_new(&m, FED_CLASSES, ONE_PART(FED_LENGTH, 256), 0));
    CHECK_STATUS(fkt_release_make_into(&r, &s.f.task, &s.f.calibration, m, &seven_of_eight, &ledger, NULL),
                 FKT_E_MISMATCH);
    CHECK(ledger.spent_mu2 == 0);
    CHECK_STATUS(fkt_release_gather_into(&r, fkt_pipeline_task(plain.pipeline),
                                         fkt_pipeline_calibration(plain.pipeline, 0), plain.release.moments, &facts, 0),
                 FKT_E_MISMATCH);
    CHECK_STATUS(fkt_release_gather_into(&r, &s.f.task, &s.f.calibration, s.round.total,
                                         &(struct fkt_round_facts){8, 5, 1, 0}, 0), /* fewer than may stay */
                 FKT_E_FORMAT);
    fkt_moments_free(m);
    fkt_release_clear(&plain.release);
    fkt_moments_free(plain.moments);
    fkt_dataset_free(plain.ds);
    fkt_pipeline_free(plain.pipeline);
    scratch_release(&plain.scratch);
    shared_release(&s);
}

/* Files that were made before noise could be in shares say nothing of it, and are still read. */
static void an_older_certificate_is_read(void **state)
{
    static const char *const later[] = {"accounting", "rho", "noise_shares", "holds_against"};
    struct scene s;
    char *json;
    (void)state;
    scene_init(&s, 5);
    for (size_t kept = 0; kept < 2; kept++) {
        json_t *j;
        CHECK_OK(fkt_release_certificate(&s.release, &json));
        j = json_loads(json, 0, NULL);
        fkt_string_free(json);
        for (size_t i = kept; i < 4; i++) json_object_del(j, later[i]);
        CHECK_OK(fkt_json_text(&json, j, 0));
        CHECK_STATUS(fkt_certificate_check(&s.release, json), kept ? FKT_E_MISMATCH : FKT_OK);
        fkt_free(json);
    }
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_survives_its_file),
        cmocka_unit_test(the_seed_is_marked),
        cmocka_unit_test(the_certificate_says_which_ledger_paid),
        cmocka_unit_test(an_empty_ledger_draws_nothing),
        cmocka_unit_test(a_changed_release_is_refused),
        cmocka_unit_test(promise_and_noise_are_kept_apart),
        cmocka_unit_test(against_whom_it_holds),
        cmocka_unit_test(a_changed_word_about_shares_is_refused),
        cmocka_unit_test(each_task_has_one_way),
        cmocka_unit_test(an_older_certificate_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
