/* SPDX-License-Identifier: Apache-2.0 */
/* test_summary.c - cells to means, deviations, tables and the comparison of hashes; figures computed by hand. */
#include "experiment/lab.h"
#include "experiment/summary.h"

#include "base/alloc.h"
#include "base/text.h"
#include "tests/support/check.h"

#include <string.h>

static json_t *cells_of(const char *second_hash)
{
    char text[4096];
    json_t *j;
    snprintf(
        text, sizeof text,
        "[{\"schema\":\"fedkt.cell/1\",\"experiment\":\"clients\",\"panel\":\"eurosat\",\"arm\":\"joint\","
        "\"title\":\"joint, ours\",\"seed\":0,\"machine\":\"m\",\"version\":\"1\",\"points\":[{\"x\":20,\"at\":\"20\","
        "\"values\":{\"lda\":0.5,\"rda\":0.5,\"best_head\":0.5},\"facts\":{\"moments_sha256\":\"aa\"}},"
        "{\"reference\":\"no noise\",\"values\":{\"lda\":0.75,\"rda\":0.75}}]},"
        "{\"schema\":\"fedkt.cell/1\",\"experiment\":\"clients\",\"panel\":\"eurosat\",\"arm\":\"joint\","
        "\"title\":\"joint, ours\",\"seed\":1,\"machine\":\"m\",\"version\":\"1\",\"points\":[{\"x\":20,\"at\":\"20\","
        "\"values\":{\"lda\":0.7,\"rda\":0.7,\"best_head\":null},\"facts\":{\"moments_sha256\":\"aa\"}}]},"
        "{\"schema\":\"fedkt.cell/1\",\"experiment\":\"clients\",\"panel\":\"eurosat\",\"arm\":\"joint\","
        "\"title\":\"joint, ours\",\"seed\":0,\"machine\":\"m\",\"version\":\"1\",\"points\":[{\"x\":5,\"at\":\"5\","
        "\"values\":{\"lda\":0.25,\"rda\":0.25},\"facts\":{\"moments_sha256\":\"%s\"}}]},"
        "{\"schema\":\"fedkt.cell/1\",\"experiment\":\"of another version\",\"points\":[{\"x\":1}]}]",
        second_hash);
    j = json_loads(text, 0, NULL);
    assert_non_null(j);
    return j;
}

static size_t lda_of(const struct fkt_experiment *e)
{
    size_t m = 0;
    while (strcmp(fkt_metric_key(&e->metric[m]), "lda") != 0) m++;
    return m;
}

static void mean_and_deviation_over_seeds(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    const size_t lda = lda_of(e);
    const struct fkt_summary_row *r;
    struct fkt_summary s;
    json_t *cells = cells_of("aa");
    char text[32];
    (void)state;
    CHECK_OK(fkt_summary_make(&s, cells));
    assert_int_equal(s.n, 3);
    assert_int_equal(s.n_sources, 1);
    assert_int_equal(s.source[0].n_seeds, 2);
    r = fkt_summary_find(&s, e, "eurosat", "joint", "20", NULL);
    assert_non_null(r);
    assert_int_equal(r->value[lda].n, 2);
    CHECK_NEAR(r->value[lda].mean, 0.6, 1e-15);
    CHECK_NEAR(r->value[lda].deviation, 0.1 * 1.4142135623730951, 1e-15); /* sample deviation of 0.5 and 0.7 */
    fkt_value_text(text, &r->value[lda], &e->metric[lda]);
    assert_string_equal(text, "60.0 \xc2\xb1 14.1");
    assert_int_equal(r->value[0].n, 1); /* null is not a number */
    assert_null(fkt_summary_find(&s, e, "eurosat", "joint", "50", NULL));
    r = fkt_summary_find(&s, e, "eurosat", "joint", "", "no noise");
    assert_non_null(r);
    CHECK_NEAR(r->value[lda].mean, 0.75, 0);
    fkt_summary_clear(&s);
    json_decref(cells);
}

