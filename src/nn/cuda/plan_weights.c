/* SPDX-License-Identifier: Apache-2.0 */
/* plan_weights.c - from the tensors of a file to one block of weights on the card.
 *
 * Planning records what must be copied, and where in the block it belongs. Then the block is allocated, and tensors are
 * read as float, multiplied with a batch norm's factors, brought into the order and precision of the kernels, and
 * copied, one on each processor at a time. */
#include "nn/cuda/plan.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "nn/bf16.h"

#include <math.h>
#include <string.h>

enum { ALIGN = 256 };

static size_t length(const struct fkt_cuda_plan *p, uint32_t slot) { return fkt_slot_count(&p->net->slot[slot]); }

/* Takes ownership of k->numbers, also when it fails. */
static fkt_status record(struct fkt_cuda_plan *p, struct fkt_cuda_packing *k, size_t *at)
{
    fkt_status st = FKT_OK;
    if (p->n_packings == p->packing_room) {
        FKT_TRY(fkt_realloc(&p->packing, p->packing_room + 256));
        p->packing_room += 256;
    }
    k->at = *at = p->block_bytes;
    k->step = p->n_steps;
    p->block_bytes += (k->bytes + ALIGN - 1) / ALIGN * ALIGN;
    p->packing[p->n_packings++] = *k;
    k->numbers = NULL;
out:
    fkt_free(k->numbers);
    k->numbers = NULL;
    return st;
}

fkt_status fkt_cuda_plan_vector(struct fkt_cuda_plan *p, uint32_t slot, size_t *at)
{
    struct fkt_cuda_packing k = {.order = FKT_CUDA_VECTOR, .slot = slot};
    if (slot == FKT_NO_SLOT) return FKT_OK;
    k.bytes = length(p, slot) * sizeof(float);
    return record(p, &k, at);
}

fkt_status fkt_cuda_plan_floats(struct fkt_cuda_plan *p, const float *x, size_t n, size_t *at)
{
    struct fkt_cuda_packing k = {.order = FKT_CUDA_VECTOR, .slot = FKT_NO_SLOT, .bytes = n * sizeof(float)};
    fkt_status st;
    FKT_TRY(fkt_alloc(&k.numbers, n));
    memcpy(k.numbers, x, k.bytes);
    st = record(p, &k, at);
out:
    return st;
}

fkt_status fkt_cuda_plan_scale(const struct fkt_cuda_plan *p, const struct fkt_op *norm, float **scale, float **shift)
{
    size_t n = length(p, norm->weight);
    float *mean = NULL, *var = NULL, *s = NULL, *b = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&mean, n));
    FKT_TRY(fkt_alloc(&var, n));
    FKT_TRY(fkt_alloc(&s, n));
    FKT_TRY(fkt_alloc(&b, n));
    FKT_TRY(fkt_weights_read(p->file, norm->mean, mean));
    FKT_TRY(fkt_weights_read(p->file, norm->var, var));
    FKT_TRY(fkt_weights_read(p->file, norm->weight, s));
    FKT_TRY(fkt_weights_read(p->file, norm->bias, b));
    for (size_t i = 0; i < n; i++) {
        double root = sqrt((double)var[i] + (double)norm->value[0]);
        if (!(root > 0)) {
            st = fkt_fail(FKT_E_NUMERIC, "'%s' is not a variance: element %zu is %g",
                          fkt_weights_name(p->file, norm->var), i, (double)var[i]);
            goto out;
        }
        b[i] = (float)((double)b[i] - (double)mean[i] * (double)s[i] / root);
        s[i] = (float)((double)s[i] / root);
    }
    *scale = s;
    *shift = b;
    s = b = NULL;
out:
    fkt_free(mean);
    fkt_free(var);
    fkt_free(s);
    fkt_free(b);
    return st;
}

/* (out) floats: the convolution's bias, with the norm's factors and shifts (may be NULL), then zeros. */
static fkt_status bias(struct fkt_cuda_plan *p, const struct fkt_op *op, const float *scale, const float *shift,
                       uint32_t out, struct fkt_cuda_step *step)
{
    float *b = NULL;
    fkt_status st = FKT_OK;
    if (op->bias == FKT_NO_SLOT && !shift) return FKT_OK;
    FKT_TRY(fkt_alloc(&b, out));
    if (op->bias != FKT_NO_SLOT) FKT_TRY(fkt_weights_read(p->file, op->bias, b));
    for (uint32_t i = 0; i < op->channels; i++) {
        if (shift) b[i] = b[i] * scale[i] + shift[i];
        step->most = isfinite(b[i]) ? fmaxf(step->most, fabsf(b[i])) : INFINITY;
    }
    FKT_TRY(fkt_cuda_plan_floats(p, b, out, &step->bias));
out:
    fkt_free(b);
    return st;
}

