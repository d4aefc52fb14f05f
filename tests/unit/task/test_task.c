/* SPDX-License-Identifier: Apache-2.0 */
#include "task/task.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"

static void a_task_survives_its_file(void **state)
{
    struct scratch s;
    struct fkt_pipeline *w;
    struct fkt_dataset *ds;
    struct fkt_task back;
    (void)state;
    scratch_init(&s);
    CHECK_OK(small_pipeline(&w, &ds, 10, 1, FKT_COORDINATE_GAIN_SHAPE));
    CHECK_OK(fkt_task_save(fkt_pipeline_task(w), scratch_path(&s, "task.json"), 0));
    CHECK_OK(fkt_task_load_into(&back, scratch_path(&s, "task.json")));
    assert_string_equal(back.sha256, fkt_pipeline_task(w)->sha256);
    CHECK(back.n_classes == 10 && back.part[0].coordinates.length == 9 &&
          back.privacy.part[0].radius == FKT_RQ_DEFAULT);
    fkt_task_clear(&back);
    fkt_pipeline_free(w);
    fkt_dataset_free(ds);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

/* Every field that matters changes the hash: a server cannot show two sites two tasks under one name. */
static void every_choice_is_in_the_hash(void **state)
{
    static const struct {
        const char *object, *key;
        const char *value;
    } change[] = {
        {NULL, "name", "\"other\""},
        {NULL, "classes", "[\"a\", \"b\"]"},
        {"image", "filter", "\"bicubic\""},
        {"image", "size", "17"},
        {"codec", "dim", "9"},
        {"codec", "identity", "\"dct/2\""},
        {"calibration", "source", "\"elsewhere\""},
        {"calibration", "images", "7"},
        {"privacy", "epsilon", "1.0000000000000002"},
        {"privacy", "delta", "2e-5"},
        {"privacy", "adjacency", "\"replace-any\""},
        {"privacy", "budget_split", "[1, 24, 76]"},
    };
    struct fkt_pipeline *w;
    struct fkt_dataset *ds;
    char *text;
    (void)state;
    CHECK_OK(small_pipeline(&w, &ds, 10, 1, FKT_COORDINATE_GAIN_SHAPE));
    CHECK_OK(fkt_json_text(&text, fkt_task_json(fkt_pipeline_task(w)), 0));
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        json_t *j = json_loads(text, 0, NULL), *o = change[i].object ? json_object_get(j, change[i].object) : j;
        struct fkt_task t;
        char *other;
        json_object_set_new(o, change[i].key, json_loads(change[i].value, JSON_DECODE_ANY, NULL));
        CHECK_OK(fkt_json_text(&other, j, 0));
        CHECK_OK(fkt_task_parse_into(&t, other, strlen(other)));
        if (!strcmp(t.sha256, fkt_pipeline_task(w)->sha256)) fail_msg("%s is not in the hash", change[i].key);
        fkt_task_clear(&t);
        fkt_free(other);
    }
    fkt_free(text);
    fkt_pipeline_free(w);
    fkt_dataset_free(ds);
    CHECK(fkt_alloc_live() == 0);
}

static void hostile_tasks_are_refused(void **state)
{
    static const struct {
        const char *object, *key;
        const char *value; /* NULL: the key is removed */
    } change[] = {
        {NULL, "schema", "\"fedkt.task/2\""},
        {NULL, "extra", "1"},
        {NULL, "name", NULL},
        {NULL, "name", "7"},
        {NULL, "name", "\"a\\nb\""},
        {NULL, "name", "\"a\\u001b[2J\""},
        {NULL, "name", "\"a\\u202eb\""},
        {NULL, "classes", "[]"},
        {NULL, "classes", "[\"a\", \"a\"]"},
        {NULL, "classes", "[\"a\", 3]"},
        {NULL, "classes", "[\"\"]"},
        {NULL, "classes", "[\"a\\u0000b\"]"},
        {NULL, "classes", "[\"a\\u202eb\"]"},
        {"image", "size", "0"},
        {"image", "size", "-1"},
        {"image", "filter", "\"magic\""},
        {"codec", "sha256", "\"abc\""},
        {"codec", "dim", "1e3"},
        {"codec", "extra", "1"},
        {"codec", "name", "\"dct\\u0007\""},
        {"codec", "identity", "\"dct\\r\""},
        {"calibration", "source", "\"a\\u0085b\""},
        {"coordinates", "rq", "63"},
        {"coordinates", "rq", "4097"},
        {"coordinates", "length", "8"},
        {"coordinates", "radius", "2"},
        {"coordinates", "gamma", "-1"},
        {"coordinates", "kind", "\"clip\""},
        {"coordinates", "log_spread", "0"},
        {"privacy", "epsilon", "0"},
        {"privacy", "epsilon", "-1"},
        {"privacy", "delta", "1"},
        {"privacy", "delta", "0"},
        {"privacy", "mechanism", "\"paper\""},
        {"privacy", "budget_split", "[1, 24]"},
        {"privacy", "budget_split", "[1, -1, 3]"},
        {"privacy", "unit", "\"person\""},
        {"privacy", "adjacency", "null"},
    };
    struct fkt_pipeline *w;
    struct fkt_dataset *ds;
    struct fkt_task t;
    char *text;
    (void)state;
    CHECK_OK(small_pipeline(&w, &ds, 10, 1, FKT_COORDINATE_GAIN_SHAPE));
    CHECK_OK(fkt_json_text(&text, fkt_task_json(fkt_pipeline_task(w)), 0));
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        json_t *j = json_loads(text, 0, NULL), *o = change[i].object ? json_object_get(j, change[i].object) : j;
        char *other;
        if (change[i].value)
            json_object_set_new(o, change[i].key, json_loads(change[i].value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
        else json_object_del(o, change[i].key);
        CHECK_OK(fkt_json_text(&other, j, 0));
        if (fkt_task_parse_into(&t, other, strlen(other)) != FKT_E_FORMAT)
            fail_msg("%s = %s was taken", change[i].key, change[i].value ? change[i].value : "(absent)");
        fkt_free(other);
    }
    CHECK_STATUS(fkt_task_parse_into(&t, "{", 1), FKT_E_FORMAT);
    CHECK_STATUS(fkt_task_parse_into(&t, "[]", 2), FKT_E_FORMAT);
    fkt_free(text);
    fkt_pipeline_free(w);
    fkt_dataset_free(ds);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_survives_its_file),
        cmocka_unit_test(every_choice_is_in_the_hash),
        cmocka_unit_test(hostile_tasks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