static void positions_are_in_order(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    struct fkt_position x[4];
    char label[4][48];
    struct fkt_summary s;
    json_t *cells = cells_of("aa");
    (void)state;
    CHECK_OK(fkt_summary_make(&s, cells));
    assert_int_equal(fkt_summary_positions(&s, e, x, label, 4), 2);
    assert_string_equal(label[0], "5");
    assert_string_equal(label[1], "20");
    assert_int_equal(fkt_summary_positions(&s, e, x, label, 1), 1);
    fkt_summary_clear(&s);
    json_decref(cells);
}

static void other_moments_are_noticed(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    static const char *const second[] = {"aa", "bb"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fkt_summary s;
        json_t *cells = cells_of(second[i]);
        CHECK_OK(fkt_summary_make(&s, cells));
        assert_int_equal(fkt_summary_invariant(&s, e, NULL), !i);
        assert_int_equal(fkt_summary_invariant(&s, fkt_experiment_find("epsilon"), NULL), -1);
        fkt_summary_clear(&s);
        json_decref(cells);
    }
}

/* Another machine may have other moments, and has them in all of its cells. */
static void moments_are_compared_on_each_machine(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    json_t *cells = cells_of("aa"), *other;
    struct fkt_summary s;
    size_t machines;
    (void)state;
    other = json_deep_copy(json_array_get(cells, 1));
    json_object_set_new(other, "seed", json_integer(2));
    json_object_set_new(other, "machine", json_string("a card, 3 threads"));
    json_object_set_new(json_object_get(json_array_get(json_object_get(other, "points"), 0), "facts"), "moments_sha256",
                        json_string("cc"));
    json_array_append_new(cells, other);
    CHECK_OK(fkt_summary_make(&s, cells));
    assert_int_equal(fkt_summary_invariant(&s, e, &machines), 1);
    assert_int_equal(machines, 2);
    assert_int_equal(s.n_moments, 2);
    assert_string_equal(s.moments[0].machine, "a card");
    assert_string_equal(s.moments[0].hash, "cc");
    assert_string_equal(fkt_summary_find(&s, e, "eurosat", "joint", "20", NULL)->moments, "");
    fkt_summary_clear(&s);
    other = json_deep_copy(json_array_get(cells, 0));
    json_object_set_new(other, "seed", json_integer(3));
    json_object_set_new(other, "machine", json_string("a card, 1 thread")); /* the same one */
    json_array_append_new(cells, other);
    CHECK_OK(fkt_summary_make(&s, cells));
    assert_int_equal(fkt_summary_invariant(&s, e, NULL), 0);
    fkt_summary_clear(&s);
    json_decref(cells);
}

/* A cell of two folders counts once, and so do its values where one folder has more of them; a seed with two values for
 * one thing is refused. Quick cells and full ones do not stand in one table. */
static void cells_of_several_folders(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    const size_t lda = lda_of(e);
    struct fkt_summary s;
    json_t *cells = cells_of("aa"), *quick, *more;
    (void)state;
    json_array_append_new(cells, json_deep_copy(json_array_get(cells, 0)));
    CHECK_OK(fkt_summary_make(&s, cells));
    assert_int_equal(fkt_summary_find(&s, e, "eurosat", "joint", "20", NULL)->value[lda].n, 2);
    fkt_summary_clear(&s);
    more = json_array_get(json_object_get(json_array_get(cells, 3 + 1), "points"), 0);
    json_object_set_new(json_object_get(more, "values"), "qda", json_real(0.9)); /* the same cell, with another head */
    CHECK_OK(fkt_summary_make(&s, cells));
    assert_int_equal(fkt_summary_find(&s, e, "eurosat", "joint", "20", NULL)->value[lda].n, 2);
    CHECK_NEAR(fkt_summary_find(&s, e, "eurosat", "joint", "20", NULL)->value[lda].mean, 0.6, 1e-15);
    fkt_summary_clear(&s);
    json_object_set_new(json_object_get(more, "values"), "lda", json_real(0.51));
    CHECK_STATUS(fkt_summary_make(&s, cells), FKT_E_MISMATCH);
    json_array_remove(cells, 4);
    quick = json_deep_copy(json_array_get(cells, 1));
    json_object_set_new(quick, "seed", json_integer(7));
    json_object_set_new(quick, "quick", json_true());
    json_array_append_new(cells, quick);
    CHECK_STATUS(fkt_summary_make(&s, cells), FKT_E_MISMATCH);
    json_object_set_new(quick, "experiment", json_string("epsilon")); /* each table by itself */
    CHECK_OK(fkt_summary_make(&s, cells));
    assert_true(fkt_summary_source_quick(&s, fkt_experiment_find("epsilon")));
    assert_false(fkt_summary_source_quick(&s, e));
    fkt_summary_clear(&s);
    json_decref(cells);
}

