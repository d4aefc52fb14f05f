/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - one measured figure and the bound that it is compared with; `fedkt bench MODULE` prints them. */
#ifndef FKT_BENCH_BENCH_H
#define FKT_BENCH_BENCH_H

#include "cli/core/common.h"

struct fkt_bench_row {
    char name[64];
    double value;
    char unit[16];
    double bound; /* in the same unit, measured in the same run */
    int peer;     /* 1: a reference for comparison, not a bound; it may be exceeded */
    double ratio_to_bound;
    char bound_name[64];
    char note[160];
};

/* Options of a benchmark. */
struct cli_bench {
    struct cli_codec codec;
    uint64_t images;             /* 0: as many as take a few seconds */
    uint64_t sites, classes;     /* of the aggregation; 0: the usual ones */
    uint64_t dim, phase_seconds; /* of the federation; 0: the usual ones */
    double dropout;
    int model;         /* of the training; enum fkt_architecture */
    const char *sizes; /* "32,64"; NULL: those */
    uint64_t batch;    /* 0: 64 */
    double seconds;    /* 0: the usual ones */
    struct cli_run run;
};

/* Each checks its result first, against a slow implementation if there is one, and fails when it is wrong; then
 * fills at most `cap` rows. */
FKT_MUST_USE fkt_status fkt_bench_moments(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n);
FKT_MUST_USE fkt_status fkt_bench_privacy(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n);
FKT_MUST_USE fkt_status fkt_bench_codec(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n);
/* Many images from pixels to synthetic pixels: runs on request only. */
FKT_MUST_USE fkt_status fkt_bench_cost(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n);

/* Guided images, by the twin and by gradient: runs on request only. */
FKT_MUST_USE fkt_status fkt_bench_guided(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n);

FKT_MUST_USE fkt_status fkt_bench_secagg(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n);
/* Takes memory and half a minute: runs on request only. */
FKT_MUST_USE fkt_status fkt_bench_train(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n);
/* Starts a server and waits for deadlines: runs on request only. */
FKT_MUST_USE fkt_status fkt_bench_federation(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap,
                                             size_t *n);

/* GFLOP/s of large products on `threads` threads, each with its own: the better of BLAS (f32 only) and the library
 * behind networks; on a card (device settled) of one large network of products. */
FKT_MUST_USE fkt_status fkt_bench_peak(struct fkt_device device, enum fkt_codec_dtype dtype, unsigned threads,
                                       double *gflops, const char **whose);
double fkt_bench_memory(void); /* peak memory of the process in MB; NaN: not known */
void fkt_bench_sort(double *x, size_t n);

#endif
