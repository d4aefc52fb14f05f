/* SPDX-License-Identifier: Apache-2.0 */
/* A training run on the learner of nn/cuda, which holds the images: the same bits twice and after a stop, close to the
 * plain loops, and a checkpoint of either continues on the other. Held-out images are evaluated on the processor. */
#include "tests/support/cuda_case.h"
#include "tests/support/scratch.h"
#include "tests/support/toy_learning.h"

enum { STEPS = 11, BATCH = 3, IMAGES = STEPS * BATCH };

static struct toy toy, held;

static struct fkt_trainer_spec spec_of(const struct fkt_model *start)
{
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    r.epochs = 1;
    r.batch = BATCH;
    r.ema = 0.7;
    r.smoothing = 0.1;
    r.rate = 0.01;
    toy_draw(&toy, 1, IMAGES);
    toy_draw(&held, 2, 6);
    spec = toy_spec(&toy, start, r);
    spec.held = &held.images;
    return spec;
}

struct end {
    struct fkt_model *model[2]; /* weights, average */
    struct fkt_epoch epoch;
};

static int stop_there(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)total;
    return !strcmp(what, "training") && done >= *(const unsigned long long *)self;
}

/* A whole run; or stopped once `steps` steps are done on `first`, and continued from its checkpoint on `then`. */
static struct end train(const struct fkt_trainer_spec *spec, const struct fkt_learner_backend *first,
                        const struct fkt_learner_backend *then, unsigned long long steps)
{
    unsigned long long images = steps * BATCH;
    const struct fkt_progress p = {stop_there, &images};
    struct fkt_trainer *t = NULL;
    struct scratch s;
    struct end e;
    size_t n;
    scratch_init(&s);
    if (then) {
        const struct fkt_trainer_hooks hooks = {.checkpoint = scratch_path(&s, "run"), .progress = &p};
        CHECK_OK(fkt_trainer_new_on(&t, spec, first));
        CHECK_STATUS(fkt_trainer_run(t, &hooks), FKT_E_STOPPED);
        CHECK(t->done.step < STEPS);
        fkt_trainer_free(t);
        CHECK_OK(fkt_trainer_new_on(&t, spec, then));
        CHECK_OK(fkt_trainer_resume(t, hooks.checkpoint));
        CHECK(t->done.step >= steps);
    } else {
        CHECK_OK(fkt_trainer_new_on(&t, spec, first));
    }
    CHECK_OK(fkt_trainer_run(t, NULL));
    for (int averaged = 0; averaged < 2; averaged++) CHECK_OK(fkt_trainer_model(t, averaged, &e.model[averaged]));
    e.epoch = fkt_trainer_history(t, &n)[0];
    CHECK(n == 1);
    fkt_trainer_free(t);
    scratch_release(&s);
    return e;
}

static void end_release(struct end *e)
{
    fkt_model_free(e->model[0]);
    fkt_model_free(e->model[1]);
}

static void check_same(const struct end *a, const struct end *b)
{
    CHECK(toy_same_epoch(a->epoch, b->epoch));
    for (int k = 0; k < 2; k++) CHECK(toy_same(a->model[k], b->model[k]));
}

static void check_close(const struct end *a, const struct end *b)
{
    CHECK_NEAR(a->epoch.loss, b->epoch.loss, 1e-4);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < fkt_model_tensors(a->model[k]); i++) {
            const struct fkt_model_tensor x = fkt_model_tensor(a->model[k], i), y = fkt_model_tensor(b->model[k], i);
            double worst = 0, largest = 0;
            for (size_t j = 0; j < x.count; j++) {
                const double d = fabs((double)x.data[j] - y.data[j]);
                if (!(d <= worst)) worst = d; /* NaN stays */
                largest = fmax(largest, fabs((double)x.data[j]));
            }
            CHECK(worst <= 1e-3 * largest + 1e-5);
        }
}

static void a_run_repeats_and_agrees(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    const struct fkt_trainer_spec spec = spec_of(start);
    struct end card = train(&spec, &fkt_learner_cuda, NULL, 0), again = train(&spec, &fkt_learner_cuda, NULL, 0),
               plain = train(&spec, &fkt_learner_ref, NULL, 0);
    (void)state;
    check_same(&card, &again);
    check_close(&card, &plain);
    end_release(&card);
    end_release(&again);
    end_release(&plain);
    fkt_model_free(start);
}

static void a_checkpoint_goes_both_ways(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    const struct fkt_trainer_spec spec = spec_of(start);
    struct end card = train(&spec, &fkt_learner_cuda, NULL, 0),
               stopped = train(&spec, &fkt_learner_cuda, &fkt_learner_cuda, 4),
               to_host = train(&spec, &fkt_learner_cuda, toy_steps(), 4),
               to_card = train(&spec, toy_steps(), &fkt_learner_cuda, 3);
    (void)state;
    check_same(&card, &stopped);
    check_close(&card, &to_host);
    check_close(&card, &to_card);
    end_release(&card);
    end_release(&stopped);
    end_release(&to_host);
    end_release(&to_card);
    fkt_model_free(start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_repeats_and_agrees),
        cmocka_unit_test(a_checkpoint_goes_both_ways),
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
