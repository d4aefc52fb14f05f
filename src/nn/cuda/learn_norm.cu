/* SPDX-License-Identifier: Apache-2.0 */
/* learn_norm.cu - batch norm that learns, with the addition and the ReLU after it, in as few passes as possible.
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
 * the addend's gradient and all that the second pass reads beside x.
 *
 * A block of 256 threads is `lanes` vectors of 8 channels wide and 256/lanes rows high; each thread keeps its channels'
 * constants in registers. The pass that writes goes through the rows from the end: what was read last is still in the
 * cache. The number of partial sums depends on the shape alone, so bits repeat from run to run. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels_learn.h"

enum {
    V = FKT_CUDA_LANES,
    THREADS = 256,
    LANES_MAX = 32,
    PARTS_MAX = 528, /* four blocks for each of an H200's 132 multiprocessors */
    ROWS_LEAST = 8,  /* rows of one thread, so that a partial sum is worth its write */
    AHEAD = 4,       /* rows whose loads are in flight at once, ... */
    BACK = 2         /* ... where more maps are read */
};

typedef fkt_floats<V> eight;

/* A thread's place in its block: a vector of channels, and the first of its rows. */
struct seat {
    unsigned lanes, rows, lane, row;
    size_t channel;
    bool used;
};

static inline unsigned lanes_of(int channels)
{
    unsigned vectors = (unsigned)channels / V;
    return vectors < LANES_MAX ? vectors : (unsigned)LANES_MAX;
}
static inline unsigned columns_of(int channels)
{
    unsigned vectors = (unsigned)channels / V, lanes = lanes_of(channels);
    return (vectors + lanes - 1) / lanes;
}

FKT_DEVICE seat seat_of(unsigned lanes, unsigned channels)
{
    seat s;
    s.lanes = lanes;
    s.rows = THREADS / lanes;
    s.lane = threadIdx.x % lanes;
    s.row = threadIdx.x / lanes;
    s.channel = (size_t)(blockIdx.y * lanes + s.lane) * V;
    s.used = s.row < s.rows && s.channel < channels;
    return s;
}

extern "C" int fkt_cuda_learn_parts(const struct fkt_cuda_rows *map)
{
    size_t columns = columns_of(map->channels), rows = THREADS / lanes_of(map->channels);
    size_t parts = PARTS_MAX / columns, most = map->rows / (rows * ROWS_LEAST);
    if (parts > most) parts = most;
    return parts ? (int)parts : 1;
}

/* The block's sums of its threads, in the order of the rows: part[(k, channel, block)]. Every thread calls it. */
FKT_DEVICE void write_parts(const seat &at, const eight &s, const eight &q, float *room, float *part, unsigned channels)
{
    const unsigned t = threadIdx.x;
#pragma unroll
    for (int j = 0; j < V; j++) {
        room[j * THREADS + t] = s.v[j];
        room[(V + j) * THREADS + t] = q.v[j];
    }
    __syncthreads();
    for (unsigned i = t; i < 2 * V * at.lanes; i += THREADS) {
        unsigned k = i / at.lanes, lane = i % at.lanes, channel = (blockIdx.y * at.lanes + lane) * V + k % V;
        float sum = 0;
        if (channel >= channels) continue;
        for (unsigned r = 0; r < at.rows; r++) sum += room[k * THREADS + r * at.lanes + lane];
        part[((size_t)(k / V) * channels + channel) * gridDim.x + blockIdx.x] = sum;
    }
}

FKT_DEVICE eight zeros()
{
    eight z;
#pragma unroll
    for (int j = 0; j < V; j++) z.v[j] = 0;
    return z;
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
    __shared__ float room[2 * V * THREADS];
    const seat at = seat_of(lanes, channels);
    const size_t share = (rows + gridDim.x - 1) / gridDim.x, first = share * blockIdx.x;
    const size_t end = first + share < rows ? first + share : rows;
    eight s = zeros(), q = zeros(), centre = zeros();
    if (at.used) {
        const T *from = x + at.channel;
        size_t row = first + at.row;
        if (centred) centre = fkt_load<V>(from);
        for (; row + (AHEAD - 1) * at.rows < end; row += AHEAD * at.rows) {
            eight v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) v[k] = fkt_load<V>(from + (row + (size_t)k * at.rows) * channels);
#pragma unroll
            for (int k = 0; k < AHEAD; k++) add_moments(s, q, v[k], centre);
        }
        for (; row < end; row += at.rows) add_moments(s, q, fkt_load<V>(from + row * channels), centre);
    }
    write_parts(at, s, q, room, part, channels);
}

