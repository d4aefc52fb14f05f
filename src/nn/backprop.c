/* SPDX-License-Identifier: Apache-2.0 */
/* backprop.c - groups of operations, and how gradients pass from buffer to buffer, for the learners of all backends.
 *
 * A value with two readers has two gradients, which must be added up. A separate step for that is avoided: up to two
 * buffers hold one gradient, and a norm or a sum reads both in the pass that it makes anyway. In a residual network
 * that covers every value with two readers. An addition passes one buffer to both of its sources; so only the last user
 * of a buffer may overwrite it (`pending`). */
#include "nn/backprop.h"

#include "base/alloc.h"

fkt_status fkt_backprop_init(struct fkt_backprop *b, const struct fkt_net *net)
{
    const size_t n = net->n_ops;
    fkt_status st;
    b->net = net;
    FKT_TRY(fkt_alloc(&b->readers, n + 1));
    FKT_TRY(fkt_alloc(&b->needs, n + 1));
    FKT_TRY(fkt_alloc(&b->group, n));
    FKT_TRY(fkt_alloc(&b->gradient, n + 1));
    for (size_t i = 0; i <= n; i++) b->gradient[i][0] = b->gradient[i][1] = FKT_NONE;
out:
    return st;
}

void fkt_backprop_clear(struct fkt_backprop *b)
{
    fkt_free(b->readers);
    fkt_free(b->needs);
    fkt_free(b->group);
    fkt_free(b->gradient);
    fkt_free(b->pending);
}

fkt_status fkt_backprop_room(struct fkt_backprop *b, size_t buffers) { return fkt_realloc(&b->pending, buffers); }

void fkt_backprop_count(struct fkt_backprop *b, int frozen)
{
    const struct fkt_net *net = b->net;
    b->needs[0] = frozen != 0;
    for (uint32_t i = 0; i < net->n_ops; i++) {
        const struct fkt_op *op = &net->op[i];
        const int two = fkt_op_reads_two(op), learns = op->weight != FKT_NO_SLOT || op->bias != FKT_NO_SLOT;
        b->readers[op->in[0]]++;
        if (two) b->readers[op->in[1]]++;
        b->needs[i + 1] = (learns && !frozen) || b->needs[op->in[0]] || (two && b->needs[op->in[1]]);
    }
    b->readers[net->n_ops]++; /* the caller reads the output */
}

/* The one operation that reads the value; FKT_NONE where there is not exactly one reader. */
static uint32_t only_reader(const struct fkt_backprop *b, uint32_t value)
{
    const struct fkt_net *net = b->net;
    if (b->readers[value] != 1) return FKT_NONE;
    for (uint32_t i = value; i < net->n_ops; i++)
        if (net->op[i].in[0] == value || (fkt_op_reads_two(&net->op[i]) && net->op[i].in[1] == value)) return i;
    return FKT_NONE;
}

static void join(struct fkt_backprop *b, uint32_t head, uint32_t member)
{
    struct fkt_class *g = &b->group[head];
    if (b->net->op[member].kind == FKT_OP_ADD) g->add = member;
    else g->relu = member;
    b->group[g->end].head = FKT_NONE;
    b->group[member].head = head;
    g->end = member;
}

/* When two norms are added, the later one is fused with the addition: the other's result must exist by then. */
static uint32_t join_addition(struct fkt_backprop *b, uint32_t i)
{
    const struct fkt_net *net = b->net;
    const uint32_t x = net->op[i].in[0], y = net->op[i].in[1];
    if (net->op[i].kind != FKT_OP_ADD) return 0;
    for (int k = 0; k < 2; k++) {
        const uint32_t value = (x > y) == !k ? x : y;
        if (!value || net->op[value - 1].kind != FKT_OP_BATCH_NORM || b->readers[value] != 1) continue;
        join(b, value - 1, i);
        return 1;
    }
    return 0;
}

static int takes_relu(enum fkt_op_kind kind, unsigned joining)
{
    return kind == FKT_OP_BATCH_NORM || (kind == FKT_OP_ADD && (joining & FKT_JOIN_AFTER_SUM)) ||
           (kind == FKT_OP_CONV && (joining & FKT_JOIN_AFTER_CONV));
}

uint32_t fkt_backprop_group(struct fkt_backprop *b, unsigned joining)
{
    const struct fkt_net *net = b->net;
    uint32_t joined = 0;
    for (uint32_t i = 0; i < net->n_ops; i++)
        b->group[i] = (struct fkt_class){.head = i, .add = FKT_NONE, .relu = FKT_NONE, .end = i};
    for (uint32_t i = 0; i < net->n_ops && (joining & FKT_JOIN_ADDITIONS); i++) joined += join_addition(b, i);
    for (uint32_t i = 0; i < net->n_ops; i++) {
        const uint32_t next = only_reader(b, i + 1), head = b->group[i].head;
        enum fkt_op_kind kind;
        if (head == FKT_NONE || next == FKT_NONE) continue;
        kind = net->op[next].kind;
        if (kind != FKT_OP_RELU && !(kind == FKT_OP_RELU6 && (joining & FKT_JOIN_RELU6))) continue;
        if (!takes_relu(net->op[i].kind, joining)) continue;
        join(b, head, next);
        joined++;
    }
    return joined;
}

int fkt_backprop_heads(const struct fkt_backprop *b, uint32_t i) { return b->group[b->group[i].end].head == i; }

uint32_t fkt_backprop_addend(const struct fkt_backprop *b, uint32_t head)
{
    const struct fkt_op *add = &b->net->op[b->group[head].add];
    return add->in[0] == head + 1 ? add->in[1] : add->in[0];
}

void fkt_backprop_take(struct fkt_backprop *b, uint32_t value, uint32_t *g, uint32_t *h)
{
    uint32_t *slot = b->gradient[value];
    *g = slot[0];
    *h = slot[1];
    for (int k = 0; k < 2; k++)
        if (slot[k] != FKT_NONE) b->pending[slot[k]]--;
    slot[0] = slot[1] = FKT_NONE;
}

fkt_status fkt_backprop_writable(struct fkt_backprop *b, uint32_t value, uint32_t g, uint32_t h, uint32_t *out)
{
    if (!b->pending[g]) *out = g;
    else if (h != FKT_NONE && !b->pending[h]) *out = h;
    else return b->map(b->backend, out, value);
    return FKT_OK;
}

/* One buffer instead of two. */
static fkt_status add_up(struct fkt_backprop *b, uint32_t value)
{
    uint32_t g, h, d;
    fkt_status st;
    if (b->gradient[value][1] == FKT_NONE) return FKT_OK;
    fkt_backprop_take(b, value, &g, &h);
    FKT_TRY(fkt_backprop_writable(b, value, g, h, &d));
    FKT_TRY(b->add(b->backend, value, g, h, d));
    b->gradient[value][0] = d;
    b->pending[d]++;
out:
    return st;
}

fkt_status fkt_backprop_give(struct fkt_backprop *b, uint32_t value, uint32_t buffer)
{
    uint32_t *slot = b->gradient[value];
    fkt_status st = FKT_OK;
    if (!b->needs[value]) return FKT_OK;
    if (slot[1] != FKT_NONE) FKT_TRY(add_up(b, value));
    slot[slot[0] != FKT_NONE] = buffer;
    b->pending[buffer]++;
out:
    return st;
}

fkt_status fkt_backprop_take_one(struct fkt_backprop *b, uint32_t value, uint32_t *g)
{
    uint32_t none;
    fkt_status st;
    FKT_TRY(add_up(b, value));
    fkt_backprop_take(b, value, g, &none);
out:
    return st;
}
