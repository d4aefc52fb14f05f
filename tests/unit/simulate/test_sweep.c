/* SPDX-License-Identifier: Apache-2.0 */
/* test_sweep.c - a federation simulated at several epsilons: its arms, draws, accuracies, networks and JSON. */
#include "fedkt/advanced/simulate.h"
#include "fedkt/sweep.h"

#include "pipeline/release.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { RECORDS = 120, TESTS = 40 };

static struct fkt_dataset *data, *test;
static const uint64_t seed = 11;
static const double epsilons[2] = {10, 2};

/* Five sites, two epsilons, known noise. Gives codec and calibration to the spec. */
static void small_spec(struct fkt_sweep_spec *spec, struct fkt_calibration *cal)
{
    const struct fkt_codec_spec codec = {.name = "dct", .size = 16, .dim = 8};
    fkt_sweep_default(spec);
    spec->data = data;
    spec->test = test;
    spec->task.privacy.delta = 1e-5;
    spec->epsilon = epsilons;
    spec->n_epsilon = 2;
    spec->partition.sites = 5;
    spec->insecure_seed = &seed;
    spec->threads = 2;
    CHECK_OK(fkt_codec_open(&spec->codec[0], &codec));
    CHECK_OK(fkt_calibration_embedded(cal, spec->codec[0]));
    spec->calibration[0] = cal;
    spec->parts = 1;
}

static struct fkt_sweep *run(struct fkt_sweep_spec *spec)
{
    struct fkt_sweep *s = NULL;
    CHECK_OK(fkt_sweep_new(&s, spec));
    CHECK_OK(fkt_sweep_run(s));
    return s;
}

static json_t *results(const struct fkt_sweep *s)
{
    char *text = NULL;
    json_t *j;
    CHECK_OK(fkt_sweep_results_json(s, &text));
    j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    fkt_string_free(text);
    return j;
}

static double number(const json_t *j, const char *key) { return json_number_value(json_object_get(j, key)); }

static void an_arm_for_each_epsilon_and_a_reference(void **state)
{
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep *s, *again;
    double mean, deviation, exact;
    (void)state;
    small_spec(&spec, &cal);
    s = run(&spec);
    assert_int_equal(fkt_sweep_arms(s), 3);
    for (size_t i = 0; i < 2; i++) {
        const struct fkt_sweep_arm *a = fkt_sweep_arm(s, i);
        CHECK(a->task->privacy.epsilon == epsilons[i]);
        CHECK(a->release->plan.spec.epsilon == epsilons[i]);
        assert_int_equal(a->release->insecure_seed, 1);
        assert_int_equal(a->round->survivors, 5);
        assert_int_equal(a->draws, 1);
        CHECK(isnan(a->network));
    }
    CHECK(!fkt_sweep_arm(s, 2)->release && !fkt_sweep_arm(s, 2)->task);
    CHECK(!fkt_sweep_fallback(s));
    CHECK(fkt_sweep_composed_epsilon(s) > 10); /* of both releases */
    fkt_sweep_accuracy(s, 2, FKT_HEAD_LDA, &exact, NULL);
    fkt_sweep_accuracy(s, 1, FKT_HEAD_LDA, &mean, &deviation);
    CHECK(exact > 0.5 && exact > mean && deviation == 0); /* noise at epsilon 2 costs accuracy on so few records */
    assert_int_equal(fkt_score_total(fkt_sweep_score(s, 0, FKT_HEAD_QDA, 0)), TESTS);
    assert_int_equal(fkt_sweep_run(s), FKT_E_STATE);
    small_spec(&spec, &cal);
    again = run(&spec);
    assert_string_equal(fkt_sweep_arm(s, 1)->release->sha256, fkt_sweep_arm(again, 1)->release->sha256);
    CHECK(strcmp(fkt_sweep_arm(s, 0)->release->sha256, fkt_sweep_arm(s, 1)->release->sha256) != 0);
    fkt_sweep_free(s);
    fkt_sweep_free(again);
}

