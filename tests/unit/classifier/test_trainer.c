/* SPDX-License-Identifier: Apache-2.0 */
/* Training runs: they learn, they repeat to the bit, and what cannot be trained is refused before it begins. */
#include "base/clock.h"
#include "classifier/augment.h"
#include "classifier/model.h"
#include "images/procedural_scenes.h"
#include "nn/loss.h"
#include "tests/support/toy_learning.h"

static struct toy toy, held;

/* Numbers in the largest slot of ResNet-8. */
enum { SLOT_MAX = 64 * 64 * 9 };

static struct fkt_model *trained(struct fkt_trainer_spec spec, const struct fkt_learner_backend *backend)
{
    struct fkt_trainer *t = NULL;
    struct fkt_model *m = NULL;
    CHECK_OK(fkt_trainer_new_on(&t, &spec, backend));
    CHECK_OK(fkt_trainer_run(t, NULL));
    CHECK_OK(fkt_trainer_model(t, 0, &m));
    fkt_trainer_free(t);
    return m;
}

/* Of a run of two epochs of two steps. */
static void check_epoch(const struct fkt_trainer *t, const struct fkt_recipe *r, uint32_t e, double loss,
                        double accuracy)
{
    size_t n;
    const struct fkt_epoch *h = fkt_trainer_history(t, &n);
    CHECK(n == 2);
    CHECK_NEAR(h[e].loss, loss, 0);
    CHECK_NEAR(h[e].accuracy, accuracy, 0);
    CHECK_NEAR(h[e].rate, fkt_recipe_rate(r, 2 * e + 1, 2), 0);
}

/* The whole run again, step by step, from nothing but the learner, the loss, the teacher and the schedule. */
static void a_run_is_what_its_parts_say(void **state)
{
    enum { B = 8, IMAGE = 3 * TOY_SIDE * TOY_SIDE };
    static float in[B * IMAGE], out[B * TOY_CLASSES], slope[B * TOY_CLASSES], value[3][256], want[SLOT_MAX];
    static float taught_in[B * IMAGE], taught[B * TOY_CLASSES], taught_value[3][256];
    static double average[64][SLOT_MAX];
    const struct fkt_learner_spec ls = {.batch = B, .height = 8, .width = 8, .threads = 1, .norm_momentum = 0.1F};
    struct fkt_recipe r = toy_recipe();
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *teacher = toy_model(TOY_CLASSES, 8), *got, *got_average;
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    struct fkt_learner *l = NULL;
    double losses[2] = {0};
    size_t order[20], hits[2] = {0};
    (void)state;
    toy_draw(&toy, 1, 20); /* two steps an epoch; four images are left out */
    r.smoothing = 0.1;
    r.ema = 0.75;
    r.seed = 3;
    r.share = 0.3;
    r.temperature = 2;
    spec = toy_spec(&toy, start, r);
    spec.teacher = teacher;
    teacher->mean[0] = teacher->std[1] = 0.3F; /* it has its own normalisation */
    CHECK_OK(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
    CHECK_OK(fkt_trainer_run(t, NULL));
    CHECK_OK(fkt_trainer_model(t, 0, &got));
    CHECK_OK(fkt_trainer_model(t, 1, &got_average));
    CHECK(start->net.n_slots <= 64);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &start->net, &ls));
    for (uint32_t s = 0; s < start->net.n_slots; s++) CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, s, start->array[s]));
    fkt_model_pixels(start, value);
    fkt_model_pixels(teacher, taught_value);
    for (uint32_t step = 0; step < 4; step++) {
        const struct fkt_loss kind = {.smoothing = 0.1, .temperature = 2, .share = 0.3};
        const float rate = (float)fkt_recipe_rate(&r, step, 2);
        const struct fkt_optimizer sgd = {.rate = rate, .momentum = 0.9F, .decay = 5e-4F, .nesterov = 1};
        uint32_t label[B];
        double loss;
        size_t right;
        fkt_epoch_order(order, 20, r.seed, step / 2);
        for (size_t i = 0; i < B; i++) {
            const size_t k = order[step % 2 * B + i];
            const struct fkt_view v = fkt_view_of(&r, step / 2, k);
            fkt_view_apply(&v, value, toy.rgb + k * TOY_IMAGE, TOY_SIDE, in + i * IMAGE);
            fkt_view_apply(&v, taught_value, toy.rgb + k * TOY_IMAGE, TOY_SIDE, taught_in + i * IMAGE);
            label[i] = toy.label[k];
        }
        CHECK_OK(fkt_model_forward(teacher, taught_in, B, taught, 1, r.device));
        CHECK_OK(fkt_learner_forward(l, in, out));
        CHECK_OK(fkt_loss_softmax(&kind, out, label, taught, B, TOY_CLASSES, &loss, slope, &right));
        losses[step / 2] += loss;
        hits[step / 2] += right;
        CHECK_OK(fkt_learner_backward(l, slope));
        CHECK_OK(fkt_learner_step(l, &sgd));
        for (uint32_t s = 0; s < start->net.n_slots; s++) {
            CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, s, want));
            for (size_t i = 0; i < fkt_slot_count(&start->net.slot[s]); i++)
                average[s][i] = step ? 0.75 * average[s][i] + 0.25 * (double)want[i] : (double)want[i];
        }
    }
    for (uint32_t s = 0; s < start->net.n_slots; s++) {
        CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, s, want));
        CHECK(memcmp(want, got->array[s], fkt_slot_count(&start->net.slot[s]) * sizeof *want) == 0);
        for (size_t i = 0; i < fkt_slot_count(&start->net.slot[s]); i++)
            CHECK_NEAR(got_average->array[s][i], average[s][i], 1e-6);
    }
    CHECK(!toy_same(start, got));
    for (uint32_t e = 0; e < 2; e++) check_epoch(t, &r, e, losses[e] / 2, (double)hits[e] / (2 * B));
    fkt_trainer_free(t);
    fkt_learner_free(l);
    fkt_model_free(start);
    fkt_model_free(teacher);
    fkt_model_free(got);
    fkt_model_free(got_average);
}

