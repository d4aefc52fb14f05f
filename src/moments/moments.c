/* SPDX-License-Identifier: Apache-2.0 */
/* moments.c - per class the count, the sum and the second moments of integer record vectors, exactly.
 *
 *   records --check all--> n += 1, S += q (int64) --> rows of the class (doubles) --full: dsyrk--> M += (int64)
 *
 * Source: FedKT-CSD, the class moments. The paper sums floating-point latents; we sum integers, so the result is the
 * same to the last bit for any split, order or number of threads. The second moments, nearly all of the work, go
 * through BLAS on doubles that hold integers: a partial sum of a flush is at most cap*Rq^2 < 2^53 in magnitude, so
 * every product and every sum in it is exact however BLAS orders, blocks or fuses them. Flushes are added up in int64,
 * where n_max*Rq^2 < 2^61 bounds every entry of S and M.
 *
 * Cost: per record m multiply-adds of checking and copying, m^2 flops in dsyrk; per flush m^2/2 conversions, spread
 * over cap rows. Memory: K*block int64, and rows of about 8 MB in all (more only when 32 rows per class take more).
 * All of it is as private as the records: it is wiped before it is freed. */
#include "moments/moments.h"

#include "fedkt/advanced/moments.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/wipe.h"
#include "tensor/linalg.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define ROWS_BYTES ((size_t)8 << 20)
#define ROWS_MIN 32U
#define EXACT_DOUBLE ((uint64_t)1 << 53)
#define ENTRY_BOUND ((uint64_t)1 << 61)

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Rows per class: as many as the memory allows, so that dsyrk has long columns and flushes are rare. */
static size_t choose_cap(uint32_t classes, uint32_t length, uint32_t rq, uint64_t n_max)
{
    uint64_t row = (uint64_t)classes * length * sizeof(double); /* fits: check_shape saw K*block*8 fit, and block > m */
    uint64_t cap = ROWS_BYTES / row;
    if (cap < ROWS_MIN) cap = ROWS_MIN;
    cap = min_u64(cap, n_max);
    cap = min_u64(cap, (EXACT_DOUBLE - 1) / ((uint64_t)rq * rq));
    return (size_t)min_u64(cap, INT_MAX);
}

static fkt_status check_shape(uint32_t classes, uint32_t length, uint32_t rq, uint64_t n_max)
{
    uint64_t safe;
    size_t n;
    if (classes == 0 || length == 0) return fkt_fail(FKT_E_ARG, "moments need at least one class and one coordinate");
    if (rq < FKT_RQ_MIN || rq > FKT_RQ_MAX)
        return fkt_fail(FKT_E_ARG, "integer radius %u is outside %u..%u", rq, FKT_RQ_MIN, FKT_RQ_MAX);
    safe = (ENTRY_BOUND - 1) / ((uint64_t)rq * rq);
    if (n_max > safe)
        return fkt_fail(FKT_E_ARG, "%llu records per class could overflow at integer radius %u: at most %llu",
                        (unsigned long long)n_max, rq, (unsigned long long)safe);
    if (length > INT_MAX || fkt_moments_block(length) == 0 || !fkt_mul_size(fkt_moments_block(length), classes, &n) ||
        n > SIZE_MAX / 2 / sizeof(int64_t))
        return fkt_fail(FKT_E_ARG, "moments of %u classes and length %u do not fit into memory", classes, length);
    return FKT_OK;
}

fkt_status fkt_moments_new(struct fkt_moments **out, uint32_t classes, uint32_t length, uint32_t rq, uint64_t n_max)
{
    struct fkt_moments *m = NULL;
    fkt_status st;

    *out = NULL;
    FKT_TRY(check_shape(classes, length, rq, n_max));
    FKT_TRY(fkt_alloc(&m, 1));
    m->classes = classes;
    m->length = length;
    m->rq = rq;
    m->n_max = n_max ? n_max : (ENTRY_BOUND - 1) / ((uint64_t)rq * rq);
    m->block = fkt_moments_block(length);
    m->cap = choose_cap(classes, length, rq, m->n_max);
    FKT_TRY(fkt_alloc(&m->packed, classes * m->block));
    FKT_TRY(fkt_realloc(&m->rows, classes * m->cap * length)); /* not zeroed: few records touch little of it */
    FKT_TRY(fkt_alloc(&m->product, (size_t)length * length));
    FKT_TRY(fkt_alloc(&m->fill, classes));
    FKT_TRY(fkt_alloc(&m->peak, classes));
    FKT_TRY(fkt_alloc(&m->incoming, classes));
    *out = m;
    m = NULL;
out:
    fkt_moments_free(m);
    return st;
}

void fkt_moments_free(struct fkt_moments *m)
{
    if (!m) return;
    for (uint32_t c = 0; m->rows && m->peak && c < m->classes; c++) /* rows that were never used hold nothing */
        fkt_wipe(m->rows + c * m->cap * m->length, m->peak[c] * m->length * sizeof *m->rows);
    fkt_free_secret(m->packed);
    fkt_free(m->rows);
    fkt_free_secret(m->product);
    fkt_free_secret(m->fill);
    fkt_free_secret(m->peak);
    fkt_free_secret(m->incoming);
    fkt_free_secret(m);
}

uint32_t fkt_moments_classes(const struct fkt_moments *m) { return m->classes; }
uint32_t fkt_moments_length(const struct fkt_moments *m) { return m->length; }
uint32_t fkt_moments_rq(const struct fkt_moments *m) { return m->rq; }

