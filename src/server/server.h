/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the state of the server's side of a task, for this module alone.
 *
 *   server.c      open, close, replay of the journal, the functions of the mailbox
 *   folders.c     the folders, and the settings of the first start
 *   round.c       one round: its events, what is recorded of them, its messages
 *   rounds.c      the sequence of rounds: starts, failures, giving up
 *   deadlines.c   what happens when time passes: gathering, deadlines, expiry, deleting events
 *   view.c        what a site is given, and what people see
 *   refusals.c    refused requests, in few log lines
 *   finish.c      the two pieces of heavy work, and the end of the log */
#ifndef FKT_SERVER_SERVER_H
#define FKT_SERVER_SERVER_H

#include "fedkt/advanced/secagg.h"
#include "fedkt/server.h"

#include "server/transparency_log.h"
#include "pipeline/publish.h"
#include "server/journal.h"

#include "base/status.h"

struct fkt_server_set_status { /* a site, in the current or last round */
    uint8_t *mail;             /* its newest message; NULL: none */
    size_t mail_len;
    uint32_t index;    /* of it, from 1 */
    fkt_status status; /* not FKT_OK: lost, and the reason */
    uint8_t heard;     /* in this phase */
    uint8_t counted;   /* its vector is in the sum */
    uint8_t revealed;  /* in this round */
    uint8_t spent;     /* it revealed in a round that failed: it will answer no further one */
    uint64_t seen;     /* ms of h->elapsed, plus 1, when it last asked; 0: not since the last round ended */
};

struct fkt_server_past {
    uint8_t name[FKT_SA_ROUND];
    fkt_status ended; /* FKT_OK: not failed */
};

struct fkt_refusals {
    uint32_t *times;             /* (sites + 1, reasons) of this minute, not logged yet; the last row: no site */
    uint8_t *said;               /* the same: has a line in this minute */
    uint64_t rest[FKT_REFUSALS]; /* of this hour, beyond its quota of lines */
    uint64_t minute, hour;       /* when they began */
    uint32_t lines[2];           /* in this hour: lines for unauthenticated requests, and for authenticated ones */
};

struct fkt_server_wait { /* for sites to gather, or in a phase; deadlines.c */
    uint32_t page;       /* which phase of the round, from 1; 0: for sites to gather after it */
    uint64_t before;     /* ms of it in earlier processes, roughly */
    uint64_t saved;      /* ms of it that are in the journal */
};

enum fkt_server_job { FKT_JOB_NONE = 0, FKT_JOB_RELEASE, FKT_JOB_FILES };
enum {
    FKT_SERVER_RELEASE = 0,
    FKT_SERVER_CERTIFICATE,
    FKT_SERVER_LOG,
    FKT_SERVER_GRID,
    FKT_SERVER_DATASET,
    FKT_SERVER_PATHS
};

struct fkt_server {
    const struct fkt_task *task; /* the pipeline's copy */
    struct fkt_pipeline *pipeline;
    struct fkt_sa_params params;
    char *out, *path[FKT_SERVER_PATHS];
    struct fkt_journal *journal;
    struct fkt_log_writer log;
    struct fkt_failure broken; /* not FKT_OK: every call returns it from now on */
    int live;                  /* 0: the journal is being replayed, and nothing is written */

    uint64_t now_ms, elapsed; /* the caller's clock; and how far it moved forward since the first tick, without jumps */
    int ticked;

    enum fkt_stage stage;
    uint64_t stage_since, phase_since;  /* now_ms; 0: not since the process began */
    int overdue;                        /* the phase is past its deadline, and the server keeps waiting */
    uint64_t phase_began, enough_since; /* elapsed; enough_since plus 1, 0: there are not enough sites */
    struct fkt_server_wait wait;
    uint64_t expired_since;               /* elapsed plus 1; 0: not by the last reading */
    uint32_t round;                       /* the last one; 0: none yet */
    struct fkt_server_past *past;         /* (service.rounds) */
    struct fkt_sa_server *server;         /* NULL: no round is under way */
    struct fkt_sa_census census;          /* of it; the machine itself belongs to the worker while it unmasks */
    enum fkt_sa_state phase;              /* of it */
    struct fkt_server_set_status *slot;   /* (sites) */
    uint32_t lost, survivors;             /* in this round */
    uint64_t messages, bytes;             /* accepted in all rounds before this one */
    uint64_t round_messages, round_bytes; /* accepted in this one */
    uint8_t *scratch;                     /* room for the longest message to a site */
    size_t scratch_len;
    int sweep; /* events of finished rounds may still be in the journal */
    int scrub; /* and after the next settle the file is to be cleaned */
    char reason[768];

