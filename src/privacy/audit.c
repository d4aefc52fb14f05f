/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - tries to falsify a privacy claim: attacks a release procedure and turns the attack's success into a lower
 * bound on epsilon.
 *
 *   pilot (1/16)      means and variances of each number
 *   choose (to 1/2)   scores along several directions, in histograms; the best direction, threshold and side are picked
 *   measure (1/2)     only that one event is counted; Clopper-Pearson bounds; epsilon_low and mu_low
 *
 * An event E has P1(E) <= e^epsilon P0(E) + delta under (epsilon, delta)-DP, and Phi^-1(P1) - Phi^-1(P0) <= mu under
 * mu-GDP; and with the datasets exchanged. The bounds hold for any procedure, because the event was fixed before the
 * second half was drawn.
 * Directions: the likelihood ratio of the claimed noise; that of the noise seen in the pilot (finds parts with too
 * little noise); and each number that differs by itself (finds a single leaked number, whose effect a sum would hide).
 * Source: Jagielski, Ullman, Oprea 2020 for the bound; Nasr et al. 2023 for auditing in GDP. Cost: the trials,
 * and a few MB. */
#include "privacy/audit.h"

#include "base/alloc.h"
#include "fedkt/privacy.h"
#include "privacy/clopper_pearson.h"

#include <math.h>

#define BINS 4096
#define SQRT_HALF 0.70710678118654752440

/* One direction: score = sum of weight*x, cut into BINS between start and start + BINS/per_unit. */
struct direction {
    double *weight; /* (length) */
    double start, per_unit;
    uint64_t *count; /* (2, BINS): dataset, bin */
};

/* The event "bin >= edge" (above) or "bin < edge" (not above) of a direction; `above` means dataset 1. */
struct event {
    size_t direction;
    int edge, above;
    double value; /* the bound it gave on the first half */
    uint64_t hits[2];
};

struct audit {
    const struct fkt_audit_spec *spec;
    fkt_audit_release release;
    void *self;
    int64_t *x;            /* (length) */
    double *mean[2], *var; /* (length) */
    size_t directions;
    struct direction *dir;
};

static double normal_quantile(double p)
{
    double lo = -40, hi = 40;
    if (!(p > 0)) return -40;
    if (!(p < 1)) return 40;
    while (hi - lo > 1e-12) {
        const double mid = 0.5 * (lo + hi);
        if (0.5 * erfc(-mid * SQRT_HALF) < p) lo = mid;
        else hi = mid;
    }
    return 0.5 * (lo + hi);
}

static fkt_status check_spec(const struct fkt_audit_spec *s)
{
    if (s->length == 0 || s->trials < 1000 || s->trials > (uint64_t)1 << 32 || !(s->delta > 0 && s->delta < 1) ||
        !(s->confidence > 0.5 && s->confidence < 1))
        return fkt_fail(FKT_E_ARG,
                        "an audit needs 1000 trials or more, 0 < delta < 1 and a confidence between 0.5 and 1");
    for (size_t i = 0; i < s->length; i++)
        if (!(fabs(s->shift[i]) < INFINITY && s->sigma[i] >= 0 && s->sigma[i] < INFINITY))
            return fkt_fail(FKT_E_ARG, "number %zu of the audit has no finite shift and noise", i);
    return FKT_OK;
}

static fkt_status audit_init(struct audit *a)
{
    const size_t n = a->spec->length;
    fkt_status st = FKT_OK;
    a->directions = 2;
    for (size_t i = 0; i < n; i++) a->directions += a->spec->shift[i] != 0;
    FKT_TRY(fkt_alloc(&a->x, n));
    FKT_TRY(fkt_alloc(&a->mean[0], n));
    FKT_TRY(fkt_alloc(&a->mean[1], n));
    FKT_TRY(fkt_alloc(&a->var, n));
    FKT_TRY(fkt_alloc(&a->dir, a->directions));
    for (size_t d = 0; d < a->directions; d++) {
        FKT_TRY(fkt_alloc(&a->dir[d].weight, n));
        FKT_TRY(fkt_alloc(&a->dir[d].count, 2 * BINS));
    }
out:
    return st;
}

static void audit_clear(struct audit *a)
{
    for (size_t d = 0; a->dir && d < a->directions; d++) {
        fkt_free(a->dir[d].weight);
        fkt_free(a->dir[d].count);
    }
    fkt_free(a->dir);
    fkt_free(a->var);
    fkt_free(a->mean[1]);
    fkt_free(a->mean[0]);
    fkt_free(a->x);
}

/* Welford's means and variances over `trials` of each dataset; var is the mean of the two. */
static fkt_status pilot(struct audit *a, uint64_t trials)
{
    for (uint64_t t = 1; t <= trials; t++)
        for (int set = 0; set < 2; set++) {
            fkt_status st = a->release(a->self, set, a->x);
            if (st != FKT_OK) return st;
            for (size_t i = 0; i < a->spec->length; i++) {
                const double x = (double)a->x[i], off = x - a->mean[set][i];
                a->mean[set][i] += off / (double)t;
                a->var[i] += off * (x - a->mean[set][i]) / (2 * (double)trials);
            }
        }
    return FKT_OK;
}

/* The histogram covers both means and eight standard deviations around them; what lies outside goes to the end bins. */
static void place(const struct audit *a, struct direction *d)
{
    double at[2] = {0, 0}, var = 0, spread;
    for (size_t i = 0; i < a->spec->length; i++) {
        at[0] += d->weight[i] * a->mean[0][i];
        at[1] += d->weight[i] * a->mean[1][i];
        var += d->weight[i] * d->weight[i] * a->var[i];
    }
    spread = fabs(at[1] - at[0]) + 8 * sqrt(var);
    if (!(spread > 0)) spread = 1;
    d->start = fmin(at[0], at[1]) - spread;
    d->per_unit = BINS / (2 * spread + fabs(at[1] - at[0]));
}

