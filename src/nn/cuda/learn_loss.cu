/* SPDX-License-Identifier: Apache-2.0 */
/* learn_loss.cu - softmax cross-entropy with smoothed labels and a teacher (nn/loss.h), the sums of an epoch, and the
 * optimiser with its average.
 *
 * A warp has one image's logits; the arithmetic is double, as in nn/loss.c and nn/optimizer.c: some thousand numbers
 * for the loss, and for the optimiser memory decides (22 bytes a weight with momentum and a bf16 copy). All slots are
 * one block of numbers with the same places in weights, gradients, velocity, second moment, average and bf16 copy, so
 * one kernel updates everything. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels_learn.h"

#include <math.h>

enum { WARP = 32, WARPS = FKT_BLOCK / WARP };

FKT_DEVICE double all_sum(double x)
{
#pragma unroll
    for (int lane = WARP / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

/* The first place of the largest number. */
FKT_DEVICE void all_best(float *most, int *at)
{
#pragma unroll
    for (int lane = WARP / 2; lane > 0; lane /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, *most, lane);
        const int place = __shfl_xor_sync(0xffffffffu, *at, lane);
        if (other > *most || (other == *most && place < *at)) {
            *most = other;
            *at = place;
        }
    }
}

/* log sum exp(z / t) of a row, the same in all lanes; `most` is its largest number. */
template <class T> FKT_DEVICE double log_sum(const T *z, int classes, float most, double t, int lane)
{
    double sum = 0;
    for (int j = lane; j < classes; j += WARP) sum += exp(((double)fkt_to_float(z[j]) - (double)most) / t);
    return (double)most / t + log(all_sum(sum));
}

template <class T> FKT_DEVICE float row_most(const T *z, int classes, int lane)
{
    float most = -INFINITY;
    int at = classes;
    for (int j = lane; j < classes; j += WARP) most = fmaxf(most, fkt_to_float(z[j]));
    all_best(&most, &at);
    return most;
}

/* What a row's numbers are measured against; letters as in nn/loss.c. */
struct row_sums {
    double p, q, s; /* log sums of z, z / T and t / T; the last two with a teacher alone */
};

/* One number's part of the loss; *slope: the gradient before the mean over the batch. */
FKT_DEVICE double one_loss(const fkt_loss &k, const row_sums &sum, double z, double teacher, double target,
                           double *slope)
{
    const double log_p = z - sum.p, t = k.temperature;
    double log_q, log_s, s;
    *slope = (1 - k.share) * (exp(log_p) - target);
    if (!(k.share > 0)) return -target * log_p;
    log_q = z / t - sum.q;
    log_s = teacher / t - sum.s;
    s = exp(log_s);
    *slope += k.share * t * (exp(log_q) - s);
    return k.share * t * t * s * (log_s - log_q) - (1 - k.share) * target * log_p;
}