static void sources_are_named_where_panels_differ(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    struct fkt_summary s;
    struct fkt_text t;
    json_t *cells = cells_of("aa"), *other;
    (void)state;
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_text_init(&t);
    fkt_summary_source_text(&t, &s, e, fkt_markdown_text);
    assert_string_equal(t.s, "fedkt 1; m; seeds 0, 1");
    fkt_text_clear(&t);
    fkt_summary_clear(&s);
    other = json_deep_copy(json_array_get(cells, 0));
    json_object_set_new(other, "panel", json_string("cifar10"));
    json_object_set_new(other, "machine", json_string("a <card>"));
    json_array_append_new(cells, json_deep_copy(other));
    json_object_set_new(other, "arm", json_string("guide")); /* another machine for a part of a panel */
    json_object_set_new(other, "machine", json_string("m"));
    json_array_append_new(cells, other);
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_text_init(&t);
    fkt_summary_source_text(&t, &s, e, fkt_markdown_text);
    assert_string_equal(t.s, "CIFAR-10: fedkt 1; a &lt;card&gt; and m; seed 0. EuroSAT: fedkt 1; m; seeds 0, 1");
    fkt_text_clear(&t);
    fkt_summary_clear(&s);
    json_decref(cells);
}

/* Cells of other limits do not stand in one table; heads without a number of images stand beside networks with one. */
static void settings_of_a_panel_are_the_same(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    struct fkt_summary s;
    struct fkt_text t;
    json_t *cells = cells_of("aa");
    (void)state;
    json_object_set_new(json_array_get(cells, 0), "per_class", json_integer(5));
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_text_init(&t);
    fkt_summary_source_text(&t, &s, e, fkt_markdown_text);
    assert_string_equal(t.s, "fedkt 1; m; seeds 0, 1; 5 images of a class, drawn once, for a network");
    fkt_text_clear(&t);
    fkt_summary_clear(&s);
    json_object_set_new(json_array_get(cells, 1), "per_class", json_integer(6));
    CHECK_STATUS(fkt_summary_make(&s, cells), FKT_E_MISMATCH);
    json_object_del(json_array_get(cells, 1), "per_class");
    json_object_set_new(json_array_get(cells, 1), "limit", json_integer(400));
    CHECK_STATUS(fkt_summary_make(&s, cells), FKT_E_MISMATCH);
    json_decref(cells);
}

static void set_input(json_t *cell, const char *name, const char *hash)
{
    if (!json_object_get(cell, "inputs")) json_object_set_new(cell, "inputs", json_object());
    json_object_set_new(json_object_get(cell, "inputs"), name, json_string(hash));
}

static void check_refused(const json_t *cells, const char *why)
{
    struct fkt_summary s;
    CHECK_STATUS(fkt_summary_make(&s, cells), FKT_E_MISMATCH);
    assert_string_equal(fkt_error_text(), why);
}

