/* SPDX-License-Identifier: Apache-2.0 */
/* head_file.c - heads on disk: safetensors, format "fedkt.head/1".
 *
 *   metadata   format = "fedkt.head/1", kind = "nearest_mean" | "lda" | "qda", classes = JSON list of K names (absent
 *              in older files), task_sha256, release_sha256, private
 *   tensors    F64: bias (K); weight (K, m) for the linear heads; mean (K, m) and map (K, m, m) for qda (see heads.h)
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "fedkt.head/1"
#define NOT_PRIVATE "false: " /* followed by the reason */
#define CLASSES_MAX (1U << 20)

/* One table for saving and loading: the tensors of a head, and where they are stored. */
struct part {
    const char *name;
    double *data;
    unsigned rank;
};
#define PARTS_MAX 3

static size_t parts_of(struct part parts[PARTS_MAX], const struct fkt_head *h)
{
    parts[0] = (struct part){"bias", h->bias, 1};
    if (h->kind != FKT_HEAD_QDA) {
        parts[1] = (struct part){"weight", h->weight, 2};
        return 2;
    }
    parts[1] = (struct part){"mean", h->mean, 2};
    parts[2] = (struct part){"map", h->map, 3};
    return 3;
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

fkt_status fkt_head_save(const struct fkt_head *h, const char *path, int force)
{
    const uint64_t shape[3] = {h->classes, h->length, h->length};
    struct part parts[PARTS_MAX];
    size_t n = parts_of(parts, h);
    struct fkt_st_writer *w = NULL;
    char mark[sizeof NOT_PRIVATE + sizeof h->not_private];
    fkt_status st;
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fkt_st_writer_meta(w, "format", FORMAT));
    FKT_TRY(fkt_st_writer_meta(w, "kind", fkt_head_name(h->kind)));
    if (h->names) FKT_TRY(write_classes(w, h));
    if (h->task[0]) {
        FKT_TRY(fkt_st_writer_meta(w, "task_sha256", h->task));
        FKT_TRY(fkt_st_writer_meta(w, "release_sha256", h->release));
        snprintf(mark, sizeof mark, "%s%s", h->not_private[0] ? NOT_PRIVATE : "true", h->not_private);
        FKT_TRY(fkt_st_writer_meta(w, "private", mark));
    }
    for (size_t i = 0; i < n; i++)
        FKT_TRY(fkt_st_writer_add(w, parts[i].name, FKT_F64, parts[i].rank, shape, parts[i].data));
    FKT_TRY(fkt_st_writer_write(w, path, force ? FKT_FILE_REPLACE : 0));
out:
    fkt_st_writer_free(w);
    return st;
}

static fkt_status read_kind(enum fkt_head_kind *kind, const struct fkt_safetensors *s, const char *path)
{
    const char *format = fkt_safetensors_meta(s, "format"), *name = fkt_safetensors_meta(s, "kind");
    if (!format || strcmp(format, FORMAT) != 0)
        return fkt_fail_hint(FKT_E_FORMAT, "give a file that was saved as a head",
                             "'%s' is not a head of format " FORMAT, path);
    for (int k = 0; k < FKT_HEAD_KINDS; k++)
        if (name && !strcmp(name, fkt_head_name((enum fkt_head_kind)k))) {
            *kind = (enum fkt_head_kind)k;
            return FKT_OK;
        }
    return fkt_fail(FKT_E_FORMAT, "'%s' holds a head of unknown kind '%.32s'", path, name ? name : "");
}

/* K and m from the second tensor; all others are checked against them. */
static fkt_status read_sizes(uint64_t shape[3], enum fkt_head_kind kind, const struct fkt_safetensors *s,
                             const char *path)
{
    const char *name = kind == FKT_HEAD_QDA ? "mean" : "weight";
    const struct fkt_tensor *t = fkt_safetensors_find(s, name);
    if (!t || t->rank != 2) return fkt_fail(FKT_E_FORMAT, "'%s' has no tensor '%s' of two dimensions", path, name);
    if (t->shape[0] < 1 || t->shape[0] > CLASSES_MAX || t->shape[1] < 1 || t->shape[1] > FKT_HEAD_LENGTH_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s' claims %llu classes of length %llu: at most %u and %u", path,
                        (unsigned long long)t->shape[0], (unsigned long long)t->shape[1], CLASSES_MAX,
                        FKT_HEAD_LENGTH_MAX);
    shape[0] = t->shape[0];
    shape[1] = shape[2] = t->shape[1];
    return FKT_OK;
}

static fkt_status read_part(const struct part *p, const struct fkt_safetensors *s, const uint64_t *shape,
                            const char *path)
{
    const struct fkt_tensor *t = NULL;
    fkt_status st = fkt_safetensors_want(s, &t, p->name, FKT_F64, p->rank, shape);
    if (st != FKT_OK) return st;
    memcpy(p->data, t->data, (size_t)t->count * sizeof *p->data);
    for (size_t i = 0; i < t->count; i++)
        if (!isfinite(p->data[i]))
            return fkt_fail(FKT_E_NUMERIC, "tensor '%s' of '%s' is not finite at element %zu", p->name, path, i);
    return FKT_OK;
}

fkt_status fkt_head_load(struct fkt_head **out, const char *path)
{
    struct fkt_safetensors *s = NULL;
    const struct fkt_tensor *t = NULL;
    struct fkt_head *h = NULL;
    struct part parts[PARTS_MAX];
    enum fkt_head_kind kind = FKT_HEAD_NEAREST_MEAN;
    uint64_t shape[3] = {0};
    size_t n;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_safetensors_open(&s, path));
    FKT_TRY(read_kind(&kind, s, path));
    FKT_TRY(read_sizes(shape, kind, s, path));
    if (kind == FKT_HEAD_QDA)
        FKT_TRY(fkt_safetensors_want(s, &t, "map", FKT_F64, 3, shape)); /* before memory is allocated for it */
    FKT_TRY(fkt_head_new(&h, kind, (uint32_t)shape[0], (uint32_t)shape[1]));
    FKT_TRY(read_origin(h, s, path));
    FKT_TRY(read_classes(h, s, path));
    n = parts_of(parts, h);
    for (size_t i = 0; i < n; i++) FKT_TRY(read_part(&parts[i], s, shape, path));
    *out = h;
    h = NULL;
out:
    fkt_head_free(h);
    fkt_safetensors_free(s);
    return st;
}
