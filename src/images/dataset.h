/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.h - the inside of a dataset and of its builder, for the images module alone.
 *
 * Names live in one growing arena of NUL-terminated strings and are known by their offset: a million records cost their
 * text plus 32 bytes each, and two blocks of memory. */
#ifndef FKT_IMAGES_DATASET_H
#define FKT_IMAGES_DATASET_H

#include "fedkt/image.h"
#include "images/backend.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_IMAGE_MAX_SIDE 16384U       /* pixels; a header that claims more is refused */
#define FKT_IMAGE_MAX_AREA (1U << 26)   /* pixels of one image: at most 11 bytes each while it is decoded, 740 MB */
#define FKT_IMAGE_MAX_FILE (256U << 20) /* bytes of one compressed image */
#define FKT_CLASSES_MAX 65536U          /* larger labels, and more names, are refused */

#define FKT_FORMATS_HINT                                                                                               \
    "fedkt reads a folder with one subfolder of JPEG, PNG, WebP or TIFF files per class (also under train/, test/, "   \
    "val/), a tar of one, a WebDataset tar, CIFAR-10/100 binary, MNIST idx, and MedMNIST .npz"

struct fkt_names {
    char *text;
    size_t len, cap;
};
FKT_MUST_USE fkt_status fkt_names_add(struct fkt_names *a, const char *s, size_t n, size_t *at);

struct fkt_record {
    size_t raw;    /* the backend's number */
    size_t name;   /* offset into names */
    size_t number; /* its place in the set's order, before `limit` */
    uint32_t label;
    int8_t split; /* index into the builder's splits, -1: none */
};

struct fkt_dataset {
    struct fkt_names names;
    struct fkt_record *records; /* n */
    size_t n, cap;
    int limited_by_bytes; /* `limit` has left records out, and looked at their bytes */
    size_t *classes;      /* K offsets into names */
    size_t k, k_cap;
    size_t skipped, skipped_name[FKT_DATASET_NAMED]; /* offsets into names */
    size_t nested, nested_name;
    enum fkt_fit fit;
    const struct fkt_dataset_backend *vt;
    void *self;
};

enum { FKT_SPLITS = 3 }; /* train, test, val */

struct fkt_dataset_builder {
    struct fkt_dataset *ds;
    const char *path; /* borrowed, for sentences */
    uint32_t *order;  /* the k class numbers sorted by name, for look-up */
    int keep_order;   /* classes and records stay as added */
    int numbered;     /* the class names are mere numbers 0..k-1: an agreed list then gives them names */
    int named;        /* names for the numbers were added beforehand (class_names.c): no more may come */
    int no_empty;     /* a class that was found without any record is an error, unless a class list is given */
    unsigned splits;  /* bit mask of the splits seen */
    unsigned unsplit; /* 1 when some record has no split */
    int loose;        /* an image lay beside the class folders */
    char **folders, **folder_classes; /* (n_folders) what the folders of an export stand for, by name; NULL: nothing */
    size_t n_folders;
    unsigned bits;  /* of fkt_dataset_options; for the backend's decode */
    int unlabelled; /* of fkt_dataset_options */
};

/* fkt_dataset_read that shows the original pixels (h, w, 3) first; when `seen` answers 1, that is all, and neither rgb
 * nor note is written. */
typedef int fkt_image_seen(void *ctx, const uint8_t *rgb, uint32_t width, uint32_t height,
                           const struct fkt_facts *facts);
FKT_MUST_USE fkt_status fkt_dataset_read_seen(const struct fkt_dataset *ds, size_t i, uint32_t size,
                                              enum fkt_filter filter, uint8_t *rgb, unsigned *note,
                                              fkt_image_seen *seen, void *ctx);
/* fkt_dataset_read_original that also gives the facts. */
FKT_MUST_USE fkt_status fkt_dataset_read_whole(const struct fkt_dataset *ds, size_t i, uint8_t **rgb, uint32_t *width,
                                               uint32_t *height, struct fkt_facts *facts);

/* The canonical name of a split folder ("valid" and "validation" are "val"), or NULL when it is none. */
const char *fkt_split_name(const char *name);
/* Classes "0" .. "k-1", where not there yet; sets `numbered`, unless they are `named`. Labels beyond FKT_CLASSES_MAX
 * are refused. */
FKT_MUST_USE fkt_status fkt_builder_numbers(struct fkt_dataset_builder *b, uint64_t k);
/* Counts a file that was passed over, and keeps the names of the first few. */
FKT_MUST_USE fkt_status fkt_builder_skip(struct fkt_dataset_builder *b, const char *name_fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* open.c: FKT_E_ARG for options (may be NULL) that no set can be opened with. */
FKT_MUST_USE fkt_status fkt_dataset_options_check(const struct fkt_dataset_options *o);
/* Chooses the split, maps the classes, orders, limits. Borrows o (may be NULL). */
FKT_MUST_USE fkt_status fkt_builder_finish(struct fkt_dataset_builder *b, const struct fkt_dataset_options *o);
/* limit.c: keeps `limit` records (0: all), evenly over the classes, by their bytes or by their number. */
FKT_MUST_USE fkt_status fkt_limit_keep(struct fkt_dataset *ds, size_t limit, int by_number);
void fkt_builder_clear(struct fkt_dataset_builder *b); /* what is left of it; ds is not touched */

#endif
