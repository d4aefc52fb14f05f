/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the backend: plans, workspaces, and batches under way.
 *
 * A workspace has a stream, a block of the card's memory for all values (nn/arena.c), and pinned memory of the host for
 * what goes in and comes out. The first batch of a plan runs step by step, with every result checked (run_steps.c);
 * kernels are loaded then, which a recording does not allow. After that a workspace records its first batch as a CUDA
 * graph (copy in, all steps, copy out), and from then on a batch is one launch. begin copies the images to the pinned
 * memory and queues; finish waits and copies out: between them another workspace can begin, so that copies and kernels
 * of two batches overlap.
 *
 * An incomplete batch is filled with copies of its first image: all go through the same kernels, and what is not a
 * number in the filling is not one in the batch either. */
#include "nn/cuda/conv.h"
#include "nn/cuda/kernels.h"
#include "nn/cuda/plan.h"

#include "base/alloc.h"
#include "base/wipe.h"

#include <stdatomic.h>
#include <string.h>

enum { WORKSPACES = 2 }; /* one computes while the other is copied */

struct workspace {
    const struct fkt_cuda_plan *plan;
    cudaStream_t stream;
    cudaGraphExec_t batch; /* NULL: not recorded yet */
    char *arena;           /* on the card */
    void *in, *out;        /* on the card, as the caller gives and takes them */
    int *bad;              /* on the card: one for the output, then one for each step */
    void *host_in, *host_out;
    int *host_bad; /* of the output */
};

static size_t bytes_in(const struct fkt_cuda_plan *p)
{
    size_t n = (size_t)p->in_shape.c * p->in_shape.h * p->in_shape.w;
    return p->spec.pixels_in ? n : n * sizeof(float);
}

static size_t bytes_out(const struct fkt_cuda_plan *p)
{
    size_t n = (size_t)p->out_shape.c * p->out_shape.h * p->out_shape.w;
    return p->spec.bytes_out ? n : n * sizeof(float);
}

static void plan_free(void *plan)
{
    struct fkt_cuda_plan *p = plan;
    if (!p) return;
    if (p->device) (void)cudaSetDevice(p->device->index);
    fkt_cuda_plan_clear(p);
    fkt_free((void *)p->checked);
    fkt_free(p);
}

static fkt_status plan_new(void **out, const struct fkt_net *net, const struct fkt_shape *shapes,
                           const struct fkt_weights *weights, const struct fkt_engine_spec *spec,
                           struct fkt_engine_facts *facts)
{
    struct fkt_cuda_plan *p = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&p, 1));
    FKT_TRY(fkt_alloc(&p->checked, 1));
    FKT_TRY(fkt_cuda_device(&p->device, spec->device));
    p->net = net;
    p->file = weights;
    p->spec = *spec;
    p->facts = facts;
    FKT_TRY(fkt_cuda_plan_build(p, shapes));
    facts->max_workspaces = WORKSPACES;
    p->facts = NULL;
    *out = p;
    p = NULL;
out:
    plan_free(p);
    return st;
}

static void workspace_free(void *workspace)
{
    struct workspace *d = workspace;
    if (!d) return;
    (void)cudaSetDevice(d->plan->device->index);
    if (d->stream) (void)cudaStreamSynchronize(d->stream);
    if (d->batch) (void)cudaGraphExecDestroy(d->batch);
    fkt_cuda_stream_free(d->stream, d->plan->device);
    fkt_cuda_free(d->arena);
    fkt_cuda_free(d->in);
    fkt_cuda_free(d->out);
    fkt_cuda_free(d->bad);
    if (d->host_in) fkt_wipe(d->host_in, d->plan->spec.batch * bytes_in(d->plan)); /* images or latents */
    if (d->host_out) fkt_wipe(d->host_out, d->plan->spec.batch * bytes_out(d->plan));
    fkt_cuda_host_free(d->host_in);
    fkt_cuda_host_free(d->host_out);
    fkt_cuda_host_free(d->host_bad);
    fkt_free(d);
}