/* Two runs may have had different sets of one name, or other public images; cells of older versions do not say. */
static void one_name_stands_for_one_input(void **state)
{
    json_t *cells = cells_of("aa"), *first = json_array_get(cells, 0), *other = json_array_get(cells, 1);
    char none[FKT_SHA256_HEX];
    struct fkt_summary s;
    (void)state;
    set_input(first, "eurosat", "aa");
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_summary_clear(&s);
    set_input(other, "eurosat", "bb");
    check_refused(
        cells, "two cells were made with different 'eurosat': 'clients', set 'eurosat', arm 'joint', seed 0, with aa; "
               "and 'clients', set 'eurosat', arm 'joint', seed 1, with bb");
    json_object_set_new(other, "experiment", json_string("epsilon"));
    check_refused(
        cells, "two cells were made with different 'eurosat': 'clients', set 'eurosat', arm 'joint', seed 0, with aa; "
               "and 'epsilon', set 'eurosat', arm 'joint', seed 1, with bb");
    json_object_set_new(other, "limit", json_integer(400)); /* other records of it */
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_summary_clear(&s);
    set_input(first, "public", "cc");
    set_input(other, "public", "dd"); /* whatever the limit is */
    check_refused(
        cells, "two cells were made with different 'public': 'clients', set 'eurosat', arm 'joint', seed 0, with cc; "
               "and 'epsilon', set 'eurosat', arm 'joint', seed 1, with dd");
    fkt_lab_fingerprint_of_none(none);
    set_input(other, "public", none);
    check_refused(
        cells, "two cells were made with different 'public': 'clients', set 'eurosat', arm 'joint', seed 0, with cc; "
               "and 'epsilon', set 'eurosat', arm 'joint', seed 1, with none");
    set_input(other, "public", "cc");
    set_input(first, "calibration-taesd-32-64-0", "ee");
    set_input(other, "calibration-taesd-32-64-0", "ff");
    check_refused(cells, "two cells were made with different 'calibration-taesd-32-64-0': 'clients', set 'eurosat', "
                         "arm 'joint', seed 0, with ee; and 'epsilon', set 'eurosat', arm 'joint', seed 1, with ff");
    assert_non_null(strstr(fkt_error_hint(), "calibration-*.safetensors")); /* sets/ does not have them */
    set_input(other, "calibration-taesd-32-64-0", "ee");
    set_input(first, "weights-taesd", "gg");
    set_input(other, "weights-taesd", "hh"); /* of any limit */
    check_refused(cells, "two cells were made with different 'weights-taesd': 'clients', set 'eurosat', arm 'joint', "
                         "seed 0, with gg; and 'epsilon', set 'eurosat', arm 'joint', seed 1, with hh");
    json_object_del(json_object_get(other, "inputs"), "weights-taesd");
    set_input(other, "weights-tiny", "gg"); /* another codec with the weights of the first one */
    check_refused(cells, "codecs 'taesd' and 'tiny' have the same weights: 'clients', set 'eurosat', arm 'joint', seed "
                         "0; and 'epsilon', set 'eurosat', arm 'joint', seed 1");
    json_decref(cells);
}

/* A network from new images in each epoch is not one of another seed from images that were drawn once. */
static void networks_of_other_settings_are_not_averaged(void **state)
{
    json_t *cells = cells_of("aa"), *first = json_array_get(cells, 0), *other = json_array_get(cells, 1);
    json_t *values = json_object_get(json_array_get(json_object_get(other, "points"), 0), "values");
    struct fkt_summary s;
    (void)state;
    json_object_set_new(first, "per_class", json_integer(5));
    CHECK_OK(fkt_summary_make(&s, cells)); /* heads beside networks */
    fkt_summary_clear(&s);
    json_object_set_new(values, "resnet18", json_real(0.8));
    check_refused(cells,
                  "cells of 'clients', set 'eurosat', have different settings: 5 images of a class, drawn once, for a "
                  "network, and new images in each epoch");
    json_object_set_new(other, "arm", json_string("real")); /* on real images there is no such number */
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_summary_clear(&s);
    json_decref(cells);
}

