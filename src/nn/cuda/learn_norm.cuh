/* SPDX-License-Identifier: Apache-2.0 */
/* learn_norm.cuh - what the forward and the backward of a batch norm share: a thread's place, loads, partial sums.
 *
 * A block of 256 threads is `lanes` vectors of 8 channels wide and 256/lanes rows high; each thread keeps its channels'
 * constants in registers. The pass that writes goes through the rows from the end: what was read last is still in the
 * cache. The number of partial sums depends on the shape alone, so bits repeat from run to run. */
#ifndef FKT_NN_CUDA_LEARN_NORM_CUH
#define FKT_NN_CUDA_LEARN_NORM_CUH

#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels_learn.h"

enum {
    V = FKT_CUDA_LANES,
    THREADS = 256,
    LANES_MAX = 32,
    PARTS_MAX = 528, /* four blocks for each of an H200's 132 multiprocessors */
    ROWS_LEAST = 4,  /* rows of one thread, so that a partial sum is worth its write */
    AHEAD = 4,       /* rows whose loads are in flight at once, ... */
    BACK = 2         /* ... where more maps are read */
};

typedef fkt_floats<V> eight;

/* Eight numbers as they are stored: loads that are in flight take the registers of these, not of eight floats. */
template <class T> struct packed {
    eight v;
};
template <> struct packed<fkt_bf16_bits> {
    uint4 v;
};
FKT_DEVICE packed<float> pick(const float *from)
{
    packed<float> p;
    p.v = fkt_load<V>(from);
    return p;
}
FKT_DEVICE packed<fkt_bf16_bits> pick(const fkt_bf16_bits *from)
{
    packed<fkt_bf16_bits> p;
    p.v = *(const uint4 *)from;
    return p;
}
FKT_DEVICE eight unpack(const packed<float> &p) { return p.v; }
FKT_DEVICE eight unpack(const packed<fkt_bf16_bits> &p)
{
    eight r;
    fkt_unpair(r, 0, p.v.x), fkt_unpair(r, 2, p.v.y), fkt_unpair(r, 4, p.v.z), fkt_unpair(r, 6, p.v.w);
    return r;
}

/* A thread's place in its block: a vector of channels, and the first of its rows. */
struct block_place {
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

FKT_DEVICE block_place place_of(unsigned lanes, unsigned channels)
{
    block_place s;
    s.lanes = lanes;
    s.rows = THREADS / lanes;
    s.lane = threadIdx.x % lanes;
    s.row = threadIdx.x / lanes;
    s.channel = (size_t)(blockIdx.y * lanes + s.lane) * V;
    s.used = s.row < s.rows && s.channel < channels;
    return s;
}

/* The block's sums of its threads, in the order of the rows: part[(k, channel, block)]. Every thread calls it. */
FKT_DEVICE void write_parts(const block_place &at, const eight &s, const eight &q, float *sums, float *part,
                            unsigned channels)
{
    const unsigned t = threadIdx.x;
#pragma unroll
    for (int j = 0; j < V; j++) {
        sums[j * THREADS + t] = s.v[j];
        sums[(V + j) * THREADS + t] = q.v[j];
    }
    __syncthreads();
    for (unsigned i = t; i < 2 * V * at.lanes; i += THREADS) {
        unsigned k = i / at.lanes, lane = i % at.lanes, channel = (blockIdx.y * at.lanes + lane) * V + k % V;
        float sum = 0;
        if (channel >= channels) continue;
        for (unsigned r = 0; r < at.rows; r++) sum += sums[k * THREADS + r * at.lanes + lane];
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

/* A pass that writes: rows of one thread, 8, or 4 where that gives too few blocks; and the blocks. */
static inline unsigned rows_written(const struct fkt_cuda_rows *map)
{
    size_t blocks = map->rows * columns_of(map->channels) / (8 * (THREADS / lanes_of(map->channels)));
    return blocks < PARTS_MAX ? 4 : 8;
}
static inline dim3 writers(const struct fkt_cuda_rows *map)
{
    size_t height = (size_t)(THREADS / lanes_of(map->channels)) * rows_written(map);
    return dim3((unsigned)((map->rows + height - 1) / height), columns_of(map->channels));
}

#endif
