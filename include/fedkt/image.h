/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - labelled image sets: reading and writing of common formats.
 *
 * Notation: n records, K classes, S side in pixels. Pixels are uint8 RGB, row by row, interleaved: (S, S, 3). A dataset
 * may be read from several threads at once; opening and freeing belong to one.
 */
#ifndef FEDKT_IMAGE_H
#define FEDKT_IMAGE_H

#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_dataset;

enum fkt_filter { FKT_FILTER_BILINEAR = 0, FKT_FILTER_BICUBIC = 1, FKT_FILTER_LANCZOS = 2, FKT_FILTER_BOX = 3 };

/* How an image is made square: cut out its centre, add black margins, or stretch it. */
enum fkt_fit { FKT_FIT_CROP = 0, FKT_FIT_PAD = 1, FKT_FIT_STRETCH = 2 };

struct fkt_dataset_options {
    const char *split;          /* "train", "test", "val" or NULL: all records, or "train" where the set has splits */
    const char *const *classes; /* the agreed list, so that sites with missing classes agree; NULL: those found */
    size_t n_classes;           /* length of classes; a record of a class outside the list is an error that names it */
    size_t limit; /* 0: all; else at most this many records, spread evenly over the classes; of each class those that
                         a hash of their own bytes puts first, so that one record more moves at most one other */
    int limit_by_number; /* the hash is of the record's number (fkt_dataset_numbers) instead: other pixels in a record
                            move nothing. For a private sum under `replace` */
    int skip_bad;        /* images that cannot be read are left out and counted, instead of stopping */
    enum fkt_fit fit;    /* must be the task's if there is a task */
    uint32_t bits;       /* depth of the samples in 16-bit files, 9 to 16; 0: 16, and darker images are refused */
    int unlabelled;      /* images of a folder or tar may lie outside of class folders: all are then of one class,
                            "unlabelled". For public images, whose labels mean nothing */
};

/* Opens a folder (ImageFolder, with or without split folders), a tar (plain, gz, xz, zst, bz2) of one, a WebDataset
 * tar, a CIFAR-10/100 binary folder or file, an MNIST idx pair (folder, or the images file beside its labels), a
 * MedMNIST .npz, or "demo:train" / "demo:test" (ten procedural classes, made on the fly). Copies path and options;
 * sets *out. Nothing is decoded yet. */
FKT_API FKT_MUST_USE fkt_status fkt_dataset_open(struct fkt_dataset **out, const char *path,
                                                 const struct fkt_dataset_options *options);
/* A dataset from pixels in memory. It is used like one from a file, and gives what a .npz of the same images gives,
 * to the bit. Images are uint8 RGB (h, w, 3), in one array or each by its own pointer. */
struct fkt_dataset_arrays {
    const uint8_t *rgb;               /* (n, height, width, 3); NULL: see images */
    const uint8_t *const *images;     /* (n) pointers to pixels; NULL: see rgb */
    uint32_t width, height;           /* of every image, where widths is NULL */
    const uint32_t *widths, *heights; /* (n) each, with `images` only; NULL: all are of one size */
    const uint32_t *labels;           /* (n) below n_classes */
    size_t n;
    const char *const *classes; /* (n_classes) different names */
    size_t n_classes;
    int borrow;       /* 0: the pixels are copied. 1: they are borrowed until fkt_dataset_free, and must not change */
    const char *name; /* for error messages; NULL: "memory" */
};
/* Copies everything but borrowed pixels; sets *out. options as for fkt_dataset_open, NULL: none; there are no
 * splits, and skip_bad and bits are ignored. FKT_E_ARG, with the image's number, for invalid input. */
FKT_API FKT_MUST_USE fkt_status fkt_dataset_from_arrays(struct fkt_dataset **out,
                                                        const struct fkt_dataset_arrays *arrays,
                                                        const struct fkt_dataset_options *options);
FKT_API void fkt_dataset_free(struct fkt_dataset *ds);

FKT_API size_t fkt_dataset_size(const struct fkt_dataset *ds);                 /* n */
FKT_API size_t fkt_dataset_classes(const struct fkt_dataset *ds);              /* K */
FKT_API const char *fkt_dataset_class(const struct fkt_dataset *ds, size_t k); /* borrowed from ds */
FKT_API uint32_t fkt_dataset_label(const struct fkt_dataset *ds, size_t i);    /* < K */
FKT_API const char *fkt_dataset_name(const struct fkt_dataset *ds,
                                     size_t i); /* borrowed; a path or "file[17]", for error messages */
FKT_API const char *
fkt_dataset_format(const struct fkt_dataset *ds); /* "ImageFolder", "tar of ImageFolder", "CIFAR-10 binary", ... */

