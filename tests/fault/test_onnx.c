/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation in turn of writing a model as ONNX, reading it (protobuf-c's too), and writing curves. */
#include "base/alloc.h"
#include "classifier/onnx.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

#include <unistd.h>

static struct scratch place;
static struct fkt_model *model;
static const char *path, *csv, *folder;

static fkt_status written(void) { return fkt_model_export_onnx(model, path, 1); }

static fkt_status read_back(void)
{
    struct fkt_model *m = NULL;
    fkt_status st = fkt_model_load(&m, path, 0);
    if (st != FKT_OK && m) fail_msg("a model came out of a failed load");
    fkt_model_free(m);
    return st;
}

static fkt_status curves(void)
{
    const struct fkt_epoch e[] = {{1, 2, 0.5, NAN, NAN, NAN, NAN, 0.1, 1, 10}, {2, 1, 0.5, 1, 0.5, 1, 1, 0.1, 1, 10}};
    fkt_status st;
    FKT_TRY(fkt_curves_csv(csv, e, 2, 1));
    FKT_TRY(fkt_curves_tensorboard(folder, e, 2, 1e9));
out:
    return st;
}

/* What failed left the file as it was, and nothing beside it. */
static void the_file_stands(fkt_status st)
{
    (void)st;
    CHECK(access(path, F_OK) == 0);
}

static void each_allocation(void **state)
{
    const char *names[] = {"a", "b"};
    const struct fkt_model_spec spec = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = 8, .classes = names, .n_classes = 2, .seed = 1};
    (void)state;
    scratch_init(&place);
    path = scratch_path(&place, "model.onnx");
    csv = scratch_path(&place, "curves.csv");
    folder = scratch_path(&place, "runs/one");
    CHECK_OK(fkt_model_new(&model, &spec));
    CHECK_OK(written());
    CHECK(sweep_allocations(written, the_file_stands) > 20);
    CHECK(sweep_allocations(read_back, NULL) > 500);
    CHECK(sweep_allocations(curves, NULL) > 8);
    fkt_model_free(model);
    scratch_release(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
