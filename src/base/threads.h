/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - a loop over independent items on several threads. */
#ifndef FKT_BASE_THREADS_H
#define FKT_BASE_THREADS_H

#include "base/status.h"

#include <stddef.h>

unsigned fkt_cpu_count(void); /* >= 1: what this process may run on */

/* Calls fn(ctx, item, worker) once for each item 0..n-1, worker in 0..threads-1 (0 threads: fkt_cpu_count()). The
 * order of items is not defined. The first failure stops the loop and is returned with its
 * sentence; `progress` (may be NULL) is stepped under a lock. With one thread everything runs on the caller's. */
FKT_MUST_USE fkt_status fkt_parallel(unsigned threads, size_t n,
                                     fkt_status (*fn)(void *ctx, size_t item, unsigned worker), void *ctx,
                                     const struct fkt_progress *progress, const char *what);

#endif
