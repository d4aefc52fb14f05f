/* SPDX-License-Identifier: Apache-2.0 */
/* linalg.h - the only calls of BLAS and LAPACK. Row-major, double. Each runs on one thread, whatever the host has set
 * for BLAS, so that results do not depend on it; callers parallelise over classes. */
#ifndef FKT_TENSOR_LINALG_H
#define FKT_TENSOR_LINALG_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* upper triangle of c (m,m) += x^T x, x (n,m). The lower triangle of c is not touched. */
void fkt_syrk(double *c, const double *x, size_t n, size_t m);
/* c (n,k) = a (n,m) b (m,k) */
void fkt_gemm(double *c, const double *a, const double *b, size_t n, size_t m, size_t k);
/* The same in float: what a processor can do at most, for `fedkt bench`. */
void fkt_sgemm(float *c, const float *a, const float *b, size_t n, size_t m, size_t k);
/* c (n,k) = a (n,m) b^T, b (k,m) */
void fkt_gemm_nt(double *c, const double *a, const double *b, size_t n, size_t m, size_t k);
/* Symmetric a (m,m), not changed: row i of `vectors` (m,m) is the eigenvector of values[i], ascending. NaN in a:
 * FKT_E_NUMERIC. */
FKT_MUST_USE fkt_status fkt_eigen(double *values, double *vectors, const double *a, size_t m);

#endif
