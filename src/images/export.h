/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - what the writers of a labelled set share: one struct, one table of calls per format. */
#ifndef FKT_IMAGES_EXPORT_H
#define FKT_IMAGES_EXPORT_H

#include "fedkt/image.h"

#include "base/file.h"
#include "base/text.h"

struct archive;

struct fkt_export_ops {
    fkt_status (*open)(struct fkt_export *e);
    /* e->added is the image's number; data: its PNG or, where png is 0, its pixels. */
    fkt_status (*add)(struct fkt_export *e, uint32_t label, const uint8_t *data, size_t len);
    fkt_status (*finish)(struct fkt_export *e);
    int png;
};

struct fkt_export {
    const struct fkt_export_ops *ops;
    char *path, *split;
    char **classes; /* (K) as the caller wrote them */
    char **names;   /* (K) of folders: safe for file systems, unique, in the order of the labels */
    size_t n_classes, total, added;
    uint32_t size;
    int broken;              /* a call has failed: nothing more is taken */
    struct fkt_file file;    /* metadata.jsonl, dataset.npz or the shard being filled */
    struct archive *archive; /* over file.stream; NULL for a folder */
    int lost;                /* errno of the first failed write; from then on what libarchive writes is thrown away */
    uint8_t *made;           /* folder: (K) 1 once the class has its folder */
    uint8_t *labels;         /* npz: (total) labels of one, two or eight bytes, written last */
    float *planes;           /* npz of DPImageBench: (3, S, S) of the image being added */
};

/* rgb (n, S, S, 3) as n times fkt_export_add, to the same bytes; PNGs are made on several threads (0: all). */
FKT_MUST_USE fkt_status fkt_export_add_some(struct fkt_export *e, const uint32_t *label, const uint8_t *rgb, size_t n,
                                            unsigned threads);

extern const struct fkt_export_ops fkt_export_folder, fkt_export_npz, fkt_export_webdataset, fkt_export_dpimagebench;

/* export_names.c: gives (n) names of at most 100 bytes that differ even where case does not count, and what frees them.
 */
FKT_MUST_USE fkt_status fkt_safe_names(char ***out, const char *const *names, size_t n);
/* The same in bytewise order: with the label in front of each where their own order is another. n >= 1. */
FKT_MUST_USE fkt_status fkt_folder_names(char ***out, const char *const *names, size_t n);
void fkt_safe_names_free(char **names, size_t n);       /* NULL is fine */
void fkt_json_quote(struct fkt_text *t, const char *s); /* with its quotes; bytes that are not UTF-8 become U+FFFD */

/* export_archive.c: an archive whose bytes depend on its content alone. */
FKT_MUST_USE fkt_status fkt_export_archive_begin(struct fkt_export *e, const char *file_name, int zip);
FKT_MUST_USE fkt_status fkt_export_archive_entry(struct fkt_export *e, const char *name, uint64_t size);
FKT_MUST_USE fkt_status fkt_export_archive_data(struct fkt_export *e, const void *data, size_t len);
FKT_MUST_USE fkt_status fkt_export_archive_end(struct fkt_export *e);
void fkt_export_archive_drop(struct fkt_export *e); /* what is unfinished, if anything */

#endif
