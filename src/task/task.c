/* SPDX-License-Identifier: Apache-2.0 */
/* task.c - the parameters that all sites agree on: classes, codec, calibration, coordinates, privacy, federation and
 * service, with one hash over all of them, and the operator's signature.
 *
 * Two sites that hold tasks with the same hash compute the same integers from the same pixels and claim the same
 * privacy. The hash is SHA-256 of the canonical JSON (json.c). A task read from a file is hostile: unknown keys,
 * missing keys, wrong types and numbers that the modules coordinates or privacy reject are errors that name the
 * field. */
#include "task/task.h"

#include "fedkt/advanced/moments.h"

#include "task/federation.h"
#include "task/service.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "codec/codec.h"
#include "crypto/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLASSES 65536U
#define MAX_TASK_BYTES (16U << 20)

#define WEAK "weak"

enum fkt_promise fkt_task_promise(const struct fkt_task *t, char why[FKT_PROMISE_WORDS])
{
    const struct fkt_federation *f = &t->federation;
    /* a task with a server always has a stated bound, whatever its value */
    const int bounded = f->sites && (f->records != FKT_RECORDS_UNKNOWN || t->service.address[0]);
    return fkt_privacy_promise(t->privacy.epsilon, t->privacy.delta,
                               bounded ? (double)f->records * f->sites * t->n_classes : 0, why);
}

