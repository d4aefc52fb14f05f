/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - from a release to a labelled image dataset: sample, decode, export, with a card that states the promise.
 *
 *   folder/  train/<class>/<number>.png + train/metadata.jsonl | dataset.npz | train-<shard>.tar
 *            grid.png  README.md  certificate.json  images.json
 *
 * Image number i of class k depends on (release, seed, k, i) alone; generate_images.c makes them. images.json
 * identifies the images that the certificate was written for. */
#include "fedkt/generate.h"

#include "pipeline/gaussians.h"
#include "pipeline/generate_images.h"
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

/* The tiles of grid.png are images of the folder where it has enough of each class: guided ones are not made twice. */
static fkt_status grid_tiles(struct fkt_making *m)
{
    const struct fkt_generate_options *o = m->options;
    const struct fkt_task *t = &m->release->task;
    fkt_status st;
    m->rows = t->n_classes < FKT_GRID_CLASSES ? t->n_classes : FKT_GRID_CLASSES;
    m->columns = o->grid_columns ? o->grid_columns : GRID_COLUMNS;
    if (m->guided->way && m->columns > o->per_class) m->columns = o->per_class;
    FKT_TRY(fkt_alloc(&m->tiles, m->rows * m->columns * t->size * t->size * 3));
    if (m->columns > o->per_class)
        FKT_TRY(fkt_draw_tiles(m->pipeline, m->g, m->guided, o->seed, m->rows, m->columns, o->threads, m->tiles));
out:
    return st;
}

static fkt_status write_grid(const struct fkt_making *m)
{
    const struct fkt_task *t = &m->release->task;
    uint32_t width, height;
    uint8_t *sheet = NULL;
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_grid_of(&sheet, &width, &height, m->tiles, m->rows, m->columns, t->size,
                        (const char *const *)t->classes, t->n_classes));
    FKT_TRY(fkt_path_join(&path, m->folder, "grid.png"));
    FKT_TRY(fkt_png_write(path, sheet, width, height, 0));
out:
    fkt_free(path);
    fkt_image_free(sheet);
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

static fkt_status write_card(const struct fkt_making *m, const char *fingerprint)
{
    const struct fkt_release *r = m->release;
    const struct fkt_generate_options *o = m->options;
    static const char *const formats[] = {"ImageFolder", "npz", "WebDataset"};
    const struct fkt_task *t = &r->task;
    const struct fkt_task_part *guide = fkt_task_part_of(t, FKT_PART_GUIDE);
    struct fkt_card_hash hashes[6] = {{"release", r->sha256},
                                      {"task", t->sha256},
                                      {"codec", t->part[0].sha256},
                                      {"calibration", t->part[0].calibration_sha256}};
    size_t n_hashes = 4;
    char guided[FKT_GUIDED_WORDS];
    struct fkt_text text;
    uint64_t *counts = NULL;
    uint8_t *below = NULL;
    char *certificate = NULL;
    json_t *said = NULL;
    char why[FKT_PROMISE_WORDS];
    const int weak = fkt_release_promise(r, why) == FKT_PROMISE_WEAK;
    fkt_status st;
    fkt_text_init(&text);
    if (guide) {
        hashes[n_hashes++] = (struct fkt_card_hash){"guide", guide->sha256};
        hashes[n_hashes++] = (struct fkt_card_hash){"calibration of the guide", guide->calibration_sha256};
    }
    FKT_TRY(fkt_alloc(&counts, t->n_classes));
    FKT_TRY(fkt_alloc(&below, t->n_classes));
    for (uint32_t k = 0; k < t->n_classes; k++) {
        counts[k] = o->per_class;
        below[k] = (uint8_t)fkt_gaussians_below_noise(m->g, k);
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
                                             .counted = r->sum.n ? r->sum.noise.counted : r->shares.counted,
                                             .in_total = r->facts.survivors,
                                             .hashes = hashes,
                                             .n_hashes = n_hashes,
                                             .guide = guide ? guide->identity : NULL,
                                             .guided = fkt_guided_words(&m->guided->facts, guided),
                                             .insecure_seed = r->insecure_seed,
                                             .weak = weak ? why : NULL,
                                             .version = fkt_version()}));
    FKT_TRY(fkt_text_status(&text));
    FKT_TRY(write_text(m->folder, "README.md", text.s));
    FKT_TRY(write_text(m->folder, "certificate.json", certificate));
    FKT_TRY(fkt_origin_note(m->folder, r, certificate, o->per_class * t->n_classes, fingerprint, &m->guided->facts));
out:
    fkt_free(counts);
    fkt_free(below);
    fkt_string_free(certificate);
    json_decref(said);
    fkt_text_clear(&text);
    return st;
}

/* Everything that can be refused is, before the first file. */
static fkt_status prepare(struct fkt_making *m, struct fkt_pipeline **own, struct fkt_gaussians *g)
{
    const struct fkt_generate_options *o = m->options;
    const struct fkt_release *r = m->release;
    fkt_status st;
    if (o->per_class < 1) return fkt_fail(FKT_E_ARG, "at least one image per class must be asked for");
    FKT_TRY(fkt_release_has_images(r));
    m->pipeline = o->pipeline;
    if (m->pipeline) FKT_TRY(fkt_draw_check_pipeline(m->pipeline, &r->task));
    else if (fkt_guided_needs_network(&o->guided)) FKT_TRY(fkt_release_pipeline(r, &o->settings, own));
    else FKT_TRY(fkt_release_pipeline_codec(r, &o->settings, own));
    if (!m->pipeline) m->pipeline = *own;
    FKT_TRY(fkt_guided_draw_open(m->guided, m->pipeline, &o->guided, o->threads));
    if (o->made) *o->made = m->guided->facts;
    FKT_TRY(fkt_release_gaussians_all(r, &o->estimate, g));
    m->g = g;
out:
    return st;
}

fkt_status fkt_generate(const struct fkt_release *r, const char *folder, const struct fkt_generate_options *o)
{
    struct fkt_folder f = {0};
    struct fkt_pipeline *own = NULL;
    struct fkt_gaussians g[FKT_PARTS_MAX] = {{0}};
    struct fkt_guided_draw guided = {0};
    struct fkt_partial *partial = NULL;
    struct fkt_making m = {.release = r, .options = o, .guided = &guided};
    char fingerprint[FKT_SHA256_HEX];
    fkt_status st;
    FKT_TRY(fkt_folder_check(folder, o->force));
    FKT_TRY(prepare(&m, &own, g));
    FKT_TRY(fkt_folder_begin(&f, folder, o->force));
    m.folder = f.tmp;
    if (guided.way) FKT_TRY(fkt_making_partial(&partial, &m, folder));
    if (o->kept) *o->kept = partial ? fkt_partial_count(partial) : 0;
    FKT_TRY(grid_tiles(&m));
    FKT_TRY(fkt_making_images(&m, partial, fingerprint));
    FKT_TRY(write_grid(&m));
    FKT_TRY(write_card(&m, fingerprint));
    FKT_TRY(fkt_folder_commit(&f));
    fkt_partial_remove(partial);
out:
    fkt_folder_fail(&f, st);
    fkt_partial_free(partial);
    fkt_free(m.tiles);
    fkt_guided_draw_clear(&guided);
    fkt_gaussians_clear_all(g);
    fkt_pipeline_free(own);
    fkt_folder_clear(&f);
    return st;
}
