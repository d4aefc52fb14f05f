/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - an opened task, and the path of records through it.
 *
 *   dataset --read--> rgb (b,S,S,3) --codec--> z (b,D) --calibration--> u (d)
 *                callback <-- q (m) <--quantise-- w (m) <--coordinates--'
 *
 * Records go in batches; a worker owns one set of buffers, so memory is threads * batch and does not grow with the set.
 * A batch is the codec's own where that is a network, so that few images keep every thread busy; else it gets smaller
 * as images get larger, so that buffers stay small and progress shows. Each record's q depends on its own pixels alone
 * (every stage guarantees it; a network pads an incomplete batch, so that each image goes through the same kernels), so
 * order, batches and threads cannot change what a callback adds up. */
#include "pipeline/pipeline.h"

#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/moments.h"

#include "pipeline/encodings.h"
#include "task/task.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "base/wipe.h"
#include "codec/codec.h"
#include "codec/family.h"
#include "crypto/hash.h"
#include "images/dataset.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { BATCH_MAX = FKT_PIPELINE_BATCH, BATCH_USUAL = 64, BATCH_BYTES = 2 << 20 };

size_t fkt_pipeline_batch(const struct fkt_codec *c)
{
    size_t pixels = (size_t)fkt_codec_size(c) * fkt_codec_size(c) * 3, whole = fkt_codec_batch(c),
           n = BATCH_BYTES / pixels;
    if (whole > 1) return whole < BATCH_MAX ? whole : BATCH_MAX; /* a network: slow enough to be handed out so */
    if (n > BATCH_USUAL) n = BATCH_USUAL;
    return n ? n : 1;
}

/* The path of the weights: a file, or the folder of a pair. */
static int weights_at(const struct fkt_codec *codec, const char **path)
{
    struct fkt_codec_facts facts;
    const char *slash;
    if (fkt_codec_facts(codec, &facts) != FKT_OK || !facts.file[0]) return 0;
    *path = facts.file[0];
    slash = facts.file[1] ? strrchr(facts.file[0], '/') : NULL;
    return slash ? (int)(slash - facts.file[0]) : (int)strlen(facts.file[0]);
}

static fkt_status check_codec(const struct fkt_task *task, const struct fkt_codec *codec)
{
    const char *identity = fkt_codec_identity(codec), *path = NULL;
    char hash[FKT_SHA256_HEX], wanted[FKT_DIFFERENCE_MAX], ours[FKT_DIFFERENCE_MAX];
    int length = weights_at(codec, &path);
    fkt_hash_bytes_hex(hash, identity, strlen(identity));
    if (!strcmp(hash, task->part[0].sha256)) return FKT_OK;
    fkt_identity_difference(task->part[0].identity, identity, wanted, ours);
    if (!length || strncmp(wanted, "weights ", 8) != 0 || strncmp(ours, "weights ", 8) != 0)
        return fkt_fail_hint(FKT_E_MISMATCH,
                             "all sites of a task must use the same codec: the same name, size, dim and weights",
                             "the task wants codec '%s' with %s, this one has %s", task->part[0].name, wanted, ours);
    fkt_fail(FKT_E_MISMATCH, "the weights in '%.*s' are not those of the task: they are %s, not %s", length, path,
             ours + 8, wanted + 8);
    fkt_hint_code(FKT_E_MISMATCH, FKT_HINT_WEIGHTS_VERIFY, "fetch them again, or verify them");
    return fkt_hint_values(FKT_E_MISMATCH, FKT_HINT_WEIGHTS_VERIFY, task->part[0].name, NULL);
}

static fkt_status no_calibration(const struct fkt_task *task)
{
    return fkt_hint_code(
        fkt_fail(FKT_E_STATE, "the task wants calibration %.12s from '%s', and codec '%s' has none built in",
                 task->part[0].calibration_sha256, task->part[0].calibration_source, task->part[0].name),
        FKT_HINT_TASK_CALIBRATION, "ask the task's author for the calibration file");
}

