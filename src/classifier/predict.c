/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - prediction: images in, logits and features out.
 *
 *   rgb (n,S,S,3) -> normalised (n,3,S,S) -> network up to the mean -> features (n,F) -> last layer -> logits (n,K)
 *
 * The network up to the mean runs through a forward engine with folded norms, which also normalises. Engines are made
 * on first use, one for each precision, device and kind of input, and kept until the weights change. The last layer is
 * a plain loop with sums in double: it costs less than a thousandth of the rest, its input is needed anyway (a head is
 * tuned on features), and in bfloat16 it saves the logits one more rounding.
 *
 * The batch depends on stem, size and kind of device alone. Libraries choose kernels by batch, so an image's logits
 * would otherwise depend on how many came with it; one thread computes each batch. */
#include "classifier/model.h"

#include "base/alloc.h"
#include "base/meter.h"
#include "base/threads.h"
#include "nn/backends.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* A prepared network; a list, because a model may run on several cards. */
struct prepared {
    struct fkt_device device;
    enum fkt_precision precision;
    int bytes; /* 1: takes rgb; 0: normalised floats */
    struct fkt_engine *engine;
    struct prepared *next;
};

struct fkt_model_engines {
    pthread_mutex_t lock;
    struct fkt_net body; /* the model's network without its last layer; borrows everything */
    struct fkt_weights *weights;
    struct prepared *first;
};

fkt_status fkt_model_engines_new(struct fkt_model_engines **out)
{
    fkt_status st = fkt_alloc(out, 1);
    if (st == FKT_OK) pthread_mutex_init(&(*out)->lock, NULL);
    return st;
}

void fkt_model_engines_drop(struct fkt_model_engines *e)
{
    for (struct prepared *p = e->first, *next; p; p = next) {
        next = p->next;
        fkt_engine_free(p->engine);
        fkt_free(p);
    }
    e->first = NULL;
    fkt_weights_free(e->weights);
    e->weights = NULL;
}

void fkt_model_engines_free(struct fkt_model_engines *e)
{
    if (!e) return;
    fkt_model_engines_drop(e);
    pthread_mutex_destroy(&e->lock);
    fkt_free(e);
}

void fkt_model_last_layer(const struct fkt_model *m, const float *features, size_t n, float *logits)
{
    const float *weight = m->array[m->net.n_slots - 2], *bias = m->array[m->net.n_slots - 1];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m->n_classes; k++) {
            const float *x = features + i * m->features, *w = weight + k * m->features;
            double sum = bias[k];
            for (size_t f = 0; f < m->features; f++) sum += (double)w[f] * x[f];
            logits[i * m->n_classes + k] = (float)sum;
        }
}

/* Images at a time: as many as fill the first maps with 2^16 pixels, at most 16. With resnet18 at 32 px an image takes
 * 12.5 ms alone, 7.3 among 16, 6.6 among 64; at 64 px 32, 22.7 and 21.5. Larger batches would gain little, and the
 * padding of an incomplete batch is wasted work. A card needs more to be busy: 2^20 pixels, at most 256. */
static uint32_t batch_of(const struct fkt_model *m, struct fkt_device device)
{
    const int card = device.kind == FKT_DEVICE_CUDA;
    const uint32_t side = m->stem == FKT_STEM_IMAGENET ? (m->size + 3) / 4 : m->size, most = card ? 256 : 16;
    const uint32_t n = (1U << (card ? 20 : 16)) / (side * side);
    return n > most ? most : n < 1 ? 1 : n;
}

/* The lock is held. */
static fkt_status prepare(struct fkt_model_engines *e, const struct fkt_engine_spec *spec, struct fkt_device device,
                          struct prepared **out)
{
    struct prepared *p = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&p, 1));
    p->device = device;
    p->precision = spec->precision;
    p->bytes = spec->pixels_in != NULL;
    FKT_TRY(fkt_engine_new(&p->engine, fkt_backend_for(device), &e->body, e->weights, spec));
    p->next = e->first;
    *out = e->first = p;
    p = NULL;
out:
    fkt_free(p);
    return st;
}

