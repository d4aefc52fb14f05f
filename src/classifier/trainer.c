/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.c - a training run: its parts, the checks before it begins, and its result. The steps are in epochs.c, its
 * checkpoints in checkpoint.c.
 *
 *   start, recipe, source, held, teacher -> fkt_trainer_new -> [resume] -> run -> model
 *
 * A run repeats to the bit on one machine: the order of an epoch depends on (seed, epoch), a view on (seed, epoch,
 * index), a learner on its threads. The clock affects only seconds and images per second.
 *
 * Memory beside the learner's: one batch of images as float (two with a teacher), one copy of the weights, and the
 * order of the images. */
#include "classifier/trainer.h"

#include "base/alloc.h"
#include "classifier/augment.h"
#include "classifier/checksum.h"
#include "classifier/model.h"
#include "nn/backends.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define IMAGES_MAX (1ULL << 40)
static const float norm_momentum = 0.1F; /* PyTorch's */

static fkt_status no_share(void)
{
    return fkt_fail_hint(FKT_E_ARG, "give it a share of the loss, such as 0.9", "the teacher's share is 0");
}

static fkt_status check_images(const struct fkt_images *p, const struct fkt_model *m, const char *what)
{
    const uint32_t size = fkt_model_size(m), classes = fkt_model_classes(m);
    if (p->n < 1) return fkt_fail(FKT_E_ARG, "there are no %s", what);
    if (p->n >= IMAGES_MAX) return fkt_fail(FKT_E_ARG, "%zu are too many %s", p->n, what);
    if (p->size != size)
        return fkt_fail_hint(FKT_E_ARG, "scale the images to the network's size, or make a network of their size",
                             "the %s have %" PRIu32 " px, and the network takes %" PRIu32 " px", what, p->size, size);
    for (size_t i = 0; i < p->n; i++)
        if (p->label[i] >= classes)
            return fkt_fail_hint(FKT_E_ARG, "use a network with as many classes as there are labels",
                                 "label %" PRIu32 " of image %zu of the %s is outside the network's %" PRIu32
                                 " classes (0 to %" PRIu32 ")",
                                 p->label[i], i, what, classes, classes - 1);
    return FKT_OK;
}

/* A teacher's logits come with the images of every epoch or of none, and a share of the loss needs a teacher. */
static fkt_status check_logits(const struct fkt_trainer *t, const struct fkt_images *p, uint32_t epoch)
{
    const size_t classes = fkt_model_classes(t->model);
    const double share = t->recipe.share;
    if (p->teacher && t->teacher)
        return fkt_fail(FKT_E_ARG, "there are two teachers: a model, and logits that come with the images");
    if (share > 0 && !t->teacher && !p->teacher)
        return fkt_fail(FKT_E_ARG, "the teacher's share is %g, but the images of epoch %" PRIu32 " have no teacher",
                        share, epoch + 1);
    if (!p->teacher) return FKT_OK;
    if (share == 0) return no_share();
    for (size_t i = 0; i < p->n * classes; i++)
        if (!isfinite(p->teacher[i]))
            return fkt_fail(FKT_E_NUMERIC, "the teacher's logits of image %zu of epoch %" PRIu32 " are not finite",
                            i / classes, epoch + 1);
    return FKT_OK;
}

fkt_status fkt_trainer_fetch(struct fkt_trainer *t, uint32_t epoch)
{
    struct fkt_images p = {0};
    fkt_status st;
    if (t->now.n && t->now_epoch == epoch) return FKT_OK;
    t->now = p; /* earlier images of the source are no longer valid */
    FKT_TRY(t->source.images(t->source.ctx, epoch, &p));
    FKT_TRY(check_images(&p, t->model, "images"));
    FKT_TRY(check_logits(t, &p, epoch));
    if (t->n && p.n != t->n) {
        st = fkt_fail(FKT_E_ARG, "epoch %" PRIu32 " has %zu images, and the first had %zu", epoch + 1, p.n, t->n);
        goto out;
    }
    t->now = p;
    t->now_epoch = epoch;
out:
    return st;
}

