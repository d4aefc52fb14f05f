/* SPDX-License-Identifier: Apache-2.0 */
/* learn_run.c - the learner on a card: its memory, its steps in order, and the backend's functions.
 *
 * Forward and backward take the host's arrays through one pinned block (planes of floats) and one kernel that changes
 * order and precision; learn_epoch.c runs the same steps without the host. Everything of a learner is on one stream,
 * except what learn_aside.c puts beside it. */
#include "nn/cuda/learn.h"

#include "base/alloc.h"
#include "base/wipe.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BATCH_MAX = 65535 }; /* images are the second or third dimension of a grid */

static fkt_status run_pool(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    const struct fkt_op *op = k->op;
    const uint32_t result = (uint32_t)(op - l->net->op) + 1;
    const struct fkt_shape x = l->shape[op->in[0]], y = l->shape[result];
    const struct fkt_cuda_pool p = {.n = (int)l->spec.batch,
                                    .h = (int)x.h,
                                    .w = (int)x.w,
                                    .channels = (int)fkt_cuda_padded(l, x.c),
                                    .to_h = (int)y.h,
                                    .to_w = (int)y.w,
                                    .kernel = (int)op->kernel,
                                    .stride = (int)op->stride,
                                    .pad = (int)op->pad,
                                    .precision = l->spec.precision};
    uint16_t *keep = fkt_cuda_learn_at(l, k->keep);
    if (k->kind == FKT_CUDA_STEP_POOL)
        return fkt_cuda_learn_pool(&p, fkt_cuda_learn_at(l, k->x), fkt_cuda_learn_at(l, k->y), keep, l->stream);
    return fkt_cuda_learn_pool_back(&p, fkt_cuda_learn_at(l, k->d), fkt_cuda_learn_at(l, k->g), keep, l->stream);
}

static fkt_status run_mean(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    const uint32_t result = (uint32_t)(k->op - l->net->op) + 1;
    struct fkt_cuda_tensor a, b;
    if (k->kind == FKT_CUDA_STEP_MEAN) {
        a = fkt_cuda_learn_tensor(l, result, k->y);
        b = fkt_cuda_learn_tensor(l, k->op->in[0], k->x);
        return fkt_cuda_mean(&a, &b, l->stream);
    }
    a = fkt_cuda_learn_tensor(l, k->op->in[0], k->d);
    b = fkt_cuda_learn_tensor(l, result, k->g);
    return fkt_cuda_mean_back(&a, &b, 0, l->stream);
}

static fkt_status run_norm(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    struct fkt_cuda_norm n = l->norm[k->norm];
    const struct fkt_cuda_norm_maps m = {.x = fkt_cuda_learn_at(l, k->x),
                                         .z = fkt_cuda_learn_at(l, k->z),
                                         .y = fkt_cuda_learn_at(l, k->y),
                                         .relu = k->relu,
                                         .g = fkt_cuda_learn_at(l, k->g),
                                         .h = fkt_cuda_learn_at(l, k->h),
                                         .e = fkt_cuda_learn_at(l, k->e),
                                         .d = fkt_cuda_learn_at(l, k->d)};
    n.part = fkt_cuda_learn_at(l, k->scratch);
    return k->kind == FKT_CUDA_STEP_NORM ? fkt_cuda_norm_forward(&n, &m, l->stream)
                                         : fkt_cuda_norm_backward(&n, &m, l->stream);
}

static fkt_status clear(struct fkt_cuda_learn *l, const struct fkt_op *op)
{
    const uint32_t slot[] = {op->weight, op->bias};
    fkt_status st = FKT_OK;
    for (int k = 0; k < 2; k++)
        if (slot[k] != FKT_NO_SLOT)
            FKT_TRY(fkt_cuda_check(cudaMemsetAsync(fkt_cuda_array_at(l, FKT_GRADIENT, slot[k]), 0,
                                                   l->array[slot[k]].count * sizeof(float), l->stream),
                                   "clearing gradients"));
out:
    return st;
}

