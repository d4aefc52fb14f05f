/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - whole steps of training (forward, loss, backward, SGD), compared with the processor's best matrix products.
 *
 * Images are random and in memory in the network's layout: only the step is timed. After WARM steps each of at least
 * STEPS is timed, until the seconds are over; the fastest and the median are reported. A step counts as three times the
 * forward pass's operations, those of direct convolutions; Winograd needs fewer multiplications, so that the rate of
 * the processor's best product (peak.c) is a reference, not a bound.
 *
 * A learner on a card keeps the images as bytes and runs its steps without the host: then whole epochs of --images are
 * timed, with the views that the trainer draws (train_epoch.c).
 *
 * A wrong result is not timed: first the losses of TRIED steps of a small batch must be those of the plain loops
 * (nn/ref), which keep float32; then every loss must be finite, and the last one of the same images, used in every
 * step, smaller than the first. Memory is the peak of the process, so small sizes come first and the processor's
 * best product last; it is compared with what every step needs: weights, their gradients, SGD's velocity, and the
 * input of each convolution, which the gradient of its weights needs. */
#include "bench/bench.h"
#include "bench/train_epoch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/meter.h"
#include "base/rng.h"
#include "base/threads.h"
#include "classifier/model.h"
#include "nn/backends.h"
#include "nn/cpu.h"
#include "nn/loss.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CLASSES = 10,
    WARM = 2,
    STEPS = 10,
    STEPS_MAX = 4096,
    EPOCH_STEPS = 50,
    SIZES = 8,
    TRIED = 2,
    TRIED_BATCH = 2,
    TRIED_PX = 16,
    ROWS = 3
};
#define USUAL_SECONDS 10.0
#define USUAL_BATCH 64
static const struct fkt_optimizer usual_sgd = {.rate = 1e-3F, .momentum = 0.9F, .decay = 5e-4F, .nesterov = 1};

/* One network at one size and batch, ready to step. */
struct workspace {
    const struct fkt_model *model;
    struct fkt_learner *learner;
    uint32_t batch, size;
    float *in, *out, *slope;
    uint32_t *label;
    double forward, backward, update; /* seconds of the last step's parts */
};

/* Where it runs. */
struct place {
    struct fkt_device device;
    const struct fkt_learner_backend *backend;
    unsigned threads;
};

struct timing {
    double best, median, parts[3]; /* seconds; parts of the fastest: forward and loss, backward, SGD */
    size_t steps;
};

static void workspace_release(struct workspace *d)
{
    fkt_learner_free(d->learner);
    fkt_free(d->in);
    fkt_free(d->out);
    fkt_free(d->slope);
    fkt_free(d->label);
}

static fkt_status workspace_open(struct workspace *d, const struct fkt_learner_backend *backend,
                                 const struct fkt_net *net, const struct fkt_learner_spec *spec,
                                 const struct fkt_model *m)
{
    const size_t numbers = (size_t)3 * spec->batch * spec->height * spec->width, logits = (size_t)spec->batch * CLASSES;
    struct fkt_rng rng;
    fkt_status st;
    *d = (struct workspace){.model = m, .batch = spec->batch, .size = spec->height};
    FKT_TRY(fkt_alloc(&d->in, numbers));
    FKT_TRY(fkt_alloc(&d->out, logits));
    FKT_TRY(fkt_alloc(&d->slope, logits));
    FKT_TRY(fkt_alloc(&d->label, spec->batch));
    fkt_rng_init(&rng, 1, 0);
    for (size_t i = 0; i < numbers; i++) d->in[i] = (float)(4 * fkt_rng_unit(&rng) - 2);
    for (uint32_t i = 0; i < spec->batch; i++) d->label[i] = i % CLASSES;
    FKT_TRY(fkt_learner_new(&d->learner, backend, net, spec));
    for (uint32_t s = 0; s < net->n_slots; s++)
        FKT_TRY(fkt_learner_write(d->learner, FKT_WEIGHT, s, fkt_model_tensor(m, s).data));
out:
    return st;
}

