/* SPDX-License-Identifier: Apache-2.0 */
/* learn_epoch.c - steps that need nothing from the host: the images, the epoch's views and the optimiser's numbers lie
 * on the card, and a step finds its own by a counter that it increments.
 *
 *   gather (views of uint8 images) -> forward -> loss -> backward -> optimiser, average -> tally, counter
 *
 * One step is captured as a CUDA graph; training is launches of it, and the host waits in collect alone. What changes
 * from epoch to epoch is reached through one struct on the card, so the graph stays valid. The first step of a learner
 * runs uncaptured: libraries load their kernels at the first use. */
#include "nn/cuda/learn.h"

#include "base/alloc.h"

struct fkt_cuda_resident {
    uint8_t *rgb; /* all on the card */
    uint32_t *label;
    float *teacher; /* NULL: none */
    float *value;
    struct fkt_view_at *view;
    struct fkt_cuda_planned *planned;
    struct fkt_cuda_epoch *epoch;
    struct fkt_cuda_tally *tally;
    double *loss; /* (batch) */
    uint32_t *hit;
    size_t view_room, planned_room;
    struct fkt_cuda_epoch now; /* what `epoch` is to hold; `dirty`: not copied yet */
    int dirty, warm;
    cudaGraphExec_t graph;
};

void fkt_cuda_resident_free(struct fkt_cuda_learn *l)
{
    struct fkt_cuda_resident *r = l->resident;
    if (!r) return;
    if (r->graph) cudaGraphExecDestroy(r->graph);
    fkt_cuda_free(r->rgb);
    fkt_cuda_free(r->label);
    fkt_cuda_free(r->teacher);
    fkt_cuda_free(r->value);
    fkt_cuda_free(r->view);
    fkt_cuda_free(r->planned);
    fkt_cuda_free(r->epoch);
    fkt_cuda_free(r->tally);
    fkt_cuda_free(r->loss);
    fkt_cuda_free(r->hit);
    fkt_free(r);
    l->resident = NULL;
}

/* *p, on the card, becomes a copy of those bytes; `room`: what *p holds (NULL: exactly `bytes`, allocated anew). */
static fkt_status replace(const struct fkt_cuda_learn *l, void *pp, size_t *room, const void *from, size_t bytes,
                          const char *what)
{
    void **p = pp, *fresh = NULL;
    fkt_status st = FKT_OK;
    if (!*p || !room || *room < bytes) {
        fkt_cuda_free(*p);
        *p = NULL;
        FKT_TRY(fkt_cuda_alloc(&fresh, bytes ? bytes : 1, what));
        *p = fresh;
        if (room) *room = bytes;
    }
    if (bytes) FKT_TRY(fkt_cuda_learn_send(l, *p, from, bytes));
out:
    return st;
}

static fkt_status resident_new(struct fkt_cuda_learn *l)
{
    const size_t n = l->spec.batch;
    struct fkt_cuda_resident *r = NULL;
    void *p = NULL;
    fkt_status st;
    if (l->resident) return FKT_OK;
    FKT_TRY(fkt_alloc(&r, 1));
    l->resident = r;
    FKT_TRY(fkt_cuda_alloc(&p, sizeof *r->epoch, "an epoch's plan"));
    r->epoch = p;
    FKT_TRY(fkt_cuda_alloc(&p, sizeof *r->tally, "an epoch's sums"));
    r->tally = p;
    FKT_TRY(fkt_cuda_alloc(&p, n * sizeof *r->loss, "losses of a batch"));
    r->loss = p;
    FKT_TRY(fkt_cuda_alloc(&p, n * sizeof *r->hit, "hits of a batch"));
    r->hit = p;
out:
    if (st != FKT_OK) fkt_cuda_resident_free(l);
    return st;
}

fkt_status fkt_cuda_learn_hold(void *self, const struct fkt_held *p)
{
    struct fkt_cuda_learn *l = self;
    const size_t bytes = (size_t)l->spec.height * l->spec.width * 3 * p->n, classes = l->shape[l->net->n_ops].c;
    struct fkt_cuda_resident *r;
    fkt_status st;
    FKT_TRY(fkt_cuda_use(l->device));
    FKT_TRY(fkt_cuda_check(cudaStreamSynchronize(l->stream), "learning"));
    FKT_TRY(resident_new(l));
    r = l->resident;
    FKT_TRY(replace(l, &r->rgb, NULL, p->rgb, bytes, "a dataset"));
    FKT_TRY(replace(l, &r->label, NULL, p->label, p->n * sizeof *p->label, "a dataset's labels"));
    FKT_TRY(replace(l, &r->value, NULL, p->value, sizeof(float) * 3 * 256, "a table of pixel values"));
    fkt_cuda_free(r->teacher);
    r->teacher = NULL;
    if (p->teacher)
        FKT_TRY(replace(l, &r->teacher, NULL, p->teacher, p->n * classes * sizeof *p->teacher, "a teacher's logits"));
out:
    if (st != FKT_OK) fkt_cuda_resident_free(l); /* the run goes on without: half a dataset is of no use */
    return st;
}

