/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - the inside of fkt_verify_folder, for this module and the fuzzer.
 *
 *   line.c     one line: its bytes, its place in the chain, its keys
 *   receipt.c  what a site kept, compared with each line
 *   round.c    the released round: whose vectors are in it, and which sites signed that
 *   verify.c   the order of lines, then the files beside the log
 *   sum.c      a task in cohorts: all of that for each, and their sum */
#ifndef FKT_VERIFY_VERIFY_H
#define FKT_VERIFY_VERIFY_H

#include "fedkt/advanced/mailbox.h"
#include "fedkt/advanced/secagg.h"
#include "fedkt/server.h"

#include "base/status.h"
#include "task/task.h"

#include <jansson.h>

#define FKT_LOG_LINE_MAX ((size_t)32 << 10) /* the longest line but the first: a bitmap of 65,536 sites is 16 KB */
#define FKT_LOG_OPEN_MAX ((size_t)17 << 20) /* the first: a task of at most 16 MB */
#define FKT_LOG_RECEIPT_MAX ((size_t)64 << 20)

enum fkt_log_event {
    FKT_LOG_OPEN = 0,
    FKT_LOG_START,
    FKT_LOG_REFUSED,
    FKT_LOG_BEGIN,
    FKT_LOG_MESSAGE,
    FKT_LOG_PHASE,
    FKT_LOG_LOST,
    FKT_LOG_SURVIVORS,
    FKT_LOG_CONFIRMED,
    FKT_LOG_FAILED,
    FKT_LOG_GIVEN_UP,
    FKT_LOG_RELEASE,
    FKT_LOG_FILE,
    FKT_LOG_NO_DATASET,
    FKT_LOG_END,
    FKT_LOG_EVENTS
};

/* ---- one line ---- */

struct fkt_log_line {
    enum fkt_log_event event;
    json_t *root; /* owned; every key of the event is present and of its type */
    char sha256[FKT_SHA256_HEX];
};
/* `bytes` without the newline. `entry` is its number, `prev` what it must name. FKT_E_FORMAT, FKT_E_MISMATCH. */
FKT_MUST_USE fkt_status fkt_log_line_read(struct fkt_log_line *out, const char *bytes, size_t len, uint64_t entry,
                                          const char *prev);
void fkt_log_line_clear(struct fkt_log_line *l);
uint64_t fkt_log_number(const struct fkt_log_line *l, const char *key);
const char *fkt_log_text(const struct fkt_log_line *l, const char *key);
const char *fkt_log_event_name(enum fkt_log_event e);
/* 64 (2 * bytes) lower-case hexadecimal digits and nothing else. */
int fkt_log_is_hex(const char *s, size_t bytes);

/* ---- a receipt ---- */

struct fkt_log_receipt {
    char task_sha256[FKT_SHA256_HEX];
    uint32_t site;
    struct fkt_log_told {
        uint64_t entry;
        char sha256[FKT_SHA256_HEX];
    } * head; /* (heads) ascending */
    size_t heads, met;
    struct fkt_log_sent {
        char round[2 * FKT_MAILBOX_ROUND + 1], sha256[FKT_SHA256_HEX];
        uint64_t bytes;
        char kind[12];
        int taken, found;
    } * sent; /* (messages) */
    size_t messages;
};
FKT_MUST_USE fkt_status fkt_log_receipt_parse(struct fkt_log_receipt *out, const char *json, size_t len);
FKT_MUST_USE fkt_status fkt_log_receipt_load(struct fkt_log_receipt *out, const char *path);
void fkt_log_receipt_clear(struct fkt_log_receipt *r);
/* Each line of the log in order; `round` is the name of the running round as hex, "" outside one. */
FKT_MUST_USE fkt_status fkt_log_receipt_line(struct fkt_log_receipt *r, const struct fkt_log_line *l, uint64_t entry,
                                             const char *round);
/* After the last line: were all of them found? */
FKT_MUST_USE fkt_status fkt_log_receipt_end(const struct fkt_log_receipt *r, uint64_t entries);

/* ---- one round ---- */

struct fkt_log_round {
    uint8_t name[FKT_MAILBOX_ROUND];
    uint8_t *masked, *survivors, *confirmed; /* bitmaps over the roster */
    uint8_t *lost, *parted;                  /* parted: it left, or sent something that was refused */
    uint8_t *signature;                      /* (sites, 64) */
    uint8_t seed[32];
    uint32_t count; /* survivors; 0: no list yet */
};
FKT_MUST_USE fkt_status fkt_log_round_new(struct fkt_log_round *r, const struct fkt_sa_params *p);
void fkt_log_round_clear(struct fkt_log_round *r);
void fkt_log_round_begin(struct fkt_log_round *r, const struct fkt_sa_params *p);
/* Lines of kind message, lost, survivors and confirmed; others mean nothing here. */
FKT_MUST_USE fkt_status fkt_log_round_line(struct fkt_log_round *r, const struct fkt_sa_params *p,
                                           const struct fkt_log_line *l);
/* Before the release: are the survivors those whose vectors were accepted, and did enough of them sign? */
FKT_MUST_USE fkt_status fkt_log_round_check(const struct fkt_log_round *r, const struct fkt_sa_params *p,
                                            uint32_t *signatures);

/* ---- the log ---- */

struct fkt_log_reading {
    const struct fkt_task *want;     /* NULL: the log's own */
    struct fkt_log_receipt *receipt; /* NULL: none */
    struct fkt_task task;
    struct fkt_sa_params params; /* roster borrowed from task */
    struct fkt_log_round round;
    uint8_t (*names)[FKT_MAILBOX_ROUND]; /* (service.rounds) of all rounds so far */
    uint64_t entries;
    char head[FKT_SHA256_HEX];
    uint32_t rounds, signatures;
    int in_round, released, given_up, bare, ended; /* bare: a release, and no images of it */
    char release_sha256[FKT_SHA256_HEX], certificate_sha256[FKT_SHA256_HEX];
    struct fkt_log_file {
        char name[64], sha256[FKT_SHA256_HEX];
        uint64_t bytes;
    } file[8];
    size_t files;
};
void fkt_log_reading_init(struct fkt_log_reading *log, const struct fkt_task *want, struct fkt_log_receipt *receipt);
FKT_MUST_USE fkt_status fkt_log_reading_line(struct fkt_log_reading *log, const char *bytes, size_t len);
FKT_MUST_USE fkt_status fkt_log_reading_end(const struct fkt_log_reading *log);
void fkt_log_reading_clear(struct fkt_log_reading *log);
/* Is certificate.json the one that the release carries, and does it have this hash (NULL: any)? */
FKT_MUST_USE fkt_status fkt_log_certificate(const char *release, const char *certificate, const char *sha256);
/* fkt_verify_folder, and a copy of the log's task (NULL: none), which the caller clears. */
struct fkt_verification;
FKT_MUST_USE fkt_status fkt_verify_folder_task(struct fkt_verification *out, const char *folder,
                                               const struct fkt_task *task, const char *receipt,
                                               struct fkt_task *found);

#endif
