/* SPDX-License-Identifier: Apache-2.0 */
/* average.h - the weighted mean of models of one shape, added one after the other. */
#ifndef FKT_CLASSIFIER_AVERAGE_H
#define FKT_CLASSIFIER_AVERAGE_H

#include "fedkt/learn.h"

struct fkt_model_average;
/* An empty mean of models shaped like `like`, which is copied. Free *out with fkt_model_average_free. */
FKT_MUST_USE fkt_status fkt_model_average_new(struct fkt_model_average **out, const struct fkt_model *like);
void fkt_model_average_free(struct fkt_model_average *a);
/* Borrows m. FKT_E_MISMATCH names the first tensor that has another shape, FKT_E_NUMERIC one that is not finite. */
FKT_MUST_USE fkt_status fkt_model_average_add(struct fkt_model_average *a, const struct fkt_model *m, uint64_t weight);
/* The mean so far, with class names, normalisation and origin of `like`. FKT_E_STATE when all weights so
 * far were 0. */
FKT_MUST_USE fkt_status fkt_model_average_model(const struct fkt_model_average *a, struct fkt_model **out);

#endif
