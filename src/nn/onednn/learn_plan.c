/* SPDX-License-Identifier: Apache-2.0 */
/* learn_plan.c - from a list of operations to the steps of a forward; learn_back.c adds those of the backward.
 *
 * All maps have one layout, with channels padded to whole blocks, so that every kernel gets shapes that suit it: blocks
 * of 16 channels on AVX-512 and 8 below it; NHWC in bf16 on AMX, as in plan.c. Only the input stays NCHW where
 * convolutions of f32 are its only readers: for few channels that is faster.
 *
 * A batch norm is fused with the addition and the ReLU after it, and an addition with its ReLU (nn/backprop.c;
 * learn_norm.c says why).
 *
 * A frozen network has the same steps without gradients of weights, and those of learn_act.c. */
#include "nn/onednn/learn.h"

#include "base/alloc.h"

#include <inttypes.h>

fkt_status fkt_learn_draft_buffer(struct fkt_learn_draft *s, uint32_t *out, size_t bytes)
{
    struct fkt_learn *l = s->l;
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

struct fkt_learn_step fkt_learn_step_of(enum fkt_learn_step_kind kind, const struct fkt_op *op)
{
    return (struct fkt_learn_step){.kind = kind,
                                   .op = op,
                                   .x = FKT_NONE,
                                   .z = FKT_NONE,
                                   .y = FKT_NONE,
                                   .g = FKT_NONE,
                                   .h = FKT_NONE,
                                   .e = FKT_NONE,
                                   .d = FKT_NONE,
                                   .keep = FKT_NONE,
                                   .scratch = FKT_NONE,
                                   .copy = FKT_NONE,
                                   .norm = FKT_NONE};
}

fkt_status fkt_learn_draft_step(struct fkt_learn_draft *s, const struct fkt_learn_step *step)
{
    struct fkt_learn *l = s->l;
    const uint32_t touched[] = {step->x, step->z, step->y,    step->g,      step->h,
                                step->e, step->d, step->keep, step->scratch};
    if (l->n_steps == l->step_room) {
        fkt_status st = fkt_realloc(&l->step, l->step_room + 256);
        if (st != FKT_OK) {
            fkt_dnn_task_free(step->task);
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

enum fkt_dnn_layout fkt_learn_draft_layout(const struct fkt_learn_draft *s, uint32_t value)
{
    return value == 0 && s->plain_input ? FKT_NCHW : s->l->layout;
}

uint32_t fkt_learn_draft_channels(const struct fkt_learn_draft *s, uint32_t value)
{
    uint32_t c = s->shape[value].c, lanes = s->l->lanes;
    return value == 0 && s->plain_input ? c : (c + lanes - 1) / lanes * lanes;
}

struct fkt_field fkt_learn_draft_field(const struct fkt_learn_draft *s, uint32_t value)
{
    size_t c = fkt_learn_draft_channels(s, value), pixels = (size_t)s->shape[value].h * s->shape[value].w;
    unsigned lanes = s->l->lanes;
    int nhwc = s->l->layout == FKT_NHWC;
    return (struct fkt_field){.images = s->l->spec.batch,
                              .blocks = c / lanes,
                              .pixels = pixels,
                              .image = c * pixels,
                              .block = nhwc ? lanes : pixels * lanes,
                              .pixel = nhwc ? c : lanes,
                              .lanes = lanes,
                              .half = s->l->spec.precision == FKT_PRECISION_BF16};
}

struct fkt_act fkt_learn_draft_act_of(const struct fkt_learn_draft *s, uint32_t value)
{
    struct fkt_shape k = s->shape[value];
    enum fkt_dnn_layout layout = fkt_learn_draft_layout(s, value);
    uint32_t block = layout == FKT_NHWC ? fkt_learn_draft_channels(s, value) : (uint32_t)layout;
    return (struct fkt_act){NULL, s->l->spec.batch, k.c, k.h, k.w, block, s->l->spec.precision};
}

fkt_status fkt_learn_draft_map(struct fkt_learn_draft *s, uint32_t *out, uint32_t value)
{
    struct fkt_act a = fkt_learn_draft_act_of(s, value);
    return fkt_learn_draft_buffer(s, out, fkt_act_bytes(&a));
}

int fkt_learn_draft_keeps(const struct fkt_learn_draft *s, enum fkt_op_kind kind)
{
    if (kind == FKT_OP_CONV || kind == FKT_OP_LINEAR) return !s->l->spec.frozen;
    return kind == FKT_OP_BATCH_NORM || fkt_learn_act_reads_source(kind);
}

/* Counts what backward steps read of the forward's maps: a norm's source, that of a convolution whose weights learn,
 * and results of a ReLU, unless a norm can compute the mask from its source. */
static void count_uses(struct fkt_learn_draft *s)
{
    const struct fkt_net *net = s->l->net;
    for (uint32_t i = 0; i < net->n_ops; i++) {
        enum fkt_op_kind kind = net->op[i].kind;
        const struct fkt_class *g = &s->b.group[i];
        if (!fkt_backprop_heads(&s->b, i)) continue;
        if (fkt_learn_draft_keeps(s, kind)) s->uses[net->op[i].in[0]]++;
        if (kind == FKT_OP_RELU || (g->relu != FKT_NONE && (kind == FKT_OP_ADD || g->add != FKT_NONE)))
            s->uses[g->end + 1]++;
    }
}

static fkt_status norm(struct fkt_learn_draft *s, uint32_t i)
{
    struct fkt_learn *l = s->l;
    const struct fkt_op *op = &l->net->op[i];
    const struct fkt_class *g = &s->b.group[i];
    struct fkt_norm *n = &l->norm[l->n_norms];
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_NORM, op);
    size_t c = fkt_learn_draft_channels(s, i + 1);
    fkt_status st;
    k.norm = s->norm[i] = (uint32_t)l->n_norms++;
    n->op = op;
    n->channels = s->shape[i + 1].c;
    n->field = fkt_learn_draft_field(s, i + 1);
    FKT_TRY(fkt_alloc(&n->centre, 6 * c));
    n->frozen = l->spec.frozen;
    if (!n->frozen) FKT_TRY(fkt_alloc(&n->part, 2 * c * l->threads));
    n->scale = n->centre + c;
    n->a = n->scale + c;
    n->b = n->a + c;
    n->p = n->b + c;
    n->r = n->p + c;
    l->array[op->mean].statistic = l->array[op->var].statistic = 1;
    k.relu = g->relu != FKT_NONE;
    k.x = s->buffer[op->in[0]];
    if (g->add != FKT_NONE) k.z = s->buffer[fkt_backprop_addend(&s->b, i)];
    FKT_TRY(fkt_learn_draft_map(s, &k.y, g->end + 1));
    s->buffer[g->end + 1] = k.y;
    FKT_TRY(fkt_learn_draft_step(s, &k));
out:
    return st;
}

/* 1 when a sum may overwrite this value. */
static int free_to_write(const struct fkt_learn_draft *s, uint32_t value)
{
    return value && s->b.readers[value] == 1 && !s->uses[value];
}

/* An addition or a ReLU that is not fused with a norm. */
static fkt_status sum(struct fkt_learn_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_SUM, op);
    uint32_t end = s->b.group[i].end;
    fkt_status st = FKT_OK;
    k.relu = op->kind == FKT_OP_RELU || s->b.group[i].relu != FKT_NONE;
    k.x = s->buffer[op->in[0]];
    k.field = fkt_learn_draft_field(s, i + 1);
    if (op->kind == FKT_OP_ADD) k.z = s->buffer[op->in[1]];
    if (free_to_write(s, op->in[0])) k.y = k.x;
    else if (k.z != FKT_NONE && free_to_write(s, op->in[1])) k.y = k.z;
    else FKT_TRY(fkt_learn_draft_map(s, &k.y, end + 1));
    s->buffer[end + 1] = k.y;
    FKT_TRY(fkt_learn_draft_step(s, &k));
out:
    return st;
}

static fkt_status mean(struct fkt_learn_draft *s, uint32_t i)
{
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_MEAN, &s->l->net->op[i]);
    fkt_status st;
    k.x = s->buffer[k.op->in[0]];
    k.field = fkt_learn_draft_field(s, k.op->in[0]);
    FKT_TRY(fkt_learn_draft_map(s, &k.y, i + 1));
    s->buffer[i + 1] = k.y;
    FKT_TRY(fkt_learn_draft_step(s, &k));
out:
    return st;
}

fkt_status fkt_learn_draft_pool_task(const struct fkt_learn_draft *s, uint32_t i, enum fkt_dnn_way way,
                                     struct fkt_dnn_task **out)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_shape x = s->shape[op->in[0]], y = s->shape[i + 1];
    struct fkt_dnn_pool k = {s->l->spec.batch,
                             fkt_learn_draft_channels(s, i + 1),
                             x.h,
                             x.w,
                             y.h,
                             y.w,
                             op->kernel,
                             op->stride,
                             op->pad,
                             s->l->layout,
                             s->l->spec.precision};
    return fkt_dnn_task_max_pool(out, &k, way);
}

