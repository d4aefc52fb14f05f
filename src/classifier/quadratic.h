/* SPDX-License-Identifier: Apache-2.0 */
/* quadratic.h - fitting the quadratic head: each class covariance shrunk towards the pooled one, entry by entry. */
#ifndef FKT_CLASSIFIER_QUADRATIC_H
#define FKT_CLASSIFIER_QUADRATIC_H

#include "classifier/heads.h"
#include "classifier/statistics.h"

/* Fills mean, map and bias of a quadratic head that is all zero. */
FKT_MUST_USE fkt_status fkt_quadratic_fit(struct fkt_head *h, const struct fkt_ready *r,
                                          const struct fkt_class_statistics *s);

#endif
