/* SPDX-License-Identifier: Apache-2.0 */
/* apple.c - APPLE: a site's model is a weighted sum of the core models of all sites, and it learns the weights with its
 * own core model.
 * Source: Luo and Wu, "Adapt to adaptation: learning personalization for cross-silo federated learning", IJCAI 2022,
 * algorithm 1. With cores c_j as they were sent before the round, and site i's directed relationship vector p:
 *
 *   w = sum over j of p_j c_j                                   the personal model, made anew for each batch
 *   c_i <- c_i - eta1 p_i grad f(w)
 *   p_j <- p_j - eta2 (<grad f(w), c_j> + lambda(t) mu (p_j - p0_j)),   p0_j = n_j / n
 *   lambda(t) = (1 + cos(pi t / L)) / 2 for t < L, then 0
 *
 * eta1 = rate * apple_scale, eta2 = apple_rate, L = apple_end * rounds. As in PFLlib, apple_scale is the number of
 * sites unless it is given: p_i is about 1 / N at first, and a core would hardly move. p begins at p0. Where we differ:
 * all sites download all cores (the paper's M = N - 1); inner products are sums, as in the paper, where PFLlib takes
 * means; the statistics of batch norms are the site's own, since a sum with negative weights is not a variance.
 *
 * Cost: 2 N passes over the parameters a step, and 2 N models. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"

#include <math.h>
#include <string.h>

double fkt_apple_lambda(uint32_t round, double end)
{
    return round < end ? (1 + cos(3.14159265358979323846 * round / end)) / 2 : 0;
}

void fkt_apple_step(double *p, float *core, const float *g, const double *slope, const double *p0, uint32_t n,
                    uint32_t site, size_t parameters, double rate, double rate_p, double lambda_mu)
{
    fkt_vector_step(core, g, parameters, rate * p[site]);
    for (uint32_t j = 0; j < n; j++) p[j] -= rate_p * (slope[j] + lambda_mu * (p[j] - p0[j]));
}

static size_t apple_numbers(const struct fkt_problem *p) { return (size_t)p->sites + 2; }

/* number: (N, N) the vectors p, then N slopes, N numbers p0; N are left. */
static double *first_of(const struct fkt_rounds *r) { return r->number + (size_t)r->p->sites * (r->p->sites + 1); }

static void apple_begin(struct fkt_rounds *r)
{
    const uint32_t n = r->p->sites;
    double *p0 = first_of(r), all = 0;
    for (uint32_t j = 0; j < n; j++) all += (double)r->p->records[j];
    for (uint32_t j = 0; j < n; j++) p0[j] = (double)r->p->records[j] / all;
    for (uint32_t i = 0; i < n; i++) memcpy(r->number + (size_t)i * n, p0, n * sizeof *p0);
}

/* The core of j as site i has it in this round: its own moves in `other`, the rest are those of the round before. */
static const float *core_of(const struct fkt_rounds *r, uint32_t site, uint32_t j)
{
    return j == site ? fkt_rounds_other(r, j) : fkt_rounds_model(r, j);
}

/* x (parameters), from the cores as site i has them. */
static void compose(struct fkt_rounds *r, uint32_t site, float *x)
{
    const double *p = r->number + (size_t)site * r->p->sites;
    memset(r->sum, 0, r->p->parameters * sizeof *r->sum);
    for (uint32_t j = 0; j < r->p->sites; j++) fkt_vector_add(r->sum, core_of(r, site, j), r->p->parameters, p[j]);
    fkt_vector_from_sum(x, r->sum, r->p->parameters, 1);
}

static fkt_status at_site(struct fkt_rounds *r, uint32_t site, uint32_t t)
{
    const struct fkt_problem *p = r->p;
    const struct fkt_baseline_settings *s = r->s;
    const uint32_t n = p->sites;
    const double scale = s->apple_scale > 0 ? s->apple_scale : n;
    const double lambda_mu = fkt_apple_lambda(t, s->apple_end * s->rounds) * s->apple_mu;
    const uint64_t steps = fkt_rounds_steps(r, site);
    double *slope = r->number + (size_t)n * n;
    float *own = fkt_rounds_other(r, site);
    fkt_status st = FKT_OK;
    memcpy(r->x, own, p->state * sizeof *r->x);
    for (uint64_t step = t * steps; step < (t + 1) * steps; step++) {
        compose(r, site, r->x);
        FKT_TRY(p->gradient(p->self, site, step, r->x, r->g));
        for (uint32_t j = 0; j < n; j++) slope[j] = fkt_vector_dot(r->g, core_of(r, site, j), p->parameters);
        fkt_apple_step(r->number + (size_t)site * n, own, r->g, slope, first_of(r), n, site, p->parameters,
                       s->rate * scale, s->apple_rate, lambda_mu);
    }
    memcpy(own + p->parameters, r->x + p->parameters, (p->state - p->parameters) * sizeof *own);
    compose(r, site, r->x);
    st = fkt_rounds_end(r, site, t, r->x);
out:
    return st;
}

/* `model` keeps what was sent before the round until the next one begins, for a personal model is made of both. */
static fkt_status apple_round(struct fkt_rounds *r, uint32_t t)
{
    fkt_status st = FKT_OK;
    memcpy(r->model, r->other, r->p->sites * r->p->state * sizeof *r->model);
    for (uint32_t i = 0; i < r->p->sites && st == FKT_OK; i++) st = at_site(r, i, t);
    return st;
}

static fkt_status apple_personal(struct fkt_rounds *r, uint32_t site, float *x)
{
    const struct fkt_problem *p = r->p;
    compose(r, site, x);
    memcpy(x + p->parameters, fkt_rounds_other(r, site) + p->parameters, (p->state - p->parameters) * sizeof *x);
    return FKT_OK;
}

const struct fkt_method fkt_method_apple = {.name = "apple",
                                            .source = "Luo and Wu, IJCAI 2022",
                                            .models = 2,
                                            .numbers = apple_numbers,
                                            .begin = apple_begin,
                                            .round = apple_round,
                                            .personal = apple_personal};
