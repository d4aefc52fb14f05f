/* SPDX-License-Identifier: Apache-2.0 */
/* Whether draws follow N_Z(0, sigma^2): Chi-square, tails and independence against exact probabilities,
 * Kolmogorov-Smirnov and moments where sigma is large; and biased samplers that must be detected. Every test rejects
 * below ALPHA, so a right sampler fails one about once in a million seeds; that of the far tails fails once in 1e9. The
 * seeds are fixed. */
#include "fedkt/advanced/privacy.h"

#include "crypto/entropy.h"
#include "privacy/discrete_gaussian.h"
#include "tests/stats/biased.h"
#include "tests/stats/chi2.h"
#include "tests/unit/privacy/csv.h"

#define ALPHA 1e-6
#define DRAWS 1000000
#define CONTROL_DRAWS 4000000 /* enough to see one percent of sigma^2 */
#define KS_DRAWS 400000
#define BINS_MAX 128

struct table {
    struct fkt_dyadic variance;
    double sigma;
    int bins;
    double last[BINS_MAX], p[BINS_MAX]; /* bin i holds what is <= last[i] and in no bin before */
};

static void read_table(struct table *t, const char *num, const char *shift)
{
    struct csv c;
    double sum = 0;
    *t = (struct table){.variance = {strtoull(num, NULL, 10), (uint32_t)strtoul(shift, NULL, 10)}};
    t->sigma = sqrt(ldexp((double)t->variance.num, -(int)t->variance.shift));
    csv_open(&c, "privacy_discrete_bins.csv");
    while (csv_next(&c, 5)) {
        if (strcmp(c.field[0], num) || strcmp(c.field[1], shift)) continue;
        CHECK(t->bins < BINS_MAX);
        t->last[t->bins] = strtod(c.field[3], NULL);
        t->p[t->bins] = strtod(c.field[4], NULL);
        sum += t->p[t->bins++];
    }
    CHECK(t->bins >= 3 && isinf(t->last[t->bins - 1]));
    CHECK_NEAR(sum, 1, 1e-12);
}

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

/* P(X >= n) by adding up weights, n > 0: an independent check of the table and the tails. */
static double at_least(double n, double sigma)
{
    double total = 1, tail = 0;
    for (double x = 1; x < 14 * sigma + 3; x++) {
        const double w = exp(-x * x / (2 * sigma * sigma));
        total += 2 * w;
        if (x >= n) tail += w;
    }
    return tail / total;
}

struct seeded {
    struct fkt_entropy_seeded s;
    struct fkt_entropy e;
    struct fkt_discrete_gaussian g;
    struct fkt_discrete_scale scale;
};

static void start(struct seeded *s, struct fkt_dyadic variance, uint64_t seed, const struct fkt_entropy *instead)
{
    fkt_entropy_seeded_init(&s->s, seed, 0);
    fkt_entropy_seeded(&s->e, &s->s);
    fkt_discrete_gaussian_init(&s->g, instead ? instead : &s->e);
    CHECK_OK(fkt_discrete_scale_init(&s->scale, &variance));
}

static double draw(struct seeded *s)
{
    int64_t x = 0;
    CHECK_OK(fkt_discrete_gaussian_draw(&s->g, &s->scale, &x));
    return (double)x;
}

/* ---- far out ---- */

#define FAR_ALPHA 1e-9 /* of all four counts together */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_UNDEFINED__) || defined(__SANITIZE_THREAD__)
#define FAR_DRAWS 1000000
#elif defined(__OPTIMIZE__)
#define FAR_DRAWS 10000000
#else
#define FAR_DRAWS 4000000
#endif

/* The range that a Poisson count of this mean leaves on either side with probability at most alpha/2. A binomial count
 * of the same mean leaves it no more often (Anderson and Samuels 1967). */
static void poisson_limits(double mean, double alpha, uint64_t *lo, uint64_t *hi)
{
    double p = exp(-mean), below = 0, above = 1;
    uint64_t k = 0;
    for (; below + p <= alpha / 2; below += p, p *= mean / (double)++k) {}
    *lo = k;
    for (above = 1 - below; above - p > alpha / 2; above -= p, p *= mean / (double)++k) {}
    *hi = k;
}

