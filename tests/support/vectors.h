/* SPDX-License-Identifier: Apache-2.0 */
/* vectors.h - golden vectors that are JSON: {"cases": [...]}. */
#ifndef FKT_TEST_VECTORS_H
#define FKT_TEST_VECTORS_H

#include "tests/support/check.h"

#include <jansson.h>

/* The cases of a file under tests/vectors; the caller drops *root. */
static inline json_t *vectors_open(json_t **root, const char *name)
{
    char path[512];
    json_error_t e;
    snprintf(path, sizeof path, "%s/%s", FKT_TEST_VECTORS, name);
    *root = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    if (!*root) fail_msg("cannot read '%s': %s", path, e.text);
    json_t *cases = json_object_get(*root, "cases");
    CHECK(json_array_size(cases) > 0);
    return cases;
}

static inline int64_t vectors_int(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v)) fail_msg("a case has no whole number '%s'", key);
    return (int64_t)json_integer_value(v);
}

static inline double vectors_number(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_number(v)) fail_msg("a case has no number '%s'", key);
    return json_number_value(v);
}

static inline const char *vectors_text(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    if (!s) fail_msg("a case has no text '%s'", key);
    return s;
}

/* Whole numbers into out (cap); how many. */
static inline size_t vectors_ints(const json_t *object, const char *key, int64_t *out, size_t cap)
{
    const json_t *list = json_object_get(object, key);
    const size_t n = json_array_size(list);
    CHECK(json_is_array(list) && n <= cap);
    for (size_t i = 0; i < n; i++) {
        CHECK(json_is_integer(json_array_get(list, i)));
        out[i] = (int64_t)json_integer_value(json_array_get(list, i));
    }
    return n;
}

#endif
