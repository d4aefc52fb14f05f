/* SPDX-License-Identifier: Apache-2.0 */
/* description.c - the metadata of a model file: the same keys in the metadata of safetensors and in ONNX's
 * metadata_props. docs/formats.md specifies them.
 *
 *   format architecture stem size classes mean std fit | private epsilon delta adjacency release_sha256 data
 *   public_images recipe
 *
 * Lists are JSON. The metadata is checked against the tensors' shapes, since either may be wrong. A file of our format
 * must have all required keys, above all whether it is private, because a reader could read a missing key either way. A
 * file of another program (format absent, or "pt" as PyTorch's users write it) has shapes alone. */
#include "classifier/model.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "tensor/safetensors_header.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIXEL_MAX 1e6   /* of mean and std */
#define EPSILON_MAX 1e6 /* a larger one promises nothing */

/* Those of docs/privacy.md, or empty; this module does not interpret them. */
static int is_adjacency(const char *s)
{
    return !*s || !strcmp(s, "add-remove") || !strcmp(s, "replace") || !strcmp(s, "replace-any");
}

static int is_fit(const char *s) { return !*s || !strcmp(s, "pad") || !strcmp(s, "stretch"); }

static int is_sha256(const char *s)
{
    uint8_t hash[32];
    return !*s || fkt_unhex(hash, s, sizeof hash);
}

/* ---- writing ---- */

struct writing {
    fkt_model_put *put;
    void *ctx;
    fkt_status st; /* sticky */
};

static void put_text(struct writing *w, const char *key, const char *value)
{
    if (w->st == FKT_OK) w->st = w->put(w->ctx, key, value);
}

static void put_number(struct writing *w, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    put_text(w, key, text);
}

/* The shortest digits that read back as the same number: 0.485, not 0.485000014. */
static void put_three(struct writing *w, const char *key, const float v[3])
{
    char text[64];
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        char digits[24];
        for (int d = 1; d <= 9; d++) {
            snprintf(digits, sizeof digits, "%.*g", d, (double)v[i]);
            if (strtof(digits, NULL) == v[i]) break;
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "%c%s", i ? ',' : '[', digits);
    }
    snprintf(text + n, sizeof text - n, "]");
    put_text(w, key, text);
}

static void put_classes(struct writing *w, const struct fkt_model *m)
{
    json_t *list = json_array();
    char *text = NULL;
    int failed = !list;
    for (uint32_t k = 0; k < m->n_classes && !failed; k++)
        failed = json_array_append_new(list, json_string(m->classes[k]));
    if (!failed) text = json_dumps(list, JSON_COMPACT);
    if (text) put_text(w, "classes", text);
    else if (w->st == FKT_OK) w->st = fkt_fail(FKT_E_NOMEM, "out of memory for the names of classes");
    free(text);
    json_decref(list);
}

fkt_status fkt_model_describe(const struct fkt_model *m, fkt_model_put *put, void *ctx)
{
    const struct fkt_model_origin *o = &m->origin;
    struct writing w = {put, ctx, FKT_OK};
    char size[16];
    if (o->is_private && !(o->epsilon > 0 && o->epsilon < EPSILON_MAX && o->delta > 0 && o->delta < 1))
        return fkt_fail(FKT_E_ARG, "a private model must state its epsilon and delta");
    if (!is_fit(o->fit)) return fkt_fail(FKT_E_ARG, "the model's origin has an unknown fit of images");
    if (!is_adjacency(o->adjacency) || !is_sha256(o->release_sha256))
        return fkt_fail(FKT_E_ARG, "a model's origin has an unknown adjacency, or an invalid release hash");
    snprintf(size, sizeof size, "%" PRIu32, m->size);
    put_text(&w, "format", FKT_MODEL_FORMAT);
    put_text(&w, "architecture", fkt_architecture_name(m->architecture));
    put_text(&w, "stem", fkt_stem_name(m->stem));
    put_text(&w, "size", size);
    put_classes(&w, m);
    put_three(&w, "mean", m->mean);
    put_three(&w, "std", m->std);
    put_text(&w, "private", o->is_private ? "true" : "false");
    if (o->is_private) {
        put_number(&w, "epsilon", o->epsilon);
        put_number(&w, "delta", o->delta);
        if (*o->adjacency) put_text(&w, "adjacency", o->adjacency);
    }
    if (*o->release_sha256) put_text(&w, "release_sha256", o->release_sha256);
    if (*o->fit) put_text(&w, "fit", o->fit);
    if (*o->data) put_text(&w, "data", o->data);
    if (*o->public_images) put_text(&w, "public_images", o->public_images);
    if (*o->recipe) put_text(&w, "recipe", o->recipe);
    return w.st;
}

