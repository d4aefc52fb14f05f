/* SPDX-License-Identifier: Apache-2.0 */
#include "task/task.h"
#include "tests/support/check.h"
#include "tests/support/guided_task.h"

#include <stdlib.h>

static char *text_of(const struct fkt_task *t)
{
    char *text;
    CHECK_OK(fkt_json_text(&text, fkt_task_json(t), 0));
    return text;
}

static void codec_and_guide_are_two_parts(void **state)
{
    struct guided_task g;
    const struct fkt_moments_layout *l;
    (void)state;
    CHECK_OK(guided_task(&g, 1, 8, (struct fkt_task_choices){0}));
    l = fkt_task_layout(&g.task);
    CHECK(fkt_task_parts(&g.task) == 2 && l->parts == 2 && l->length[0] == 9 && l->length[1] == 9 && !l->pooled);
    CHECK(fkt_task_part(&g.task, 0)->kind == FKT_PART_CODEC && fkt_task_part(&g.task, 1)->kind == FKT_PART_GUIDE);
    CHECK(fkt_task_part(&g.task, 2) == NULL && fkt_task_part_of(&g.task, FKT_PART_GUIDE) == fkt_task_part(&g.task, 1));
    CHECK(g.task.privacy.parts == 2 && g.task.privacy.part[1].radius == FKT_RQ_DEFAULT);
    CHECK(g.task.privacy.split_count == FKT_BUDGET_SPLIT_COUNT);
    CHECK(g.task.privacy.part[0].split_sum == FKT_BUDGET_SPLIT_CODEC_SUM);
    CHECK(g.task.privacy.part[1].split_moment == FKT_BUDGET_SPLIT_GUIDE_MOMENT);
    CHECK(fkt_task_numbers(&g.task) == 10 * (1 + 2 * (9 + 45)));
    guided_parts_clear(&g);
    CHECK_OK(guided_task(&g, 1, 8, (struct fkt_task_choices){.joined = 1}));
    CHECK(g.task.layout.parts == 1 && g.task.layout.length[0] == 18 && g.task.privacy.parts == 1);
    CHECK(g.task.privacy.part[0].split_sum == FKT_BUDGET_SPLIT_CODEC_SUM + FKT_BUDGET_SPLIT_GUIDE_SUM);
    guided_parts_clear(&g);
    CHECK_OK(guided_task(&g, 0, 8, (struct fkt_task_choices){.pooled = 1}));
    CHECK(g.task.parts == 1 && !fkt_task_part_of(&g.task, FKT_PART_CODEC) && g.task.layout.pooled);
    CHECK(g.task.privacy.part[0].split_sum == FKT_BUDGET_SPLIT_SUM); /* one part: the split of one part */
    CHECK(fkt_task_numbers(&g.task) == 10 * (1 + 9) + 45);
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

static void such_tasks_survive_their_json(void **state)
{
    static const struct {
        int codec;
        struct fkt_task_choices more;
    } made[] = {{1, {0}}, {1, {.joined = 1}}, {1, {.pooled = 1}}, {1, {.joined = 1, .pooled = 1}},
                {0, {0}}, {0, {.pooled = 1}}};
    (void)state;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        struct guided_task g;
        struct fkt_task back;
        char *text, *again;
        CHECK_OK(guided_task(&g, made[i].codec, 8, made[i].more));
        text = text_of(&g.task);
        CHECK_OK(fkt_task_parse_into(&back, text, strlen(text)));
        again = text_of(&back);
        assert_string_equal(again, text);
        assert_string_equal(back.sha256, g.task.sha256);
        CHECK(fkt_layout_equal(&back.layout, &g.task.layout) && back.joined == g.task.joined);
        CHECK(back.parts == g.task.parts && !memcmp(&back.privacy, &g.task.privacy, sizeof back.privacy));
        CHECK(!strstr(text, "\"moments\"") == !(made[i].more.joined || made[i].more.pooled));
        fkt_free(text);
        fkt_free(again);
        fkt_task_clear(&back);
        guided_parts_clear(&g);
    }
    CHECK(fkt_alloc_live() == 0);
}