static fkt_status step(struct workspace *d, double *loss)
{
    const struct fkt_loss plain = {0, 1, 0};
    const double start = fkt_now();
    double then;
    fkt_status st;
    FKT_TRY(fkt_learner_forward(d->learner, d->in, d->out));
    FKT_TRY(fkt_loss_softmax(&plain, d->out, d->label, NULL, d->batch, CLASSES, loss, d->slope, NULL));
    d->forward = (then = fkt_now()) - start;
    FKT_TRY(fkt_learner_backward(d->learner, d->slope));
    d->backward = fkt_now() - then;
    then = fkt_now();
    FKT_TRY(fkt_learner_step(d->learner, &usual_sgd));
    d->update = fkt_now() - then;
out:
    return st;
}

/* A few steps of a small batch, here and in plain loops. */
static fkt_status check(const struct fkt_net *net, const struct fkt_model *m, enum fkt_precision precision,
                        const struct place *at)
{
    const struct fkt_learner_spec plain = {.batch = TRIED_BATCH,
                                           .height = TRIED_PX,
                                           .width = TRIED_PX,
                                           .precision = FKT_PRECISION_F32,
                                           .threads = 1,
                                           .norm_momentum = 0.1F};
    const struct fkt_learner_spec fast = {.batch = TRIED_BATCH,
                                          .height = TRIED_PX,
                                          .width = TRIED_PX,
                                          .precision = precision,
                                          .threads = at->threads,
                                          .device = at->device.index,
                                          .norm_momentum = 0.1F};
    const double allowed = precision == FKT_PRECISION_BF16 ? 0.1 : 1e-3;
    struct workspace a = {0}, b = {0};
    fkt_status st;
    FKT_TRY(workspace_open(&a, at->backend, net, &fast, m));
    FKT_TRY(workspace_open(&b, &fkt_learner_ref, net, &plain, m));
    for (int i = 0; i < TRIED; i++) {
        double got = NAN, want = NAN;
        FKT_TRY(step(&a, &got));
        FKT_TRY(step(&b, &want));
        if (!(fabs(got - want) <= allowed * fabs(want))) {
            st = fkt_fail(FKT_E_NUMERIC, "the loss of step %d is %g, but %g in plain loops: not timed", i + 1, got,
                          want);
            goto out;
        }
    }
out:
    workspace_release(&a);
    workspace_release(&b);
    return st;
}

static fkt_status time_steps(struct workspace *d, const struct cli_bench *o, const struct fkt_progress *progress,
                             struct timing *out)
{
    const size_t asked = (size_t)(o->images + d->batch - 1) / d->batch;
    const double enough = o->seconds > 0 ? o->seconds : USUAL_SECONDS;
    struct fkt_meter meter;
    double *took = NULL, first = NAN, loss = NAN, spent = 0;
    fkt_status st;
    *out = (struct timing){.best = INFINITY};
    fkt_meter_init(&meter, progress, "training", (uint64_t)(WARM + (asked ? asked : STEPS)) * d->batch);
    FKT_TRY(fkt_alloc(&took, STEPS_MAX));
    for (int i = 0; i < WARM; i++) {
        FKT_TRY(step(d, &loss));
        if (i == 0) first = loss;
        FKT_TRY(fkt_meter_add(&meter, d->batch));
    }
    while (out->steps < STEPS_MAX && (asked ? out->steps < asked : out->steps < STEPS || spent < enough)) {
        const double start = fkt_now();
        FKT_TRY(step(d, &loss));
        took[out->steps] = fkt_now() - start;
        spent += took[out->steps];
        if (took[out->steps] < out->best) {
            out->best = took[out->steps];
            out->parts[0] = d->forward, out->parts[1] = d->backward, out->parts[2] = d->update;
        }
        out->steps++;
        if (asked || out->steps <= STEPS) FKT_TRY(fkt_meter_add(&meter, d->batch));
    }
    if (!(loss < first)) {
        st = fkt_fail(FKT_E_NUMERIC, "the loss of the same images went from %g to %g: not timed", first, loss);
        goto out;
    }
    fkt_bench_sort(took, out->steps);
    out->median = (took[(out->steps - 1) / 2] + took[out->steps / 2]) / 2;
out:
    fkt_meter_clear(&meter);
    fkt_free(took);
    return st;
}

