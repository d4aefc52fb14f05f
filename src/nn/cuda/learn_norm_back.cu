/* SPDX-License-Identifier: Apache-2.0 */
/* learn_norm_back.cu - the backward of a batch norm with the addition and the ReLU after it: two passes, letters and
 * reasons as in learn_norm.cu. */
#include "nn/cuda/learn_norm.cuh"

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

/* What dz is made of. */
enum { TWO = 1, MASK_X = 2, MASK_Y = 4, KEEP = 8 };

template <class T> struct back_maps {
    const T *x, *y, *g, *h;
    T *e, *d;
};

template <class T> struct back_row {
    packed<T> x, g, h, y;
};

template <class T, int HOW> FKT_DEVICE back_row<T> load_row(const back_maps<T> &m, size_t at)
{
    back_row<T> r;
    r.x = pick(m.x + at);
    r.g = pick(m.g + at);
    if (HOW & TWO) r.h = pick(m.h + at);
    if (HOW & MASK_Y) r.y = pick(m.y + at);
    return r;
}

/* dz of a row, whose x is unpacked already. */
template <class T, int HOW>
FKT_DEVICE eight slopes(const back_row<T> &r, const eight &x, const eight &a, const eight &b)
{
    eight dz = unpack(r.g), other;
    if (HOW & TWO) {
        other = unpack(r.h);
#pragma unroll
        for (int j = 0; j < V; j++) dz.v[j] += other.v[j];
    }
    if (HOW & MASK_Y) other = unpack(r.y);
#pragma unroll
    for (int j = 0; j < V; j++) {
        if (HOW & MASK_X) dz.v[j] = fmaf(a.v[j], x.v[j], b.v[j]) > 0 ? dz.v[j] : 0;
        if (HOW & MASK_Y) dz.v[j] = other.v[j] > 0 ? dz.v[j] : 0;
    }
    return dz;
}

/* A kept dz is summed as it is stored, so that the second pass sees the same numbers. */
template <class T, int HOW> __global__ void back_sums(fkt_cuda_norm n, back_maps<T> m, unsigned lanes)
{
    __shared__ float sums[2 * V * THREADS];
    const unsigned channels = (unsigned)n.map.channels;
    const size_t rows = n.map.rows;
    const block_place at = place_of(lanes, channels);
    const size_t share = (rows + gridDim.x - 1) / gridDim.x, first = share * blockIdx.x;
    const size_t end = first + share < rows ? first + share : rows;
    eight s = zeros(), q = zeros();
    if (at.used) {
        const eight centre = fkt_load<V>(n.centre + at.channel);
        const eight a = fkt_load<V>(n.a + at.channel), b = fkt_load<V>(n.b + at.channel);
        for (size_t row = first + at.row; row < end; row += BACK * at.rows) {
            back_row<T> r[BACK];
#pragma unroll
            for (int k = 0; k < BACK; k++)
                if (row + (size_t)k * at.rows < end)
                    r[k] = load_row<T, HOW>(m, (row + (size_t)k * at.rows) * channels + at.channel);
#pragma unroll
            for (int k = 0; k < BACK; k++) {
                eight dz, x;
                if (row + (size_t)k * at.rows >= end) continue;
                x = unpack(r[k].x);
                dz = slopes<T, HOW>(r[k], x, a, b);
#pragma unroll
                for (int j = 0; j < V; j++) {
                    if (HOW & KEEP) dz.v[j] = fkt_rounded<T>(dz.v[j]);
                    s.v[j] += dz.v[j];
                    q.v[j] = fmaf(dz.v[j], x.v[j] - centre.v[j], q.v[j]);
                }
                if (HOW & KEEP) fkt_store(m.e + (row + (size_t)k * at.rows) * channels + at.channel, dz);
            }
        }
    }
    write_parts(at, s, q, sums, n.part, channels);
}

template <class T, int HOW> __global__ void back_apply(fkt_cuda_norm n, back_maps<T> m, unsigned lanes, unsigned most)
{
    const unsigned channels = (unsigned)n.map.channels;
    const block_place at = place_of(lanes, channels);
    const size_t share = (size_t)at.rows * most, first = share * (gridDim.x - 1 - blockIdx.x);
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
        back_row<T> v[BACK];
#pragma unroll
        for (int k = 0; k < BACK; k++)
            if (row + (size_t)k * at.rows < end)
                v[k] = load_row<T, HOW>(m, (row + (size_t)k * at.rows) * channels + at.channel);
#pragma unroll
        for (int k = 0; k < BACK; k++) {
            eight d, x;
            if (row + (size_t)k * at.rows >= end) continue;
            x = unpack(v[k].x);
            d = slopes<T, HOW>(v[k], x, a, b);
#pragma unroll
            for (int j = 0; j < V; j++) d.v[j] = fmaf(a.v[j], d.v[j], fmaf(p.v[j], x.v[j], r.v[j]));
            fkt_store(m.d + (row + (size_t)k * at.rows) * channels + at.channel, d);
        }
    }
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
    return FKT_LAUNCH((back_apply<T, HOW>), writers(&n->map), THREADS, 0, stream, *n, m, lanes_of(n->map.channels),
                      rows_written(&n->map));
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