static void the_far_tails_are_right(void **state)
{
    const double reach[2] = {4.5, 5};
    struct seeded s;
    uint64_t seen[2][2] = {{0}};
    (void)state;
    const struct fkt_dyadic variance = {1000001, 3};
    const double sigma = sqrt(1000001.0 / 8);
    start(&s, variance, 900, NULL);
    for (int i = 0; i < FAR_DRAWS; i++) {
        const double x = draw(&s);
        if (fabs(x) <= reach[0] * sigma) continue;
        seen[0][x > 0]++;
        if (fabs(x) > reach[1] * sigma) seen[1][x > 0]++;
    }
    for (int r = 0; r < 2; r++) {
        const double mean = FAR_DRAWS * at_least(floor(reach[r] * sigma) + 1, sigma);
        uint64_t lo, hi;
        poisson_limits(mean, FAR_ALPHA / 4, &lo, &hi);
        print_message("beyond %g sigma: %llu below and %llu above, expected %.1f, allowed %llu to %llu\n", reach[r],
                      (unsigned long long)seen[r][0], (unsigned long long)seen[r][1], mean, (unsigned long long)lo,
                      (unsigned long long)hi);
        for (int side = 0; side < 2; side++) CHECK(seen[r][side] >= lo && seen[r][side] <= hi);
    }
}

static double tail_of_control(const struct table *t, struct fkt_dyadic variance, uint64_t seed,
                              const struct fkt_entropy *instead)
{
    uint64_t count[BINS_MAX] = {0};
    struct seeded s;
    start(&s, variance, seed, instead);
    for (int i = 0; i < CONTROL_DRAWS; i++) count[bin_of(t, draw(&s))]++;
    return chi2_test(count, t->p, t->bins, CONTROL_DRAWS);
}

enum { TABLES = 6 };
static const char *const tables[TABLES][2] = {{"1", "4"}, {"1", "2"},       {"1", "0"},
                                              {"5", "0"}, {"1000001", "3"}, {"1429913989", "0"}};

static void the_tool_itself(void **state)
{
    struct table t;
    (void)state;
    for (size_t i = 0; i < TABLES; i++) {
        read_table(&t, tables[i][0], tables[i][1]);
        const double last = t.last[t.bins - 2]; /* the outermost bins, and one inside */
        CHECK_REL(t.p[t.bins - 1], at_least(last + 1, t.sigma), 1e-9);
        CHECK_REL(t.p[0], at_least(-t.last[0], t.sigma), 1e-9);
        if (t.bins > 4)
            CHECK_REL(t.p[t.bins - 2], at_least(t.last[t.bins - 3] + 1, t.sigma) - at_least(last + 1, t.sigma), 1e-8);
    }
}

/* The whole by chi-square; and by themselves the counts beyond 3, 4 and 5 sigma on each side. */
static void one_variance(const char *const name[2], uint64_t seed)
{
    uint64_t count[BINS_MAX] = {0};
    double beyond[2][3] = {{0}};
    struct table t;
    struct seeded s;
    read_table(&t, name[0], name[1]);
    start(&s, t.variance, seed, NULL);
    for (int n = 0; n < DRAWS; n++) {
        const double x = draw(&s);
        count[bin_of(&t, x)]++;
        for (int k = 0; k < 3; k++) beyond[x < 0][k] += fabs(x) >= fmax(1, ceil((3 + k) * t.sigma));
    }
    const double tail = chi2_test(count, t.p, t.bins, DRAWS);
    if (!(tail >= ALPHA)) fail_msg("variance %s/2^%s: chi-square tail %g", name[0], name[1], tail);
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < 3; k++) {
            const double want = DRAWS * at_least(fmax(1, ceil((3 + k) * t.sigma)), t.sigma);
            CHECK_NEAR(beyond[side][k], want,
                       6 * sqrt(want) + 6); /* beyond it once in 1e7, Poisson counts down to 0 included */
        }
}

static void the_distribution_is_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < TABLES; i++) one_variance(tables[i], 100 + i);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where the lattice is negligible, against the normal distribution function: Kolmogorov-Smirnov at ALPHA, mean and
 * variance within 6 standard errors (once in 5e8). */
