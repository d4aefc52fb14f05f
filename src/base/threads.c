/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - a parallel loop: threads take the next item from one counter until none is left or one has failed. */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 256 };

struct loop {
    size_t n;
    fkt_status (*fn)(void *, size_t, unsigned);
    void *ctx;
    const struct fkt_progress *progress;
    const char *what;
    atomic_size_t next;
    atomic_int stop;
    pthread_mutex_t lock; /* guards done, failure and the progress hook */
    size_t done;
    struct fkt_failure failure;
};

struct worker {
    struct loop *loop;
    unsigned number;
};

unsigned fkt_cpu_count(void)
{
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    return n >= 1 ? (unsigned)n : 1;
}

static void note(struct loop *l, fkt_status st)
{
    pthread_mutex_lock(&l->lock);
    if (st == FKT_OK) {
        l->done++;
        if (l->progress && l->progress->step && l->progress->step(l->progress->self, l->what, l->done, l->n) != 0)
            st = fkt_fail(FKT_E_STOPPED, "stopped while %s", l->what);
    }
    if (st != FKT_OK && l->failure.status == FKT_OK) {
        fkt_failure_save(&l->failure, st);
        atomic_store(&l->stop, 1);
    }
    pthread_mutex_unlock(&l->lock);
}

static void run(struct loop *l, unsigned number)
{
    while (!atomic_load(&l->stop)) {
        size_t item = atomic_fetch_add(&l->next, 1);
        if (item >= l->n) break;
        note(l, l->fn(l->ctx, item, number));
    }
}

static void *entry(void *arg)
{
    struct worker *w = arg;
    run(w->loop, w->number);
    return NULL;
}

fkt_status fkt_parallel(unsigned threads, size_t n, fkt_status (*fn)(void *, size_t, unsigned), void *ctx,
                        const struct fkt_progress *progress, const char *what)
{
    struct loop l = {.n = n, .fn = fn, .ctx = ctx, .progress = progress, .what = what ? what : "working"};
    pthread_t id[MAX_THREADS];
    struct worker w[MAX_THREADS];
    unsigned started = 0;

    if (threads == 0) threads = fkt_cpu_count();
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    if (threads > n) threads = n ? (unsigned)n : 1;
    pthread_mutex_init(&l.lock, NULL);
    /* Worker 0 is the caller; a thread that cannot be started only makes the loop slower. */
    for (unsigned i = 1; i < threads; i++) {
        w[started] = (struct worker){&l, i};
        if (pthread_create(&id[started], NULL, entry, &w[started]) != 0) break;
        started++;
    }
    run(&l, 0);
    for (unsigned i = 0; i < started; i++) pthread_join(id[i], NULL);
    pthread_mutex_destroy(&l.lock);
    return l.failure.status == FKT_OK ? FKT_OK : fkt_failure_restore(&l.failure);
}