int fkt_model_file_flags(const struct fkt_model *m, int force)
{
    return (force ? FKT_FILE_REPLACE : 0) | (m->origin.is_private ? 0 : FKT_FILE_PRIVATE);
}

/* ---- reading ---- */

struct reading {
    fkt_model_get *get;
    void *ctx;
    const char *path;
    json_t *names; /* of classes; holds what `classes` points to */
    const char **classes;
};

static fkt_status refuse(const struct reading *r, const char *key, const char *why)
{
    const char *value = r->get(r->ctx, key);
    char shown[FKT_ST_SHOWN];
    if (!value) return fkt_fail(FKT_E_FORMAT, "'%s' is a model without '%s'", r->path, key);
    return fkt_fail(FKT_E_FORMAT, "'%s' is a model whose '%s' is not %s: '%s'", r->path, key, why,
                    fkt_st_shown(shown, value));
}

static json_t *read_list(const struct reading *r, const char *key)
{
    const char *value = r->get(r->ctx, key);
    json_t *list = value ? json_loads(value, 0, NULL) : NULL;
    if (json_is_array(list)) return list;
    json_decref(list);
    return NULL;
}

static fkt_status read_three(const struct reading *r, const char *key, float out[3])
{
    json_t *list = read_list(r, key);
    size_t n = list ? json_array_size(list) : 0, good = 0;
    for (size_t i = 0; n == 3 && i < 3; i++) {
        double value = json_number_value(json_array_get(list, i));
        if (!json_is_number(json_array_get(list, i)) || !(fabs(value) <= PIXEL_MAX)) break;
        out[i] = (float)value;
        good++;
    }
    json_decref(list);
    return good == 3 ? FKT_OK : refuse(r, key, "a list of three numbers in range");
}

/* Above 0, below `end`. */
static fkt_status read_number(const struct reading *r, const char *key, double end, double *out)
{
    const char *value = r->get(r->ctx, key);
    if (!value || fkt_parse_double(out, value) != FKT_OK || !(*out > 0 && *out < end))
        return refuse(r, key, "a number in range");
    return FKT_OK;
}

/* An optional line. */
static fkt_status read_line(const struct reading *r, const char *key, char *out, size_t cap)
{
    const char *value = r->get(r->ctx, key);
    if (!value || !*value) return FKT_OK;
    if (strlen(value) >= cap || !fkt_plain_text(value)) return refuse(r, key, "one short line of plain text");
    memcpy(out, value, strlen(value) + 1);
    return FKT_OK;
}

/* Also optional. */
static fkt_status read_adjacency(const struct reading *r, struct fkt_model_origin *o)
{
    const char *value = r->get(r->ctx, "adjacency");
    if (!value) return FKT_OK;
    if (!is_adjacency(value)) return refuse(r, "adjacency", "an adjacency");
    snprintf(o->adjacency, sizeof o->adjacency, "%s", value);
    return FKT_OK;
}

static fkt_status read_origin(const struct reading *r, struct fkt_model_origin *o)
{
    const char *word = r->get(r->ctx, "private");
    fkt_status st;
    if (!word || (strcmp(word, "true") != 0 && strcmp(word, "false") != 0))
        return refuse(r, "private", "'true' or 'false'");
    o->is_private = !strcmp(word, "true");
    if (o->is_private) {
        FKT_TRY(read_number(r, "epsilon", EPSILON_MAX, &o->epsilon));
        FKT_TRY(read_number(r, "delta", 1, &o->delta));
        FKT_TRY(read_adjacency(r, o));
    }
    FKT_TRY(read_line(r, "release_sha256", o->release_sha256, sizeof o->release_sha256));
    if (!is_sha256(o->release_sha256)) FKT_TRY(refuse(r, "release_sha256", "a SHA-256 hash"));
    FKT_TRY(read_line(r, "fit", o->fit, sizeof o->fit));
    if (!is_fit(o->fit)) FKT_TRY(refuse(r, "fit", "'pad' or 'stretch'"));
    FKT_TRY(read_line(r, "data", o->data, sizeof o->data));
    FKT_TRY(read_line(r, "public_images", o->public_images, sizeof o->public_images));
    FKT_TRY(read_line(r, "recipe", o->recipe, sizeof o->recipe));
out:
    return st;
}

static fkt_status read_classes(struct reading *r, const struct fkt_resnet_kind *kind)
{
    const char *duplicate = NULL;
    fkt_status st;
    r->names = read_list(r, "classes");
    if (!r->names) return refuse(r, "classes", "a list of names");
    if (json_array_size(r->names) != kind->classes)
        return fkt_fail(FKT_E_MISMATCH, "'%s' names %zu classes, its last layer has %" PRIu32, r->path,
                        json_array_size(r->names), kind->classes);
    FKT_TRY(fkt_alloc(&r->classes, kind->classes));
    for (uint32_t k = 0; k < kind->classes; k++) {
        r->classes[k] = json_string_value(json_array_get(r->names, k));
        if (!r->classes[k] || !fkt_plain_text(r->classes[k])) FKT_TRY(refuse(r, "classes", "a list of plain names"));
    }
    FKT_TRY(fkt_model_duplicate(r->classes, kind->classes, &duplicate));
    if (duplicate) st = refuse(r, "classes", "a list of names, each once");
out:
    return st;
}

