/* SPDX-License-Identifier: Apache-2.0 */
/* fedfomo.c - FedFomo: a site moves towards those models of others that do better on its own validation records.
 * Source: Zhang et al., "Personalized federated learning with first order model optimization", ICLR 2021, equations 2
 * to 4. Let b_i be the model with which site i began the round before, and w_j the models that all sites trained in it:
 *
 *   v_j = (L_i(b_i) - L_i(w_j)) / |w_j - b_i|,   p_j = max(v_j, 0) / sum of max(v, 0)
 *   b_i <- b_i + sum over j of p_j (w_j - b_i);  then w_i <- b_i, trained
 *
 * L_i is the loss on fedfomo_validation of the site's training records, which it does not train on. Where no model is
 * better, b_i stays, as the equations say: the site's own training of that round is then lost too. Where we differ:
 * each site sees the models of all others, so there is no choice of M of them by affinity. Statistics of batch norms
 * are mixed as the parameters are: weights are at least 0 and add up to 1. The personal model is w_i.
 *
 * Cost: N^2 evaluations of the validation records a round, and 2 N models. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"

#include <math.h>
#include <string.h>

void fkt_fedfomo_weights(double *weight, double own, const double *loss, const double *distance, uint32_t n)
{
    double all = 0;
    for (uint32_t j = 0; j < n; j++) {
        const double v = distance[j] > 0 ? (own - loss[j]) / distance[j] : distance[j]; /* a NaN stays one */
        weight[j] = v <= 0 ? 0 : v;
        all += weight[j];
    }
    for (uint32_t j = 0; j < n && !(all == 0); j++) weight[j] /= all;
}

static size_t fedfomo_numbers(const struct fkt_problem *p)
{
    (void)p;
    return 2;
}

/* b_i in `other`, w_j in `model`, both of the round before. */
static fkt_status choose(struct fkt_rounds *r, uint32_t site)
{
    const struct fkt_problem *p = r->p;
    const uint32_t n = p->sites;
    double *loss = r->number, *distance = loss + n, *weight = distance + n, own = NAN, all = 0;
    float *b = fkt_rounds_other(r, site);
    fkt_status st;
    FKT_TRY(p->validate(p->self, site, b, &own));
    for (uint32_t j = 0; j < n; j++) {
        FKT_TRY(p->validate(p->self, site, fkt_rounds_model(r, j), &loss[j]));
        distance[j] = sqrt(fkt_vector_distance2(fkt_rounds_model(r, j), b, p->parameters));
    }
    fkt_fedfomo_weights(weight, own, loss, distance, n);
    for (uint32_t j = 0; j < n; j++) all += weight[j];
    if (!(all == 0)) fkt_vector_combine(b, r->model, p->state, p->state, weight, n, r->sum);
out:
    return st;
}

static fkt_status fedfomo_round(struct fkt_rounds *r, uint32_t t)
{
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < r->p->sites && t > 0; i++) FKT_TRY(choose(r, i));
    for (uint32_t i = 0; i < r->p->sites; i++) {
        float *w = fkt_rounds_model(r, i);
        memcpy(w, fkt_rounds_other(r, i), r->p->state * sizeof *w);
        FKT_TRY(fkt_rounds_train(r, i, t, w, NULL, 0));
        FKT_TRY(fkt_rounds_end(r, i, t, w));
    }
out:
    return st;
}

const struct fkt_method fkt_method_fedfomo = {.name = "fedfomo",
                                              .source = "Zhang et al., ICLR 2021",
                                              .models = 2,
                                              .validates = 1,
                                              .numbers = fedfomo_numbers,
                                              .round = fedfomo_round,
                                              .personal = fkt_local_personal};
