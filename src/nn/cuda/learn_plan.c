/* SPDX-License-Identifier: Apache-2.0 */
/* learn_plan.c - from a list of operations to the steps of a forward; learn_back.c adds those of the backward.
 *
 * Groups (a batch norm with the addition and the ReLU after it, an addition with its ReLU) and the buffers of gradients
 * are those of nn/backprop.c.
 *
 * What a step must cost, in bytes and multiply-adds, and what was predicted: docs/decisions/0019. */
#include "nn/cuda/learn.h"

#include "base/alloc.h"

#include <inttypes.h>

fkt_status fkt_cuda_draft_buffer(struct fkt_cuda_draft *s, uint32_t *out, size_t bytes)
{
    struct fkt_cuda_learn *l = s->l;
    fkt_status st = FKT_OK;
    *out = FKT_NONE;
    if (!bytes) return FKT_OK;
    if (l->n_buffers == l->buffer_room) {
        FKT_TRY(fkt_realloc(&l->buffer, l->buffer_room + 256));
        FKT_TRY(fkt_backprop_room(&s->b, l->buffer_room + 256));
        l->buffer_room += 256;
    }
    *out = (uint32_t)l->n_buffers;
    s->b.pending[l->n_buffers] = 0;
    l->buffer[l->n_buffers++] = (struct fkt_buffer){.bytes = bytes, .first = FKT_NONE};
out:
    return st;
}

fkt_status fkt_cuda_draft_map(struct fkt_cuda_draft *s, uint32_t *out, uint32_t value)
{
    const struct fkt_cuda_tensor t = fkt_cuda_learn_tensor(s->l, value, FKT_NONE);
    return fkt_cuda_draft_buffer(s, out, fkt_cuda_bytes_of(&t));
}

struct fkt_cuda_step fkt_cuda_step_of(enum fkt_cuda_step_kind kind, const struct fkt_op *op, uint32_t value)
{
    return (struct fkt_cuda_step){.kind = kind,
                                  .op = op,
                                  .value = value,
                                  .x = FKT_NONE,
                                  .z = FKT_NONE,
                                  .y = FKT_NONE,
                                  .g = FKT_NONE,
                                  .h = FKT_NONE,
                                  .e = FKT_NONE,
                                  .d = FKT_NONE,
                                  .keep = FKT_NONE,
                                  .scratch = FKT_NONE,
                                  .norm = FKT_NONE};
}

fkt_status fkt_cuda_learn_add_step(struct fkt_cuda_draft *s, const struct fkt_cuda_step *step)
{
    struct fkt_cuda_learn *l = s->l;
    const uint32_t touched[] = {step->x, step->z, step->y,    step->g,      step->h,
                                step->e, step->d, step->keep, step->scratch};
    if (l->n_steps == l->step_room) {
        fkt_status st = fkt_realloc(&l->step, l->step_room + 256);
        if (st != FKT_OK) {
            struct fkt_cuda_product p = step->product;
            fkt_cuda_product_free(&p);
            return st;
        }
        l->step_room += 256;
    }
    for (size_t i = 0; i < sizeof touched / sizeof *touched; i++) {
        if (touched[i] == FKT_NONE) continue;
        if (l->buffer[touched[i]].first == FKT_NONE) l->buffer[touched[i]].first = (uint32_t)l->n_steps;
        l->buffer[touched[i]].last = (uint32_t)l->n_steps;
    }
    l->step[l->n_steps++] = *step;
    return FKT_OK;
}

/* Counts what backward steps read of the forward's maps: a product's and a norm's source, and results of a ReLU, unless
 * a norm can compute the mask from its source. */
static void count_uses(struct fkt_cuda_draft *s)
{
    const struct fkt_net *net = s->l->net;
    for (uint32_t i = 0; i < net->n_ops; i++) {
        enum fkt_op_kind kind = net->op[i].kind;
        const struct fkt_class *g = &s->b.group[i];
        if (!fkt_backprop_heads(&s->b, i)) continue;
        if (kind == FKT_OP_CONV || kind == FKT_OP_LINEAR || kind == FKT_OP_BATCH_NORM) s->uses[net->op[i].in[0]]++;
        if (kind == FKT_OP_RELU || (g->relu != FKT_NONE && (kind == FKT_OP_ADD || g->add != FKT_NONE)))
            s->uses[g->end + 1]++;
    }
}

