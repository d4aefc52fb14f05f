/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - candidates of a membership attack, random halves of them with their releases, and the ROC of the attack.
 *
 *   first records of each class -> (trial: a random half -> exact moments -> noise -> scores of all) -> LiRA -> ROC
 *
 * Few records of a class are the hard case for privacy, and the attacker knows all of them but for the membership in
 * the attacked trial. Everything that an experiment scores is made of the release of a trial, so the promise of the
 * release bounds the ROC (Dong, Roth, Su 2022), whatever the score is. All randomness comes from the cell's seed. */
#include "experiment/pool.h"

#include "experiment/attack.h"

#include "base/alloc.h"
#include "base/meter.h"
#include "base/rng.h"
#include "crypto/entropy.h"
#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/synth.h"

#include <math.h>
#include <string.h>

enum { RATES_MAX = 16, STREAM_OF_OTHERS = 1 << 30 };

void fkt_pool_clear(struct fkt_pool *p)
{
    fkt_pipeline_free(p->pipeline);
    fkt_free(p->label);
    fkt_free(p->rgb);
    fkt_free(p->w);
    fkt_free(p->q);
    fkt_free(p->noised);
    fkt_free(p->score);
    fkt_free(p->member);
    memset(p, 0, sizeof *p);
}

static fkt_status open_pipeline(struct fkt_pool *p, struct fkt_lab *lab, const struct fkt_lab_set *set)
{
    struct fkt_calibration calibration[FKT_PARTS_MAX] = {{0}};
    struct fkt_sweep_spec parts = {0};
    struct fkt_task_choices choices = {.privacy = {.epsilon = p->arm->more,
                                                   .delta = FKT_EXPERIMENT_DELTA,
                                                   .adjacency = p->arm->adjacency,
                                                   .mechanism = p->arm->mechanism},
                                       .accept_weak = 1};
    const struct fkt_codec_settings settings = {.device = lab->options.device};
    const char **names = NULL;
    struct fkt_task *task = NULL;
    fkt_status st;
    for (uint32_t i = 0; i < FKT_PARTS_MAX; i++) parts.calibration[i] = &calibration[i];
    FKT_TRY(fkt_alloc(&names, p->classes));
    for (uint32_t k = 0; k < p->classes; k++) names[k] = fkt_dataset_class(set->data, k);
    choices.classes = names;
    choices.n_classes = p->classes;
    FKT_TRY(fkt_lab_parts(lab, p->arm, p->size, &parts));
    parts.part[0].codec = parts.codec[0];
    parts.part[0].calibration = &calibration[0];
    FKT_TRY(fkt_task_make(&task, &choices, parts.part, 1));
    FKT_TRY(fkt_pipeline_open(&p->pipeline, task, NULL, &settings));
    FKT_TRY(fkt_privacy_plan(&p->plan, fkt_task_privacy(task)));
    p->layout = fkt_task_layout(fkt_pipeline_task(p->pipeline));
    p->m = p->layout->length[0];
out:
    fkt_task_free(task);
    fkt_codec_free(parts.codec[0]);
    fkt_calibration_clear(&calibration[0]);
    fkt_free(names);
    return st;
}

/* The first records of every class. */
static fkt_status encode(struct fkt_pool *p, const struct fkt_lab_set *set)
{
    const size_t pixels = (size_t)p->size * p->size * 3, all = fkt_dataset_size(set->data),
                 most = p->classes * (size_t)p->spec.each;
    uint32_t *have = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&have, p->classes));
    FKT_TRY(fkt_alloc(&p->rgb, most * pixels));
    FKT_TRY(fkt_alloc(&p->label, most));
    for (size_t i = 0; i < all && p->n < most; i++) {
        const uint32_t k = fkt_dataset_label(set->data, i);
        if (k >= p->classes || have[k] >= p->spec.each) continue;
        have[k]++;
        p->label[p->n] = k;
        FKT_TRY(fkt_dataset_read(set->data, i, p->size, FKT_FILTER_BILINEAR, p->rgb + p->n++ * pixels, NULL));
    }
    FKT_TRY(fkt_alloc(&p->w, p->n * p->m));
    FKT_TRY(fkt_alloc(&p->q, p->n * p->m));
    FKT_TRY(fkt_pipeline_vectors(p->pipeline, p->rgb, p->n, p->w, p->q));
