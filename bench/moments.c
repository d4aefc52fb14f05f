/* SPDX-License-Identifier: Apache-2.0 */
/* moments.c - class moments of a site, compared with plain dsyrk on the same integers.
 *
 * The bound is the time of BLAS for the second moments, on records already sorted by class and already doubles: K
 * calls. The figure is a site's total time: making the accumulator, checking labels and norms, sums, conversion,
 * flushes, packing. The two are timed in turn within one run, best of RUNS, one thread. Before that the packed
 * integers are compared with plain int64 loops over the first records and, all of them, with the bound's own
 * products. Cost: some seconds, 120 MB. */
#include "bench/bench.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "fedkt/machine.h"
#include "fedkt/advanced/moments.h"
#include "tensor/linalg.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RUNS 12
#define CLASSES 10U
#define RQ 256U
#define TWIN_RECORDS 300U

struct setting {
    uint32_t m;
    size_t n;
};

struct records {
    size_t n, m;
    uint32_t *labels; /* (n) */
    int32_t *q;       /* (n, m) */
    double *sorted;   /* (n, m) by class */
    size_t start[CLASSES + 1];
    double *product; /* (K, m, m) */
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void release_records(struct records *r)
{
    fkt_free(r->labels);
    fkt_free(r->q);
    fkt_free(r->sorted);
    fkt_free(r->product);
}

static fkt_status make_records(struct records *r, const struct setting *s)
{
    struct fkt_coordinates c;
    struct fkt_rng rng;
    double *w = NULL;
    size_t next[CLASSES] = {0};
    fkt_status st;

    memset(r, 0, sizeof *r);
    r->n = s->n;
    r->m = s->m;
    FKT_TRY(fkt_alloc(&w, r->m));
    FKT_TRY(fkt_alloc(&r->labels, r->n));
    FKT_TRY(fkt_alloc(&r->q, r->n * r->m));
    FKT_TRY(fkt_alloc(&r->sorted, r->n * r->m));
    FKT_TRY(fkt_alloc(&r->product, CLASSES * r->m * r->m));
    FKT_TRY(fkt_coordinates_clip(&c, s->m, RQ, 1.0));
    fkt_rng_init(&rng, 1, s->m);
    for (size_t k = 0; k < r->n; k++) {
        r->labels[k] = (uint32_t)fkt_rng_below(&rng, CLASSES);
        r->start[r->labels[k] + 1]++;
        for (size_t i = 0; i < r->m; i++) w[i] = fkt_rng_normal(&rng);
        FKT_TRY(fkt_coordinates_forward(&c, w, w));
        FKT_TRY(fkt_quantise(&c, w, r->q + k * r->m));
    }
    for (uint32_t k = 0; k < CLASSES; k++) r->start[k + 1] += r->start[k];
    for (size_t k = 0; k < r->n; k++) {
        size_t to = r->start[r->labels[k]] + next[r->labels[k]]++;
        for (size_t i = 0; i < r->m; i++) r->sorted[to * r->m + i] = r->q[k * r->m + i];
    }
out:
    fkt_free(w);
    return st;
}

static void bare_dsyrk(struct records *r)
{
    memset(r->product, 0, CLASSES * r->m * r->m * sizeof *r->product);
    for (uint32_t c = 0; c < CLASSES; c++)
        fkt_syrk(r->product + c * r->m * r->m, r->sorted + r->start[c] * r->m, r->start[c + 1] - r->start[c], r->m);
}

/* The moments of the first n records; sets *m. */
static fkt_status site(struct fkt_moments **m, const struct records *r, size_t n, const int64_t **packed)
{
    const struct fkt_moments_layout layout = fkt_layout_one((uint32_t)r->m, RQ);
    fkt_status st;
    FKT_TRY(fkt_moments_new(m, CLASSES, &layout, 0));
    FKT_TRY(fkt_moments_add(*m, r->labels, r->q, n));
    FKT_TRY(fkt_moments_packed(*m, packed));
out:
    return st;
}

static fkt_status wrong(const char *against, uint32_t c)
{
    return fkt_fail(FKT_E_NUMERIC, "moments of class %u differ from %s: not timed", c, against);
}

/* Plain loops over the definition, for the records of one class. */
static fkt_status check_twin(const struct records *r)
{
    struct fkt_moments *m = NULL;
    const int64_t *packed = NULL;
    fkt_status st;
    FKT_TRY(site(&m, r, TWIN_RECORDS, &packed));
    for (uint32_t c = 0; c < CLASSES; c++) {
        const int64_t *entry = packed + c * fkt_moments_block(r->m);
        for (size_t i = 0; i <= r->m; i++)
            for (size_t j = i; j <= r->m; j++) {
                int64_t want = 0;
                for (size_t k = 0; k < TWIN_RECORDS; k++) {
                    const int32_t *q = r->q + k * r->m;
                    if (r->labels[k] == c) want += (i ? (int64_t)q[i - 1] : 1) * (j ? q[j - 1] : 1);
                }
                if (*entry++ != want) {
                    st = wrong("plain integer loops", c);
                    goto out;
                }
            }
    }
out:
    fkt_moments_free(m);
    return st;
}

static fkt_status check_all(struct records *r)
{
    struct fkt_moments *m = NULL;
    const int64_t *packed = NULL;
    fkt_status st;
    FKT_TRY(site(&m, r, r->n, &packed));
    bare_dsyrk(r);
    for (uint32_t c = 0; c < CLASSES; c++) {
        const int64_t *entry = packed + c * fkt_moments_block(r->m) + 1 + r->m;
        for (size_t i = 0; i < r->m; i++)
            for (size_t j = i; j < r->m; j++)
                if ((double)*entry++ != r->product[(c * r->m + i) * r->m + j]) {
                    st = wrong("dsyrk", c);
                    goto out;
                }
    }
out:
    fkt_moments_free(m);
    return st;
}

static fkt_status time_both(struct records *r, double *ours, double *bare)
{
    *ours = *bare = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        struct fkt_moments *m = NULL;
        const int64_t *packed;
        double t0 = now_ms(), t1;
        fkt_status st = site(&m, r, r->n, &packed);
        fkt_moments_free(m);
        if (st != FKT_OK) return st;
        t1 = now_ms();
        bare_dsyrk(r);
        *bare = fmin(*bare, now_ms() - t1);
        *ours = fmin(*ours, t1 - t0);
    }
    return FKT_OK;
}

