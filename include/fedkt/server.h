/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the server's side of one task over all its rounds, as a mailbox (mailbox.h), on a journal that survives.
 *
 *   gather sites -> round -> (too few: another round) -> masks off -> release -> files
 *
 * Everything that is accepted is in the journal (SQLite, synchronous) before `settle` answers; the state is the replay
 * of the journal. The release is written into it once and is the same however often the process dies. No socket and no
 * clock in here: a carrier brings messages and the time, and tells the time (`tick`) before it delivers anything.
 */
#ifndef FEDKT_SERVER_H
#define FEDKT_SERVER_H

#include "fedkt/mailbox.h"
#include "fedkt/round.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_server_spec {
    const struct fkt_task *task;        /* signed, with a service; copied */
    const char *folder;                 /* state: 0700, made when it is not there; one process at a time holds it */
    const char *out;                    /* the public folder, of this state alone; NULL: "public" in `folder` */
    const char *calibration;            /* as for fkt_pipeline_open */
    struct fkt_codec_settings settings; /* where the codec's weights are; borrowed */
    size_t per_class;                   /* synthetic images per class; 0: as at the first opening, and then 100 */
    enum fkt_export_format format;
    unsigned threads;                    /* of the heavy work; 0: all */
    const struct fkt_progress *progress; /* may be NULL */
};

struct fkt_server;
/* Opens codec and calibration (what could fail in the end fails now), takes the state's lock (FKT_E_STATE: somebody has
 * it), makes or replays the journal. FKT_E_MISMATCH: the folder belongs to another task, or was opened first with
 * another per_class or format. FKT_E_EXISTS: the public folder is another's, or holds what this state has not made. */
FKT_API FKT_MUST_USE fkt_status fkt_server_open(struct fkt_server **out, const struct fkt_server_spec *spec);
FKT_API void fkt_server_close(struct fkt_server *h);
FKT_API void fkt_server_mailbox(struct fkt_server *h, struct fkt_mailbox *out); /* borrows h */

/* ---- what anybody can check afterwards ---- */

/* An audit log is lines of JSON; each holds the SHA-256 of the line before it ("prev"; zeros in the first). */
struct fkt_verification {
    uint64_t entries;
    char head[65];
    uint32_t rounds, sites, survivors;
    uint32_t confirmed; /* signatures of sites under the list of survivors that were checked */
    char task_sha256[FKT_SHA256_HEX];
    char release_sha256[FKT_SHA256_HEX]; /* "": the log ends without one, and says so */
    char operator_key[65];               /* whose signature the log's task has, as hex */
    size_t heads, messages;              /* of the receipt: all of them were found */
    int counted;                         /* 1: the vector of the receipt's site is in the release */
    uint32_t receipt_site;               /* whose it is, where one was given */
    char receipt_key[65];                /* its key on the roster, as hex */
    char receipt_name[128];              /* what the task calls that site; "": nothing */
};
/* Re-derives chain, hashes, survivors and certificate from public data: `folder` holds audit.jsonl,
 * release.safetensors and certificate.json. task NULL: the one that the log holds. receipt NULL: none; else what a site
 * kept (client.h): every head that it was told and every message that it sent must be in the log. FKT_E_MISMATCH or
 * FKT_E_FORMAT and a sentence that names the line or file. Hostile input. */
FKT_API FKT_MUST_USE fkt_status fkt_verify_folder(struct fkt_verification *out, const char *folder,
                                                  const struct fkt_task *task, const char *receipt);

#ifdef __cplusplus
}
#endif
#endif
