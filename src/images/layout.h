/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - ImageFolder's grammar: which part of a path is the split, which the class. */
#ifndef FKT_IMAGES_LAYOUT_H
#define FKT_IMAGES_LAYOUT_H

#include "images/dataset.h"

int fkt_is_hidden(const char *name);      /* ".x", "__MACOSX": passed over everywhere */
int fkt_is_image_name(const char *name);  /* by its ending, in any case */
int fkt_is_our_name(const char *name);    /* what an export puts beside its images: README.md, classes.json, ... */
const char *fkt_ending(const char *name); /* after the last dot of the last part; "" when there is none */

/* Adds n records whose paths are relative to the set's root, in this order, each named "<prefix><path>". With `strip`
 * (tars) leading folders common to all are taken off first. `folders` (n_folders, may be NULL) are relative paths of
 * folders one and two levels deep: they make classes even where they hold nothing. */
FKT_MUST_USE fkt_status fkt_layout_add(struct fkt_dataset_builder *b, const char *prefix, const char *const *paths,
                                       size_t n, int strip, const char *const *folders, size_t n_folders);

#endif