static fkt_status check_teacher(const struct fkt_trainer_spec *s)
{
    const struct fkt_model *m = s->start, *teacher = s->teacher;
    if (!teacher) return FKT_OK;
    if (s->recipe.share == 0) return no_share();
    if (fkt_model_size(teacher) != fkt_model_size(m))
        return fkt_fail(FKT_E_MISMATCH, "the teacher takes images of %" PRIu32 " px, and the network %" PRIu32 " px",
                        fkt_model_size(teacher), fkt_model_size(m));
    if (fkt_model_classes(teacher) != fkt_model_classes(m))
        return fkt_fail(FKT_E_MISMATCH, "the teacher has %" PRIu32 " classes, and the network %" PRIu32,
                        fkt_model_classes(teacher), fkt_model_classes(m));
    for (uint32_t k = 0; k < fkt_model_classes(m); k++)
        if (strcmp(fkt_model_class(teacher, k), fkt_model_class(m, k)) != 0)
            return fkt_fail(FKT_E_MISMATCH, "class %" PRIu32 " is '%s' for the teacher, and '%s' for the network", k,
                            fkt_model_class(teacher, k), fkt_model_class(m, k));
    return FKT_OK;
}

static uint64_t sum_of_images(const struct fkt_images *p)
{
    struct fkt_checksum c;
    fkt_checksum_init(&c);
    fkt_checksum_add(&c, p->label, p->n * sizeof *p->label);
    fkt_checksum_add(&c, p->rgb, p->n * p->size * p->size * 3);
    return fkt_checksum_value(&c);
}

static uint64_t sum_of_logits(const struct fkt_images *p, size_t classes)
{
    struct fkt_checksum c;
    fkt_checksum_init(&c);
    fkt_checksum_add(&c, p->teacher, p->n * classes * sizeof *p->teacher);
    return fkt_checksum_value(&c);
}

static uint64_t sum_of_weights(const struct fkt_model *m)
{
    struct fkt_checksum c;
    fkt_checksum_init(&c);
    for (size_t i = 0; i < fkt_model_tensors(m); i++) {
        struct fkt_model_tensor t = fkt_model_tensor(m, i);
        fkt_checksum_add(&c, t.data, t.count * sizeof *t.data);
    }
    return fkt_checksum_value(&c);
}

static fkt_status allocate(struct fkt_trainer *t)
{
    const size_t image = (size_t)3 * t->model->size * t->model->size, logits = t->model->n_classes;
    fkt_status st;
    FKT_TRY(fkt_alloc(&t->history, t->recipe.epochs));
    FKT_TRY(fkt_alloc(&t->order, t->n));
    FKT_TRY(fkt_alloc(&t->label, t->batch));
    FKT_TRY(fkt_alloc(&t->in, t->batch * image));
    FKT_TRY(fkt_alloc(&t->out, t->batch * logits));
    FKT_TRY(fkt_alloc(&t->slope, t->batch * logits));
    if (t->teacher) FKT_TRY(fkt_alloc(&t->teacher_in, t->batch * image));
    if (t->teacher || t->now.teacher) FKT_TRY(fkt_alloc(&t->teacher_out, t->batch * logits));
out:
    return st;
}

static fkt_status make_learner(struct fkt_trainer *t, const struct fkt_learner_backend *backend)
{
    const struct fkt_learner_spec spec = {
        .batch = t->batch,
        .height = t->model->size,
        .width = t->model->size,
        .precision = t->recipe.dtype == FKT_LEARN_DTYPE_BF16 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32,
        .threads = t->recipe.threads,
        .norm_momentum = norm_momentum,
        .device = t->recipe.device.index,
    };
    fkt_status st;
    FKT_TRY(fkt_learner_new(&t->learner, backend, &t->model->net, &spec));
    for (uint32_t s = 0; s < t->model->net.n_slots; s++)
        FKT_TRY(fkt_learner_write(t->learner, FKT_WEIGHT, s, t->model->array[s]));
out:
    return st;
}

