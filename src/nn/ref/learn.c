/* SPDX-License-Identifier: Apache-2.0 */
/* learn.c - the plain learner: forward, backward, a step, all as loops over (N, C, H, W).
 *
 * The definition that fast learners are compared with. It keeps every value and every value's gradient, so that a wrong
 * number can be traced. A value's gradient is complete when all its readers have added theirs, which is the case when
 * the backward pass reaches the operation that made it. A frozen network knows every kind of operation.
 *
 * With bfloat16 the arithmetic stays the same; the input, every value, every value's gradient and the matrices that
 * forward and backward read are rounded to it. Masters, gradients of weights, moments of the optimiser, statistics and
 * vectors (biases, factors of norms) stay float. One thread, whatever the spec says. */
#include "nn/ref/learner.h"

#include "base/alloc.h"
#include "nn/act.h"

#include <string.h>

static int is_bf16(const struct fkt_ref_learner *l) { return l->spec.precision == FKT_PRECISION_BF16; }

static void round_to_bf16(const struct fkt_ref_learner *l, float *x, size_t n)
{
    for (size_t i = 0; is_bf16(l) && i < n; i++) x[i] = fkt_from_bf16(fkt_bf16(x[i]));
}

static size_t numbers(const struct fkt_ref_learner *l, size_t value)
{
    return l->value_at[value + 1] - l->value_at[value];
}

static void learner_free(void *self)
{
    struct fkt_ref_learner *l = self;
    if (!l) return;
    for (int k = 0; k < FKT_LEARNED_KINDS; k++) fkt_free(l->learned[k]);
    fkt_free(l->rounded);
    fkt_free(l->value);
    fkt_free(l->gradient);
    fkt_free(l->moments);
    fkt_free(l->scratch);
    fkt_ref_held_free(l->held);
    fkt_free(l->value_at);
    fkt_free(l->slot_at);
    fkt_free(l->moment_at);
    fkt_free(l->shape);
    fkt_free(l);
}

/* The offsets of all arrays. */
static fkt_status measure(struct fkt_ref_learner *l, const struct fkt_shape *shapes)
{
    const struct fkt_net *net = l->net;
    fkt_status st;
    FKT_TRY(fkt_alloc(&l->shape, net->n_ops + 1));
    FKT_TRY(fkt_alloc(&l->value_at, net->n_ops + 2));
    FKT_TRY(fkt_alloc(&l->slot_at, net->n_slots + 1));
    FKT_TRY(fkt_alloc(&l->moment_at, net->n_ops + 1));
    for (size_t i = 0; i <= net->n_ops; i++) {
        struct fkt_shape s = l->shape[i] = shapes[i];
        l->value_at[i + 1] = l->value_at[i] + (size_t)l->spec.batch * s.c * s.h * s.w;
    }
    for (size_t i = 0; i < net->n_slots; i++) l->slot_at[i + 1] = l->slot_at[i] + fkt_slot_count(&net->slot[i]);
    for (size_t i = 0; i < net->n_ops; i++)
        l->moment_at[i + 1] = l->moment_at[i] + (net->op[i].kind == FKT_OP_BATCH_NORM ? shapes[i + 1].c : 0);
out:
    return st;
}

static void fill_facts(const struct fkt_ref_learner *l, struct fkt_learner_facts *facts)
{
    const size_t slots = l->slot_at[l->net->n_slots], values = l->value_at[l->net->n_ops + 1];
    facts->weight_bytes = ((l->spec.frozen ? 1 : 4) + (is_bf16(l) ? 1 : 0)) * slots * sizeof(float);
    facts->arena_bytes = 2 * values * sizeof(float);
    for (size_t i = 0; i < l->net->n_ops; i++)
        if (l->net->op[i].kind == FKT_OP_CONV) facts->convolutions += l->net->op[i].in[0] && !l->spec.frozen ? 3 : 2;
}

static size_t largest_attention(const struct fkt_net *net, const struct fkt_shape *shapes)
{
    size_t largest = 0;
    for (size_t i = 0; i < net->n_ops; i++) {
        const size_t plane = (size_t)shapes[i + 1].h * shapes[i + 1].w;
        if (net->op[i].kind == FKT_OP_ATTENTION && plane > largest) largest = plane;
    }
    return largest;
}

