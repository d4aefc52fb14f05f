/* SPDX-License-Identifier: Apache-2.0 */
/* task.c - the parameters that all sites agree on: classes, parts, privacy, federation and service, with one hash over
 * all of them, and the operator's signature. part.c has the parts, task_read.c reads a task.
 *
 * Two sites that hold tasks with the same hash compute the same integers from the same pixels and claim the same
 * privacy. The hash is SHA-256 of the canonical JSON (json.c). */
#include "task/task.h"

#include "task/division.h"
#include "task/federation.h"
#include "task/part.h"
#include "task/service.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "codec/codec.h"
#include "crypto/hash.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TASK_BYTES (16U << 20)

enum fkt_promise fkt_task_promise(const struct fkt_task *t, char why[FKT_PROMISE_WORDS])
{
    const struct fkt_federation *f = &t->federation;
    const uint32_t sites = t->division.number ? t->division.sites : f->sites; /* the release is of all cohorts */
    const uint64_t records = t->division.number ? t->division.records : f->records;
    /* a task with a server always has a stated bound, whatever its value */
    const int bounded = sites && (records != FKT_RECORDS_UNKNOWN || t->service.address[0]);
    return fkt_privacy_promise(t->privacy.epsilon, t->privacy.delta,
                               bounded ? (double)records * sites * t->n_classes : 0, why);
}

