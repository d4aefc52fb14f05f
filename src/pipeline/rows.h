/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - records that several ranks have walked: a rank's rows wait in a temporary file until all ranks are done. */
#ifndef FKT_PIPELINE_ROWS_H
#define FKT_PIPELINE_ROWS_H

#include "pipeline/pipeline.h"
#include "ranks/ranks.h"

struct fkt_rows;
enum fkt_rows_kind { FKT_ROWS_Q, FKT_ROWS_W, FKT_ROWS_Z }; /* what a row has beside place, label and digest */

/* Walks this rank's shard of idx[0..n-1] (idx NULL: all records) into rows, in order. It ends early when another rank
 * has failed; the caller agrees on the status. */
FKT_MUST_USE fkt_status fkt_rows_walk(struct fkt_rows **out, enum fkt_rows_kind kind, const struct fkt_pipeline *w,
                                      const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                      const struct fkt_pipeline_options *options, const char *what);
void fkt_rows_free(struct fkt_rows *r);

/* Some rows of kind FKT_ROWS_Q, in order; borrowed for the call. */
struct fkt_rows_part {
    size_t n;
    const uint64_t *place; /* (n) in idx, ascending */
    const uint32_t *label; /* (n) */
    const int32_t *q;      /* (n, m) */
};
/* Calls add() with this rank's rows of kind FKT_ROWS_Q that count: with `records` exact copies count once, whichever
 * ranks have them, and rank 0's `records` gets the images of all ranks. Rank 0 decides, rank by rank, so the record
 * that counts is the first in the order of idx. Every rank calls it; it agrees on the status. */
FKT_MUST_USE fkt_status fkt_rows_counted(struct fkt_rows *r, struct fkt_ranks *ranks, struct fkt_records *records,
                                         fkt_status (*add)(void *ctx, const struct fkt_rows_part *p), void *ctx);

/* fkt_pipeline_visit over all ranks: rank 0's visitor sees the records of every rank, its own first, then those of rank
 * 1 ..., so with in_order set in the order of idx. kind FKT_ROWS_W: batches from other ranks have w and no z or q;
 * FKT_ROWS_Z: z alone. Without several ranks it is fkt_pipeline_visit. `what` names the work to the progress hook,
 * which counts the records of its own rank. It agrees on the status. */
FKT_MUST_USE fkt_status fkt_rows_visit(enum fkt_rows_kind kind, const struct fkt_pipeline *w,
                                       const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                       const struct fkt_visitor *v, const struct fkt_pipeline_options *options,
                                       const char *what);

/* Adds the moments of all ranks up in rank 0's m, each addition checked as those of a site's file are: no entry can
 * leave the range that fkt_moments_new ensures. Those of the other ranks are spent. It agrees on the status. */
FKT_MUST_USE fkt_status fkt_moments_reduce(struct fkt_moments *m, struct fkt_ranks *ranks);

/* What the ranks counted beside the records, to rank 0; either may be NULL on all. That of the other ranks is zero
 * afterwards. It agrees on the status. */
FKT_MUST_USE fkt_status fkt_rows_gather_notes(struct fkt_ranks *ranks, struct fkt_skipped *skipped,
                                              struct fkt_norms *norms);

#endif