/* Measures of the personalised table do not say which network they are of. */
static void two_networks_are_not_averaged(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    json_t *cells = cells_of("aa"), *first = json_array_get(cells, 0), *other = json_array_get(cells, 1);
    json_t *values = json_object_get(json_array_get(json_object_get(other, "points"), 0), "values");
    struct fkt_summary s;
    struct fkt_text t;
    (void)state;
    json_object_set_new(first, "network", json_string("resnet8"));
    CHECK_OK(fkt_summary_make(&s, cells)); /* the others are heads, or of an older version */
    fkt_text_init(&t);
    fkt_summary_source_text(&t, &s, e, fkt_markdown_text);
    assert_string_equal(t.s, "fedkt 1; m; seeds 0, 1; resnet8");
    fkt_text_clear(&t);
    fkt_summary_clear(&s);
    json_object_set_new(other, "network", json_string("resnet18"));
    check_refused(cells, "cells of 'clients', set 'eurosat', have different settings: resnet8, and resnet18");
    json_object_set_new(values, "resnet18", json_real(0.8)); /* it has a row of its own */
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_summary_clear(&s);
    json_object_del(values, "resnet18");
    json_object_set_new(other, "network", json_string("of another version"));
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_summary_clear(&s);
    json_decref(cells);
}

/* Two cells of the personalised table, of two seeds. */
static json_t *personal_cells(const char *arm)
{
    json_t *cells = cells_of("aa");
    json_array_remove(cells, 3);
    json_array_remove(cells, 2);
    for (size_t i = 0; i < 2; i++) {
        json_object_set_new(json_array_get(cells, i), "experiment", json_string("personalised"));
        json_object_set_new(json_array_get(cells, i), "arm", json_string(arm));
    }
    return cells;
}

/* An arm without rounds is the same whatever the run's rounds are; one that has them is not. */
static void rounds_are_those_of_arms_that_have_them(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("personalised");
    json_t *cells = personal_cells("head-prior");
    struct fkt_summary s;
    char *text;
    (void)state;
    json_object_set_new(json_array_get(cells, 0), "rounds", json_integer(20));
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_summary_clear(&s);
    json_decref(cells);
    cells = personal_cells("fedavg");
    json_object_set_new(json_array_get(cells, 0), "rounds", json_integer(20));
    check_refused(cells,
                  "cells of 'personalised', set 'eurosat', have different settings: 20 rounds, and the usual rounds");
    json_object_set_new(json_array_get(cells, 1), "rounds", json_integer(20));
    CHECK_OK(fkt_summary_make(&s, cells));
    CHECK_OK(fkt_table_json(&text, &s, e));
    assert_non_null(strstr(text, "\"rounds\": 20"));
    fkt_free(text);
    fkt_summary_clear(&s);
    json_decref(cells);
}

/* An older cell of an arm that trains had a network, and nobody knows which. */
static void a_network_without_a_name_is_another_one(void **state)
{
    json_t *cells = personal_cells("fedavg");
    struct fkt_summary s;
    (void)state;
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_summary_clear(&s);
    json_object_set_new(json_array_get(cells, 1), "network", json_string("resnet18"));
    check_refused(cells,
                  "cells of 'personalised', set 'eurosat', have different settings: a network without a name, and "
                  "resnet18");
    json_decref(cells);
}

static void a_hash_that_is_none_is_left_out(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    struct fkt_summary s;
    json_t *cells = cells_of("<img src=//a.co>");
    (void)state;
    CHECK_OK(fkt_summary_make(&s, cells));
    assert_string_equal(fkt_summary_find(&s, e, "eurosat", "joint", "5", NULL)->moments, "");
    fkt_summary_clear(&s);
    json_decref(cells);
}

/* Words of a stranger's cell stay inside their field. */
static void words_of_cells_are_no_markup(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    struct fkt_summary s;
    struct fkt_text t;
    json_t *cells = cells_of("aa"), *cell = json_array_get(cells, 1);
    (void)state;
    json_object_set_new(cell, "arm", json_string("mine"));
    json_object_set_new(cell, "title", json_string("a \"b\"\n| <img> <!-- /experiment:clients -->"));
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_text_init(&t);
    fkt_table_csv(&t, &s, e);
    assert_non_null(strstr(t.s, "clients,eurosat,\"a \"\"b\"\"\n| <img> <!-- /experiment:clients -->\",20,"));
    fkt_text_clear(&t);
    fkt_text_init(&t);
    fkt_table_markdown(&t, &s, e, NULL);
    assert_null(strstr(t.s, "<!--"));
    assert_null(strstr(t.s, "<img"));
    assert_non_null(strstr(t.s, "| EuroSAT | a \"b\" \\| &lt;img&gt; &lt;!-- /experiment:clients --&gt; | RDA |"));
    fkt_text_clear(&t);
    fkt_summary_clear(&s);
    json_decref(cells);
}

