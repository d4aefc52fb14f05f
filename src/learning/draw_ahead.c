/* SPDX-License-Identifier: Apache-2.0 */
/* draw_ahead.c - one epoch of images ahead of the training.
 *
 *   card:       | epoch 0         | epoch 1         | ...
 *   processor:  | images of 1     | images of 2     | ...
 *
 * The images of an epoch depend on its number alone, so a run has the same bits with it and without. A failure is not
 * carried over: the epoch is then made again where it is asked for, and fails there with its sentence, or does not. */
#include "learning/draw_ahead.h"

#include <string.h>

static int notice(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    struct fkt_ahead *a = self;
    (void)what;
    (void)done;
    (void)total;
    return atomic_load(&a->stop);
}

static void *run(void *self)
{
    struct fkt_ahead *a = self;
    a->st = a->make(a->ctx, a->epoch, &a->progress, &a->set);
    return NULL;
}

void fkt_ahead_start(struct fkt_ahead *a, fkt_make_epoch *make, void *ctx, uint32_t epoch)
{
    a->make = make;
    a->ctx = ctx;
    a->epoch = epoch;
    a->progress = (struct fkt_progress){notice, a};
    atomic_store(&a->stop, 0);
    memset(&a->set, 0, sizeof a->set);
    a->running = pthread_create(&a->thread, NULL, run, a) == 0;
}

int fkt_ahead_take(struct fkt_ahead *a, uint32_t epoch, struct fkt_training_set *out)
{
    if (!a->running) return 0;
    if (a->epoch != epoch) atomic_store(&a->stop, 1);
    pthread_join(a->thread, NULL);
    a->running = 0;
    if (a->st != FKT_OK) return 0;
    if (a->epoch == epoch) *out = a->set;
    else fkt_training_set_clear(&a->set);
    memset(&a->set, 0, sizeof a->set);
    return a->epoch == epoch;
}

void fkt_ahead_end(struct fkt_ahead *a)
{
    struct fkt_training_set none;
    (void)fkt_ahead_take(a, UINT32_MAX, &none); /* no epoch has this number */
}
