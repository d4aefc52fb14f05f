/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_inbox.c - from the epoll threads to the mailbox thread: jobs in the order of arrival, and refusals as counts.
 *
 * Unknown peers can cause any number of refusals; a count for each site and reason is exact and of fixed size. Jobs are
 * bounded by the number of connections. */
#include "base/alloc.h"
#include "net/httpd_internal.h"

#include <string.h>

static fkt_status notes_init(struct fkt_notes *n, uint32_t sites)
{
    const size_t cells = ((size_t)sites + 1) * FKT_REFUSALS;
    fkt_status st;
    FKT_TRY(fkt_alloc(&n->times, cells));
    FKT_TRY(fkt_alloc(&n->dirty, cells));
out:
    return st;
}

static void notes_release(struct fkt_notes *n)
{
    fkt_free(n->times);
    fkt_free(n->dirty);
}

fkt_status fkt_inbox_init(struct fkt_inbox *b, uint32_t sites)
{
    pthread_condattr_t attr;
    fkt_status st;
    memset(b, 0, sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->wake, &attr);
    pthread_condattr_destroy(&attr);
    b->tail = &b->head;
    b->sites = sites;
    FKT_TRY(notes_init(&b->notes, sites));
    FKT_TRY(notes_init(&b->taken, sites));
out:
    return st;
}

void fkt_inbox_clear(struct fkt_inbox *b)
{
    notes_release(&b->notes);
    notes_release(&b->taken);
    pthread_cond_destroy(&b->wake);
    pthread_mutex_destroy(&b->lock);
}

int fkt_inbox_put(struct fkt_inbox *b, struct fkt_job *j, void (*before)(struct fkt_job *j))
{
    int open;
    pthread_mutex_lock(&b->lock);
    open = !b->closed;
    if (open) {
        before(j);
        j->next = NULL;
        *b->tail = j;
        b->tail = &j->next;
        pthread_cond_signal(&b->wake);
    }
    pthread_mutex_unlock(&b->lock);
    return open;
}

void fkt_inbox_note(struct fkt_inbox *b, uint32_t site, enum fkt_refusal why)
{
    const uint32_t row = site < b->sites ? site + 1 : 0, at = row * FKT_REFUSALS + (uint32_t)why;
    pthread_mutex_lock(&b->lock);
    if (b->notes.times[at] == 0) b->notes.dirty[b->notes.n++] = at;
    if (b->notes.times[at] < UINT32_MAX) b->notes.times[at]++;
    pthread_mutex_unlock(&b->lock);
}

void fkt_inbox_ring(struct fkt_inbox *b)
{
    pthread_mutex_lock(&b->lock);
    b->rung = 1;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
}

void fkt_inbox_close(struct fkt_inbox *b)
{
    pthread_mutex_lock(&b->lock);
    b->closed = 1;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
}

int fkt_inbox_take(struct fkt_inbox *b, uint64_t until_ms, struct fkt_job **jobs)
{
    const struct timespec until = {(time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000};
    const struct fkt_notes told = b->taken;
    int open;
    pthread_mutex_lock(&b->lock);
    while (!b->head && !b->rung && !b->closed)
        if (pthread_cond_timedwait(&b->wake, &b->lock, &until) != 0) break;
    *jobs = b->head;
    b->head = NULL;
    b->tail = &b->head;
    b->rung = 0;
    b->taken = b->notes;
    b->notes = told;
    open = !b->closed;
    pthread_mutex_unlock(&b->lock);
    return open;
}

void fkt_inbox_tell(struct fkt_inbox *b, struct fkt_queue *queue)
{
    struct fkt_notes *n = &b->taken;
    while (n->n) {
        const uint32_t at = n->dirty[--n->n], row = at / FKT_REFUSALS;
        const enum fkt_refusal why = (enum fkt_refusal)(at % FKT_REFUSALS);
        for (; n->times[at]; n->times[at]--) fkt_queue_note(queue, row ? row - 1 : FKT_MAILBOX_NOBODY, why);
    }
}
