/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h - the header of a NumPy array on disk. */
#ifndef FKT_IMAGES_NPY_H
#define FKT_IMAGES_NPY_H

#include "images/source.h"

enum { FKT_NPY_DIMS = 5 };

struct fkt_npy {
    char kind;      /* 'u' unsigned, 'i' signed, 'b' boolean, others as NumPy names them */
    unsigned width; /* bytes of one element: 1, 2, 4 or 8 */
    int big_endian;
    int dims;
    uint64_t shape[FKT_NPY_DIMS];
    uint64_t at; /* of the first element in the source */
};

/* Reads the header of the array that fills `size` bytes at `at`, and checks that shape and size agree. C order only. */
FKT_MUST_USE fkt_status fkt_npy_read(struct fkt_npy *a, const struct fkt_source *s, uint64_t at, uint64_t size);
/* Element i of an integer array; FKT_E_FORMAT when it is negative. `raw` is its bytes. */
FKT_MUST_USE fkt_status fkt_npy_integer(const struct fkt_npy *a, const uint8_t *raw, uint64_t *out);

#endif
