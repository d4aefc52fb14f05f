/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - between requests that were let in and the mailbox: a batch at a time, answered when it is on disk. No
 * socket, no clock, no thread: whoever owns the desk brings jobs and the time, and carries the answers away.
 *
 *   jobs --> deliver each, park each poll --> collect for those parked --> settle once --> answers
 */
#ifndef FKT_NET_QUEUE_H
#define FKT_NET_QUEUE_H

#include "net/answer.h"
#include "net/page.h"

/* A request that was let in. The desk holds it until it is done. */
struct fkt_job {
    struct fkt_job *next;
    struct fkt_target target;
    uint32_t site; /* proven; FKT_MAILBOX_NOBODY: a person */
    const uint8_t *body;
    size_t len;
    struct fkt_answer answer; /* to be released by whoever made the job */
    int waited;               /* 1: a poll that was parked for more than one turn */
    /* the desk's own: */
    uint64_t until_ms;
    fkt_status verdict;
    struct fkt_message message; /* bytes not used */
};
struct fkt_queue_spec {
    const struct fkt_mailbox *box;      /* borrowed; called from here alone */
    const char *task_text;              /* borrowed */
    const struct fkt_page_facts *facts; /* borrowed */
};
struct fkt_queue;
FKT_MUST_USE fkt_status fkt_queue_new(struct fkt_queue **out, const struct fkt_queue_spec *spec);
void fkt_queue_free(struct fkt_queue *d); /* nothing may be parked */

/* The mailbox hears of a refusal; on disk with the next turn, which also tells of a failure here. */
void fkt_queue_note(struct fkt_queue *d, uint32_t site, enum fkt_refusal why);
/* Takes `jobs` (a list, first come first), gives *done: those that have their answers now, of these and of the parked.
 * now_ms never goes back; wall_ms is since 1970. A failure is the end: everything was answered with 503, and so will be
 * all that comes. */
FKT_MUST_USE fkt_status fkt_queue_turn(struct fkt_queue *d, uint64_t now_ms, uint64_t wall_ms, struct fkt_job *jobs,
                                       const struct fkt_page_counts *counts, struct fkt_job **done);
/* Heavy work: 1 from when some waits until it was done; whoever did it says how it went before the next turn. */
int fkt_queue_has_work(struct fkt_queue *d);
void fkt_queue_worked(struct fkt_queue *d, fkt_status st);
/* When the next turn should be at the latest. */
uint64_t fkt_queue_due(const struct fkt_queue *d);
/* Everybody who is parked is sent away: come again later. */
struct fkt_job *fkt_queue_close(struct fkt_queue *d);
uint32_t fkt_queue_parked(const struct fkt_queue *d);
/* 1 and *out (JSON of docs/schema/status.json, appended) when what people see has changed since it was last asked,
 * or when it is wanted anyhow. */
int fkt_queue_news(struct fkt_queue *d, uint64_t wall_ms, const struct fkt_page_counts *counts, int wanted,
                   struct fkt_text *out);

#endif
