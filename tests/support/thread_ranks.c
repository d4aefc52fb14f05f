/* SPDX-License-Identifier: Apache-2.0 */
/* thread_ranks.c - a queue of messages for each pair of ranks, under one lock. A send waits until its message was
 * received, as a transport without buffers does, so that an order of messages that needs buffers shows as a test that
 * does not end. A message of another length than the one that was asked for ends the process. */
#include "tests/support/thread_ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message {
    const void *bytes;
    size_t n;
    int there;
};

struct world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct message slot[THREAD_RANKS_MAX][THREAD_RANKS_MAX]; /* from, to */
    size_t sent, received;
    int alarms;
    void (*body)(void *ctx, struct fkt_ranks *r);
    void *ctx;
};

struct seat {
    struct world *world;
    struct fkt_ranks ranks;
    int alarmed;
};

static fkt_status send_to(void *self, uint32_t to, const void *bytes, size_t n)
{
    struct seat *s = self;
    struct world *w = s->world;
    struct message *m = &w->slot[s->ranks.rank][to];
    pthread_mutex_lock(&w->lock);
    *m = (struct message){bytes, n, 1};
    w->sent++;
    pthread_cond_broadcast(&w->changed);
    while (m->there) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return FKT_OK;
}

static fkt_status recv_from(void *self, uint32_t from, void *bytes, size_t n)
{
    struct seat *s = self;
    struct world *w = s->world;
    struct message *m = &w->slot[from][s->ranks.rank];
    pthread_mutex_lock(&w->lock);
    while (!m->there) pthread_cond_wait(&w->changed, &w->lock);
    if (m->n != n) {
        fprintf(stderr, "rank %u expects %zu bytes from rank %u, which sent %zu\n", s->ranks.rank, n, from, m->n);
        abort();
    }
    if (n) memcpy(bytes, m->bytes, n);
    m->there = 0;
    w->received++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return FKT_OK;
}

static void alarm_all(void *self)
{
    struct seat *s = self;
    pthread_mutex_lock(&s->world->lock);
    s->world->alarms++;
    s->alarmed = 1;
    pthread_mutex_unlock(&s->world->lock);
}

static int alarmed(void *self)
{
    struct seat *s = self;
    int others;
    pthread_mutex_lock(&s->world->lock);
    others = s->world->alarms - s->alarmed;
    pthread_mutex_unlock(&s->world->lock);
    return others > 0;
}

static void *run(void *self)
{
    struct seat *s = self;
    s->world->body(s->world->ctx, &s->ranks);
    return NULL;
}

size_t thread_ranks(uint32_t size, void (*body)(void *ctx, struct fkt_ranks *r), void *ctx)
{
    struct world *w = calloc(1, sizeof *w);
    struct seat *seat = calloc(size, sizeof *seat);
    pthread_t thread[THREAD_RANKS_MAX];
    size_t left;
    if (!w || !seat || size > THREAD_RANKS_MAX) abort();
    w->body = body;
    w->ctx = ctx;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    for (uint32_t i = 0; i < size; i++) {
        seat[i].world = w;
        seat[i].ranks = (struct fkt_ranks){.rank = i,
                                           .size = size,
                                           .send = send_to,
                                           .recv = recv_from,
                                           .alarm = alarm_all,
                                           .alarmed = alarmed,
                                           .self = &seat[i]};
        if (pthread_create(&thread[i], NULL, run, &seat[i]) != 0) abort();
    }
    for (uint32_t i = 0; i < size; i++) pthread_join(thread[i], NULL);
    left = w->sent - w->received;
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(seat);
    free(w);
    return left;
}
