/* SPDX-License-Identifier: Apache-2.0 */
/* idx.c - MNIST's idx files (LeCun), and the formats derived from it:
 *
 *   images  0 0 8 3  n  rows  columns (4 bytes each, big-endian)  pixels (n, rows, columns)
 *   labels  0 0 8 1  n                                            labels (n)
 *
 * Known by their names, ...images-idx3-ubyte or ...images.idx3-ubyte with ...labels-idx1... beside it, also gzipped
 * (then unpacked to a spool); "train" in the name makes the split train, "t10k" or "test" makes it test. Sizes must fit
 * to the byte. */
#include "images/formats.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "images/layout.h"
#include "images/packed.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int fkt_idx_knows(const char *file_name)
{
    return strstr(file_name, "images-idx3-ubyte") || strstr(file_name, "images.idx3-ubyte");
}

static const char *split_of(const char *path)
{
    const char *name = base_name(path);
    if (strstr(name, "train")) return "train";
    return strstr(name, "t10k") || strstr(name, "test") ? "test" : NULL;
}

/* "...images...idx3..." -> "...labels...idx1..." in the last part of the path. */
static fkt_status labels_path(char **out, const char *images)
{
    size_t at = (size_t)(base_name(images) - images);
    char *p;
    fkt_status st = fkt_strdup(out, images);
    if (st != FKT_OK) return st;
    p = strstr(*out + at, "images");
    if (!p)
        return fkt_fail_hint(FKT_E_FORMAT, "name the pair like train-images-idx3-ubyte and train-labels-idx1-ubyte",
                             "cannot tell where the labels of '%s' are", images);
    memcpy(p, "labels", 6);
    p = strstr(p, "idx3");
    if (p) p[3] = '1';
    return FKT_OK;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Reads the header with `dims` numbers and checks that the data fill the file exactly. */
static fkt_status header(const struct fkt_source *s, const char *path, int dims, uint32_t shape[3])
{
    uint8_t head[16];
    uint64_t count = 1;
    fkt_status st = fkt_source_read(s, 0, head, 4 + 4 * (size_t)dims);
    if (st != FKT_OK) return fkt_fail_in(st, "cannot read '%s'", path);
    if (head[0] || head[1] || head[2] != 8 || head[3] != dims)
        return fkt_fail(FKT_E_FORMAT, "'%s' is not an idx%d file of bytes", path, dims);
    for (int i = 0; i < dims; i++) shape[i] = be32(head + 4 + 4 * i);
    for (int i = 1; i < dims; i++)
        if (shape[i] == 0 || shape[i] > FKT_IMAGE_MAX_SIDE)
            return fkt_fail(FKT_E_FORMAT, "'%s' has images of %u x %u pixels; 1 to %u a side can be read", path,
                            shape[2], shape[1], FKT_IMAGE_MAX_SIDE);
    for (int i = 0; i < dims; i++) count *= shape[i]; /* below 2^32 * 2^28 */
    if (s->size != count + 4 + 4 * (uint64_t)dims)
        return fkt_fail_hint(FKT_E_FORMAT, "fetch the file again",
                             "'%s' is truncated: %llu bytes, its header asks for %llu", path,
                             (unsigned long long)s->size, (unsigned long long)(count + 4 + 4 * (uint64_t)dims));
    return FKT_OK;
}

static fkt_status add_labels(struct fkt_dataset_builder *b, const struct fkt_source *labels, const char *images_path,
                             uint32_t n)
{
    uint8_t raw[4096];
    const char *split = split_of(images_path);
    fkt_status st = FKT_OK;
    for (uint32_t from = 0; from < n; from += (uint32_t)sizeof raw) {
        uint32_t len = n - from < sizeof raw ? n - from : (uint32_t)sizeof raw;
        FKT_TRY(fkt_source_read(labels, 8 + (uint64_t)from, raw, len));
        for (uint32_t i = 0; i < len; i++) {
            FKT_TRY(fkt_builder_numbers(b, raw[i] + 1U));
            FKT_TRY(fkt_builder_add(b, raw[i], split, "%s[%u]", images_path, from + i));
        }
        if (len < sizeof raw) break;
    }
out:
    return st;
}

/* Takes `images`. */
static fkt_status add_pair(struct fkt_dataset_builder *b, struct fkt_packed *p, const char *images_path,
                           struct fkt_source *images)
{
    struct fkt_section s = {.at = 16, .channels = 1, .source = *images};
    struct fkt_source labels;
    char *path = NULL;
    uint32_t shape[3] = {0}, n[3] = {0};
    fkt_status st;
    fkt_source_init(images);
    fkt_source_init(&labels);
    FKT_TRY(labels_path(&path, images_path));
    FKT_TRY(header(&s.source, images_path, 3, shape));
    FKT_TRY(fkt_source_open(&labels, path));
    FKT_TRY(header(&labels, path, 1, n));
    if (n[0] != shape[0]) {
        st = fkt_fail(FKT_E_MISMATCH, "'%s' has %u images but '%s' %u labels", images_path, shape[0], path, n[0]);
        goto out;
    }
    s.n = shape[0];
    s.h = shape[1];
    s.w = shape[2];
    s.stride = (uint64_t)s.w * s.h;
    FKT_TRY(fkt_fail_in(fkt_packed_add(p, &s), "cannot open '%s'", images_path));
    FKT_TRY(add_labels(b, &labels, images_path, shape[0]));
out:
    fkt_source_close(&s.source);
    fkt_source_close(&labels);
    fkt_free(path);
    return st;
}

fkt_status fkt_idx_open(struct fkt_dataset_builder *b, const char *images_path, struct fkt_source *images)
{
    struct fkt_packed *p = NULL;
    fkt_status st;
    FKT_TRY(fkt_packed_new(&p, b, &fkt_packed_idx));
    FKT_TRY(add_pair(b, p, images_path, images));
out:
    fkt_source_close(images);
    return st;
}

static int not_hidden(const struct dirent *e) { return !fkt_is_hidden(e->d_name) && fkt_idx_knows(e->d_name); }

fkt_status fkt_idx_open_folder(struct fkt_dataset_builder *b, const char *path)
{
    struct fkt_packed *p = NULL;
    struct fkt_source images;
    struct dirent **list = NULL;
    char *file = NULL;
    const char *seen = "";
    int n = scandir(path, &list, not_hidden, alphasort);
    fkt_status st = FKT_OK;
    fkt_source_init(&images);
    if (n < 0) return fkt_fail(FKT_E_IO, "cannot read folder '%s': %s", path, strerror(errno));
    FKT_TRY(fkt_packed_new(&p, b, &fkt_packed_idx));
    for (int i = 0; i < n; i++) {
        size_t len =
            (size_t)(strstr(list[i]->d_name, "idx3") -
                     list[i]->d_name); /* "x-idx3-ubyte" and "x-idx3-ubyte.gz" are one set: the first one counts */
        if (*seen && !strncmp(seen, list[i]->d_name, len)) continue;
        seen = list[i]->d_name;
        fkt_free(file);
        FKT_TRY(fkt_path_join(&file, path, list[i]->d_name));
        FKT_TRY(fkt_source_open(&images, file));
        FKT_TRY(add_pair(b, p, file, &images));
    }
out:
    fkt_source_close(&images);
    fkt_free(file);
    for (int i = 0; i < n; i++) free(list[i]);
    free(list);
    return st;
}
