/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - ImageFolder's grammar, the same for a folder on disk and for the members of a tar.
 *
 *   [common/folders/] [split/] class / anything / image.ext
 *
 * The first folder is a split when it is called train, test, val, valid or validation and the images lie in folders
 * below it; then every image must lie in such a split. A folder "test" that holds images directly is a class.
 * Everything below the class folder belongs to the class, as in torchvision. In a tar the leading folders common to all
 * images (most tars have one) are taken off, but never the last one before the image, nor a split before a single
 * class.
 *
 * The extension decides what counts as an image. The kinds that we do not read (gif, bmp, dcm ...) count too:
 * they become records whose reading fails with a clear sentence, because silently losing an image is worse.
 * All other files are passed over, counted, and the first few named. Images in a folder inside a class folder are
 * counted too: people open the folder above the one that they mean.
 *
 * Where labels are not needed (fkt_dataset_options.unlabelled) and an image lies in no folder, all are of one class. */
#include "images/layout.h"

#include "base/alloc.h"

#include <string.h>
#include <strings.h>

int fkt_is_hidden(const char *name) { return name[0] == '.' || !strcmp(name, "__MACOSX"); }

const char *fkt_ending(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
    return dot && dot != base ? dot + 1 : "";
}

int fkt_is_image_name(const char *name)
{
    static const char *const kinds[] = {"jpg",  "jpeg", "png", "jpe", "jfif", "bmp",  "gif", "tif",
                                        "tiff", "webp", "ppm", "pgm", "heic", "avif", "dcm", "dicom"};
    const char *end = fkt_ending(name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcasecmp(end, kinds[i])) return 1;
    return 0;
}

int fkt_is_our_name(const char *name)
{
    static const char *const names[] = {"README.md",   "classes.json", "metadata.jsonl", "certificate.json",
                                        "images.json", "grid.png",     "croissant.json"};
    const char *slash = strrchr(name, '/');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(slash ? slash + 1 : name, names[i])) return 1;
    return 0;
}

static size_t folders_in(const char *path)
{
    size_t n = 0;
    for (; (path = strchr(path, '/')); path++) n++;
    return n;
}

/* The path after its first `n` folders; it has at least that many. */
static const char *skip_folders(const char *path, size_t n)
{
    while (n--) path = strchr(path, '/') + 1;
    return path;
}

/* Copies folder number `i` of the path; FKT_E_FORMAT when it is too long to be a name. */
static fkt_status folder_at(char out[256], const char *path, size_t i)
{
    const char *s = skip_folders(path, i), *end = strchrnul(s, '/');
    if (end == s || end - s > 255)
        return fkt_fail(FKT_E_FORMAT, "'%.200s' has a folder name that is empty or too long", path);
    memcpy(out, s, (size_t)(end - s));
    out[end - s] = '\0';
    return FKT_OK;
}

static size_t common_folders(const char *const *paths, size_t n)
{
    size_t same = n ? folders_in(paths[0]) : 0;
    for (size_t i = 1; i < n; i++) {
        size_t common = 0;
        for (const char *p = paths[0], *q = paths[i]; *p && *p == *q; p++, q++) common += *p == '/';
        if (common < same) same = common;
    }
    return same;
}

static fkt_status leading_folders(size_t *strip, const char *const *paths, size_t n)
{
    char name[256];
    size_t least = SIZE_MAX;
    *strip = common_folders(paths, n);
    for (size_t i = 0; i < n; i++) {
        size_t deep = folders_in(paths[i]);
        if (deep < least) least = deep;
    }
    if (n && *strip >= least) *strip = least ? least - 1 : 0;
    if (*strip) {
        fkt_status st = folder_at(name, paths[0], *strip - 1);
        if (st != FKT_OK) return st;
        if (fkt_split_name(name)) --*strip;
    }
    return FKT_OK;
}

