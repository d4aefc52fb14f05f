/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - heads scored on real images in one pass. A head takes some parts of the record vectors. */
#include "fedkt/heads.h"

#include "pipeline/rows.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "base/wipe.h"

#include <pthread.h>
#include <string.h>

struct evaluate {
    const struct fkt_head *const *heads;
    size_t n_heads;
    size_t length; /* of record vectors */
    struct fkt_score *scores;
    pthread_mutex_t lock; /* guards scores */
};

/* Coordinates of h (n, m) out of record vectors w (n, length). */
static void gather(const struct fkt_head *h, const double *w, size_t n, size_t length, double *out)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < fkt_head_parts(h); p++) {
            const size_t m = fkt_head_part_length(h, p);
            memcpy(out, w + i * length + fkt_head_part_offset(h, p), m * sizeof *out);
            out += m;
        }
}

static fkt_status evaluate_batch(void *ctx, unsigned worker, const struct fkt_batch *b)
{
    struct evaluate *j = ctx;
    uint32_t *guess = NULL;
    double *own = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&guess, b->n));
    FKT_TRY(fkt_alloc(&own, b->n * j->length));
    for (size_t h = 0; h < j->n_heads; h++) {
        if (!j->heads[h]) continue;
        gather(j->heads[h], b->w, b->n, j->length, own);
        FKT_TRY(fkt_head_predict(j->heads[h], own, b->n, guess));
        pthread_mutex_lock(&j->lock);
        st = fkt_score_add(&j->scores[h], b->labels, guess, b->n);
        pthread_mutex_unlock(&j->lock);
        FKT_TRY(st);
    }
out:
    fkt_free(guess);
    fkt_free_secret(own);
    return st;
}

static size_t vector_length(const struct fkt_task *task)
{
    size_t length = 0;
    for (uint32_t p = 0; p < task->parts; p++) length += task->part[p].coordinates.length;
    return length;
}

static fkt_status check_numbers(const struct fkt_head *h, const struct fkt_task *task)
{
    size_t end = 0;
    for (uint32_t p = 0; p < fkt_head_parts(h); p++)
        end = (size_t)fkt_head_part_offset(h, p) + fkt_head_part_length(h, p); /* in order */
    if (end <= vector_length(task) && fkt_head_classes(h) == task->n_classes &&
        (task->parts > 1 || fkt_head_length(h) == vector_length(task)))
        return FKT_OK;
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
    struct evaluate j = {.heads = heads, .n_heads = n_heads, .length = vector_length(&w->task), .scores = scores};
    struct fkt_visitor v = {.visit = evaluate_batch, .ctx = &j};
    fkt_status st;
    for (size_t h = 0; h < n_heads; h++) {
        st = heads[h] ? check_numbers(heads[h], &w->task) : FKT_OK;
        if (st != FKT_OK) return st;
    }
    pthread_mutex_init(&j.lock, NULL);
    st = fkt_rows_visit(FKT_ROWS_W, w, ds, idx, n, &v, options, "evaluating");
    pthread_mutex_destroy(&j.lock);
    return st;
}

fkt_status fkt_heads_evaluate(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                              const struct fkt_head *const *heads, size_t n_heads, struct fkt_score *scores,
                              const struct fkt_pipeline_options *options)
{
    for (size_t h = 0; h < n_heads; h++) {
        fkt_status st = heads[h] ? fkt_head_check_task(heads[h], &w->task) : FKT_OK;
        if (st != FKT_OK) return st;
    }
    return fkt_heads_score(w, ds, idx, n, heads, n_heads, scores, options);
}