template <class T>
__global__ void softmax_loss(fkt_cuda_batch b, const fkt_cuda_epoch *e, const fkt_cuda_tally *t, const T *z, T *dz,
                             double *loss, uint32_t *hit)
{
    const int row = (int)(blockIdx.x * WARPS + threadIdx.x / WARP), lane = (int)threadIdx.x % WARP;
    const int padded = (b.classes + FKT_CUDA_LANES - 1) / FKT_CUDA_LANES * FKT_CUDA_LANES;
    const fkt_loss k = e->loss;
    const float *teacher = NULL;
    float most = -INFINITY;
    int at = b.classes, bad = 0;
    double mine = 0, rest, slope;
    row_sums sum = {0, 0, 0};
    uint32_t label, image;
    if (row >= b.n) return; /* a whole warp */
    z += (size_t)row * padded;
    dz += (size_t)row * padded;
    image = e->view[t->step * (uint64_t)b.n + (uint64_t)row].index;
    label = e->label[image];
    rest = k.smoothing / (double)b.classes;
    for (int j = lane; j < b.classes; j += WARP) {
        const float v = fkt_to_float(z[j]);
        bad |= !isfinite(v);
        if (v > most) most = v, at = j;
    }
    all_best(&most, &at);
    bad = all_sum((double)bad) > 0;
    sum.p = log_sum(z, b.classes, most, 1, lane);
    if (k.share > 0) {
        teacher = e->teacher + (size_t)image * b.classes;
        sum.q = log_sum(z, b.classes, most, k.temperature, lane);
        sum.s = log_sum(teacher, b.classes, row_most(teacher, b.classes, lane), k.temperature, lane);
    }
    for (int j = lane; j < padded; j += WARP) {
        if (j >= b.classes) {
            fkt_put(dz + j, 0);
            continue;
        }
        mine += one_loss(k, sum, (double)fkt_to_float(z[j]), teacher ? (double)teacher[j] : 0,
                         rest + ((uint32_t)j == label ? 1 - k.smoothing : 0), &slope);
        fkt_put(dz + j, (float)(slope / (double)b.n));
    }
    mine = all_sum(mine);
    if (lane) return;
    loss[row] = bad ? (double)NAN : mine;
    hit[row] = !bad && (uint32_t)at == label;
}

extern "C" fkt_status fkt_cuda_learn_loss(const struct fkt_cuda_batch *b, const struct fkt_cuda_epoch *e,
                                          const struct fkt_cuda_tally *t, const void *z, void *dz, double *loss,
                                          uint32_t *hit, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)(b->n + WARPS - 1) / WARPS;
    FKT_BY_PRECISION(
        b->precision, T,
        return FKT_LAUNCH((softmax_loss<T>), blocks, FKT_BLOCK, 0, stream, *b, e, t, (const T *)z, (T *)dz, loss, hit));
}

/* One warp. */
__global__ void add_tally(int n, const double *loss, const uint32_t *hit, fkt_cuda_tally *t)
{
    double sum = 0, hits = 0;
    for (int i = (int)threadIdx.x; i < n; i += WARP) {
        sum += loss[i];
        hits += (double)hit[i];
    }
    sum = all_sum(sum) / (double)n;
    hits = all_sum(hits);
    if (threadIdx.x) return;
    if (!isfinite(sum) && t->first_bad == UINT64_MAX) t->first_bad = t->step;
    t->loss += sum;
    t->hits += (uint64_t)hits;
    t->step++;
}

extern "C" fkt_status fkt_cuda_learn_tally(int n, const double *loss, const uint32_t *hit, struct fkt_cuda_tally *t,
                                           cudaStream_t stream)
{
    return FKT_LAUNCH(add_tally, 1, WARP, 0, stream, n, loss, hit, t);
}

/* ---- optimiser ---- */

enum { FOUR = 4 };
typedef fkt_floats<FOUR> four;

/* away: of the weight from the average, where it is pulled; else 0. */
FKT_DEVICE float descend(const fkt_cuda_planned &k, float w, float gradient, double away, float *v)
{
    const double g = (double)gradient + k.decay * (double)w + k.pull * away;
    *v = (float)(k.momentum * (double)*v + g);
    return (float)((double)w - k.rate * (k.nesterov ? g + k.momentum * (double)*v : (double)*v));
}

FKT_DEVICE float descend_adam(const fkt_cuda_planned &k, float w, float gradient, float *m, float *s)
{
    const double g = (double)gradient + k.decay * (double)w;
    *m = (float)(k.beta1 * (double)*m + (1 - k.beta1) * g);
    *s = (float)(k.beta2 * (double)*s + (1 - k.beta2) * g * g);
    return (float)((double)w - k.rate * (double)*m / (sqrt((double)*s) / k.root + k.epsilon));
}

