/* SPDX-License-Identifier: Apache-2.0 */
/* task_read.c - a task from JSON, which is hostile: unknown keys, missing keys, wrong types and numbers that moments/
 * or privacy/ reject are errors that name the field. What is derived (layout, radii, parameters of the
 * federation, the mark of a weak promise) is derived again and compared. */
#include "task/part.h"

#include "task/division.h"
#include "task/federation.h"
#include "task/service.h"

#include "base/alloc.h"
#include "base/text.h"

#include <string.h>

/* Text of a JSON value into a fixed field; text that is too long or holds a NUL is an error, since a cut name would
 * be another name; so are control characters, since these texts are displayed. */
fkt_status fkt_take_text(char *out, size_t cap, const json_t *v, const char *what)
{
    size_t n = json_string_length(v);
    const char *s = json_string_value(v);
    if (!s || n + 1 > cap || strlen(s) != n || (n && !fkt_plain_text(s)))
        return fkt_fail(FKT_E_FORMAT, "task: %s is missing, too long or not plain text", what);
    memcpy(out, s, n + 1);
    return FKT_OK;
}

fkt_status fkt_take_choice(int *out, int (*parse)(const char *), const json_t *v, const char *what)
{
    const char *word = json_string_value(v);
    *out = word ? parse(word) : -1;
    if (*out < 0) return fkt_fail(FKT_E_FORMAT, "task: unknown %s '%s'", what, word ? word : "(no text)");
    return FKT_OK;
}

fkt_status fkt_take_hash(char out[FKT_SHA256_HEX], const json_t *v, const char *what)
{
    fkt_status st = fkt_take_text(out, FKT_SHA256_HEX, v, what);
    if (st == FKT_OK && (strlen(out) != 64 || strspn(out, "0123456789abcdef") != 64))
        st = fkt_fail(FKT_E_FORMAT, "task: %s is not 64 lower-case hexadecimal digits", what);
    return st;
}

static fkt_status take_classes(struct fkt_task *t, const json_t *list)
{
    const char **names = NULL;
    size_t n = json_array_size(list);
    fkt_status st = FKT_OK;
    if (n < 1 || n > FKT_TASK_CLASSES_MAX)
        return fkt_fail(FKT_E_FORMAT, "task: %zu classes; 1 to %u are possible", n, FKT_TASK_CLASSES_MAX);
    FKT_TRY(fkt_alloc(&names, n));
    for (size_t k = 0; k < n; k++) {
        const json_t *v = json_array_get(list, k);
        names[k] = json_string_value(v);
        if (!names[k] || strlen(names[k]) != json_string_length(v)) {
            st = fkt_fail(FKT_E_FORMAT, "task: class %zu is not plain text", k);
            goto out;
        }
    }
    FKT_TRY(fkt_task_copy_classes(t, names, (uint32_t)n));
out:
    fkt_free(names);
    return st;
}

/* The mark follows from the other fields; it is stored so that a reader does not have to compute it. */
static fkt_status check_mark(const struct fkt_task *t, const json_t *privacy)
{
    const json_t *mark = json_object_get(privacy, "promise");
    const char *said = json_string_value(mark);
    char why[FKT_PROMISE_WORDS];
    const int weak = fkt_task_promise(t, why) == FKT_PROMISE_WEAK;
    if (mark && (!said || strcmp(said, FKT_TASK_WEAK) != 0))
        return fkt_fail(FKT_E_FORMAT, "task: privacy: 'promise' can only be '" FKT_TASK_WEAK "'");
    if (weak && !mark)
        return fkt_fail_hint(FKT_E_FORMAT, "ask its author for a stricter task, or for one that is marked weak",
                             "task: its promise is too weak to be called private, and it is not marked weak: %s", why);
    if (!weak && mark) return fkt_fail(FKT_E_FORMAT, "task: its promise is marked weak, but is not");
    return FKT_OK;
}

static fkt_status take_privacy(struct fkt_task *t, const json_t *j)
{
    struct fkt_privacy_spec *p = &t->privacy;
    json_error_t e;
    json_t *adjacency, *mechanism, *split, *unit, *mark = NULL;
    int a = 0, m = 0;
    fkt_status st;
    if (json_unpack_ex((json_t *)(uintptr_t)j, &e, JSON_STRICT, "{s:F s:F s:o s:o s:o s:o s?o}", "epsilon", &p->epsilon,
                       "delta", &p->delta, "adjacency", &adjacency, "mechanism", &mechanism, "budget_split", &split,
                       "unit", &unit, "promise", &mark) != 0)
        return fkt_fail(FKT_E_FORMAT, "task: privacy: %s", e.text);
    FKT_TRY(fkt_take_choice(&a, fkt_adjacency_parse, adjacency, "adjacency"));
    FKT_TRY(fkt_take_choice(&m, fkt_mechanism_parse, mechanism, "mechanism"));
    if (!json_string_value(unit) || strcmp(json_string_value(unit), "record") != 0)
        return fkt_fail(FKT_E_FORMAT, "task: the unit of privacy must be 'record'");
    p->adjacency = (enum fkt_adjacency)a;
    p->mechanism = (enum fkt_mechanism)m;
    FKT_TRY(fkt_split_take(p, split));
    FKT_TRY(fkt_task_check_privacy(t));
out:
    return st;
}

