/* SPDX-License-Identifier: Apache-2.0 */
/* transparency_log.h - the server's public log (docs/http.md 5.1): lines of JSON, each with the hash of the line
 * before. */
#ifndef FKT_SERVER_TRANSPARENCY_LOG_H
#define FKT_SERVER_TRANSPARENCY_LOG_H

#include "server/journal.h"

#include "base/status.h"
#include "crypto/hash.h"

#include <jansson.h>

struct fkt_log_writer_head {
    uint64_t entry; /* 0: the log is empty */
    char sha256[FKT_HASH_HEX];
};
struct fkt_log_writer_file { /* the content of a line `file` */
    char name[32], sha256[FKT_HASH_HEX];
    uint64_t bytes;
};
enum { FKT_LOG_WRITER_FILES = 2 };
struct fkt_log_writer {
    struct fkt_journal *journal; /* borrowed */
    struct fkt_log_writer_head last, settled;
    struct fkt_log_writer_file file[FKT_LOG_WRITER_FILES]; /* (files) as they were read back */
    size_t files;
    int ended; /* the last line is `end`: nothing may follow */
};
/* Reads the log back and checks its chain. FKT_E_FORMAT: it is broken. */
FKT_MUST_USE fkt_status fkt_log_writer_open(struct fkt_log_writer *log, struct fkt_journal *journal);
/* Takes `fields`, an object with the event's own keys (NULL: out of memory). */
FKT_MUST_USE fkt_status fkt_log_writer_add(struct fkt_log_writer *log, uint64_t at, const char *event, json_t *fields);
void fkt_log_writer_settled(struct fkt_log_writer *log); /* what was added so far is on disk */
/* All lines as a file, which replaces an existing one atomically. */
FKT_MUST_USE fkt_status fkt_log_writer_write(struct fkt_log_writer *log, const char *path);

#endif
