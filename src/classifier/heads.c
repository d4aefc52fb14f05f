/* SPDX-License-Identifier: Apache-2.0 */
/* heads.c - closed-form classifiers from class Gaussians that carry known noise: nearest mean, LDA, QDA, RDA.
 * docs/method.md 1.7.
 *
 *   nearest mean   the class whose mean is nearest in expectation:         |w - mean|^2 + m doubt
 *   LDA            the same in the metric of the pooled covariance P:      (w - mean)^T P^-1 (w - mean) + doubt tr P^-1
 *   QDA            the most likely class Gaussian:                         (w - mean)^T C^-1 (w - mean) + log det C
 *   RDA            the same with the geometric mean of C and P for C
 *
 * mean and doubt (its remaining variance per coordinate) come from statistics.c, as does P with its eigenvalues floored
 * at the noise edge; the average doubt is added to P. C_k lies between P and the class's own covariance; for each entry
 * the weight depends on its noise and its sample size: quadratic.c. Without noise LDA is the textbook's, and so is QDA
 * as the sample grows. The choices and the public data behind them: docs/decisions/0003-noise-aware-heads.md.
 *
 * Priors are uniform: the counts of a federation show where data was collected, not what a test set will hold. Inverses
 * are never formed; P and C are used through their eigenvectors and positive, floored eigenvalues. Ties go to the
 * lowest class. Prediction is per record and in a fixed order: its result does not depend on the batch.
 * Cost: m K (linear) or m^2 K (quadratic) multiplications per record. */
#include "classifier/heads.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "base/status.h"
#include "classifier/quadratic.h"
#include "classifier/statistics.h"

#include <math.h>
#include <string.h>

enum fkt_head_kind fkt_head_kind_of(const struct fkt_head *h) { return h->kind; }
uint32_t fkt_head_classes(const struct fkt_head *h) { return h->classes; }
uint32_t fkt_head_length(const struct fkt_head *h) { return h->length; }

int fkt_head_is_quadratic(enum fkt_head_kind kind) { return kind == FKT_HEAD_QDA || kind == FKT_HEAD_RDA; }
enum fkt_head_kind fkt_head_default(int pooled) { return pooled ? FKT_HEAD_LDA : FKT_HEAD_RDA; }

uint32_t fkt_head_parts(const struct fkt_head *h) { return h->parts; }
uint32_t fkt_head_part_offset(const struct fkt_head *h, uint32_t part)
{
    return part < h->parts ? h->part[part].offset : 0;
}
uint32_t fkt_head_part_length(const struct fkt_head *h, uint32_t part)
{
    return part < h->parts ? h->part[part].length : 0;
}

fkt_status fkt_head_new(struct fkt_head **out, enum fkt_head_kind kind, uint32_t classes,
                        const struct fkt_head_part *part, uint32_t parts)
{
    struct fkt_head *h = NULL;
    size_t k = classes, squares = 0;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&h, 1));
    h->kind = kind;
    h->classes = classes;
    h->parts = parts;
    memcpy(h->part, part, parts * sizeof *part);
    for (uint32_t p = 0; p < parts; p++) {
        h->length += part[p].length;
        squares += (size_t)part[p].length * part[p].length;
    }
    FKT_TRY(fkt_alloc(&h->bias, k));
    if (fkt_head_is_quadratic(kind)) {
        FKT_TRY(fkt_alloc(&h->mean, k * h->length));
        FKT_TRY(fkt_alloc(&h->map, k * squares)); /* m <= 2^14, k < 2^32: the product fits, the bytes are checked */
    } else FKT_TRY(fkt_alloc(&h->weight, k * h->length));
    *out = h;
    h = NULL;
out:
    fkt_head_free(h);
    return st;
}

void fkt_head_free(struct fkt_head *h)
{
    if (!h) return;
    fkt_free_secret(h->bias); /* in a simulation the reference comes from exact moments */
    fkt_free_secret(h->weight);
    fkt_free_secret(h->mean);
    fkt_free_secret(h->map);
    for (uint32_t k = 0; h->names && k < h->classes; k++) fkt_free(h->names[k]);
    fkt_free(h->names);
    fkt_free(h);
}

static fkt_status fit_nearest_mean(struct fkt_head *h, const struct fkt_ready *r, const struct fkt_class_statistics *s)
{
    (void)s;
    size_t m = h->length;
    for (size_t k = 0; k < h->classes; k++) {
        double square = 0;
        for (size_t i = 0; i < m; i++) {
            h->weight[k * m + i] = r->mean[k * m + i];
            square += r->mean[k * m + i] * r->mean[k * m + i];
        }
        h->bias[k] = -(square + (double)m * r->doubt[k]) / 2;
    }
    return FKT_OK;
}

