/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c - the training recipe: its valid values, and the rate of each step.
 *
 * With n = epochs * steps_per_epoch steps 0 .. n-1 and w = round(warmup * steps_per_epoch) of them as warm-up:
 *
 *   warm-up    step < w: rate (step + 1) / w; it grows from 0, and no step has rate 0
 *   constant   rate
 *   step       rate step_by^floor((step - w) / e), e = round(step_every * steps_per_epoch), at least 1
 *   cosine     rate (1 + cos(pi (step - w) / (n - w))) / 2: it reaches 0 after the last step, so no step has rate 0
 *   one-cycle  rate/25 up to rate at step 0.3 n - 1, then down to rate/250000 at step n - 1, a half cosine each way
 *
 * Source: PyTorch's torch.optim.lr_scheduler, stepped after every batch: StepLR(step_size=e, gamma=step_by),
 * CosineAnnealingLR(T_max=n - w), after LinearLR(start_factor=1/w, total_iters=w - 1) through SequentialLR when there
 * is a warm-up; OneCycleLR(max_lr=rate, total_steps=n, cycle_momentum=False) with its defaults otherwise. PyTorch's
 * StepLR and CosineAnnealingLR compute each rate from the previous one and accumulate rounding errors; ours are closed
 * forms. */
#include "classifier/recipe.h"

#include "base/status.h"
#include "base/text.h"
#include "base/threads.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const schedules[] = {"constant", "step", "cosine", "one-cycle"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };
static const char *const optimizers[] = {[FKT_LEARN_SGD] = "sgd", [FKT_LEARN_ADAM] = "adam"};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

const char *fkt_schedule_name(enum fkt_schedule s)
{
    return (unsigned)s < SCHEDULES ? schedules[(unsigned)s] : "unknown";
}

int fkt_schedule_parse(const char *s)
{
    for (int i = 0; i < SCHEDULES; i++)
        if (!strcmp(s, schedules[i])) return i;
    return -1;
}

void fkt_recipe_default(struct fkt_recipe *r)
{
    *r = (struct fkt_recipe){
        .epochs = 20,
        .batch = 64,
        .optimizer = FKT_LEARN_SGD,
        .rate = 0.05,
        .momentum = 0.9,
        .decay = 5e-4,
        .nesterov = 1,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .schedule = FKT_SCHEDULE_COSINE,
        .step_every = 10,
        .step_by = 0.1,
        .flip = 1,
        .pad = 4,
        .temperature = 4,
        .dtype = FKT_LEARN_DTYPE_F32,
        .seed = 1,
    };
}

/* One row a field. Bounds of numbers; an open end is excluded. */
enum kind { U32, F64, SWITCH, OPTIMIZER, SCHEDULE, DTYPE, SEED, THREADS };
enum { OPEN_LOW = 1, OPEN_HIGH = 2 };
static const struct field {
    const char *name;
    enum kind kind;
    size_t at;
    double low, high;
    int open;
} fields[FKT_RECIPE_FIELDS] = {
#define AT(f) offsetof(struct fkt_recipe, f)
    {"epochs", U32, AT(epochs), 1, FKT_EPOCHS_MAX, 0},
    {"batch", U32, AT(batch), 1, FKT_BATCH_MAX, 0},
    {"optimizer", OPTIMIZER, AT(optimizer), 0, OPTIMIZERS - 1, 0},
    {"rate", F64, AT(rate), 0, 1e6, OPEN_LOW},
    {"momentum", F64, AT(momentum), 0, 1, OPEN_HIGH},
    {"decay", F64, AT(decay), 0, 1, OPEN_HIGH},
    {"nesterov", SWITCH, AT(nesterov), 0, 1, 0},
    {"beta1", F64, AT(beta1), 0, 1, OPEN_HIGH},
    {"beta2", F64, AT(beta2), 0, 1, OPEN_HIGH},
    {"schedule", SCHEDULE, AT(schedule), 0, SCHEDULES - 1, 0},
    {"warm-up", F64, AT(warmup), 0, FKT_EPOCHS_MAX, 0},
    {"step every", F64, AT(step_every), 0, FKT_EPOCHS_MAX, OPEN_LOW},
    {"step by", F64, AT(step_by), 0, 1, OPEN_LOW},
    {"flip", SWITCH, AT(flip), 0, 1, 0},
    {"pad", U32, AT(pad), 0, FKT_PAD_MAX, 0},
    {"smoothing", F64, AT(smoothing), 0, 1, OPEN_HIGH},
    {"average's decay", F64, AT(ema), 0, 1, OPEN_HIGH},
    {"temperature", F64, AT(temperature), 0, 1e6, OPEN_LOW},
    {"teacher's share", F64, AT(share), 0, 1, 0},
    {"type", DTYPE, AT(dtype), 0, 1, 0},
    {"seed", SEED, AT(seed), 0, 0, 0},
    {"threads", THREADS, AT(threads), 0, 1024, 0},
#undef AT
};

const char *fkt_recipe_field_name(size_t i) { return fields[i].name; }

int fkt_recipe_field_is_new(size_t i)
{
    return fields[i].kind == OPTIMIZER || fields[i].at == offsetof(struct fkt_recipe, beta1) ||
           fields[i].at == offsetof(struct fkt_recipe, beta2);
}

