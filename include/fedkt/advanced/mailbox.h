/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox.h - the joint between what carries messages and what they mean.
 *
 * A carrier (the HTTPS server and client of the program, or a transport of your own) moves opaque bytes and knows who
 * sent them; the two sides of a task (server.h, client.h) know what to do with them. Neither knows the other.
 *
 *   carrier at the server   tick; deliver what came, collect what is to go out, settle, and only then let answers
 *                           leave, each with the `head` after the settle; run `work` when there is some, in
 *                           a thread of its own if others must not wait for it
 *   carrier at a site       while it does not say ENDED: send what `send` gives, bring what `recv` is waiting for, and
 *                           tell heard_head the head that came with each answer
 *
 * examples/federation.c is a whole one, in memory. Neither side has a clock: the server's carrier brings the time with
 * `tick`, and a site's carrier looks at the task's `expires` itself: past it, with no phase under way and nothing
 * masked (client.h, fkt_client_get_view), there is nothing to wait for.
 */
#ifndef FEDKT_ADVANCED_MAILBOX_H
#define FEDKT_ADVANCED_MAILBOX_H

#include "fedkt/service.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_MAILBOX_ROUND 16 /* bytes of a round's name */
#define FKT_MAILBOX_NOBODY UINT32_MAX
#define FKT_MAILBOX_PRESENT_MS 10000 /* a site that has collected so recently is present; ask more often than that */

/* A message on its way to a site. Its bytes are borrowed until the next deliver, collect, tick or worked; settle leaves
 * them alone. */
struct fkt_message {
    uint8_t round[FKT_MAILBOX_ROUND];
    uint32_t index; /* from 1 in each round */
    const uint8_t *bytes;
    size_t len;           /* 0: nothing for this site now */
    enum fkt_stage stage; /* always set */
    fkt_status lost;      /* not FKT_OK: the site is out of the round that it asked about, and why */
};

/* Why a request was turned away before its message was looked at; for the transparency log. */
enum fkt_refusal {
    FKT_REFUSAL_UNKNOWN_SITE = 0, /* no such index on the roster */
    FKT_REFUSAL_BAD_SIGNATURE,
    FKT_REFUSAL_OTHER_TASK,
    FKT_REFUSAL_REPLAYED,
    FKT_REFUSAL_TOO_LARGE,
    FKT_REFUSAL_TOO_OFTEN,
    FKT_REFUSAL_MALFORMED,
    FKT_REFUSALS
};

/* The state of a site, for display. */
enum fkt_site_status {
    FKT_SITE_AWAY = 0,
    FKT_SITE_READY,
    FKT_SITE_ASKED,
    FKT_SITE_HEARD,
    FKT_SITE_LOST,
    FKT_SITE_COUNTED
};

/* A look at the server's side. Pointers are borrowed until the next call. */
struct fkt_mailbox_view {
    enum fkt_stage stage;
    const char *phase; /* of the round: "advertise" ... "reveal", "unmask"; "" outside one */
    uint32_t round;    /* from 1; 0 before the first */
    uint32_t sites, ready, expected, heard, lost, survivors; /* ready: present now; expected, heard: in this phase */
    uint32_t needed;                                         /* so many must stay */
    const uint8_t *slot;                                     /* (sites) of enum fkt_site_status */
    uint64_t stage_since, phase_since, phase_until;          /* ms since 1970; 0: none */
    uint64_t messages, message_bytes;                        /* accepted, over all rounds */
    uint64_t log_entries;
    const uint64_t *refused; /* (n_refused) requests, by enum fkt_refusal */
    uint32_t n_refused;
    const char *reason;         /* of the last failed round, or of giving up; "" */
    const char *release_sha256; /* "" before RELEASED */
    int overdue;   /* RUNNING: the time of the phase is over, and silent sites are waited for all the same */
    int comparing; /* FINISHING of a task that was over before a restart: its files are compared with the log */
};

