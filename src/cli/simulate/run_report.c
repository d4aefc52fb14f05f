/* SPDX-License-Identifier: Apache-2.0 */
/* run_report.c - the pictures of a run: grid.png from the first release, and report.html with everything beside each
 * other. Real images, true counts, norms and the partition are shown because the data here is the user's own; the
 * page marks each of them as not private. */
#include "cli/simulate/run_report.h"

#include "base/alloc.h"
#include "base/file.h"
#include "codec/codec.h"
#include "cli/simulate/report.h"
#include "fedkt/learn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GRID_COLUMNS = 12, PAGE_COLUMNS = 8 };

struct png {
    uint8_t *bytes;
    size_t len;
};

static uint32_t shown_rows(const struct fkt_task *t)
{
    return t->n_classes < FKT_GRID_CLASSES ? t->n_classes : FKT_GRID_CLASSES;
}

/* tiles (rows, cols, S, S, 3) -> a sheet of at most FKT_GRID_CLASSES rows, as PNG bytes. */
static fkt_status sheet(struct png *out, const struct cli_outcome *o, const uint8_t *tiles, size_t cols)
{
    const struct fkt_task *t = fkt_pipeline_task(o->pipeline);
    size_t rows = shown_rows(t);
    uint32_t width, height;
    uint8_t *rgb = NULL;
    fkt_status st;
    FKT_TRY(
        fkt_grid_of(&rgb, &width, &height, tiles, rows, cols, t->size, (const char *const *)t->classes, t->n_classes));
    FKT_TRY(fkt_png_encode(&out->bytes, &out->len, rgb, width, height));
out:
    fkt_image_free(rgb);
    return st;
}

static fkt_status synthetic_sheet(struct png *out, const struct cli_outcome *o, const struct cli_arm *a, uint64_t seed,
                                  size_t cols)
{
    const struct fkt_task *t = fkt_pipeline_task(o->pipeline);
    uint32_t rows = shown_rows(t);
    uint8_t *tiles = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&tiles, rows * cols * t->size * t->size * 3));
    FKT_TRY(fkt_generate_tiles(o->pipeline, &a->shapes, seed, rows, cols, o->threads, tiles));
    FKT_TRY(sheet(out, o, tiles, cols));
out:
    fkt_free(tiles);
    return st;
}

/* The first training images of each class shown; a class with fewer leaves white tiles, an image that cannot be read is
 * passed over (the walk has counted it), and any other failure is one. */
static fkt_status real_sheet(struct png *out, const struct cli_outcome *o)
{
    const struct fkt_task *t = fkt_pipeline_task(o->pipeline);
    size_t pixels = (size_t)t->size * t->size * 3, *have = NULL, rows = shown_rows(t);
    uint8_t *tiles = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&have, rows));
    FKT_TRY(fkt_alloc(&tiles, rows * PAGE_COLUMNS * pixels));
    memset(tiles, 255, rows * PAGE_COLUMNS * pixels);
    for (size_t i = 0; i < o->n_train; i++) {
        uint32_t k = fkt_dataset_label(o->data, o->train[i]);
        if (k >= rows || have[k] == PAGE_COLUMNS) continue;
        st = fkt_dataset_read(o->data, o->train[i], t->size, t->filter, tiles + (k * PAGE_COLUMNS + have[k]) * pixels,
                              NULL);
        if (st == FKT_E_FORMAT || st == FKT_E_IO) continue;
        FKT_TRY(st);
        have[k]++;
    }
    FKT_TRY(sheet(out, o, tiles, PAGE_COLUMNS));
out:
    fkt_free(have);
    fkt_free(tiles);
    return st;
}

static fkt_status write_png(const char *folder, const char *name, const struct png *p)
{
    char *path = NULL;
    fkt_status st = fkt_path_join(&path, folder, name);
    if (st == FKT_OK) st = fkt_file_write(path, p->bytes, p->len, 0);
    fkt_free(path);
    return st;
}

