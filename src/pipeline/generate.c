/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - from a release to a labelled image dataset: sample, decode, export, with a card that states the promise.
 *
 *   folder/  train/<class>/<number>.png + train/metadata.jsonl | dataset.npz | train-<shard>.tar | gen.npz
 *            grid.png  README.md  certificate.json  images.json, of an ImageFolder croissant.json
 *   pushed   the same with data/train/... and .gitattributes: a hub for datasets takes the folder as it is
 *
 * Image number i of class k depends on (release, seed, k, i) alone; generate_images.c makes them, generate_card.c what
 * describes them. */
#include "fedkt/generate.h"

#include "pipeline/gaussians.h"
#include "pipeline/generate_card.h"
#include "pipeline/generate_images.h"
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/file.h"
#include "images/card.h"

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

static fkt_status check_options(const struct fkt_generate_options *o)
{
    if (o->per_class < 1) return fkt_fail(FKT_E_ARG, "at least one image per class must be asked for");
    if (o->push_layout && o->format != FKT_EXPORT_FOLDER)
        return fkt_fail(FKT_E_ARG, "the layout for a hub is a folder of images, not '%s'", fkt_export_name(o->format));
    if (o->push_layout && o->per_class > FKT_PUSH_FILES)
        return fkt_fail_hint(FKT_E_ARG, "generate fewer, or several sets with other seeds",
                             "%zu images per class: a hub takes at most %d files in a folder", o->per_class,
                             FKT_PUSH_FILES);
    return fkt_publisher_check(&o->publisher);
}

/* Everything that can be refused is, before the first file. */
static fkt_status prepare(struct fkt_making *m, struct fkt_pipeline **own, struct fkt_gaussians *g)
{
    const struct fkt_generate_options *o = m->options;
    const struct fkt_release *r = m->release;
    fkt_status st;
    FKT_TRY(check_options(o));
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
    char fingerprint[FKT_SHA256_HEX], *images = NULL;
    fkt_status st;
    FKT_TRY(fkt_folder_check(folder, o->force));
    FKT_TRY(prepare(&m, &own, g));
    FKT_TRY(fkt_folder_begin(&f, folder, o->force));
    m.folder = f.tmp;
    if (o->push_layout) {
        FKT_TRY(fkt_path_join(&images, f.tmp, FKT_PUSH_FOLDER));
        FKT_TRY(fkt_mkdir(images, 0777));
    }
    m.images = images ? images : f.tmp;
    if (guided.way) FKT_TRY(fkt_making_partial(&partial, &m, folder));
    if (o->kept) *o->kept = partial ? fkt_partial_count(partial) : 0;
    FKT_TRY(grid_tiles(&m));
    FKT_TRY(fkt_making_images(&m, partial, fingerprint));
    FKT_TRY(write_grid(&m));
    FKT_TRY(fkt_making_card(&m, fingerprint));
    FKT_TRY(fkt_folder_commit(&f));
    fkt_partial_remove(partial);
out:
    fkt_folder_fail(&f, st);
    fkt_partial_free(partial);
    fkt_free(images);
    fkt_free(m.tiles);
    fkt_guided_draw_clear(&guided);
    fkt_gaussians_clear_all(g);
    fkt_pipeline_free(own);
    fkt_folder_clear(&f);
    return st;
}
