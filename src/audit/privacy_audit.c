/* SPDX-License-Identifier: Apache-2.0 */
/* privacy_audit.c - the cases of `fedkt audit` one after the other, then quantiser, ledger file and processes.
 *
 *   for every adjacency and place of noise, for one part and for two (alone, pooled, joined): a pair of worst-case
 *   neighbours (neighbours.c)
 *     attack     lower bounds without assumptions (privacy/audit.c), and the distance mu of the two along the best
 *                linear test of Gaussian noise, sum of shift*x/sigma^2, with an interval: difference over deviation
 *     noise      variance, mean, independence and repeats of every released number (privacy/noise_watch.c), also of
 *                empty classes, and of two sites' noise shares compared
 *   quantiser    |q|^2 <= Rq^2 for vectors on the sphere, in integers
 *   ledger       some releases are charged to a file as by `fedkt release` and `fedkt join`; it must record their cost
 *   processes    two of them draw; the draws must differ
 *
 * mu is compared with the largest one that (epsilon, delta) allows a Gaussian mechanism, not with that of the plan:
 * a wrong plan agrees with itself. A correct program fails at least one limit with probability 1 - confidence. One
 * extra split of the budget has most of it on counts: with the usual one a change of label costs less than a change
 * of pixels, and a formula that omits the label would pass. Cost: minutes for a million trials. */
#include "audit/privacy_audit.h"

#include "fedkt/advanced/moments.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SPHERE = 2000, LEDGER_RELEASES = 3 };

static const struct row {
    enum fkt_adjacency adjacency;
    enum fkt_audit_canary canary;
    int on_counts; /* 1: most of the budget is on counts */
    enum fkt_audit_layout layout;
} rows[] = {{FKT_ADJACENCY_ADD_REMOVE, FKT_CANARY_ADD, 0, FKT_AUDIT_ONE},
            {FKT_ADJACENCY_REPLACE, FKT_CANARY_SWAP, 0, FKT_AUDIT_ONE},
            {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_SWAP, 0, FKT_AUDIT_ONE},
            {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_MOVE, 0, FKT_AUDIT_ONE},
            {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_MOVE, 1, FKT_AUDIT_ONE},
            {FKT_ADJACENCY_ADD_REMOVE, FKT_CANARY_ADD, 0, FKT_AUDIT_PARTS},
            {FKT_ADJACENCY_REPLACE, FKT_CANARY_SWAP, 0, FKT_AUDIT_PARTS},
            {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_MOVE, 1, FKT_AUDIT_PARTS},
            {FKT_ADJACENCY_ADD_REMOVE, FKT_CANARY_ADD, 0, FKT_AUDIT_POOLED},
            {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_MOVE, 1, FKT_AUDIT_POOLED},
            {FKT_ADJACENCY_ADD_REMOVE, FKT_CANARY_ADD, 0, FKT_AUDIT_JOINED},
            {FKT_ADJACENCY_REPLACE, FKT_CANARY_SWAP, 0, FKT_AUDIT_JOINED}};
_Static_assert(2 * sizeof rows / sizeof *rows <= FKT_AUDIT_CASES, "every row in both places");
static const double on_counts[3] = {40, 20, 40};

const char *fkt_audit_canary_name(enum fkt_audit_canary c)
{
    static const char *const names[] = {"add", "swap", "move"};
    return names[c];
}

const char *fkt_noise_check_name(enum fkt_noise_kind k)
{
    static const char *const names[FKT_NOISE_CHECKS] = {"variance", "mean", "correlation", "succession", "repeats"};
    return names[k];
}

/* ---- one case ---- */

struct attack {
    struct fkt_audit_world world;
    struct fkt_audit_draw draw;
    struct fkt_noise_watch *noise, *sites;
    double weight[FKT_AUDIT_NUMBERS];
    double n[2], mean[2], square[2]; /* of the score, Welford's */
    const struct fkt_progress *progress;
    uint64_t done, of;
};

static fkt_status release_once(void *self, int dataset, int64_t *out)
{
    struct attack *a = self;
    double score = 0, off;
    fkt_status st = fkt_audit_world_draw(&a->world, dataset, &a->draw);
    if (st != FKT_OK) return st;
    fkt_noise_watch_add(a->noise, a->draw.noise);
    if (a->sites) fkt_noise_watch_add(a->sites, a->draw.shares);
    for (int i = 0; i < a->world.numbers; i++) score += a->weight[i] * (double)a->draw.seen[i];
    off = score - a->mean[dataset];
    a->n[dataset]++;
    a->mean[dataset] += off / a->n[dataset];
    a->square[dataset] += off * (score - a->mean[dataset]);
    memcpy(out, a->draw.seen, (size_t)a->world.numbers * sizeof *out);
    a->done++;
    if (a->done % 1024 == 0 && a->progress && a->progress->step(a->progress->self, "attack", a->done, a->of))
        return fkt_fail(FKT_E_STOPPED, "stopped");
    return FKT_OK;
}

