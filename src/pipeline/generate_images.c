/* SPDX-License-Identifier: Apache-2.0 */
/* generate_images.c - samples of a release to the files of a folder.
 *
 * Chunks are sampled, decoded and turned into files in parallel and written in order, so the folder's bytes do not
 * depend on threads, and memory grows with the number of images by the 36 bytes of hash and label alone. Guided images
 * are kept in a file beside the folder until it is complete (partial.h): chunks are then as small as keep every thread
 * busy, and a run that was interrupted makes only those that are missing, to the same bytes. */
#include "pipeline/generate_images.h"

#include "pipeline/draw.h"
#include "pipeline/fingerprint.h"
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/text.h"
#include "base/threads.h"
#include "images/export.h"

#include <string.h>

struct marking {
    const uint8_t *rgb; /* of a chunk */
    struct fkt_labelled *made;
    uint32_t size;
};

static fkt_status mark_one(void *ctx, size_t item, unsigned worker)
{
    const struct marking *m = ctx;
    (void)worker;
    fkt_fingerprint_pixels(&m->made[item].image, m->rgb + item * m->size * m->size * 3, m->size, m->size);
    return FKT_OK;
}

fkt_status fkt_making_partial(struct fkt_partial **out, const struct fkt_making *m, const char *folder)
{
    const struct fkt_generate_options *o = m->options;
    const struct fkt_guided_facts *f = &m->guided->facts;
    const struct fkt_task *t = &m->release->task;
    const struct fkt_codec *codec = m->pipeline->codec[m->guided->codec];
    char device[FKT_DEVICE_NAME];
    struct fkt_text key;
    fkt_status st;
    *out = NULL;
    fkt_text_init(&key);
    fkt_device_name(fkt_codec_device_used(codec), device);
    fkt_text_addf(&key, "%s release %s seed %llu each %zu estimator %d %.17g %.17g", fkt_version(), m->release->sha256,
                  (unsigned long long)o->seed, o->per_class, (int)o->estimate.estimator, o->estimate.tau,
                  o->estimate.pool);
    fkt_text_addf(&key, " guided %d %u %.17g %.17g %s on %s %s", (int)f->kind, f->steps, f->rho, f->rate,
                  f->twin_sha256, device, fkt_codec_dtype_name(fkt_codec_dtype_used(codec)));
    FKT_TRY(fkt_text_status(&key));
    FKT_TRY(fkt_partial_open(out, folder, key.s, (size_t)t->size * t->size * 3, o->force));
out:
    fkt_text_clear(&key);
    return st;
}

/* The next chunk: images that are kept, or new ones, which are then kept. */
static fkt_status next_chunk(struct fkt_drawing *c, struct fkt_partial *partial, unsigned threads)
{
    const uint64_t have = partial ? fkt_partial_count(partial) : 0;
    fkt_status st;
    if (c->at < have) {
        if (have - c->at < c->n) c->n = (size_t)(have - c->at);
        FKT_TRY(fkt_partial_read(partial, c->at, c->rgb, c->n));
        FKT_TRY(fkt_meter_add(c->meter, c->n));
        goto out;
    }
    FKT_TRY(fkt_draw_chunk(c, threads));
    if (partial) FKT_TRY(fkt_partial_add(partial, c->rgb, c->n));
out:
    return st;
}

static void keep_tiles(const struct fkt_making *m, const struct fkt_drawing *c)
{
    const size_t pixels = (size_t)m->pipeline->task.size * m->pipeline->task.size * 3;
    for (size_t i = 0; m->tiles && i < c->n; i++) {
        const uint64_t k = (c->at + i) / c->each, number = (c->at + i) % c->each;
        if (k < m->rows && number < m->columns)
            memcpy(m->tiles + ((size_t)k * m->columns + (size_t)number) * pixels, c->rgb + i * pixels, pixels);
    }
}

static size_t chunk_size(const struct fkt_making *m, const struct fkt_drawing *c, unsigned threads)
{
    return m->guided->facts.kind == FKT_GUIDED_GRADIENT ? c->batch * threads
                                                        : fkt_draw_chunk_size(m->pipeline, threads);
}

fkt_status fkt_making_images(const struct fkt_making *m, struct fkt_partial *partial, char fingerprint[FKT_SHA256_HEX])
{
    const struct fkt_generate_options *o = m->options;
    const struct fkt_task *t = &m->pipeline->task;
    const unsigned threads = o->threads ? o->threads : fkt_cpu_count();
    const uint64_t all = (uint64_t)o->per_class * t->n_classes;
    struct fkt_export *e = NULL;
    struct fkt_labelled *made = NULL;
    struct marking marking = {.size = t->size};
    uint32_t *label = NULL;
    struct fkt_meter meter;
    struct fkt_drawing c = {.pipeline = m->pipeline, .g = m->g, .seed = o->seed, .each = o->per_class, .meter = &meter};
    size_t most;
    fkt_status st;
    fkt_guided_draw_attach(m->guided, &c);
    most = chunk_size(m, &c, threads);
    fkt_meter_init(&meter, o->progress, "generating", all);
    FKT_TRY(fkt_alloc(&c.rgb, most * t->size * t->size * 3));
    FKT_TRY(fkt_alloc(&label, most));
    FKT_TRY(fkt_alloc(&made, (size_t)all));
    marking.rgb = c.rgb;
    FKT_TRY(fkt_export_open(&e, m->images, o->format, "train", (const char *const *)t->classes, t->n_classes, t->size,
                            o->per_class * t->n_classes));
    for (c.at = 0; c.at < all; c.at += c.n) {
        c.n = all - c.at < most ? (size_t)(all - c.at) : most;
        FKT_TRY(next_chunk(&c, partial, threads));
        keep_tiles(m, &c);
        for (size_t i = 0; i < c.n; i++) made[c.at + i].label = label[i] = (uint32_t)((c.at + i) / c.each);
        marking.made = made + c.at;
        FKT_TRY(fkt_parallel(threads, c.n, mark_one, &marking, NULL, NULL));
        FKT_TRY(fkt_export_add_some(e, label, c.rgb, c.n, threads));
    }
    FKT_TRY(fkt_export_close(&e));
    fkt_labelled_end(made, (size_t)all, (const char *const *)t->classes, fingerprint);
out:
    fkt_export_free(e);
    fkt_free(made);
    fkt_free(label);
    fkt_free(c.rgb);
    fkt_meter_clear(&meter);
    return st;
}

fkt_status fkt_draw_tiles(const struct fkt_pipeline *w, const struct fkt_gaussians *g, struct fkt_guided_draw *guided,
                          uint64_t seed, uint32_t rows, size_t cols, unsigned threads, uint8_t *rgb)
{
    struct fkt_drawing d = {.pipeline = w, .g = g, .seed = seed, .each = cols, .n = rows * cols, .rgb = rgb};
    fkt_guided_draw_attach(guided, &d);
    return fkt_draw_chunk(&d, threads);
}

fkt_status fkt_generate_tiles(const struct fkt_pipeline *w, const struct fkt_gaussians *g,
                              const struct fkt_guided_options *options, uint64_t seed, uint32_t rows, size_t cols,
                              unsigned threads, uint8_t *rgb)
{
    const struct fkt_guided_options none = {.kind = FKT_GUIDED_NONE};
    struct fkt_guided_draw guided = {0};
    fkt_status st;
    FKT_TRY(fkt_guided_draw_open(&guided, w, options ? options : &none, threads));
    FKT_TRY(fkt_draw_tiles(w, g, &guided, seed, rows, cols, threads, rgb));
out:
    fkt_guided_draw_clear(&guided);
    return st;
}