static void draws_differ_and_their_spread_is_stated(void **state)
{
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep *s;
    double mean, deviation, sum = 0, squares = 0, x[3];
    json_t *j, *runs;
    (void)state;
    small_spec(&spec, &cal);
    spec.draws = 3;
    s = run(&spec);
    j = results(s);
    runs = json_object_get(json_object_get(json_array_get(json_object_get(j, "arms"), 1), "accuracy_runs"), "lda");
    assert_int_equal(json_array_size(runs), 3);
    for (size_t d = 0; d < 3; d++) {
        x[d] = fkt_score_accuracy(fkt_sweep_score(s, 1, FKT_HEAD_LDA, d));
        CHECK(json_real_value(json_array_get(runs, d)) == x[d]);
        sum += x[d];
    }
    CHECK(x[0] != x[1] || x[1] != x[2]);
    for (size_t d = 0; d < 3; d++) squares += (x[d] - sum / 3) * (x[d] - sum / 3);
    fkt_sweep_accuracy(s, 1, FKT_HEAD_LDA, &mean, &deviation);
    CHECK(fabs(mean - sum / 3) < 1e-12 && fabs(deviation - sqrt(squares / 2)) < 1e-12);
    assert_int_equal(fkt_sweep_arm(s, 2)->draws, 1); /* nothing is drawn for the reference */
    json_decref(j);
    fkt_sweep_free(s);
}

static void without_test_data_there_is_one_draw_and_no_accuracy(void **state)
{
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep_network network = {.per_class = 1};
    struct fkt_sweep *s;
    double mean, deviation;
    char *text = NULL;
    json_t *j;
    (void)state;
    small_spec(&spec, &cal);
    spec.test = NULL;
    spec.draws = 3;
    CHECK_OK(fkt_sweep_new(&s, &spec));
    assert_int_equal(fkt_sweep_results_json(s, &text), FKT_E_STATE);
    assert_int_equal(fkt_sweep_partition_json(s, &text), FKT_E_STATE);
    assert_int_equal(fkt_sweep_generate(s, 0, "nowhere", 1, FKT_EXPORT_FOLDER, 0), FKT_E_STATE);
    CHECK_OK(fkt_sweep_run(s));
    assert_int_equal(fkt_sweep_arm(s, 0)->draws, 1);
    fkt_sweep_accuracy(s, 0, FKT_HEAD_LDA, &mean, &deviation);
    CHECK(isnan(mean) && isnan(deviation));
    j = results(s);
    CHECK(!json_object_get(j, "accuracy") && !json_object_get(j, "accuracy_without_privacy"));
    assert_string_equal(json_string_value(json_object_get(j, "noise")), "distributed");
    assert_int_equal(json_integer_value(json_object_get(j, "insecure_seed")), seed);
    fkt_recipe_default(&network.recipe);
    assert_int_equal(fkt_sweep_train(s, &network), FKT_E_STATE);
    assert_int_equal(fkt_sweep_generate(s, 2, "nowhere", 1, FKT_EXPORT_FOLDER, 0), FKT_E_STATE); /* the reference */
    json_decref(j);
    fkt_sweep_free(s);
}

static void a_hold_out_is_tested_on_and_not_released(void **state)
{
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep *s;
    const size_t *train, *held;
    size_t n_train, n_held;
    char *text = NULL;
    json_t *j;
    (void)state;
    small_spec(&spec, &cal);
    spec.test = NULL;
    spec.holdout = 0.3;
    s = run(&spec);
    train = fkt_sweep_train_records(s, &n_train);
    held = fkt_sweep_test_records(s, &n_held);
    assert_int_equal(n_train + n_held, RECORDS);
    for (size_t i = 0; i < n_train; i++)
        for (size_t k = 0; k < n_held; k++) CHECK(train[i] != held[k]);
    CHECK(fkt_sweep_test_data(s) == data);
    assert_int_equal(fkt_sweep_simulation(s)->records, n_train);
    CHECK_OK(fkt_sweep_partition_json(s, &text));
    j = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(j, "owner")), n_train);
    assert_string_equal(json_string_value(json_object_get(j, "rule")), "iid");
    json_decref(j);
    fkt_string_free(text);
    fkt_sweep_free(s);
}

