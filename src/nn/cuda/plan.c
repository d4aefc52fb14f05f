/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - from a list of operations to a list of steps on a card, in one pass. */
#include "nn/cuda/plan.h"
#include "nn/cuda/kernels.h"
#include "nn/cuda/launch.h"

#include "base/alloc.h"

#include <string.h>

enum { ALIGN = 256 }; /* of every buffer: sizes are rounded up to it, and so are offsets */

fkt_status fkt_cuda_draft_scratch(struct fkt_cuda_draft *d, uint32_t *buffer, size_t bytes)
{
    struct fkt_cuda_plan *p = d->plan;
    fkt_status st = FKT_OK;
    *buffer = FKT_NONE;
    if (!bytes) return FKT_OK;
    if (p->n_buffers == p->buffer_room) {
        FKT_TRY(fkt_realloc(&p->buffer, p->buffer_room + 256));
        p->buffer_room += 256;
    }
    *buffer = (uint32_t)p->n_buffers;
    p->buffer[p->n_buffers++] = (struct fkt_buffer){.bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN};
out:
    return st;
}

fkt_status fkt_cuda_draft_value(struct fkt_cuda_draft *d, struct fkt_cuda_value *out, struct fkt_shape s, uint32_t c)
{
    out->t = (struct fkt_cuda_tensor){
        .n = (int)d->plan->spec.batch, .h = (int)s.h, .w = (int)s.w, .c = (int)c, .precision = d->plan->spec.precision};
    return fkt_cuda_draft_scratch(d, &out->buffer, fkt_cuda_bytes_of(&out->t));
}

struct fkt_cuda_step fkt_cuda_draft_empty(enum fkt_cuda_step_kind kind, const struct fkt_op *op)
{
    struct fkt_cuda_step s = {.kind = kind, .op = op, .weights = FKT_CUDA_NOWHERE, .bias = FKT_CUDA_NOWHERE};
    s.src[0].buffer = s.src[1].buffer = s.dst.buffer = s.scratch = FKT_NONE;
    return s;
}

fkt_status fkt_cuda_draft_step(struct fkt_cuda_draft *d, const struct fkt_cuda_step *step)
{
    struct fkt_cuda_plan *p = d->plan;
    fkt_status st = FKT_OK;
    if (p->n_steps == p->step_room) {
        st = fkt_realloc(&p->step, p->step_room + 256);
        if (st != FKT_OK) {
            fkt_cuda_gemm_free(step->gemm);
            return st;
        }
        p->step_room += 256;
    }
    p->step[p->n_steps++] = *step;
    return st;
}

/* 1: nothing reads the value after the group that ends with operation `end`, so its buffer may be written. */
static int dead(const struct fkt_cuda_draft *d, uint32_t value, uint32_t end)
{
    return value != d->plan->net->n_ops && d->last[value] <= end;
}

static int may_be_in_place(enum fkt_op_kind kind)
{
    return kind == FKT_OP_RELU || kind == FKT_OP_RELU6 || kind == FKT_OP_SILU || kind == FKT_OP_SOFT_CLAMP ||
           kind == FKT_OP_AFFINE || kind == FKT_OP_ADD || kind == FKT_OP_RMS_NORM || kind == FKT_OP_BATCH_NORM;
}

static enum fkt_cuda_act act_of(const struct fkt_cuda_draft *d, uint32_t head)
{
    uint32_t after = d->group[head].after;
    if (after == FKT_NONE) return FKT_CUDA_ACT_NONE;
    return fkt_cuda_act_of(d->plan->net->op[after].kind);
}

static fkt_status parameters(struct fkt_cuda_draft *d, const struct fkt_op *op, struct fkt_cuda_step *s)
{
    float *scale = NULL, *shift = NULL;
    size_t n = (size_t)s->src[0].t.c;
    fkt_status st = FKT_OK;
    if (op->kind == FKT_OP_BATCH_NORM) {
        FKT_TRY(fkt_cuda_plan_scale(d->plan, op, &scale, &shift));
        FKT_TRY(fkt_cuda_plan_floats(d->plan, scale, n, &s->weights));
        FKT_TRY(fkt_cuda_plan_floats(d->plan, shift, n, &s->bias));
    } else if (op->kind == FKT_OP_RMS_NORM || op->kind == FKT_OP_GROUP_NORM) {
        FKT_TRY(fkt_cuda_plan_vector(d->plan, op->weight, &s->weights));
        FKT_TRY(fkt_cuda_plan_vector(d->plan, op->bias, &s->bias));
    }
    if (op->kind == FKT_OP_GROUP_NORM)
        FKT_TRY(fkt_cuda_draft_scratch(d, &s->scratch,
                                       fkt_cuda_group_norm_scratch(&s->src[0].t, (int)op->groups) * sizeof(float)));
out:
    fkt_free(scale);
    fkt_free(shift);
    return st;
}

