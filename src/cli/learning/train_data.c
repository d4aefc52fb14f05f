/* SPDX-License-Identifier: Apache-2.0 */
/* train_data.c - the pictures that `fedkt train` learns from.
 *
 *   --data PATH     read once
 *   --release FILE  drawn once; with --fresh anew for each epoch: samples e*N .. (e+1)*N - 1 of every class in epoch e,
 *                   so that a run that is resumed draws the same again
 *   --mix PATH      real ones beside them
 *   --holdout F    of the first two, never of --mix; with --fresh samples that no epoch ever sees
 *
 * Classes stand in the order of the model that the run starts from or is taught by, where it has the same ones. */
#include "cli/learning/train.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { USUAL_SIZE = 32 };

void cli_images_clear(struct cli_images *p)
{
    fkt_training_set_clear(&p->set);
    fkt_training_set_clear(&p->mix);
    fkt_training_set_clear(&p->held);
    fkt_skipped_clear(&p->skipped);
    fkt_pipeline_free(p->pipeline);
    fkt_release_clear(&p->release);
    memset(p, 0, sizeof *p);
}

/* Where the model has class `name`; its number of classes: nowhere. */
static uint32_t place_in(const struct fkt_model *m, const char *name)
{
    uint32_t k = 0;
    while (k < fkt_model_classes(m) && strcmp(fkt_model_class(m, k), name) != 0) k++;
    return k;
}

/* The same names in the model's order; a pool with other names stays as it is. */
static fkt_status align(struct fkt_training_set *p, const struct fkt_model *m)
{
    uint32_t *to = NULL;
    char **names = NULL;
    fkt_status st = FKT_OK;
    if (!m || !fkt_model_named(m) || p->n_classes != fkt_model_classes(m)) return FKT_OK;
    FKT_TRY(fkt_alloc(&to, p->n_classes));
    FKT_TRY(fkt_alloc(&names, p->n_classes));
    for (uint32_t k = 0; k < p->n_classes; k++) {
        to[k] = place_in(m, p->classes[k]);
        if (to[k] == p->n_classes) goto out;
        names[to[k]] = p->classes[k];
    }
    for (size_t i = 0; i < p->n; i++) p->label[i] = to[p->label[i]];
    memcpy(p->classes, names, p->n_classes * sizeof *names);
out:
    fkt_free(to);
    fkt_free(names);
    return st;
}

static fkt_status draw(struct cli_images *p, struct fkt_training_set *into, uint64_t first, size_t per_class)
{
    struct fkt_draw_options d = p->draw;
    fkt_status st;
    d.first = first;
    d.per_class = per_class;
    FKT_TRY(fkt_training_set_draw(into, &p->release, &d, &p->options));
    FKT_TRY(align(into, p->like));
out:
    return st;
}

/* An epoch of its own, with the real ones. */
static fkt_status draw_epoch(struct cli_images *p, uint32_t epoch)
{
    fkt_status st;
    fkt_training_set_clear(&p->set);
    FKT_TRY(draw(p, &p->set, (uint64_t)epoch * p->draw.per_class, p->draw.per_class));
    if (p->mix.n) FKT_TRY(fkt_training_set_append(&p->set, &p->mix));
    p->epoch = epoch;
out:
    return st;
}

fkt_status cli_images_of_epoch(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    struct cli_images *p = ctx;
    fkt_status st = FKT_OK;
    if (p->fresh && epoch != p->epoch) FKT_TRY(draw_epoch(p, epoch));
    *out = (struct fkt_images){p->set.rgb, p->set.label, p->set.n, p->set.size};
out:
    return st;
}

static fkt_status open_release(struct cli_images *p, const struct cli_train *a)
{
    struct fkt_codec_settings settings;
    uint64_t samples;
    fkt_status st;
    cli_codec_settings(&a->settings, &settings);
    FKT_TRY(fkt_release_load(&p->release, a->release));
    if (a->size && a->size != p->release.task.size) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "leave --size away: a release has one size",
                           "--size is %llu, but the release "
                           "is of pictures of %u px",
                           (unsigned long long)a->size, p->release.task.size);
        goto out;
    }
    FKT_TRY(fkt_release_pipeline(&p->release, &settings, &p->pipeline));
    cli_print_dtype(&a->settings, fkt_pipeline_codec(p->pipeline), &a->run);
    p->draw = (struct fkt_draw_options){
        .per_class = (size_t)a->per_class, .seed = a->draw_seed, .estimate = a->estimate, .pipeline = p->pipeline};
    p->fresh = a->fresh;
    FKT_TRY(draw_epoch(p, 0));
    if (!a->fresh || a->holdout <= 0) goto out;
    samples = (uint64_t)llround(a->holdout * (double)a->per_class);
    FKT_TRY(draw(p, &p->held, (uint64_t)a->recipe.epochs * a->per_class, samples ? (size_t)samples : 1));
out:
    return st;
}

static fkt_status read_set(struct fkt_training_set *out, const struct cli_data *d, const struct fkt_training_set *like,
                           uint32_t size, const struct cli_train *a, const char *folder, struct cli_images *p)
{
    struct fkt_dataset_options o = cli_data_options(d);
    struct fkt_training_set_options read = p->options;
    struct fkt_dataset *ds = NULL;
    fkt_status st;
    if (like) {
        o.classes = (const char *const *)like->classes;
        o.n_classes = like->n_classes;
    }
    if (d->skip_bad) read.skipped = &p->skipped;
    FKT_TRY(fkt_dataset_open(&ds, d->path, &o));
    FKT_TRY(cli_print_dataset(ds, d->path, &a->run));
    FKT_TRY(fkt_training_set_read(out, ds, NULL, 0, size, (enum fkt_filter)a->filter, folder, &read));
out:
    fkt_dataset_free(ds);
    return st;
}

fkt_status cli_images_open(struct cli_images *p, const struct cli_train *a, const struct fkt_progress *progress,
                           const struct fkt_model *like)
{
    uint32_t size = a->size ? (uint32_t)a->size : like ? fkt_model_size(like) : USUAL_SIZE;
    struct cli_data mix = a->mix;
    fkt_status st;
    p->options = (struct fkt_training_set_options){.threads = a->recipe.threads, .progress = progress};
    p->like = like;
    mix.skip_bad = a->data.skip_bad;
    mix.bits = a->data.bits;
    mix.fit = a->data.fit;
    if (a->release) {
        FKT_TRY(open_release(p, a));
        mix.fit = (int)p->release.task.fit;
    } else {
        FKT_TRY(read_set(&p->set, &a->data, NULL, size, a, a->data.path, p));
        FKT_TRY(align(&p->set, like));
    }
    if (a->holdout > 0 && !p->held.n)
        FKT_TRY(fkt_fail_in(fkt_training_set_hold_out(&p->set, &p->held, a->holdout, a->recipe.seed), "--holdout"));
    if (!a->mix.path) goto out;
    FKT_TRY(fkt_fail_in(read_set(&p->mix, &mix, &p->set, p->set.size, a, NULL, p), "--mix"));
    FKT_TRY(fkt_training_set_append(&p->set, &p->mix));
    if (!p->fresh) fkt_training_set_clear(&p->mix);
out:
    return st;
}
