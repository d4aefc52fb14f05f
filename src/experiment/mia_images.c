/* SPDX-License-Identifier: Apache-2.0 */
/* mia_images.c - the experiment `mia-images`: membership inference in the style of LiRA on synthetic images.
 *
 *   release of a random half -> class Gaussians -> samples -> decoded images -> encoded again -> two scores
 *
 * The attacker sees images and labels alone, and has the public codec. Scores of a candidate, from the images of its
 * class: the log-density under the Gaussian fitted to their vectors, and the largest cosine to one of them. The
 * likelihood ratios of both are added. They were chosen on the arm without noise: the density finds the space that the
 * members span, the cosine the images that are near one member, and together they caught more than either alone, or
 * than the correlation with the images' moments, which is the score of `mia`.
 *
 * The Gaussian has a thousandth of the mean variance added to each direction, since the images may be fewer than the
 * numbers of a vector. */
#include "experiment/pool.h"

#include "base/alloc.h"
#include "tensor/linalg.h"

#include <math.h>
#include <string.h>

enum { EACH = 12, IMAGES = 20, CLASSES_QUICK = 4, TRIALS = 1000, QUICK_TRIALS = 200, SCORES = 2 };
#define RIDGE 1e-3

struct sight {     /* what the attacker makes of the images of a trial */
    uint8_t *rgb;  /* (K, IMAGES, S, S, 3) */
    double *seen;  /* (K, IMAGES, m) */
    int32_t *q;    /* the same, not used */
    double *mean;  /* (m) */
    double *apart; /* (IMAGES, m) seen less mean */
    double *cov, *values, *vectors;
};

static void sight_clear(struct sight *s)
{
    fkt_free(s->rgb);
    fkt_free(s->seen);
    fkt_free(s->q);
    fkt_free(s->mean);
    fkt_free(s->apart);
    fkt_free(s->cov);
    fkt_free(s->values);
    fkt_free(s->vectors);
}

static fkt_status sight_init(struct sight *s, const struct fkt_pool *p)
{
    const size_t n = (size_t)p->classes * IMAGES, square = (size_t)p->m * p->m;
    fkt_status st;
    FKT_TRY(fkt_alloc(&s->rgb, n * p->size * p->size * 3));
    FKT_TRY(fkt_alloc(&s->seen, n * p->m));
    FKT_TRY(fkt_alloc(&s->q, n * p->m));
    FKT_TRY(fkt_alloc(&s->mean, p->m));
    FKT_TRY(fkt_alloc(&s->apart, (size_t)IMAGES * p->m));
    FKT_TRY(fkt_alloc(&s->cov, square));
    FKT_TRY(fkt_alloc(&s->values, p->m));
    FKT_TRY(fkt_alloc(&s->vectors, square));
out:
    return st;
}

/* Eigenvalues, with the ridge, and eigenvectors of the covariance of the images of class k. */
static fkt_status fit(struct sight *s, uint32_t m, uint32_t k)
{
    const double *seen = s->seen + (size_t)k * IMAGES * m;
    double trace = 0;
    fkt_status st;
    memset(s->mean, 0, m * sizeof *s->mean);
    memset(s->cov, 0, (size_t)m * m * sizeof *s->cov);
    for (size_t i = 0; i < IMAGES; i++)
        for (uint32_t j = 0; j < m; j++) s->mean[j] += seen[i * m + j] / IMAGES;
    for (size_t i = 0; i < IMAGES; i++)
        for (uint32_t j = 0; j < m; j++) s->apart[i * m + j] = (seen[i * m + j] - s->mean[j]) / sqrt(IMAGES);
    fkt_syrk(s->cov, s->apart, IMAGES, m);
    for (uint32_t i = 0; i < m; i++) {
        trace += s->cov[i * m + i];
        for (uint32_t j = 0; j < i; j++) s->cov[i * m + j] = s->cov[j * m + i];
    }
    FKT_TRY(fkt_eigen(s->values, s->vectors, s->cov, m));
    for (uint32_t i = 0; i < m; i++) s->values[i] = fmax(s->values[i], 0) + fmax(RIDGE * trace / m, 1e-12);
out:
    return st;
}

static double log_density(const struct sight *s, const double *w, uint32_t m)
{
    double sum = 0;
    for (uint32_t i = 0; i < m; i++) {
        double along = 0;
        for (uint32_t j = 0; j < m; j++) along += s->vectors[i * m + j] * (w[j] - s->mean[j]);
        sum -= 0.5 * (along * along / s->values[i] + log(s->values[i]));
    }
    return sum;
}

static double nearest(const double *seen, const double *w, uint32_t m)
{
    double best = -1;
    for (size_t i = 0; i < IMAGES; i++, seen += m) {
        double dot = 0, a = 0, b = 0;
        for (uint32_t j = 0; j < m; j++) {
            dot += seen[j] * w[j];
            a += seen[j] * seen[j];
            b += w[j] * w[j];
        }
        if (a > 0 && b > 0) best = fmax(best, dot / sqrt(a * b));
    }
    return best;
}

static fkt_status score(void *ctx, struct fkt_pool *p, size_t t)
{
    struct sight *s = ctx;
    fkt_status st;
    FKT_TRY(fkt_pool_images(p, t, IMAGES, s->rgb));
    FKT_TRY(fkt_pipeline_vectors(p->pipeline, s->rgb, (size_t)p->classes * IMAGES, s->seen, s->q));
    for (uint32_t k = 0; k < p->classes; k++) {
        FKT_TRY(fit(s, p->m, k));
        for (size_t r = 0; r < p->n; r++) {
            if (p->label[r] != k) continue;
            *fkt_pool_score(p, 0, t, r) = log_density(s, p->w + r * p->m, p->m);
            *fkt_pool_score(p, 1, t, r) = nearest(s->seen + (size_t)k * IMAGES * p->m, p->w + r * p->m, p->m);
        }
    }
out:
    return st;
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    const int quick = lab->options.quick;
    const struct fkt_pool_spec spec = {
        .each = EACH, .classes = quick ? CLASSES_QUICK : 0, .trials = quick ? QUICK_TRIALS : TRIALS, .scores = SCORES};
    struct sight s = {0};
    struct fkt_pool pool;
    fkt_status st;
    FKT_TRY(fkt_pool_open(&pool, lab, c, &spec));
    FKT_TRY(sight_init(&s, &pool));
    FKT_TRY(fkt_pool_attack(&pool, lab, c, score, &s, points));
out:
    sight_clear(&s);
    fkt_pool_clear(&pool);
    return st;
}

const struct fkt_experiment fkt_experiment_mia_images = {
    .name = "mia-images",
    .title = "Membership inference: synthetic images",
    .paper = "Figure 3 (f)",
    .about = "likelihood-ratio attack on synthetic images of few records; the attacker sees images alone",
    .time = "quick: 6 s of processor time",
    .arm = fkt_attack_arms + 1,
    .n_arms = FKT_ATTACK_ARMS - 1,
    FKT_ATTACK_TABLE,
    .run = run};
