/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs on a learner that holds the images, against the same learner step by step: weights, averages, figures and
 * checkpoints are the same to the bit, a run crosses from one to the other anywhere, and both diverge with the same
 * sentence. */
#include "tensor/safetensors.h"
#include "tests/support/scratch.h"
#include "tests/support/toy_learning.h"

enum { STEPS = 20, BATCH = 3, IMAGES = STEPS * BATCH + 1, CALLS = 64 };

enum { PLAIN = 0, OPTIONS, TAUGHT, ALL }; /* TAUGHT: OPTIONS, and a teacher's logits with the images */
static struct toy toy, held;

/* The plain loops, and what was asked of them. */
static unsigned holds, plans, trains;
static uint64_t chunk[CALLS];
static fkt_status hold_fails, plan_fails;

static fkt_status watched_hold(void *self, const struct fkt_held *images)
{
    holds++;
    if (hold_fails) return fkt_fail(hold_fails, "the images do not fit");
    return fkt_learner_ref.hold(self, images);
}

static fkt_status watched_plan(void *self, const struct fkt_epoch_steps *e)
{
    plans++;
    return plan_fails ? fkt_fail(plan_fails, "the plan does not fit") : fkt_learner_ref.plan_epoch(self, e);
}

static fkt_status watched_train(void *self, uint64_t steps)
{
    if (trains < CALLS) chunk[trains++] = steps;
    return fkt_learner_ref.train(self, steps);
}

static struct fkt_learner_backend watched;

static int reset(void **state)
{
    (void)state;
    watched = fkt_learner_ref;
    watched.hold = watched_hold;
    watched.plan_epoch = watched_plan;
    watched.train = watched_train;
    holds = plans = trains = 0;
    hold_fails = plan_fails = FKT_OK;
    toy.fresh = toy.taught = 0;
    toy_draw(&toy, 1, IMAGES);
    toy_draw(&held, 2, 9);
    return 0;
}

static struct fkt_trainer_spec spec_of(const struct fkt_model *start, int options)
{
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    r.batch = BATCH;
    if (options) {
        toy.fresh = 1;
        toy.taught = options == TAUGHT;
        if (toy.taught) r.share = 0.8;
        toy_draw(&toy, 1000, IMAGES);
        r.ema = 0.7;
        r.schedule = FKT_SCHEDULE_ONE_CYCLE;
        r.smoothing = 0.1;
        r.flip = 1;
        r.pad = 2;
    }
    spec = toy_spec(&toy, start, r);
    spec.held = &held.images;
    return spec;
}

/* Everything in two checkpoints, but the clock's columns. */
static void same_checkpoints(const char *a, const char *b)
{
    struct fkt_safetensors *x = NULL, *y = NULL;
    CHECK_OK(fkt_safetensors_open(&x, a));
    CHECK_OK(fkt_safetensors_open(&y, b));
    CHECK(fkt_safetensors_count(x) == fkt_safetensors_count(y));
    for (size_t i = 0; i < fkt_safetensors_count(x); i++) {
        const struct fkt_tensor *p = fkt_safetensors_at(x, i), *q = fkt_safetensors_find(y, p->name);
        CHECK(q && p->count == q->count && p->dtype == q->dtype);
        if (strcmp(p->name, "running") != 0 && strcmp(p->name, "history") != 0) {
            CHECK(!memcmp(p->data, q->data, (size_t)p->count * (p->dtype == FKT_F32 ? 4 : 8)));
            continue;
        }
        for (size_t k = 0; k < p->count; k++) {
            const int clock = p->name[0] == 'r' ? k == 1 : k % 10 >= 8;
            if (!clock) CHECK(!memcmp((const double *)p->data + k, (const double *)q->data + k, sizeof(double)));
        }
    }
    fkt_safetensors_free(x);
    fkt_safetensors_free(y);
}

static void same_end(const struct fkt_trainer *a, const struct fkt_trainer *b)
{
    size_t n, m;
    const struct fkt_epoch *h = fkt_trainer_history(a, &n), *g = fkt_trainer_history(b, &m);
    CHECK(n == m && n == a->recipe.epochs && a->done.step == b->done.step);
    for (size_t i = 0; i < n; i++) CHECK(toy_same_epoch(h[i], g[i]));
    for (int averaged = 0; averaged <= (a->recipe.ema > 0); averaged++) {
        struct fkt_model *x = NULL, *y = NULL;
        CHECK_OK(fkt_trainer_model(a, averaged, &x));
        CHECK_OK(fkt_trainer_model(b, averaged, &y));
        CHECK(toy_same(x, y));
        fkt_model_free(x);
        fkt_model_free(y);
    }
}

