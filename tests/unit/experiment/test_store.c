/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c - which cells a run has, and the folder that keeps them. */
#include "experiment/lab.h"
#include "experiment/store.h"

#include "base/alloc.h"
#include "base/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <string.h>

static struct scratch dir;

static struct fkt_experiment_options options_of(const struct fkt_experiment **list, size_t n)
{
    return (struct fkt_experiment_options){
        .experiments = list, .n_experiments = n, .quick = 1, .n_seeds = 2, .seed = {3, 8}, .threads = 1};
}

static void cells_are_every_panel_arm_position_and_seed(void **state)
{
    const struct fkt_experiment *list[] = {fkt_experiment_find("clients"), fkt_experiment_find("epsilon")};
    struct fkt_experiment_options o = options_of(list, 2);
    struct fkt_cell *cells = NULL;
    size_t n = 0;
    (void)state;
    CHECK_OK(fkt_experiment_cells(&o, &cells, &n));
    /* clients: 3 arms, 3 positions apart, 2 seeds; epsilon: 3 arms, 2 seeds. Bounds by real records: one for a seed. */
    assert_int_equal(n, (3 * 3 + 1) * 2 + (3 + 1) * 2);
    assert_string_equal(cells[0].key, "clients.demo.paper.5.3");
    assert_string_equal(cells[n - 1].key, "epsilon.demo.real.8");
    assert_true(fkt_cell_is_first(&cells[0]) && !fkt_cell_is_last(&cells[0])); /* 5, 20 and 50 sites, seed after seed */
    assert_true(!fkt_cell_is_first(&cells[1]) && !fkt_cell_is_last(&cells[1]));
    assert_true(!fkt_cell_is_first(&cells[2]) && fkt_cell_is_last(&cells[2]));
    assert_true(fkt_cell_is_first(&cells[n - 1]) && fkt_cell_is_last(&cells[n - 1])); /* all epsilons in one cell */
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) assert_string_not_equal(cells[i].key, cells[k].key);
    fkt_free(cells);
    assert_false(fkt_experiment_trains(list[1], &o));
    o.network = 2;
    assert_true(fkt_experiment_trains(list[1], &o));
    assert_false(fkt_experiment_trains(list[0], &o)); /* of the two, epsilon alone trains in quick runs */
    list[0] = fkt_experiment_find("samples");
    CHECK_OK(fkt_experiment_cells(&o, &cells, &n));
    assert_int_equal(n, (3 * 2 + 1) * 2 + (3 + 1) * 2);
    fkt_free(cells);
    o.network = 0; /* then samples has nothing to show */
    CHECK_OK(fkt_experiment_cells(&o, &cells, &n));
    assert_int_equal(n, (3 + 1) * 2);
    fkt_free(cells);
}

static void names_of_sets_are_plain_words(void **state)
{
    char room[96];
    (void)state;
    assert_true(fkt_experiment_plain("imagenette64", NULL));
    assert_true(fkt_experiment_plain("a-b_c.1", NULL));
    assert_false(fkt_experiment_plain("../x", room));
    assert_null(strchr(room, '/'));
    assert_int_not_equal(room[0], '.');
    assert_false(fkt_experiment_plain("", NULL));
    assert_false(fkt_experiment_plain(".hidden", NULL));
}

