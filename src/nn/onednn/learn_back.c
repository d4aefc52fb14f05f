/* SPDX-License-Identifier: Apache-2.0 */
/* learn_back.c - the steps of a backward: the groups of learn_plan.c in reverse.
 *
 * nn/backprop.c says which buffers hold gradients. A norm writes its source's gradient over its source, which is no
 * longer needed.
 *
 * Values that do not depend on a parameter get no gradient: the first convolution has no backward-data. In a frozen
 * network all values get one, and the input's is what the backward is for. */
#include "nn/onednn/learn.h"

static fkt_status norm(struct fkt_learn_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    const struct fkt_class *c = &s->b.group[i];
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_NORM_BACK, op);
    int added = c->add != FKT_NONE;
    fkt_status st = FKT_OK;
    k.norm = s->norm[i];
    k.relu = c->relu != FKT_NONE;
    k.x = s->buffer[op->in[0]];
    fkt_backprop_take(&s->b, c->end + 1, &k.g, &k.h);
    if (added && k.relu) {
        k.y = s->buffer[c->end + 1];
        s->uses[c->end + 1]--;
    }
    if (added && (k.relu || k.h != FKT_NONE)) FKT_TRY(fkt_backprop_writable(&s->b, c->end + 1, k.g, k.h, &k.e));
    if (added) FKT_TRY(fkt_backprop_give(&s->b, fkt_backprop_addend(&s->b, i), k.e != FKT_NONE ? k.e : k.g));
    if (!--s->uses[op->in[0]] && op->in[0]) k.d = k.x;
    else if (s->b.needs[op->in[0]]) FKT_TRY(fkt_learn_draft_map(s, &k.d, op->in[0]));
    FKT_TRY(fkt_learn_draft_step(s, &k));
    if (s->b.needs[op->in[0]]) FKT_TRY(fkt_backprop_give(&s->b, op->in[0], k.d));
out:
    return st;
}

static fkt_status sum(struct fkt_learn_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_MASK, op);
    uint32_t end = s->b.group[i].end, d;
    fkt_status st = FKT_OK;
    k.relu = op->kind == FKT_OP_RELU || s->b.group[i].relu != FKT_NONE;
    fkt_backprop_take(&s->b, end + 1, &k.g, &k.h);
    d = k.g;
    if (k.relu) {
        k.y = s->buffer[end + 1];
        s->uses[end + 1]--;
    }
    if (k.relu || k.h != FKT_NONE) {
        FKT_TRY(fkt_backprop_writable(&s->b, end + 1, k.g, k.h, &k.d));
        k.field = fkt_learn_draft_field(s, end + 1);
        FKT_TRY(fkt_learn_draft_step(s, &k));
        d = k.d;
    }
    FKT_TRY(fkt_backprop_give(&s->b, op->in[0], d));
    if (op->kind == FKT_OP_ADD) FKT_TRY(fkt_backprop_give(&s->b, op->in[1], d));
out:
    return st;
}

static fkt_status mean(struct fkt_learn_draft *s, uint32_t i)
{
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_MEAN_BACK, &s->l->net->op[i]);
    uint32_t source = k.op->in[0];
    fkt_status st;
    FKT_TRY(fkt_backprop_take_one(&s->b, i + 1, &k.g));
    FKT_TRY(fkt_learn_draft_map(s, &k.d, source));
    k.field = fkt_learn_draft_field(s, source);
    FKT_TRY(fkt_learn_draft_step(s, &k));
    FKT_TRY(fkt_backprop_give(&s->b, source, k.d));
out:
    return st;
}

