/* SPDX-License-Identifier: Apache-2.0 */
/* vector.h - arithmetic on flat vectors of parameters: floats in, doubles inside. */
#ifndef FKT_LEARNING_BASELINES_VECTOR_H
#define FKT_LEARNING_BASELINES_VECTOR_H

#include <stddef.h>
#include <stdint.h>

/* x -= rate g */
void fkt_vector_step(float *x, const float *g, size_t n, double rate);
/* x -= rate (g + pull (x - anchor)): a step on a loss with (pull / 2) |x - anchor|^2 added */
void fkt_vector_proximal_step(float *x, const float *g, const float *anchor, size_t n, double rate, double pull);
/* x = (1 - part) x + part y */
void fkt_vector_mix(float *x, const float *y, size_t n, double part);
double fkt_vector_dot(const float *x, const float *y, size_t n);
double fkt_vector_distance2(const float *x, const float *y, size_t n); /* |x - y|^2 */
/* sum += weight x; and x = sum / by */
void fkt_vector_add(double *sum, const float *x, size_t n, double weight);
void fkt_vector_from_sum(float *x, const double *sum, size_t n, double by);
/* out = sum over k of weight[k] bank[k], rows of `stride` floats; the sum is made in `sum` (n) */
void fkt_vector_combine(float *out, const float *bank, size_t stride, size_t n, const double *weight, uint32_t rows,
                        double *sum);
int fkt_vector_finite(const float *x, size_t n); /* 1: all of them */

#endif