/* What may not be chosen. */
static void impossible_parts_are_refused(void **state)
{
    struct guided_task g;
    struct fkt_part_choice swapped[2];
    struct fkt_task t;
    struct fkt_codec other;
    const char *classes[] = {"a", "b"};
    const struct fkt_task_choices c = {.classes = classes, .n_classes = 2, .privacy = {.epsilon = 1, .delta = 1e-5}};
    struct fkt_task_choices paper = c;
    (void)state;
    CHECK_STATUS(guided_task(&g, 0, 8, (struct fkt_task_choices){.joined = 1}), FKT_E_ARG);
    assert_non_null(strstr(fkt_error_text(), "nothing to join"));
    CHECK_OK(guided_parts(&g, 1, 8));
    CHECK_STATUS(fkt_task_make_into(&t, &c, g.part, 0), FKT_E_ARG);
    swapped[0] = g.part[1];
    swapped[1] = g.part[0];
    CHECK_STATUS(fkt_task_make_into(&t, &c, swapped, 2), FKT_E_ARG);
    swapped[0] = g.part[1];
    swapped[1] = g.part[1];
    CHECK_STATUS(fkt_task_make_into(&t, &c, swapped, 2), FKT_E_ARG);
    paper.privacy.mechanism = FKT_MECHANISM_PAPER;
    paper.privacy.adjacency = FKT_ADJACENCY_REPLACE;
    CHECK_STATUS(fkt_task_make_into(&t, &paper, g.part, 2), FKT_E_ARG);
    paper.pooled = 1;
    CHECK_STATUS(fkt_task_make_into(&t, &paper, g.part, 1), FKT_E_ARG);
    g.part[1].rq = 64;
    CHECK_OK(fkt_task_make_into(&t, &c, g.part, 2)); /* each part may have its own */
    CHECK(t.layout.rq[0] == FKT_RQ_DEFAULT && t.layout.rq[1] == 64 && t.privacy.part[1].radius == 64);
    fkt_task_clear(&t);
    paper = c;
    paper.joined = 1;
    CHECK_STATUS(fkt_task_make_into(&t, &paper, g.part, 2), FKT_E_ARG);
    g.part[1].rq = 0;
    other = g.guide;
    other.size = 32;
    other.self = &other;
    g.part[1].codec = &other;
    CHECK_STATUS(fkt_task_make_into(&t, &c, g.part, 2), FKT_E_MISMATCH);
    g.part[1].codec = g.codec; /* the codec with the guide's calibration */
    CHECK_STATUS(fkt_task_make_into(&t, &c, g.part, 2), FKT_E_MISMATCH);
    g.part[1].codec = &g.guide;
    g.part[0].split_sum = -1;
    CHECK_STATUS(fkt_task_make_into(&t, &c, g.part, 2), FKT_E_ARG);
    g.part[0].split_sum = NAN;
    CHECK_STATUS(fkt_task_make_into(&t, &c, g.part, 2), FKT_E_ARG);
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

struct change {
    const char *object, *key;
    const char *value; /* NULL: the key is removed */
};

static char *changed(const char *text, const struct change *c)
{
    json_t *j = json_loads(text, 0, NULL), *o = j;
    char *other, path[64], *key, *rest = path;
    snprintf(path, sizeof path, "%s", c->object ? c->object : "");
    while (*path && (key = strtok_r(rest, ".", &rest))) o = json_object_get(o, key);
    assert_non_null(o);
    if (c->value) json_object_set_new(o, c->key, json_loads(c->value, JSON_DECODE_ANY, NULL));
    else json_object_del(o, c->key);
    CHECK_OK(fkt_json_text(&other, j, 0));
    return other;
}

static const struct change hostile[] = {
    {NULL, "codec", NULL},
    {NULL, "calibration", NULL},
    {NULL, "coordinates", NULL},
    {NULL, "guide", "null"},
    {NULL, "guide", "7"},
    {NULL, "guide", "{}"},
    {NULL, "guide", NULL}, /* then the split is too long */
    {"guide", "name", NULL},
    {"guide", "name", "\"a\\u001bb\""},
    {"guide", "name", "\"../secret\""},
    {"guide", "name", "\"model.safetensors\""},
    {"codec", "name", "\"/etc/passwd\""},
    {"guide", "dim", "0"},
    {"guide", "dim", "1e3"},
    {"guide", "dim", "16777217"},
    {"guide", "identity", "7"},
    {"guide", "sha256", "\"abc\""},
    {"guide", "extra", "1"},
    {"guide", "calibration", NULL},
    {"guide", "coordinates", NULL},
    {"guide", "coordinates", "[]"},
    {"guide.calibration", "images", "-1"},
    {"guide.calibration", "sha256", NULL},
    {"guide.calibration", "extra", "1"},
    {"guide.coordinates", "kind", "\"polar\""},
    {"guide.coordinates", "rq", "63"},
    {"guide.coordinates", "length", "8"},
    {"guide.coordinates", "radius", "2"},
    {"guide.coordinates", "gamma", "-1"},
    {"guide.coordinates", "log_spread", "0"},
    {"guide.coordinates", "extra", "1"},
    {"privacy", "budget_split", "[1, 24, 75]"},
    {"privacy", "budget_split", "[1, 8, 25, 16]"},
    {"privacy", "budget_split", "[1, 8, 25, 16, 50, 1, 1]"},
    {"privacy", "budget_split", "[1, -8, 25, 16, 50]"},
    {"privacy", "budget_split", "[1, 8, 25, 16, \"50\"]"},
    {"privacy", "budget_split", "[0, 0, 0, 0, 0]"},
    {"privacy", "budget_split", "[1, 0, 25, 16, 50]"},
    {"privacy", "budget_split", "7"},
    {"privacy", "mechanism", "\"paper\""},
    {NULL, "moments", "{}"},
    {NULL, "moments", "{\"joined\": false, \"pooled\": false}"},
    {NULL, "moments", "{\"joined\": 1, \"pooled\": false}"},
    {NULL, "moments", "{\"joined\": true}"},
    {NULL, "moments", "{\"joined\": true, \"pooled\": false, \"more\": true}"},
    {NULL, "moments", "{\"joined\": true, \"pooled\": false}"}, /* then the split is too long */
};
static const struct change alone[] = {
    {NULL, "guide", NULL},
    {NULL, "codec", "{}"},
    {NULL, "moments", "{\"joined\": true, \"pooled\": false}"},
};

static void hostile_parts_are_refused(void **state)
{
    struct guided_task g;
    struct fkt_task t;
    char *text, *other;
    (void)state;
    CHECK_OK(guided_task(&g, 1, 8, (struct fkt_task_choices){0}));
    text = text_of(&g.task);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        other = changed(text, &hostile[i]);
        if (fkt_task_parse_into(&t, other, strlen(other)) != FKT_E_FORMAT)
            fail_msg("%s = %s was taken", hostile[i].key, hostile[i].value ? hostile[i].value : "(absent)");
        if (strncmp(fkt_error_text(), "task: ", 6) != 0) fail_msg("%s: %s", hostile[i].key, fkt_error_text());
        fkt_free(other);
    }
    fkt_free(text);
    guided_parts_clear(&g);
    CHECK_OK(guided_task(&g, 0, 8, (struct fkt_task_choices){0}));
    text = text_of(&g.task);
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        other = changed(text, &alone[i]);
        if (fkt_task_parse_into(&t, other, strlen(other)) != FKT_E_FORMAT) fail_msg("alone: %s", alone[i].key);
        fkt_free(other);
    }
    fkt_free(text);
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

