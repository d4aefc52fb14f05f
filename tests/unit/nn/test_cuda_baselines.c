/* SPDX-License-Identifier: Apache-2.0 */
/* Local steps of the baselines on learners that hold a site's images (learning/baselines/network_steps.c), in plain
 * loops and on a card: the numbers of gradients one by one; when they are not possible; stops and divergence. */
#include "learning/baselines/network.h"
#include "tests/support/cuda_case.h"

enum { SIZE = 8, RECORDS = 64, SITES = 3, BATCH = 6, CLASSES = 4, IMAGE = 3 * SIZE * SIZE };

static uint8_t rgb[RECORDS * IMAGE];
static uint32_t label[RECORDS];
static char letters[CLASSES][2] = {"a", "b", "c", "d"}, *names[] = {letters[0], letters[1], letters[2], letters[3]};
static struct fkt_training_set set = {
    .rgb = rgb, .label = label, .n = RECORDS, .size = SIZE, .classes = names, .n_classes = CLASSES};
static struct fkt_model *like;

static int set_up(void **state)
{
    const struct fkt_model_spec spec = {.architecture = FKT_ARCHITECTURE_RESNET8,
                                        .size = SIZE,
                                        .classes = (const char *const *)names,
                                        .n_classes = CLASSES,
                                        .seed = 7};
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 5, 0);
    for (size_t i = 0; i < RECORDS; i++) label[i] = (uint32_t)(i % CLASSES);
    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)(40 * label[i / IMAGE] + (uint32_t)fkt_rng_below(&r, 100));
    CHECK_OK(fkt_model_new(&like, &spec));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fkt_model_free(like);
    return 0;
}

/* A run of a few rounds whose learners are of `backend`. */
struct run {
    struct fkt_baselines_spec spec;
    struct fkt_personal_split split;
    struct fkt_network_problem q;
    struct fkt_rounds r;
};

static fkt_status no_gradient(void *self, uint32_t site, uint64_t step, float *x, float *g)
{
    (void)self, (void)site, (void)step, (void)x, (void)g;
    return fkt_fail(FKT_E_STATE, "a gradient was asked for");
}

static void run_init(struct run *a, const struct fkt_learner_backend *backend, enum fkt_baseline b,
                     enum fkt_learn_dtype dtype)
{
    const struct fkt_personal_labels data = {set.label, set.n, set.n_classes};
    memset(a, 0, sizeof *a);
    a->spec = (struct fkt_baselines_spec){.like = like, .data = &set, .seed = 1, .threads = 1, .dtype = dtype};
    a->spec.partition = (struct fkt_partition_spec){.rule = FKT_PARTITION_IID, .sites = SITES, .seed = 1};
    fkt_baseline_default(&a->spec.settings);
    a->spec.settings.rounds = 2;
    a->spec.settings.batch = BATCH;
    a->spec.settings.rate = 0.02;
    a->spec.settings.pfedme_steps = 2;
    CHECK_OK(fkt_personal_split_init(&a->split, &data, NULL, &a->spec.partition, 0.1, 1));
    CHECK_OK(fkt_network_problem_init(&a->q, &a->spec, &a->split, 0));
    assert_int_equal(a->q.problem.sites, SITES);
    a->q.backend = backend;
    a->q.site[1].n_train = BATCH - 2; /* a site that is smaller than a batch */
    a->q.epoch[1] = 1;
    CHECK_OK(fkt_rounds_init(&a->r, fkt_method_of(b), &a->q.problem, &a->spec.settings, a->q.start, 1));
}

static void run_clear(struct run *a)
{
    fkt_rounds_clear(&a->r);
    fkt_network_problem_clear(&a->q);
    fkt_personal_split_clear(&a->split);
}

/* Numbers from .. to - 1 of a and b moved from the start to nearly the same place: within `most` of the way. NaN
 * fails. */
static void check_part(const struct run *p, size_t from, size_t to, const float *a, const float *b, double most,
                       const char *what)
{
    double way = 0, apart = 0;
    for (size_t i = from; i < to; i++) {
        way += pow((double)a[i] - (double)p->q.start[i], 2);
        apart += pow((double)a[i] - (double)b[i], 2);
    }
    if (!(way > 0 && sqrt(apart / way) <= most))
        fail_msg("%s, numbers from %zu on: %.3g apart, of a way of %.3g", what, from, sqrt(apart), sqrt(way));
}

