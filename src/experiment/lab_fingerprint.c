/* SPDX-License-Identifier: Apache-2.0 */
/* lab_fingerprint.c - which set a name stood for: sets/NAME.json of a run, written when the set is first opened.
 *
 * A run may go on from another folder of data, even on another machine; it must not mix cells of two sets that have the
 * same name. The fingerprint covers what cells depend on, in order: class names, and of each record its label and the
 * hash of its stored bytes (fkt_dataset_keys: nothing is decoded, and neither paths nor names of files enter). It is no
 * defence against somebody who wants two sets to agree: those hashes have 64 bits.
 *
 * The set `public` is written when a network first asks for it, also where there is none (no records): networks that
 * learnt from public images and networks that did not must not stand in one table. The public set of calibrations is
 * written once a calibration has been made of it, so that a set which could not be read may be repaired; its file is
 * NAME.unlabelled.json, since it may be a set of cells too. The hashes are inputs of cells (lab.h), so that a report
 * finds what runs in several folders have mixed. */
#include "experiment/lab.h"
#include "experiment/store.h"

#include "base/alloc.h"
#include "base/file.h"
#include "crypto/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 16 };
#define SCHEMA "fedkt.experiment-set/1"

static fkt_status add(struct fkt_hash *h, const struct fkt_dataset *ds, unsigned threads)
{
    const size_t n = fkt_dataset_size(ds), classes = fkt_dataset_classes(ds);
    uint64_t *keys = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&keys, n));
    FKT_TRY(fkt_dataset_keys(ds, NULL, n, threads, keys));
    fkt_hash_add_u64(h, n);
    fkt_hash_add_u64(h, classes);
    for (size_t k = 0; k < classes; k++) {
        const char *name = fkt_dataset_class(ds, k);
        fkt_hash_add(h, name, strlen(name) + 1);
    }
    for (size_t i = 0; i < n; i++) {
        fkt_hash_add_u64(h, fkt_dataset_label(ds, i));
        fkt_hash_add_u64(h, keys[i]);
    }
out:
    fkt_free(keys);
    return st;
}

/* A set and what its name stands for now. */
struct found {
    const char *name;
    int unlabelled;                         /* 1: as a public set that calibrations are made from */
    const struct fkt_dataset *train, *test; /* may be NULL; train only of `public`: there is none */
    char sha256[FKT_SHA256_HEX];
};

static fkt_status fingerprint(struct found *f, unsigned threads)
{
    struct fkt_hash h;
    fkt_status st = FKT_OK;
    fkt_hash_init(&h);
    fkt_hash_add(&h, SCHEMA, sizeof SCHEMA);
    if (f->train) FKT_TRY(add(&h, f->train, threads));
    if (f->test) FKT_TRY(add(&h, f->test, threads));
    fkt_hash_hex(&h, f->sha256);
out:
    return st;
}

fkt_status fkt_lab_fingerprint(struct fkt_lab *lab)
{
    struct found f = {.name = lab->set, .train = lab->train, .test = lab->test};
    fkt_status st = fingerprint(&f, lab->options.threads);
    if (st == FKT_OK) memcpy(lab->set_sha256, f.sha256, sizeof f.sha256);
    return st;
}

static struct found open_set(const struct fkt_lab *lab)
{
    struct found f = {.name = lab->set, .train = lab->train, .test = lab->test};
    memcpy(f.sha256, lab->set_sha256, sizeof f.sha256);
    return f;
}

static size_t size_of(const struct fkt_dataset *ds) { return ds ? fkt_dataset_size(ds) : 0; }

/* ---- the file ---- */

static json_t *set_json(const struct found *f)
{
    json_t *j = json_pack("{s:s s:s s:I s:I s:I s:s}", "schema", SCHEMA, "set", f->name, "records",
                          (json_int_t)size_of(f->train), "test_records", (json_int_t)size_of(f->test), "classes",
                          (json_int_t)(f->train ? fkt_dataset_classes(f->train) : 0), "sha256", f->sha256);
    if (j && f->unlabelled) json_object_set_new(j, "unlabelled", json_true());
    return j;
}