static void large_sigma(void **state)
{
    const struct fkt_dyadic large[] = {{((uint64_t)1 << 58) + 12345, 0}, {((uint64_t)1 << 62) - 1, 1}, {10007, 0}};
    static double x[KS_DRAWS];
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        const double sigma = sqrt(ldexp((double)large[i].num, -(int)large[i].shift));
        double sum = 0, square = 0, gap = 0;
        struct seeded s;
        start(&s, large[i], 200 + i, NULL);
        for (int n = 0; n < KS_DRAWS; n++) {
            x[n] = draw(&s) / sigma;
            sum += x[n];
            square += x[n] * x[n];
        }
        CHECK_NEAR(sum / KS_DRAWS, 0, 6 / sqrt(KS_DRAWS));
        CHECK_NEAR(square / KS_DRAWS, 1, 6 * sqrt(2.0 / KS_DRAWS));
        qsort(x, KS_DRAWS, sizeof *x, by_size);
        for (int n = 0; n < KS_DRAWS; n++) {
            const double step = 0.5 / sigma; /* half a lattice step: all of an atom lies on its sides */
            const double hi = 0.5 * erfc(-(x[n] + step) / sqrt(2)), lo = 0.5 * erfc(-(x[n] - step) / sqrt(2));
            gap = fmax(gap, fmax((n + 1.0) / KS_DRAWS - hi, lo - (double)n / KS_DRAWS));
        }
        CHECK(gap <= sqrt(-log(ALPHA / 2) / 2) / sqrt(KS_DRAWS));
    }
}

/* Pairs of successive draws in classes of the table, merged to eight: product probabilities. */
static void successive_draws_are_independent(void **state)
{
    struct table t;
    struct seeded s;
    uint64_t count[64] = {0};
    double p[8] = {0}, pair[64], product = 0, sum = 0;
    int class_of[BINS_MAX];
    (void)state;
    read_table(&t, "1000001", "3");
    for (int b = 0; b < t.bins; b++) {
        class_of[b] = (int)fmin(7, floor(8 * sum));
        p[class_of[b]] += t.p[b];
        sum += t.p[b];
    }
    for (int i = 0; i < 64; i++) pair[i] = p[i / 8] * p[i % 8];
    start(&s, t.variance, 300, NULL);
    for (int i = 0; i < DRAWS / 2; i++) { /* disjoint pairs */
        const double x = draw(&s), y = draw(&s);
        count[8 * class_of[bin_of(&t, x)] + class_of[bin_of(&t, y)]]++;
        product += x * y;
    }
    CHECK(chi2_test(count, pair, 64, DRAWS / 2) >= ALPHA);
    CHECK_NEAR(product / (DRAWS / 2) / (t.sigma * t.sigma), 0, 6 / sqrt(DRAWS / 2)); /* 6 standard errors */
}

static void one_percent_of_the_variance_is_caught(void **state)
{
    struct table t;
    (void)state;
    read_table(&t, "5", "0");
    CHECK(tail_of_control(&t, (struct fkt_dyadic){(uint64_t)(5.05 * 1024), 10}, 400, NULL) < ALPHA);
    read_table(&t, "1000001", "3");
    CHECK(tail_of_control(&t, (struct fkt_dyadic){990000, 3}, 401, NULL) < ALPHA);
}

static void one_biased_bit_is_caught(void **state)
{
    const int bias[][2] = {{31, 128}, {30, 8}};
    struct table t;
    (void)state;
    read_table(&t, "1000001", "3");
    for (size_t i = 0; i < sizeof bias / sizeof *bias; i++) {
        struct fkt_entropy_seeded a, c;
        struct biased b = {.bit = bias[i][0], .one_in = bias[i][1]};
        const struct fkt_entropy e = {biased_fill, &b, 0};
        fkt_entropy_seeded_init(&a, 600, i);
        fkt_entropy_seeded_init(&c, 700, i);
        fkt_entropy_seeded(&b.inner, &a);
        fkt_entropy_seeded(&b.coin, &c);
        const double tail = tail_of_control(&t, t.variance, 0, &e);
        if (!(tail < ALPHA)) fail_msg("bit %d set in one of %d digits goes unseen: tail %g", b.bit, b.one_in, tail);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tool_itself),
        cmocka_unit_test(the_distribution_is_right),
        cmocka_unit_test(the_far_tails_are_right),
        cmocka_unit_test(large_sigma),
        cmocka_unit_test(successive_draws_are_independent),
        cmocka_unit_test(one_percent_of_the_variance_is_caught),
        cmocka_unit_test(one_biased_bit_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
