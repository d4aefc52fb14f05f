/* SPDX-License-Identifier: Apache-2.0 */
/* vector.c - arithmetic on flat vectors of parameters.
 *
 * Every number is computed in double and rounded once to float; sums run in an order that the length alone decides, so
 * that a run repeats to the bit. Cost: memory bandwidth. */
#include "learning/baselines/vector.h"

#include <math.h>
#include <string.h>

void fkt_vector_step(float *x, const float *g, size_t n, double rate)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)((double)x[i] - rate * (double)g[i]);
}

void fkt_vector_proximal_step(float *x, const float *g, const float *anchor, size_t n, double rate, double pull)
{
    for (size_t i = 0; i < n; i++) {
        const double slope = (double)g[i] + pull * ((double)x[i] - (double)anchor[i]);
        x[i] = (float)((double)x[i] - rate * slope);
    }
}

void fkt_vector_mix(float *x, const float *y, size_t n, double part)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)((1 - part) * (double)x[i] + part * (double)y[i]);
}

/* One sum would wait for its last addition at each number: four times as long. */
enum { LANES = 8 };

static double add_lanes(const double *lane)
{
    double sum = 0;
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

double fkt_vector_dot(const float *x, const float *y, size_t n)
{
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j] += (double)x[i + j] * (double)y[i + j];
    for (; i < n; i++) lane[0] += (double)x[i] * (double)y[i];
    return add_lanes(lane);
}

double fkt_vector_distance2(const float *x, const float *y, size_t n)
{
    double lane[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)y[i];
        lane[i % LANES] += d * d;
    }
    return add_lanes(lane);
}

void fkt_vector_add(double *sum, const float *x, size_t n, double weight)
{
    for (size_t i = 0; i < n; i++) sum[i] += weight * (double)x[i];
}

void fkt_vector_from_sum(float *x, const double *sum, size_t n, double by)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)(sum[i] / by);
}

void fkt_vector_combine(float *out, const float *bank, size_t stride, size_t n, const double *weight, uint32_t rows,
                        double *sum)
{
    memset(sum, 0, n * sizeof *sum);
    for (uint32_t k = 0; k < rows; k++)
        if (weight[k] != 0) fkt_vector_add(sum, bank + k * stride, n, weight[k]);
    fkt_vector_from_sum(out, sum, n, 1);
}

int fkt_vector_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}