fkt_status fkt_trainer_new_on(struct fkt_trainer **out, const struct fkt_trainer_spec *spec,
                              const struct fkt_learner_backend *backend)
{
    const struct fkt_model_origin unknown = {0};
    struct fkt_trainer *t = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_recipe_check(&spec->recipe));
    FKT_TRY(check_teacher(spec));
    if (spec->recipe.pad >= fkt_model_size(spec->start)) {
        st = fkt_fail(FKT_E_ARG, "shifts by up to %" PRIu32 " px move images of %" PRIu32 " px out of view",
                      spec->recipe.pad, fkt_model_size(spec->start));
        goto out;
    }
    if (spec->held) FKT_TRY(check_images(spec->held, spec->start, "held-out images"));
    FKT_TRY(fkt_alloc(&t, 1));
    t->recipe = spec->recipe;
    t->source = spec->source;
    t->teacher = spec->teacher;
    if (spec->held) t->held = *spec->held;
    FKT_TRY(fkt_model_copy(&t->model, spec->start));
    fkt_model_set_origin(t->model, &unknown); /* the origin of the images is unknown here */
    FKT_TRY(fkt_trainer_fetch(t, 0));
    t->n = t->now.n;
    t->batch = t->n < t->recipe.batch ? (uint32_t)t->n : t->recipe.batch;
    t->epoch_steps = t->n / t->batch;
    t->images_sum = sum_of_images(&t->now);
    if (t->held.n) t->held_sum = sum_of_images(&t->held);
    if (t->teacher) t->teacher_sum = sum_of_weights(t->teacher);
    else if (t->now.teacher) t->teacher_sum = sum_of_logits(&t->now, fkt_model_classes(t->model));
    t->start_sum = sum_of_weights(t->model);
    fkt_model_pixels(t->model, t->value);
    if (t->teacher) fkt_model_pixels(t->teacher, t->teacher_value);
    FKT_TRY(make_learner(t, backend));
    FKT_TRY(allocate(t));
    *out = t;
    t = NULL;
out:
    fkt_trainer_free(t);
    return st;
}

fkt_status fkt_trainer_new(struct fkt_trainer **out, const struct fkt_trainer_spec *spec)
{
    struct fkt_trainer_spec settled = *spec;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_device_resolve(&settled.recipe.device, NULL, 0));
    st = fkt_trainer_new_on(out, &settled, fkt_learner_for(settled.recipe.device));
out:
    return st;
}

void fkt_trainer_free(struct fkt_trainer *t)
{
    if (!t) return;
    fkt_learner_free(t->learner); /* it borrows the model's network */
    fkt_model_free(t->model);
    fkt_free(t->order);
    fkt_free(t->in);
    fkt_free(t->teacher_in);
    fkt_free(t->out);
    fkt_free(t->slope);
    fkt_free(t->teacher_out);
    fkt_free(t->label);
    fkt_free(t->history);
    fkt_free(t);
}

fkt_status fkt_trainer_read(const struct fkt_trainer *t, enum fkt_learned what, struct fkt_model *m)
{
    fkt_status st = FKT_OK;
    for (uint32_t s = 0; s < m->net.n_slots && st == FKT_OK; s++) {
        st = fkt_learner_read(t->learner, what, s, m->array[s]);
        for (size_t i = 0, n = fkt_slot_count(&m->net.slot[s]); i < n && st == FKT_OK; i++)
            if (!isfinite(m->array[s][i]))
                st = fkt_fail_hint(FKT_E_NUMERIC, "use a smaller rate",
                                   "training diverged: '%s' is not finite after step %" PRIu64, m->net.slot[s].name[0],
                                   t->done.step);
    }
    fkt_model_changed(m);
    return st;
}

int fkt_trainer_moved(const struct fkt_trainer *t) { return t->elsewhere; }
struct fkt_device fkt_trainer_device(const struct fkt_trainer *t) { return t->recipe.device; }

const struct fkt_epoch *fkt_trainer_history(const struct fkt_trainer *t, size_t *n)
{
    *n = t->done.epochs;
    return t->history;
}

fkt_status fkt_trainer_model(const struct fkt_trainer *t, int averaged, struct fkt_model **out)
{
    struct fkt_model *m = NULL;
    fkt_status st;
    *out = NULL;
    if (averaged && t->recipe.ema == 0) {
        st = fkt_fail(FKT_E_STATE, "the recipe has no average of the weights");
        goto out;
    }
    FKT_TRY(fkt_model_copy(&m, t->model));
    FKT_TRY(fkt_trainer_read(t, averaged ? FKT_AVERAGE : FKT_WEIGHT, m));
    *out = m;
    m = NULL;
out:
    fkt_model_free(m);
    return st;
}