/* A warp adds up the partial sums of one channel; every lane gets them. */
FKT_DEVICE void add_parts(const float *part, unsigned channel, unsigned channels, unsigned parts, double *s, double *q)
{
    const float *of_s = part + (size_t)channel * parts, *of_q = of_s + (size_t)channels * parts;
    *s = *q = 0;
    for (unsigned i = threadIdx.x % 32; i < parts; i += 32) {
        *s += (double)of_s[i];
        *q += (double)of_q[i];
    }
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) {
        *s += __shfl_xor_sync(0xffffffffu, *s, lane);
        *q += __shfl_xor_sync(0xffffffffu, *q, lane);
    }
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

__global__ void finish_back(fkt_cuda_norm n)
{
    const unsigned c = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    const double count = (double)n.map.rows;
    double s, q, a, scale;
    add_parts(n.part, c, (unsigned)n.map.channels, (unsigned)n.parts, &s, &q);
    if (threadIdx.x % 32) return;
    a = (double)n.a[c];
    scale = (double)n.scale[c];
    n.bias_gradient[c] = (float)s;
    n.weight_gradient[c] = (float)(q * scale);
    n.p[c] = (float)(-a * scale * scale * q / count);
    n.r[c] = (float)(-a * s / count);
}

__global__ void finish_columns(const float *part, unsigned channels, unsigned parts, float *sum)
{
    const unsigned c = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    double s, q;
    add_parts(part, c, channels, parts, &s, &q);
    if (threadIdx.x % 32 == 0) sum[c] = (float)s;
}

/* Rows of one block in a pass that writes: `most` per thread. */
static inline unsigned row_blocks(size_t rows, unsigned lanes, unsigned most)
{
    size_t height = (size_t)(THREADS / lanes) * most;
    return (unsigned)((rows + height - 1) / height);
}

enum { ROWS_WRITTEN = 8 };

template <class T, int ADD, int RELU>
__global__ void apply(const T *x, const T *z, T *y, const float *scale, const float *shift, size_t rows,
                      unsigned channels, unsigned lanes)
{
    const seat at = seat_of(lanes, channels);
    const size_t share = (size_t)at.rows * ROWS_WRITTEN, first = share * (gridDim.x - 1 - blockIdx.x);
    const size_t end = first + share < rows ? first + share : rows;
    eight a, b;
    if (!at.used) return;
    a = fkt_load<V>(scale + at.channel);
    b = fkt_load<V>(shift + at.channel);
    for (size_t row = first + at.row; row < end; row += AHEAD * at.rows) {
        eight v[AHEAD], w[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            size_t from = (row + (size_t)k * at.rows) * channels + at.channel;
            if (row + (size_t)k * at.rows >= end) continue;
            v[k] = fkt_load<V>(x + from);
            if (ADD) w[k] = fkt_load<V>(z + from);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            if (row + (size_t)k * at.rows >= end) continue;
#pragma unroll
            for (int j = 0; j < V; j++) {
                float u = fmaf(a.v[j], v[k].v[j], b.v[j]);
                if (ADD) u += w[k].v[j];
                v[k].v[j] = RELU ? fkt_relu(u) : u;
            }
            fkt_store(y + (row + (size_t)k * at.rows) * channels + at.channel, v[k]);
        }
    }
}

/* What dz is made of. */
enum { TWO = 1, MASK_X = 2, MASK_Y = 4, KEEP = 8 };

template <class T> struct back_maps {
    const T *x, *y, *g, *h;
    T *e, *d;
};

template <class T, int HOW> struct back_row {
    eight x, g, h, y;
};

template <class T, int HOW> FKT_DEVICE back_row<T, HOW> load_row(const back_maps<T> &m, size_t at)
{
    back_row<T, HOW> r;
    r.x = fkt_load<V>(m.x + at);
    r.g = fkt_load<V>(m.g + at);
    if (HOW & TWO) r.h = fkt_load<V>(m.h + at);
    if (HOW & MASK_Y) r.y = fkt_load<V>(m.y + at);
    return r;
}

template <class T, int HOW> FKT_DEVICE float slope(const back_row<T, HOW> &r, int j, float a, float b)
{
    float dz = r.g.v[j];
    if (HOW & TWO) dz += r.h.v[j];
    if (HOW & MASK_X) return fmaf(a, r.x.v[j], b) > 0 ? dz : 0;
    if (HOW & MASK_Y) return r.y.v[j] > 0 ? dz : 0;
    return dz;
}

