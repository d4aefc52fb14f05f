/* SPDX-License-Identifier: Apache-2.0 */
/* heads.h - the contents of a head. Nearest mean and LDA are linear, QDA and RDA are quadratic:
 *
 *   linear      score_k(w) = bias_k + weight_k . w
 *   quadratic   score_k(w) = bias_k - sum_p |(w_p - mean_kp) map_kp|^2 / 2
 *
 * p runs over the parts of w: map_k is block-diagonal, and only its blocks are stored.
 */
#ifndef FKT_CLASSIFIER_HEADS_H
#define FKT_CLASSIFIER_HEADS_H

#include "fedkt/classifier.h"
#include "fedkt/layout.h"

struct fkt_head_part {
    uint32_t offset, length; /* in the record vector */
};

struct fkt_head {
    enum fkt_head_kind kind;
    uint32_t classes, length; /* length: sum over parts */
    uint32_t parts;
    struct fkt_head_part part[FKT_HEAD_PARTS_MAX];
    char task[65], release[65]; /* SHA-256 of task and release; "" when unknown */
    char not_private[64];       /* the reason; "": it is private */
    char **names;               /* (K) of the classes; NULL when unknown */
    double *bias;               /* (K) */
    double *weight;             /* (K, m) linear heads; NULL in a quadratic one */
    double *mean;               /* (K, m) quadratic heads; NULL in a linear one */
    double *map; /* quadratic heads: part after part, (K, m_p, m_p); map_kp map_kp^T is the inverse of the covariance of
                  * part p in class k; NULL in a linear one */
};

/* Allocates a head of this kind, all zero. */
FKT_MUST_USE fkt_status fkt_head_new(struct fkt_head **out, enum fkt_head_kind kind, uint32_t classes,
                                     const struct fkt_head_part *part, uint32_t parts);
/* Scores (K) of one w (m), the highest is the prediction; work (m) is scratch. w is not checked. */
void fkt_head_scores(const struct fkt_head *h, const double *w, double *scores, double *work);

/* head_file.c: a head inside another file, its tensors named after `prefix` (at most 8 characters); format is the
 * caller's. */
struct fkt_st_writer;
struct fkt_safetensors;
FKT_MUST_USE fkt_status fkt_head_write(const struct fkt_head *h, struct fkt_st_writer *w, const char *prefix);
FKT_MUST_USE fkt_status fkt_head_read(struct fkt_head **out, const struct fkt_safetensors *s, const char *path,
                                      const char *prefix);

#endif
