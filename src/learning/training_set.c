/* SPDX-License-Identifier: Apache-2.0 */
/* training_set.c - images in memory, with labels, class names and their provenance.
 *
 *   set ---------read--------\
 *                             > (n, S, S, 3) + labels --append, hold_out, through_codec--> borrowed by a trainer
 *   release --sample+decode--/
 *
 * A training set holds bytes, not floats: 50,000 images of 32 px take 150 MB, and a network's input is made batch by
 * batch. Records are in the requested order for any number of threads; unreadable ones leave no gap. */
#include "fedkt/train.h"

#include "pipeline/draw.h"
#include "pipeline/gaussians.h"
#include "pipeline/guided_draw.h"
#include "pipeline/provenance.h"
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/threads.h"

#include <pthread.h>
#include <string.h>

enum { READ_BATCH = 32 };

static size_t pixels_of(const struct fkt_training_set *p) { return (size_t)p->size * p->size * 3; }

void fkt_training_set_clear(struct fkt_training_set *p)
{
    if (!p) return;
    for (uint32_t k = 0; p->classes && k < p->n_classes; k++) fkt_free(p->classes[k]);
    fkt_free(p->classes);
    fkt_free(p->rgb);
    fkt_free(p->label);
    fkt_free(p->teacher);
    memset(p, 0, sizeof *p);
}

/* An empty training set with space for n images. */
static fkt_status make_room(struct fkt_training_set *p, size_t n, uint32_t size, uint32_t n_classes)
{
    uint64_t bytes = (uint64_t)size * size * 3;
    fkt_status st;
    memset(p, 0, sizeof *p);
    if (size < 1 || size > 65535) return fkt_fail(FKT_E_ARG, "images of %u px cannot be held", size);
    if (n == 0) return fkt_fail(FKT_E_ARG, "there are no training images");
    if (n > fkt_machine_memory() / bytes)
        return fkt_fail_hint(FKT_E_NOMEM, "use fewer or smaller images",
                             "%zu images of %u px need %.1f GB, more memory than this machine has", n, size,
                             1e-9 * (double)n * (double)bytes);
    p->size = size;
    FKT_TRY(fkt_alloc(&p->classes, n_classes));
    p->n_classes = n_classes;
    FKT_TRY(fkt_alloc(&p->label, n));
    FKT_TRY(fkt_alloc(&p->rgb, n * pixels_of(p)));
    p->n = n;
out:
    return st;
}

/* ---- reading ---- */

struct reading {
    const struct fkt_dataset *ds;
    const size_t *idx;
    struct fkt_training_set *set;
    enum fkt_filter filter;
    uint8_t *bad; /* (n) 1: could not be read */
    struct fkt_skipped *skipped;
    struct fkt_meter *meter;
    pthread_mutex_t lock; /* guards skipped */
};

static fkt_status read_one(struct reading *r, size_t i)
{
    size_t id = r->idx ? r->idx[i] : i;
    fkt_status st = fkt_dataset_read(r->ds, id, r->set->size, r->filter, r->set->rgb + i * pixels_of(r->set), NULL);
    if (st == FKT_OK) {
        r->set->label[i] = fkt_dataset_label(r->ds, id);
        return st;
    }
    if (st != FKT_E_FORMAT && st != FKT_E_IO) return st;
    if (!r->skipped)
        return fkt_hint_code(st, FKT_HINT_SKIP_BAD, "repair it, remove it, or leave out images that cannot be read");
    r->bad[i] = 1;
    pthread_mutex_lock(&r->lock);
    st = fkt_skipped_add(r->skipped, fkt_error_text());
    pthread_mutex_unlock(&r->lock);
    return st;
}

static fkt_status read_some(void *ctx, size_t item, unsigned worker)
{
    struct reading *r = ctx;
    size_t from = item * READ_BATCH, n = r->set->n - from < READ_BATCH ? r->set->n - from : READ_BATCH;
    fkt_status st;
    (void)worker;
    for (size_t i = from; i < from + n; i++) FKT_TRY(read_one(r, i));
    FKT_TRY(fkt_meter_add(r->meter, n));
out:
    return st;
}

