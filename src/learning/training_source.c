/* SPDX-License-Identifier: Apache-2.0 */
/* training_source.c - the images of each epoch: of a release or of a dataset, real ones mixed in, public ones beside
 * them, some held out; a teacher's logits for each.
 *
 * The source keeps one epoch in memory. Fresh images are numbered through all epochs, so that any epoch can be drawn
 * without those before it, and the held-out ones have numbers that no epoch reaches. */
#include "fedkt/training_source.h"

#include "base/alloc.h"
#include "base/status.h"
#include "learning/blend.h"
#include "learning/draw_ahead.h"
#include "learning/public_set.h"
#include "pipeline/provenance.h"
#include "pipeline/release.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct fkt_training_source {
    struct fkt_training_source_spec spec; /* its data, folder and order are not used after fkt_training_source_new */
    struct fkt_training_set set;          /* the images of `epoch` */
    struct fkt_training_set mix;          /* kept when each epoch is drawn again; n 0: none */
    struct fkt_training_set held;
    struct fkt_public_set shared;  /* public images; set.n 0: none */
    struct fkt_images held_images; /* of held; n 0: none */
    uint32_t *order;               /* (K) where label k goes; NULL: labels stay */
    uint32_t epoch;
    int mixed;
    int blended; /* blend > 0: set has its blends */
    struct fkt_ahead ahead;
};

void fkt_training_source_free(struct fkt_training_source *s)
{
    if (!s) return;
    fkt_ahead_end(&s->ahead);
    fkt_training_set_clear(&s->set);
    fkt_training_set_clear(&s->mix);
    fkt_training_set_clear(&s->held);
    fkt_public_set_clear(&s->shared);
    fkt_free(s->order);
    fkt_free(s);
}

/* ---- order of classes ---- */

/* The index of class `name` in the model; the number of its classes if it has no such name. */
static uint32_t number_in(const struct fkt_model *m, const char *name)
{
    uint32_t k = 0;
    while (k < fkt_model_classes(m) && strcmp(fkt_model_class(m, k), name) != 0) k++;
    return k;
}

/* Sets s->order from the names of s->set, if the model has the same ones. */
static fkt_status find_order(struct fkt_training_source *s, const struct fkt_model *m)
{
    const struct fkt_training_set *p = &s->set;
    uint32_t *to = NULL;
    fkt_status st = FKT_OK;
    if (!m || !fkt_model_named(m) || p->n_classes != fkt_model_classes(m)) return FKT_OK;
    FKT_TRY(fkt_alloc(&to, p->n_classes));
    for (uint32_t k = 0; k < p->n_classes; k++) {
        to[k] = number_in(m, p->classes[k]);
        if (to[k] == p->n_classes) goto out;
    }
    s->order = to;
    to = NULL;
out:
    fkt_free(to);
    return st;
}

static fkt_status put_in_order(const struct fkt_training_source *s, struct fkt_training_set *p)
{
    char **names = NULL;
    fkt_status st = FKT_OK;
    if (!s->order) return FKT_OK;
    FKT_TRY(fkt_alloc(&names, p->n_classes));
    for (uint32_t k = 0; k < p->n_classes; k++) names[s->order[k]] = p->classes[k];
    for (size_t i = 0; i < p->n; i++) p->label[i] = s->order[p->label[i]];
    memcpy(p->classes, names, p->n_classes * sizeof *names);
out:
    fkt_free(names);
    return st;
}

/* ---- the teacher ---- */

/* Logits of p's images, in the order of the source's classes. */
static fkt_status teach(const struct fkt_training_source *s, struct fkt_training_set *p,
                        const struct fkt_progress *progress)
{
    const struct fkt_pipeline_options options = {.threads = s->spec.options.threads, .progress = progress};
    const uint32_t classes = p->n_classes;
    float *row = NULL;
    fkt_status st;
    if (!s->spec.teacher || !p->n) return FKT_OK;
    FKT_TRY(fkt_alloc(&p->teacher, p->n * classes));
    FKT_TRY(fkt_teacher_logits(s->spec.teacher, p->rgb, p->n, p->teacher, &options));
    if (!s->order) goto out;
    FKT_TRY(fkt_alloc(&row, classes));
    for (size_t i = 0; i < p->n; i++) {
        for (uint32_t k = 0; k < classes; k++) row[s->order[k]] = p->teacher[i * classes + k];
        memcpy(p->teacher + i * classes, row, classes * sizeof *row);
    }
out:
    fkt_free(row);
    return st;
}