static void the_federation_bears_what_is_lost(void **state)
{
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep *s;
    json_t *j, *round;
    (void)state;
    small_spec(&spec, &cal);
    spec.partition = (struct fkt_partition_spec){.rule = FKT_PARTITION_DIRICHLET, .sites = 10, .alpha = 0.3};
    spec.dropout[FKT_SA_STATE_MASK] = 0.3;
    s = run(&spec);
    assert_int_equal(fkt_sweep_arm(s, 0)->task->federation.dropped, 3); /* 2 by default */
    assert_int_equal(fkt_sweep_arm(s, 0)->task->federation.corrupt, 1);
    j = results(s);
    round = json_object_get(j, "aggregation");
    CHECK(number(round, "survivors") == 7 && number(json_object_get(round, "lost"), "mask") == 3);
    assert_string_equal(json_string_value(json_object_get(j, "partition")), "dirichlet:0.3");
    json_decref(j);
    fkt_sweep_free(s);
    small_spec(&spec, &cal);
    spec.partition.sites = 10;
    spec.dropped = 1;
    spec.dropout[FKT_SA_STATE_MASK] = 0.3;
    CHECK_OK(fkt_sweep_new(&s, &spec));
    assert_int_equal(fkt_sweep_run(s), FKT_E_TOO_FEW);
    fkt_sweep_free(s);
}

static void two_sites_have_no_protocol(void **state)
{
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep *s = NULL;
    json_t *j;
    (void)state;
    small_spec(&spec, &cal);
    spec.partition.sites = 2;
    s = run(&spec);
    assert_int_equal(fkt_sweep_arm(s, 0)->round->survivors, 0);
    assert_non_null(fkt_sweep_fallback(s));
    j = results(s);
    CHECK(json_is_null(json_object_get(j, "aggregation")));
    assert_string_equal(json_string_value(json_object_get(j, "noise")), "central");
    json_decref(j);
    fkt_sweep_free(s);
    small_spec(&spec, &cal);
    spec.partition.sites = 2;
    spec.noise = FKT_NOISE_PLACE_DISTRIBUTED;
    assert_int_equal(fkt_sweep_new(&s, &spec), FKT_E_ARG);
    CHECK(!s);
}

static void a_spec_that_cannot_be_is_refused(void **state)
{
    const double twice[2] = {1, 1};
    double many[FKT_SWEEP_EPSILONS_MAX + 1];
    (void)state;
    for (size_t i = 0; i < FKT_SWEEP_EPSILONS_MAX + 1; i++) many[i] = (double)i + 1;
    for (int what = 0; what < 6; what++) {
        struct fkt_calibration cal;
        struct fkt_sweep_spec spec;
        struct fkt_sweep *s = NULL;
        small_spec(&spec, &cal);
        if (what == 0) spec.epsilon = twice;
        if (what == 1) spec.n_epsilon = 0;
        if (what == 2) spec.epsilon = many, spec.n_epsilon = FKT_SWEEP_EPSILONS_MAX + 1;
        if (what == 3) spec.draws = FKT_SWEEP_DRAWS_MAX + 1;
        if (what == 4) spec.holdout = 0.2; /* beside a test set */
        if (what == 5) spec.test = NULL, spec.holdout = 1;
        assert_int_equal(fkt_sweep_new(&s, &spec), FKT_E_ARG); /* codec and calibration are taken all the same */
        CHECK(!s);
    }
}

struct calls {
    size_t n;
    fkt_status answer;
};

static fkt_status count(void *ctx, const struct fkt_sweep *s, size_t arm)
{
    struct calls *c = ctx;
    assert_int_equal(arm, c->n);
    assert_true(arm < fkt_sweep_arms(s));
    c->n++;
    return c->answer;
}