static void fill_row(struct fkt_bench_row *r, const char *what, const struct fkt_model *m, uint32_t size,
                     enum fkt_precision p)
{
    memset(r, 0, sizeof *r);
    snprintf(r->name, sizeof r->name, "train/%s %s %u px %s", what, fkt_architecture_name(fkt_model_architecture(m)),
             size, p == FKT_PRECISION_BF16 ? "bf16" : "f32");
}

static fkt_status speed_rows(struct fkt_bench_row *rows, const struct workspace *d, const struct timing *t,
                             enum fkt_precision p, unsigned threads)
{
    const struct fkt_learner_facts *f = fkt_learner_facts(d->learner);
    int amx = 0;
    fkt_status st = fkt_cpu_amx(&amx);
    for (int i = 0; i < 2; i++) {
        struct fkt_bench_row *r = &rows[i];
        fill_row(r, i ? "median" : "step", d->model, d->size, p);
        r->value = d->batch / (i ? t->median : t->best);
        snprintf(r->unit, sizeof r->unit, "images/s");
        r->peer = 1;
        snprintf(r->note, sizeof r->note,
                 "batch %u, %zu steps, %u threads%s; forward %.0f ms, backward %.0f, SGD %.0f; %u of %u Winograd",
                 d->batch, t->steps, threads,
                 p != FKT_PRECISION_BF16 ? ""
                 : amx                   ? ", on tiles (AMX)"
                                         : ", no tiles (AMX): f32 is faster here",
                 1e3 * t->parts[0], 1e3 * t->parts[1], 1e3 * t->parts[2], f->winograd, f->convolutions);
    }
    return st;
}

/* The same two rows for a learner that keeps the images: whole epochs. */
static fkt_status epoch_rows(struct fkt_bench_row *rows, const struct workspace *d, const struct cli_bench *o,
                             enum fkt_precision p)
{
    const size_t images = o->images > d->batch ? (size_t)o->images
                          : o->images          ? d->batch
                                               : (size_t)EPOCH_STEPS * d->batch;
    struct fkt_bench_epochs e;
    fkt_status st;
    FKT_TRY(fkt_bench_epochs(d->learner, d->model, d->batch, d->size, images, &e));
    for (int i = 0; i < 2; i++) {
        struct fkt_bench_row *r = &rows[i];
        fill_row(r, i ? "median" : "epoch", d->model, d->size, p);
        r->value = i ? e.median : e.best;
        snprintf(r->unit, sizeof r->unit, "images/s");
        r->peer = 1;
        snprintf(r->note, sizeof r->note,
                 "batch %u, %" PRIu64 " steps an epoch, %" PRIu64
                 " epochs, images on the device; the host's plan %.1f ms",
                 d->batch, e.steps, e.epochs, 1e3 * e.plan);
    }
out:
    return st;
}

/* Adds the best product to the two rows of speed; flops: of a whole step, of one image. */
static void stand_beside(struct fkt_bench_row *rows, double flops, double peak, const char *whose)
{
    for (int i = 0; i < 2; i++) {
        rows[i].bound = peak * 1e9 / flops;
        rows[i].ratio_to_bound = rows[i].value / rows[i].bound;
        snprintf(rows[i].bound_name, sizeof rows[i].bound_name, "direct convolutions at %.0f GFLOP/s, %s", peak, whose);
    }
}

