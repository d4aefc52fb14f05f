/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - the fields of a benched server's transparency log (docs/http.md 5.1) that benchmarks need. */
#ifndef FKT_BENCH_LOG_H
#define FKT_BENCH_LOG_H

#include "base/status.h"

#include <stdint.h>

struct cli_bench_log {
    uint32_t sites;
    uint8_t *survived; /* (sites) owned */
    uint32_t *taken;   /* (sites) accepted messages in the log; owned */
    uint32_t rounds, survivors, refused;
    uint64_t messages, bytes;
};
FKT_MUST_USE fkt_status cli_bench_log_read(struct cli_bench_log *out, const char *path, uint32_t sites);
void cli_bench_log_clear(struct cli_bench_log *l);

#endif