static void the_seed_decides_every_bit(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *a, *b, *c;
    struct fkt_recipe r = toy_recipe();
    (void)state;
    toy_draw(&toy, 2, 24);
    a = trained(toy_spec(&toy, start, r), &fkt_learner_ref);
    b = trained(toy_spec(&toy, start, r), &fkt_learner_ref);
    r.seed = 2;
    c = trained(toy_spec(&toy, start, r), &fkt_learner_ref);
    CHECK(toy_same(a, b));
    CHECK(!toy_same(a, c));
    fkt_model_free(start);
    fkt_model_free(a);
    fkt_model_free(b);
    fkt_model_free(c);
}

struct seen {
    unsigned epochs, steps;
    unsigned long long done, total, stop_at;
    unsigned long long evaluated, stop_evaluating; /* of the held-out images */
    struct fkt_epoch last;
};

static fkt_status on_epoch(void *ctx, const struct fkt_epoch *e)
{
    struct seen *s = ctx;
    CHECK(e->epoch == ++s->epochs);
    s->last = *e;
    return FKT_OK;
}

static int on_step(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    struct seen *s = self;
    if (!strcmp(what, "evaluating")) {
        CHECK(done <= total);
        s->evaluated += done == total;
        return s->stop_evaluating && done >= s->stop_evaluating;
    }
    assert_string_equal(what, "training");
    CHECK(done > s->done);
    s->done = done;
    s->total = total;
    s->steps++;
    return s->stop_at && done >= s->stop_at;
}

