/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - from a release to a labelled image dataset: sample, decode, export, with a card that states the promise.
 *
 *   folder/  train/<class>/<number>.png + train/metadata.jsonl | dataset.npz | train-<shard>.tar
 *            grid.png  README.md  certificate.json  images.json
 *
 * Image number i of class k depends on (release, seed, k, i) alone. Chunks are sampled, decoded and turned into files
 * in parallel and written in order, so the folder's bytes do not depend on threads, and memory grows with the number of
 * images by the 36 bytes of hash and label alone: images.json identifies the images that the certificate was written
 * for. */
#include "fedkt/generate.h"

#include "pipeline/draw.h"
#include "pipeline/fingerprint.h"
#include "pipeline/provenance.h"
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "base/threads.h"
#include "images/card.h"
#include "images/export.h"

#include <jansson.h>
#include <string.h>

enum { GRID_COLUMNS = 12 };

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

static fkt_status write_images(const struct fkt_pipeline *w, const struct fkt_gaussians *g, const char *folder,
                               const struct fkt_generate_options *o, char fingerprint[FKT_SHA256_HEX])
{
    const struct fkt_task *t = &w->task;
    unsigned threads = o->threads ? o->threads : fkt_cpu_count();
    size_t pixels = (size_t)t->size * t->size * 3, room;
    uint64_t all = (uint64_t)o->per_class * t->n_classes;
    struct fkt_export *e = NULL;
    struct fkt_labelled *made = NULL;
    struct marking marking = {.size = t->size};
    uint32_t *label = NULL;
    struct fkt_meter meter;
    struct fkt_drawing c = {.pipeline = w, .g = g, .seed = o->seed, .each = o->per_class, .meter = &meter};
    fkt_status st;
    room = fkt_draw_chunk_size(w, threads);
    fkt_meter_init(&meter, o->progress, "generating", all);
    FKT_TRY(fkt_alloc(&c.rgb, room * pixels));
    FKT_TRY(fkt_alloc(&label, room));
    FKT_TRY(fkt_alloc(&made, (size_t)all));
    marking.rgb = c.rgb;
    FKT_TRY(fkt_export_open(&e, folder, o->format, "train", (const char *const *)t->classes, t->n_classes, t->size,
                            o->per_class * t->n_classes));
    for (c.at = 0; c.at < all; c.at += c.n) {
        c.n = all - c.at < room ? (size_t)(all - c.at) : room;
        FKT_TRY(fkt_draw_chunk(&c, threads));
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

static fkt_status write_grid(const struct fkt_pipeline *w, const struct fkt_gaussians *g, const char *folder,
                             const struct fkt_generate_options *o)
{
    size_t cols = o->grid_columns ? o->grid_columns : GRID_COLUMNS, pixels = (size_t)w->task.size * w->task.size * 3;
    uint32_t rows = g->classes < FKT_GRID_CLASSES ? g->classes : FKT_GRID_CLASSES, width, height;
    uint8_t *tiles = NULL, *sheet = NULL;
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&tiles, (size_t)rows * cols * pixels));
    FKT_TRY(fkt_generate_tiles(w, g, o->seed, rows, cols, o->threads, tiles));
    FKT_TRY(fkt_grid_of(&sheet, &width, &height, tiles, rows, cols, w->task.size, (const char *const *)w->task.classes,
                        g->classes));
    FKT_TRY(fkt_path_join(&path, folder, "grid.png"));
    FKT_TRY(fkt_png_write(path, sheet, width, height, 0));
out:
    fkt_free(path);
    fkt_image_free(sheet);
    fkt_free(tiles);
    return st;
}

static fkt_status write_text(const char *folder, const char *name, const char *text)
{
    char *path = NULL;
    fkt_status st = fkt_path_join(&path, folder, name);
    if (st == FKT_OK) st = fkt_file_write(path, text, strlen(text), 0);
    fkt_free(path);
    return st;
}

