/* SPDX-License-Identifier: Apache-2.0 */
/* whole_net.c - a network (nn/net.h) as JSON in the metadata of a whole model, and back.
 *
 *   {"slots": [[name, a, b, ...], ...],
 *    "ops": [[kind, in0, in1, channels, kernel, stride, pad, pad_after, groups, factor, value0, value1,
 *             weight, bias, mean, var], ...]}
 *
 * kind is fkt_op_name; a slot is its number, -1 for none. The list is hostile when it is read: at most 1024 operations
 * and slots, whole numbers below 2^20, and only the operations that every runtime has (those of classifier/onnx_net.c);
 * fkt_net_shapes then checks that they fit together. */
#include "learning/whole.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { LIST_MAX = 1024, NUMBER_MAX = 1 << 20, NAME_MAX_BYTES = 64, COLUMNS = 16 };

static int portable(enum fkt_op_kind kind)
{
    switch (kind) {
    case FKT_OP_CONV:
    case FKT_OP_LINEAR:
    case FKT_OP_RELU:
    case FKT_OP_RELU6:
    case FKT_OP_RESIZE:
    case FKT_OP_BATCH_NORM:
    case FKT_OP_ADD:
    case FKT_OP_MAX_POOL:
    case FKT_OP_MEAN: return 1;
    default: return 0;
    }
}

fkt_status fkt_whole_net_check(const struct fkt_net *net)
{
    for (size_t i = 0; i < net->n_ops; i++)
        if (!portable(net->op[i].kind))
            return fkt_fail(FKT_E_STATE, "an encoder with a %s cannot be part of a whole model",
                            fkt_op_name(net->op[i].kind));
    if (net->n_ops > LIST_MAX || net->n_slots > LIST_MAX)
        return fkt_fail(FKT_E_STATE, "an encoder of %zu operations cannot be part of a whole model: at most %d",
                        net->n_ops, LIST_MAX);
    return FKT_OK;
}

/* ---- writing ---- */

static json_int_t slot_number(uint32_t slot) { return slot == FKT_NO_SLOT ? -1 : (json_int_t)slot; }

json_t *fkt_whole_net_json(const struct fkt_net *net)
{
    json_t *slots = json_array(), *ops = json_array();
    int failed = 0;
    for (size_t i = 0; i < net->n_slots; i++) {
        const struct fkt_slot *s = &net->slot[i];
        json_t *row = json_array();
        failed |= json_array_append_new(row, json_string(s->name[0]));
        for (uint32_t d = 0; d < s->rank; d++) failed |= json_array_append_new(row, json_integer(s->shape[d]));
        failed |= json_array_append_new(slots, row);
    }
    for (size_t i = 0; i < net->n_ops; i++) {
        const struct fkt_op *o = &net->op[i];
        const json_int_t number[] = {o->in[0],     fkt_op_reads_two(o) ? o->in[1] : 0,
                                     o->channels,  o->kernel,
                                     o->stride,    o->pad,
                                     o->pad_after, o->groups,
                                     o->factor};
        const json_int_t slot[] = {slot_number(o->weight), slot_number(o->bias), slot_number(o->mean),
                                   slot_number(o->var)};
        json_t *row = json_array();
        failed |= json_array_append_new(row, json_string(fkt_op_name(o->kind)));
        for (size_t k = 0; k < 9; k++) failed |= json_array_append_new(row, json_integer(number[k]));
        for (size_t k = 0; k < 2; k++) failed |= json_array_append_new(row, json_real((double)o->value[k]));
        for (size_t k = 0; k < 4; k++) failed |= json_array_append_new(row, json_integer(slot[k]));
        failed |= json_array_append_new(ops, row);
    }
    if (failed) {
        json_decref(slots);
        json_decref(ops);
        return NULL;
    }
    return json_pack("{s:o s:o}", "slots", slots, "ops", ops);
}

/* ---- reading ---- */

