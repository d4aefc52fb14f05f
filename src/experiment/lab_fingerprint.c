/* SPDX-License-Identifier: Apache-2.0 */
/* lab_fingerprint.c - which set a name stood for: sets/NAME.json of a run, written when the set is first opened.
 *
 * A run may go on from another folder of data, even on another machine; it must not mix cells of two sets that have the
 * same name. The fingerprint covers what cells depend on, in order: class names, and of each record its label and the
 * hash of its stored bytes (fkt_dataset_keys: nothing is decoded, and neither paths nor names of files enter). It is no
 * defence against somebody who wants two sets to agree: those hashes have 64 bits. */
#include "experiment/lab.h"

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

fkt_status fkt_lab_fingerprint(struct fkt_lab *lab)
{
    struct fkt_hash h;
    fkt_status st;
    fkt_hash_init(&h);
    fkt_hash_add(&h, SCHEMA, sizeof SCHEMA);
    FKT_TRY(add(&h, lab->train, lab->options.threads));
    if (lab->test) FKT_TRY(add(&h, lab->test, lab->options.threads));
    fkt_hash_hex(&h, lab->set_sha256);
out:
    return st;
}

/* ---- the file ---- */

static json_t *set_json(const struct fkt_lab *lab)
{
    return json_pack("{s:s s:s s:I s:I s:I s:s}", "schema", SCHEMA, "set", lab->set, "records",
                     (json_int_t)fkt_dataset_size(lab->train), "test_records",
                     (json_int_t)(lab->test ? fkt_dataset_size(lab->test) : 0), "classes",
                     (json_int_t)fkt_dataset_classes(lab->train), "sha256", lab->set_sha256);
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
        st = fkt_fail(FKT_E_FORMAT, "'%s' does not say which set a run has used", path);
    else *out = json_incref(j);
out:
    json_decref(j);
    fkt_free(text);
    return st;
}

static long long count_of(const json_t *j, const char *key) { return json_integer_value(json_object_get(j, key)); }

/* The open set must be the one of `was`. */
static fkt_status compare(const struct fkt_lab *lab, const json_t *was)
{
    static const char hint[] = "give the set that the run began with, or choose another folder for the results";
    const size_t n = fkt_dataset_size(lab->train), tests = lab->test ? fkt_dataset_size(lab->test) : 0;
    const long long before = count_of(was, "records"), tests_before = count_of(was, "test_records");
    if (!strcmp(json_string_value(json_object_get(was, "sha256")), lab->set_sha256)) return FKT_OK;
    if (before == (long long)n && tests_before == (long long)tests)
        return fkt_fail_hint(FKT_E_MISMATCH, hint,
                             "set '%s' is not the one that the run began with: as many records, but not the same",
                             lab->set);
    return fkt_fail_hint(FKT_E_MISMATCH, hint,
                         "set '%s' is not the one that the run began with: it had %lld records and %lld test records, "
                         "and this one has %zu and %zu",
                         lab->set, before, tests_before, n, tests);
}

fkt_status fkt_lab_note_set(struct fkt_lab *lab)
{
    char name[96], *folder = NULL, *path = NULL;
    json_t *was = NULL;
    fkt_status st;
    snprintf(name, sizeof name, "%s.json", lab->set);
    FKT_TRY(fkt_path_join(&folder, lab->run, "sets"));
    FKT_TRY(fkt_path_join(&path, folder, name));
    if (access(path, F_OK) == 0) {
        FKT_TRY(read_file(path, &was));
        FKT_TRY(compare(lab, was));
        goto out;
    }
    FKT_TRY(fkt_mkdirs(folder));
    FKT_TRY(fkt_store_write(path, set_json(lab), JSON_INDENT(1), FKT_FILE_REPLACE));
out:
    json_decref(was);
    fkt_free(folder);
    fkt_free(path);
    return st;
}

/* ---- before a run goes on ---- */

/* A set that cannot be opened now has cells that are skipped, and mixes nothing. */
static fkt_status check_one(struct fkt_lab *lab, const char *path)
{
    struct fkt_lab_set set;
    json_t *was = NULL;
    fkt_status st;
    FKT_TRY(read_file(path, &was));
    st = fkt_lab_set(lab, json_string_value(json_object_get(was, "set")), &set);
    if (st == FKT_OK) st = compare(lab, was);
    else if (st != FKT_E_NOMEM && st != FKT_E_STOPPED) st = FKT_OK;
out:
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