fkt_status fkt_cuda_learn_run(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    const struct fkt_cuda_rows map = fkt_cuda_learn_rows(l, k->value);
    switch (k->kind) {
    case FKT_CUDA_STEP_PRODUCT: return fkt_cuda_product_run(l, k);
    case FKT_CUDA_STEP_COLUMNS:
        return fkt_cuda_learn_columns(&map, fkt_cuda_learn_at(l, k->g), fkt_cuda_learn_at(l, k->scratch),
                                      fkt_cuda_learn_parts(&map), fkt_cuda_array_at(l, FKT_GRADIENT, k->op->bias),
                                      fkt_cuda_stream_of(l, k));
    case FKT_CUDA_STEP_NORM:
    case FKT_CUDA_STEP_NORM_BACK: return run_norm(l, k);
    case FKT_CUDA_STEP_SUM:
        return fkt_cuda_learn_sum(&map, fkt_cuda_learn_at(l, k->y), fkt_cuda_learn_at(l, k->x),
                                  fkt_cuda_learn_at(l, k->z), k->relu, l->stream);
    case FKT_CUDA_STEP_MASK:
        return fkt_cuda_learn_mask(&map, fkt_cuda_learn_at(l, k->d), fkt_cuda_learn_at(l, k->g),
                                   fkt_cuda_learn_at(l, k->h), fkt_cuda_learn_at(l, k->y), l->stream);
    case FKT_CUDA_STEP_MEAN:
    case FKT_CUDA_STEP_MEAN_BACK: return run_mean(l, k);
    case FKT_CUDA_STEP_POOL:
    case FKT_CUDA_STEP_POOL_BACK: return run_pool(l, k);
    case FKT_CUDA_STEP_CLEAR: return clear(l, k->op);
    case FKT_CUDA_STEP_FROZEN:
    case FKT_CUDA_STEP_FROZEN_BACK: return fkt_cuda_frozen_run(l, k);
    }
    return fkt_fail(FKT_E_STATE, "a learner's step is of no kind");
}

/* ---- memory ---- */

static fkt_status copy(const struct fkt_cuda_learn *l, void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind, const char *doing)
{
    fkt_status st;
    FKT_TRY(fkt_cuda_check(cudaMemcpyAsync(to, from, bytes, kind, l->stream), doing));
    FKT_TRY(fkt_cuda_check(cudaStreamSynchronize(l->stream), doing));
out:
    return st;
}

fkt_status fkt_cuda_learn_send(const struct fkt_cuda_learn *l, void *to, const void *from, size_t bytes)
{
    return copy(l, to, from, bytes, cudaMemcpyHostToDevice, "copying a learner's arrays to the card");
}

fkt_status fkt_cuda_learn_fetch(const struct fkt_cuda_learn *l, void *to, const void *from, size_t bytes)
{
    return copy(l, to, from, bytes, cudaMemcpyDeviceToHost, "copying a learner's arrays from the card");
}

static void learner_free(void *self)
{
    struct fkt_cuda_learn *l = self;
    if (!l) return;
    if (l->device) (void)cudaSetDevice(l->device->index);
    if (l->stream) cudaStreamSynchronize(l->stream);
    if (l->beside) cudaStreamSynchronize(l->beside); /* after a failure the stream may not have waited for it */
    fkt_cuda_resident_free(l);
    for (size_t i = 0; i < l->n_steps; i++) fkt_cuda_product_free(&l->step[i].product);
    fkt_cuda_arrays_free(l);
    fkt_cuda_free(l->norm_floats);
    fkt_cuda_free(l->arena);
    for (int k = 0; k < 2; k++) fkt_cuda_free(l->workspace[k]);
    fkt_cuda_aside_free(l);
    fkt_cuda_free(l->planes);
    if (l->staging) fkt_wipe(l->staging, l->plane_floats * sizeof(float)); /* images */
    fkt_cuda_host_free(l->staging);
    fkt_cuda_stream_free(l->stream, l->device);
    fkt_free(l->norm);
    fkt_free(l->step);
    fkt_free(l->buffer);
    fkt_free(l->shape);
    fkt_free(l);
}

enum { NORM_ARRAYS = 6 };

