/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - the server of one task over HTTPS, from its first start to the last site that fetches the result, in one
 * call.
 *
 *   task, certificate, token -> server.h on its journal, replayed -> HTTPS -> until the task is over, and then until
 *   every site in the release has fetched the transparency log, or for some time
 *
 * fkt_serve listens on the address that it is given and opens no other connection. Stopping it at any moment loses
 * nothing: the same call continues.
 */
#ifndef FEDKT_SERVE_H
#define FEDKT_SERVE_H

#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "fedkt/service.h"
#include "fedkt/status.h"
#include "fedkt/task.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where it listens. Borrowed for the call of the hook. */
struct fkt_serve_place {
    const char *listen;     /* "127.0.0.1:43121" as bound */
    const char *pin;        /* of its certificate; it is in the task */
    const char *folder;     /* the public one */
    const char *token_file; /* holds the operator's token for the status page */
    int local;              /* 1: open to this machine alone, and the page needs no token there */
    int pinned;             /* 1: the pin was put into the task at this start, which changed its file and its hash */
};
/* A copy of the mailbox's view (advanced/mailbox.h). */
struct fkt_serve_view {
    enum fkt_stage stage;
    char phase[32], reason[512], release_sha256[80];
    uint32_t round, sites, ready, expected, heard, lost, survivors, needed;
    int overdue, comparing;
};
enum fkt_serve_event_kind {
    FKT_SERVE_EVENT_LISTENING = 0, /* `place`; a task that was pinned is on disk now */
    FKT_SERVE_EVENT_VIEW = 1,      /* `view`, a few times a second, changed or not */
    FKT_SERVE_EVENT_OVER = 2,      /* the task is over: `place` and `view`; files are served for some time yet */
    FKT_SERVE_EVENT_SUM = 3 /* of fkt_serve_cohorts: the releases were added up; `place` has the folder, `view` the
                                      hash, sites and survivors */
};
struct fkt_serve_event {
    enum fkt_serve_event_kind kind;
    const struct fkt_task *task; /* always */
    const struct fkt_serve_place *place;
    const struct fkt_serve_view *view;
};

/* Borrowed for the call. */
struct fkt_serve_spec {
    const char *task;   /* path of the signed task; needed. Without a pin it gets one, and is signed again with `key` */
    const char *state;  /* folder of folder for journal, certificate and token; made 0700; needed */
    const char *listen; /* "0.0.0.0:8443", "[::]:8443", port 0: any free one; needed */
    const char *key;    /* path of the operator's key file (keys.h); NULL: the task has its pin */
    const char *certificate, *private_key; /* PEM, both or neither; NULL: the state's own, made at the first start */
    const char *out;                       /* the public folder; NULL: "public" in the state */
    const char *calibration;               /* NULL: the codec's own */
    const char *guide_calibration;         /* of the task's guide; NULL: its own */
    struct fkt_codec_settings settings;
    size_t per_class; /* synthetic images per class; 0: as at the first start, and then 100 */
    enum fkt_export_format format;
    unsigned threads;        /* of the heavy work; 0: all */
    int accept_weak;         /* 1: serve a task whose promise is weak */
    int stay;                /* 1: keep serving files after the task is over, until it is stopped */
    uint32_t linger_seconds; /* without `stay`: longest wait for sites to fetch the log at the end; 0: 300 */

    const struct fkt_progress *progress; /* of the heavy work; may be NULL */
    const volatile sig_atomic_t *stop;   /* not 0: stop; may be NULL */
    /* Called in the calling thread; a non-zero answer stops. May be NULL. */
    int (*event)(void *self, const struct fkt_serve_event *event);
    void *self;
};
/* FKT_OK: the task was released, and was served as asked. FKT_E_TOO_FEW: it was given up, *last says why.
 * FKT_E_STOPPED: stopped before it was over; call it again. Anything else: it cannot go on. *last (may be NULL) is how
 * it stood in the end. */
FKT_API FKT_MUST_USE fkt_status fkt_serve(const struct fkt_serve_spec *spec, struct fkt_serve_view *last);
/* The servers of all cohorts of a task (docs/scale.md), one thread for each, and the sum of their releases once all are
 * over. spec->task is the folder with the cohorts' tasks, cohort-0000.json and so on; cohort i listens on the port of
 * spec->listen plus i (0: any free one), has its state in state/cohort-0000 and its public folder in out/cohorts/0000.
 * The sum is in `out`, and images are made of it. Events come from one cohort at a time, whose task they name; progress
 * is of the sum. A cohort that is given up is not in the sum; one whose task has expired before its first round is
 * given up, unless all have: then nothing is served, as by fkt_serve. FKT_E_TOO_FEW: all were given up. */
FKT_API FKT_MUST_USE fkt_status fkt_serve_cohorts(const struct fkt_serve_spec *spec, struct fkt_serve_view *last);

#ifdef __cplusplus
}
#endif
#endif