static fkt_status fit_lda(struct fkt_head *h, const struct fkt_ready *r, const struct fkt_class_statistics *s)
{
    size_t m = h->length;
    double total = 0, doubt = 0, trace = 0;
    for (size_t k = 0; k < h->classes; k++) {
        total += s->count[k];
        doubt += s->count[k] * r->doubt[k];
    }
    doubt /= total;
    for (size_t i = 0; i < m; i++) trace += 1 / (r->values[i] + doubt);
    for (size_t k = 0; k < h->classes; k++) {
        double square = 0;
        for (size_t i = 0; i < m; i++) { /* along eigenvector i */
            const double *v = r->vectors + i * m;
            double along = 0;
            for (size_t j = 0; j < m; j++) along += v[j] * r->mean[k * m + j];
            square += along * along / (r->values[i] + doubt);
            for (size_t j = 0; j < m; j++) h->weight[k * m + j] += along / (r->values[i] + doubt) * v[j];
        }
        h->bias[k] = -(square + r->doubt[k] * trace) / 2;
    }
    return FKT_OK;
}

/* ---- the kinds ---- */

/* A further head is a member of the enum, a row here and its fit; a form of scores other than the two of heads.h also
 * needs its case in fkt_head_scores and head_file.c. Its name stands in docs/schema/results.json too. */
static const struct {
    const char *name, *title;
    fkt_status (*fit)(struct fkt_head *h, const struct fkt_ready *r, const struct fkt_class_statistics *s);
} table[] = {
    [FKT_HEAD_NEAREST_MEAN] = {"nearest_mean", "nearest mean", fit_nearest_mean},
    [FKT_HEAD_LDA] = {"lda", "LDA", fit_lda},
    [FKT_HEAD_QDA] = {"qda", "QDA", fkt_quadratic_fit},
    [FKT_HEAD_RDA] = {"rda", "RDA", fkt_quadratic_fit},
};
_Static_assert(sizeof table / sizeof *table == FKT_HEAD_KINDS, "each kind of head has a row");

static int known(enum fkt_head_kind kind) { return (int)kind >= 0 && (size_t)kind < FKT_HEAD_KINDS; }

int fkt_head_kinds(void) { return FKT_HEAD_KINDS; }
const char *fkt_head_name(enum fkt_head_kind kind) { return known(kind) ? table[kind].name : "unknown head"; }
int fkt_head_parse(const char *s)
{
    for (int k = 0; k < FKT_HEAD_KINDS; k++)
        if (!strcmp(s, table[k].name)) return k;
    return -1;
}
const char *fkt_head_title(enum fkt_head_kind kind) { return known(kind) ? table[kind].title : "unknown head"; }

static fkt_status check_pooled(enum fkt_head_kind kind, const struct fkt_class_statistics *s)
{
    if (!s->pooled || !fkt_head_is_quadratic(kind)) return FKT_OK;
    return fkt_fail_hint(FKT_E_ARG, "LDA and nearest mean need no covariance of each class",
                         "no %s without a covariance for each class: the moments are pooled", table[kind].title);
}

fkt_status fkt_head_fit(struct fkt_head **out, enum fkt_head_kind kind, const struct fkt_class_statistics *s)
{
    const struct fkt_head_part part = {s->offset, s->length};
    struct fkt_ready r = {0};
    struct fkt_head *h = NULL;
    fkt_status st;
    *out = NULL;
    if (!known(kind)) return fkt_fail(FKT_E_ARG, "unknown kind of head %d", (int)kind);
    FKT_TRY(check_pooled(kind, s));
    FKT_TRY(fkt_ready_make(&r, s));
    FKT_TRY(fkt_head_new(&h, kind, s->classes, &part, 1));
    FKT_TRY(table[kind].fit(h, &r, s));
    *out = h;
    h = NULL;
out:
    fkt_head_free(h);
    fkt_ready_clear(&r);
    return st;
}

/* ---- several parts ---- */

static fkt_status check_parts(const struct fkt_class_statistics *s, uint32_t parts, struct fkt_head_part *part)
{
    uint64_t end = 0, length = 0;
    if (parts < 1 || parts > FKT_HEAD_PARTS_MAX)
        return fkt_fail(FKT_E_ARG, "cannot fit a head to %u parts: 1 to %d", parts, FKT_HEAD_PARTS_MAX);
    for (uint32_t p = 0; p < parts; p++) {
        if (s[p].classes != s[0].classes || s[p].offset < end)
            return fkt_fail(FKT_E_ARG, "part %u of a head has other classes, or overlaps the one before it", p);
        part[p] = (struct fkt_head_part){s[p].offset, s[p].length};
        end = (uint64_t)s[p].offset + s[p].length;
        length += s[p].length;
    }
    if (length > FKT_LENGTH_MAX)
        return fkt_fail(FKT_E_ARG, "cannot fit a head to parts of length %llu together: at most %u",
                        (unsigned long long)length, FKT_LENGTH_MAX);
    return FKT_OK;
}

/* Coordinates from `at` on, and maps from `square` on, of h come from `one`, a head of one part. */
static void put_part(struct fkt_head *h, const struct fkt_head *one, size_t at, size_t square)
{
    size_t m = one->length;
    for (size_t k = 0; k < h->classes; k++) {
        h->bias[k] += one->bias[k];
        if (h->weight) memcpy(h->weight + k * h->length + at, one->weight + k * m, m * sizeof *one->weight);
        else memcpy(h->mean + k * h->length + at, one->mean + k * m, m * sizeof *one->mean);
    }
    if (h->map) memcpy(h->map + square, one->map, h->classes * m * m * sizeof *one->map);
}

