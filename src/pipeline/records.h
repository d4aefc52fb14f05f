/* SPDX-License-Identifier: Apache-2.0 */
/* records.h - which images some sums contain, for the files that count records. */
#ifndef FKT_PIPELINE_RECORDS_H
#define FKT_PIPELINE_RECORDS_H

#include "fedkt/records.h"

struct fkt_digest; /* pipeline/fingerprint.h */

/* counts[i] 1: record i is to be counted, 0: it is an exact copy of one that was. From several threads at once. */
FKT_MUST_USE fkt_status fkt_records_add(struct fkt_records *r, const struct fkt_digest *digests, const uint32_t *labels,
                                        size_t n, uint8_t *counts);
/* An image alone, whatever its label: what a file says. */
FKT_MUST_USE fkt_status fkt_records_add_image(struct fkt_records *r, const struct fkt_record_digest *digest);
/* One name for a list of digests. PRIVATE: it stays in a site's state file. */
void fkt_records_name(char out[FKT_SHA256_HEX], const struct fkt_record_digest *digests, size_t n);

#endif
