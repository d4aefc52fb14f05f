/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - a release becomes a labelled image set: sample, decode, export, with a card that says what is promised.
 *
 *   folder/  train/<class>/<number>.png + metadata.jsonl | dataset.npz | train-<shard>.tar
 *            grid.png  README.md  certificate.json
 *
 * Image number i of class k depends on (release, seed, k, i) alone. Chunks are sampled and decoded in parallel and
 * written in order, so the folder's bytes do not depend on threads, and memory does not grow with the number of
 * images. */
#include "round/walk.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "base/threads.h"
#include "images/card.h"

#include <string.h>

enum { CHUNK = 512, BATCH = 32, GRID_COLUMNS = 12, GRID_ROWS_MAX = 40 };

struct chunk {
    const struct fkt_walk *walk;
    const struct fkt_gaussians *g;
    uint64_t seed, first;
    uint32_t k;
    size_t n;
    uint8_t *rgb; /* (CHUNK, S, S, 3) */
};

static fkt_status make_some(void *ctx, size_t item, unsigned worker)
{
    struct chunk *c = ctx;
    size_t pixels = (size_t)c->walk->task.size * c->walk->task.size * 3, from = item * BATCH,
           n = c->n - from < BATCH ? c->n - from : BATCH;
    double *w = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&w, n * c->g->length));
    FKT_TRY(fkt_gaussians_sample(c->g, c->k, c->seed, c->first + from, n, w));
    FKT_TRY(fkt_walk_decode(c->walk, w, n, c->rgb + from * pixels));
out:
    fkt_free(w);
    return st;
}

fkt_status fkt_generate_tiles(const struct fkt_walk *w, const struct fkt_gaussians *g, uint64_t seed, uint32_t rows,
                              size_t cols, uint8_t *rgb)
{
    size_t pixels = (size_t)w->task.size * w->task.size * 3;
    fkt_status st = FKT_OK;
    for (uint32_t k = 0; k < rows; k++) {
        struct chunk c = {w, g, seed, 0, k, cols, rgb + k * cols * pixels};
        FKT_TRY(fkt_parallel(0, (cols + BATCH - 1) / BATCH, make_some, &c, NULL, "sampling"));
    }
out:
    return st;
}

static fkt_status write_images(const struct fkt_walk *w, const struct fkt_gaussians *g, const char *folder,
                               const struct fkt_generate_options *o)
{
    const struct fkt_task *t = &w->task;
    size_t pixels = (size_t)t->size * t->size * 3;
    struct fkt_export *e = NULL;
    struct fkt_meter meter;
    struct chunk c = {.walk = w, .g = g, .seed = o->seed};
    fkt_status st;
    fkt_meter_init(&meter, o->progress, "generating", (uint64_t)o->per_class * t->n_classes);
    FKT_TRY(fkt_alloc(&c.rgb, CHUNK * pixels));
    FKT_TRY(fkt_export_open(&e, folder, o->format, "train", (const char *const *)t->classes, t->n_classes, t->size,
                            o->per_class * t->n_classes));
    for (c.k = 0; c.k < t->n_classes; c.k++)
        for (c.first = 0; c.first < o->per_class; c.first += c.n) {
            c.n = o->per_class - c.first < CHUNK ? (size_t)(o->per_class - c.first) : CHUNK;
            FKT_TRY(fkt_parallel(o->threads, (c.n + BATCH - 1) / BATCH, make_some, &c, NULL, "generating"));
            for (size_t i = 0; i < c.n; i++) FKT_TRY(fkt_export_add(e, c.k, c.rgb + i * pixels));
            FKT_TRY(fkt_meter_add(&meter, c.n));
        }
    FKT_TRY(fkt_export_close(&e));
out:
    fkt_export_free(e);
    fkt_free(c.rgb);
    fkt_meter_release(&meter);
    return st;
}

static fkt_status write_grid(const struct fkt_walk *w, const struct fkt_gaussians *g, const char *folder,
                             const struct fkt_generate_options *o)
{
    size_t cols = o->grid_columns ? o->grid_columns : GRID_COLUMNS, pixels = (size_t)w->task.size * w->task.size * 3;
    uint32_t rows = g->classes < GRID_ROWS_MAX ? g->classes : GRID_ROWS_MAX, width, height;
    uint8_t *tiles = NULL, *sheet = NULL;
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&tiles, (size_t)rows * cols * pixels));
    FKT_TRY(fkt_generate_tiles(w, g, o->seed, rows, cols, tiles));
    FKT_TRY(fkt_grid(&sheet, &width, &height, tiles, rows, cols, w->task.size, (const char *const *)w->task.classes));
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
                             const struct fkt_generate_options *o)
{
    static const char *const formats[] = {"ImageFolder", "npz", "WebDataset"};
    const struct fkt_task *t = &r->task;
    struct fkt_card_hash hashes[] = {{"release", r->sha256},
                                     {"task", t->sha256},
                                     {"codec", t->codec_sha256},
                                     {"calibration", t->calibration_sha256}};
    struct fkt_text text;
    uint64_t *counts = NULL;
    uint8_t *below = NULL;
    char *certificate = NULL;
    fkt_status st;
    fkt_text_init(&text);
    FKT_TRY(fkt_alloc(&counts, t->n_classes));
    FKT_TRY(fkt_alloc(&below, t->n_classes));
    for (uint32_t k = 0; k < t->n_classes; k++) {
        counts[k] = o->per_class;
        below[k] = (uint8_t)fkt_gaussians_drowned(g, k);
    }
    FKT_TRY(fkt_card_text(&text, &(struct fkt_card){.name = t->name,
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
                                                    .mechanism = fkt_mechanism_name(t->privacy.mechanism),
                                                    .codec = t->codec_identity,
                                                    .calibration = t->calibration_source,
                                                    .sites = r->facts.sites,
                                                    .hashes = hashes,
                                                    .n_hashes = sizeof hashes / sizeof *hashes,
                                                    .insecure_seed = r->insecure_seed,
                                                    .version = fkt_version()}));
    FKT_TRY(fkt_text_status(&text));
    FKT_TRY(write_text(folder, "README.md", text.s));
    FKT_TRY(fkt_release_certificate(r, &certificate));
    FKT_TRY(write_text(folder, "certificate.json", certificate));
out:
    fkt_free(counts);
    fkt_free(below);
    fkt_string_free(certificate);
    fkt_text_release(&text);
    return st;
}

fkt_status fkt_generate(const struct fkt_release *r, const char *folder, const struct fkt_generate_options *o)
{
    struct fkt_folder f = {0};
    struct fkt_walk *w = NULL;
    struct fkt_gaussians g = {0};
    fkt_status st;
    if (o->per_class < 1) return fkt_fail(FKT_E_ARG, "at least one image per class must be asked for");
    FKT_TRY(fkt_folder_begin(&f, folder, o->force));
    FKT_TRY(fkt_release_walk(r, &w));
    FKT_TRY(fkt_release_gaussians(r, &o->estimate, &g));
    FKT_TRY(write_images(w, &g, f.tmp, o));
    FKT_TRY(write_grid(w, &g, f.tmp, o));
    FKT_TRY(write_card(r, &g, f.tmp, o));
    FKT_TRY(fkt_folder_commit(&f));
out:
    fkt_folder_fail(&f, st);
    fkt_gaussians_release(&g);
    fkt_walk_free(w);
    fkt_folder_release(&f);
    return st;
}
