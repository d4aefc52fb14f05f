/* SPDX-License-Identifier: Apache-2.0 */
/* learner.c - the entry points of the learners: networks, arguments and states are checked here, before any backend.
 *
 *   new -> [forward] -> ran -> [backward] -> gradients are there -> [step] -> new weights
 *
 * A backward needs the forward before it. Writing or changing weights invalidates that forward, and so does the
 * backward itself, which may reuse the memory of activations. A step needs gradients, from a backward or written.
 *
 * A slot has one reader. A shared slot would need gradients to be added up, and no network here needs that. A frozen
 * network has no gradients of weights, so its slots may be shared; which kinds of operations it may have, its backend
 * decides.
 *
 * Memory: before a backend is called, what every learner must hold is added up: all values of the network once (the
 * backward reads them; a backend that drops some needs the space for their gradients), masters, gradients and velocity
 * unless frozen, and the copies that kernels read. If that exceeds three quarters of the machine, the result is an
 * error that names the batch rather than a killed process. A backend with memory of its own does that itself. */
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
    struct fkt_shape input, output;
    uint32_t batch;
    int frozen;
    int ran, has_gradients, has_average, has_second;
    uint32_t held;       /* images; 0: none */
    int has_teacher;     /* the held images come with a teacher's logits */
    uint64_t planned;    /* steps of the plan that have not been queued */
    uint64_t average_in; /* steps until its first average has been taken; UINT64_MAX: it takes none */
    int has_plan, plan_is_adam;
};

