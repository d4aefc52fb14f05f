/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - the path of records through an opened task.
 *
 *   dataset --read--> rgb (b,S,S,3) --network of each part--> z_p (b,D_p) --record--> w (b,m), q (b,m) --> callback
 *
 * Records go in batches; a worker owns one set of buffers, so memory is threads * batch and does not grow with the set.
 * A batch is the codec's own where that is a network, so that few images keep every thread busy; else it gets smaller
 * as images get larger, so that buffers stay small and progress shows. Each record's q depends on its own pixels alone
 * (every stage guarantees it; a network pads an incomplete batch, so that each image goes through the same kernels), so
 * order, batches and threads cannot change what a callback adds up. Encodings are kept for each network by itself: a
 * second part costs its own network alone where the first part's latents are kept. */
#include "pipeline/pipeline.h"

#include "pipeline/encodings.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "base/wipe.h"
#include "images/dataset.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { BATCH_MAX = FKT_PIPELINE_BATCH };

/* What one network makes of a batch. */
struct latents {
    float *z;                /* (batch, D) */
    float *fresh;            /* (batch, D) latents of the images that were encoded now */
    size_t slots[BATCH_MAX]; /* which records those are */
    size_t from[BATCH_MAX];  /* and which of the images that were read */
    size_t n_fresh;
};

struct workspace { /* one worker's buffers */
    uint8_t *rgb;  /* (batch, S, S, 3) images that were read */
    uint8_t *some; /* (batch, S, S, 3) those of them that a network lacks; where several networks keep encodings */
    struct latents latents[FKT_PARTS_MAX];
    double *u;  /* (d) */
    double *w;  /* (batch, m) */
    int32_t *q; /* (batch, m) */
    uint32_t labels[BATCH_MAX];
    size_t asked, got;     /* records of the batch, and those of them that could be read */
    size_t ids[BATCH_MAX]; /* dataset index of each record, for error sentences */
    size_t places[BATCH_MAX];
    struct fkt_digest digests[BATCH_MAX];
    struct fkt_digest keys[BATCH_MAX]; /* of the decoded pixels, on which the latents depend */
    struct fkt_digest news[BATCH_MAX];
    size_t n_read;
};

struct job {
    const struct fkt_pipeline *pipeline;
    const struct fkt_dataset *ds;
    const size_t *idx;
    size_t n, batch;
    const struct fkt_visitor *visitor;
    struct fkt_skipped *skipped;
    struct fkt_norms *norms;
    struct fkt_meter *meter;
    struct fkt_encodings_kind *kept[FKT_PARTS_MAX]; /* NULL: no encodings are kept */
    struct workspace *desks;
    size_t next; /* in order: number of the batch in the first workspace */
    atomic_ullong bins[FKT_NORM_BINS];
    pthread_mutex_t lock; /* guards skipped */
};

static void workspace_release(struct workspace *d)
{
    fkt_free_secret(d->rgb);
    fkt_free_secret(d->some);
    for (int p = 0; p < FKT_PARTS_MAX; p++) {
        fkt_free_secret(d->latents[p].z);
        fkt_free_secret(d->latents[p].fresh);
    }
    fkt_free_secret(d->u);
    fkt_free_secret(d->w);
    fkt_free_secret(d->q);
}

static fkt_status workspace_init(struct workspace *d, const struct job *j)
{
    const struct fkt_pipeline *w = j->pipeline;
    const size_t S = w->task.size, batch = j->batch;
    fkt_status st;
    FKT_TRY(fkt_alloc(&d->rgb, batch * S * S * 3));
    if (j->kept[0] && w->task.parts > 1) FKT_TRY(fkt_alloc(&d->some, batch * S * S * 3));
    for (uint32_t p = 0; p < w->task.parts; p++) {
        FKT_TRY(fkt_alloc(&d->latents[p].z, batch * (size_t)w->task.part[p].dim));
        FKT_TRY(fkt_alloc(&d->latents[p].fresh, batch * (size_t)w->task.part[p].dim));
    }
    FKT_TRY(fkt_alloc(&d->u, fkt_pipeline_room(w)));
    FKT_TRY(fkt_alloc(&d->w, batch * w->length));
    FKT_TRY(fkt_alloc(&d->q, batch * w->length));
out:
    return st;
}

static void note_norm(struct job *j, const double *u)
{
    double sq = 0, x;
    for (uint32_t i = 0; i < j->pipeline->task.part[0].coordinates.dim; i++) sq += u[i] * u[i];
    x = (0.5 * log(sq) - j->norms->lo) / (j->norms->hi - j->norms->lo) * FKT_NORM_BINS;
    atomic_fetch_add(&j->bins[!(x > 0) ? 0 : x >= FKT_NORM_BINS ? FKT_NORM_BINS - 1 : (int)x], 1);
}

/* An image was read: computes its digest, and takes its latents if they are kept. A latent is found by the
 * decoded pixels: the stated depth of 16-bit samples changes them and does not change the digest. */