fkt_status fkt_pipeline_assemble(struct fkt_pipeline **out, const struct fkt_task *task, struct fkt_codec *codec,
                                 struct fkt_calibration *cal)
{
    struct fkt_pipeline *w = NULL;
    fkt_status st;
    *out = NULL;
    if (task->parts != 1) {
        st = fkt_fail(FKT_E_STATE, "task '%s' has %u parts, and one of them is open", task->name, task->parts);
        goto out;
    }
    if (codec) FKT_TRY(check_codec(task, codec));
    FKT_TRY(fkt_coordinates_check(&task->part[0].coordinates));
    FKT_TRY(fkt_task_check_calibration(task, 0, cal));
    if (codec) FKT_TRY(fkt_calibration_check(cal, codec));
    if (task->part[0].coordinates.dim != cal->dim || task->part[0].dim != cal->raw_dim) {
        st = fkt_fail(FKT_E_MISMATCH,
                      "the task has latents of length %u and coordinates of %u, the calibration %u and %u",
                      task->part[0].dim, task->part[0].coordinates.dim, cal->raw_dim, cal->dim);
        goto out;
    }
    FKT_TRY(fkt_alloc(&w, 1));
    FKT_TRY(fkt_task_copy(&w->task, task));
    w->codec = codec;
    w->calibration = *cal;
    memset(cal, 0, sizeof *cal);
    codec = NULL;
    *out = w;
    w = NULL;
out:
    fkt_free(w);
    fkt_codec_free(codec);
    fkt_calibration_clear(cal);
    return st;
}

fkt_status fkt_pipeline_open(struct fkt_pipeline **out, const struct fkt_task *task, const char *calibration_path,
                             const struct fkt_codec_settings *settings)
{
    struct fkt_codec_spec spec = {.name = task->part[0].name, .size = task->size, .dim = task->part[0].dim};
    struct fkt_calibration cal = {0};
    struct fkt_codec *codec = NULL;
    fkt_status st;
    *out = NULL;
    if (settings) spec.settings = *settings;
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(check_codec(task, codec)); /* before the calibration: it cannot fit wrong weights */
    if (!calibration_path && !fkt_codec_has_calibration(task->part[0].name)) {
        st = no_calibration(task);
        goto out;
    }
    if (calibration_path) FKT_TRY(fkt_calibration_load(&cal, calibration_path));
    else FKT_TRY(fkt_calibration_embedded(&cal, codec));
    return fkt_pipeline_assemble(out, task, codec, &cal);
out:
    fkt_codec_free(codec);
    fkt_calibration_clear(&cal);
    return st;
}

fkt_status fkt_pipeline_open_latents(struct fkt_pipeline **out, const struct fkt_task *task,
                                     const char *calibration_path)
{
    struct fkt_calibration cal = {0};
    struct fkt_failure why;
    fkt_status st;
    *out = NULL;
    if (!calibration_path) {
        if (fkt_member_find(task->part[0].name, strlen(task->part[0].name))) return no_calibration(task);
        st = fkt_pipeline_open(out, task, NULL, NULL);
        if (st == FKT_OK || st == FKT_E_NOMEM) return st;
        fkt_failure_save(&why, st);
        return fkt_hint_code(fkt_fail(st, "%s", why.text), FKT_HINT_CALIBRATION_ALONE,
                             "give the task's calibration file: then nothing else is needed");
    }
    FKT_TRY(fkt_calibration_load(&cal, calibration_path));
    return fkt_pipeline_assemble(out, task, NULL, &cal);
out:
    return st;
}

fkt_status fkt_pipeline_no_codec(const struct fkt_pipeline *w)
{
    return fkt_fail(FKT_E_STATE, "codec '%s' is not open: this pipeline begins at latents", w->task.part[0].name);
}