/* Numbers that go into convolutions, of one image; a value that goes into two counts once. */
static fkt_status kept_numbers(const struct fkt_net *net, uint32_t size, uint64_t *sum)
{
    struct fkt_shape *shapes = NULL;
    uint8_t *seen = NULL;
    fkt_status st;
    *sum = 0;
    FKT_TRY(fkt_alloc(&shapes, net->n_ops + 1));
    FKT_TRY(fkt_alloc(&seen, net->n_ops + 1));
    FKT_TRY(fkt_net_shapes(net, size, size, shapes));
    for (size_t i = 0; i < net->n_ops; i++) {
        const uint32_t in = net->op[i].in[0];
        if (net->op[i].kind != FKT_OP_CONV || seen[in]) continue;
        seen[in] = 1;
        *sum += (uint64_t)shapes[in].c * shapes[in].h * shapes[in].w;
    }
out:
    fkt_free(shapes);
    fkt_free(seen);
    return st;
}

static fkt_status memory_row(struct fkt_bench_row *r, const struct workspace *d, const struct fkt_net *net,
                             enum fkt_precision p)
{
    const struct fkt_learner_facts *f = fkt_learner_facts(d->learner);
    const double each = p == FKT_PRECISION_BF16 ? 2 : 4;
    uint64_t kept = 0;
    fkt_status st = kept_numbers(net, d->size, &kept);
    fill_row(r, "memory", d->model, d->size, p);
    r->value = fkt_bench_memory();
    snprintf(r->unit, sizeof r->unit, "MB");
    r->bound = (double)fkt_model_parameters(d->model) * 12e-6 + (double)kept * d->batch * each * 1e-6;
    r->ratio_to_bound = r->value / r->bound;
    snprintf(r->bound_name, sizeof r->bound_name, "weights, gradients, velocity, convolutions' inputs");
    snprintf(r->note, sizeof r->note, "peak of the process so far; weights %.0f MB, activations and scratch %.0f MB",
             (double)f->weight_bytes * 1e-6, (double)f->arena_bytes * 1e-6);
    return st;
}

static fkt_status one(struct fkt_bench_row *rows, const struct cli_bench *o, const struct fkt_model *m, uint32_t size,
                      enum fkt_precision p, const struct place *at, double *flops)
{
    const struct fkt_learner_spec spec = {.batch = o->batch ? (uint32_t)o->batch : USUAL_BATCH,
                                          .height = size,
                                          .width = size,
                                          .precision = p,
                                          .threads = at->threads,
                                          .device = at->device.index,
                                          .norm_momentum = 0.1F};
    struct cli_progress progress;
    struct fkt_net net;
    struct workspace d = {0};
    struct timing t;
    fkt_status st;
    cli_progress_init(&progress, o->run.quiet);
    fkt_net_init(&net, 3);
    fkt_resnet_build(&net, fkt_model_architecture(m), fkt_model_stem(m), CLASSES);
    FKT_TRY(fkt_net_status(&net));
    FKT_TRY(check(&net, m, p, at));
    FKT_TRY(workspace_open(&d, at->backend, &net, &spec, m));
    if (fkt_learner_holds(d.learner)) {
        FKT_TRY(epoch_rows(rows, &d, o, p));
    } else {
        FKT_TRY(time_steps(&d, o, &progress.hook, &t));
        FKT_TRY(speed_rows(rows, &d, &t, p, at->threads));
    }
    FKT_TRY(memory_row(&rows[2], &d, &net, p));
    *flops = 3.0 * (double)fkt_learner_facts(d.learner)->flops;
out:
    cli_progress_end(&progress);
    workspace_release(&d);
    fkt_net_clear(&net);
    return st;
}

