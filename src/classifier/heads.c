/* SPDX-License-Identifier: Apache-2.0 */
/* heads.c - closed-form classifiers from class Gaussians that carry known noise: nearest mean, LDA, QDA.
 * docs/method.md 1.7.
 *
 *   nearest mean   the class whose mean is nearest in expectation:         |w - mean|^2 + m doubt
 *   LDA            the same in the metric of the pooled covariance P:      (w - mean)^T P^-1 (w - mean) + doubt tr P^-1
 *   QDA            the most likely class Gaussian:                         (w - mean)^T C^-1 (w - mean) + log det C
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

uint32_t fkt_head_classes(const struct fkt_head *h) { return h->classes; }
uint32_t fkt_head_length(const struct fkt_head *h) { return h->length; }

fkt_status fkt_head_new(struct fkt_head **out, enum fkt_head_kind kind, uint32_t classes, uint32_t length)
{
    struct fkt_head *h = NULL;
    size_t k = classes, m = length;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&h, 1));
    h->kind = kind;
    h->classes = classes;
    h->length = length;
    FKT_TRY(fkt_alloc(&h->bias, k));
    if (kind == FKT_HEAD_QDA) {
        FKT_TRY(fkt_alloc(&h->mean, k * m));
        FKT_TRY(fkt_alloc(&h->map, k * m * m)); /* m <= 2^14, k < 2^32: the product fits, the bytes are checked */
    } else FKT_TRY(fkt_alloc(&h->weight, k * m));
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
};
_Static_assert(sizeof table / sizeof *table == FKT_HEAD_KINDS, "each kind of head has a row");

static int known(enum fkt_head_kind kind) { return (int)kind >= 0 && (size_t)kind < FKT_HEAD_KINDS; }

int fkt_head_kinds(void) { return FKT_HEAD_KINDS; }
const char *fkt_head_name(enum fkt_head_kind kind) { return known(kind) ? table[kind].name : "unknown head"; }
const char *fkt_head_title(enum fkt_head_kind kind) { return known(kind) ? table[kind].title : "unknown head"; }

fkt_status fkt_head_fit(struct fkt_head **out, enum fkt_head_kind kind, const struct fkt_class_statistics *s)
{
    struct fkt_ready r = {0};
    struct fkt_head *h = NULL;
    fkt_status st;
    *out = NULL;
    if (!known(kind)) return fkt_fail(FKT_E_ARG, "unknown kind of head %d", (int)kind);
    FKT_TRY(fkt_ready_make(&r, s));
    FKT_TRY(fkt_head_new(&h, kind, s->classes, s->length));
    FKT_TRY(table[kind].fit(h, &r, s));
    *out = h;
    h = NULL;
out:
    fkt_head_free(h);
    fkt_ready_clear(&r);
    return st;
}

void fkt_head_scores(const struct fkt_head *h, const double *w, double *scores, double *work)
{
    size_t m = h->length;
    for (size_t k = 0; k < h->classes; k++) {
        double sum = 0;
        if (h->kind != FKT_HEAD_QDA) {
            for (size_t i = 0; i < m; i++) sum += h->weight[k * m + i] * w[i];
            scores[k] = h->bias[k] + sum;
            continue;
        }
        memset(work, 0, m * sizeof *work);
        for (size_t j = 0; j < m; j++) { /* no sum across i in the inner loop, so that the compiler can vectorise it */
            const double *map = h->map + (k * m + j) * m;
            double x = w[j] - h->mean[k * m + j];
            for (size_t i = 0; i < m; i++) work[i] += x * map[i];
        }
        for (size_t i = 0; i < m; i++) sum += work[i] * work[i];
        scores[k] = h->bias[k] - sum / 2;
    }
}

fkt_status fkt_head_predict(const struct fkt_head *h, const double *w, size_t n, uint32_t *label)
{
    size_t m = h->length;
    double *scores = NULL, *work = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&scores, h->classes));
    FKT_TRY(fkt_alloc(&work, m));
    for (size_t r = 0; r < n; r++) {
        uint32_t best = 0;
        for (size_t i = 0; i < m; i++)
            if (!isfinite(w[r * m + i])) {
                st = fkt_fail(FKT_E_NUMERIC, "vector %zu is not finite at coordinate %zu", r, i);
                goto out;
            }
        fkt_head_scores(h, w + r * m, scores, work);
        for (uint32_t k = 1; k < h->classes; k++)
            if (scores[k] > scores[best]) best = k;
        label[r] = best;
    }
out:
    fkt_free(scores);
    fkt_free(work);
    return st;
}