/* Counts floats of batch norms; with memory there, sets their pointers. */
static size_t place_norms(struct fkt_cuda_learn *l)
{
    size_t at = 0;
    for (size_t i = 0; i < l->n_steps; i++) {
        const struct fkt_cuda_step *k = &l->step[i];
        struct fkt_cuda_norm *n;
        size_t c;
        if (k->kind != FKT_CUDA_STEP_NORM && (k->kind != FKT_CUDA_STEP_FROZEN || k->norm == FKT_NONE)) continue;
        n = &l->norm[k->norm];
        c = (size_t)n->map.channels + (64 - (size_t)n->map.channels % 64) % 64;
        if (l->norm_floats) {
            float *base = l->norm_floats + at;
            n->centre = base;
            n->scale = base + c;
            n->a = base + 2 * c;
            n->b = base + 3 * c;
            n->p = base + 4 * c;
            n->r = base + 5 * c;
            n->weight = fkt_cuda_array_at(l, FKT_WEIGHT, k->op->weight);
            n->bias = fkt_cuda_array_at(l, FKT_WEIGHT, k->op->bias);
            n->mean = fkt_cuda_array_at(l, FKT_WEIGHT, k->op->mean);
            n->var = fkt_cuda_array_at(l, FKT_WEIGHT, k->op->var);
            n->weight_gradient = l->spec.frozen ? NULL : fkt_cuda_array_at(l, FKT_GRADIENT, k->op->weight);
            n->bias_gradient = l->spec.frozen ? NULL : fkt_cuda_array_at(l, FKT_GRADIENT, k->op->bias);
        }
        at += NORM_ARRAYS * c;
    }
    return at;
}

static size_t plane(const struct fkt_cuda_learn *l, size_t value)
{
    const struct fkt_shape s = l->shape[value];
    return (size_t)l->spec.batch * s.c * s.h * s.w;
}

static fkt_status check_memory(const struct fkt_cuda_learn *l, uint64_t wanted)
{
    size_t available = 0, all = 0;
    fkt_status st;
    FKT_TRY(fkt_cuda_check(cudaMemGetInfo(&available, &all), "asking for free memory"));
    if (wanted > available)
        st = fkt_fail_hint(FKT_E_NOMEM, "use a smaller batch",
                           "learning with a batch of %" PRIu32 " images of %" PRIu32 " x %" PRIu32
                           " needs %.1f GB of the card's memory, and %.1f GB are free",
                           l->spec.batch, l->spec.width, l->spec.height, (double)wanted / 1e9, (double)available / 1e9);
out:
    return st;
}

static fkt_status allocate(struct fkt_cuda_learn *l, struct fkt_learner_facts *facts)
{
    const size_t in = plane(l, 0), result = plane(l, l->net->n_ops), norms = place_norms(l);
    void *p = NULL;
    fkt_status st;
    l->plane_floats = in > result ? in : result;
    facts->arena_bytes =
        l->arena_bytes + l->workspace_bytes[0] + l->workspace_bytes[1] + (norms + l->plane_floats) * sizeof(float);
    facts->weight_bytes = fkt_cuda_arrays_bytes(l);
    FKT_TRY(check_memory(l, facts->arena_bytes + facts->weight_bytes));
    FKT_TRY(fkt_cuda_arrays_new(l));
    FKT_TRY(fkt_cuda_alloc(&p, l->arena_bytes, "a learner's values"));
    l->arena = p;
    FKT_TRY(fkt_cuda_check(cudaMemsetAsync(p, 0, l->arena_bytes, l->stream), "clearing values"));
    for (int k = 0; k < 2; k++)
        if (l->workspace_bytes[k])
            FKT_TRY(fkt_cuda_alloc(&l->workspace[k], l->workspace_bytes[k], "scratch of convolutions"));
    FKT_TRY(fkt_cuda_aside_new(l));
    FKT_TRY(fkt_cuda_alloc(&p, (norms ? norms : 1) * sizeof(float), "numbers of batch norms"));
    l->norm_floats = p;
    place_norms(l);
    FKT_TRY(fkt_cuda_alloc(&p, l->plane_floats * sizeof(float), "a batch of images"));
    l->planes = p;
    FKT_TRY(fkt_cuda_host_alloc(&p, l->plane_floats * sizeof(float), "a batch of images"));
    l->staging = p;
out:
    return st;
}

