/* SPDX-License-Identifier: Apache-2.0 */
/* Training with Adam: its steps are numbered from 1, a run that was interrupted ends with the bits of one that was not,
 * a checkpoint of the other optimiser is refused, and one that is older than the choice is one of SGD. */
#include "classifier/recipe.h"
#include "tensor/safetensors.h"
#include "tests/support/scratch.h"
#include "tests/support/toy_learning.h"

#include <unistd.h>

static struct toy toy;

static struct fkt_recipe adam_recipe(void)
{
    struct fkt_recipe r = toy_recipe();
    r.optimizer = FKT_LEARN_ADAM;
    r.rate = 0.01;
    r.beta1 = 0.8;
    r.beta2 = 0.95;
    r.ema = 0.7;
    return r;
}

static int stop_there(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)what;
    (void)total;
    return done >= *(const unsigned long long *)self; /* a learner that holds images reports fewer steps */
}

/* Trains on to the end, from a checkpoint where there is one. */
static struct fkt_model *ended(const struct fkt_trainer_spec *spec, const struct fkt_learner_backend *backend,
                               const char *checkpoint)
{
    struct fkt_trainer *t = NULL;
    struct fkt_model *m = NULL;
    CHECK_OK(fkt_trainer_new_on(&t, spec, backend));
    if (checkpoint) CHECK_OK(fkt_trainer_resume(t, checkpoint));
    CHECK_OK(fkt_trainer_run(t, NULL));
    CHECK_OK(fkt_trainer_model(t, 0, &m));
    fkt_trainer_free(t);
    return m;
}

static void stopped_at(const struct fkt_trainer_spec *spec, const struct fkt_learner_backend *backend, unsigned step,
                       const char *checkpoint)
{
    unsigned long long at = (unsigned long long)step * spec->recipe.batch;
    const struct fkt_progress p = {stop_there, &at};
    const struct fkt_trainer_hooks hooks = {.checkpoint = checkpoint, .progress = &p};
    struct fkt_trainer *t = NULL;
    CHECK_OK(fkt_trainer_new_on(&t, spec, backend));
    CHECK_STATUS(fkt_trainer_run(t, &hooks), FKT_E_STOPPED);
    fkt_trainer_free(t);
}

static void a_resumed_run_ends_with_the_same_bits(void **state)
{
    const struct fkt_learner_backend *const backends[] = {toy_steps(), &fkt_learner_ref, &fkt_learner_onednn};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    const struct fkt_trainer_spec spec = toy_spec(&toy, start, adam_recipe());
    struct scratch s;
    const char *file;
    (void)state;
    scratch_init(&s);
    file = scratch_path(&s, "run.checkpoint");
    toy_draw(&toy, 1, 26);
    for (int b = 0; b < 3; b++) {
        struct fkt_model *want = ended(&spec, backends[b], NULL);
        for (unsigned at = 1; at < 6; at += 2) {
            struct fkt_model *got;
            stopped_at(&spec, backends[b], at, file);
            got = ended(&spec, backends[b], file);
            CHECK(toy_same(want, got));
            fkt_model_free(got);
        }
        fkt_model_free(want);
    }
    fkt_model_free(start);
    scratch_release(&s);
}

/* Both moments are in the file, and matter: without them the run would go elsewhere. */
static void both_moments_are_stored(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    const struct fkt_trainer_spec spec = toy_spec(&toy, start, adam_recipe());
    struct fkt_safetensors *f = NULL;
    struct scratch s;
    size_t moments = 0, velocities = 0;
    (void)state;
    scratch_init(&s);
    toy_draw(&toy, 1, 26);
    stopped_at(&spec, toy_steps(), 2, scratch_path(&s, "run.checkpoint"));
    CHECK_OK(fkt_safetensors_open(&f, scratch_path(&s, "run.checkpoint")));
    for (size_t i = 0; i < fkt_safetensors_count(f); i++) {
        moments += !strncmp(fkt_safetensors_at(f, i)->name, "second.", 7);
        velocities += !strncmp(fkt_safetensors_at(f, i)->name, "velocity.", 9);
    }
    CHECK(moments > 0 && moments == velocities);
    assert_string_equal(fkt_safetensors_meta(f, "optimizer"), "adam");
    fkt_safetensors_free(f);
    fkt_model_free(start);
    scratch_release(&s);
}

static void check_refused(const struct fkt_trainer_spec *spec, const char *file, const char *says)
{
    struct fkt_trainer *t = NULL;
    CHECK_OK(fkt_trainer_new_on(&t, spec, &fkt_learner_ref));
    CHECK_STATUS(fkt_trainer_resume(t, file), FKT_E_MISMATCH);
    if (!strstr(fkt_error_text(), says)) fail_msg("'%s' does not say '%s'", fkt_error_text(), says);
    CHECK(!strchr(fkt_error_text(), '\n'));
    fkt_trainer_free(t);
}

