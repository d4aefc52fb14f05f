/* SPDX-License-Identifier: Apache-2.0 */
/* test_lab_partition.c - partitions/NAME.json says what the library's partition function says, record by record, and
 * the moments of its sites, added up, are those of the cell. */
#include "experiment/lab.h"

#include "base/alloc.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <string.h>

enum { SITES = 12, SEED = 4, RECORDS = 1000, QUICK_TESTS = 500, HELD = UINT32_MAX };

static struct scratch dir;
static struct fkt_lab *lab;
static const double epsilon = 10;
static const struct fkt_arm arm = {
    .name = "joint", .title = "joint", .codec = "dct", .size = 32, .dim = 16, .noise = -1};
static const struct fkt_arm paper = {.name = "paper",
                                     .title = "paper",
                                     .codec = "dct",
                                     .size = 32,
                                     .dim = 16,
                                     .coordinates = FKT_COORDINATE_CLIP,
                                     .mechanism = FKT_MECHANISM_PAPER,
                                     .adjacency = FKT_ADJACENCY_REPLACE,
                                     .noise = -1};

static struct fkt_sweep *federation(const struct fkt_arm *a)
{
    const struct fkt_lab_run run = {.set = "demo",
                                    .arm = a,
                                    .epsilon = &epsilon,
                                    .n_epsilon = 1,
                                    .sites = SITES,
                                    .partition = "dirichlet:0.3",
                                    .participation = 1,
                                    .seed = SEED};
    struct fkt_sweep *sweep = NULL;
    CHECK_OK(fkt_lab_federation(lab, &run, &sweep));
    return sweep;
}

static json_t *read_partition(const char *name)
{
    char path[256];
    json_t *j;
    snprintf(path, sizeof path, "partitions/%s.json", name);
    j = json_load_file(scratch_path(&dir, path), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    return j;
}

/* owner (n) from the string of digits. */
static void owners_of(const json_t *j, const char *key, uint32_t *owner, size_t n)
{
    const char *text = json_string_value(json_object_get(j, key));
    const size_t digits = (size_t)json_integer_value(json_object_get(j, "digits"));
    assert_non_null(text);
    assert_int_equal(strlen(text), n * digits);
    for (size_t i = 0; i < n; i++) {
        char one[8] = "", *end;
        memcpy(one, text + i * digits, digits);
        owner[i] = one[0] == '-' ? HELD : (uint32_t)strtoul(one, &end, 10);
        assert_true(owner[i] == HELD || owner[i] < SITES);
    }
}

static void check_counts(const json_t *j, const struct fkt_dataset *ds, const uint32_t *owner)
{
    const json_t *counts = json_object_get(j, "counts");
    assert_int_equal(json_array_size(counts), SITES);
    for (uint32_t s = 0; s < SITES; s++)
        for (size_t k = 0; k < fkt_dataset_classes(ds); k++) {
            size_t n = 0;
            for (size_t i = 0; i < RECORDS; i++) n += owner[i] == s && fkt_dataset_label(ds, i) == k;
            assert_int_equal(json_integer_value(json_array_get(json_array_get(counts, s), k)), n);
        }
}

/* The set is opened again, and partitioned by the public function. */
static void compare(const char *name, int by_number)
{
    const struct fkt_dataset_options options = {.limit = RECORDS, .limit_by_number = 1};
    struct fkt_partition_spec spec = {.sites = SITES, .seed = SEED};
    uint32_t label[RECORDS], owner[RECORDS], written[RECORDS];
    struct fkt_dataset *ds = NULL;
    uint64_t keys[RECORDS];
    json_t *j = read_partition(name);
    CHECK_OK(fkt_dataset_open(&ds, "demo:train", &options));
    assert_int_equal(fkt_dataset_size(ds), RECORDS);
    for (size_t i = 0; i < RECORDS; i++) label[i] = fkt_dataset_label(ds, i);
    if (by_number) CHECK_OK(fkt_dataset_numbers(ds, keys));
    else CHECK_OK(fkt_dataset_keys(ds, NULL, RECORDS, 1, keys));
    CHECK_OK(fkt_partition_parse(&spec, json_string_value(json_object_get(j, "rule"))));
    CHECK_OK(fkt_partition(owner, label, keys, RECORDS, fkt_dataset_classes(ds), &spec));
    owners_of(j, "owner", written, RECORDS);
    assert_memory_equal(owner, written, sizeof owner);
    check_counts(j, ds, written);
    assert_string_equal(json_string_value(json_object_get(j, "set_sha256")), lab->set_sha256);
    fkt_dataset_free(ds);
    json_decref(j);
}

static void the_file_is_the_partition(void **state)
{
    struct fkt_sweep *sweep = federation(&arm);
    (void)state;
    assert_string_equal(lab->partition, "demo.12.dirichlet-0.3.content.4");
    compare(lab->partition, 0);
    fkt_sweep_free(sweep);
    sweep = federation(&paper); /* replacement: by number, so records go elsewhere */
    assert_string_equal(lab->partition, "demo.12.dirichlet-0.3.number.4");
    compare(lab->partition, 1);
    fkt_sweep_free(sweep);
}

/* Site after site from the file: every record is at one site, and the total is the cell's. */
static void moments_of_its_sites_add_up(void **state)
{
    struct fkt_sweep *sweep = federation(&arm);
    const struct fkt_pipeline *pipeline = fkt_sweep_pipeline(sweep);
    const struct fkt_pipeline_options options = {.threads = 1};
    json_t *j = read_partition(lab->partition), *results;
    struct fkt_moments *total = NULL, *site = NULL;
    uint32_t owner[RECORDS];
    size_t idx[RECORDS];
    char sha[65], *text = NULL;
    (void)state;
    owners_of(j, "owner", owner, RECORDS);
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &total));
    for (uint32_t s = 0; s < SITES; s++) {
        size_t n = 0;
        for (size_t i = 0; i < RECORDS; i++)
            if (owner[i] == s) idx[n++] = i;
        if (!n) continue;
        CHECK_OK(fkt_pipeline_moments_new(pipeline, &site));
        CHECK_OK(fkt_pipeline_moments(pipeline, fkt_sweep_data(sweep), idx, n, site, &options));
        CHECK_OK(fkt_moments_merge(total, site));
        fkt_moments_free(site);
        site = NULL;
    }
    CHECK_OK(fkt_moments_sha256(total, sha));
    CHECK_OK(fkt_sweep_results_json(sweep, &text));
    results = json_loads(text, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(results, "moments_sha256")), sha);
    json_decref(results);
    json_decref(j);
    fkt_string_free(text);
    fkt_moments_free(total);
    fkt_sweep_free(sweep);
}