fkt_status fkt_moments_check_room(const struct fkt_moments *m, uint32_t c, uint64_t more)
{
    uint64_t have = (uint64_t)m->packed[c * m->block];
    if (more <= m->n_max - have) return FKT_OK;
    return fkt_fail(FKT_E_NUMERIC, "class %u would exceed its bound of %llu records: %llu held, %llu more", c,
                    (unsigned long long)m->n_max, (unsigned long long)have, (unsigned long long)more);
}

/* pre: fill <= cap, so |entries of product| <= cap*Rq^2 < 2^53; post: fill = 0 and M is complete */
static void flush(struct fkt_moments *m, uint32_t c)
{
    const size_t len = m->length;
    int64_t *entry = m->packed + c * m->block + 1 + len;

    if (m->fill[c] == 0) return;
    assert(m->fill[c] <= m->cap && (uint64_t)m->cap * m->rq * m->rq < EXACT_DOUBLE);
    memset(m->product, 0, len * len * sizeof *m->product);
    fkt_syrk(m->product, m->rows + c * m->cap * len, m->fill[c], len);
    for (size_t i = 0; i < len; i++)
        for (size_t j = i; j < len; j++) *entry++ += (int64_t)m->product[i * len + j];
    m->fill[c] = 0;
}

/* Where the next row of class c goes. */
static double *next_row(struct fkt_moments *m, uint32_t c)
{
    if (m->fill[c] == m->cap) flush(m, c);
    if (++m->fill[c] > m->peak[c]) m->peak[c] = m->fill[c];
    return m->rows + (c * m->cap + m->fill[c] - 1) * m->length;
}

/* |q|^2 <= Rq^2. Sums of squares below 2^53 are exact in doubles; a larger sum stays above 2^53, since rounding is
 * monotone, so the result is right for any int32. Eight lanes, so that the additions do not depend on each other. */
static int in_ball(const int32_t *q, size_t len, uint32_t rq)
{
    double lane[8] = {0}, norm = 0;
    size_t i = 0;
    for (; i + 8 <= len; i += 8)
        for (size_t k = 0; k < 8; k++) lane[k] += (double)q[i + k] * q[i + k];
    for (; i < len; i++) lane[i % 8] += (double)q[i] * q[i];
    for (size_t k = 0; k < 8; k++) norm += lane[k];
    return norm <= (double)rq * rq;
}

static fkt_status check_records(struct fkt_moments *m, const uint32_t *labels, const int32_t *q, size_t n)
{
    memset(m->incoming, 0, m->classes * sizeof *m->incoming);
    for (size_t r = 0; r < n; r++) {
        if (labels[r] >= m->classes)
            return fkt_fail(FKT_E_ARG, "record %zu: label %u is outside 0..%u", r, labels[r], m->classes - 1);
        if (!in_ball(q + r * m->length, m->length, m->rq))
            return fkt_fail(FKT_E_NUMERIC, "record %zu is outside the ball of integer radius %u", r, m->rq);
        m->incoming[labels[r]]++;
    }
    for (uint32_t c = 0; c < m->classes; c++) {
        fkt_status st = fkt_moments_check_room(m, c, m->incoming[c]);
        if (st != FKT_OK) return st;
    }
    return FKT_OK;
}

fkt_status fkt_moments_add(struct fkt_moments *m, const uint32_t *labels, const int32_t *q, size_t n)
{
    const size_t len = m->length;
    fkt_status st = check_records(m, labels, q, n);
    if (st != FKT_OK) return st;
    for (size_t r = 0; r < n; r++) {
        int64_t *sum = m->packed + labels[r] * m->block;
        double *row = next_row(m, labels[r]);
        const int32_t *from = q + r * len;
        *sum++ += 1;
        for (size_t i = 0; i < len; i++) {
            sum[i] += from[i];
            row[i] = from[i];
        }
    }
    return FKT_OK;
}

fkt_status fkt_moments_merge(struct fkt_moments *into, const struct fkt_moments *from)
{
    const size_t len = from->length;
    if (into->classes != from->classes || into->length != from->length || into->rq != from->rq)
        return fkt_fail(FKT_E_MISMATCH,
                        "moments of another shape: %u classes, length %u, radius %u, expected %u, %u, %u",
                        from->classes, from->length, from->rq, into->classes, into->length, into->rq);
    for (uint32_t c = 0; c < from->classes; c++) {
        fkt_status st = fkt_moments_check_room(into, c, (uint64_t)from->packed[c * from->block]);
        if (st != FKT_OK) return st;
    }
    if (into == from) /* then rows must not be read below while they are written */
        for (uint32_t c = 0; c < into->classes; c++) flush(into, c);
    for (size_t i = 0; i < into->classes * into->block; i++) into->packed[i] += from->packed[i];
    for (uint32_t c = 0; c < from->classes; c++)
        for (size_t r = 0; r < from->fill[c]; r++)
            memcpy(next_row(into, c), from->rows + (c * from->cap + r) * len, len * sizeof(double));
    return FKT_OK;
}

fkt_status fkt_moments_packed(struct fkt_moments *m, const int64_t **packed)
{
    for (uint32_t c = 0; c < m->classes; c++) flush(m, c);
    *packed = m->packed;
    return FKT_OK;
}