static void fill_arm(struct fkt_report_arm *r, const struct cli_outcome *o, const struct cli_arm *a,
                     const struct png *p, uint8_t *below /* (K) */)
{
    const struct fkt_privacy_plan *plan = &a->release.plan;
    double rq = fkt_pipeline_task(o->pipeline)->coordinates.rq;
    *r = (struct fkt_report_arm){.name = a->name,
                                 .noisy_count = a->measured.count,
                                 .signal = a->measured.signal,
                                 .grid_png = p->bytes,
                                 .grid_len = p->len};
    for (int k = 0; k < FKT_HEAD_KINDS; k++) r->accuracy[k] = o->test_set ? fkt_score_accuracy(&a->score[k]) : NAN;
    r->accuracy[FKT_REPORT_NETWORK] = a->network;
    if (!a->is_private) {
        r->noisy_count = r->signal = NULL;
        return;
    }
    for (uint32_t k = 0; k < a->measured.classes; k++) below[k] = (uint8_t)fkt_gaussians_below_noise(&a->measured, k);
    r->below = below;
    r->epsilon = plan->spec.epsilon;
    r->delta = plan->spec.delta;
    r->mu = plan->mu;
    r->sigma_count = plan->sigma_count;
    r->sigma_sum = plan->sigma_sum / rq;
    r->sigma_moment = plan->sigma_moment / (rq * rq);
    r->adjacency = fkt_adjacency_name(plan->spec.adjacency);
    r->protects = fkt_adjacency_protects(plan->spec.adjacency);
    r->mechanism = fkt_mechanism_name(plan->spec.mechanism);
    (void)fkt_release_promise(&a->release, r->weak);
}

static void fill_marks(struct fkt_report *r, struct fkt_report_mark marks[2], const struct cli_outcome *o)
{
    const struct fkt_coordinates *c = &fkt_pipeline_task(o->pipeline)->coordinates;
    r->norms = (struct fkt_report_histogram){
        "log |u|", o->sim.norms.bins, FKT_NORM_BINS, o->sim.norms.lo, o->sim.norms.hi, marks, 2};
    if (c->kind == FKT_COORDINATE_CLIP) {
        marks[0] = (struct fkt_report_mark){"log R", log(c->radius)};
        r->norms.n_marks = 1;
    } else {
        marks[0] = (struct fkt_report_mark){"c - s", c->log_mean - c->log_spread};
        marks[1] = (struct fkt_report_mark){"c + s", c->log_mean + c->log_spread};
    }
}

/* Of the first release; the others went the same way. */
static struct fkt_report_aggregation aggregation(const struct cli_outcome *o)
{
    const struct fkt_federation *f = &o->arm[0].task.federation;
    const struct fkt_federate_result *r = &o->arm[0].round;
    struct fkt_report_aggregation a = {.sites = f->sites,
                                       .survivors = r->survivors,
                                       .dropped = f->dropped,
                                       .corrupt = f->corrupt,
                                       .degree = f->degree,
                                       .threshold = f->threshold,
                                       .bits = f->bits,
                                       .counted = o->arm[0].release.shares.counted,
                                       .up = r->up,
                                       .down = r->down,
                                       .packed = r->packed,
                                       .seconds = r->seconds,
                                       .throws = r->throws};
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++)
        a.lost[phase - FKT_SA_STATE_ADVERTISE] = r->lost[phase];
    return a;
}