out:
    fkt_free(have);
    return st;
}

fkt_status fkt_pool_open(struct fkt_pool *p, struct fkt_lab *lab, const struct fkt_cell *c,
                         const struct fkt_pool_spec *spec)
{
    struct fkt_lab_set set;
    fkt_status st;
    memset(p, 0, sizeof *p);
    p->spec = *spec;
    p->arm = c->arm;
    p->seed = c->seed;
    if (!p->spec.scores) p->spec.scores = 1;
    FKT_TRY(fkt_lab_set(lab, c->panel, &set));
    p->size = spec->size ? spec->size : set.size;
    p->classes = (uint32_t)fkt_dataset_classes(set.data);
    if (spec->classes && spec->classes < p->classes) p->classes = spec->classes;
    FKT_TRY(open_pipeline(p, lab, &set));
    FKT_TRY(encode(p, &set));
    FKT_TRY(fkt_alloc(&p->noised, fkt_layout_numbers(p->layout, p->classes)));
    FKT_TRY(fkt_alloc(&p->score, p->spec.scores * spec->trials * p->n));
    FKT_TRY(fkt_alloc(&p->member, spec->trials * p->n));
out:
    if (st != FKT_OK) fkt_pool_clear(p);
    return st;
}

static fkt_status add_noise(struct fkt_pool *p, const int64_t *exact, size_t t)
{
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    struct fkt_ledger ledger;
    fkt_status st;
    fkt_entropy_seeded_init(&seeded, p->seed, 1 + t);
    fkt_entropy_seeded(&entropy, &seeded);
    FKT_TRY(fkt_ledger_init(&ledger, p->plan.mu * p->plan.mu, 0));
    FKT_TRY(fkt_privacy_release(p->noised, exact, p->classes, p->layout, &p->plan, &ledger, &entropy));
out:
    return st;
}

/* Trial t: who is a member, and the release. */
static fkt_status draw(struct fkt_pool *p, size_t t)
{
    uint8_t *member = p->member + t * p->n;
    struct fkt_moments *moments = NULL;
    struct fkt_rng rng, others;
    const int64_t *exact;
    fkt_status st;
    fkt_rng_init(&rng, p->seed, t);
    fkt_rng_init(&others, p->seed, STREAM_OF_OTHERS + t);
    FKT_TRY(fkt_moments_new(&moments, p->classes, p->layout, 0));
    for (size_t r = 0; r < p->n; r++) {
        int in = member[r] = (uint8_t)(fkt_rng_u64(&rng) & 1);
        if (p->arm->kind == FKT_POOL_OTHERS) in = (int)(fkt_rng_u64(&others) & 1);
        if (in) FKT_TRY(fkt_moments_add(moments, &p->label[r], p->q + r * p->m, 1));
    }
    FKT_TRY(fkt_moments_packed(moments, &exact));
    if (p->arm->kind == FKT_POOL_NOISED) FKT_TRY(add_noise(p, exact, t));
    else memcpy(p->noised, exact, fkt_layout_numbers(p->layout, p->classes) * sizeof *exact);
out:
    fkt_moments_free(moments);
    return st;
}