/* *split: 1 when the first folder after `strip` is a split for all images, 0 when for none. */
static fkt_status find_splits(int *split, const char *prefix, const char *const *paths, size_t n, size_t strip)
{
    const char *outside = NULL;
    char name[256];
    *split = 0;
    for (size_t i = 0; i < n; i++) {
        size_t deep = folders_in(paths[i]);
        fkt_status st;
        if (deep <= strip)
            return fkt_fail_hint(FKT_E_FORMAT, "put each image into a folder named after its class",
                                 "'%s%s' is not in a class folder", prefix, paths[i]);
        st = folder_at(name, paths[i], strip);
        if (st != FKT_OK) return st;
        if (deep >= strip + 2 && fkt_split_name(name)) *split = 1;
        else outside = paths[i];
    }
    if (*split && outside)
        return fkt_fail_hint(FKT_E_FORMAT,
                             "put every image under split/class/ (train, test, val), or every image under class/",
                             "'%s%s' is outside of the split folders", prefix, outside);
    return FKT_OK;
}

/* The class that a folder stands for: mostly that of its name. b->folders are in bytewise order. */
static const char *class_of(const struct fkt_dataset_builder *b, const char *folder)
{
    size_t lo = 0, hi = b->folders ? b->n_folders : 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(folder, b->folders[mid]);
        if (c == 0) return b->folder_classes[mid];
        if (c < 0) hi = mid;
        else lo = mid + 1;
    }
    return folder;
}

static fkt_status add_empty(struct fkt_dataset_builder *b, int split, const char *const *folders, size_t n)
{
    char name[256];
    uint32_t k;
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < n; i++) {
        size_t deep = folders_in(folders[i]);
        if (deep != (split ? 1U : 0U)) continue;
        if (split) {
            FKT_TRY(folder_at(name, folders[i], 0));
            if (!fkt_split_name(name)) continue;
        }
        FKT_TRY(folder_at(name, folders[i], split ? 1 : 0));
        FKT_TRY(fkt_builder_class(b, class_of(b, name), &k));
    }
out:
    return st;
}

/* The record that was added last lies deeper than its class folder. The first in bytewise order is kept. */
static void note_nested(struct fkt_dataset *ds)
{
    size_t name = ds->records[ds->n - 1].name;
    if (!ds->nested++ || strcmp(ds->names.text + name, ds->names.text + ds->nested_name) < 0) ds->nested_name = name;
}

/* 1: an image lies in no folder at all. */
static int any_loose(const char *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(paths[i], '/')) return 1;
    return 0;
}

static fkt_status add_unlabelled(struct fkt_dataset_builder *b, const char *prefix, const char *const *paths, size_t n)
{
    uint32_t k;
    fkt_status st;
    FKT_TRY(fkt_builder_class(b, "unlabelled", &k));
    for (size_t i = 0; i < n; i++) FKT_TRY(fkt_builder_add(b, k, NULL, "%s%s", prefix, paths[i]));
out:
    return st;
}

fkt_status fkt_layout_add(struct fkt_dataset_builder *b, const char *prefix, const char *const *paths, size_t n,
                          int strip, const char *const *folders, size_t n_folders)
{
    size_t lead = 0;
    int split = 0;
    char class_name[256], split_name[256];
    uint32_t k;
    fkt_status st = FKT_OK;
    if (b->unlabelled && any_loose(paths, n)) return add_unlabelled(b, prefix, paths, n);
    if (strip) FKT_TRY(leading_folders(&lead, paths, n));
    FKT_TRY(find_splits(&split, prefix, paths, n, lead));
    for (size_t i = 0; i < n; i++) {
        FKT_TRY(folder_at(class_name, paths[i], lead + (split ? 1 : 0)));
        if (split) FKT_TRY(folder_at(split_name, paths[i], lead));
        FKT_TRY(fkt_builder_class(b, class_of(b, class_name), &k));
        FKT_TRY(fkt_builder_add(b, k, split ? fkt_split_name(split_name) : NULL, "%s%s", prefix, paths[i]));
        if (folders_in(paths[i]) > lead + (split ? 2 : 1)) note_nested(b->ds);
    }
    FKT_TRY(add_empty(b, split, folders, n_folders));
out:
    return st;
}
