/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - two neighbouring datasets for `fedkt audit`, and one release of either.
 *
 *   vector u -> coordinates -> quantiser -> moments -> central       fkt_release_make_into, as `fedkt release` does
 *                                                   \-> distributed  a noise share of every site that stays, from
 *                                                                    its own key; their sum; fkt_release_gather_into
 *
 * Worst cases (src/privacy/sensitivity.md): a record on the sphere; for a swap within a class two of them at the
 * angle with cosine -a^2/(2 b^2), where the sum and the second moment together differ most. With noise shares the
 * attacker is the server with the corrupt sites: it subtracts their noise shares, which they know, and the largest
 * tolerated number of sites is lost, so that only the noise of the remaining honest sites protects. This file does
 * not use the plan's number of noise shares. */
#include "fedkt/advanced/federation.h"
#include "fedkt/advanced/moments.h"

#include "audit/privacy_audit.h"

#include "pipeline/contribution.h"
#include "pipeline/release.h"
#include "task/federation.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "crypto/entropy.h"

#include <math.h>
#include <string.h>

enum {
    RECORDS = 5, /* of the first and of the third class together */
    BLOCK = FKT_AUDIT_NUMBERS / FKT_AUDIT_CLASSES,
    HONEST = FKT_AUDIT_SITES - FKT_AUDIT_LOST - FKT_AUDIT_CORRUPT,
    STAY = FKT_AUDIT_SITES - FKT_AUDIT_LOST
};
static const uint32_t class_of[RECORDS] = {0, 0, 0, 2, 2};
static const double turn = 0.7; /* of the first canary, so that no product of two coordinates is 0 */

static fkt_status make_task(struct fkt_audit_world *w, const struct fkt_privacy_spec *privacy,
                            enum fkt_noise_place place)
{
    static const char *const names[FKT_AUDIT_CLASSES] = {"full", "empty", "half full", "hidden"};
    uint8_t roster[FKT_AUDIT_SITES * FKT_SA_KEY], secrets[FKT_AUDIT_SITES * FKT_SA_SECRET];
    const struct fkt_federation_choices federation = {.sites = FKT_AUDIT_SITES,
                                                      .dropped = FKT_AUDIT_LOST,
                                                      .corrupt = FKT_AUDIT_CORRUPT,
                                                      .records = 2 * RECORDS,
                                                      .roster = roster};
    const struct fkt_task_choices choices = {.name = "audit",
                                             .classes = names,
                                             .n_classes = FKT_AUDIT_CLASSES,
                                             .privacy = *privacy,
                                             .federation = place == FKT_NOISE_PLACE_DISTRIBUTED ? &federation : NULL,
                                             .accept_weak = 1}; /* nothing was released yet */
    const struct fkt_codec_spec spec = {.name = "dct", .size = 8, .dim = FKT_AUDIT_LENGTH - 1};
    struct fkt_part_choice part = {.calibration = &w->calibration,
                                   .split_sum = privacy->part[0].split_sum,
                                   .split_moment = privacy->part[0].split_moment};
    struct fkt_codec *codec = NULL;
    fkt_status st;
    FKT_TRY(fkt_federation_keys(roster, secrets, FKT_AUDIT_SITES, NULL));
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&w->calibration, codec));
    part.codec = codec;
    FKT_TRY(fkt_task_make_into(&w->task, &choices, &part, 1));
    FKT_TRY(fkt_federation_shares(&w->task, &w->shares));
out:
    fkt_wipe(secrets, sizeof secrets);
    fkt_codec_free(codec);
    return st;
}

/* u of direction `angle`, very long or very short, so that its gain is clamped and w is on the sphere. */
static fkt_status on_the_sphere(const struct fkt_coordinates *c, double angle, int out, int32_t q[FKT_AUDIT_LENGTH])
{
    const double size = exp(c->log_mean + (out ? 2 : -2) * c->log_spread);
    const double u[FKT_AUDIT_LENGTH - 1] = {size * cos(angle), size * sin(angle)};
    double v[FKT_AUDIT_LENGTH];
    fkt_status st = fkt_coordinates_forward(c, u, v);
    return st == FKT_OK ? fkt_quantise(c, v, q) : st;
}

/* The angle between two records at which a swap within a class is easiest to detect. */
static double widest_swap(const struct fkt_audit_world *w)
{
    const struct fkt_privacy_spec *p = &w->task.privacy;
    const struct fkt_coordinates *c = &w->task.part[0].coordinates;
    const double cosine =
        fmax(-1, -p->part[0].split_sum / (2 * p->part[0].split_moment)); /* a^2 : b^2 is the split of the budget */
    const double r2 = c->radius * c->radius, g2 = c->gamma * c->gamma;
    return acos(fmin(1, fmax(-1, cosine * r2 + g2))); /* of the two gains, which are opposite */
}

