/* SPDX-License-Identifier: Apache-2.0 */
/* test_noise_watch.c - right noise passes; noise that is missing, too small, shifted, shared or used twice does not. */
#include "base/alloc.h"
#include "base/rng.h"
#include "privacy/noise_watch.h"
#include "tests/support/check.h"

enum { N = 6, DRAWS = 4000 };
static const double sigma[N] = {40, 900, 20000, 20000, 20000, 0};
enum fault { RIGHT, QUIET, MISSING, SHIFTED, SHARED, HELD, REUSED, NOT_A_NUMBER };

static void watch(enum fault fault, struct fkt_noise_check out[FKT_NOISE_CHECKS])
{
    struct fkt_noise_watch *w = NULL;
    struct fkt_rng r;
    int64_t x[N], last = 0;
    double claimed[N];
    memcpy(claimed, sigma, sizeof claimed);
    if (fault == NOT_A_NUMBER) claimed[1] = 1e-320; /* its square over the variance is not finite */
    CHECK_OK(fkt_noise_watch_new(&w, claimed, N));
    fkt_rng_init(&r, 3, 0);
    for (int t = 0; t < DRAWS; t++) {
        for (int i = 0; i < N; i++) x[i] = llround(sigma[i] * fkt_rng_normal(&r));
        x[5] = 7; /* no noise is claimed for it: it is skipped */
        if (fault == QUIET) x[0] = x[0] * 7 / 10;
        if (fault == MISSING) x[1] = 0;
        if (fault == SHIFTED) x[1] += 300;
        if (fault == SHARED) x[0] += (int64_t)((double)x[1] * 40 / 900 / 2);
        if (fault == HELD && t % 2) x[3] = last;
        if (fault == REUSED && t % 10 == 0) x[4] = x[2 + t / 10 % 2];
        last = x[3];
        fkt_noise_watch_add(w, x);
    }
    fkt_noise_watch_verdict(w, 1e-4, out);
    fkt_noise_watch_free(w);
}

static void right_noise_passes(void **state)
{
    struct fkt_noise_check c[FKT_NOISE_CHECKS];
    (void)state;
    watch(RIGHT, c);
    for (int k = 0; k < FKT_NOISE_CHECKS; k++)
        if (!fkt_noise_holds(&c[k])) fail_msg("check %d: %g above %g", k, c[k].value, c[k].limit);
    CHECK(c[FKT_NOISE_VARIANCE].limit < 0.15 && c[FKT_NOISE_CORRELATION].limit < 0.1);
}

static void caught(enum fault fault, enum fkt_noise_kind kind)
{
    struct fkt_noise_check c[FKT_NOISE_CHECKS];
    watch(fault, c);
    if (fkt_noise_holds(&c[kind])) fail_msg("fault %d passes: %g, limit %g", fault, c[kind].value, c[kind].limit);
}

static void wrong_noise_does_not(void **state)
{
    (void)state;
    caught(QUIET, FKT_NOISE_VARIANCE);
    caught(MISSING, FKT_NOISE_VARIANCE);
    caught(SHIFTED, FKT_NOISE_MEAN);
    caught(SHARED, FKT_NOISE_CORRELATION);
    caught(HELD, FKT_NOISE_SUCCESSION);
    caught(REUSED, FKT_NOISE_REPEATS);
    caught(NOT_A_NUMBER, FKT_NOISE_VARIANCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(right_noise_passes), cmocka_unit_test(wrong_noise_does_not)};
    return check_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