static fkt_status workspace_new(void **out, const void *plan)
{
    const struct fkt_cuda_plan *p = plan;
    const size_t n = p->spec.batch;
    struct workspace *d = NULL;
    void *at = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&d, 1));
    d->plan = p;
    FKT_TRY(fkt_cuda_use(p->device));
    FKT_TRY(fkt_cuda_alloc(&at, p->arena_bytes, "a batch"));
    d->arena = at;
    FKT_TRY(fkt_cuda_alloc(&d->in, n * bytes_in(p), "a batch's input"));
    FKT_TRY(fkt_cuda_alloc(&d->out, n * bytes_out(p), "a batch's output"));
    FKT_TRY(fkt_cuda_alloc(&at, (p->n_steps + 1) * sizeof *d->bad, "a batch's checks"));
    d->bad = at;
    FKT_TRY(fkt_cuda_host_alloc(&d->host_in, n * bytes_in(p), "a batch's input"));
    FKT_TRY(fkt_cuda_host_alloc(&d->host_out, n * bytes_out(p), "a batch's output"));
    FKT_TRY(fkt_cuda_host_alloc(&at, sizeof *d->host_bad, "a batch's checks"));
    d->host_bad = at;
    FKT_TRY(fkt_cuda_stream_new(&d->stream, p->device, 0));
    *out = d;
    d = NULL;
out:
    workspace_free(d);
    return st;
}

static fkt_status copy_in(const struct workspace *d)
{
    const struct fkt_cuda_plan *p = d->plan;
    const struct fkt_cuda_tensor x = fkt_cuda_value_at(p, &p->input, d->arena);
    fkt_status st;
    FKT_TRY(fkt_cuda_check(
        cudaMemcpyAsync(d->in, d->host_in, p->spec.batch * bytes_in(p), cudaMemcpyHostToDevice, d->stream),
        "copying images to the card"));
    FKT_TRY(fkt_cuda_check(cudaMemsetAsync(d->bad, 0, sizeof *d->bad, d->stream), "preparing a batch"));
    if (p->spec.pixels_in)
        FKT_TRY(fkt_cuda_from_bytes(&x, d->in, (const float *)(const void *)((const char *)p->block + p->table),
                                    d->stream));
    else FKT_TRY(fkt_cuda_from_nchw(&x, d->in, (int)p->in_shape.c, d->stream));
out:
    return st;
}

static fkt_status copy_out(const struct workspace *d)
{
    const struct fkt_cuda_plan *p = d->plan;
    const struct fkt_cuda_tensor y = fkt_cuda_value_at(p, &p->output, d->arena);
    fkt_status st;
    if (p->spec.bytes_out)
        FKT_TRY(fkt_cuda_to_bytes(d->out, &y, p->spec.out_scale, p->spec.out_shift, d->bad, d->stream));
    else FKT_TRY(fkt_cuda_to_nchw(d->out, &y, (int)p->out_shape.c, d->stream));
    FKT_TRY(fkt_cuda_check(
        cudaMemcpyAsync(d->host_out, d->out, p->spec.batch * bytes_out(p), cudaMemcpyDeviceToHost, d->stream),
        "copying results from the card"));
    FKT_TRY(fkt_cuda_check(cudaMemcpyAsync(d->host_bad, d->bad, sizeof *d->bad, cudaMemcpyDeviceToHost, d->stream),
                           "copying results from the card"));
out:
    return st;
}

static fkt_status refuse(const struct fkt_cuda_plan *p, size_t step)
{
    const struct fkt_op *op = p->step[step].op;
    const char *weight = op->weight != FKT_NO_SLOT ? fkt_weights_name(p->file, op->weight) : NULL;
    return fkt_fail_hint(FKT_E_NUMERIC, "the weights are damaged, or are not those of this network",
                         "step %zu of the network (%s%s%s%s) gives numbers that are not finite", step,
                         fkt_op_name(op->kind), weight ? ", weight '" : "", weight ? weight : "", weight ? "'" : "");
}

