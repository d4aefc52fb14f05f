/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c - the linear head that FedPFT and DP-MERF train on drawn features: multinomial logistic regression.
 *
 * Inputs are (x - centre) / spread, both of the training features (drawn ones: post-processing). Loss: the mean cross
 * entropy of a batch, with an L2 penalty; Adam, batches of a new order in each epoch. The weights of the last step
 * count. Weights are float, sums double.
 *
 * Cost: 4 n m K multiplications an epoch. */
#include "learning/features/features.h"

#include "base/alloc.h"
#include "learning/features/descent.h"
#include "tensor/linalg.h"

#include <math.h>
#include <string.h>

void fkt_softmax_default(struct fkt_softmax_settings *s)
{
    *s = (struct fkt_softmax_settings){.epochs = 20, .batch = 256, .rate = 0.01, .decay = 1e-4};
}

void fkt_softmax_clear(struct fkt_softmax *h)
{
    fkt_free(h->centre);
    fkt_free(h->spread);
    fkt_free(h->w);
    *h = (struct fkt_softmax){0};
}

/* Standard deviations of 0 become 1. */
static void standardise(struct fkt_softmax *h, const struct fkt_features *in)
{
    const size_t m = h->m;
    for (size_t i = 0; i < in->n; i++)
        for (size_t j = 0; j < m; j++) h->centre[j] += in->x[i * m + j] / (double)in->n;
    for (size_t i = 0; i < in->n; i++)
        for (size_t j = 0; j < m; j++) {
            const double d = in->x[i * m + j] - h->centre[j];
            h->spread[j] += d * d / (double)in->n;
        }
    for (size_t j = 0; j < m; j++) h->spread[j] = h->spread[j] > 0 ? sqrt(h->spread[j]) : 1;
}

/* Room of a batch of b records. */
struct batch {
    size_t b, m, K;
    double *x; /* (b, m + 1): the last input is 1 */
    double *w; /* (K, m + 1) */
    double *z; /* (b, K) scores, then probabilities less the label */
    double *t; /* (K, b) */
    double *g; /* (K, m + 1) */
};

static void batch_close(struct batch *b)
{
    fkt_free(b->x);
    fkt_free(b->w);
    fkt_free(b->z);
    fkt_free(b->t);
    fkt_free(b->g);
}

static fkt_status batch_open(struct batch *b, size_t n, const struct fkt_softmax *h)
{
    fkt_status st;
    *b = (struct batch){.b = n, .m = h->m, .K = h->classes};
    FKT_TRY(fkt_alloc(&b->x, n * (b->m + 1)));
    FKT_TRY(fkt_alloc(&b->w, b->K * (b->m + 1)));
    FKT_TRY(fkt_alloc(&b->z, n * b->K));
    FKT_TRY(fkt_alloc(&b->t, n * b->K));
    FKT_TRY(fkt_alloc(&b->g, b->K * (b->m + 1)));
out:
    return st;
}

/* Scores of n records, the rows idx (n) of `in`, or from `first` on. */
static void scores(struct batch *b, const struct fkt_softmax *h, const float *w, const struct fkt_features *in,
                   const size_t *idx, size_t first, size_t n)
{
    const size_t m = b->m;
    for (size_t i = 0; i < n; i++) {
        const double *x = in->x + (idx ? idx[i] : first + i) * m;
        for (size_t j = 0; j < m; j++) b->x[i * (m + 1) + j] = (x[j] - h->centre[j]) / h->spread[j];
        b->x[i * (m + 1) + m] = 1;
    }
    for (size_t k = 0; k < b->K; k++) {
        for (size_t j = 0; j < m; j++) b->w[k * (m + 1) + j] = w[k * m + j];
        b->w[k * (m + 1) + m] = w[b->K * m + k];
    }
    fkt_gemm_nt(b->z, b->x, b->w, n, m + 1, b->K);
}

