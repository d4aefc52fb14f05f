/* SPDX-License-Identifier: Apache-2.0 */
/* generator.c - DP-MERF's generator: a random code and a class -> a feature vector, one hidden layer.
 * Source: Harder, Adamczewski, Park 2021, section 3: fully connected, trained by Adam on the squared distance between
 * the noised embedding and that of what it draws.
 *
 *   h = max(0, A z + a_k),  y = B h + b,  x = y / sqrt(1 + |y|^2 / R^2)
 *
 * with A (H, C), a (K, H): a row for each class, B (m, H), b (m). The last map keeps x in the public ball of features,
 * as the sigmoid of the paper's keeps pixels in [0, 1]. It is needed: far from all records the embedding of a vector is
 * nearly orthogonal to the target, so an unbounded generator puts part of its draws there.
 *
 * A one-hot class that is appended to the code, as published, multiplies a matrix whose rows are the a_k here. Where we
 * differ: one hidden layer without batch norm, since the output is one vector and not an image; every step draws
 * equally many of each class, and classes have equal weight, as in the paper's form for unequal classes.
 *
 * Parameters are one vector: A, a, B, b. First weights: uniform in +- 1 / sqrt(inputs), a and b too. Cost of a step for
 * N drawn vectors: about 6 N F m + 6 N m H multiplications and N F sines. */
#include "learning/features/features.h"

#include "base/alloc.h"
#include "learning/features/descent.h"
#include "tensor/linalg.h"

#include <math.h>

struct fkt_generator {
    size_t code, hidden, m, classes, batch; /* batch: of each class */
    double radius;
    struct fkt_descent d;
    double *A, *B;       /* (H, C), (m, H): the parameters as doubles */
    double *z, *h, *x;   /* (K batch, C), (K batch, H), (K batch, m) */
    double *shrunk;      /* (K batch) |x| / |y| */
    double *dh, *dx, *t; /* gradients by h and x; a transposed matrix */
};

float *fkt_generator_parameters(struct fkt_generator *g, size_t *n)
{
    *n = g->d.n;
    return g->d.x;
}

const float *fkt_generator_gradient(const struct fkt_generator *g) { return g->d.g; }

void fkt_generator_free(struct fkt_generator *g)
{
    if (!g) return;
    fkt_descent_clear(&g->d);
    fkt_free(g->A);
    fkt_free(g->B);
    fkt_free(g->z);
    fkt_free(g->h);
    fkt_free(g->x);
    fkt_free(g->shrunk);
    fkt_free(g->dh);
    fkt_free(g->dx);
    fkt_free(g->t);
    fkt_free(g);
}

/* Where each matrix begins in the parameters. */
static size_t at_a(const struct fkt_generator *g) { return g->hidden * g->code; }
static size_t at_B(const struct fkt_generator *g) { return at_a(g) + g->classes * g->hidden; }
static size_t at_b(const struct fkt_generator *g) { return at_B(g) + g->m * g->hidden; }

static fkt_status alloc_matrices(struct fkt_generator *g)
{
    const size_t n = g->classes * g->batch, wide = g->hidden > g->m ? g->hidden : g->m;
    fkt_status st;
    FKT_TRY(fkt_alloc(&g->A, g->hidden * g->code));
    FKT_TRY(fkt_alloc(&g->B, g->m * g->hidden));
    FKT_TRY(fkt_alloc(&g->z, n * g->code));
    FKT_TRY(fkt_alloc(&g->h, n * g->hidden));
    FKT_TRY(fkt_alloc(&g->x, n * g->m));
    FKT_TRY(fkt_alloc(&g->shrunk, n));
    FKT_TRY(fkt_alloc(&g->dh, n * g->hidden));
    FKT_TRY(fkt_alloc(&g->dx, n * g->m));
    FKT_TRY(fkt_alloc(&g->t, n * wide));
out:
    return st;
}