/* The head is of the same release, so the promise stays as it is. */
static void say_teacher(struct fkt_training_source *s)
{
    struct fkt_model_origin by = s->set.origin;
    snprintf(by.data, sizeof by.data, "its %s head", fkt_head_title(fkt_teacher_kind(s->spec.teacher)));
    fkt_model_origin_add(&s->set.origin, "taught by ", &by);
}

/* ---- the images of an epoch ---- */

/* An empty set of the release's classes and size. */
static fkt_status nothing_drawn(struct fkt_training_set *out, const struct fkt_release *r)
{
    fkt_status st;
    memset(out, 0, sizeof *out);
    out->size = r->task.size;
    FKT_TRY(fkt_alloc(&out->classes, r->task.n_classes));
    out->n_classes = r->task.n_classes;
    for (uint32_t k = 0; k < out->n_classes; k++) FKT_TRY(fkt_strdup(&out->classes[k], r->task.classes[k]));
    fkt_origin_of_release(&out->origin, r, 0);
out:
    if (st != FKT_OK) fkt_training_set_clear(out);
    return st;
}

/* Decoded without the guide. */
static fkt_status draw_plain(const struct fkt_training_source *s, struct fkt_training_set *out, uint64_t first,
                             size_t per_class, const struct fkt_training_set_options *options)
{
    struct fkt_draw_options d = s->spec.draw;
    d.guided = (struct fkt_guided_options){.kind = FKT_GUIDED_NONE};
    d.made = NULL;
    d.first = first;
    d.per_class = per_class;
    return fkt_training_set_draw(out, s->spec.release, &d, options);
}

static fkt_status draw(const struct fkt_training_source *s, struct fkt_training_set *out, uint64_t first,
                       size_t per_class, const struct fkt_progress *progress)
{
    struct fkt_training_set_options options = s->spec.options;
    struct fkt_draw_options d = s->spec.draw;
    const size_t plain = (size_t)llround(s->spec.plain * (double)per_class);
    struct fkt_training_set without = {0};
    fkt_status st;
    options.progress = progress;
    d.first = first;
    d.per_class = per_class - plain;
    if (!per_class) return nothing_drawn(out, s->spec.release);
    if (!d.per_class) return draw_plain(s, out, first, plain, &options);
    FKT_TRY(fkt_training_set_draw(out, s->spec.release, &d, &options));
    if (!plain) goto out;
    FKT_TRY(draw_plain(s, &without, first + d.per_class, plain, &options));
    FKT_TRY(fkt_training_set_append(out, &without));
out:
    if (st != FKT_OK) fkt_training_set_clear(out);
    fkt_training_set_clear(&without);
    return st;
}

/* ---- blends ---- */

/* The images of `made` take the places that the plan names; their labels are the teacher's. */
static void put_blends(struct fkt_training_set *p, const struct fkt_training_set *made, const struct fkt_blend *b)
{
    const size_t image = (size_t)p->size * p->size * 3, classes = p->n_classes;
    for (size_t i = 0; i < made->n; i++) {
        const float *logit = made->teacher + i * classes;
        memcpy(p->rgb + b[i].first * image, made->rgb + i * image, image);
        memcpy(p->teacher + b[i].first * classes, logit, classes * sizeof *logit);
        p->label[b[i].first] = fkt_most_probable(logit, p->n_classes);
    }
}

static fkt_status blend(const struct fkt_training_source *s, struct fkt_training_set *p, uint32_t epoch,
                        const struct fkt_progress *progress)
{
    const size_t image = (size_t)p->size * p->size * 3;
    struct fkt_training_set made = {.size = p->size};
    struct fkt_blend *b = NULL;
    fkt_status st;
    if (!(s->spec.blend > 0)) return FKT_OK;
    FKT_TRY(fkt_blend_plan(&b, &made.n, p->n, p->size, s->spec.blend, s->spec.draw.seed, epoch));
    FKT_TRY(fkt_alloc(&made.rgb, made.n ? made.n * image : 1));
    for (size_t i = 0; i < made.n; i++) fkt_blend_make(&b[i], p->rgb, p->size, made.rgb + i * image);
    made.n_classes = p->n_classes;
    FKT_TRY(teach(s, &made, progress));
    if (made.n) put_blends(p, &made, b);
out:
    fkt_free(b);
    fkt_free(made.rgb);
    fkt_free(made.teacher);
    return st;
}

