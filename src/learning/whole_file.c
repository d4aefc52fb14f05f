/* SPDX-License-Identifier: Apache-2.0 */
/* whole_file.c - a whole model on disk: safetensors, format "fedkt.whole/1". docs/formats.md specifies it.
 *
 *   metadata   format, size, filter, fit, networks (JSON list), data, epsilon, delta, adjacency; and what a head's file
 *              has: kind, parts, classes, task_sha256, release_sha256, private
 *   tensors    net.P.NAME (F16 where that holds every number exactly, else F32), calibration.P.centre (D) and
 *              calibration.P.map (d, D) F32; head.* F64
 *
 * A file is untrusted: sizes are bounded before anything is allocated, each tensor must have the shape that the lists
 * imply, every number must be finite, and the networks hold plain operations alone (whole_net.c). */
#include "learning/whole.h"

#include "fedkt/advanced/moments.h"
#include "fedkt/task.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "classifier/heads.h"
#include "tensor/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_PX = 4096, DIM_MAX = 1 << 20 };
#define EPSILON_MAX 1e6 /* a larger one promises nothing */

/* ---- writing ---- */

static json_t *three(const float v[3]) { return json_pack("[f,f,f]", (double)v[0], (double)v[1], (double)v[2]); }

static json_t *part_json(const struct fkt_whole_part *p)
{
    const struct fkt_coordinates *c = &p->coordinates;
    return json_pack("{s:s s:s s:s s:s s:o s:o s:f s:f s:{s:s s:i s:i s:f s:f s:f s:f} s:o}", "name", p->name,
                     "identity", p->identity, "calibration_sha256", p->calibration_sha256, "calibration_source",
                     p->calibration.source, "pixel_scale", three(p->pixel_scale), "pixel_shift", three(p->pixel_shift),
                     "latent_scale", p->latent_scale, "latent_shift", p->latent_shift, "coordinates", "kind",
                     fkt_coordinate_name(c->kind), "dim", (int)c->dim, "rq", (int)c->rq, "radius", c->radius, "gamma",
                     c->gamma, "log_mean", c->log_mean, "log_spread", c->log_spread, "network",
                     fkt_whole_net_json(&p->net));
}

static fkt_status put_networks(struct fkt_st_writer *w, const struct fkt_whole *m)
{
    json_t *list = json_array();
    char *text = NULL;
    fkt_status st;
    for (uint32_t i = 0; i < m->parts; i++) (void)json_array_append_new(list, part_json(&m->part[i]));
    if (json_array_size(list) == m->parts) text = json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(17));
    st = text ? fkt_st_writer_meta(w, "networks", text) : fkt_fail(FKT_E_NOMEM, "out of memory for a list of networks");
    free(text);
    json_decref(list);
    return st;
}

static fkt_status put_number(struct fkt_st_writer *w, const char *key, double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", x);
    return fkt_st_writer_meta(w, key, text);
}

/* Half precision of x, when it is exactly x. */
static int half(float x, uint16_t *out)
{
    uint32_t bits, fraction;
    int32_t exponent;
    memcpy(&bits, &x, sizeof bits);
    exponent = (int32_t)(bits >> 23 & 0xFF) - 127;
    fraction = bits & 0x7FFFFF;
    *out = (uint16_t)(bits >> 16 & 0x8000);
    if (!(bits & 0x7FFFFFFF)) return 1;
    if (exponent < -24 || exponent > 15) return 0;
    if (exponent < -14) { /* subnormal: the leading one moves into the fraction */
        const int shift = -14 - exponent;
        fraction |= 0x800000;
        *out |= (uint16_t)(fraction >> (13 + shift));
        return !(fraction & ((1U << (13 + shift)) - 1));
    }
    *out |= (uint16_t)((uint32_t)(exponent + 15) << 10 | fraction >> 13);
    return !(fraction & 0x1FFF);
}

/* One array of halves for each slot that can have one, NULL for the others; freed by the caller. */
struct halves {
    uint16_t **array;
    size_t n;
};

static fkt_status put_slot(struct fkt_st_writer *w, const struct fkt_whole_part *p, uint32_t part, size_t i,
                           uint16_t **halves)
{
    const struct fkt_slot *s = &p->net.slot[i];
    const size_t count = fkt_slot_count(s);
    uint64_t shape[FKT_SLOT_RANK];
    char name[128];
    int exact = 1;
    fkt_status st = fkt_alloc(halves, count);
    if (st != FKT_OK) return st;
    for (size_t k = 0; exact && k < count; k++) exact = half(p->array[i][k], &(*halves)[k]);
    for (uint32_t d = 0; d < s->rank; d++) shape[d] = s->shape[d];
    snprintf(name, sizeof name, "net.%u.%s", part, s->name[0]);
    return exact ? fkt_st_writer_add(w, name, FKT_F16, s->rank, shape, *halves)
                 : fkt_st_writer_add(w, name, FKT_F32, s->rank, shape, p->array[i]);
}

