/* SPDX-License-Identifier: Apache-2.0 */
/* counters.h - what the HTTP server counts, from any thread. */
#ifndef FKT_NET_COUNTERS_H
#define FKT_NET_COUNTERS_H

#include "net/page.h"

#include <stdatomic.h>

struct fkt_counters {
    atomic_uint_fast64_t requests, answers[6] /* by the code's first digit */, bytes_in, bytes_out;
    atomic_uint connections, parked, streams;
    atomic_uint_fast64_t bin[FKT_PAGE_BOUNDS], sum_us;
};
void fkt_counters_request(struct fkt_counters *t, uint64_t bytes);
void fkt_counters_answer(struct fkt_counters *t, int code, uint64_t bytes);
void fkt_counters_latency(struct fkt_counters *t, uint64_t us);
void fkt_counters_read(struct fkt_counters *t, struct fkt_page_counts *out);

#endif
