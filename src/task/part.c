/* SPDX-License-Identifier: Apache-2.0 */
/* part.c - the parts of a task: made from networks and calibrations, written, read, and laid out.
 *
 *   codec alone   "codec", "calibration", "coordinates" at the top of the JSON: tasks of every version have these keys
 *   guide         "guide": {name, dim, identity, sha256, calibration, coordinates}; beside those, or instead of them
 *   "moments"     {"joined": bool, "pooled": bool}, absent where both are false
 *
 * So a task with a codec alone has the bytes and the hash that it always had. A new kind of part is a new key, which an
 * older version refuses. Layout and radii are derived from the parts and are not stored. Source: docs/method.md 1.8. */
#include "task/part.h"

#include "fedkt/advanced/moments.h"

#include "codec/codec.h"
#include "crypto/hash.h"
#include "base/text.h"

#include <string.h>

/* ---- from networks ---- */

static fkt_status make_part(struct fkt_task_part *out, const struct fkt_part_choice *c)
{
    const struct fkt_calibration *cal = c->calibration;
    const uint32_t rq = c->rq ? c->rq : FKT_RQ_DEFAULT;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(fkt_calibration_check(cal, c->codec));
    if (*cal->source && !fkt_plain_text(cal->source))
        return fkt_fail_hint(FKT_E_ARG, "calibrate again, with another name for the image set",
                             "the calibration names an image set that is not plain UTF-8 text");
    out->kind = fkt_codec_decodes(c->codec) ? FKT_PART_CODEC : FKT_PART_GUIDE;
    snprintf(out->name, sizeof out->name, "%s", fkt_codec_name(c->codec));
    out->dim = fkt_codec_dim(c->codec);
    snprintf(out->identity, sizeof out->identity, "%s", fkt_codec_identity(c->codec));
    fkt_hash_bytes_hex(out->sha256, out->identity, strlen(out->identity));
    snprintf(out->calibration_source, sizeof out->calibration_source, "%s", cal->source);
    out->calibration_images = cal->images;
    fkt_calibration_sha256(cal, out->calibration_sha256);
    if (c->coordinates == FKT_COORDINATE_CLIP)
        FKT_TRY(fkt_coordinates_clip(&out->coordinates, cal->dim, rq, c->clip > 0 ? c->clip : cal->radius));
    else
        FKT_TRY(fkt_coordinates_gain_shape(&out->coordinates, cal->dim, rq, c->gamma > 0 ? c->gamma : FKT_GAMMA_DEFAULT,
                                           cal->log_mean, cal->log_spread));
out:
    return st;
}

/* Layout and radii follow from the parts. */
static fkt_status lay_out(struct fkt_task *t, int pooled)
{
    struct fkt_moments_layout *l = &t->layout;
    *l = (struct fkt_moments_layout){.parts = t->joined ? 1 : t->parts, .pooled = pooled};
    if (t->joined && t->parts < 2) return fkt_fail(FKT_E_ARG, "a task with one part has nothing to join");
    for (uint32_t p = 0; p < t->parts; p++) {
        const struct fkt_coordinates *c = &t->part[p].coordinates;
        const uint32_t at = t->joined ? 0 : p;
        if (t->joined && c->rq != t->part[0].coordinates.rq)
            return fkt_fail(FKT_E_ARG, "joined parts have one Rq, not %u and %u", t->part[0].coordinates.rq, c->rq);
        l->length[at] += c->length;
        l->rq[at] = c->rq;
    }
    t->privacy.parts = l->parts;
    t->privacy.pooled = pooled;
    for (uint32_t p = 0; p < l->parts; p++) t->privacy.part[p].radius = l->rq[p];
    if (fkt_layout_length(l) > FKT_LENGTH_MAX)
        return fkt_fail(FKT_E_ARG, "a record vector of %zu numbers is too long: at most %u, all parts together",
                        fkt_layout_length(l), FKT_LENGTH_MAX);
    if (fkt_layout_numbers(l, t->n_classes) == 0)
        return fkt_fail(FKT_E_ARG, "%u classes with %zu numbers a record are too many", t->n_classes,
                        fkt_layout_length(l));
    return FKT_OK;
}