fkt_status fkt_head_fit_parts(struct fkt_head **out, enum fkt_head_kind kind, const struct fkt_class_statistics *s,
                              uint32_t parts)
{
    struct fkt_head_part part[FKT_HEAD_PARTS_MAX];
    struct fkt_head *h = NULL, *one = NULL;
    size_t at = 0, square = 0;
    fkt_status st;
    *out = NULL;
    if (!known(kind)) return fkt_fail(FKT_E_ARG, "unknown kind of head %d", (int)kind);
    FKT_TRY(check_parts(s, parts, part));
    if (parts == 1) return fkt_head_fit(out, kind, s);
    for (uint32_t p = 0; p < parts; p++) { /* the first one also checks the classes, before h is allocated */
        st = fkt_head_fit(&one, kind, &s[p]);
        if (st != FKT_OK) {
            st = fkt_fail_in(st, "part %u", p);
            goto out;
        }
        if (!h) FKT_TRY(fkt_head_new(&h, kind, s->classes, part, parts));
        put_part(h, one, at, square);
        at += one->length;
        square += (size_t)h->classes * one->length * one->length;
        fkt_head_free(one);
        one = NULL;
    }
    *out = h;
    h = NULL;
out:
    fkt_head_free(one);
    fkt_head_free(h);
    return st;
}

/* ---- scores ---- */

/* |(w - mean_k) map_k|^2 of one part, whose coordinates w, mean (m) and map (m,m) are; work (m). */
static double distance(const double *w, const double *mean, const double *map, size_t m, double *work)
{
    double sum = 0;
    memset(work, 0, m * sizeof *work);
    for (size_t j = 0; j < m; j++) { /* no sum across i in the inner loop, so that the compiler can vectorise it */
        double x = w[j] - mean[j];
        for (size_t i = 0; i < m; i++) work[i] += x * map[j * m + i];
    }
    for (size_t i = 0; i < m; i++) sum += work[i] * work[i];
    return sum;
}

void fkt_head_scores(const struct fkt_head *h, const double *w, double *scores, double *work)
{
    size_t m = h->length, at = 0, square = 0;
    for (size_t k = 0; k < h->classes; k++) {
        double sum = 0;
        for (size_t i = 0; h->weight && i < m; i++) sum += h->weight[k * m + i] * w[i];
        scores[k] = h->bias[k] + sum;
    }
    for (uint32_t p = 0; h->map && p < h->parts; p++) {
        size_t own = h->part[p].length;
        for (size_t k = 0; k < h->classes; k++)
            scores[k] -= distance(w + at, h->mean + k * m + at, h->map + square + k * own * own, own, work) / 2;
        at += own;
        square += h->classes * own * own;
    }
}

static fkt_status check_vector(const double *w, size_t m, size_t r)
{
    for (size_t i = 0; i < m; i++)
        if (!isfinite(w[i])) return fkt_fail(FKT_E_NUMERIC, "vector %zu is not finite at coordinate %zu", r, i);
    return FKT_OK;
}

/* Scores of row r, checked, and its best class. */
static fkt_status judge(const struct fkt_head *h, const double *w, size_t r, double *scores, double *work,
                        uint32_t *best)
{
    fkt_status st = check_vector(w + r * h->length, h->length, r);
    if (st != FKT_OK) return st;
    fkt_head_scores(h, w + r * h->length, scores, work);
    *best = 0;
    for (uint32_t k = 1; k < h->classes; k++)
        if (scores[k] > scores[*best]) *best = k;
    return FKT_OK;
}

fkt_status fkt_head_predict(const struct fkt_head *h, const double *w, size_t n, uint32_t *label)
{
    double *scores = NULL, *work = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&scores, h->classes));
    FKT_TRY(fkt_alloc(&work, h->length));
    for (size_t r = 0; r < n; r++) FKT_TRY(judge(h, w, r, scores, work, &label[r]));
out:
    fkt_free(scores);
    fkt_free(work);
    return st;
}

fkt_status fkt_head_posterior(const struct fkt_head *h, const double *w, size_t n, double temperature, double *p)
{
    double *work = NULL;
    fkt_status st;
    if (!(temperature > 0) || !isfinite(temperature))
        return fkt_fail(FKT_E_ARG, "the temperature of a posterior is %g: it must be above 0", temperature);
    FKT_TRY(fkt_alloc(&work, h->length));
    for (size_t r = 0; r < n; r++) {
        double *row = p + r * h->classes, top, sum = 0;
        uint32_t best;
        FKT_TRY(judge(h, w, r, row, work, &best));
        top = row[best];
        for (uint32_t k = 0; k < h->classes; k++) sum += row[k] = exp((row[k] - top) / temperature);
        if (!isfinite(sum)) { /* scores of huge vectors overflow */
            st = fkt_fail(FKT_E_NUMERIC, "the scores of vector %zu are not finite", r);
            goto out;
        }
        for (uint32_t k = 0; k < h->classes; k++) row[k] /= sum;
    }
out:
    fkt_free(work);
    return st;
}
