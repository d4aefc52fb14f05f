/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_build.c - an ONNX graph in the making, and the file.
 *
 * Source: ONNX's operators at opset 13, IR version 7 (onnx 1.8, 2020), which runtimes of the last five years support.
 * protobuf-c packs directly into the file, so that the weights are never copied. Cost: one pass over them, and some
 * hundred bytes for each operation. Each node and tensor is a block of its own: names are borrowed, and must not
 * move. */
#include "classifier/onnx_build.h"

#include "base/alloc.h"
#include "base/file.h"

#include <onnx.pb-c.h>

#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw_data is little-endian, and arrays are written unchanged"
#endif

enum { OPSET = 13, IR_VERSION = 7, INT64 = 7 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 }; /* of attributes */

/* A node with storage for everything that it points to. */
struct row {
    Onnx__NodeProto node;
    Onnx__AttributeProto attribute[FKT_ONNX_ATTRIBUTES_MAX], *attributes[FKT_ONNX_ATTRIBUTES_MAX];
    int64_t ints[FKT_ONNX_ATTRIBUTES_MAX][4];
    char *input[FKT_ONNX_INPUTS_MAX], *output[1];
    char inputs[FKT_ONNX_INPUTS_MAX][FKT_ONNX_NAME_MAX];
    char name[FKT_ONNX_NAME_MAX], result[FKT_ONNX_NAME_MAX];
};

struct tensor {
    Onnx__TensorProto tensor;
    int64_t dims[FKT_SLOT_RANK], whole[4];
    float *copy; /* NULL: the numbers are borrowed */
    char name[FKT_ONNX_NAME_MAX];
};

struct fkt_onnx_build {
    fkt_status failed;
    Onnx__NodeProto **nodes;     /* each the first member of its row */
    Onnx__TensorProto **tensors; /* likewise */
    Onnx__StringStringEntryProto **words;
    size_t n_nodes, n_tensors, n_words;
};

fkt_status fkt_onnx_build_new(struct fkt_onnx_build **out) { return fkt_alloc(out, 1); }

void fkt_onnx_build_free(struct fkt_onnx_build *b)
{
    if (!b) return;
    for (size_t i = 0; i < b->n_nodes; i++) fkt_free(b->nodes[i]);
    for (size_t i = 0; i < b->n_tensors; i++) {
        fkt_free(((struct tensor *)(void *)b->tensors[i])->copy);
        fkt_free(b->tensors[i]);
    }
    for (size_t i = 0; i < b->n_words; i++) {
        fkt_free(b->words[i]->key);
        fkt_free(b->words[i]->value);
        fkt_free(b->words[i]);
    }
    fkt_free(b->nodes);
    fkt_free(b->tensors);
    fkt_free(b->words);
    fkt_free(b);
}

fkt_status fkt_onnx_build_status(const struct fkt_onnx_build *b) { return b->failed; }

void fkt_onnx_build_fail(struct fkt_onnx_build *b, fkt_status st)
{
    if (b->failed == FKT_OK) b->failed = st;
}

/* protobuf-c's structs have no const; packing only reads. */
static char *text(const char *s) { return (char *)(uintptr_t)s; }

/* ---- nodes ---- */

const char *fkt_onnx_node(struct fkt_onnx_build *b, const char *type, const char *name, const char *result)
{
    struct row *r = NULL;
    fkt_status st;
    if (b->failed != FKT_OK) return "";
    FKT_TRY(fkt_realloc(&b->nodes, b->n_nodes + 1));
    FKT_TRY(fkt_alloc(&r, 1));
    onnx__node_proto__init(&r->node);
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(r->result, sizeof r->result, "%s", result);
    r->node.op_type = text(type);
    r->node.name = r->name;
    r->node.input = r->input;
    r->node.output = r->output;
    r->node.attribute = r->attributes;
    r->output[0] = r->result;
    r->node.n_output = 1;
    b->nodes[b->n_nodes++] = &r->node;
    return r->result;
out:
    fkt_onnx_build_fail(b, st);
    return "";
}

static struct row *last_row(struct fkt_onnx_build *b)
{
    return b->failed == FKT_OK && b->n_nodes ? (struct row *)(void *)b->nodes[b->n_nodes - 1] : NULL;
}

