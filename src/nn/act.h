/* SPDX-License-Identifier: Apache-2.0 */
/* act.h - activations in memory, and operations on them that oneDNN does not have.
 *
 * Channels are stored in blocks: (N, ceil(C/block), H, W, block). block 1 is NCHW, block C is NHWC, 8 and 16 suit
 * vector units. Lanes of the last block beyond C always hold zeros. One implementation serves all blocks.
 */
#ifndef FKT_NN_ACT_H
#define FKT_NN_ACT_H

#include "nn/engine.h"

struct fkt_act {
    void *data; /* float, or bfloat16 as uint16_t */
    uint32_t n, c, h, w;
    uint32_t block;
    enum fkt_precision precision;
};

size_t fkt_act_count(const struct fkt_act *a); /* elements, padding included */
size_t fkt_act_bytes(const struct fkt_act *a);

/* For all of these: the caller guarantees the shapes (fkt_net_shapes made them); source and destination may differ in
 * block and precision unless stated otherwise; arithmetic is float, rounded once when stored. `in place`: dst may be
 * the same memory as src. Each runs on the calling thread. */
void fkt_act_from_nchw(const struct fkt_act *dst, const float *src);
void fkt_act_to_nchw(float *dst, const struct fkt_act *src);
void fkt_act_copy(const struct fkt_act *dst, const struct fkt_act *src); /* another block or precision */
void fkt_act_unary(const struct fkt_act *dst, const struct fkt_act *src, const struct fkt_op *op); /* RELU, SILU,
                                                       SOFT_CLAMP, AFFINE; same block and precision; in place */
void fkt_act_add(const struct fkt_act *dst, const struct fkt_act *a, const struct fkt_act *b); /* in place on a or b */
void fkt_act_glu(const struct fkt_act *dst, const struct fkt_act *src);
void fkt_act_upsample(const struct fkt_act *dst, const struct fkt_act *src, uint32_t factor);
void fkt_act_shuffle(const struct fkt_act *dst, const struct fkt_act *src, uint32_t factor);
void fkt_act_unshuffle(const struct fkt_act *dst, const struct fkt_act *src, uint32_t factor);
void fkt_act_group_mean(const struct fkt_act *dst, const struct fkt_act *src);
void fkt_act_repeat(const struct fkt_act *dst, const struct fkt_act *src);
void fkt_act_concat(const struct fkt_act *dst, const struct fkt_act *a, const struct fkt_act *b);
/* `add` (may be NULL): dst = norm(src) + add, one pass. In place on src or add. */
void fkt_act_rms_norm(const struct fkt_act *dst, const struct fkt_act *src, const float *weight, const float *bias,
                      float eps, const struct fkt_act *add);
void fkt_act_group_norm(const struct fkt_act *dst, const struct fkt_act *src, const float *weight, const float *bias,
                        float eps, uint32_t groups);
void fkt_act_channel_affine(const struct fkt_act *dst, const struct fkt_act *src, const float *scale,
                            const float *shift); /* in place */
void fkt_act_max_pool(const struct fkt_act *dst, const struct fkt_act *src, const struct fkt_op *op);
void fkt_act_mean(const struct fkt_act *dst, const struct fkt_act *src); /* of each map */
void fkt_act_resize(const struct fkt_act *dst, const struct fkt_act *src);
/* `scratch`: fkt_act_attention_scratch(...) floats. */
void fkt_act_attention(const struct fkt_act *dst, const struct fkt_act *src, uint32_t length, float eps,
                       float *scratch);
size_t fkt_act_attention_scratch(const struct fkt_act *src, uint32_t length);

/* Backward: d, the gradient by the source, from g, the gradient by the result, and x, the source. d is replaced. */
void fkt_act_unary_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x,
                        const struct fkt_op *op); /* RELU6, SILU, SOFT_CLAMP, AFFINE (x may be NULL) */
void fkt_act_glu_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x);
void fkt_act_upsample_back(const struct fkt_act *d, const struct fkt_act *g, uint32_t factor);
void fkt_act_resize_back(const struct fkt_act *d, const struct fkt_act *g);
void fkt_act_split(const struct fkt_act *d, const struct fkt_act *g,
                   uint32_t first); /* channels of g from `first` on */
void fkt_act_rms_norm_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x,
                           const float *weight, float eps);
void fkt_act_group_norm_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x,
                             const float *weight, float eps, uint32_t groups);

uint16_t fkt_bf16(float x); /* nearest, ties to even; NaN stays NaN */
float fkt_from_bf16(uint16_t x);

#endif
