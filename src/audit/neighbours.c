/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - two neighbouring datasets for `fedkt audit`, and one release of either.
 *
 *   vector u -> coordinates -> quantiser -> moments -> central       fkt_release_make_into, as `fedkt release` does
 *                                                   \-> distributed  a noise share of every site that stays, from
 *                                                                    its own key; their sum; fkt_release_gather_into
 *
 * Worst cases (src/privacy/sensitivity.md): a record on the sphere in every part; for a swap within a class two of them
 * at the angle with cosine -a^2/(2 b^2) in each part, where the sum and the second moment together differ most. With
 * noise shares the attacker is the server with the corrupt sites: it subtracts their noise shares, which they know, and
 * the largest tolerated number of sites is lost, so that only the noise of the remaining honest sites protects. This
 * file does not use the plan's number of noise shares. */
#include "fedkt/advanced/moments.h"

#include "audit/privacy_audit.h"

#include "pipeline/contribution.h"
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "crypto/entropy.h"

#include <math.h>
#include <string.h>

enum { HONEST = FKT_AUDIT_SITES - FKT_AUDIT_LOST - FKT_AUDIT_CORRUPT, STAY = FKT_AUDIT_SITES - FKT_AUDIT_LOST };
static const uint32_t class_of[FKT_AUDIT_RECORDS] = {0, 0, 0, 2, 2};
static const double turn = 0.7; /* of the first canary, so that no product of two coordinates is 0 */

/* The integers of a record whose parts point into the directions angle[p], as a site makes them. Very long or very
 * short vectors u, so that gains are clamped and each part of w is on its sphere (size 0), or of the given size. */
static fkt_status record(const struct fkt_audit_world *w, const double angle[2], int out, double size,
                         int32_t q[FKT_AUDIT_Q])
{
    const struct fkt_task *t = &w->task;
    struct fkt_coordinates c[2];
    double v[FKT_AUDIT_Q];
    size_t at = 0;
    fkt_status st = FKT_OK;
    for (uint32_t p = 0; p < t->parts; at += c[p++].length) {
        c[p] = t->part[p].coordinates;
        const int clip = c[p].kind == FKT_COORDINATE_CLIP;
        const double far = clip ? 10 : exp(c[p].log_mean + (out ? 2 : -2) * c[p].log_spread);
        const double r = size > 0 ? size : far, u[2] = {r * cos(angle[p]), r * sin(angle[p])};
        FKT_TRY(fkt_coordinates_forward(&c[p], u, v + at));
        if (!t->joined) FKT_TRY(fkt_quantise(&c[p], v + at, q + at));
    }
    if (t->joined) FKT_TRY(fkt_quantise_joined(c, t->parts, t->layout.rq[0], v, q));
out:
    return st;
}

/* The angle between two records on the sphere of a part whose vectors w have this cosine; their gains are opposite. */
static double angle_of(const struct fkt_coordinates *c, double cosine)
{
    const double r2 = c->radius * c->radius, g2 = c->gamma * c->gamma;
    if (c->kind == FKT_COORDINATE_CLIP) return acos(cosine);
    return acos(fmin(1, fmax(-1, cosine * r2 + g2)));
}

/* The cosine at which a swap within a class is easiest to detect; a move is where second moments of the two cannot
 * cancel, which matters when they are pooled. */
static double widest(const struct fkt_audit_world *w, uint32_t p, enum fkt_audit_canary canary)
{
    const struct fkt_privacy_part *part = &w->task.privacy.part[w->task.joined ? 0 : p];
    if (canary != FKT_CANARY_SWAP) return 0;
    return fmax(-1, -part->split_sum / (2 * part->split_moment)); /* a^2 : b^2 is the split of the budget */
}

static fkt_status add(struct fkt_audit_world *w, int dataset, uint32_t site, uint32_t label, const int32_t *q)
{
    const struct fkt_moments_layout *l = &w->task.layout;
    int64_t *x = w->sites[dataset][site];
    const int32_t *from = q;
    x[fkt_layout_count(l, FKT_AUDIT_CLASSES, label)]++;
    for (uint32_t p = 0; p < l->parts; from += l->length[p++]) {
        int64_t *s = x + fkt_layout_sum(l, FKT_AUDIT_CLASSES, label, p);
        int64_t *m = x + fkt_layout_moment(l, FKT_AUDIT_CLASSES, label, p);
        for (uint32_t i = 0; i < l->length[p]; i++) {
            s[i] += from[i];
            for (uint32_t j = i; j < l->length[p]; j++) *m++ += (int64_t)from[i] * from[j];
        }
    }
    return fkt_moments_add(w->sets[dataset], &label, q, 1);
}