    struct fkt_refusals refusals;
    uint64_t refused[FKT_REFUSALS];

    enum fkt_server_job job;
    int job_waits; /* it was not handed out yet */
    struct fkt_failure worked;
    struct fkt_publication finish;
    int released;  /* the release is in the journal */
    int gave_up;   /* that there will be none is in the journal; announced once transparency.jsonl is written */
    int comparing; /* one of the two was so, and the log had ended, before this process started */
    int log_due;   /* transparency.jsonl is to be written */
    uint8_t *slots_shown;
};

/* server.c */
FKT_MUST_USE fkt_status fkt_server_break(struct fkt_server *h,
                                         fkt_status st); /* sticky; returns what every call returns from now on */
int fkt_server_own_failure(
    fkt_status st); /* 1: a failure of this machine, to be tried again after a restart; 0: caused by input */
/* The log, unless it is a replay. Takes `fields`. */
FKT_MUST_USE fkt_status fkt_server_note(struct fkt_server *h, const char *event, json_t *fields);
void fkt_server_enter(struct fkt_server *h, enum fkt_stage stage);

/* folders.c */
/* The public folder, which is ours from now on (FKT_E_EXISTS: it is not), and h->finish. */
FKT_MUST_USE fkt_status fkt_server_open_out(struct fkt_server *h, const struct fkt_server_spec *spec);
FKT_MUST_USE fkt_status fkt_server_try_out(const struct fkt_server *h); /* can the files be made there? */

/* round.c */
FKT_MUST_USE fkt_status fkt_server_resume(struct fkt_server *h); /* the current round, from the journal */
FKT_MUST_USE fkt_status fkt_server_deliver(void *self, uint32_t site, const uint8_t *msg, size_t len);
FKT_MUST_USE fkt_status fkt_server_deadline(struct fkt_server *h); /* the phase is past its deadline */
FKT_MUST_USE fkt_status fkt_server_drain(struct fkt_server *h);    /* collects the machine's messages */

/* rounds.c */
FKT_MUST_USE fkt_status fkt_server_begin(struct fkt_server *h);
FKT_MUST_USE fkt_status
fkt_server_set_status_all(struct fkt_server *h); /* the state machine of round h->round, and its slots */
void fkt_server_drop_messages(struct fkt_server_set_status *slot);
void fkt_server_close_round(struct fkt_server *h); /* frees the machine; what is known of the sites stays */
/* The round has failed; `why` is the reason. */
FKT_MUST_USE fkt_status fkt_server_fail_round(struct fkt_server *h, const struct fkt_failure *why);
FKT_MUST_USE fkt_status fkt_server_give_up(struct fkt_server *h, const char *reason);

/* deadlines.c */
FKT_MUST_USE fkt_status fkt_server_tick(void *self, uint64_t now_ms);
void fkt_server_wait_anew(struct fkt_server *h, uint32_t page);
FKT_MUST_USE fkt_status fkt_server_resume_wait(struct fkt_server *h);
int fkt_server_present(const struct fkt_server *h, uint32_t site);
uint64_t fkt_server_phase_left(const struct fkt_server *h); /* ms until the deadline of the phase */

/* view.c */
FKT_MUST_USE fkt_status fkt_server_collect(void *self, uint32_t site, const uint8_t *round, uint32_t after,
                                           struct fkt_message *out);
void fkt_server_view(void *self, struct fkt_mailbox_view *out);
void fkt_server_head(void *self, uint64_t *entry, char sha256[65]);
const char *fkt_server_file(void *self, const char *name);

/* refusals.c */
FKT_MUST_USE fkt_status fkt_server_refuse(void *self, uint32_t site, enum fkt_refusal why);
FKT_MUST_USE fkt_status fkt_refusals_tick(struct fkt_server *h);
FKT_MUST_USE fkt_status fkt_refusals_flush(struct fkt_server *h); /* all that is not logged yet */

/* finish.c */
int fkt_server_has_work(void *self);
FKT_MUST_USE fkt_status fkt_server_work(void *self);
FKT_MUST_USE fkt_status fkt_server_worked(void *self, fkt_status st);
FKT_MUST_USE fkt_status fkt_server_settle(void *self);
FKT_MUST_USE fkt_status fkt_server_resume_end(struct fkt_server *h); /* if the journal says that the end was begun */

#endif