/* x with P(N(0,1) > x) = p. */
static double normal_above(double p)
{
    double lo = 0, hi = 40;
    while (hi - lo > 1e-9) {
        const double mid = 0.5 * (lo + hi);
        if (0.5 * erfc(mid * sqrt(0.5)) > p) lo = mid;
        else hi = mid;
    }
    return hi;
}

/* Delta method: a difference of means over their common deviation has variance 2/n + mu^2/(4n) for n draws of each. */
static void estimate_mu(const struct attack *a, double alpha, struct fkt_audit_case *c)
{
    const double n = a->n[0], variance = (a->square[0] + a->square[1]) / (2 * (n - 1));
    c->mu = (a->mean[1] - a->mean[0]) / sqrt(variance); /* infinite if there is no noise */
    const double width = normal_above(alpha / 2) * sqrt((2 + c->mu * c->mu / 4) / n);
    c->mu_from = c->mu - width;
    c->mu_to = c->mu + width;
}

/* "add-remove, central"; where there is more than one part, "add-remove, central, pooled". */
static const char *case_words(char words[96], const struct fkt_audit_case *c)
{
    snprintf(words, 96, "%s, %s%s%s", fkt_adjacency_name(c->adjacency), fkt_noise_name(c->place), c->layout ? ", " : "",
             c->layout ? fkt_audit_layout_name(c->layout) : "");
    return words;
}

static void noise_words(struct fkt_audit_case *c, const struct fkt_noise_check *checks, const char *whose,
                        size_t numbers)
{
    const size_t block = numbers / FKT_AUDIT_CLASSES;
    char words[96], where[48];
    for (int k = 0; k < FKT_NOISE_CHECKS && !c->broken[0]; k++) {
        const size_t at = checks[k].at % numbers;
        if (fkt_noise_holds(&checks[k])) continue;
        if (c->layout == FKT_AUDIT_POOLED) snprintf(where, sizeof where, "number %zu", at);
        else snprintf(where, sizeof where, "number %zu of class %zu", at % block, at / block);
        snprintf(c->broken, sizeof c->broken,
                 "%s: the noise is not what is claimed: %s %.4g, at most %.4g by chance (%s, %s)", whose,
                 fkt_noise_check_name((enum fkt_noise_kind)k), checks[k].value, checks[k].limit, where,
                 case_words(words, c));
    }
}

static void evaluate(struct fkt_audit_case *c, const struct fkt_privacy_spec *p, size_t numbers)
{
    const double low = fmax(c->bound.epsilon_low, c->bound.epsilon_gdp_low);
    char words[96];
    if (!(c->bound.epsilon_low <= p->epsilon && c->bound.epsilon_gdp_low <= p->epsilon))
        snprintf(c->broken, sizeof c->broken, "the attack beats the claim: lower bound %.4g for epsilon %g (%s)", low,
                 p->epsilon, case_words(words, c));
    else if (!(c->mu_from <= c->mu_claimed))
        snprintf(c->broken, sizeof c->broken,
                 "neighbours are easier to distinguish than the claim allows: mu %.4g or more, at most %.4g is "
                 "promised (%s)",
                 c->mu_from, c->mu_claimed, case_words(words, c));
    noise_words(c, c->noise, "released numbers", numbers);
    noise_words(c, c->sites, "shares of sites", numbers);
}

static fkt_status run_case(struct fkt_audit_case *c, const struct fkt_audit_options *o, double alpha)
{
    struct fkt_privacy_spec p = o->privacy;
    struct attack *a = NULL;
    double sigma[2 * FKT_AUDIT_NUMBERS];
    size_t numbers;
    fkt_status st;
    p.adjacency = c->adjacency;
    p.split_count = c->split[0];
    p.part[0].split_sum = c->split[1];
    p.part[0].split_moment = c->split[2];
    FKT_TRY(fkt_alloc(&a, 1));
    a->progress = o->progress;
    a->of = 2 * o->trials;
    FKT_TRY(fkt_audit_world_init(&a->world, &p, c->place, c->canary, c->layout));
    numbers = (size_t)a->world.numbers;
    FKT_TRY(fkt_noise_watch_new(&a->noise, a->world.sigma, numbers));
    for (size_t i = 0; i < numbers; i++) {
        const double s = a->world.seen_sigma[i];
        a->weight[i] = s > 0 ? a->world.seen_shift[i] / (s * s) : 0;
        sigma[i] = sigma[numbers + i] = a->world.share_sigma[i];
    }
    if (c->place == FKT_NOISE_PLACE_DISTRIBUTED) FKT_TRY(fkt_noise_watch_new(&a->sites, sigma, 2 * numbers));
    FKT_TRY(fkt_privacy_audit(
        &c->bound,
        &(struct fkt_audit_spec){numbers, a->world.seen_shift, a->world.seen_sigma, o->trials, p.delta, 1 - alpha / 2},
        release_once, a));
    c->mu_claimed = fkt_privacy_mu(p.epsilon, p.delta);
    estimate_mu(a, alpha, c);
    fkt_noise_watch_verdict(a->noise, alpha, c->noise);
    if (a->sites) fkt_noise_watch_verdict(a->sites, alpha, c->sites);
    evaluate(c, &p, numbers);
out:
    if (a) {
        fkt_noise_watch_free(a->noise);
        fkt_noise_watch_free(a->sites);
        fkt_audit_world_clear(&a->world);
    }
    fkt_free(a);
    return st;
}

