/* SPDX-License-Identifier: Apache-2.0 */
/* provenance.c - may a model trained on these images be called private?
 *
 *   drawn from a release     derived from the release (pipeline/certificate.c); nothing is trusted
 *   folder of fkt_generate   certificate.json says what is promised; images.json says of which images
 *   anything else            not private
 *
 * A certificate beside images says nothing about them: real images may have been added. So `generate`
 * writes a fingerprint of its images and their classes (fingerprint.c) and the hash of the certificate
 * into images.json, and the promise is kept only when the given images are exactly those,
 * unchanged. That detects mistakes; it does not detect somebody who replaces images, note and certificate together, so
 * the text says "its certificate says".
 *
 * Noise from a known seed does not make a model private, nor does a weak promise (privacy/promise.c), of one release or
 * of a sum of several. A simulation's release does: its noise is real. But it has no ledger, so other releases of the
 * same records are unknown, and the text says so.
 *
 * Two promises add up (basic composition, Dwork and Roth 2014, theorem 3.16) unless they are one and the same release:
 * their records may be the same ones. Promises with different adjacencies are about
 * different secrets and have no sum: a model of both is not private. A sum of several has no release hash, so that it
 * cannot be mistaken for one release later. Paths are cut to their last name, because model files are shared. */
#include "pipeline/provenance.h"

#include "fedkt/generate.h"

#include "pipeline/fingerprint.h"
#include "pipeline/release.h"
#include "task/task.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "crypto/hash.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, NAME_ROOM = 80, WORDS_ROOM = 240 };
#define SCHEMA "fedkt.images/1"
#define USUAL fkt_adjacency_name(FKT_ADJACENCY_ADD_REMOVE)
#define UNLIKE "NOT private: promises about different kinds of neighbours do not add up: "
#define WEAK "NOT private: the promises add up to a weak one: "
#define SIMULATED "; made by a simulation, which keeps no ledger: other releases of the same records are not counted"

static json_t *guided_json(const struct fkt_guided_facts *f)
{
    if (!f || f->kind == FKT_GUIDED_NONE) return NULL;
    return f->kind == FKT_GUIDED_TWIN ? json_pack("{s:s s:s}", "way", "twin", "twin_sha256", f->twin_sha256)
                                      : json_pack("{s:s s:i s:f s:f}", "way", "gradient", "steps", (int)f->steps, "rho",
                                                  f->rho, "rate", f->rate);
}

fkt_status fkt_origin_note(const char *folder, const struct fkt_release *r, const char *certificate, uint64_t images,
                           const char *fingerprint, const struct fkt_guided_facts *guided)
{
    char hash[FKT_SHA256_HEX], *path = NULL;
    json_t *classes = json_array(); /* a failure shows in its length, or makes json_pack fail */
    fkt_status st;
    fkt_hash_bytes_hex(hash, certificate, strlen(certificate));
    for (uint32_t k = 0; k < r->task.n_classes; k++)
        (void)json_array_append_new(classes, json_string(r->task.classes[k]));
    if (json_array_size(classes) != r->task.n_classes) {
        json_decref(classes);
        return fkt_fail(FKT_E_NOMEM, "out of memory for the names of classes");
    }
    st = fkt_path_join(&path, folder, "images.json");
    if (st != FKT_OK) json_decref(classes);
    else
        st = fkt_json_save(json_pack("{s:s s:s s:s s:I s:s s:o s:o*}", "schema", SCHEMA, "release_sha256", r->sha256,
                                     "certificate_sha256", hash, "images", (json_int_t)images, "images_sha256",
                                     fingerprint, "classes", classes, "guided", guided_json(guided)),
                           path, 0);
    fkt_free(path);
    return st;
}

/* ---- words ---- */

__attribute__((format(printf, 2, 3))) static void say(struct fkt_model_origin *o, const char *fmt, ...)
{
    char line[2 * sizeof o->data];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (char *s = line; *s; s++) /* a line that is shared: control characters are removed */
        for (size_t n = fkt_control_length(s); n; n = fkt_control_length(s)) {
            memmove(s + 1, s + n, strlen(s + n) + 1);
            *s = '?';
        }
    fkt_text_cut(o->data, sizeof o->data, line);
}

