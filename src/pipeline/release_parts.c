/* SPDX-License-Identifier: Apache-2.0 */
/* release_parts.c - the calibrations in a release file, one for each part of its task.
 *
 *   codec   tensors centre (D), map (d, D), unmap (D, d), and metadata "calibration"
 *   guide   the same with ".guide" after each name
 *
 * The names follow from the kind, so that two parts cannot be exchanged unseen: the hash of each calibration is
 * compared with the one that the task names for that part. A file is hostile. */
#include "pipeline/release.h"

#include "base/alloc.h"
#include "tensor/safetensors.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 32 };

/* "map", or "map.guide" */
static const char *named(char out[NAME], const char *what, enum fkt_part_kind kind)
{
    if (kind == FKT_PART_CODEC) snprintf(out, NAME, "%s", what);
    else snprintf(out, NAME, "%s.%s", what, fkt_part_name(kind));
    return out;
}

static fkt_status copy_floats(float **out, const float *in, size_t n)
{
    fkt_status st = fkt_alloc(out, n);
    if (st == FKT_OK) memcpy(*out, in, n * sizeof *in);
    return st;
}

fkt_status fkt_calibration_copy(struct fkt_calibration *out, const struct fkt_calibration *cal)
{
    size_t D = cal->raw_dim, d = cal->dim;
    fkt_status st;
    *out = *cal;
    out->centre = out->map = out->unmap = NULL;
    out->digests = NULL;
    out->file = NULL;
    out->n_digests = 0;
    FKT_TRY(copy_floats(&out->centre, cal->centre, D));
    FKT_TRY(copy_floats(&out->map, cal->map, d * D));
    FKT_TRY(copy_floats(&out->unmap, cal->unmap, d * D));
out:
    if (st != FKT_OK) fkt_calibration_clear(out);
    return st;
}

static json_t *calibration_json(const struct fkt_calibration *c)
{
    return json_pack("{s:i s:i s:f s:f s:f s:I s:s s:s s:s*}", "raw_dim", (int)c->raw_dim, "dim", (int)c->dim,
                     "log_mean", c->log_mean, "log_spread", c->log_spread, "radius", c->radius, "images",
                     (json_int_t)c->images, "source", c->source, "codec", c->codec, "image_digests_sha256",
                     *c->digests_sha256 ? c->digests_sha256 : NULL);
}

static fkt_status add_calibration(struct fkt_st_writer *w, const struct fkt_calibration *c, enum fkt_part_kind kind)
{
    const uint64_t D = c->raw_dim, d = c->dim;
    char name[NAME];
    char *text = NULL;
    fkt_status st;
    FKT_TRY(fkt_json_text(&text, calibration_json(c), 0));
    FKT_TRY(fkt_st_writer_meta(w, named(name, "calibration", kind), text));
    FKT_TRY(fkt_st_writer_add(w, named(name, "centre", kind), FKT_F32, 1, &D, c->centre));
    FKT_TRY(fkt_st_writer_add(w, named(name, "map", kind), FKT_F32, 2, (uint64_t[]){d, D}, c->map));
    FKT_TRY(fkt_st_writer_add(w, named(name, "unmap", kind), FKT_F32, 2, (uint64_t[]){D, d}, c->unmap));
out:
    fkt_free(text);
    return st;
}

fkt_status fkt_release_add_calibrations(struct fkt_st_writer *w, const struct fkt_release *r)
{
    fkt_status st = FKT_OK;
    for (uint32_t p = 0; p < r->task.parts && st == FKT_OK; p++)
        st = add_calibration(w, &r->calibration[p], r->task.part[p].kind);
    return st;
}

