/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - closed-form heads from class Gaussians, scored on real images in one pass. */
#include "fedkt/heads.h"

#include "pipeline/pipeline.h"
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <pthread.h>
#include <string.h>

/* The origin of a head is derived here, so that no program can forget or change it. */
static fkt_status set_origin(struct fkt_head *h, const struct fkt_release *r)
{
    fkt_status st = fkt_head_set_origin(h, r->task.sha256, r->sha256, fkt_release_not_private(r));
    return st == FKT_OK ? fkt_head_set_classes(h, (const char *const *)r->task.classes) : st;
}

fkt_status fkt_heads_fit(struct fkt_heads *out, const struct fkt_gaussians *g, const struct fkt_release *release)
{
    struct fkt_class_statistics s = {.classes = g->classes,
                                     .length = g->length,
                                     .count = g->count,
                                     .mean = g->mean,
                                     .cov = g->cov,
                                     .noise_edge = g->noise_edge,
                                     .mean_noise = g->mean_noise};
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (release && (g->classes != release->task.n_classes || g->length != release->task.part[0].coordinates.length))
        return fkt_fail(FKT_E_MISMATCH, "%u Gaussians of length %u are not of this release: it has %u of length %u",
                        g->classes, g->length, release->task.n_classes, release->task.part[0].coordinates.length);
    FKT_TRY(fkt_alloc(&out->head, FKT_HEAD_KINDS));
    out->n = FKT_HEAD_KINDS;
    for (int k = 0; k < FKT_HEAD_KINDS; k++) {
        FKT_TRY(fkt_head_fit(&out->head[k], (enum fkt_head_kind)k, &s));
        if (release) FKT_TRY(set_origin(out->head[k], release));
    }
out:
    if (st != FKT_OK) fkt_heads_clear(out);
    return st;
}

void fkt_heads_clear(struct fkt_heads *h)
{
    for (size_t k = 0; k < h->n; k++) fkt_head_free(h->head[k]);
    fkt_free(h->head);
    memset(h, 0, sizeof *h);
}

struct evaluate {
    const struct fkt_head *const *heads;
    size_t n_heads;
    struct fkt_score *scores;
    pthread_mutex_t lock; /* guards scores */
};

static fkt_status evaluate_batch(void *ctx, unsigned worker, const struct fkt_batch *b)
{
    struct evaluate *j = ctx;
    uint32_t *guess = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&guess, b->n));
    for (size_t h = 0; h < j->n_heads; h++) {
        FKT_TRY(fkt_head_predict(j->heads[h], b->w, b->n, guess));
        pthread_mutex_lock(&j->lock);
        st = fkt_score_add(&j->scores[h], b->labels, guess, b->n);
        pthread_mutex_unlock(&j->lock);
        FKT_TRY(st);
    }
out:
    fkt_free(guess);
    return st;
}

static fkt_status check_numbers(const struct fkt_head *h, const struct fkt_task *task)
{
    if (fkt_head_length(h) == task->part[0].coordinates.length && fkt_head_classes(h) == task->n_classes) return FKT_OK;
    return fkt_fail(FKT_E_MISMATCH, "a head of %u classes and length %u does not fit the task", fkt_head_classes(h),
                    fkt_head_length(h));
}

fkt_status fkt_head_check_task(const struct fkt_head *h, const struct fkt_task *task)
{
    if (fkt_head_task(h)[0] && strcmp(fkt_head_task(h), task->sha256) != 0)
        return fkt_fail(FKT_E_MISMATCH, "the head comes from task %.12s, and this is task %.12s", fkt_head_task(h),
                        task->sha256);
    return check_numbers(h, task);
}

fkt_status fkt_heads_score(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                           const struct fkt_head *const *heads, size_t n_heads, struct fkt_score *scores,
                           const struct fkt_pipeline_options *options)
{
    struct evaluate j = {.heads = heads, .n_heads = n_heads, .scores = scores};
    struct fkt_visitor v = {.visit = evaluate_batch, .ctx = &j};
    struct fkt_meter meter;
    fkt_status st;
    for (size_t h = 0; h < n_heads; h++) {
        st = check_numbers(heads[h], &w->task);
        if (st != FKT_OK) return st;
    }
    if (!idx) n = fkt_dataset_size(ds);
    pthread_mutex_init(&j.lock, NULL);
    fkt_meter_init(&meter, options->progress, "evaluating", n);
    st = fkt_pipeline_visit(w, ds, idx, n, &v, options, &meter);
    fkt_meter_clear(&meter);
    pthread_mutex_destroy(&j.lock);
    return st;
}

fkt_status fkt_heads_evaluate(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                              const struct fkt_head *const *heads, size_t n_heads, struct fkt_score *scores,
                              const struct fkt_pipeline_options *options)
{
    for (size_t h = 0; h < n_heads; h++) {
        fkt_status st = fkt_head_check_task(heads[h], &w->task);
        if (st != FKT_OK) return st;
    }
    return fkt_heads_score(w, ds, idx, n, heads, n_heads, scores, options);
}
