/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - time measurement for reports; no computed result may depend on it. */
#ifndef FKT_BASE_CLOCK_H
#define FKT_BASE_CLOCK_H

#include <time.h>

static inline double fkt_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time of this process. */
static inline double fkt_cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
