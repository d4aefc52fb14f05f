/* SPDX-License-Identifier: Apache-2.0 */
/* whole_onnx.c - a whole model as ONNX: images (N,3,S,S) uint8 -> logits (N,K).
 *
 *   images -> Cast -> for each network: Mul, Add (pixels) -> its operations -> Flatten -> Gemm (whitening, with the
 *   scale and shift of the latent folded in) -> coordinates -> Concat -> head -> logits
 *
 *   gain-shape   v = u/|u|, g = gamma clamp((log|u| - c)/s, -1, 1), then (v, g)
 *   clip         u min(1, R/|u|)
 *   linear       Gemm
 *   quadratic    one Gemm gives (w - mean_k) map_k of all classes of a part; squares are summed by class
 *
 * Everything is float, where the program computes whitening, coordinates and head in double: scores differ in the sixth
 * digit. |u|^2 is kept above 1e-30, so that u = 0 gives what coordinates.c gives: no direction and the smallest
 * gain. */
#include "learning/whole.h"

#include "base/alloc.h"
#include "classifier/heads.h"
#include "classifier/onnx_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT = 1 };
#define SQUARE_MIN 1e-30

/* A node with up to two inputs, named after the part or the head. */
struct place {
    struct fkt_onnx_build *b;
    const char *prefix;
};

static const char *node(const struct place *p, const char *type, const char *name, const char *x, const char *y)
{
    char full[FKT_ONNX_NAME_MAX], result[FKT_ONNX_NAME_MAX];
    const char *value;
    snprintf(full, sizeof full, "%.30s%s", p->prefix, name);
    snprintf(result, sizeof result, "%.80s_out", full);
    value = fkt_onnx_node(p->b, type, full, result);
    fkt_onnx_input(p->b, x);
    if (y) fkt_onnx_input(p->b, y);
    return value;
}

static const char *number(const struct place *p, const char *name, double x)
{
    char full[FKT_ONNX_NAME_MAX];
    snprintf(full, sizeof full, "%.30s%s", p->prefix, name);
    return fkt_onnx_number(p->b, full, x);
}

/* Copies the numbers. */
static const char *floats(const struct place *p, const char *name, const float *x, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t shape[3] = {a, b, c};
    char full[FKT_ONNX_NAME_MAX];
    snprintf(full, sizeof full, "%.30s%s", p->prefix, name);
    return fkt_onnx_floats_copied(p->b, full, x, shape, c ? 3 : b ? 2 : 1);
}

/* x W^T + bias, W (rows, columns). Numbers are copied. */
static const char *gemm(const struct place *p, const char *name, const char *x, const float *weight, const float *bias,
                        uint32_t rows, uint32_t columns, const char *result)
{
    char full[FKT_ONNX_NAME_MAX], w[32], c[32];
    const char *value, *names[2];
    snprintf(w, sizeof w, "%.20s.weight", name);
    snprintf(c, sizeof c, "%.20s.bias", name);
    names[0] = floats(p, w, weight, rows, columns, 0);
    names[1] = floats(p, c, bias, rows, 0, 0);
    snprintf(full, sizeof full, "%.30s%s", p->prefix, name);
    value = fkt_onnx_node(p->b, "Gemm", full, result ? result : full);
    fkt_onnx_input(p->b, x);
    fkt_onnx_input(p->b, names[0]);
    fkt_onnx_input(p->b, names[1]);
    fkt_onnx_int(p->b, "transB", 1);
    return value;
}

/* ---- pixels to w ---- */

static const char *add_pixels(const struct place *p, const struct fkt_whole_part *part, const char *x)
{
    float scale[3];
    for (int c = 0; c < 3; c++) scale[c] = (float)((double)part->pixel_scale[c] / 255);
    x = node(p, "Mul", "pixels_scaled", x, floats(p, "pixel_scale", scale, 3, 1, 1));
    return node(p, "Add", "pixels_shifted", x, floats(p, "pixel_shift", part->pixel_shift, 3, 1, 1));
}