/* An operation that kernels.h has, with the members of its group: an RMS norm's addition is its second source. */
static fkt_status kernel(struct fkt_cuda_draft *d, uint32_t i)
{
    const struct fkt_net *net = d->plan->net;
    const struct fkt_op *op = &net->op[i];
    const uint32_t end = d->group[i].end;
    uint32_t in[2] = {op->in[0], FKT_NONE};
    struct fkt_cuda_step s = fkt_cuda_draft_empty(FKT_CUDA_STEP_OP, op);
    fkt_status st = FKT_OK;
    if (d->group[i].add != FKT_NONE) in[1] = fkt_group_addend(d->group, net, i);
    else if (fkt_op_reads_two(op)) in[1] = op->in[1];
    s.act = act_of(d, i);
    for (int k = 0; k < 2 && in[k] != FKT_NONE; k++) {
        s.src[k] = d->place[in[k]];
        if (may_be_in_place(op->kind) && s.dst.buffer == FKT_NONE && dead(d, in[k], end)) s.dst = s.src[k];
    }
    if (s.dst.buffer == FKT_NONE) {
        uint32_t c = d->padded[i + 1] ? (uint32_t)s.src[0].t.c : d->shape[end + 1].c; /* of an activation */
        FKT_TRY(fkt_cuda_draft_value(d, &s.dst, d->shape[end + 1], c));
    }
    FKT_TRY(parameters(d, op, &s));
    d->place[end + 1] = s.dst;
    FKT_TRY(fkt_cuda_draft_step(d, &s));
out:
    return st;
}

static fkt_status shortcut(struct fkt_cuda_draft *d, uint32_t i)
{
    const struct fkt_op *op = d->plan->net->op, *moved = &op[op[i].in[0] - 1];
    struct fkt_cuda_step s =
        fkt_cuda_draft_empty(moved->kind == FKT_OP_UNSHUFFLE ? FKT_CUDA_STEP_DOWN : FKT_CUDA_STEP_UP, moved);
    fkt_status st;
    s.src[0] = d->place[d->shortcut[i][0]];
    s.src[1] = d->place[d->shortcut[i][1]];
    FKT_TRY(fkt_cuda_draft_value(d, &s.dst, d->shape[i + 1], d->shape[i + 1].c));
    d->place[i + 1] = s.dst;
    FKT_TRY(fkt_cuda_draft_step(d, &s));
out:
    return st;
}

static fkt_status emit(struct fkt_cuda_draft *d, uint32_t head)
{
    if (d->shortcut[head][0] != FKT_NONE) return shortcut(d, head);
    switch (d->plan->net->op[head].kind) {
    case FKT_OP_CONV:
    case FKT_OP_LINEAR: return fkt_cuda_draft_conv(d, head);
    default: return kernel(d, head);
    }
}

static void count_readers(struct fkt_cuda_draft *d)
{
    const struct fkt_net *net = d->plan->net;
    for (uint32_t i = 0; i < net->n_ops; i++) {
        d->readers[net->op[i].in[0]]++;
        if (fkt_op_reads_two(&net->op[i])) d->readers[net->op[i].in[1]]++;
    }
    d->readers[net->n_ops]++; /* the caller reads the output */
}

/* An operation reads when its group runs, which is in the place of the group's last member. */
static void last_readers(struct fkt_cuda_draft *d)
{
    const struct fkt_net *net = d->plan->net;
    for (uint32_t end = 0; end < net->n_ops; end++) {
        const struct fkt_group *g;
        if (d->group[end].head == FKT_NONE) continue;
        g = &d->group[d->group[end].head];
        if (d->shortcut[end][0] != FKT_NONE) d->last[d->shortcut[end][0]] = d->last[d->shortcut[end][1]] = end;
        d->last[net->op[d->group[end].head].in[0]] = end;
        if (g->add != FKT_NONE) d->last[net->op[g->add].in[0]] = d->last[net->op[g->add].in[1]] = end;
        if (fkt_op_reads_two(&net->op[end])) d->last[net->op[end].in[0]] = d->last[net->op[end].in[1]] = end;
    }
}