static void a_folder_goes_on_under_the_same_options_alone(void **state)
{
    const struct fkt_experiment *list[] = {fkt_experiment_find("mechanism")};
    struct fkt_experiment_options o = options_of(list, 1);
    const char *folder = scratch_path(&dir, "run");
    (void)state;
    CHECK_OK(fkt_store_begin(folder, &o, 0));
    CHECK_STATUS(fkt_store_begin(folder, &o, 0), FKT_E_EXISTS);
    CHECK_OK(fkt_store_begin(folder, &o, 1));
    o.seed[1] = 9;
    CHECK_STATUS(fkt_store_begin(folder, &o, 1), FKT_E_MISMATCH);
    assert_non_null(strstr(fkt_error_text(), "is of a run with other options: 'seeds' differs"));
    CHECK_OK(fkt_file_write(scratch_path(&dir, "run/plan.json"), "[]", 2, FKT_FILE_REPLACE));
    CHECK_STATUS(fkt_store_begin(folder, &o, 1), FKT_E_FORMAT);
    CHECK_STATUS(fkt_store_begin(scratch_path(&dir, "run/plan.json"), &o, 0), FKT_E_IO); /* a file, not a folder */
    o.limit = (size_t)UINT32_MAX + 1;
    CHECK_STATUS(fkt_store_begin(scratch_path(&dir, "limited"), &o, 0), FKT_E_ARG);
}

/* What a run that goes on, and a report, say of a cell with these points. */
static void has_points(const char *run, const struct fkt_experiment_options *o, const char *points, fkt_status wanted)
{
    char text[512], name[64];
    json_t *all = NULL;
    snprintf(name, sizeof name, "%s/cells/other.json", run);
    snprintf(text, sizeof text, "{\"schema\": \"fedkt.cell/1\", \"seed\": 0, \"points\": %s}", points);
    CHECK_OK(fkt_file_write(scratch_path(&dir, name), text, strlen(text), FKT_FILE_REPLACE));
    CHECK_STATUS(fkt_store_read(scratch_path(&dir, run), &all), wanted);
    json_decref(all);
    CHECK_STATUS(fkt_store_begin(scratch_path(&dir, run), o, 1), wanted);
}

static void values_are_numbers_that_a_table_can_print(void **state)
{
    const struct fkt_experiment *list[] = {fkt_experiment_find("mechanism")};
    const struct fkt_experiment_options o = options_of(list, 1);
    (void)state;
    CHECK_OK(fkt_store_begin(scratch_path(&dir, "values"), &o, 0));
    has_points("values", &o, "[{\"values\": {\"a\": 1, \"b\": -1e15}}]", FKT_OK);
    has_points("values", &o, "[]", FKT_E_FORMAT);
    has_points("values", &o, "[{}]", FKT_E_FORMAT);
    has_points("values", &o, "[{\"values\": {}}]", FKT_E_FORMAT);
    has_points("values", &o, "[{\"values\": 1}]", FKT_E_FORMAT);
    has_points("values", &o, "[{\"values\": {\"a\": \"1\"}}]", FKT_E_FORMAT);
    has_points("values", &o, "[{\"values\": {\"a\": null}}]", FKT_E_FORMAT);
    has_points("values", &o, "[{\"values\": {\"a\": 1.1e15}}]", FKT_E_FORMAT);
    has_points("values", &o, "[{\"values\": {\"a\": 1}}, {\"values\": {\"a\": -1.1e15}}]", FKT_E_FORMAT);
}

static void what_is_put_is_read(void **state)
{
    const struct fkt_experiment *list[] = {fkt_experiment_find("mechanism")};
    struct fkt_experiment_options o = options_of(list, 1);
    const char *folder = scratch_path(&dir, "put");
    const struct fkt_position x = {0.3, NULL};
    struct fkt_cell *cells = NULL;
    json_t *points = json_array(), *all = NULL;
    size_t n;
    (void)state;
    CHECK_OK(fkt_store_begin(folder, &o, 0));
    CHECK_OK(fkt_experiment_cells(&o, &cells, &n));
    assert_false(fkt_store_has(folder, &cells[0]));
    CHECK_OK(fkt_point_add(points, &x, NULL, json_pack("{s:f}", "covariance_error", 0.5), NULL));
    CHECK_OK(fkt_store_put(folder, &cells[0], points, &o, NULL));
    assert_true(fkt_store_has(folder, &cells[0]));
    assert_false(fkt_store_has(folder, &cells[1]));
    CHECK_OK(fkt_store_read(folder, &all));
    assert_int_equal(json_array_size(all), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(all, 0), "panel")), "200-records");
    json_decref(all);
    CHECK_OK(fkt_file_write(scratch_path(&dir, "put/cells/other.json"), "{}", 2, 0));
    CHECK_STATUS(fkt_store_read(folder, &all), FKT_E_FORMAT);
    CHECK_STATUS(fkt_store_begin(folder, &o, 1), FKT_E_FORMAT); /* before hours of other cells */
    assert_non_null(strstr(fkt_error_text(), "put/cells/other.json' is not a cell"));
    fkt_free(cells);
}

