/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation of training, checkpoints, resuming and tuning in turn: FKT_E_NOMEM, nothing leaked, and the
 * existing checkpoint is unchanged. */
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"
#include "tests/support/toy_learning.h"

static struct toy toy, held;
static struct fkt_model *start, *teacher;
static struct fkt_trainer *saved;
static struct scratch scratch;
static const char *file;

static struct fkt_trainer_spec spec_of(double ema)
{
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    r.epochs = 1;
    r.batch = 2;
    r.ema = ema;
    r.share = 0.5;
    spec = toy_spec(&toy, start, r);
    spec.held = &held.images;
    spec.teacher = teacher;
    return spec;
}

static fkt_status train(void)
{
    const struct fkt_trainer_spec spec = spec_of(0);
    struct fkt_trainer *t = NULL;
    struct fkt_model *m = NULL;
    fkt_status st;
    FKT_TRY(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
    FKT_TRY(fkt_trainer_run(t, NULL));
    FKT_TRY(fkt_trainer_model(t, 0, &m));
out:
    fkt_model_free(m);
    fkt_trainer_free(t);
    return st;
}

static fkt_status save(void) { return fkt_trainer_save(saved, file); }

static fkt_status resume(void)
{
    const struct fkt_trainer_spec spec = spec_of(0.5);
    struct fkt_trainer *t = NULL;
    size_t n;
    fkt_status st;
    FKT_TRY(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
    FKT_TRY(fkt_trainer_resume(t, file));
    fkt_trainer_history(t, &n);
    CHECK(n == 1);
out:
    fkt_trainer_free(t);
    return st;
}

static fkt_status tune(void)
{
    static const float features[2 * 64] = {1, 2, 3};
    static const uint32_t label[2] = {0, 2};
    struct fkt_recipe r = toy_recipe();
    return fkt_head_tune(start, &r, features, label, 2);
}

static void training_survives_each_failure(void **state)
{
    (void)state;
    CHECK_OK(train()); /* now the teacher has its engines, and they are not counted as leaks */
    CHECK(sweep_allocations(train, NULL) > 100);
}

static void the_old_file_is_whole(fkt_status st)
{
    static unsigned calls;
    if (st == FKT_OK || calls++ % 16 == 0) CHECK_OK(resume()); /* each check costs a resume, so only some are made */
}

static void saving_keeps_the_old_file_until_the_new_one_is_whole(void **state)
{
    (void)state;
    CHECK(sweep_allocations(save, the_old_file_is_whole) > 100);
}

static void resuming_survives_each_failure(void **state)
{
    (void)state;
    CHECK(sweep_allocations(resume, NULL) > 50);
}

static void tuning_survives_each_failure(void **state)
{
    (void)state;
    CHECK(sweep_allocations(tune, NULL) > 10);
}

static int set_up(void **state)
{
    struct fkt_trainer_spec spec;
    (void)state;
    toy_draw(&toy, 1, 2);
    toy_draw(&held, 2, 2);
    start = toy_model(TOY_CLASSES, 1);
    teacher = toy_model(TOY_CLASSES, 2);
    scratch_init(&scratch);
    file = scratch_path(&scratch, "run.checkpoint");
    spec = spec_of(0.5);
    CHECK_OK(fkt_trainer_new_on(&saved, &spec, &fkt_learner_ref));
    CHECK_OK(fkt_trainer_run(saved, NULL));
    CHECK_OK(save());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fkt_trainer_free(saved);
    fkt_model_free(start);
    fkt_model_free(teacher);
    scratch_release(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_survives_each_failure),
        cmocka_unit_test(resuming_survives_each_failure),
        cmocka_unit_test(saving_keeps_the_old_file_until_the_new_one_is_whole),
        cmocka_unit_test(tuning_survives_each_failure),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