static fkt_status write_page(const struct cli_sim *s, const struct cli_outcome *o, const char *folder,
                             const struct png *real, const struct png *made)
{
    const struct fkt_task *t = fkt_pipeline_task(o->pipeline);
    struct fkt_report_arm arms[CLI_ARMS_MAX + 1];
    struct fkt_report_mark marks[2];
    const struct fkt_report_phase phases[] = {{"encode", o->sim.seconds_encode},
                                              {"moments", o->sim.seconds_moments},
                                              {"aggregate", o->sim.seconds_aggregate},
                                              {"release", o->arm[0].seconds_release},
                                              {"generate", o->arm[0].seconds_generate},
                                              {"evaluate", o->seconds_evaluate},
                                              {"train", o->seconds_train}};
    char recipe[96];
    const struct fkt_codec *codec = fkt_pipeline_codec(o->pipeline);
    const int network = !fkt_codec_has_calibration(t->codec);
    const struct fkt_report_pair facts[] = {
        {"task", t->sha256},
        {"codec", t->codec_sha256},
        {"calibration", t->calibration_sha256},
        {"release", o->arm[0].release.sha256},
        {"numbers of the network", network ? cli_dtype_words(&s->codec.settings, codec) : NULL}};
    struct fkt_report r = {.title = s->title,
                           .command = s->command,
                           .dataset = s->data.path,
                           .format = fkt_dataset_format(o->data),
                           .codec = t->codec_identity,
                           .calibration = t->calibration_source,
                           .coordinates = fkt_coordinate_name(t->coordinates.kind),
                           .partition = s->partition,
                           .size = t->size,
                           .dim = t->coordinates.dim,
                           .length = t->coordinates.length,
                           .rq = t->coordinates.rq,
                           .classes = (const char *const *)t->classes,
                           .n_classes = t->n_classes,
                           .sites = o->sim.sites,
                           .survivors = o->sim.survivors,
                           .records = o->sim.records,
                           .test_records = o->n_test,
                           .owned = o->sim.counts,
                           .real_png = real->bytes,
                           .real_len = real->len,
                           .shown = shown_rows(t),
                           .reach = fkt_gaussians_reach(t->coordinates.length),
                           .arms = arms,
                           .n_arms = o->n_arms,
                           .phases = phases,
                           .n_phases = sizeof phases / sizeof *phases - !s->train,
                           .bytes_per_site = o->arm[0].round.survivors ? o->arm[0].round.up : o->sim.bytes_per_site,
                           .aggregation = aggregation(o),
                           .network = s->train ? fkt_architecture_name((enum fkt_architecture)(s->train - 1)) : NULL,
                           .network_recipe = recipe,
                           .composed_epsilon = o->composed_epsilon,
                           .facts = facts,
                           .n_facts = sizeof facts / sizeof *facts,
                           .insecure_seed = s->seeded,
                           .version = fkt_version()};
    uint64_t *counts = NULL;
    uint8_t *below = NULL;
    char *path = NULL;
    fkt_status st;
    snprintf(recipe, sizeof recipe, "%llu epoch%s on %llu pictures per class", (unsigned long long)s->epochs,
             s->epochs == 1 ? "" : "s", (unsigned long long)s->train_per_class);
    FKT_TRY(fkt_alloc(&counts, t->n_classes));
    FKT_TRY(fkt_alloc(&below, o->n_arms * t->n_classes));
    for (uint32_t i = 0; i < o->sim.sites; i++)
        for (uint32_t k = 0; k < t->n_classes; k++)
            if (o->sim.survived[i]) counts[k] += o->sim.counts[(size_t)i * t->n_classes + k];
    r.counts = counts;
    for (size_t i = 0; i < o->n_arms; i++) fill_arm(&arms[i], o, &o->arm[i], &made[i], below + i * t->n_classes);
    fill_marks(&r, marks, o);
    FKT_TRY(fkt_path_join(&path, folder, "report.html"));
    FKT_TRY(fkt_report_write(&r, path, FKT_FILE_PRIVATE));
out:
    fkt_free(path);
    fkt_free(counts);
    fkt_free(below);
    return st;
}

fkt_status cli_run_images(const struct cli_sim *s, const struct cli_outcome *o, const char *folder)
{
    struct png real = {0}, wide = {0}, made[CLI_ARMS_MAX + 1] = {{0}};
    fkt_status st;
    FKT_TRY(synthetic_sheet(&wide, o, &o->arm[0], s->seed, GRID_COLUMNS));
    FKT_TRY(write_png(folder, "grid.png", &wide));
    FKT_TRY(real_sheet(&real, o));
    for (size_t i = 0; i < o->n_arms; i++) FKT_TRY(synthetic_sheet(&made[i], o, &o->arm[i], s->seed, PAGE_COLUMNS));
    FKT_TRY(write_page(s, o, folder, &real, made));
out:
    fkt_image_free(wide.bytes);
    fkt_image_free(real.bytes);
    for (size_t i = 0; i < CLI_ARMS_MAX + 1; i++) fkt_image_free(made[i].bytes);
    return st;
}