static int can_learn(const struct fkt_op *op)
{
    switch (op->kind) {
    case FKT_OP_CONV: return op->groups == 1 && !op->pad_after;
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
    if (spec->frozen != 0 && spec->frozen != 1) return fkt_fail(FKT_E_ARG, "a network is frozen (1) or not (0)");
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

static void mark_statistics(const struct fkt_learner *l)
{
    for (size_t i = 0; i < l->net->n_ops; i++)
        if (l->net->op[i].kind == FKT_OP_BATCH_NORM)
            l->statistic[l->net->op[i].mean] = l->statistic[l->net->op[i].var] = 1;
}

static fkt_status check_ops(const struct fkt_learner *l, const struct fkt_shape *shapes, uint32_t batch, uint8_t *seen)
{
    const struct fkt_net *net = l->net;
    for (size_t i = 0; i < net->n_ops; i++) {
        const struct fkt_op *op = &net->op[i];
        fkt_status st;
        if (!can_learn(op))
            return fkt_fail(FKT_E_ARG, "operation %zu of the network (%s%s) cannot learn", i, fkt_op_name(op->kind),
                            op->kind != FKT_OP_CONV ? ""
                            : op->groups > 1        ? " in groups"
                                                    : " padded unevenly");
        st = claim(net, i, seen);
        if (st != FKT_OK) return st;
        if (op->kind != FKT_OP_BATCH_NORM) continue;
        if ((uint64_t)batch * shapes[i + 1].h * shapes[i + 1].w < 2)
            return fkt_fail_hint(FKT_E_ARG, "use a larger batch or larger images",
                                 "operation %zu of the network (batch norm) cannot learn: one number has no variance",
                                 i);
    }
    return FKT_OK;
}

static fkt_status check_memory(const struct fkt_net *net, const struct fkt_shape *shapes,
                               const struct fkt_learner_spec *spec)
{
    const uint64_t element = spec->precision == FKT_PRECISION_BF16 ? sizeof(uint16_t) : sizeof(float);
    const uint64_t masters = spec->frozen ? 1 : 3; /* and gradients, and velocity */
    uint64_t numbers = 0, bytes, have = fkt_machine_memory();
    const double giga = 1 << 30;
    for (size_t i = 0; i <= net->n_ops; i++) numbers += (uint64_t)shapes[i].c * shapes[i].h * shapes[i].w;
    bytes = numbers * spec->batch * element + fkt_net_parameters(net) * (masters * sizeof(float) + element);
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
    if (!spec->frozen) FKT_TRY(check_ops(l, shapes, spec->batch, seen));
    mark_statistics(l);
    l->input = shapes[0];
    l->output = shapes[net->n_ops];
    l->batch = spec->batch;
    l->frozen = spec->frozen;
    if (!backend->own_memory) FKT_TRY(check_memory(net, shapes, spec));
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
    if (slot >= l->net->n_slots || (unsigned)what >= FKT_LEARNED_KINDS)
        return fkt_fail(FKT_E_ARG, "the network has no array %d of slot %" PRIu32, (int)what, slot);
    if (l->frozen && what != FKT_WEIGHT)
        return fkt_fail(FKT_E_ARG, "'%s' is frozen: it has neither gradient nor average", l->net->slot[slot].name[0]);
    if (l->statistic[slot] && what != FKT_WEIGHT && what != FKT_AVERAGE)
        return fkt_fail(FKT_E_ARG, "'%s' is a statistic: it has no gradient and no velocity",
                        l->net->slot[slot].name[0]);
    return FKT_OK;
}

/* A frozen network divides by the root of what is stored, as engines do, which refuse the same. */
static fkt_status check_variance(const struct fkt_learner *l, uint32_t slot, const float *x)
{
    for (size_t i = 0; i < l->net->n_ops; i++) {
        const struct fkt_op *op = &l->net->op[i];
        const size_t n = op->kind == FKT_OP_BATCH_NORM && op->var == slot ? fkt_slot_count(&l->net->slot[slot]) : 0;
        for (size_t k = 0; k < n; k++)
            if (!((double)x[k] + (double)op->value[0] > 0))
                return fkt_fail(FKT_E_NUMERIC, "'%s' is not a variance: element %zu is %g", l->net->slot[slot].name[0],
                                k, (double)x[k]);
    }
    return FKT_OK;
}

fkt_status fkt_learner_write(struct fkt_learner *l, enum fkt_learned what, uint32_t slot, const float *x)
{
    fkt_status st;
    FKT_TRY(check_slot(l, what, slot));
    for (size_t i = 0, n = fkt_slot_count(&l->net->slot[slot]); i < n; i++)
        if (!isfinite(x[i]))
            return fkt_fail(FKT_E_NUMERIC, "element %zu of '%s' is not a finite float", i, l->net->slot[slot].name[0]);
    if (l->frozen) FKT_TRY(check_variance(l, slot, x));
    FKT_TRY(l->backend->write(l->self, what, slot, x));
    if (what == FKT_WEIGHT) l->ran = 0;
    if (what == FKT_GRADIENT) l->has_gradients = 1;
    if (what == FKT_AVERAGE) l->has_average = 1;
    if (what == FKT_SECOND) l->has_second = 1;
out:
    return st;
}

fkt_status fkt_learner_read(const struct fkt_learner *l, enum fkt_learned what, uint32_t slot, float *x)
{
    fkt_status st = check_slot(l, what, slot);
    if (st != FKT_OK) return st;
    if (what == FKT_AVERAGE && !l->has_average) return fkt_fail(FKT_E_STATE, "no average has been taken yet");
    if (what == FKT_SECOND && !l->has_second) return fkt_fail(FKT_E_STATE, "no step of Adam has been taken yet");
    return l->backend->read(l->self, what, slot, x);
}

fkt_status fkt_learner_forward(struct fkt_learner *l, const float *in, float *out)
{
    fkt_status st = l->backend->forward(l->self, in, out);
    l->ran = st == FKT_OK;
    return st;
}

static fkt_status backward(struct fkt_learner *l, const float *dout, float *din)
{
    fkt_status st;
    if (!l->ran) return fkt_fail(FKT_E_STATE, "a backward needs a forward before it, with the same weights");
    l->ran = 0;
    st = l->backend->backward(l->self, dout, din);
    l->has_gradients = st == FKT_OK && !l->frozen;
    return st;
}

fkt_status fkt_learner_backward(struct fkt_learner *l, const float *dout)
{
    if (l->frozen) return fkt_fail(FKT_E_STATE, "a frozen network has no gradients of weights");
    return backward(l, dout, NULL);
}

fkt_status fkt_learner_backward_input(struct fkt_learner *l, const float *dout, float *din)
{
    if (!l->frozen) return fkt_fail(FKT_E_STATE, "only a frozen network is differentiated by its input");
    return backward(l, dout, din);
}

static int pulls(const struct fkt_optimizer *o) { return o->kind == FKT_OPTIMIZER_SGD && o->pull > 0; }

fkt_status fkt_learner_step(struct fkt_learner *l, const struct fkt_optimizer *o)
{
    fkt_status st;
    if (!l->has_gradients) return fkt_fail(FKT_E_STATE, "a step needs a backward before it");
    FKT_TRY(fkt_optimizer_check(o));
    if (pulls(o) && !l->has_average) return fkt_fail(FKT_E_STATE, "a step cannot pull: no average has been taken yet");
    l->ran = 0;
    FKT_TRY(l->backend->step(l->self, o));
    if (o->kind == FKT_OPTIMIZER_ADAM) l->has_second = 1;
out:
    return st;
}

static fkt_status check_average(float decay)
{
    if (decay >= 0 && decay < 1) return FKT_OK;
    return fkt_fail(FKT_E_ARG, "the decay of an average is 0 to 1, not %g", (double)decay);
}

fkt_status fkt_learner_average(struct fkt_learner *l, float decay)
{
    fkt_status st;
    if (l->frozen) return fkt_fail(FKT_E_STATE, "a frozen network has no average");
    FKT_TRY(check_average(decay));
    FKT_TRY(l->backend->average(l->self, decay));
    l->has_average = 1;
out:
    return st;
}

int fkt_learner_holds(const struct fkt_learner *l) { return l->backend->hold && !l->frozen; }

static fkt_status check_held(const struct fkt_learner *l, const struct fkt_held *p)
{
    const uint32_t classes = l->output.c;
    if (!p->n || p->n > UINT32_MAX) return fkt_fail(FKT_E_ARG, "a learner cannot hold %zu images", p->n);
    for (size_t i = 0; i < p->n; i++)
        if (p->label[i] >= classes)
            return fkt_fail(FKT_E_ARG, "label %" PRIu32 " of image %zu is outside the %" PRIu32 " classes", p->label[i],
                            i, classes);
    for (size_t i = 0; p->teacher && i < p->n * classes; i++)
        if (!isfinite(p->teacher[i]))
            return fkt_fail(FKT_E_NUMERIC, "the teacher's logits of image %zu are not finite", i / classes);
    return FKT_OK;
}

fkt_status fkt_learner_hold(struct fkt_learner *l, const struct fkt_held *images)
{
    fkt_status st;
    if (!fkt_learner_holds(l)) return fkt_fail(FKT_E_STATE, "this learner cannot hold images");
    if (l->input.c != 3 || l->output.h != 1 || l->output.w != 1)
        return fkt_fail(FKT_E_ARG, "a network that holds images takes 3 channels and gives one number per class");
    FKT_TRY(check_held(l, images));
    l->has_plan = 0;
    l->held = 0;
    FKT_TRY(l->backend->hold(l->self, images));
    l->held = (uint32_t)images->n;
    l->has_teacher = images->teacher != NULL;
out:
    return st;
}

static fkt_status check_plan(const struct fkt_learner *l, const struct fkt_epoch_steps *e)
{
    int average = l->has_average;
    fkt_status st = FKT_OK;
    FKT_TRY(fkt_loss_check(&e->loss, l->has_teacher));
    if (!isfinite(e->loss_before)) return fkt_fail(FKT_E_ARG, "the sum of losses before a plan is not finite");
    if (e->steps > SIZE_MAX / sizeof *e->view / l->batch) return fkt_fail(FKT_E_ARG, "an epoch of too many steps");
    for (size_t i = 0; i < e->steps * l->batch; i++)
        if (e->view[i].index >= l->held)
            return fkt_fail(FKT_E_ARG, "view %zu takes image %" PRIu32 ", and %" PRIu32 " are held", i,
                            e->view[i].index, l->held);
    for (size_t i = 0; i < e->steps; i++) {
        FKT_TRY(fkt_optimizer_check(&e->step[i].optimizer));
        if (!(e->step[i].average < 0)) FKT_TRY(check_average(e->step[i].average));
        if (pulls(&e->step[i].optimizer) && !average)
            return fkt_fail(FKT_E_STATE, "step %zu cannot pull: no average will have been taken by then", i);
        average |= e->step[i].average >= 0;
    }
out:
    return st;
}

fkt_status fkt_learner_plan_epoch(struct fkt_learner *l, const struct fkt_epoch_steps *e)
{
    fkt_status st;
    if (!l->held) return fkt_fail(FKT_E_STATE, "a plan needs images that the learner holds");
    FKT_TRY(check_plan(l, e));
    l->has_plan = 0;
    FKT_TRY(l->backend->plan_epoch(l->self, e));
    l->has_plan = 1;
    l->planned = e->steps;
    l->average_in = UINT64_MAX;
    l->plan_is_adam = 0;
    for (size_t i = 0; i < e->steps; i++) {
        if (e->step[i].average >= 0 && l->average_in == UINT64_MAX) l->average_in = i + 1;
        l->plan_is_adam |= e->step[i].optimizer.kind == FKT_OPTIMIZER_ADAM;
    }
out:
    return st;
}

fkt_status fkt_learner_train(struct fkt_learner *l, uint64_t steps)
{
    if (!l->has_plan) return fkt_fail(FKT_E_STATE, "training needs a plan");
    if (steps > l->planned)
        return fkt_fail(FKT_E_ARG, "the plan has %" PRIu64 " steps left, not %" PRIu64, l->planned, steps);
    if (!steps) return FKT_OK;
    l->ran = l->has_gradients = 0;
    if (l->average_in <= steps) l->has_average = 1;
    else if (l->average_in != UINT64_MAX) l->average_in -= steps;
    l->has_second |= l->plan_is_adam;
    l->planned -= steps;
    return l->backend->train(l->self, steps);
}

fkt_status fkt_learner_collect(struct fkt_learner *l, double *loss, uint64_t *hits, uint64_t *first_bad)
{
    *loss = NAN;
    *hits = 0;
    *first_bad = UINT64_MAX;
    if (!l->has_plan) return fkt_fail(FKT_E_STATE, "no epoch has been planned");
    return l->backend->collect(l->self, loss, hits, first_bad);
}
