/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - closed-form heads from class Gaussians, scored on real images in one pass. */
#include "fedkt/heads.h"

#include "pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <pthread.h>
#include <string.h>

fkt_status fkt_heads_fit(struct fkt_heads *out, const struct fkt_gaussians *g)
{
    struct fkt_class_statistics s = {g->classes, g->length, g->count, g->mean, g->cov, g->noise_edge, g->mean_noise};
    fkt_status st;
    memset(out, 0, sizeof *out);
    for (int k = 0; k < FKT_HEAD_KINDS; k++) FKT_TRY(fkt_head_fit(&out->head[k], (enum fkt_head_kind)k, &s));
out:
    if (st != FKT_OK) fkt_heads_clear(out);
    return st;
}

void fkt_heads_clear(struct fkt_heads *h)
{
    for (int k = 0; k < FKT_HEAD_KINDS; k++) fkt_head_free(h->head[k]);
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

fkt_status fkt_heads_evaluate(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                              const struct fkt_head *const *heads, size_t n_heads, struct fkt_score *scores,
                              const struct fkt_pipeline_options *options)
{
    struct evaluate j = {.heads = heads, .n_heads = n_heads, .scores = scores};
    struct fkt_visitor v = {.visit = evaluate_batch, .ctx = &j};
    struct fkt_meter meter;
    fkt_status st;
    for (size_t h = 0; h < n_heads; h++)
        if (fkt_head_length(heads[h]) != w->task.coordinates.length || fkt_head_classes(heads[h]) != w->task.n_classes)
            return fkt_fail(FKT_E_MISMATCH, "a head of %u classes and length %u does not fit the task",
                            fkt_head_classes(heads[h]), fkt_head_length(heads[h]));
    if (!idx) n = fkt_dataset_size(ds);
    pthread_mutex_init(&j.lock, NULL);
    fkt_meter_init(&meter, options->progress, "evaluating", n);
    st = fkt_pipeline_visit(w, ds, idx, n, &v, options, &meter);
    fkt_meter_clear(&meter);
    pthread_mutex_destroy(&j.lock);
    return st;
}