/* The canary is a record of site 0, which is honest; the corrupt sites are the last that stay, and hold nothing. */
static fkt_status add_canary(struct fkt_audit_world *w, enum fkt_audit_canary canary)
{
    const double here[2] = {turn, turn};
    double there[2] = {0};
    int32_t one[FKT_AUDIT_Q], other[FKT_AUDIT_Q];
    fkt_status st;
    for (uint32_t p = 0; p < w->task.parts; p++)
        there[p] = turn + angle_of(&w->task.part[p].coordinates, widest(w, p, canary));
    FKT_TRY(record(w, here, 1, 0, one));
    FKT_TRY(record(w, there, 0, 0, other));
    if (canary == FKT_CANARY_ADD) FKT_TRY(add(w, 1, 0, 3, one));
    if (canary == FKT_CANARY_SWAP) FKT_TRY(add(w, 0, 0, 0, one));
    if (canary == FKT_CANARY_SWAP) FKT_TRY(add(w, 1, 0, 0, other));
    if (canary == FKT_CANARY_MOVE) FKT_TRY(add(w, 0, 0, 0, one));
    if (canary == FKT_CANARY_MOVE) FKT_TRY(add(w, 1, 0, 3, other));
out:
    return st;
}

static fkt_status add_records(struct fkt_audit_world *w, enum fkt_audit_canary canary)
{
    const int64_t *packed;
    struct fkt_rng r;
    fkt_status st = FKT_OK;
    fkt_rng_init(&r, 1, 0); /* public: these records are not secret */
    for (int set = 0; set < 2; set++) FKT_TRY(fkt_moments_new(&w->sets[set], FKT_AUDIT_CLASSES, &w->task.layout, 0));
    for (uint32_t i = 0; i < FKT_AUDIT_RECORDS; i++) {
        const double angle[2] = {3 * fkt_rng_normal(&r), 3 * fkt_rng_normal(&r)};
        int32_t q[FKT_AUDIT_Q];
        FKT_TRY(record(w, angle, 0, 0.2 + fkt_rng_unit(&r), q));
        for (int set = 0; set < 2; set++) FKT_TRY(add(w, set, i % HONEST, class_of[i], q));
    }
    FKT_TRY(add_canary(w, canary));
    for (int set = 0; set < 2; set++) {
        FKT_TRY(fkt_moments_packed(w->sets[set], &packed));
        memcpy(w->exact[set], packed, (size_t)w->numbers * sizeof *packed);
    }
out:
    return st;
}

static void name_matrix(struct fkt_audit_world *w, uint32_t part)
{
    const uint32_t length = w->task.layout.length[part];
    for (uint32_t i = 0; i < length; i++)
        for (uint32_t j = i; j < length; j++, w->numbers++) {
            w->kind[w->numbers] = i == j ? 2 : 3;
            w->part[w->numbers] = (uint8_t)part;
        }
}

/* What every number of the vector is, in the order that fedkt/layout.h states. */
static void name_numbers(struct fkt_audit_world *w)
{
    const struct fkt_moments_layout *l = &w->task.layout;
    for (uint32_t k = 0; k < FKT_AUDIT_CLASSES; k++) {
        w->numbers++; /* the count: kind 0 */
        for (uint32_t p = 0; p < l->parts; p++) {
            for (uint32_t i = 0; i < l->length[p]; i++, w->numbers++) {
                w->kind[w->numbers] = 1;
                w->part[w->numbers] = (uint8_t)p;
            }
            if (!l->pooled) name_matrix(w, p);
        }
    }
    for (uint32_t p = 0; l->pooled && p < l->parts; p++) name_matrix(w, p);
}

static double deviation(struct fkt_dyadic v) { return sqrt(ldexp((double)v.num, -(int)v.shift)); }

static fkt_status claim_noise(struct fkt_audit_world *w)
{
    struct fkt_privacy_plan plan = w->shares.plan;
    const int shared = w->shares.counted > 0;
    struct fkt_sigmas total = {0};
    fkt_status st = FKT_OK;
    if (!shared) FKT_TRY(fkt_privacy_plan(&plan, &w->task.privacy));
    else FKT_TRY(fkt_privacy_total_sigmas(&total, &w->shares, STAY));
    for (int i = 0; i < w->numbers; i++) {
        const int k = w->kind[i];
        const struct fkt_part_sigma *s = &plan.sigma[w->part[i]], *t = &total.part[w->part[i]];
        const struct fkt_part_variance *v = &w->shares.variance[w->part[i]];
        const double sigma[4] = {plan.sigma_count, s->sum, s->moment, s->cross};
        const double all[4] = {total.count, t->sum, t->moment, t->moment * sqrt(0.5)};
        const struct fkt_dyadic *one[4] = {&w->shares.variance_count, &v->sum, &v->moment, &v->cross};
        w->seen_shift[i] = (double)(w->exact[1][i] - w->exact[0][i]) * (k == 0 ? w->shares.count_scale : 1);
        if (shared) {
            w->share_sigma[i] = deviation(*one[k]);
            w->seen_sigma[i] = w->share_sigma[i] * sqrt(HONEST);
            w->sigma[i] = all[k];
        } else {
            w->seen_sigma[i] = sigma[k];
            w->sigma[i] = sigma[k] > 0 ? sqrt(sigma[k] * sigma[k] + 1.0 / 12) : 0; /* rounded to integers */
        }
    }
out:
    return st;
}

