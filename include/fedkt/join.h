/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - one site's part in a federation, from its images to a release that it has checked, over HTTPS, in one call.
 *
 *   task and its signature -> key on the roster -> images -> ledger asked -> moments -> state file
 *   -> conversation with the server until the task is over -> files fetched, verified, put in place; a receipt
 *
 * fkt_join opens a connection: to the server that the signed task names, known by the key that the task pins, and to
 * nothing else. Stopping it at any moment, even by a power cut, loses nothing: the same call continues.
 *
 * What leaves the site: the messages of docs/protocol.md, whose lengths follow from the task alone. Events stay in this
 * process; those that carry a dataset, records or names of files are as PRIVATE as the images.
 */
#ifndef FEDKT_JOIN_H
#define FEDKT_JOIN_H

#include "fedkt/client.h"
#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "fedkt/keys.h"
#include "fedkt/ledger.h"
#include "fedkt/pipeline.h"
#include "fedkt/records.h"
#include "fedkt/status.h"
#include "fedkt/task.h"
#include "fedkt/verify.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fkt_join_event_kind {
    FKT_JOIN_EVENT_SIGNED = 0,  /* the task is signed by `key` (FKT_SA_KEY), the operator's where one was given */
    FKT_JOIN_EVENT_SEEDED = 1,  /* NOT PRIVATE: everything random comes from a seed in the task */
    FKT_JOIN_EVENT_DATASET = 2, /* the images are opened: `dataset` */
    FKT_JOIN_EVENT_CODEC = 3,   /* the codec is opened: `codec` */
    FKT_JOIN_EVENT_ENCODED = 4, /* of the images `made` were encoded now, `found` came from the folder of encodings */
    FKT_JOIN_EVENT_RECORDS = 5, /* the images are read: `records`, and those left out: `skipped` */
    FKT_JOIN_EVENT_OVER_BUDGET = 6, /* the ledger refuses `charge`, which would make it `spent`; the call fails */
    FKT_JOIN_EVENT_VIEW = 7,        /* the stage of the task for this site has changed: `view` */
    FKT_JOIN_EVENT_TROUBLE = 8,     /* the server cannot be reached, `text` says why; it is tried again */
    FKT_JOIN_EVENT_WELL = 9         /* it answers again */
};
/* Everything is borrowed for the call of the hook; what an event does not name is NULL or 0. */
struct fkt_join_event {
    enum fkt_join_event_kind kind;
    const struct fkt_task *task; /* always */
    const uint8_t *key;
    const struct fkt_dataset *dataset;
    const struct fkt_codec *codec;
    uint64_t found, made;
    const struct fkt_records *records;
    const struct fkt_skipped *skipped;
    const struct fkt_ledger_charge *charge;
    const struct fkt_ledger_spent *spent;
    const char *ledger; /* its path */
    const struct fkt_client_view *view;
    const char *text;
};

/* Borrowed for the call. Zeros and NULL are the defaults that the comments give. */
struct fkt_join_spec {
    const char *task;                        /* path of the signed task; needed */
    const char *key;                         /* path of this site's key file (keys.h); needed */
    const uint8_t *operator_key;             /* (FKT_SA_KEY) must have signed the task; NULL: any signer */
    const char *data;                        /* the image set, as for fkt_dataset_open; needed */
    struct fkt_dataset_options data_options; /* split, limit, skip_bad and bits count; the rest is the task's */
    const char *calibration;                 /* NULL: the codec's own */
    const char *guide_calibration;           /* of the task's guide; NULL: its own */
    struct fkt_codec_settings settings;
    const char *encodings;               /* a folder that keeps encoded images (pipeline.h); NULL: none is kept */
    const char *ledger;                  /* NULL: ledger.db under $XDG_DATA_HOME/fedkt or ~/.local/share/fedkt */
    const char *dataset;                 /* the account that pays; NULL: the task's name */
    double budget_epsilon, budget_delta; /* total budget of the account; both 0: as in fkt_ledger_charge */
    const char *state; /* NULL: a file for each task and key under $XDG_STATE_HOME/fedkt or ~/.local/state/fedkt */
    const char *out;   /* folder of the result; NULL: beside the state. One of the same task is replaced */
    int force;         /* 1: `out` may replace another folder of ours */
    int accept_weak;   /* 1: take part though the promise is weak (task.h) */
    int accept_insecure_seed; /* 1: TESTS ONLY, take part though the task has a seed */
    uint32_t
        patience_seconds; /* give up when the server cannot be reached for so long; 0: wait until the task expires */
    unsigned threads;     /* 0: all */

    const struct fkt_progress *progress; /* of reading and encoding; may be NULL */
    const volatile sig_atomic_t *stop;   /* not 0: stop; may be NULL */
    /* Called in the calling thread; a non-zero answer stops. May be NULL. */
    int (*event)(void *self, const struct fkt_join_event *event);
    void *self;
};

/* Zero it before the call. */
struct fkt_join_result {
    struct fkt_task *task;            /* owned; NULL: it could not be read, or its signature is not valid */
    char *out;                        /* owned; where the verified files and receipt.json are; NULL: there are none */
    struct fkt_verification verified; /* release_sha256 "": the server gave the task up; counted: this site is in it */
    enum fkt_stage stage;
    uint32_t site, rounds; /* its index; rounds that it began */
    uint64_t records;      /* PRIVATE */
    uint64_t sent_bytes;
    int over; /* 1: the task is over for this site and its records are in no release: calling again does not help */
};
/* FKT_OK: there is a release, everything about it was verified, and this site's records are in it. FKT_E_TOO_FEW with
 * `over`: the task was given up, or its release does not hold this site's records; the files are in `out` all the same.
 * FKT_E_STOPPED: call it again. FKT_E_MISMATCH and others while verifying: the files are kept beside `out` as evidence,
 * and the sentence says where. FKT_E_BUDGET: the ledger refuses. */
FKT_API FKT_MUST_USE fkt_status fkt_join(const struct fkt_join_spec *spec, struct fkt_join_result *result);
FKT_API void fkt_join_result_clear(struct fkt_join_result *r);

/* ---- what it would send and cost ---- */

#define FKT_JOIN_MESSAGES 6
struct fkt_join_message {
    const char *kind, *holds; /* static: "mask", and what is in it */
    size_t bytes;             /* at most */
};
/* Zero it before the call. PRIVATE: it counts records. */
struct fkt_join_preview {
    struct fkt_task *task; /* owned */
    uint32_t site;
    uint64_t records;
    uint64_t *held; /* (classes of the task) records of each, unreadable ones among them; owned */
    struct fkt_skipped skipped;
    char dataset[FKT_LEDGER_NAME];
    char *ledger;                                        /* its path; owned */
    struct fkt_join_message messages[FKT_JOIN_MESSAGES]; /* of one round */
    size_t n_messages;
    double sigma_count; /* noise that this site adds to a count; then, for each part of the task's layout, to a sum and
                           a second moment; zeros: it adds none */
    struct fkt_part_sigma sigma[FKT_PARTS_MAX];
    double epsilon_before, epsilon_after; /* of the account, at the task's delta */
    char *privacy;                        /* the promise in sentences; owned */
    int over;                             /* also after a failure: as in fkt_join_result */
};
/* Everything up to the first message: reads, asks and computes the same, sends nothing, and writes nothing but
 * encodings. `out` and `state` are not looked at. */
FKT_API FKT_MUST_USE fkt_status fkt_join_preview(const struct fkt_join_spec *spec, struct fkt_join_preview *preview);
FKT_API void fkt_join_preview_clear(struct fkt_join_preview *p);

#ifdef __cplusplus
}
#endif
#endif