static double number_of(const struct fkt_recipe *r, const struct field *f)
{
    const char *p = (const char *)r + f->at;
    switch (f->kind) {
    case U32: return *(const uint32_t *)p;
    case F64: return *(const double *)p;
    case SWITCH: return *(const int *)p;
    case OPTIMIZER: return (double)*(const enum fkt_learn_optimizer *)p;
    case SCHEDULE: return (double)*(const enum fkt_schedule *)p;
    case DTYPE: return (double)*(const enum fkt_learn_dtype *)p;
    case THREADS: return *(const unsigned *)p;
    case SEED: break;
    }
    return 0;
}

void fkt_recipe_field_text(const struct fkt_recipe *r, size_t i, char out[FKT_RECIPE_TEXT])
{
    const struct field *f = &fields[i];
    const double x = number_of(r, f);
    switch (f->kind) {
    case F64: fkt_double_text(out, x); return;
    case SWITCH: snprintf(out, FKT_RECIPE_TEXT, "%s", x != 0 ? "on" : "off"); return;
    case OPTIMIZER: snprintf(out, FKT_RECIPE_TEXT, "%s", x < OPTIMIZERS ? optimizers[(int)x] : "unknown"); return;
    case SCHEDULE: snprintf(out, FKT_RECIPE_TEXT, "%s", fkt_schedule_name(r->schedule)); return;
    case DTYPE: snprintf(out, FKT_RECIPE_TEXT, "%s", r->dtype == FKT_LEARN_DTYPE_BF16 ? "bf16" : "f32"); return;
    case SEED: snprintf(out, FKT_RECIPE_TEXT, "%" PRIu64, r->seed); return;
    case THREADS: snprintf(out, FKT_RECIPE_TEXT, "%u", r->threads ? r->threads : fkt_cpu_count()); return;
    case U32: snprintf(out, FKT_RECIPE_TEXT, "%.0f", x); return;
    }
}

fkt_status fkt_recipe_check(const struct fkt_recipe *r)
{
    for (size_t i = 0; i < FKT_RECIPE_FIELDS; i++) {
        const struct field *f = &fields[i];
        const double x = number_of(r, f),
                     step = (double)(float)x; /* steps use floats: the rounded value must be in range too */
        const int above = f->open & OPEN_LOW ? step > f->low : x >= f->low; /* a NaN is neither above nor below */
        const int below = f->open & OPEN_HIGH ? step < f->high : x <= f->high;
        if (!above || !below)
            return fkt_fail(FKT_E_ARG, "the recipe's %s is %.15g: it must be %s %.15g and %s %.15g", f->name, x,
                            f->open & OPEN_LOW ? "more than" : "at least", f->low,
                            f->open & OPEN_HIGH ? "less than" : "at most", f->high);
    }
    if (r->optimizer == FKT_LEARN_SGD && r->nesterov && r->momentum == 0)
        return fkt_fail_hint(FKT_E_ARG, "give a momentum such as 0.9, or switch nesterov off",
                             "nesterov needs a momentum, and it is 0");
    if (r->warmup > 0 && r->schedule != FKT_SCHEDULE_STEP && r->schedule != FKT_SCHEDULE_COSINE)
        return fkt_fail_hint(FKT_E_ARG, "leave out the warm-up, or use the schedule 'step' or 'cosine'",
                             "the schedule '%s' does not support a warm-up", fkt_schedule_name(r->schedule));
    if (r->warmup >= r->epochs)
        return fkt_fail(FKT_E_ARG, "a warm-up of %g epochs leaves none of %u epochs", r->warmup, r->epochs);
    return FKT_OK;
}

static double half_cosine(double from, double to, double part)
{
    return to + (from - to) / 2 * (cos(3.14159265358979323846 * part) + 1);
}

/* PyTorch's two phases meet at a step that need not be whole, and that lies before step 0 for fewer than 4 steps. */
static double one_cycle(double rate, double step, double steps)
{
    const double top = 0.3 * steps - 1, last = steps - 1;
    if (step <= top) return half_cosine(rate / 25, rate, step / top);
    return half_cosine(rate, rate / 25 / 1e4, (step - top) / (last - top));
}

double fkt_recipe_rate(const struct fkt_recipe *r, uint64_t step, uint64_t steps_per_epoch)
{
    const double epoch = (double)steps_per_epoch, steps = r->epochs * epoch;
    const double before = floor(r->warmup * epoch + 0.5), every = fmax(1, floor(r->step_every * epoch + 0.5));
    const double at = fmin((double)step, fmax(steps - 1, 0)); /* exact: there are fewer than 2^53 steps */
    switch (r->schedule) {
    case FKT_SCHEDULE_CONSTANT: return r->rate;
    case FKT_SCHEDULE_ONE_CYCLE: return one_cycle(r->rate, at, steps);
    case FKT_SCHEDULE_STEP:
        return at < before ? r->rate * (at + 1) / before : r->rate * pow(r->step_by, floor((at - before) / every));
    case FKT_SCHEDULE_COSINE:
        return at < before ? r->rate * (at + 1) / before : half_cosine(r->rate, 0, (at - before) / (steps - before));
    }
    return NAN;
}
