/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - our own kernels: what the libraries do not have, or do not fuse.
 *
 * Tensors are fkt_cuda_tensor (NHWC, dense); a call's tensors have one precision unless stated otherwise. Arithmetic is
 * f32, rounded once when stored; sums run in a fixed order, so the same input gives the same bits. Parameters (weights
 * of norms, biases, scales) are f32 arrays on the card. The caller guarantees shapes (fkt_net_shapes made them) and
 * data that begins at a multiple of 16 bytes. `in place`: y may be the same memory as x. Everything is queued on
 * `stream`; a call returns before its work is done. */
#ifndef FKT_NN_CUDA_KERNELS_H
#define FKT_NN_CUDA_KERNELS_H

#include "nn/cuda/cuda.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- into the card's layout and out of it (kernels_bytes.cu) ---- */
/* y (n,h,w,c >= 3): channels 0 to 2 are table[channel][byte] of rgb (n,h,w,3), the others 0. table: (3,256) on the
 * card. */
FKT_MUST_USE fkt_status fkt_cuda_from_bytes(const struct fkt_cuda_tensor *y, const uint8_t *rgb, const float *table,
                                            cudaStream_t stream);
/* rgb (n,h,w,3) = floor((x - shift) * 255 / scale + 0.5) within [0, 255], of channels 0 to 2 of x (n,h,w,c >= 3);
 * double arithmetic, the bits of nn/engine.c. Where an x is NaN *bad becomes 1 (the caller sets it to 0 before). */
FKT_MUST_USE fkt_status fkt_cuda_to_bytes(uint8_t *rgb, const struct fkt_cuda_tensor *x, float scale, float shift,
                                          int *bad, cudaStream_t stream);
