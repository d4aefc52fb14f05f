/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c - which operations of a network run as one step.
 *
 *   convolution or linear  [batch norm]  [add]  [ReLU | SiLU]      RMS norm  [add]
 *
 * in this order, each optional, if the value between two members has exactly one reader. A group runs in the place of
 * its last member, so that everything an addition needs exists by then; what the head reads is kept until there. When
 * two convolutions are added, the first is fused with the addition, and the second runs before it by itself. */
#include "nn/onednn/plan.h"

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

static void grow(struct fkt_group *g, const struct fkt_net *net, const uint32_t *readers, uint32_t i, int fold_norms)
{
    int norm = net->op[i].kind == FKT_OP_RMS_NORM;
    for (;;) {
        uint32_t next = only_reader(g, net, readers, g[i].end + 1);
        enum fkt_op_kind kind = next == FKT_NONE ? FKT_OP_KINDS : net->op[next].kind;
        int bare = g[i].add == FKT_NONE && g[i].after == FKT_NONE;
        if (kind == FKT_OP_BATCH_NORM && fold_norms && !norm && bare && g[i].norm == FKT_NONE)
            take(g, i, &g[i].norm, next);
        else if (kind == FKT_OP_ADD && bare) take(g, i, &g[i].add, next);
        else if ((kind == FKT_OP_RELU || kind == FKT_OP_SILU) && !norm && g[i].after == FKT_NONE)
            take(g, i, &g[i].after, next);
        else return;
    }
}

void fkt_fuse(struct fkt_group *g, const struct fkt_net *net, const uint32_t *readers, int fold_norms)
{
    for (uint32_t i = 0; i < net->n_ops; i++) g[i] = (struct fkt_group){i, FKT_NONE, FKT_NONE, FKT_NONE, i};
    for (uint32_t i = 0; i < net->n_ops; i++) {
        enum fkt_op_kind kind = net->op[i].kind;
        if (g[i].head == i && (kind == FKT_OP_CONV || kind == FKT_OP_LINEAR || kind == FKT_OP_RMS_NORM))
            grow(g, net, readers, i, fold_norms);
    }
}