static fkt_status check_kind(const struct reading *r, const struct fkt_resnet_kind *kind)
{
    const char *a = r->get(r->ctx, "architecture"), *s = r->get(r->ctx, "stem");
    if (!a || fkt_architecture_parse(a) < 0) return refuse(r, "architecture", "a known one");
    if (!s || fkt_stem_parse(s) < 0) return refuse(r, "stem", "a known one");
    if (fkt_architecture_parse(a) != (int)kind->architecture || fkt_stem_parse(s) != (int)kind->stem)
        return fkt_fail(FKT_E_MISMATCH, "'%s' claims to be %s with stem '%s', but its tensors are %s with stem '%s'",
                        r->path, a, s, fkt_architecture_name(kind->architecture), fkt_stem_name(kind->stem));
    return FKT_OK;
}

static fkt_status read_ours(struct fkt_model **out, struct reading *r, const struct fkt_resnet_kind *kind,
                            uint32_t size)
{
    struct fkt_model_origin origin = {0};
    const char *text = r->get(r->ctx, "size");
    float mean[3], std[3];
    uint64_t side = 0;
    fkt_status st;
    FKT_TRY(check_kind(r, kind));
    if (!text || fkt_parse_u64(&side, text, FKT_MODEL_SIZE_MAX) != FKT_OK || side < FKT_MODEL_SIZE_MIN)
        FKT_TRY(refuse(r, "size", "a size in range"));
    if (size && size != side)
        FKT_TRY(fkt_fail(FKT_E_MISMATCH, "'%s' was trained on images of %" PRIu64 " px, not %" PRIu32, r->path, side,
                         size));
    FKT_TRY(read_three(r, "mean", mean));
    FKT_TRY(read_three(r, "std", std));
    if (!(std[0] > 0 && std[1] > 0 && std[2] > 0)) FKT_TRY(refuse(r, "std", "above 0"));
    FKT_TRY(read_origin(r, &origin));
    FKT_TRY(read_classes(r, kind));
    const struct fkt_model_spec spec = {.architecture = kind->architecture,
                                        .stem = kind->stem,
                                        .size = (uint32_t)side,
                                        .classes = r->classes,
                                        .n_classes = kind->classes,
                                        .mean = mean,
                                        .std = std};
    FKT_TRY(fkt_model_blank(out, &spec));
    fkt_model_set_origin(*out, &origin);
out:
    return st;
}

static fkt_status read_foreign(struct fkt_model **out, struct reading *r, const struct fkt_resnet_kind *kind,
                               uint32_t size)
{
    enum { DIGITS = 12 };
    char *numbers = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&numbers, (size_t)kind->classes * DIGITS));
    FKT_TRY(fkt_alloc(&r->classes, kind->classes));
    for (uint32_t k = 0; k < kind->classes; k++) {
        snprintf(numbers + (size_t)k * DIGITS, DIGITS, "%" PRIu32, k);
        r->classes[k] = numbers + (size_t)k * DIGITS;
    }
    const struct fkt_model_spec spec = {.architecture = kind->architecture,
                                        .stem = kind->stem,
                                        .size = size                           ? size
                                                : kind->stem == FKT_STEM_CIFAR ? 32
                                                                               : 224,
                                        .classes = r->classes,
                                        .n_classes = kind->classes};
    FKT_TRY(fkt_model_blank(out, &spec));
    (*out)->nameless = 1;
out:
    fkt_free(numbers);
    return st;
}

fkt_status fkt_model_from_words(struct fkt_model **out, const struct fkt_resnet_kind *kind, fkt_model_get *get,
                                void *ctx, uint32_t size, const char *path)
{
    struct reading r = {.get = get, .ctx = ctx, .path = path};
    const char *format = get(ctx, "format");
    char shown[FKT_ST_SHOWN];
    fkt_status st;
    *out = NULL;
    if (format && !strcmp(format, FKT_MODEL_FORMAT)) st = read_ours(out, &r, kind, size);
    else if (format && !strncmp(format, "fedkt.", 6))
        st = fkt_fail(FKT_E_FORMAT, "'%s' is a file of format '%s', not " FKT_MODEL_FORMAT, path,
                      fkt_st_shown(shown, format));
    else st = read_foreign(out, &r, kind, size);
    fkt_free(r.classes);
    json_decref(r.names);
    return st;
}
