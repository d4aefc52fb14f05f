/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - from accepted requests to the mailbox: one batch at a time, answered when it is on disk. No socket, no
 * clock, no thread: the caller brings jobs and the time, and sends the answers.
 *
 *   jobs --> deliver each, park each poll --> collect for those parked --> settle once --> answers
 */
#ifndef FKT_NET_QUEUE_H
#define FKT_NET_QUEUE_H

#include "net/answer.h"
#include "net/page.h"

/* An accepted request. The queue holds it until it is done. */
struct fkt_job {
    struct fkt_job *next;
    struct fkt_target target;
    uint32_t site; /* authenticated; FKT_MAILBOX_NOBODY: a person */
    const uint8_t *body;
    size_t len;
    struct fkt_answer answer; /* cleared by the creator of the job */
    int waited;               /* 1: a poll that was parked for more than one turn */
    /* internal to the queue: */
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

/* Reports a refusal to the mailbox; on disk with the next turn, which also returns a failure of this call. */
void fkt_queue_note(struct fkt_queue *d, uint32_t site, enum fkt_refusal why);
/* Takes `jobs` (a list, first come first), gives *done: those that have their answers now, of these and of the parked.
 * now_ms never goes back; wall_ms is since 1970. A failure is final: everything was answered with 503, and so will be
 * all later requests. */
FKT_MUST_USE fkt_status fkt_queue_turn(struct fkt_queue *d, uint64_t now_ms, uint64_t wall_ms, struct fkt_job *jobs,
                                       const struct fkt_page_counts *counts, struct fkt_job **done);
/* Heavy work: 1 from when it is pending until it was done; its status is reported before the next turn. */
int fkt_queue_has_work(struct fkt_queue *d);
void fkt_queue_worked(struct fkt_queue *d, fkt_status st);
/* When the next turn should be at the latest. */
uint64_t fkt_queue_due(const struct fkt_queue *d);
/* Answers all parked requests with 503. */
struct fkt_job *fkt_queue_close(struct fkt_queue *d);
uint32_t fkt_queue_parked(const struct fkt_queue *d);
/* 1 and *out (JSON of docs/schema/status.json, appended) when the view has changed since the last call, or when it is
 * wanted in any case. */
int fkt_queue_news(struct fkt_queue *d, uint64_t wall_ms, const struct fkt_page_counts *counts, int wanted,
                   struct fkt_text *out);

#endif
