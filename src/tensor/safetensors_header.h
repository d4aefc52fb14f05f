/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_header.h - shared by the two writers: collects tensors and metadata in order, then writes them as the
 * file's header. */
#ifndef FKT_TENSOR_SAFETENSORS_HEADER_H
#define FKT_TENSOR_SAFETENSORS_HEADER_H

#include "base/text.h"
#include "tensor/safetensors.h"

#define FKT_ST_HEADER_MAX 100000000U /* bytes; the limit of the reference implementation */

struct fkt_st_item {
    char *name; /* owned */
    enum fkt_dtype dtype;
    unsigned rank;
    uint64_t shape[FKT_ST_RANK_MAX];
    uint64_t bytes;
};
struct fkt_st_pair {
    char *key, *value; /* owned */
};
struct fkt_st_header {
    struct fkt_st_item *items; /* (n_items), in the order added */
    struct fkt_st_pair *pairs; /* (n_pairs), sorted by key */
    size_t n_items, n_pairs;
};

void fkt_st_header_init(struct fkt_st_header *h);
void fkt_st_header_clear(struct fkt_st_header *h);
/* Copy what they are given; FKT_E_ARG on a name that is taken, reserved or not UTF-8, a rank above 8, a size that
 * overflows. */
FKT_MUST_USE fkt_status fkt_st_header_meta(struct fkt_st_header *h, const char *key, const char *value);
FKT_MUST_USE fkt_status fkt_st_header_add(struct fkt_st_header *h, const char *name, enum fkt_dtype dtype,
                                          unsigned rank, const uint64_t *shape);
/* Appends the eight length bytes and the padded JSON to `out`, an initialised text; *data gets the length of the data
 * part. */
FKT_MUST_USE fkt_status fkt_st_header_render(const struct fkt_st_header *h, struct fkt_text *out, uint64_t *data);

/* Elements of a shape, checked; 0 when the product, or its size in bytes, does not fit 2^63. */
int fkt_st_elements(const uint64_t *shape, unsigned rank, enum fkt_dtype dtype, uint64_t *count, uint64_t *bytes);
/* The dtype of this name; 0 when unknown. */
int fkt_dtype_parse(enum fkt_dtype *out, const char *name);
/* A copy of untrusted text for an error message: control bytes become '?', long text is cut. */
#define FKT_ST_SHOWN 96
const char *fkt_st_shown(char out[FKT_ST_SHOWN], const char *s);

#endif
