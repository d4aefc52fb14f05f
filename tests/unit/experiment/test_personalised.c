/* SPDX-License-Identifier: Apache-2.0 */
/* test_personalised.c - cells of the personalised table on the embedded set: what depends on the partition and what
 * does not, one network for all cells of a seed, and the order of the methods where it cannot be otherwise. */
#include "experiment/experiment.h"

#include "base/alloc.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static struct scratch dir;
static struct fkt_experiment_options options;
static struct fkt_cell *cells;
static size_t n_cells;

/* The values of one cell, computed in a lab of its own. */
static json_t *values_of(const char *key)
{
    json_t *points = json_array(), *values;
    struct fkt_lab *lab = NULL;
    size_t i = 0;
    while (i < n_cells && strcmp(cells[i].key, key) != 0) i++;
    assert_true(i < n_cells);
    CHECK_OK(fkt_lab_new(&lab, &options, dir.dir, scratch_path(&dir, "encodings")));
    CHECK_OK(cells[i].experiment->run(lab, &cells[i], points));
    assert_int_equal(json_array_size(points), 1);
    values = json_incref(json_object_get(json_array_get(points, 0), "values"));
    json_decref(points);
    fkt_lab_free(lab);
    return values;
}

/* A cell with `m` in place of the kept network. */
static void refuses(const struct fkt_model *m, const char *why)
{
    json_t *points = json_array();
    struct fkt_lab *lab = NULL;
    size_t i = 0;
    while (i < n_cells && strcmp(cells[i].key, "personalised.demo.untouched.pathological.0") != 0) i++;
    assert_true(i < n_cells);
    CHECK_OK(fkt_model_save(m, scratch_path(&dir, "networks/demo.0.safetensors"), 1));
    CHECK_OK(fkt_lab_new(&lab, &options, dir.dir, scratch_path(&dir, "encodings")));
    CHECK_STATUS(cells[i].experiment->run(lab, &cells[i], points), FKT_E_MISMATCH);
    assert_non_null(strstr(fkt_error_text(), why));
    assert_string_equal(fkt_error_hint(), "delete the file: the network is then trained again");
    json_decref(points);
    fkt_lab_free(lab);
}

static double number(const json_t *values, const char *key)
{
    const json_t *v = json_object_get(values, key);
    assert_true(json_is_real(v));
    return json_real_value(v);
}

static void a_cell_for_each_method_and_partition(void **state)
{
    const struct fkt_experiment_options heads = {
        .experiments = options.experiments, .n_experiments = 1, .quick = 1, .n_seeds = 1};
    struct fkt_cell *few = NULL;
    size_t n;
    (void)state;
    assert_int_equal(n_cells, 14 * 2);
    CHECK_OK(fkt_experiment_cells(&heads, &few, &n)); /* no network: the head of the release alone */
    assert_int_equal(n, 2);
    assert_string_equal(few[0].key, "personalised.demo.head-prior.pathological.0");
    fkt_free(few);
}

/* The untouched network is the same at all sites, and every test record is at one: the partition moves the mean over
 * sites, not the hits over all records. */
static void one_network_serves_both_partitions(void **state)
{
    json_t *a = values_of("personalised.demo.untouched.pathological.0"),
           *b = values_of("personalised.demo.untouched.dirichlet-0.1.0"), *again, *tuned;
    const char *network = scratch_path(&dir, "networks/demo.0.safetensors");
    (void)state;
    CHECK(number(a, "pooled") == number(b, "pooled"));
    CHECK(number(a, "mean") != number(b, "mean"));
    assert_int_equal(unlink(network), 0); /* as if the run had been killed before it was written */
    again = values_of("personalised.demo.untouched.dirichlet-0.1.0");
    assert_true(json_equal(b, again));
    assert_int_equal(access(network, R_OK), 0);
    tuned = values_of("personalised.demo.tuned.pathological.0");
    CHECK(number(tuned, "mean") > number(a, "mean") + 0.2); /* 2 of 10 classes at a site */
    json_decref(a);
    json_decref(b);
    json_decref(again);
    json_decref(tuned);
}

