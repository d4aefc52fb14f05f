/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_net.c - the operations of a network (nn/net.h) as ONNX nodes, in their order; a Flatten before each LINEAR.
 *
 * Each slot is an initialiser under its own name, with its numbers unchanged. Batch norms are not folded into
 * convolutions: runtimes do that themselves, and further training needs them. */
#include "classifier/onnx_build.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

struct writing {
    struct fkt_onnx_build *b;
    const struct fkt_net *net;
    const struct fkt_shape *shapes;
    const char *prefix, **value; /* (n_ops + 1) names, borrowed */
};

typedef char name_text[FKT_ONNX_NAME_MAX];

static void add_window(struct fkt_onnx_build *b, const struct fkt_op *op)
{
    const int64_t kernel[2] = {op->kernel, op->kernel}, stride[2] = {op->stride, op->stride};
    const int64_t pads[4] = {op->pad, op->pad, op->pad, op->pad};
    fkt_onnx_int_list(b, "kernel_shape", kernel, 2);
    fkt_onnx_int_list(b, "strides", stride, 2);
    fkt_onnx_int_list(b, "pads", pads, 4);
    if (op->kind == FKT_OP_CONV && op->groups > 1) fkt_onnx_int(b, "group", op->groups);
}

static void add_weight(struct writing *w, uint32_t slot)
{
    name_text name;
    if (slot == FKT_NO_SLOT) return;
    snprintf(name, sizeof name, "%s%s", w->prefix, w->net->slot[slot].name[0]);
    fkt_onnx_input(w->b, name);
}

/* "layer1.0.conv1" for operations with weights; "Relu_7" for the rest. */
static void name_op(const struct writing *w, const struct fkt_op *op, const char *type, size_t i, name_text name)
{
    if (op->weight != FKT_NO_SLOT &&
        (op->kind == FKT_OP_CONV || op->kind == FKT_OP_BATCH_NORM || op->kind == FKT_OP_LINEAR)) {
        const char *weight = w->net->slot[op->weight].name[0], *dot = strrchr(weight, '.');
        snprintf(name, FKT_ONNX_NAME_MAX, "%s%.*s", w->prefix, (int)(dot ? dot - weight : 0), weight);
    } else {
        snprintf(name, FKT_ONNX_NAME_MAX, "%s%s_%zu", w->prefix, type, i);
    }
}

static const char *type_of(enum fkt_op_kind kind)
{
    switch (kind) {
    case FKT_OP_CONV: return "Conv";
    case FKT_OP_BATCH_NORM: return "BatchNormalization";
    case FKT_OP_RELU: return "Relu";
    case FKT_OP_ADD: return "Add";
    case FKT_OP_MAX_POOL: return "MaxPool";
    case FKT_OP_MEAN: return "GlobalAveragePool";
    case FKT_OP_LINEAR: return "Gemm";
    default: return NULL;
    }
}

/* LINEAR is two nodes: Flatten takes (F, 1, 1) to (F). */
static const char *add_flatten(struct writing *w, const char *x)
{
    name_text name, result;
    const char *value;
    snprintf(name, sizeof name, "%sflatten", w->prefix);
    snprintf(result, sizeof result, "%sfeatures", w->prefix);
    value = fkt_onnx_node(w->b, "Flatten", name, result);
    fkt_onnx_input(w->b, x);
    fkt_onnx_int(w->b, "axis", 1);
    return value;
}

static void add_op(struct writing *w, size_t i, const char *last)
{
    const struct fkt_op *op = &w->net->op[i];
    const char *x = w->value[op->in[0]], *type = type_of(op->kind);
    name_text name, result;
    if (!type) {
        fkt_onnx_build_fail(
            w->b, fkt_fail(FKT_E_STATE, "a %s of this network cannot be written as ONNX", fkt_op_name(op->kind)));
        return;
    }
    if (op->kind == FKT_OP_LINEAR) x = add_flatten(w, x);
    name_op(w, op, type, i, name);
    snprintf(result, sizeof result, "%.*s_out", (int)(sizeof result - 5), name);
    w->value[i + 1] = fkt_onnx_node(w->b, type, name, last ? last : result);
    fkt_onnx_input(w->b, x);
    if (fkt_op_reads_two(op)) fkt_onnx_input(w->b, w->value[op->in[1]]);
    if (op->kind == FKT_OP_CONV || op->kind == FKT_OP_MAX_POOL) add_window(w->b, op);
    if (op->kind == FKT_OP_BATCH_NORM) fkt_onnx_float(w->b, "epsilon", op->value[0]);
    if (op->kind == FKT_OP_LINEAR) fkt_onnx_int(w->b, "transB", 1);
    add_weight(w, op->weight);
    add_weight(w, op->bias);
    add_weight(w, op->mean);
    add_weight(w, op->var);
}

static void add_slot(struct writing *w, const float *data, size_t slot)
{
    const struct fkt_slot *s = &w->net->slot[slot];
    name_text name;
    snprintf(name, sizeof name, "%s%s", w->prefix, s->name[0]);
    (void)fkt_onnx_floats(w->b, name, data, s->shape, s->rank);
}

const char *fkt_onnx_net(struct fkt_onnx_build *b, const struct fkt_net *net, const struct fkt_shape *shapes,
                         const float *const *array, const char *prefix, const char *x, const char *last)
{
    struct writing w = {b, net, shapes, prefix, NULL};
    const char *end = "";
    fkt_status st;
    FKT_TRY(fkt_alloc(&w.value, net->n_ops + 1));
    w.value[0] = x;
    for (size_t i = 0; i < net->n_ops && fkt_onnx_build_status(b) == FKT_OK; i++)
        add_op(&w, i, i + 1 == net->n_ops ? last : NULL);
    for (size_t i = 0; i < net->n_slots; i++) add_slot(&w, array[i], i);
    if (fkt_onnx_build_status(b) == FKT_OK) end = w.value[net->n_ops];
out:
    fkt_onnx_build_fail(b, st);
    fkt_free(w.value);
    return end;
}
