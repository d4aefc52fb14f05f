/* SPDX-License-Identifier: Apache-2.0 */
/* packed.h - images of one size stored one after the other, uncompressed: the backend of CIFAR, MNIST and MedMNIST. */
#ifndef FKT_IMAGES_PACKED_H
#define FKT_IMAGES_PACKED_H

#include "images/dataset.h"
#include "images/source.h"

struct fkt_section {
    size_t first, n;     /* raw records first .. first+n-1 */
    uint64_t at, stride; /* of the first record's pixels; from one record to the next */
    uint32_t w, h, channels;
    int planar; /* all red, then all green, then all blue */
    struct fkt_source source;
    int shared; /* the source belongs to the section before */
};

struct fkt_packed {
    struct fkt_section *sections;
    size_t n;
};

/* Gives an empty one to the builder. vt is one of the three below. */
FKT_MUST_USE fkt_status fkt_packed_new(struct fkt_packed **out, struct fkt_dataset_builder *b,
                                       const struct fkt_dataset_backend *vt);
/* Appends a section after checking that its records lie inside the source; takes the source (s->source), also on
 * failure. */
FKT_MUST_USE fkt_status fkt_packed_add(struct fkt_packed *p, struct fkt_section *s);

extern const struct fkt_dataset_backend fkt_packed_cifar10, fkt_packed_cifar100, fkt_packed_idx, fkt_packed_npz;

#endif
