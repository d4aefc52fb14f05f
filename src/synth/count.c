/* SPDX-License-Identifier: Apache-2.0 */
/* count.c - n^ from several independent counts: N with noise s_n, and traces T_j = t_j/L_j with noise s_Tj and an
 * unknown rounding error of about tau_j. estimate.md 5 (one trace) and 6 (several).
 *
 *   n^ after j traces = n^ before + h (T_j - n^ before),   h = v/(v + s_Tj^2 + tau_j^2),   v the variance before
 *
 * One trace after the other gives the weights of the inverse variances, and with s_n = 0 (public counts) and without
 * noise it needs no special case. */
#include "synth/count.h"

#include <math.h>

struct weights {
    double noise, slack; /* s_T^2, tau^2 */
    double h, g;
};

/* Of trace t against a count of variance `own`; about so many records. */
static struct weights weights_of(const struct fkt_trace *t, double own, double records)
{
    struct weights w = {.noise = t->sigma / t->square, .slack = t->slack / t->square * fmax(records, 1)};
    double all;
    w.noise *= w.noise * t->count;
    w.slack *= w.slack;
    all = own + w.noise + w.slack;
    w.h = all > 0 ? own / all : 0;
    w.g = all > 0 ? w.noise / all : 0;
    return w;
}

struct combined {
    double value;
    double left;  /* the share of s_n^2 that its variance is */
    double drawn; /* its variance by noise alone, the rounding errors taken as fixed */
};

/* From N and all traces but `without` (n: all of them). */
static struct combined combine(double plain, double sigma, const struct fkt_trace *t, uint32_t n, uint32_t without)
{
    struct combined c = {.value = plain, .left = 1, .drawn = sigma * sigma};
    for (uint32_t j = 0; j < n; j++) {
        struct weights w;
        if (j == without) continue;
        w = weights_of(&t[j], sigma * sigma * c.left, plain);
        c.value += w.h * (t[j].trace / t[j].square - c.value);
        c.left *= 1 - w.h;
        c.drawn = (1 - w.h) * (1 - w.h) * c.drawn + w.h * w.h * w.noise;
    }
    return c;
}

struct fkt_count fkt_count_combine(double plain, double sigma, const struct fkt_trace *t, uint32_t n)
{
    const struct combined c = combine(plain, sigma, t, n, n);
    return (struct fkt_count){.value = c.value, .noise = sigma * sqrt(c.left)};
}

struct fkt_trace_correction fkt_trace_correct(double plain, double sigma, const struct fkt_trace *t, uint32_t n,
                                              uint32_t which)
{
    const struct fkt_trace *own = &t[which];
    const struct combined others = combine(plain, sigma, t, n, which);
    const double all = sigma * sigma * others.left, surplus = all - others.drawn;
    const struct weights w = weights_of(own, all, plain);
    const double shared = w.h * (w.noise + w.g * w.slack) - w.g * (1 - w.h) * surplus;
    return (struct fkt_trace_correction){.shift = w.g * (others.value * own->square - own->trace) / own->count,
                                         .tied = shared * own->square / own->count};
}
