/* SPDX-License-Identifier: Apache-2.0 */
/* whole_predict.c - images through a whole model.
 *
 *   rgb (n,S,S,3) -> each network, bytes in -> z -> u = map (z - centre) -> w -> scores of the head
 *
 * The same steps as the pipeline's, by the same functions; networks run in float as a codec's do. Engines are made on
 * first use, one for each network, device and precision, and kept. The batch is fixed by size and kind of device, so
 * that an image's scores do not depend on how many came with it. */
#include "learning/whole.h"

#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/moments.h"

#include "base/alloc.h"
#include "base/meter.h"
#include "base/threads.h"
#include "classifier/heads.h"
#include "nn/backends.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* Images of 16 MB are read at a time for an evaluation. */
enum { EVALUATE_BYTES = 1 << 24 };

struct prepared {
    struct fkt_device device;
    enum fkt_precision precision;
    struct fkt_engine *engine[FKT_HEAD_PARTS_MAX];
    struct prepared *next;
};

struct fkt_whole_engines {
    pthread_mutex_t lock;
    struct prepared *first;
};

fkt_status fkt_whole_engines_new(struct fkt_whole_engines **out)
{
    fkt_status st = fkt_alloc(out, 1);
    if (st == FKT_OK) pthread_mutex_init(&(*out)->lock, NULL);
    return st;
}

static void prepared_free(struct prepared *p)
{
    if (!p) return;
    for (int i = 0; i < FKT_HEAD_PARTS_MAX; i++) fkt_engine_free(p->engine[i]);
    fkt_free(p);
}

void fkt_whole_engines_free(struct fkt_whole_engines *e)
{
    if (!e) return;
    for (struct prepared *p = e->first, *next; p; p = next) {
        next = p->next;
        prepared_free(p);
    }
    pthread_mutex_destroy(&e->lock);
    fkt_free(e);
}

static uint32_t batch_of(const struct fkt_whole *m, struct fkt_device device)
{
    const int card = device.kind == FKT_DEVICE_CUDA;
    const uint32_t most = card ? 256 : 16, n = (1U << (card ? 20 : 14)) / (m->size * m->size);
    return n > most ? most : n < 2 ? 2 : n;
}

static fkt_status prepare(const struct fkt_whole *m, struct fkt_device device, enum fkt_precision precision,
                          struct prepared **out)
{
    struct prepared *p = NULL;
    float pixels[3][256];
    fkt_status st;
    FKT_TRY(fkt_alloc(&p, 1));
    p->device = device;
    p->precision = precision;
    for (uint32_t i = 0; i < m->parts; i++) {
        const struct fkt_whole_part *part = &m->part[i];
        const struct fkt_engine_spec spec = {.batch = batch_of(m, device),
                                             .height = m->size,
                                             .width = m->size,
                                             .precision = precision,
                                             .device = device.index,
                                             .pixels_in = (const float(*)[256])pixels};
        for (int v = 0; v < 3 * 256; v++)
            pixels[v / 256][v % 256] =
                (float)(v % 256) / 255.0F * part->pixel_scale[v / 256] + part->pixel_shift[v / 256];
        FKT_TRY(fkt_engine_new(&p->engine[i], fkt_backend_for(device), &part->net, part->weights, &spec));
    }
    *out = p;
    p = NULL;
out:
    prepared_free(p);
    return st;
}

static fkt_status engines_of(const struct fkt_whole *m, struct fkt_device device, enum fkt_precision precision,
                             const struct prepared **out)
{
    struct prepared *p;
    fkt_status st = FKT_OK;
    pthread_mutex_lock(&m->engines->lock);
    for (p = m->engines->first; p; p = p->next)
        if (p->precision == precision && p->device.kind == device.kind && p->device.index == device.index) break;
    if (!p) {
        st = prepare(m, device, precision, &p);
        if (st == FKT_OK) {
            p->next = m->engines->first;
            m->engines->first = p;
        }
    }
    pthread_mutex_unlock(&m->engines->lock);
    *out = p;
    return st;
}

/* One network's output x (D) -> its part of w. */
static fkt_status record(const struct fkt_whole_part *part, float *x, double *u, double *w)
{
    for (size_t i = 0; i < part->calibration.raw_dim; i++)
        x[i] = (float)(((double)x[i] - part->latent_shift) * part->latent_scale);
    fkt_calibration_forward(&part->calibration, x, u);
    return fkt_coordinates_forward(&part->coordinates, u, w);
}

struct work {
    const struct fkt_whole *m;
    const struct prepared *engines;
    const uint8_t *rgb;
    size_t n, batch;
    float *scores;
    struct fkt_meter meter;
};

