/* SPDX-License-Identifier: Apache-2.0 */
/* rows_file.h - the internals of struct fkt_rows, for the files that read it. */
#ifndef FKT_PIPELINE_ROWS_FILE_H
#define FKT_PIPELINE_ROWS_FILE_H

#include "pipeline/rows.h"

#include <stdio.h>

enum { FKT_ROWS_CHUNK = FKT_PIPELINE_BATCH }; /* rows that are read, sent or added at a time */

/* In place of a number of rows in a message: there are no more; the same, after a failure. */
#define FKT_ROWS_LAST UINT64_C(0)
#define FKT_ROWS_BROKEN UINT64_MAX

struct fkt_row { /* then the vector */
    uint64_t place;
    uint32_t label, zero;
    struct fkt_digest digest;
};

struct fkt_rows {
    enum fkt_rows_kind kind;
    const struct fkt_pipeline *pipeline;
    size_t *idx; /* (n_idx) the shard: records of the dataset */
    size_t first, n_idx;
    FILE *file;
    size_t row; /* bytes */
    uint64_t rows, taken;
    uint8_t *chunk; /* (FKT_ROWS_CHUNK, row) */
};

/* Without a walk: an empty file, and room for a chunk. */
FKT_MUST_USE fkt_status fkt_rows_new(struct fkt_rows **out, enum fkt_rows_kind kind, const struct fkt_pipeline *w,
                                     const struct fkt_ranks *ranks, const size_t *idx, size_t n);
/* The next rows of the file into r->chunk; *n 0: there are no more, or it failed. */
FKT_MUST_USE fkt_status fkt_rows_read(struct fkt_rows *r, size_t *n);

#endif
