/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation of planning, storing, reading and summarising cells in turn: FKT_E_NOMEM, nothing leaked. */
#include "experiment/attack.h"
#include "experiment/summary.h"
#include "experiment/store.h"

#include "base/alloc.h"
#include "base/text.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static struct scratch dir;

static fkt_status store_and_read(const char *folder, int first)
{
    const struct fkt_experiment *list[] = {fkt_experiment_find("mechanism")};
    const struct fkt_experiment_options o = {
        .experiments = list, .n_experiments = 1, .quick = 1, .n_seeds = 1, .threads = 1};
    static const double ratio[] = {0, 1, 2};
    static const uint8_t member[] = {0, 1, 0};
    struct fkt_summary s = {0};
    struct fkt_cell *cells = NULL;
    json_t *all = NULL, *points = json_array(), *notes = json_object();
    struct fkt_text t;
    double area;
    size_t n;
    fkt_status st;
    fkt_text_init(&t);
    FKT_TRY(fkt_store_begin(folder, &o, !first));
    FKT_TRY(fkt_experiment_cells(&o, &cells, &n));
    FKT_TRY(fkt_point_add(points, &list[0]->x[0], NULL, json_pack("{s:f}", "mean_error", 0.5), NULL));
    json_object_set_new(notes, "inputs", json_pack("{s:s s:s}", "eurosat", "aa", FKT_PUBLIC_SET, "bb"));
    FKT_TRY(fkt_store_put(folder, &cells[0], json_incref(points), &o, notes));
    FKT_TRY(fkt_store_read(folder, &all));
    FKT_TRY(fkt_summary_make(&s, all));
    fkt_table_csv(&t, &s, list[0]);
    FKT_TRY(fkt_text_status(&t));
    FKT_TRY(fkt_roc(ratio, member, 3, NULL, NULL, 0, &area));
out:
    fkt_text_clear(&t);
    fkt_summary_clear(&s);
    json_decref(all);
    json_decref(points);
    json_decref(notes);
    fkt_free(cells);
    return st;
}

static void cells_survive_each_failure(void **state)
{
    const char *folder = scratch_path(&dir, "run");
    size_t n, start;
    fkt_status st = FKT_E_NOMEM;
    (void)state;
    CHECK_OK(store_and_read(folder, 1));
    start = fkt_alloc_live();
    for (n = 1; st != FKT_OK; n++) {
        fkt_alloc_fault_at(n, 0);
        st = store_and_read(folder, 0);
        fkt_alloc_fault_at(0, 0);
        if (st != FKT_OK) CHECK_STATUS(st, FKT_E_NOMEM);
        CHECK(fkt_alloc_live() == start);
        CHECK(n < 1000);
    }
    CHECK(n > 10);
}

static int begin(void **state)
{
    (void)state;
    scratch_init(&dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_survive_each_failure),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
