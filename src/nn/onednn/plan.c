/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - from a list of operations to a list of steps, in one pass.
 *
 * All values have one layout (shim.h), chosen for the convolutions, which take most of the time: blocks of 16 channels
 * on AVX-512 and 8 below it in f32, as Winograd and the direct kernels need; NHWC in bf16 on AMX; plain NCHW in a
 * low-memory plan, since only the kernels by matrix product can read weights in the order of the file. Only the input
 * stays NCHW where convolutions are its only readers: for few channels that is faster. */
#include "nn/onednn/plan.h"

#include "base/alloc.h"

#include <string.h>

fkt_status fkt_draft_scratch(struct fkt_draft *d, uint32_t *buffer, size_t bytes)
{
    struct fkt_plan *p = d->plan;
    fkt_status st = FKT_OK;
    *buffer = FKT_NONE;
    if (!bytes) return FKT_OK;
    if (p->n_buffers == p->buffer_room) {
        FKT_TRY(fkt_realloc(&p->buffer, p->buffer_room + 256));
        p->buffer_room += 256;
    }
    *buffer = (uint32_t)p->n_buffers;
    p->buffer[p->n_buffers++] = (struct fkt_buffer){.bytes = bytes};
out:
    return st;
}

fkt_status fkt_draft_value(struct fkt_draft *d, struct fkt_value_place *out, struct fkt_shape s,
                           enum fkt_dnn_layout layout)
{
    out->act = (struct fkt_act){.n = d->plan->spec.batch,
                                .c = s.c,
                                .h = s.h,
                                .w = s.w,
                                .block = fkt_dnn_block(layout, s.c),
                                .precision = d->plan->spec.precision};
    out->offset = 0;
    return fkt_draft_scratch(d, &out->buffer, fkt_act_bytes(&out->act));
}

fkt_status fkt_draft_step(struct fkt_draft *d, const struct fkt_step *step)
{
    struct fkt_plan *p = d->plan;
    fkt_status st = FKT_OK;
    if (p->n_steps == p->step_room) {
        st = fkt_realloc(&p->step, p->step_room + 256);
        if (st != FKT_OK) {
            fkt_dnn_prim_free(step->prim);
            return st;
        }
        p->step_room += 256;
    }
    p->step[p->n_steps++] = *step;
    return st;
}

fkt_status fkt_draft_copy(struct fkt_draft *d, const struct fkt_value_place *dst, const struct fkt_value_place *src)
{
    struct fkt_step s = {.kind = FKT_STEP_COPY, .dst = *dst, .scratch = FKT_NONE};
    s.src[0] = *src;
    s.src[1].buffer = FKT_NONE;
    return fkt_draft_step(d, &s);
}

enum fkt_dnn_after fkt_draft_after_kind(enum fkt_op_kind kind)
{
    return kind == FKT_OP_RELU ? FKT_AFTER_RELU : kind == FKT_OP_RELU6 ? FKT_AFTER_RELU6 : FKT_AFTER_SILU;
}

fkt_status fkt_draft_after(struct fkt_draft *d, const struct fkt_value_place *dst, const struct fkt_value_place *src,
                           enum fkt_dnn_after kind)
{
    struct fkt_step s = {.kind = FKT_STEP_CALL, .dst = *dst, .scratch = FKT_NONE};
    fkt_status st;
    s.src[0] = *src;
    s.src[1].buffer = FKT_NONE;
    FKT_TRY(fkt_dnn_after_new(&s.prim, fkt_act_count(&src->act), src->act.precision, kind));
    if (!s.prim) return fkt_fail(FKT_E_ARG, "oneDNN has no kernel for an activation");
    FKT_TRY(fkt_draft_scratch(d, &s.scratch, fkt_dnn_scratch_bytes(s.prim)));
    st = fkt_draft_step(d, &s);
    s.prim = NULL;
out:
    fkt_dnn_prim_free(s.prim);
    return st;
}

int fkt_draft_dead(const struct fkt_draft *d, uint32_t value, uint32_t end)
{
    return value != d->plan->net->n_ops && d->last[value] <= end;
}

/* 1 when the result of the group that ends with `end` may overwrite this value. */
static int free_to_write(const struct fkt_draft *d, uint32_t value, uint32_t end)
{
    const struct fkt_act *a = &d->place[value].act;
    return fkt_draft_dead(d, value, end) && a->block == fkt_dnn_block(d->plan->layout, a->c);
}

