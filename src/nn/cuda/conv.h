/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h - one convolution on the card, in three directions: forward with what is fused to it, the gradient of its
 * input, the gradient of its weights. Two implementations: conv.c (cuDNN) and, for tests without a card, plain loops
 * (tests/cuda_host). Depthwise convolutions are kernels of our own (kernels.h). */
#ifndef FKT_NN_CUDA_CONV_H
#define FKT_NN_CUDA_CONV_H

#include "nn/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_cuda_conv_spec {
    int n, h, w, c, k; /* input (n, h, w, c), output (n, h', w', k); h' = (h + 2 pad - kernel)/stride + 1 */
    int kernel, stride, pad, groups;
    enum fkt_precision precision; /* of x, w (but see BACK_WEIGHTS) and y */
    enum fkt_cuda_way way;
    int bias, add; /* FORWARD alone: they are given */
    enum fkt_cuda_act act;
};

/* Channels with which conv.c wants an input of c channels: the units for matrix products read 16 bytes at a time, so
 * an image's 3 channels are stored as 8 (bf16) or 4 (f32), the rest zeros, in the input and in the weights. */
int fkt_cuda_conv_channels(int c, enum fkt_precision precision);

/* Convolutions with equal specs share one plan; making the second is cheap. The plan depends on the spec, the card and
 * the library alone: nothing is timed. */
struct fkt_cuda_conv;
FKT_MUST_USE fkt_status fkt_cuda_conv_new(struct fkt_cuda_conv **out, struct fkt_cuda_device *d,
                                          const struct fkt_cuda_conv_spec *s);
size_t fkt_cuda_conv_workspace(const struct fkt_cuda_conv *c); /* bytes; 0: none */
/* FORWARD:       y = act(conv(x, w) + bias + add); bias (k) float; add like y, not y itself
 * BACK_DATA:     x = gradient of the input, from y = gradient of the output, and w
 * BACK_WEIGHTS:  w = gradient of the weights, always float, from x, and y = gradient of the output
 * All are replaced, not added to. `workspace`: that many bytes on the card, used until the stream is past it. Any
 * number of threads may run one convolution at once, each with its own workspace and its own stream, which must be one
 * of fkt_cuda_stream_new. */
FKT_MUST_USE fkt_status fkt_cuda_conv_run(const struct fkt_cuda_conv *c, void *x, void *w, const float *bias,
                                          const void *add, void *y, void *workspace, cudaStream_t stream);
void fkt_cuda_conv_free(struct fkt_cuda_conv *c);
/* A stream that convolutions can run on, with what cuDNN needs for it; of the current device. Nothing may be under way
 * on a stream that is freed. NULL: nothing to free. */
FKT_MUST_USE fkt_status fkt_cuda_stream_new(cudaStream_t *out, const struct fkt_cuda_device *d, int priority);
void fkt_cuda_stream_free(cudaStream_t stream, const struct fkt_cuda_device *d);
/* So that a test can count what is left: frees the plans of all convolutions, which must not be in use, and what cuDNN
 * needs for streams that have been freed. */
void fkt_cuda_conv_forget(void);
void fkt_cuda_stream_forget(const struct fkt_cuda_device *d);

#ifdef __cplusplus
}
#endif
#endif