/* Held-out records have no owner, and a file that is there stays. */
static void records_that_are_held_out_have_no_site(void **state)
{
    static const size_t record[] = {0, 2, 999};
    static const uint32_t site[] = {1, 11, 3}, other[] = {2, 2, 2};
    struct fkt_lab_partition p = {.spec = {.sites = SITES, .seed = 77},
                                  .by = "place",
                                  .train = {.record = record, .owner = site, .n = 3},
                                  .test = {.record = record, .owner = site, .n = 2}};
    struct fkt_lab_set set;
    uint32_t owner[RECORDS], test[QUICK_TESTS];
    json_t *j;
    (void)state;
    CHECK_OK(fkt_lab_set(lab, "demo", &set));
    CHECK_OK(fkt_lab_partition(lab, &p));
    p.train.owner = other;
    CHECK_OK(fkt_lab_partition(lab, &p));
    assert_string_equal(lab->partition, "demo.12.iid.place.77");
    j = read_partition(lab->partition);
    owners_of(j, "owner", owner, RECORDS);
    owners_of(j, "test_owner", test, QUICK_TESTS);
    for (size_t i = 0; i < RECORDS; i++) assert_int_equal(owner[i], i == 0 ? 1 : i == 2 ? 11 : i == 999 ? 3 : HELD);
    for (size_t i = 0; i < QUICK_TESTS; i++) assert_int_equal(test[i], i == 0 ? 1 : i == 2 ? 11 : HELD);
    assert_int_equal(json_integer_value(json_object_get(j, "held_out")), RECORDS - 3);
    json_decref(j);
}

static int begin(void **state)
{
    const struct fkt_experiment_options o = {.quick = 1, .threads = 1};
    (void)state;
    scratch_init(&dir);
    return fkt_lab_new(&lab, &o, dir.dir, scratch_path(&dir, "encodings")) != FKT_OK;
}

static int end(void **state)
{
    (void)state;
    fkt_lab_free(lab);
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_the_partition),
        cmocka_unit_test(moments_of_its_sites_add_up),
        cmocka_unit_test(records_that_are_held_out_have_no_site),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
