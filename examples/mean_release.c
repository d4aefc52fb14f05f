/* SPDX-License-Identifier: Apache-2.0 */
/* mean_release.c - the heart of fedkt in one page: vectors of two classes, exact moments, one private release, and what
 * a reader of the release can tell of the class means.
 *
 *   vectors u -> coordinates -> integers -> moments  | debit, noise |  -> Gaussians -> print
 *                 secret from here ...               | the release  |  ... public from here
 *
 * The vectors are made up: 4,000 points in the plane, class "left" around (-1, 0), class "right" around (1, 0.5), all
 * inside the public radius R = 2. Build it against an installed library:
 *   cc mean_release.c $(pkg-config --cflags --libs fedkt) */
#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/synth.h"
#include "fedkt/fedkt.h"

#include <stdio.h>

enum { CLASSES = 2, DIM = 2, RECORDS = 4000 };

/* Public toy data: a fixed low-discrepancy cloud in [-0.5, 0.5]^2 around each centre. */
static void toy_record(size_t i, uint32_t *label, double u[DIM])
{
    static const double centre[CLASSES][DIM] = {{-1.0, 0.0}, {1.0, 0.5}};
    double a = (double)i * 0.7548776662466927, b = (double)i * 0.5698402909980532;
    *label = (uint32_t)(i % CLASSES);
    u[0] = centre[*label][0] + (a - (double)(size_t)a) - 0.5;
    u[1] = centre[*label][1] + (b - (double)(size_t)b) - 0.5;
}

static fkt_status gather(struct fkt_moments *m, const struct fkt_coordinates *c)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < RECORDS && st == FKT_OK; i++) {
        double u[DIM], w[DIM];
        int32_t q[DIM];
        uint32_t label;
        toy_record(i, &label, u);
        st = fkt_coordinates_forward(c, u, w);
        if (st == FKT_OK) st = fkt_quantise(c, w, q);
        if (st == FKT_OK) st = fkt_moments_add(m, &label, q, 1);
    }
    return st;
}

static void print_class(const struct fkt_gaussians *g, uint32_t k, const char *name)
{
    const double *mean = g->mean + (size_t)k * DIM, *cov = g->cov + (size_t)k * DIM * DIM;
    printf("%-5s  about %.0f records, mean (%.3f, %.3f) +- %.3f, variances (%.3f, %.3f)\n", name, g->count[k], mean[0],
           mean[1], g->mean_noise[k], cov[0], cov[3]);
}

int main(void)
{
    const struct fkt_moments_layout layout = fkt_layout_one(DIM, FKT_RQ_DEFAULT);
    struct fkt_coordinates c;
    struct fkt_moments *m = NULL;
    const int64_t *exact = NULL;
    int64_t noised[CLASSES * (DIM + 1) * (DIM + 2) / 2];
    struct fkt_gaussians g = {0};
    struct fkt_privacy_plan plan = {0};
    struct fkt_ledger ledger;
    fkt_status st;

    st = fkt_coordinates_clip(&c, DIM, FKT_RQ_DEFAULT, 2.0);
    if (st == FKT_OK) st = fkt_moments_new(&m, CLASSES, &layout, 0);
    if (st == FKT_OK) st = gather(m, &c);
    if (st == FKT_OK) st = fkt_moments_packed(m, &exact);

    struct fkt_privacy_spec spec = {.epsilon = 1.0,
                                    .delta = 1e-5,
                                    .adjacency = FKT_ADJACENCY_ADD_REMOVE,
                                    .mechanism = FKT_MECHANISM_JOINT,
                                    .split_count = 1,
                                    .parts = 1,
                                    .part = {{FKT_RQ_DEFAULT, 24, 75}}};
    if (st == FKT_OK) st = fkt_privacy_plan(&plan, &spec);
    if (st == FKT_OK) st = fkt_ledger_init(&ledger, plan.mu * plan.mu, 0.0); /* enough for one release, not for two */
    if (st == FKT_OK) st = fkt_privacy_release(noised, exact, CLASSES, &layout, &plan, &ledger, NULL);

    struct fkt_noise_scale scale = {.sigma_count = plan.sigma_count,
                                    .sigma_sum = plan.sigma[0].sum,
                                    .sigma_moment = plan.sigma[0].moment,
                                    .unit = c.radius / c.rq};
    struct fkt_estimate_options options = {.estimator = FKT_ESTIMATOR_CLAMP};
    if (st == FKT_OK) st = fkt_gaussians_estimate(&g, noised, CLASSES, DIM, &scale, &options);
    if (st == FKT_OK) {
        printf("epsilon %.3g, delta %.3g, add-remove: mu %.4f\n", spec.epsilon, spec.delta, plan.mu);
        print_class(&g, 0, "left");
        print_class(&g, 1, "right");
        if (fkt_privacy_release(noised, exact, CLASSES, &layout, &plan, &ledger, NULL) != FKT_E_BUDGET) {
            fprintf(stderr, "mean_release: the ledger paid twice\n");
            st = FKT_E_STATE;
        } else {
            printf("a second release: refused, %s\n", fkt_error_text());
        }
    } else {
        fprintf(stderr, "mean_release: %s\n", fkt_error_text());
    }
    fkt_gaussians_clear(&g);
    fkt_moments_free(m);
    return st == FKT_OK ? 0 : 1;
}
