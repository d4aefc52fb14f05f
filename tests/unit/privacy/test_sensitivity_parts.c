/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of every adjacency for records of several parts, per class and pooled, against brute force: the whole
 * moments vectors of two neighbouring datasets, their distance in units of the noise of each number. */
#include "fedkt/advanced/privacy.h"
#include "tests/support/layouts.h"
#include "tests/support/slow_moments.h"

enum { K = 2, NUMBERS = 64, COORDINATES = 8 };

struct setting {
    double a[2], b[2], c;
};
static const struct setting settings[] = {
    {{1, 1}, {1, 1}, 1}, {{0.3, 2}, {2, 0.3}, 0.1}, {{1.5, 0.49}, {1, 0.87}, 3}, {{0.2, 0.1}, {1.1, 0.6}, 0.01}};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* A record, or none (label < 0). */
struct record {
    int label;
    int32_t q[COORDINATES];
};

static double over(const int64_t *x, const int64_t *y, size_t n, double sigma)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)(x[i] - y[i]) * (double)(x[i] - y[i]) / (sigma * sigma);
    return sum;
}

/* Squared distance of the datasets {x} and {y}: every number of the vector with its own noise. */
static double distance2(const struct fkt_moments_layout *l, const struct setting *s, const struct record *x,
                        const struct record *y)
{
    int64_t of[2][NUMBERS];
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        const struct record *r = i ? y : x;
        const uint32_t label = r->label < 0 ? 0 : (uint32_t)r->label;
        slow_parts(of[i], K, l, &label, r->q, r->label >= 0);
    }
    for (uint32_t k = 0; k < K; k++) {
        const size_t n = fkt_layout_count(l, K, k);
        sum += s->c > 0 ? over(of[0] + n, of[1] + n, 1, 1 / s->c) : 0;
        for (uint32_t p = 0; p < l->parts; p++) {
            const size_t m = fkt_layout_sum(l, K, k, p);
            sum += over(of[0] + m, of[1] + m, l->length[p], l->rq[p] / s->a[p]);
        }
    }
    for (uint32_t k = 0; k < (l->pooled ? 1 : K); k++)
        for (uint32_t p = 0; p < l->parts; p++) {
            const double sigma = (double)l->rq[p] * l->rq[p] / s->b[p];
            size_t at = fkt_layout_moment(l, K, k, p);
            for (size_t i = 0; i < l->length[p]; i++)
                for (size_t j = i; j < l->length[p]; j++, at++)
                    sum += over(of[0] + at, of[1] + at, 1, i == j ? sigma : sigma * sqrt(0.5));
        }
    return sum;
}

/* The largest distances found: one record or none, two of a class, two of different classes. */
struct found {
    double one[SETTINGS], same[SETTINGS], other[SETTINGS];
};

static void look(struct found *f, const struct fkt_moments_layout *l, const int32_t *x, const int32_t *y)
{
    const size_t bytes = fkt_layout_length(l) * sizeof *x;
    const struct record none = {.label = -1};
    struct record a = {.label = 0}, b = {.label = 0}, c = {.label = 1};
    memcpy(a.q, x, bytes);
    memcpy(b.q, y, bytes);
    memcpy(c.q, y, bytes);
    for (int i = 0; i < SETTINGS; i++) {
        f->one[i] = fmax(f->one[i], distance2(l, &settings[i], &a, &none));
        f->same[i] = fmax(f->same[i], distance2(l, &settings[i], &a, &b));
        f->other[i] = fmax(f->other[i], distance2(l, &settings[i], &a, &c));
    }
}

static void compare(const struct found *f, const struct fkt_moments_layout *l, double close)
{
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        const double got[3] = {f->one[i], f->same[i], fmax(f->same[i], f->other[i])};
        for (int adjacency = 0; adjacency < 3; adjacency++) {
            const double bound = fkt_privacy_mu_squared((enum fkt_adjacency)adjacency, s->c, l->parts, s->a, s->b);
            if (!(got[adjacency] <= bound) || !(got[adjacency] >= close * bound))
                fail_msg("setting %d, adjacency %d%s: largest found %.12g, formula %.12g", i, adjacency,
                         l->pooled ? ", pooled" : "", got[adjacency], bound);
        }
    }
}

/* All integer points of a ball of m dimensions (1 or 2). */
static int points_of(int32_t (*out)[2], int m, int rq)
{
    int n = 0;
    for (int i = -rq; i <= rq; i++)
        for (int j = m == 2 ? -rq : 0; j <= (m == 2 ? rq : 0); j++)
            if (i * i + j * j <= rq * rq) {
                out[n][0] = i;
                out[n++][1] = j;
            }
    return n;
}

