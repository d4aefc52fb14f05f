/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation in turn of saving, reading and exporting a whole model, and of fitting heads to parts. */
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"
#include "tests/support/whole_toy.h"

static struct scratch place;
static struct fkt_whole *model;
static const char *path, *onnx;

static fkt_status saved(void) { return fkt_whole_save(model, path, 1); }
static fkt_status exported(void) { return fkt_whole_export_onnx(model, onnx, 1); }

static fkt_status loaded(void)
{
    struct fkt_whole *m = NULL;
    fkt_status st = fkt_whole_load(&m, path);
    if (st != FKT_OK && m) fail_msg("a model came out of a failed load");
    fkt_whole_free(m);
    return st;
}

static fkt_status fitted(void)
{
    static const double count[] = {50, 80}, mean[] = {1, 0, -1, 0.5}, cov[] = {1, 0.2, 0.2, 2, 3, 0, 0, 1},
                        edge[] = {0.1, 0.05}, noise[] = {0.01, 0.02}, w[] = {0, 1, 2, 3};
    const struct fkt_class_statistics one = {
        .classes = 2, .length = 2, .count = count, .mean = mean, .cov = cov, .noise_edge = edge, .mean_noise = noise};
    struct fkt_class_statistics two[2] = {one, one};
    struct fkt_head *h = NULL;
    double p[2];
    fkt_status st;
    two[1].offset = 2;
    FKT_TRY(fkt_head_fit_parts(&h, FKT_HEAD_QDA, two, 2));
    FKT_TRY(fkt_head_posterior(h, w, 1, 2, p));
out:
    fkt_head_free(h);
    return st;
}

static void each_allocation(void **state)
{
    (void)state;
    scratch_init(&place);
    path = scratch_path(&place, "whole.safetensors");
    onnx = scratch_path(&place, "whole.onnx");
    toy_whole(&model, FKT_HEAD_QDA, 2, 0);
    CHECK_OK(saved());
    CHECK(sweep_allocations(saved, NULL) > 30);
    CHECK(sweep_allocations(loaded, NULL) > 50);
    CHECK(sweep_allocations(exported, NULL) > 100);
    CHECK(sweep_allocations(fitted, NULL) > 20);
    fkt_whole_free(model);
    scratch_release(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
