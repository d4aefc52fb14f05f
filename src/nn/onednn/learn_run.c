/* SPDX-License-Identifier: Apache-2.0 */
/* learn_run.c - the learner of this backend: its memory, and its steps in order.
 *
 * In inference (run.c) every thread has its own workspace. A batch that learns is different: all threads work on the
 * same step, as an OpenMP team that the calling thread owns during the call. Kernels split their work by the size of
 * the team, so the bits depend on it. */
#include "nn/onednn/learn.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <string.h>

static void learner_free(void *self)
{
    struct fkt_learn *l = self;
    if (!l) return;
    for (size_t i = 0; i < l->n_steps; i++) fkt_dnn_task_free(l->step[i].task);
    for (size_t i = 0; i < l->n_copies; i++) fkt_dnn_task_free(l->copy[i].task);
    for (size_t i = 0; l->array && i < l->net->n_slots; i++) fkt_dnn_task_free(l->array[i].home);
    for (size_t i = 0; i < l->n_norms; i++) {
        fkt_free(l->norm[i].centre);
        fkt_free(l->norm[i].part);
    }
    for (int i = 0; i < FKT_LEARNED_KINDS; i++) fkt_free(l->owned[i]);
    fkt_free(l->owned_arena);
    fkt_free(l->owned_copies);
    fkt_free(l->step);
    fkt_free(l->copy);
    fkt_free(l->array);
    fkt_free(l->norm);
    fkt_free(l->buffer);
    fkt_free(l);
}

static void *at(const struct fkt_learn *l, uint32_t buffer)
{
    return buffer == FKT_NONE ? NULL : l->arena + l->buffer[buffer].offset;
}

static struct fkt_dnn_task *task_of(const struct fkt_learn *l, const struct fkt_learn_step *k)
{
    return k->task ? k->task : l->array[k->op->weight].home;
}

static fkt_status bind_call(struct fkt_learn *l, const struct fkt_learn_step *k)
{
    enum fkt_learned what = k->way == FKT_WAY_WEIGHTS ? FKT_GRADIENT : FKT_WEIGHT;
    void *side[FKT_SIDES] = {NULL};
    side[FKT_AT_SRC] = at(l, k->x != FKT_NONE ? k->x : k->d);
    side[FKT_AT_DST] = at(l, k->y != FKT_NONE ? k->y : k->g);
    side[FKT_AT_KEEP] = at(l, k->keep);
    side[FKT_AT_SCRATCH] = at(l, k->scratch);
    side[FKT_AT_WEIGHTS] = fkt_array_at(l, what, k->op->weight);
    if (k->copy != FKT_NONE) side[FKT_AT_WEIGHTS] = l->copies + l->copy[k->copy].offset;
    side[FKT_AT_BIAS] = fkt_array_at(l, what, k->op->bias);
    return fkt_dnn_task_bind(task_of(l, k), side);
}

static fkt_status bind(struct fkt_learn *l)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < l->n_steps; i++)
        if (l->step[i].kind == FKT_LEARN_STEP_CALL) FKT_TRY(bind_call(l, &l->step[i]));
    for (size_t i = 0; i < l->n_copies; i++) {
        const struct fkt_copy *c = &l->copy[i];
        void *side[FKT_SIDES] = {fkt_array_at(l, FKT_WEIGHT, c->slot), l->copies + c->offset};
        side[FKT_AT_SCRATCH] = at(l, c->scratch);
        FKT_TRY(fkt_dnn_task_bind(c->task, side));
    }
    for (size_t i = 0; i < l->n_norms; i++) {
        struct fkt_norm *n = &l->norm[i];
        n->weight = fkt_array_at(l, FKT_WEIGHT, n->op->weight);
        n->bias = fkt_array_at(l, FKT_WEIGHT, n->op->bias);
        n->mean = fkt_array_at(l, FKT_WEIGHT, n->op->mean);
        n->var = fkt_array_at(l, FKT_WEIGHT, n->op->var);
        if (n->frozen) continue;
        n->weight_gradient = fkt_array_at(l, FKT_GRADIENT, n->op->weight);
        n->bias_gradient = fkt_array_at(l, FKT_GRADIENT, n->op->bias);
    }
out:
    return st;
}

static fkt_status make(struct fkt_learn *l, const struct fkt_shape *shapes, struct fkt_learner_facts *facts)
{
    fkt_status st;
    FKT_TRY(fkt_learn_plan(l, shapes, facts));
    FKT_TRY(fkt_arrays_new(l));
    FKT_TRY(fkt_learn_block(&l->owned_arena, &l->arena, l->arena_bytes));
    FKT_TRY(bind(l));
out:
    return st;
}

static fkt_status learner_new(void **self, const struct fkt_net *net, const struct fkt_shape *shapes,
                              const struct fkt_learner_spec *spec, struct fkt_learner_facts *facts)
{
    struct fkt_learn *l = NULL;
    int team;
    fkt_status st;
    *self = NULL;
    FKT_TRY(fkt_dnn_start());
    FKT_TRY(fkt_alloc(&l, 1));
    l->net = net;
    l->spec = *spec;
    l->threads = spec->threads ? spec->threads : fkt_cpu_count();
    team = fkt_dnn_team((int)l->threads);
    st = make(l, shapes, facts);
    fkt_dnn_team(team);
    if (st != FKT_OK) goto out;
    *self = l;
    l = NULL;
out:
    learner_free(l);
    return st;
}

