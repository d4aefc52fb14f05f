/* SPDX-License-Identifier: Apache-2.0 */
/* moments.c - per class the count, and for each part the sum and the second moments of integer record vectors, exactly.
 *
 *   records --check all--> n += 1, S += q (int64) --> rows of the group (doubles) --full: dsyrk--> M += (int64)
 *
 * Source: FedKT-CSD, the class moments. The paper sums floating-point latents; we sum integers, so the result is the
 * same to the last bit for any split, order or number of threads. The second moments, nearly all of the work, go
 * through BLAS on doubles that hold integers: a partial sum of a flush is at most cap*Rq^2 < 2^53 in magnitude, so
 * every product and every sum in it is exact however BLAS orders, blocks or fuses them. Flushes are added up in int64,
 * where n_max*Rq^2 < 2^61 bounds every entry of S and M. Several parts, and second moments pooled over the classes, are
 * ours (fedkt/layout.h): each part is checked against its own ball and has its own dsyrk; there are no products across
 * parts.
 *
 * Cost: per record m multiply-adds of checking and copying, m^2 flops in dsyrk; per flush m^2/2 conversions, spread
 * over cap rows. Memory: the packed int64, and rows of about 8 MB in all (more only when 32 rows per group take more).
 * All of it is as private as the records: it is wiped before it is freed. */
#include "moments/moments.h"

#include "fedkt/advanced/moments.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/wipe.h"
#include "tensor/linalg.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ROWS_BYTES ((size_t)8 << 20)
#define ROWS_MIN 32U
#define EXACT_DOUBLE ((uint64_t)1 << 53)
#define ENTRY_BOUND ((uint64_t)1 << 61)

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Rows per group: as many as the memory allows, so that dsyrk has long columns and flushes are rare. */
static size_t choose_cap(uint32_t groups, size_t length, uint32_t rq, uint64_t n_max)
{
    uint64_t row = (uint64_t)groups * length * sizeof(double); /* fits: check_shape saw the packed bytes fit */
    uint64_t cap = ROWS_BYTES / row;
    if (cap < ROWS_MIN) cap = ROWS_MIN;
    cap = min_u64(cap, n_max);
    cap = min_u64(cap, (EXACT_DOUBLE - 1) / ((uint64_t)rq * rq));
    return (size_t)min_u64(cap, INT_MAX);
}

static uint32_t largest(const uint32_t *of, uint32_t parts)
{
    uint32_t most = of[0];
    for (uint32_t p = 1; p < parts; p++)
        if (of[p] > most) most = of[p];
    return most;
}

/* Records that cannot make an entry reach 2^61. */
static uint64_t safe_records(uint32_t rq) { return (ENTRY_BOUND - 1) / ((uint64_t)rq * rq); }

static fkt_status check_shape(uint32_t classes, const struct fkt_moments_layout *l, uint64_t n_max)
{
    const size_t length = fkt_layout_length(l);
    uint32_t rq;
    if (classes == 0 || length == 0) return fkt_fail(FKT_E_ARG, "moments need at least one class and one coordinate");
    for (uint32_t p = 0; p < l->parts; p++)
        if (l->rq[p] < FKT_RQ_MIN || l->rq[p] > FKT_RQ_MAX)
            return fkt_fail(FKT_E_ARG, "integer radius %u is outside %u..%u", l->rq[p], FKT_RQ_MIN, FKT_RQ_MAX);
    rq = largest(l->rq, l->parts);
    if (n_max > safe_records(rq))
        return fkt_fail(FKT_E_ARG, "%llu records per class could overflow at integer radius %u: at most %llu",
                        (unsigned long long)n_max, rq, (unsigned long long)safe_records(rq));
    if (length > INT_MAX || fkt_layout_numbers(l, classes) == 0)
        return fkt_fail(FKT_E_ARG, "moments of %u classes and length %zu do not fit into memory", classes, length);
    return FKT_OK;
}

fkt_status fkt_moments_new(struct fkt_moments **out, uint32_t classes, const struct fkt_moments_layout *layout,
                           uint64_t n_max)
{
    struct fkt_moments *m = NULL;
    uint32_t rq;
    size_t widest;
    fkt_status st;

    *out = NULL;
    FKT_TRY(check_shape(classes, layout, n_max));
    FKT_TRY(fkt_alloc(&m, 1));
    rq = largest(layout->rq, layout->parts);
    widest = largest(layout->length, layout->parts);
    m->classes = classes;
    m->groups = layout->pooled ? 1 : classes;
    m->layout = *layout;
    m->length = fkt_layout_length(layout);
    m->n_max = n_max ? n_max : safe_records(rq);
    m->all_max = layout->pooled ? safe_records(rq) : UINT64_MAX;
    m->numbers = fkt_layout_numbers(layout, classes);
    m->cap = choose_cap(m->groups, m->length, rq, layout->pooled ? m->all_max : m->n_max);
    FKT_TRY(fkt_alloc(&m->packed, m->numbers));
    FKT_TRY(fkt_realloc(&m->rows, m->groups * m->cap * m->length)); /* not zeroed: few records touch little of it */
    FKT_TRY(fkt_alloc(&m->product, widest * widest));
    FKT_TRY(fkt_alloc(&m->fill, m->groups));
    FKT_TRY(fkt_alloc(&m->peak, m->groups));
    FKT_TRY(fkt_alloc(&m->incoming, classes));
    *out = m;
    m = NULL;
out:
    fkt_moments_free(m);
    return st;
}

