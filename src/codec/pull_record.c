/* SPDX-License-Identifier: Apache-2.0 */
/* pull_record.c - fedkt-weights.json, written beside weights that were pulled and read when they are verified.
 *
 *   {"schema": "fedkt.weights/1", "codec": c, "hub": address, "repo": r, "revision": asked, "commit": got or null,
 *    "files": [{"name": n, "size": bytes, "sha256": hex, "checked": "manifest" | "hub" | "first-seen"}, ...]}
 *
 * Its folder may have been changed by others, so everything in it is checked, names above all: a file's name
 * must not lead out of the folder. */
#include "codec/pull_record.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA "fedkt.weights/1"

enum { MAX_BYTES = 1 << 16 };

int fkt_weights_record_there(const char *folder)
{
    char *path = NULL;
    int there = fkt_path_join(&path, folder, FKT_RECORD_NAME) == FKT_OK && access(path, F_OK) == 0;
    fkt_free(path);
    return there;
}

fkt_status fkt_weights_record_save(const struct fkt_weights_record *r, const char *folder)
{
    json_t *files = json_array(), *root = NULL;
    char *text = NULL, *path = NULL;
    int bad = !files;
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < r->files && !bad; i++)
        bad = json_array_append_new(files, json_pack("{s:s s:I s:s s:s}", "name", r->file[i].name, "size",
                                                     (json_int_t)r->file[i].size, "sha256", r->file[i].sha256,
                                                     "checked", r->file[i].checked)) != 0;
    if (!bad)
        root = json_pack("{s:s s:s s:s s:s s:s s:s? s:O}", "schema", SCHEMA, "codec", r->codec, "hub", r->hub, "repo",
                         r->repo, "revision", r->revision, "commit", r->commit[0] ? r->commit : NULL, "files", files);
    if (root) text = json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS);
    if (!text) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON");
        goto out;
    }
    FKT_TRY(fkt_path_join(&path, folder, FKT_RECORD_NAME));
    FKT_TRY(fkt_file_write(path, text, strlen(text), FKT_FILE_REPLACE));
out:
    fkt_free(path);
    free(text);
    json_decref(root);
    json_decref(files);
    return st;
}

/* A string of at most cap - 1 bytes without control characters; 0 when it is not. */
static int take(char *out, size_t cap, const json_t *object, const char *key)
{
    const json_t *j = json_object_get(object, key);
    const char *s = json_string_value(j);
    if (!s || json_string_length(j) != strlen(s) || strlen(s) >= cap) return 0;
    for (const char *c = s; *c; c++)
        if (fkt_control_length(c)) return 0;
    snprintf(out, cap, "%s", s);
    return 1;
}

static int take_file(struct fkt_recorded_file *f, const json_t *j)
{
    const json_t *size = json_object_get(j, "size");
    if (!take(f->name, sizeof f->name, j, "name") || !take(f->sha256, sizeof f->sha256, j, "sha256") ||
        !take(f->checked, sizeof f->checked, j, "checked") || !json_is_integer(size) || json_integer_value(size) < 0)
        return 0;
    f->size = (uint64_t)json_integer_value(size);
    return f->name[0] && f->name[0] != '.' && !strchr(f->name, '/') && strlen(f->sha256) == 64 &&
           strspn(f->sha256, "0123456789abcdef") == 64 &&
           (!strcmp(f->checked, "manifest") || !strcmp(f->checked, "hub") || !strcmp(f->checked, "first-seen"));
}

static int take_all(struct fkt_weights_record *r, const json_t *root)
{
    const json_t *files = json_object_get(root, "files"), *commit = json_object_get(root, "commit");
    char schema[32];
    if (!take(schema, sizeof schema, root, "schema") || strcmp(schema, SCHEMA) != 0) return 0;
    if (!take(r->codec, sizeof r->codec, root, "codec") || !take(r->hub, sizeof r->hub, root, "hub") ||
        !take(r->repo, sizeof r->repo, root, "repo") || !take(r->revision, sizeof r->revision, root, "revision") ||
        !(json_is_null(commit) || take(r->commit, sizeof r->commit, root, "commit")))
        return 0;
    r->files = json_array_size(files);
    if (r->files == 0 || r->files > FKT_RECORD_FILES) return 0;
    for (size_t i = 0; i < r->files; i++)
        if (!take_file(&r->file[i], json_array_get(files, i))) return 0;
    return 1;
}

fkt_status fkt_weights_record_load(struct fkt_weights_record *out, const char *folder)
{
    uint8_t *text = NULL;
    char *path = NULL;
    json_t *root = NULL;
    size_t len;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(fkt_path_join(&path, folder, FKT_RECORD_NAME));
    FKT_TRY(fkt_file_read(&text, &len, path, MAX_BYTES));
    root = json_loadb((char *)text, len, JSON_REJECT_DUPLICATES, NULL);
    if (!take_all(out, root)) {
        memset(out, 0, sizeof *out);
        st = fkt_hint_code(fkt_fail(FKT_E_FORMAT, "'%s' is not a record of fetched weights", path), FKT_HINT_PULL_AGAIN,
                           "fetch the weights again");
    }
out:
    json_decref(root);
    fkt_free(text);
    fkt_free(path);
    return st;
}
