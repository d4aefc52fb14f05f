/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - a dataset from pixels that a program already has, for hosts that decode images themselves.
 *
 * A record's stored bytes are its pixels, as in a .npz: the same images give the same keys, so splits, partitions and
 * `limit` choose the same records, and everything after decoding is the same to the bit. The list of records and the
 * options are the builder's work, as for a file. Pixels are copied into one block, or borrowed; a copy is wiped before
 * it is freed. Cost: the copy, 40 bytes for each record, and the pixels of one record whenever it is read. */
#include "images/dataset.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/wipe.h"
#include "images/decode.h"

#include <string.h>

struct one { /* an image */
    const uint8_t *rgb;
    uint32_t w, h;
};

struct memory {
    struct one *images; /* (n) */
    uint8_t *copy;      /* of all pixels; NULL: borrowed */
};

static size_t bytes_of(const struct one *x) { return (size_t)x->w * x->h * 3; }

static void memory_free(void *self)
{
    struct memory *m = self;
    if (!m) return;
    fkt_free(m->images);
    fkt_free_secret(m->copy);
    fkt_free(m);
}

static fkt_status memory_decode(const void *self, size_t r, uint8_t **rgb, uint32_t *w, uint32_t *h,
                                struct fkt_facts *facts)
{
    const struct one *x = &((const struct memory *)self)->images[r];
    fkt_status st = fkt_alloc(rgb, bytes_of(x));
    (void)facts;
    if (st != FKT_OK) return st;
    memcpy(*rgb, x->rgb, bytes_of(x));
    *w = x->w;
    *h = x->h;
    return FKT_OK;
}

static fkt_status memory_stored(const void *self, size_t r, struct fkt_stored *out)
{
    const struct one *x = &((const struct memory *)self)->images[r];
    fkt_status st = fkt_stored_reserve(out, bytes_of(x));
    if (st == FKT_OK) memcpy(out->bytes, x->rgb, bytes_of(x));
    return st;
}

static const struct fkt_dataset_backend memory_backend = {"arrays in memory", memory_decode, memory_free,
                                                          memory_stored};

static fkt_status check_arrays(const struct fkt_dataset_arrays *a)
{
    if (a->n == 0 || !a->labels) return fkt_fail(FKT_E_ARG, "a dataset needs at least one image, and labels");
    if (!a->rgb == !a->images) return fkt_fail(FKT_E_ARG, "give the images as one array or as pointers, not both");
    if (!a->widths != !a->heights) return fkt_fail(FKT_E_ARG, "widths and heights of the images belong together");
    if (a->rgb && a->widths) return fkt_fail(FKT_E_ARG, "images in one array are of one size");
    if (!a->classes || a->n_classes < 1 || a->n_classes > FKT_CLASSES_MAX)
        return fkt_fail(FKT_E_ARG, "%zu class names: there must be 1 to %u", a->classes ? a->n_classes : 0,
                        FKT_CLASSES_MAX);
    return FKT_OK;
}

/* Where each image lies, how large it is, and how many bytes they have together. */
static fkt_status find_images(struct memory *m, const struct fkt_dataset_arrays *a, uint64_t *total)
{
    fkt_status st;
    *total = 0;
    FKT_TRY(fkt_alloc(&m->images, a->n));
    for (size_t i = 0; i < a->n; i++) {
        struct one *x = &m->images[i];
        x->w = a->widths ? a->widths[i] : a->width;
        x->h = a->heights ? a->heights[i] : a->height;
        if (fkt_image_check_size("the image is", x->w, x->h) != FKT_OK) {
            st = fkt_fail(FKT_E_ARG, "image %zu is %u x %u pixels; 1 to %u a side and %u in all can be read", i, x->w,
                          x->h, FKT_IMAGE_MAX_SIDE, FKT_IMAGE_MAX_AREA);
            goto out;
        }
        if (!fkt_add_u64(*total, bytes_of(x), total) || *total > PTRDIFF_MAX) {
            st = fkt_fail(FKT_E_ARG, "%zu images of %u x %u pixels do not fit into memory", a->n, x->w, x->h);
            goto out;
        }
        x->rgb = a->rgb ? a->rgb + *total - bytes_of(x) : a->images[i];
        if (!x->rgb) {
            st = fkt_fail(FKT_E_ARG, "image %zu is NULL", i);
            goto out;
        }
    }
out:
    return st;
}

static fkt_status copy_images(struct memory *m, size_t n, uint64_t total)
{
    size_t at = 0;
    fkt_status st = fkt_alloc(&m->copy, total);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < n; i++) {
        memcpy(m->copy + at, m->images[i].rgb, bytes_of(&m->images[i]));
        m->images[i].rgb = m->copy + at;
        at += bytes_of(&m->images[i]);
    }
    return FKT_OK;
}

static fkt_status add_records(struct fkt_dataset_builder *b, const struct fkt_dataset_arrays *a)
{
    fkt_status st = FKT_OK;
    for (size_t k = 0; k < a->n_classes; k++) {
        uint32_t at = 0;
        if (!a->classes[k] || !a->classes[k][0]) return fkt_fail(FKT_E_ARG, "class %zu has no name", k);
        FKT_TRY(fkt_builder_class(b, a->classes[k], &at));
        if (at != k) return fkt_fail(FKT_E_ARG, "class '%s' is listed twice", a->classes[k]);
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->labels[i] >= a->n_classes)
            return fkt_fail(FKT_E_ARG, "image %zu: label %u is outside 0..%zu", i, a->labels[i], a->n_classes - 1);
        FKT_TRY(fkt_builder_add(b, a->labels[i], NULL, "%s[%zu]", b->path, i));
    }
out:
    return st;
}

fkt_status fkt_dataset_from_arrays(struct fkt_dataset **out, const struct fkt_dataset_arrays *arrays,
                                   const struct fkt_dataset_options *options)
{
    struct fkt_dataset_builder b = {0};
    struct memory *m = NULL;
    uint64_t total;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_dataset_options_check(options));
    FKT_TRY(check_arrays(arrays));
    FKT_TRY(fkt_alloc(&b.ds, 1));
    FKT_TRY(fkt_alloc(&m, 1));
    b.path = arrays->name ? arrays->name : "memory";
    b.ds->fit = options ? options->fit : FKT_FIT_CROP;
    fkt_builder_backend(&b, &memory_backend, m);
    fkt_builder_keep_order(&b);
    FKT_TRY(find_images(m, arrays, &total));
    if (!arrays->borrow) FKT_TRY(copy_images(m, arrays->n, total));
    FKT_TRY(add_records(&b, arrays));
    FKT_TRY(fkt_builder_finish(&b, options));
    *out = b.ds;
    b.ds = NULL;
out:
    fkt_builder_clear(&b);
    fkt_dataset_free(b.ds);
    return st;
}
