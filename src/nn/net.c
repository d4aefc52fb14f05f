/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - building a list of operations.
 *
 * Building a large network makes hundreds of calls that hardly ever fail. They record the first failure in the list
 * itself and do nothing after it, so that a model reads like its description and is checked once. */
#include "nn/net.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

void fkt_net_init(struct fkt_net *n, uint32_t input_channels) { *n = (struct fkt_net){.channels = input_channels}; }

void fkt_net_clear(struct fkt_net *n)
{
    for (size_t i = 0; i < n->n_slots; i++)
        for (uint32_t k = 0; k < n->slot[i].parts; k++) fkt_free(n->slot[i].name[k]);
    fkt_free(n->slot);
    fkt_free(n->op);
    *n = (struct fkt_net){0};
}

fkt_status fkt_net_status(const struct fkt_net *n) { return n->failed; }

uint32_t fkt_net_last(const struct fkt_net *n) { return (uint32_t)n->n_ops; }

uint32_t fkt_net_add(struct fkt_net *n, const struct fkt_op *op)
{
    if (n->failed != FKT_OK) return 0;
    if (n->n_ops == n->op_room) {
        size_t room = n->op_room ? 2 * n->op_room : 64;
        n->failed = fkt_realloc(&n->op, room);
        if (n->failed != FKT_OK) return 0;
        n->op_room = room;
    }
    n->op[n->n_ops++] = *op;
    return (uint32_t)n->n_ops;
}

uint32_t fkt_net_slot_parts(struct fkt_net *n, const char *const *names, uint32_t parts, uint32_t a, uint32_t b,
                            uint32_t c, uint32_t d)
{
    struct fkt_slot s = {.shape = {a, b, c, d}};
    if (n->failed != FKT_OK) return FKT_NO_SLOT;
    if (!parts || parts > FKT_SLOT_PARTS || a % parts) {
        n->failed = fkt_fail(FKT_E_ARG, "%" PRIu32 " tensors cannot be stacked to %" PRIu32 " rows", parts, a);
        return FKT_NO_SLOT;
    }
    while (s.rank < FKT_SLOT_RANK && s.shape[s.rank]) s.rank++;
    if (n->n_slots == n->slot_room) {
        size_t room = n->slot_room ? 2 * n->slot_room : 64;
        n->failed = fkt_realloc(&n->slot, room);
        if (n->failed != FKT_OK) return FKT_NO_SLOT;
        n->slot_room = room;
    }
    for (; s.parts < parts && n->failed == FKT_OK; s.parts += n->failed == FKT_OK)
        n->failed = fkt_strdup(&s.name[s.parts], names[s.parts]);
    n->slot[n->n_slots++] = s; /* also after a failure: clear frees its contents */
    return n->failed == FKT_OK ? (uint32_t)n->n_slots - 1 : FKT_NO_SLOT;
}

uint32_t fkt_net_slot(struct fkt_net *n, const char *name, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return fkt_net_slot_parts(n, &name, 1, a, b, c, d);
}

static const struct fkt_op bare = {.weight = FKT_NO_SLOT, .bias = FKT_NO_SLOT, .mean = FKT_NO_SLOT, .var = FKT_NO_SLOT};

uint32_t fkt_net_plain(struct fkt_net *n, enum fkt_op_kind kind, uint32_t x, uint32_t y, float value)
{
    struct fkt_op op = bare;
    op.kind = kind;
    op.in[0] = x;
    op.in[1] = y;
    op.value[0] = value;
    return fkt_net_add(n, &op);
}

uint32_t fkt_net_move(struct fkt_net *n, enum fkt_op_kind kind, uint32_t x, uint32_t number)
{
    struct fkt_op op = bare;
    op.kind = kind;
    op.in[0] = x;
    if (kind == FKT_OP_GROUP_MEAN || kind == FKT_OP_REPEAT) op.channels = number;
    else op.factor = number;
    return fkt_net_add(n, &op);
}

void fkt_net_same(struct fkt_op *op, uint32_t side)
{
    const uint64_t results = ((uint64_t)side + op->stride - 1) / op->stride;
    const uint64_t reach = (results - 1) * op->stride + op->kernel, zeros = reach > side ? reach - side : 0;
    op->pad = (uint32_t)(zeros / 2);
    op->pad_after = (uint32_t)(zeros % 2);
}

