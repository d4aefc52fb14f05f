/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the real `fedkt serve` as a child of a benchmark, and its cost. */
#ifndef FKT_BENCH_SERVER_H
#define FKT_BENCH_SERVER_H

#include "base/status.h"

#include <sys/types.h>

struct cli_bench_server {
    pid_t pid;         /* 0: none */
    int out;           /* what it prints */
    char address[128]; /* "127.0.0.1:43121" */
};
/* Starts this binary with the arguments `words` (NULL after the last), its stderr into `log`, and waits until it
 * prints its address. Clear it in any case. */
FKT_MUST_USE fkt_status cli_bench_server_start(struct cli_bench_server *s, const char *const *words, const char *log);
/* Processor seconds so far, and its peak memory in MB (10^6 bytes). FKT_E_IO when it has ended. */
FKT_MUST_USE fkt_status cli_bench_server_usage(const struct cli_bench_server *s, double *cpu, double *peak_mb);
/* Stops it and waits; FKT_E_IO when it ends with an error. */
FKT_MUST_USE fkt_status cli_bench_server_stop(struct cli_bench_server *s);
void cli_bench_server_clear(struct cli_bench_server *s); /* kills it if it still runs */

#endif
