/* SPDX-License-Identifier: Apache-2.0 */
/* bench_privacy.c - how fast exact noise is drawn, beside the bytes that the operating system can give.
 * The bound: a draw that needed only 64 fresh bits would be limited by getrandom alone; its rate is measured in the
 * same run. The answer is checked first: mean and variance of the draws against round(N(0, s^2)), whose variance is
 * s^2 + 1/12. */
#include "cli/bench.h"

#include "base/clock.h"
#include "crypto/entropy.h"
#include "privacy/rounded_gaussian.h"

#include <math.h>
#include <stdio.h>

enum { DRAWS = 200000, RUNS = 10 };

static fkt_status draws(double sigma, struct fkt_entropy *e, double *seconds, double *sum, double *square)
{
    struct fkt_rounded_gaussian g;
    struct fkt_gaussian_scale scale;
    double start, s1 = 0, s2 = 0;
    fkt_status st;
    fkt_rounded_gaussian_init(&g, e);
    FKT_TRY(fkt_gaussian_scale_init(&scale, sigma));
    start = fkt_now();
    for (int i = 0; i < DRAWS; i++) {
        int64_t x;
        FKT_TRY(fkt_rounded_gaussian_draw(&g, &scale, &x));
        s1 += (double)x;
        s2 += (double)x * (double)x;
    }
    *seconds = fkt_now() - start;
    *sum = s1;
    *square = s2;
out:
    fkt_rounded_gaussian_release(&g);
    return st;
}

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

fkt_status fkt_bench_privacy(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    static const double sigmas[] = {5.0, 577.0, 37813.0};
    struct fkt_entropy e;
    double bound;
    fkt_status st;
    (void)o;
    *n = 0;
    fkt_entropy_os(&e);
    FKT_TRY(entropy_rate(&e, &bound));
    for (size_t i = 0; i < sizeof sigmas / sizeof *sigmas && *n < cap; i++) {
        double s = sigmas[i], best = INFINITY, var = s * s + 1.0 / 12;
        for (int run = 0; run < RUNS; run++) {
            double seconds, sum, square;
            FKT_TRY(draws(s, &e, &seconds, &sum, &square));
            /* 6 standard errors: a right sampler fails once in 5e8 runs */
            if (!(fabs(sum / DRAWS) <= 6 * sqrt(var / DRAWS)) ||
                !(fabs(square / DRAWS / var - 1) <= 6 * sqrt(2.0 / DRAWS))) {
                st = fkt_fail(FKT_E_NUMERIC,
                              "the sampler gives wrong moments at sigma %g: no figure for a wrong answer", s);
                goto out;
            }
            if (seconds < best) best = seconds;
        }
        struct fkt_bench_row *r = &rows[(*n)++];
        snprintf(r->name, sizeof r->name, "privacy/rounded_gaussian s=%g", s);
        snprintf(r->unit, sizeof r->unit, "draws/s");
        snprintf(r->bound_name, sizeof r->bound_name, "64-bit words of getrandom per second");
        snprintf(r->note, sizeof r->note, "one core, OS entropy, best of %d", RUNS);
        r->value = DRAWS / best;
        r->bound = bound;
        r->ratio_to_bound = r->value / bound;
    }
out:
    return st;
}