static fkt_status read_sizes(const char *list, uint32_t *size, size_t *n)
{
    double x[SIZES];
    fkt_status st;
    FKT_TRY(cli_reals("sizes", list ? list : "32,64", x, SIZES, n));
    for (size_t i = 0; i < *n; i++) {
        if (!(x[i] >= FKT_MODEL_SIZE_MIN && x[i] <= FKT_MODEL_SIZE_MAX && x[i] == floor(x[i])))
            return fkt_fail(FKT_E_ARG, "--sizes has %g: a side is a whole number from %d to %d", x[i],
                            FKT_MODEL_SIZE_MIN, FKT_MODEL_SIZE_MAX);
        size[i] = (uint32_t)x[i];
    }
out:
    return st;
}

/* One dtype, or with auto both; an unsupported one is an error only if it was requested. */
static fkt_status wanted(const struct cli_bench *o, const struct place *at, int dtype[2])
{
    int possible = 1;
    fkt_status st = FKT_OK;
    if (at->device.kind == FKT_DEVICE_CPU) FKT_TRY(fkt_cpu_bf16(&possible));
    dtype[0] = o->codec.settings.dtype != FKT_CODEC_DTYPE_BF16;
    dtype[1] = o->codec.settings.dtype == FKT_CODEC_DTYPE_BF16 ||
               (o->codec.settings.dtype == FKT_CODEC_DTYPE_AUTO && possible);
    if (dtype[1] && !possible) st = fkt_fail(FKT_E_ARG, "this processor has no bfloat16 products");
out:
    return st;
}

/* Rows of all sizes in one dtype. */
static fkt_status one_dtype(struct fkt_bench_row *rows, const struct cli_bench *o, const struct fkt_model *m,
                            const uint32_t *size, size_t sizes, enum fkt_precision p, const struct place *at)
{
    double flops[SIZES], peak = NAN;
    const char *whose = "";
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < sizes; i++) FKT_TRY(one(rows + i * ROWS, o, m, size[i], p, at, &flops[i]));
    FKT_TRY(fkt_bench_peak(at->device, p == FKT_PRECISION_BF16 ? FKT_CODEC_DTYPE_BF16 : FKT_CODEC_DTYPE_F32,
                           at->threads, &peak, &whose));
    for (size_t i = 0; i < sizes; i++) stand_beside(rows + i * ROWS, flops[i], peak, whose);
out:
    return st;
}

fkt_status fkt_bench_train(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    static const char *const classes[CLASSES] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    struct fkt_model_spec spec = {.size = TRIED_PX, .classes = classes, .n_classes = CLASSES, .seed = 1};
    struct fkt_model *m = NULL;
    struct place at = {{FKT_DEVICE_CPU, 0}, NULL, 0};
    uint32_t size[SIZES];
    size_t sizes = 0;
    int dtype[2];
    fkt_status st;
    *n = 0;
    spec.architecture = (enum fkt_architecture)o->model;
    FKT_TRY(read_sizes(o->sizes, size, &sizes));
    if (o->batch > 4096 || o->images > 1000000) {
        st = fkt_fail(FKT_E_ARG, "--batch must be at most 4096, and --images at most 1000000");
        goto out;
    }
    if (!(o->seconds >= 0)) {
        st = fkt_fail(FKT_E_ARG, "--seconds must not be negative");
        goto out;
    }
    FKT_TRY(cli_device_settle(o->codec.settings.device, &at.device));
    FKT_TRY(cli_threads(o->run.threads, &at.threads));
    if (!at.threads) at.threads = fkt_cpu_count();
    at.backend = fkt_learner_for(at.device);
    FKT_TRY(wanted(o, &at, dtype));
    FKT_TRY(fkt_model_new(&m, &spec));
    for (int p = 0; p < 2; p++) {
        if (!dtype[p] || *n + sizes * ROWS > cap) continue;
        FKT_TRY(one_dtype(rows + *n, o, m, size, sizes, p ? FKT_PRECISION_BF16 : FKT_PRECISION_F32, &at));
        *n += sizes * ROWS;
    }
out:
    fkt_model_free(m);
    return st;
}