/* y (n,h,w,c >= channels) from (n,channels,h,w) floats on the card, further channels 0; and back. */
FKT_MUST_USE fkt_status fkt_cuda_from_nchw(const struct fkt_cuda_tensor *y, const float *x, int channels,
                                           cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_to_nchw(float *y, const struct fkt_cuda_tensor *x, int channels, cudaStream_t stream);
/* The same numbers in y's precision. */
FKT_MUST_USE fkt_status fkt_cuda_cast(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                      cudaStream_t stream);

/* ---- element by element (kernels_element.cu) ---- */
/* RELU, RELU6, SILU, SOFT_CLAMP, AFFINE; in place. */
FKT_MUST_USE fkt_status fkt_cuda_unary(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                       const struct fkt_op *op, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_add(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                                     const struct fkt_cuda_tensor *b, cudaStream_t stream); /* in place on a or b */
/* y = act(y + bias + add); bias (c) and add (of y's shape) may be NULL. */
FKT_MUST_USE fkt_status fkt_cuda_epilogue(const struct fkt_cuda_tensor *y, const float *bias, const void *add,
                                          enum fkt_cuda_act act, cudaStream_t stream);
/* y = act(x * scale[c] + shift[c]); in place. */
FKT_MUST_USE fkt_status fkt_cuda_channel_affine(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                                const float *scale, const float *shift, enum fkt_cuda_act act,
                                                cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_glu(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                     cudaStream_t stream);

/* ---- numbers that move (kernels_move.cu) ---- */
FKT_MUST_USE fkt_status fkt_cuda_upsample(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int factor,
                                          cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_shuffle(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int factor,
                                         cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_unshuffle(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int factor,
                                           cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_group_mean(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                            cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_repeat(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                        cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_concat(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                                        const struct fkt_cuda_tensor *b, cudaStream_t stream);
/* The two shortcuts of DC-AE, without the values between. factor 1: the shortcut alone.
 * y (n, h/f, w/f, c f^2) = unshuffle(x) + group_mean(unshuffle(s)), x (n,h,w,c), s (n,h,w,any multiple of c). */
FKT_MUST_USE fkt_status fkt_cuda_unshuffle_mean_add(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                                    const struct fkt_cuda_tensor *s, int factor, cudaStream_t stream);
/* y (n, f h, f w, c) = shuffle(x + repeat(s)), x (n, h, w, c f^2), s (n, h, w, a divisor of c f^2). */
FKT_MUST_USE fkt_status fkt_cuda_repeat_shuffle_add(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                                    const struct fkt_cuda_tensor *s, int factor, cudaStream_t stream);

/* ---- norms, pools, attention (kernels_norm.cu, kernels_pool.cu, kernels_attention.cu) ---- */
/* y = act(norm(x)) + add; add (of y's shape) may be NULL. In place on x or add. */
FKT_MUST_USE fkt_status fkt_cuda_rms_norm(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                          const float *weight, const float *bias, float eps, const void *add,
                                          enum fkt_cuda_act act, cudaStream_t stream);
/* y = act(norm(x)). scratch: fkt_cuda_group_norm_scratch(x, groups) floats on the card. In place. */
FKT_MUST_USE fkt_status fkt_cuda_group_norm(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                            const float *weight, const float *bias, float eps, int groups,
                                            enum fkt_cuda_act act, float *scratch, cudaStream_t stream);
size_t fkt_cuda_group_norm_scratch(const struct fkt_cuda_tensor *x, int groups);
FKT_MUST_USE fkt_status fkt_cuda_max_pool(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                          const struct fkt_op *op, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_mean(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                      cudaStream_t stream);
/* The weights of nn/resize.h; y.c = x.c (kernels_resize.cu). */
FKT_MUST_USE fkt_status fkt_cuda_resize(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                        cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_attention(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int length,
                                           float eps, cudaStream_t stream);

/* ---- convolutions that cuDNN does slowly (kernels_depthwise.cu) ---- */
/* One group per channel, any window; 3 and 5 with stride 1 are fast. weight (kernel, kernel, c) float, bias (c) or
 * NULL. glu 0: y = act(conv), y.c = x.c; glu 1: y = first half of the channels times SiLU of the second, y.c = x.c / 2,
 * act NONE. */
FKT_MUST_USE fkt_status fkt_cuda_depthwise(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                           const float *weight, const float *bias, const struct fkt_op *op, int glu,
                                           enum fkt_cuda_act act, cudaStream_t stream);
/* A 1x1 convolution in groups, stride 1. weight (y.c, x.c / groups) float, bias (y.c) or NULL. */
FKT_MUST_USE fkt_status fkt_cuda_grouped(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                         const float *weight, const float *bias, int groups, cudaStream_t stream);

/* ---- backward by the input (kernels_back*.cu, kernels_resize.cu): dx = the gradient, or dx += it (`more`) ---- */
FKT_MUST_USE fkt_status fkt_cuda_unary_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                            const struct fkt_cuda_tensor *x, const struct fkt_op *op, int more,
                                            cudaStream_t stream); /* as fkt_cuda_unary; dx may be dy */
/* dx = dy, or dx += dy: ADD passes dy to each of its inputs. */
FKT_MUST_USE fkt_status fkt_cuda_pass_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int more,
                                           cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_channel_affine_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                                     const float *scale, int more, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_glu_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                          const struct fkt_cuda_tensor *x, int more, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_upsample_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                               int factor, int more, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_shuffle_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                              int factor, int more, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_unshuffle_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                                int factor, int more, cudaStream_t stream);
/* Channels first to first + dx->c - 1 of dy: CONCAT passes each of its inputs its part. */
FKT_MUST_USE fkt_status fkt_cuda_concat_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                             int first, int more, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_resize_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                             int more, cudaStream_t stream);
/* One group per channel; weight as in fkt_cuda_depthwise. */
FKT_MUST_USE fkt_status fkt_cuda_depthwise_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                                const float *weight, const struct fkt_op *op, int more,
                                                cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_group_mean_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                                 int more, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_repeat_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                             int more, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_mean_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int more,
                                           cudaStream_t stream);
/* Of several largest numbers of a window the first gets the gradient, as in nn/ref. */
FKT_MUST_USE fkt_status fkt_cuda_max_pool_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                               const struct fkt_cuda_tensor *x, const struct fkt_op *op, int more,
                                               cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_rms_norm_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                               const struct fkt_cuda_tensor *x, const float *weight, float eps,
                                               int more, cudaStream_t stream);
/* scratch: fkt_cuda_group_norm_back_scratch(x, groups) floats on the card. */
FKT_MUST_USE fkt_status fkt_cuda_group_norm_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                                 const struct fkt_cuda_tensor *x, const float *weight, float eps,
                                                 int groups, int more, float *scratch, cudaStream_t stream);
size_t fkt_cuda_group_norm_back_scratch(const struct fkt_cuda_tensor *x, int groups);

#ifdef __cplusplus
}
#endif
#endif