fkt_status fkt_audit_world_init(struct fkt_audit_world *w, const struct fkt_privacy_spec *privacy,
                                enum fkt_noise_place place, enum fkt_audit_canary canary, enum fkt_audit_layout layout)
{
    fkt_status st;
    memset(w, 0, sizeof *w);
    FKT_TRY(fkt_audit_task(w, privacy, place, layout));
    name_numbers(w);
    FKT_TRY(add_records(w, canary));
    FKT_TRY(claim_noise(w));
    FKT_TRY(fkt_ledger_init(&w->once, 1e300, 0));
out:
    if (st != FKT_OK) fkt_audit_world_clear(w);
    return st;
}

void fkt_audit_world_clear(struct fkt_audit_world *w)
{
    fkt_moments_free(w->sets[0]);
    fkt_moments_free(w->sets[1]);
    fkt_task_clear(&w->task);
    for (int p = 0; p < 2; p++) fkt_calibration_clear(&w->calibration[p]);
    memset(w, 0, sizeof *w);
}

static fkt_status draw_central(struct fkt_audit_world *w, int dataset, struct fkt_audit_draw *out)
{
    const struct fkt_round_facts facts = {1, 1, 1, 0};
    struct fkt_release r;
    fkt_status st = fkt_release_make_into(&r, &w->task, w->calibration, w->sets[dataset], &facts, &w->once, NULL);
    if (st != FKT_OK) return st;
    for (int i = 0; i < w->numbers; i++) {
        out->seen[i] = r.moments[i];
        out->noise[i] = r.moments[i] - w->exact[dataset][i];
    }
    fkt_release_clear(&r);
    return FKT_OK;
}

/* The noise share of one site, from its own key as in `fedkt join`. */
static fkt_status draw_share(struct fkt_audit_world *w, int dataset, uint32_t site, int64_t x[FKT_AUDIT_NUMBERS])
{
    struct fkt_entropy os, keys, noise;
    struct fkt_entropy_seeded own[2];
    uint8_t seed[FKT_ENTROPY_KEY];
    fkt_status st;
    fkt_entropy_os(&os);
    FKT_TRY(os.fill(os.self, seed, sizeof seed));
    fkt_contribution_entropy(&keys, &noise, own, &w->task, site, seed);
    FKT_TRY(fkt_contribution_make(x, w->sites[dataset][site], &w->task, &w->shares, &noise));
out:
    fkt_wipe(own, sizeof own);
    fkt_wipe(seed, sizeof seed);
    return st;
}

static fkt_status draw_distributed(struct fkt_audit_world *w, int dataset, struct fkt_audit_draw *out)
{
    const struct fkt_round_facts facts = {FKT_AUDIT_SITES, STAY, 1, 0};
    int64_t x[FKT_AUDIT_NUMBERS], total[FKT_AUDIT_NUMBERS] = {0};
    struct fkt_release r = {0};
    fkt_status st = FKT_OK;
    memset(out->seen, 0, sizeof out->seen);
    for (uint32_t s = 0; s < STAY; s++) {
        FKT_TRY(draw_share(w, dataset, s, x));
        for (int i = 0; i < w->numbers; i++) {
            const int64_t scale = w->kind[i] == 0 ? w->shares.count_scale : 1;
            total[i] += x[i];
            if (s < HONEST) out->seen[i] += x[i];
            if (s < 2) out->shares[s * (uint32_t)w->numbers + (uint32_t)i] = x[i] - scale * w->sites[dataset][s][i];
        }
    }
    FKT_TRY(fkt_release_gather_into(&r, &w->task, w->calibration, total, &facts, 0));
    for (int i = 0; i < w->numbers; i++) out->noise[i] = r.moments[i] - w->exact[dataset][i];
    fkt_release_clear(&r);
out:
    return st;
}

fkt_status fkt_audit_world_draw(struct fkt_audit_world *w, int dataset, struct fkt_audit_draw *out)
{
    return w->shares.counted ? draw_distributed(w, dataset, out) : draw_central(w, dataset, out);
}
