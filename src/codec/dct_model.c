/* SPDX-License-Identifier: Apache-2.0 */
/* dct_model.c - an analytic model of natural images: which coefficients matter, how large they are, how contrast
 * varies.
 *
 * Spectrum. The variance of coefficient (u,v) of plane p of an S x S image in [-0.5,0.5] is
 *     E = S^2 * A_p / (f0^2 + u^2 + v^2)^alpha,    f0 = 1, alpha = 1.2, A_Y = 1/64, A_Cb = A_Cr = A_Y/16.
 * Power spectra of natural scenes fall as f^-2 to f^-2.4 (Field 1987; Tolhurst, Tadmor, Chao 1992; Torralba, Oliva
 * 2003); frequency counts in cycles per image, so that A does not depend on S; f0 holds the mean luminance. Chroma
 * carries a small share of the energy (Ruderman, Cronin, Chiao 1998). The constants are round numbers chosen from
 * those statistics and looked at once beside a public image set (docs/decisions/0002-dct-layout.md); nothing is
 * fitted.
 *
 * Order. Coefficients are kept by E, with chroma counted double: colour tells classes apart better than its energy
 * says (0002). E falls with (1 + u^2 + v^2) * k_p, k_Y = 1 and k_C = (16/2)^(1/alpha) = 2^2.5, so the sort needs no
 * power function and is the same on every machine: 2^2.5 is irrational, so luma and chroma never tie, and Cb, Cr and
 * equal radii tie exactly and are ordered by plane, then along the zig-zag.
 *
 * Contrast. u = r*g with g ~ N(0, I_d) and log r ~ N(-t^2, t^2), t = 0.3, so that E|u|^2 = d: a Gaussian scale
 * mixture (Wainwright, Simoncelli 2000). With |g|^2 chi-squared, psi the digamma function and psi' its derivative:
 *     mean of log|u| = -t^2 + (psi(d/2) + log 2)/2,        variance of log|u| = t^2 + psi'(d/2)/4. */
#include "codec/dct.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

#define LUMA_ENERGY (1.0 / 64)
#define CHROMA_ENERGY (LUMA_ENERGY / 16)
#define ALPHA 1.2
#define CHROMA_KEY 5.656854249492380195 /* 2^2.5 */
#define CONTRAST 0.3                    /* t */

static double radius2(const struct fkt_dct_coef *c) { return 1.0 + (double)c->u * c->u + (double)c->v * c->v; }

double fkt_dct_energy(const struct fkt_dct_coef *c, uint32_t size)
{
    double a = c->plane == 0 ? LUMA_ENERGY : CHROMA_ENERGY;
    return a * (double)size * (double)size / pow(radius2(c), ALPHA);
}

/* Place on the zig-zag: diagonal by diagonal, odd ones walked downwards, even ones upwards, as in JPEG. */
static int zigzag_compare(const struct fkt_dct_coef *a, const struct fkt_dct_coef *b)
{
    int da = a->u + a->v, db = b->u + b->v;
    if (da != db) return da < db ? -1 : 1;
    return da % 2 ? a->u - b->u : a->v - b->v;
}

static int by_weight(const void *x, const void *y)
{
    const struct fkt_dct_coef *a = x, *b = y;
    double ka = radius2(a) * (a->plane ? CHROMA_KEY : 1), kb = radius2(b) * (b->plane ? CHROMA_KEY : 1);
    if (ka != kb) return ka < kb ? -1 : 1;
    if (a->plane != b->plane) return a->plane < b->plane ? -1 : 1;
    return zigzag_compare(a, b);
}

/* Before (0,v) is kept, all of its plane inside the quarter disc of radius v are: at least pi/4 v^2 of them. So no
 * kept frequency exceeds sqrt(4 dim/pi) + 1, and only that corner of the planes is sorted. */
fkt_status fkt_dct_layout(struct fkt_dct_coef *out, uint32_t size, uint32_t dim)
{
    uint32_t reach = (uint32_t)(sqrt(4 * dim / 3.14) + 2), side = reach < size ? reach : size;
    struct fkt_dct_coef *all = NULL;
    size_t n = 0;
    fkt_status st = fkt_alloc(&all, 3 * (size_t)side * side);
    if (st != FKT_OK) return st;
    for (uint16_t p = 0; p < 3; p++)
        for (uint16_t u = 0; u < side; u++)
            for (uint16_t v = 0; v < side; v++) all[n++] = (struct fkt_dct_coef){p, u, v};
    qsort(all, n, sizeof *all, by_weight);
    for (uint32_t i = 0; i < dim; i++) out[i] = all[i];
    fkt_free(all);
    return FKT_OK;
}

/* psi and psi' for x > 0: recurrence up to x >= 10, then the asymptotic series (Abramowitz, Stegun 6.3.18 and
 * 6.4.12), whose first neglected term is below 1e-13 there. */
static double digamma(double x)
{
    double shift = 0, y;
    for (; x < 10; x += 1) shift -= 1 / x;
    y = 1 / (x * x);
    shift += log(x) - 0.5 / x;
    return shift -
           y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * 691 / 32760)))));
}

static double trigamma(double x)
{
    double shift = 0, y;
    for (; x < 10; x += 1) shift += 1 / (x * x);
    y = 1 / (x * x);
    shift += 1 / x + y / 2;
    return shift +
           y / x * (1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y * (1.0 / 30 - y * (5.0 / 66 - y * 691 / 2730)))));
}

void fkt_dct_log_size(double *mean, double *deviation, uint32_t dim)
{
    double half = dim / 2.0;
    *mean = -CONTRAST * CONTRAST + (digamma(half) + log(2.0)) / 2;
    *deviation = sqrt(CONTRAST * CONTRAST + trigamma(half) / 4);
}