static void hooks_are_called_for_every_step_and_epoch(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *m = NULL, *avg = NULL;
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    struct seen seen = {0};
    const struct fkt_progress p = {on_step, &seen};
    const struct fkt_trainer_hooks hooks = {.epoch = on_epoch, .ctx = &seen, .progress = &p};
    struct fkt_evaluation j;
    float logits[12 * TOY_CLASSES];
    const struct fkt_epoch *h;
    double began, took;
    size_t n = 9;
    (void)state;
    toy_draw(&toy, 3, 28);
    toy_draw(&held, 4, 12);
    r.ema = 0.5;
    spec = toy_spec(&toy, start, r);
    spec.held = &held.images;
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_model(t, 1, &avg), FKT_E_STATE);
    h = fkt_trainer_history(t, &n);
    CHECK(n == 0 && h);
    began = fkt_now();
    CHECK_OK(fkt_trainer_run(t, &hooks));
    took = fkt_now() - began;
    CHECK(seen.epochs == 2 && seen.steps == 6 && seen.done == 48 && seen.total == 48);
    h = fkt_trainer_history(t, &n);
    CHECK(n == 2 && toy_same_epoch(h[1], seen.last));
    CHECK(h[1].seconds > 0 && h[1].images_per_second > 0);
    CHECK(h[0].seconds + h[1].seconds <= took); /* no second counts twice */
    CHECK_NEAR(h[1].rate, fkt_recipe_rate(&r, 5, 3), 0);
    CHECK_OK(fkt_trainer_run(t, &hooks)); /* there is nothing left to do */
    CHECK(seen.steps == 6);
    /* The reported figures of the held-out images are those of the resulting model. */
    CHECK_OK(fkt_trainer_model(t, 0, &m));
    CHECK_OK(fkt_trainer_model(t, 1, &avg));
    CHECK(!toy_same(m, avg));
    CHECK_OK(fkt_evaluation_init(&j, TOY_CLASSES));
    CHECK_OK(fkt_model_predict(m, held.rgb, 12, logits, NULL, NULL));
    CHECK_OK(fkt_evaluation_add(&j, logits, held.label, 12));
    CHECK_NEAR(h[1].held_loss, fkt_evaluation_loss(&j), 0);
    CHECK_NEAR(h[1].held_accuracy, fkt_evaluation_accuracy(&j), 0);
    fkt_evaluation_clear(&j);
    CHECK_OK(fkt_evaluation_init(&j, TOY_CLASSES));
    CHECK_OK(fkt_model_predict(avg, held.rgb, 12, logits, NULL, NULL));
    CHECK_OK(fkt_evaluation_add(&j, logits, held.label, 12));
    CHECK_NEAR(h[1].ema_held_loss, fkt_evaluation_loss(&j), 0);
    fkt_evaluation_clear(&j);
    fkt_model_free(start);
    fkt_model_free(m);
    fkt_model_free(avg);
    fkt_trainer_free(t);
}

static void without_held_out_images_their_figures_are_nan(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *m = NULL;
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    struct fkt_trainer *t = NULL;
    const struct fkt_epoch *h;
    size_t n;
    (void)state;
    toy_draw(&toy, 3, 8);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
    CHECK_OK(fkt_trainer_run(t, NULL));
    h = fkt_trainer_history(t, &n);
    CHECK(n == 2 && isnan(h[0].held_loss) && isnan(h[0].held_accuracy) && isnan(h[0].ema_held_loss));
    CHECK(isfinite(h[0].loss) && h[0].accuracy >= 0 && h[0].accuracy <= 1);
    CHECK_STATUS(fkt_trainer_model(t, 1, &m), FKT_E_STATE);
    CHECK(m == NULL);
    fkt_trainer_free(t);
    fkt_model_free(start);
}

/* Fewer images than a batch are one batch of all of them: five steps for five epochs. */
static void a_batch_larger_than_the_set_is_the_set(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *a, *b;
    struct fkt_recipe r = toy_recipe();
    struct seen seen = {0};
    const struct fkt_progress p = {on_step, &seen};
    const struct fkt_trainer_hooks hooks = {.progress = &p};
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    (void)state;
    toy_draw(&toy, 3, 6);
    r.epochs = 5;
    r.batch = 6;
    a = trained(toy_spec(&toy, start, r), &fkt_learner_ref);
    r.batch = 64;
    b = trained(toy_spec(&toy, start, r), &fkt_learner_ref);
    CHECK(toy_same(a, b));
    spec = toy_spec(&toy, start, r);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
    CHECK_OK(fkt_trainer_run(t, &hooks));
    CHECK(seen.steps == 5 && seen.total == 30);
    fkt_trainer_free(t);
    fkt_model_free(start);
    fkt_model_free(a);
    fkt_model_free(b);
}

static void refused(struct fkt_trainer_spec spec, fkt_status want, const char *a, const char *b)
{
    struct fkt_trainer *t = NULL;
    CHECK_STATUS(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref), want);
    CHECK(t == NULL);
    if (!strstr(fkt_error_text(), a) || !strstr(fkt_error_text(), b))
        fail_msg("'%s' does not say '%s' and '%s'", fkt_error_text(), a, b);
}

