/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the backend: plans, workspaces, and a run from the first step to the last.
 *
 * A plan is written once and then only read. A workspace belongs to one thread: a block for all activations and
 * scratchpads (nn/arena.c) and, for each oneDNN step, a call with its addresses in that block. The calling thread's
 * OpenMP team has size one while a plan is made (kernels and their scratchpads depend on it) and while it runs, and is
 * restored after. */
#include "nn/onednn/plan.h"

#include "base/alloc.h"

#include <stdatomic.h>
#include <stdint.h>

enum { LINE = 64 };

struct workspace {
    const struct fkt_plan *plan;
    uint8_t *block, *base;      /* base: block, aligned */
    struct fkt_dnn_call **call; /* (n_steps) NULL where the step is not a call */
    uint64_t taken;             /* its part of the memory of all workspaces */
    int checked;                /* a run was checked by check_finite.c */
};

static _Atomic uint64_t taken; /* bytes of all workspaces of the process */

static void plan_free(void *plan)
{
    struct fkt_plan *p = plan;
    if (!p) return;
    for (size_t i = 0; i < p->n_steps; i++) fkt_dnn_prim_free(p->step[i].prim);
    for (size_t i = 0; i < p->n_owned; i++) fkt_free(p->owned[i]);
    fkt_free(p->step);
    fkt_free(p->buffer);
    fkt_free(p->owned);
    fkt_free(p->packing);
    fkt_free(p);
}

static fkt_status plan_new(void **out, const struct fkt_net *net, const struct fkt_shape *shapes,
                           const struct fkt_weights *weights, const struct fkt_engine_spec *spec,
                           struct fkt_engine_facts *facts)
{
    struct fkt_plan *p = NULL;
    int team;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_dnn_start());
    FKT_TRY(fkt_alloc(&p, 1));
    p->net = net;
    p->file = weights;
    p->spec = *spec;
    p->facts = facts;
    team = fkt_dnn_alone();
    st = fkt_plan_build(p, shapes);
    fkt_dnn_together(team);
    p->facts = NULL;
    if (st != FKT_OK) goto out;
    *out = p;
    p = NULL;
out:
    plan_free(p);
    return st;
}

static void *at(const struct workspace *d, uint32_t buffer, size_t offset)
{
    return buffer == FKT_NONE ? NULL : d->base + d->plan->buffer[buffer].offset + offset;
}

static void workspace_free(void *workspace)
{
    struct workspace *d = workspace;
    if (!d) return;
    for (size_t i = 0; d->call && i < d->plan->n_steps; i++) fkt_dnn_call_free(d->call[i]);
    fkt_free(d->call);
    fkt_free(d->block);
    atomic_fetch_sub(&taken, d->taken);
    fkt_free(d);
}

/* The plan checks that one workspace fits (plan.c); here each thread adds one. */
static fkt_status check_memory(struct workspace *d)
{
    const struct fkt_plan *p = d->plan;
    uint64_t before = atomic_fetch_add(&taken, p->arena_bytes);
    d->taken = p->arena_bytes;
    if (before + d->taken <= fkt_machine_memory() / 4 * 3) return FKT_OK;
    return fkt_hint_code(
        fkt_fail(FKT_E_NOMEM, "the workspaces of all threads need more than three quarters of this machine's memory"),
        FKT_HINT_FEWER_THREADS, "use fewer threads, or smaller images");
}

static fkt_status workspace_new(void **out, const void *plan)
{
    const struct fkt_plan *p = plan;
    struct workspace *d = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&d, 1));
    d->plan = p;
    FKT_TRY(check_memory(d));
    FKT_TRY(fkt_alloc(&d->block, p->arena_bytes + LINE));
    d->base = d->block + (LINE - (uintptr_t)d->block % LINE) % LINE;
    FKT_TRY(fkt_alloc(&d->call, p->n_steps));
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct fkt_step *s = &p->step[i];
        struct fkt_dnn_buffers b = {at(d, s->src[0].buffer, s->src[0].offset), at(d, s->dst.buffer, s->dst.offset),
                                    at(d, s->scratch, 0), s->weights, s->bias};
        if (s->kind == FKT_STEP_CALL) FKT_TRY(fkt_dnn_call_new(&d->call[i], s->prim, &b));
    }
    *out = d;
    d = NULL;
