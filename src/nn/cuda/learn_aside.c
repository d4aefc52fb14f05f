/* SPDX-License-Identifier: Apache-2.0 */
/* learn_aside.c - gradients of weights on a second stream, beside the rest of the backward.
 *
 * Nothing but the optimiser reads them, while the gradient by a convolution's source is what the next step waits for.
 * A norm's passes are bound by memory, a gradient of weights by arithmetic, and late layers have too few blocks to fill
 * the card: beside each other they do. In a captured step both streams are branches of one graph.
 *
 *   stream   ... norm 5 . data 5 . norm 4 . data 4 . norm 3 ...        . before a step aside: what it reads is ready
 *   beside           weights 5 ... weights 4 ... weights 3 ...
 *
 * What a step aside reads must stay until it is done. The stream waits for the step before the last one (DEPTH) when
 * it starts another, and for any that reads a buffer which a step is about to overwrite; buffers live until then. The
 * order in which the streams run has no influence on a number. Blocks of this stream start where the other leaves room:
 * it has the lowest priority, the learner's own the highest. */
#include "nn/cuda/learn.h"

#include "base/alloc.h"

enum { DEPTH = 2 };

#ifdef FKT_CUDA_HOST
int fkt_cuda_aside_late;
#endif

static int goes_aside(const struct fkt_cuda_step *k)
{
    return k->kind == FKT_CUDA_STEP_COLUMNS || (k->kind == FKT_CUDA_STEP_PRODUCT && k->way == FKT_CUDA_BACK_WEIGHTS);
}

/* 1 when step k overwrites what step `beside` uses. */
static int overwrites(const struct fkt_cuda_step *k, const struct fkt_cuda_step *beside)
{
    const uint32_t written[] = {k->e, k->d}, used[] = {beside->x, beside->g, beside->scratch};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            if (written[i] != FKT_NONE && written[i] == used[j]) return 1;
    return 0;
}

static void keep_until(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k, uint32_t step)
{
    const uint32_t used[] = {k->x, k->g, k->scratch};
    for (int i = 0; i < 3; i++)
        if (used[i] != FKT_NONE && l->buffer[used[i]].last < step) l->buffer[used[i]].last = step;
}

fkt_status fkt_cuda_draft_aside(struct fkt_cuda_draft *s)
{
    struct fkt_cuda_learn *l = s->l;
    uint32_t *at = NULL, waited = 0; /* the steps aside; how many of them the stream has waited for */
    fkt_status st;
    FKT_TRY(fkt_alloc(&at, l->n_steps));
    for (uint32_t j = (uint32_t)l->n_ahead; j < l->n_steps; j++) {
        struct fkt_cuda_step *k = &l->step[j];
        uint32_t wait = waited;
        for (uint32_t i = waited; i < l->n_aside; i++)
            if (overwrites(k, &l->step[at[i]])) wait = i + 1;
        k->aside = goes_aside(k);
        if (k->aside) {
            at[l->n_aside++] = j;
            if (l->n_aside > DEPTH && wait < l->n_aside - DEPTH) wait = (uint32_t)l->n_aside - DEPTH;
        }
        for (uint32_t i = waited; i < wait; i++) keep_until(l, &l->step[at[i]], j);
        k->wait = waited = wait;
    }
    for (uint32_t i = waited; i < l->n_aside; i++) keep_until(l, &l->step[at[i]], (uint32_t)l->n_steps);
out:
    fkt_free(at);
    return st;
}

fkt_status fkt_cuda_aside_new(struct fkt_cuda_learn *l)
{
    int least = 0, greatest = 0;
    fkt_status st;
    if (!l->n_aside) return FKT_OK;
    FKT_TRY(fkt_cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "making a stream"));
    FKT_TRY(fkt_cuda_stream_new(&l->beside, l->device, least));
    FKT_TRY(fkt_alloc(&l->ready, 2 * l->n_aside));
    for (size_t i = 0; i < 2 * l->n_aside; i++)
        FKT_TRY(fkt_cuda_check(cudaEventCreateWithFlags(&l->ready[i], cudaEventDisableTiming), "making an event"));
out:
    return st;
}

void fkt_cuda_aside_free(struct fkt_cuda_learn *l)
{
    for (size_t i = 0; l->ready && i < 2 * l->n_aside; i++)
        if (l->ready[i]) cudaEventDestroy(l->ready[i]);
    fkt_cuda_stream_free(l->beside, l->device);
    fkt_free(l->ready);
}

/* Step k is the `number`th aside: it begins when the stream is here, and leaves an event at its end. */
static fkt_status run_aside(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k, size_t number)
{
    static const char doing[] = "queueing a step";
    const cudaEvent_t ready = l->ready[2 * number], done = l->ready[2 * number + 1];
    fkt_status st;
    FKT_TRY(fkt_cuda_check(cudaEventRecord(ready, l->stream), doing));
    FKT_TRY(fkt_cuda_check(cudaStreamWaitEvent(l->beside, ready, 0), doing));
    FKT_TRY(fkt_cuda_learn_run(l, k));
    FKT_TRY(fkt_cuda_check(cudaEventRecord(done, l->beside), doing));
out:
    return st;
}

/* Steps aside from `from` on, up to number `until`, where they were left for as late as possible. */
static fkt_status run_late(struct fkt_cuda_learn *l, size_t from, size_t *number, size_t until)
{
    size_t seen = 0;
    fkt_status st = FKT_OK;
    for (size_t i = from; i < l->n_steps && *number < until; i++) {
        if (!l->step[i].aside || seen++ < *number) continue;
        FKT_TRY(run_aside(l, &l->step[i], *number));
        ++*number;
    }
out:
    return st;
}

static int late(void)
{
#ifdef FKT_CUDA_HOST
    return fkt_cuda_aside_late;
#else
    return 0;
#endif
}

fkt_status fkt_cuda_learn_steps(struct fkt_cuda_learn *l, size_t from, size_t to)
{
    size_t number = 0, seen = 0, waited = 0;
    fkt_status st = FKT_OK;
    for (size_t i = from; i < to; i++) {
        const struct fkt_cuda_step *k = &l->step[i];
        if (late()) FKT_TRY(run_late(l, from, &number, k->wait));
        if (k->wait > waited) {
            waited = k->wait;
            FKT_TRY(fkt_cuda_check(cudaStreamWaitEvent(l->stream, l->ready[2 * waited - 1], 0), "queueing a step"));
        }
        if (k->aside) {
            seen++;
            if (!late()) FKT_TRY(run_aside(l, k, number++));
        } else FKT_TRY(fkt_cuda_learn_run(l, k));
    }
    if (late()) FKT_TRY(run_late(l, from, &number, seen));
    if (seen > waited)
        FKT_TRY(fkt_cuda_check(cudaStreamWaitEvent(l->stream, l->ready[2 * seen - 1], 0), "queueing a step"));
out:
    return st;
}