struct arrival {
    const struct job *job;
    struct workspace *desk;
    size_t at;                /* of the record in the batch */
    int found[FKT_PARTS_MAX]; /* by part */
};

static int arrive(void *ctx, const uint8_t *rgb, uint32_t width, uint32_t height, const struct fkt_facts *facts)
{
    struct arrival *a = ctx;
    const struct fkt_task *t = &a->job->pipeline->task;
    struct fkt_digest *digest = &a->desk->digests[a->at], *key = &a->desk->keys[a->at];
    int all = 1;
    fkt_fingerprint_image(digest, rgb, width, height, facts);
    *key = *digest;
    if (a->job->kept[0] && facts->wide) fkt_fingerprint_pixels(key, rgb, width, height);
    for (uint32_t p = 0; p < t->parts; p++) {
        a->found[p] =
            a->job->kept[p] && fkt_encodings_find(a->job->kept[p], key, a->desk->latents[p].z + a->at * t->part[p].dim);
        all = all && a->found[p];
    }
    return all;
}

/* Notes record `at`, whose pixels are image n_read of the batch, for every network that has no latent of it yet. */
static void note_read(const struct job *j, struct workspace *d, const struct arrival *a)
{
    int wanted = 0;
    for (uint32_t p = 0; p < j->pipeline->task.parts; p++) {
        struct latents *l = &d->latents[p];
        if (a->found[p]) continue;
        l->from[l->n_fresh] = d->n_read;
        l->slots[l->n_fresh++] = a->at;
        wanted = 1;
    }
    d->n_read += wanted;
}

/* Reads the batch's images; those that cannot be read are left out when the caller counts them. Gives how many are
 * there. */
static fkt_status read_batch(struct job *j, struct workspace *d, size_t first, size_t n, size_t *got)
{
    const struct fkt_task *t = &j->pipeline->task;
    const size_t pixels = (size_t)t->size * t->size * 3;
    *got = d->n_read = 0;
    for (uint32_t p = 0; p < t->parts; p++) d->latents[p].n_fresh = 0;
    for (size_t i = 0; i < n; i++) {
        size_t id = j->idx ? j->idx[first + i] : first + i;
        struct arrival a = {.job = j, .desk = d, .at = *got};
        fkt_status st = fkt_dataset_read_seen(j->ds, id, t->size, t->filter, d->rgb + d->n_read * pixels, NULL,
                                              j->visitor->digests || j->kept[0] ? arrive : NULL, &a);
        if (st != FKT_OK && j->skipped && (st == FKT_E_FORMAT || st == FKT_E_IO)) {
            pthread_mutex_lock(&j->lock);
            st = fkt_skipped_add(j->skipped, fkt_error_text());
            pthread_mutex_unlock(&j->lock);
            if (st != FKT_OK) return st;
            continue;
        }
        if (st != FKT_OK)
            return fkt_hint_code(st, FKT_HINT_SKIP_BAD,
                                 "repair it, remove it, or leave out images that cannot be read");
        d->labels[*got] = fkt_dataset_label(j->ds, id);
        d->ids[*got] = id;
        d->places[*got] = first + i;
        note_read(j, d, &a);
        ++*got;
    }
    return FKT_OK;
}

/* The images that network p has no latents of, side by side. */
static const uint8_t *pixels_of(const struct job *j, struct workspace *d, const struct latents *l)
{
    const size_t pixels = (size_t)j->pipeline->task.size * j->pipeline->task.size * 3;
    if (l->n_fresh == d->n_read) return d->rgb;
    for (size_t i = 0; i < l->n_fresh; i++) memcpy(d->some + i * pixels, d->rgb + l->from[i] * pixels, pixels);
    return d->some;
}

/* Latents of the images that were not kept, to their places. */
static fkt_status encode_fresh(struct job *j, struct workspace *d)
{
    fkt_status st = FKT_OK;
    for (uint32_t p = 0; p < j->pipeline->task.parts; p++) {
        struct latents *l = &d->latents[p];
        const size_t D = j->pipeline->task.part[p].dim;
        if (!l->n_fresh) continue;
        FKT_TRY(fkt_codec_encode(j->pipeline->codec[p], pixels_of(j, d, l), l->n_fresh, l->fresh));
        for (size_t i = 0; i < l->n_fresh; i++) {
            memcpy(l->z + l->slots[i] * D, l->fresh + i * D, D * sizeof *l->z);
            d->news[i] = d->keys[l->slots[i]];
        }
        if (j->kept[p]) FKT_TRY(fkt_encodings_keep(j->kept[p], d->news, l->fresh, l->n_fresh));
    }
out:
    return st;
}