/* Statistics move much further than parameters: each against its own way. */
static void check_near(const struct run *p, const float *a, const float *b, double most, const char *what)
{
    check_part(p, 0, p->q.problem.parameters, a, b, most, what);
    check_part(p, p->q.problem.parameters, p->q.problem.state, a, b, most, what);
}

/* In bf16 a number that rounds the other way is 2^-8 off. Without pulls Per-FedAvg would be 0.6 off. */
static void check_method(const struct fkt_learner_backend *backend, enum fkt_baseline b, enum fkt_learn_dtype dtype)
{
    const double most = dtype == FKT_LEARN_DTYPE_BF16 ? 0.2 : 1e-3;
    const struct fkt_method *m = fkt_method_of(b);
    struct run fast, slow;
    run_init(&fast, backend, b, dtype);
    run_init(&slow, backend, b, dtype);
    fast.q.problem.gradient = no_gradient;
    slow.q.problem.descend = NULL;
    for (uint32_t t = 0; t < 2; t++) {
        CHECK_OK(m->round(&fast.r, t));
        CHECK_OK(m->round(&slow.r, t));
    }
    for (uint32_t i = 0; m->models && i < SITES; i++)
        check_near(&fast, fkt_rounds_model(&fast.r, i), fkt_rounds_model(&slow.r, i), most, m->name);
    if (m->common) check_near(&fast, fast.r.common, slow.r.common, most, m->name);
    run_clear(&fast);
    run_clear(&slow);
}

static void the_numbers_of_gradients(void **state)
{
    static const enum fkt_baseline methods[] = {FKT_BASELINE_LOCAL,  FKT_BASELINE_FEDAVG, FKT_BASELINE_PERFEDAVG,
                                                FKT_BASELINE_PFEDME, FKT_BASELINE_FEDAMP, FKT_BASELINE_FEDPHP};
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        check_method(&fkt_learner_ref, methods[i], FKT_LEARN_DTYPE_F32);
        if (methods[i] >= FKT_BASELINE_PFEDME)
            check_method(&fkt_learner_cuda, methods[i], FKT_LEARN_DTYPE_F32); /* the emulation is slow */
    }
    check_method(&fkt_learner_cuda, FKT_BASELINE_LOCAL, FKT_LEARN_DTYPE_BF16);
    check_method(&fkt_learner_cuda, FKT_BASELINE_PFEDME,
                 FKT_LEARN_DTYPE_BF16); /* with a pull, and an anchor that follows */
}

/* A backend that has no room for a part of what steps need. */
static struct fkt_learner_backend full;

static fkt_status no_room(void) { return fkt_fail(FKT_E_NOMEM, "the card is full"); }

static fkt_status full_hold(void *self, const struct fkt_held *images)
{
    (void)self, (void)images;
    return no_room();
}

static fkt_status full_write(void *self, enum fkt_learned what, uint32_t slot, const float *x)
{
    return what == FKT_AVERAGE ? no_room() : fkt_learner_ref.write(self, what, slot, x);
}

static fkt_status full_plan(void *self, const struct fkt_epoch_steps *e)
{
    (void)self, (void)e;
    return no_room();
}

static fkt_status full_train(void *self, uint64_t steps)
{
    (void)self, (void)steps;
    return no_room();
}

/* pFedMe holds images, has an anchor, plans and trains: without room for one of them it takes gradients, to the bit. */
static void gradients_where_memory_is_full(void **state)
{
    const struct fkt_method *m = fkt_method_of(FKT_BASELINE_PFEDME);
    uint64_t visits[2] = {0};
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct run fast, slow;
        full = fkt_learner_ref;
        if (k == 0) full.hold = full_hold;
        if (k == 1) full.write = full_write;
        if (k == 2) full.plan_epoch = full_plan;
        if (k == 3) full.train = full_train;
        run_init(&fast, &full, FKT_BASELINE_PFEDME, FKT_LEARN_DTYPE_F32);
        run_init(&slow, &fkt_learner_ref, FKT_BASELINE_PFEDME, FKT_LEARN_DTYPE_F32);
        slow.q.problem.descend = NULL;
        fast.spec.full = &visits[0];
        slow.spec.full = &visits[1];
        CHECK_OK(m->round(&fast.r, 0));
        CHECK_OK(m->round(&slow.r, 0));
        assert_int_equal(visits[0], SITES * (k + 1)); /* one for each site and kind of lack */
        assert_int_equal(visits[1], 0);
        for (uint32_t i = 0; i < SITES; i++)
            assert_memory_equal(fkt_rounds_model(&fast.r, i), fkt_rounds_model(&slow.r, i),
                                fast.q.problem.state * sizeof(float));
        run_clear(&fast);
        run_clear(&slow);
    }
}

