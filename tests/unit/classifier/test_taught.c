/* SPDX-License-Identifier: Apache-2.0 */
/* A teacher whose logits come with the images: the same bits as a network that sees the whole images; what is refused;
 * a checkpoint knows it. */
#include "tests/support/scratch.h"
#include "tests/support/toy_learning.h"

enum { IMAGES = 24 };

static struct toy toy;

static struct fkt_recipe taught_recipe(void)
{
    struct fkt_recipe r = toy_recipe();
    r.pad = 0;
    r.flip = 0;
    r.share = 0.6;
    r.temperature = 2;
    return r;
}

static struct fkt_model *trained(struct fkt_trainer_spec spec)
{
    struct fkt_trainer *t = NULL;
    struct fkt_model *m = NULL;
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_OK(fkt_trainer_run(t, NULL));
    CHECK_OK(fkt_trainer_model(t, 0, &m));
    fkt_trainer_free(t);
    return m;
}

static void refused(struct fkt_trainer_spec spec, fkt_status want, const char *text)
{
    struct fkt_trainer *t = NULL;
    CHECK_STATUS(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref), want);
    CHECK(t == NULL);
    if (!strstr(fkt_error_text(), text)) fail_msg("'%s' does not say '%s'", fkt_error_text(), text);
}

static void logits_are_those_of_a_network_that_sees_whole_images(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *teacher = toy_model(TOY_CLASSES, 8), *want, *got;
    struct fkt_trainer_spec spec;
    (void)state;
    toy_draw(&toy, 1, IMAGES);
    spec = toy_spec(&toy, start, taught_recipe());
    spec.teacher = teacher;
    want = trained(spec);
    spec.teacher = NULL;
    CHECK_OK(fkt_model_predict(teacher, toy.rgb, IMAGES, toy.teacher, NULL, NULL));
    toy.images.teacher = toy.teacher;
    got = trained(spec);
    CHECK(toy_same(want, got));
    fkt_model_free(got);
    toy.teacher[7] += 1;
    got = trained(spec);
    CHECK(!toy_same(want, got));
    fkt_model_free(got);
    fkt_model_free(want);
    fkt_model_free(start);
    fkt_model_free(teacher);
}

static void what_is_refused(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec;
    (void)state;
    toy_draw(&toy, 1, IMAGES);
    spec = toy_spec(&toy, start, taught_recipe());
    refused(spec, FKT_E_ARG, "the teacher's share is 0.6, but the images of epoch 1 have no teacher");
    toy.images.teacher = toy.teacher;
    toy.teacher[7] = NAN;
    refused(spec, FKT_E_NUMERIC, "the teacher's logits of image 2 of epoch 1 are not finite");
    toy.teacher[7] = 0;
    spec.teacher = start;
    refused(spec, FKT_E_ARG, "there are two teachers");
    spec.teacher = NULL;
    spec.recipe.share = 0;
    refused(spec, FKT_E_ARG, "the teacher's share is 0");
    fkt_model_free(start);
}

static fkt_status forgets(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    *out = *(const struct fkt_images *)ctx;
    if (epoch) out->teacher = NULL;
    return FKT_OK;
}

static void every_epoch_has_a_teacher(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    (void)state;
    toy_draw(&toy, 1, IMAGES);
    toy.images.teacher = toy.teacher;
    spec = toy_spec(&toy, start, taught_recipe());
    spec.source = (struct fkt_image_source){.images = forgets, .ctx = &toy.images, .anew = 1};
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_run(t, NULL), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "the images of epoch 2 have no teacher"));
    fkt_trainer_free(t);
    fkt_model_free(start);
}

static void a_checkpoint_knows_its_teacher(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    struct scratch s;
    (void)state;
    scratch_init(&s);
    toy_draw(&toy, 1, IMAGES);
    toy.images.teacher = toy.teacher;
    spec = toy_spec(&toy, start, taught_recipe());
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_OK(fkt_trainer_save(t, scratch_path(&s, "run")));
    fkt_trainer_free(t);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_OK(fkt_trainer_resume(t, scratch_path(&s, "run")));
    fkt_trainer_free(t);
    toy.teacher[5] += 1;
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_resume(t, scratch_path(&s, "run")), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "checksum of the teacher"));
    fkt_trainer_free(t);
    scratch_release(&s);
    fkt_model_free(start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_a_network_that_sees_whole_images),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(every_epoch_has_a_teacher),
        cmocka_unit_test(a_checkpoint_knows_its_teacher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