/* One more than the largest slot in use by the first `ops` operations. */
static size_t slots_in_use(const struct fkt_net *n, size_t ops)
{
    size_t end = 0;
    for (size_t i = 0; i < ops; i++) {
        const uint32_t slot[] = {n->op[i].weight, n->op[i].bias, n->op[i].mean, n->op[i].var};
        for (size_t k = 0; k < sizeof slot / sizeof *slot; k++)
            if (slot[k] != FKT_NO_SLOT && slot[k] >= end) end = (size_t)slot[k] + 1;
    }
    return end;
}

static fkt_status joined(char **out, const char *a, const char *b)
{
    const size_t first = strlen(a), second = strlen(b) + 1;
    fkt_status st = fkt_alloc(out, first + second);
    if (st != FKT_OK) return st;
    memcpy(*out, a, first);
    memcpy(*out + first, b, second);
    return FKT_OK;
}

static void append_slot(struct fkt_net *n, const struct fkt_slot *s, const char *prefix)
{
    char *name[FKT_SLOT_PARTS] = {NULL};
    for (uint32_t i = 0; i < s->parts && n->failed == FKT_OK; i++) n->failed = joined(&name[i], prefix, s->name[i]);
    fkt_net_slot_parts(n, (const char *const *)name, s->parts, s->shape[0], s->shape[1], s->shape[2], s->shape[3]);
    for (uint32_t i = 0; i < s->parts; i++) fkt_free(name[i]);
}

static uint32_t moved(uint32_t slot, size_t by) { return slot == FKT_NO_SLOT ? slot : slot + (uint32_t)by; }

uint32_t fkt_net_append(struct fkt_net *n, uint32_t x, const struct fkt_net *other, size_t ops, const char *prefix)
{
    const size_t values = n->n_ops, first = n->n_slots, slots = ops <= other->n_ops ? slots_in_use(other, ops) : 0;
    if (n->failed == FKT_OK) n->failed = other->failed;
    if (n->failed == FKT_OK && (ops > other->n_ops || slots > other->n_slots || x > values))
        n->failed = fkt_fail(FKT_E_ARG, "a network cannot be appended: it has no such operation, slot or value");
    for (size_t i = 0; i < slots && n->failed == FKT_OK; i++) append_slot(n, &other->slot[i], prefix);
    for (size_t i = 0; i < ops && n->failed == FKT_OK; i++) {
        struct fkt_op op = other->op[i];
        for (int k = 0; k < 2; k++) op.in[k] = op.in[k] ? op.in[k] + (uint32_t)values : x;
        op.weight = moved(op.weight, first);
        op.bias = moved(op.bias, first);
        op.mean = moved(op.mean, first);
        op.var = moved(op.var, first);
        fkt_net_add(n, &op);
    }
    if (n->failed != FKT_OK) return 0;
    return ops ? fkt_net_last(n) : x;
}

size_t fkt_slot_count(const struct fkt_slot *s)
{
    size_t count = 1;
    for (uint32_t i = 0; i < s->rank; i++) count *= s->shape[i];
    return count;
}

uint64_t fkt_net_parameters(const struct fkt_net *n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n->n_slots; i++) sum += fkt_slot_count(&n->slot[i]);
    return sum;
}

const char *fkt_op_name(enum fkt_op_kind kind)
{
    static const char *const names[FKT_OP_KINDS] = {
        "convolution",   "linear",     "ReLU",     "SiLU",     "soft clamp", "GLU",        "upsampling", "shuffle",
        "unshuffle",     "group mean", "repeat",   "RMS norm", "group norm", "batch norm", "attention",  "addition",
        "concatenation", "affine",     "max-pool", "mean",     "ReLU6",      "resizing"};
    return (unsigned)kind < FKT_OP_KINDS ? names[kind] : "unknown";
}

int fkt_op_reads_two(const struct fkt_op *op) { return op->kind == FKT_OP_ADD || op->kind == FKT_OP_CONCAT; }
