/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_graph.h - an untrusted ONNX graph, compared with a list of operations; private to onnx_*.c. */
#ifndef FKT_CLASSIFIER_ONNX_GRAPH_H
#define FKT_CLASSIFIER_ONNX_GRAPH_H

#include "nn/net.h"

#include <onnx.pb-c.h>

enum { FKT_ONNX_FLOAT = 1, FKT_ONNX_UINT8 = 2, FKT_ONNX_INT64 = 7 }; /* data_type of a tensor */
enum { FKT_ONNX_LIST_MAX = 1024 }; /* nodes, and initialisers: a resnet18 has 69 and 102 */

/* All is borrowed from the model, whose memory protobuf-c owns. Names are unique in their table. */
struct fkt_onnx_graph {
    const Onnx__GraphProto *graph;
    const Onnx__ValueInfoProto *input; /* the one that is not an initialiser */
    const char *output;
    uint8_t *used;    /* (n_node) taken by a match */
    const char *path; /* for errors */
};

/* Where the numbers of a slot come from. */
enum fkt_onnx_source { FKT_ONNX_TENSOR = 0, FKT_ONNX_CONSTANT };
struct fkt_onnx_origin {
    enum fkt_onnx_source source;
    const Onnx__TensorProto *tensor;
    float constant;
};

/* Tables are checked: sizes, one input, one output, unique names, standard operators only. */
FKT_MUST_USE fkt_status fkt_onnx_graph_init(struct fkt_onnx_graph *g, const Onnx__ModelProto *model, const char *path);
void fkt_onnx_graph_clear(struct fkt_onnx_graph *g);

const char *fkt_onnx_type(const Onnx__NodeProto *n); /* op_type, never NULL */
/* The initialiser of that name, also through Identity nodes or a Constant; NULL: none. */
const Onnx__TensorProto *fkt_onnx_tensor(const struct fkt_onnx_graph *g, const char *name);
/* A node that reads `value` as one of its inputs, of type `type` (NULL: any), not taken yet; NULL: none. */
const Onnx__NodeProto *fkt_onnx_reader(const struct fkt_onnx_graph *g, const char *value, const char *type);
const Onnx__NodeProto *fkt_onnx_maker(const struct fkt_onnx_graph *g, const char *value); /* NULL: none */
/* "64x3x7x7" with as many dimensions as fit. Returns out. */
const char *fkt_onnx_dims(char *out, size_t cap, const Onnx__TensorProto *t);
/* Whole numbers of an int64 tensor of one dimension, at most `cap`; returns their number, 0 for any other tensor. */
size_t fkt_onnx_ints(const Onnx__TensorProto *t, int64_t *out, size_t cap);

/* onnx_match.c: the graph must be the network `what`, operation by operation; origin[slot] says where each slot's
 * numbers are. */
FKT_MUST_USE fkt_status fkt_onnx_match(struct fkt_onnx_graph *g, const struct fkt_net *net, const char *what,
                                       struct fkt_onnx_origin *origin);
/* onnx_attributes.c: every attribute of the node is known, and is what the operation needs. */
FKT_MUST_USE fkt_status fkt_onnx_attributes(const struct fkt_onnx_graph *g, const Onnx__NodeProto *node,
                                            const struct fkt_op *op);

#endif