static fkt_status engine_of(const struct fkt_model *m, enum fkt_learn_dtype dtype, struct fkt_device device, int bytes,
                            struct fkt_engine **out)
{
    struct fkt_model_engines *e = m->engines;
    float pixels[3][256];
    const struct fkt_engine_spec spec = {
        .batch = batch_of(m, device),
        .height = m->size,
        .width = m->size,
        .precision = dtype == FKT_LEARN_DTYPE_BF16 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32,
        .device = device.index,
        .pixels_in = bytes ? (const float(*)[256])pixels : NULL,
    };
    struct prepared *p = NULL;
    fkt_status st = FKT_OK;
    *out = NULL;
    fkt_model_pixels(m, pixels);
    pthread_mutex_lock(&e->lock);
    if (!e->weights) {
        e->body = m->net;
        e->body.n_ops--;
        st = fkt_weights_from_arrays(&e->weights, &m->net, (const float *const *)m->array);
    }
    for (p = e->first; p; p = p->next)
        if (p->precision == spec.precision && p->bytes == bytes && p->device.kind == device.kind &&
            p->device.index == device.index)
            break;
    if (st == FKT_OK && !p) st = prepare(e, &spec, device, &p);
    if (st == FKT_OK) *out = p->engine;
    pthread_mutex_unlock(&e->lock);
    return st;
}

struct work {
    const struct fkt_model *m;
    struct fkt_engine *engine;
    const uint8_t *rgb;
    const float *ready; /* (n, 3, S, S), used instead of rgb */
    size_t n, batch;
    float *logits, *features;
    struct fkt_meter meter;
};

static fkt_status predict_batch(void *ctx, size_t item, unsigned worker)
{
    struct work *w = ctx;
    const struct fkt_model *m = w->m;
    const size_t first = item * w->batch, n = w->n - first < w->batch ? w->n - first : w->batch;
    const size_t image = (size_t)3 * m->size * m->size;
    float *features = NULL, *logits = w->logits + first * m->n_classes;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&features, n * m->features));
    if (w->ready) FKT_TRY(fkt_engine_run(w->engine, w->ready + first * image, n, features));
    else FKT_TRY(fkt_engine_run_bytes(w->engine, w->rgb + first * image, n, features));
    fkt_model_last_layer(m, features, n, logits);
    for (size_t i = 0; i < n * m->n_classes; i++)
        if (!isfinite(logits[i]))
            FKT_TRY(fkt_fail_hint(FKT_E_NUMERIC, "the model has diverged or is damaged: train it at a lower rate",
                                  "the model's output for image %zu is not finite", first + i / m->n_classes));
    if (w->features) memcpy(w->features + first * m->features, features, n * m->features * sizeof *features);
    FKT_TRY(fkt_meter_add(&w->meter, n));
out:
    fkt_free(features);
    return st;
}

static fkt_status run_all(struct work *w, const struct fkt_predict_options *o)
{
    struct fkt_device device = o->device;
    fkt_status st;
    if (!w->n) return FKT_OK;
    fkt_meter_init(&w->meter, o->progress, "predicting", w->n);
    FKT_TRY(fkt_device_resolve(&device, NULL, 0));
    w->batch = batch_of(w->m, device);
    FKT_TRY(engine_of(w->m, o->dtype, device, !w->ready, &w->engine));
    FKT_TRY(fkt_parallel(o->threads, (w->n + w->batch - 1) / w->batch, predict_batch, w, NULL, NULL));
out:
    fkt_meter_clear(&w->meter);
    return st;
}

fkt_status fkt_model_predict(const struct fkt_model *m, const uint8_t *rgb, size_t n, float *logits, float *features,
                             const struct fkt_predict_options *options)
{
    const struct fkt_predict_options plain = {0};
    struct work w = {.m = m, .rgb = rgb, .n = n, .logits = logits, .features = features};
    return run_all(&w, options ? options : &plain);
}

fkt_status fkt_model_forward(const struct fkt_model *m, const float *in, size_t n, float *logits, unsigned threads,
                             struct fkt_device device)
{
    const struct fkt_predict_options options = {.threads = threads, .device = device};
    struct work w = {.m = m, .ready = in, .n = n, .logits = logits};
    return run_all(&w, &options);
}