static fkt_status make_epoch(void *ctx, uint32_t epoch, const struct fkt_progress *progress,
                             struct fkt_training_set *out)
{
    struct fkt_training_source *s = ctx;
    const size_t each = s->spec.draw.per_class;
    fkt_status st;
    FKT_TRY(draw(s, out, (uint64_t)epoch * each, each, progress));
    FKT_TRY(put_in_order(s, out));
    FKT_TRY(teach(s, out, progress));
    if (s->mixed) FKT_TRY(fkt_training_set_append(out, &s->mix));
    if (s->shared.set.n) FKT_TRY(fkt_public_set_append(&s->shared, epoch, out));
    FKT_TRY(blend(s, out, epoch, progress));
    out->origin = s->set.origin;
out:
    if (st != FKT_OK) fkt_training_set_clear(out);
    return st;
}

/* s->set stays as it was until all of the next is there: its origin must be right. */
static fkt_status draw_epoch(struct fkt_training_source *s, uint32_t epoch)
{
    struct fkt_training_set next = {0};
    fkt_status st = FKT_OK;
    if (!fkt_ahead_take(&s->ahead, epoch, &next)) FKT_TRY(make_epoch(s, epoch, s->spec.options.progress, &next));
    fkt_training_set_clear(&s->set);
    s->set = next;
    s->epoch = epoch;
    s->blended = s->spec.blend > 0;
out:
    return st;
}

/* The same images with other public ones at their end. */
static fkt_status exchange_public(struct fkt_training_source *s, uint32_t epoch)
{
    fkt_status st;
    s->set.n -= s->shared.each;
    st = fkt_public_set_append(&s->shared, epoch, &s->set);
    if (st != FKT_OK) s->set.n += s->shared.each; /* those of the epoch before, or a mixture */
    s->epoch = st == FKT_OK ? epoch : UINT32_MAX;
    return st;
}

static int changes(const struct fkt_training_source *s) { return s->spec.fresh || s->shared.each < s->shared.set.n; }

static fkt_status images_of_epoch(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    struct fkt_training_source *s = ctx;
    fkt_status st = FKT_OK;
    if (changes(s) && (epoch != s->epoch || !s->set.n || (s->spec.blend > 0 && !s->blended)))
        FKT_TRY(s->spec.fresh ? draw_epoch(s, epoch) : exchange_public(s, epoch));
    if (s->spec.fresh && epoch + 1 < s->spec.ahead && !s->ahead.running)
        fkt_ahead_start(&s->ahead, make_epoch, s, epoch + 1);
    *out = (struct fkt_images){
        .rgb = s->set.rgb, .label = s->set.label, .n = s->set.n, .size = s->set.size, .teacher = s->set.teacher};
out:
    return st;
}

void fkt_training_source_images(struct fkt_training_source *s, struct fkt_image_source *out)
{
    *out = (struct fkt_image_source){images_of_epoch, s, changes(s)};
}

const struct fkt_training_set *fkt_training_source_set(const struct fkt_training_source *s) { return &s->set; }

const struct fkt_images *fkt_training_source_held(const struct fkt_training_source *s)
{
    return s->held_images.n ? &s->held_images : NULL;
}

/* ---- composition ---- */

fkt_status fkt_training_source_new(struct fkt_training_source **out, const struct fkt_training_source_spec *spec)
{
    struct fkt_training_source *s = NULL;
    fkt_status st;
    *out = NULL;
    if (!spec->release == !spec->data)
        return fkt_fail(FKT_E_ARG, "training images come from either a release or a dataset");
    if (spec->teacher && !spec->release) return fkt_fail(FKT_E_ARG, "a head is the teacher of its release's images");
    if (!(spec->plain >= 0 && spec->plain <= 1 && spec->blend >= 0 && spec->blend <= 1))
        return fkt_fail(FKT_E_ARG, "a share of plain images of %g, or of blends of %g, is not between 0 and 1",
                        spec->plain, spec->blend);
    if (spec->blend > 0 && !(spec->teacher && spec->fresh))
        return fkt_fail(FKT_E_ARG, "blends need a teacher that labels them, and new images in each epoch");
    if (spec->plain > 0 && !spec->release) return fkt_fail(FKT_E_ARG, "only a release has images without its guide");
    if (spec->fresh && !spec->release) return fkt_fail(FKT_E_ARG, "only a release gives new images in each epoch");
    FKT_TRY(fkt_alloc(&s, 1));
    s->spec = *spec;
    if (spec->release) FKT_TRY(draw(s, &s->set, 0, spec->draw.per_class, spec->options.progress));
    else
        FKT_TRY(fkt_training_set_read(&s->set, spec->data, NULL, 0, spec->size, spec->filter, spec->folder,
                                      &spec->options));
    FKT_TRY(find_order(s, spec->order));
    FKT_TRY(put_in_order(s, &s->set));
    FKT_TRY(teach(s, &s->set, spec->options.progress));
    if (spec->teacher) say_teacher(s);
    *out = s;
    s = NULL;
out:
    fkt_training_source_free(s);
    return st;
}