static struct fkt_trainer *trained(const struct fkt_trainer_spec *spec, const struct fkt_learner_backend *backend,
                                   const struct fkt_trainer_hooks *hooks)
{
    struct fkt_trainer *t = NULL;
    CHECK_OK(fkt_trainer_new_on(&t, spec, backend));
    CHECK_OK(fkt_trainer_run(t, hooks));
    return t;
}

static void a_planned_run_is_that_of_its_steps(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct scratch s;
    (void)state;
    scratch_init(&s);
    for (int options = PLAIN; options < ALL; options++) {
        const struct fkt_trainer_spec spec = spec_of(start, options);
        char one[256], two[256];
        struct fkt_trainer_hooks by_steps = {.checkpoint = one}, planned = {.checkpoint = two};
        struct fkt_trainer *a, *b;
        snprintf(one, sizeof one, "%s", scratch_path(&s, "a"));
        snprintf(two, sizeof two, "%s", scratch_path(&s, "b"));
        a = trained(&spec, toy_steps(), &by_steps);
        CHECK(!trains);
        b = trained(&spec, &watched, &planned);
        same_end(a, b);
        same_checkpoints(one, two);
        CHECK(plans == 2 && trains == 6 && chunk[0] == 8 && chunk[1] == 8 && chunk[2] == 4 && chunk[5] == 4);
        CHECK(holds == (options ? 2 : 1)); /* again where the source has others */
        holds = plans = trains = 0;
        fkt_trainer_free(a);
        fkt_trainer_free(b);
    }
    scratch_release(&s);
    fkt_model_free(start);
}

struct stopper {
    unsigned long long at;
};

static int stop_there(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)total;
    return !strcmp(what, "training") && done >= ((const struct stopper *)self)->at;
}

/* Stopped as soon as `after` steps are done on one learner, continued on the other. */
static void cross(const struct fkt_trainer_spec *spec, const struct fkt_trainer *want, uint64_t after,
                  const struct fkt_learner_backend *from, const struct fkt_learner_backend *to, const char *file)
{
    struct stopper stop = {after * BATCH};
    const struct fkt_progress p = {stop_there, &stop};
    const struct fkt_trainer_hooks hooks = {.checkpoint = file, .progress = &p};
    struct fkt_trainer *first = NULL, *second = NULL;
    uint64_t step;
    CHECK_OK(fkt_trainer_new_on(&first, spec, from));
    CHECK_STATUS(fkt_trainer_run(first, &hooks), FKT_E_STOPPED);
    CHECK(first->done.step >= after && first->done.step < after + 8);
    step = first->done.step;
    CHECK_OK(fkt_trainer_run(first, NULL)); /* in place */
    same_end(want, first);
    CHECK_OK(fkt_trainer_new_on(&second, spec, to));
    CHECK_OK(fkt_trainer_resume(second, file));
    CHECK(second->done.step == step);
    CHECK_OK(fkt_trainer_run(second, NULL));
    same_end(want, second);
    fkt_trainer_free(first);
    fkt_trainer_free(second);
}

static void a_run_crosses_from_one_to_the_other(void **state)
{
    static const uint64_t after[] = {11, 27};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    const struct fkt_trainer_spec spec = spec_of(start, TAUGHT);
    struct fkt_trainer *want = trained(&spec, toy_steps(), NULL);
    struct scratch s;
    (void)state;
    scratch_init(&s);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        cross(&spec, want, after[i], toy_steps(), &watched, scratch_path(&s, "run"));
        cross(&spec, want, after[i], &watched, toy_steps(), scratch_path(&s, "run"));
        cross(&spec, want, after[i], &watched, &watched, scratch_path(&s, "run"));
    }
    fkt_trainer_free(want);
    scratch_release(&s);
    fkt_model_free(start);
}

