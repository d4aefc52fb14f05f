/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - the problem of a network and the sites' images: losses and gradients of a flat vector of weights.
 *
 *   x --write--> learner --forward--> loss --backward--> read: g, and the statistics that moved, back into x
 *
 * Every gradient copies the weights in and the gradients out, so that methods stay functions on vectors: 8 bytes
 * for each parameter and step. Where many steps follow one another and the learner holds images, as on a card, they
 * run there (network_steps.c). Orders and views of an epoch are those of the trainer (classifier/augment.h), with a
 * seed for each site; an incomplete last batch is left out, and a site with fewer records than a batch is one batch.
 *
 * The same seed and threads give the same bits, as the learner's do. */
#include "learning/baselines/network.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "classifier/augment.h"
#include "nn/backends.h"
#include "nn/loss.h"

#include <math.h>
#include <string.h>

enum { STREAM_ORDER = 0x6f72, STREAM_HELD = 0x6865, AT_ONCE = 256 }; /* streams of the seed */

static uint64_t seed_of(const struct fkt_network_problem *q, uint64_t stream, uint32_t site)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, q->spec->seed, stream << 32 | q->site[site].site);
    return fkt_rng_u64(&rng);
}

uint32_t fkt_network_batch(const struct fkt_network_problem *q, uint32_t site)
{
    const size_t n = q->site[site].n_train;
    return n < q->spec->settings.batch ? (uint32_t)n : q->spec->settings.batch;
}

/* ---- gradients ---- */

fkt_status fkt_network_learner(struct fkt_network_problem *q, uint32_t batch, struct fkt_learner **out)
{
    const int small = batch < q->spec->settings.batch;
    const struct fkt_learner_spec spec = {.batch = batch,
                                          .height = q->model->size,
                                          .width = q->model->size,
                                          .precision = q->spec->dtype == FKT_LEARN_DTYPE_BF16 ? FKT_PRECISION_BF16
                                                                                              : FKT_PRECISION_F32,
                                          .threads = q->spec->threads,
                                          .norm_momentum = 0.1F, /* PyTorch's */
                                          .device = q->spec->device.index};
    fkt_status st = FKT_OK;
    if (!q->learner[small] || q->learner_batch[small] != batch) {
        fkt_learner_free(q->learner[small]);
        q->learner[small] = NULL;
        st = fkt_learner_new(&q->learner[small], q->backend, &q->model->net, &spec);
        q->learner_batch[small] = batch;
    }
    *out = q->learner[small];
    return st;
}

void fkt_network_order(struct fkt_network_problem *q, uint32_t site, uint32_t epoch)
{
    if (q->order_site == site && q->order_epoch == epoch) return;
    q->views.seed = seed_of(q, STREAM_ORDER, site);
    fkt_epoch_order(q->order, q->site[site].n_train, q->views.seed, epoch);
    q->order_site = site;
    q->order_epoch = epoch;
}

static void fill_batch(struct fkt_network_problem *q, uint32_t site, uint64_t step)
{
    const struct fkt_training_set *data = q->spec->data;
    const struct fkt_site_records *own = &q->site[site];
    const size_t image = (size_t)3 * data->size * data->size, batch = fkt_network_batch(q, site);
    const uint32_t epoch = (uint32_t)(step / q->epoch[site]);
    const size_t first = (size_t)(step % q->epoch[site]) * batch;
    fkt_network_order(q, site, epoch);
    for (size_t i = 0; i < batch; i++) {
        const size_t index = q->order[first + i], record = own->train[index];
        const struct fkt_view v = fkt_view_of(&q->views, epoch, index);
        q->label[i] = data->label[record];
        fkt_view_apply(&v, q->value, data->rgb + record * image, data->size, q->in + i * image);
    }
}

fkt_status fkt_network_write(struct fkt_network_problem *q, struct fkt_learner *l, const float *x)
{
    fkt_status st = FKT_OK;
    for (size_t k = 0; k < q->problem.spans && st == FKT_OK; k++)
        st = fkt_learner_write(l, FKT_WEIGHT, q->slot[k], x + q->span[k].start);
    return st;
}

/* Gradients of parameters into g, statistics into x. */
static fkt_status read_back(struct fkt_network_problem *q, struct fkt_learner *l, float *x, float *g)
{
    fkt_status st = FKT_OK;
    for (size_t k = 0; k < q->problem.spans && st == FKT_OK; k++) {
        const size_t start = q->span[k].start;
        if (start < q->problem.parameters) st = fkt_learner_read(l, FKT_GRADIENT, q->slot[k], g + start);
        else st = fkt_learner_read(l, FKT_WEIGHT, q->slot[k], x + start);
    }
    return st;
}

