/* SPDX-License-Identifier: Apache-2.0 */
/* train_epoch.h - epochs of a learner that keeps the images and runs its steps without the host, timed as a whole. */
#ifndef FKT_BENCH_TRAIN_EPOCH_H
#define FKT_BENCH_TRAIN_EPOCH_H

#include "classifier/model.h"
#include "nn/learner.h"

struct fkt_bench_epochs {
    double best, median; /* images per second */
    double plan;         /* seconds of the host's part of the fastest: order, shifts and flips of all images */
    uint64_t steps, epochs;
    double first, last; /* mean losses of the first and the last epoch */
};

/* The learner has the weights of m; images: at least a batch. FKT_E_NUMERIC when a loss is not finite or does not
 * fall. */
FKT_MUST_USE fkt_status fkt_bench_epochs(struct fkt_learner *l, const struct fkt_model *m, uint32_t batch,
                                         uint32_t size, size_t images, struct fkt_bench_epochs *out);

#endif