void fkt_onnx_input(struct fkt_onnx_build *b, const char *value)
{
    struct row *r = last_row(b);
    if (!r) return;
    if (r->node.n_input == FKT_ONNX_INPUTS_MAX) {
        fkt_onnx_build_fail(b, fkt_fail(FKT_E_STATE, "node '%s' has too many inputs", r->name));
        return;
    }
    char *name = r->inputs[r->node.n_input];
    snprintf(name, FKT_ONNX_NAME_MAX, "%s", value);
    r->input[r->node.n_input++] = name;
}

static Onnx__AttributeProto *attribute(struct fkt_onnx_build *b, const char *name, int type, int64_t **list)
{
    struct row *r = last_row(b);
    Onnx__AttributeProto *a;
    if (!r) return NULL;
    if (r->node.n_attribute == FKT_ONNX_ATTRIBUTES_MAX) {
        fkt_onnx_build_fail(b, fkt_fail(FKT_E_STATE, "node '%s' has too many attributes", r->name));
        return NULL;
    }
    *list = r->ints[r->node.n_attribute];
    a = &r->attribute[r->node.n_attribute];
    onnx__attribute_proto__init(a);
    a->name = text(name);
    a->has_type = 1;
    a->type = type;
    r->attributes[r->node.n_attribute++] = a;
    return a;
}

void fkt_onnx_int(struct fkt_onnx_build *b, const char *name, int64_t i)
{
    int64_t *list;
    Onnx__AttributeProto *a = attribute(b, name, TYPE_INT, &list);
    if (!a) return;
    a->has_i = 1;
    a->i = i;
}

void fkt_onnx_float(struct fkt_onnx_build *b, const char *name, float f)
{
    int64_t *list;
    Onnx__AttributeProto *a = attribute(b, name, TYPE_FLOAT, &list);
    if (!a) return;
    a->has_f = 1;
    a->f = f;
}

void fkt_onnx_int_list(struct fkt_onnx_build *b, const char *name, const int64_t *list, size_t n)
{
    int64_t *copy;
    Onnx__AttributeProto *a = attribute(b, name, TYPE_INTS, &copy);
    if (!a) return;
    memcpy(copy, list, n * sizeof *list);
    a->ints = copy;
    a->n_ints = n;
}

/* ---- tensors and words ---- */

static struct tensor *new_tensor(struct fkt_onnx_build *b, const char *name, int type)
{
    struct tensor *t = NULL;
    fkt_status st;
    if (b->failed != FKT_OK) return NULL;
    FKT_TRY(fkt_realloc(&b->tensors, b->n_tensors + 1));
    FKT_TRY(fkt_alloc(&t, 1));
    onnx__tensor_proto__init(&t->tensor);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->tensor.name = t->name;
    t->tensor.dims = t->dims;
    t->tensor.has_data_type = 1;
    t->tensor.data_type = type;
    t->tensor.has_raw_data = 1;
    b->tensors[b->n_tensors++] = &t->tensor;
    return t;
out:
    fkt_onnx_build_fail(b, st);
    return NULL;
}

const char *fkt_onnx_floats(struct fkt_onnx_build *b, const char *name, const float *data, const uint32_t *shape,
                            uint32_t rank)
{
    struct tensor *t = new_tensor(b, name, FKT_ONNX_TYPE_FLOAT);
    size_t count = 1;
    if (!t) return "";
    for (uint32_t d = 0; d < rank; d++) {
        t->dims[d] = shape[d];
        count *= shape[d];
    }
    t->tensor.n_dims = rank;
    t->tensor.raw_data = (ProtobufCBinaryData){count * sizeof *data, (uint8_t *)(uintptr_t)data};
    return t->name;
}

const char *fkt_onnx_floats_copied(struct fkt_onnx_build *b, const char *name, const float *data, const uint32_t *shape,
                                   uint32_t rank)
{
    const char *made = fkt_onnx_floats(b, name, data, shape, rank);
    struct tensor *t;
    fkt_status st;
    if (b->failed != FKT_OK) return "";
    t = (struct tensor *)(void *)b->tensors[b->n_tensors - 1];
    FKT_TRY(fkt_alloc(&t->copy, t->tensor.raw_data.len / sizeof *t->copy));
    memcpy(t->copy, data, t->tensor.raw_data.len);
    t->tensor.raw_data.data = (uint8_t *)t->copy;
    return made;
out:
    fkt_onnx_build_fail(b, st);
    return "";
}

const char *fkt_onnx_number(struct fkt_onnx_build *b, const char *name, double x)
{
    return fkt_onnx_floats_copied(b, name, &(float){(float)x}, NULL, 0);
}