static fkt_status make(void **self, const struct fkt_net *net, const struct fkt_shape *shapes,
                       const struct fkt_learner_spec *spec, struct fkt_learner_facts *facts)
{
    struct fkt_cuda_learn *l = NULL;
    int least = 0, greatest = 0;
    fkt_status st;
    *self = NULL;
    if (spec->batch > BATCH_MAX)
        return fkt_fail(FKT_E_ARG, "a batch on a card is at most %d images, not %" PRIu32, BATCH_MAX, spec->batch);
    FKT_TRY(fkt_alloc(&l, 1));
    l->net = net;
    l->spec = *spec;
    FKT_TRY(fkt_cuda_device(&l->device, spec->device));
    FKT_TRY(fkt_alloc(&l->shape, net->n_ops + 1));
    memcpy(l->shape, shapes, (net->n_ops + 1) * sizeof *shapes);
    l->align = spec->frozen ? fkt_cuda_frozen_align(net, shapes) : (uint32_t)FKT_CUDA_LANES;
    FKT_TRY(fkt_cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "making a stream"));
    FKT_TRY(fkt_cuda_stream_new(&l->stream, l->device, greatest));
    FKT_TRY(fkt_cuda_arrays_lay_out(l));
    FKT_TRY(fkt_cuda_learn_plan(l, facts));
    FKT_TRY(allocate(l, facts));
    FKT_TRY(fkt_cuda_check(cudaStreamSynchronize(l->stream), "preparing a learner"));
    *self = l;
    l = NULL;
out:
    learner_free(l);
    return st;
}

/* ---- the functions of nn/learner.h ---- */

static fkt_status write_slot(void *self, enum fkt_learned what, uint32_t slot, const float *x)
{
    struct fkt_cuda_learn *l = self;
    fkt_status st = fkt_cuda_use(l->device);
    return st == FKT_OK ? fkt_cuda_arrays_write(l, what, slot, x) : st;
}

static fkt_status read_slot(const void *self, enum fkt_learned what, uint32_t slot, float *x)
{
    const struct fkt_cuda_learn *l = self;
    fkt_status st = fkt_cuda_use(l->device);
    return st == FKT_OK ? fkt_cuda_arrays_read(l, what, slot, x) : st;
}

/* The host's planes of floats -> value `value` in a buffer; and back, which waits. */
static fkt_status put(struct fkt_cuda_learn *l, uint32_t value, uint32_t buffer, const float *x)
{
    const struct fkt_cuda_tensor t = fkt_cuda_learn_tensor(l, value, buffer);
    const size_t bytes = plane(l, value) * sizeof *x;
    fkt_status st;
    FKT_TRY(fkt_cuda_check(cudaStreamSynchronize(l->stream), "learning")); /* what was copied last is no longer read */
    memcpy(l->staging, x, bytes);
    FKT_TRY(fkt_cuda_check(cudaMemcpyAsync(l->planes, l->staging, bytes, cudaMemcpyHostToDevice, l->stream),
                           "copying images to the card"));
    FKT_TRY(fkt_cuda_from_nchw(&t, l->planes, (int)l->shape[value].c, l->stream));
out:
    return st;
}

static fkt_status get(struct fkt_cuda_learn *l, uint32_t value, uint32_t buffer, float *x)
{
    const struct fkt_cuda_tensor t = fkt_cuda_learn_tensor(l, value, buffer);
    const size_t bytes = plane(l, value) * sizeof *x;
    fkt_status st;
    FKT_TRY(fkt_cuda_to_nchw(l->planes, &t, (int)l->shape[value].c, l->stream));
    FKT_TRY(fkt_cuda_check(cudaMemcpyAsync(l->staging, l->planes, bytes, cudaMemcpyDeviceToHost, l->stream),
                           "copying results from the card"));
    FKT_TRY(fkt_cuda_check(cudaStreamSynchronize(l->stream), "learning"));
    memcpy(x, l->staging, bytes);
out:
    return st;
}