fkt_status fkt_training_source_hold_out(struct fkt_training_source *s, double share, uint64_t seed, uint32_t epochs)
{
    const size_t each = s->spec.draw.per_class;
    uint64_t samples;
    fkt_status st;
    if (!s->set.n) return fkt_fail(FKT_E_STATE, "there are no images of the release to hold out");
    if (s->mixed || s->held.n || s->shared.set.n)
        return fkt_fail(FKT_E_STATE, "images are held out once, before others are mixed in");
    if (s->spec.fresh) {
        if (!(share > 0 && share < 1))
            return fkt_fail(FKT_E_ARG, "a held-out fraction of %g is not between 0 and 1", share);
        samples = (uint64_t)llround(share * (double)each);
        FKT_TRY(draw(s, &s->held, (uint64_t)epochs * each, samples ? (size_t)samples : 1, s->spec.options.progress));
        FKT_TRY(put_in_order(s, &s->held));
    } else {
        FKT_TRY(fkt_training_set_hold_out(&s->set, &s->held, share, seed));
    }
    s->held_images =
        (struct fkt_images){.rgb = s->held.rgb, .label = s->held.label, .n = s->held.n, .size = s->held.size};
out:
    return st;
}

fkt_status fkt_training_source_mix(struct fkt_training_source *s, const struct fkt_dataset *ds,
                                   struct fkt_skipped *skipped)
{
    struct fkt_training_set_options read = s->spec.options;
    fkt_status st;
    if (s->mixed || s->shared.set.n) return fkt_fail(FKT_E_STATE, "images are mixed in once, before public ones");
    if (!s->set.n) return fkt_fail(FKT_E_STATE, "there are no images of the release to mix others with");
    fkt_ahead_end(&s->ahead);
    read.skipped = skipped;
    /* no folder: a certificate next to real images must not make them private */
    FKT_TRY(fkt_training_set_read(&s->mix, ds, NULL, 0, s->set.size, s->spec.filter, NULL, &read));
    FKT_TRY(teach(s, &s->mix, s->spec.options.progress));
    FKT_TRY(fkt_training_set_append(&s->set, &s->mix));
    s->mixed = 1;
    if (!s->spec.fresh) fkt_training_set_clear(&s->mix);
out:
    if (st != FKT_OK) fkt_training_set_clear(&s->mix);
    return st;
}

/* ---- public images ---- */

fkt_status fkt_training_source_public(struct fkt_training_source *s, const struct fkt_dataset *ds, const char *name,
                                      size_t each, struct fkt_skipped *skipped)
{
    struct fkt_training_set_options read = s->spec.options;
    struct fkt_public_set *p = &s->shared;
    fkt_status st;
    if (!s->spec.teacher) return fkt_fail(FKT_E_STATE, "public images have no labels: they need a teacher");
    if (p->set.n) return fkt_fail(FKT_E_STATE, "public images are added once");
    fkt_ahead_end(&s->ahead);
    read.skipped = skipped;
    FKT_TRY(fkt_public_set_read(p, ds, name, &s->set, s->spec.filter, &read));
    FKT_TRY(teach(s, &p->set, s->spec.options.progress));
    fkt_public_set_label(p);
    p->each = each ? each : s->set.n ? s->set.n : p->set.n;
    if (p->each > p->set.n) p->each = p->set.n;
    p->seed = s->spec.draw.seed;
    FKT_TRY(fkt_public_set_append(p, s->epoch, &s->set));
    fkt_origin_add_public(&s->set.origin, p->name, p->set.n, p->sha256);
out:
    if (st != FKT_OK) fkt_public_set_clear(p);
    return st;
}

struct fkt_public_facts fkt_training_source_public_facts(const struct fkt_training_source *s)
{
    const struct fkt_public_set *p = &s->shared;
    return (struct fkt_public_facts){.name = p->name, .sha256 = p->sha256, .images = p->set.n, .each = p->each};
}

fkt_status fkt_training_source_check_test(const struct fkt_training_source *s, const struct fkt_dataset *ds)
{
    if (!s->shared.set.n) return FKT_OK;
    return fkt_public_set_refuse(&s->shared, ds, NULL, 0, "test images", &s->spec.options);
}