static fkt_status add(struct fkt_audit_world *w, int dataset, uint32_t site, uint32_t label, const int32_t *q)
{
    int64_t *b = w->sites[dataset][site] + (size_t)label * BLOCK, *m = b + 1 + FKT_AUDIT_LENGTH;
    b[0]++;
    for (int i = 0; i < FKT_AUDIT_LENGTH; i++) b[1 + i] += q[i];
    for (int i = 0; i < FKT_AUDIT_LENGTH; i++)
        for (int j = i; j < FKT_AUDIT_LENGTH; j++) *m++ += (int64_t)q[i] * q[j];
    return fkt_moments_add(w->sets[dataset], &label, q, 1);
}

/* The canary is a record of site 0, which is honest; the corrupt sites are the last that stay, and hold nothing. */
static fkt_status add_canary(struct fkt_audit_world *w, enum fkt_audit_canary canary)
{
    const struct fkt_coordinates *c = &w->task.part[0].coordinates;
    int32_t one[FKT_AUDIT_LENGTH], other[FKT_AUDIT_LENGTH];
    fkt_status st;
    FKT_TRY(on_the_sphere(c, turn, 1, one));
    FKT_TRY(on_the_sphere(c, turn + (canary == FKT_CANARY_SWAP ? widest_swap(w) : 2), 0, other));
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
    const struct fkt_coordinates *c = &w->task.part[0].coordinates;
    const struct fkt_moments_layout layout = fkt_layout_one(c->length, c->rq);
    const int64_t *packed;
    struct fkt_rng r;
    fkt_status st = FKT_OK;
    fkt_rng_init(&r, 1, 0); /* public: these records are not secret */
    for (int set = 0; set < 2; set++) FKT_TRY(fkt_moments_new(&w->sets[set], FKT_AUDIT_CLASSES, &layout, 0));
    for (uint32_t i = 0; i < RECORDS; i++) {
        const double u[2] = {fkt_rng_normal(&r), fkt_rng_normal(&r)};
        double v[FKT_AUDIT_LENGTH];
        int32_t q[FKT_AUDIT_LENGTH];
        FKT_TRY(fkt_coordinates_forward(c, u, v));
        FKT_TRY(fkt_quantise(c, v, q));
        for (int set = 0; set < 2; set++) FKT_TRY(add(w, set, i % HONEST, class_of[i], q));
    }
    FKT_TRY(add_canary(w, canary));
    for (int set = 0; set < 2; set++) {
        FKT_TRY(fkt_moments_packed(w->sets[set], &packed));
        memcpy(w->exact[set], packed, sizeof w->exact[set]);
    }
out:
    return st;
}

/* What number i is: 0 count, 1 sum, 2 diagonal, 3 off it. */
static int kind_of(int i)
{
    int at = i % BLOCK - 1 - FKT_AUDIT_LENGTH;
    if (at < 0) return i % BLOCK > 0;
    for (int row = FKT_AUDIT_LENGTH; at >= row; row--) at -= row;
    return at == 0 ? 2 : 3;
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
    for (int i = 0; i < FKT_AUDIT_NUMBERS; i++) {
        const int k = kind_of(i);
        const struct fkt_part_sigma *s = plan.sigma, *t = total.part;
        const double sigma[4] = {plan.sigma_count, s->sum, s->moment, s->cross};
        const double all[4] = {total.count, t->sum, t->moment, t->moment * sqrt(0.5)};
        const struct fkt_dyadic *one[4] = {&w->shares.variance_count, &w->shares.variance[0].sum,
                                           &w->shares.variance[0].moment, &w->shares.variance[0].cross};
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
                                enum fkt_noise_place place, enum fkt_audit_canary canary)
{
    fkt_status st;
    memset(w, 0, sizeof *w);
    FKT_TRY(make_task(w, privacy, place));
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
    fkt_calibration_clear(&w->calibration);
    memset(w, 0, sizeof *w);
}

static fkt_status draw_central(struct fkt_audit_world *w, int dataset, struct fkt_audit_draw *out)
{
    const struct fkt_round_facts facts = {1, 1, 1, 0};
    struct fkt_release r;
    fkt_status st = fkt_release_make_into(&r, &w->task, &w->calibration, w->sets[dataset], &facts, &w->once, NULL);
    if (st != FKT_OK) return st;
    for (int i = 0; i < FKT_AUDIT_NUMBERS; i++) {
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
        for (int i = 0; i < FKT_AUDIT_NUMBERS; i++) {
            const int64_t scale = kind_of(i) == 0 ? w->shares.count_scale : 1;
            total[i] += x[i];
            if (s < HONEST) out->seen[i] += x[i];
            if (s < 2) out->shares[s * FKT_AUDIT_NUMBERS + (uint32_t)i] = x[i] - scale * w->sites[dataset][s][i];
        }
    }
    FKT_TRY(fkt_release_gather_into(&r, &w->task, &w->calibration, total, &facts, 0));
    for (int i = 0; i < FKT_AUDIT_NUMBERS; i++) out->noise[i] = r.moments[i] - w->exact[dataset][i];
    fkt_release_clear(&r);
out:
    return st;
}

fkt_status fkt_audit_world_draw(struct fkt_audit_world *w, int dataset, struct fkt_audit_draw *out)
{
    return w->shares.counted ? draw_distributed(w, dataset, out) : draw_central(w, dataset, out);
}
