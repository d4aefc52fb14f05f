/* SPDX-License-Identifier: Apache-2.0 */
/* learn_norm.cu - batch norm that learns, with the addition and the ReLU after it, in as few passes as possible. The
 * backward is in learn_norm_back.cu.
 *
 *   ahead:  m, v = mean and variance of x over batch and pixels;  s = 1/sqrt(v + eps);  a = weight s;  b = bias - m a
 *           y = relu(a x + b + z)
 *   back:   dz = (g + h) where y > 0;  S = sum dz;  Q = sum dz (x - m)
 *           bias' = S;  weight' = s Q;  dx = a dz + p (x - m) + r  with  p = -a s^2 Q / n,  r = -a S / n
 *
 * Source: Ioffe and Szegedy 2015, section 3; the split into passes is that of nn/onednn/learn_norm.c. The passes are
 * bound by memory: ahead reads x for the sums (around the first pixel, so that squares do not cancel), then reads x and
 * writes y; back reads x and the gradients for the sums, and again for dx. The ReLU's mask comes from x, which is read
 * anyway; where something was added to the norm's result it comes from y, and then the first pass writes dz, which is
 * the addend's gradient and all that the second pass reads beside x. */
#include "nn/cuda/learn_norm.cuh"

extern "C" int fkt_cuda_learn_parts(const struct fkt_cuda_rows *map)
{
    size_t columns = columns_of(map->channels), rows = THREADS / lanes_of(map->channels);
    size_t parts = PARTS_MAX / columns, most = map->rows / (rows * ROWS_LEAST);
    if (parts > most) parts = most;
    return parts ? (int)parts : 1;
}

FKT_DEVICE void add_moments(eight &s, eight &q, const eight &x, const eight &centre)
{
#pragma unroll
    for (int j = 0; j < V; j++) {
        float d = x.v[j] - centre.v[j];
        s.v[j] += d;
        q.v[j] = fmaf(d, d, q.v[j]);
    }
}

/* Sums of x - centre and of its square; centre: the first row, or 0. */
template <class T>
__global__ void moments(const T *x, size_t rows, unsigned channels, unsigned lanes, int centred, float *part)
{
    __shared__ float sums[2 * V * THREADS];
    const block_place at = place_of(lanes, channels);
    const size_t share = (rows + gridDim.x - 1) / gridDim.x, first = share * blockIdx.x;
    const size_t end = first + share < rows ? first + share : rows;
    eight s = zeros(), q = zeros(), centre = zeros();
    if (at.used) {
        const T *from = x + at.channel;
        size_t row = first + at.row;
        if (centred) centre = fkt_load<V>(from);
        for (; row + (AHEAD - 1) * at.rows < end; row += AHEAD * at.rows) {
            packed<T> v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) v[k] = pick(from + (row + (size_t)k * at.rows) * channels);
#pragma unroll
            for (int k = 0; k < AHEAD; k++) add_moments(s, q, unpack(v[k]), centre);
        }
        for (; row < end; row += at.rows) add_moments(s, q, fkt_load<V>(from + row * channels), centre);
    }
    write_parts(at, s, q, sums, part, channels);
}

template <class T> __global__ void finish_ahead(fkt_cuda_norm n, const T *x)
{
    const unsigned c = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    const double count = (double)n.map.rows;
    double s, q, mean, var, scale, a;
    add_parts(n.part, c, (unsigned)n.map.channels, (unsigned)n.parts, &s, &q);
    if (threadIdx.x % 32) return;
    mean = s / count;
    var = q / count - mean * mean;
    if (var < 0) var = 0;
    mean += (double)fkt_to_float(x[c]);
    scale = 1 / sqrt(var + (double)n.epsilon);
    a = scale * (double)n.weight[c];
    n.centre[c] = (float)mean;
    n.scale[c] = (float)scale;
    n.a[c] = (float)a;
    n.b[c] = (float)((double)n.bias[c] - mean * a);
    n.mean[c] = (float)((1 - (double)n.momentum) * (double)n.mean[c] + (double)n.momentum * mean);
    n.var[c] = (float)((1 - (double)n.momentum) * (double)n.var[c] + (double)n.momentum * var * count / (count - 1));
}

__global__ void finish_columns(const float *part, unsigned channels, unsigned parts, float *sum)
{
    const unsigned c = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    double s, q;
    add_parts(part, c, channels, parts, &s, &q);
    if (threadIdx.x % 32 == 0) sum[c] = (float)s;
}