/* Column i of a row as a whole number from `low` on; *good turns 0 where it is none. */
static int64_t number_at(const json_t *row, size_t i, int64_t low, int *good)
{
    const json_t *x = json_array_get(row, i);
    const json_int_t v = json_is_integer(x) ? json_integer_value(x) : low - 1;
    if (v >= low && v <= NUMBER_MAX) return v;
    *good = 0;
    return 0;
}

static fkt_status invalid(const char *path, const char *what, size_t i)
{
    return fkt_fail(FKT_E_FORMAT, "'%s' has an invalid %s %zu in the list of its network", path, what, i);
}

static fkt_status read_slot(struct fkt_net *net, const json_t *row, size_t i, const char *path)
{
    const char *name = json_string_value(json_array_get(row, 0));
    const size_t rank = json_array_size(row) - 1;
    uint32_t shape[FKT_SLOT_RANK] = {0};
    int good = name && *name && strlen(name) < NAME_MAX_BYTES && (rank == 1 || rank == 2 || rank == 4);
    for (size_t d = 0; good && d < rank; d++) shape[d] = (uint32_t)number_at(row, d + 1, 1, &good);
    for (size_t k = 0; good && k < net->n_slots; k++) good = strcmp(net->slot[k].name[0], name) != 0;
    if (!good) return invalid(path, "tensor", i);
    (void)fkt_net_slot(net, name, shape[0], shape[1], shape[2], shape[3]);
    return fkt_net_status(net);
}

static fkt_status read_op(struct fkt_net *net, const json_t *row, size_t i, const char *path)
{
    const char *name = json_string_value(json_array_get(row, 0));
    struct fkt_op op = {.kind = FKT_OP_KINDS};
    uint32_t *number[] = {&op.in[0], &op.in[1],     &op.channels, &op.kernel, &op.stride,
                          &op.pad,   &op.pad_after, &op.groups,   &op.factor};
    uint32_t *slot[] = {&op.weight, &op.bias, &op.mean, &op.var};
    int good = name && json_array_size(row) == COLUMNS;
    for (int k = 0; good && k < FKT_OP_KINDS; k++)
        if (!strcmp(name, fkt_op_name((enum fkt_op_kind)k))) op.kind = (enum fkt_op_kind)k;
    good = good && op.kind != FKT_OP_KINDS && portable(op.kind);
    for (size_t k = 0; good && k < 9; k++) *number[k] = (uint32_t)number_at(row, k + 1, 0, &good);
    for (size_t k = 0; good && k < 2; k++) {
        const json_t *x = json_array_get(row, 10 + k);
        op.value[k] = (float)json_number_value(x);
        good = json_is_number(x) && isfinite(op.value[k]);
    }
    for (size_t k = 0; good && k < 4; k++) {
        const int64_t v = number_at(row, 12 + k, -1, &good);
        *slot[k] = v < 0 ? FKT_NO_SLOT : (uint32_t)v;
        good = good && (v < 0 || (size_t)v < net->n_slots);
    }
    good = good && op.in[0] <= i && op.in[1] <= i;
    if (!good) return invalid(path, "operation", i);
    (void)fkt_net_add(net, &op);
    return fkt_net_status(net);
}

fkt_status fkt_whole_net_read(struct fkt_net *net, const json_t *json, const char *path)
{
    const json_t *slots = json_object_get(json, "slots"), *ops = json_object_get(json, "ops");
    fkt_status st = FKT_OK;
    fkt_net_init(net, 3);
    if (!json_is_array(slots) || !json_is_array(ops) || !json_array_size(ops) || json_array_size(slots) > LIST_MAX ||
        json_array_size(ops) > LIST_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s' has no list of at most %d operations for a network", path, LIST_MAX);
    for (size_t i = 0; st == FKT_OK && i < json_array_size(slots); i++)
        st = read_slot(net, json_array_get(slots, i), i, path);
    for (size_t i = 0; st == FKT_OK && i < json_array_size(ops); i++)
        st = read_op(net, json_array_get(ops, i), i, path);
    return st;
}
