/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_graph.c - the tables of an untrusted ONNX graph, checked before they are searched.
 *
 *   initialisers   name -> tensor          unique names
 *   nodes          inputs -> outputs       each value is made once, by one node, before it is read (as ONNX requires,
 *                                          so there are no cycles), and no node makes an initialiser
 *   input          one, besides those that files before IR version 4 repeat for initialisers
 *
 * With unique names each value has one maker, so a match of the graph with a network (onnx_match.c) is a match of what
 * any runtime would compute. Cost: tables are short (1,024 rows at most) and searched linearly, at most some million
 * comparisons of names. */
#include "classifier/onnx_graph.h"

#include "base/alloc.h"
#include "tensor/safetensors_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS_MAX = 8, ATTRIBUTES_MAX = 16 }; /* of one node; known operators have five and seven */

static const char *or_empty(const char *s) { return s ? s : ""; }

const char *fkt_onnx_type(const Onnx__NodeProto *n) { return or_empty(n->op_type); }

static const Onnx__TensorProto *initialiser(const Onnx__GraphProto *g, const char *name, size_t end)
{
    for (size_t i = 0; i < end; i++)
        if (!strcmp(or_empty(g->initializer[i]->name), name)) return g->initializer[i];
    return NULL;
}

static fkt_status duplicate_name(const char *path, const char *name)
{
    char shown[FKT_ST_SHOWN];
    return fkt_fail(FKT_E_FORMAT, "'%s' is invalid ONNX: the name '%s' is given twice, or is missing", path,
                    fkt_st_shown(shown, name));
}

static const Onnx__NodeProto *maker(const Onnx__GraphProto *g, const char *value, size_t end)
{
    for (size_t i = 0; i < end; i++)
        if (!strcmp(g->node[i]->output[0], value)) return g->node[i];
    return NULL;
}

static int is_input(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (!strcmp(or_empty(g->input[i]->name), name)) return 1;
    return 0;
}

static fkt_status check_names(const Onnx__GraphProto *g, const char *path)
{
    char shown[FKT_ST_SHOWN];
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = or_empty(g->initializer[i]->name);
        if (!*name || initialiser(g, name, i)) return duplicate_name(path, name);
    }
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        const char *name = n->output[0];
        for (size_t k = 0; k < n->n_input; k++)
            if (*n->input[k] && !is_input(g, n->input[k]) && !initialiser(g, n->input[k], g->n_initializer) &&
                !maker(g, n->input[k], i))
                return fkt_fail(FKT_E_FORMAT, "'%s' is invalid ONNX: '%s' is read before it is made", path,
                                fkt_st_shown(shown, n->input[k]));
        if (!*name || is_input(g, name) || initialiser(g, name, g->n_initializer) || maker(g, name, i))
            return duplicate_name(path, name);
    }
    return FKT_OK;
}

static fkt_status check_nodes(const Onnx__GraphProto *g, const char *path)
{
    char type[FKT_ST_SHOWN], domain[FKT_ST_SHOWN];
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        if (*or_empty(n->domain) && strcmp(n->domain, "ai.onnx") != 0)
            return fkt_fail_hint(FKT_E_MISMATCH, "export it with standard ONNX operators only",
                                 "'%s' uses operator '%s' of '%s', which is not a standard one", path,
                                 fkt_st_shown(type, fkt_onnx_type(n)), fkt_st_shown(domain, n->domain));
        if (n->n_input > INPUTS_MAX || n->n_attribute > ATTRIBUTES_MAX)
            return fkt_fail(FKT_E_MISMATCH,
                            "'%s' has an operator '%s' with %zu inputs and %zu attributes: more than any "
                            "known operator",
                            path, fkt_st_shown(type, fkt_onnx_type(n)), n->n_input, n->n_attribute);
        if (n->n_output != 1)
            return fkt_fail_hint(FKT_E_MISMATCH, "export the network as it is used for prediction: model.eval()",
                                 "'%s' has an operator '%s' with %zu results: a network for prediction has one", path,
                                 fkt_st_shown(type, fkt_onnx_type(n)), n->n_output);
    }
    return FKT_OK;
}

