/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_match.c - checks that an ONNX graph is a given network, operation by operation, by following values.
 *
 *   value 0 is the graph's input; operation i of the list (nn/net.h) must have its node: of the right type, reading the
 *   values that belong to it, with the right attributes and tensors of the right shape; its result is value i + 1. At
 *   the end the last value is the graph's output and no node is left over.
 *
 * So what is read is what any runtime would compute, whatever the names and order of nodes and tensors: PyTorch's
 * exporters use names such as "onnx::Conv_193" or "conv1.weight_bias" for folded tensors. Three variations of exporters
 * are accepted:
 *   - a batch norm may be missing, folded into its convolution (w' = w g / sqrt(v + e), b' = b - m g / sqrt(v + e)). We
 *     have no convolution with a bias, so it becomes a norm with no other effect: weight 1, bias b', mean 0 and
 *     variance 1 - e; the same function, to rounding;
 *   - the mean of each map is GlobalAveragePool, or ReduceMean over the last two dimensions, which are kept;
 *   - (F, 1, 1) becomes (F) by Flatten, or by Reshape to (any, F). */
#include "classifier/onnx_graph.h"

#include "base/alloc.h"
#include "tensor/safetensors_header.h"

#include <inttypes.h>
#include <string.h>

struct match {
    struct fkt_onnx_graph *g;
    const struct fkt_net *net;
    const char *what;                   /* "resnet18" */
    const char **value;                 /* (n_ops + 1) names */
    const Onnx__TensorProto *conv_bias; /* of the convolution just matched; NULL: none */
    struct fkt_onnx_origin *origin;
};

static void take(struct match *m, const Onnx__NodeProto *n)
{
    for (size_t i = 0; i < m->g->graph->n_node; i++)
        if (m->g->graph->node[i] == n) m->g->used[i] = 1;
}

/* The error for a node other than `want` on value x. */
static fkt_status mismatch(const struct match *m, const char *x, const char *want)
{
    const Onnx__NodeProto *n = fkt_onnx_reader(m->g, x, NULL), *before = fkt_onnx_maker(m->g, x);
    char type[FKT_ST_SHOWN], place[FKT_ST_SHOWN];
    fkt_st_shown(place, before && before->name && *before->name ? before->name : x);
    if (n && !strcmp(fkt_onnx_type(n), want))
        return fkt_fail(FKT_E_MISMATCH, "'%s' is not a %s: the '%s' after '%s' reads other values", m->g->path, m->what,
                        want, place);
    return fkt_fail(FKT_E_MISMATCH, "'%s' is not a %s: after '%s' comes '%s', not '%s'", m->g->path, m->what, place,
                    n ? fkt_st_shown(type, fkt_onnx_type(n)) : "nothing", want);
}

static int shape_is(const Onnx__TensorProto *t, const struct fkt_slot *s)
{
    if (t->n_dims != s->rank) return 0;
    for (uint32_t d = 0; d < s->rank; d++)
        if (t->dims[d] != (int64_t)s->shape[d]) return 0;
    return 1;
}

/* The numbers are in the file, as many as the shape says. */
static fkt_status check_tensor(const struct match *m, const Onnx__TensorProto *t, const struct fkt_slot *s)
{
    const char *path = m->g->path, *name = s->name[0];
    const size_t count = fkt_slot_count(s), raw = t->has_raw_data ? t->raw_data.len : 0;
    struct fkt_onnx_shown {
        char text[96];
    } found;
    if (t->data_location != 0 || t->n_external_data)
        return fkt_fail_hint(FKT_E_MISMATCH, "export it into one file: torch.onnx.export(..., external_data=False)",
                             "'%s' keeps the numbers of '%s' in another file, which is not read", path, name);
    if (t->data_type != FKT_ONNX_FLOAT)
        return fkt_fail_hint(FKT_E_MISMATCH, "export it as float32",
                             "'%s' holds '%s' as ONNX's type %" PRId32 ", not as float32 (1)", path, name,
                             t->data_type);
    if (!shape_is(t, s))
        return fkt_fail(FKT_E_MISMATCH, "'%s' is not a %s: the tensor that should be '%s' is %s", path, m->what, name,
                        fkt_onnx_dims(found.text, sizeof found.text, t));
    if (raw ? raw != count * sizeof(float) || t->n_float_data : t->n_float_data != count)
        return fkt_fail(FKT_E_FORMAT,
                        "'%s' is invalid ONNX: '%s' should hold %zu numbers, but has %zu bytes and %zu numbers", path,
                        name, count, raw, t->n_float_data);
    return FKT_OK;
}

static fkt_status bind(struct match *m, uint32_t slot, const char *name)
{
    const struct fkt_slot *s = &m->net->slot[slot];
    const Onnx__TensorProto *t = fkt_onnx_tensor(m->g, name);
    char shown[FKT_ST_SHOWN];
    if (!t)
        return fkt_fail(FKT_E_MISMATCH, "'%s' has no tensor '%s', which should be '%s'", m->g->path,
                        fkt_st_shown(shown, name), s->name[0]);
    m->origin[slot] = (struct fkt_onnx_origin){FKT_ONNX_TENSOR, t, 0};
    return check_tensor(m, t, s);
}