static fkt_status max_pool(struct fkt_learn_draft *s, uint32_t i)
{
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_CALL, &s->l->net->op[i]);
    uint32_t source = k.op->in[0];
    struct fkt_dnn_task *task = NULL;
    fkt_status st;
    FKT_TRY(fkt_backprop_take_one(&s->b, i + 1, &k.g));
    FKT_TRY(fkt_learn_draft_map(s, &k.d, source));
    FKT_TRY(fkt_learn_draft_pool_task(s, i, FKT_WAY_DATA, &task));
    FKT_TRY(fkt_learn_draft_buffer(s, &k.scratch, fkt_dnn_task_bytes(task, FKT_AT_SCRATCH)));
    k.keep = s->keep[i];
    k.way = FKT_WAY_DATA;
    k.task = task;
    task = NULL;
    FKT_TRY(fkt_learn_draft_step(s, &k));
    FKT_TRY(fkt_backprop_give(&s->b, source, k.d));
out:
    fkt_dnn_task_free(task);
    return st;
}

static fkt_status conv(struct fkt_learn_draft *s, uint32_t i)
{
    uint32_t source = s->l->net->op[i].in[0], g, d;
    fkt_status st;
    FKT_TRY(fkt_backprop_take_one(&s->b, i + 1, &g));
    FKT_TRY(fkt_learn_draft_conv_back(s, i, g, &d));
    if (fkt_learn_draft_keeps(s, FKT_OP_CONV)) s->uses[source]--;
    if (d != FKT_NONE) FKT_TRY(fkt_backprop_give(&s->b, source, d));
out:
    return st;
}

static fkt_status act(struct fkt_learn_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    uint32_t g, d;
    fkt_status st;
    FKT_TRY(fkt_backprop_take_one(&s->b, i + 1, &g));
    for (int k = 0; k < (fkt_op_reads_two(op) ? 2 : 1); k++) {
        FKT_TRY(fkt_learn_draft_act_back(s, i, k, g, &d));
        FKT_TRY(fkt_backprop_give(&s->b, op->in[k], d));
    }
    if (fkt_learn_draft_keeps(s, op->kind)) s->uses[op->in[0]]--;
out:
    return st;
}

/* The result does not depend on it. */
static fkt_status idle(struct fkt_learn_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_CLEAR, op);
    if (s->l->spec.frozen || (op->weight == FKT_NO_SLOT && op->bias == FKT_NO_SLOT)) return FKT_OK;
    return fkt_learn_draft_step(s, &k);
}

static fkt_status emit(struct fkt_learn_draft *s, uint32_t head)
{
    uint32_t value = s->b.group[head].end + 1;
    if (!s->b.needs[value]) return FKT_OK;
    if (s->b.gradient[value][0] == FKT_NONE) return idle(s, head);
    if (fkt_learn_is_act(s->l->net->op[head].kind)) return act(s, head);
    switch (s->l->net->op[head].kind) {
    case FKT_OP_BATCH_NORM: return norm(s, head);
    case FKT_OP_RELU:
    case FKT_OP_ADD: return sum(s, head);
    case FKT_OP_MAX_POOL: return max_pool(s, head);
    case FKT_OP_MEAN: return mean(s, head);
    default: return conv(s, head);
    }
}

fkt_status fkt_learn_draft_back(struct fkt_learn_draft *s)
{
    struct fkt_learn *l = s->l;
    uint32_t last = (uint32_t)l->net->n_ops;
    fkt_status st = FKT_OK;
    l->dout_buffer = l->din_buffer = FKT_NONE;
    if (!s->b.needs[last]) return FKT_OK;
    FKT_TRY(fkt_learn_draft_map(s, &l->dout_buffer, last));
    l->buffer[l->dout_buffer].first = (uint32_t)l->n_ahead;
    FKT_TRY(fkt_backprop_give(&s->b, last, l->dout_buffer));
    for (uint32_t i = last; i-- > 0;)
        if (s->b.group[i].head != FKT_NONE) FKT_TRY(emit(s, s->b.group[i].head));
    if (!l->spec.frozen) goto out;
    FKT_TRY(fkt_backprop_take_one(&s->b, 0, &l->din_buffer));
    l->buffer[l->din_buffer].last = (uint32_t)l->n_steps; /* it is read after the last step */
out:
    return st;
}