template <class T, int ADD, int RELU>
__global__ void apply(const T *x, const T *z, T *y, const float *scale, const float *shift, size_t rows,
                      unsigned channels, unsigned lanes, unsigned most)
{
    const block_place at = place_of(lanes, channels);
    const size_t share = (size_t)at.rows * most, first = share * (gridDim.x - 1 - blockIdx.x);
    const size_t end = first + share < rows ? first + share : rows;
    eight a, b;
    if (!at.used) return;
    a = fkt_load<V>(scale + at.channel);
    b = fkt_load<V>(shift + at.channel);
    for (size_t row = first + at.row; row < end; row += AHEAD * at.rows) {
        packed<T> v[AHEAD], w[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            size_t from = (row + (size_t)k * at.rows) * channels + at.channel;
            if (row + (size_t)k * at.rows >= end) continue;
            v[k] = pick(x + from);
            if (ADD) w[k] = pick(z + from);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            eight u, more;
            if (row + (size_t)k * at.rows >= end) continue;
            u = unpack(v[k]);
            if (ADD) more = unpack(w[k]);
#pragma unroll
            for (int j = 0; j < V; j++) {
                u.v[j] = fmaf(a.v[j], u.v[j], b.v[j]);
                if (ADD) u.v[j] += more.v[j];
                if (RELU) u.v[j] = fkt_relu(u.v[j]);
            }
            fkt_store(y + (row + (size_t)k * at.rows) * channels + at.channel, u);
        }
    }
}

template <class T, int ADD, int RELU>
static fkt_status write_how(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *m, cudaStream_t stream)
{
    return FKT_LAUNCH((apply<T, ADD, RELU>), writers(&n->map), THREADS, 0, stream, (const T *)m->x, (const T *)m->z,
                      (T *)m->y, n->a, n->b, n->map.rows, (unsigned)n->map.channels, lanes_of(n->map.channels),
                      rows_written(&n->map));
}

template <class T>
static fkt_status forward_of(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *m, cudaStream_t stream)
{
    const unsigned channels = (unsigned)n->map.channels;
    const dim3 sums((unsigned)n->parts, columns_of(n->map.channels));
    const T *x = (const T *)m->x;
    fkt_status st;
    FKT_TRY(FKT_LAUNCH((moments<T>), sums, THREADS, 0, stream, x, n->map.rows, channels, lanes_of(n->map.channels), 1,
                       n->part));
    FKT_TRY(FKT_LAUNCH((finish_ahead<T>), channels / V, THREADS, 0, stream, *n, x));
    if (m->z) st = m->relu ? write_how<T, 1, 1>(n, m, stream) : write_how<T, 1, 0>(n, m, stream);
    else st = m->relu ? write_how<T, 0, 1>(n, m, stream) : write_how<T, 0, 0>(n, m, stream);
out:
    return st;
}

extern "C" fkt_status fkt_cuda_norm_forward(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *m,
                                            cudaStream_t stream)
{
    FKT_BY_PRECISION(n->map.precision, T, return forward_of<T>(n, m, stream));
}

template <class T>
static fkt_status columns_for(const struct fkt_cuda_rows *map, const T *dy, float *part, int parts, float *sum,
                              cudaStream_t stream)
{
    const unsigned channels = (unsigned)map->channels;
    const dim3 grid((unsigned)parts, columns_of(map->channels));
    fkt_status st;
    FKT_TRY(
        FKT_LAUNCH((moments<T>), grid, THREADS, 0, stream, dy, map->rows, channels, lanes_of(map->channels), 0, part));
    FKT_TRY(FKT_LAUNCH(finish_columns, channels / V, THREADS, 0, stream, part, channels, (unsigned)parts, sum));
out:
    return st;
}

extern "C" fkt_status fkt_cuda_learn_columns(const struct fkt_cuda_rows *map, const void *dy, float *part, int parts,
                                             float *sum, cudaStream_t stream)
{
    FKT_BY_PRECISION(map->precision, T, return columns_for<T>(map, (const T *)dy, part, parts, sum, stream));
}

__global__ void fold(fkt_cuda_norm n)
{
    const unsigned c = blockIdx.x * FKT_BLOCK + threadIdx.x;
    double a;
    if (c >= (unsigned)n.map.channels) return;
    a = (double)n.weight[c] / sqrt((double)n.var[c] + (double)n.epsilon);
    n.a[c] = (float)a;
    n.b[c] = (float)((double)n.bias[c] - (double)n.mean[c] * a);
}

extern "C" fkt_status fkt_cuda_norm_fold(const struct fkt_cuda_norm *n, cudaStream_t stream)
{
    return FKT_LAUNCH(fold, fkt_blocks((size_t)n->map.channels), FKT_BLOCK, 0, stream, *n);
}
