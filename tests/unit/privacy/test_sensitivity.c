/* SPDX-License-Identifier: Apache-2.0 */
/* The closed forms against brute force: integer records inside the ball, the real distance in units of the noise. */
#include "base/rng.h"
#include "fedkt/advanced/privacy.h"
#include "tests/support/check.h"

#define M_MAX 5

struct setting {
    double a, b, c;
};
static const struct setting settings[] = {{1, 1, 1},   {0.3, 2, 0.1}, {2, 0.3, 0.5}, {1.4142, 1, 0},
                                          {1, 0, 0.2}, {0, 1, 0.2},   {1.5, 1, 3},   {0.49, 0.87, 0.1}};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* Squared distance of what x and y add to one class, packed as it is released: upper triangle, off-diagonal noise
 * s_M/sqrt 2. */
static double distance2(const int *x, const int *y, int m, double rq, const struct setting *s)
{
    double sum = 0, moment = 0;
    for (int i = 0; i < m; i++) {
        sum += (x[i] - y[i]) * (double)(x[i] - y[i]);
        for (int j = i; j < m; j++) {
            const double d = (double)x[i] * x[j] - (double)y[i] * y[j];
            moment += (i == j ? 1 : 2) * d * d;
        }
    }
    return s->a * s->a * sum / (rq * rq) + s->b * s->b * moment / (rq * rq * rq * rq);
}

/* mu^2 of one part. */
static double mu_squared(enum fkt_adjacency adjacency, double a, double b, double c)
{
    return fkt_privacy_mu_squared(adjacency, c, 1, &a, &b);
}

struct found {
    double add_remove[SETTINGS], same_label[SETTINGS], other_label[SETTINGS];
};

static void look(struct found *f, const int *x, const int *y, int m, double rq)
{
    static const int zero[M_MAX];
    for (int k = 0; k < SETTINGS; k++) {
        const double c2 = settings[k].c * settings[k].c;
        const double one = distance2(x, zero, m, rq, &settings[k]) + c2,
                     two = distance2(y, zero, m, rq, &settings[k]) + c2;
        f->add_remove[k] = fmax(f->add_remove[k], fmax(one, two));
        f->other_label[k] = fmax(f->other_label[k], one + two);
        f->same_label[k] = fmax(f->same_label[k], distance2(x, y, m, rq, &settings[k]));
    }
}

static void evaluate(const struct found *f, int need_close)
{
    for (int k = 0; k < SETTINGS; k++) {
        const struct setting *s = &settings[k];
        const double got[3] = {f->add_remove[k], f->same_label[k], fmax(f->same_label[k], f->other_label[k])};
        for (int adjacency = 0; adjacency < 3; adjacency++) {
            const double bound = mu_squared((enum fkt_adjacency)adjacency, s->a, s->b, s->c);
            if (!(got[adjacency] <= bound) || (need_close && !(got[adjacency] >= 0.99 * bound)))
                fail_msg("setting %d, adjacency %d: largest found %.12g, formula %.12g", k, adjacency, got[adjacency],
                         bound);
        }
    }
}

static int inside(const int *x, int m, int rq)
{
    int64_t n = 0;
    for (int i = 0; i < m; i++) n += (int64_t)x[i] * x[i];
    return n <= (int64_t)rq * rq;
}

/* All pairs of integer points of the disc; or, of a larger disc, those of a thin rim, where the largest must lie. */
static void all_pairs(struct found *f, int rq, int rim)
{
    const int side = 2 * rq + 1, least = rim ? rq * rq - rq : 0;
    static int point[4000][2];
    int n = 0;
    for (int i = 0; i < side * side; i++) {
        const int x[2] = {i % side - rq, i / side - rq};
        if (!inside(x, 2, rq) || x[0] * x[0] + x[1] * x[1] < least) continue;
        CHECK(n < 4000);
        memcpy(point[n++], x, sizeof x);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) look(f, point[i], point[j], 2, rq);
}