fkt_status fkt_generator_new(struct fkt_generator **out, const struct fkt_merf_settings *s, uint32_t m,
                             uint32_t classes, double radius, struct fkt_rng *rng)
{
    struct fkt_generator *g = NULL;
    fkt_status st;
    *out = NULL;
    if (!s->code || !s->hidden || !s->batch || !m || !classes || !(radius > 0))
        return fkt_fail(FKT_E_ARG, "a generator needs a code, a hidden layer, a batch, classes and a radius");
    FKT_TRY(fkt_alloc(&g, 1));
    g->code = s->code;
    g->hidden = s->hidden;
    g->m = m;
    g->classes = classes;
    g->batch = s->batch;
    g->radius = radius;
    FKT_TRY(fkt_descent_new(&g->d, at_b(g) + m, s->rate, 0));
    FKT_TRY(alloc_matrices(g));
    for (size_t i = 0; i < g->d.n; i++) {
        const double inputs = i < at_B(g) ? (double)(g->code + classes) : (double)g->hidden;
        g->d.x[i] = (float)((2 * fkt_rng_unit(rng) - 1) / sqrt(inputs));
    }
    *out = g;
    g = NULL;
out:
    fkt_generator_free(g);
    return st;
}

/* h and x of the codes in g->z. */
static void forward(struct fkt_generator *g)
{
    const size_t n = g->classes * g->batch, H = g->hidden;
    const float *a = g->d.x + at_a(g), *b = g->d.x + at_b(g);
    for (size_t i = 0; i < H * g->code; i++) g->A[i] = g->d.x[i];
    for (size_t i = 0; i < g->m * H; i++) g->B[i] = g->d.x[at_B(g) + i];
    fkt_gemm_nt(g->h, g->z, g->A, n, g->code, H);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < H; j++) g->h[i * H + j] = fmax(0, g->h[i * H + j] + a[i / g->batch * H + j]);
    fkt_gemm_nt(g->x, g->h, g->B, n, H, g->m);
    for (size_t i = 0; i < n; i++) {
        double *x = g->x + i * g->m, square = 0;
        for (size_t j = 0; j < g->m; j++) {
            x[j] += b[j];
            square += x[j] * x[j];
        }
        g->shrunk[i] = 1 / sqrt(1 + square / (g->radius * g->radius));
        for (size_t j = 0; j < g->m; j++) x[j] *= g->shrunk[i];
    }
}

/* The gradient by x becomes that by y: s (dx - (x.dx) x / R^2), s = |x| / |y|. */
static void through_ball(struct fkt_generator *g)
{
    for (size_t i = 0; i < g->classes * g->batch; i++) {
        const double *x = g->x + i * g->m;
        double *dx = g->dx + i * g->m, along = 0;
        for (size_t j = 0; j < g->m; j++) along += x[j] * dx[j];
        along /= g->radius * g->radius;
        for (size_t j = 0; j < g->m; j++) dx[j] = g->shrunk[i] * (dx[j] - along * x[j]);
    }
}

/* out (rows, cols) = d^T y, d (n, rows), y (n, cols), into floats. */
static fkt_status outer(struct fkt_generator *g, const double *d, const double *y, size_t rows, size_t cols, float *out)
{
    const size_t n = g->classes * g->batch;
    double *product = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&product, rows * cols));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < rows; j++) g->t[j * n + i] = d[i * rows + j];
    fkt_gemm(product, g->t, y, rows, n, cols);
    for (size_t i = 0; i < rows * cols; i++) out[i] = (float)product[i];
out:
    fkt_free(product);
    return st;
}

