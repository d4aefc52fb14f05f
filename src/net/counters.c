/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c - counters that several threads add to without a lock. Each one is exact; a reading of all of them is
 * not of one instant. Bytes are those of bodies. */
#include "net/counters.h"

#include <string.h>

void fkt_counters_request(struct fkt_counters *t, uint64_t bytes)
{
    atomic_fetch_add(&t->requests, 1);
    atomic_fetch_add(&t->bytes_in, bytes);
}

void fkt_counters_answer(struct fkt_counters *t, int code, uint64_t bytes)
{
    atomic_fetch_add(&t->answers[code / 100 % 6], 1);
    atomic_fetch_add(&t->bytes_out, bytes);
}

void fkt_counters_latency(struct fkt_counters *t, uint64_t us)
{
    int i = 0;
    while (us > fkt_page_bounds_us[i]) i++;
    atomic_fetch_add(&t->bin[i], 1);
    atomic_fetch_add(&t->sum_us, us);
}

void fkt_counters_read(struct fkt_counters *t, struct fkt_page_counts *out)
{
    uint64_t sum = 0;
    memset(out, 0, sizeof *out);
    out->requests = atomic_load(&t->requests);
    out->answers_2xx = atomic_load(&t->answers[2]) + atomic_load(&t->answers[3]);
    out->answers_4xx = atomic_load(&t->answers[4]);
    out->answers_5xx = atomic_load(&t->answers[5]);
    out->bytes_in = atomic_load(&t->bytes_in);
    out->bytes_out = atomic_load(&t->bytes_out);
    out->connections = atomic_load(&t->connections);
    out->parked = atomic_load(&t->parked);
    out->streams = atomic_load(&t->streams);
    for (int i = 0; i < FKT_PAGE_BOUNDS; i++) out->latency_le_us[i] = sum += atomic_load(&t->bin[i]);
    out->latency_count = sum;
    out->latency_sum_us = atomic_load(&t->sum_us);
}