static void what_cannot_be_trained_is_refused_at_once(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec good = toy_spec(&toy, start, toy_recipe()), bad;
    struct fkt_images wrong;
    (void)state;
    toy_draw(&toy, 3, 20);
    toy_draw(&held, 3, 20);
    toy.label[17] = 3;
    refused(good, FKT_E_ARG, "label 3 of image 17", "outside the network's 3 classes");
    toy.label[17] = UINT32_MAX;
    refused(good, FKT_E_ARG, "label 4294967295 of image 17", "3 classes");
    toy.label[17] = 0;
    toy.images.size = 16;
    refused(good, FKT_E_ARG, "images have 16 px", "takes 8 px");
    toy.images.size = TOY_SIDE;
    toy.images.n = 0;
    refused(good, FKT_E_ARG, "there are no images", "");
    toy.images.n = 20;
    bad = good;
    bad.recipe.pad = TOY_SIDE;
    refused(bad, FKT_E_ARG, "shifts by up to 8 px", "images of 8 px out of view");
    bad = good;
    bad.recipe.epochs = 0;
    refused(bad, FKT_E_ARG, "epochs is 0", "");
    bad = good;
    wrong = held.images;
    bad.held = &wrong;
    wrong.size = 9;
    refused(bad, FKT_E_ARG, "held-out images have 9 px", "");
    wrong.size = TOY_SIDE;
    held.label[1] = 7;
    refused(bad, FKT_E_ARG, "label 7 of image 1 of the held-out images", "");
    bad = good;
    bad.recipe.share = 0.5;
    refused(bad, FKT_E_ARG, "share is 0.5", "no teacher");
    fkt_model_free(start);
}

static void a_teacher_must_know_the_same_classes(void **state)
{
    const char *const others[] = {"red", "green", "violet"};
    struct fkt_model_spec spec = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = 8, .classes = others, .n_classes = 3};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *four = toy_model(4, 5), *violet = NULL, *large = NULL;
    struct fkt_trainer_spec s = toy_spec(&toy, start, toy_recipe());
    (void)state;
    toy_draw(&toy, 3, 20);
    CHECK_OK(fkt_model_new(&violet, &spec));
    spec.size = 16;
    CHECK_OK(fkt_model_new(&large, &spec));
    s.teacher = start;
    refused(s, FKT_E_ARG, "teacher's share is 0", "");
    s.recipe.share = 1;
    s.teacher = four;
    refused(s, FKT_E_MISMATCH, "the teacher has 4 classes", "the network 3");
    s.teacher = violet;
    refused(s, FKT_E_MISMATCH, "class 2 is 'violet' for the teacher", "'blue' for the network");
    s.teacher = large;
    refused(s, FKT_E_MISMATCH, "images of 16 px", "8 px");
    fkt_model_free(start);
    fkt_model_free(four);
    fkt_model_free(violet);
    fkt_model_free(large);
}

/* A source whose later epochs differ from the first. */
static fkt_status turning_source(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    struct toy *t = ctx;
    *out = t->images;
    if (epoch == 1 && t->seed == 1) out->n--;
    if (epoch == 1 && t->seed == 2) t->label[5] = 9;
    if (epoch == 1 && t->seed == 3) return fkt_fail(FKT_E_IO, "the well is dry");
    return FKT_OK;
}

static void a_source_is_watched_in_every_epoch(void **state)
{
    static const struct {
        fkt_status st;
        const char *text;
    } want[] = {{FKT_E_ARG, "epoch 2 has 7 images, and the first had 8"},
                {FKT_E_ARG, "label 9 of image 5"},
                {FKT_E_IO, "the well is dry"}};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    (void)state;
    spec.source.images = turning_source;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct fkt_trainer *t = NULL;
        size_t n;
        toy_draw(&toy, seed, 8);
        CHECK_OK(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
        CHECK_STATUS(fkt_trainer_run(t, NULL), want[seed - 1].st);
        if (!strstr(fkt_error_text(), want[seed - 1].text)) fail_msg("%s", fkt_error_text());
        fkt_trainer_history(t, &n);
        CHECK(n == 1);
        fkt_trainer_free(t);
    }
    fkt_model_free(start);
}

static void a_run_that_diverges_says_where(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    (void)state;
    toy_draw(&toy, 3, 20);
    r.rate = 1e5;
    r.decay = 0.9;
    r.epochs = 20;
    r.schedule = FKT_SCHEDULE_CONSTANT;
    spec = toy_spec(&toy, start, r);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
    CHECK_STATUS(fkt_trainer_run(t, NULL), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "training diverged: the loss is not finite at step ") &&
          strstr(fkt_error_text(), "in epoch ") && strstr(fkt_error_hint(), "smaller rate"));
    CHECK_STATUS(fkt_trainer_run(t, NULL), FKT_E_STATE);
    fkt_trainer_free(t);
    fkt_model_free(start);
}