/* Row r of part p in group g. */
static double *row_of(const struct fkt_moments *m, uint32_t g, uint32_t p, size_t r)
{
    size_t before = 0;
    for (uint32_t i = 0; i < p; i++) before += m->layout.length[i];
    return m->rows + (g * m->length + before) * m->cap + r * m->layout.length[p];
}

void fkt_moments_free(struct fkt_moments *m)
{
    if (!m) return;
    for (uint32_t g = 0; m->rows && m->peak && g < m->groups; g++) /* rows that were never used hold nothing */
        for (uint32_t p = 0; p < m->layout.parts; p++)
            fkt_wipe(row_of(m, g, p, 0), m->peak[g] * m->layout.length[p] * sizeof *m->rows);
    fkt_free_secret(m->packed);
    fkt_free(m->rows);
    fkt_free_secret(m->product);
    fkt_free_secret(m->fill);
    fkt_free_secret(m->peak);
    fkt_free_secret(m->incoming);
    fkt_free_secret(m);
}

uint32_t fkt_moments_classes(const struct fkt_moments *m) { return m->classes; }
const struct fkt_moments_layout *fkt_moments_layout(const struct fkt_moments *m) { return &m->layout; }
size_t fkt_moments_length(const struct fkt_moments *m) { return m->length; }
size_t fkt_moments_numbers(const struct fkt_moments *m) { return m->numbers; }

uint64_t fkt_moments_held(const struct fkt_moments *m, uint32_t c)
{
    return (uint64_t)m->packed[fkt_layout_count(&m->layout, m->classes, c)];
}

static fkt_status no_room(const char *what, uint64_t most, uint64_t have, uint64_t more)
{
    return fkt_fail(FKT_E_NUMERIC, "%s would exceed its bound of %llu records: %llu held, %llu more", what,
                    (unsigned long long)most, (unsigned long long)have, (unsigned long long)more);
}

fkt_status fkt_moments_check_room(const struct fkt_moments *m, const uint64_t *more)
{
    uint64_t all = 0, new = 0; /* each class adds at most n_max < 2^61 of what fitted before: stopped below 2^62 */
    for (uint32_t c = 0; c < m->classes; c++) {
        const uint64_t have = fkt_moments_held(m, c);
        char what[32];
        snprintf(what, sizeof what, "class %u", c);
        if (more[c] > m->n_max - have) return no_room(what, m->n_max, have, more[c]);
        if (m->all_max == UINT64_MAX) continue;
        all += have;
        new += more[c];
        if (new > m->all_max) break;
    }
    if (m->all_max<UINT64_MAX &&new> m->all_max - all) return no_room("the dataset", m->all_max, all, new);
    return FKT_OK;
}

/* pre: fill <= cap, so |entries of product| <= cap*Rq^2 < 2^53; post: fill = 0 and M is complete */
static void flush(struct fkt_moments *m, uint32_t g)
{
    if (m->fill[g] == 0) return;
    for (uint32_t p = 0; p < m->layout.parts; p++) {
        const size_t len = m->layout.length[p];
        int64_t *entry = m->packed + fkt_layout_moment(&m->layout, m->classes, g, p);
        assert(m->fill[g] <= m->cap && (uint64_t)m->cap * m->layout.rq[p] * m->layout.rq[p] < EXACT_DOUBLE);
        memset(m->product, 0, len * len * sizeof *m->product);
        fkt_syrk(m->product, row_of(m, g, p, 0), m->fill[g], len);
        for (size_t i = 0; i < len; i++)
            for (size_t j = i; j < len; j++) *entry++ += (int64_t)m->product[i * len + j];
    }
    m->fill[g] = 0;
}

