/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_internal.h - the parts of the server, for src/net/httpd*.c alone.
 *
 *   epoll threads (libmicrohttpd's, two)                  mailbox thread (ours, one)         worker (ours, when needed)
 *   httpd_connections.c  connections and deadlines        httpd_worker.c queue, mailbox      mailbox->work
 *   httpd_request.c      a request from start to end      httpd_stream.c events to browsers
 *   httpd_bodies.c       memory for its body
 *   httpd_reply.c        answers to bytes
 *                           \----- httpd_inbox.c: jobs and refusals, under one lock -----/
 *
 * A request (fkt_ask) belongs to an epoll thread, and while it is suspended to the mailbox thread: it is suspended
 * before it goes into the inbox, and resumed when it has its answer. libmicrohttpd neither closes nor frees what is
 * suspended.
 */
#ifndef FKT_NET_HTTPD_INTERNAL_H
#define FKT_NET_HTTPD_INTERNAL_H

#include "net/answer.h"
#include "net/queue.h"
#include "net/request_check.h"
#include "net/httpd.h"
#include "net/listen.h"
#include "net/counters.h"

#include <microhttpd.h>
#include <pthread.h>
#include <time.h>

static inline uint64_t fkt_clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}
static inline uint64_t fkt_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- connections ---- */

struct fkt_connection {
    struct fkt_connection *prev, *next;
    int fd;
    uint8_t peer[FKT_RATE_LIMIT_ADDRESS];
    uint64_t since_ms;
    atomic_uint_fast64_t deadline_ms; /* cut when it is past; 0: never */
    atomic_int proven;                /* 1: it has sent a valid signature or token, and nothing was refused since */
    uint32_t site;                    /* whose signature, plus one; 0: none. Written under the lock by its own thread */
    atomic_size_t strange_bytes;      /* of an unauthenticated request body (httpd_bodies.c) */
    int cut;                          /* 1: shut down, libmicrohttpd will close it. Under the lock */
};
struct fkt_connections {
    pthread_mutex_t lock;
    struct fkt_connection *first, *last; /* the newest, the oldest */
    uint32_t count, cut, max;            /* cut: of those counted */
};
void fkt_connections_init(struct fkt_connections *l, uint32_t max);
void fkt_connections_clear(struct fkt_connections *l);
void fkt_connections_notify(void *httpd, struct MHD_Connection *c, void **context,
                            enum MHD_ConnectionNotificationCode toe);
void fkt_connections_reap(struct fkt_connections *l, uint64_t now_ms);
/* It has sent an accepted request, signed by a site or (FKT_MAILBOX_NOBODY) from a person. */
void fkt_connections_prove(struct fkt_connections *l, struct fkt_connection *line, uint32_t site);
size_t fkt_connections_unproven_bytes(struct fkt_connections *l,
                                      const struct fkt_connection *line); /* of all connections of its address */
/* A message for a site leaves on this connection; another connection with an unread one for it is cut: *reading. */
void fkt_connections_message(struct fkt_connections *l, struct fkt_connection *line, struct fkt_connection **reading);
void fkt_connections_read(struct fkt_connections *l, const struct fkt_connection *line,
                          struct fkt_connection **reading);                         /* it has arrived */
void fkt_connections_doubt(struct fkt_connections *l, struct fkt_connection *line); /* it has sent something invalid */

/* ---- inbox ---- */

/* Refusals not yet reported to the mailbox, counted for each site and reason. */
struct fkt_notes {
    uint32_t *times; /* (sites + 1, FKT_REFUSALS); row 0: nobody on the roster */
    uint32_t *dirty; /* where times is not 0 */
    uint32_t n;
};
struct fkt_inbox {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int closed; /* 1: closed to new jobs */
    int rung;   /* 1: the mailbox thread is to wake up */
    struct fkt_job *head, **tail;
    struct fkt_notes notes, taken; /* taken: belongs to the mailbox thread */
    uint32_t sites;
};
FKT_MUST_USE fkt_status fkt_inbox_init(struct fkt_inbox *b, uint32_t sites);
void fkt_inbox_clear(struct fkt_inbox *b);
/* 0: closed. `before` (suspending a connection) runs under the lock, so that nothing is taken out before it is done. */
int fkt_inbox_put(struct fkt_inbox *b, struct fkt_job *j, void (*before)(struct fkt_job *j));
void fkt_inbox_note(struct fkt_inbox *b, uint32_t site, enum fkt_refusal why);
void fkt_inbox_ring(struct fkt_inbox *b);
void fkt_inbox_close(struct fkt_inbox *b);
/* Waits until there is something or until_ms (monotonic) is past, and takes all of it. 0: closed. */
int fkt_inbox_take(struct fkt_inbox *b, uint64_t until_ms, struct fkt_job **jobs);
void fkt_inbox_tell(struct fkt_inbox *b, struct fkt_queue *queue); /* the refusals that were taken */