void fkt_pipeline_free(struct fkt_pipeline *w)
{
    if (!w) return;
    fkt_task_clear(&w->task);
    fkt_codec_free(w->codec);
    fkt_calibration_clear(&w->calibration);
    fkt_free(w);
}

const struct fkt_task *fkt_pipeline_task(const struct fkt_pipeline *w) { return &w->task; }
const struct fkt_codec *fkt_pipeline_codec(const struct fkt_pipeline *w) { return w->codec; }
const struct fkt_calibration *fkt_pipeline_calibration(const struct fkt_pipeline *w) { return &w->calibration; }

fkt_status fkt_pipeline_record(const struct fkt_pipeline *w, const float *z, double *u, double *wv, int32_t *q)
{
    fkt_status st;
    fkt_calibration_forward(&w->calibration, z, u);
    FKT_TRY(fkt_coordinates_forward(&w->task.part[0].coordinates, u, wv));
    FKT_TRY(fkt_quantise(&w->task.part[0].coordinates, wv, q));
out:
    return st;
}

struct workspace { /* one worker's buffers */
    uint8_t *rgb;  /* (batch, S, S, 3) */
    float *z;      /* (batch, D) */
    double *u;     /* (d) */
    double *w;     /* (batch, m) */
    int32_t *q;    /* (batch, m) */
    uint32_t labels[BATCH_MAX];
    size_t asked, got;     /* records of the batch, and those of them that could be read */
    size_t ids[BATCH_MAX]; /* dataset index of each record, for error sentences */
    struct fkt_digest digests[BATCH_MAX];
    struct fkt_digest keys[BATCH_MAX]; /* of the decoded pixels, on which the latents depend */
    float *fresh;                      /* (batch, D) latents of the images that were encoded now */
    size_t slots[BATCH_MAX];           /* which records those are */
    struct fkt_digest news[BATCH_MAX];
    size_t n_fresh;
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
    struct fkt_encodings_kind *kept; /* NULL: no encodings are kept */
    struct workspace *desks;
    size_t next; /* in order: number of the batch in the first workspace */
    atomic_ullong bins[FKT_NORM_BINS];
    pthread_mutex_t lock; /* guards skipped */
};

static void workspace_release(struct workspace *d)
{
    fkt_free_secret(d->rgb);
    fkt_free_secret(d->z);
    fkt_free_secret(d->fresh);
    fkt_free_secret(d->u);
    fkt_free_secret(d->w);
    fkt_free_secret(d->q);
}

