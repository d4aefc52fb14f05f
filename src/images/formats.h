/* SPDX-License-Identifier: Apache-2.0 */
/* formats.h - one opener per format. Each lists all records of `path` into the builder and hands over a backend. Those
 * that take a source take it whole: it is closed (or kept by the backend) also on failure. */
#ifndef FKT_IMAGES_FORMATS_H
#define FKT_IMAGES_FORMATS_H

#include "images/dataset.h"
#include "images/source.h"

FKT_MUST_USE fkt_status fkt_imagefolder_open(struct fkt_dataset_builder *b, const char *path);
/* n tars: shards of a WebDataset, or (n = 1) also a tar of an ImageFolder. `first` (may be NULL) is the opened
 * paths[0]. */
FKT_MUST_USE fkt_status fkt_tars_open(struct fkt_dataset_builder *b, const char *const *paths, size_t n,
                                      struct fkt_source *first);
FKT_MUST_USE fkt_status fkt_npz_open(struct fkt_dataset_builder *b, const char *path, struct fkt_source *source);
FKT_MUST_USE fkt_status fkt_idx_open(struct fkt_dataset_builder *b, const char *images_path, struct fkt_source *images);
FKT_MUST_USE fkt_status fkt_idx_open_folder(struct fkt_dataset_builder *b, const char *path);
FKT_MUST_USE fkt_status fkt_cifar_open(struct fkt_dataset_builder *b, const char *path, struct fkt_source *source);
FKT_MUST_USE fkt_status fkt_cifar_open_folder(struct fkt_dataset_builder *b, const char *path);

int fkt_cifar_fits(uint64_t size);          /* a whole number of CIFAR-10 or CIFAR-100 records */
int fkt_cifar_knows(const char *file_name); /* "data_batch_1.bin", "test.bin", ... */
int fkt_idx_knows(const char *file_name);   /* "train-images-idx3-ubyte", also .gz */

/* Names of the classes in the order of their labels: the lines of a text file; folder/classes.json, where there is one.
 */
FKT_MUST_USE fkt_status fkt_classes_from_lines(struct fkt_dataset_builder *b, const char *path);
FKT_MUST_USE fkt_status fkt_classes_from_json(struct fkt_dataset_builder *b, const char *folder);

/* An ImageFolder beside a classes.json: the folders that an export of these classes has stand for them, so that a class
 * called "a/b" or one with its label in front of its folder's name is read under its own name. Another kind of
 * classes.json is not ours, and is left alone. */
FKT_MUST_USE fkt_status fkt_classes_of_folders(struct fkt_dataset_builder *b, const char *folder);

/* recognise.c: looks at `path` and calls the right one of the above. */
FKT_MUST_USE fkt_status fkt_recognise(struct fkt_dataset_builder *b, const char *path);

#endif