/* The plan's first batch: step by step, all of it checked. It waits for the batch. */
static fkt_status run_checked(struct workspace *d)
{
    const struct fkt_cuda_plan *p = d->plan;
    int *bad = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&bad, p->n_steps + 1));
    FKT_TRY(fkt_cuda_check(cudaMemsetAsync(d->bad, 0, (p->n_steps + 1) * sizeof *bad, d->stream), "preparing a batch"));
    FKT_TRY(copy_in(d));
    for (size_t i = 0; i < p->n_steps; i++) {
        FKT_TRY(fkt_cuda_step_check_before(p, &p->step[i], d->arena, d->bad + 1 + i, d->stream));
        FKT_TRY(fkt_cuda_step_run(p, &p->step[i], d->arena, d->stream));
        FKT_TRY(fkt_cuda_step_check_after(p, &p->step[i], d->arena, d->bad + 1 + i, d->stream));
    }
    FKT_TRY(copy_out(d));
    FKT_TRY(fkt_cuda_check(cudaStreamSynchronize(d->stream), "running a network"));
    FKT_TRY(fkt_cuda_check(cudaMemcpy(bad, d->bad, (p->n_steps + 1) * sizeof *bad, cudaMemcpyDeviceToHost),
                           "copying results from the card"));
    for (size_t i = 0; i < p->n_steps; i++)
        if (bad[i + 1]) {
            st = refuse(p, i);
            goto out;
        }
    atomic_store(p->checked, 1);
out:
    fkt_free(bad);
    return st;
}

static fkt_status queue(const struct workspace *d)
{
    const struct fkt_cuda_plan *p = d->plan;
    fkt_status st;
    FKT_TRY(copy_in(d));
    for (size_t i = 0; i < p->n_steps; i++) FKT_TRY(fkt_cuda_step_run(p, &p->step[i], d->arena, d->stream));
    FKT_TRY(copy_out(d));
out:
    return st;
}

/* The capture must end also after a failure, else the stream cannot be used again. */
static fkt_status record(struct workspace *d)
{
    cudaGraph_t graph = NULL;
    cudaError_t ended;
    fkt_status st;
    FKT_TRY(fkt_cuda_check(cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeThreadLocal), "recording a batch"));
    st = queue(d);
    ended = cudaStreamEndCapture(d->stream, &graph);
    if (st == FKT_OK) st = fkt_cuda_check(ended, "recording a batch");
    else (void)cudaGetLastError();
    if (st == FKT_OK) st = fkt_cuda_check(cudaGraphInstantiate(&d->batch, graph, 0), "recording a batch");
    if (st != FKT_OK) d->batch = NULL;
    if (graph) (void)cudaGraphDestroy(graph);
out:
    return st;
}

/* After a failure nothing may be under way; its own sentence stays. */
static fkt_status settle(const struct workspace *d, fkt_status st)
{
    struct fkt_failure first;
    if (st == FKT_OK) return st;
    fkt_failure_save(&first, st);
    (void)cudaStreamSynchronize(d->stream);
    (void)cudaGetLastError();
    return fkt_failure_restore(&first);
}

static fkt_status begin(const void *plan, void *workspace, const void *in, size_t n)
{
    const struct fkt_cuda_plan *p = plan;
    struct workspace *d = workspace;
    const size_t each = bytes_in(p);
    fkt_status st;
    FKT_TRY(fkt_cuda_use(p->device));
    memcpy(d->host_in, in, n * each);
    for (size_t i = n; i < p->spec.batch; i++) memcpy((char *)d->host_in + i * each, in, each);
    if (!atomic_load(p->checked)) FKT_TRY(run_checked(d));
    else {
        if (!d->batch) FKT_TRY(record(d));
        FKT_TRY(fkt_cuda_check(cudaGraphLaunch(d->batch, d->stream), "starting a batch"));
    }
out:
    return settle(d, st);
}

static fkt_status finish(const void *plan, void *workspace, size_t n, void *out)
{
    const struct fkt_cuda_plan *p = plan;
    struct workspace *d = workspace;
    fkt_status st;
    FKT_TRY(fkt_cuda_use(p->device));
    FKT_TRY(fkt_cuda_check(cudaStreamSynchronize(d->stream), "running a network"));
    if (*d->host_bad) {
        st = fkt_fail(FKT_E_NUMERIC, "the network gave NaN");
        goto out;
    }
    memcpy(out, d->host_out, n * bytes_out(p));
out:
    return st;
}

const struct fkt_backend fkt_backend_cuda = {.name = "cuda",
                                             .bytes = 1,
                                             .plan = plan_new,
                                             .workspace = workspace_new,
                                             .begin = begin,
                                             .finish = finish,
                                             .workspace_free = workspace_free,
                                             .plan_free = plan_free};