static void choose_directions(struct audit *a)
{
    const struct fkt_audit_spec *s = a->spec;
    size_t next = 2;
    for (size_t i = 0; i < s->length; i++) {
        const double claimed = s->sigma[i] * s->sigma[i], quiet = fmax(1e-6 * claimed, 1e-12);
        a->dir[0].weight[i] = claimed > 0 ? s->shift[i] / claimed : 0;
        a->dir[1].weight[i] = s->shift[i] / fmax(a->var[i], quiet);
        if (s->shift[i] != 0) a->dir[next++].weight[i] = s->shift[i] > 0 ? 1 : -1;
    }
    for (size_t d = 0; d < a->directions; d++) place(a, &a->dir[d]);
}

static int bin_of(const struct audit *a, const struct direction *d)
{
    double score = 0, bin;
    for (size_t i = 0; i < a->spec->length; i++) score += d->weight[i] * (double)a->x[i];
    bin = (score - d->start) * d->per_unit;
    return bin >= BINS - 1 ? BINS - 1 : bin > 0 ? (int)bin : 0;
}

static fkt_status fill_histograms(struct audit *a, uint64_t trials)
{
    for (uint64_t t = 0; t < trials; t++)
        for (int set = 0; set < 2; set++) {
            fkt_status st = a->release(a->self, set, a->x);
            if (st != FKT_OK) return st;
            for (size_t d = 0; d < a->directions; d++) a->dir[d].count[set * BINS + bin_of(a, &a->dir[d])]++;
        }
    return FKT_OK;
}

/* Wilson's bound, `side` -1 lower, +1 upper: fast, and accurate enough to choose an event. */
static double wilson(uint64_t k, uint64_t n, double z, int side)
{
    const double p = (double)k / (double)n, z2 = z * z / (double)n;
    return (p + z2 / 2 + side * sqrt(z2 * (p * (1 - p) + z2 / 4))) / (1 + z2);
}

static double epsilon_bound(double likely_low, double rare_high, double delta)
{
    return likely_low > delta && rare_high > 0 ? fmax(0, log((likely_low - delta) / rare_high)) : 0;
}

static double mu_bound(double likely_low, double rare_high)
{
    return fmax(0, normal_quantile(likely_low) - normal_quantile(rare_high));
}

static void consider(struct event *best, size_t d, int edge, int above, double value)
{
    if (value > best->value) *best = (struct event){.direction = d, .edge = edge, .above = above, .value = value};
}

static void choose(const struct audit *a, uint64_t trials, struct event *for_epsilon, struct event *for_mu)
{
    const double z = -normal_quantile((1 - a->spec->confidence) / 2);
    for (size_t d = 0; d < a->directions; d++) {
        uint64_t up[2] = {0, 0};
        for (int edge = BINS - 1; edge > 0; edge--) {
            const uint64_t *count = a->dir[d].count;
            if (count[edge] + count[BINS + edge] == 0) continue;
            up[0] += count[edge];
            up[1] += count[BINS + edge];
            for (int above = 0; above < 2; above++) {
                const double likely = wilson(above ? up[1] : trials - up[0], trials, z, -1);
                const double rare = wilson(above ? up[0] : trials - up[1], trials, z, 1);
                consider(for_epsilon, d, edge, above, epsilon_bound(likely, rare, a->spec->delta));
                consider(for_mu, d, edge, above, mu_bound(likely, rare));
            }
        }
    }
}

static fkt_status measure(struct audit *a, uint64_t trials, struct event *e /* (2) */)
{
    for (uint64_t t = 0; t < trials; t++)
        for (int set = 0; set < 2; set++) {
            fkt_status st = a->release(a->self, set, a->x);
            if (st != FKT_OK) return st;
            for (int i = 0; i < 2; i++)
                e[i].hits[set] += (bin_of(a, &a->dir[e[i].direction]) >= e[i].edge) == e[i].above;
        }
    return FKT_OK;
}

/* Both bounds of one event hold together with the given confidence: each has half of the error probability. */
static void bounds(const struct event *e, uint64_t n, double confidence, double *likely_low, double *rare_high)
{
    *likely_low = fkt_clopper_pearson_lower(e->hits[e->above], n, (1 - confidence) / 2);
    *rare_high = fkt_clopper_pearson_upper(e->hits[!e->above], n, (1 - confidence) / 2);
}

fkt_status fkt_privacy_audit(struct fkt_audit_result *result, const struct fkt_audit_spec *spec,
                             fkt_audit_release release, void *self)
{
    struct audit a = {.spec = spec, .release = release, .self = self};
    struct event e[2] = {{.edge = 1, .above = 1}, {.edge = 1, .above = 1}};
    const uint64_t first = spec->trials / 16, choosing = spec->trials / 2 - first, measuring = spec->trials / 2;
    double likely, rare;
    fkt_status st;
    FKT_TRY(check_spec(spec));
    FKT_TRY(audit_init(&a));
    FKT_TRY(pilot(&a, first));
    choose_directions(&a);
    FKT_TRY(fill_histograms(&a, choosing));
    choose(&a, choosing, &e[0], &e[1]);
    FKT_TRY(measure(&a, measuring, e));
    bounds(&e[0], measuring, spec->confidence, &likely, &rare);
    result->epsilon_low = epsilon_bound(likely, rare, spec->delta);
    bounds(&e[1], measuring, spec->confidence, &likely, &rare);
    result->mu_low = mu_bound(likely, rare);
    result->epsilon_gdp_low = fkt_privacy_epsilon(spec->delta, result->mu_low);
    result->measured = measuring;
out:
    audit_clear(&a);
    return st;
}
