/* SPDX-License-Identifier: Apache-2.0 */
/* learner.c - the entry points of the learners: networks that cannot learn are refused here, before any backend.
 *
 *   new -> [forward] -> ran -> [backward] -> gradients are there -> [step] -> new weights
 *
 * A backward needs the forward before it. Writing or changing weights invalidates that forward, and so does the
 * backward itself, which may reuse the memory of activations. A step needs gradients, from a backward or written.
 *
 * A slot has one reader. A shared slot would need gradients to be added up, and no network here needs that.
 *
 * Memory: before a backend is called, what every learner must hold is added up: all values of the network once (the
 * backward reads them; a backend that drops some needs the space for their gradients), masters, gradients and velocity,
 * and the copies that kernels read. If that exceeds three quarters of the machine, the result is an error that names
 * the batch rather than a killed process. */
#include "nn/learner.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BATCH_MAX = 1 << 16 };

struct fkt_learner {
    const struct fkt_learner_backend *backend;
    void *self;
    const struct fkt_net *net; /* borrowed */
    uint8_t *statistic;        /* (n_slots): 1 for mean and var of a batch norm */
    struct fkt_learner_facts facts;
    int ran, has_gradients, has_average;
};

static int can_learn(const struct fkt_op *op)
{
    switch (op->kind) {
    case FKT_OP_CONV: return op->groups == 1;
    case FKT_OP_LINEAR:
    case FKT_OP_RELU:
    case FKT_OP_BATCH_NORM:
    case FKT_OP_ADD:
    case FKT_OP_MAX_POOL:
    case FKT_OP_MEAN: return 1;
    default: return 0;
    }
}

static fkt_status check_spec(const struct fkt_net *net, const struct fkt_learner_spec *spec)
{
    if (!spec->batch || spec->batch > BATCH_MAX)
        return fkt_fail(FKT_E_ARG, "a batch is 1 to %d images, not %" PRIu32, BATCH_MAX, spec->batch);
    if (!(spec->norm_momentum >= 0 && spec->norm_momentum <= 1))
        return fkt_fail(FKT_E_ARG, "the momentum of batch norms is 0 to 1, not %g", (double)spec->norm_momentum);
    if (spec->precision != FKT_PRECISION_F32 && spec->precision != FKT_PRECISION_BF16)
        return fkt_fail(FKT_E_ARG, "no such precision");
    return net->n_ops ? FKT_OK : fkt_fail(FKT_E_ARG, "a network without operations cannot learn");
}

/* Marks the slots of operation i in `seen`; FKT_E_ARG where another operation has one of them already. */
static fkt_status claim(const struct fkt_net *net, size_t i, uint8_t *seen)
{
    const struct fkt_op *op = &net->op[i];
    const uint32_t slot[] = {op->weight, op->bias, op->mean, op->var};
    for (size_t k = 0; k < sizeof slot / sizeof *slot; k++) {
        if (slot[k] == FKT_NO_SLOT) continue;
        if (seen[slot[k]]++)
            return fkt_fail(FKT_E_ARG, "operation %zu of the network (%s) cannot learn: it shares weight '%s'", i,
                            fkt_op_name(op->kind), net->slot[slot[k]].name[0]);
    }
    return FKT_OK;
}

static fkt_status check_ops(const struct fkt_learner *l, const struct fkt_shape *shapes, uint32_t batch, uint8_t *seen)
{
    const struct fkt_net *net = l->net;
    for (size_t i = 0; i < net->n_ops; i++) {
        const struct fkt_op *op = &net->op[i];
        fkt_status st;
        if (!can_learn(op))
            return fkt_fail(FKT_E_ARG, "operation %zu of the network (%s%s) cannot learn", i, fkt_op_name(op->kind),
                            op->kind == FKT_OP_CONV ? " in groups" : "");
        st = claim(net, i, seen);
        if (st != FKT_OK) return st;
        if (op->kind != FKT_OP_BATCH_NORM) continue;
        if ((uint64_t)batch * shapes[i + 1].h * shapes[i + 1].w < 2)
            return fkt_fail_hint(FKT_E_ARG, "use a larger batch or larger images",
                                 "operation %zu of the network (batch norm) cannot learn: one number has no variance",
                                 i);
        l->statistic[op->mean] = l->statistic[op->var] = 1;
    }
    return FKT_OK;
}

static fkt_status check_memory(const struct fkt_net *net, const struct fkt_shape *shapes,
                               const struct fkt_learner_spec *spec)
{
    const uint64_t element = spec->precision == FKT_PRECISION_BF16 ? sizeof(uint16_t) : sizeof(float);
    uint64_t numbers = 0, bytes, have = fkt_machine_memory();
    const double giga = 1 << 30;
    for (size_t i = 0; i <= net->n_ops; i++) numbers += (uint64_t)shapes[i].c * shapes[i].h * shapes[i].w;
    bytes = numbers * spec->batch * element + fkt_net_parameters(net) * (3 * sizeof(float) + element);
    if (bytes <= have / 4 * 3) return FKT_OK;
    return fkt_fail_hint(FKT_E_NOMEM, "use a smaller batch",
                         "learning with a batch of %" PRIu32 " images of %" PRIu32 " x %" PRIu32
                         " needs about %.1f GiB, and three quarters of this machine's memory are %.1f GiB",
                         spec->batch, spec->width, spec->height, (double)bytes / giga, (double)(have / 4 * 3) / giga);
}