/* Names the kind of another file of ours that was given by mistake. */
static fkt_status check_schema(const json_t *root)
{
    static const struct {
        const char *schema, *what;
    } others[] = {{"fedkt.key/", "a secret key"},
                  {"fedkt.site/", "a public key"},
                  {"fedkt.receipt/", "a site's receipt"},
                  {"fedkt.certificate/", "a certificate"}};
    const char *has = json_string_value(json_object_get(root, "schema"));
    if (has && !strcmp(has, FKT_TASK_SCHEMA)) return FKT_OK;
    for (size_t i = 0; has && i < sizeof others / sizeof *others; i++)
        if (!strncmp(has, others[i].schema, strlen(others[i].schema)))
            return fkt_fail_hint(FKT_E_FORMAT, "give the task, as the operator sent it: task.json",
                                 "it is %s, not a task", others[i].what);
    return fkt_fail(FKT_E_FORMAT, "task: schema is not '" FKT_TASK_SCHEMA "'");
}

/* A part of a kind that this version does not know is a key that it does not know, with a network in it. Without it the
 * record vector, and so every number of the round, would be another. */
static fkt_status check_parts_known(const json_t *root)
{
    const char *key;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)root, key, value)
        if (json_object_get(value, "identity") && strcmp(key, fkt_part_name(FKT_PART_CODEC)) != 0 &&
            strcmp(key, fkt_part_name(FKT_PART_GUIDE)) != 0)
            return fkt_fail_hint(FKT_E_FORMAT, "use the version of fedkt that the task was made with, or a later one",
                                 "task: it names a part '%.40s', which this version does not have",
                                 fkt_plain_text(key) ? key : "?");
    return FKT_OK;
}

static fkt_status take_task(struct fkt_task *t, json_t *root)
{
    json_error_t e;
    json_t *schema, *name, *classes, *filter, *fit = NULL, *privacy;
    json_t *codec = NULL, *calibration = NULL, *coordinates = NULL, *guide = NULL, *moments = NULL;
    json_t *cohorts = NULL, *federation = NULL, *service = NULL, *signature = NULL;
    json_int_t size;
    int f = 0;
    fkt_status st;
    FKT_TRY(check_schema(root));
    FKT_TRY(check_parts_known(root));
    if (json_unpack_ex(root, &e, JSON_STRICT, "{s:o s:o s:o s:{s:I s:o s?o!} s?o s?o s?o s?o s?o s:o s?o s?o s?o s?o}",
                       "schema", &schema, "name", &name, "classes", &classes, "image", "size", &size, "filter", &filter,
                       "fit", &fit, "codec", &codec, "calibration", &calibration, "coordinates", &coordinates, "guide",
                       &guide, "moments", &moments, "privacy", &privacy, "cohorts", &cohorts, "federation", &federation,
                       "service", &service, "signature", &signature) != 0)
        return fkt_fail(FKT_E_FORMAT, "task: %s", e.text);
    if (size < 1 || size > 65535) return fkt_fail(FKT_E_FORMAT, "task: image size out of range");
    FKT_TRY(fkt_take_text(t->name, sizeof t->name, name, "name"));
    FKT_TRY(take_classes(t, classes));
    FKT_TRY(fkt_take_choice(&f, fkt_filter_parse, filter, "filter"));
    t->filter = (enum fkt_filter)f;
    if (fit) FKT_TRY(fkt_take_choice(&f, fkt_fit_parse, fit, "fit"));
    t->fit = fit ? (enum fkt_fit)f : FKT_FIT_CROP;
    if (fit && t->fit == FKT_FIT_CROP) FKT_TRY(fkt_fail(FKT_E_FORMAT, "task: fit 'crop' is not written out"));
    t->size = (uint32_t)size;
    FKT_TRY(fkt_parts_take(t, &(struct fkt_parts_read){codec, calibration, coordinates, guide, moments}));
    FKT_TRY(take_privacy(t, privacy));
    if (federation) FKT_TRY(fkt_fail_in(fkt_federation_take(t, federation), "task"));
    if (cohorts) FKT_TRY(fkt_fail_in(fkt_division_take(t, cohorts), "task"));
    if (service) FKT_TRY(fkt_fail_in(fkt_service_take(t, service), "task"));
    FKT_TRY(check_mark(t, privacy)); /* with a service every bound on records counts */
    if (signature) FKT_TRY(fkt_fail_in(fkt_signature_take(&t->signature, signature), "task"));
    FKT_TRY(fkt_task_seal(t));
out:
    return st;
}

fkt_status fkt_task_parse_into(struct fkt_task *out, const char *json, size_t len)
{
    json_error_t e;
    json_t *root;
    fkt_status st;
    memset(out, 0, sizeof *out);
    root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &e);
    if (!root) return fkt_fail(FKT_E_FORMAT, "task is not JSON: %s (line %d)", e.text, e.line);
    st = take_task(out, root);
    json_decref(root);
    if (st == FKT_E_ARG) { /* a number that a module rejected came from the file, not from the caller */
        struct fkt_failure f;
        fkt_failure_save(&f, st);
        st = fkt_fail(FKT_E_FORMAT, strncmp(f.text, "task: ", 6) ? "task: %s" : "%s", f.text);
    }
    if (st != FKT_OK) fkt_task_clear(out);
    return st;
}