static fkt_status make(void **self, const struct fkt_net *net, const struct fkt_shape *shapes,
                       const struct fkt_learner_spec *spec, struct fkt_learner_facts *facts)
{
    struct fkt_ref_learner *l = NULL;
    size_t slots;
    fkt_status st;
    *self = NULL;
    FKT_TRY(fkt_alloc(&l, 1));
    l->net = net;
    l->spec = *spec;
    FKT_TRY(measure(l, shapes));
    slots = l->slot_at[net->n_slots];
    FKT_TRY(fkt_alloc(&l->value, l->value_at[net->n_ops + 1]));
    FKT_TRY(fkt_alloc(&l->gradient, l->value_at[net->n_ops + 1]));
    FKT_TRY(fkt_alloc(&l->moments, l->moment_at[net->n_ops]));
    for (int k = FKT_WEIGHT; k < (spec->frozen ? FKT_GRADIENT : FKT_AVERAGE); k++)
        FKT_TRY(fkt_alloc(&l->learned[k], slots));
    if (spec->frozen) FKT_TRY(fkt_alloc(&l->scratch, 2 * largest_attention(net, shapes)));
    if (is_bf16(l)) FKT_TRY(fkt_alloc(&l->rounded, slots));
    for (size_t i = 0; i < net->n_ops; i++)
        for (size_t j = 0; net->op[i].kind == FKT_OP_BATCH_NORM && j < shapes[i + 1].c; j++)
            l->learned[FKT_WEIGHT][l->slot_at[net->op[i].var] + j] = 1;
    fill_facts(l, facts);
    *self = l;
    l = NULL;
out:
    learner_free(l);
    return st;
}

static fkt_status have(struct fkt_ref_learner *l, enum fkt_learned what)
{
    return l->learned[what] ? FKT_OK : fkt_alloc(&l->learned[what], l->slot_at[l->net->n_slots]);
}

static fkt_status write_slot(void *self, enum fkt_learned what, uint32_t slot, const float *x)
{
    struct fkt_ref_learner *l = self;
    fkt_status st = have(l, what);
    if (st != FKT_OK) return st;
    memcpy(l->learned[what] + l->slot_at[slot], x, (l->slot_at[slot + 1] - l->slot_at[slot]) * sizeof *x);
    return FKT_OK;
}

static fkt_status read_slot(const void *self, enum fkt_learned what, uint32_t slot, float *x)
{
    const struct fkt_ref_learner *l = self;
    memcpy(x, l->learned[what] + l->slot_at[slot], (l->slot_at[slot + 1] - l->slot_at[slot]) * sizeof *x);
    return FKT_OK;
}

static float *slot(const struct fkt_ref_learner *l, float *block, uint32_t i)
{
    return i == FKT_NO_SLOT ? NULL : block + l->slot_at[i];
}

/* Operation i as forward and backward see it. */
static struct fkt_ref_call call_of(const struct fkt_ref_learner *l, size_t i)
{
    const struct fkt_op *op = &l->net->op[i];
    uint32_t second = fkt_op_reads_two(op) ? op->in[1] : op->in[0];
    float *weights = is_bf16(l) ? l->rounded : l->learned[FKT_WEIGHT];
    return (struct fkt_ref_call){.op = op,
                                 .n = l->spec.batch,
                                 .x = l->shape[op->in[0]],
                                 .z = l->shape[second],
                                 .y = l->shape[i + 1],
                                 .a = l->value + l->value_at[op->in[0]],
                                 .b = l->value + l->value_at[second],
                                 .out = l->value + l->value_at[i + 1],
                                 .weight = slot(l, weights, op->weight),
                                 .bias = slot(l, weights, op->bias),
                                 .mean = slot(l, weights, op->mean),
                                 .var = slot(l, weights, op->var)};
}

static void forward_norm(struct fkt_ref_learner *l, size_t i, const struct fkt_ref_call *k)
{
    struct fkt_ref_moments *m = l->moments + l->moment_at[i];
    float *mean = slot(l, l->learned[FKT_WEIGHT], k->op->mean), *var = slot(l, l->learned[FKT_WEIGHT], k->op->var);
    fkt_ref_batch_norm_learning(k, m);
    fkt_ref_move_statistics(mean, var, m, k->x.c, (size_t)k->n * k->x.h * k->x.w, (double)l->spec.norm_momentum);
}

static void round_weights(struct fkt_ref_learner *l)
{
    size_t all = l->slot_at[l->net->n_slots];
    if (!is_bf16(l)) return;
    memcpy(l->rounded, l->learned[FKT_WEIGHT], all * sizeof *l->rounded);
    for (size_t s = 0; s < l->net->n_slots; s++)
        if (l->net->slot[s].rank > 1) round_to_bf16(l, l->rounded + l->slot_at[s], l->slot_at[s + 1] - l->slot_at[s]);
}

fkt_status fkt_ref_learner_forward(void *self, const float *in, float *out)
{
    struct fkt_ref_learner *l = self;
    const size_t last = l->net->n_ops;
    round_weights(l);
    memcpy(l->value, in, numbers(l, 0) * sizeof *in);
    round_to_bf16(l, l->value, numbers(l, 0));
    for (size_t i = 0; i < last; i++) {
        struct fkt_ref_call k = call_of(l, i);
        if (k.op->kind == FKT_OP_BATCH_NORM && !l->spec.frozen) forward_norm(l, i, &k);
        else fkt_ref_run(&k);
        round_to_bf16(l, k.out, numbers(l, i + 1));
    }
    memcpy(out, l->value + l->value_at[last], numbers(l, last) * sizeof *out);
    return FKT_OK;
}

/* The network's input needs a gradient only where the network is frozen. */
static float *gradient_of(const struct fkt_ref_learner *l, uint32_t value)
{
    return value || l->spec.frozen ? l->gradient + l->value_at[value] : NULL;
}