static struct fkt_norm_maps maps_of(const struct fkt_learn *l, const struct fkt_learn_step *k)
{
    return (struct fkt_norm_maps){.x = at(l, k->x),
                                  .z = at(l, k->z),
                                  .y = at(l, k->y),
                                  .relu = k->relu,
                                  .g = at(l, k->g),
                                  .h = at(l, k->h),
                                  .e = at(l, k->e),
                                  .d = at(l, k->d)};
}

static size_t numbers(const struct fkt_field *f) { return f->images * f->blocks * f->lanes * f->pixels; }

static void clear(const struct fkt_learn *l, const struct fkt_op *op)
{
    const uint32_t slot[2] = {op->weight, op->bias};
    for (int i = 0; i < 2; i++)
        if (slot[i] != FKT_NO_SLOT)
            memset(fkt_array_at(l, FKT_GRADIENT, slot[i]), 0, l->array[slot[i]].count * sizeof(float));
}

static fkt_status run(struct fkt_learn *l, const struct fkt_learn_step *k)
{
    struct fkt_norm_maps m = maps_of(l, k);
    const struct fkt_field *f = &k->field;
    switch (k->kind) {
    case FKT_LEARN_STEP_CALL: return fkt_dnn_task_run(task_of(l, k));
    case FKT_LEARN_STEP_NORM: fkt_norm_forward(&l->norm[k->norm], &m, l->spec.norm_momentum, l->threads); break;
    case FKT_LEARN_STEP_NORM_BACK: fkt_norm_backward(&l->norm[k->norm], &m, l->threads); break;
    case FKT_LEARN_STEP_SUM: fkt_loop_sum(m.y, m.x, m.z, k->relu, numbers(f), f->half, l->threads); break;
    case FKT_LEARN_STEP_MASK: fkt_loop_mask(m.d, m.g, m.h, m.y, numbers(f), f->half, l->threads); break;
    case FKT_LEARN_STEP_MEAN: fkt_loop_mean(m.y, m.x, f, l->threads); break;
    case FKT_LEARN_STEP_MEAN_BACK: fkt_loop_mean_back(m.d, m.g, f, l->threads); break;
    case FKT_LEARN_STEP_MARK: fkt_loop_mark(m.y, &k->to, m.x, f, l->threads); break;
    case FKT_LEARN_STEP_CLEAR: clear(l, k->op); break;
    case FKT_LEARN_STEP_ACT:
    case FKT_LEARN_STEP_ACT_BACK: fkt_learn_act_run(l, k, &m); break;
    }
    return FKT_OK;
}

static fkt_status run_steps(struct fkt_learn *l, size_t from, size_t to)
{
    fkt_status st = FKT_OK;
    for (size_t i = from; i < to; i++) FKT_TRY(run(l, &l->step[i]));
out:
    return st;
}

static fkt_status forward(void *self, const float *in, float *out)
{
    struct fkt_learn *l = self;
    struct fkt_act x = l->input, y = l->output;
    int team = fkt_dnn_team((int)l->threads);
    fkt_status st;
    x.data = at(l, l->in_buffer);
    y.data = at(l, l->out_buffer);
    fkt_act_from_nchw(&x, in);
    FKT_TRY(fkt_arrays_refresh(l));
    FKT_TRY(run_steps(l, 0, l->n_ahead));
    fkt_act_to_nchw(out, &y);
out:
    fkt_dnn_team(team);
    return st;
}

static fkt_status backward(void *self, const float *dout, float *din)
{
    struct fkt_learn *l = self;
    struct fkt_act g = l->output, d = l->input;
    int team;
    fkt_status st;
    if (l->dout_buffer == FKT_NONE) return FKT_OK;
    g.data = at(l, l->dout_buffer);
    fkt_act_from_nchw(&g, dout);
    team = fkt_dnn_team((int)l->threads);
    st = run_steps(l, l->n_ahead, l->n_steps);
    fkt_dnn_team(team);
    if (st != FKT_OK || !din) return st;
    d.data = at(l, l->din_buffer);
    fkt_act_to_nchw(din, &d);
    return FKT_OK;
}

static fkt_status step(void *self, const struct fkt_optimizer *o)
{
    struct fkt_learn *l = self;
    fkt_status st = o->kind == FKT_OPTIMIZER_ADAM ? fkt_arrays_have(l, FKT_SECOND) : FKT_OK;
    const struct fkt_learned_blocks b = {l->learned[FKT_WEIGHT], l->learned[FKT_VELOCITY], l->learned[FKT_SECOND],
                                         l->learned[FKT_GRADIENT], l->learned[FKT_AVERAGE]};
    if (st == FKT_OK) fkt_loop_step(&b, l->parameters, o, l->threads);
    l->stale = 1;
    return st;
}

static fkt_status average(void *self, float decay)
{
    struct fkt_learn *l = self;
    fkt_status st = fkt_arrays_have(l, FKT_AVERAGE);
    if (st == FKT_OK) fkt_loop_average(l->learned[FKT_AVERAGE], l->learned[FKT_WEIGHT], l->floats, decay, l->threads);
    return st;
}

static fkt_status write(void *self, enum fkt_learned what, uint32_t slot, const float *x)
{
    return fkt_arrays_write(self, what, slot, x);
}

static fkt_status read(const void *self, enum fkt_learned what, uint32_t slot, float *x)
{
    return fkt_arrays_read(self, what, slot, x);
}

const struct fkt_learner_backend fkt_learner_onednn = {.name = "onednn",
                                                       .make = learner_new,
                                                       .free = learner_free,
                                                       .write = write,
                                                       .read = read,
                                                       .forward = forward,
                                                       .backward = backward,
                                                       .step = step,
                                                       .average = average};
