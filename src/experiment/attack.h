/* SPDX-License-Identifier: Apache-2.0 */
/* attack.h - likelihood-ratio membership inference, and the ROC of an attack. */
#ifndef FKT_EXPERIMENT_ATTACK_H
#define FKT_EXPERIMENT_ATTACK_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* score (trials, records), member (trials, records) 0 or 1: for each trial the log likelihood ratio of "in" against
 * "out", from Gaussians fitted to the record's scores in the other trials, is added to ratio (trials, records). 0 where
 * a record was in, or out, in fewer than two of those. Several scores, taken as independent: a call for each. */
void fkt_lira(double *ratio, const double *score, const uint8_t *member, size_t trials, size_t records);

/* Area under the ROC of `ratio` (n) against `member` (n), and the true positive rate at each false positive rate, of
 * which at most so many are wrong: ties count as missed. FKT_E_NUMERIC on NaN, FKT_E_ARG without members or
 * non-members. */
FKT_MUST_USE fkt_status fkt_roc(const double *ratio, const uint8_t *member, size_t n, const double *false_rate,
                                double *true_rate, size_t n_rates, double *area);

/* log(p / (1 - p)) of the label, p the softmax of the scores of at least two classes, without rounding p to 1. */
double fkt_log_odds(const double *score, size_t classes, size_t label);

/* The largest true positive rate that mu-GDP allows at a false positive rate (Dong, Roth, Su 2022): Phi(mu - z), z the
 * upper quantile of that rate, by bisection. */
double fkt_gdp_allowed(double mu, double rate);

#endif