/* A mechanism that fails one of its own checks is broken too. */
static fkt_status broken_by(char words[FKT_AUDIT_WORDS], fkt_status st, const char *what)
{
    if (st == FKT_OK || st == FKT_E_NOMEM || st == FKT_E_STOPPED) return st;
    snprintf(words, FKT_AUDIT_WORDS, "%s does not work: %s", what, fkt_error_text());
    return FKT_OK;
}

/* ---- the rest of the path ---- */

static fkt_status check_sphere(uint32_t length, uint32_t rq, uint64_t *done)
{
    const int64_t bound = (int64_t)rq * rq;
    struct fkt_coordinates c;
    double w[65];
    int32_t q[65];
    struct fkt_rng r;
    fkt_status st;
    FKT_TRY(fkt_coordinates_clip(&c, length, rq, 1));
    fkt_rng_init(&r, rq, length);
    for (int i = 0; i < SPHERE; i++, (*done)++) {
        double size = 0;
        int64_t norm = 0;
        for (uint32_t k = 0; k < length; k++) {
            w[k] = fkt_rng_normal(&r);
            size += w[k] * w[k];
        }
        for (uint32_t k = 0; k < length; k++) w[k] /= sqrt(size);
        FKT_TRY(fkt_quantise(&c, w, q));
        for (uint32_t k = 0; k < length; k++) norm += (int64_t)q[k] * q[k];
        if (norm > bound) {
            st = fkt_fail(FKT_E_NUMERIC, "a record of length %u has |q|^2 = %lld, above Rq^2 = %lld", length,
                          (long long)norm, (long long)bound);
            goto out;
        }
    }
out:
    return st;
}

/* Two parts on their spheres, as one vector. */
static fkt_status check_joined(uint32_t length, uint32_t rq, uint64_t *done)
{
    struct fkt_coordinates c[2];
    double w[2 * 65];
    int32_t q[2 * 65];
    struct fkt_rng r;
    fkt_status st;
    FKT_TRY(fkt_coordinates_clip(&c[0], length, rq, 1));
    FKT_TRY(fkt_coordinates_clip(&c[1], length, rq, 2.5));
    fkt_rng_init(&r, rq, 1000 + length);
    for (int i = 0; i < SPHERE; i++, (*done)++) {
        int64_t norm = 0;
        for (uint32_t k = 0; k < 2 * length; k++) w[k] = 100 * fkt_rng_normal(&r);
        FKT_TRY(fkt_coordinates_forward(&c[0], w, w));
        FKT_TRY(fkt_coordinates_forward(&c[1], w + length, w + length));
        FKT_TRY(fkt_quantise_joined(c, 2, rq, w, q));
        for (uint32_t k = 0; k < 2 * length; k++) norm += (int64_t)q[k] * q[k];
        if (norm > (int64_t)rq * rq) {
            st = fkt_fail(FKT_E_NUMERIC, "joined parts of length %u have |q|^2 = %lld, above Rq^2 = %u^2", length,
                          (long long)norm, rq);
            goto out;
        }
    }
out:
    return st;
}

static fkt_status check_quantiser(struct fkt_audit_outcome *o)
{
    static const uint32_t lengths[] = {2, 3, 9, 65}, radii[] = {FKT_RQ_MIN, FKT_RQ_DEFAULT};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 2; k++) {
            fkt_status st = check_sphere(lengths[i], radii[k], &o->quantised);
            if (st == FKT_OK) st = check_joined(lengths[i], radii[k], &o->quantised);
            if (st != FKT_OK) return st;
        }
    return FKT_OK;
}