static fkt_status load_tensors(struct fkt_calibration *c, const struct fkt_safetensors *file, enum fkt_part_kind kind)
{
    const uint64_t D = c->raw_dim, d = c->dim;
    const struct fkt_tensor *t;
    char name[NAME];
    fkt_status st;
    FKT_TRY(fkt_safetensors_want(file, &t, named(name, "centre", kind), FKT_F32, 1, (uint64_t[]){D}));
    FKT_TRY(fkt_alloc(&c->centre, (size_t)D));
    FKT_TRY(fkt_tensor_copy_f32(c->centre, t));
    FKT_TRY(fkt_safetensors_want(file, &t, named(name, "map", kind), FKT_F32, 2, (uint64_t[]){d, D}));
    FKT_TRY(fkt_alloc(&c->map, (size_t)(d * D)));
    FKT_TRY(fkt_tensor_copy_f32(c->map, t));
    FKT_TRY(fkt_safetensors_want(file, &t, named(name, "unmap", kind), FKT_F32, 2, (uint64_t[]){D, d}));
    FKT_TRY(fkt_alloc(&c->unmap, (size_t)(d * D)));
    FKT_TRY(fkt_tensor_copy_f32(c->unmap, t));
out:
    return st;
}

static fkt_status load_calibration(struct fkt_calibration *c, const struct fkt_safetensors *file,
                                   enum fkt_part_kind kind)
{
    char name[NAME];
    const char *text = fkt_safetensors_meta(file, named(name, "calibration", kind));
    const char *source, *codec, *digests = "";
    json_int_t D, d, images;
    json_error_t e;
    json_t *j;
    fkt_status st = FKT_OK;
    if (!text) return fkt_fail(FKT_E_FORMAT, "the calibration of its %s is missing", fkt_part_name(kind));
    j = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    if (!j || json_unpack_ex(j, &e, JSON_STRICT, "{s:I s:I s:F s:F s:F s:I s:s s:s s?s}", "raw_dim", &D, "dim", &d,
                             "log_mean", &c->log_mean, "log_spread", &c->log_spread, "radius", &c->radius, "images",
                             &images, "source", &source, "codec", &codec, "image_digests_sha256", &digests) != 0) {
        st = fkt_fail(FKT_E_FORMAT, "%s: %s", name, e.text);
        goto out;
    }
    if (D < 1 || D > 1 << 24 || d < 1 || d > D || images < 0 || strlen(source) >= sizeof c->source ||
        strlen(codec) >= sizeof c->codec || strlen(digests) >= sizeof c->digests_sha256) {
        st = fkt_fail(FKT_E_FORMAT, "%s: a number or text is out of range", name);
        goto out;
    }
    c->raw_dim = (uint32_t)D;
    c->dim = (uint32_t)d;
    c->images = (uint64_t)images;
    snprintf(c->source, sizeof c->source, "%s", source);
    snprintf(c->codec, sizeof c->codec, "%s", codec);
    snprintf(c->digests_sha256, sizeof c->digests_sha256, "%s", digests);
    FKT_TRY(load_tensors(c, file, kind));
out:
    json_decref(j);
    return st;
}

fkt_status fkt_release_load_calibrations(struct fkt_release *r, const struct fkt_safetensors *file)
{
    fkt_status st = FKT_OK;
    for (uint32_t p = 0; p < r->task.parts; p++) {
        const struct fkt_task_part *part = &r->task.part[p];
        FKT_TRY(load_calibration(&r->calibration[p], file, part->kind));
        if (fkt_task_check_calibration(&r->task, p, &r->calibration[p]) != FKT_OK) {
            st = fkt_fail(FKT_E_MISMATCH, "the calibration inside is not the one that its task names%s",
                          part->kind == FKT_PART_GUIDE ? " for the guide" : "");
            goto out;
        }
        if (part->coordinates.dim != r->calibration[p].dim || part->dim != r->calibration[p].raw_dim) {
            st = fkt_fail(FKT_E_MISMATCH, "the calibration of its %s has %u of %u numbers, and the task %u of %u",
                          fkt_part_name(part->kind), r->calibration[p].dim, r->calibration[p].raw_dim,
                          part->coordinates.dim, part->dim);
            goto out;
        }
    }
out:
    return st;
}
