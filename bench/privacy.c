/* SPDX-License-Identifier: Apache-2.0 */
/* privacy.c - speed of drawing exact noise, compared with the operating system's random bytes. The bound: a draw
 * that needed only 64 fresh bits would be limited by getrandom alone; its rate is measured in the same run. The
 * answer is checked first: mean and variance of the draws against round(N(0, s^2)), whose variance is s^2 + 1/12,
 * and against the discrete Gaussian, whose variance is s^2 where s is not small. */
#include "bench/bench.h"

#include "base/clock.h"
#include "crypto/entropy.h"
#include "privacy/discrete_gaussian.h"
#include "privacy/rounded_gaussian.h"

#include <math.h>
#include <stdio.h>

enum { DRAWS = 200000, RUNS = 10 };

struct tally {
    double seconds, sum, square;
};

static void add(struct tally *t, int64_t x)
{
    t->sum += (double)x;
    t->square += (double)x * (double)x;
}

static fkt_status draw_rounded(double sigma, struct fkt_entropy *e, struct tally *t)
{
    struct fkt_rounded_gaussian g;
    struct fkt_gaussian_scale scale;
    double start;
    fkt_status st;
    fkt_rounded_gaussian_init(&g, e);
    FKT_TRY(fkt_gaussian_scale_init(&scale, sigma));
    start = fkt_now();
    for (int i = 0; i < DRAWS; i++) {
        int64_t x;
        FKT_TRY(fkt_rounded_gaussian_draw(&g, &scale, &x));
        add(t, x);
    }
    t->seconds = fkt_now() - start;
out:
    fkt_rounded_gaussian_clear(&g);
    return st;
}

static fkt_status draw_discrete(double sigma, struct fkt_entropy *e, struct tally *t)
{
    const struct fkt_dyadic variance = {(uint64_t)(sigma * sigma), 0};
    struct fkt_discrete_gaussian g;
    struct fkt_discrete_scale scale;
    double start;
    fkt_status st;
    fkt_discrete_gaussian_init(&g, e);
    FKT_TRY(fkt_discrete_scale_init(&scale, &variance));
    start = fkt_now();
    for (int i = 0; i < DRAWS; i++) {
        int64_t x;
        FKT_TRY(fkt_discrete_gaussian_draw(&g, &scale, &x));
        add(t, x);
    }
    t->seconds = fkt_now() - start;
out:
    fkt_discrete_gaussian_clear(&g);
    return st;
}

static const struct sampler {
    const char *name;
    fkt_status (*draw)(double sigma, struct fkt_entropy *e, struct tally *t);
    double more; /* variance beyond sigma^2 */
    double sigmas[3];
} samplers[] = {
    {"rounded_gaussian", draw_rounded, 1.0 / 12, {5, 577, 37813}},
    {"discrete_gaussian", draw_discrete, 0, {5, 577, 4e8}},
};

static fkt_status entropy_rate(struct fkt_entropy *e, double *words_per_second)
{
    static uint8_t buf[4096];
    double best = 0;
    fkt_status st = FKT_OK;
    for (int run = 0; run < RUNS; run++) {
        double start = fkt_now(), rate;
        for (int i = 0; i < 1024; i++) FKT_TRY(e->fill(e->self, buf, sizeof buf));
        rate = 1024.0 * sizeof buf / 8 / (fkt_now() - start);
        if (rate > best) best = rate;
    }
    *words_per_second = best;
out:
    return st;
}

static fkt_status measure(struct fkt_bench_row *r, const struct sampler *s, double sigma, struct fkt_entropy *e,
                          double bound)
{
    const double var = sigma * sigma + s->more;
    double best = INFINITY;
    fkt_status st = FKT_OK;
    for (int run = 0; run < RUNS; run++) {
        struct tally t = {0};
        FKT_TRY(s->draw(sigma, e, &t));
        /* 6 standard errors: a correct sampler fails once in 5e8 runs */
        if (!(fabs(t.sum / DRAWS) <= 6 * sqrt(var / DRAWS)) ||
            !(fabs(t.square / DRAWS / var - 1) <= 6 * sqrt(2.0 / DRAWS))) {
            st = fkt_fail(FKT_E_NUMERIC, "the sampler gives wrong moments at sigma %g: not timed", sigma);
            goto out;
        }
        if (t.seconds < best) best = t.seconds;
    }
    snprintf(r->name, sizeof r->name, "privacy/%s s=%g", s->name, sigma);
    snprintf(r->unit, sizeof r->unit, "draws/s");
    snprintf(r->bound_name, sizeof r->bound_name, "64-bit words of getrandom per second");
    snprintf(r->note, sizeof r->note, "one core, OS entropy, best of %d", RUNS);
    r->value = DRAWS / best;
    r->bound = bound;
    r->ratio_to_bound = r->value / bound;
out:
    return st;
}

fkt_status fkt_bench_privacy(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    struct fkt_entropy e;
    double bound;
    fkt_status st;
    (void)o;
    *n = 0;
    fkt_entropy_os(&e);
    FKT_TRY(entropy_rate(&e, &bound));
    for (size_t k = 0; k < sizeof samplers / sizeof *samplers; k++)
        for (size_t i = 0; i < 3 && *n < cap; i++)
            FKT_TRY(measure(&rows[(*n)++], &samplers[k], samplers[k].sigmas[i], &e, bound));
out:
    return st;
}
