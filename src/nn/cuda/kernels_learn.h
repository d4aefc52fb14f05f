/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_learn.h - the kernels of a learner on a card: batch norm by the statistics of its batch, the maps around it,
 * the loss, the optimiser.
 *
 * A map is a matrix (rows, channels) with rows = images * height * width and channels a multiple of 8: a learner pads
 * channels with zeros, so every kernel reads and writes whole vectors of 8 numbers. Padding stays zero: its weights,
 * biases and factors are zero, and so are their gradients. Pointers are to the card's memory; numbers in maps have the
 * map's precision, all other arrays are float. Everything is queued on the stream. Sums have a fixed order: stage one
 * gives one partial sum per block of rows, stage two adds them in double. */
#ifndef FKT_NN_CUDA_KERNELS_LEARN_H
#define FKT_NN_CUDA_KERNELS_LEARN_H

#include "nn/learner.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FKT_CUDA_LANES = 8 }; /* channels are a multiple of this */

struct fkt_cuda_rows {
    size_t rows;
    int channels;
    enum fkt_precision precision;
};
int fkt_cuda_learn_parts(const struct fkt_cuda_rows *map); /* partial sums of a channel: by the shape alone */

/* One batch norm; arrays of `channels` floats, letters as in learn_norm.cu. */
struct fkt_cuda_norm {
    struct fkt_cuda_rows map;
    float epsilon, momentum;
    float *weight, *bias, *mean, *var, *weight_gradient, *bias_gradient; /* the learner's */
    float *centre, *scale, *a, *b, *p, *r;                               /* of this batch */
    float *part;                                                         /* (2, channels, parts) */
    int parts;
};
/* Operands that a call does not have are NULL. */
struct fkt_cuda_norm_maps {
    const void *x, *z; /* the norm's source, and what is added to its result */
    void *y;           /* the result; in the backward read for the ReLU's mask, NULL: the mask is computed from x */
    int relu;
    const void *g, *h; /* gradients by y, to be added up */
    void *e;           /* their sum under the ReLU's mask: the gradient by z; may be g or h */
    void *d;           /* the gradient by x; may be x */
};
FKT_MUST_USE fkt_status fkt_cuda_norm_forward(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *m,
                                              cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_norm_backward(const struct fkt_cuda_norm *n, const struct fkt_cuda_norm_maps *m,
                                               cudaStream_t stream);
/* A frozen network's: a = weight / sqrt(var + eps), b = bias - mean a, by what is stored. */
FKT_MUST_USE fkt_status fkt_cuda_norm_fold(const struct fkt_cuda_norm *n, cudaStream_t stream);
/* sum (channels) = sums of the columns of dy; part as in a norm. */
FKT_MUST_USE fkt_status fkt_cuda_learn_columns(const struct fkt_cuda_rows *map, const void *dy, float *part, int parts,
                                               float *sum, cudaStream_t stream);

/* y = a + b (NULL: a), then a ReLU; d = g + h (NULL: g) where y > 0 (NULL: everywhere). In place or not. */
FKT_MUST_USE fkt_status fkt_cuda_learn_sum(const struct fkt_cuda_rows *map, void *y, const void *a, const void *b,
                                           int relu, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_learn_mask(const struct fkt_cuda_rows *map, void *d, const void *g, const void *h,
                                            const void *y, cudaStream_t stream);
/* keep (result's size): the place of the largest number in its window, row by row; as net.h says, the first of equal
 * ones, and a NaN is larger than all. */
struct fkt_cuda_pool {
    int n, h, w, channels, to_h, to_w, kernel, stride, pad;
    enum fkt_precision precision;
};
FKT_MUST_USE fkt_status fkt_cuda_learn_pool(const struct fkt_cuda_pool *p, const void *x, void *y, uint16_t *keep,
                                            cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_learn_pool_back(const struct fkt_cuda_pool *p, void *d, const void *g,
                                                 const uint16_t *keep, cudaStream_t stream);

/* ---- steps that need nothing from the host ---- */

/* An optimiser's numbers, corrected for its step. */
struct fkt_cuda_planned {
    enum fkt_optimizer_kind kind;
    int nesterov;
    double rate, decay, momentum, pull, beta1, beta2, epsilon;
    double root;   /* Adam: of 1 - beta2^step; the rate is divided by 1 - beta1^step */
    float average; /* negative: none */
};
/* In the card's memory: what changes from epoch to epoch, so that a captured step stays valid. */
struct fkt_cuda_epoch {
    const struct fkt_view_at *view;
    const struct fkt_cuda_planned *planned;
    const uint8_t *rgb;
    const uint32_t *label;
    const float *value;   /* (3, 256) */
    const float *teacher; /* (images, classes); read where the teacher has a share of the loss */
    float *second, *average;
    struct fkt_loss loss;
};
struct fkt_cuda_tally {
    uint64_t step, hits, first_bad;
    double loss;
};
struct fkt_cuda_batch {
    int n, h, w, channels, classes; /* channels: padded, of the input */
    enum fkt_precision precision;
};
/* x (n, h, w, channels): the views of the tally's step. */
FKT_MUST_USE fkt_status fkt_cuda_learn_gather(const struct fkt_cuda_batch *b, const struct fkt_cuda_epoch *e,
                                              const struct fkt_cuda_tally *t, void *x, cudaStream_t stream);
/* z, dz (n, padded classes): logits and the gradient of the batch's mean loss; loss (n), hit (n) of each image; a loss
 * is NaN where a logit is not finite. */
FKT_MUST_USE fkt_status fkt_cuda_learn_loss(const struct fkt_cuda_batch *b, const struct fkt_cuda_epoch *e,
                                            const struct fkt_cuda_tally *t, const void *z, void *dz, double *loss,
                                            uint32_t *hit, cudaStream_t stream);
/* Adds the step to the tally and counts it: the last kernel of a step. */
FKT_MUST_USE fkt_status fkt_cuda_learn_tally(int n, const double *loss, const uint32_t *hit, struct fkt_cuda_tally *t,
                                             cudaStream_t stream);

/* All slots in one block: `parameters` numbers, then statistics up to `floats`; multiples of 4. */
struct fkt_cuda_slots {
    float *weight, *gradient, *velocity;
    uint16_t *copy; /* bf16 of the weights, NULL: none */
    size_t parameters, floats;
};
/* A step and the average after it, with the tally's planned numbers; or a step with those that are given: second and
 * average are read where these ask for them. */
FKT_MUST_USE fkt_status fkt_cuda_learn_step(const struct fkt_cuda_slots *s, const struct fkt_cuda_epoch *e,
                                            const struct fkt_cuda_tally *t, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_learn_step_now(const struct fkt_cuda_slots *s, const struct fkt_cuda_planned *p,
                                                float *second, const float *average, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_learn_average(const struct fkt_cuda_slots *s, float *average, float decay,
                                               cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
