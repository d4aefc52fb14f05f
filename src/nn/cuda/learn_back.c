/* SPDX-License-Identifier: Apache-2.0 */
/* learn_back.c - the steps of a backward: the groups of learn_plan.c in reverse.
 *
 * nn/backprop.c says which buffers hold gradients. A norm writes its source's gradient over its source, which is no
 * longer needed. Values that do not depend on a parameter get no gradient: the first convolution has
 * no backward-data.
 *
 * A product's gradient of weights comes before that of its source: the latter is then the last thing written, and the
 * norm that reads it next finds it in the cache. */
#include "nn/cuda/learn.h"

static fkt_status norm(struct fkt_cuda_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    const struct fkt_class *c = &s->b.group[i];
    const struct fkt_cuda_norm *n = &s->l->norm[s->norm[i]];
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_NORM_BACK, op, i + 1);
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
    else if (s->b.needs[op->in[0]]) FKT_TRY(fkt_cuda_draft_map(s, &k.d, op->in[0]));
    FKT_TRY(fkt_cuda_draft_buffer(s, &k.scratch, sizeof(float) * 2 * (size_t)n->map.channels * (size_t)n->parts));
    FKT_TRY(fkt_cuda_learn_add_step(s, &k));
    if (s->b.needs[op->in[0]]) FKT_TRY(fkt_backprop_give(&s->b, op->in[0], k.d));
out:
    return st;
}

static fkt_status sum(struct fkt_cuda_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    uint32_t end = s->b.group[i].end, d;
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_MASK, op, end + 1);
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
        FKT_TRY(fkt_cuda_learn_add_step(s, &k));
        d = k.d;
    }
    FKT_TRY(fkt_backprop_give(&s->b, op->in[0], d));
    if (op->kind == FKT_OP_ADD) FKT_TRY(fkt_backprop_give(&s->b, op->in[1], d));
out:
    return st;
}

static fkt_status pooled(struct fkt_cuda_draft *s, uint32_t i, enum fkt_cuda_step_kind kind)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_cuda_step k = fkt_cuda_step_of(kind, op, op->in[0]);
    fkt_status st;
    FKT_TRY(fkt_backprop_take_one(&s->b, i + 1, &k.g));
    if (!s->b.needs[op->in[0]]) return FKT_OK;
    FKT_TRY(fkt_cuda_draft_map(s, &k.d, op->in[0]));
    k.keep = s->keep[i];
    FKT_TRY(fkt_cuda_learn_add_step(s, &k));
    FKT_TRY(fkt_backprop_give(&s->b, op->in[0], k.d));
out:
    return st;
}

/* The gradient of a bias: sums over all pixels of the result's gradient. */
static fkt_status bias(struct fkt_cuda_draft *s, uint32_t i, uint32_t g)
{
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_COLUMNS, &s->l->net->op[i], i + 1);
    const struct fkt_cuda_rows map = fkt_cuda_learn_rows(s->l, i + 1);
    const size_t parts = (size_t)fkt_cuda_learn_parts(&map);
    fkt_status st;
    k.g = g;
    FKT_TRY(fkt_cuda_draft_buffer(s, &k.scratch, sizeof(float) * 2 * (size_t)map.channels * parts));
    FKT_TRY(fkt_cuda_learn_add_step(s, &k));
out:
    return st;
}

static fkt_status direction(struct fkt_cuda_draft *s, uint32_t i, struct fkt_cuda_step *k, enum fkt_cuda_way way)
{
    fkt_status st;
    k->way = way;
    FKT_TRY(fkt_cuda_product_new(&k->product, s->l, i, way, FKT_CUDA_ACT_NONE));
    if (k->product.conv) s->facts->convolutions++;
    return fkt_cuda_learn_add_step(s, k);
out:
    return st;
}

static fkt_status product(struct fkt_cuda_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_cuda_step weights = fkt_cuda_step_of(FKT_CUDA_STEP_PRODUCT, op, i + 1), data = weights;
    fkt_status st;
    FKT_TRY(fkt_backprop_take_one(&s->b, i + 1, &weights.g));
    data.g = weights.g;
    weights.x = s->buffer[op->in[0]];
    s->uses[op->in[0]]--;
    if (op->bias != FKT_NO_SLOT) FKT_TRY(bias(s, i, weights.g));
    FKT_TRY(direction(s, i, &weights, FKT_CUDA_BACK_WEIGHTS));
    if (!s->b.needs[op->in[0]]) return FKT_OK;
    FKT_TRY(fkt_cuda_draft_map(s, &data.d, op->in[0]));
    FKT_TRY(direction(s, i, &data, FKT_CUDA_BACK_DATA));
    FKT_TRY(fkt_backprop_give(&s->b, op->in[0], data.d));
out:
    return st;
}

/* The result does not depend on it. */
static fkt_status idle(struct fkt_cuda_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_CLEAR, op, i + 1);
    return op->weight == FKT_NO_SLOT && op->bias == FKT_NO_SLOT ? FKT_OK : fkt_cuda_learn_add_step(s, &k);
}

static fkt_status emit(struct fkt_cuda_draft *s, uint32_t head)
{
    uint32_t value = s->b.group[head].end + 1;
    if (!s->b.needs[value]) return FKT_OK;
    if (s->b.gradient[value][0] == FKT_NONE) return idle(s, head);
    switch (s->l->net->op[head].kind) {
    case FKT_OP_BATCH_NORM: return norm(s, head);
    case FKT_OP_RELU:
    case FKT_OP_ADD: return sum(s, head);
    case FKT_OP_MAX_POOL: return pooled(s, head, FKT_CUDA_STEP_POOL_BACK);
    case FKT_OP_MEAN: return pooled(s, head, FKT_CUDA_STEP_MEAN_BACK);
    default: return product(s, head);
    }
}

fkt_status fkt_cuda_draft_back(struct fkt_cuda_draft *s)
{
    struct fkt_cuda_learn *l = s->l;
    uint32_t last = (uint32_t)l->net->n_ops;
    fkt_status st = FKT_OK;
    if (!s->b.needs[last]) return FKT_OK;
    FKT_TRY(fkt_cuda_draft_map(s, &l->dout_buffer, last));
    l->buffer[l->dout_buffer].first = (uint32_t)l->n_ahead;
    FKT_TRY(fkt_backprop_give(&s->b, last, l->dout_buffer));
    for (uint32_t i = last; i-- > 0;)
        if (s->b.group[i].head != FKT_NONE) FKT_TRY(emit(s, s->b.group[i].head));
out:
    return st;
}