/* Moves images whose mark is 0 together. */
static void close_up(struct fkt_training_set *p, const uint8_t *gone)
{
    size_t kept = 0, pixels = pixels_of(p);
    for (size_t i = 0; i < p->n; i++) {
        if (gone[i]) continue;
        if (kept != i) memcpy(p->rgb + kept * pixels, p->rgb + i * pixels, pixels);
        if (p->teacher && kept != i)
            memcpy(p->teacher + kept * p->n_classes, p->teacher + i * p->n_classes, p->n_classes * sizeof *p->teacher);
        p->label[kept++] = p->label[i];
    }
    p->n = kept;
}

fkt_status fkt_training_set_read(struct fkt_training_set *out, const struct fkt_dataset *ds, const size_t *idx,
                                 size_t n, uint32_t size, enum fkt_filter filter, const char *folder,
                                 const struct fkt_training_set_options *options)
{
    struct fkt_meter meter;
    struct reading r = {.ds = ds,
                        .idx = idx,
                        .set = out,
                        .filter = filter,
                        .skipped = options->skipped,
                        .meter = &meter,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    fkt_status st;
    if (!idx) n = fkt_dataset_size(ds);
    fkt_meter_init(&meter, options->progress, "reading", n);
    FKT_TRY(make_room(out, n, size, (uint32_t)fkt_dataset_classes(ds)));
    for (uint32_t k = 0; k < out->n_classes; k++) FKT_TRY(fkt_strdup(&out->classes[k], fkt_dataset_class(ds, k)));
    FKT_TRY(fkt_alloc(&r.bad, n));
    FKT_TRY(fkt_parallel(options->threads, (n + READ_BATCH - 1) / READ_BATCH, read_some, &r, NULL, "reading"));
    close_up(out, r.bad);
    if (out->n == 0) {
        st = fkt_fail(FKT_E_FORMAT, "none of %zu images could be read", n);
        goto out;
    }
    FKT_TRY(fkt_origin_of_set(&out->origin, ds, idx, n, folder, options));
out:
    if (st != FKT_OK) fkt_training_set_clear(out);
    fkt_free(r.bad);
    fkt_meter_clear(&meter);
    pthread_mutex_destroy(&r.lock);
    return st;
}

/* ---- drawing ---- */

fkt_status fkt_training_set_draw(struct fkt_training_set *out, const struct fkt_release *r,
                                 const struct fkt_draw_options *draw, const struct fkt_training_set_options *options)
{
    const struct fkt_task *t = &r->task;
    struct fkt_gaussians g[FKT_PARTS_MAX] = {{0}};
    struct fkt_guided_draw guided = {0};
    struct fkt_meter meter;
    struct fkt_drawing d = {.pipeline = draw->pipeline,
                            .g = g,
                            .seed = draw->seed,
                            .first = draw->first,
                            .each = draw->per_class,
                            .meter = &meter};
    size_t n;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (draw->per_class < 1) return fkt_fail(FKT_E_ARG, "at least one image per class must be drawn");
    if (!fkt_mul_size(draw->per_class, t->n_classes, &n)) n = SIZE_MAX;
    fkt_meter_init(&meter, options->progress, "drawing", n);
    FKT_TRY(fkt_draw_check_pipeline(draw->pipeline, t));
    FKT_TRY(fkt_guided_draw_open(&guided, draw->pipeline, &draw->guided, options->threads));
    if (draw->made) *draw->made = guided.facts;
    fkt_guided_draw_attach(&guided, &d);
    FKT_TRY(make_room(out, n, t->size, t->n_classes));
    for (uint32_t k = 0; k < out->n_classes; k++) FKT_TRY(fkt_strdup(&out->classes[k], t->classes[k]));
    for (size_t i = 0; i < n; i++) out->label[i] = (uint32_t)(i / draw->per_class);
    FKT_TRY(fkt_release_gaussians_all(r, &draw->estimate, g));
    d.n = n;
    d.rgb = out->rgb;
    FKT_TRY(fkt_draw_chunk(&d, options->threads));
    fkt_origin_of_release(&out->origin, r, draw->per_class);
out:
    if (st != FKT_OK) fkt_training_set_clear(out);
    fkt_guided_draw_clear(&guided);
    fkt_gaussians_clear_all(g);
    fkt_meter_clear(&meter);
    return st;
}

/* ---- appending and holding out ---- */

static fkt_status check_alike(const struct fkt_training_set *a, const struct fkt_training_set *b)
{
    if (a->size != b->size)
        return fkt_fail(FKT_E_MISMATCH, "images of %u px cannot be added to images of %u px", b->size, a->size);
    if (!a->teacher != !b->teacher) return fkt_fail(FKT_E_MISMATCH, "only one of two sets has a teacher's logits");
    if (a->n_classes != b->n_classes)
        return fkt_fail(FKT_E_MISMATCH, "a set of %u classes cannot be added to one of %u", b->n_classes, a->n_classes);
    for (uint32_t k = 0; k < a->n_classes; k++)
        if (strcmp(a->classes[k], b->classes[k]) != 0)
            return fkt_fail(FKT_E_MISMATCH, "class %u is '%s' in one set and '%s' in the other", k, a->classes[k],
                            b->classes[k]);
    return FKT_OK;
}

fkt_status fkt_training_set_append(struct fkt_training_set *p, const struct fkt_training_set *more)
{
    size_t n = p->n + more->n, pixels = pixels_of(p);
    fkt_status st;
    FKT_TRY(check_alike(p, more));
    FKT_TRY(fkt_realloc(&p->rgb, n * pixels));
    FKT_TRY(fkt_realloc(&p->label, n));
    if (p->teacher) {
        FKT_TRY(fkt_realloc(&p->teacher, n * p->n_classes));
        memcpy(p->teacher + p->n * p->n_classes, more->teacher, more->n * p->n_classes * sizeof *p->teacher);
    }
    memcpy(p->rgb + p->n * pixels, more->rgb, more->n * pixels);
    memcpy(p->label + p->n, more->label, more->n * sizeof *p->label);
    p->n = n;
    fkt_model_origin_add(&p->origin, "", &more->origin);
out:
    return st;
}

fkt_status fkt_training_set_hold_out(struct fkt_training_set *p, struct fkt_training_set *held, double share,
                                     uint64_t seed)
{
    uint8_t *marks = NULL;
    size_t n = 0, at = 0, pixels = pixels_of(p);
    fkt_status st;
    memset(held, 0, sizeof *held);
    if (!(share > 0 && share < 1))
        return fkt_fail(FKT_E_ARG, "a held-out fraction of %g is not between 0 and 1", share);
    FKT_TRY(fkt_alloc(&marks, p->n));
    FKT_TRY(fkt_split_stratified(marks, p->label, p->n, p->n_classes, share, seed));
    for (size_t i = 0; i < p->n; i++) n += marks[i];
    if (n == 0 || n == p->n) {
        st = fkt_fail(FKT_E_ARG, "a held-out fraction of %g leaves %s of its %zu images", share,
                      n ? "no training images" : "no test images", p->n);
        goto out;
    }
    FKT_TRY(make_room(held, n, p->size, p->n_classes));
    for (uint32_t k = 0; k < p->n_classes; k++) FKT_TRY(fkt_strdup(&held->classes[k], p->classes[k]));
    for (size_t i = 0; i < p->n; i++) {
        if (!marks[i]) continue;
        memcpy(held->rgb + at * pixels, p->rgb + i * pixels, pixels);
        held->label[at++] = p->label[i];
    }
    held->origin = p->origin;
    close_up(p, marks);
out:
    if (st != FKT_OK) fkt_training_set_clear(held);
    fkt_free(marks);
    return st;
}
