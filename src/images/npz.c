/* SPDX-License-Identifier: Apache-2.0 */
/* npz.c - MedMNIST's container: a zip of {train,val,test}_images.npy and _labels.npy.
 *
 * images: uint8 (n, H, W) grey, (n, H, W, 1) or (n, H, W, 3); labels: any integer type, (n) or (n, 1). Sets with
 * several labels per image (ChestMNIST) or with volumes are refused by name. The arrays, stored or deflated, are copied
 * once into a spool (source.c, which also bounds what they may unpack to), with zip's checksums verified on the way,
 * and images are then read one at a time: memory does not grow with their number. Other members are passed over. Cost:
 * one pass over the file. */
#include "images/formats.h"

#include "base/alloc.h"
#include "base/file.h"
#include "images/npy.h"
#include "images/packed.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const splits[FKT_SPLITS] = {"train", "val", "test"};

struct array {
    int there;
    uint64_t at, size;
    struct fkt_npy npy;
};

struct npz {
    const char *path;
    struct fkt_source spool;
    struct array images[FKT_SPLITS], labels[FKT_SPLITS];
};

static struct array *array_named(struct npz *z, const char *name)
{
    char want[32];
    for (int i = 0; i < FKT_SPLITS; i++) {
        snprintf(want, sizeof want, "%s_images.npy", splits[i]);
        if (!strcmp(name, want)) return &z->images[i];
        snprintf(want, sizeof want, "%s_labels.npy", splits[i]);
        if (!strcmp(name, want)) return &z->labels[i];
    }
    return NULL;
}

static fkt_status copy_member(struct fkt_dataset_builder *b, struct npz *z, struct archive *a, struct archive_entry *e,
                              struct fkt_source *from)
{
    const char *name = archive_entry_pathname(e);
    struct array *m = name ? array_named(z, name) : NULL;
    fkt_status st;
    if (!m) return fkt_builder_skip(b, "%s:%s", z->path, name ? name : "?");
    if (m->there) return fkt_fail(FKT_E_FORMAT, "'%s' holds '%s' twice", z->path, name);
    m->there = 1;
    m->at = z->spool.size;
    st = fkt_source_append_entry(&z->spool, a, from, z->path);
    m->size = z->spool.size - m->at;
    if (st == FKT_OK) st = fkt_fail_in(fkt_npy_read(&m->npy, &z->spool, m->at, m->size), "'%s' in '%s'", name, z->path);
    return st;
}

