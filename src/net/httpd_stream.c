/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_stream.c - server-sent events (WHATWG HTML 9.2): the state of the task, to every subscribed browser.
 *
 * There is one newest event, and a stream that is behind skips to it: a slow reader costs one copy, never a queue. An
 * idle stream is suspended and costs no thread; the mailbox thread wakes it for the next event, at most four a
 * second, and every fifteen seconds for a comment that keeps proxies from closing it. */
#include "base/alloc.h"
#include "net/httpd_internal.h"

#include <string.h>

enum { PAUSE_MS = 250, ALIVE_MS = 15000 };

struct fkt_stream {
    struct fkt_stream *prev, *next;
    struct fkt_httpd *h;
    struct MHD_Connection *c;
    int asleep, fresh, poked; /* fresh: the newest event has not been taken; poked: a comment is due */
    char *text;               /* what is being sent; owned */
    size_t len, sent;
};

void fkt_streams_init(struct fkt_streams *s) { pthread_mutex_init(&s->lock, NULL); }

void fkt_streams_clear(struct fkt_streams *s)
{
    fkt_free(s->latest);
    pthread_mutex_destroy(&s->lock);
}

/* Under the lock. */
static void take_newest(struct fkt_streams *s, struct fkt_stream *t)
{
    static const char comment[] = ": \n\n";
    const char *text = t->fresh ? s->latest : comment;
    const size_t len = t->fresh ? s->len : sizeof comment - 1;
    if (t->sent < t->len || !(t->fresh || t->poked)) return;
    if (fkt_realloc(&t->text, len) != FKT_OK) return; /* it gets the next one */
    memcpy(t->text, text, len);
    t->len = len;
    t->sent = 0;
    t->fresh = t->poked = 0;
}

static ssize_t stream_read(void *self, uint64_t pos, char *buf, size_t max)
{
    struct fkt_stream *t = self;
    struct fkt_streams *s = &t->h->streams;
    ssize_t got = 0;
    (void)pos;
    pthread_mutex_lock(&s->lock);
    take_newest(s, t);
    if (t->sent < t->len) {
        const size_t n = t->len - t->sent < max ? t->len - t->sent : max;
        memcpy(buf, t->text + t->sent, n);
        t->sent += n;
        got = (ssize_t)n;
    } else if (s->closed) {
        got = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        t->asleep = 1;
        MHD_suspend_connection(t->c);
    }
    pthread_mutex_unlock(&s->lock);
    return got;
}

static void stream_free(void *self)
{
    struct fkt_stream *t = self;
    struct fkt_streams *s = &t->h->streams;
    pthread_mutex_lock(&s->lock);
    if (t->prev) t->prev->next = t->next;
    else s->first = t->next;
    if (t->next) t->next->prev = t->prev;
    s->count--;
    atomic_store(&t->h->counters.streams, s->count);
    pthread_mutex_unlock(&s->lock);
    fkt_free(t->text);
    fkt_free(t);
}

/* NULL: no room, or no memory. */
static struct fkt_stream *stream_new(struct fkt_ask *a)
{
    struct fkt_streams *s = &a->h->streams;
    struct fkt_stream *t = NULL;
    pthread_mutex_lock(&s->lock);
    if (!s->closed && s->count < FKT_STREAMS && fkt_alloc(&t, 1) == FKT_OK) {
        t->h = a->h;
        t->c = a->c;
        t->next = s->first;
        if (t->next) t->next->prev = t;
        s->first = t;
        atomic_store(&a->h->counters.streams, ++s->count);
        s->wanted = 1;
    }
    pthread_mutex_unlock(&s->lock);
    if (t) fkt_inbox_ring(&a->h->inbox);
    return t;
}

enum MHD_Result fkt_streams_open(struct fkt_ask *a)
{
    static const char type[] = "text/event-stream";
    struct fkt_stream *t = NULL;
    struct MHD_Response *r = NULL;
    enum MHD_Result ok;
    if (strcmp(a->method, "HEAD") == 0) {
        a->job.answer.code = 200;
        a->job.answer.type = type;
        return fkt_reply(a);
    }
    t = stream_new(a);
    if (!t) {
        fkt_answer_busy(&a->job.answer, "too many subscribers", 10);
        return fkt_reply(a);
    }
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, stream_read, t, stream_free);
    if (!r) {
        stream_free(t);
        return MHD_NO;
    }
    fkt_reply_headers(r, type, NULL);
    fkt_counters_answer(&a->h->counters, 200, 0);
    a->state = FKT_ASK_ANSWERED;
    ok = MHD_queue_response(a->c, 200, r);
    MHD_destroy_response(r);
    return ok;
}

/* Under the lock. */
static void wake_all(struct fkt_streams *s, int fresh)
{
    for (struct fkt_stream *t = s->first; t; t = t->next) {
        if (fresh) t->fresh = 1;
        t->poked = 1;
        if (!t->asleep) continue;
        t->asleep = 0;
        MHD_resume_connection(t->c);
    }
}

/* Takes *event, or wakes everybody for a comment when it is empty. */
static void publish(struct fkt_streams *s, struct fkt_text *event, uint64_t now_ms)
{
    pthread_mutex_lock(&s->lock);
    if (event->len) {
        fkt_free(s->latest);
        s->latest = event->s;
        s->len = event->len;
    }
    s->sent_ms = now_ms;
    wake_all(s, event->len > 0);
    pthread_mutex_unlock(&s->lock);
}

void fkt_streams_turn(struct fkt_httpd *h, struct fkt_queue *d, uint64_t now_ms)
{
    struct fkt_streams *s = &h->streams;
    struct fkt_page_counts counts;
    struct fkt_text event;
    int watched, wanted;
    pthread_mutex_lock(&s->lock);
    watched = s->count > 0;
    wanted = s->wanted;
    if (now_ms >= s->sent_ms + PAUSE_MS) s->wanted = 0;
    pthread_mutex_unlock(&s->lock);
    if (!watched || now_ms < s->sent_ms + PAUSE_MS) return;
    fkt_text_init(&event);
    fkt_counters_read(&h->counters, &counts);
    fkt_text_add(&event, "event: status\ndata: ");
    if (fkt_queue_news(d, fkt_wall_ms(), &counts, wanted, &event)) fkt_text_add(&event, "\n\n");
    else fkt_text_clear(&event);
    if (fkt_text_status(&event) != FKT_OK) fkt_text_clear(&event);
    if (event.len || now_ms >= s->sent_ms + ALIVE_MS) publish(s, &event, now_ms);
}

void fkt_streams_close(struct fkt_streams *s)
{
    pthread_mutex_lock(&s->lock);
    s->closed = 1;
    wake_all(s, 0);
    pthread_mutex_unlock(&s->lock);
}