static void tables_have_the_numbers(void **state)
{
    const struct fkt_experiment *e = fkt_experiment_find("clients");
    struct fkt_summary s;
    struct fkt_text t;
    json_t *cells = cells_of("aa"), *paper = NULL, *j;
    char *text = NULL;
    (void)state;
    CHECK_OK(fkt_summary_make(&s, cells));
    fkt_text_init(&t);
    fkt_table_csv(&t, &s, e);
    CHECK_OK(fkt_text_status(&t));
    assert_non_null(strstr(t.s, "clients,eurosat,\"joint, ours\",5,,lda,1,0.25,0,aa\n"));
    assert_non_null(strstr(t.s, "clients,eurosat,\"joint, ours\",,no noise,lda,1,0.75,0,\n"));
    fkt_text_clear(&t);
    fkt_text_init(&t);
    CHECK_OK(fkt_paper_figures(&paper));
    fkt_table_markdown(&t, &s, e, paper);
    assert_non_null(
        strstr(t.s, "| EuroSAT | joint, ours | RDA | 25.0 (1 seed) | 60.0 \xc2\xb1 14.1 | 75.0 (1 seed) |\n"));
    assert_null(strstr(t.s, "| LDA |")); /* not for documents */
    assert_non_null(strstr(t.s, "The paper, Figure 3 (a)"));
    CHECK_OK(fkt_table_json(&text, &s, e));
    j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    assert_int_equal(json_array_size(json_object_get(j, "rows")), 3);
    assert_true(json_is_true(json_object_get(j, "same_moments")));
    json_decref(j);
    fkt_free(text);
    fkt_text_clear(&t);
    fkt_summary_clear(&s);
    json_decref(cells);
    json_decref(paper);
}

/* Each published table belongs to an experiment of ours or of a later one, and its rows have its columns. */
static void published_figures_are_whole(void **state)
{
    json_t *paper = NULL, *table, *row;
    size_t i, k, found = 0;
    (void)state;
    CHECK_OK(fkt_paper_figures(&paper));
    json_array_foreach (paper, i, table) {
        const size_t columns = json_array_size(json_object_get(table, "columns"));
        found += fkt_experiment_find(json_string_value(json_object_get(table, "experiment"))) != NULL;
        assert_true(columns >= 2);
        assert_true(json_array_size(json_object_get(table, "rows")) >= 1);
        json_array_foreach (json_object_get(table, "rows"), k, row) assert_int_equal(json_array_size(row), columns);
    }
    assert_true(found >= 10);
    json_decref(paper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_deviation_over_seeds),
        cmocka_unit_test(positions_are_in_order),
        cmocka_unit_test(other_moments_are_noticed),
        cmocka_unit_test(moments_are_compared_on_each_machine),
        cmocka_unit_test(tables_have_the_numbers),
        cmocka_unit_test(published_figures_are_whole),
        cmocka_unit_test(cells_of_several_folders),
        cmocka_unit_test(sources_are_named_where_panels_differ),
        cmocka_unit_test(settings_of_a_panel_are_the_same),
        cmocka_unit_test(rounds_are_those_of_arms_that_have_them),
        cmocka_unit_test(a_network_without_a_name_is_another_one),
        cmocka_unit_test(a_hash_that_is_none_is_left_out),
        cmocka_unit_test(words_of_cells_are_no_markup),
        cmocka_unit_test(one_name_stands_for_one_input),
        cmocka_unit_test(networks_of_other_settings_are_not_averaged),
        cmocka_unit_test(two_networks_are_not_averaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