/* A split is whole: given for the count and for every part, or nowhere. */
static void split_budget(struct fkt_task *t, const struct fkt_task_choices *c, const struct fkt_part_choice *parts)
{
    struct fkt_privacy_spec *s = &t->privacy;
    int given = c->privacy.split_count != 0;
    for (uint32_t p = 0; p < t->parts; p++) given |= parts[p].split_sum != 0 || parts[p].split_moment != 0;
    s->split_count = given ? c->privacy.split_count : FKT_BUDGET_SPLIT_COUNT;
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) s->part[p].split_sum = s->part[p].split_moment = 0;
    for (uint32_t p = 0; p < t->parts; p++) {
        struct fkt_privacy_part *to = &s->part[t->joined ? 0 : p];
        const int guide = t->part[p].kind == FKT_PART_GUIDE;
        if (given) {
            to->split_sum += parts[p].split_sum;
            to->split_moment += parts[p].split_moment;
        } else if (t->parts == 1) {
            to->split_sum = FKT_BUDGET_SPLIT_SUM;
            to->split_moment = FKT_BUDGET_SPLIT_MOMENT;
        } else {
            to->split_sum += guide ? FKT_BUDGET_SPLIT_GUIDE_SUM : FKT_BUDGET_SPLIT_CODEC_SUM;
            to->split_moment += guide ? FKT_BUDGET_SPLIT_GUIDE_MOMENT : FKT_BUDGET_SPLIT_CODEC_MOMENT;
        }
    }
}

fkt_status fkt_parts_make(struct fkt_task *t, const struct fkt_task_choices *c, const struct fkt_part_choice *parts,
                          uint32_t n)
{
    fkt_status st = FKT_OK;
    if (n < 1 || n > FKT_PARTS_MAX) return fkt_fail(FKT_E_ARG, "a task has a codec, a guide, or both, not %u parts", n);
    for (uint32_t p = 0; p < n; p++) {
        FKT_TRY(make_part(&t->part[p], &parts[p]));
        if (p && t->part[p].kind <= t->part[p - 1].kind)
            return fkt_fail(FKT_E_ARG,
                            "a task has at most one codec and one guide, in this order: '%s' cannot follow '%s'",
                            t->part[p].name, t->part[p - 1].name);
        if (p && fkt_codec_size(parts[p].codec) != fkt_codec_size(parts[0].codec))
            return fkt_fail(FKT_E_MISMATCH, "'%s' takes images of %u pixels, and '%s' of %u", t->part[0].name,
                            fkt_codec_size(parts[0].codec), t->part[p].name, fkt_codec_size(parts[p].codec));
    }
    t->parts = n;
    t->size = fkt_codec_size(parts[0].codec);
    t->joined = c->joined;
    t->privacy = c->privacy;
    memset(t->privacy.part, 0, sizeof t->privacy.part);
    FKT_TRY(lay_out(t, c->pooled != 0));
    split_budget(t, c, parts);
out:
    return st;
}

/* ---- to JSON ---- */

static json_t *network_json(const struct fkt_task_part *p)
{
    return json_pack("{s:s s:i s:s s:s}", "name", p->name, "dim", (int)p->dim, "identity", p->identity, "sha256",
                     p->sha256);
}

static json_t *calibration_json(const struct fkt_task_part *p)
{
    return json_pack("{s:s s:I s:s}", "source", p->calibration_source, "images", (json_int_t)p->calibration_images,
                     "sha256", p->calibration_sha256);
}

static json_t *coordinates_json(const struct fkt_coordinates *c)
{
    return json_pack("{s:s s:i s:i s:i s:f s:f s:f s:f}", "kind", fkt_coordinate_name(c->kind), "dim", (int)c->dim,
                     "length", (int)c->length, "rq", (int)c->rq, "radius", c->radius, "gamma", c->gamma, "log_mean",
                     c->log_mean, "log_spread", c->log_spread);
}

int fkt_parts_json(json_t *task, const struct fkt_task *t)
{
    int bad = 0;
    for (uint32_t p = 0; p < t->parts; p++) {
        const struct fkt_task_part *part = &t->part[p];
        json_t *network = network_json(part), *to = part->kind == FKT_PART_GUIDE ? network : task;
        bad |= json_object_set_new(to, "calibration", calibration_json(part));
        bad |= json_object_set_new(to, "coordinates", coordinates_json(&part->coordinates));
        bad |= json_object_set_new(task, fkt_part_name(part->kind), network); /* last: it may free `network` */
    }
    return bad || fkt_parts_moments_json(task, t) ? -1 : 0;
}

