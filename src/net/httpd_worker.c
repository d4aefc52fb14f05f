/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_worker.c - the thread that calls the mailbox, and the thread that does its heavy work.
 *
 *   take new jobs -> one turn of the queue (deliver, collect, settle) -> resume those with an answer -> events -> again
 *
 * While a batch is written the next one gathers in the inbox. Heavy work (unmasking, images) runs in a thread of its
 * own, so that polls are answered meanwhile. */
#include "net/httpd_internal.h"

enum { REAP_MS = 500, WATCH_MS = 200 };

static void *worker_main(void *httpd)
{
    struct fkt_httpd *h = httpd;
    const fkt_status st = h->spec.box->work(h->spec.box->self);
    pthread_mutex_lock(&h->lock);
    fkt_failure_save(&h->work_failure, st);
    h->work_done = 1;
    pthread_mutex_unlock(&h->lock);
    fkt_inbox_ring(&h->inbox);
    return NULL;
}

/* Starts pending work, collects finished work. */
static void mind_worker(struct fkt_httpd *h)
{
    struct fkt_failure how;
    int done;
    pthread_mutex_lock(&h->lock);
    done = h->work_done;
    how = h->work_failure;
    h->work_done = 0;
    pthread_mutex_unlock(&h->lock);
    if (h->working && done) {
        pthread_join(h->worker, NULL);
        h->working = 0;
        fkt_queue_worked(h->queue, fkt_failure_restore(&how));
    }
    if (!h->working && fkt_queue_has_work(h->queue))
        h->working = pthread_create(&h->worker, NULL, worker_main, h) == 0; /* else: at the next turn */
}

static void hand_out(struct fkt_job *done)
{
    struct fkt_job *next;
    for (; done; done = next) {
        next = done->next; /* once resumed it belongs to libmicrohttpd */
        fkt_ask_resume(done);
    }
}

static void end(struct fkt_httpd *h, fkt_status st)
{
    pthread_mutex_lock(&h->lock);
    fkt_failure_save(&h->failure, st);
    h->mailbox_thread_ended = 1;
    pthread_cond_signal(&h->over);
    pthread_mutex_unlock(&h->lock);
}

/* One batch. */
static fkt_status turn(struct fkt_httpd *h, struct fkt_job *jobs)
{
    struct fkt_page_counts counts;
    struct fkt_job *done = NULL;
    const uint64_t now_ms = fkt_clock_us() / 1000;
    fkt_status st;
    fkt_counters_read(&h->counters, &counts);
    fkt_inbox_tell(&h->inbox, h->queue);
    mind_worker(h);
    st = fkt_queue_turn(h->queue, now_ms, fkt_wall_ms(), jobs, &counts, &done);
    hand_out(done);
    atomic_store(&h->counters.parked, fkt_queue_parked(h->queue));
    atomic_store(&h->heartbeat, fkt_clock_us() / 1000);
    return st;
}

void *fkt_mailbox_thread_main(void *httpd)
{
    struct fkt_httpd *h = httpd;
    uint64_t reaped_ms = 0, watched_ms = 0;
    fkt_status st = FKT_OK;
    int open = 1, told = 0;
    while (open) {
        const uint64_t now_ms = fkt_clock_us() / 1000;
        /* After a failure it only answers requests with 503 and does not call the mailbox again. */
        const uint64_t until = st == FKT_OK ? fkt_queue_due(h->queue) : now_ms + REAP_MS;
        struct fkt_job *jobs = NULL;
        open = fkt_inbox_take(&h->inbox, until, &jobs);
        st = turn(h, jobs);
        if (st == FKT_OK) fkt_streams_turn(h, h->queue, now_ms);
        if (st == FKT_OK && h->spec.watch && now_ms >= watched_ms + WATCH_MS) {
            struct fkt_mailbox_view view;
            h->spec.box->view(h->spec.box->self, &view);
            h->spec.watch(h->spec.watcher, &view);
            watched_ms = now_ms;
        }
        if (now_ms >= reaped_ms + REAP_MS) {
            fkt_connections_reap(&h->lines, now_ms);
            reaped_ms = now_ms;
        }
        if (st != FKT_OK && !told) end(h, st);
        told = st != FKT_OK;
    }
    hand_out(fkt_queue_close(h->queue));
    fkt_streams_close(&h->streams);
    if (h->working) pthread_join(h->worker, NULL);
    if (!told) end(h, st);
    return NULL;
}