/* A set of two classes with three images each, in a folder of sets. */
static void make_named(const char *sets, const char *set, uint8_t shade)
{
    char name[64], path[600];
    uint8_t rgb[8 * 8 * 3];
    for (int i = 0; i < 6; i++) {
        memset(rgb, shade + 20 * i, sizeof rgb);
        snprintf(name, sizeof name, "%s/%s/%c", sets, set, 'a' + i / 3);
        CHECK_OK(fkt_mkdirs(scratch_path(&dir, name)));
        snprintf(path, sizeof path, "%s/%d.png", scratch_path(&dir, name), i);
        CHECK_OK(fkt_png_write(path, rgb, 8, 8, 1));
    }
}

static void make_set(const char *sets, uint8_t shade) { make_named(sets, "toy", shade); }

static void a_set_that_is_another_one_is_refused(void **state)
{
    const struct fkt_experiment *list[] = {fkt_experiment_find("epsilon")};
    struct fkt_experiment_options o = options_of(list, 1);
    char folder[600];
    struct fkt_lab_set set;
    struct fkt_lab *lab = NULL;
    char sha[65];
    (void)state;
    snprintf(folder, sizeof folder, "%s/sets-run", dir.dir);
    make_set("first", 10);
    make_set("copy", 10);
    make_set("other", 11);
    o.data = scratch_path(&dir, "first");
    CHECK_OK(fkt_store_begin(folder, &o, 0));
    CHECK_OK(fkt_lab_new(&lab, &o, folder, scratch_path(&dir, "sets-enc")));
    CHECK_OK(fkt_lab_set(lab, "toy", &set));
    memcpy(sha, set.sha256, sizeof sha);
    assert_int_equal(strlen(sha), 64);
    CHECK_OK(fkt_store_begin(folder, &o, 1));
    o.data = scratch_path(&dir, "copy"); /* the same records elsewhere */
    CHECK_OK(fkt_store_begin(folder, &o, 1));
    o.data = scratch_path(&dir, "absent"); /* its cells will be skipped */
    CHECK_OK(fkt_store_begin(folder, &o, 1));
    o.data = scratch_path(&dir, "other"); /* as many, and all as large */
    CHECK_STATUS(fkt_store_begin(folder, &o, 1), FKT_E_MISMATCH);
    assert_non_null(strstr(fkt_error_text(), "as many records, but not the same"));
    o.data = scratch_path(&dir, "copy"); /* a record changes its class */
    assert_int_equal(rename(scratch_path(&dir, "copy/toy/a/0.png"), scratch_path(&dir, "copy/toy/b/0.png")), 0);
    CHECK_STATUS(fkt_store_begin(folder, &o, 1), FKT_E_MISMATCH);
    assert_int_equal(remove(scratch_path(&dir, "copy/toy/b/0.png")), 0);
    CHECK_STATUS(fkt_store_begin(folder, &o, 1), FKT_E_MISMATCH);
    assert_non_null(strstr(fkt_error_text(), "it had 6 records and 0 test records, and this one has 5 and 0"));
    fkt_lab_free(lab);
    CHECK_OK(
        fkt_lab_new(&lab, &o, folder, scratch_path(&dir, "sets-enc"))); /* it changes during a run: a skipped cell */
    CHECK_STATUS(fkt_lab_set(lab, "toy", &set), FKT_E_MISMATCH);
    fkt_lab_free(lab);
    CHECK_OK(fkt_file_write(scratch_path(&dir, "sets-run/sets/toy.json"), "{}", 2, FKT_FILE_REPLACE));
    CHECK_STATUS(fkt_store_begin(folder, &o, 1), FKT_E_FORMAT);
}