json_t *fkt_task_json(const struct fkt_task *t)
{
    const struct fkt_coordinates *c = &t->coordinates;
    const struct fkt_privacy_spec *p = &t->privacy;
    json_t *classes = json_array(), *federation = NULL, *service = NULL;
    for (uint32_t k = 0; classes && k < t->n_classes; k++)
        if (json_array_append_new(classes, json_string(t->classes[k])) != 0) {
            json_decref(classes);
            return NULL;
        }
    if ((t->federation.sites && !(federation = fkt_federation_json(&t->federation))) ||
        (t->service.address[0] && !(service = fkt_service_json(&t->service, t->federation.sites)))) {
        json_decref(classes);
        json_decref(federation);
        return NULL;
    }
    return json_pack(
        "{s:s s:s s:o s:{s:i s:s s:s*} s:{s:s s:i s:s s:s} s:{s:s s:I s:s} s:{s:s s:i s:i s:i s:f s:f s:f s:f}"
        " s:{s:f s:f s:s s:s s:[fff] s:s s:s*} s:o* s:o*}",
        "schema", FKT_TASK_SCHEMA, "name", t->name, "classes", classes, "image", "size", (int)t->size, "filter",
        fkt_filter_name(t->filter), "fit", t->fit == FKT_FIT_CROP ? NULL : fkt_fit_name(t->fit), "codec", "name",
        t->codec, "dim", (int)t->codec_dim, "identity", t->codec_identity, "sha256", t->codec_sha256, "calibration",
        "source", t->calibration_source, "images", (json_int_t)t->calibration_images, "sha256", t->calibration_sha256,
        "coordinates", "kind", fkt_coordinate_name(c->kind), "dim", (int)c->dim, "length", (int)c->length, "rq",
        (int)c->rq, "radius", c->radius, "gamma", c->gamma, "log_mean", c->log_mean, "log_spread", c->log_spread,
        "privacy", "epsilon", p->epsilon, "delta", p->delta, "adjacency", fkt_adjacency_name(p->adjacency), "mechanism",
        fkt_mechanism_name(p->mechanism), "budget_split", p->split_count, p->part[0].split_sum, p->part[0].split_moment,
        "unit", "record", "promise", fkt_task_promise(t, NULL) == FKT_PROMISE_WEAK ? WEAK : NULL, "federation",
        federation, "service", service);
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

fkt_status fkt_task_check_calibration(const struct fkt_task *t, const struct fkt_calibration *cal)
{
    char hash[FKT_SHA256_HEX];
    fkt_status st;
    fkt_calibration_sha256(cal, hash);
    if (strcmp(hash, t->calibration_sha256) == 0 && strcmp(cal->source, t->calibration_source) == 0 &&
        cal->images == t->calibration_images)
        return FKT_OK;
    if (!cal->file)
        st = fkt_fail(FKT_E_MISMATCH, "the task was made with calibration %.12s from '%s', this is %.12s from '%s'",
                      t->calibration_sha256, t->calibration_source, hash, cal->source);
    else
        st = fkt_fail(FKT_E_MISMATCH,
                      "calibration '%s' is not the task's: it is %.12s from '%s', the task was made with %.12s from "
                      "'%s'",
                      cal->file, hash, cal->source, t->calibration_sha256, t->calibration_source);
    if (t->calibration_images == 0 && fkt_codec_has_calibration(t->codec))
        return fkt_hint_code(st, FKT_HINT_CALIBRATION_BUILT_IN,
                             "give no calibration: the task was made with the codec's own");
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

static fkt_status copy_classes(struct fkt_task *t, const char *const *classes, uint32_t n)
{
    fkt_status st = FKT_OK;
    if (n < 1 || n > MAX_CLASSES) return fkt_fail(FKT_E_ARG, "a task needs 1 to %u classes, not %u", MAX_CLASSES, n);
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
static fkt_status check_privacy(const struct fkt_task *t)
{
    struct fkt_privacy_plan plan;
    return fkt_privacy_plan(&plan, &t->privacy);
}

fkt_status fkt_task_make_into(struct fkt_task *out, const struct fkt_task_choices *c, const struct fkt_codec *codec,
                              const struct fkt_calibration *cal)
{
    struct fkt_task *t = out;
    struct fkt_privacy_part *part = &t->privacy.part[0];
    uint32_t rq = c->rq ? c->rq : FKT_RQ_DEFAULT;
    char why[FKT_PROMISE_WORDS];
    fkt_status st;
    memset(t, 0, sizeof *t);
    FKT_TRY(fkt_calibration_check(cal, codec));
    if (c->name && strlen(c->name) >= sizeof t->name)
        return fkt_fail(FKT_E_ARG, "the task's name is longer than %zu bytes", sizeof t->name - 1);
    if (c->name && *c->name && !fkt_plain_text(c->name))
        return fkt_fail(FKT_E_ARG, "the task's name is not plain UTF-8 text");
    if (*cal->source && !fkt_plain_text(cal->source))
        return fkt_fail_hint(FKT_E_ARG, "calibrate again, with another name for the image set",
                             "the calibration names an image set that is not plain UTF-8 text");
    snprintf(t->name, sizeof t->name, "%s", c->name ? c->name : "unnamed");
    FKT_TRY(copy_classes(t, c->classes, c->n_classes));
    t->size = fkt_codec_size(codec);
    t->filter = c->filter;
    t->fit = c->fit;
    snprintf(t->codec, sizeof t->codec, "%s", fkt_codec_name(codec));
    t->codec_dim = fkt_codec_dim(codec);
    snprintf(t->codec_identity, sizeof t->codec_identity, "%s", fkt_codec_identity(codec));
    fkt_hash_bytes_hex(t->codec_sha256, t->codec_identity, strlen(t->codec_identity));
    snprintf(t->calibration_source, sizeof t->calibration_source, "%s", cal->source);
    t->calibration_images = cal->images;
    fkt_calibration_sha256(cal, t->calibration_sha256);
    if (c->coordinates == FKT_COORDINATE_CLIP)
        FKT_TRY(fkt_coordinates_clip(&t->coordinates, cal->dim, rq, c->clip > 0 ? c->clip : cal->radius));
    else
        FKT_TRY(fkt_coordinates_gain_shape(&t->coordinates, cal->dim, rq, c->gamma > 0 ? c->gamma : FKT_GAMMA_DEFAULT,
                                           cal->log_mean, cal->log_spread));
    t->privacy = c->privacy;
    t->privacy.parts = 1;
    t->privacy.pooled = 0;
    if (c->privacy.split_count == 0 && part->split_sum == 0 && part->split_moment == 0) {
        t->privacy.split_count = FKT_BUDGET_SPLIT_COUNT;
        part->split_sum = FKT_BUDGET_SPLIT_SUM;
        part->split_moment = FKT_BUDGET_SPLIT_MOMENT;
    }
    part->radius = rq;
    FKT_TRY(check_privacy(t));
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

/* Text of a JSON value into a fixed field; text that is too long or holds a NUL is an error, since a cut name would
 * be another name; so are control characters, since these texts are displayed. */
static fkt_status take_text(char *out, size_t cap, const json_t *v, const char *what)
{
    size_t n = json_string_length(v);
    const char *s = json_string_value(v);
    if (!s || n + 1 > cap || strlen(s) != n || (n && !fkt_plain_text(s)))
        return fkt_fail(FKT_E_FORMAT, "task: %s is missing, too long or not plain text", what);
    memcpy(out, s, n + 1);
    return FKT_OK;
}

static fkt_status take_choice(int *out, int (*parse)(const char *), const json_t *v, const char *what)
{
    const char *word = json_string_value(v);
    *out = word ? parse(word) : -1;
    if (*out < 0) return fkt_fail(FKT_E_FORMAT, "task: unknown %s '%s'", what, word ? word : "(no text)");
    return FKT_OK;
}

static fkt_status take_hash(char out[FKT_SHA256_HEX], const json_t *v, const char *what)
{
    fkt_status st = take_text(out, FKT_SHA256_HEX, v, what);
    if (st == FKT_OK && (strlen(out) != 64 || strspn(out, "0123456789abcdef") != 64))
        st = fkt_fail(FKT_E_FORMAT, "task: %s is not 64 lower-case hexadecimal digits", what);
    return st;
}

static fkt_status take_classes(struct fkt_task *t, const json_t *list)
{
    const char **names = NULL;
    size_t n = json_array_size(list);
    fkt_status st = FKT_OK;
    if (n < 1 || n > MAX_CLASSES)
        return fkt_fail(FKT_E_FORMAT, "task: %zu classes; 1 to %u are possible", n, MAX_CLASSES);
    FKT_TRY(fkt_alloc(&names, n));
    for (size_t k = 0; k < n; k++) {
        const json_t *v = json_array_get(list, k);
        names[k] = json_string_value(v);
        if (!names[k] || strlen(names[k]) != json_string_length(v)) {
            st = fkt_fail(FKT_E_FORMAT, "task: class %zu is not plain text", k);
            goto out;
        }
    }
    FKT_TRY(copy_classes(t, names, (uint32_t)n));
out:
    fkt_free(names);
    return st;
}

/* The coordinates are rebuilt from the few numbers that define them; the derived numbers must agree. */
static fkt_status take_coordinates(struct fkt_task *t, const json_t *j)
{
    struct fkt_coordinates *c = &t->coordinates;
    json_error_t e;
    json_t *kind;
    json_int_t dim, length, rq;
    double radius, gamma, log_mean, log_spread;
    int which = 0;
    fkt_status st;
    if (json_unpack_ex((json_t *)(uintptr_t)j, &e, JSON_STRICT, "{s:o s:I s:I s:I s:F s:F s:F s:F}", "kind", &kind,
                       "dim", &dim, "length", &length, "rq", &rq, "radius", &radius, "gamma", &gamma, "log_mean",
                       &log_mean, "log_spread", &log_spread) != 0)
        return fkt_fail(FKT_E_FORMAT, "task: coordinates: %s", e.text);
    FKT_TRY(take_choice(&which, fkt_coordinate_parse, kind, "coordinates"));
    if (dim < 1 || dim > 65535 || rq < 1 || rq > 65535) return fkt_fail(FKT_E_FORMAT, "task: coordinates out of range");
    if (which == FKT_COORDINATE_CLIP) FKT_TRY(fkt_coordinates_clip(c, (uint32_t)dim, (uint32_t)rq, radius));
    else FKT_TRY(fkt_coordinates_gain_shape(c, (uint32_t)dim, (uint32_t)rq, gamma, log_mean, log_spread));
    if (c->length != length || !(c->radius == radius) || !(c->gamma == gamma) || !(c->log_mean == log_mean) ||
        !(c->log_spread == log_spread))
        return fkt_fail(FKT_E_FORMAT, "task: coordinates contradict each other (length %lld, radius %.17g)",
                        (long long)length, radius);
out:
    return st;
}

/* The mark follows from the other fields; it is stored so that a reader does not have to compute it. */
static fkt_status check_mark(const struct fkt_task *t, const json_t *privacy)
{
    const json_t *mark = json_object_get(privacy, "promise");
    const char *said = json_string_value(mark);
    char why[FKT_PROMISE_WORDS];
    const int weak = fkt_task_promise(t, why) == FKT_PROMISE_WEAK;
    if (mark && (!said || strcmp(said, WEAK) != 0))
        return fkt_fail(FKT_E_FORMAT, "task: privacy: 'promise' can only be '" WEAK "'");
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
    json_t *adjacency, *mechanism, *unit, *mark = NULL;
    int a = 0, m = 0;
    fkt_status st;
    if (json_unpack_ex((json_t *)(uintptr_t)j, &e, JSON_STRICT, "{s:F s:F s:o s:o s:[FFF!] s:o s?o}", "epsilon",
                       &p->epsilon, "delta", &p->delta, "adjacency", &adjacency, "mechanism", &mechanism,
                       "budget_split", &p->split_count, &p->part[0].split_sum, &p->part[0].split_moment, "unit", &unit,
                       "promise", &mark) != 0)
        return fkt_fail(FKT_E_FORMAT, "task: privacy: %s", e.text);
    FKT_TRY(take_choice(&a, fkt_adjacency_parse, adjacency, "adjacency"));
    FKT_TRY(take_choice(&m, fkt_mechanism_parse, mechanism, "mechanism"));
    if (!json_string_value(unit) || strcmp(json_string_value(unit), "record") != 0)
        return fkt_fail(FKT_E_FORMAT, "task: the unit of privacy must be 'record'");
    p->adjacency = (enum fkt_adjacency)a;
    p->mechanism = (enum fkt_mechanism)m;
    p->parts = 1;
    p->part[0].radius = t->coordinates.rq;
    FKT_TRY(check_privacy(t));
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

static fkt_status take_task(struct fkt_task *t, json_t *root)
{
    json_error_t e;
    json_t *schema, *name, *classes, *filter, *fit = NULL, *codec, *identity, *codec_sha, *source, *cal_sha,
                                              *coordinates, *privacy;
    json_t *federation = NULL, *service = NULL, *signature = NULL;
    json_int_t size, codec_dim, images;
    int f = 0;
    fkt_status st = check_schema(root);
    if (st != FKT_OK) return st;
    if (json_unpack_ex(root, &e, JSON_STRICT,
                       "{s:o s:o s:o s:{s:I s:o s?o!} s:{s:o s:I s:o s:o!} s:{s:o s:I s:o!} s:o s:o s?o s?o s?o}",
                       "schema", &schema, "name", &name, "classes", &classes, "image", "size", &size, "filter", &filter,
                       "fit", &fit, "codec", "name", &codec, "dim", &codec_dim, "identity", &identity, "sha256",
                       &codec_sha, "calibration", "source", &source, "images", &images, "sha256", &cal_sha,
                       "coordinates", &coordinates, "privacy", &privacy, "federation", &federation, "service", &service,
                       "signature", &signature) != 0)
        return fkt_fail(FKT_E_FORMAT, "task: %s", e.text);
    if (size < 1 || size > 65535 || codec_dim < 1 || codec_dim > 1 << 24 || images < 0)
        return fkt_fail(FKT_E_FORMAT, "task: image size, codec dim or image count out of range");
    FKT_TRY(take_text(t->name, sizeof t->name, name, "name"));
    FKT_TRY(take_classes(t, classes));
    FKT_TRY(take_choice(&f, fkt_filter_parse, filter, "filter"));
    t->filter = (enum fkt_filter)f;
    if (fit) FKT_TRY(take_choice(&f, fkt_fit_parse, fit, "fit"));
    t->fit = fit ? (enum fkt_fit)f : FKT_FIT_CROP;
    if (fit && t->fit == FKT_FIT_CROP) FKT_TRY(fkt_fail(FKT_E_FORMAT, "task: fit 'crop' is not written out"));
    t->size = (uint32_t)size;
    t->codec_dim = (uint32_t)codec_dim;
    t->calibration_images = (uint64_t)images;
    FKT_TRY(take_text(t->codec, sizeof t->codec, codec, "codec name"));
    FKT_TRY(take_text(t->codec_identity, sizeof t->codec_identity, identity, "codec identity"));
    FKT_TRY(take_hash(t->codec_sha256, codec_sha, "codec sha256"));
    FKT_TRY(take_text(t->calibration_source, sizeof t->calibration_source, source, "calibration source"));
    FKT_TRY(take_hash(t->calibration_sha256, cal_sha, "calibration sha256"));
    FKT_TRY(take_coordinates(t, coordinates));
    FKT_TRY(take_privacy(t, privacy));
    if (federation) FKT_TRY(fkt_fail_in(fkt_federation_take(t, federation), "task"));
    FKT_TRY(check_mark(t, privacy));
    if (service) FKT_TRY(fkt_fail_in(fkt_service_take(t, service), "task"));
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
    st = copy_classes(out, (const char *const *)t->classes, t->n_classes);
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