/* The library compares with '>': a window of NaN gives the lowest float, one with some NaN the largest of the others,
 * and after a norm the result need not show either. */
static fkt_status max_pool(struct fkt_learn_draft *s, uint32_t i)
{
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_CALL, &s->l->net->op[i]);
    struct fkt_learn_step mark = fkt_learn_step_of(FKT_LEARN_STEP_MARK, k.op);
    fkt_status st;
    k.x = s->buffer[k.op->in[0]];
    FKT_TRY(fkt_learn_draft_pool_task(s, i, FKT_WAY_FORWARD, &k.task));
    FKT_TRY(fkt_learn_draft_buffer(s, &k.keep, fkt_dnn_task_bytes(k.task, FKT_AT_KEEP)));
    FKT_TRY(fkt_learn_draft_buffer(s, &k.scratch, fkt_dnn_task_bytes(k.task, FKT_AT_SCRATCH)));
    FKT_TRY(fkt_learn_draft_map(s, &k.y, i + 1));
    s->buffer[i + 1] = k.y;
    s->keep[i] = k.keep;
    mark.x = k.x;
    mark.y = k.y;
    mark.field = fkt_learn_draft_field(s, k.op->in[0]);
    mark.to = fkt_learn_draft_field(s, i + 1);
    st = fkt_learn_draft_step(s, &k);
    return st == FKT_OK ? fkt_learn_draft_step(s, &mark) : st;
