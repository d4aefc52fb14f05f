/* SPDX-License-Identifier: Apache-2.0 */
/* fedamp.c - FedAMP: each site is pulled towards a mixture of models in which those like its own weigh most.
 * Source: Huang et al., "Personalized cross-silo federated learning on non-IID data", AAAI 2021: algorithm 1, and
 * HeurFedAMP, its form for deep networks. In a round, with all models w_j of the round before:
 *
 *   u_i = sum over j of x_ij w_j,   w_i <- argmin f_i(w) + (lambda / (2 alpha)) |w - u_i|^2, by local steps from w_i
 *   FedAMP       x_ij = alpha A'(|w_i - w_j|^2), A(d) = 1 - exp(-d / sigma); x_ii = 1 - sum of the others
 *   HeurFedAMP   x_ij = (1 - self) exp(sigma cos(w_i, w_j)) / sum over h != i of exp(sigma cos(w_i, w_h)); x_ii = self
 *
 * Where we differ: HeurFedAMP is the default, since between networks of 10^5 parameters and more every squared distance
 * is far above a sigma of 1 or 100, so that A' is 0 and FedAMP is local training; cosines are of all parameters; the
 * statistics of batch norms stay at the site. alpha is constant, where the proof lets it fall. If alpha is so large
 * that the others' weights exceed 1, they are scaled to 1: the proof asks for smaller ones.
 *
 * Cost: N^2 passes over the parameters a round. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"

#include <math.h>
#include <string.h>

void fkt_fedamp_weights(double *weight, const double *square, uint32_t n, uint32_t site, double alpha, double sigma)
{
    double others = 0;
    for (uint32_t j = 0; j < n; j++) {
        weight[j] = j == site ? 0 : alpha * exp(-square[j] / sigma) / sigma;
        others += weight[j];
    }
    for (uint32_t j = 0; j < n && others > 1; j++) weight[j] /= others;
    weight[site] = others > 1 ? 0 : 1 - others;
}

/* Relative to the largest cosine, so that no exponential overflows. */
void fkt_fedamp_weights_cosine(double *weight, const double *cosine, uint32_t n, uint32_t site, double self,
                               double sigma)
{
    double most = -1, all = 0;
    for (uint32_t j = 0; j < n; j++)
        if (j != site) most = fmax(most, cosine[j]);
    for (uint32_t j = 0; j < n; j++) {
        weight[j] = j == site ? 0 : exp(sigma * (cosine[j] - most));
        all += weight[j];
    }
    for (uint32_t j = 0; j < n && all > 0; j++) weight[j] *= (1 - self) / all;
    weight[site] = n > 1 ? self : 1;
}

static size_t fedamp_numbers(const struct fkt_problem *p) { return p->sites; }

/* number (N, N): squared distances, or cosines with the norms' squares on the diagonal before them. */
static void measure(struct fkt_rounds *r)
{
    const uint32_t n = r->p->sites;
    const size_t parameters = r->p->parameters;
    double *norm = r->number + (size_t)n * n;
    for (uint32_t i = 0; i < n; i++)
        norm[i] = sqrt(fkt_vector_dot(fkt_rounds_model(r, i), fkt_rounds_model(r, i), parameters));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++) {
            const float *a = fkt_rounds_model(r, i), *b = fkt_rounds_model(r, j);
            double d;
            if (!r->s->fedamp_cosine) d = fkt_vector_distance2(a, b, parameters);
            else d = norm[i] > 0 && norm[j] > 0 ? fkt_vector_dot(a, b, parameters) / (norm[i] * norm[j]) : 0;
            r->number[(size_t)i * n + j] = r->number[(size_t)j * n + i] = d;
        }
}

static fkt_status fedamp_round(struct fkt_rounds *r, uint32_t t)
{
    const struct fkt_baseline_settings *s = r->s;
    const uint32_t n = r->p->sites;
    double *weight = r->number + (size_t)n * n;
    fkt_status st = FKT_OK;
    measure(r);
    for (uint32_t i = 0; i < n; i++) {
        const double *row = r->number + (size_t)i * n;
        if (s->fedamp_cosine) fkt_fedamp_weights_cosine(weight, row, n, i, s->fedamp_self, s->fedamp_sigma);
        else fkt_fedamp_weights(weight, row, n, i, s->fedamp_alpha, s->fedamp_sigma);
        fkt_vector_combine(fkt_rounds_other(r, i), r->model, r->p->state, r->p->parameters, weight, n, r->sum);
    }
    for (uint32_t i = 0; i < n; i++) {
        float *w = fkt_rounds_model(r, i);
        FKT_TRY(fkt_rounds_train(r, i, t, w, fkt_rounds_other(r, i), s->fedamp_lambda / s->fedamp_alpha));
        FKT_TRY(fkt_rounds_end(r, i, t, w));
    }
out:
    return st;
}

const struct fkt_method fkt_method_fedamp = {.name = "fedamp",
                                             .source = "Huang et al., AAAI 2021",
                                             .models = 2,
                                             .numbers = fedamp_numbers,
                                             .round = fedamp_round,
                                             .personal = fkt_local_personal};
