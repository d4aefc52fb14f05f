/* SPDX-License-Identifier: Apache-2.0 */
/* mia.c - the experiment `mia`: membership inference in the style of LiRA on a release, and its ROC (Figure 3 (f)).
 *
 * Many releases are made, each of a random half of some records; for every release but the attacked one the attacker
 * knows who was in it (attack.c). The score of a record q is the correlation of its own moments with the released
 * ones, S.q / Rq^2 + q'Mq / Rq^4: the statistic on which one record more moves a release most. There are twelve
 * records of a class, since few records are the hard case for privacy.
 *
 * We differ from the paper, which attacks one network with one threshold: the attack is on the release itself.
 * Images and networks are made from it alone, so the best attack on them is not better than the best one on it;
 * attacks on them are not run here. The arm without noise is the control that the attack must catch. */
#include "experiment/attack.h"
#include "experiment/lab.h"
#include "experiment/list.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "crypto/entropy.h"
#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/privacy.h"

#include <math.h>
#include <string.h>

enum { EACH = 12, TRIALS = 1000, QUICK_TRIALS = 200, NO_NOISE = 1 };

struct world {
    struct fkt_pipeline *pipeline;
    uint32_t classes, m; /* m: numbers of a record vector */
    size_t n;            /* records: EACH of every class */
    uint32_t *label;     /* (n) */
    int32_t *q;          /* (n, m) */
    struct fkt_privacy_plan plan;
    int64_t *noised;
    double *score, *ratio; /* (trials, n) */
    uint8_t *member;       /* (trials, n) */
    size_t trials;
};

static void world_clear(struct world *w)
{
    fkt_pipeline_free(w->pipeline);
    fkt_free(w->label);
    fkt_free(w->q);
    fkt_free(w->noised);
    fkt_free(w->score);
    fkt_free(w->ratio);
    fkt_free(w->member);
}

static fkt_status open_pipeline(struct fkt_lab *lab, const struct fkt_cell *c, const struct fkt_lab_set *set,
                                struct world *w)
{
    struct fkt_calibration calibration[FKT_PARTS_MAX] = {{0}};
    struct fkt_sweep_spec parts = {0};
    struct fkt_task_choices choices = {.privacy = {.epsilon = c->arm->more,
                                                   .delta = FKT_EXPERIMENT_DELTA,
                                                   .adjacency = c->arm->adjacency,
                                                   .mechanism = c->arm->mechanism},
                                       .accept_weak = 1};
    const char **names = NULL;
    struct fkt_task *task = NULL;
    fkt_status st;
    w->classes = (uint32_t)fkt_dataset_classes(set->data);
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) parts.calibration[p] = &calibration[p];
    FKT_TRY(fkt_alloc(&names, w->classes));
    for (uint32_t k = 0; k < w->classes; k++) names[k] = fkt_dataset_class(set->data, k);
    choices.classes = names;
    choices.n_classes = w->classes;
    FKT_TRY(fkt_lab_parts(lab, c->arm, set->size, &parts));
    parts.part[0].codec = parts.codec[0];
    parts.part[0].calibration = &calibration[0];
    FKT_TRY(fkt_task_make(&task, &choices, parts.part, 1));
    FKT_TRY(fkt_pipeline_open(&w->pipeline, task, NULL, NULL));
    FKT_TRY(fkt_privacy_plan(&w->plan, fkt_task_privacy(task)));
    w->m = fkt_task_layout(task)->length[0];
out:
    fkt_task_free(task);
    fkt_codec_free(parts.codec[0]);
    fkt_calibration_clear(&calibration[0]);
    fkt_free(names);
    return st;
}