static fkt_status forward(void *self, const float *in, float *result)
{
    struct fkt_cuda_learn *l = self;
    fkt_status st;
    FKT_TRY(fkt_cuda_use(l->device));
    FKT_TRY(put(l, 0, l->in_buffer, in));
    FKT_TRY(fkt_cuda_arrays_refresh(l));
    FKT_TRY(fkt_cuda_learn_steps(l, 0, l->n_ahead));
    FKT_TRY(get(l, (uint32_t)l->net->n_ops, l->out_buffer, result));
out:
    return st;
}

static fkt_status backward(void *self, const float *dout, float *din)
{
    struct fkt_cuda_learn *l = self;
    fkt_status st;
    FKT_TRY(fkt_cuda_use(l->device));
    if (l->dout_buffer != FKT_NONE) FKT_TRY(put(l, (uint32_t)l->net->n_ops, l->dout_buffer, dout));
    FKT_TRY(fkt_cuda_learn_steps(l, l->n_ahead, l->n_steps));
    if (!din) return FKT_OK;
    if (l->din_buffer != FKT_NONE) return get(l, 0, l->din_buffer, din);
    memset(din, 0, plane(l, 0) * sizeof *din); /* the result does not depend on the input */
out:
    return st;
}

struct fkt_cuda_planned fkt_cuda_planned_of(const struct fkt_optimizer *o, float average)
{
    struct fkt_cuda_planned p = {.kind = o->kind,
                                 .nesterov = o->nesterov,
                                 .rate = (double)o->rate,
                                 .decay = (double)o->decay,
                                 .momentum = (double)o->momentum,
                                 .pull = (double)o->pull,
                                 .beta1 = (double)o->beta1,
                                 .beta2 = (double)o->beta2,
                                 .epsilon = (double)o->epsilon,
                                 .root = 1,
                                 .average = average};
    if (o->kind == FKT_OPTIMIZER_ADAM) {
        p.rate /= 1 - pow(p.beta1, (double)o->step);
        p.root = sqrt(1 - pow(p.beta2, (double)o->step));
    }
    return p;
}

static fkt_status step(void *self, const struct fkt_optimizer *o)
{
    struct fkt_cuda_learn *l = self;
    const struct fkt_cuda_planned p = fkt_cuda_planned_of(o, -1);
    const struct fkt_cuda_slots s = fkt_cuda_arrays_slots(l);
    fkt_status st;
    if (!l->parameters) return FKT_OK;
    FKT_TRY(fkt_cuda_use(l->device));
    if (o->kind == FKT_OPTIMIZER_ADAM) FKT_TRY(fkt_cuda_arrays_have(l, FKT_SECOND));
    FKT_TRY(fkt_cuda_learn_step_now(&s, &p, l->learned[FKT_SECOND], l->learned[FKT_AVERAGE], l->stream));
out:
    return st;
}

static fkt_status average(void *self, float decay)
{
    struct fkt_cuda_learn *l = self;
    const struct fkt_cuda_slots s = fkt_cuda_arrays_slots(l);
    fkt_status st;
    if (!l->floats) return FKT_OK;
    FKT_TRY(fkt_cuda_use(l->device));
    FKT_TRY(fkt_cuda_arrays_have(l, FKT_AVERAGE));
    FKT_TRY(fkt_cuda_learn_average(&s, l->learned[FKT_AVERAGE], decay, l->stream));
out:
    return st;
}

const struct fkt_learner_backend fkt_learner_cuda = {.name = "cuda",
                                                     .own_memory = 1,
                                                     .make = make,
                                                     .free = learner_free,
                                                     .write = write_slot,
                                                     .read = read_slot,
                                                     .forward = forward,
                                                     .backward = backward,
                                                     .step = step,
                                                     .average = average,
                                                     .hold = fkt_cuda_learn_hold,
                                                     .plan_epoch = fkt_cuda_learn_plan_epoch,
                                                     .train = fkt_cuda_learn_train,
                                                     .collect = fkt_cuda_learn_collect};
