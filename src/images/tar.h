/* SPDX-License-Identifier: Apache-2.0 */
/* tar.h - the index of one or more tars: where each member's bytes lie. */
#ifndef FKT_IMAGES_TAR_H
#define FKT_IMAGES_TAR_H

#include "images/dataset.h"
#include "images/source.h"

struct fkt_member {
    uint64_t at, size;
    size_t path; /* offset into names; without leading "./" and "/" */
    uint32_t shard;
};

struct fkt_tar {
    struct fkt_source *shards;
    size_t n_shards;
    unsigned bits;
    struct fkt_names names; /* member paths; dropped after opening */
    struct fkt_member *members;
    size_t n, cap;
    const char *const *shard_paths; /* borrowed while opening */
};

/* Adds a record for each image that has a label (.cls or .json of the same key), and keeps the images' members alone,
 * in the order of adding. */
FKT_MUST_USE fkt_status fkt_webdataset_add(struct fkt_dataset_builder *b, struct fkt_tar *t);
int fkt_webdataset_looks(const struct fkt_tar *t); /* has .cls members, or a .json beside every image */

#endif
