/* SPDX-License-Identifier: Apache-2.0 */
/* loss.c - softmax cross-entropy, with smoothed labels (Szegedy et al., CVPR 2016, section 7) and with a teacher
 * (Hinton, Vinyals, Dean 2015, "Distilling the knowledge in a neural network").
 *
 * With m the largest number of row z: log softmax(z)_j = z_j - m - log sum exp(z - m), which never overflows. For one
 * row, with p = softmax(z), q = softmax(z / T), s = softmax(t / T):
 *
 *   loss = (1 - share) sum_j -target_j log p_j + share T^2 sum_j s_j (log s_j - log q_j)
 *   d/dz = (1 - share) (p - target)            + share T (q - s)
 *
 * since both targets sum to one. The factor T^2 makes the size of the teacher's gradients independent of T (Hinton et
 * al., section 2). PyTorch has the same parts as cross_entropy(label_smoothing) and kl_div(batchmean). */
#include "nn/loss.h"

#include <inttypes.h>
#include <math.h>

/* log sum exp(z / t): subtract it from z / t for the log softmax. */
static double log_sum(const float *z, size_t classes, double t)
{
    double most = -INFINITY, sum = 0;
    for (size_t j = 0; j < classes; j++) most = fmax(most, (double)z[j] / t);
    for (size_t j = 0; j < classes; j++) sum += exp((double)z[j] / t - most);
    return most + log(sum);
}

/* One image of a batch. */
struct row {
    const float *z, *teacher; /* (classes) */
    uint32_t label;
    size_t classes;
};

/* The row's loss; dz (may be NULL) gets its gradient times `scale`. Logits are finite, so logarithms are finite; a
 * target of 0 contributes 0. */
static double row_loss(const struct fkt_loss *k, const struct row *r, double scale, float *dz)
{
    const double t = k->temperature, rest = k->smoothing / (double)r->classes;
    const double sum_p = log_sum(r->z, r->classes, 1), sum_q = k->share > 0 ? log_sum(r->z, r->classes, t) : 0,
                 sum_s = k->share > 0 ? log_sum(r->teacher, r->classes, t) : 0;
    double loss = 0;
    for (size_t j = 0; j < r->classes; j++) {
        double log_p = (double)r->z[j] - sum_p, target = rest + (j == r->label ? 1 - k->smoothing : 0);
        double slope = (1 - k->share) * (exp(log_p) - target);
        loss -= (1 - k->share) * target * log_p;
        if (k->share > 0) {
            double log_q = (double)r->z[j] / t - sum_q, log_s = (double)r->teacher[j] / t - sum_s, s = exp(log_s);
            loss += k->share * t * t * s * (log_s - log_q);
            slope += k->share * t * (exp(log_q) - s);
        }
        if (dz) dz[j] = (float)(slope * scale);
    }
    return loss;
}

static int all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

static int is_hit(const struct row *r)
{
    size_t best = 0;
    for (size_t j = 1; j < r->classes; j++)
        if (r->z[j] > r->z[best]) best = j;
    return best == r->label;
}

fkt_status fkt_loss_check(const struct fkt_loss *k, int has_teacher)
{
    if (!(k->smoothing >= 0 && k->smoothing <= 1))
        return fkt_fail(FKT_E_ARG, "the smoothing of labels is 0 to 1, not %g", k->smoothing);
    if (!(k->share >= 0 && k->share <= 1))
        return fkt_fail(FKT_E_ARG, "the teacher's share of the loss is 0 to 1, not %g", k->share);
    if (k->share > 0 && !has_teacher)
        return fkt_fail(FKT_E_ARG, "the teacher has a share of the loss, but there is no teacher");
    if (k->share > 0 && !(k->temperature > 0 && isfinite(k->temperature)))
        return fkt_fail(FKT_E_ARG, "a teacher's temperature is above 0, not %g", k->temperature);
    return FKT_OK;
}

static fkt_status check_row(const struct fkt_loss *k, const struct row *r, size_t i)
{
    if (r->label >= r->classes)
        return fkt_fail(FKT_E_ARG, "label %" PRIu32 " of row %zu is outside the %zu classes", r->label, i, r->classes);
    if (!all_finite(r->z, r->classes)) return fkt_fail(FKT_E_NUMERIC, "the logits of row %zu are not finite", i);
    if (k->share > 0 && !all_finite(r->teacher, r->classes))
        return fkt_fail(FKT_E_NUMERIC, "the teacher's logits of row %zu are not finite", i);
    return FKT_OK;
}

fkt_status fkt_loss_softmax(const struct fkt_loss *k, const float *z, const uint32_t *label, const float *teacher,
                            size_t n, size_t classes, double *loss, float *dz, size_t *hits)
{
    double sum = 0;
    size_t right = 0;
    fkt_status st;
    *loss = NAN;
    if (!n || !classes) return fkt_fail(FKT_E_ARG, "a loss needs at least one image and one class");
    FKT_TRY(fkt_loss_check(k, teacher != NULL));
    for (size_t i = 0; i < n; i++) {
        struct row r = {z + i * classes, k->share > 0 ? teacher + i * classes : NULL, label[i], classes};
        FKT_TRY(check_row(k, &r, i));
        sum += row_loss(k, &r, 1 / (double)n, dz ? dz + i * classes : NULL);
        right += (size_t)is_hit(&r);
    }
    *loss = sum / (double)n;
    if (hits) *hits = right;
out:
    return st;
}

void fkt_softmax(const float *z, size_t n, size_t classes, float *p)
{
    for (size_t i = 0; i < n; i++, z += classes, p += classes) {
        double sum = log_sum(z, classes, 1);
        for (size_t j = 0; j < classes; j++) p[j] = (float)exp((double)z[j] - sum);
    }
}
