/* SPDX-License-Identifier: Apache-2.0 */
/* bent_onnx.h - an ONNX file taken apart by protobuf-c, changed, and put together again. */
#ifndef FKT_TEST_BENT_ONNX_H
#define FKT_TEST_BENT_ONNX_H

#include "base/file.h"
#include "tests/support/check.h"

#include <onnx.pb-c.h>

static inline Onnx__ModelProto *onnx_apart(const char *path)
{
    Onnx__ModelProto *m;
    uint8_t *bytes = NULL;
    size_t len;
    CHECK_OK(fkt_file_read(&bytes, &len, path, (size_t)1 << 28));
    m = onnx__model_proto__unpack(NULL, len, bytes);
    CHECK(m != NULL);
    fkt_free(bytes);
    return m;
}

/* Gives the bytes: free() them. The parts are gone. */
static inline uint8_t *onnx_together(Onnx__ModelProto *m, size_t *len)
{
    uint8_t *bytes = malloc(onnx__model_proto__get_packed_size(m) + 1);
    CHECK(bytes != NULL);
    *len = onnx__model_proto__pack(m, bytes);
    onnx__model_proto__free_unpacked(m, NULL);
    return bytes;
}

static inline Onnx__TensorProto *onnx_tensor(Onnx__ModelProto *m, const char *name)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        if (!strcmp(m->graph->initializer[i]->name, name)) return m->graph->initializer[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* The n-th node of that type, from 0. */
static inline Onnx__NodeProto *onnx_node(Onnx__ModelProto *m, const char *type, size_t n)
{
    for (size_t i = 0; i < m->graph->n_node; i++)
        if (!strcmp(m->graph->node[i]->op_type, type) && n-- == 0) return m->graph->node[i];
    fail_msg("no node %s", type);
    return NULL;
}

static inline Onnx__AttributeProto *onnx_attribute(Onnx__NodeProto *n, const char *name)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (!strcmp(n->attribute[i]->name, name)) return n->attribute[i];
    fail_msg("no attribute %s", name);
    return NULL;
}

static inline void onnx_rename(char **s, const char *name)
{
    char *copy = strdup(name);
    CHECK(copy != NULL);
    if (*s != protobuf_c_empty_string) free(*s);
    *s = copy;
}

/* The last of a list of names goes. */
static inline void onnx_drop(char **list, size_t *n) { free(list[--*n]); }

/* Takes the node out of the list; what read its result reads `instead`. */
static inline void onnx_cut(Onnx__ModelProto *m, Onnx__NodeProto *node, const char *instead)
{
    Onnx__GraphProto *g = m->graph;
    size_t k = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t j = 0; j < g->node[i]->n_input; j++)
            if (instead && !strcmp(g->node[i]->input[j], node->output[0])) onnx_rename(&g->node[i]->input[j], instead);
        if (g->node[i] != node) g->node[k++] = g->node[i];
    }
    g->n_node = k;
    onnx__node_proto__free_unpacked(node, NULL);
}

/* A new node at the end of the list. */
static inline void onnx_add(Onnx__ModelProto *m, const char *type, const char *in, const char *out)
{
    Onnx__GraphProto *g = m->graph;
    Onnx__NodeProto *n = calloc(1, sizeof *n);
    g->node = realloc(g->node, (g->n_node + 1) * sizeof(void *));
    CHECK(n && g->node);
    onnx__node_proto__init(n);
    n->op_type = strdup(type);
    n->input = calloc(1, sizeof(void *));
    n->output = calloc(1, sizeof(void *));
    CHECK(n->input && n->output);
    n->input[0] = strdup(in);
    n->output[0] = strdup(out);
    n->n_input = n->n_output = 1;
    g->node[g->n_node++] = n;
}

#endif