/* The last name of a path, slashes at its end dropped. */
static void last_name(char out[NAME_ROOM], const char *path)
{
    size_t n = strlen(path), from;
    char name[NAME_ROOM];
    while (n > 1 && path[n - 1] == '/') n--;
    for (from = n; from > 0 && path[from - 1] != '/'; from--) continue;
    snprintf(name, sizeof name, "%.*s", (int)(n - from < sizeof name ? n - from : sizeof name), path + from);
    fkt_text_cut(out, NAME_ROOM, name);
}

static int one_release(const struct fkt_model_origin *a, const struct fkt_model_origin *b)
{
    return a->is_private && b->is_private && a->release_sha256[0] && !strcmp(a->release_sha256, b->release_sha256) &&
           a->epsilon == b->epsilon && a->delta == b->delta && !strcmp(a->adjacency, b->adjacency);
}

/* Which release stands behind both; "" where it is not one. */
static void join_names(struct fkt_model_origin *o, const struct fkt_model_origin *more)
{
    const int several = o->is_private && !o->release_sha256[0];
    if (several) return;
    if (!o->release_sha256[0]) memcpy(o->release_sha256, more->release_sha256, sizeof o->release_sha256);
    else if (strcmp(o->release_sha256, more->release_sha256) != 0 && (more->release_sha256[0] || more->is_private))
        o->release_sha256[0] = '\0';
}

/* Public images that both have seen stand there once. */
static void join_public(struct fkt_model_origin *o, const char *more)
{
    char before[sizeof o->public_images], both[2 * sizeof o->public_images];
    if (!*more || strstr(o->public_images, more)) return;
    memcpy(before, o->public_images, sizeof before);
    snprintf(both, sizeof both, "%s%s%s", before, before[0] ? "; " : "", more);
    fkt_text_cut(o->public_images, sizeof o->public_images, both);
}

void fkt_origin_add_public(struct fkt_model_origin *o, const char *name, size_t n, const char *sha256)
{
    struct fkt_model_origin plain = {0}; /* its `data` is only a line without control characters */
    say(&plain, "%zu images of '%s', sha256 %s", n, name, sha256);
    join_public(o, plain.data);
}

void fkt_model_origin_add(struct fkt_model_origin *o, const char *how, const struct fkt_model_origin *more)
{
    const int both = o->is_private && more->is_private, alike = !strcmp(o->adjacency, more->adjacency);
    const int one = one_release(o, more);
    const int weak = fkt_privacy_promise(o->epsilon + more->epsilon, o->delta + more->delta, 0, NULL);
    char before[sizeof o->data];
    join_public(o, more->public_images);
    snprintf(before, sizeof before, "%s", o->data);
    say(o, "%s%s%s%s%s",
        both && !alike         ? UNLIKE
        : both && weak && !one ? WEAK
                               : "",
        before, before[0] ? "; " : "", how, more->data[0] ? more->data : "a model of unknown origin");
    if (one) return;
    join_names(o, more);
    o->is_private = both && alike && !weak;
    o->epsilon = o->is_private ? o->epsilon + more->epsilon : 0;
    o->delta = o->is_private ? o->delta + more->delta : 0;
    if (!o->is_private) o->adjacency[0] = '\0';
}

static void note_fit(struct fkt_model_origin *o, enum fkt_fit fit)
{
    snprintf(o->fit, sizeof o->fit, "%s", fit == FKT_FIT_CROP ? "" : fkt_fit_name(fit));
}

/* ---- a release ---- */

struct promise {
    int seeded, weak, simulated;
    double epsilon, delta, composed;
    const char *adjacency;
};

/* NULL: it is one; else why not. */
static const char *objection(const struct promise *p)
{
    if (!(p->epsilon > 0 && isfinite(p->epsilon))) return "no noise was added";
    if (p->seeded) return "the noise came from a known seed";
    if (!(p->delta > 0 && p->delta < 1)) return "no delta is promised";
    if (p->weak) return "the promise is weak";
    return NULL;
}

static void words_of_promise(char *out, size_t cap, const struct promise *p, const char *says)
{
    const char *why = objection(p);
    char composed[64] = "";
    if (p->composed > p->epsilon * (1 + 1e-9))
        snprintf(composed, sizeof composed, "; %.4g with other releases of the same dataset", p->composed);
    if (why && p->weak && !p->seeded)
        snprintf(out, cap, "NOT private: %s, epsilon %g, delta %g%s", why, p->epsilon, p->delta, composed);
    else if (why) snprintf(out, cap, "NOT private: %s", why);
    else
        snprintf(out, cap, "%sepsilon %g, delta %g%s%s%s%s", says, p->epsilon, p->delta,
                 strcmp(p->adjacency, USUAL) != 0 ? " under " : "",
                 strcmp(p->adjacency, USUAL) != 0 ? p->adjacency : "", composed, p->simulated ? SIMULATED : "");
}

