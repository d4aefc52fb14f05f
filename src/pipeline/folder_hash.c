/* SPDX-License-Identifier: Apache-2.0 */
/* folder_hash.c - one hash for a folder (docs/http.md 5.1): of the sorted lines "sha256  path\n" of its files, as
 *   find . -type f -printf '%P\0' | xargs -0 sha256sum | LC_ALL=C sort | sha256sum
 * would give it. Links and devices are refused. Memory: a line for each file. */
#include "pipeline/publish.h"

#include "base/alloc.h"
#include "base/file.h"
#include "crypto/hash.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 8

struct list {
    char **line;
    size_t n, cap;
    uint64_t bytes;
};

static fkt_status add_file(struct list *l, const char *path, const char *name)
{
    size_t len = FKT_HASH_HEX + 3 + strlen(name);
    char hash[FKT_HASH_HEX];
    fkt_status st;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        FKT_TRY(fkt_realloc(&l->line, cap));
        l->cap = cap;
    }
    FKT_TRY(fkt_hash_file_hex(hash, path));
    FKT_TRY(fkt_alloc(&l->line[l->n], len));
    snprintf(l->line[l->n++], len, "%s  %s\n", hash, name);
out:
    return st;
}

/* `name` is the folder's path within the tree, "" for its root. */
static fkt_status add_folder(struct list *l, const char *folder, const char *name, int depth)
{
    DIR *d = opendir(folder);
    char *path = NULL, *inner = NULL;
    struct dirent *e;
    struct stat sb;
    fkt_status st = FKT_OK;
    if (!d) return fkt_io_fail("read", folder);
    while ((e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        FKT_TRY(fkt_path_join(&path, folder, e->d_name));
        FKT_TRY(fkt_path_join(&inner, name, e->d_name));
        if (lstat(path, &sb) != 0) {
            st = fkt_io_fail("read", path);
        } else if (S_ISREG(sb.st_mode)) {
            st = add_file(l, path, inner);
            l->bytes += (uint64_t)sb.st_size;
        } else if (S_ISDIR(sb.st_mode) && depth < DEPTH_MAX) {
            st = add_folder(l, path, inner, depth + 1);
        } else {
            st = fkt_fail(FKT_E_FORMAT, "'%s' is neither a file nor a folder of a dataset", path);
        }
        FKT_TRY(st);
        fkt_free(path);
        fkt_free(inner);
        path = inner = NULL;
    }
out:
    fkt_free(path);
    fkt_free(inner);
    closedir(d);
    return st;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

fkt_status fkt_folder_hash(const char *folder, char sha256[FKT_SHA256_HEX], uint64_t *bytes)
{
    struct list l = {0};
    struct fkt_hash h;
    fkt_status st;
    FKT_TRY(add_folder(&l, folder, "", 0));
    if (l.n) qsort(l.line, l.n, sizeof *l.line, by_bytes);
    fkt_hash_init(&h);
    for (size_t i = 0; i < l.n; i++) fkt_hash_add(&h, l.line[i], strlen(l.line[i]));
    fkt_hash_hex(&h, sha256);
    *bytes = l.bytes;
out:
    for (size_t i = 0; i < l.n; i++) fkt_free(l.line[i]);
    fkt_free(l.line);
    return st;
}