/* The server's side. One thread calls all of it, but `work`, which may run in another beside the rest. */
struct fkt_mailbox {
    void *self;
    uint32_t sites;
    size_t in_max; /* a longer message need not be delivered */
    /* FKT_OK: taken. FKT_E_STATE: not wanted (late, twice, of another round), nothing changed. FKT_E_PEER_*: false,
     * and the site is lost for this round. The site's `sent` receives 1 for FKT_OK and 0 for these. Anything else:
     * the server cannot continue; a new process continues from the journal. */
    fkt_status (*deliver)(void *self, uint32_t site, const uint8_t *msg, size_t len);
    /* The newest message for a site that has had `after` of `round` (NULL or zeros: of none). Whoever collects is
     * present for FKT_MAILBOX_PRESENT_MS. */
    fkt_status (*collect)(void *self, uint32_t site, const uint8_t *round, uint32_t after, struct fkt_message *out);
    fkt_status (*refuse)(void *self, uint32_t site /* or FKT_MAILBOX_NOBODY */, enum fkt_refusal why);
    fkt_status (*tick)(void *self, uint64_t now_ms); /* since 1970; at least every second */
    /* All of the above is on disk when this answers FKT_OK; no answer may leave before. A failure is the end. */
    fkt_status (*settle)(void *self);
    /* 1, once for each piece: heavy work waits. It is done by work in any one thread, and its status is given back to
     * worked in the mailbox's. The sentence of a failure (fkt_error_text) belongs to the thread of `work`; worked says
     * it again in its own when the server cannot go on, and makes it the view's `reason` when the round has failed. */
    int (*has_work)(void *self);
    fkt_status (*work)(void *self);
    fkt_status (*worked)(void *self, fkt_status st);
    void (*view)(void *self, struct fkt_mailbox_view *out);
    /* The transparency log's last entry as it is on disk: its number from 1 (0: there is none yet) and its SHA-256 as
     * hex. Taken after settle, it goes out with every answer. */
    void (*head)(void *self, uint64_t *entry, char sha256[65]);
    /* The path of a public file of the finished task by its name ("release.safetensors", "certificate.json",
     * "transparency.jsonl", "grid.png"), borrowed; NULL: no such file, or not yet. From RELEASED on all are there, from
     * GIVEN_UP on transparency.jsonl. NULL in FINISHING: ask again soon. */
    const char *(*file)(void *self, const char *name);
};

/* A site's side. One thread calls it. A failure of send, sent, recv or heard_head is the end for this process: `wants`
 * answers ENDED and every call fails alike. Nothing is lost: close it, and what is opened on the same state file goes
 * on where this one stood, or says at once why it cannot. */
enum { FKT_ENDPOINT_SEND = 1, FKT_ENDPOINT_RECV = 2, FKT_ENDPOINT_ENDED = 4 };
struct fkt_endpoint {
    void *self;
    size_t out_max;                /* bytes that `send` needs at most */
    unsigned (*wants)(void *self); /* exactly one of the above, never 0; ENDED also after a failure */
    /* Which message it has: its round (all zero: none) and index, for collect. */
    void (*has)(void *self, uint8_t round[FKT_MAILBOX_ROUND], uint32_t *after);
    /* The next message; the same one again until `sent`. */
    fkt_status (*send)(void *self, uint8_t *out, size_t cap, size_t *len);
    /* 1: the server has it on disk; 0: it did not want it, or found it invalid (then call recv with `lost`). Not
     * called when nobody knows: the message is sent again. */
    fkt_status (*sent)(void *self, int taken);
    /* A message, or len 0 with the server's status: its stage, and whether this site is lost in its round. */
    fkt_status (*recv)(void *self, const struct fkt_message *message);
    /* The server's transparency log ends so by its own words: kept, to be compared with the log in the end. */
    fkt_status (*heard_head)(void *self, uint64_t entry, const char *sha256);
};

FKT_API const char *fkt_refusal_name(enum fkt_refusal r);

#ifdef __cplusplus
}
#endif
#endif