static void the_caller_hears_of_each_arm_and_may_stop(void **state)
{
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep *s = NULL;
    struct calls c = {0, FKT_OK};
    (void)state;
    small_spec(&spec, &cal);
    spec.released = count;
    spec.ctx = &c;
    s = run(&spec);
    assert_int_equal(c.n, 2);
    fkt_sweep_free(s);
    small_spec(&spec, &cal);
    spec.released = count;
    spec.ctx = &c;
    c = (struct calls){0, FKT_E_STOPPED};
    CHECK_OK(fkt_sweep_new(&s, &spec));
    assert_int_equal(fkt_sweep_run(s), FKT_E_STOPPED);
    assert_int_equal(c.n, 1);
    fkt_sweep_free(s);
}

static int stop_at_evaluation(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)self;
    (void)total;
    return strcmp(what, "evaluating") == 0 && done > 0;
}

/* A partial pass over the test images has no accuracy. */
static void a_sweep_that_stopped_has_no_results(void **state)
{
    const struct fkt_progress progress = {stop_at_evaluation, NULL};
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep *s = NULL;
    double mean = 0;
    char *json = NULL;
    (void)state;
    small_spec(&spec, &cal);
    spec.progress = &progress;
    CHECK_OK(fkt_sweep_new(&s, &spec));
    assert_int_equal(fkt_sweep_run(s), FKT_E_STOPPED);
    CHECK_STATUS(fkt_sweep_results_json(s, &json), FKT_E_STATE);
    fkt_sweep_accuracy(s, 0, FKT_HEAD_LDA, &mean, NULL);
    CHECK(isnan(mean) && !fkt_sweep_score(s, 0, FKT_HEAD_LDA, 0) && !fkt_sweep_arm(s, SIZE_MAX));
    fkt_sweep_free(s);
}

static void a_network_for_each_arm(void **state)
{
    struct fkt_calibration cal;
    struct fkt_sweep_spec spec;
    struct fkt_sweep *s = NULL;
    struct calls c = {0, FKT_OK};
    struct fkt_sweep_network network = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .per_class = 2, .trained = count, .ctx = &c};
    json_t *j;
    (void)state;
    small_spec(&spec, &cal);
    s = run(&spec);
    CHECK(!fkt_sweep_network_name(s));
    fkt_recipe_default(&network.recipe);
    network.recipe.epochs = 1;
    network.recipe.batch = 10;
    network.recipe.threads = 2;
    CHECK_OK(fkt_sweep_train(s, &network));
    assert_int_equal(c.n, 3);
    j = results(s);
    assert_string_equal(fkt_sweep_network_name(s), "resnet8");
    CHECK(number(json_object_get(j, "accuracy"), "resnet8") == fkt_sweep_arm(s, 0)->network);
    CHECK(number(json_object_get(j, "accuracy_without_privacy"), "resnet8") == fkt_sweep_arm(s, 2)->network);
    CHECK(number(json_object_get(j, "seconds"), "train") > 0);
    assert_int_equal(fkt_sweep_set_network(s, 3, "other", 1, 0), FKT_E_ARG);
    assert_int_equal(fkt_sweep_set_network(s, 0, "", 1, 0), FKT_E_ARG);
    json_decref(j);
    fkt_sweep_free(s);
}

static int begin(void **state)
{
    const struct fkt_dataset_options train = {.limit = RECORDS}, few = {.limit = TESTS};
    (void)state;
    return fkt_dataset_open(&data, "demo:train", &train) != FKT_OK ||
           fkt_dataset_open(&test, "demo:test", &few) != FKT_OK;
}

static int end(void **state)
{
    (void)state;
    fkt_dataset_free(data);
    fkt_dataset_free(test);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arm_for_each_epsilon_and_a_reference),
        cmocka_unit_test(draws_differ_and_their_spread_is_stated),
        cmocka_unit_test(without_test_data_there_is_one_draw_and_no_accuracy),
        cmocka_unit_test(a_hold_out_is_tested_on_and_not_released),
        cmocka_unit_test(the_federation_bears_what_is_lost),
        cmocka_unit_test(two_sites_have_no_protocol),
        cmocka_unit_test(a_spec_that_cannot_be_is_refused),
        cmocka_unit_test(the_caller_hears_of_each_arm_and_may_stop),
        cmocka_unit_test(a_sweep_that_stopped_has_no_results),
        cmocka_unit_test(a_network_for_each_arm),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, begin, end));
}