/* Steps that differ in all their numbers: batches of two epochs, twice the same one, pulls, an anchor that follows a
 * part of the way, all of it, and not. */
static const struct fkt_local_step mixed[] = {{.batch = 4, .rate = 0.02},
                                              {.batch = 4, .rate = 0.03, .pull = 3, .follow = 0.5},
                                              {.batch = 1, .rate = 0.01, .pull = 20},
                                              {.batch = 0, .rate = 0.02, .follow = 1},
                                              {.batch = 5, .rate = 0.02, .pull = 1}};
enum { MIXED = sizeof mixed / sizeof *mixed, MANY = 70 };

static void check_steps(const struct fkt_learner_backend *backend, uint32_t site, const struct fkt_local_step *step,
                        uint64_t n)
{
    struct run a;
    float *x = NULL, *y = NULL, *u = NULL, *v = NULL, *g = NULL;
    int done;
    run_init(&a, backend, FKT_BASELINE_LOCAL, FKT_LEARN_DTYPE_F32);
    CHECK_OK(fkt_alloc(&x, a.q.problem.state));
    CHECK_OK(fkt_alloc(&y, a.q.problem.state));
    CHECK_OK(fkt_alloc(&u, a.q.problem.state));
    CHECK_OK(fkt_alloc(&v, a.q.problem.state));
    CHECK_OK(fkt_alloc(&g, a.q.problem.parameters));
    memcpy(x, a.q.start, a.q.problem.state * sizeof *x);
    memcpy(y, x, a.q.problem.state * sizeof *x);
    for (size_t i = 0; i < a.q.problem.state; i++) u[i] = v[i] = x[i] + 0.01F * (float)(i % 3);
    CHECK_OK(fkt_network_descend(&a.q, site, step, n, x, u, &done));
    assert_int_equal(done, 1);
    for (uint64_t k = 0; k < n; k++) {
        CHECK_OK(a.q.problem.gradient(&a.q, site, step[k].batch, y, g));
        fkt_local_step(&step[k], y, v, g, a.q.problem.parameters);
    }
    check_near(&a, x, y, 1e-4, "x");
    check_part(&a, 0, a.q.problem.parameters, u, v, 1e-4, "anchor"); /* it has no statistics */
    fkt_free(x);
    fkt_free(y);
    fkt_free(u);
    fkt_free(v);
    fkt_free(g);
    run_clear(&a);
}

static void steps_of_all_kinds(void **state)
{
    (void)state;
    for (uint32_t site = 0; site < 2; site++) {
        check_steps(&fkt_learner_ref, site, mixed, MIXED);
        check_steps(&fkt_learner_cuda, site, mixed, MIXED);
    }
}

/* More than one plan: weights and average stay where they are from one to the next. */
static void plans_of_many_steps(void **state)
{
    struct fkt_local_step many[MANY];
    (void)state;
    for (uint64_t k = 0; k < MANY; k++)
        many[k] = (struct fkt_local_step){.batch = k, .rate = 0.002, .pull = 2, .follow = k % 2 ? 0.1 : 0};
    check_steps(&fkt_learner_ref, 1, many, MANY);
}

/* Weights and anchor are then as they were. */
static void check_not_possible(struct run *a, const struct fkt_local_step *step, uint64_t n)
{
    float *x = NULL, *anchor = NULL;
    int done = 1;
    CHECK_OK(fkt_alloc(&x, a->q.problem.state));
    CHECK_OK(fkt_alloc(&anchor, a->q.problem.state));
    memcpy(x, a->q.start, a->q.problem.state * sizeof *x);
    memcpy(anchor, a->q.start, a->q.problem.state * sizeof *anchor);
    CHECK_OK(fkt_network_descend(&a->q, 0, step, n, x, anchor, &done));
    assert_int_equal(done, 0);
    assert_memory_equal(x, a->q.start, a->q.problem.state * sizeof *x);
    assert_memory_equal(anchor, a->q.start, a->q.problem.state * sizeof *anchor);
    fkt_free(x);
    fkt_free(anchor);
}