int fkt_network_stopped(struct fkt_network_problem *q)
{
    const struct fkt_progress *p = q->spec->progress;
    return p && p->step && p->step(p->self, "rounds of sites", q->before + q->done, q->total);
}

static fkt_status network_gradient(void *self, uint32_t site, uint64_t step, float *x, float *g)
{
    struct fkt_network_problem *q = self;
    const uint32_t batch = fkt_network_batch(q, site);
    struct fkt_learner *l = NULL;
    fkt_status st;
    if (fkt_network_stopped(q)) return fkt_fail(FKT_E_STOPPED, "stopped while training; nothing is kept");
    FKT_TRY(fkt_network_learner(q, batch, &l));
    fill_batch(q, site, step);
    if (q->taught)
        FKT_TRY(fkt_model_forward(q->teacher, q->in, batch, q->teacher_out, q->spec->threads, q->spec->device));
    FKT_TRY(fkt_network_write(q, l, x));
    FKT_TRY(fkt_learner_forward(l, q->in, q->out));
    FKT_TRY(fkt_loss_softmax(&q->loss, q->out, q->label, q->taught ? q->teacher_out : NULL, batch, q->model->n_classes,
                             &q->last_loss, q->slope, NULL));
    FKT_TRY(fkt_learner_backward(l, q->slope));
    FKT_TRY(read_back(q, l, x, g));
out:
    if (st == FKT_E_NUMERIC) st = fkt_hint(fkt_fail_in(st, "training diverged"), "use a smaller rate");
    return fkt_fail_in(st, "site %u", q->site[site].site);
}

static fkt_status network_teach(void *self, const float *teacher, double share, double temperature)
{
    struct fkt_network_problem *q = self;
    q->taught = teacher != NULL;
    q->loss = (struct fkt_loss){.share = teacher ? share : 0, .temperature = temperature};
    if (!teacher) return FKT_OK;
    if (!q->teacher) {
        fkt_status st = fkt_model_copy(&q->teacher, q->model);
        if (st != FKT_OK) return st;
    }
    fkt_network_store(q, teacher, q->teacher);
    return FKT_OK;
}

/* ---- evaluation ---- */

fkt_status fkt_network_evaluate(struct fkt_network_problem *q, const float *x, const struct fkt_training_set *set,
                                const size_t *record, size_t n, struct fkt_evaluation *one, struct fkt_evaluation *two)
{
    const struct fkt_predict_options o = {.threads = q->spec->threads, .device = q->spec->device};
    const size_t image = (size_t)3 * set->size * set->size;
    uint32_t label[AT_ONCE];
    fkt_status st = FKT_OK;
    fkt_network_store(q, x, q->model);
    for (size_t i = 0; i < n; i += AT_ONCE) {
        const size_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        for (size_t k = 0; k < some; k++) {
            memcpy(q->rgb + k * image, set->rgb + record[i + k] * image, image);
            label[k] = set->label[record[i + k]];
        }
        FKT_TRY(fkt_model_predict(q->model, q->rgb, some, q->logits, NULL, &o));
        FKT_TRY(fkt_evaluation_add(one, q->logits, label, some));
        if (two) FKT_TRY(fkt_evaluation_add(two, q->logits, label, some));
    }
out:
    return st;
}

static fkt_status network_validate(void *self, uint32_t site, const float *x, double *loss)
{
    struct fkt_network_problem *q = self;
    const struct fkt_site_records *own = &q->site[site];
    struct fkt_evaluation e = {0};
    fkt_status st;
    FKT_TRY(fkt_evaluation_init(&e, q->model->n_classes));
    FKT_TRY(fkt_network_evaluate(q, x, q->spec->data, own->held, own->n_held, &e, NULL));
    *loss = fkt_evaluation_loss(&e);
    if (!isfinite(*loss))
        st = fkt_fail(FKT_E_NUMERIC, "the loss on the validation records of site %u is not finite", own->site);
out:
    fkt_evaluation_clear(&e);
    return st;
}

static int network_stop(void *self, uint32_t done)
{
    struct fkt_network_problem *q = self;
    q->done = done;
    return fkt_network_stopped(q);
}

/* ---- sites ---- */

