/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - checks of an output before the work that makes it. */
#ifndef FKT_BASE_OUTPUT_H
#define FKT_BASE_OUTPUT_H

#include "base/status.h"

/* 1 when writing `out` would take away `in` (NULL: no): the same file, a folder that holds it, or an existing file
 * inside an input folder. */
int fkt_output_replaces(const char *out, const char *in);
int fkt_same_place(const char *a, const char *b); /* 1: two spellings of one path, "m" and "./m" */
/* Is the name free, or force given, and can something be written there? Leaves nothing behind. */
FKT_MUST_USE fkt_status fkt_output_file(const char *path, int force);
FKT_MUST_USE fkt_status fkt_output_folder(const char *path, int force);

#endif