/* Batch number `item` from pixels to integers, in workspace d. */
static fkt_status fill_workspace(struct job *j, struct workspace *d, size_t item)
{
    const struct fkt_task *t = &j->pipeline->task;
    size_t m = j->pipeline->length, first = item * j->batch, n = j->n - first < j->batch ? j->n - first : j->batch;
    const float *z[FKT_PARTS_MAX];
    fkt_status st;
    d->asked = n;
    FKT_TRY(read_batch(j, d, first, n, &d->got));
    FKT_TRY(encode_fresh(j, d));
    for (size_t i = 0; i < d->got; i++) {
        for (uint32_t p = 0; p < t->parts; p++) z[p] = d->latents[p].z + i * t->part[p].dim;
        st = fkt_pipeline_record(j->pipeline, z, d->u, d->w + i * m, d->q + i * m);
        FKT_TRY(fkt_fail_in(st, "'%s'", fkt_dataset_name(j->ds, d->ids[i])));
        if (j->norms) note_norm(j, d->u);
    }
out:
    return st;
}

static fkt_status show_workspace(struct job *j, const struct workspace *d, unsigned worker)
{
    struct fkt_batch b = {.n = d->got,
                          .labels = d->labels,
                          .places = d->places,
                          .digests = j->visitor->digests ? d->digests : NULL,
                          .w = d->w,
                          .q = d->q};
    fkt_status st;
    for (uint32_t p = 0; p < j->pipeline->task.parts; p++) b.z[p] = d->latents[p].z;
    st = j->visitor->visit(j->visitor->ctx, worker, &b);
    return st == FKT_OK ? fkt_meter_add(j->meter, d->asked) : st;
}

static fkt_status do_batch(void *ctx, size_t item, unsigned worker)
{
    struct job *j = ctx;
    fkt_status st = fill_workspace(j, &j->desks[worker], item);
    return st == FKT_OK ? show_workspace(j, &j->desks[worker], worker) : st;
}

static fkt_status fill_one(void *ctx, size_t item, unsigned worker)
{
    struct job *j = ctx;
    (void)worker;
    return fill_workspace(j, &j->desks[item], j->next + item);
}

/* As many batches at a time as there are workspaces, filled in parallel and passed on in order. */
static fkt_status in_order(struct job *j, size_t items, unsigned desks)
{
    fkt_status st = FKT_OK;
    for (j->next = 0; j->next < items; j->next += desks) {
        size_t n = items - j->next < desks ? items - j->next : desks;
        FKT_TRY(fkt_parallel(desks, n, fill_one, j, NULL, "walking"));
        for (size_t i = 0; i < n; i++) FKT_TRY(show_workspace(j, &j->desks[i], 0));
    }
out:
    return st;
}

fkt_status fkt_pipeline_visit(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                              const struct fkt_visitor *v, const struct fkt_pipeline_options *options,
                              struct fkt_meter *meter)
{
    struct job *j = NULL;
    size_t batch, items;
    unsigned threads = options->threads ? options->threads : fkt_cpu_count();
    fkt_status st;
    st = fkt_pipeline_can_encode(w);
    if (st != FKT_OK) return st;
    if (fkt_dataset_classes(ds) != w->task.n_classes)
        return fkt_fail(FKT_E_MISMATCH, "the dataset has %zu classes, the task %u", fkt_dataset_classes(ds),
                        w->task.n_classes);
    if (fkt_dataset_fit(ds) != w->task.fit)
        return fkt_fail(FKT_E_MISMATCH, "the dataset was opened with fit '%s', the task says '%s'",
                        fkt_fit_name(fkt_dataset_fit(ds)), fkt_fit_name(w->task.fit));
    batch = fkt_pipeline_batch_all(w);
    items = (n + batch - 1) / batch;
    if (threads > items) threads = items ? (unsigned)items : 1;
    FKT_TRY(fkt_alloc(&j, 1));
    *j = (struct job){.pipeline = w,
                      .ds = ds,
                      .idx = idx,
                      .n = n,
                      .batch = batch,
                      .visitor = v,
                      .skipped = options->skipped,
                      .norms = options->norms,
                      .meter = meter};
    pthread_mutex_init(&j->lock, NULL);
    for (uint32_t p = 0; options->encodings && p < w->task.parts; p++)
        FKT_TRY(fkt_encodings_of(options->encodings, w->codec[p], w->task.filter, fkt_dataset_fit(ds), &j->kept[p]));
    FKT_TRY(fkt_alloc(&j->desks, threads));
    for (unsigned i = 0; i < threads; i++) FKT_TRY(workspace_init(&j->desks[i], j));
    if (v->in_order) FKT_TRY(in_order(j, items, threads));
    else FKT_TRY(fkt_parallel(threads, items, do_batch, j, NULL, "walking"));
    for (int i = 0; options->norms && i < FKT_NORM_BINS; i++) options->norms->bins[i] += atomic_load(&j->bins[i]);
out:
    if (j && j->desks)
        for (unsigned i = 0; i < threads; i++) workspace_release(&j->desks[i]);
    if (j) {
        pthread_mutex_destroy(&j->lock);
        fkt_free(j->desks);
    }
    fkt_free(j);
    return st;
}
