/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - shared by several benchmarks: peak memory of the process, and sorted times. */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

double fkt_bench_memory(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_maxrss / 1000 : NAN;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void fkt_bench_sort(double *x, size_t n) { qsort(x, n, sizeof *x, by_size); }