/* ---- requests ---- */

enum fkt_ask_state { FKT_ASK_NEW = 0, FKT_ASK_READING, FKT_ASK_WAITING, FKT_ASK_ANSWERED };
struct fkt_ask {
    struct fkt_job job; /* first: the mailbox thread refers to it by this */
    struct fkt_httpd *h;
    struct MHD_Connection *c;
    struct fkt_connection *line;
    enum fkt_ask_state state;
    struct fkt_request request;
    struct fkt_request_verdict verdict;
    char *target;
    char method[8];
    uint64_t length; /* of the body, as announced */
    uint8_t *body;
    size_t len, cap;      /* received, and allocated */
    int closes;           /* 1: the connection ends with this answer */
    int no_room;          /* 1: the body was dropped: the memory for bodies is used up */
    uint64_t deadline_ms; /* of a request without a body */
    uint64_t heard_us;    /* when it was complete */
};
void *fkt_ask_begin(void *httpd, const char *target, struct MHD_Connection *c);
enum MHD_Result fkt_ask_handle(void *httpd, struct MHD_Connection *c, const char *url, const char *method,
                               const char *version, const char *data, size_t *len, void **ask);
void fkt_ask_end(void *httpd, struct MHD_Connection *c, void **ask, enum MHD_RequestTerminationCode toe);
void fkt_ask_resume(struct fkt_job *j); /* it has its answer */

/* ---- their bodies ---- */

struct fkt_bodies {
    pthread_mutex_t lock;
    size_t step, per_site, per_address; /* bytes */
    size_t all, *site;                  /* (sites, FKT_PEER_STANDINGS) bytes received */
};
FKT_MUST_USE fkt_status fkt_bodies_init(struct fkt_bodies *b, const struct fkt_mailbox *box);
void fkt_bodies_clear(struct fkt_bodies *b);
int fkt_bodies_room(struct fkt_bodies *b, struct fkt_ask *a, size_t n); /* 0: none for n bytes more */
int fkt_bodies_take(struct fkt_bodies *b, struct fkt_ask *a, size_t n); /* the same, and takes it */
void fkt_bodies_give(struct fkt_bodies *b, struct fkt_ask *a, size_t n);

/* Sends the answer of its job. */
enum MHD_Result fkt_reply(struct fkt_ask *a);
void fkt_reply_headers(struct MHD_Response *r, const char *type, const char *policy);

/* ---- events ---- */

#define FKT_STREAMS 32
struct fkt_stream;
struct fkt_streams {
    pthread_mutex_t lock;
    struct fkt_stream *first;
    uint32_t count;
    int closed, wanted; /* wanted: a new subscriber needs the current state */
    char *latest;       /* the newest event as bytes on the wire; owned; NULL: none yet */
    size_t len;
    uint64_t sent_ms; /* of the mailbox thread: when the last one was sent */
};
void fkt_streams_init(struct fkt_streams *s);
void fkt_streams_clear(struct fkt_streams *s);
enum MHD_Result fkt_streams_open(struct fkt_ask *a);
void fkt_streams_turn(struct fkt_httpd *h, struct fkt_queue *d, uint64_t now_ms); /* mailbox thread */
void fkt_streams_close(struct fkt_streams *s);

/* ---- the server ---- */

struct fkt_httpd {
    struct fkt_httpd_spec spec; /* borrowed pointers as in httpd.h */
    struct fkt_httpd_limits limits;
    struct fkt_listen listen;
    struct MHD_Daemon *daemon;
    struct fkt_request_check *check;
    struct fkt_queue *queue; /* of the mailbox thread */
    struct fkt_counters counters;
    struct fkt_connections lines;
    struct fkt_inbox inbox;
    struct fkt_streams streams;
    struct fkt_bodies bodies;
    atomic_uint_fast64_t heartbeat; /* monotonic ms of the mailbox thread's last turn */
    atomic_uint asks;               /* requests under way */
    atomic_uchar *fetched;          /* (sites) has had transparency.jsonl */
    /* (sites) the connection on which its last message leaves; NULL: none. Under the lock of the connections */
    struct fkt_connection **reading;
    pthread_t mailbox_thread, worker;
    int has_mailbox_thread, working; /* working: of the mailbox thread */
    pthread_mutex_t lock;            /* of what follows */
    pthread_cond_t over;             /* the mailbox thread has ended */
    int work_done, mailbox_thread_ended;
    struct fkt_failure work_failure, failure;
};
void *fkt_mailbox_thread_main(void *httpd);

#endif