out:
    workspace_free(d);
    return st;
}

static struct fkt_act act_at(const struct workspace *d, const struct fkt_value_place *s)
{
    struct fkt_act a = s->act;
    a.data = at(d, s->buffer, s->offset);
    return a;
}

static void glue(const struct workspace *d, const struct fkt_step *s)
{
    struct fkt_act y = act_at(d, &s->dst), a = act_at(d, &s->src[0]), b = act_at(d, &s->src[1]);
    const struct fkt_op *op = s->op;
    const float *w = s->weights;
    switch (op->kind) {
    case FKT_OP_SOFT_CLAMP:
    case FKT_OP_AFFINE: fkt_act_unary(&y, &a, op); break;
    case FKT_OP_GLU: fkt_act_glu(&y, &a); break;
    case FKT_OP_UPSAMPLE: fkt_act_upsample(&y, &a, op->factor); break;
    case FKT_OP_SHUFFLE: fkt_act_shuffle(&y, &a, op->factor); break;
    case FKT_OP_UNSHUFFLE: fkt_act_unshuffle(&y, &a, op->factor); break;
    case FKT_OP_GROUP_MEAN: fkt_act_group_mean(&y, &a); break;
    case FKT_OP_REPEAT: fkt_act_repeat(&y, &a); break;
    case FKT_OP_RMS_NORM: fkt_act_rms_norm(&y, &a, w, s->bias, op->value[0], b.data ? &b : NULL); break;
    case FKT_OP_GROUP_NORM: fkt_act_group_norm(&y, &a, w, s->bias, op->value[0], op->groups); break;
    case FKT_OP_BATCH_NORM: fkt_act_channel_affine(&y, &a, w, s->bias); break;
    case FKT_OP_ATTENTION: fkt_act_attention(&y, &a, op->groups, op->value[0], at(d, s->scratch, 0)); break;
    case FKT_OP_ADD: fkt_act_add(&y, &a, &b); break;
    case FKT_OP_CONCAT: fkt_act_concat(&y, &a, &b); break;
    case FKT_OP_MAX_POOL: fkt_act_max_pool(&y, &a, op); break;
    case FKT_OP_MEAN: fkt_act_mean(&y, &a); break;
    case FKT_OP_RESIZE: fkt_act_resize(&y, &a); break;
    case FKT_OP_CONV:
    case FKT_OP_LINEAR:
    case FKT_OP_RELU:
    case FKT_OP_RELU6:
    case FKT_OP_SILU:
    case FKT_OP_KINDS: break; /* calls, all of them */
    }
}

static fkt_status steps(const struct fkt_plan *p, struct workspace *d)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct fkt_step *s = &p->step[i];
        struct fkt_act y = act_at(d, &s->dst), x = act_at(d, &s->src[0]);
        if (!d->checked) FKT_TRY(fkt_check_finite_before(p, i, &x));
        if (s->kind == FKT_STEP_CALL) FKT_TRY(fkt_dnn_call_run(d->call[i]));
        else if (s->kind == FKT_STEP_COPY) fkt_act_copy(&y, &x);
        else glue(d, s);
        if (!d->checked) FKT_TRY(fkt_check_finite_after(p, i, &y));
    }

out:
    return st;
}

static fkt_status run(const void *plan, void *workspace, const float *in, float *out)
{
    const struct fkt_plan *p = plan;
    struct workspace *d = workspace;
    struct fkt_act x = act_at(d, &p->input), y = act_at(d, &p->output);
    int team = fkt_dnn_alone();
    fkt_status st;
    fkt_act_from_nchw(&x, in);
    st = steps(p, d);
    fkt_dnn_together(team);
    if (st == FKT_OK) fkt_act_to_nchw(out, &y);
    return st;
}

const struct fkt_backend fkt_backend_onednn = {.name = "onednn",
                                               .plan = plan_new,
                                               .workspace = workspace_new,
                                               .run = run,
                                               .workspace_free = workspace_free,
                                               .plan_free = plan_free};