/* u = map ((x - shift) scale - centre) = (scale map) x - map (shift scale + centre) */
static const char *add_whitening(const struct place *p, const struct fkt_whole_part *part, const char *x)
{
    const struct fkt_calibration *cal = &part->calibration;
    const size_t rows = cal->dim, columns = cal->raw_dim;
    float *weight = NULL, *bias = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&weight, rows * columns));
    FKT_TRY(fkt_alloc(&bias, rows));
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < columns; j++) {
            const double w = (double)cal->map[i * columns + j];
            weight[i * columns + j] = (float)(w * part->latent_scale);
            sum += w * (part->latent_shift * part->latent_scale + (double)cal->centre[j]);
        }
        bias[i] = (float)-sum;
    }
    x = node(p, "Flatten", "latent", x, NULL);
    fkt_onnx_int(p->b, "axis", 1);
    x = gemm(p, "whitening", x, weight, bias, cal->dim, cal->raw_dim, NULL);
out:
    fkt_onnx_build_fail(p->b, st);
    fkt_free(weight);
    fkt_free(bias);
    return x;
}

/* (N,1): |x|^2, not below SQUARE_MIN. */
static const char *add_square(const struct place *p, const char *x)
{
    const int64_t axis[1] = {1};
    char axes[FKT_ONNX_NAME_MAX];
    snprintf(axes, sizeof axes, "%.30ssize_axes", p->prefix);
    x = node(p, "Mul", "squares", x, x);
    x = node(p, "ReduceSum", "size", x, fkt_onnx_whole_numbers(p->b, axes, axis, 1));
    fkt_onnx_int(p->b, "keepdims", 1);
    return node(p, "Clip", "size_clipped", x, number(p, "size_min", SQUARE_MIN));
}

static const char *add_coordinates(const struct place *p, const struct fkt_coordinates *c, const char *u)
{
    const char *square = add_square(p, u), *norm = node(p, "Sqrt", "norm", square, NULL), *g, *v;
    if (c->kind == FKT_COORDINATE_CLIP) {
        g = node(p, "Div", "ratio", number(p, "radius", c->radius), norm);
        g = node(p, "Min", "shrink", g, number(p, "one", 1));
        return node(p, "Mul", "w", u, g);
    }
    v = node(p, "Div", "direction", u, norm);
    g = node(p, "Log", "log_square", square, NULL);
    g = node(p, "Mul", "gain_scaled", g, number(p, "gain_scale", 0.5 / c->log_spread));
    g = node(p, "Add", "gain_shifted", g, number(p, "gain_shift", -c->log_mean / c->log_spread));
    g = node(p, "Clip", "gain_clipped", g, number(p, "gain_low", -1));
    fkt_onnx_input(p->b, number(p, "gain_high", 1));
    g = node(p, "Mul", "gain", g, number(p, "gamma", c->gamma));
    v = node(p, "Concat", "w", v, g);
    fkt_onnx_int(p->b, "axis", 1);
    return v;
}

static const char *add_part(struct fkt_onnx_build *b, const struct fkt_whole_part *part, uint32_t i, const char *images)
{
    char prefix[16], net[16]; /* two, so that no name of the network meets one of these */
    const struct place p = {b, prefix};
    const char *x;
    snprintf(prefix, sizeof prefix, "part.%u.", i);
    snprintf(net, sizeof net, "net.%u.", i);
    x = add_pixels(&p, part, images);
    x = fkt_onnx_net(b, &part->net, part->shapes, (const float *const *)part->array, net, x, NULL);
    x = add_whitening(&p, part, x);
    return add_coordinates(&p, &part->coordinates, x);
}

/* ---- w to scores ---- */

static const char *add_linear(const struct place *p, const struct fkt_head *h, const char *w, float *weight,
                              float *bias)
{
    for (size_t i = 0; i < (size_t)h->classes * h->length; i++) weight[i] = (float)h->weight[i];
    for (size_t k = 0; k < h->classes; k++) bias[k] = (float)h->bias[k];
    return gemm(p, "scores", w, weight, bias, h->classes, h->length, "logits");
}

