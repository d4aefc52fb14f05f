/* SPDX-License-Identifier: Apache-2.0 */
/* Whether draws follow round(N(0, sigma^2)): Chi-square, tails and independence, against the oracle's exact
 * probabilities; and biased samplers that must be detected. Every test rejects below ALPHA, so a right sampler fails
 * one about once in a million seeds; the seeds are fixed. */
#include "crypto/entropy.h"
#include "privacy/rounded_gaussian.h"
#include "tests/stats/biased.h"
#include "tests/stats/chi2.h"
#include "tests/unit/privacy/csv.h"

#define ALPHA 1e-6
#define DRAWS 2000000
#define CONTROL_DRAWS 4000000 /* enough to see half a percent of sigma */
#define BINS_MAX 128

struct table {
    double sigma;
    int bins;
    double last[BINS_MAX], p[BINS_MAX]; /* bin i holds what is <= last[i] and in no bin before */
};

static void read_table(struct table *t, const char *sigma)
{
    struct csv c;
    double sum = 0;
    *t = (struct table){.sigma = strtod(sigma, NULL)};
    csv_open(&c, "privacy_gaussian_bins.csv");
    while (csv_next(&c, 4)) {
        if (strcmp(c.field[0], sigma)) continue;
        CHECK(t->bins < BINS_MAX);
        t->last[t->bins] = strtod(c.field[2], NULL);
        t->p[t->bins] = strtod(c.field[3], NULL);
        sum += t->p[t->bins++];
    }
    CHECK(t->bins >= 3 && isinf(t->last[t->bins - 1]));
    CHECK_NEAR(sum, 1, 1e-12);
}

static double below(double x, double sigma) { return 0.5 * erfc(-x / (sigma * sqrt(2))); } /* P(N(0, sigma^2) < x) */

static int bin_of(const struct table *t, double x)
{
    int lo = 0, hi = t->bins - 1;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (x <= t->last[mid]) hi = mid;
        else lo = mid + 1;
    }
    return lo;
}

struct seeded {
    struct fkt_entropy_seeded s;
    struct fkt_entropy e;
    struct fkt_rounded_gaussian g;
    struct fkt_gaussian_scale scale;
};

static void start(struct seeded *s, double sigma, uint64_t seed, const struct fkt_entropy *instead)
{
    fkt_entropy_seeded_init(&s->s, seed, 0);
    fkt_entropy_seeded(&s->e, &s->s);
    fkt_rounded_gaussian_init(&s->g, instead ? instead : &s->e);
    CHECK_OK(fkt_gaussian_scale_init(&s->scale, sigma));
}

static double draw(struct seeded *s)
{
    int64_t x = 0;
    CHECK_OK(fkt_rounded_gaussian_draw(&s->g, &s->scale, &x));
    return (double)x;
}

/* The chi-square tail probability of a wrong sampler's draws against table t. */
static double tail_of_control(const struct table *t, double sigma, uint64_t seed, const struct fkt_entropy *instead)
{
    uint64_t count[BINS_MAX] = {0};
    struct seeded s;
    start(&s, sigma, seed, instead);
    for (int i = 0; i < CONTROL_DRAWS; i++) count[bin_of(t, draw(&s))]++;
    return chi2_test(count, t->p, t->bins, CONTROL_DRAWS);
}

static const char *const sigmas[] = {"0.3", "1", "5.003", "577.35", "37813.7"};

static void the_tool_itself(void **state)
{
    struct table t;
    (void)state;
    CHECK_NEAR(chi2_tail(18.307038053275146, 10), 0.05, 1e-12); /* SciPy chi2.isf(0.05, 10) */
    CHECK_REL(chi2_tail(164.69443442, 71), 2.0701652604565368e-09, 1e-9);
    for (size_t i = 0; i < 5; i++) {
        read_table(&t, sigmas[i]);
        for (int b = 0; b + 1 < t.bins; b++) {
            const double lo = b ? t.last[b - 1] + 0.5 : -INFINITY, hi = t.last[b] + 0.5;
            /* differences of erfc on the side where they do not cancel */
            const double p =
                lo > 0 ? below(-lo, t.sigma) - below(-hi, t.sigma) : below(hi, t.sigma) - below(lo, t.sigma);
            CHECK_REL(p, t.p[b], 1e-11);
        }
    }
}

