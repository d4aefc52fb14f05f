/* SPDX-License-Identifier: Apache-2.0 */
/* thread_ranks.h - ranks as threads of one process: each runs the same function, and messages are copied. */
#ifndef FKT_TEST_THREAD_RANKS_H
#define FKT_TEST_THREAD_RANKS_H

#include "fedkt/advanced/ranks.h"

enum { THREAD_RANKS_MAX = 16 };
/* Calls body(ctx, r) on `size` threads at once, r being each thread's rank. Returns how many messages were sent and not
 * received: 0 after every agreement. */
size_t thread_ranks(uint32_t size, void (*body)(void *ctx, struct fkt_ranks *r), void *ctx);

#endif