const char *fkt_onnx_whole_numbers(struct fkt_onnx_build *b, const char *name, const int64_t *data, size_t n)
{
    struct tensor *t = new_tensor(b, name, INT64);
    if (!t) return "";
    memcpy(t->whole, data, n * sizeof *data);
    t->dims[0] = (int64_t)n;
    t->tensor.n_dims = 1;
    t->tensor.raw_data = (ProtobufCBinaryData){n * sizeof *data, (uint8_t *)t->whole};
    return t->name;
}

fkt_status fkt_onnx_word(void *build, const char *key, const char *value)
{
    struct fkt_onnx_build *b = build;
    Onnx__StringStringEntryProto *e = NULL;
    fkt_status st = b->failed;
    if (st != FKT_OK) return st;
    FKT_TRY(fkt_realloc(&b->words, b->n_words + 1));
    FKT_TRY(fkt_alloc(&e, 1));
    onnx__string_string_entry_proto__init(e);
    e->key = e->value = NULL;
    b->words[b->n_words++] = e;
    FKT_TRY(fkt_strdup(&e->key, key));
    FKT_TRY(fkt_strdup(&e->value, value));
out:
    fkt_onnx_build_fail(b, st);
    return st;
}

/* ---- the file ---- */

/* A value's name, type and shape; the first dimension is free. */
struct value_info {
    Onnx__ValueInfoProto info, *list[1];
    Onnx__TypeProto type;
    Onnx__TypeProto__Tensor tensor;
    Onnx__TensorShapeProto shape;
    Onnx__TensorShapeProto__Dimension dim[4], *dims[4];
};

static void value_info_init(struct value_info *f, const struct fkt_onnx_value *v)
{
    onnx__value_info_proto__init(&f->info);
    onnx__type_proto__init(&f->type);
    onnx__type_proto__tensor__init(&f->tensor);
    onnx__tensor_shape_proto__init(&f->shape);
    for (size_t i = 0; i < v->rank; i++) {
        onnx__tensor_shape_proto__dimension__init(&f->dim[i]);
        if (i == 0) {
            f->dim[i].dim_param = text("N");
        } else {
            f->dim[i].has_dim_value = 1;
            f->dim[i].dim_value = v->shape[i];
        }
        f->dims[i] = &f->dim[i];
    }
    f->shape.dim = f->dims;
    f->shape.n_dim = v->rank;
    f->tensor.has_elem_type = 1;
    f->tensor.elem_type = v->type;
    f->tensor.shape = &f->shape;
    f->type.tensor_type = &f->tensor;
    f->info.name = text(v->name);
    f->info.type = &f->type;
    f->list[0] = &f->info;
}

/* The buffer that protobuf-c packs into. Commit reports a failed write. */
struct sink {
    ProtobufCBuffer base;
    FILE *stream;
};

static void append(ProtobufCBuffer *base, size_t len, const uint8_t *bytes)
{
    (void)fwrite(bytes, 1, len, ((struct sink *)base)->stream);
}

static void pack(const struct fkt_onnx_build *b, const char *name, const struct fkt_onnx_value *in,
                 const struct fkt_onnx_value *out, FILE *stream)
{
    struct sink sink = {{append}, stream};
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[1] = {&opset};
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    struct value_info input, output;
    value_info_init(&input, in);
    value_info_init(&output, out);
    opset.domain = text("");
    opset.has_version = 1;
    opset.version = OPSET;
    graph.name = text(name);
    graph.node = b->nodes;
    graph.n_node = b->n_nodes;
    graph.initializer = b->tensors;
    graph.n_initializer = b->n_tensors;
    graph.input = input.list;
    graph.output = output.list;
    graph.n_input = graph.n_output = 1;
    model.has_ir_version = 1;
    model.ir_version = IR_VERSION;
    model.producer_name = text("fedkt");
    model.producer_version = text(FKT_VERSION);
    model.graph = &graph;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    model.metadata_props = b->words;
    model.n_metadata_props = b->n_words;
    onnx__model_proto__pack_to_buffer(&model, &sink.base);
}

fkt_status fkt_onnx_write(struct fkt_onnx_build *b, const char *graph, const struct fkt_onnx_value *in,
                          const struct fkt_onnx_value *out, const char *path, int flags)
{
    struct fkt_file file = {0};
    fkt_status st = b->failed;
    if (st != FKT_OK) return st;
    FKT_TRY(fkt_file_begin(&file, path, flags));
    pack(b, graph, in, out, file.stream);
    FKT_TRY(fkt_file_commit(&file));
out:
    fkt_file_clear(&file);
    return st;
}