/* Memory may be short for reasons other than the machine's size (a limit on the process): then an allocation fails. */
static fkt_status name_batch(fkt_status st, const struct fkt_learner_spec *spec)
{
    if (st != FKT_E_NOMEM || strstr(fkt_error_text(), "a batch of")) return st;
    return fkt_hint(fkt_fail_in(st, "learning with a batch of %" PRIu32 " images of %" PRIu32 " x %" PRIu32,
                                spec->batch, spec->width, spec->height),
                    "use a smaller batch");
}

fkt_status fkt_learner_new(struct fkt_learner **out, const struct fkt_learner_backend *backend,
                           const struct fkt_net *net, const struct fkt_learner_spec *spec)
{
    struct fkt_learner *l = NULL;
    struct fkt_shape *shapes = NULL;
    uint8_t *seen = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_net_status(net));
    FKT_TRY(check_spec(net, spec));
    FKT_TRY(fkt_alloc(&shapes, net->n_ops + 1));
    FKT_TRY(fkt_net_shapes(net, spec->height, spec->width, shapes));
    FKT_TRY(fkt_alloc(&l, 1));
    l->backend = backend;
    l->net = net;
    FKT_TRY(fkt_alloc(&l->statistic, net->n_slots));
    FKT_TRY(fkt_alloc(&seen, net->n_slots));
    FKT_TRY(check_ops(l, shapes, spec->batch, seen));
    FKT_TRY(check_memory(net, shapes, spec));
    l->facts.flops = fkt_net_flops(net, shapes);
    FKT_TRY(name_batch(backend->make(&l->self, net, shapes, spec, &l->facts), spec));
    *out = l;
    l = NULL;
out:
    fkt_learner_free(l);
    fkt_free(seen);
    fkt_free(shapes);
    return st;
}

void fkt_learner_free(struct fkt_learner *l)
{
    if (!l) return;
    if (l->self) l->backend->free(l->self);
    fkt_free(l->statistic);
    fkt_free(l);
}

const struct fkt_learner_facts *fkt_learner_facts(const struct fkt_learner *l) { return &l->facts; }

int fkt_learner_is_parameter(const struct fkt_learner *l, uint32_t slot)
{
    return slot < l->net->n_slots && !l->statistic[slot];
}

static fkt_status check_slot(const struct fkt_learner *l, enum fkt_learned what, uint32_t slot)
{
    if (slot >= l->net->n_slots || (unsigned)what > FKT_AVERAGE)
        return fkt_fail(FKT_E_ARG, "the network has no array %d of slot %" PRIu32, (int)what, slot);
    if (l->statistic[slot] && (what == FKT_GRADIENT || what == FKT_VELOCITY))
        return fkt_fail(FKT_E_ARG, "'%s' is a statistic: it has no gradient and no velocity",
                        l->net->slot[slot].name[0]);
    return FKT_OK;
}

fkt_status fkt_learner_write(struct fkt_learner *l, enum fkt_learned what, uint32_t slot, const float *x)
{
    fkt_status st;
    FKT_TRY(check_slot(l, what, slot));
    for (size_t i = 0, n = fkt_slot_count(&l->net->slot[slot]); i < n; i++)
        if (!isfinite(x[i]))
            return fkt_fail(FKT_E_NUMERIC, "element %zu of '%s' is not a finite float", i, l->net->slot[slot].name[0]);
    FKT_TRY(l->backend->write(l->self, what, slot, x));
    if (what == FKT_WEIGHT) l->ran = 0;
    if (what == FKT_GRADIENT) l->has_gradients = 1;
    if (what == FKT_AVERAGE) l->has_average = 1;
out:
    return st;
}

fkt_status fkt_learner_read(const struct fkt_learner *l, enum fkt_learned what, uint32_t slot, float *x)
{
    fkt_status st = check_slot(l, what, slot);
    if (st != FKT_OK) return st;
    if (what == FKT_AVERAGE && !l->has_average) return fkt_fail(FKT_E_STATE, "no average has been taken yet");
    return l->backend->read(l->self, what, slot, x);
}

fkt_status fkt_learner_forward(struct fkt_learner *l, const float *in, float *out)
{
    fkt_status st = l->backend->forward(l->self, in, out);
    l->ran = st == FKT_OK;
    return st;
}

fkt_status fkt_learner_backward(struct fkt_learner *l, const float *dout)
{
    fkt_status st;
    if (!l->ran) return fkt_fail(FKT_E_STATE, "a backward needs a forward before it, with the same weights");
    l->ran = 0;
    st = l->backend->backward(l->self, dout);
    l->has_gradients = st == FKT_OK;
    return st;
}

fkt_status fkt_learner_step(struct fkt_learner *l, const struct fkt_sgd *sgd)
{
    if (!l->has_gradients) return fkt_fail(FKT_E_STATE, "a step needs a backward before it");
    if (!(isfinite(sgd->rate) && sgd->momentum >= 0 && sgd->momentum < 1 && sgd->decay >= 0 && isfinite(sgd->decay)))
        return fkt_fail(FKT_E_ARG, "a step takes a finite rate, a momentum of 0 to 1 and a decay that is not negative");
    l->ran = 0;
    return l->backend->step(l->self, sgd);
}

fkt_status fkt_learner_average(struct fkt_learner *l, float decay)
{
    fkt_status st;
    if (!(decay >= 0 && decay < 1))
        return fkt_fail(FKT_E_ARG, "the decay of an average is 0 to 1, not %g", (double)decay);
    st = l->backend->average(l->self, decay);
    if (st == FKT_OK) l->has_average = 1;
    return st;
}