static fkt_status find_ends(struct fkt_onnx_graph *g)
{
    const Onnx__GraphProto *p = g->graph;
    size_t n = 0;
    for (size_t i = 0; i < p->n_input; i++) {
        const char *name = or_empty(p->input[i]->name);
        if (initialiser(p, name, p->n_initializer)) continue;
        g->input = p->input[i];
        n++;
    }
    if (n != 1 || p->n_output != 1)
        return fkt_fail(FKT_E_MISMATCH, "'%s' has %zu inputs and %zu outputs: a classifier has one of each", g->path, n,
                        p->n_output);
    if (!*or_empty(g->input->name)) /* an empty input name means that the input is absent */
        return fkt_fail(FKT_E_FORMAT, "'%s' is invalid ONNX: its input has no name", g->path);
    g->output = or_empty(p->output[0]->name);
    return FKT_OK;
}

fkt_status fkt_onnx_graph_init(struct fkt_onnx_graph *g, const Onnx__ModelProto *model, const char *path)
{
    const Onnx__GraphProto *p = model->graph;
    fkt_status st;
    memset(g, 0, sizeof *g);
    g->path = path;
    if (!p || !p->n_node) return fkt_fail(FKT_E_FORMAT, "'%s' is not an ONNX file, or has no graph", path);
    if (p->n_node > FKT_ONNX_LIST_MAX || p->n_initializer > FKT_ONNX_LIST_MAX || p->n_input > 2 * FKT_ONNX_LIST_MAX)
        return fkt_fail(FKT_E_MISMATCH, "'%s' has %zu operators and %zu tensors: more than any known network", path,
                        p->n_node, p->n_initializer);
    g->graph = p;
    FKT_TRY(check_nodes(p, path));
    FKT_TRY(check_names(p, path));
    FKT_TRY(find_ends(g));
    FKT_TRY(fkt_alloc(&g->used, p->n_node));
out:
    return st;
}

void fkt_onnx_graph_clear(struct fkt_onnx_graph *g)
{
    fkt_free(g->used);
    memset(g, 0, sizeof *g);
}

const Onnx__NodeProto *fkt_onnx_maker(const struct fkt_onnx_graph *g, const char *value)
{
    return maker(g->graph, value, g->graph->n_node);
}

const Onnx__NodeProto *fkt_onnx_reader(const struct fkt_onnx_graph *g, const char *value, const char *type)
{
    for (size_t i = 0; i < g->graph->n_node; i++) {
        const Onnx__NodeProto *n = g->graph->node[i];
        if (g->used[i] || (type && strcmp(fkt_onnx_type(n), type) != 0)) continue;
        for (size_t k = 0; k < n->n_input; k++)
            if (!strcmp(n->input[k], value)) return n;
    }
    return NULL;
}

/* PyTorch stores equal tensors once and puts Identity nodes in place of the others. */
const Onnx__TensorProto *fkt_onnx_tensor(const struct fkt_onnx_graph *g, const char *name)
{
    for (;;) { /* terminates: a node reads only earlier values */
        const Onnx__TensorProto *t = initialiser(g->graph, name, g->graph->n_initializer);
        const Onnx__NodeProto *n = t ? NULL : fkt_onnx_maker(g, name);
        if (t || !n) return t;
        if (!strcmp(fkt_onnx_type(n), "Constant") && n->n_attribute == 1) return n->attribute[0]->t;
        if (strcmp(fkt_onnx_type(n), "Identity") != 0 || n->n_input != 1) return NULL;
        name = n->input[0];
    }
}

const char *fkt_onnx_dims(char *out, size_t cap, const Onnx__TensorProto *t)
{
    size_t at = 0;
    snprintf(out, cap, "a single number");
    for (size_t i = 0; i < t->n_dims && at + 24 < cap; i++)
        at += (size_t)snprintf(out + at, cap - at, "%s%" PRId64, i ? "x" : "", t->dims[i]);
    return out;
}

size_t fkt_onnx_ints(const Onnx__TensorProto *t, int64_t *out, size_t cap)
{
    size_t n;
    if (!t || t->data_type != FKT_ONNX_INT64 || t->n_dims != 1 || t->dims[0] < 1 || (uint64_t)t->dims[0] > cap)
        return 0;
    n = (size_t)t->dims[0];
    if (t->has_raw_data && t->raw_data.len == n * sizeof *out) memcpy(out, t->raw_data.data, n * sizeof *out);
    else if (t->n_int64_data == n) memcpy(out, t->int64_data, n * sizeof *out);
    else return 0;
    return n;
}
