/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_net.c - the operations of a network (nn/net.h) as ONNX nodes, in their order; a Flatten before each LINEAR.
 *
 * Each slot is an initialiser under its own name, with its numbers unchanged. Batch norms are not folded into
 * convolutions: runtimes do that themselves, and further training needs them. Resizing is two products with the
 * matrices of nn/resize.h: ONNX's Resize has antialiasing from opset 18 on alone, and runtimes differ in it. */
#include "classifier/onnx_build.h"

#include "base/alloc.h"
#include "nn/resize.h"

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
    const int64_t behind = (int64_t)op->pad + op->pad_after, pads[4] = {op->pad, op->pad, behind, behind};
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
    case FKT_OP_RELU6: return "Clip";
    case FKT_OP_RESIZE: return "MatMul";
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

/* The matrix (m, n), or transposed, that takes n numbers to m. */
static fkt_status resize_matrix(float **out, uint32_t n, uint32_t m, int transposed)
{
    fkt_status st = fkt_alloc(out, (size_t)n * m);
    if (st != FKT_OK) return st;
    for (uint32_t i = 0; i < m; i++) {
        const struct fkt_resize_span s = fkt_resize_reads(n, m, i);
        const double total = fkt_resize_total(n, m, i);
        for (uint32_t j = s.first; j < s.end; j++)
            (*out)[transposed ? (size_t)j * m + i : (size_t)i * n + j] = (float)(fkt_resize_t(n, m, i, j) / total);
    }
    return FKT_OK;
}

/* One of the two products: matrix times rows, or columns times matrix. */
static const char *add_product(struct writing *w, const char *name, const char *x, uint32_t n, uint32_t m, int columns,
                               const char *last)
{
    const uint32_t shape[2] = {columns ? n : m, columns ? m : n};
    name_text tensor, node, result;
    const char *matrix, *value;
    float *data = NULL;
    if (fkt_onnx_build_status(w->b) == FKT_OK) fkt_onnx_build_fail(w->b, resize_matrix(&data, n, m, columns));
    if (fkt_onnx_build_status(w->b) != FKT_OK) return "";
    snprintf(node, sizeof node, "%.60s_%s", name, columns ? "columns" : "rows");
    snprintf(tensor, sizeof tensor, "%.80s_matrix", node);
    snprintf(result, sizeof result, "%.80s_out", node);
    matrix = fkt_onnx_floats_copied(w->b, tensor, data, shape, 2);
    fkt_free(data);
    value = fkt_onnx_node(w->b, "MatMul", node, last ? last : result);
    fkt_onnx_input(w->b, columns ? x : matrix);
    fkt_onnx_input(w->b, columns ? matrix : x);
    return value;
}

static void add_resize(struct writing *w, size_t i, const char *last)
{
    const struct fkt_op *op = &w->net->op[i];
    const struct fkt_shape from = w->shapes[op->in[0]];
    const char *x = w->value[op->in[0]];
    name_text name;
    snprintf(name, sizeof name, "%.32sresize_%zu", w->prefix, i);
    x = add_product(w, name, x, from.h, op->factor, 0, NULL);
    w->value[i + 1] = add_product(w, name, x, from.w, op->factor, 1, last);
}

/* The bounds of a Clip. */
static void add_bounds(struct writing *w, size_t i, double low, double high)
{
    const double bound[2] = {low, high};
    for (int k = 0; k < 2; k++) {
        name_text name;
        snprintf(name, sizeof name, "%.60sclip_%zu_%s", w->prefix, i, k ? "high" : "low");
        fkt_onnx_input(w->b, fkt_onnx_number(w->b, name, bound[k]));
    }
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
    if (op->kind == FKT_OP_RESIZE) {
        add_resize(w, i, last);
        return;
    }
    if (op->kind == FKT_OP_LINEAR) x = add_flatten(w, x);
    name_op(w, op, type, i, name);
    snprintf(result, sizeof result, "%.*s_out", (int)(sizeof result - 5), name);
    w->value[i + 1] = fkt_onnx_node(w->b, type, name, last ? last : result);
    fkt_onnx_input(w->b, x);
    if (fkt_op_reads_two(op)) fkt_onnx_input(w->b, w->value[op->in[1]]);
    if (op->kind == FKT_OP_CONV || op->kind == FKT_OP_MAX_POOL) add_window(w->b, op);
    if (op->kind == FKT_OP_RELU6) add_bounds(w, i, 0, 6);
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