static void grid_in_the_plane(void **state)
{
    (void)state;
    for (int rq = 5; rq <= 325; rq = rq < 25 ? 25 : rq < 65 ? 65 : rq * 5) {
        struct found f = {{0}, {0}, {0}};
        all_pairs(&f, rq, rq > 25);
        evaluate(&f, rq > 25); /* smaller circles have too few angles to come close */
    }
}

/* A random direction, rounded towards zero, so that it stays inside; then the opposite angle is tried in small steps.
 */
static void random_pairs(void **state)
{
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 11, 0);
    for (int rq = 64; rq <= 4096; rq *= 8)
        for (int m = 1; m <= M_MAX; m++) {
            struct found f = {{0}, {0}, {0}};
            for (int trial = 0; trial < 20000; trial++) {
                double u[M_MAX], v[M_MAX], nu = 0, nv = 0, uv = 0;
                const double rho = -fkt_rng_unit(&r), shrink = trial % 4 ? 1 : fkt_rng_unit(&r);
                int x[M_MAX], y[M_MAX];
                for (int i = 0; i < m; i++) {
                    u[i] = trial % 2 ? fkt_rng_normal(&r) : i == trial / 2 % m;
                    v[i] = fkt_rng_normal(&r);
                    nu += u[i] * u[i];
                }
                for (int i = 0; i < m; i++) uv += u[i] * v[i] / nu;
                for (int i = 0; i < m; i++) nv += (v[i] - uv * u[i]) * (v[i] - uv * u[i]);
                for (int i = 0; i < m; i++) {
                    const double along = u[i] / sqrt(nu), across = m > 1 ? (v[i] - uv * u[i]) / sqrt(nv) : 0;
                    x[i] = (int)(rq * along + (along > 0 ? 1e-9 : -1e-9));
                    y[i] = (int)(shrink * rq *
                                 (m > 1       ? rho * along + sqrt(1 - rho * rho) * across
                                  : trial % 2 ? -along
                                              : 0));
                }
                if (inside(x, m, rq) && inside(y, m, rq)) look(&f, x, y, m, rq);
            }
            evaluate(&f, m > 1 && rq > 64); /* a line has no angles; at 64 rounding inwards costs more than 1 % */
        }
}

static void edges_of_the_formula(void **state)
{
    (void)state;
    CHECK_NEAR(mu_squared(FKT_ADJACENCY_REPLACE, 1, 1, 7), 4.5, 1e-14); /* c does not count */
    CHECK_NEAR(mu_squared(FKT_ADJACENCY_REPLACE, 1, 0, 0), 4, 1e-14);
    CHECK_NEAR(mu_squared(FKT_ADJACENCY_REPLACE, 0, 1, 0), 2, 1e-14);
    CHECK(mu_squared(FKT_ADJACENCY_REPLACE, 0, 0, 0) == 0);
    CHECK_NEAR(mu_squared(FKT_ADJACENCY_REPLACE, sqrt(2), 1, 0), 8, 1e-13); /* both branches meet */
    CHECK_NEAR(mu_squared(FKT_ADJACENCY_ADD_REMOVE, 3, 4, 12), 169, 1e-12);
    CHECK_NEAR(mu_squared(FKT_ADJACENCY_REPLACE_ANY, 1, 1, 0), 4.5, 1e-14);
    CHECK_NEAR(mu_squared(FKT_ADJACENCY_REPLACE_ANY, 1, 1, 1), 6, 1e-13);
    CHECK(isnan(mu_squared(FKT_ADJACENCY_REPLACE, NAN, 1, 0)) && isnan(mu_squared(FKT_ADJACENCY_ADD_REMOVE, 1, -1, 0)));
    CHECK(isnan(mu_squared(FKT_ADJACENCY_ADD_REMOVE, 1, 1, INFINITY)) &&
          isnan(mu_squared((enum fkt_adjacency)9, 1, 1, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid_in_the_plane),
        cmocka_unit_test(random_pairs),
        cmocka_unit_test(edges_of_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