/* What a run that goes on says of the public set in a folder of sets. */
static void goes_on(const char *run, struct fkt_experiment_options *o, const char *sets, const char *complaint)
{
    char folder[600];
    snprintf(folder, sizeof folder, "%s/%s", dir.dir, run);
    o->data = scratch_path(&dir, sets);
    if (!complaint) CHECK_OK(fkt_store_begin(folder, o, 1));
    else {
        CHECK_STATUS(fkt_store_begin(folder, o, 1), FKT_E_MISMATCH);
        assert_string_equal(fkt_error_text(), complaint);
    }
}

/* A network of the run asks for it. */
static size_t ask(const char *run, struct fkt_experiment_options *o, const char *sets, fkt_status wanted)
{
    char folder[600], sha256[FKT_SHA256_HEX];
    struct fkt_dataset *ds = NULL;
    struct fkt_lab *lab = NULL;
    size_t n = 0;
    snprintf(folder, sizeof folder, "%s/%s", dir.dir, run);
    o->data = scratch_path(&dir, sets);
    CHECK_OK(fkt_lab_new(&lab, o, folder, scratch_path(&dir, "sets-enc")));
    CHECK_STATUS(fkt_lab_public(lab, &ds, sha256), wanted);
    if (ds) n = fkt_dataset_size(ds);
    fkt_dataset_free(ds);
    fkt_lab_free(lab);
    return n;
}

static void another_public_set_is_refused_and_so_is_its_absence(void **state)
{
    static const char gone[] =
        "set 'public' is gone: the run began with one of 6 records, and its networks learn from it";
    const struct fkt_experiment *list[] = {fkt_experiment_find("epsilon")};
    struct fkt_experiment_options o = options_of(list, 1);
    (void)state;
    make_named("public-first", FKT_PUBLIC_SET, 10);
    make_named("public-copy", FKT_PUBLIC_SET, 10);
    make_named("public-other", FKT_PUBLIC_SET, 11);
    make_set("public-none", 10);
    o.data = dir.dir; /* a folder of data, not the embedded set: the plan says so */
    CHECK_OK(fkt_store_begin(scratch_path(&dir, "with"), &o, 0));
    goes_on("with", &o, "public-other", NULL); /* no network has asked yet */
    assert_int_equal(ask("with", &o, "public-first", FKT_OK), 6);
    goes_on("with", &o, "public-copy", NULL);
    goes_on("with", &o, "public-other",
            "set 'public' is not the one that the run began with: as many records, but not the same");
    goes_on("with", &o, "public-none", gone);
    assert_int_equal(ask("with", &o, "public-none", FKT_E_MISMATCH), 0);
    CHECK_OK(fkt_store_begin(scratch_path(&dir, "without"), &o, 0));
    assert_int_equal(ask("without", &o, "public-none", FKT_OK), 0);
    goes_on("without", &o, "public-none", NULL);
    goes_on("without", &o, "public-first", "the run began without a set 'public', and now there is one of 6 records");
    assert_int_equal(ask("without", &o, "public-first", FKT_E_MISMATCH), 0);
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
        cmocka_unit_test(cells_are_every_panel_arm_position_and_seed),
        cmocka_unit_test(names_of_sets_are_plain_words),
        cmocka_unit_test(a_folder_goes_on_under_the_same_options_alone),
        cmocka_unit_test(values_are_numbers_that_a_table_can_print),
        cmocka_unit_test(what_is_put_is_read),
        cmocka_unit_test(a_set_that_is_another_one_is_refused),
        cmocka_unit_test(another_public_set_is_refused_and_so_is_its_absence),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
