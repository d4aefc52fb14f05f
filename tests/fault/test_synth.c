/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation of an estimate and of a sample in turn: FKT_E_NOMEM, nothing leaked, then success. */
#include "fedkt/advanced/synth.h"
#include "tests/support/check.h"

static const int64_t blocks[] = {50, 10, -20, 5000, 300, 6000, 70, 5, 6, 9000, -80, 4000};
static const struct fkt_noise_scale noise = {3, 20, 100, 0.1, 2, 100, 1};

static void estimate_survives_each_failure(void **state)
{
    const struct fkt_estimate_options options = {.estimator = FKT_ESTIMATOR_RIE, .pool = 0.3};
    size_t n, start = fkt_alloc_live();
    fkt_status st = FKT_E_NOMEM;
    (void)state;
    for (n = 1; st != FKT_OK; n++) {
        struct fkt_gaussians g;
        fkt_alloc_fault_at(n, 0);
        st = fkt_gaussians_estimate(&g, blocks, 2, 2, &noise, &options);
        fkt_alloc_fault_at(0, 0);
        if (st != FKT_OK) {
            CHECK_STATUS(st, FKT_E_NOMEM);
            CHECK(g.mean == NULL);
        } else fkt_gaussians_clear(&g);
        CHECK(fkt_alloc_live() == start);
    }
    CHECK(n > 15);
}

static void sample_survives_each_failure(void **state)
{
    double mean[] = {1}, factor[] = {2}, w[3];
    const struct fkt_gaussians g = {.classes = 1, .length = 1, .mean = mean, .factor = factor};
    size_t start = fkt_alloc_live();
    (void)state;
    fkt_alloc_fault_at(1, 0);
    CHECK_STATUS(fkt_gaussians_sample(&g, 0, 1, 0, 3, w), FKT_E_NOMEM);
    fkt_alloc_fault_at(0, 0);
    CHECK(fkt_alloc_live() == start);
    CHECK_OK(fkt_gaussians_sample(&g, 0, 1, 0, 3, w));
    CHECK(fkt_alloc_live() == start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimate_survives_each_failure),
        cmocka_unit_test(sample_survives_each_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