static int may_be_in_place(enum fkt_op_kind kind)
{
    return kind == FKT_OP_RELU || kind == FKT_OP_RELU6 || kind == FKT_OP_SILU || kind == FKT_OP_SOFT_CLAMP ||
           kind == FKT_OP_AFFINE || kind == FKT_OP_ADD || kind == FKT_OP_RMS_NORM || kind == FKT_OP_BATCH_NORM;
}

/* A step that oneDNN has no primitive for: act.h does it. An RMS norm has its addition as second source. */
static fkt_status glue(struct fkt_draft *d, uint32_t i)
{
    const struct fkt_plan *p = d->plan;
    const struct fkt_op *op = &p->net->op[i], *add = NULL;
    uint32_t end = d->group[i].end, in[2] = {op->in[0], FKT_NONE};
    struct fkt_step s = {.kind = FKT_STEP_GLUE, .op = op, .scratch = FKT_NONE};
    const float *scale = NULL;
    fkt_status st = FKT_OK;
    if (d->group[i].add != FKT_NONE) add = &p->net->op[d->group[i].add];
    if (add) in[1] = add->in[0] == i + 1 ? add->in[1] : add->in[0];
    if (fkt_op_reads_two(op)) in[1] = op->in[1];
    s.dst.buffer = s.src[1].buffer = FKT_NONE;
    for (int k = 0; k < 2 && in[k] != FKT_NONE; k++) {
        s.src[k] = d->place[in[k]];
        if (may_be_in_place(op->kind) && s.dst.buffer == FKT_NONE && free_to_write(d, in[k], end)) s.dst = s.src[k];
    }
    if (s.dst.buffer == FKT_NONE) FKT_TRY(fkt_draft_value(d, &s.dst, d->shape[end + 1], p->layout));
    if (op->kind == FKT_OP_BATCH_NORM) {
        FKT_TRY(fkt_plan_scale(d->plan, op, &scale, &s.bias));
        s.weights = scale;
    } else if (op->kind == FKT_OP_RMS_NORM || op->kind == FKT_OP_GROUP_NORM) {
        FKT_TRY(fkt_plan_vector(d->plan, op->weight, &scale));
        FKT_TRY(fkt_plan_vector(d->plan, op->bias, &s.bias));
        s.weights = scale;
    } else if (op->kind == FKT_OP_ATTENTION) {
        size_t floats = fkt_act_attention_scratch(&s.src[0].act, op->groups);
        FKT_TRY(fkt_draft_scratch(d, &s.scratch, floats * sizeof(float)));
    }
    d->place[end + 1] = s.dst;
    FKT_TRY(fkt_draft_step(d, &s));
out:
    return st;
}

static fkt_status activation(struct fkt_draft *d, uint32_t i)
{
    const struct fkt_op *op = &d->plan->net->op[i];
    enum fkt_dnn_after kind = fkt_draft_after_kind(op->kind);
    struct fkt_value_place *dst = &d->place[i + 1], *src = &d->place[op->in[0]];
    fkt_status st = FKT_OK;
    if (free_to_write(d, op->in[0], i)) *dst = *src;
    else FKT_TRY(fkt_draft_value(d, dst, d->shape[i + 1], d->plan->layout));
    FKT_TRY(fkt_draft_after(d, dst, src, kind));
out:
    return st;
}

static fkt_status emit(struct fkt_draft *d, uint32_t head)
{
    switch (d->plan->net->op[head].kind) {
    case FKT_OP_CONV:
    case FKT_OP_LINEAR: return fkt_draft_conv(d, head);
    case FKT_OP_RELU:
    case FKT_OP_RELU6:
    case FKT_OP_SILU: return activation(d, head);
    default: return glue(d, head);
    }
}

static void count_readers(struct fkt_draft *d)
{
    const struct fkt_net *net = d->plan->net;
    for (uint32_t i = 0; i < net->n_ops; i++) {
        d->readers[net->op[i].in[0]]++;
        if (fkt_op_reads_two(&net->op[i])) d->readers[net->op[i].in[1]]++;
    }
    d->readers[net->n_ops]++; /* the caller reads the output */
}