fkt_status fkt_cuda_learn_plan_epoch(void *self, const struct fkt_epoch_steps *e)
{
    const struct fkt_cuda_tally start = {.first_bad = UINT64_MAX, .loss = e->loss_before};
    struct fkt_cuda_learn *l = self;
    struct fkt_cuda_resident *r = l->resident;
    struct fkt_cuda_planned *planned = NULL;
    fkt_status st;
    FKT_TRY(fkt_cuda_use(l->device));
    FKT_TRY(fkt_cuda_check(cudaStreamSynchronize(l->stream), "learning"));
    FKT_TRY(fkt_alloc(&planned, (size_t)e->steps));
    for (size_t i = 0; i < e->steps; i++) {
        planned[i] = fkt_cuda_planned_of(&e->step[i].optimizer, e->step[i].average);
        if (planned[i].kind == FKT_OPTIMIZER_ADAM) FKT_TRY(fkt_cuda_arrays_have(l, FKT_SECOND));
        if (planned[i].average >= 0) FKT_TRY(fkt_cuda_arrays_have(l, FKT_AVERAGE));
    }
    FKT_TRY(replace(l, &r->view, &r->view_room, e->view, (size_t)e->steps * l->spec.batch * sizeof *e->view,
                    "an epoch's views"));
    FKT_TRY(replace(l, &r->planned, &r->planned_room, planned, (size_t)e->steps * sizeof *planned, "an epoch's steps"));
    FKT_TRY(fkt_cuda_learn_send(l, r->tally, &start, sizeof start));
    r->now = (struct fkt_cuda_epoch){.view = r->view,
                                     .planned = r->planned,
                                     .rgb = r->rgb,
                                     .label = r->label,
                                     .value = r->value,
                                     .teacher = r->teacher,
                                     .loss = e->loss};
    r->dirty = 1;
out:
    fkt_free(planned);
    return st;
}

/* Queues one step. */
static fkt_status queue_step(struct fkt_cuda_learn *l)
{
    const struct fkt_cuda_resident *r = l->resident;
    const struct fkt_cuda_slots slots = fkt_cuda_arrays_slots(l);
    const uint32_t dout = l->dout_buffer == FKT_NONE ? l->out_buffer : l->dout_buffer;
    const struct fkt_cuda_batch b = {.n = (int)l->spec.batch,
                                     .h = (int)l->spec.height,
                                     .w = (int)l->spec.width,
                                     .channels = (int)fkt_cuda_padded(l, l->shape[0].c),
                                     .classes = (int)l->shape[l->net->n_ops].c,
                                     .precision = l->spec.precision};
    fkt_status st;
    FKT_TRY(fkt_cuda_learn_gather(&b, r->epoch, r->tally, fkt_cuda_learn_at(l, l->in_buffer), l->stream));
    FKT_TRY(fkt_cuda_learn_steps(l, 0, l->n_ahead));
    FKT_TRY(fkt_cuda_learn_loss(&b, r->epoch, r->tally, fkt_cuda_learn_at(l, l->out_buffer), fkt_cuda_learn_at(l, dout),
                                r->loss, r->hit, l->stream));
    FKT_TRY(fkt_cuda_learn_steps(l, l->n_ahead, l->n_steps));
    if (l->floats) FKT_TRY(fkt_cuda_learn_step(&slots, r->epoch, r->tally, l->stream));
    FKT_TRY(fkt_cuda_learn_tally(b.n, r->loss, r->hit, r->tally, l->stream));
out:
    return st;
}

static fkt_status capture(struct fkt_cuda_learn *l)
{
    struct fkt_cuda_resident *r = l->resident;
    cudaGraph_t graph = NULL;
    cudaError_t ended;
    fkt_status st;
    FKT_TRY(fkt_cuda_check(cudaStreamBeginCapture(l->stream, cudaStreamCaptureModeThreadLocal), "capturing a step"));
    st = queue_step(l);
    ended = cudaStreamEndCapture(l->stream, &graph); /* after a failure too: the stream must be usable again */
    if (st != FKT_OK) {
        (void)cudaGetLastError();
        goto out;
    }
    FKT_TRY(fkt_cuda_check(ended, "capturing a step"));
    FKT_TRY(fkt_cuda_check(cudaGraphInstantiate(&r->graph, graph, 0), "preparing a captured step"));
out:
    if (graph) cudaGraphDestroy(graph);
    return st;
}

/* The card's struct of this epoch, where it has changed: arrays may have been made since. */
static fkt_status send_epoch(struct fkt_cuda_learn *l)
{
    struct fkt_cuda_resident *r = l->resident;
    fkt_status st = FKT_OK;
    if (r->now.second != l->learned[FKT_SECOND] || r->now.average != l->learned[FKT_AVERAGE]) r->dirty = 1;
    if (!r->dirty) return FKT_OK;
    r->now.second = l->learned[FKT_SECOND];
    r->now.average = l->learned[FKT_AVERAGE];
    FKT_TRY(fkt_cuda_learn_send(l, r->epoch, &r->now, sizeof r->now));
    r->dirty = 0;
out:
    return st;
}

fkt_status fkt_cuda_learn_train(void *self, uint64_t steps)
{
    struct fkt_cuda_learn *l = self;
    struct fkt_cuda_resident *r = l->resident;
    fkt_status st;
    FKT_TRY(fkt_cuda_use(l->device));
    FKT_TRY(fkt_cuda_arrays_refresh(l));
    FKT_TRY(send_epoch(l));
    if (steps && !r->warm) {
        FKT_TRY(queue_step(l));
        r->warm = 1;
        steps--;
    }
    if (steps && !r->graph) FKT_TRY(capture(l));
    for (; steps; steps--) FKT_TRY(fkt_cuda_check(cudaGraphLaunch(r->graph, l->stream), "starting a step"));
out:
    return st;
}

fkt_status fkt_cuda_learn_collect(void *self, double *loss, uint64_t *hits, uint64_t *first_bad)
{
    struct fkt_cuda_learn *l = self;
    struct fkt_cuda_tally t;
    fkt_status st;
    FKT_TRY(fkt_cuda_use(l->device));
    FKT_TRY(fkt_cuda_learn_fetch(l, &t, l->resident->tally, sizeof t));
    *loss = t.loss;
    *hits = t.hits;
    *first_bad = t.first_bad;
out:
    return st;
}
