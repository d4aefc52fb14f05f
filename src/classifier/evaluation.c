/* SPDX-License-Identifier: Apache-2.0 */
/* evaluation.c - accuracy and calibration of a classifier.
 *
 * Expected calibration error with 15 equal bins: Guo et al., On calibration of modern neural networks, ICML 2017,
 * equation 3. Bin i holds confidences in (i/15, (i+1)/15], as their I_m; the error is the mean over images of
 * |hits - confidence| by bin. Confidence is the largest of softmax(logits), in double. Of equal logits the first counts
 * as the guess. A batch with a row that is not finite is refused before anything is counted: a NaN would fail every
 * comparison and look like a guess of class 0. */
#include "fedkt/learn.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

fkt_status fkt_evaluation_init(struct fkt_evaluation *j, uint32_t classes)
{
    memset(j, 0, sizeof *j);
    return fkt_score_init(&j->score, classes);
}

void fkt_evaluation_clear(struct fkt_evaluation *j)
{
    fkt_score_clear(&j->score);
    memset(j, 0, sizeof *j);
}

static uint32_t largest(const float *z, uint32_t classes)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < classes; k++)
        if (z[k] > z[best]) best = k;
    return best;
}

static int bin_of(double confidence)
{
    int bin = (int)ceil(confidence * FKT_CONFIDENCE_BINS) - 1;
    return bin < 0 ? 0 : bin >= FKT_CONFIDENCE_BINS ? FKT_CONFIDENCE_BINS - 1 : bin;
}

static void count_one(struct fkt_evaluation *j, const float *z, uint32_t label, uint32_t guess)
{
    double sum = 0, confidence;
    int bin;
    for (uint32_t k = 0; k < j->score.classes; k++) sum += exp((double)z[k] - z[guess]);
    confidence = 1 / sum;
    bin = bin_of(confidence);
    j->count[bin]++;
    j->hit[bin] += label == guess;
    j->confidence[bin] += confidence;
    j->loss += log(sum) + ((double)z[guess] - z[label]);
}

fkt_status fkt_evaluation_add(struct fkt_evaluation *j, const float *logits, const uint32_t *label, size_t n)
{
    const uint32_t classes = j->score.classes;
    uint32_t *guess = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&guess, n));
    for (size_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < classes; k++)
            if (!isfinite(logits[i * classes + k]))
                FKT_TRY(fkt_fail(FKT_E_NUMERIC, "the logit of image %zu for class %u is not finite", i, k));
        guess[i] = largest(logits + i * classes, classes);
    }
    FKT_TRY(fkt_score_add(&j->score, label, guess, n));
    for (size_t i = 0; i < n; i++) count_one(j, logits + i * classes, label[i], guess[i]);
out:
    fkt_free(guess);
    return st;
}

double fkt_evaluation_accuracy(const struct fkt_evaluation *j) { return fkt_score_accuracy(&j->score); }

static uint64_t total(const struct fkt_evaluation *j)
{
    uint64_t sum = 0;
    for (int i = 0; i < FKT_CONFIDENCE_BINS; i++) sum += j->count[i];
    return sum;
}

double fkt_evaluation_loss(const struct fkt_evaluation *j) { return total(j) ? j->loss / (double)total(j) : NAN; }

double fkt_evaluation_calibration_error(const struct fkt_evaluation *j)
{
    double sum = 0;
    for (int i = 0; i < FKT_CONFIDENCE_BINS; i++) sum += fabs((double)j->hit[i] - j->confidence[i]);
    return total(j) ? sum / (double)total(j) : NAN;
}