static void take(struct fkt_model_origin *o, const struct promise *p)
{
    o->is_private = !objection(p);
    o->epsilon = o->is_private ? p->epsilon : 0;
    o->delta = o->is_private ? p->delta : 0;
    snprintf(o->adjacency, sizeof o->adjacency, "%s", o->is_private ? p->adjacency : "");
}

void fkt_origin_of_release(struct fkt_model_origin *out, const struct fkt_release *r, size_t per_class)
{
    const struct promise p = {.seeded = r->insecure_seed,
                              .weak = fkt_release_promise(r, NULL) == FKT_PROMISE_WEAK,
                              .simulated = r->facts.simulated,
                              .epsilon = r->task.privacy.epsilon,
                              .delta = r->task.privacy.delta,
                              .composed = r->facts.composed_epsilon,
                              .adjacency = fkt_adjacency_name(r->task.privacy.adjacency)};
    char words[WORDS_ROOM];
    memset(out, 0, sizeof *out);
    note_fit(out, r->task.fit);
    take(out, &p);
    words_of_promise(words, sizeof words, &p, "");
    memcpy(out->release_sha256, r->sha256, sizeof out->release_sha256);
    if (per_class) say(out, "%zu images drawn per class from release %.12s: %s", per_class, r->sha256, words);
    else say(out, "no images of release %.12s: %s", r->sha256, words);
}

/* ---- a folder ---- */

/* The folder of `place` joined with a name; `place` may be a file of that folder. */
static fkt_status beside(char **out, const char *place, const char *name)
{
    const char *slash = strrchr(place, '/');
    struct stat s;
    char *folder = NULL;
    fkt_status st;
    if (stat(place, &s) != 0 || S_ISDIR(s.st_mode)) return fkt_path_join(out, place, name);
    if (!slash) return fkt_strdup(out, name);
    FKT_TRY(fkt_strdup(&folder, place));
    folder[slash == place ? 1 : slash - place] = '\0';
    FKT_TRY(fkt_path_join(out, folder, name));
out:
    fkt_free(folder);
    return st;
}

/* Gives *out and, where wanted, the hash of the bytes; *out NULL: there is no such file, or no JSON object in it. */
static fkt_status read_json(json_t **out, const char *place, const char *name, char *hash)
{
    uint8_t *text = NULL;
    char *path = NULL;
    size_t len;
    fkt_status st;
    *out = NULL;
    FKT_TRY(beside(&path, place, name));
    if (access(path, F_OK) != 0) goto out;
    st = fkt_file_read(&text, &len, path, FILE_MAX);
    if (st != FKT_OK) {
        if (st != FKT_E_NOMEM) st = FKT_OK;
        goto out;
    }
    if (hash) fkt_hash_bytes_hex(hash, text, len);
    *out = json_loadb((const char *)text, len, JSON_REJECT_DUPLICATES, NULL);
out:
    fkt_free(text);
    fkt_free(path);
    return st;
}

static int read_promise(struct promise *p, const json_t *certificate)
{
    const char *schema, *ledger, *entropy;
    int is_private;
    if (json_unpack((json_t *)certificate, "{s:s s:b s:F s:F s:s s:F s:s}", "schema", &schema, "private", &is_private,
                    "epsilon", &p->epsilon, "delta", &p->delta, "ledger", &ledger, "composed_epsilon", &p->composed,
                    "adjacency", &p->adjacency))
        return 0;
    /* the task's bound on records, which may make it weak too, stands behind the certificate's own word */
    p->weak = json_object_get(certificate, "promise") != NULL ||
              fkt_privacy_promise(fmax(p->epsilon, p->composed / (1 + 1e-9)), p->delta, 0, NULL) == FKT_PROMISE_WEAK;
    entropy = json_string_value(json_object_get(certificate, "entropy"));
    p->seeded = !is_private && !(p->weak && entropy && !strcmp(entropy, "operating system"));
    p->simulated = !strncmp(ledger, "none", 4);
    return !strcmp(schema, "fedkt.certificate/1") && fkt_adjacency_parse(p->adjacency) >= 0;
}