/* A kept dz is summed as it is stored, so that the second pass sees the same numbers. */
template <class T, int HOW> __global__ void back_sums(fkt_cuda_norm n, back_maps<T> m, unsigned lanes)
{
    __shared__ float room[2 * V * THREADS];
    const unsigned channels = (unsigned)n.map.channels;
    const size_t rows = n.map.rows;
    const seat at = seat_of(lanes, channels);
    const size_t share = (rows + gridDim.x - 1) / gridDim.x, first = share * blockIdx.x;
    const size_t end = first + share < rows ? first + share : rows;
    eight s = zeros(), q = zeros();
    if (at.used) {
        const eight centre = fkt_load<V>(n.centre + at.channel);
        const eight a = fkt_load<V>(n.a + at.channel), b = fkt_load<V>(n.b + at.channel);
        for (size_t row = first + at.row; row < end; row += BACK * at.rows) {
            back_row<T, HOW> r[BACK];
#pragma unroll
            for (int k = 0; k < BACK; k++)
                if (row + (size_t)k * at.rows < end)
                    r[k] = load_row<T, HOW>(m, (row + (size_t)k * at.rows) * channels + at.channel);
#pragma unroll
            for (int k = 0; k < BACK; k++) {
                eight dz;
                if (row + (size_t)k * at.rows >= end) continue;
#pragma unroll
                for (int j = 0; j < V; j++) {
                    float d = slope<T, HOW>(r[k], j, a.v[j], b.v[j]);
                    dz.v[j] = HOW & KEEP ? fkt_rounded<T>(d) : d;
                    s.v[j] += dz.v[j];
                    q.v[j] = fmaf(dz.v[j], r[k].x.v[j] - centre.v[j], q.v[j]);
                }
                if (HOW & KEEP) fkt_store(m.e + (row + (size_t)k * at.rows) * channels + at.channel, dz);
            }
        }
    }
    write_parts(at, s, q, room, n.part, channels);
}

template <class T, int HOW> __global__ void back_apply(fkt_cuda_norm n, back_maps<T> m, unsigned lanes)
{
    const unsigned channels = (unsigned)n.map.channels;
    const seat at = seat_of(lanes, channels);
    const size_t share = (size_t)at.rows * ROWS_WRITTEN, first = share * (gridDim.x - 1 - blockIdx.x);
    const size_t end = first + share < n.map.rows ? first + share : n.map.rows;
    eight a, b, p, r;
    if (!at.used) return;
    a = fkt_load<V>(n.a + at.channel);
    b = fkt_load<V>(n.b + at.channel);
    p = fkt_load<V>(n.p + at.channel);
    r = fkt_load<V>(n.r + at.channel);
    {
        const eight centre = fkt_load<V>(n.centre + at.channel);
#pragma unroll
        for (int j = 0; j < V; j++) r.v[j] = fmaf(-p.v[j], centre.v[j], r.v[j]);
    }
    for (size_t row = first + at.row; row < end; row += BACK * at.rows) {
        back_row<T, HOW> v[BACK];
#pragma unroll
        for (int k = 0; k < BACK; k++)
            if (row + (size_t)k * at.rows < end)
                v[k] = load_row<T, HOW>(m, (row + (size_t)k * at.rows) * channels + at.channel);
#pragma unroll
        for (int k = 0; k < BACK; k++) {
            eight d;
            if (row + (size_t)k * at.rows >= end) continue;
#pragma unroll
            for (int j = 0; j < V; j++)
                d.v[j] = fmaf(a.v[j], slope<T, HOW>(v[k], j, a.v[j], b.v[j]), fmaf(p.v[j], v[k].x.v[j], r.v[j]));
            fkt_store(m.d + (row + (size_t)k * at.rows) * channels + at.channel, d);
        }
    }
}