static struct fkt_ref_back back_of(const struct fkt_ref_learner *l, size_t i, const struct fkt_ref_call *call)
{
    const struct fkt_op *op = call->op;
    struct fkt_ref_back k = {.call = call,
                             .dy = l->gradient + l->value_at[i + 1],
                             .da = gradient_of(l, op->in[0]),
                             .db = fkt_op_reads_two(op) ? gradient_of(l, op->in[1]) : NULL,
                             .scratch = l->scratch};
    if (l->spec.frozen) return k;
    k.dweight = slot(l, l->learned[FKT_GRADIENT], op->weight);
    k.dbias = slot(l, l->learned[FKT_GRADIENT], op->bias);
    k.moments = l->moments + l->moment_at[i];
    return k;
}

fkt_status fkt_ref_learner_backward(void *self, const float *dout, float *din)
{
    struct fkt_ref_learner *l = self;
    const size_t last = l->net->n_ops;
    memset(l->gradient, 0, l->value_at[last + 1] * sizeof *l->gradient);
    memcpy(l->gradient + l->value_at[last], dout, numbers(l, last) * sizeof *dout);
    for (size_t i = last; i-- > 0;) {
        const struct fkt_ref_call call = call_of(l, i);
        const struct fkt_ref_back k = back_of(l, i, &call);
        round_to_bf16(l, l->gradient + l->value_at[i + 1], numbers(l, i + 1));
        fkt_ref_backward(&k);
    }
    round_to_bf16(l, l->gradient, numbers(l, 0));
    if (din) memcpy(din, l->gradient, numbers(l, 0) * sizeof *din);
    return FKT_OK;
}

static void step_adam(struct fkt_ref_learner *l, size_t s, const struct fkt_optimizer *o)
{
    const size_t at = l->slot_at[s];
    fkt_adam(l->learned[FKT_WEIGHT] + at, l->learned[FKT_GRADIENT] + at, l->learned[FKT_VELOCITY] + at,
             l->learned[FKT_SECOND] + at, l->slot_at[s + 1] - at, o);
}

static void step_sgd(struct fkt_ref_learner *l, size_t s, const struct fkt_optimizer *sgd)
{
    const double rate = (double)sgd->rate, momentum = (double)sgd->momentum, decay = (double)sgd->decay;
    const double pull = (double)sgd->pull;
    for (size_t j = l->slot_at[s]; j < l->slot_at[s + 1]; j++) {
        float *w = &l->learned[FKT_WEIGHT][j], *v = &l->learned[FKT_VELOCITY][j];
        double g = l->learned[FKT_GRADIENT][j] + decay * *w;
        if (pull > 0) g += pull * ((double)*w - l->learned[FKT_AVERAGE][j]);
        *v = (float)(momentum * *v + g);
        *w = (float)(*w - rate * (sgd->nesterov ? g + momentum * *v : (double)*v));
    }
}

/* Statistics have no gradient; they are the slots that batch norms name as mean and var. */
static int is_statistic(const struct fkt_net *net, size_t s)
{
    for (size_t i = 0; i < net->n_ops; i++)
        if (net->op[i].kind == FKT_OP_BATCH_NORM && (net->op[i].mean == s || net->op[i].var == s)) return 1;
    return 0;
}

fkt_status fkt_ref_learner_step(void *self, const struct fkt_optimizer *o)
{
    struct fkt_ref_learner *l = self;
    fkt_status st = o->kind == FKT_OPTIMIZER_ADAM ? have(l, FKT_SECOND) : FKT_OK;
    for (size_t s = 0; s < l->net->n_slots && st == FKT_OK; s++)
        if (!is_statistic(l->net, s)) (o->kind == FKT_OPTIMIZER_ADAM ? step_adam : step_sgd)(l, s, o);
    return st;
}

fkt_status fkt_ref_learner_average(void *self, float decay)
{
    struct fkt_ref_learner *l = self;
    const double keep = (double)decay;
    fkt_status st = have(l, FKT_AVERAGE);
    if (st != FKT_OK) return st;
    for (size_t j = 0; j < l->slot_at[l->net->n_slots]; j++) {
        float *a = &l->learned[FKT_AVERAGE][j];
        *a = (float)(keep * *a + (1 - keep) * l->learned[FKT_WEIGHT][j]);
    }
    return FKT_OK;
}

const struct fkt_learner_backend fkt_learner_ref = {.name = "ref",
                                                    .make = make,
                                                    .free = learner_free,
                                                    .write = write_slot,
                                                    .read = read_slot,
                                                    .forward = fkt_ref_learner_forward,
                                                    .backward = fkt_ref_learner_backward,
                                                    .step = fkt_ref_learner_step,
                                                    .average = fkt_ref_learner_average,
                                                    .hold = fkt_ref_hold,
                                                    .plan_epoch = fkt_ref_plan_epoch,
                                                    .train = fkt_ref_train,
                                                    .collect = fkt_ref_collect};
