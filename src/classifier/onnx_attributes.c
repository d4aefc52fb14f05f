/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_attributes.c - checks the attributes of an ONNX node against the operation that it implements.
 *
 * One table defines what an attribute must be, and its default when it is absent (ONNX's operators, opset 9 to 20). An
 * attribute that is not in the table may change what a node computes, so it is refused by name; therefore files of
 * later opsets can be accepted without a list of versions. */
#include "classifier/onnx_graph.h"

#include "base/text.h"
#include "tensor/safetensors_header.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The source of the number that an attribute must have: a constant, or the operation. */
enum source { CONSTANT, KERNEL, STRIDE, PAD, EPSILON, ANY };
enum form { INT, FLOAT, INTS_2, INTS_4, NOTSET /* the string "NOTSET" */, AXES };
#define NO_DEFAULT NAN /* absent: as required */

static const struct rule {
    const char *type, *name;
    enum form form;
    enum source source;
    double constant, absent;
} rules[] = {
    {"Conv", "kernel_shape", INTS_2, KERNEL, 0, NO_DEFAULT}, /* the weights' shape implies it */
    {"Conv", "strides", INTS_2, STRIDE, 0, 1},
    {"Conv", "pads", INTS_4, PAD, 0, 0},
    {"Conv", "dilations", INTS_2, CONSTANT, 1, 1},
    {"Conv", "group", INT, CONSTANT, 1, 1},
    {"Conv", "auto_pad", NOTSET, CONSTANT, 0, NO_DEFAULT},
    {"BatchNormalization", "epsilon", FLOAT, EPSILON, 0, 1e-5F},
    {"BatchNormalization", "momentum", FLOAT, ANY, 0, NO_DEFAULT},
    {"BatchNormalization", "training_mode", INT, CONSTANT, 0, 0},
    {"BatchNormalization", "spatial", INT, CONSTANT, 1, 1},
    {"MaxPool", "kernel_shape", INTS_2, KERNEL, 0, 0},
    {"MaxPool", "strides", INTS_2, STRIDE, 0, 1},
    {"MaxPool", "pads", INTS_4, PAD, 0, 0},
    {"MaxPool", "dilations", INTS_2, CONSTANT, 1, 1},
    {"MaxPool", "ceil_mode", INT, CONSTANT, 0, 0},
    {"MaxPool", "storage_order", INT, ANY, 0, NO_DEFAULT}, /* of the second result, which is not used */
    {"MaxPool", "auto_pad", NOTSET, CONSTANT, 0, NO_DEFAULT},
    {"ReduceMean", "axes", AXES, ANY, 0, NO_DEFAULT}, /* fkt_onnx_match checks them */
    {"ReduceMean", "keepdims", INT, CONSTANT, 1, 1},
    {"ReduceMean", "noop_with_empty_axes", INT, ANY, 0, NO_DEFAULT},
    {"Flatten", "axis", INT, CONSTANT, 1, 1},
    {"Reshape", "allowzero", INT, ANY, 0, NO_DEFAULT},
    {"Gemm", "alpha", FLOAT, CONSTANT, 1, 1},
    {"Gemm", "beta", FLOAT, CONSTANT, 1, 1},
    {"Gemm", "transA", INT, CONSTANT, 0, 0},
    {"Gemm", "transB", INT, CONSTANT, 1, 0},
};
enum { RULES = sizeof rules / sizeof *rules };

static double wanted(const struct rule *r, const struct fkt_op *op)
{
    switch (r->source) {
    case KERNEL: return op->kernel;
    case STRIDE: return op->stride;
    case PAD: return op->pad;
    case EPSILON: return op->value[0];
    default: return r->constant;
    }
}

static int all_are(const Onnx__AttributeProto *a, size_t n, double want)
{
    if (a->n_ints != n) return 0;
    for (size_t i = 0; i < n; i++)
        if ((double)a->ints[i] != want) return 0;
    return 1;
}

static int fits(const struct rule *r, const Onnx__AttributeProto *a, double want)
{
    if (r->source == ANY) return 1;
    switch (r->form) {
    case INT: return a->has_i && (double)a->i == want;
    case FLOAT: return a->has_f && (double)a->f == want;
    case INTS_2: return all_are(a, 2, want);
    case INTS_4: return all_are(a, 4, want);
    case NOTSET: return a->has_s && (!a->s.len || (a->s.len == 6 && !memcmp(a->s.data, "NOTSET", 6)));
    default: return 0;
    }
}

static void say_value(struct fkt_text *t, const Onnx__AttributeProto *a)
{
    if (a->has_i) fkt_text_addf(t, "%" PRId64, a->i);
    else if (a->has_f) fkt_text_addf(t, "%g", (double)a->f);
    for (size_t i = 0; i < a->n_ints && i < 4; i++) fkt_text_addf(t, "%s%" PRId64, i ? "," : "", a->ints[i]);
    if (!t->len) fkt_text_add(t, "of another kind");
}

static fkt_status refuse(const struct fkt_onnx_graph *g, const Onnx__NodeProto *n, const char *name,
                         const Onnx__AttributeProto *a, double want)
{
    char node[FKT_ST_SHOWN], attribute[FKT_ST_SHOWN];
    struct fkt_text found;
    fkt_text_init(&found);
    if (a) say_value(&found, a);
    else fkt_text_add(&found, "absent");
    fkt_fail(FKT_E_MISMATCH, "'%s': attribute '%s' of '%s' ('%s') is %s but this network has %g", g->path,
             fkt_st_shown(attribute, name), fkt_st_shown(node, n->name ? n->name : ""), fkt_onnx_type(n), found.s,
             want);
    fkt_text_clear(&found);
    return FKT_E_MISMATCH;
}

static const struct rule *rule_of(const char *type, const char *name)
{
    for (size_t i = 0; i < RULES; i++)
        if (!strcmp(rules[i].type, type) && !strcmp(rules[i].name, name)) return &rules[i];
    return NULL;
}

static const Onnx__AttributeProto *attribute_of(const Onnx__NodeProto *n, const char *name)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (n->attribute[i]->name && !strcmp(n->attribute[i]->name, name)) return n->attribute[i];
    return NULL;
}

fkt_status fkt_onnx_attributes(const struct fkt_onnx_graph *g, const Onnx__NodeProto *node, const struct fkt_op *op)
{
    const char *type = fkt_onnx_type(node);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        const char *name = a->name ? a->name : "";
        const struct rule *r = rule_of(type, name);
        char shown[FKT_ST_SHOWN];
        if (!r || attribute_of(node, name) != a) /* an unknown one, or one of two of the same name */
            return fkt_fail(FKT_E_MISMATCH, "'%s': attribute '%s' of operator '%s' is unknown", g->path,
                            fkt_st_shown(shown, name), type);
        if (!fits(r, a, wanted(r, op))) return refuse(g, node, name, a, wanted(r, op));
    }
    for (size_t i = 0; i < RULES; i++) {
        const struct rule *r = &rules[i];
        if (strcmp(r->type, type) != 0 || isnan(r->absent) || attribute_of(node, r->name)) continue;
        if (r->absent != wanted(r, op)) return refuse(g, node, r->name, NULL, wanted(r, op));
    }
    return FKT_OK;
}