static fkt_status measure(struct fkt_bench_row *row, const struct setting *s)
{
    struct records r;
    fkt_status st;
    memset(row, 0, sizeof *row);
    FKT_TRY(make_records(&r, s));
    FKT_TRY(check_twin(&r));
    FKT_TRY(check_all(&r));
    FKT_TRY(time_both(&r, &row->value, &row->bound));
    row->ratio_to_bound = row->value / row->bound;
    snprintf(row->name, sizeof row->name, "moments/site m=%u K=%u n=%zu", s->m, CLASSES, s->n);
    snprintf(row->unit, sizeof row->unit, "ms");
    snprintf(row->bound_name, sizeof row->bound_name, "dsyrk alone, %u calls", CLASSES);
    snprintf(row->note, sizeof row->note, "one thread, best of %d, BLAS core %s, %.1f GFLOP/s in dsyrk", RUNS,
             fkt_blas_core(), (double)s->n * s->m * (s->m + 1.0) / (row->bound * 1e6));
out:
    release_records(&r);
    return st;
}

fkt_status fkt_bench_moments(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    const struct setting settings[] = {{128, 50000}, {65, 50000}, {513, 5000}};
    (void)o;
    *n = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings && i < cap; i++) {
        fkt_status st = measure(&rows[i], &settings[i]);
        if (st != FKT_OK) return st;
        *n = i + 1;
    }
    return FKT_OK;
}