/* The whole by chi-square; and by themselves the counts beyond 3, 4 and 5 sigma on each side. */
static void one_sigma(const char *text, uint64_t seed)
{
    uint64_t count[BINS_MAX] = {0};
    double beyond[2][3] = {{0}};
    struct table t;
    struct seeded s;
    read_table(&t, text);
    start(&s, t.sigma, seed, NULL);
    for (int n = 0; n < DRAWS; n++) {
        const double x = draw(&s);
        count[bin_of(&t, x)]++;
        for (int k = 0; k < 3; k++) beyond[x < 0][k] += fabs(x) >= ceil((3 + k) * t.sigma);
    }
    const double tail = chi2_test(count, t.p, t.bins, DRAWS);
    if (!(tail >= ALPHA)) fail_msg("sigma %s: chi-square tail %g", text, tail);
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < 3; k++) {
            const double want = DRAWS * below(-(ceil((3 + k) * t.sigma) - 0.5), t.sigma);
            CHECK_NEAR(beyond[side][k], want,
                       6 * sqrt(want) + 6); /* beyond it once in 1e7, Poisson counts down to 0 included */
        }
}

static void the_distribution_is_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < 5; i++) one_sigma(sigmas[i], 100 + i);
}

/* Pairs of successive draws in classes of the table, merged to eight: product probabilities. */
static void successive_draws_are_independent(void **state)
{
    struct table t;
    struct seeded s;
    uint64_t count[64] = {0};
    double p[8] = {0}, pair[64], product = 0;
    int class_of[BINS_MAX], last;
    (void)state;
    read_table(&t, "577.35");
    double sum = 0;
    for (int b = 0; b < t.bins; b++) {
        class_of[b] = fmin(7, floor(8 * sum));
        p[class_of[b]] += t.p[b];
        sum += t.p[b];
    }
    for (int i = 0; i < 64; i++) pair[i] = p[i / 8] * p[i % 8];
    start(&s, t.sigma, 300, NULL);
    for (int i = 0; i < DRAWS / 2; i++) { /* disjoint pairs */
        const double x = draw(&s), y = draw(&s);
        last = class_of[bin_of(&t, x)];
        count[8 * last + class_of[bin_of(&t, y)]]++;
        product += x * y;
    }
    CHECK(chi2_test(count, pair, 64, DRAWS / 2) >= ALPHA);
    CHECK_NEAR(product / (DRAWS / 2) / (t.sigma * t.sigma), 0, 6 / sqrt(DRAWS / 2)); /* 6 standard errors */
}

static void half_a_percent_of_sigma_is_caught(void **state)
{
    struct table t;
    (void)state;
    read_table(&t, "5.003");
    CHECK(tail_of_control(&t, t.sigma * 1.005, 400, NULL) < ALPHA);
    read_table(&t, "577.35");
    CHECK(tail_of_control(&t, t.sigma * 0.995, 401, NULL) < ALPHA);
}

static void one_biased_bit_is_caught(void **state)
{
    const int bias[][2] = {{31, 256}, {30, 64}};
    struct table t;
    (void)state;
    read_table(&t, "577.35");
    for (size_t i = 0; i < sizeof bias / sizeof *bias; i++) {
        struct fkt_entropy_seeded a, c;
        struct biased b = {.bit = bias[i][0], .one_in = bias[i][1]};
        const struct fkt_entropy e = {biased_fill, &b, 0};
        fkt_entropy_seeded_init(&a, 600, i);
        fkt_entropy_seeded_init(&c, 700, i);
        fkt_entropy_seeded(&b.inner, &a);
        fkt_entropy_seeded(&b.coin, &c);
        const double tail = tail_of_control(&t, t.sigma, 0, &e);
        if (!(tail < ALPHA)) fail_msg("bit %d set in one of %d digits goes unseen: tail %g", b.bit, b.one_in, tail);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tool_itself),
        cmocka_unit_test(the_distribution_is_right),
        cmocka_unit_test(successive_draws_are_independent),
        cmocka_unit_test(half_a_percent_of_sigma_is_caught),
        cmocka_unit_test(one_biased_bit_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