static fkt_status put_calibration(struct fkt_st_writer *w, const struct fkt_calibration *cal, uint32_t part)
{
    const uint64_t centre[1] = {cal->raw_dim}, map[2] = {cal->dim, cal->raw_dim};
    char name[64];
    fkt_status st;
    snprintf(name, sizeof name, "calibration.%u.centre", part);
    FKT_TRY(fkt_st_writer_add(w, name, FKT_F32, 1, centre, cal->centre));
    snprintf(name, sizeof name, "calibration.%u.map", part);
    FKT_TRY(fkt_st_writer_add(w, name, FKT_F32, 2, map, cal->map));
out:
    return st;
}

static fkt_status put_words(struct fkt_st_writer *w, const struct fkt_whole *m)
{
    const struct fkt_model_origin *o = &m->origin;
    char size[16];
    fkt_status st;
    snprintf(size, sizeof size, "%u", m->size);
    FKT_TRY(fkt_st_writer_meta(w, "format", FKT_WHOLE_FORMAT));
    FKT_TRY(fkt_st_writer_meta(w, "size", size));
    FKT_TRY(fkt_st_writer_meta(w, "filter", fkt_filter_name(m->filter)));
    FKT_TRY(fkt_st_writer_meta(w, "fit", fkt_fit_name(m->fit)));
    FKT_TRY(fkt_st_writer_meta(w, "data", o->data));
    if (o->is_private) {
        FKT_TRY(put_number(w, "epsilon", o->epsilon));
        FKT_TRY(put_number(w, "delta", o->delta));
        FKT_TRY(fkt_st_writer_meta(w, "adjacency", o->adjacency));
    }
    FKT_TRY(put_networks(w, m));
out:
    return st;
}

fkt_status fkt_whole_save(const struct fkt_whole *m, const char *path, int force)
{
    struct fkt_st_writer *w = NULL;
    struct halves h = {NULL, 0};
    fkt_status st;
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(put_words(w, m));
    for (uint32_t p = 0; p < m->parts; p++)
        for (size_t i = 0; i < m->part[p].net.n_slots; i++) {
            FKT_TRY(fkt_realloc(&h.array, h.n + 1));
            h.array[h.n++] = NULL;
            FKT_TRY(put_slot(w, &m->part[p], p, i, &h.array[h.n - 1]));
        }
    for (uint32_t p = 0; p < m->parts; p++) FKT_TRY(put_calibration(w, &m->part[p].calibration, p));
    FKT_TRY(fkt_head_write(m->head, w, "head."));
    FKT_TRY(fkt_st_writer_write(w, path, fkt_whole_file_flags(m, force)));
out:
    for (size_t i = 0; i < h.n; i++) fkt_free(h.array[i]);
    fkt_free(h.array);
    fkt_st_writer_free(w);
    return st;
}

/* ---- reading ---- */

struct reading {
    const struct fkt_safetensors *file;
    const char *path;
};

static fkt_status refuse(const struct reading *r, const char *key)
{
    return fkt_fail(FKT_E_FORMAT, "'%s' has an invalid or no '%s' in its metadata", r->path, key);
}

static int get_three(float out[3], const json_t *list)
{
    for (size_t i = 0; i < 3; i++) {
        out[i] = (float)json_number_value(json_array_get(list, i));
        if (!json_is_number(json_array_get(list, i)) || !isfinite(out[i])) return 0;
    }
    return json_array_size(list) == 3;
}

/* Text of at most cap - 1 bytes, without control characters. */
static int get_text(char *out, size_t cap, const json_t *from, const char *key)
{
    const char *s = json_string_value(json_object_get(from, key));
    if (!s || strlen(s) >= cap || !fkt_plain_text(s)) return 0;
    memcpy(out, s, strlen(s) + 1);
    return 1;
}

static int get_number(double *out, const json_t *from, const char *key)
{
    const json_t *x = json_object_get(from, key);
    *out = json_number_value(x);
    return json_is_number(x) && isfinite(*out);
}

/* A whole number in 1 .. 2^20. */
static int get_count(uint32_t *out, const json_t *from, const char *key)
{
    const json_t *x = json_object_get(from, key);
    const json_int_t v = json_is_integer(x) ? json_integer_value(x) : 0;
    *out = v >= 1 && v <= DIM_MAX ? (uint32_t)v : 0;
    return *out != 0;
}

