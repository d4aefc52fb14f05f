/* SPDX-License-Identifier: Apache-2.0 */
/* partial.h - images of a run that may be interrupted, kept beside its output: the next run with the same options goes
 * on where it ended. */
#ifndef FKT_PIPELINE_PARTIAL_H
#define FKT_PIPELINE_PARTIAL_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_partial;
/* "<folder>.partial". `key`: one line of text with everything that the images depend on. FKT_E_EXISTS when it holds
 * images of another key, unless force; when it is not such a file; and when another process is writing it. */
FKT_MUST_USE fkt_status fkt_partial_open(struct fkt_partial **out, const char *folder, const char *key,
                                         size_t image_bytes, int force);
uint64_t fkt_partial_count(const struct fkt_partial *p); /* images 0 .. count-1 are there */
/* Images at .. at + n - 1, which are there. */
FKT_MUST_USE fkt_status fkt_partial_read(struct fkt_partial *p, uint64_t at, uint8_t *rgb, size_t n);
FKT_MUST_USE fkt_status fkt_partial_add(struct fkt_partial *p, const uint8_t *rgb, size_t n); /* the next ones */
/* After the output was written: removes the file. NULL is fine. */
void fkt_partial_remove(struct fkt_partial *p);
void fkt_partial_free(struct fkt_partial *p); /* the file stays, unless it is empty */

#endif