fkt_status fkt_pool_gaussians(const struct fkt_pool *p, enum fkt_estimator estimator, struct fkt_gaussians *out)
{
    const struct fkt_coordinates *c = &fkt_task_part(fkt_pipeline_task(p->pipeline), 0)->coordinates;
    const struct fkt_direction d = fkt_coordinates_direction(c);
    const struct fkt_estimate_options options = {.estimator = estimator};
    struct fkt_noise_scale noise = {.unit = c->radius / c->rq};
    if (p->arm->kind == FKT_POOL_NOISED)
        noise = (struct fkt_noise_scale){.sigma_count = p->plan.sigma_count,
                                         .sigma_sum = p->plan.sigma[0].sum,
                                         .sigma_moment = p->plan.sigma[0].moment,
                                         .unit = noise.unit,
                                         .direction = d.length,
                                         .direction_square = d.square,
                                         .direction_slack = d.slack};
    return fkt_gaussians_estimate(out, p->noised, p->classes, p->m, &noise, &options);
}

fkt_status fkt_pool_images(const struct fkt_pool *p, size_t t, size_t each, uint8_t *rgb)
{
    struct fkt_gaussians g = {0};
    double *w = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&w, p->classes * each * p->m));
    FKT_TRY(fkt_pool_gaussians(p, FKT_ESTIMATOR_CLAMP, &g));
    for (uint32_t k = 0; k < p->classes; k++)
        FKT_TRY(fkt_gaussians_sample(&g, k, p->seed, t * each, each, w + k * each * p->m));
    FKT_TRY(fkt_pipeline_decode(p->pipeline, w, p->classes * each, rgb));
out:
    fkt_gaussians_clear(&g);
    fkt_free(w);
    return st;
}

double *fkt_pool_score(struct fkt_pool *p, unsigned s, size_t t, size_t r)
{
    return &p->score[(s * p->spec.trials + t) * p->n + r];
}

/* The bound is of add-remove: `replace` says nothing of membership, and a control has no noise. */
static fkt_status add_rate(const struct fkt_pool *p, const struct fkt_position *x, double found, double area,
                           json_t *points)
{
    json_t *values = json_pack("{s:f s:f}", "tpr", found, "auc", area);
    if (p->arm->kind == FKT_POOL_NOISED && p->arm->adjacency == FKT_ADJACENCY_ADD_REMOVE)
        json_object_set_new(values, "bound", json_real(fkt_gdp_allowed(p->plan.mu, x->x)));
    return fkt_point_add(points, x, NULL, values, NULL);
}

static fkt_status add_points(const struct fkt_pool *p, const struct fkt_cell *c, json_t *points)
{
    const size_t n = p->spec.trials * p->n;
    double rate[RATES_MAX], found[RATES_MAX], area, *ratio = NULL;
    fkt_status st;
    if (c->n_x > RATES_MAX) return fkt_fail(FKT_E_ARG, "more than %d false positive rates", RATES_MAX);
    FKT_TRY(fkt_alloc(&ratio, n));
    for (unsigned s = 0; s < p->spec.scores; s++) fkt_lira(ratio, p->score + s * n, p->member, p->spec.trials, p->n);
    for (size_t i = 0; i < c->n_x; i++) rate[i] = c->x[i].x;
    FKT_TRY(fkt_roc(ratio, p->member, n, rate, found, c->n_x, &area));
    for (size_t i = 0; i < c->n_x; i++) FKT_TRY(add_rate(p, &c->x[i], found[i], area, points));
out:
    fkt_free(ratio);
    return st;
}

fkt_status fkt_pool_attack(struct fkt_pool *p, const struct fkt_lab *lab, const struct fkt_cell *c,
                           fkt_status (*score)(void *ctx, struct fkt_pool *p, size_t t), void *ctx, json_t *points)
{
    struct fkt_meter meter;
    fkt_status st = FKT_OK;
    fkt_meter_init(&meter, lab->options.progress, "attacking", p->spec.trials);
    for (size_t t = 0; t < p->spec.trials; t++) {
        FKT_TRY(draw(p, t));
        FKT_TRY(score(ctx, p, t));
        FKT_TRY(fkt_meter_add(&meter, 1));
    }
    FKT_TRY(add_points(p, c, points));
out:
    fkt_meter_clear(&meter);
    return st;
}
