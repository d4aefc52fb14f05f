/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_write.c - writes a model as ONNX, for other runtimes.
 *
 *   images (N,3,S,S) -> Conv, BatchNormalization, Relu, MaxPool, Add -> GlobalAveragePool -> Flatten -> Gemm -> logits
 *
 * One node per operation of the model's own list (nn/net.h), in its order, and a Flatten before the last layer; each
 * tensor is an initialiser under torchvision's name with the model's bytes unchanged; what a reader must know (classes,
 * normalisation, origin) is in metadata_props, under the same keys as in our safetensors.
 * Source: ONNX's operators at opset 13, IR version 7 (onnx 1.8, 2020), which runtimes of the last five years support.
 * Batch norms are not folded into convolutions: runtimes do that themselves, and further training needs them.
 *
 * protobuf-c packs directly into the file, so that the weights are never copied. Cost: one pass over them,
 * and some hundred bytes for each operation. */
#include "classifier/model.h"

#include "base/alloc.h"
#include "base/file.h"

#include <onnx.pb-c.h>

#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw_data is little-endian, and arrays are written unchanged"
#endif

enum { OPSET = 13, IR_VERSION = 7, FLOAT = 1, INPUTS_MAX = 5, ATTRIBUTES_MAX = 4 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 }; /* of attributes */

/* A node with storage for everything that it points to. */
struct row {
    Onnx__NodeProto node;
    Onnx__AttributeProto attribute[ATTRIBUTES_MAX], *attributes[ATTRIBUTES_MAX];
    int64_t ints[ATTRIBUTES_MAX][4];
    char *input[INPUTS_MAX], *output[1];
    char name[FKT_MODEL_NAME_MAX], result[FKT_MODEL_NAME_MAX + 8];
};

struct tensor {
    Onnx__TensorProto tensor;
    int64_t dims[FKT_SLOT_RANK];
};

struct words {
    Onnx__StringStringEntryProto *word, **words;
    size_t n, room;
};

struct export
{
    const struct fkt_model *model;
    struct row *row;
    Onnx__NodeProto **nodes;
    size_t n_nodes;
    char **value; /* (n_ops + 1) names, borrowed from rows */
    struct tensor *tensor;
    Onnx__TensorProto **tensors;
    struct words words;
};

/* protobuf-c's structs have no const; packing only reads. */
static char *text(const char *s) { return (char *)(uintptr_t)s; }

static void begin_node(struct row *r, const char *type, const char *x)
{
    onnx__node_proto__init(&r->node);
    r->node.op_type = text(type);
    r->node.name = r->name;
    r->node.input = r->input;
    r->node.output = r->output;
    r->node.attribute = r->attributes;
    r->output[0] = r->result;
    r->node.n_output = 1;
    r->input[r->node.n_input++] = text(x);
}

static Onnx__AttributeProto *attribute(struct row *r, const char *name, int type)
{
    Onnx__AttributeProto *a = &r->attribute[r->node.n_attribute];
    onnx__attribute_proto__init(a);
    a->name = text(name);
    a->has_type = 1;
    a->type = type;
    r->attributes[r->node.n_attribute++] = a;
    return a;
}

static void add_ints(struct row *r, const char *name, size_t n, uint32_t each)
{
    int64_t *list = r->ints[r->node.n_attribute];
    Onnx__AttributeProto *a = attribute(r, name, TYPE_INTS);
    for (size_t i = 0; i < n; i++) list[i] = each;
    a->ints = list;
    a->n_ints = n;
}

static void add_int(struct row *r, const char *name, int64_t i)
{
    Onnx__AttributeProto *a = attribute(r, name, TYPE_INT);
    a->has_i = 1;
    a->i = i;
}

static void add_float(struct row *r, const char *name, float f)
{
    Onnx__AttributeProto *a = attribute(r, name, TYPE_FLOAT);
    a->has_f = 1;
    a->f = f;
}

static void add_window(struct row *r, const struct fkt_op *op)
{
    add_ints(r, "kernel_shape", 2, op->kernel);
    add_ints(r, "strides", 2, op->stride);
    add_ints(r, "pads", 4, op->pad);
}

static void add_weight(struct export *s, struct row *r, uint32_t slot)
{
    if (slot != FKT_NO_SLOT) r->input[r->node.n_input++] = s->model->net.slot[slot].name[0];
}