/* Networks that differ from the kept one in one thing each. */
static void a_kept_network_must_be_of_the_release_and_the_options(void **state)
{
    struct fkt_model *kept = NULL, *other = NULL;
    struct fkt_model_origin origin;
    struct fkt_model_spec spec = {0};
    const char *classes[16];
    (void)state;
    json_decref(values_of("personalised.demo.untouched.pathological.0"));
    CHECK_OK(fkt_model_load(&kept, scratch_path(&dir, "networks/demo.0.safetensors"), 0));
    spec = (struct fkt_model_spec){.architecture = fkt_model_architecture(kept),
                                   .size = fkt_model_size(kept),
                                   .classes = classes,
                                   .n_classes = fkt_model_classes(kept)};
    assert_true(spec.n_classes <= 16);
    for (uint32_t k = 0; k < spec.n_classes; k++) classes[k] = fkt_model_class(kept, k);
    for (int what = 0; what < 6; what++) {
        static const char *const why[] = {"another architecture", "another size",    "another number of classes",
                                          "other classes",        "another release", "learnt in another way"};
        struct fkt_model_spec s = spec;
        origin = *fkt_model_origin(kept);
        if (what == 0) s.architecture = FKT_ARCHITECTURE_RESNET18;
        if (what == 1) s.size *= 2;
        if (what == 2) s.n_classes--;
        if (what == 3) classes[0] = "no class of the set";
        if (what == 4) origin.release_sha256[0] = origin.release_sha256[0] == '0' ? '1' : '0';
        if (what == 5) origin.recipe[strlen("an experiment: seed ")]++;
        CHECK_OK(fkt_model_new(&other, &s));
        fkt_model_set_origin(other, &origin);
        refuses(other, why[what]);
        fkt_model_free(other);
        classes[0] = fkt_model_class(kept, 0);
    }
    CHECK_OK(fkt_model_save(kept, scratch_path(&dir, "networks/demo.0.safetensors"), 1));
    json_decref(values_of("personalised.demo.untouched.pathological.0"));
    fkt_model_free(kept);
}

static void proportions_help_a_head_and_rounds_count(void **state)
{
    json_t *head = values_of("personalised.demo.head-prior.pathological.0"),
           *local = values_of("personalised.demo.local-sgd.pathological.0"), *more,
           *once = values_of("personalised.demo.fedavg-once.pathological.0");
    (void)state;
    CHECK(number(head, "mean") > 0.9);
    CHECK(number(local, "mean") > number(once, "mean") + 0.2); /* two classes a site: the average knows none */
    options.rounds = 2;
    more = values_of("personalised.demo.local-sgd.pathological.0");
    assert_false(json_equal(local, more));
    options.rounds = 1;
    json_decref(head);
    json_decref(local);
    json_decref(more);
    json_decref(once);
}

/* Sites of records and test records stand in the folder: those of the library, with test records of classes that the
 * site has. */
static void the_split_is_written(void **state)
{
    const struct fkt_dataset_options records = {.limit = 1000, .limit_by_number = 1}, tests = {.limit = 500};
    const struct fkt_partition_spec spec = {.rule = FKT_PARTITION_PATHOLOGICAL, .k = 2, .sites = 20};
    json_t *values = values_of("personalised.demo.untouched.pathological.0"),
           *j = json_load_file(scratch_path(&dir, "partitions/demo.20.pathological-2.place.0.json"), 0, NULL);
    const char *owner = json_string_value(json_object_get(j, "owner")),
               *test_owner = json_string_value(json_object_get(j, "test_owner"));
    struct fkt_dataset *data = NULL, *test = NULL;
    uint32_t label[1000], wanted[1000];
    uint64_t place[1000];
    char site[8];
    (void)state;
    json_decref(values);
    assert_true(owner && test_owner && strlen(owner) == 2000 && strlen(test_owner) == 1000);
    CHECK_OK(fkt_dataset_open(&data, "demo:train", &records));
    CHECK_OK(fkt_dataset_open(&test, "demo:test", &tests));
    for (size_t i = 0; i < 1000; i++) {
        label[i] = fkt_dataset_label(data, i);
        place[i] = i;
    }
    CHECK_OK(fkt_partition(wanted, label, place, 1000, 10, &spec));
    for (size_t i = 0; i < 1000; i++) {
        snprintf(site, sizeof site, "%02u", wanted[i]);
        assert_memory_equal(owner + 2 * i, site, 2);
    }
    for (size_t t = 0; t < 500; t++) {
        size_t same = 0;
        for (size_t i = 0; i < 1000; i++)
            same += label[i] == fkt_dataset_label(test, t) && !memcmp(owner + 2 * i, test_owner + 2 * t, 2);
        assert_true(same > 0);
    }
    fkt_dataset_free(data);
    fkt_dataset_free(test);
    json_decref(j);
}

static int begin(void **state)
{
    static const struct fkt_experiment *list[1];
    (void)state;
    scratch_init(&dir);
    list[0] = fkt_experiment_find("personalised");
    options = (struct fkt_experiment_options){.experiments = list,
                                              .n_experiments = 1,
                                              .quick = 1,
                                              .n_seeds = 1,
                                              .network = 1 + FKT_ARCHITECTURE_RESNET8,
                                              .rounds = 1,
                                              .threads = 1};
    return fkt_experiment_cells(&options, &cells, &n_cells) != FKT_OK;
}

static int end(void **state)
{
    (void)state;
    fkt_free(cells);
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_for_each_method_and_partition),
        cmocka_unit_test(one_network_serves_both_partitions),
        cmocka_unit_test(a_kept_network_must_be_of_the_release_and_the_options),
        cmocka_unit_test(proportions_help_a_head_and_rounds_count),
        cmocka_unit_test(the_split_is_written),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
