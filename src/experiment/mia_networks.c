/* SPDX-License-Identifier: Apache-2.0 */
/* mia_networks.c - the experiment `mia-networks`: membership inference in the style of LiRA on networks that learnt
 * from synthetic images.
 *
 *   release of a random half -> images -> network, from scratch -> its confidence in each candidate's label
 *   a random half itself     --------------^   the control: it learns its few records by heart
 *
 * Source: Carlini et al. 2022. The score is log(p / (1 - p)), p the probability of the true class; each trial is
 * attacked with all others as shadow networks. We differ: the first weights are the same in all trials, since the
 * seed of a recipe is public, so an attacker has them; and images are not augmented, neither in training nor for the
 * score. Quick runs have a quarter of the pixels. */
#include "experiment/attack.h"
#include "experiment/pool.h"

#include "base/alloc.h"
#include "fedkt/train.h"

#include <string.h>

enum { EACH = 12, IMAGES = 20, TRIALS = 200, EPOCHS = 20, BATCH = 8 };
enum { QUICK_CLASSES = 4, QUICK_IMAGES = 8, QUICK_TRIALS = 64, QUICK_SIZE = 16 };

struct shadow {
    struct fkt_lab *lab;
    const char **names; /* (K) borrowed from the task */
    size_t each;        /* images of a class */
    uint8_t *rgb;       /* what a network learns from */
    uint32_t *label;
    struct fkt_images images; /* of the two */
    float *logits;            /* (n, K) */
    double *scores;           /* (K) */
};

static void shadow_clear(struct shadow *s)
{
    fkt_free(s->names);
    fkt_free(s->rgb);
    fkt_free(s->label);
    fkt_free(s->logits);
    fkt_free(s->scores);
}

static fkt_status shadow_init(struct shadow *s, const struct fkt_pool *p)
{
    const size_t drawn = p->classes * s->each, most = drawn > p->n ? drawn : p->n;
    fkt_status st;
    FKT_TRY(fkt_alloc(&s->names, p->classes));
    FKT_TRY(fkt_alloc(&s->rgb, most * p->size * p->size * 3));
    FKT_TRY(fkt_alloc(&s->label, most));
    FKT_TRY(fkt_alloc(&s->logits, p->n * p->classes));
    FKT_TRY(fkt_alloc(&s->scores, p->classes));
    for (uint32_t k = 0; k < p->classes; k++) s->names[k] = fkt_task_class(fkt_pipeline_task(p->pipeline), k);
out:
    return st;
}

static fkt_status the_images(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    (void)epoch;
    *out = *(const struct fkt_images *)ctx;
    return FKT_OK;
}

/* What the network of trial t learns from. */
static fkt_status gather(struct shadow *s, const struct fkt_pool *p, size_t t)
{
    const size_t image = (size_t)p->size * p->size * 3;
    size_t n = 0;
    fkt_status st = FKT_OK;
    if (p->arm->kind == FKT_POOL_MEMBERS) {
        for (size_t r = 0; r < p->n; r++) {
            if (!p->member[t * p->n + r]) continue;
            memcpy(s->rgb + n * image, p->rgb + r * image, image);
            s->label[n++] = p->label[r];
        }
    } else {
        FKT_TRY(fkt_pool_images(p, t, s->each, s->rgb));
        for (; n < p->classes * s->each; n++) s->label[n] = (uint32_t)(n / s->each);
    }
    s->images = (struct fkt_images){.rgb = s->rgb, .label = s->label, .n = n, .size = p->size};
out:
    return st;
}

static fkt_status learn(struct shadow *s, const struct fkt_pool *p, struct fkt_model **model)
{
    const struct fkt_training_set like = {.size = p->size, .classes = (char **)s->names, .n_classes = p->classes};
    const struct fkt_image_source source = {.images = the_images, .ctx = &s->images};
    struct fkt_recipe recipe;
    fkt_recipe_default(&recipe);
    recipe.epochs = EPOCHS;
    recipe.batch = BATCH;
    recipe.flip = 0;
    recipe.pad = 0;
    recipe.seed = p->seed;
    recipe.threads = s->lab->options.threads;
    recipe.device = s->lab->options.device;
    return fkt_lab_learn(s->lab, &recipe, &source, &like, model);
}

static fkt_status score(void *ctx, struct fkt_pool *p, size_t t)
{
    struct shadow *s = ctx;
    const struct fkt_predict_options predict = {.threads = s->lab->options.threads, .device = s->lab->options.device};
    struct fkt_model *model = NULL;
    fkt_status st;
    FKT_TRY(gather(s, p, t));
    FKT_TRY(learn(s, p, &model));
    FKT_TRY(fkt_model_predict(model, p->rgb, p->n, s->logits, NULL, &predict));
    for (size_t r = 0; r < p->n; r++) {
        for (uint32_t k = 0; k < p->classes; k++) s->scores[k] = s->logits[r * p->classes + k];
        *fkt_pool_score(p, 0, t, r) = fkt_log_odds(s->scores, p->classes, p->label[r]);
    }
out:
    fkt_model_free(model);
    return st;
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    const int quick = lab->options.quick;
    const struct fkt_pool_spec spec = {.each = EACH,
                                       .classes = quick ? QUICK_CLASSES : 0,
                                       .size = quick ? QUICK_SIZE : 0,
                                       .trials = quick ? QUICK_TRIALS : TRIALS};
    struct shadow s = {.lab = lab, .each = quick ? QUICK_IMAGES : IMAGES};
    struct fkt_pool pool;
    fkt_status st;
    FKT_TRY(fkt_pool_open(&pool, lab, c, &spec));
    FKT_TRY(shadow_init(&s, &pool));
    FKT_TRY(fkt_pool_attack(&pool, lab, c, score, &s, points));
out:
    shadow_clear(&s);
    fkt_pool_clear(&pool);
    return st;
}

const struct fkt_experiment fkt_experiment_mia_networks = {
    .name = "mia-networks",
    .title = "Membership inference: networks",
    .paper = "Figure 3 (f)",
    .about = "likelihood-ratio attack on networks trained on synthetic images, and on members themselves",
    .time = "quick: 50 s of processor time",
    .arm = fkt_attack_arms,
    .n_arms = FKT_ATTACK_ARMS,
    .needs_network = 1,
    FKT_ATTACK_TABLE,
    .run = run};