static void fill(struct match *m, uint32_t slot, float x)
{
    m->origin[slot] = (struct fkt_onnx_origin){FKT_ONNX_CONSTANT, NULL, x};
}

/* Two convolutions may read one value, 3x3 and 1x1: the shape of the weights decides. */
static const Onnx__NodeProto *find_conv(const struct match *m, const struct fkt_op *op, const char *x)
{
    const Onnx__NodeProto *other = NULL;
    for (size_t i = 0; i < m->g->graph->n_node; i++) {
        const Onnx__NodeProto *n = m->g->graph->node[i];
        const Onnx__TensorProto *t;
        if (m->g->used[i] || strcmp(fkt_onnx_type(n), "Conv") != 0 || n->n_input < 2 || strcmp(n->input[0], x) != 0)
            continue;
        t = fkt_onnx_tensor(m->g, n->input[1]);
        if (t && shape_is(t, &m->net->slot[op->weight])) return n;
        if (!other) other = n;
    }
    return other;
}

static fkt_status match_conv(struct match *m, const struct fkt_op *op, const char *x, const Onnx__NodeProto **out)
{
    const Onnx__NodeProto *n = find_conv(m, op, x);
    fkt_status st;
    m->conv_bias = NULL;
    if (!n || n->n_input > 3) return mismatch(m, x, "Conv");
    FKT_TRY(bind(m, op->weight, n->input[1]));
    if (n->n_input == 3 && *n->input[2]) {
        m->conv_bias = fkt_onnx_tensor(m->g, n->input[2]);
        if (!m->conv_bias)
            return fkt_fail(FKT_E_MISMATCH, "'%s': the bias of the convolution with '%s' is computed, not stored",
                            m->g->path, m->net->slot[op->weight].name[0]);
    }
    *out = n;
out:
    return st;
}

static fkt_status match_norm(struct match *m, const struct fkt_op *op, const char *x, const Onnx__NodeProto **out)
{
    const Onnx__NodeProto *n = fkt_onnx_reader(m->g, x, "BatchNormalization");
    fkt_status st = FKT_OK;
    if (!n) { /* folded: no node, the value goes through */
        fill(m, op->weight, 1);
        fill(m, op->mean, 0);
        fill(m, op->var, 1 - op->value[0]);
        fill(m, op->bias, 0);
        if (!m->conv_bias) return FKT_OK;
        m->origin[op->bias] = (struct fkt_onnx_origin){FKT_ONNX_TENSOR, m->conv_bias, 0};
        return check_tensor(m, m->conv_bias, &m->net->slot[op->bias]);
    }
    if (m->conv_bias)
        return fkt_fail(FKT_E_MISMATCH, "'%s' is not a %s: a convolution has a bias, but the norm of '%s' follows",
                        m->g->path, m->what, m->net->slot[op->weight].name[0]);
    if (n->n_input != 5 || strcmp(n->input[0], x) != 0) return mismatch(m, x, "BatchNormalization");
    FKT_TRY(bind(m, op->weight, n->input[1]));
    FKT_TRY(bind(m, op->bias, n->input[2]));
    FKT_TRY(bind(m, op->mean, n->input[3]));
    FKT_TRY(bind(m, op->var, n->input[4]));
    *out = n;
out:
    return st;
}

static fkt_status match_add(struct match *m, const char *x, const char *y, const Onnx__NodeProto **out)
{
    const Onnx__NodeProto *n = fkt_onnx_reader(m->g, x, "Add");
    if (!n || n->n_input != 2) return mismatch(m, x, "Add");
    if (strcmp(n->input[0], x) != 0 || strcmp(n->input[1], y) != 0)
        if (strcmp(n->input[0], y) != 0 || strcmp(n->input[1], x) != 0) return mismatch(m, x, "Add");
    *out = n;
    return FKT_OK;
}

/* One value in, no tensors. */
static fkt_status match_plain(struct match *m, const char *type, const char *x, const Onnx__NodeProto **out)
{
    const Onnx__NodeProto *n = fkt_onnx_reader(m->g, x, type);
    if (!n || n->n_input != 1) return mismatch(m, x, type);
    *out = n;
    return FKT_OK;
}

static int is_last_two(const int64_t *axis, size_t n)
{
    const int64_t a = n == 2 ? axis[0] : 0, b = n == 2 ? axis[1] : 0;
    const int64_t p = a < 0 ? a + 4 : a, q = b < 0 ? b + 4 : b; /* a batch of maps has four dimensions */
    return (p == 2 && q == 3) || (p == 3 && q == 2);
}

