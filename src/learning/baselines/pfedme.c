/* SPDX-License-Identifier: Apache-2.0 */
/* pfedme.c - pFedMe: personal models that a Moreau envelope ties to the common one.
 * Source: Dinh, Tran and Nguyen, "Personalized federated learning with Moreau envelopes", NeurIPS 2020, algorithm 1.
 * For each batch D of a round at a site, which begins with its copy w_i = w of the common model:
 *
 *   theta ~ argmin f(theta; D) + (lambda / 2) |theta - w_i|^2     by K gradient steps of rate pfedme_rate
 *   w_i   <- w_i - eta lambda (w_i - theta)                       eta: the rate of local steps
 *
 * and the server takes w <- (1 - beta) w + beta mean of w_i. theta goes on from one batch to the next, as in the
 * authors' program, and begins at w in each round. The personal model is the last theta. We weight the mean by records;
 * the paper weights equally. Statistics of batch norms are those that theta has seen.
 *
 * Cost: K gradients a batch. The steps are stable while pfedme_rate * lambda and eta * lambda are below 1. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"

#include <string.h>

/* theta is the vector of the steps, w their anchor, which follows after the K steps of a batch. */
static fkt_status at_site(struct fkt_rounds *r, uint32_t site, uint32_t t, float *w, float *theta)
{
    const struct fkt_baseline_settings *s = r->s;
    const struct fkt_problem *p = r->p;
    const double inner = s->pfedme_rate > 0 ? s->pfedme_rate : s->rate, lambda = s->pfedme_lambda;
    const uint64_t batches = fkt_rounds_steps(r, site), n = batches * s->pfedme_steps;
    fkt_status st;
    FKT_TRY(fkt_rounds_plan(r, n));
    for (uint64_t k = 0; k < n; k++)
        r->step[k] = (struct fkt_local_step){.batch = t * batches + k / s->pfedme_steps,
                                             .rate = inner,
                                             .pull = lambda,
                                             .follow = (k + 1) % s->pfedme_steps ? 0 : s->rate * lambda};
    FKT_TRY(fkt_rounds_descend(r, site, n, theta, w));
    memcpy(w + p->parameters, theta + p->parameters, (p->state - p->parameters) * sizeof *w);
out:
    return st;
}

static fkt_status pfedme_round(struct fkt_rounds *r, uint32_t t)
{
    const size_t bytes = r->p->state * sizeof *r->x;
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < r->p->sites; i++) {
        float *theta = fkt_rounds_model(r, i);
        memcpy(theta, r->common, bytes);
        memcpy(r->x, r->common, bytes);
        FKT_TRY(at_site(r, i, t, r->x, theta));
        FKT_TRY(fkt_rounds_end(r, i, t, theta));
        fkt_rounds_gather(r, i, r->x);
    }
    fkt_rounds_average(r, r->y);
    fkt_vector_mix(r->common, r->y, r->p->state, r->s->pfedme_beta);
out:
    return st;
}

const struct fkt_method fkt_method_pfedme = {.name = "pfedme",
                                             .source = "Dinh et al., NeurIPS 2020",
                                             .models = 1,
                                             .common = 1,
                                             .round = pfedme_round,
                                             .personal = fkt_local_personal};