/* "layer1.0.conv1" for operations with weights; "relu_7" for the rest. */
static void name_node(const struct export *s, struct row *r, const struct fkt_op *op, size_t i)
{
    if (op->kind == FKT_OP_CONV || op->kind == FKT_OP_BATCH_NORM || op->kind == FKT_OP_LINEAR) {
        const char *weight = s->model->net.slot[op->weight].name[0], *dot = strrchr(weight, '.');
        snprintf(r->name, sizeof r->name, "%.*s", (int)(dot ? dot - weight : 0), weight);
    } else {
        snprintf(r->name, sizeof r->name, "%s_%zu", r->node.op_type, i);
    }
    snprintf(r->result, sizeof r->result, "%s_out", r->name);
}

static struct row *new_row(struct export *s)
{
    struct row *r = &s->row[s->n_nodes];
    s->nodes[s->n_nodes++] = &r->node;
    return r;
}

/* LINEAR is two nodes: Flatten takes (F, 1, 1) to (F). */
static const char *add_flatten(struct export *s, const char *x)
{
    struct row *r = new_row(s);
    begin_node(r, "Flatten", x);
    add_int(r, "axis", 1);
    snprintf(r->name, sizeof r->name, "flatten");
    snprintf(r->result, sizeof r->result, "features");
    return r->result;
}

static fkt_status add_op(struct export *s, size_t i)
{
    const struct fkt_op *op = &s->model->net.op[i];
    const char *x = s->value[op->in[0]];
    struct row *r;
    if (op->kind == FKT_OP_LINEAR) x = add_flatten(s, x);
    r = new_row(s);
    switch (op->kind) {
    case FKT_OP_CONV:
        begin_node(r, "Conv", x);
        add_window(r, op);
        break;
    case FKT_OP_BATCH_NORM:
        begin_node(r, "BatchNormalization", x);
        add_float(r, "epsilon", op->value[0]);
        break;
    case FKT_OP_RELU: begin_node(r, "Relu", x); break;
    case FKT_OP_ADD:
        begin_node(r, "Add", x);
        r->input[r->node.n_input++] = s->value[op->in[1]];
        break;
    case FKT_OP_MAX_POOL:
        begin_node(r, "MaxPool", x);
        add_window(r, op);
        break;
    case FKT_OP_MEAN: begin_node(r, "GlobalAveragePool", x); break;
    case FKT_OP_LINEAR:
        begin_node(r, "Gemm", x);
        add_int(r, "transB", 1);
        break;
    default: return fkt_fail(FKT_E_STATE, "a %s of this network cannot be written as ONNX", fkt_op_name(op->kind));
    }
    add_weight(s, r, op->weight);
    add_weight(s, r, op->bias);
    add_weight(s, r, op->mean);
    add_weight(s, r, op->var);
    name_node(s, r, op, i);
    if (i + 1 == s->model->net.n_ops) snprintf(r->result, sizeof r->result, "logits");
    s->value[i + 1] = r->result;
    return FKT_OK;
}

static void add_tensor(struct export *s, size_t i)
{
    const struct fkt_model_tensor t = fkt_model_tensor(s->model, i);
    struct tensor *out = &s->tensor[i];
    onnx__tensor_proto__init(&out->tensor);
    for (uint32_t d = 0; d < t.rank; d++) out->dims[d] = t.shape[d];
    out->tensor.dims = out->dims;
    out->tensor.n_dims = t.rank;
    out->tensor.has_data_type = 1;
    out->tensor.data_type = FLOAT;
    out->tensor.name = text(t.name);
    out->tensor.has_raw_data = 1;
    out->tensor.raw_data = (ProtobufCBinaryData){t.count * sizeof *t.data, (uint8_t *)t.data};
    s->tensors[i] = &out->tensor;
}

static fkt_status put_word(void *ctx, const char *key, const char *value)
{
    struct words *w = ctx;
    Onnx__StringStringEntryProto *e;
    fkt_status st;
    if (w->n == w->room) {
        const size_t room = w->room ? 2 * w->room : 16;
        FKT_TRY(fkt_realloc(&w->word, room));
        FKT_TRY(fkt_realloc(&w->words, room));
        w->room = room;
    }
    e = &w->word[w->n];
    onnx__string_string_entry_proto__init(e);
    e->key = e->value = NULL;
    w->n++;
    FKT_TRY(fkt_strdup(&e->key, key));
    FKT_TRY(fkt_strdup(&e->value, value));
out:
    return st;
}

