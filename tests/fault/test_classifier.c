/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation of fitting, predicting, saving, loading and scoring in turn: FKT_E_NOMEM, nothing leaked. */
#include "fedkt/classifier.h"
#include "tests/support/check.h"

#include <unistd.h>

static const double count[] = {50, 80}, mean[] = {1, 0, -1, 0.5}, cov[] = {1, 0.2, 0.2, 2, 3, 0, 0, 1},
                    edge[] = {0.1, 0.05}, noise[] = {0.01, 0.02};
static const struct fkt_class_statistics toy = {
    .classes = 2, .length = 2, .count = count, .mean = mean, .cov = cov, .noise_edge = edge, .mean_noise = noise};

static fkt_status whole_life(enum fkt_head_kind kind, const char *path)
{
    const double w[] = {0, 1, 2, 3};
    const uint32_t truth[] = {0, 1};
    struct fkt_head *fitted = NULL, *loaded = NULL;
    struct fkt_score score = {0};
    uint32_t label[2];
    fkt_status st;
    FKT_TRY(fkt_head_fit(&fitted, kind, &toy));
    FKT_TRY(fkt_head_save(fitted, path, 1));
    FKT_TRY(fkt_head_load(&loaded, path));
    FKT_TRY(fkt_head_predict(loaded, w, 2, label));
    FKT_TRY(fkt_score_init(&score, 2));
    FKT_TRY(fkt_score_add(&score, truth, label, 2));
out:
    fkt_score_clear(&score);
    fkt_head_free(fitted);
    fkt_head_free(loaded);
    return st;
}

static void a_head_survives_each_failure(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/fedkt-head-fault-%ld", (long)getpid());
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
        size_t n, start = fkt_alloc_live();
        fkt_status st = FKT_E_NOMEM;
        for (n = 1; st != FKT_OK; n++) {
            fkt_alloc_fault_at(n, 0);
            st = whole_life((enum fkt_head_kind)kind, path);
            fkt_alloc_fault_at(0, 0);
            if (st != FKT_OK) CHECK_STATUS(st, FKT_E_NOMEM);
            CHECK(fkt_alloc_live() == start);
            CHECK(n < 1000);
        }
        CHECK(n > 15);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_survives_each_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
