/* SPDX-License-Identifier: Apache-2.0 */
/* run_report.c - grid.png of a run, from the first release, and report.html, which compares all arms. Real images,
 * true counts, norms and the partition are shown because the data belongs to the user; the page marks each of them
 * as not private. */
#include "cli/simulate/run_report.h"

#include "base/alloc.h"
#include "base/file.h"
#include "codec/codec.h"
#include "cli/simulate/report.h"
#include "pipeline/guided_draw.h"
#include "fedkt/advanced/federation.h"
#include "fedkt/advanced/simulate.h"
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
static fkt_status sheet(struct png *out, const struct fkt_task *t, const uint8_t *tiles, size_t cols)
{
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

static fkt_status synthetic_sheet(struct png *out, const struct fkt_sweep *w, size_t arm, int guided, size_t cols)
{
    const struct fkt_task *t = fkt_pipeline_task(fkt_sweep_pipeline(w));
    uint32_t rows = shown_rows(t);
    uint8_t *tiles = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&tiles, rows * cols * t->size * t->size * 3));
    FKT_TRY(fkt_sweep_tiles(w, arm, guided, rows, cols, tiles));
    FKT_TRY(sheet(out, t, tiles, cols));
out:
    fkt_free(tiles);
    return st;
}

/* The first training images of each class shown. A class with fewer leaves white tiles. An image that cannot be read is
 * left out: the sweep has counted it. */
static fkt_status real_sheet(struct png *out, const struct cli_outcome *o)
{
    const struct fkt_task *t = fkt_pipeline_task(fkt_sweep_pipeline(o->sweep));
    size_t pixels = (size_t)t->size * t->size * 3, *have = NULL, rows = shown_rows(t), n;
    const size_t *train = fkt_sweep_train_records(o->sweep, &n);
    uint8_t *tiles = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&have, rows));
    FKT_TRY(fkt_alloc(&tiles, rows * PAGE_COLUMNS * pixels));
    memset(tiles, 255, rows * PAGE_COLUMNS * pixels);
    for (size_t i = 0; i < n; i++) {
        uint32_t k = fkt_dataset_label(o->data, train[i]);
        if (k >= rows || have[k] == PAGE_COLUMNS) continue;
        st = fkt_dataset_read(o->data, train[i], t->size, t->filter, tiles + (k * PAGE_COLUMNS + have[k]) * pixels,
                              NULL);
        if (st == FKT_E_FORMAT || st == FKT_E_IO) continue;
        FKT_TRY(st);
        have[k]++;
    }
    FKT_TRY(sheet(out, t, tiles, PAGE_COLUMNS));
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

int cli_below_noise(const struct fkt_sweep_arm *a, uint32_t k)
{
    for (uint32_t p = 0; p < a->parts; p++)
        if (fkt_gaussians_below_noise(&a->measured[p], k)) return 1;
    return 0;
}

static void fill_arm(struct fkt_report_arm *r, const struct fkt_sweep *w, size_t i, const struct png p[2],
                     uint8_t *below /* (parts, K) */)
{
    const struct fkt_sweep_arm *a = fkt_sweep_arm(w, i);
    const struct fkt_privacy_plan *plan;
    *r = (struct fkt_report_arm){.name = a->name,
                                 .grid_png = p[0].bytes,
                                 .grid_len = p[0].len,
                                 .unguided_png = p[1].bytes,
                                 .unguided_len = p[1].len};
    for (int k = 0; k < FKT_HEAD_KINDS; k++)
        r->accuracy[k] =
            fkt_sweep_test_data(w) ? fkt_score_accuracy(fkt_sweep_score(w, i, (enum fkt_head_kind)k, 0)) : NAN;
    r->accuracy[FKT_REPORT_NETWORK] = a->network;
    r->accuracy[FKT_REPORT_UNGUIDED] = a->unguided;
    if (!a->release) return;
    r->noisy_count = a->measured->count;
    plan = &a->release->plan;
    for (uint32_t j = 0; j < a->parts; j++, below += a->measured->classes) {
        const double radius = plan->spec.part[j].radius;
        r->part[j] = (struct fkt_report_noise){plan->sigma[j].sum / radius, plan->sigma[j].moment / (radius * radius),
                                               a->measured[j].signal, below};
        for (uint32_t k = 0; k < a->measured->classes; k++)
            below[k] = (uint8_t)fkt_gaussians_below_noise(&a->measured[j], k);
    }
    r->epsilon = plan->spec.epsilon;
    r->delta = plan->spec.delta;
    r->mu = plan->mu;
    r->sigma_count = plan->sigma_count;
    r->adjacency = fkt_adjacency_name(plan->spec.adjacency);
    r->protects = fkt_adjacency_protects(plan->spec.adjacency);
    r->question = fkt_adjacency_info((int)plan->spec.adjacency)->question;
    r->mechanism = fkt_mechanism_name(plan->spec.mechanism);
    (void)fkt_release_promise(a->release, r->weak);
}