static void gradient(struct batch *b, const struct fkt_features *in, const size_t *idx, size_t n, float *g)
{
    const size_t m = b->m, K = b->K;
    for (size_t i = 0; i < n; i++) {
        double *z = b->z + i * K, top = -INFINITY, sum = 0;
        for (size_t k = 0; k < K; k++) top = fmax(top, z[k]);
        for (size_t k = 0; k < K; k++) sum += z[k] = exp(z[k] - top);
        for (size_t k = 0; k < K; k++) b->t[k * n + i] = (z[k] / sum - (in->label[idx[i]] == k)) / (double)n;
    }
    fkt_gemm(b->g, b->t, b->x, K, n, m + 1);
    for (size_t k = 0; k < K; k++) {
        for (size_t j = 0; j < m; j++) g[k * m + j] = (float)b->g[k * (m + 1) + j];
        g[K * m + k] = (float)b->g[k * (m + 1) + m];
    }
}

static fkt_status learn(struct fkt_softmax *h, const struct fkt_features *in, const struct fkt_softmax_settings *s,
                        struct fkt_descent *d)
{
    struct batch b = {0};
    size_t *order = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&order, in->n));
    FKT_TRY(batch_open(&b, s->batch, h));
    for (uint32_t epoch = 0; epoch < s->epochs; epoch++) {
        struct fkt_rng rng;
        for (size_t i = 0; i < in->n; i++) order[i] = i;
        fkt_rng_init(&rng, s->seed, epoch);
        fkt_rng_shuffle(&rng, order, in->n);
        for (size_t at = 0; at < in->n; at += s->batch) {
            const size_t n = in->n - at < s->batch ? in->n - at : s->batch;
            scores(&b, h, d->x, in, order + at, 0, n);
            gradient(&b, in, order + at, n, d->g);
            fkt_descent_step(d);
        }
    }
    for (size_t i = 0; i < d->n; i++)
        if (!isfinite(d->x[i])) st = fkt_fail(FKT_E_NUMERIC, "the weights of a linear head are not finite");
out:
    batch_close(&b);
    fkt_free(order);
    return st;
}

fkt_status fkt_softmax_fit(struct fkt_softmax *h, const struct fkt_features *in, const struct fkt_softmax_settings *s)
{
    struct fkt_descent d = {0};
    fkt_status st;
    *h = (struct fkt_softmax){.m = in->m, .classes = in->classes};
    if (!in->n || !s->batch) return fkt_fail(FKT_E_ARG, "a linear head needs records to learn from");
    FKT_TRY(fkt_features_check(in));
    FKT_TRY(fkt_alloc(&h->centre, in->m));
    FKT_TRY(fkt_alloc(&h->spread, in->m));
    FKT_TRY(fkt_descent_new(&d, (size_t)in->classes * (in->m + 1), s->rate, s->decay));
    standardise(h, in);
    FKT_TRY(learn(h, in, s, &d));
    h->w = d.x;
    d.x = NULL;
out:
    fkt_descent_clear(&d);
    if (st != FKT_OK) fkt_softmax_clear(h);
    return st;
}

fkt_status fkt_softmax_accuracy(const struct fkt_softmax *h, const struct fkt_features *test, double *accuracy)
{
    enum { ROWS = 256 };
    struct batch b = {0};
    size_t right = 0;
    fkt_status st;
    *accuracy = NAN;
    if (!test->n || test->m != h->m || test->classes != h->classes)
        return fkt_fail(FKT_E_ARG, "a head of %u classes and length %u cannot be tested on these records", h->classes,
                        h->m);
    FKT_TRY(batch_open(&b, ROWS, h));
    for (size_t at = 0; at < test->n; at += ROWS) {
        const size_t n = test->n - at < ROWS ? test->n - at : ROWS;
        scores(&b, h, h->w, test, NULL, at, n);
        for (size_t i = 0; i < n; i++) {
            size_t best = 0;
            for (size_t k = 1; k < b.K; k++)
                if (b.z[i * b.K + k] > b.z[i * b.K + best]) best = k;
            right += best == test->label[at + i];
        }
    }
    *accuracy = (double)right / (double)test->n;
out:
    batch_close(&b);
    return st;
}
