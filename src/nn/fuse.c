/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c - which operations of a network run as one step.
 *
 *   convolution or linear  [batch norm]  [add]  [activation]      RMS norm  [activation]  [add]
 *   depthwise convolution  [gated unit]                           group norm  [activation]
 *
 * (activation: ReLU, ReLU6 or SiLU) in this order, each optional, if the value between two members has exactly one
 * reader. A group runs in the place of its last member, so that everything an addition needs exists by then; what the
 * head reads is kept until there. When two convolutions are added, the first is fused with the addition, and the second
 * runs before it by itself. */
#include "nn/fuse.h"

static int reads(const struct fkt_op *op, uint32_t value)
{
    return op->in[0] == value || (fkt_op_reads_two(op) && op->in[1] == value);
}

/* The only operation that reads the value and is in no group yet, or FKT_NONE. */
static uint32_t only_reader(const struct fkt_group *g, const struct fkt_net *net, const uint32_t *readers,
                            uint32_t value)
{
    if (readers[value] != 1) return FKT_NONE;
    for (uint32_t j = value; j < net->n_ops; j++)
        if (reads(&net->op[j], value)) return g[j].head == j ? j : FKT_NONE;
    return FKT_NONE; /* its reader is the caller: the output */
}

static void take(struct fkt_group *g, uint32_t head, uint32_t *member, uint32_t op)
{
    *member = op;
    g[g[head].end].head = FKT_NONE;
    g[head].end = op;
    g[op].head = head;
}

static int is_depthwise(const struct fkt_op *op)
{
    return op->kind == FKT_OP_CONV && op->groups > 1 && op->groups == op->channels;
}

/* 1: `next` became a member of the group of head i. */
static int grow(struct fkt_group *g, const struct fkt_net *net, uint32_t i, uint32_t next, unsigned fusions)
{
    const enum fkt_op_kind head = net->op[i].kind, kind = net->op[next].kind;
    const int norm = head == FKT_OP_RMS_NORM || head == FKT_OP_GROUP_NORM;
    const int bare = g[i].add == FKT_NONE && g[i].after == FKT_NONE && g[i].glu == FKT_NONE;
    const int acts = kind == FKT_OP_RELU || kind == FKT_OP_RELU6 || kind == FKT_OP_SILU;
    uint32_t *member = NULL;
    if (kind == FKT_OP_BATCH_NORM && (fusions & FKT_FUSE_BATCH_NORM) && !norm && bare && g[i].norm == FKT_NONE)
        member = &g[i].norm;
    else if (kind == FKT_OP_GLU && (fusions & FKT_FUSE_GLU) && bare && is_depthwise(&net->op[i])) member = &g[i].glu;
    else if (kind == FKT_OP_ADD && head == FKT_OP_RMS_NORM && g[i].add == FKT_NONE) member = &g[i].add;
    else if (kind == FKT_OP_ADD && !norm && bare) member = &g[i].add;
    else if (acts && norm && (fusions & FKT_FUSE_NORM_ACT) && bare) member = &g[i].after;
    else if (acts && !norm && g[i].after == FKT_NONE && g[i].glu == FKT_NONE) member = &g[i].after;
    if (!member) return 0;
    take(g, i, member, next);
    return 1;
}

static int can_head(const struct fkt_op *op, unsigned fusions)
{
    return op->kind == FKT_OP_CONV || op->kind == FKT_OP_LINEAR || op->kind == FKT_OP_RMS_NORM ||
           (op->kind == FKT_OP_GROUP_NORM && (fusions & FKT_FUSE_NORM_ACT));
}

void fkt_fuse(struct fkt_group *g, const struct fkt_net *net, const uint32_t *readers, unsigned fusions)
{
    for (uint32_t i = 0; i < net->n_ops; i++) g[i] = (struct fkt_group){i, FKT_NONE, FKT_NONE, FKT_NONE, FKT_NONE, i};
    for (uint32_t i = 0; i < net->n_ops; i++) {
        uint32_t next = i;
        if (g[i].head != i || !can_head(&net->op[i], fusions)) continue;
        do next = only_reader(g, net, readers, g[i].end + 1);
        while (next != FKT_NONE && grow(g, net, i, next, fusions));
    }
}

uint32_t fkt_group_addend(const struct fkt_group *g, const struct fkt_net *net, uint32_t head)
{
    const struct fkt_op *add = &net->op[g[head].add];
    uint32_t mine = head + 1;
    if (g[head].norm != FKT_NONE) mine = g[head].norm + 1;
    else if (g[head].after != FKT_NONE && g[head].after < g[head].add) mine = g[head].after + 1;
    return add->in[0] == mine ? add->in[1] : add->in[0];
}