int fkt_parts_moments_json(json_t *to, const struct fkt_task *t)
{
    if (!t->joined && !t->layout.pooled) return 0;
    return json_object_set_new(to, "moments", json_pack("{s:b s:b}", "joined", t->joined, "pooled", t->layout.pooled));
}

json_t *fkt_split_json(const struct fkt_privacy_spec *p)
{
    json_t *list = json_array();
    int bad = !list || json_array_append_new(list, json_real(p->split_count));
    for (uint32_t i = 0; i < p->parts; i++) {
        bad |= json_array_append_new(list, json_real(p->part[i].split_sum));
        bad |= json_array_append_new(list, json_real(p->part[i].split_moment));
    }
    if (!bad) return list;
    json_decref(list);
    return NULL;
}

/* ---- from JSON ---- */

static json_t *open_json(const json_t *j) { return (json_t *)(uintptr_t)j; } /* json_unpack changes nothing */

/* The coordinates are rebuilt from the few numbers that define them; the derived numbers must agree. */
static fkt_status take_coordinates(struct fkt_coordinates *c, const json_t *j, const char *kind_of_part)
{
    json_error_t e;
    json_t *kind;
    json_int_t dim, length, rq;
    double radius, gamma, log_mean, log_spread;
    int which = 0;
    fkt_status st;
    if (json_unpack_ex(open_json(j), &e, JSON_STRICT, "{s:o s:I s:I s:I s:F s:F s:F s:F}", "kind", &kind, "dim", &dim,
                       "length", &length, "rq", &rq, "radius", &radius, "gamma", &gamma, "log_mean", &log_mean,
                       "log_spread", &log_spread) != 0)
        return fkt_fail(FKT_E_FORMAT, "task: coordinates of the %s: %s", kind_of_part, e.text);
    FKT_TRY(fkt_take_choice(&which, fkt_coordinate_parse, kind, "coordinates"));
    if (dim < 1 || dim > FKT_LENGTH_MAX || rq < 1 || rq > 65535)
        return fkt_fail(FKT_E_FORMAT, "task: coordinates of the %s are out of range", kind_of_part);
    if (which == FKT_COORDINATE_CLIP) FKT_TRY(fkt_coordinates_clip(c, (uint32_t)dim, (uint32_t)rq, radius));
    else FKT_TRY(fkt_coordinates_gain_shape(c, (uint32_t)dim, (uint32_t)rq, gamma, log_mean, log_spread));
    if (c->length != length || !(c->radius == radius) || !(c->gamma == gamma) || !(c->log_mean == log_mean) ||
        !(c->log_spread == log_spread))
        return fkt_fail(FKT_E_FORMAT, "task: coordinates of the %s contradict each other (length %lld, radius %.17g)",
                        kind_of_part, (long long)length, radius);
out:
    return st;
}

/* A guide's object holds its calibration and coordinates too. */
static fkt_status take_network(struct fkt_task_part *p, const json_t *network, const json_t *calibration)
{
    const char *kind = fkt_part_name(p->kind);
    json_t *name, *identity, *hash, *source, *cal_hash, *skip = NULL;
    json_int_t dim, images;
    json_error_t e;
    char what[48];
    fkt_status st;
    if (json_unpack_ex(open_json(network), &e, JSON_STRICT,
                       p->kind == FKT_PART_GUIDE ? "{s:o s:I s:o s:o s:o s:o}" : "{s:o s:I s:o s:o}", "name", &name,
                       "dim", &dim, "identity", &identity, "sha256", &hash, "calibration", &skip, "coordinates",
                       &skip) != 0)
        return fkt_fail(FKT_E_FORMAT, "task: %s: %s", kind, e.text);
    if (json_unpack_ex(open_json(calibration), &e, JSON_STRICT, "{s:o s:I s:o}", "source", &source, "images", &images,
                       "sha256", &cal_hash) != 0)
        return fkt_fail(FKT_E_FORMAT, "task: calibration of the %s: %s", kind, e.text);
    if (dim < 1 || dim > 1 << 24 || images < 0)
        return fkt_fail(FKT_E_FORMAT, "task: %s dim or image count out of range", kind);
    p->dim = (uint32_t)dim;
    p->calibration_images = (uint64_t)images;
#define NAMED(words) (snprintf(what, sizeof what, "%s %s", kind, words), what)
    FKT_TRY(fkt_take_text(p->name, sizeof p->name, name, NAMED("name")));
    FKT_TRY(fkt_take_text(p->identity, sizeof p->identity, identity, NAMED("identity")));
    FKT_TRY(fkt_take_hash(p->sha256, hash, NAMED("sha256")));
    FKT_TRY(fkt_take_text(p->calibration_source, sizeof p->calibration_source, source, NAMED("calibration source")));
    FKT_TRY(fkt_take_hash(p->calibration_sha256, cal_hash, NAMED("calibration sha256")));
#undef NAMED
    if (fkt_codec_is_path(p->name)) /* opening it would read a file that the task's author chose */
        st = fkt_fail(FKT_E_FORMAT, "task: %s name is a path", kind);
out:
    return st;
}