static void a_stop_without_a_checkpoint_can_go_on_in_place(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *want, *got = NULL;
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    struct fkt_trainer *t = NULL;
    struct seen seen = {.stop_at = 24};
    const struct fkt_progress p = {on_step, &seen};
    const struct fkt_trainer_hooks hooks = {.progress = &p};
    (void)state;
    toy_draw(&toy, 3, 20);
    want = trained(spec, toy_steps());
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_run(t, &hooks), FKT_E_STOPPED);
    CHECK(strstr(fkt_error_text(), "stopped while training, after step 3 of 4"));
    CHECK_OK(fkt_trainer_run(t, NULL));
    CHECK_OK(fkt_trainer_model(t, 0, &got));
    CHECK(toy_same(want, got));
    fkt_trainer_free(t);
    fkt_model_free(start);
    fkt_model_free(want);
    fkt_model_free(got);
}

/* With an average the held-out images are evaluated twice: the stop is requested in the second pass. */
static void a_stop_while_held_out_images_are_evaluated_can_go_on(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *want, *got = NULL;
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    struct seen seen = {.stop_evaluating = 20};
    const struct fkt_progress p = {on_step, &seen};
    const struct fkt_trainer_hooks hooks = {.progress = &p};
    const struct fkt_epoch *h;
    size_t n;
    (void)state;
    toy_draw(&toy, 3, 20);
    toy_draw(&held, 4, 12);
    r.ema = 0.5;
    spec = toy_spec(&toy, start, r);
    spec.held = &held.images;
    want = trained(spec, &fkt_learner_ref);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, &fkt_learner_ref));
    CHECK_STATUS(fkt_trainer_run(t, &hooks), FKT_E_STOPPED);
    CHECK(strstr(fkt_error_text(), "stopped while training, after step 2 of 4"));
    fkt_trainer_history(t, &n);
    CHECK(n == 0 && seen.epochs == 0);
    seen.stop_evaluating = 0;
    seen.evaluated = 0;
    CHECK_OK(fkt_trainer_run(t, &hooks));
    h = fkt_trainer_history(t, &n);
    CHECK(n == 2 && seen.evaluated == 2);
    CHECK(h[0].held_loss > 0 && h[0].ema_held_loss > 0);
    CHECK_OK(fkt_trainer_model(t, 0, &got));
    CHECK(toy_same(want, got));
    fkt_trainer_free(t);
    fkt_model_free(start);
    fkt_model_free(want);
    fkt_model_free(got);
}

/* The labels are wrong on purpose, and the teacher's share is all of the loss: the student converges to the teacher. */
static void a_teacher_with_all_of_the_loss_is_matched(void **state)
{
    static float t_logits[48 * TOY_CLASSES], p_logits[48 * TOY_CLASSES];
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *teacher, *learner_case;
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    size_t agree = 0, taught = 0;
    (void)state;
    toy_draw(&toy, 3, 48);
    r.epochs = 4;
    teacher = trained(toy_spec(&toy, start, r), &fkt_learner_ref);
    for (size_t i = 0; i < 48; i++) toy.label[i] = (toy.label[i] + 1) % TOY_CLASSES;
    fkt_model_free(start);
    start = toy_model(TOY_CLASSES, 6);
    r.share = 1;
    r.temperature = 2;
    spec = toy_spec(&toy, start, r);
    spec.teacher = teacher;
    learner_case = trained(spec, &fkt_learner_ref);
    CHECK_OK(fkt_model_predict(teacher, toy.rgb, 48, t_logits, NULL, NULL));
    CHECK_OK(fkt_model_predict(learner_case, toy.rgb, 48, p_logits, NULL, NULL));
    for (size_t i = 0; i < 48; i++) {
        const float *a = t_logits + i * TOY_CLASSES, *b = p_logits + i * TOY_CLASSES;
        size_t x = 0, y = 0;
        for (size_t k = 1; k < TOY_CLASSES; k++) {
            if (a[k] > a[x]) x = k;
            if (b[k] > b[y]) y = k;
        }
        agree += x == y;
        taught += x == i % TOY_CLASSES;
    }
    if (taught < 44 || agree < 44)
        fail_msg("the teacher is right on %zu of 48, the pupil agrees on %zu", taught, agree);
    fkt_model_free(start);
    fkt_model_free(teacher);
    fkt_model_free(learner_case);
}

static fkt_status plain_source(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    (void)epoch;
    *out = *(const struct fkt_images *)ctx;
    return FKT_OK;
}

