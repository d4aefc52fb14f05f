/* SPDX-License-Identifier: Apache-2.0 */
/* head_file.c - heads on disk: safetensors, format "fedkt.head/1".
 *
 *   metadata   format = "fedkt.head/1", kind = a name of heads.c's table, classes = JSON list of K names (absent
 *              in older files), task_sha256, release_sha256, private; parts = JSON list of [offset, length] in the
 *              record vector, unless the head takes one part from 0 on
 *   tensors    F64: bias (K); weight (K, m) for the linear heads; mean (K, m) and map (K, m, m) for qda (see heads.h),
 *              with several parts map.0 (K, m_0, m_0), map.1 ...
 *
 * A file is untrusted: shapes are bounded before anything is allocated, each tensor must have the shape that the others
 * imply, and every number must be finite. The safetensors reader has checked offsets and lengths. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "classifier/heads.h"
#include "tensor/safetensors.h"

#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "fedkt.head/1"
#define NOT_PRIVATE "false: " /* followed by the reason */
#define CLASSES_MAX (1U << 20)

/* One table for saving and loading: the tensors of a head, and where they are stored. */
struct named {
    char name[16];
    double *data;
    unsigned rank;
    uint64_t shape[3];
};
enum { TENSORS_MAX = 2 + FKT_HEAD_PARTS_MAX };

static void map_name(char name[16], uint32_t parts, uint32_t p)
{
    if (parts == 1) snprintf(name, 16, "map");
    else snprintf(name, 16, "map.%u", p);
}

static size_t tensors_of(struct named t[TENSORS_MAX], const struct fkt_head *h)
{
    size_t n = 2, square = 0;
    t[0] = (struct named){"bias", h->bias, 1, {h->classes, 0, 0}};
    t[1] = (struct named){"weight", h->weight, 2, {h->classes, h->length, 0}};
    if (!fkt_head_is_quadratic(h->kind)) return n;
    t[1] = (struct named){"mean", h->mean, 2, {h->classes, h->length, 0}};
    for (uint32_t p = 0; p < h->parts; p++) {
        const uint64_t m = h->part[p].length;
        t[n] = (struct named){"", h->map + square, 3, {h->classes, m, m}};
        map_name(t[n++].name, h->parts, p);
        square += (size_t)(h->classes * m * m);
    }
    return n;
}

fkt_status fkt_head_set_origin(struct fkt_head *h, const char *task_sha256, const char *release_sha256,
                               const char *not_private)
{
    if (strlen(task_sha256) != 64 || strlen(release_sha256) != 64)
        return fkt_fail(FKT_E_ARG, "the origin of a head needs two SHA-256 hashes");
    memcpy(h->task, task_sha256, 65);
    memcpy(h->release, release_sha256, 65);
    snprintf(h->not_private, sizeof h->not_private, "%s", not_private ? not_private : "");
    return FKT_OK;
}

fkt_status fkt_head_set_classes(struct fkt_head *h, const char *const *names)
{
    fkt_status st = FKT_OK;
    for (uint32_t k = 0; k < h->classes; k++)
        if (!names[k] || !fkt_plain_text(names[k]))
            return fkt_fail(FKT_E_ARG, "class %u of a head has no plain-text name", k);
    if (!h->names) FKT_TRY(fkt_alloc(&h->names, h->classes));
    for (uint32_t k = 0; k < h->classes; k++) {
        fkt_free(h->names[k]);
        h->names[k] = NULL;
        FKT_TRY(fkt_strdup(&h->names[k], names[k]));
    }
out:
    return st;
}

const char *fkt_head_class(const struct fkt_head *h, uint32_t k)
{
    return h->names && k < h->classes && h->names[k] ? h->names[k] : "";
}

static fkt_status write_classes(struct fkt_st_writer *w, const struct fkt_head *h)
{
    json_t *list = json_array();
    char *text;
    fkt_status st;
    for (uint32_t k = 0; k < h->classes; k++) (void)json_array_append_new(list, json_string(h->names[k]));
    text = json_array_size(list) == h->classes ? json_dumps(list, JSON_COMPACT) : NULL;
    st =
        text ? fkt_st_writer_meta(w, "classes", text) : fkt_fail(FKT_E_NOMEM, "out of memory for the names of classes");
    free(text);
    json_decref(list);
    return st;
}

/* If present, the list has as many names as the head has classes. */
static fkt_status read_classes(struct fkt_head *h, const struct fkt_safetensors *s, const char *path)
{
    const char *text = fkt_safetensors_meta(s, "classes"), **names = NULL;
    json_t *list = text ? json_loads(text, 0, NULL) : NULL;
    fkt_status st = FKT_OK;
    if (!text) return FKT_OK;
    if (json_is_array(list) && json_array_size(list) == h->classes) {
        FKT_TRY(fkt_alloc(&names, h->classes));
        for (uint32_t k = 0; k < h->classes; k++) names[k] = json_string_value(json_array_get(list, k));
        st = fkt_head_set_classes(h, names);
    } else {
        st = FKT_E_ARG;
    }
    if (st == FKT_E_ARG) st = fkt_fail(FKT_E_FORMAT, "'%s' does not have names for its %u classes", path, h->classes);
out:
    fkt_free(names);
    json_decref(list);
    return st;
}