static fkt_status take_part(struct fkt_task *t, enum fkt_part_kind kind, const json_t *network,
                            const json_t *calibration, const json_t *coordinates)
{
    struct fkt_task_part *p = &t->part[t->parts];
    fkt_status st;
    p->kind = kind;
    FKT_TRY(take_network(p, network, calibration));
    FKT_TRY(take_coordinates(&p->coordinates, coordinates, fkt_part_name(kind)));
    t->parts++;
out:
    return st;
}

fkt_status fkt_parts_take(struct fkt_task *t, const struct fkt_parts_read *from)
{
    int pooled = 0;
    json_error_t e;
    fkt_status st = FKT_OK;
    if (!from->codec != !from->calibration || !from->codec != !from->coordinates)
        return fkt_fail(FKT_E_FORMAT, "task: 'codec', 'calibration' and 'coordinates' must all be there, or none");
    if (!from->codec && !from->guide) return fkt_fail(FKT_E_FORMAT, "task: it has neither a codec nor a guide");
    if (from->codec) FKT_TRY(take_part(t, FKT_PART_CODEC, from->codec, from->calibration, from->coordinates));
    if (from->guide)
        FKT_TRY(take_part(t, FKT_PART_GUIDE, from->guide, json_object_get(from->guide, "calibration"),
                          json_object_get(from->guide, "coordinates")));
    if (from->moments &&
        json_unpack_ex(open_json(from->moments), &e, JSON_STRICT, "{s:b s:b}", "joined", &t->joined, "pooled", &pooled))
        return fkt_fail(FKT_E_FORMAT, "task: moments: %s", e.text);
    if (from->moments && !t->joined && !pooled)
        return fkt_fail(FKT_E_FORMAT, "task: moments that are neither joined nor pooled are not written out");
    FKT_TRY(lay_out(t, pooled));
out:
    return st;
}

fkt_status fkt_task_check_known(const struct fkt_task *t)
{
    for (uint32_t p = 0; p < t->parts; p++)
        if (!fkt_codec_known(t->part[p].name, t->part[p].kind == FKT_PART_GUIDE))
            return fkt_fail_hint(FKT_E_MISMATCH, "use the version of fedkt that the task was made with, or a later one",
                                 "the task wants %s '%s', which this version does not have",
                                 fkt_part_name(t->part[p].kind), t->part[p].name);
    return FKT_OK;
}

fkt_status fkt_split_take(struct fkt_privacy_spec *p, const json_t *list)
{
    const size_t want = 1 + 2 * (size_t)p->parts;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_number(json_array_get(list, i)))
            return fkt_fail(FKT_E_FORMAT, "task: privacy: number %zu of 'budget_split' is not a number", i + 1);
    if (json_array_size(list) != want)
        return fkt_fail(FKT_E_FORMAT, "task: privacy: 'budget_split' has %zu numbers, and its parts need %zu",
                        json_array_size(list), want);
    p->split_count = json_number_value(json_array_get(list, 0));
    for (uint32_t i = 0; i < p->parts; i++) {
        p->part[i].split_sum = json_number_value(json_array_get(list, 1 + 2 * i));
        p->part[i].split_moment = json_number_value(json_array_get(list, 2 + 2 * i));
    }
    return FKT_OK;
}