/* (N,K): sum of squares of (w - mean_k) map_k over the coordinates of one part, m of them from `at` on; map (K,m,m). */
static const char *add_distance(const struct place *p, const struct fkt_head *h, const double *map, size_t at, size_t m,
                                const char *w, float *weight, float *bias)
{
    const int64_t shape[3] = {-1, h->classes, (int64_t)m}, axis[1] = {2};
    char name[FKT_ONNX_NAME_MAX];
    const char *x;
    for (size_t k = 0; k < h->classes; k++)
        for (size_t i = 0; i < m; i++) { /* row k m + i of the Gemm is column i of map_k */
            double shift = 0;
            for (size_t j = 0; j < m; j++) {
                weight[(k * m + i) * m + j] = (float)map[(k * m + j) * m + i];
                shift += h->mean[k * h->length + at + j] * map[(k * m + j) * m + i];
            }
            bias[k * m + i] = (float)-shift;
        }
    x = gemm(p, "whitened", w, weight, bias, (uint32_t)(h->classes * m), (uint32_t)m, NULL);
    snprintf(name, sizeof name, "%sshape", p->prefix);
    x = node(p, "Reshape", "by_class", x, fkt_onnx_whole_numbers(p->b, name, shape, 3));
    x = node(p, "Mul", "squares", x, x);
    snprintf(name, sizeof name, "%saxes", p->prefix);
    x = node(p, "ReduceSum", "distance", x, fkt_onnx_whole_numbers(p->b, name, axis, 1));
    fkt_onnx_int(p->b, "keepdims", 0);
    return x;
}

/* Coordinates at .. at + m of w. */
static const char *add_slice(const struct place *p, const char *w, size_t at, size_t m)
{
    const int64_t range[3][1] = {{(int64_t)at}, {(int64_t)(at + m)}, {1}};
    static const char *const name[3] = {"first", "end", "axis"};
    const char *inputs[3], *x;
    for (int i = 0; i < 3; i++) {
        char full[FKT_ONNX_NAME_MAX];
        snprintf(full, sizeof full, "%s%s", p->prefix, name[i]);
        inputs[i] = fkt_onnx_whole_numbers(p->b, full, range[i], 1);
    }
    x = node(p, "Slice", "part", w, inputs[0]);
    fkt_onnx_input(p->b, inputs[1]);
    fkt_onnx_input(p->b, inputs[2]);
    return x;
}

static void add_quadratic(struct fkt_onnx_build *b, const struct fkt_head *h, const char *w, float *weight, float *bias)
{
    const struct place head = {b, "head."};
    const char *sum = NULL;
    size_t at = 0, square = 0;
    for (uint32_t i = 0; i < h->parts; i++) {
        char prefix[24];
        const struct place p = {b, prefix};
        const size_t m = h->part[i].length;
        const char *x;
        snprintf(prefix, sizeof prefix, "head.%u.", i);
        x = h->parts > 1 ? add_slice(&p, w, at, m) : w;
        x = add_distance(&p, h, h->map + square, at, m, x, weight, bias);
        sum = sum ? node(&p, "Add", "sum", sum, x) : x;
        at += m;
        square += h->classes * m * m;
    }
    for (size_t k = 0; k < h->classes; k++) bias[k] = (float)h->bias[k];
    sum = node(&head, "Mul", "half", sum, number(&head, "minus_half", -0.5));
    (void)fkt_onnx_node(b, "Add", "head.scores", "logits");
    fkt_onnx_input(b, sum);
    fkt_onnx_input(b, floats(&head, "bias", bias, h->classes, 0, 0));
}

static fkt_status add_head(struct fkt_onnx_build *b, const struct fkt_head *h, const char *w)
{
    const struct place p = {b, "head."};
    const size_t m = h->length, k = h->classes;
    float *weight = NULL, *bias = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&weight, h->map ? k * m * m : k * m));
    FKT_TRY(fkt_alloc(&bias, k * m));
    if (h->map) add_quadratic(b, h, w, weight, bias);
    else (void)add_linear(&p, h, w, weight, bias);
    st = fkt_onnx_build_status(b);