static fkt_status write_card(const struct fkt_release *r, const struct fkt_gaussians *g, const char *folder,
                             const struct fkt_generate_options *o, const char *fingerprint)
{
    static const char *const formats[] = {"ImageFolder", "npz", "WebDataset"};
    const struct fkt_task *t = &r->task;
    struct fkt_card_hash hashes[] = {{"release", r->sha256},
                                     {"task", t->sha256},
                                     {"codec", t->part[0].sha256},
                                     {"calibration", t->part[0].calibration_sha256}};
    struct fkt_text text;
    uint64_t *counts = NULL;
    uint8_t *below = NULL;
    char *certificate = NULL;
    json_t *said = NULL;
    char why[FKT_PROMISE_WORDS];
    const int weak = fkt_release_promise(r, why) == FKT_PROMISE_WEAK;
    fkt_status st;
    fkt_text_init(&text);
    FKT_TRY(fkt_alloc(&counts, t->n_classes));
    FKT_TRY(fkt_alloc(&below, t->n_classes));
    for (uint32_t k = 0; k < t->n_classes; k++) {
        counts[k] = o->per_class;
        below[k] = (uint8_t)fkt_gaussians_below_noise(g, k);
    }
    FKT_TRY(fkt_release_certificate(r, &certificate));
    said = json_loads(certificate, 0, NULL);
    if (!said) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory while writing a dataset card");
        goto out;
    }
    FKT_TRY(fkt_card_text(&text,
                          &(struct fkt_card){.name = t->name,
                                             .classes = (const char *const *)t->classes,
                                             .counts = counts,
                                             .below = below,
                                             .simulated = r->facts.simulated,
                                             .composed_epsilon = r->facts.composed_epsilon,
                                             .n_classes = t->n_classes,
                                             .size = t->size,
                                             .format = formats[o->format],
                                             .split = "train",
                                             .epsilon = t->privacy.epsilon,
                                             .delta = t->privacy.delta,
                                             .mu = r->plan.mu,
                                             .adjacency = fkt_adjacency_name(t->privacy.adjacency),
                                             .hides = fkt_adjacency_info((int)t->privacy.adjacency)->hides,
                                             .mechanism = fkt_mechanism_name(t->privacy.mechanism),
                                             .codec = t->part[0].identity,
                                             .calibration = t->part[0].calibration_source,
                                             .sites = r->facts.sites,
                                             .holds_against = json_string_value(json_object_get(said, "holds_against")),
                                             .counted = r->shares.counted,
                                             .in_total = r->facts.survivors,
                                             .hashes = hashes,
                                             .n_hashes = sizeof hashes / sizeof *hashes,
                                             .insecure_seed = r->insecure_seed,
                                             .weak = weak ? why : NULL,
                                             .version = fkt_version()}));
    FKT_TRY(fkt_text_status(&text));
    FKT_TRY(write_text(folder, "README.md", text.s));
    FKT_TRY(write_text(folder, "certificate.json", certificate));
    FKT_TRY(fkt_origin_note(folder, r, certificate, o->per_class * t->n_classes, fingerprint, NULL));
out:
    fkt_free(counts);
    fkt_free(below);
    fkt_string_free(certificate);
    json_decref(said);
    fkt_text_clear(&text);
    return st;
}

fkt_status fkt_generate(const struct fkt_release *r, const char *folder, const struct fkt_generate_options *o)
{
    struct fkt_folder f = {0};
    struct fkt_pipeline *own = NULL;
    const struct fkt_pipeline *w = o->pipeline;
    struct fkt_gaussians g = {0};
    char fingerprint[FKT_SHA256_HEX];
    fkt_status st;
    if (o->per_class < 1) return fkt_fail(FKT_E_ARG, "at least one image per class must be asked for");
    FKT_TRY(fkt_task_has_images(&r->task));
    FKT_TRY(fkt_folder_begin(&f, folder, o->force));
    if (w) FKT_TRY(fkt_draw_check_pipeline(w, &r->task));
    else FKT_TRY(fkt_release_pipeline_codec(r, &o->settings, &own));
    if (!w) w = own;
    FKT_TRY(fkt_release_gaussians(r, 0, &o->estimate, &g));
    FKT_TRY(write_images(w, &g, f.tmp, o, fingerprint));
    FKT_TRY(write_grid(w, &g, f.tmp, o));
    FKT_TRY(write_card(r, &g, f.tmp, o, fingerprint));
    FKT_TRY(fkt_folder_commit(&f));
out:
    fkt_folder_fail(&f, st);
    fkt_gaussians_clear(&g);
    fkt_pipeline_free(own);
    fkt_folder_clear(&f);
    return st;
}
