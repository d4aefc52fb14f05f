/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_build.h - an ONNX graph in the making: nodes, tensors and words, then one file. For exports of trained networks
 * (onnx_write.c) and of whole models (learning/whole_onnx.c).
 *
 * Names are copied. The first failure is kept: continue building, and look at what fkt_onnx_write gives. */
#ifndef FKT_CLASSIFIER_ONNX_BUILD_H
#define FKT_CLASSIFIER_ONNX_BUILD_H

#include "nn/net.h"

struct fkt_onnx_build;
FKT_MUST_USE fkt_status fkt_onnx_build_new(struct fkt_onnx_build **out);
void fkt_onnx_build_free(struct fkt_onnx_build *b);
fkt_status fkt_onnx_build_status(const struct fkt_onnx_build *b);
void fkt_onnx_build_fail(struct fkt_onnx_build *b, fkt_status st); /* kept when it is the first */

/* A node of one result, which is returned (borrowed; "" after a failure). Inputs follow, at most FKT_ONNX_INPUTS_MAX,
 * then attributes. */
enum { FKT_ONNX_INPUTS_MAX = 5, FKT_ONNX_ATTRIBUTES_MAX = 5, FKT_ONNX_NAME_MAX = 96 };
const char *fkt_onnx_node(struct fkt_onnx_build *b, const char *type, const char *name, const char *result);
void fkt_onnx_input(struct fkt_onnx_build *b, const char *value); /* of the last node */
void fkt_onnx_int(struct fkt_onnx_build *b, const char *name, int64_t i);
void fkt_onnx_float(struct fkt_onnx_build *b, const char *name, float f);
void fkt_onnx_int_list(struct fkt_onnx_build *b, const char *name, const int64_t *list, size_t n /* 1 to 4 */);

/* Initialisers. Floats are borrowed until the file is written, those of _copied are copied; whole numbers (1 to 4, one
 * dimension) are copied. rank 0: a single number. */
const char *fkt_onnx_floats(struct fkt_onnx_build *b, const char *name, const float *data, const uint32_t *shape,
                            uint32_t rank);
const char *fkt_onnx_floats_copied(struct fkt_onnx_build *b, const char *name, const float *data, const uint32_t *shape,
                                   uint32_t rank);
const char *fkt_onnx_number(struct fkt_onnx_build *b, const char *name, double x); /* a single float */
const char *fkt_onnx_whole_numbers(struct fkt_onnx_build *b, const char *name, const int64_t *data, size_t n);

/* An entry of metadata_props; a fkt_model_put. */
fkt_status fkt_onnx_word(void *build, const char *key, const char *value);

/* A graph's input or output; the first dimension is free ("N"). */
enum { FKT_ONNX_TYPE_FLOAT = 1, FKT_ONNX_TYPE_UINT8 = 2 };
struct fkt_onnx_value {
    const char *name;
    int type;
    uint32_t shape[4], rank;
};
/* flags as in base/file.h. */
FKT_MUST_USE fkt_status fkt_onnx_write(struct fkt_onnx_build *b, const char *graph, const struct fkt_onnx_value *in,
                                       const struct fkt_onnx_value *out, const char *path, int flags);

/* onnx_net.c: all operations of a network from value x on, under names that begin with `prefix`; array (n_slots) holds
 * the numbers of each slot, borrowed until the file is written. Returns the last value, which is called `last`
 * (NULL: by its operation). */
const char *fkt_onnx_net(struct fkt_onnx_build *b, const struct fkt_net *net, const struct fkt_shape *shapes,
                         const float *const *array, const char *prefix, const char *x, const char *last);

#endif