/* Gives *out, an object that names a set and its hash. */
static fkt_status read_file(const char *path, json_t **out)
{
    uint8_t *text = NULL;
    json_t *j = NULL;
    const char *schema, *name;
    size_t len;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_file_read(&text, &len, path, FILE_MAX));
    j = json_loadb((const char *)text, len, JSON_REJECT_DUPLICATES, NULL);
    schema = json_string_value(json_object_get(j, "schema"));
    name = json_string_value(json_object_get(j, "set"));
    if (!schema || strcmp(schema, SCHEMA) != 0 || !name || !fkt_experiment_plain(name, NULL) ||
        !json_is_string(json_object_get(j, "sha256")))
        st = fkt_fail_hint(FKT_E_FORMAT, "restore the file, or choose another folder for the results",
                           "'%s' does not say which set a run has used", path);
    else *out = json_incref(j);
out:
    json_decref(j);
    fkt_free(text);
    return st;
}

static long long count_of(const json_t *j, const char *key) { return json_integer_value(json_object_get(j, key)); }

/* It must be the set of `was`. */
static fkt_status compare(const struct found *f, const json_t *was)
{
    static const char hint[] = "give the set that the run began with, or choose another folder for the results";
    const size_t n = size_of(f->train), tests = size_of(f->test);
    const long long before = count_of(was, "records"), tests_before = count_of(was, "test_records");
    if (!strcmp(json_string_value(json_object_get(was, "sha256")), f->sha256)) return FKT_OK;
    if (!f->train)
        return fkt_fail_hint(FKT_E_MISMATCH, hint,
                             "set '%s' is gone: the run began with one of %lld records, and its networks learn from it",
                             f->name, before);
    if (!before)
        return fkt_fail_hint(FKT_E_MISMATCH,
                             "take it out of the folder of sets, or choose another folder for the results",
                             "the run began without a set '%s', and now there is one of %zu records", f->name, n);
    if (before == (long long)n && tests_before == (long long)tests)
        return fkt_fail_hint(FKT_E_MISMATCH, hint,
                             "set '%s' is not the one that the run began with: as many records, but not the same",
                             f->name);
    return fkt_fail_hint(FKT_E_MISMATCH, hint,
                         "set '%s' is not the one that the run began with: it had %lld records and %lld test records, "
                         "and this one has %zu and %zu",
                         f->name, before, tests_before, n, tests);
}

/* The set of a name must be the one that the run began with. write: where none was noted, this one is. */
static fkt_status agree(struct fkt_lab *lab, const struct found *f, int write)
{
    char name[96], *folder = NULL, *path = NULL;
    json_t *was = NULL;
    fkt_status st;
    snprintf(name, sizeof name, "%s%s.json", f->name, f->unlabelled ? FKT_UNLABELLED_ENDING : "");
    FKT_TRY(fkt_path_join(&folder, lab->run, "sets"));
    FKT_TRY(fkt_path_join(&path, folder, name));
    if (access(path, F_OK) == 0) {
        FKT_TRY(read_file(path, &was));
        FKT_TRY(compare(f, was));
    } else if (write) st = fkt_lab_write(lab, "sets", name, set_json(f), JSON_INDENT(1));
out:
    json_decref(was);
    fkt_free(folder);
    fkt_free(path);
    return st;
}

fkt_status fkt_lab_note_set(struct fkt_lab *lab)
{
    const struct found f = open_set(lab);
    return agree(lab, &f, 1);
}

/* ---- sets without labels ---- */

void fkt_lab_fingerprint_of_none(char sha256[FKT_SHA256_HEX])
{
    struct found none = {0};
    (void)!fingerprint(&none, 1); /* of no records: nothing can fail */
    memcpy(sha256, none.sha256, sizeof none.sha256);
}

/* Gives *out and f of it; NULL: the set `public`, where the folder of sets has none. */
static fkt_status open_unlabelled(const struct fkt_lab *lab, const char *set, struct fkt_dataset **out, struct found *f)
{
    const struct fkt_dataset_options o = {.unlabelled = 1};
    char *path = NULL;
    const int other = strcmp(set, FKT_PUBLIC_SET) != 0;
    fkt_status st = fkt_lab_find(lab, set, &path);
    *out = NULL;
    if (st == FKT_E_NOMEM || (st != FKT_OK && other)) return st;
    if (st == FKT_OK) FKT_TRY(fkt_dataset_open(out, path, &o));
    *f = (struct found){.name = set, .unlabelled = other, .train = *out};
    FKT_TRY(fingerprint(f, lab->options.threads));
out:
    fkt_free(path);
    if (st != FKT_OK) {
        fkt_dataset_free(*out);
        *out = NULL;
    }
    return st;
}

