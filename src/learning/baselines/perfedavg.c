/* SPDX-License-Identifier: Apache-2.0 */
/* perfedavg.c - Per-FedAvg: the common model is trained so that one gradient step at a site makes a good model there.
 * Source: Fallah, Mokhtari and Ozdaglar, "Personalized federated learning with theoretical guarantees: a model-agnostic
 * meta-learning approach", NeurIPS 2020, algorithm 1. With batches D, D', D'' one after the other, a local step is
 *
 *   v = w - alpha grad f(w; D)                 the personal model that one step would give
 *   g = grad f(v; D')
 *   w <- w - beta (I - alpha H(w; D'')) g      H: the Hessian
 *
 * delta 0 is the paper's FO, which leaves the Hessian out (PFLlib's too, and the default); delta > 0 is its HF: H g =
 * (grad f(w + delta g; D'') - grad f(w - delta g; D'')) / (2 delta), exact where f is quadratic. beta is the rate of
 * local steps. The server averages; we weight by records, the paper weights equally.
 *
 * Cost: a local step takes two batches (FO) or three (HF), and a round takes so many that the records are passed as
 * often as in the other methods. A personal model is the common one after `perfedavg_steps` steps of rate alpha on
 * batches of the site's first epoch; the paper takes one. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"

#include <string.h>

void fkt_perfedavg_step(float *w, const float *g, const float *up, const float *down, size_t n, double alpha,
                        double beta, double delta)
{
    for (size_t i = 0; i < n; i++) {
        const double curve = ((double)up[i] - (double)down[i]) / (2 * delta);
        w[i] = (float)((double)w[i] - beta * ((double)g[i] - alpha * curve));
    }
}

static double inner_rate(const struct fkt_baseline_settings *s)
{
    return s->perfedavg_alpha > 0 ? s->perfedavg_alpha : s->rate;
}

/* The gradient at w + by g into out; r->x is scratch. */
static fkt_status gradient_at(struct fkt_rounds *r, uint32_t site, uint64_t step, const float *w, const float *g,
                              double by, float *out)
{
    memcpy(r->x, w, r->p->state * sizeof *r->x);
    fkt_vector_step(r->x, g, r->p->parameters, -by);
    return r->p->gradient(r->p->self, site, step, r->x, out);
}

/* With the Hessian. y: the first model v, then grad f(w + delta g); z: grad f(w - delta g). Statistics are those that v
 * has seen. */
static fkt_status meta_step(struct fkt_rounds *r, uint32_t site, uint64_t step, float *w)
{
    const struct fkt_problem *p = r->p;
    const double alpha = inner_rate(r->s), delta = r->s->perfedavg_delta;
    fkt_status st;
    memcpy(r->y, w, p->state * sizeof *r->y);
    FKT_TRY(p->gradient(p->self, site, step, r->y, r->g));
    fkt_vector_step(r->y, r->g, p->parameters, alpha);
    FKT_TRY(p->gradient(p->self, site, step + 1, r->y, r->g));
    memcpy(w + p->parameters, r->y + p->parameters, (p->state - p->parameters) * sizeof *w);
    FKT_TRY(gradient_at(r, site, step + 2, w, r->g, delta, r->y));
    FKT_TRY(gradient_at(r, site, step + 2, w, r->g, -delta, r->z));
    fkt_perfedavg_step(w, r->g, r->y, r->z, p->parameters, alpha, r->s->rate, delta);
out:
    return st;
}

/* First order: v = w - alpha g; then a step of rate beta that is pulled to w by 1 / beta: v - beta g' - (v - w). */
static fkt_status first_order(struct fkt_rounds *r, uint32_t site, uint64_t from, uint64_t meta, float *w)
{
    const double beta = r->s->rate;
    fkt_status st;
    FKT_TRY(fkt_rounds_plan(r, 2 * meta));
    for (uint64_t k = 0; k < 2 * meta; k += 2) {
        r->step[k] = (struct fkt_local_step){.batch = from + k, .rate = inner_rate(r->s)};
        r->step[k + 1] = (struct fkt_local_step){.batch = from + k + 1, .rate = beta, .pull = 1 / beta, .follow = 1};
    }
    memcpy(r->y, w, r->p->state * sizeof *r->y);
    st = fkt_rounds_descend(r, site, 2 * meta, w, r->y);
out:
    return st;
}

static fkt_status perfedavg_round(struct fkt_rounds *r, uint32_t t)
{
    const int hessian = r->s->perfedavg_delta > 0;
    const uint64_t each = hessian ? 3 : 2;
    float *w = r->w;
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < r->p->sites; i++) {
        const uint64_t steps = fkt_rounds_steps(r, i), meta = steps > each ? steps / each : 1;
        memcpy(w, r->common, r->p->state * sizeof *w);
        if (!hessian) FKT_TRY(first_order(r, i, t * steps, meta, w));
        for (uint64_t k = 0; k < meta && hessian; k++) FKT_TRY(meta_step(r, i, t * steps + k * each, w));
        FKT_TRY(fkt_rounds_end(r, i, t, w));
        fkt_rounds_gather(r, i, w);
    }
    fkt_rounds_average(r, r->common);
out:
    return st;
}

static fkt_status perfedavg_personal(struct fkt_rounds *r, uint32_t site, float *x)
{
    fkt_status st = fkt_fedavg_personal(r, site, x);
    for (uint32_t k = 0; k < r->s->perfedavg_steps && st == FKT_OK; k++) {
        st = r->p->gradient(r->p->self, site, k, x, r->g);
        if (st == FKT_OK) fkt_vector_step(x, r->g, r->p->parameters, inner_rate(r->s));
    }
    return st;
}

const struct fkt_method fkt_method_perfedavg = {.name = "perfedavg",
                                                .source = "Fallah et al., NeurIPS 2020",
                                                .common = 1,
                                                .round = perfedavg_round,
                                                .personal = perfedavg_personal};
