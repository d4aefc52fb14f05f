/* SPDX-License-Identifier: Apache-2.0 */
/* statistics.h - class statistics ready for a head: means shrunk against their noise, covariance pooled and floored. */
#ifndef FKT_CLASSIFIER_STATISTICS_H
#define FKT_CLASSIFIER_STATISTICS_H

#include "fedkt/classifier.h"

struct fkt_ready {
    double *mean;   /* (K, m) shrunk towards the grand mean */
    double *doubt;  /* (K) remaining variance in each coordinate of mean */
    double *plain;  /* (m) eigenvalues of the covariance within classes, weighted by counts; ascending, maybe below 0 */
    double *values; /* (m) the same, none below the floor of that covariance's noise, nor below tiny */
    double *vectors; /* (m, m) rows are its eigenvectors */
    double tiny;     /* > 0: lower bound of all eigenvalues */
};

/* Checks every number of s (FKT_E_ARG, FKT_E_NUMERIC) and fills *r, to be cleared also after a failure. */
FKT_MUST_USE fkt_status fkt_ready_make(struct fkt_ready *r, const struct fkt_class_statistics *s);
void fkt_ready_clear(struct fkt_ready *r);

#endif
