/* SPDX-License-Identifier: Apache-2.0 */
/* recognise.c - which format a path is in: decided from the content, not from the name.
 *
 *   file    tar header with a correct checksum -> tar
 *           PK -> npz
 *           0 0 8 3 -> idx
 *           a whole number of CIFAR records -> CIFAR
 *           all of these also compressed with gzip, xz, zstd or bzip2
 *   folder  dataset.npz or a single .npz -> npz
 *           data_batch_1.bin ... -> CIFAR
 *           *images-idx3-ubyte -> idx
 *           tars and no folders -> shards of a WebDataset
 *           images.json and data/classes.json -> the ImageFolder in data/, as fkt_generate lays a set out for a hub
 *           anything else -> ImageFolder */
#include "images/formats.h"

#include "base/alloc.h"
#include "base/file.h"
#include "images/layout.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct inside {
    size_t folders, tars, npz;
    int cifar, idx;
    char *one_npz; /* the last one's name; dataset.npz wins */
};

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

static int is_tar_name(const char *name)
{
    return ends_with(name, ".tar") || ends_with(name, ".tar.gz") || ends_with(name, ".tgz") ||
           ends_with(name, ".tar.xz") || ends_with(name, ".tar.zst") || ends_with(name, ".tar.bz2");
}

static int is_folder(DIR *d, const struct dirent *e)
{
    struct stat sb;
    if (e->d_type == DT_REG || e->d_type == DT_DIR) return e->d_type == DT_DIR;
    return fstatat(dirfd(d), e->d_name, &sb, 0) == 0 && S_ISDIR(sb.st_mode);
}

static fkt_status look_inside(struct inside *in, const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    fkt_status st = FKT_OK;
    memset(in, 0, sizeof *in);
    if (!d) return fkt_fail(FKT_E_IO, "cannot read folder '%s': %s", path, strerror(errno));
    while ((e = readdir(d))) {
        const char *name = e->d_name;
        if (fkt_is_hidden(name)) continue;
        in->folders += is_folder(d, e) != 0;
        in->tars += is_tar_name(name);
        in->cifar |= fkt_cifar_knows(name);
        in->idx |= fkt_idx_knows(name);
        if (!ends_with(name, ".npz")) continue;
        in->npz++;
        if (in->one_npz && !strcmp(in->one_npz, "dataset.npz")) continue;
        fkt_free(in->one_npz);
        FKT_TRY(fkt_strdup(&in->one_npz, name));
    }
out:
    closedir(d);
    return st;
}

static int tar_entry(const struct dirent *e) { return !fkt_is_hidden(e->d_name) && is_tar_name(e->d_name); }

static fkt_status open_tars(struct fkt_dataset_builder *b, const char *path)
{
    struct dirent **list = NULL;
    char **paths = NULL;
    int n = scandir(path, &list, tar_entry, alphasort);
    fkt_status st = FKT_OK;
    if (n < 0) return fkt_fail(FKT_E_IO, "cannot read folder '%s': %s", path, strerror(errno));
    FKT_TRY(fkt_alloc(&paths, (size_t)n));
    for (int i = 0; i < n; i++) FKT_TRY(fkt_path_join(&paths[i], path, list[i]->d_name));
    FKT_TRY(fkt_classes_from_json(b, path));
    FKT_TRY(fkt_tars_open(b, (const char *const *)paths, (size_t)n, NULL));
out:
    for (int i = 0; i < n; i++) {
        if (paths) fkt_free(paths[i]);
        free(list[i]);
    }
    fkt_free(paths);
    free(list);
    return st;
}

/* Gives the path of `data` in a folder that is laid out for a hub; NULL: it is another kind. */
static fkt_status find_pushed(char **out, const char *path)
{
    char *note = NULL, *data = NULL, *names = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_path_join(&note, path, "images.json"));
    FKT_TRY(fkt_path_join(&data, path, "data"));
    FKT_TRY(fkt_path_join(&names, data, "classes.json"));
    if (access(note, F_OK) == 0 && access(names, F_OK) == 0) {
        *out = data;
        data = NULL;
    }
out:
    fkt_free(note);
    fkt_free(data);
    fkt_free(names);
    return st;
}

static fkt_status open_folder(struct fkt_dataset_builder *b, const char *path)
{
    struct inside in;
    struct fkt_source source;
    char *file = NULL;
    fkt_status st;
    fkt_source_init(&source);
    FKT_TRY(look_inside(&in, path));
    if (in.one_npz && (!strcmp(in.one_npz, "dataset.npz") || (in.npz == 1 && !in.folders))) {
        FKT_TRY(fkt_path_join(&file, path, in.one_npz));
        FKT_TRY(fkt_source_open(&source, file));
        FKT_TRY(fkt_classes_from_json(b, path));
        FKT_TRY(fkt_npz_open(b, file, &source));
    } else if (in.cifar) {
        FKT_TRY(fkt_cifar_open_folder(b, path));
    } else if (in.idx) {
        FKT_TRY(fkt_idx_open_folder(b, path));
    } else if (in.tars && !in.folders) {
        FKT_TRY(open_tars(b, path));
    } else {
        FKT_TRY(find_pushed(&file, path));
        FKT_TRY(fkt_imagefolder_open(b, file ? file : path));
    }
out:
    fkt_source_close(&source);
    fkt_free(in.one_npz);
    fkt_free(file);
    return st;
}

static fkt_status open_file(struct fkt_dataset_builder *b, const char *path)
{
    struct fkt_source source;
    enum fkt_kind kind;
    fkt_status st;
    FKT_TRY(fkt_source_open(&source, path));
    FKT_TRY(fkt_source_kind(&source, &kind));
    if (kind == FKT_KIND_TAR) FKT_TRY(fkt_tars_open(b, &path, 1, &source));
    else if (kind == FKT_KIND_ZIP) FKT_TRY(fkt_npz_open(b, path, &source));
    else if (kind == FKT_KIND_IDX) FKT_TRY(fkt_idx_open(b, path, &source));
    else if (fkt_cifar_fits(source.size)) FKT_TRY(fkt_cifar_open(b, path, &source));
    else st = fkt_fail_hint(FKT_E_FORMAT, FKT_FORMATS_HINT, "'%s' is not in a format that fedkt reads", path);
out:
    fkt_source_close(&source);
    return st;
}

fkt_status fkt_recognise(struct fkt_dataset_builder *b, const char *path)
{
    struct stat sb;
    if (stat(path, &sb) != 0) return fkt_fail(FKT_E_IO, "cannot open '%s': %s", path, strerror(errno));
    return S_ISDIR(sb.st_mode) ? open_folder(b, path) : open_file(b, path);
}