/* The first EACH records of every class. */
static fkt_status encode(const struct fkt_lab_set *set, struct world *w)
{
    const size_t pixels = (size_t)set->size * set->size * 3, all = fkt_dataset_size(set->data);
    uint32_t *have = NULL;
    uint8_t *rgb = NULL;
    double *vectors = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&have, w->classes));
    FKT_TRY(fkt_alloc(&rgb, w->classes * EACH * pixels));
    FKT_TRY(fkt_alloc(&w->label, w->classes * (size_t)EACH));
    for (size_t i = 0; i < all; i++) {
        const uint32_t k = fkt_dataset_label(set->data, i);
        if (have[k] >= EACH) continue;
        have[k]++;
        w->label[w->n] = k;
        FKT_TRY(fkt_dataset_read(set->data, i, set->size, FKT_FILTER_BILINEAR, rgb + w->n++ * pixels, NULL));
    }
    FKT_TRY(fkt_alloc(&vectors, w->n * w->m));
    FKT_TRY(fkt_alloc(&w->q, w->n * w->m));
    FKT_TRY(fkt_pipeline_vectors(w->pipeline, rgb, w->n, vectors, w->q));
out:
    fkt_free(have);
    fkt_free(rgb);
    fkt_free(vectors);
    return st;
}

static double correlation(const struct world *w, const struct fkt_moments_layout *l, size_t r)
{
    const int32_t *q = w->q + r * w->m;
    const int64_t *sum = w->noised + fkt_layout_sum(l, w->classes, w->label[r], 0),
                  *moment = w->noised + fkt_layout_moment(l, w->classes, w->label[r], 0);
    const double square = (double)l->rq[0] * l->rq[0];
    double first = 0, second = 0;
    for (uint32_t i = 0; i < w->m; i++) first += (double)sum[i] * q[i];
    for (uint32_t i = 0; i < w->m; i++)
        for (uint32_t j = i; j < w->m; j++, moment++) second += (i == j ? 1 : 2) * (double)*moment * q[i] * q[j];
    return first / square + second / (square * square);
}

/* A release of a random half; then the score of every record, in it or not. */
static fkt_status trial(struct world *w, const struct fkt_arm *arm, size_t t, uint64_t seed)
{
    const struct fkt_moments_layout *l = fkt_task_layout(fkt_pipeline_task(w->pipeline));
    uint8_t *member = w->member + t * w->n;
    struct fkt_moments *moments = NULL;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    struct fkt_ledger ledger;
    const int64_t *exact;
    struct fkt_rng rng;
    fkt_status st;
    fkt_rng_init(&rng, seed, t);
    FKT_TRY(fkt_moments_new(&moments, w->classes, l, 0));
    for (size_t r = 0; r < w->n; r++) {
        member[r] = (uint8_t)(fkt_rng_u64(&rng) & 1);
        if (member[r]) FKT_TRY(fkt_moments_add(moments, &w->label[r], w->q + r * w->m, 1));
    }
    FKT_TRY(fkt_moments_packed(moments, &exact));
    if (arm->kind == NO_NOISE) memcpy(w->noised, exact, fkt_layout_numbers(l, w->classes) * sizeof *exact);
    else {
        fkt_entropy_seeded_init(&seeded, seed, 1 + t);
        fkt_entropy_seeded(&entropy, &seeded);
        FKT_TRY(fkt_ledger_init(&ledger, w->plan.mu * w->plan.mu, 0));
        FKT_TRY(fkt_privacy_release(w->noised, exact, w->classes, l, &w->plan, &ledger, &entropy));
    }
    for (size_t r = 0; r < w->n; r++) w->score[t * w->n + r] = correlation(w, l, r);
out:
    fkt_moments_free(moments);
    return st;
}

/* The largest true positive rate that mu-GDP allows at a false positive rate (Dong, Roth, Su 2022): Phi(mu - z), z the
 * upper quantile of that rate, by bisection. */
static double allowed(double mu, double rate)
{
    double lo = -40, hi = 40;
    if (rate >= 1) return 1;
    for (int i = 0; i < 100; i++) {
        const double z = (lo + hi) / 2;
        if (erfc(z / sqrt(2)) / 2 > rate) lo = z;
        else hi = z;
    }
    return erfc((lo - mu) / sqrt(2)) / 2;
}