FKT_DEVICE void average_four(float *average, const four &w, float decay)
{
    const double keep = (double)decay;
    four a = fkt_load<FOUR>(average);
#pragma unroll
    for (int j = 0; j < FOUR; j++) a.v[j] = (float)(keep * (double)a.v[j] + (1 - keep) * (double)w.v[j]);
    fkt_store(average, a);
}

FKT_DEVICE four step_four(const fkt_cuda_slots &s, const fkt_cuda_planned &k, float *second, const float *average,
                          size_t i)
{
    const four g = fkt_load<FOUR>(s.gradient + i);
    four w = fkt_load<FOUR>(s.weight + i), v = fkt_load<FOUR>(s.velocity + i);
    if (k.kind == FKT_OPTIMIZER_ADAM) {
        four q = fkt_load<FOUR>(second + i);
#pragma unroll
        for (int j = 0; j < FOUR; j++) w.v[j] = descend_adam(k, w.v[j], g.v[j], &v.v[j], &q.v[j]);
        fkt_store(second + i, q);
    } else if (k.pull > 0) {
        const four a = fkt_load<FOUR>(average + i);
#pragma unroll
        for (int j = 0; j < FOUR; j++) w.v[j] = descend(k, w.v[j], g.v[j], (double)w.v[j] - (double)a.v[j], &v.v[j]);
    } else {
#pragma unroll
        for (int j = 0; j < FOUR; j++) w.v[j] = descend(k, w.v[j], g.v[j], 0, &v.v[j]);
    }
    fkt_store(s.weight + i, w);
    fkt_store(s.velocity + i, v);
    if (s.copy) fkt_store((fkt_bf16_bits *)s.copy + i, w);
    return w;
}

__global__ void step_slots(fkt_cuda_slots s, const fkt_cuda_epoch *e, const fkt_cuda_tally *t)
{
    const size_t i = ((size_t)blockIdx.x * FKT_BLOCK + threadIdx.x) * FOUR;
    const fkt_cuda_planned k = e->planned[t->step];
    four w;
    if (i >= s.floats || (i >= s.parameters && k.average < 0)) return;
    w = i < s.parameters ? step_four(s, k, e->second, e->average, i) : fkt_load<FOUR>(s.weight + i);
    if (k.average >= 0) average_four(e->average + i, w, k.average);
}

__global__ void step_slots_now(fkt_cuda_slots s, fkt_cuda_planned k, float *second, const float *average)
{
    const size_t i = ((size_t)blockIdx.x * FKT_BLOCK + threadIdx.x) * FOUR;
    if (i < s.parameters) step_four(s, k, second, average, i);
}

__global__ void average_slots(fkt_cuda_slots s, float *average, float decay)
{
    const size_t i = ((size_t)blockIdx.x * FKT_BLOCK + threadIdx.x) * FOUR;
    if (i < s.floats) average_four(average + i, fkt_load<FOUR>(s.weight + i), decay);
}

extern "C" fkt_status fkt_cuda_learn_step(const struct fkt_cuda_slots *s, const struct fkt_cuda_epoch *e,
                                          const struct fkt_cuda_tally *t, cudaStream_t stream)
{
    return FKT_LAUNCH(step_slots, fkt_blocks(s->floats / FOUR), FKT_BLOCK, 0, stream, *s, e, t);
}

extern "C" fkt_status fkt_cuda_learn_step_now(const struct fkt_cuda_slots *s, const struct fkt_cuda_planned *p,
                                              float *second, const float *average, cudaStream_t stream)
{
    return FKT_LAUNCH(step_slots_now, fkt_blocks(s->parameters / FOUR), FKT_BLOCK, 0, stream, *s, *p, second, average);
}

extern "C" fkt_status fkt_cuda_learn_average(const struct fkt_cuda_slots *s, float *average, float decay,
                                             cudaStream_t stream)
{
    return FKT_LAUNCH(average_slots, fkt_blocks(s->floats / FOUR), FKT_BLOCK, 0, stream, *s, average, decay);
}