static int plans_with_room;

static fkt_status full_later(void *self, const struct fkt_epoch_steps *e)
{
    return plans_with_room-- > 0 ? fkt_learner_ref.plan_epoch(self, e) : no_room();
}

/* Steps of a first plan that were taken leave no trace when there is no room for the second one. */
static void no_trace_of_a_plan_that_was_the_last(void **state)
{
    struct fkt_local_step many[MANY];
    struct run a;
    (void)state;
    for (uint64_t k = 0; k < MANY; k++)
        many[k] = (struct fkt_local_step){.batch = k, .rate = 0.002, .pull = 2, .follow = 0.1};
    full = fkt_learner_ref;
    full.plan_epoch = full_later;
    plans_with_room = 1;
    run_init(&a, &full, FKT_BASELINE_LOCAL, FKT_LEARN_DTYPE_F32);
    check_not_possible(&a, many, MANY);
    assert_int_equal(plans_with_room, -1); /* two were asked for */
    run_clear(&a);
}

static void what_is_left_to_gradients(void **state)
{
    static const struct fkt_local_step odd[] = {{.rate = 0.1, .pull = 1, .follow = 1.5},
                                                {.rate = 0.1, .follow = 1e-9}, /* 1 - follow is 1 as a float */
                                                {.rate = 0.1, .follow = 1e-7}, /* and here it loses digits */
                                                {.rate = 0.1, .pull = 1e39},
                                                {.rate = 1e39},
                                                {.rate = NAN},
                                                {.rate = 0.1, .follow = NAN}};
    struct run a;
    (void)state;
    run_init(&a, &fkt_learner_onednn, FKT_BASELINE_LOCAL, FKT_LEARN_DTYPE_F32); /* holds no images */
    check_not_possible(&a, mixed, 1);
    run_clear(&a);
    run_init(&a, &fkt_learner_ref, FKT_BASELINE_LOCAL, FKT_LEARN_DTYPE_F32);
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) check_not_possible(&a, &odd[k], 1);
    check_not_possible(&a, mixed, 0);
    CHECK_OK(a.q.problem.teach(&a.q, a.q.start, 0.5, 2));
    a.q.views.flip = 1;
    check_not_possible(&a, mixed, 1);
    run_clear(&a);
}

static int at_once(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)self, (void)what, (void)done, (void)total;
    return 1;
}

static void stops_and_divergence(void **state)
{
    static const struct fkt_progress stop = {at_once, NULL};
    struct fkt_local_step wild[4];
    struct run a;
    float *x = NULL;
    int done;
    (void)state;
    for (int k = 0; k < 4; k++) wild[k] = (struct fkt_local_step){.rate = 1e30};
    run_init(&a, &fkt_learner_ref, FKT_BASELINE_LOCAL, FKT_LEARN_DTYPE_F32);
    CHECK_OK(fkt_alloc(&x, a.q.problem.state));
    memcpy(x, a.q.start, a.q.problem.state * sizeof *x);
    CHECK_STATUS(fkt_network_descend(&a.q, 2, wild, 4, x, NULL, &done), FKT_E_NUMERIC);
    assert_non_null(strstr(fkt_error_text(), "site 2: training diverged"));
    assert_string_equal(fkt_error_hint(), "use a smaller rate");
    a.spec.progress = &stop;
    CHECK_STATUS(fkt_network_descend(&a.q, 2, mixed, 1, x, NULL, &done), FKT_E_STOPPED);
    fkt_free(x);
    run_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_of_gradients),
        cmocka_unit_test(gradients_where_memory_is_full),
        cmocka_unit_test(steps_of_all_kinds),
        cmocka_unit_test(plans_of_many_steps),
        cmocka_unit_test(no_trace_of_a_plan_that_was_the_last),
        cmocka_unit_test(what_is_left_to_gradients),
        cmocka_unit_test(stops_and_divergence),
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, set_up, tear_down));
}