static void chunks_end_at_checkpoints(void **state)
{
    static const uint64_t want[] = {6, 6, 6, 2, 4, 6, 6, 4};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    const struct fkt_trainer_spec spec = spec_of(start, 0);
    struct fkt_trainer_hooks hooks = {.checkpoint_steps = 6};
    struct fkt_trainer t = {.epoch_steps = 1000};
    struct scratch s;
    (void)state;
    scratch_init(&s);
    fkt_trainer_free(trained(&spec, &watched, &hooks)); /* no file, no checkpoints */
    CHECK(trains == 6 && chunk[0] == 8);
    trains = 0;
    hooks.checkpoint = scratch_path(&s, "run");
    fkt_trainer_free(trained(&spec, &watched, &hooks));
    CHECK(trains == sizeof want / sizeof *want);
    assert_memory_equal(chunk, want, sizeof want);
    CHECK(fkt_trainer_chunk(&t, 1000, 0) == 20 && fkt_trainer_chunk(&t, 7, 0) == 7 &&
          fkt_trainer_chunk(&t, 1000, 15) == 15);
    t.done.step = 44;
    CHECK(fkt_trainer_chunk(&t, 956, 15) == 1 && fkt_trainer_chunk(&t, 956, 1) == 1);
    scratch_release(&s);
    fkt_model_free(start);
}

static void images_that_do_not_fit_come_in_batches(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    const struct fkt_trainer_spec spec = spec_of(start, 1);
    struct fkt_trainer *want = trained(&spec, toy_steps(), NULL), *t = NULL;
    (void)state;
    hold_fails = FKT_E_NOMEM;
    t = trained(&spec, &watched, NULL);
    CHECK(holds == 1 && !plans && !trains); /* asked once */
    same_end(want, t);
    fkt_trainer_free(t);
    hold_fails = FKT_OK;
    plan_fails = FKT_E_NOMEM;
    t = trained(&spec, &watched, NULL);
    CHECK(plans == 1 && !trains);
    same_end(want, t);
    fkt_trainer_free(t);
    plan_fails = FKT_OK;
    hold_fails = FKT_E_STATE; /* a lost card is an error */
    CHECK_OK(fkt_trainer_new_on(&t, &spec, &watched));
    CHECK_STATUS(fkt_trainer_run(t, NULL), FKT_E_STATE);
    assert_string_equal(fkt_error_text(), "the images do not fit");
    fkt_trainer_free(t);
    fkt_trainer_free(want);
    fkt_model_free(start);
}

static void both_diverge_with_the_same_sentence(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec = spec_of(start, 0);
    struct fkt_trainer *t = NULL;
    char want[512];
    (void)state;
    spec.recipe.rate = 1e6;
    spec.recipe.warmup = 0;
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_run(t, NULL), FKT_E_NUMERIC);
    snprintf(want, sizeof want, "%s", fkt_error_text());
    CHECK(strstr(want, "training diverged: the loss is not finite at step "));
    fkt_trainer_free(t);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, &watched));
    CHECK_STATUS(fkt_trainer_run(t, NULL), FKT_E_NUMERIC);
    assert_string_equal(fkt_error_text(), want);
    CHECK(trains > 0);
    CHECK_STATUS(fkt_trainer_run(t, NULL), FKT_E_STATE);
    fkt_trainer_free(t);
    fkt_model_free(start);
}

static void with_a_network_as_teacher_nothing_is_planned(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *teacher = toy_model(TOY_CLASSES, 9);
    struct fkt_trainer_spec spec = spec_of(start, 0);
    (void)state;
    spec.recipe.epochs = 1;
    spec.recipe.share = 0.5;
    spec.teacher = teacher;
    fkt_trainer_free(trained(&spec, &watched, NULL));
    CHECK(!holds && !plans && !trains);
    fkt_model_free(start);
    fkt_model_free(teacher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_planned_run_is_that_of_its_steps, reset),
        cmocka_unit_test_setup(a_run_crosses_from_one_to_the_other, reset),
        cmocka_unit_test_setup(chunks_end_at_checkpoints, reset),
        cmocka_unit_test_setup(images_that_do_not_fit_come_in_batches, reset),
        cmocka_unit_test_setup(both_diverge_with_the_same_sentence, reset),
        cmocka_unit_test_setup(with_a_network_as_teacher_nothing_is_planned, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