static void fill_marks(struct fkt_report *r, struct fkt_report_mark marks[2], const struct fkt_sweep *w)
{
    const struct fkt_coordinates *c = &fkt_pipeline_task(fkt_sweep_pipeline(w))->part[0].coordinates;
    const struct fkt_norms *n = &fkt_sweep_simulation(w)->norms;
    r->norms = (struct fkt_report_histogram){"log |u|", n->bins, FKT_NORM_BINS, n->lo, n->hi, marks, 2};
    if (c->kind == FKT_COORDINATE_CLIP) {
        marks[0] = (struct fkt_report_mark){"log R", log(c->radius)};
        r->norms.n_marks = 1;
    } else {
        marks[0] = (struct fkt_report_mark){"c - s", c->log_mean - c->log_spread};
        marks[1] = (struct fkt_report_mark){"c + s", c->log_mean + c->log_spread};
    }
}

/* Of the first release; the others have the same settings. */
static struct fkt_report_aggregation aggregation(const struct fkt_sweep_arm *first)
{
    const struct fkt_federation *f = &first->task->federation;
    const struct fkt_division *d = &first->task->division;
    const struct fkt_sum *sum = &first->release->sum;
    const struct fkt_federate_result *r = first->round;
    struct fkt_report_aggregation a = {.sites = f->sites,
                                       .survivors = r->survivors,
                                       .dropped = f->dropped,
                                       .corrupt = f->corrupt,
                                       .degree = f->degree,
                                       .threshold = f->threshold,
                                       .bits = f->bits,
                                       .counted = first->release->shares.counted,
                                       .up = r->up,
                                       .down = r->down,
                                       .packed = r->packed,
                                       .seconds = r->seconds,
                                       .throws = r->throws};
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++)
        a.lost[phase - FKT_SA_STATE_ADVERTISE] = r->lost[phase];
    if (!d->number) return a;
    a.sites = d->sites;
    a.counted = sum->noise.counted;
    a.cohorts = d->number;
    a.in_sum = sum->n;
    a.covered = sum->covered;
    a.deviation = sqrt(sum->noise.variance_factor);
    return a;
}

enum { PHASES = 7 };

/* Release and generation times of the first arm, which represent the others; training only if there was one. */
static size_t fill_phases(struct fkt_report_phase out[PHASES], const struct fkt_sweep *w)
{
    const struct fkt_sweep_arm *first = fkt_sweep_arm(w, 0);
    struct fkt_sweep_seconds s;
    size_t n = 0;
    fkt_sweep_seconds(w, &s);
    out[n++] = (struct fkt_report_phase){"encode", s.encode};
    out[n++] = (struct fkt_report_phase){"moments", s.moments};
    out[n++] = (struct fkt_report_phase){"aggregate", s.aggregate};
    out[n++] = (struct fkt_report_phase){"release", first->seconds_release};
    out[n++] = (struct fkt_report_phase){"generate", first->seconds_generate};
    out[n++] = (struct fkt_report_phase){"evaluate", s.evaluate};
    if (fkt_sweep_network_name(w)) out[n++] = (struct fkt_report_phase){"train", s.train};
    return n;
}

/* Where images are guided, the network's column is called so, and one of unguided images stands beside it. */
static void name_networks(struct fkt_report *r, const struct fkt_sweep *w, char names[2][48],
                          char words[FKT_GUIDED_WORDS])
{
    int unguided = 0;
    r->guided = fkt_guided_words(fkt_sweep_guided(w), words);
    for (size_t i = 0; i < fkt_sweep_arms(w); i++) unguided |= fkt_sweep_arm(w, i)->unguided >= 0;
    if (!r->network || !unguided) return;
    snprintf(names[0], sizeof names[0], "%s, guided", r->network);
    snprintf(names[1], sizeof names[1], "%s, unguided", r->network);
    r->network = names[0];
    r->unguided_network = names[1];
}

/* What networks and parts of the record vector a page describes. */
struct record_vector {
    struct fkt_report_network network[FKT_PARTS_MAX];
    struct fkt_report_part part[FKT_PARTS_MAX];
    struct fkt_report_pair fact[2 * FKT_PARTS_MAX + 3];
    size_t n_facts;
};

static void describe(struct record_vector *v, const struct fkt_task *t, const char *release_sha256, const char *dtype)
{
    v->fact[v->n_facts++] = (struct fkt_report_pair){"task", t->sha256};
    for (uint32_t p = 0; p < t->parts; p++) {
        const struct fkt_task_part *part = &t->part[p];
        const struct fkt_coordinates *c = &part->coordinates;
        const char *kind = fkt_part_name(part->kind);
        v->network[p] = (struct fkt_report_network){
            kind, part->identity, part->calibration_source, fkt_coordinate_name(c->kind), c->dim, c->length, c->rq};
        v->fact[v->n_facts++] = (struct fkt_report_pair){kind, part->sha256};
        v->fact[v->n_facts++] = (struct fkt_report_pair){"calibration", part->calibration_sha256};
    }
    for (uint32_t p = 0; p < t->layout.parts; p++)
        v->part[p] = (struct fkt_report_part){t->joined ? "codec and guide" : fkt_part_name(t->part[p].kind),
                                              fkt_gaussians_reach(t->layout.length[p])};
    v->fact[v->n_facts++] = (struct fkt_report_pair){"release", release_sha256};
    v->fact[v->n_facts++] = (struct fkt_report_pair){"numbers of the network", dtype};
}

