/* SPDX-License-Identifier: Apache-2.0 */
/* heads.h - the contents of a head. Nearest mean and LDA are linear, QDA is quadratic:
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
    char task[65], release[65]; /* SHA-256 of task and release; "" when unknown */
    char not_private[64];       /* the reason; "": it is private */
    char **names;               /* (K) of the classes; NULL when unknown */
    double *bias;               /* (K) */
    double *weight;             /* (K, m) linear heads; NULL in a quadratic one */
    double *mean;               /* (K, m) quadratic heads; NULL in a linear one */
    double *map; /* (K, m, m) quadratic heads: map_k map_k^T is the inverse of the covariance; NULL in a linear one */
};

#define FKT_HEAD_LENGTH_MAX 16384U

/* Allocates a head of this kind, all zero. */
FKT_MUST_USE fkt_status fkt_head_new(struct fkt_head **out, enum fkt_head_kind kind, uint32_t classes, uint32_t length);
/* Scores (K) of one w (m), the highest is the prediction; work (m) is scratch. w is not checked. */
void fkt_head_scores(const struct fkt_head *h, const double *w, double *scores, double *work);

#endif