/* dx, by y -> the gradient by all parameters. */
static fkt_status backward(struct fkt_generator *g)
{
    const size_t n = g->classes * g->batch, H = g->hidden;
    float *a = g->d.g + at_a(g), *b = g->d.g + at_b(g);
    fkt_status st;
    FKT_TRY(outer(g, g->dx, g->h, g->m, H, g->d.g + at_B(g)));
    for (size_t j = 0; j < g->m; j++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += g->dx[i * g->m + j];
        b[j] = (float)sum;
    }
    fkt_gemm(g->dh, g->dx, g->B, n, g->m, H);
    for (size_t i = 0; i < n * H; i++)
        if (!(g->h[i] > 0)) g->dh[i] = 0;
    for (size_t k = 0; k < g->classes; k++)
        for (size_t j = 0; j < H; j++) {
            double sum = 0;
            for (size_t i = 0; i < g->batch; i++) sum += g->dh[(k * g->batch + i) * H + j];
            a[k * H + j] = (float)sum;
        }
    FKT_TRY(outer(g, g->dh, g->z, H, g->code, g->d.g));
out:
    return st;
}

/* phi (n, 2F) of x -> the loss; `slope` (n, F): its gradient by the angles w x. */
static double distance(const struct fkt_generator *g, size_t F, const double *target, const double *phi, double *mean,
                       double *slope)
{
    double loss = 0;
    for (size_t k = 0; k < g->classes; k++) {
        const double *own = phi + k * g->batch * 2 * F;
        for (size_t j = 0; j < 2 * F; j++) {
            double sum = 0;
            for (size_t i = 0; i < g->batch; i++) sum += own[i * 2 * F + j];
            mean[j] = sum / (double)g->batch - target[k * 2 * F + j];
            loss += mean[j] * mean[j];
        }
        for (size_t i = 0; i < g->batch; i++) /* d cos = -sin, d sin = cos */
            for (size_t j = 0; j < F; j++)
                slope[(k * g->batch + i) * F + j] =
                    2 / (double)g->batch * (mean[F + j] * own[i * 2 * F + j] - mean[j] * own[i * 2 * F + F + j]);
    }
    return loss;
}

static fkt_status loss_of(struct fkt_generator *g, const struct fkt_fourier *f, const double *target, double *loss)
{
    const size_t n = g->classes * g->batch, F = f->frequencies;
    double *phi = NULL, *mean = NULL, *slope = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&phi, n * 2 * F));
    FKT_TRY(fkt_alloc(&mean, 2 * F));
    FKT_TRY(fkt_alloc(&slope, n * F));
    forward(g);
    FKT_TRY(fkt_fourier_apply(f, g->x, n, phi));
    *loss = distance(g, F, target, phi, mean, slope);
    if (!isfinite(*loss)) {
        st = fkt_fail(FKT_E_NUMERIC, "the loss of a generator is not finite");
        goto out;
    }
    fkt_gemm(g->dx, slope, f->w, n, F, g->m);
    through_ball(g);
    FKT_TRY(backward(g));
out:
    fkt_free(phi);
    fkt_free(mean);
    fkt_free(slope);
    return st;
}

fkt_status fkt_generator_loss(struct fkt_generator *g, const struct fkt_fourier *f, const double *target,
                              const double *codes, double *loss)
{
    for (size_t i = 0; i < g->classes * g->batch * g->code; i++) g->z[i] = codes[i];
    return loss_of(g, f, target, loss);
}

fkt_status fkt_generator_step(struct fkt_generator *g, const struct fkt_fourier *f, const double *target,
                              struct fkt_rng *rng, double *loss)
{
    fkt_status st;
    for (size_t i = 0; i < g->classes * g->batch * g->code; i++) g->z[i] = fkt_rng_normal(rng);
    FKT_TRY(loss_of(g, f, target, loss));
    fkt_descent_step(&g->d);
out:
    return st;
}

void fkt_generator_draw(struct fkt_generator *g, struct fkt_rng *rng, const double **x)
{
    for (size_t i = 0; i < g->classes * g->batch * g->code; i++) g->z[i] = fkt_rng_normal(rng);
    forward(g);
    *x = g->x;
}