fkt_status fkt_cuda_plan_weights(struct fkt_cuda_plan *p, const struct fkt_op *op, const struct fkt_op *norm,
                                 const struct fkt_cuda_packing *how, struct fkt_cuda_step *step)
{
    const int narrow = how->order == FKT_CUDA_KRSC || how->order == FKT_CUDA_LINEAR;
    struct fkt_cuda_packing k = *how;
    float *scale = NULL, *shift = NULL;
    fkt_status st = FKT_OK;
    if (norm) FKT_TRY(fkt_cuda_plan_scale(p, norm, &scale, &shift));
    FKT_TRY(bias(p, op, scale, shift, how->out, step));
    k.slot = op->weight;
    k.bytes = (size_t)k.out * k.in * k.h * k.w * (narrow ? fkt_cuda_element(p->spec.precision) : sizeof(float));
    k.numbers = scale;
    scale = NULL;
    FKT_TRY(record(p, &k, &step->weights));
out:
    fkt_free(scale);
    fkt_free(shift);
    return st;
}

/* Where number (o, c, y, x) of the file's (out, in, h, w) belongs. */
static size_t place_of(const struct fkt_cuda_packing *k, size_t o, size_t c, size_t pixel)
{
    const size_t map = (size_t)k->h * k->w;
    switch (k->order) {
    case FKT_CUDA_KRSC:
    case FKT_CUDA_LINEAR: return (o * map + pixel) * k->in + c;
    case FKT_CUDA_RSC: return pixel * k->out + o;
    default: return o * k->in + c;
    }
}

/* Into `to`, zeros before. The slot has rows x channels x window numbers; the block has room for more. */
static void arrange(const struct fkt_cuda_plan *p, const struct fkt_cuda_packing *k, const float *from, void *to)
{
    const size_t rows = p->net->slot[k->slot].shape[0], width = k->w - k->lead, map = (k->h - k->lead) * width;
    const size_t channels = length(p, k->slot) / rows / map;
    const int bf16 = p->spec.precision == FKT_PRECISION_BF16 && k->order != FKT_CUDA_RSC && k->order != FKT_CUDA_FLOATS;
    for (size_t o = 0; o < rows; o++)
        for (size_t pixel = 0; pixel < map; pixel++)
            for (size_t c = 0; c < channels; c++) {
                const float x = from[(o * channels + c) * map + pixel];
                const size_t at = place_of(k, o, c, (pixel / width + k->lead) * k->w + pixel % width + k->lead);
                if (bf16) ((uint16_t *)to)[at] = fkt_bf16_narrow(x);
                else ((float *)to)[at] = x;
            }
}

/* Largest absolute value; NaN and infinity are infinite. */
static float largest(const float *x, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) <= most)) most = isfinite(x[i]) ? fabsf(x[i]) : INFINITY;
    return most;
}

static fkt_status upload(struct fkt_cuda_plan *p, struct fkt_cuda_packing *k)
{
    float *plain = NULL;
    uint8_t *packed = NULL;
    const void *from = k->numbers;
    size_t n = k->slot == FKT_NO_SLOT ? 0 : length(p, k->slot);
    fkt_status st = FKT_OK;
    if (n) {
        const size_t row = n / p->net->slot[k->slot].shape[0];
        FKT_TRY(fkt_alloc(&plain, n));
        FKT_TRY(fkt_weights_read(p->file, k->slot, plain));
        for (size_t i = 0; k->numbers && i < n; i++) plain[i] *= k->numbers[i / row];
        from = plain;
        if (k->order != FKT_CUDA_VECTOR) {
            p->step[k->step].reach = largest(plain, n) * (float)row;
            FKT_TRY(fkt_alloc(&packed, k->bytes));
            arrange(p, k, plain, packed);
            from = packed;
        }
    }
    FKT_TRY(fkt_cuda_use(p->device));
    FKT_TRY(fkt_cuda_check(cudaMemcpy((char *)p->block + k->at, from, k->bytes, cudaMemcpyHostToDevice),
                           "copying weights to the card"));
    if (n) fkt_weights_drop(p->file, k->slot);
out:
    fkt_free(plain);
    fkt_free(packed);
    return st;
}

static fkt_status upload_one(void *plan, size_t item, unsigned worker)
{
    struct fkt_cuda_plan *p = plan;
    (void)worker;
    return upload(p, &p->packing[item]);
}

fkt_status fkt_cuda_plan_upload(struct fkt_cuda_plan *p)
{
    fkt_status st;
    FKT_TRY(fkt_cuda_alloc(&p->block, p->block_bytes, "the network's weights"));
    FKT_TRY(fkt_parallel(0, p->n_packings, upload_one, p, NULL, NULL));
    /* A copy from memory that is not pinned may return early, and the workspaces' streams do not wait for it. */
    FKT_TRY(fkt_cuda_check(cudaDeviceSynchronize(), "copying weights to the card"));
out:
    for (size_t i = 0; i < p->n_packings; i++) fkt_free(p->packing[i].numbers);
    fkt_free(p->packing);
    p->packing = NULL;
    p->n_packings = p->packing_room = 0;
    return st;
}
