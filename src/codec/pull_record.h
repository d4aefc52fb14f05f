/* SPDX-License-Identifier: Apache-2.0 */
/* pull_record.h - fedkt-weights.json: where files of a folder came from and what they were (docs/schema/weights.json).
 * */
#ifndef FKT_CODEC_PULL_RECORD_H
#define FKT_CODEC_PULL_RECORD_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_RECORD_NAME "fedkt-weights.json"

enum { FKT_RECORD_FILES = 8 };

struct fkt_weights_record {
    char codec[65], hub[513], repo[257], revision[257];
    char commit[65]; /* "": the hub did not say */
    size_t files;
    struct fkt_recorded_file {
        char name[129];
        uint64_t size;
        char sha256[65];
        char checked[16]; /* "manifest", "hub" or "first-seen": what the hash was compared with when it was fetched */
    } file[FKT_RECORD_FILES];
};

FKT_MUST_USE fkt_status fkt_weights_record_save(const struct fkt_weights_record *r, const char *folder);
/* Hostile input. FKT_E_IO when there is none, FKT_E_FORMAT when it is damaged. */
FKT_MUST_USE fkt_status fkt_weights_record_load(struct fkt_weights_record *out, const char *folder);
int fkt_weights_record_there(const char *folder); /* 1: a record lies in the folder */

#endif