out:
    fkt_dnn_task_free(k.task);
    return st;
}

static fkt_status emit(struct fkt_learn_draft *s, uint32_t head)
{
    const struct fkt_op *op = &s->l->net->op[head];
    const int frozen = s->l->spec.frozen;
    if (frozen && fkt_learn_is_act(op->kind)) return fkt_learn_draft_act(s, head);
    switch (op->kind) {
    case FKT_OP_CONV:
    case FKT_OP_LINEAR: return fkt_learn_draft_conv(s, head);
    case FKT_OP_BATCH_NORM: return norm(s, head);
    case FKT_OP_RELU:
    case FKT_OP_ADD: return sum(s, head);
    case FKT_OP_MAX_POOL: return max_pool(s, head);
    case FKT_OP_MEAN: return mean(s, head);
    default:
        return fkt_fail(FKT_E_ARG, "operation %" PRIu32 " of the network (%s) cannot %s", head, fkt_op_name(op->kind),
                        frozen ? "be differentiated by this backend" : "learn");
    }
}

static int input_stays_plain(const struct fkt_learn_draft *s)
{
    const struct fkt_net *net = s->l->net;
    if (s->l->spec.precision != FKT_PRECISION_F32 || net->channels > 4 || s->l->spec.frozen) return 0;
    for (uint32_t i = 0; i < net->n_ops; i++) {
        int two = fkt_op_reads_two(&net->op[i]);
        if ((net->op[i].in[0] == 0 && net->op[i].kind != FKT_OP_CONV) || (two && net->op[i].in[1] == 0)) return 0;
    }
    return 1;
}

