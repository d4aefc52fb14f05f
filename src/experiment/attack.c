/* SPDX-License-Identifier: Apache-2.0 */
/* attack.c - likelihood-ratio membership inference, and the ROC of an attack.
 *
 * Source: Carlini et al., "Membership Inference Attacks From First Principles", 2022 (LiRA, online). Each trial is
 * attacked in turn with all others as shadows: sums over all trials less the attacked one. The ROC is computed from
 * ranks: the area is the probability that a member has a higher ratio than a non-member, ties counted half. */
#include "experiment/attack.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

struct side { /* of one record: scores of the trials with it, or without */
    double n, sum, square;
};

static double log_density(const struct side *s, double x)
{
    const double mean = s->sum / s->n, variance = fmax((s->square - s->n * mean * mean) / (s->n - 1), 1e-12);
    return -0.5 * ((x - mean) * (x - mean) / variance + log(variance));
}

void fkt_lira(double *ratio, const double *score, const uint8_t *member, size_t trials, size_t records)
{
    for (size_t r = 0; r < records; r++) {
        struct side side[2] = {{0, 0, 0}, {0, 0, 0}};
        for (size_t t = 0; t < trials; t++) {
            struct side *s = &side[member[t * records + r]];
            const double x = score[t * records + r];
            s->n++;
            s->sum += x;
            s->square += x * x;
        }
        for (size_t t = 0; t < trials; t++) {
            struct side rest[2] = {side[0], side[1]}, *own = &rest[member[t * records + r]];
            const double x = score[t * records + r];
            own->n--;
            own->sum -= x;
            own->square -= x * x;
            if (rest[0].n < 2 || rest[1].n < 2) continue;
            ratio[t * records + r] += log_density(&rest[1], x) - log_density(&rest[0], x);
        }
    }
}

static int descending(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;
    return a > b ? -1 : a < b;
}

/* How many of a sorted list are above v. */
static size_t above(const double *list, size_t n, double v)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t middle = (lo + hi) / 2;
        if (list[middle] > v) lo = middle + 1;
        else hi = middle;
    }
    return lo;
}

static size_t at_least(const double *list, size_t n, double v)
{
    size_t lo = above(list, n, v);
    while (lo < n && list[lo] == v) lo++;
    return lo;
}

fkt_status fkt_roc(const double *ratio, const uint8_t *member, size_t n, const double *false_rate, double *true_rate,
                   size_t n_rates, double *area)
{
    double *list[2] = {NULL, NULL};
    size_t count[2] = {0, 0};
    fkt_status st;
    FKT_TRY(fkt_alloc(&list[0], n));
    FKT_TRY(fkt_alloc(&list[1], n));
    for (size_t i = 0; i < n; i++) {
        if (isnan(ratio[i])) {
            st = fkt_fail(FKT_E_NUMERIC, "score %zu of an attack is not a number", i);
            goto out;
        }
        list[member[i] != 0][count[member[i] != 0]++] = ratio[i];
    }
    if (!count[0] || !count[1]) {
        st = fkt_fail(FKT_E_ARG, "a ROC needs members and others");
        goto out;
    }
    for (int k = 0; k < 2; k++) qsort(list[k], count[k], sizeof *list[k], descending);
    for (size_t i = 0; i < n_rates; i++) { /* the threshold is the first false score that must not pass */
        const size_t allowed = (size_t)floor(false_rate[i] * (double)count[0]);
        true_rate[i] = allowed >= count[0] ? 1 : (double)above(list[1], count[1], list[0][allowed]) / (double)count[1];
    }
    *area = 0;
    for (size_t i = 0; i < count[0]; i++)
        *area += 0.5 *
                 ((double)above(list[1], count[1], list[0][i]) + (double)at_least(list[1], count[1], list[0][i])) /
                 ((double)count[0] * (double)count[1]);
out:
    fkt_free(list[0]);
    fkt_free(list[1]);
    return st;
}

double fkt_log_odds(const double *score, size_t classes, size_t label)
{
    double top = -INFINITY, sum = 0;
    for (size_t k = 0; k < classes; k++)
        if (k != label) top = fmax(top, score[k]);
    for (size_t k = 0; k < classes; k++)
        if (k != label) sum += exp(score[k] - top);
    return score[label] - top - log(sum);
}

double fkt_gdp_allowed(double mu, double rate)
{
    double lo = -40, hi = 40;
    if (rate >= 1) return 1;
    for (int i = 0; i < 100; i++) {
        const double z = (lo + hi) / 2;
        if (erfc(z / sqrt(2)) / 2 > rate) lo = z;
        else hi = z;
    }
    return erfc((lo - mu) / sqrt(2)) / 2;
}