static fkt_status workspace_init(struct workspace *d, const struct fkt_pipeline *w, size_t batch)
{
    size_t S = w->task.size, m = w->task.part[0].coordinates.length;
    fkt_status st;
    FKT_TRY(fkt_alloc(&d->rgb, batch * S * S * 3));
    FKT_TRY(fkt_alloc(&d->z, batch * (size_t)w->task.part[0].dim));
    FKT_TRY(fkt_alloc(&d->fresh, batch * (size_t)w->task.part[0].dim));
    FKT_TRY(fkt_alloc(&d->u, w->task.part[0].coordinates.dim));
    FKT_TRY(fkt_alloc(&d->w, batch * m));
    FKT_TRY(fkt_alloc(&d->q, batch * m));
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

/* An image was read: computes its digest, and takes its latent if that is kept. A latent is found by the
 * decoded pixels: the stated depth of 16-bit samples changes them and does not change the digest. */
struct arrival {
    struct fkt_encodings_kind *kept;
    struct fkt_digest *digest, *key;
    float *z;
    int found;
};

static int arrive(void *ctx, const uint8_t *rgb, uint32_t width, uint32_t height, const struct fkt_facts *facts)
{
    struct arrival *a = ctx;
    fkt_fingerprint_image(a->digest, rgb, width, height, facts);
    *a->key = *a->digest;
    if (a->kept && facts->wide) fkt_fingerprint_pixels(a->key, rgb, width, height);
    a->found = a->kept && fkt_encodings_find(a->kept, a->key, a->z);
    return a->found;
}

/* Reads the batch's images; those that cannot be read are left out when the caller counts them. Gives how many are
 * there. */
static fkt_status read_batch(struct job *j, struct workspace *d, size_t first, size_t n, size_t *got)
{
    size_t pixels = (size_t)j->pipeline->task.size * j->pipeline->task.size * 3;
    *got = d->n_fresh = 0;
    for (size_t i = 0; i < n; i++) {
        size_t id = j->idx ? j->idx[first + i] : first + i;
        struct arrival a = {j->kept, &d->digests[*got], &d->keys[*got], d->z + *got * j->pipeline->task.part[0].dim, 0};
        fkt_status st = fkt_dataset_read_seen(j->ds, id, j->pipeline->task.size, j->pipeline->task.filter,
                                              d->rgb + d->n_fresh * pixels, NULL,
                                              j->visitor->digests || j->kept ? arrive : NULL, &a);
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
        if (!a.found) d->slots[d->n_fresh++] = *got;
        ++*got;
    }
    return FKT_OK;
}

/* Latents of the images that were not kept, to their places. */
static fkt_status encode_fresh(struct job *j, struct workspace *d)
{
    size_t D = j->pipeline->task.part[0].dim;
    fkt_status st = d->n_fresh ? fkt_codec_encode(j->pipeline->codec, d->rgb, d->n_fresh, d->fresh) : FKT_OK;
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < d->n_fresh; i++) {
        memcpy(d->z + d->slots[i] * D, d->fresh + i * D, D * sizeof *d->z);
        d->news[i] = d->keys[d->slots[i]];
    }
    return j->kept ? fkt_encodings_keep(j->kept, d->news, d->fresh, d->n_fresh) : FKT_OK;
}

/* Batch number `item` from pixels to integers, in workspace d. */
static fkt_status fill_workspace(struct job *j, struct workspace *d, size_t item)
{
    size_t m = j->pipeline->task.part[0].coordinates.length, first = item * j->batch,
           n = j->n - first < j->batch ? j->n - first : j->batch;
    fkt_status st;
    d->asked = n;
    FKT_TRY(read_batch(j, d, first, n, &d->got));
    FKT_TRY(encode_fresh(j, d));
    for (size_t i = 0; i < d->got; i++) {
        st = fkt_pipeline_record(j->pipeline, d->z + i * j->pipeline->task.part[0].dim, d->u, d->w + i * m,
                                 d->q + i * m);
        FKT_TRY(fkt_fail_in(st, "'%s'", fkt_dataset_name(j->ds, d->ids[i])));
        if (j->norms) note_norm(j, d->u);
    }
out:
    return st;
}

static fkt_status show_workspace(struct job *j, const struct workspace *d, unsigned worker)
{
    struct fkt_batch b = {d->got, d->labels, j->visitor->digests ? d->digests : NULL, d->z, d->w, d->q};
    fkt_status st = j->visitor->visit(j->visitor->ctx, worker, &b);
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
    if (!w->codec) return fkt_pipeline_no_codec(w);
    if (fkt_dataset_classes(ds) != w->task.n_classes)
        return fkt_fail(FKT_E_MISMATCH, "the dataset has %zu classes, the task %u", fkt_dataset_classes(ds),
                        w->task.n_classes);
    if (fkt_dataset_fit(ds) != w->task.fit)
        return fkt_fail(FKT_E_MISMATCH, "the dataset was opened with fit '%s', the task says '%s'",
                        fkt_fit_name(fkt_dataset_fit(ds)), fkt_fit_name(w->task.fit));
    batch = fkt_pipeline_batch(w->codec);
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
    if (options->encodings)
        FKT_TRY(fkt_encodings_of(options->encodings, w->codec, w->task.filter, fkt_dataset_fit(ds), &j->kept));
    FKT_TRY(fkt_alloc(&j->desks, threads));
    for (unsigned i = 0; i < threads; i++) FKT_TRY(workspace_init(&j->desks[i], w, batch));
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