/* ResNet-8, 40 demo images a class, ten epochs: at least 75 % of 200 unseen ones right (82 with this seed), where
 * guessing gives 10. */
static void the_demo_classes_are_learned(void **state)
{
    enum { K = FKT_DEMO_CLASSES, N = 40 * K, T = 20 * K, BYTES = FKT_DEMO_SIDE * FKT_DEMO_SIDE * 3 };
    const char *names[K];
    struct fkt_model_spec ms = {FKT_ARCHITECTURE_RESNET8, .size = FKT_DEMO_SIDE, .classes = names, .n_classes = K};
    struct fkt_images train = {.n = N, .size = FKT_DEMO_SIDE}, test = {.n = T, .size = FKT_DEMO_SIDE};
    uint8_t *rgb = malloc((size_t)(N + T) * BYTES);
    uint32_t *label = malloc((N + T) * sizeof *label);
    struct fkt_trainer_spec spec = {.source = {.images = plain_source, .ctx = &train}, .held = &test};
    struct fkt_model *start = NULL;
    struct fkt_trainer *t = NULL;
    const struct fkt_epoch *h;
    size_t n;
    (void)state;
    for (unsigned k = 0; k < K; k++) names[k] = fkt_demo_class(k);
    for (unsigned i = 0; i < N + T; i++) {
        label[i] = i % K;
        fkt_demo_draw(rgb + (size_t)i * BYTES, i >= N, i % K, i / K);
    }
    train.rgb = rgb;
    train.label = label;
    test.rgb = rgb + (size_t)N * BYTES;
    test.label = label + N;
    CHECK_OK(fkt_model_new(&start, &ms));
    fkt_recipe_default(&spec.recipe);
    spec.recipe.epochs = 10;
    spec.recipe.batch = 20;
    spec.recipe.threads = 1;
    spec.recipe.pad = 2;
    spec.recipe.rate = 0.1;
    spec.start = start;
    CHECK_OK(fkt_trainer_new(&t, &spec));
    CHECK_OK(fkt_trainer_run(t, NULL));
    h = fkt_trainer_history(t, &n);
    CHECK(n == 10 && h[9].held_accuracy >= 0.75);
    CHECK(h[9].loss < h[0].loss / 2);
    fkt_trainer_free(t);
    fkt_model_free(start);
    free(rgb);
    free(label);
}

/* A trainer does not know the origin of images: claims of its starting model are dropped. */
static void what_was_trained_claims_nothing(void **state)
{
    const struct fkt_model_origin claim = {.is_private = 1, .epsilon = 1, .delta = 1e-5, .data = "a release"};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *m = NULL;
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    (void)state;
    r.ema = 0.9;
    toy_draw(&toy, 1, 16);
    fkt_model_set_origin(start, &claim);
    spec = toy_spec(&toy, start, r);
    CHECK_OK(fkt_trainer_new(&t, &spec));
    CHECK_OK(fkt_trainer_run(t, NULL));
    for (int averaged = 0; averaged < 2; averaged++) {
        CHECK_OK(fkt_trainer_model(t, averaged, &m));
        assert_int_equal(fkt_model_origin(m)->is_private, 0);
        CHECK_NEAR(fkt_model_origin(m)->epsilon, 0, 0);
        assert_string_equal(fkt_model_origin(m)->data, "");
        fkt_model_free(m);
    }
    assert_int_equal(fkt_model_origin(start)->is_private, 1);
    fkt_trainer_free(t);
    fkt_model_free(start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_what_its_parts_say),
        cmocka_unit_test(the_seed_decides_every_bit),
        cmocka_unit_test(hooks_are_called_for_every_step_and_epoch),
        cmocka_unit_test(without_held_out_images_their_figures_are_nan),
        cmocka_unit_test(a_batch_larger_than_the_set_is_the_set),
        cmocka_unit_test(what_cannot_be_trained_is_refused_at_once),
        cmocka_unit_test(a_teacher_must_know_the_same_classes),
        cmocka_unit_test(a_source_is_watched_in_every_epoch),
        cmocka_unit_test(a_run_that_diverges_says_where),
        cmocka_unit_test(a_stop_without_a_checkpoint_can_go_on_in_place),
        cmocka_unit_test(a_stop_while_held_out_images_are_evaluated_can_go_on),
        cmocka_unit_test(a_teacher_with_all_of_the_loss_is_matched),
        cmocka_unit_test(what_was_trained_claims_nothing),
        cmocka_unit_test(the_demo_classes_are_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
