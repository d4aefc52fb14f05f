/* SPDX-License-Identifier: Apache-2.0 */
/* heads.h - what a head holds. Nearest mean and LDA are linear, QDA is quadratic:
 *
 *   linear      score_k(w) = bias_k + weight_k . w
 *   quadratic   score_k(w) = bias_k - |(w - mean_k) map_k|^2 / 2
 */
#ifndef FKT_CLASSIFIER_HEADS_H
#define FKT_CLASSIFIER_HEADS_H

#include "fedkt/classifier.h"

struct fkt_head {
    enum fkt_head_kind kind;
    uint32_t classes, length;
    char task[65], release[65]; /* SHA-256 of where it comes from; "" when not said */
    char not_private[64];       /* why it is not; "": it is */
    char **names;               /* (K) of the classes; NULL when not said */
    double *bias;               /* (K) */
    double *weight;             /* (K, m) linear heads; NULL in a quadratic one */
    double *mean;               /* (K, m) quadratic heads; NULL in a linear one */
    double *map; /* (K, m, m) quadratic heads: map_k map_k^T is the inverse of the covariance; NULL in a linear one */
};

#define FKT_HEAD_LENGTH_MAX 16384U

/* Room for a head of this kind, all zero; gives *out. */
FKT_MUST_USE fkt_status fkt_head_new(struct fkt_head **out, enum fkt_head_kind kind, uint32_t classes, uint32_t length);
/* Scores (K) of one w (m), highest wins; work (m) is scratch. w is not checked. */
void fkt_head_scores(const struct fkt_head *h, const double *w, double *scores, double *work);

#endif
