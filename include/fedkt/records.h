/* SPDX-License-Identifier: Apache-2.0 */
/* records.h - a set of records: which images some numbers are about. As PRIVATE as the images.
 *
 *   pipeline (pipeline.h) or fkt_records_read --> set --fkt_records_list--> digests for fkt_ledger_charge (ledger.h)
 *
 * Records with the same pixels and the same label count once; under FKT_ADJACENCY_REPLACE, which publishes counts
 * exactly, they count each.
 */
#ifndef FEDKT_RECORDS_H
#define FEDKT_RECORDS_H

#include "fedkt/ledger.h"
#include "fedkt/privacy.h"
#include "fedkt/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_dataset;          /* image.h */
struct fkt_pipeline_options; /* pipeline.h */

struct fkt_records;
FKT_API FKT_MUST_USE fkt_status fkt_records_new(struct fkt_records **out, enum fkt_adjacency adjacency);
FKT_API void fkt_records_free(struct fkt_records *r);
FKT_API size_t fkt_records_copies(const struct fkt_records *r); /* how many were exact copies of another one */
/* The digests of its images, each once, ascending: for fkt_ledger_charge. Borrowed until the next call with r. */
FKT_API FKT_MUST_USE fkt_status fkt_records_list(struct fkt_records *r, const struct fkt_record_digest **out,
                                                 size_t *n);
/* Adds the images of `more`; *shared of them were there already. */
FKT_API FKT_MUST_USE fkt_status fkt_records_merge(struct fkt_records *into, struct fkt_records *more, size_t *shared);
/* Adds records idx[0..n-1] of ds (idx NULL: all) without the pipeline: they are only decoded. Labels, class and
 * file names, order, size and codec do not enter a digest. options (may be NULL): threads, progress, skipped
 * (unreadable images are passed over; the pipeline counts them). */
FKT_API FKT_MUST_USE fkt_status fkt_records_read(struct fkt_records *r, const struct fkt_dataset *ds, const size_t *idx,
                                                 size_t n, const struct fkt_pipeline_options *options);

#ifdef __cplusplus
}
#endif
#endif