/* What the classes of ds are called: an archive by itself has numbers, and the note says what they stand for. Gives
 * *out; NULL: the note's classes are not as many. */
static fkt_status names_of(const char ***out, const struct fkt_dataset *ds, const json_t *list)
{
    const size_t n = fkt_dataset_classes(ds);
    char number[24];
    size_t numbers = 0;
    fkt_status st;
    *out = NULL;
    if (json_array_size(list) != n) return FKT_OK;
    st = fkt_alloc(out, n);
    if (st != FKT_OK) return st;
    for (size_t k = 0; k < n; k++) {
        snprintf(number, sizeof number, "%zu", k);
        numbers += !strcmp(number, fkt_dataset_class(ds, k));
    }
    for (size_t k = 0; k < n; k++) {
        const char *name = json_string_value(json_array_get(list, k));
        (*out)[k] = numbers < n ? fkt_dataset_class(ds, k) : name ? name : "";
    }
    return FKT_OK;
}

/* Are records idx[0..n-1] of ds exactly the images that the note was written for? */
static fkt_status same_images(int *same, const json_t *note, const char *certificate_hash, const struct fkt_dataset *ds,
                              const size_t *idx, size_t n, const struct fkt_training_set_options *o)
{
    const struct fkt_pipeline_options w = {.threads = o->threads, .progress = o->progress};
    const char *schema, *certificate, *images_sha256, **names = NULL;
    char have[FKT_SHA256_HEX];
    json_int_t images;
    json_t *classes;
    fkt_status st;
    *same = 0;
    if (json_unpack((json_t *)note, "{s:s s:s s:I s:s s:o}", "schema", &schema, "certificate_sha256", &certificate,
                    "images", &images, "images_sha256", &images_sha256, "classes", &classes) != 0 ||
        strcmp(schema, SCHEMA) != 0 || strcmp(certificate, certificate_hash) != 0 || images != (json_int_t)n)
        return FKT_OK;
    st = names_of(&names, ds, classes);
    if (st != FKT_OK || !names) return st;
    st = fkt_labelled_fingerprint(ds, idx, n, names, &w, have);
    fkt_free(names);
    if (st == FKT_E_FORMAT || st == FKT_E_IO) return FKT_OK; /* unreadable: left out, or a sentence where it is read */
    *same = st == FKT_OK && !strcmp(have, images_sha256);
    return st;
}

fkt_status fkt_origin_of_set(struct fkt_model_origin *out, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                             const char *place, const struct fkt_training_set_options *options)
{
    json_t *certificate = NULL, *note = NULL;
    char hash[FKT_SHA256_HEX], words[WORDS_ROOM], name[NAME_ROOM] = "";
    const char *release;
    uint8_t raw[32];
    struct promise p = {0};
    int promised, same = 0;
    fkt_status st = FKT_OK;
    memset(out, 0, sizeof *out);
    note_fit(out, fkt_dataset_fit(ds));
    if (place) {
        last_name(name, place);
        FKT_TRY(read_json(&certificate, place, "certificate.json", hash));
        FKT_TRY(read_json(&note, place, "images.json", NULL));
    }
    promised = certificate && read_promise(&p, certificate); /* else p may be half filled */
    if (!promised) snprintf(words, sizeof words, "NOT private: no certificate");
    else words_of_promise(words, sizeof words, &p, "its certificate says ");
    if (promised && note && !objection(&p)) {
        FKT_TRY(same_images(&same, note, hash, ds, idx, n, options));
        if (same) take(out, &p);
        else
            snprintf(words, sizeof words,
                     "NOT private: these are not all and only the images that the certificate was written for");
    } else if (promised && !objection(&p))
        snprintf(words, sizeof words, "NOT private: the certificate does not say for which images it was written");
    if (promised && note && json_unpack(note, "{s:s}", "release_sha256", &release) == 0 &&
        fkt_unhex(raw, release, sizeof raw))
        snprintf(out->release_sha256, sizeof out->release_sha256, "%s", release);
    say(out, "%zu images of '%s': %s", n, name[0] ? name : fkt_dataset_format(ds), words);
out:
    json_decref(certificate);
    json_decref(note);
    return st;
}