static fkt_status check_processes(const struct fkt_audit_options *o, enum fkt_noise_place place)
{
    struct fkt_privacy_spec p = o->privacy;
    struct fkt_audit_world *w = NULL;
    struct fkt_audit_draw one, other;
    fkt_status st;
    p.adjacency = FKT_ADJACENCY_ADD_REMOVE;
    p.mechanism = FKT_MECHANISM_JOINT;
    FKT_TRY(fkt_alloc(&w, 1));
    FKT_TRY(fkt_audit_world_init(w, &p, place, FKT_CANARY_ADD, FKT_AUDIT_ONE));
    FKT_TRY(o->elsewhere(w, &one));
    FKT_TRY(o->elsewhere(w, &other));
    if (!memcmp(one.noise, other.noise, sizeof one.noise))
        st = fkt_fail(FKT_E_ENTROPY, "two processes draw the same noise");
out:
    if (w) fkt_audit_world_clear(w);
    fkt_free(w);
    return st;
}

/* ---- all of it ---- */

static fkt_status check_options(const struct fkt_audit_options *o)
{
    if (o->trials < 1000 || o->trials > (uint64_t)1 << 32 || !(o->confidence > 0.5 && o->confidence < 1))
        return fkt_fail(FKT_E_ARG, "an audit needs 1000 trials or more and a confidence between 0.5 and 1");
    if (o->privacy.mechanism == FKT_MECHANISM_PAPER && o->one_layout && o->layout != FKT_AUDIT_ONE)
        return fkt_fail(FKT_E_ARG, "the paper's recipe is for one part");
    if (o->privacy.mechanism == FKT_MECHANISM_PAPER &&
        ((o->one_adjacency && o->privacy.adjacency != FKT_ADJACENCY_REPLACE) ||
         (o->one_place && o->place != FKT_NOISE_PLACE_CENTRAL)))
        return fkt_fail(FKT_E_ARG, "the paper's recipe is for 'replace' and noise in one place");
    return FKT_OK;
}

static void plan_cases(struct fkt_audit_outcome *out, const struct fkt_audit_options *o)
{
    const int paper = o->privacy.mechanism == FKT_MECHANISM_PAPER;
    const struct fkt_privacy_part *part = &o->privacy.part[0];
    const double asked[3] = {o->privacy.split_count, part->split_sum, part->split_moment};
    for (int place = 0; place < 2; place++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct fkt_audit_case *c = &out->cases[out->n];
            if (o->one_place && o->place != (enum fkt_noise_place)place) continue;
            if (o->one_adjacency && o->privacy.adjacency != rows[i].adjacency) continue;
            if (o->one_layout && o->layout != rows[i].layout) continue;
            if (paper && rows[i].layout != FKT_AUDIT_ONE) continue;
            if (paper && (rows[i].adjacency != FKT_ADJACENCY_REPLACE || place != FKT_NOISE_PLACE_CENTRAL)) continue;
            *c = (struct fkt_audit_case){.adjacency = rows[i].adjacency,
                                         .place = (enum fkt_noise_place)place,
                                         .canary = rows[i].canary,
                                         .layout = rows[i].layout};
            memcpy(c->split, rows[i].on_counts ? on_counts : asked, sizeof c->split);
            out->n++;
        }
}

fkt_status fkt_mechanism_audit(struct fkt_audit_outcome *out, const struct fkt_audit_options *o)
{
    const struct fkt_privacy_part *part = &o->privacy.part[0];
    double alpha;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(check_options(o));
    FKT_TRY(fkt_privacy_plan(
        &(struct fkt_privacy_plan){0},
        &(struct fkt_privacy_spec){
            .epsilon = o->privacy.epsilon,
            .delta = o->privacy.delta,
            .adjacency = FKT_ADJACENCY_REPLACE,
            .mechanism = o->privacy.mechanism,
            .split_count = o->privacy.split_count,
            .parts = 1,
            .part = {{1, part->split_sum, part->split_moment}}})); /* an impossible request is the caller's error */
    FKT_TRY(broken_by(out->quantiser, check_quantiser(out), "the quantiser"));
    for (int place = 0; o->elsewhere && place < 2; place++)
        if (!out->processes[0])
            FKT_TRY(broken_by(out->processes, check_processes(o, (enum fkt_noise_place)place), "the source of noise"));
    FKT_TRY(broken_by(out->ledger, fkt_audit_ledger(out, o, LEDGER_RELEASES), "the ledger"));
    plan_cases(out, o);
    alpha = (1 - o->confidence) / (5 * (double)out->n); /* two bounds, mu, noise, sites */
    for (size_t i = 0; i < out->n; i++)
        FKT_TRY(broken_by(out->cases[i].broken, run_case(&out->cases[i], o, alpha), "the release"));
out:
    return st;
}

const char *fkt_audit_broken(const struct fkt_audit_outcome *o)
{
    if (o->quantiser[0]) return o->quantiser;
    if (o->processes[0]) return o->processes;
    for (size_t i = 0; i < o->n; i++)
        if (o->cases[i].broken[0]) return o->cases[i].broken;
    return o->ledger[0] ? o->ledger : NULL;
}