static void the_other_optimizer_is_refused(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec adam = toy_spec(&toy, start, adam_recipe()), sgd = toy_spec(&toy, start, toy_recipe());
    struct scratch s;
    const char *file;
    (void)state;
    scratch_init(&s);
    file = scratch_path(&s, "run.checkpoint");
    toy_draw(&toy, 1, 26);
    stopped_at(&adam, toy_steps(), 2, file);
    check_refused(&sgd, file, "its optimizer is adam, and this run's is sgd");
    adam.recipe.beta2 = 0.5;
    check_refused(&adam, file, "its beta2 is 0.95");
    adam.recipe.beta2 = 0.95;
    unlink(file);
    stopped_at(&sgd, toy_steps(), 2, file);
    check_refused(&adam, file, "its optimizer is sgd, and this run's is adam");
    fkt_model_free(start);
    scratch_release(&s);
}

/* The same file as an earlier build wrote it: without the three texts. */
static void forget_the_optimizer(const char *from, const char *to, const char *const *facts, size_t n)
{
    struct fkt_safetensors *f = NULL;
    struct fkt_st_writer *w = NULL;
    CHECK_OK(fkt_safetensors_open(&f, from));
    CHECK_OK(fkt_st_writer_new(&w));
    for (size_t i = 0; i < fkt_safetensors_count(f); i++) {
        const struct fkt_tensor *x = fkt_safetensors_at(f, i);
        CHECK_OK(fkt_st_writer_add(w, x->name, x->dtype, x->rank, x->shape, x->data));
    }
    for (size_t i = 0; i < n + FKT_RECIPE_FIELDS; i++) {
        const char *key = i < n ? facts[i] : fkt_recipe_field_name(i - n);
        if (i >= n && fkt_recipe_field_is_new(i - n)) continue;
        CHECK_OK(fkt_st_writer_meta(w, key, fkt_safetensors_meta(f, key)));
    }
    CHECK_OK(fkt_st_writer_write(w, to, 0));
    fkt_st_writer_free(w);
    fkt_safetensors_free(f);
}

static void an_older_checkpoint_is_one_of_sgd(void **state)
{
    static const char *const facts[] = {"format",
                                        "checksum",
                                        "architecture",
                                        "stem",
                                        "image size",
                                        "number of classes",
                                        "checksum of the classes' names",
                                        "normalisation",
                                        "number of images",
                                        "checksum of the images",
                                        "set of images",
                                        "checksum of the held-out images",
                                        "checksum of the teacher",
                                        "checksum of the weights at the start"};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *want, *got;
    const struct fkt_trainer_spec adam = toy_spec(&toy, start, adam_recipe()),
                                  sgd = toy_spec(&toy, start, toy_recipe());
    struct scratch s;
    const char *file, *older;
    (void)state;
    scratch_init(&s);
    file = scratch_path(&s, "run.checkpoint");
    older = scratch_path(&s, "older.checkpoint");
    toy_draw(&toy, 1, 26);
    stopped_at(&sgd, toy_steps(), 2, file);
    forget_the_optimizer(file, older, facts, sizeof facts / sizeof *facts);
    want = ended(&sgd, toy_steps(), NULL);
    got = ended(&sgd, toy_steps(), older);
    CHECK(toy_same(want, got));
    check_refused(&adam, older, "its optimizer is sgd");
    fkt_model_free(want);
    fkt_model_free(got);
    fkt_model_free(start);
    scratch_release(&s);
}

/* The steps are those of nn/learner.h with the recipe's numbers, counted from 1 over all epochs. */
static void steps_are_numbered(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    const struct fkt_trainer_spec spec = toy_spec(&toy, start, adam_recipe());
    struct fkt_trainer *t = NULL;
    struct fkt_optimizer o;
    (void)state;
    toy_draw(&toy, 1, 26);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
    o = fkt_trainer_optimizer(t, 0);
    CHECK(o.kind == FKT_OPTIMIZER_ADAM && o.step == 1 && o.beta1 == 0.8F && o.beta2 == 0.95F && o.epsilon == 1e-8F);
    CHECK(o.rate == 0.01F && o.decay == 5e-4F);
    CHECK(fkt_trainer_optimizer(t, 4).step == 5); /* of the second epoch */
    fkt_trainer_free(t);
    fkt_model_free(start);
}

static void a_last_layer_is_tuned_by_sgd(void **state)
{
    struct fkt_model *m = toy_model(TOY_CLASSES, 5);
    const struct fkt_recipe r = adam_recipe();
    const float features[64] = {0};
    const uint32_t label = 0;
    (void)state;
    CHECK_STATUS(fkt_head_tune(m, &r, features, &label, 1), FKT_E_ARG);
    fkt_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resumed_run_ends_with_the_same_bits),
        cmocka_unit_test(both_moments_are_stored),
        cmocka_unit_test(the_other_optimizer_is_refused),
        cmocka_unit_test(an_older_checkpoint_is_one_of_sgd),
        cmocka_unit_test(steps_are_numbered),
        cmocka_unit_test(a_last_layer_is_tuned_by_sgd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