/* Which row of group g the next record gets. */
static size_t next_row(struct fkt_moments *m, uint32_t g)
{
    if (m->fill[g] == m->cap) flush(m, g);
    if (++m->fill[g] > m->peak[g]) m->peak[g] = m->fill[g];
    return m->fill[g] - 1;
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

static fkt_status check_record(const struct fkt_moments *m, size_t r, const int32_t *q)
{
    const struct fkt_moments_layout *l = &m->layout;
    for (uint32_t p = 0; p < l->parts; q += l->length[p++]) {
        if (in_ball(q, l->length[p], l->rq[p])) continue;
        if (l->parts > 1)
            return fkt_fail(FKT_E_NUMERIC, "part %u of record %zu is outside the ball of integer radius %u", p + 1, r,
                            l->rq[p]);
        return fkt_fail(FKT_E_NUMERIC, "record %zu is outside the ball of integer radius %u", r, l->rq[p]);
    }
    return FKT_OK;
}

static fkt_status check_records(struct fkt_moments *m, const uint32_t *labels, const int32_t *q, size_t n)
{
    memset(m->incoming, 0, m->classes * sizeof *m->incoming);
    for (size_t r = 0; r < n; r++) {
        fkt_status st;
        if (labels[r] >= m->classes)
            return fkt_fail(FKT_E_ARG, "record %zu: label %u is outside 0..%u", r, labels[r], m->classes - 1);
        st = check_record(m, r, q + r * m->length);
        if (st != FKT_OK) return st;
        m->incoming[labels[r]]++;
    }
    return fkt_moments_check_room(m, m->incoming);
}

fkt_status fkt_moments_add(struct fkt_moments *m, const uint32_t *labels, const int32_t *q, size_t n)
{
    const struct fkt_moments_layout *l = &m->layout;
    fkt_status st = check_records(m, labels, q, n);
    if (st != FKT_OK) return st;
    for (size_t r = 0; r < n; r++) {
        const uint32_t c = labels[r], g = l->pooled ? 0 : c;
        const size_t at = next_row(m, g);
        m->packed[fkt_layout_count(l, m->classes, c)]++;
        for (uint32_t p = 0; p < l->parts; q += l->length[p++]) {
            int64_t *sum = m->packed + fkt_layout_sum(l, m->classes, c, p);
            double *row = row_of(m, g, p, at);
            for (size_t i = 0; i < l->length[p]; i++) {
                sum[i] += q[i];
                row[i] = q[i];
            }
        }
    }
    return FKT_OK;
}

static fkt_status check_same(const struct fkt_moments *into, const struct fkt_moments *from)
{
    const struct fkt_moments_layout *a = &from->layout, *b = &into->layout;
    if (into->classes == from->classes && fkt_layout_equal(a, b)) return FKT_OK;
    if (a->parts != b->parts || !a->pooled != !b->pooled)
        return fkt_fail(FKT_E_MISMATCH, "moments of another layout: %u parts%s, expected %u%s", a->parts,
                        a->pooled ? ", pooled" : "", b->parts, b->pooled ? ", pooled" : "");
    for (uint32_t p = 0; p < a->parts; p++)
        if (into->classes != from->classes || a->length[p] != b->length[p] || a->rq[p] != b->rq[p])
            return fkt_fail(FKT_E_MISMATCH,
                            "moments of another shape: %u classes, length %u, radius %u, expected %u, %u, %u",
                            from->classes, a->length[p], a->rq[p], into->classes, b->length[p], b->rq[p]);
    return FKT_OK;
}

/* The rows of `from` that are not yet in its second moments. */
static void copy_rows(struct fkt_moments *into, const struct fkt_moments *from)
{
    for (uint32_t g = 0; g < from->groups; g++)
        for (size_t r = 0; r < from->fill[g]; r++) {
            const size_t at = next_row(into, g);
            for (uint32_t p = 0; p < from->layout.parts; p++)
                memcpy(row_of(into, g, p, at), row_of(from, g, p, r), from->layout.length[p] * sizeof(double));
        }
}

fkt_status fkt_moments_merge(struct fkt_moments *into, const struct fkt_moments *from)
{
    fkt_status st = check_same(into, from);
    if (st != FKT_OK) return st;
    for (uint32_t c = 0; c < from->classes; c++) into->incoming[c] = fkt_moments_held(from, c);
    st = fkt_moments_check_room(into, into->incoming);
    if (st != FKT_OK) return st;
    if (into == from) /* then rows must not be read below while they are written */
        for (uint32_t g = 0; g < into->groups; g++) flush(into, g);
    for (size_t i = 0; i < into->numbers; i++) into->packed[i] += from->packed[i];
    copy_rows(into, from);
    return FKT_OK;
}

fkt_status fkt_moments_packed(struct fkt_moments *m, const int64_t **packed)
{
    for (uint32_t g = 0; g < m->groups; g++) flush(m, g);
    *packed = m->packed;
    return FKT_OK;
}