/* An operation reads when its group runs, which is in the place of the group's last member. */
static void last_readers(struct fkt_draft *d)
{
    const struct fkt_net *net = d->plan->net;
    for (uint32_t end = 0; end < net->n_ops; end++) {
        const struct fkt_group *g;
        if (d->group[end].head == FKT_NONE) continue;
        g = &d->group[d->group[end].head];
        d->last[net->op[d->group[end].head].in[0]] = end;
        if (g->add != FKT_NONE) d->last[net->op[g->add].in[0]] = d->last[net->op[g->add].in[1]] = end;
        if (fkt_op_reads_two(&net->op[end])) d->last[net->op[end].in[0]] = d->last[net->op[end].in[1]] = end;
    }
}

static int input_stays_plain(const struct fkt_draft *d)
{
    const struct fkt_net *net = d->plan->net;
    if (d->plan->spec.precision != FKT_PRECISION_F32 || d->readers[0] == 0 || net->channels > 4) return 0;
    for (uint32_t i = 0; i < net->n_ops; i++) {
        int two = fkt_op_reads_two(&net->op[i]);
        if ((net->op[i].in[0] == 0 && net->op[i].kind != FKT_OP_CONV) || (two && net->op[i].in[1] == 0)) return 0;
    }
    return 1;
}

static fkt_status emit_all(struct fkt_draft *d)
{
    struct fkt_plan *p = d->plan;
    fkt_status st;
    count_readers(d);
    fkt_fuse(d->group, p->net, d->readers, p->spec.low_memory ? 0 : FKT_FUSE_BATCH_NORM);
    last_readers(d);
    FKT_TRY(fkt_draft_value(d, &d->place[0], d->shape[0], input_stays_plain(d) ? FKT_NCHW : p->layout));
    for (uint32_t i = 0; i < p->net->n_ops; i++) {
        if (d->group[i].head == FKT_NONE) p->facts->fused++;
        else FKT_TRY(emit(d, d->group[i].head));
    }
    p->input = d->place[0];
    p->output = d->place[p->net->n_ops];
    FKT_TRY(fkt_arena(p));
    p->facts->workspace_bytes = p->arena_bytes;
out:
    return st;
}

static fkt_status choose_layout(struct fkt_plan *p)
{
    enum fkt_dnn_isa isa = fkt_dnn_isa();
    if (p->spec.precision == FKT_PRECISION_BF16) {
        if (isa < FKT_ISA_AVX512)
            return fkt_fail_hint(FKT_E_ARG, "use f32", "this processor has no instructions for networks in bf16");
        p->layout = isa == FKT_ISA_AMX ? FKT_NHWC : FKT_BLOCK16;
    } else if (p->spec.low_memory) p->layout = FKT_NCHW;
    else p->layout = isa >= FKT_ISA_AVX512 ? FKT_BLOCK16 : FKT_BLOCK8;
    return FKT_OK;
}

/* Before anything large is touched: overcommitted memory would end the process without an error message. */
static fkt_status check_memory(const struct fkt_plan *p)
{
    const double gib = 1U << 30;
    uint64_t wanted = p->arena_bytes + p->facts->packed_bytes, memory = fkt_machine_memory();
    if (wanted <= memory / 2) return FKT_OK;
    return fkt_hint_code(fkt_fail(FKT_E_NOMEM,
                                  "a network for %u x %u inputs needs %.1f GiB, and this machine has %.1f GiB",
                                  p->spec.width, p->spec.height, (double)wanted / gib, (double)memory / gib),
                         FKT_HINT_SMALLER_SIZE, "take smaller images: a network may take half of the memory");
}

fkt_status fkt_plan_build(struct fkt_plan *p, const struct fkt_shape *shapes)
{
    struct fkt_draft d = {.plan = p, .shape = shapes};
    size_t n = p->net->n_ops;
    fkt_status st;
    FKT_TRY(choose_layout(p));
    FKT_TRY(fkt_alloc(&d.place, n + 1));
    FKT_TRY(fkt_alloc(&d.group, n));
    FKT_TRY(fkt_alloc(&d.readers, n + 1));
    FKT_TRY(fkt_alloc(&d.last, n + 1));
    FKT_TRY(emit_all(&d));
    FKT_TRY(check_memory(p));
    FKT_TRY(fkt_plan_pack(p));
out:
    fkt_free(d.place);
    fkt_free(d.group);
    fkt_free(d.readers);
    fkt_free(d.last);
    return st;
}