static fkt_status write_page(const struct cli_sim *s, const struct cli_outcome *o, const char *folder,
                             const struct png *real, struct png (*made)[2])
{
    const struct fkt_sweep *w = o->sweep;
    const struct fkt_task *t = fkt_pipeline_task(fkt_sweep_pipeline(w));
    const struct fkt_simulation *sim = fkt_sweep_simulation(w);
    const struct fkt_sweep_arm *first = fkt_sweep_arm(w, 0);
    struct fkt_report_phase phases[PHASES];
    struct fkt_report_arm arms[FKT_SWEEP_EPSILONS_MAX + 1];
    struct fkt_report_mark marks[2];
    char recipe[96], names[2][48], words[FKT_GUIDED_WORDS];
    const struct fkt_codec *codec = fkt_pipeline_encoder(fkt_sweep_pipeline(w), 0);
    const int network = fkt_codec_is_network(t->part[0].name);
    struct record_vector v = {.n_facts = 0};
    struct fkt_report r = {.title = s->title,
                           .command = s->command,
                           .dataset = s->data.path,
                           .format = fkt_dataset_format(o->data),
                           .partition = s->partition,
                           .size = t->size,
                           .networks = v.network,
                           .n_networks = t->parts,
                           .parts = v.part,
                           .n_parts = t->layout.parts,
                           .classes = (const char *const *)t->classes,
                           .n_classes = t->n_classes,
                           .sites = sim->sites,
                           .survivors = sim->survivors,
                           .records = sim->records,
                           .owned = sim->counts,
                           .real_png = real->bytes,
                           .real_len = real->len,
                           .shown = shown_rows(t),
                           .arms = arms,
                           .n_arms = fkt_sweep_arms(w),
                           .phases = phases,
                           .bytes_per_site = first->round->survivors ? first->round->up : sim->bytes_per_site,
                           .aggregation = aggregation(first),
                           .network = fkt_sweep_network_name(w),
                           .network_recipe = recipe,
                           .composed_epsilon = fkt_sweep_composed_epsilon(w),
                           .facts = v.fact,
                           .insecure_seed = s->seeded,
                           .version = fkt_version()};
    size_t n_test;
    uint64_t *counts = NULL;
    uint8_t *below = NULL;
    char *path = NULL;
    fkt_status st;
    describe(&v, t, first->release->sha256, network ? cli_dtype_words(&s->codec.settings, codec) : NULL);
    r.n_facts = v.n_facts;
    (void)fkt_sweep_test_records(w, &n_test);
    r.test_records = n_test;
    r.n_phases = fill_phases(phases, w);
    name_networks(&r, w, names, words);
    snprintf(recipe, sizeof recipe, "%llu epoch%s on %llu images per class", (unsigned long long)s->epochs,
             s->epochs == 1 ? "" : "s", (unsigned long long)s->train_per_class);
    FKT_TRY(fkt_alloc(&counts, t->n_classes));
    FKT_TRY(fkt_alloc(&below, fkt_sweep_arms(w) * t->layout.parts * t->n_classes));
    for (uint32_t i = 0; i < sim->sites; i++)
        for (uint32_t k = 0; k < t->n_classes; k++)
            if (sim->survived[i]) counts[k] += sim->counts[(size_t)i * t->n_classes + k];
    r.counts = counts;
    for (size_t i = 0; i < fkt_sweep_arms(w); i++)
        fill_arm(&arms[i], w, i, made[i], below + i * t->layout.parts * t->n_classes);
    fill_marks(&r, marks, w);
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
    struct png real = {0}, wide = {0}, made[FKT_SWEEP_EPSILONS_MAX + 1][2] = {{{0}}}; /* guided if they are; not */
    const int guided = fkt_sweep_guided(o->sweep)->kind != FKT_GUIDED_NONE;
    const int images = fkt_sweep_arm(o->sweep, 0)->images != NULL;
    fkt_status st = FKT_OK;
    if (images) FKT_TRY(synthetic_sheet(&wide, o->sweep, 0, 1, GRID_COLUMNS));
    if (images) FKT_TRY(write_png(folder, "grid.png", &wide));
    FKT_TRY(real_sheet(&real, o));
    for (size_t i = 0; images && i < fkt_sweep_arms(o->sweep); i++) {
        FKT_TRY(synthetic_sheet(&made[i][0], o->sweep, i, 1, PAGE_COLUMNS));
        if (guided) FKT_TRY(synthetic_sheet(&made[i][1], o->sweep, i, 0, PAGE_COLUMNS));
    }
    FKT_TRY(write_page(s, o, folder, &real, made));
out:
    fkt_image_free(wide.bytes);
    fkt_image_free(real.bytes);
    for (size_t i = 0; i < 2 * CLI_COUNT(made); i++) fkt_image_free(made[i / 2][i % 2].bytes);
    return st;
}