static fkt_status open_and_agree(struct fkt_lab *lab, const char *set, int write, struct fkt_dataset **out,
                                 char sha256[FKT_SHA256_HEX])
{
    struct found f;
    fkt_status st;
    FKT_TRY(open_unlabelled(lab, set, out, &f));
    memcpy(sha256, f.sha256, sizeof f.sha256);
    st = lab->run ? agree(lab, &f, write) : FKT_OK;
    if (st != FKT_OK) {
        fkt_dataset_free(*out);
        *out = NULL;
    }
out:
    return st;
}

fkt_status fkt_lab_public(struct fkt_lab *lab, struct fkt_dataset **out, char sha256[FKT_SHA256_HEX])
{
    return open_and_agree(lab, FKT_PUBLIC_SET, 1, out, sha256);
}

fkt_status fkt_lab_unlabelled(struct fkt_lab *lab, const char *set, struct fkt_dataset **out,
                              char sha256[FKT_SHA256_HEX])
{
    return open_and_agree(lab, set, 0, out, sha256);
}

fkt_status fkt_lab_note_unlabelled(struct fkt_lab *lab, const char *set, const struct fkt_dataset *ds,
                                   const char *sha256)
{
    struct found f = {.name = set, .unlabelled = 1, .train = ds};
    memcpy(f.sha256, sha256, sizeof f.sha256);
    return lab->run ? agree(lab, &f, 1) : FKT_OK;
}

/* ---- before a run goes on ---- */

/* The set of the file as it is now. *shared is given, NULL: it is the lab's open set, or there is none. */
static fkt_status open_again(struct fkt_lab *lab, const json_t *was, struct fkt_dataset **shared, struct found *f)
{
    const char *name = json_string_value(json_object_get(was, "set"));
    const int unlabelled = json_is_true(json_object_get(was, "unlabelled"));
    struct fkt_lab_set set;
    fkt_status st;
    if (unlabelled || !strcmp(name, FKT_PUBLIC_SET)) {
        FKT_TRY(open_unlabelled(lab, name, shared, f));
        goto out;
    }
    FKT_TRY(fkt_lab_set(lab, name, &set));
    *f = open_set(lab);
out:
    return st;
}

/* A set that cannot be opened now has cells that are skipped, and mixes nothing. Without the set `public` no cell would
 * be skipped, and networks would be others: compare() refuses that. */
static fkt_status check_one(struct fkt_lab *lab, const char *path)
{
    struct fkt_dataset *shared = NULL;
    struct found f;
    json_t *was = NULL;
    fkt_status st;
    FKT_TRY(read_file(path, &was));
    st = open_again(lab, was, &shared, &f);
    if (st == FKT_OK) st = compare(&f, was);
    else if (st != FKT_E_NOMEM && st != FKT_E_STOPPED) st = FKT_OK;
out:
    fkt_dataset_free(shared);
    json_decref(was);
    return st;
}

fkt_status fkt_lab_check_sets(const struct fkt_experiment_options *o, const char *folder)
{
    struct fkt_lab lab = {.options = *o};
    struct dirent **list = NULL;
    char *sets = NULL, *path = NULL;
    int n = -1;
    fkt_status st;
    FKT_TRY(fkt_path_join(&sets, folder, "sets"));
    n = access(sets, F_OK) == 0 ? scandir(sets, &list, fkt_store_is_json, alphasort) : 0;
    if (n < 0) st = fkt_io_fail("read", sets);
    for (int i = 0; i < n && st == FKT_OK; i++) {
        FKT_TRY(fkt_path_join(&path, sets, list[i]->d_name));
        st = check_one(&lab, path);
        fkt_free(path);
        path = NULL;
    }
out:
    for (int i = 0; i < n; i++) free(list[i]);
    free(list);
    fkt_lab_close_set(&lab);
    fkt_free(path);
    fkt_free(sets);
    return st;
}