out:
    fkt_free(weight);
    fkt_free(bias);
    return st;
}

/* ---- words ---- */

static fkt_status put_number(struct fkt_onnx_build *b, const char *key, double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", x);
    return fkt_onnx_word(b, key, text);
}

static fkt_status put_classes(struct fkt_onnx_build *b, const struct fkt_head *h)
{
    json_t *list = json_array();
    char *text;
    fkt_status st;
    for (uint32_t k = 0; k < h->classes; k++) (void)json_array_append_new(list, json_string(fkt_head_class(h, k)));
    text = json_array_size(list) == h->classes ? json_dumps(list, JSON_COMPACT) : NULL;
    st = text ? fkt_onnx_word(b, "classes", text) : fkt_fail(FKT_E_NOMEM, "out of memory for the names of classes");
    free(text);
    json_decref(list);
    return st;
}

static fkt_status put_words(struct fkt_onnx_build *b, const struct fkt_whole *m)
{
    const struct fkt_model_origin *o = &m->origin;
    char text[128];
    fkt_status st;
    FKT_TRY(fkt_onnx_word(b, "format", FKT_WHOLE_FORMAT));
    FKT_TRY(put_number(b, "size", m->size));
    FKT_TRY(fkt_onnx_word(b, "filter", fkt_filter_name(m->filter)));
    FKT_TRY(fkt_onnx_word(b, "fit", fkt_fit_name(m->fit)));
    FKT_TRY(fkt_onnx_word(b, "kind", fkt_head_name(m->head->kind)));
    FKT_TRY(put_classes(b, m->head));
    FKT_TRY(fkt_onnx_word(b, "task_sha256", m->head->task));
    FKT_TRY(fkt_onnx_word(b, "release_sha256", m->head->release));
    snprintf(text, sizeof text, "%s%s", o->is_private ? "true" : "false: ", m->not_private);
    FKT_TRY(fkt_onnx_word(b, "private", text));
    FKT_TRY(fkt_onnx_word(b, "data", o->data));
    for (uint32_t i = 0; i < m->parts; i++) {
        snprintf(text, sizeof text, "network.%u", i);
        FKT_TRY(fkt_onnx_word(b, text, m->part[i].identity));
    }
    if (!o->is_private) return FKT_OK;
    FKT_TRY(put_number(b, "epsilon", o->epsilon));
    FKT_TRY(put_number(b, "delta", o->delta));
    FKT_TRY(fkt_onnx_word(b, "adjacency", o->adjacency));
out:
    return st;
}

fkt_status fkt_whole_export_onnx(const struct fkt_whole *m, const char *path, int force)
{
    const struct fkt_onnx_value in = {"images", FKT_ONNX_TYPE_UINT8, {0, 3, m->size, m->size}, 4};
    const struct fkt_onnx_value out = {"logits", FKT_ONNX_TYPE_FLOAT, {0, fkt_whole_classes(m), 0, 0}, 2};
    struct fkt_onnx_build *b = NULL;
    const char *w[FKT_HEAD_PARTS_MAX] = {NULL}, *images, *all;
    fkt_status st;
    FKT_TRY(fkt_onnx_build_new(&b));
    images = fkt_onnx_node(b, "Cast", "pixels", "pixels");
    fkt_onnx_input(b, in.name);
    fkt_onnx_int(b, "to", FLOAT);
    for (uint32_t i = 0; i < m->parts; i++) w[i] = add_part(b, &m->part[i], i, images);
    all = w[0];
    if (m->parts > 1) {
        all = fkt_onnx_node(b, "Concat", "w", "w");
        for (uint32_t i = 0; i < m->parts; i++) fkt_onnx_input(b, w[i]);
        fkt_onnx_int(b, "axis", 1);
    }
    FKT_TRY(fkt_onnx_build_status(b));
    FKT_TRY(add_head(b, m->head, all));
    FKT_TRY(put_words(b, m));
    FKT_TRY(fkt_onnx_write(b, "whole", &in, &out, path, fkt_whole_file_flags(m, force)));
out:
    fkt_onnx_build_free(b);
    return st;
}