/* Every pair of records whose two parts are integer points of small balls. */
static void all_records_of_small_balls(void **state)
{
    const struct fkt_moments_layout small[] = {
        {2, {2, 1}, {3, 2}, 0}, {2, {2, 1}, {3, 2}, 1}, {2, {2, 2}, {2, 2}, 0}, {2, {2, 2}, {2, 2}, 1}};
    static int32_t records[400][COORDINATES], p[2][32][2];
    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        const struct fkt_moments_layout *l = &small[i];
        const int n0 = points_of(p[0], (int)l->length[0], (int)l->rq[0]);
        const int n1 = points_of(p[1], (int)l->length[1], (int)l->rq[1]);
        struct found f = {{0}, {0}, {0}};
        int n = 0;
        for (int a = 0; a < n0; a++)
            for (int b = 0; b < n1; b++, n++) {
                CHECK(n < 400);
                memcpy(records[n], p[0][a], l->length[0] * sizeof(int32_t));
                memcpy(records[n] + l->length[0], p[1][b], l->length[1] * sizeof(int32_t));
            }
        for (int a = 0; a < n; a++)
            for (int b = 0; b <= a; b++) look(&f, l, records[a], records[b]);
        compare(&f, l, 0.5); /* few angles, but far from loose */
    }
}

/* A pair near the largest distance: each part of x on a pole of its circle, each part of y on the circle at an angle of
 * its own, rounded inwards. All pairs of angles are tried, so the parts' optima need not be known. */
static void large_balls_reach_the_bound(void **state)
{
    enum { ANGLES = 48 };
    const struct fkt_moments_layout large[] = {{2, {2, 2}, {4096, 325}, 0}, {2, {2, 2}, {4096, 325}, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        const struct fkt_moments_layout *l = &large[i];
        struct found f = {{0}, {0}, {0}};
        for (int a = 0; a <= ANGLES; a++)
            for (int b = 0; b <= ANGLES; b++) {
                const double one = M_PI * a / ANGLES, two = M_PI * b / ANGLES;
                const int32_t x[4] = {(int32_t)l->rq[0], 0, (int32_t)l->rq[1], 0};
                const int32_t y[4] = {(int32_t)(l->rq[0] * cos(one)), (int32_t)(l->rq[0] * sin(one)),
                                      (int32_t)(l->rq[1] * cos(two)), (int32_t)(l->rq[1] * sin(two))};
                look(&f, l, x, y);
            }
        compare(&f, l, 0.99);
    }
}

/* Joined parts are one vector: what the joined quantiser makes never exceeds the bound of one part, and with every part
 * on its sphere it comes close. */
static void joined_records_keep_the_bound_of_one_part(void **state)
{
    enum { ANGLES = 400 };
    const struct fkt_moments_layout l = {1, {4}, {4096}, 0}, pooled = {1, {4}, {4096}, 1};
    struct found f = {{0}, {0}, {0}}, g = f;
    struct fkt_coordinates c[2];
    (void)state;
    CHECK_OK(fkt_coordinates_clip(&c[0], 2, 64, 3));
    CHECK_OK(fkt_coordinates_clip(&c[1], 2, 64, 0.5));
    for (int a = 0; a <= ANGLES; a++) {
        const double angle = M_PI * a / ANGLES, w[4] = {3, 0, 0.5, 0};
        const double v[4] = {3 * cos(angle), 3 * sin(angle), 0.5 * cos(angle), 0.5 * sin(angle)};
        int32_t x[4], y[4];
        CHECK_OK(fkt_quantise_joined(c, 2, 4096, w, x));
        CHECK_OK(fkt_quantise_joined(c, 2, 4096, v, y));
        look(&f, &l, x, y);
        look(&g, &pooled, x, y);
    }
    compare(&f, &l, 0.99);
    compare(&g, &pooled, 0.99);
}

/* Different angles in each part, more than two parts, and what is not a number. */
static void edges_of_the_formula(void **state)
{
    const double a[4] = {1, 1, 0, 2}, b[4] = {1, 0, 1, 1}, bad[2] = {1, NAN};
    (void)state;
    CHECK_NEAR(fkt_privacy_mu_squared(FKT_ADJACENCY_REPLACE, 7, 4, a, b), 4.5 + 4 + 2 + 16, 1e-12);
    CHECK_NEAR(fkt_privacy_mu_squared(FKT_ADJACENCY_ADD_REMOVE, 2, 4, a, b), 4 + 6 + 3, 1e-12);
    CHECK_NEAR(fkt_privacy_mu_squared(FKT_ADJACENCY_REPLACE_ANY, 2, 4, a, b), 26.5, 1e-12);
    CHECK_NEAR(fkt_privacy_mu_squared(FKT_ADJACENCY_REPLACE_ANY, 3, 4, a, b), 2 * (9 + 6 + 3), 1e-12);
    CHECK(isnan(fkt_privacy_mu_squared(FKT_ADJACENCY_REPLACE, 0, 0, a, b)));
    CHECK(isnan(fkt_privacy_mu_squared(FKT_ADJACENCY_REPLACE, 0, FKT_PARTS_MAX + 1, a, b)));
    CHECK(isnan(fkt_privacy_mu_squared(FKT_ADJACENCY_REPLACE, 0, 2, a, bad)));
    CHECK(isnan(fkt_privacy_mu_squared(FKT_ADJACENCY_REPLACE, 0, 2, bad, b)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_records_of_small_balls),
        cmocka_unit_test(large_balls_reach_the_bound),
        cmocka_unit_test(joined_records_keep_the_bound_of_one_part),
        cmocka_unit_test(edges_of_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