static fkt_status norm(struct fkt_cuda_draft *s, uint32_t i)
{
    struct fkt_cuda_learn *l = s->l;
    const struct fkt_op *op = &l->net->op[i];
    const struct fkt_class *g = &s->b.group[i];
    struct fkt_cuda_norm *n = &l->norm[l->n_norms];
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_NORM, op, g->end + 1);
    fkt_status st;
    k.norm = s->norm[i] = (uint32_t)l->n_norms++;
    *n = (struct fkt_cuda_norm){
        .map = fkt_cuda_learn_rows(l, i + 1), .epsilon = op->value[0], .momentum = l->spec.norm_momentum};
    n->parts = fkt_cuda_learn_parts(&n->map);
    k.relu = g->relu != FKT_NONE;
    k.x = s->buffer[op->in[0]];
    if (g->add != FKT_NONE) k.z = s->buffer[fkt_backprop_addend(&s->b, i)];
    FKT_TRY(fkt_cuda_draft_map(s, &k.y, g->end + 1));
    FKT_TRY(fkt_cuda_draft_buffer(s, &k.scratch, sizeof(float) * 2 * (size_t)n->map.channels * (size_t)n->parts));
    s->buffer[g->end + 1] = k.y;
    FKT_TRY(fkt_cuda_learn_add_step(s, &k));
out:
    return st;
}

/* 1 when a sum may overwrite this value. */
static int free_to_write(const struct fkt_cuda_draft *s, uint32_t value)
{
    return value && s->b.readers[value] == 1 && !s->uses[value];
}

/* An addition or a ReLU that is not fused with a norm. */
static fkt_status sum(struct fkt_cuda_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    uint32_t end = s->b.group[i].end;
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_SUM, op, end + 1);
    fkt_status st = FKT_OK;
    k.relu = op->kind == FKT_OP_RELU || s->b.group[i].relu != FKT_NONE;
    k.x = s->buffer[op->in[0]];
    if (op->kind == FKT_OP_ADD) k.z = s->buffer[op->in[1]];
    if (free_to_write(s, op->in[0])) k.y = k.x;
    else if (k.z != FKT_NONE && free_to_write(s, op->in[1])) k.y = k.z;
    else FKT_TRY(fkt_cuda_draft_map(s, &k.y, end + 1));
    s->buffer[end + 1] = k.y;
    FKT_TRY(fkt_cuda_learn_add_step(s, &k));
out:
    return st;
}

static fkt_status pooled(struct fkt_cuda_draft *s, uint32_t i, enum fkt_cuda_step_kind kind)
{
    struct fkt_cuda_step k = fkt_cuda_step_of(kind, &s->l->net->op[i], i + 1);
    const struct fkt_cuda_rows y = fkt_cuda_learn_rows(s->l, i + 1);
    fkt_status st = FKT_OK;
    k.x = s->buffer[k.op->in[0]];
    FKT_TRY(fkt_cuda_draft_map(s, &k.y, i + 1));
    if (kind == FKT_CUDA_STEP_POOL)
        FKT_TRY(fkt_cuda_draft_buffer(s, &k.keep, y.rows * (size_t)y.channels * sizeof(uint16_t)));
    s->buffer[i + 1] = k.y;
    s->keep[i] = k.keep;
    FKT_TRY(fkt_cuda_learn_add_step(s, &k));
out:
    return st;
}

static fkt_status product(struct fkt_cuda_draft *s, uint32_t i)
{
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_PRODUCT, &s->l->net->op[i], i + 1);
    fkt_status st;
    k.x = s->buffer[k.op->in[0]];
    FKT_TRY(fkt_cuda_draft_map(s, &k.y, i + 1));
    FKT_TRY(fkt_cuda_product_new(&k.product, s->l, i, FKT_CUDA_FORWARD, FKT_CUDA_ACT_NONE));
    s->buffer[i + 1] = k.y;
    if (k.product.conv) s->facts->convolutions++;
    return fkt_cuda_learn_add_step(s, &k);