FKT_API enum fkt_fit fkt_dataset_fit(const struct fkt_dataset *ds);
/* Files that were skipped on opening, in any split: neither image nor label, nor a file that fkt_generate puts
 * beside its images. The first FKT_DATASET_NAMED of them have a name; "" beyond. */
enum { FKT_DATASET_NAMED = 3 };
FKT_API size_t fkt_dataset_skipped(const struct fkt_dataset *ds);
FKT_API const char *fkt_dataset_skipped_name(const struct fkt_dataset *ds, size_t i); /* borrowed from ds */
/* Images in a folder inside a class folder. They are of that class, as in torchvision; if the inner folders are the
 * classes, the wrong folder was opened. *first (may be NULL) is the name of one, "" for none. */
FKT_API size_t fkt_dataset_nested(const struct fkt_dataset *ds, const char **first);

/* Decodes record i, turns it upright, scales it with `filter` (antialiased, as Pillow does it) and makes it square by
 * the set's `fit`: rgb (S, S, 3). Greyscale is repeated over the channels, alpha is laid over white; *note (may be
 * NULL) gets a bit mask of FKT_IMAGE_*. docs/formats.md, "Images in", has the rules. */
enum {
    FKT_IMAGE_WAS_GREY = 1,
    FKT_IMAGE_HAD_ALPHA = 2,
    FKT_IMAGE_RESIZED = 4,
    FKT_IMAGE_ENLARGED = 8,
    FKT_IMAGE_16BIT = 16,
    FKT_IMAGE_CMYK = 32,
    FKT_IMAGE_TURNED = 64
};
FKT_API FKT_MUST_USE fkt_status fkt_dataset_read(const struct fkt_dataset *ds, size_t i, uint32_t size,
                                                 enum fkt_filter filter, uint8_t *rgb, unsigned *note);
/* The same record at its own size, neither scaled nor cropped: gives *rgb (h, w, 3), freed with fkt_image_free. */
FKT_API FKT_MUST_USE fkt_status fkt_dataset_read_original(const struct fkt_dataset *ds, size_t i, uint8_t **rgb,
                                                          uint32_t *width, uint32_t *height);

/* A record's key: 64 bits that depend on its stored bytes alone, not on its name, place or label. What chooses records
 * for a private sum works by keys, so that one record more or less moves no other (docs/privacy.md, "Which records").
 * keys (n) of records idx[0..n-1] (NULL: of all, n is then their number); nothing is decoded. A record that cannot be
 * read has the key of no bytes. threads 0: all. */
FKT_API FKT_MUST_USE fkt_status fkt_dataset_keys(const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                                 unsigned threads, uint64_t *keys);
/* numbers (size of ds): each record's place in the order of the whole set, before `limit`; names and labels decide it,
 * pixels do not. FKT_E_ARG where `limit` has chosen by the records' bytes. */
FKT_API FKT_MUST_USE fkt_status fkt_dataset_numbers(const struct fkt_dataset *ds, uint64_t *numbers);
FKT_API uint64_t fkt_record_key(const void *bytes, size_t len); /* of records that are not in a dataset */

/* held[i] becomes 1 with probability `fraction`, by the seed and keys[i] alone, else 0: a binomial number of records is
 * held out. */
FKT_API FKT_MUST_USE fkt_status fkt_split_holdout(uint8_t *held, const uint64_t *keys, size_t n, double fraction,
                                                  uint64_t seed);
/* Stratified: exactly `fraction` of each class (rounded to nearest), by a shuffle of its records. One record more
 * moves others, so this is for training images, never for the records of a private sum. */
FKT_API FKT_MUST_USE fkt_status fkt_split_stratified(uint8_t *held, const uint32_t *labels, size_t n, size_t classes,
                                                     double fraction, uint64_t seed);

/* Which site holds which record: owner (n) gets 0..sites-1, a function of the seed, the rule and each record's own
 * label and key. The number of records and the other records do not enter; `classes` does, and is public.
 * iid: every site with the same probability. dirichlet: for each class the probabilities of the sites are
 * Dirichlet(alpha). pfllib: the same draw, but a site whose share of an even set has reached 1/sites takes nothing of
 * the classes that follow, and all is drawn again until each site has at least min_share of an even part.
 * pathological: each site holds `k` classes, the sites of a class with the same probability. */
enum fkt_partition_rule {
    FKT_PARTITION_IID = 0,
    FKT_PARTITION_DIRICHLET = 1,
    FKT_PARTITION_PFLLIB = 2,
    FKT_PARTITION_PATHOLOGICAL = 3
};
struct fkt_partition_spec {
    enum fkt_partition_rule rule;
    double alpha; /* dirichlet, pfllib */
    uint32_t k;   /* pathological: classes per site */
    uint32_t sites;
    double min_share; /* pfllib; of 1/sites, 0: 0.01 */
    uint64_t seed;
};
FKT_API FKT_MUST_USE fkt_status fkt_partition(uint32_t *owner, const uint32_t *labels, const uint64_t *keys, size_t n,
                                              size_t classes, const struct fkt_partition_spec *spec);