static fkt_status fill(struct export *s)
{
    const struct fkt_net *net = &s->model->net;
    fkt_status st;
    FKT_TRY(fkt_alloc(&s->row, net->n_ops + 1));
    FKT_TRY(fkt_alloc(&s->nodes, net->n_ops + 1));
    FKT_TRY(fkt_alloc(&s->value, net->n_ops + 1));
    FKT_TRY(fkt_alloc(&s->tensor, net->n_slots));
    FKT_TRY(fkt_alloc(&s->tensors, net->n_slots));
    s->value[0] = text("images");
    for (size_t i = 0; i < net->n_ops; i++) FKT_TRY(add_op(s, i));
    for (size_t i = 0; i < net->n_slots; i++) add_tensor(s, i);
    FKT_TRY(fkt_model_describe(s->model, put_word, &s->words));
    for (size_t i = 0; i < s->words.n; i++) s->words.words[i] = &s->words.word[i]; /* the array may have moved */
out:
    return st;
}

static void clear(struct export *s)
{
    for (size_t i = 0; i < s->words.n; i++) {
        fkt_free(s->words.word[i].key);
        fkt_free(s->words.word[i].value);
    }
    fkt_free(s->words.word);
    fkt_free(s->words.words);
    fkt_free(s->tensors);
    fkt_free(s->tensor);
    fkt_free(s->value);
    fkt_free(s->nodes);
    fkt_free(s->row);
}

/* A value's name, type and shape; the first dimension is free. */
struct value_info {
    Onnx__ValueInfoProto info, *list[1];
    Onnx__TypeProto type;
    Onnx__TypeProto__Tensor tensor;
    Onnx__TensorShapeProto shape;
    Onnx__TensorShapeProto__Dimension dim[4], *dims[4];
};

static void value_info_init(struct value_info *f, const char *name, const uint32_t *shape, size_t rank)
{
    onnx__value_info_proto__init(&f->info);
    onnx__type_proto__init(&f->type);
    onnx__type_proto__tensor__init(&f->tensor);
    onnx__tensor_shape_proto__init(&f->shape);
    for (size_t i = 0; i < rank; i++) {
        onnx__tensor_shape_proto__dimension__init(&f->dim[i]);
        if (i == 0) {
            f->dim[i].dim_param = text("N");
        } else {
            f->dim[i].has_dim_value = 1;
            f->dim[i].dim_value = shape[i];
        }
        f->dims[i] = &f->dim[i];
    }
    f->shape.dim = f->dims;
    f->shape.n_dim = rank;
    f->tensor.has_elem_type = 1;
    f->tensor.elem_type = FLOAT;
    f->tensor.shape = &f->shape;
    f->type.tensor_type = &f->tensor;
    f->info.name = text(name);
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

static void pack(const struct export *s, FILE *stream)
{
    const uint32_t in[4] = {0, 3, s->model->size, s->model->size}, out[2] = {0, s->model->n_classes};
    struct sink sink = {{append}, stream};
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[1] = {&opset};
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    struct value_info images, logits;
    value_info_init(&images, "images", in, 4);
    value_info_init(&logits, "logits", out, 2);
    opset.domain = text("");
    opset.has_version = 1;
    opset.version = OPSET;
    graph.name = text(fkt_architecture_name(s->model->architecture));
    graph.node = s->nodes;
    graph.n_node = s->n_nodes;
    graph.initializer = s->tensors;
    graph.n_initializer = s->model->net.n_slots;
    graph.input = images.list;
    graph.output = logits.list;
    graph.n_input = graph.n_output = 1;
    model.has_ir_version = 1;
    model.ir_version = IR_VERSION;
    model.producer_name = text("fedkt");
    model.producer_version = text(FKT_VERSION);
    model.graph = &graph;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    model.metadata_props = s->words.words;
    model.n_metadata_props = s->words.n;
    onnx__model_proto__pack_to_buffer(&model, &sink.base);
}

fkt_status fkt_model_export_onnx(const struct fkt_model *m, const char *path, int force)
{
    struct export s = {.model = m};
    struct fkt_file file = {0};
    fkt_status st;
    FKT_TRY(fkt_model_check(m, path));
    FKT_TRY(fill(&s));
    FKT_TRY(fkt_file_begin(&file, path, fkt_model_file_flags(m, force)));
    pack(&s, file.stream);
    FKT_TRY(fkt_file_commit(&file));
out:
    fkt_file_clear(&file);
    clear(&s);
    return st;
}
