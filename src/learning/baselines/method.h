/* SPDX-License-Identifier: Apache-2.0 */
/* method.h - a federation of personal models: the problem that it solves, the state of a run, and what a method is.
 *
 * A problem has sites, and at each site a loss of one flat vector x of `state` floats: first `parameters` numbers that
 * are learnt, then statistics (running means and variances of batch norms) that a gradient moves and nobody learns. A
 * network with the sites' images is one (network.c); tests solve a small one in closed form. A method knows nothing of
 * networks: its rules are functions on such vectors, each declared below and tested against NumPy
 * (oracle/baselines.py).
 *
 *   start -> method.round 0, 1, ... rounds - 1 -> method.personal(site)  -> evaluated at the site
 *
 * Letters: N sites, n_i training records of site i, t round from 0, T rounds. */
#ifndef FKT_LEARNING_BASELINES_METHOD_H
#define FKT_LEARNING_BASELINES_METHOD_H

#include "fedkt/advanced/baselines.h"

#include "base/status.h"

/* A run of numbers in x that belong to one layer; all of x is covered, in order. */
struct fkt_span {
    size_t start, count;
    uint32_t layer;
    int keeps; /* 1: of a norm or of the last layer, which PartialFed's fixed form leaves at the site */
};

/* A gradient step at a site, by its batch number `batch`, as `gradient` counts them; then the anchor follows:
 *   x -= rate (g + pull (x - anchor)),   anchor += follow (x - anchor)          parameters alone */
struct fkt_local_step {
    uint64_t batch;
    double rate, pull, follow;
};

struct fkt_problem {
    void *self;
    uint32_t sites, layers;
    size_t parameters, state, spans;
    const struct fkt_span *span; /* (spans) */
    const uint64_t *records;     /* (sites) n_i */
    const uint64_t *epoch;       /* (sites) batches of an epoch; at least 1 */
    /* The mean loss of batch number `step` of a site, counted over all epochs, and its gradient (parameters) at x;
     * moves the statistics in x. FKT_E_NUMERIC: not finite. */
    fkt_status (*gradient)(void *self, uint32_t site, uint64_t step, float *x, float *g);
    /* n such steps, with the same numbers as one by one, up to rounding. anchor (parameters): may be NULL where no step
     * has pull or follow. *done 0: not possible here, and nothing has changed. NULL: never possible. */
    fkt_status (*descend)(void *self, uint32_t site, const struct fkt_local_step *step, uint64_t n, float *x,
                          float *anchor, int *done);
    /* From now on gradients are of (1 - share) loss + share T^2 KL(teacher || x) at temperature T; NULL: no teacher. */
    fkt_status (*teach)(void *self, const float *teacher, double share, double temperature);
    fkt_status (*validate)(void *self, uint32_t site, const float *x, double *loss); /* on records not trained on */
    int (*stop)(void *self, uint32_t done); /* after each site of a round; not 0: stop. May be NULL */
};

/* The state of a run. What a method needs, its row says; the rest is NULL. */
struct fkt_rounds {
    const struct fkt_problem *p;
    const struct fkt_baseline_settings *s;
    const float *start; /* (state) borrowed */
    uint64_t seed;
    float *model;                /* (N, state) one vector for each site; begins as the start */
    float *other;                /* (N, state) another */
    float *common;               /* (state) begins as the start */
    double *sum;                 /* (state) */
    double *number;              /* (N, numbers of the method), then N more */
    float *g;                    /* (parameters) */
    float *w, *x, *y, *z;        /* (state) scratch */
    struct fkt_local_step *step; /* (step_room) scratch */
    size_t step_room;
    uint32_t done; /* sites of rounds */
};

struct fkt_method {
    const char *name, *source;
    int models;                                     /* 0, 1: model, 2: and other */
    int common;                                     /* 1: there is one model for all, which newcomers get */
    int validates;                                  /* 1: some records are for `validate`, and not trained on */
    size_t (*numbers)(const struct fkt_problem *p); /* doubles for each site; NULL: none */
    void (*begin)(struct fkt_rounds *r);            /* NULL: nothing to do */
    fkt_status (*round)(struct fkt_rounds *r, uint32_t t);
    fkt_status (*personal)(struct fkt_rounds *r, uint32_t site, float *x); /* x is the caller's; may use g and sum */
};
extern const struct fkt_method fkt_method_local, fkt_method_fedavg_once, fkt_method_fedavg, fkt_method_perfedavg,
    fkt_method_pfedme, fkt_method_fedamp, fkt_method_fedphp, fkt_method_fedfomo, fkt_method_apple,
    fkt_method_partialfed;