/* Rule and its number as text: "iid", "dirichlet:0.3", "pfllib:0.3", "pathological:2". parse leaves the rest of *p as
 * it is; text gives "" for an unknown rule. */
#define FKT_PARTITION_TEXT 64
FKT_API FKT_MUST_USE fkt_status fkt_partition_parse(struct fkt_partition_spec *p, const char *text);
FKT_API void fkt_partition_text(const struct fkt_partition_spec *p, char out[FKT_PARTITION_TEXT]);

/* Writing. Every writer is atomic: the file or folder appears whole or not at all; `force` replaces. */
FKT_API FKT_MUST_USE fkt_status fkt_png_write(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height,
                                              int force);
/* The same bytes in memory; gives *png, freed with fkt_image_free. */
FKT_API FKT_MUST_USE fkt_status fkt_png_encode(uint8_t **png, size_t *len, const uint8_t *rgb, uint32_t width,
                                               uint32_t height);

/* A sheet of samples: `rows` x `cols` tiles of (S, S, 3), a small gap, enlarged by a whole factor so that tiles are
 * at least 64 px; row_names (rows, may be NULL) are drawn left of the rows. `tiles` is (rows, cols, S, S, 3). Gives
 * *rgb (H, W, 3), freed with fkt_image_free. */
FKT_API FKT_MUST_USE fkt_status fkt_grid(uint8_t **rgb, uint32_t *width, uint32_t *height, const uint8_t *tiles,
                                         size_t rows, size_t cols, uint32_t size, const char *const *row_names);
/* The same of a set with `classes` classes, of which `rows` are shown: a line below says so where that is not all. */
FKT_API FKT_MUST_USE fkt_status fkt_grid_of(uint8_t **rgb, uint32_t *width, uint32_t *height, const uint8_t *tiles,
                                            size_t rows, size_t cols, uint32_t size, const char *const *row_names,
                                            size_t classes);
enum { FKT_GRID_CLASSES = 40 }; /* the most classes on a sheet: more would be too tall */
FKT_API void fkt_image_free(uint8_t *rgb);

/* What only the publisher of a set knows, for its card; NULL: left out. */
struct fkt_publisher {
    const char *license;   /* its SPDX identifier: "CC-BY-4.0" */
    const char *creator;   /* a person or an organisation */
    const char *url;       /* where the set is to be found: "https://..." */
    const char *published; /* "2026-12-31" */
};

/* Writes a labelled set image by image; memory does not grow with their number. */
enum fkt_export_format {
    FKT_EXPORT_FOLDER = 0,
    FKT_EXPORT_NPZ = 1,
    FKT_EXPORT_WEBDATASET = 2,
    FKT_EXPORT_DPIMAGEBENCH = 3
};
struct fkt_export;
/* FOLDER: path/train/<class>/<index>.png, path/train/metadata.jsonl. NPZ: path/dataset.npz with {train}_images
 * (n,S,S,3) uint8 and {train}_labels (n,1) uint8/uint16. WEBDATASET: path/train-000000.tar ... with key.png and
 * key.cls. DPIMAGEBENCH: path/gen.npz with x (n,3,S,S) float32 between 0 and 1 and y (n) int64. `split` is "train" or
 * "test". `total` images will follow. `path` is an existing folder (the caller's temporary one). Class names are made
 * safe for file systems, and their order as names of folders is that of the labels. */
FKT_API FKT_MUST_USE fkt_status fkt_export_open(struct fkt_export **out, const char *path,
                                                enum fkt_export_format format, const char *split,
                                                const char *const *classes, size_t n_classes, uint32_t size,
                                                size_t total);
FKT_API FKT_MUST_USE fkt_status fkt_export_add(struct fkt_export *e, uint32_t label, const uint8_t *rgb);
FKT_API FKT_MUST_USE fkt_status
fkt_export_close(struct fkt_export **e);            /* finishes; *e becomes NULL, also on failure */
FKT_API void fkt_export_free(struct fkt_export *e); /* drops what is unfinished; NULL is fine */

/* Names, as in a task and on the command line; -1 when unknown. */
FKT_API const char *fkt_filter_name(enum fkt_filter f);
FKT_API int fkt_filter_parse(const char *s);
FKT_API const char *fkt_fit_name(enum fkt_fit f);
FKT_API int fkt_fit_parse(const char *s);
FKT_API const char *fkt_export_name(enum fkt_export_format f);
FKT_API int fkt_export_parse(const char *s);

#ifdef __cplusplus
}
#endif
#endif