/* What heads and class Gaussians refuse is refused before a budget is spent on it: the bound is on all parts
 * together. */
static void a_record_vector_has_a_longest_length(void **state)
{
    struct guided_task g;
    struct fkt_task t;
    char *text;
    (void)state;
    CHECK_OK(guided_task(&g, 1, 8, (struct fkt_task_choices){0}));
    text = text_of(&g.task);
    for (uint32_t more = 0; more <= 1; more++) {
        const uint32_t m = FKT_LENGTH_MAX - g.task.layout.length[0] + more;
        char value[256], *other;
        snprintf(value, sizeof value,
                 "{\"kind\": \"clip\", \"dim\": %u, \"length\": %u, \"rq\": 256, \"radius\": 3, \"gamma\": 0, "
                 "\"log_mean\": 0, \"log_spread\": 0}",
                 m, m);
        other = changed(text, &(struct change){"guide", "coordinates", value});
        if (more) {
            CHECK_STATUS(fkt_task_parse_into(&t, other, strlen(other)), FKT_E_FORMAT);
            assert_string_equal(fkt_error_text(), "task: a record vector of 16385 numbers is too long: at most 16384, "
                                                  "all parts together");
        } else {
            CHECK_OK(fkt_task_parse_into(&t, other, strlen(other)));
            CHECK(fkt_layout_length(&t.layout) == FKT_LENGTH_MAX);
            fkt_task_clear(&t);
        }
        fkt_free(other);
    }
    fkt_free(text);
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

/* A part of a later version must not be dropped in silence: every number of the round would be another. */
static void an_unknown_part_is_named(void **state)
{
    struct guided_task g;
    struct fkt_task t;
    char *text, *other;
    (void)state;
    CHECK_OK(guided_task(&g, 1, 8, (struct fkt_task_choices){0}));
    text = text_of(&g.task);
    other = changed(text, &(struct change){NULL, "listener", "{\"name\": \"ear\", \"identity\": \"ear/1\"}"});
    CHECK_STATUS(fkt_task_parse_into(&t, other, strlen(other)), FKT_E_FORMAT);
    assert_string_equal(fkt_error_text(), "task: it names a part 'listener', which this version does not have");
    assert_non_null(strstr(fkt_error_hint(), "version"));
    fkt_free(other);
    fkt_free(text);
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

/* Names that this version has no network for, and a guide in the place of a codec: said before weights are looked
 * for. */
static void unknown_networks_are_named(void **state)
{
    struct guided_task g;
    (void)state;
    CHECK_OK(guided_task(&g, 1, 8, (struct fkt_task_choices){0}));
    CHECK_STATUS(fkt_task_check_known(&g.task), FKT_E_MISMATCH);
    assert_string_equal(fkt_error_text(), "the task wants guide 'fake-guide', which this version does not have");
    snprintf(g.task.part[1].name, sizeof g.task.part[1].name, "fedkt-guide");
    CHECK_OK(fkt_task_check_known(&g.task));
    snprintf(g.task.part[1].name, sizeof g.task.part[1].name, "resnet18@128");
    CHECK_OK(fkt_task_check_known(&g.task));
    snprintf(g.task.part[1].name, sizeof g.task.part[1].name, "taesd"); /* a codec */
    CHECK_STATUS(fkt_task_check_known(&g.task), FKT_E_MISMATCH);
    snprintf(g.task.part[1].name, sizeof g.task.part[1].name, "fedkt-guide");
    snprintf(g.task.part[0].name, sizeof g.task.part[0].name, "resnet18"); /* a guide */
    CHECK_STATUS(fkt_task_check_known(&g.task), FKT_E_MISMATCH);
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

/* Every field of the guide is under the hash. */
static void the_guide_is_in_the_hash(void **state)
{
    static const struct change change[] = {
        {"guide", "name", "\"other\""},
        {"guide", "dim", "9"},
        {"guide", "identity", "\"fake/2\""},
        {"guide", "sha256", "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""},
        {"guide.calibration", "source", "\"elsewhere\""},
        {"guide.calibration", "images", "7"},
        {"guide.coordinates", "log_mean", "1.5"},
        {"privacy", "budget_split", "[1, 8, 25, 16, 51]"},
        {NULL, "moments", "{\"joined\": false, \"pooled\": true}"},
    };
    struct guided_task g;
    char *text;
    (void)state;
    CHECK_OK(guided_task(&g, 1, 8, (struct fkt_task_choices){0}));
    text = text_of(&g.task);
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        char *other = changed(text, &change[i]);
        struct fkt_task t;
        CHECK_OK(fkt_task_parse_into(&t, other, strlen(other)));
        if (!strcmp(t.sha256, g.task.sha256)) fail_msg("%s is not in the hash", change[i].key);
        fkt_task_clear(&t);
        fkt_free(other);
    }
    fkt_free(text);
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

/* Memory of JSON: allocation `fails_at` fails, and what is given back is kept as it was, so that a write shows. */
enum { GIVEN_MAX = 4096 };
static size_t allocations, fails_at, n_given;
static struct {
    size_t *block, *copy; /* the first word is the number of bytes after it */
} given[GIVEN_MAX];

static void *failing_malloc(size_t n)
{
    size_t *block;
    if (++allocations == fails_at) return NULL;
    block = malloc(sizeof *block + n);
    if (!block) return NULL;
    *block = n;
    return block + 1;
}

static void keeping_free(void *p)
{
    size_t *block = (size_t *)p - 1, all;
    if (!p) return;
    CHECK(n_given < GIVEN_MAX);
    for (size_t i = 0; i < n_given; i++) CHECK(given[i].block != block); /* given back twice */
    all = sizeof *block + *block;
    given[n_given].block = block;
    given[n_given].copy = malloc(all);
    CHECK(given[n_given].copy != NULL);
    memcpy(given[n_given++].copy, block, all);
}

static void nothing_was_written_after_free(void)
{
    for (size_t i = 0; i < n_given; i++) {
        CHECK(!memcmp(given[i].block, given[i].copy, sizeof(size_t) + *given[i].copy));
        free(given[i].block);
        free(given[i].copy);
    }
    n_given = 0;
}

/* Wherever memory ends while a task is written, the answer is "none", and nothing that was freed is touched. */
static void a_guide_without_memory(void **state)
{
    struct guided_task g;
    json_t *j = NULL;
    (void)state;
    CHECK_OK(guided_task(&g, 1, 8, (struct fkt_task_choices){.joined = 1}));
    json_set_alloc_funcs(failing_malloc, keeping_free);
    for (fails_at = 1; !j && fails_at < 10000; fails_at++) {
        allocations = 0;
        j = fkt_task_json(&g.task);
        if (j) json_decref(j);
        nothing_was_written_after_free();
    }
    json_set_alloc_funcs(malloc, free);
    CHECK(j && fails_at > 50);
    guided_parts_clear(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codec_and_guide_are_two_parts),
        cmocka_unit_test(such_tasks_survive_their_json),
        cmocka_unit_test(impossible_parts_are_refused),
        cmocka_unit_test(hostile_parts_are_refused),
        cmocka_unit_test(an_unknown_part_is_named),
        cmocka_unit_test(the_guide_is_in_the_hash),
        cmocka_unit_test(unknown_networks_are_named),
        cmocka_unit_test(a_guide_without_memory),
        cmocka_unit_test(a_record_vector_has_a_longest_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
