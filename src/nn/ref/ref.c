/* SPDX-License-Identifier: Apache-2.0 */
/* ref.c - the plain backend: every operation of a network as loops over (N, C, H, W), one after the other.
 *
 * It is the definition that fast backends are compared with, and the one to read first. Nothing is fused or reused: a
 * workspace is one arena that holds every value of the network, so that a wrong number can be traced. With bfloat16 the
 * arithmetic stays the same; kernels and matrices, the input and every result are rounded to it. Vectors (biases,
 * factors of norms) stay float, as in libraries, where they cost nothing. */
#include "nn/act.h"
#include "nn/ref/ops.h"

#include "base/alloc.h"

struct plan {
    const struct fkt_net *net; /* borrowed */
    struct fkt_engine_spec spec;
    struct fkt_shape *shapes; /* (n_ops + 1) */
    size_t *start;            /* (n_ops + 2) of each value in a workspace's arena */
    float **weights;          /* (n_slots) */
};

struct workspace {
    float *arena;
};

static void round_to_bf16(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = fkt_from_bf16(fkt_bf16(x[i]));
}

static size_t numbers(const struct plan *p, size_t value)
{
    struct fkt_shape s = p->shapes[value];
    return (size_t)p->spec.batch * s.c * s.h * s.w;
}

static void plan_free(void *plan)
{
    struct plan *p = plan;
    if (!p) return;
    for (size_t i = 0; p->weights && i < p->net->n_slots; i++) fkt_free(p->weights[i]);
    fkt_free(p->weights);
    fkt_free(p->start);
    fkt_free(p->shapes);
    fkt_free(p);
}

static fkt_status read_weights(struct plan *p, const struct fkt_weights *weights, struct fkt_engine_facts *facts)
{
    fkt_status st;
    FKT_TRY(fkt_alloc(&p->weights, p->net->n_slots));
    for (size_t i = 0; i < p->net->n_slots; i++) {
        size_t count = fkt_slot_count(&p->net->slot[i]);
        FKT_TRY(fkt_alloc(&p->weights[i], count));
        FKT_TRY(fkt_weights_read(weights, (uint32_t)i, p->weights[i]));
        if (p->spec.precision == FKT_PRECISION_BF16 && p->net->slot[i].rank > 1) round_to_bf16(p->weights[i], count);
        facts->packed_bytes += count * sizeof(float);
    }
out:
    return st;
}

static fkt_status plan_new(void **out, const struct fkt_net *net, const struct fkt_shape *shapes,
                           const struct fkt_weights *weights, const struct fkt_engine_spec *spec,
                           struct fkt_engine_facts *facts)
{
    struct plan *p = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&p, 1));
    p->net = net;
    p->spec = *spec;
    FKT_TRY(fkt_alloc(&p->shapes, net->n_ops + 1));
    FKT_TRY(fkt_alloc(&p->start, net->n_ops + 2));
    for (size_t i = 0; i <= net->n_ops; i++) {
        p->shapes[i] = shapes[i];
        p->start[i + 1] = p->start[i] + numbers(p, i);
    }
    FKT_TRY(read_weights(p, weights, facts));
    facts->workspace_bytes = p->start[net->n_ops + 1] * sizeof(float);
    for (size_t i = 0; i < net->n_ops; i++) facts->convolutions += net->op[i].kind == FKT_OP_CONV;
    *out = p;
    p = NULL;
out:
    plan_free(p);
    return st;
}

static void workspace_free(void *workspace)
{
    struct workspace *d = workspace;
    if (!d) return;
    fkt_free(d->arena);
    fkt_free(d);
}

static fkt_status workspace_new(void **out, const void *plan)
{
    const struct plan *p = plan;
    struct workspace *d = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&d, 1));
    FKT_TRY(fkt_alloc(&d->arena, p->start[p->net->n_ops + 1]));
    *out = d;
    d = NULL;
out:
    workspace_free(d);
    return st;
}

static const float *slot(const struct plan *p, uint32_t i) { return i < p->net->n_slots ? p->weights[i] : NULL; }

static void step(const struct plan *p, float *arena, size_t i)
{
    const struct fkt_op *op = &p->net->op[i];
    int two = fkt_op_reads_two(op);
    uint32_t second = two ? op->in[1] : op->in[0];
    struct fkt_ref_call k = {.op = op,
                             .n = p->spec.batch,
                             .x = p->shapes[op->in[0]],
                             .z = p->shapes[second],
                             .y = p->shapes[i + 1],
                             .a = arena + p->start[op->in[0]],
                             .b = arena + p->start[second],
                             .out = arena + p->start[i + 1],
                             .weight = slot(p, op->weight),
                             .bias = slot(p, op->bias),
                             .mean = slot(p, op->mean),
                             .var = slot(p, op->var)};
    fkt_ref_run(&k);
    if (p->spec.precision == FKT_PRECISION_BF16) round_to_bf16(k.out, numbers(p, i + 1));
}

static fkt_status run(const void *plan, void *workspace, const float *in, float *out)
{
    const struct plan *p = plan;
    struct workspace *d = workspace;
    size_t last = p->net->n_ops, n = numbers(p, 0);
    for (size_t j = 0; j < n; j++) d->arena[j] = in[j];
    if (p->spec.precision == FKT_PRECISION_BF16) round_to_bf16(d->arena, n);
    for (size_t i = 0; i < last; i++) step(p, d->arena, i);
    for (size_t j = 0; j < numbers(p, last); j++) out[j] = d->arena[p->start[last] + j];
    return FKT_OK;
}

const struct fkt_backend fkt_backend_ref = {.name = "ref",
                                            .plan = plan_new,
                                            .workspace = workspace_new,
                                            .run = run,
                                            .workspace_free = workspace_free,
                                            .plan_free = plan_free};