static json_t *classes_json(const struct fkt_task *t)
{
    json_t *list = json_array();
    for (uint32_t k = 0; list && k < t->n_classes; k++)
        if (json_array_append_new(list, json_string(t->classes[k])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *fkt_task_json(const struct fkt_task *t)
{
    const struct fkt_privacy_spec *p = &t->privacy;
    json_t *j = json_pack("{s:s s:s s:{s:i s:s s:s*} s:{s:f s:f s:s s:s s:s s:s*}}", "schema", FKT_TASK_SCHEMA, "name",
                          t->name, "image", "size", (int)t->size, "filter", fkt_filter_name(t->filter), "fit",
                          t->fit == FKT_FIT_CROP ? NULL : fkt_fit_name(t->fit), "privacy", "epsilon", p->epsilon,
                          "delta", p->delta, "adjacency", fkt_adjacency_name(p->adjacency), "mechanism",
                          fkt_mechanism_name(p->mechanism), "unit", "record", "promise",
                          fkt_task_promise(t, NULL) == FKT_PROMISE_WEAK ? FKT_TASK_WEAK : NULL);
    int bad = !j;
    bad |= json_object_set_new(j, "classes", classes_json(t));
    bad |= fkt_parts_json(j, t);
    bad |= json_object_set_new(json_object_get(j, "privacy"), "budget_split", fkt_split_json(p));
    if (t->division.number) bad |= json_object_set_new(j, "cohorts", fkt_division_json(&t->division));
    if (t->federation.sites) bad |= json_object_set_new(j, "federation", fkt_federation_json(&t->federation));
    if (t->service.address[0])
        bad |= json_object_set_new(j, "service", fkt_service_json(&t->service, t->federation.sites));
    if (!bad) return j;
    json_decref(j);
    return NULL;
}

json_t *fkt_task_document(const struct fkt_task *t)
{
    json_t *j = fkt_task_json(t);
    if (!j || !t->signature.there) return j;
    if (json_object_set_new(j, "signature", fkt_signature_json(&t->signature)) == 0) return j;
    json_decref(j);
    return NULL;
}

fkt_status fkt_task_seal(struct fkt_task *t)
{
    char *text = NULL;
    fkt_status st = fkt_json_text(&text, fkt_task_json(t), 0);
    if (st == FKT_OK) fkt_hash_bytes_hex(t->sha256, text, strlen(text));
    fkt_free(text);
    return st;
}

void fkt_calibration_sha256(const struct fkt_calibration *cal, char out[FKT_SHA256_HEX])
{
    struct fkt_hash h;
    char line[256];
    size_t D = cal->raw_dim, d = cal->dim;
    fkt_hash_init(&h);
    snprintf(line, sizeof line, "fedkt.calibration/%d %zu %zu %.17g %.17g %.17g\n", *cal->digests_sha256 ? 2 : 1, D, d,
             cal->log_mean, cal->log_spread, cal->radius);
    fkt_hash_add(&h, line, strlen(line));
    fkt_hash_add(&h, cal->digests_sha256, strlen(cal->digests_sha256)); /* which images; none: adds nothing */
    fkt_hash_add(&h, cal->codec, strlen(cal->codec) + 1);
    fkt_hash_add(&h, cal->source, strlen(cal->source) + 1);
    fkt_hash_add_u64(&h, cal->images);
    fkt_hash_add(&h, cal->centre, D * sizeof *cal->centre);
    fkt_hash_add(&h, cal->map, d * D * sizeof *cal->map);
    fkt_hash_add(&h, cal->unmap, d * D * sizeof *cal->unmap);
    fkt_hash_hex(&h, out);
}

fkt_status fkt_task_check_calibration(const struct fkt_task *t, uint32_t p, const struct fkt_calibration *cal)
{
    const struct fkt_task_part *part = &t->part[p];
    char hash[FKT_SHA256_HEX];
    fkt_status st;
    fkt_calibration_sha256(cal, hash);
    if (strcmp(hash, part->calibration_sha256) == 0 && strcmp(cal->source, part->calibration_source) == 0 &&
        cal->images == part->calibration_images)
        return FKT_OK;
    if (!cal->file)
        st = fkt_fail(FKT_E_MISMATCH, "the task was made with calibration %.12s from '%s', this is %.12s from '%s'",
                      part->calibration_sha256, part->calibration_source, hash, cal->source);
    else
        st = fkt_fail(FKT_E_MISMATCH,
                      "calibration '%s' is not the task's: it is %.12s from '%s', the task was made with %.12s from "
                      "'%s'",
                      cal->file, hash, cal->source, part->calibration_sha256, part->calibration_source);
    if (part->calibration_images == 0 && fkt_codec_has_calibration(part->name))
        return fkt_hint_code(st, FKT_HINT_CALIBRATION_BUILT_IN,
                             "give no calibration: the task was made with the codec's own");
    if (part->kind == FKT_PART_GUIDE)
        return fkt_hint_code(st, FKT_HINT_GUIDE_CALIBRATION, "ask the task's author for the guide's calibration file");
    return fkt_hint_code(st, FKT_HINT_TASK_CALIBRATION, "ask the task's author for the calibration file");
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Sorted once, so that 65,536 names cost little. */
fkt_status fkt_all_different(const char *const *names, uint32_t n, const char *what)
{
    const char **sorted = NULL;
    fkt_status st = fkt_alloc(&sorted, n);
    if (st != FKT_OK) return st;
    memcpy(sorted, names, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_name);
    for (uint32_t k = 1; k < n && st == FKT_OK; k++)
        if (!strcmp(sorted[k - 1], sorted[k])) st = fkt_fail(FKT_E_ARG, "%s '%s' is listed twice", what, sorted[k]);
    fkt_free(sorted);
    return st;
}

fkt_status fkt_task_copy_classes(struct fkt_task *t, const char *const *classes, uint32_t n)
{
    fkt_status st = FKT_OK;
    if (n < 1 || n > FKT_TASK_CLASSES_MAX)
        return fkt_fail(FKT_E_ARG, "a task needs 1 to %u classes, not %u", FKT_TASK_CLASSES_MAX, n);
    FKT_TRY(fkt_alloc(&t->classes, n));
    for (uint32_t k = 0; k < n; k++) {
        if (classes[k][0] == '\0') {
            st = fkt_fail(FKT_E_ARG, "class %u has an empty name", k);
            goto out;
        }
        if (!fkt_plain_text(classes[k])) {
            st = fkt_fail_hint(FKT_E_ARG, "rename the class", "the name of class %u is not plain UTF-8 text", k);
            goto out;
        }
        FKT_TRY(fkt_strdup(&t->classes[k], classes[k]));
        t->n_classes = k + 1;
    }
    FKT_TRY(fkt_all_different(classes, n, "class"));
out:
    return st;
}

/* The privacy module checks the numbers: a task whose plan it rejects is rejected. */
fkt_status fkt_task_check_privacy(const struct fkt_task *t)
{
    struct fkt_privacy_plan plan;
    return fkt_privacy_plan(&plan, &t->privacy);
}

fkt_status fkt_task_make_into(struct fkt_task *out, const struct fkt_task_choices *c,
                              const struct fkt_part_choice *parts, uint32_t n)
{
    struct fkt_task *t = out;
    char why[FKT_PROMISE_WORDS];
    fkt_status st;
    memset(t, 0, sizeof *t);
    if (c->name && strlen(c->name) >= sizeof t->name)
        return fkt_fail(FKT_E_ARG, "the task's name is longer than %zu bytes", sizeof t->name - 1);
    if (c->name && *c->name && !fkt_plain_text(c->name))
        return fkt_fail(FKT_E_ARG, "the task's name is not plain UTF-8 text");
    snprintf(t->name, sizeof t->name, "%s", c->name ? c->name : "unnamed");
    FKT_TRY(fkt_task_copy_classes(t, c->classes, c->n_classes));
    t->filter = c->filter;
    t->fit = c->fit;
    FKT_TRY(fkt_parts_make(t, c, parts, n));
    FKT_TRY(fkt_task_check_privacy(t));
    if (c->federation) FKT_TRY(fkt_federation_make(t, c->federation));
    if (c->service) FKT_TRY(fkt_service_make(t, c->service));
    if (fkt_task_promise(t, why) == FKT_PROMISE_WEAK && !c->accept_weak) {
        st = fkt_fail_hint(FKT_E_ARG, "accept it as weak to go on: all output is then marked weak",
                           "the promise is too weak to be called private: %s", why);
        goto out;
    }
    FKT_TRY(fkt_task_seal(t));
out:
    if (st != FKT_OK) fkt_task_clear(t);
    return st;
}

fkt_status fkt_task_load_into(struct fkt_task *out, const char *path)
{
    uint8_t *text = NULL;
    size_t len;
    fkt_status st;
    memset(out, 0, sizeof *out);
    st = fkt_file_read(&text, &len, path, MAX_TASK_BYTES);
    if (st == FKT_OK) st = fkt_fail_in(fkt_task_parse_into(out, (const char *)text, len), "cannot use '%s'", path);
    fkt_free(text);
    return fkt_hint_code(st, FKT_HINT_TASK_FILE,
                         "give the task file as it was made, unchanged: all sites must hold the same one");
}

fkt_status fkt_task_save(const struct fkt_task *t, const char *path, int force)
{
    return fkt_json_save(fkt_task_document(t), path, force ? FKT_FILE_REPLACE : 0);
}

fkt_status fkt_task_copy(struct fkt_task *out, const struct fkt_task *t)
{
    fkt_status st;
    *out = *t;
    out->classes = NULL;
    out->n_classes = 0;
    memset(&out->federation, 0, sizeof out->federation);
    memset(&out->service, 0, sizeof out->service);
    st = fkt_task_copy_classes(out, (const char *const *)t->classes, t->n_classes);
    if (st == FKT_OK) st = fkt_federation_copy(&out->federation, &t->federation);
    if (st == FKT_OK) st = fkt_service_copy(&out->service, &t->service, t->federation.sites);
    if (st != FKT_OK) fkt_task_clear(out);
    return st;
}

void fkt_task_clear(struct fkt_task *t)
{
    for (uint32_t k = 0; k < t->n_classes; k++) fkt_free(t->classes[k]);
    fkt_free(t->classes);
    fkt_service_clear(&t->service, t->federation.sites);
    fkt_federation_clear(&t->federation);
    memset(t, 0, sizeof *t);
}
