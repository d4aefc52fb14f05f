/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - one operation of a network on plain arrays. */
#ifndef FKT_NN_REF_OPS_H
#define FKT_NN_REF_OPS_H

#include "nn/net.h"

/* All inputs of one operation. Arrays are (n, C, H, W); weights are NULL where the operation has none. */
struct fkt_ref_call {
    const struct fkt_op *op;
    uint32_t n;
    struct fkt_shape x, z, y; /* of the two inputs and the result */
    const float *a, *b;
    float *out;
    const float *weight, *bias, *mean, *var;
};

void fkt_ref_run(const struct fkt_ref_call *k);
/* One kind of operation each; fkt_ref_run chooses. */
void fkt_ref_convolution(const struct fkt_ref_call *k);
void fkt_ref_linear(const struct fkt_ref_call *k);
void fkt_ref_rms_norm(const struct fkt_ref_call *k);
void fkt_ref_group_norm(const struct fkt_ref_call *k);
void fkt_ref_batch_norm(const struct fkt_ref_call *k);
void fkt_ref_attention(const struct fkt_ref_call *k);
void fkt_ref_max_pool(const struct fkt_ref_call *k);
void fkt_ref_mean(const struct fkt_ref_call *k);
void fkt_ref_resize(const struct fkt_ref_call *k);
/* Which number of k->a is the largest of the window of result (i, c, y, x). */
size_t fkt_ref_largest(const struct fkt_ref_call *k, size_t i, size_t c, size_t y, size_t x);

/* Backward of the kinds that move numbers (UPSAMPLE, SHUFFLE, UNSHUFFLE, GROUP_MEAN, REPEAT): adds to da. */
void fkt_ref_scatter(const struct fkt_ref_call *k, const float *dy, float *da);

/* The index of (i, c, y, x). */
static inline size_t fkt_ref_at(struct fkt_shape s, size_t i, size_t c, size_t y, size_t x)
{
    return ((i * s.c + c) * s.h + y) * s.w + x;
}

/* Loops over a row of a convolution handle this many neighbours at once. */
enum { FKT_REF_RUN = 64 };
static inline size_t fkt_ref_run_length(size_t left) { return left < FKT_REF_RUN ? left : FKT_REF_RUN; }

/* Of n results of a row from `first` on: those for which position kx of the window is inside a map of this width. */
struct fkt_ref_span {
    size_t first, end;
};
struct fkt_ref_span fkt_ref_inside(const struct fkt_op *op, size_t width, size_t first, size_t n, size_t kx);

#endif