template <class T>
static fkt_status forward_of(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *m, cudaStream_t stream)
{
    const unsigned channels = (unsigned)n->map.channels, lanes = lanes_of(n->map.channels);
    const unsigned columns = columns_of(n->map.channels);
    const dim3 sums((unsigned)n->parts, columns), writes(row_blocks(n->map.rows, lanes, ROWS_WRITTEN), columns);
    const T *x = (const T *)m->x, *z = (const T *)m->z;
    T *y = (T *)m->y;
    fkt_status st;
    FKT_TRY(FKT_LAUNCH((moments<T>), sums, THREADS, 0, stream, x, n->map.rows, channels, lanes, 1, n->part));
    FKT_TRY(FKT_LAUNCH((finish_ahead<T>), channels / V, THREADS, 0, stream, *n, x));
    if (z && m->relu)
        st =
            FKT_LAUNCH((apply<T, 1, 1>), writes, THREADS, 0, stream, x, z, y, n->a, n->b, n->map.rows, channels, lanes);
    else if (z)
        st =
            FKT_LAUNCH((apply<T, 1, 0>), writes, THREADS, 0, stream, x, z, y, n->a, n->b, n->map.rows, channels, lanes);
    else if (m->relu)
        st =
            FKT_LAUNCH((apply<T, 0, 1>), writes, THREADS, 0, stream, x, z, y, n->a, n->b, n->map.rows, channels, lanes);
    else
        st =
            FKT_LAUNCH((apply<T, 0, 0>), writes, THREADS, 0, stream, x, z, y, n->a, n->b, n->map.rows, channels, lanes);
out:
    return st;
}

extern "C" fkt_status fkt_cuda_norm_forward(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *m,
                                            cudaStream_t stream)
{
    FKT_BY_PRECISION(n->map.precision, T, return forward_of<T>(n, m, stream));
}

template <class T, int HOW>
static fkt_status sums_how(const struct fkt_cuda_norm *n, const back_maps<T> &m, cudaStream_t stream)
{
    const dim3 grid((unsigned)n->parts, columns_of(n->map.channels));
    return FKT_LAUNCH((back_sums<T, HOW>), grid, THREADS, 0, stream, *n, m, lanes_of(n->map.channels));
}

template <class T, int HOW>
static fkt_status apply_how(const struct fkt_cuda_norm *n, const back_maps<T> &m, cudaStream_t stream)
{
    const unsigned lanes = lanes_of(n->map.channels);
    const dim3 grid(row_blocks(n->map.rows, lanes, ROWS_WRITTEN), columns_of(n->map.channels));
    return FKT_LAUNCH((back_apply<T, HOW>), grid, THREADS, 0, stream, *n, m, lanes);
}

template <class T>
static fkt_status backward_of(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *k, cudaStream_t stream)
{
    back_maps<T> m = {(const T *)k->x, (const T *)k->y, (const T *)k->g, (const T *)k->h, (T *)k->e, (T *)k->d};
    int mask = !k->relu ? 0 : k->y ? (int)MASK_Y : (int)MASK_X;
    fkt_status st;
    switch ((k->h ? TWO : 0) | mask | (k->e ? KEEP : 0)) {
    case 0: st = sums_how<T, 0>(n, m, stream); break;
    case TWO: st = sums_how<T, TWO>(n, m, stream); break;
    case MASK_X: st = sums_how<T, MASK_X>(n, m, stream); break;
    case TWO | MASK_X: st = sums_how<T, TWO | MASK_X>(n, m, stream); break;
    case TWO | KEEP: st = sums_how<T, TWO | KEEP>(n, m, stream); break;
    case MASK_Y | KEEP: st = sums_how<T, MASK_Y | KEEP>(n, m, stream); break;
    case TWO | MASK_Y | KEEP: st = sums_how<T, TWO | MASK_Y | KEEP>(n, m, stream); break;
    default: st = fkt_fail(FKT_E_STATE, "no kernel for this backward of a batch norm");
    }
    if (st == FKT_OK) st = FKT_LAUNCH(finish_back, (unsigned)n->map.channels / V, THREADS, 0, stream, *n);
    if (st != FKT_OK || !k->d) return st;
    if (k->e) {
        m.g = m.e;
        return apply_how<T, 0>(n, m, stream);
    }
    switch ((k->h ? TWO : 0) | mask) {
    case TWO: return apply_how<T, TWO>(n, m, stream);
    case MASK_X: return apply_how<T, MASK_X>(n, m, stream);
    case TWO | MASK_X: return apply_how<T, TWO | MASK_X>(n, m, stream);
    default: return apply_how<T, 0>(n, m, stream);
    }
}

extern "C" fkt_status fkt_cuda_norm_backward(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *m,
                                             cudaStream_t stream)
{
    FKT_BY_PRECISION(n->map.precision, T, return backward_of<T>(n, m, stream));
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