static fkt_status match_mean(struct match *m, const char *x, const Onnx__NodeProto **out)
{
    const Onnx__NodeProto *n = fkt_onnx_reader(m->g, x, "ReduceMean");
    int64_t axis[2] = {0};
    size_t given = 0;
    if (!n) return match_plain(m, "GlobalAveragePool", x, out);
    if (n->n_input > 2 || strcmp(n->input[0], x) != 0) return mismatch(m, x, "GlobalAveragePool");
    if (n->n_input == 2) given = fkt_onnx_ints(fkt_onnx_tensor(m->g, n->input[1]), axis, 2);
    for (size_t i = 0; n->n_input == 1 && i < n->n_attribute; i++) {
        const Onnx__AttributeProto *a = n->attribute[i];
        if (!a->name || strcmp(a->name, "axes") != 0 || a->n_ints != 2) continue;
        memcpy(axis, a->ints, sizeof axis);
        given = 2;
    }
    if (!is_last_two(axis, given))
        return fkt_fail(FKT_E_MISMATCH, "'%s' is not a %s: its mean is not over the last two dimensions", m->g->path,
                        m->what);
    *out = n;
    return FKT_OK;
}

static fkt_status match_flatten(struct match *m, const char *x, uint32_t features, const Onnx__NodeProto **out)
{
    const Onnx__NodeProto *n = fkt_onnx_reader(m->g, x, "Reshape");
    int64_t shape[2] = {0};
    if (!n) return match_plain(m, "Flatten", x, out);
    if (n->n_input != 2 || strcmp(n->input[0], x) != 0) return mismatch(m, x, "Flatten");
    if (fkt_onnx_ints(fkt_onnx_tensor(m->g, n->input[1]), shape, 2) != 2 ||
        (shape[1] != (int64_t)features && shape[1] != -1))
        return fkt_fail(FKT_E_MISMATCH,
                        "'%s' is not a %s: before its last layer it does not reshape to %" PRIu32 " features",
                        m->g->path, m->what, features);
    *out = n;
    return FKT_OK;
}

static fkt_status match_linear(struct match *m, const struct fkt_op *op, const char *x, const Onnx__NodeProto **out)
{
    const Onnx__NodeProto *flat = NULL, *n;
    fkt_status st;
    FKT_TRY(match_flatten(m, x, m->net->slot[op->weight].shape[1], &flat));
    FKT_TRY(fkt_onnx_attributes(m->g, flat, op));
    take(m, flat);
    n = fkt_onnx_reader(m->g, flat->output[0], "Gemm");
    if (!n || n->n_input != 3 || strcmp(n->input[0], flat->output[0]) != 0) return mismatch(m, flat->output[0], "Gemm");
    FKT_TRY(bind(m, op->weight, n->input[1]));
    FKT_TRY(bind(m, op->bias, n->input[2]));
    *out = n;
out:
    return st;
}

static fkt_status match_op(struct match *m, size_t i)
{
    const struct fkt_op *op = &m->net->op[i];
    const char *x = m->value[op->in[0]];
    const Onnx__NodeProto *n = NULL;
    fkt_status st;
    switch (op->kind) {
    case FKT_OP_CONV: st = match_conv(m, op, x, &n); break;
    case FKT_OP_BATCH_NORM: st = match_norm(m, op, x, &n); break;
    case FKT_OP_RELU: st = match_plain(m, "Relu", x, &n); break;
    case FKT_OP_MAX_POOL: st = match_plain(m, "MaxPool", x, &n); break;
    case FKT_OP_ADD: st = match_add(m, x, m->value[op->in[1]], &n); break;
    case FKT_OP_MEAN: st = match_mean(m, x, &n); break;
    case FKT_OP_LINEAR: st = match_linear(m, op, x, &n); break;
    default: st = fkt_fail(FKT_E_STATE, "a %s cannot be read from ONNX", fkt_op_name(op->kind));
    }
    if (st != FKT_OK) return st;
    m->value[i + 1] = n ? n->output[0] : x;
    if (!n) return FKT_OK;
    take(m, n);
    return fkt_onnx_attributes(m->g, n, op);
}

/* Identity and Constant nodes stand for tensors; unused ones have no effect. */
static fkt_status check_rest(const struct match *m)
{
    char type[FKT_ST_SHOWN];
    if (strcmp(m->value[m->net->n_ops], m->g->output) != 0)
        return fkt_fail(FKT_E_MISMATCH, "'%s' is not a %s: its output is not that of the last layer", m->g->path,
                        m->what);
    for (size_t i = 0; i < m->g->graph->n_node; i++) {
        const char *t = fkt_onnx_type(m->g->graph->node[i]);
        if (!m->g->used[i] && strcmp(t, "Identity") != 0 && strcmp(t, "Constant") != 0)
            return fkt_fail(FKT_E_MISMATCH, "'%s' is not a %s: it has an extra operator '%s'", m->g->path, m->what,
                            fkt_st_shown(type, t));
    }
    return FKT_OK;
}

fkt_status fkt_onnx_match(struct fkt_onnx_graph *g, const struct fkt_net *net, const char *what,
                          struct fkt_onnx_origin *origin)
{
    struct match m = {.g = g, .net = net, .what = what, .origin = origin};
    fkt_status st;
    FKT_TRY(fkt_alloc(&m.value, net->n_ops + 1));
    m.value[0] = g->input->name;
    for (size_t i = 0; i < net->n_ops; i++) FKT_TRY(match_op(&m, i));
    FKT_TRY(check_rest(&m));
out:
    fkt_free(m.value);
    return st;
}