const char *fkt_head_task(const struct fkt_head *h) { return h->task; }

/* If present, an origin is complete; otherwise the file is not a head of ours. */
static fkt_status read_origin(struct fkt_head *h, const struct fkt_safetensors *s, const char *path)
{
    const char *task = fkt_safetensors_meta(s, "task_sha256"), *release = fkt_safetensors_meta(s, "release_sha256");
    const char *private_mark = fkt_safetensors_meta(s, "private");
    if (!task) return FKT_OK;
    if (!release || !private_mark || strlen(task) != 64 || strlen(release) != 64)
        return fkt_fail(FKT_E_FORMAT, "'%s' has an incomplete or invalid origin", path);
    if (!strcmp(private_mark, "true")) private_mark = NULL;
    else if (!strncmp(private_mark, NOT_PRIVATE, strlen(NOT_PRIVATE))) private_mark += strlen(NOT_PRIVATE);
    return fkt_head_set_origin(h, task, release, private_mark);
}

/* ---- parts ---- */

static fkt_status write_parts(struct fkt_st_writer *w, const struct fkt_head *h)
{
    char text[FKT_HEAD_PARTS_MAX * 32] = "[";
    size_t at = 1;
    if (h->parts == 1 && !h->part[0].offset) return FKT_OK;
    for (uint32_t p = 0; p < h->parts; p++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s[%u,%u]", p ? "," : "", h->part[p].offset,
                               h->part[p].length);
    snprintf(text + at, sizeof text - at, "]");
    return fkt_st_writer_meta(w, "parts", text);
}

/* A whole number in 0 .. 2^31, or -1. */
static int64_t number_at(const json_t *pair, size_t i)
{
    const json_t *x = json_array_get(pair, i);
    json_int_t v = json_is_integer(x) ? json_integer_value(x) : -1;
    return v >= 0 && v <= INT32_MAX ? v : -1;
}

/* Parts in order, without overlap, of `length` together. Without the key: one part from 0 on. */
static fkt_status read_parts(struct fkt_head_part *part, uint32_t *parts, const struct fkt_safetensors *s,
                             uint64_t length, const char *path)
{
    const char *text = fkt_safetensors_meta(s, "parts");
    json_t *list = text ? json_loads(text, 0, NULL) : NULL;
    size_t n = json_array_size(list);
    uint64_t sum = 0;
    int64_t end = 0;
    int good = !text || (n >= 1 && n <= FKT_HEAD_PARTS_MAX);
    part[0] = (struct fkt_head_part){0, (uint32_t)length};
    *parts = 1;
    for (size_t p = 0; text && good && p < n; p++) {
        const json_t *pair = json_array_get(list, p);
        int64_t offset = number_at(pair, 0), own = number_at(pair, 1);
        good = json_array_size(pair) == 2 && offset >= end && own >= 1;
        if (!good) break;
        part[p] = (struct fkt_head_part){(uint32_t)offset, (uint32_t)own};
        end = offset + own;
        sum += (uint64_t)own;
        *parts = (uint32_t)p + 1;
    }
    json_decref(list);
    if (good && (!text || sum == length)) return FKT_OK;
    return fkt_fail(FKT_E_FORMAT, "'%s' does not name parts of length %llu together", path, (unsigned long long)length);
}

/* ---- writing ---- */

fkt_status fkt_head_write(const struct fkt_head *h, struct fkt_st_writer *w, const char *prefix)
{
    struct named tensor[TENSORS_MAX];
    size_t n = tensors_of(tensor, h);
    char mark[sizeof NOT_PRIVATE + sizeof h->not_private], name[32];
    fkt_status st;
    FKT_TRY(fkt_st_writer_meta(w, "kind", fkt_head_name(h->kind)));
    FKT_TRY(write_parts(w, h));
    if (h->names) FKT_TRY(write_classes(w, h));
    if (h->task[0]) {
        FKT_TRY(fkt_st_writer_meta(w, "task_sha256", h->task));
        FKT_TRY(fkt_st_writer_meta(w, "release_sha256", h->release));
        snprintf(mark, sizeof mark, "%s%s", h->not_private[0] ? NOT_PRIVATE : "true", h->not_private);
        FKT_TRY(fkt_st_writer_meta(w, "private", mark));
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, tensor[i].name);
        FKT_TRY(fkt_st_writer_add(w, name, FKT_F64, tensor[i].rank, tensor[i].shape, tensor[i].data));
    }
out:
    return st;
}

fkt_status fkt_head_save(const struct fkt_head *h, const char *path, int force)
{
    struct fkt_st_writer *w = NULL;
    fkt_status st;
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fkt_st_writer_meta(w, "format", FORMAT));
    FKT_TRY(fkt_head_write(h, w, ""));
    FKT_TRY(fkt_st_writer_write(w, path, force ? FKT_FILE_REPLACE : 0));
