/* SPDX-License-Identifier: Apache-2.0 */
/* test_baselines.c - each allocation of the baselines fails in turn: the vectors of every method on a small problem, a
 * network with a teacher and validation records, and a whole run. */
#include "fedkt/advanced/baselines.h"

#include "learning/baselines/network.h"
#include "tests/support/sweep.h"
#include "tests/support/toy_federation.h"

enum { SIZE = 8, N = 12 };

static uint8_t rgb[N * SIZE * SIZE * 3];
static uint32_t label[N] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0};
static char *classes[] = {(char[]){"a"}, (char[]){"b"}};
static struct fkt_training_set pool = {
    .rgb = rgb, .label = label, .n = N, .size = SIZE, .classes = classes, .n_classes = 2};
static struct fkt_model *model;
static enum fkt_baseline method;

static fkt_status vectors(void)
{
    const struct fkt_method *m = fkt_method_of(method);
    struct toy_run t;
    fkt_status st;
    FKT_TRY(toy_run_init(&t, m));
    FKT_TRY(m->round(&t.r, 0));
    FKT_TRY(m->round(&t.r, 1));
out:
    fkt_rounds_clear(&t.r);
    return st;
}

static struct fkt_baselines_spec a_spec(void)
{
    struct fkt_baselines_spec s = {.like = model,
                                   .data = &pool,
                                   .partition = {.rule = FKT_PARTITION_IID, .sites = 2, .seed = 1},
                                   .holdout = 0.25,
                                   .methods = 1U << FKT_BASELINE_LOCAL,
                                   .threads = 1};
    fkt_baseline_default(&s.settings);
    s.settings.rounds = 1;
    return s;
}

/* What a method may ask of a network, once each. */
static fkt_status network(void)
{
    const struct fkt_baselines_spec s = a_spec();
    const struct fkt_personal_labels data = {label, N, 2};
    struct fkt_personal_split split = {0};
    struct fkt_network_problem q = {0};
    static float x[80000], g[80000];
    double loss;
    fkt_status st;
    FKT_TRY(fkt_personal_split_init(&split, &data, NULL, &s.partition, 0.25, 1));
    FKT_TRY(fkt_network_problem_init(&q, &s, &split, 0.3));
    CHECK(q.problem.state <= sizeof x / sizeof *x);
    memcpy(x, q.start, q.problem.state * sizeof *x);
    FKT_TRY(q.problem.teach(&q, x, 0.5, 2));
    FKT_TRY(q.problem.gradient(&q, 1, 0, x, g));
    FKT_TRY(q.problem.validate(&q, 1, x, &loss));
out:
    fkt_network_problem_clear(&q);
    fkt_personal_split_clear(&split);
    return st;
}

/* Steps on a learner that holds a site's images; without memory for them there, gradients are left to do. */
static fkt_status steps(void)
{
    static const struct fkt_local_step step[] = {{.rate = 0.01}, {.rate = 0.01, .pull = 1, .follow = 0.5}};
    const struct fkt_baselines_spec s = a_spec();
    const struct fkt_personal_labels data = {label, N, 2};
    struct fkt_personal_split split = {0};
    struct fkt_network_problem q = {0};
    static float x[80000], anchor[80000];
    int done = 0;
    fkt_status st;
    FKT_TRY(fkt_personal_split_init(&split, &data, NULL, &s.partition, 0.25, 1));
    FKT_TRY(fkt_network_problem_init(&q, &s, &split, 0));
    q.backend = &fkt_learner_ref;
    memcpy(x, q.start, q.problem.state * sizeof *x);
    memcpy(anchor, x, sizeof x);
    FKT_TRY(q.problem.teach(&q, x, 0.5, 2));
    FKT_TRY(fkt_network_descend(&q, 1, step, 2, x, anchor, &done));
    if (done) goto out;
    CHECK(!memcmp(x, q.start, q.problem.state * sizeof *x) && !memcmp(anchor, x, sizeof x));
    st = fkt_fail(FKT_E_NOMEM, "left to gradients");
out:
    fkt_network_problem_clear(&q);
    fkt_personal_split_clear(&split);
    return st;
}

static fkt_status whole(void)
{
    const struct fkt_baselines_spec s = a_spec();
    struct fkt_personal p;
    fkt_status st = fkt_baselines_run(&p, &s);
    CHECK(st == FKT_OK || !p.site);
    fkt_personal_clear(&p);
    return st;
}

static void each_allocation_fails_in_turn(void **state)
{
    (void)state;
    for (int b = 0; b < FKT_BASELINES; b++) {
        method = (enum fkt_baseline)b;
        CHECK(sweep_allocations(vectors, NULL) > 8);
    }
    CHECK(sweep_allocations(network, NULL) > 100);
    CHECK(sweep_allocations(steps, NULL) > 100);
    CHECK(sweep_allocations(whole, NULL) > 100);
}

static int set_up(void **state)
{
    const struct fkt_model_spec spec = {.architecture = FKT_ARCHITECTURE_RESNET8,
                                        .size = SIZE,
                                        .classes = (const char *const *)classes,
                                        .n_classes = 2,
                                        .seed = 1};
    (void)state;
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37 % 251);
    CHECK_OK(fkt_model_new(&model, &spec));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fkt_model_free(model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails_in_turn)};
    return check_nothing_left(cmocka_run_group_tests(tests, set_up, tear_down));
}