static fkt_status unzip(struct fkt_dataset_builder *b, struct npz *z, struct fkt_source *source)
{
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    fkt_status st = FKT_OK;
    int r;
    if (!a) return fkt_fail(FKT_E_NOMEM, "out of memory in the archive library");
    archive_read_support_format_zip_seekable(a);
    FKT_TRY(fkt_spool(&z->spool.fd));
    r = lseek(source->fd, 0, SEEK_SET) == 0 ? archive_read_open_fd(a, source->fd, 1U << 16) : ARCHIVE_FATAL;
    while (r == ARCHIVE_OK && ((r = archive_read_next_header(a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN)) {
        r = ARCHIVE_OK;
        FKT_TRY(copy_member(b, z, a, e, source));
    }
    if (r != ARCHIVE_EOF) {
        const char *why = archive_error_string(a);
        st = fkt_fail_hint(FKT_E_FORMAT, "fetch the file again", "damaged or truncated zip '%s': %s", z->path,
                           why ? why : "cannot be read");
    }
out:
    archive_read_free(a);
    return st;
}

static fkt_status check_shapes(const struct npz *z, int i)
{
    const struct fkt_npy *x = &z->images[i].npy, *y = &z->labels[i].npy;
    if (!z->images[i].there || !z->labels[i].there)
        return fkt_fail(FKT_E_FORMAT, "'%s' has '%s_%s' without '%s_%s'", z->path, splits[i],
                        z->images[i].there ? "images" : "labels", splits[i], z->images[i].there ? "labels" : "images");
    if (x->kind != 'u' || x->width != 1 || x->dims < 3 || x->dims > 4 ||
        (x->dims == 4 && x->shape[3] != 1 && x->shape[3] != 3))
        return fkt_fail(FKT_E_FORMAT,
                        "'%s_images' in '%s' is not uint8 of shape (n, H, W), (n, H, W, 1) or (n, H, W, 3)", splits[i],
                        z->path);
    if (!strchr("uib", y->kind) || y->dims < 1 || y->dims > 2)
        return fkt_fail(FKT_E_FORMAT, "'%s_labels' in '%s' are not integers of shape (n) or (n, 1)", splits[i],
                        z->path);
    if (y->dims == 2 && y->shape[1] != 1)
        return fkt_fail_hint(FKT_E_FORMAT, "choose one label per image first; several are not supported",
                             "'%s_labels' in '%s' has %llu labels per image", splits[i], z->path,
                             (unsigned long long)y->shape[1]);
    if (x->shape[0] != y->shape[0])
        return fkt_fail(FKT_E_MISMATCH, "'%s' has %llu images but %llu labels in '%s'", z->path,
                        (unsigned long long)x->shape[0], (unsigned long long)y->shape[0], splits[i]);
    return FKT_OK;
}

static fkt_status add_labels(struct fkt_dataset_builder *b, const struct npz *z, const struct fkt_source *spool, int i)
{
    enum { BLOCK = 4096 };
    const struct fkt_npy *y = &z->labels[i].npy;
    uint8_t raw[BLOCK * 8];
    fkt_status st = FKT_OK;
    for (uint64_t from = 0; from < y->shape[0]; from += BLOCK) {
        uint64_t n = y->shape[0] - from < BLOCK ? y->shape[0] - from : BLOCK, label = 0;
        FKT_TRY(fkt_source_read(spool, y->at + from * y->width, raw, (size_t)(n * y->width)));
        for (uint64_t j = 0; j < n; j++) {
            st = fkt_npy_integer(y, raw + j * y->width, &label);
            if (st == FKT_OK && label >= FKT_CLASSES_MAX)
                st = fkt_fail(FKT_E_FORMAT, "the label %llu is out of range: at most %u classes",
                              (unsigned long long)label, FKT_CLASSES_MAX);
            FKT_TRY(fkt_fail_in(st, "'%s' %s[%llu]", z->path, splits[i], (unsigned long long)(from + j)));
            FKT_TRY(fkt_builder_numbers(b, label + 1));
            FKT_TRY(fkt_builder_add(b, (uint32_t)label, splits[i], "%s:%s[%llu]", z->path, splits[i],
                                    (unsigned long long)(from + j)));
        }
    }
out:
    return st;
}

static fkt_status add_split(struct fkt_dataset_builder *b, struct fkt_packed *p, struct npz *z, int i)
{
    const struct fkt_npy *x = &z->images[i].npy;
    struct fkt_section s = {.shared = p->n > 0};
    fkt_status st = FKT_OK;
    FKT_TRY(check_shapes(z, i));
    if (x->shape[1] > FKT_IMAGE_MAX_SIDE || x->shape[2] > FKT_IMAGE_MAX_SIDE || x->shape[0] > SIZE_MAX / 2) {
        st = fkt_fail(FKT_E_FORMAT, "'%s_images' in '%s' are too large", splits[i], z->path);
        goto out;
    }
    s.n = (size_t)x->shape[0];
    s.at = x->at;
    s.h = (uint32_t)x->shape[1];
    s.w = (uint32_t)x->shape[2];
    s.channels = x->dims == 4 ? (uint32_t)x->shape[3] : 1;
    s.stride = (uint64_t)s.w * s.h * s.channels;
    s.source = p->n ? p->sections[0].source : z->spool;
    if (!p->n) fkt_source_init(&z->spool); /* the first section owns it */
    FKT_TRY(fkt_packed_add(p, &s));
    FKT_TRY(add_labels(b, z, &p->sections[0].source, i));
out:
    return fkt_fail_in(st, "cannot open '%s'", z->path);
}

fkt_status fkt_npz_open(struct fkt_dataset_builder *b, const char *path, struct fkt_source *source)
{
    struct npz z;
    struct fkt_packed *p = NULL;
    fkt_status st;
    memset(&z, 0, sizeof z);
    fkt_source_init(&z.spool);
    z.path = path;
    FKT_TRY(unzip(b, &z, source));
    FKT_TRY(fkt_packed_new(&p, b, &fkt_packed_npz));
    for (int i = 0; i < FKT_SPLITS; i++)
        if (z.images[i].there || z.labels[i].there) FKT_TRY(add_split(b, p, &z, i));
    if (!p->n)
        st = fkt_fail_hint(FKT_E_FORMAT, FKT_FORMATS_HINT, "'%s' holds no {train,val,test}_images and _labels", path);
out:
    fkt_source_close(&z.spool);
    fkt_source_close(source);
    return st;
}