/* A site with too few records for both parts validates on those that it trains on. */
static fkt_status divide(struct fkt_network_problem *q, uint32_t i, const size_t *record, size_t n, double validation)
{
    struct fkt_site_records *own = &q->site[i];
    struct fkt_rng rng;
    fkt_status st = fkt_alloc(&own->train, n);
    if (st != FKT_OK) return st;
    memcpy(own->train, record, n * sizeof *record);
    own->n_held = (size_t)floor(validation * (double)n);
    if (validation > 0) {
        fkt_rng_init(&rng, seed_of(q, STREAM_HELD, i), 0);
        fkt_rng_shuffle(&rng, own->train, n);
    }
    if (!own->n_held || n - own->n_held < FKT_PERSONAL_LEAST) {
        own->held = own->train;
        own->n_held = own->n_train = n;
    } else {
        own->n_train = n - own->n_held;
        own->held = own->train + own->n_train;
    }
    q->records[i] = own->n_train;
    q->epoch[i] = own->n_train / fkt_network_batch(q, i);
    return FKT_OK;
}

static fkt_status take_sites(struct fkt_network_problem *q, const struct fkt_personal_split *split, double validation,
                             size_t *most)
{
    uint32_t *sites = &q->problem.sites;
    fkt_status st;
    FKT_TRY(fkt_alloc(&q->site, split->sites));
    FKT_TRY(fkt_alloc(&q->records, split->sites));
    FKT_TRY(fkt_alloc(&q->epoch, split->sites));
    for (uint32_t s = 0; s < split->sites; s++) {
        const size_t n = fkt_personal_count(&split->train, s);
        if (n < FKT_PERSONAL_LEAST) continue;
        q->site[*sites].site = s;
        FKT_TRY(divide(q, (*sites)++, split->train.record + split->train.start[s], n, validation));
        if (n > *most) *most = n;
    }
    if (!*sites)
        st = fkt_fail_hint(FKT_E_ARG, "use fewer sites or more records", "no site has %d records to train on",
                           FKT_PERSONAL_LEAST);
    q->problem.records = q->records;
    q->problem.epoch = q->epoch;
out:
    return st;
}

fkt_status fkt_network_problem_init(struct fkt_network_problem *q, const struct fkt_baselines_spec *spec,
                                    const struct fkt_personal_split *split, double validation)
{
    const size_t image = (size_t)3 * spec->data->size * spec->data->size, batch = spec->settings.batch;
    size_t most = 0;
    fkt_status st;
    memset(q, 0, sizeof *q);
    q->spec = spec;
    q->backend = fkt_learner_for(spec->device);
    q->problem = (struct fkt_problem){.self = q,
                                      .gradient = network_gradient,
                                      .descend = fkt_network_descend,
                                      .teach = network_teach,
                                      .validate = network_validate,
                                      .stop = network_stop};
    q->loss.temperature = 1;
    q->order_site = UINT32_MAX;
    q->views.flip = (int)spec->settings.flip;
    q->views.pad = spec->settings.pad;
    FKT_TRY(take_sites(q, split, validation, &most));
    FKT_TRY(fkt_personal_start(&q->model, spec->like, spec->data, spec->seed));
    FKT_TRY(fkt_network_layout(q));
    fkt_model_pixels(q->model, q->value);
    FKT_TRY(fkt_alloc(&q->order, most));
    FKT_TRY(fkt_alloc(&q->label, batch));
    FKT_TRY(fkt_alloc(&q->in, batch * image));
    FKT_TRY(fkt_alloc(&q->out, batch * q->model->n_classes));
    FKT_TRY(fkt_alloc(&q->slope, batch * q->model->n_classes));
    FKT_TRY(fkt_alloc(&q->teacher_out, batch * q->model->n_classes));
    FKT_TRY(fkt_alloc(&q->rgb, AT_ONCE * image));
    FKT_TRY(fkt_alloc(&q->logits, (size_t)AT_ONCE * q->model->n_classes));
out:
    return st;
}

void fkt_network_problem_clear(struct fkt_network_problem *q)
{
    for (uint32_t i = 0; i < q->problem.sites; i++) fkt_free(q->site[i].train);
    for (int k = 0; k < 2; k++) fkt_learner_free(q->learner[k]); /* they borrow the model's network */
    fkt_model_free(q->model);
    fkt_model_free(q->teacher);
    fkt_free(q->site);
    fkt_free(q->records);
    fkt_free(q->epoch);
    fkt_free(q->span);
    fkt_free(q->slot);
    fkt_free(q->start);
    fkt_free(q->order);
    fkt_free(q->label);
    fkt_free(q->in);
    fkt_free(q->out);
    fkt_free(q->slope);
    fkt_free(q->teacher_out);
    fkt_free(q->rgb);
    fkt_free(q->logits);
    memset(q, 0, sizeof *q);
}
