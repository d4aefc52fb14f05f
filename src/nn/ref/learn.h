/* SPDX-License-Identifier: Apache-2.0 */
/* learn.h - backward of one operation on plain arrays, and batch statistics. */
#ifndef FKT_NN_REF_LEARN_H
#define FKT_NN_REF_LEARN_H

#include "nn/ref/ops.h"

/* Statistics of one channel in a batch norm; var is that of the batch itself (over n, not n - 1). */
struct fkt_ref_moments {
    double mean, var;
};

/* The backward of one forward call. */
struct fkt_ref_back {
    const struct fkt_ref_call *call;
    const float *dy;                       /* as call->out */
    float *da, *db;                        /* as call->a and call->b: added to. NULL: not needed */
    float *dweight, *dbias;                /* replaced; NULL where the operation has none, or where it is frozen */
    const struct fkt_ref_moments *moments; /* BATCH_NORM: (C) of its forward; NULL: by the stored statistics */
    double *scratch;                       /* ATTENTION: (2, H W) */
};

void fkt_ref_backward(const struct fkt_ref_back *k);
/* One kind of operation each; fkt_ref_backward chooses. */
void fkt_ref_convolution_back(const struct fkt_ref_back *k);
void fkt_ref_linear_back(const struct fkt_ref_back *k);
void fkt_ref_batch_norm_back(const struct fkt_ref_back *k);
void fkt_ref_max_pool_back(const struct fkt_ref_back *k);
void fkt_ref_mean_back(const struct fkt_ref_back *k);
void fkt_ref_resize_back(const struct fkt_ref_back *k);
void fkt_ref_stored_norm_back(const struct fkt_ref_back *k); /* BATCH_NORM by the stored statistics */
void fkt_ref_group_norm_back(const struct fkt_ref_back *k);
void fkt_ref_rms_norm_back(const struct fkt_ref_back *k);
void fkt_ref_attention_back(const struct fkt_ref_back *k);

/* BATCH_NORM by the statistics of its batch, which `moments` (C) gets. */
void fkt_ref_batch_norm_learning(const struct fkt_ref_call *k, struct fkt_ref_moments *moments);
/* Moves the stored mean and var (C) towards those of a batch of `count` numbers a channel. */
void fkt_ref_move_statistics(float *mean, float *var, const struct fkt_ref_moments *moments, size_t channels,
                             size_t count, double momentum);

#endif