const struct fkt_method *fkt_method_of(enum fkt_baseline b); /* NULL: there is none */

/* ---- rounds.c ---- */

/* Borrows everything. Free with fkt_rounds_clear, also after a failure. */
FKT_MUST_USE fkt_status fkt_rounds_init(struct fkt_rounds *r, const struct fkt_method *m, const struct fkt_problem *p,
                                        const struct fkt_baseline_settings *s, const float *start, uint64_t seed);
void fkt_rounds_clear(struct fkt_rounds *r);
uint64_t fkt_rounds_bytes(const struct fkt_method *m, const struct fkt_problem *p);

float *fkt_rounds_model(const struct fkt_rounds *r, uint32_t site);
float *fkt_rounds_other(const struct fkt_rounds *r, uint32_t site);
uint64_t fkt_rounds_steps(const struct fkt_rounds *r, uint32_t site); /* of a round */
/* Room for n steps in r->step; then these n, on x and anchor: by the problem's own way where it has one. */
FKT_MUST_USE fkt_status fkt_rounds_plan(struct fkt_rounds *r, uint64_t n);
FKT_MUST_USE fkt_status fkt_rounds_descend(struct fkt_rounds *r, uint32_t site, uint64_t n, float *x, float *anchor);
/* The steps of round t at a site, on x; anchor not NULL: with (pull / 2) |x - anchor|^2 in the loss. */
FKT_MUST_USE fkt_status fkt_rounds_train(struct fkt_rounds *r, uint32_t site, uint32_t t, float *x, float *anchor,
                                         double pull);
/* After a site's part of a round: x is finite, and nobody asked to stop. */
FKT_MUST_USE fkt_status fkt_rounds_end(struct fkt_rounds *r, uint32_t site, uint32_t t, const float *x);
/* r->sum: zeros; then sum += n_i x; then common = sum / (all n_i). */
void fkt_rounds_gather(struct fkt_rounds *r, uint32_t site, const float *x);
void fkt_rounds_average(struct fkt_rounds *r, float *out);

/* local.c: the model of each site trained for a round; and handed out. */
FKT_MUST_USE fkt_status fkt_local_round(struct fkt_rounds *r, uint32_t t);
FKT_MUST_USE fkt_status fkt_local_personal(struct fkt_rounds *r, uint32_t site, float *x);
/* fedavg.c: the common model, whatever the site. */
FKT_MUST_USE fkt_status fkt_fedavg_personal(struct fkt_rounds *r, uint32_t site, float *x);

/* ---- the rules ---- */

/* rounds.c: what a local step does, g (n) being the gradient. */
void fkt_local_step(const struct fkt_local_step *s, float *x, float *anchor, const float *g, size_t n);
/* perfedavg.c: w -= beta (g - alpha (up - down) / (2 delta)) */
void fkt_perfedavg_step(float *w, const float *g, const float *up, const float *down, size_t n, double alpha,
                        double beta, double delta);
/* fedamp.c: weight (N) of the models for site i; square (N): |w_i - w_j|^2; cosine (N): of the angle to w_j */
void fkt_fedamp_weights(double *weight, const double *square, uint32_t n, uint32_t site, double alpha, double sigma);
void fkt_fedamp_weights_cosine(double *weight, const double *cosine, uint32_t n, uint32_t site, double self,
                               double sigma);
/* fedphp.c */
double fkt_fedphp_momentum(double mu, uint32_t round, uint32_t rounds);
/* fedfomo.c: weight (N) from losses at the site, own: of its model before; distance (N) of each model to that one */
void fkt_fedfomo_weights(double *weight, double own, const double *loss, const double *distance, uint32_t n);
/* apple.c */
double fkt_apple_lambda(uint32_t round, double end);
/* One step: p (N) and the site's core; slope (N): <g, core_j>, before the step. */
void fkt_apple_step(double *p, float *core, const float *g, const double *slope, const double *p0, uint32_t n,
                    uint32_t site, size_t parameters, double rate, double rate_p, double lambda_mu);
/* partialfed.c: the part of the common model in a layer whose log odds are a, with logistic noise; and the slope of the
 * loss by a, from <gradient, common - own> of the layer */
double fkt_partialfed_part(double a, double noise, double temperature);
double fkt_partialfed_slope(double part, double along, double temperature);

#endif
