/* SPDX-License-Identifier: Apache-2.0 */
/* partialfed.c - PartialFed: at the start of a round a site loads some layers of the common model and keeps its own for
 * the others.
 * Source: Sun et al., "PartialFed: Cross-domain personalized federated learning via partial initialization", NeurIPS
 * 2021. PartialFed-Fix (partialfed_fixed 1): a fixed choice, here the one that the paper found best: norms and last
 * layer are kept, all else is loaded. PartialFed-Adaptive: for each layer l a site learns the log odds a_l of loading:
 *
 *   choosing   over one epoch, with weights fixed: s_l = sigmoid((a_l + e_l) / tau), e_l logistic noise; the loss is
 *              that of s_l common_l + (1 - s_l) own_l, and a_l -= rate * slope, slope = <g_l, common_l - own_l> *
 *              s_l (1 - s_l) / tau
 *   training   layer l is loaded where a_l + e_l > 0 for new e_l; then local steps on all weights
 *
 * The difference of two Gumbel variables is logistic, so this is the Gumbel-softmax of the paper with two choices. The
 * server averages all sites' whole models by records. Where we differ: the paper gives no program; the temperature is
 * constant, choices are learnt by plain SGD for one epoch before each round from the second on (before, all models are
 * one), and a layer is a convolution, a norm with its statistics, or the last layer. The personal model is the trained
 * one. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { STREAM_CHOICE = 0x6368 }; /* of the seed */

double fkt_partialfed_part(double a, double noise, double temperature)
{
    return 1 / (1 + exp(-(a + noise) / temperature));
}

double fkt_partialfed_slope(double part, double along, double temperature)
{
    return along * part * (1 - part) / temperature;
}

static size_t partialfed_numbers(const struct fkt_problem *p) { return 3 * (size_t)p->layers; }

/* number: (N, layers) log odds, then (layers) of parts and (layers) of slopes; the rest is left. */
static double *odds_of(const struct fkt_rounds *r, uint32_t site) { return r->number + (size_t)site * r->p->layers; }

/* Both ends are excluded. */
static double logistic(struct fkt_rng *rng)
{
    const double u = fkt_rng_unit(rng) + 0x1p-54;
    return log(u / (1 - u));
}

/* x = part of the common model and 1 - part of the site's own, layer by layer, statistics included. */
static void blend(const struct fkt_rounds *r, const float *own, const double *part, float *x)
{
    memcpy(x, own, r->p->state * sizeof *x);
    for (size_t k = 0; k < r->p->spans; k++) {
        const struct fkt_span *s = &r->p->span[k];
        fkt_vector_mix(x + s->start, r->common + s->start, s->count, part[s->layer]);
    }
}

static void add_slopes(const struct fkt_rounds *r, const float *own, double *along)
{
    memset(along, 0, r->p->layers * sizeof *along);
    for (size_t k = 0; k < r->p->spans; k++) {
        const struct fkt_span *s = &r->p->span[k];
        if (s->start < r->p->parameters)
            along[s->layer] += fkt_vector_dot(r->g + s->start, r->common + s->start, s->count) -
                               fkt_vector_dot(r->g + s->start, own + s->start, s->count);
    }
}

static fkt_status learn_choice(struct fkt_rounds *r, uint32_t site, uint32_t t, struct fkt_rng *rng)
{
    const struct fkt_problem *p = r->p;
    const double tau = r->s->partialfed_temperature;
    const float *own = fkt_rounds_model(r, site);
    double *a = odds_of(r, site), *part = odds_of(r, p->sites), *along = part + p->layers;
    fkt_status st = FKT_OK;
    for (uint64_t k = 0; k < p->epoch[site]; k++) {
        for (uint32_t l = 0; l < p->layers; l++) part[l] = fkt_partialfed_part(a[l], logistic(rng), tau);
        blend(r, own, part, r->x);
        FKT_TRY(p->gradient(p->self, site, t * fkt_rounds_steps(r, site) + k, r->x, r->g));
        add_slopes(r, own, along);
        for (uint32_t l = 0; l < p->layers; l++)
            a[l] -= r->s->partialfed_rate * fkt_partialfed_slope(part[l], along[l], tau);
    }
out:
    return st;
}

/* part (layers) of 0 and 1. */
static void choose(const struct fkt_rounds *r, uint32_t site, double *part, struct fkt_rng *rng)
{
    const struct fkt_problem *p = r->p;
    if (!r->s->partialfed_fixed)
        for (uint32_t l = 0; l < p->layers; l++) part[l] = odds_of(r, site)[l] + logistic(rng) > 0;
    for (size_t k = 0; k < p->spans && r->s->partialfed_fixed; k++) part[p->span[k].layer] = !p->span[k].keeps;
}

static fkt_status partialfed_round(struct fkt_rounds *r, uint32_t t)
{
    double *part = odds_of(r, r->p->sites);
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < r->p->sites; i++) {
        float *own = fkt_rounds_model(r, i);
        struct fkt_rng rng;
        fkt_rng_init(&rng, r->seed, (uint64_t)STREAM_CHOICE << 48 | (uint64_t)t << 24 | i);
        if (t > 0 && !r->s->partialfed_fixed) FKT_TRY(learn_choice(r, i, t, &rng));
        choose(r, i, part, &rng);
        blend(r, own, part, r->x);
        memcpy(own, r->x, r->p->state * sizeof *own);
        FKT_TRY(fkt_rounds_train(r, i, t, own, NULL, 0));
        FKT_TRY(fkt_rounds_end(r, i, t, own));
        fkt_rounds_gather(r, i, own);
    }
    fkt_rounds_average(r, r->common);
out:
    return st;
}

const struct fkt_method fkt_method_partialfed = {.name = "partialfed",
                                                 .source = "Sun et al., NeurIPS 2021",
                                                 .models = 1,
                                                 .common = 1,
                                                 .numbers = partialfed_numbers,
                                                 .round = partialfed_round,
                                                 .personal = fkt_local_personal};