out:
    fkt_st_writer_free(w);
    return st;
}

/* ---- reading ---- */

static fkt_status read_kind(enum fkt_head_kind *kind, const struct fkt_safetensors *s, const char *path)
{
    const char *name = fkt_safetensors_meta(s, "kind");
    const int found = name ? fkt_head_parse(name) : -1;
    if (found >= 0) {
        *kind = (enum fkt_head_kind)found;
        return FKT_OK;
    }
    return fkt_fail(FKT_E_FORMAT, "'%s' holds a head of unknown kind '%.32s'", path, name ? name : "");
}

/* K and m from the second tensor; all others are checked against them. */
static fkt_status read_sizes(uint64_t shape[2], enum fkt_head_kind kind, const struct fkt_safetensors *s,
                             const char *path, const char *prefix)
{
    const struct fkt_tensor *t;
    char name[32];
    snprintf(name, sizeof name, "%s%s", prefix, fkt_head_is_quadratic(kind) ? "mean" : "weight");
    t = fkt_safetensors_find(s, name);
    if (!t || t->rank != 2) return fkt_fail(FKT_E_FORMAT, "'%s' has no tensor '%s' of two dimensions", path, name);
    if (t->shape[0] < 1 || t->shape[0] > CLASSES_MAX || t->shape[1] < 1 || t->shape[1] > FKT_LENGTH_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s' claims %llu classes of length %llu: at most %u and %u", path,
                        (unsigned long long)t->shape[0], (unsigned long long)t->shape[1], CLASSES_MAX, FKT_LENGTH_MAX);
    shape[0] = t->shape[0];
    shape[1] = t->shape[1];
    return FKT_OK;
}

static fkt_status read_tensor(const struct named *p, const struct fkt_safetensors *s, const char *path,
                              const char *prefix)
{
    const struct fkt_tensor *t = NULL;
    char name[32];
    fkt_status st;
    snprintf(name, sizeof name, "%s%s", prefix, p->name);
    st = fkt_safetensors_want(s, &t, name, FKT_F64, p->rank, p->shape);
    if (st != FKT_OK) return st;
    memcpy(p->data, t->data, (size_t)t->count * sizeof *p->data);
    for (size_t i = 0; i < t->count; i++)
        if (!isfinite(p->data[i]))
            return fkt_fail(FKT_E_NUMERIC, "tensor '%s' of '%s' is not finite at element %zu", name, path, i);
    return FKT_OK;
}

/* Before memory is allocated for them. */
static fkt_status check_maps(const struct fkt_safetensors *s, uint64_t classes, const struct fkt_head_part *part,
                             uint32_t parts, const char *prefix)
{
    const struct fkt_tensor *t = NULL;
    fkt_status st = FKT_OK;
    for (uint32_t p = 0; st == FKT_OK && p < parts; p++) {
        const uint64_t shape[3] = {classes, part[p].length, part[p].length};
        char own[16], name[32];
        map_name(own, parts, p);
        snprintf(name, sizeof name, "%s%s", prefix, own);
        st = fkt_safetensors_want(s, &t, name, FKT_F64, 3, shape);
    }
    return st;
}

fkt_status fkt_head_read(struct fkt_head **out, const struct fkt_safetensors *s, const char *path, const char *prefix)
{
    struct fkt_head *h = NULL;
    struct named tensor[TENSORS_MAX];
    struct fkt_head_part part[FKT_HEAD_PARTS_MAX];
    enum fkt_head_kind kind = FKT_HEAD_NEAREST_MEAN;
    uint64_t shape[2] = {0};
    uint32_t parts = 0;
    size_t n;
    fkt_status st;
    *out = NULL;
    FKT_TRY(read_kind(&kind, s, path));
    FKT_TRY(read_sizes(shape, kind, s, path, prefix));
    FKT_TRY(read_parts(part, &parts, s, shape[1], path));
    if (fkt_head_is_quadratic(kind)) FKT_TRY(check_maps(s, shape[0], part, parts, prefix));
    FKT_TRY(fkt_head_new(&h, kind, (uint32_t)shape[0], part, parts));
    FKT_TRY(read_origin(h, s, path));
    FKT_TRY(read_classes(h, s, path));
    n = tensors_of(tensor, h);
    for (size_t i = 0; i < n; i++) FKT_TRY(read_tensor(&tensor[i], s, path, prefix));
    *out = h;
    h = NULL;
out:
    fkt_head_free(h);
    return st;
}

fkt_status fkt_head_load(struct fkt_head **out, const char *path)
{
    struct fkt_safetensors *s = NULL;
    const char *format;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_safetensors_open(&s, path));
    format = fkt_safetensors_meta(s, "format");
    if (!format || strcmp(format, FORMAT) != 0)
        st = fkt_fail_hint(FKT_E_FORMAT, "give a file that was saved as a head", "'%s' is not a head of format " FORMAT,
                           path);
    else st = fkt_head_read(out, s, path, "");
out:
    fkt_safetensors_free(s);
    return st;
}
