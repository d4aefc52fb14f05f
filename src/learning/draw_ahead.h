/* SPDX-License-Identifier: Apache-2.0 */
/* draw_ahead.h - the images of the next epoch, made in a thread while a card trains on those of this one. */
#ifndef FKT_LEARNING_DRAW_AHEAD_H
#define FKT_LEARNING_DRAW_AHEAD_H

#include "fedkt/train.h"

#include <pthread.h>
#include <stdatomic.h>

/* Makes the images of an epoch, on any thread; a failure leaves *out empty. */
typedef fkt_status fkt_make_epoch(void *ctx, uint32_t epoch, const struct fkt_progress *progress,
                                  struct fkt_training_set *out);

/* Zeros: nothing is being made. While something is, the caller leaves alone what `make` uses. */
struct fkt_ahead {
    fkt_make_epoch *make;
    void *ctx;
    uint32_t epoch;
    struct fkt_training_set set;
    struct fkt_progress progress; /* of the thread: notices `stop` */
    atomic_int stop;
    fkt_status st;
    int running;
    pthread_t thread;
};
/* Starts; where no thread can be had, nothing happens. Nothing may be running. */
void fkt_ahead_start(struct fkt_ahead *a, fkt_make_epoch *make, void *ctx, uint32_t epoch);
/* Waits. 1: *out is the images of that epoch. 0: they are not there, for whatever reason: make them, and see why. What
 * was made of another epoch is dropped. */
int fkt_ahead_take(struct fkt_ahead *a, uint32_t epoch, struct fkt_training_set *out);
void fkt_ahead_end(struct fkt_ahead *a); /* stops and drops */

#endif