static fkt_status read_coordinates(struct fkt_coordinates *out, const json_t *from, const struct reading *r)
{
    char kind[32];
    uint32_t dim, rq;
    double radius, gamma, log_mean, log_spread;
    if (!get_text(kind, sizeof kind, from, "kind") || !get_count(&dim, from, "dim") || !get_count(&rq, from, "rq") ||
        !get_number(&radius, from, "radius") || !get_number(&gamma, from, "gamma") ||
        !get_number(&log_mean, from, "log_mean") || !get_number(&log_spread, from, "log_spread"))
        return refuse(r, "networks");
    switch (fkt_coordinate_parse(kind)) {
    case FKT_COORDINATE_GAIN_SHAPE: return fkt_coordinates_gain_shape(out, dim, rq, gamma, log_mean, log_spread);
    case FKT_COORDINATE_CLIP: return fkt_coordinates_clip(out, dim, rq, radius);
    default: return refuse(r, "networks");
    }
}

static fkt_status read_slots(struct fkt_whole_part *p, uint32_t part, const struct reading *r)
{
    fkt_status st;
    FKT_TRY(fkt_alloc(&p->array, p->net.n_slots));
    for (size_t i = 0; i < p->net.n_slots; i++) {
        const struct fkt_slot *s = &p->net.slot[i];
        const struct fkt_tensor *t;
        uint64_t shape[FKT_SLOT_RANK];
        char name[128];
        snprintf(name, sizeof name, "net.%u.%s", part, s->name[0]);
        t = fkt_safetensors_find(r->file, name);
        for (uint32_t d = 0; d < s->rank; d++) shape[d] = s->shape[d];
        FKT_TRY(fkt_safetensors_want(r->file, &t, name, t && t->dtype == FKT_F16 ? FKT_F16 : FKT_F32, s->rank, shape));
        FKT_TRY(fkt_alloc(&p->array[i], (size_t)t->count));
        FKT_TRY(fkt_tensor_copy_f32(p->array[i], t));
    }
out:
    return st;
}