static void touch(struct fkt_cuda_plan *p, uint32_t buffer, uint32_t step)
{
    if (buffer == FKT_NONE) return;
    if (step < p->buffer[buffer].first) p->buffer[buffer].first = step;
    if (step > p->buffer[buffer].last) p->buffer[buffer].last = step;
}

static fkt_status place_buffers(struct fkt_cuda_plan *p)
{
    for (size_t i = 0; i < p->n_buffers; i++) {
        p->buffer[i].first = FKT_NONE;
        p->buffer[i].last = 0;
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        touch(p, p->step[i].src[0].buffer, i);
        touch(p, p->step[i].src[1].buffer, i);
        touch(p, p->step[i].dst.buffer, i);
        touch(p, p->step[i].scratch, i);
    }
    touch(p, p->input.buffer, 0);
    touch(p, p->output.buffer, (uint32_t)p->n_steps);
    return fkt_arena_place(p->buffer, p->n_buffers, &p->arena_bytes);
}

static fkt_status emit_all(struct fkt_cuda_draft *d)
{
    struct fkt_cuda_plan *p = d->plan;
    const uint32_t c = d->shape[0].c;
    fkt_status st;
    count_readers(d);
    fkt_fuse(d->group, p->net, d->readers, FKT_FUSE_BATCH_NORM | FKT_FUSE_NORM_ACT | FKT_FUSE_GLU);
    fkt_cuda_draft_shortcuts(d);
    last_readers(d);
    fkt_cuda_draft_padding(d);
    FKT_TRY(fkt_cuda_draft_value(d, &d->place[0], d->shape[0],
                                 d->padded[0] ? (uint32_t)fkt_cuda_conv_channels((int)c, p->spec.precision) : c));
    for (uint32_t i = 0; i < p->net->n_ops; i++) {
        if (d->group[i].head == FKT_NONE) p->facts->fused++;
        else FKT_TRY(emit(d, d->group[i].head));
    }
    p->input = d->place[0];
    p->output = d->place[p->net->n_ops];
    p->in_shape = d->shape[0];
    p->out_shape = d->shape[p->net->n_ops];
    FKT_TRY(place_buffers(p));
    p->facts->workspace_bytes = p->arena_bytes;
    if (p->spec.pixels_in) FKT_TRY(fkt_cuda_plan_floats(p, &p->spec.pixels_in[0][0], (size_t)3 * 256, &p->table));
    FKT_TRY(fkt_cuda_plan_upload(p));
    p->facts->packed_bytes = p->block_bytes;
out:
    return st;
}

/* Every value, before its sizes are multiplied as int. */
static fkt_status check_sizes(const struct fkt_cuda_plan *p, const struct fkt_shape *s)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i <= p->net->n_ops && st == FKT_OK; i++)
        st = fkt_cuda_countable((size_t)p->spec.batch * s[i].c * s[i].h * s[i].w,
                                i ? fkt_op_name(p->net->op[i - 1].kind) : "input");
    return st;
}

fkt_status fkt_cuda_plan_build(struct fkt_cuda_plan *p, const struct fkt_shape *shapes)
{
    size_t n = p->net->n_ops;
    struct fkt_cuda_draft d = {.plan = p, .shape = shapes};
    fkt_status st;
    FKT_TRY(check_sizes(p, shapes));
    FKT_TRY(fkt_alloc(&d.place, n + 1));
    FKT_TRY(fkt_alloc(&d.group, n));
    FKT_TRY(fkt_alloc(&d.shortcut, n));
    FKT_TRY(fkt_alloc(&d.readers, n + 1));
    FKT_TRY(fkt_alloc(&d.last, n + 1));
    FKT_TRY(fkt_alloc(&d.padded, n + 1));
    FKT_TRY(emit_all(&d));
out:
    fkt_free(d.place);
    fkt_free(d.group);
    fkt_free(d.shortcut);
    fkt_free(d.readers);
    fkt_free(d.last);
    fkt_free(d.padded);
    return st;
}

void fkt_cuda_plan_clear(struct fkt_cuda_plan *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        fkt_cuda_gemm_free(p->step[i].gemm);
        fkt_cuda_conv_free(p->step[i].conv);
    }
    for (size_t i = 0; i < p->n_packings; i++) fkt_free(p->packing[i].numbers);
    fkt_cuda_free(p->block);
    fkt_free(p->packing);
    fkt_free(p->step);
    fkt_free(p->buffer);
}