/* w (n, m) of n images. */
static fkt_status vectors(const struct work *k, const uint8_t *rgb, size_t n, double *w)
{
    const struct fkt_whole *m = k->m;
    const size_t length = fkt_head_length(m->head);
    float *x = NULL;
    double *u = NULL;
    size_t at = 0;
    fkt_status st = FKT_OK;
    for (uint32_t p = 0; p < m->parts; p++) {
        const struct fkt_whole_part *part = &m->part[p];
        const size_t raw = part->calibration.raw_dim;
        FKT_TRY(fkt_alloc(&x, n * raw));
        FKT_TRY(fkt_alloc(&u, part->calibration.dim));
        FKT_TRY(fkt_engine_run_bytes(k->engines->engine[p], rgb, n, x));
        for (size_t i = 0; i < n; i++) FKT_TRY(record(part, x + i * raw, u, w + i * length + at));
        at += part->coordinates.length;
        fkt_free(x);
        fkt_free(u);
        x = NULL;
        u = NULL;
    }
out:
    fkt_free(x);
    fkt_free(u);
    return st;
}

static fkt_status predict_batch(void *ctx, size_t item, unsigned worker)
{
    struct work *k = ctx;
    const struct fkt_head *h = k->m->head;
    const size_t first = item * k->batch, n = k->n - first < k->batch ? k->n - first : k->batch;
    double *w = NULL, *scores = NULL, *scratch = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&w, n * h->length));
    FKT_TRY(fkt_alloc(&scores, h->classes));
    FKT_TRY(fkt_alloc(&scratch, h->length));
    FKT_TRY(vectors(k, k->rgb + first * 3 * k->m->size * k->m->size, n, w));
    for (size_t i = 0; i < n; i++) {
        fkt_head_scores(h, w + i * h->length, scores, scratch);
        for (uint32_t c = 0; c < h->classes; c++) {
            k->scores[(first + i) * h->classes + c] = (float)scores[c];
            if (!isfinite((float)scores[c]))
                FKT_TRY(fkt_fail(FKT_E_NUMERIC, "the score of image %zu for class %u is not finite", first + i, c));
        }
    }
    FKT_TRY(fkt_meter_add(&k->meter, n));
out:
    fkt_free(w);
    fkt_free(scores);
    fkt_free(scratch);
    return st;
}

fkt_status fkt_whole_predict(const struct fkt_whole *m, const uint8_t *rgb, size_t n, float *scores,
                             const struct fkt_predict_options *options)
{
    const struct fkt_predict_options plain = {0}, *o = options ? options : &plain;
    struct work k = {.m = m, .rgb = rgb, .n = n, .scores = scores};
    struct fkt_device device = o->device;
    fkt_status st;
    if (!n) return FKT_OK;
    fkt_meter_init(&k.meter, o->progress, "predicting", n);
    FKT_TRY(fkt_device_resolve(&device, NULL, 0));
    k.batch = batch_of(m, device);
    FKT_TRY(
        engines_of(m, device, o->dtype == FKT_LEARN_DTYPE_BF16 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32, &k.engines));
    FKT_TRY(fkt_parallel(o->threads, (n + k.batch - 1) / k.batch, predict_batch, &k, NULL, NULL));
out:
    fkt_meter_clear(&k.meter);
    return st;
}

fkt_status fkt_whole_open_dataset(struct fkt_dataset **out, const struct fkt_whole *m, const char *path,
                                  const struct fkt_dataset_options *options)
{
    struct fkt_dataset_options o = *options;
    const char **names = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&names, fkt_whole_classes(m)));
    for (uint32_t k = 0; k < fkt_whole_classes(m); k++) names[k] = fkt_whole_class(m, k);
    o.classes = names;
    o.n_classes = fkt_whole_classes(m);
    o.fit = m->fit;
    FKT_TRY(fkt_dataset_open(out, path, &o));
out:
    fkt_free(names);
    return st;
}

fkt_status fkt_whole_evaluate(struct fkt_evaluation *j, const struct fkt_whole *m, const struct fkt_dataset *ds,
                              const struct fkt_training_set_options *options)
{
    const struct fkt_predict_options predict = {
        .threads = options->threads, .progress = options->progress, .device = options->device};
    const size_t all = fkt_dataset_size(ds), most = 1 + EVALUATE_BYTES / ((size_t)m->size * m->size * 3);
    struct fkt_training_set part = {0};
    size_t *idx = NULL, n;
    float *scores = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&idx, most < all ? most : all));
    FKT_TRY(fkt_alloc(&scores, (most < all ? most : all) * fkt_whole_classes(m)));
    for (size_t first = 0; first < all; first += n) {
        n = all - first < most ? all - first : most;
        for (size_t i = 0; i < n; i++) idx[i] = first + i;
        FKT_TRY(fkt_training_set_read(&part, ds, idx, n, m->size, m->filter, NULL, options));
        FKT_TRY(fkt_whole_predict(m, part.rgb, part.n, scores, &predict));
        FKT_TRY(fkt_evaluation_add(j, scores, part.label, part.n));
        fkt_training_set_clear(&part);
    }
out:
    fkt_training_set_clear(&part);
    fkt_free(scores);
    fkt_free(idx);
    return st;
}