static fkt_status read_calibration(struct fkt_calibration *cal, uint32_t part, uint32_t dim, const struct reading *r)
{
    const struct fkt_tensor *t;
    uint64_t shape[2] = {dim, 0};
    char name[64];
    fkt_status st;
    snprintf(name, sizeof name, "calibration.%u.map", part);
    t = fkt_safetensors_find(r->file, name);
    if (!t || t->rank != 2 || t->shape[1] < 1 || t->shape[1] > DIM_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s' has no tensor '%s' of two dimensions", r->path, name);
    shape[1] = t->shape[1];
    FKT_TRY(fkt_safetensors_want(r->file, &t, name, FKT_F32, 2, shape));
    cal->raw_dim = (uint32_t)shape[1];
    cal->dim = dim;
    FKT_TRY(fkt_alloc(&cal->map, (size_t)t->count));
    FKT_TRY(fkt_tensor_copy_f32(cal->map, t));
    snprintf(name, sizeof name, "calibration.%u.centre", part);
    FKT_TRY(fkt_safetensors_want(r->file, &t, name, FKT_F32, 1, &shape[1]));
    FKT_TRY(fkt_alloc(&cal->centre, (size_t)t->count));
    FKT_TRY(fkt_tensor_copy_f32(cal->centre, t));
out:
    return st;
}

static fkt_status read_part(struct fkt_whole_part *p, uint32_t part, const json_t *from, const struct reading *r)
{
    fkt_status st;
    if (!get_text(p->name, sizeof p->name, from, "name") ||
        !get_text(p->identity, sizeof p->identity, from, "identity") ||
        !get_text(p->calibration_sha256, sizeof p->calibration_sha256, from, "calibration_sha256") ||
        !get_text(p->calibration.source, sizeof p->calibration.source, from, "calibration_source") ||
        !get_three(p->pixel_scale, json_object_get(from, "pixel_scale")) ||
        !get_three(p->pixel_shift, json_object_get(from, "pixel_shift")) ||
        !get_number(&p->latent_scale, from, "latent_scale") || !get_number(&p->latent_shift, from, "latent_shift"))
        return refuse(r, "networks");
    FKT_TRY(read_coordinates(&p->coordinates, json_object_get(from, "coordinates"), r));
    FKT_TRY(fkt_whole_net_read(&p->net, json_object_get(from, "network"), r->path));
    FKT_TRY(read_slots(p, part, r));
    FKT_TRY(read_calibration(&p->calibration, part, p->coordinates.dim, r));
out:
    return st;
}

static fkt_status read_networks(struct fkt_whole *m, const struct reading *r)
{
    const char *text = fkt_safetensors_meta(r->file, "networks");
    json_t *list = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const size_t n = json_array_size(list);
    fkt_status st = FKT_OK;
    if (n < 1 || n > FKT_HEAD_PARTS_MAX) st = refuse(r, "networks");
    for (size_t i = 0; st == FKT_OK && i < n; i++) {
        m->parts = (uint32_t)i + 1;
        st = read_part(&m->part[i], (uint32_t)i, json_array_get(list, i), r);
    }
    json_decref(list);
    return st;
}

static int number_of(double *out, const struct reading *r, const char *key)
{
    const char *text = fkt_safetensors_meta(r->file, key);
    char *end = NULL;
    *out = text ? strtod(text, &end) : 0;
    return text && *text && !*end && isfinite(*out);
}

/* What it claims. The head has read whether it is private, which a whole model must say. */
static fkt_status read_origin(struct fkt_whole *m, const struct reading *r)
{
    const char *data = fkt_safetensors_meta(r->file, "data"), *adjacency = fkt_safetensors_meta(r->file, "adjacency");
    struct fkt_model_origin *o = &m->origin;
    if (!fkt_safetensors_meta(r->file, "private") || !m->head->task[0]) return refuse(r, "private");
    if (!data || strlen(data) >= sizeof o->data || !fkt_plain_text(data)) return refuse(r, "data");
    o->is_private = !m->head->not_private[0];
    memcpy(o->data, data, strlen(data) + 1);
    memcpy(o->release_sha256, m->head->release, sizeof o->release_sha256);
    memcpy(m->not_private, m->head->not_private, sizeof m->not_private);
    if (!o->is_private) return FKT_OK;
    if (!number_of(&o->epsilon, r, "epsilon") || !(o->epsilon > 0 && o->epsilon < EPSILON_MAX))
        return refuse(r, "epsilon");
    if (!number_of(&o->delta, r, "delta") || !(o->delta > 0 && o->delta < 1)) return refuse(r, "delta");
    if (!adjacency || fkt_adjacency_parse(adjacency) < 0) return refuse(r, "adjacency");
    snprintf(o->adjacency, sizeof o->adjacency, "%s", adjacency);
    return FKT_OK;
}

static fkt_status read_images(struct fkt_whole *m, const struct reading *r)
{
    const char *filter = fkt_safetensors_meta(r->file, "filter"), *fit = fkt_safetensors_meta(r->file, "fit");
    const int found[2] = {filter ? fkt_filter_parse(filter) : -1, fit ? fkt_fit_parse(fit) : -1};
    double size;
    if (!number_of(&size, r, "size") || !(size >= 1 && size <= SIZE_MAX_PX) || size != floor(size))
        return refuse(r, "size");
    if (found[0] < 0) return refuse(r, "filter");
    if (found[1] < 0) return refuse(r, "fit");
    m->size = (uint32_t)size;
    m->filter = (enum fkt_filter)found[0];
    m->fit = (enum fkt_fit)found[1];
    return FKT_OK;
}

fkt_status fkt_whole_read(struct fkt_whole **out, const struct fkt_safetensors *file, const char *path)
{
    const struct reading r = {file, path};
    const char *format = fkt_safetensors_meta(file, "format");
    struct fkt_whole *m = NULL;
    fkt_status st;
    *out = NULL;
    if (!format || strcmp(format, FKT_WHOLE_FORMAT) != 0)
        return fkt_fail_hint(FKT_E_FORMAT, "give a file that was saved as a whole model",
                             "'%s' is not a whole model of format " FKT_WHOLE_FORMAT, path);
    FKT_TRY(fkt_alloc(&m, 1));
    FKT_TRY(read_images(m, &r));
    FKT_TRY(fkt_head_read(&m->head, file, path, "head."));
    if (!fkt_head_class(m->head, 0)[0]) FKT_TRY(refuse(&r, "classes"));
    FKT_TRY(read_origin(m, &r));
    FKT_TRY(read_networks(m, &r));
    FKT_TRY(fkt_fail_in(fkt_whole_settle(m), "'%s'", path));
    *out = m;
    m = NULL;
out:
    fkt_whole_free(m);
    return st;
}

fkt_status fkt_whole_load(struct fkt_whole **out, const char *path)
{
    struct fkt_safetensors *s = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_safetensors_open(&s, path));
    FKT_TRY(fkt_whole_read(out, s, path));
out:
    fkt_safetensors_free(s);
    return st;
}