static fkt_status emit_all(struct fkt_learn_draft *s)
{
    struct fkt_learn *l = s->l;
    fkt_status st;
    fkt_backprop_count(&s->b, l->spec.frozen);
    s->facts->fused += fkt_backprop_group(&s->b, FKT_JOIN_ADDITIONS | FKT_JOIN_AFTER_SUM);
    count_uses(s);
    s->plain_input = input_stays_plain(s);
    FKT_TRY(fkt_learn_draft_map(s, &s->buffer[0], 0));
    l->buffer[s->buffer[0]].first = 0;
    for (uint32_t i = 0; i < l->net->n_ops; i++)
        if (s->b.group[i].head != FKT_NONE) FKT_TRY(emit(s, s->b.group[i].head));
    l->n_ahead = l->n_steps;
    l->in_buffer = s->buffer[0];
    l->out_buffer = s->buffer[l->net->n_ops];
    l->input = fkt_learn_draft_act_of(s, 0);
    l->output = fkt_learn_draft_act_of(s, (uint32_t)l->net->n_ops);
    FKT_TRY(fkt_learn_draft_back(s));
    FKT_TRY(fkt_arena_place(l->buffer, l->n_buffers, &l->arena_bytes));
    fkt_arrays_lay_out(l);
out:
    return st;
}

static fkt_status choose_layout(struct fkt_learn *l)
{
    enum fkt_dnn_isa isa = fkt_dnn_isa();
    l->lanes = isa >= FKT_ISA_AVX512 ? 16 : 8;
    l->layout = isa >= FKT_ISA_AVX512 ? FKT_BLOCK16 : FKT_BLOCK8;
    if (l->spec.precision == FKT_PRECISION_F32) return FKT_OK;
    if (isa < FKT_ISA_AVX512)
        return fkt_fail_hint(FKT_E_ARG, "use f32", "this processor has no instructions for networks in bf16");
    if (isa == FKT_ISA_AMX) l->layout = FKT_NHWC;
    return FKT_OK;
}

/* Before anything large is touched: overcommitted memory would end the process without an error message. */
static fkt_status check_memory(const struct fkt_learn *l)
{
    const double gib = 1U << 30;
    uint64_t wanted = l->arena_bytes + fkt_arrays_bytes(l), memory = fkt_machine_memory() / 4 * 3;
    if (wanted <= memory) return FKT_OK;
    return fkt_fail_hint(FKT_E_NOMEM, "use a smaller batch",
                         "learning with a batch of %" PRIu32 " images of %" PRIu32 " x %" PRIu32
                         " needs %.1f GiB, and three quarters of this machine's memory are %.1f GiB",
                         l->spec.batch, l->spec.width, l->spec.height, (double)wanted / gib, (double)memory / gib);
}

static fkt_status new_map(void *draft, uint32_t *out, uint32_t value) { return fkt_learn_draft_map(draft, out, value); }

static fkt_status add_gradients(void *draft, uint32_t value, uint32_t g, uint32_t h, uint32_t d)
{
    struct fkt_learn_draft *s = draft;
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_MASK, NULL);
    k.g = g;
    k.h = h;
    k.d = d;
    k.field = fkt_learn_draft_field(s, value);
    return fkt_learn_draft_step(s, &k);
}

fkt_status fkt_learn_plan(struct fkt_learn *l, const struct fkt_shape *shapes, struct fkt_learner_facts *facts)
{
    struct fkt_learn_draft s = {.l = l, .shape = shapes, .facts = facts, .b = {.map = new_map, .add = add_gradients}};
    size_t n = l->net->n_ops;
    fkt_status st;
    s.b.backend = &s;
    FKT_TRY(choose_layout(l));
    FKT_TRY(fkt_alloc(&l->array, l->net->n_slots));
    FKT_TRY(fkt_alloc(&l->norm, n));
    FKT_TRY(fkt_alloc(&s.buffer, n + 1));
    FKT_TRY(fkt_backprop_init(&s.b, l->net));
    FKT_TRY(fkt_alloc(&s.uses, n + 1));
    FKT_TRY(fkt_alloc(&s.norm, n));
    FKT_TRY(fkt_alloc(&s.keep, n));
    FKT_TRY(emit_all(&s));
    FKT_TRY(check_memory(l));
    facts->arena_bytes = l->arena_bytes;
    facts->weight_bytes = fkt_arrays_bytes(l);
out:
    fkt_free(s.buffer);
    fkt_backprop_clear(&s.b);
    fkt_free(s.uses);
    fkt_free(s.norm);
    fkt_free(s.keep);
    return st;
}