out:
    return st;
}

static fkt_status emit(struct fkt_cuda_draft *s, uint32_t head)
{
    switch (s->l->net->op[head].kind) {
    case FKT_OP_CONV:
    case FKT_OP_LINEAR: return product(s, head);
    case FKT_OP_BATCH_NORM: return norm(s, head);
    case FKT_OP_RELU:
    case FKT_OP_ADD: return sum(s, head);
    case FKT_OP_MAX_POOL: return pooled(s, head, FKT_CUDA_STEP_POOL);
    case FKT_OP_MEAN: return pooled(s, head, FKT_CUDA_STEP_MEAN);
    default:
        return fkt_fail(FKT_E_ARG, "operation %" PRIu32 " of the network (%s) cannot learn", head,
                        fkt_op_name(s->l->net->op[head].kind));
    }
}

static fkt_status emit_all(struct fkt_cuda_draft *s)
{
    struct fkt_cuda_learn *l = s->l;
    fkt_status st;
    fkt_backprop_count(&s->b, l->spec.frozen);
    s->facts->fused += fkt_backprop_group(&s->b, l->spec.frozen ? FKT_JOIN_AFTER_CONV | FKT_JOIN_RELU6
                                                                : FKT_JOIN_ADDITIONS | FKT_JOIN_AFTER_SUM);
    FKT_TRY(fkt_cuda_draft_map(s, &s->buffer[0], 0));
    l->buffer[s->buffer[0]].first = 0;
    l->dout_buffer = l->din_buffer = FKT_NONE;
    if (l->spec.frozen) {
        FKT_TRY(fkt_cuda_draft_frozen(s));
    } else {
        count_uses(s);
        for (uint32_t i = 0; i < l->net->n_ops; i++)
            if (s->b.group[i].head != FKT_NONE) FKT_TRY(emit(s, s->b.group[i].head));
        l->n_ahead = l->n_steps;
        FKT_TRY(fkt_cuda_draft_back(s));
    }
    l->in_buffer = s->buffer[0];
    l->out_buffer = s->buffer[l->net->n_ops];
    if (l->buffer[l->out_buffer].last < l->n_ahead) l->buffer[l->out_buffer].last = (uint32_t)l->n_ahead;
    FKT_TRY(fkt_cuda_draft_aside(s));
    FKT_TRY(fkt_arena_place(l->buffer, l->n_buffers, &l->arena_bytes));
out:
    return st;
}

static fkt_status new_map(void *draft, uint32_t *out, uint32_t value) { return fkt_cuda_draft_map(draft, out, value); }

static fkt_status add_gradients(void *draft, uint32_t value, uint32_t g, uint32_t h, uint32_t d)
{
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_MASK, NULL, value);
    k.g = g;
    k.h = h;
    k.d = d;
    return fkt_cuda_learn_add_step(draft, &k);
}

fkt_status fkt_cuda_learn_plan(struct fkt_cuda_learn *l, struct fkt_learner_facts *facts)
{
    struct fkt_cuda_draft s = {.l = l, .facts = facts, .b = {.map = new_map, .add = add_gradients}};
    size_t n = l->net->n_ops;
    fkt_status st;
    s.b.backend = &s;
    FKT_TRY(fkt_alloc(&l->norm, n));
    FKT_TRY(fkt_alloc(&s.buffer, n + 1));
    FKT_TRY(fkt_backprop_init(&s.b, l->net));
    FKT_TRY(fkt_alloc(&s.uses, n + 1));
    FKT_TRY(fkt_alloc(&s.norm, n));
    FKT_TRY(fkt_alloc(&s.keep, n));
    FKT_TRY(emit_all(&s));
out:
    fkt_free(s.buffer);
    fkt_backprop_clear(&s.b);
    fkt_free(s.uses);
    fkt_free(s.norm);
    fkt_free(s.keep);
    return st;
}