/* The bound is of add-remove: `replace` says nothing of membership, and the control has no noise. */
static fkt_status add_rate(const struct fkt_cell *c, const struct world *w, const struct fkt_position *x, double found,
                           double area, json_t *points)
{
    json_t *values = json_pack("{s:f s:f}", "tpr", found, "auc", area);
    if (c->arm->kind != NO_NOISE && c->arm->adjacency == FKT_ADJACENCY_ADD_REMOVE)
        json_object_set_new(values, "bound", json_real(allowed(w->plan.mu, x->x)));
    return fkt_point_add(points, x, NULL, values, NULL);
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    struct world w = {.trials = lab->options.quick ? QUICK_TRIALS : TRIALS};
    double rate[8], found[8], area;
    struct fkt_lab_set set;
    fkt_status st;
    FKT_TRY(fkt_lab_set(lab, c->panel, &set));
    FKT_TRY(open_pipeline(lab, c, &set, &w));
    FKT_TRY(encode(&set, &w));
    FKT_TRY(fkt_alloc(&w.noised, fkt_layout_numbers(fkt_task_layout(fkt_pipeline_task(w.pipeline)), w.classes)));
    FKT_TRY(fkt_alloc(&w.score, w.trials * w.n));
    FKT_TRY(fkt_alloc(&w.ratio, w.trials * w.n));
    FKT_TRY(fkt_alloc(&w.member, w.trials * w.n));
    for (size_t t = 0; t < w.trials; t++) FKT_TRY(trial(&w, c->arm, t, c->seed));
    fkt_lira(w.ratio, w.score, w.member, w.trials, w.n);
    for (size_t i = 0; i < c->n_x; i++) rate[i] = c->x[i].x;
    FKT_TRY(fkt_roc(w.ratio, w.member, w.trials * w.n, rate, found, c->n_x, &area));
    for (size_t i = 0; i < c->n_x; i++) FKT_TRY(add_rate(c, &w, &c->x[i], found[i], area, points));
out:
    world_clear(&w);
    return st;
}

/* more: epsilon; that of the control is not used. */
static const struct fkt_arm arms[] = {
    {.name = "control", .title = "no noise: the control", .codec = "fedkt-ae", .kind = NO_NOISE, .more = 10},
    {.name = "paper-10",
     .title = "paper's mechanism, epsilon 10",
     .codec = "fedkt-ae",
     .coordinates = FKT_COORDINATE_CLIP,
     .mechanism = FKT_MECHANISM_PAPER,
     .adjacency = FKT_ADJACENCY_REPLACE,
     .more = 10},
    {.name = "joint-10", .title = "joint, epsilon 10", .codec = "fedkt-ae", .more = 10},
    {.name = "joint-1", .title = "joint, epsilon 1", .codec = "fedkt-ae", .more = 1}};
static const char *const sets[] = {"eurosat", "cifar10"};
static const struct fkt_position rates[] = {{0.001, 0}, {0.003, 0}, {0.01, 0}, {0.03, 0}, {0.1, 0}, {0.3, 0}, {1, 0}};
static const struct fkt_metric metrics[] = {{"tpr", "true positive rate", 1, 4, 0},
                                            {"auc", "area under the ROC", 1, 3, 0},
                                            {"bound", "most that the promise allows", 1, 4, 0}};

const struct fkt_experiment fkt_experiment_mia = {.name = "mia",
                                                  .title = "Membership inference",
                                                  .paper = "Figure 3 (f)",
                                                  .about = "likelihood-ratio attack on releases of few records, with a "
                                                           "control that it must catch",
                                                  .time = "quick: 4 s of processor time",
                                                  .x_title = "false positive rate",
                                                  .y_title = "true positive rate",
                                                  .x_log = 1,
                                                  .y_log = 1,
                                                  .plotted = 1,
                                                  .x = rates,
                                                  .n_x = FKT_COUNT(rates),
                                                  .x_quick = rates,
                                                  .n_quick = FKT_COUNT(rates),
                                                  .arm = arms,
                                                  .n_arms = FKT_COUNT(arms),
                                                  .sets = sets,
                                                  .n_sets = FKT_COUNT(sets),
                                                  .metric = metrics,
                                                  .n_metrics = FKT_COUNT(metrics),
                                                  .run = run};
