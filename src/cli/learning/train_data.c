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

void cli_pictures_clear(struct cli_pictures *p)
{
    fkt_pool_clear(&p->pool);
    fkt_pool_clear(&p->mix);
    fkt_pool_clear(&p->held);
    fkt_skipped_clear(&p->skipped);
    fkt_walk_free(p->walk);
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
static fkt_status align(struct fkt_pool *p, const struct fkt_model *m)
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

static fkt_status draw(struct cli_pictures *p, struct fkt_pool *into, uint64_t first, size_t per_class)
{
    struct fkt_draw_options d = p->draw;
    fkt_status st;
    d.first = first;
    d.per_class = per_class;
    FKT_TRY(fkt_pool_draw(into, &p->release, &d, &p->options));
    FKT_TRY(align(into, p->like));
out:
    return st;
}

/* An epoch of its own, with the real ones. */
static fkt_status draw_epoch(struct cli_pictures *p, uint32_t epoch)
{
    fkt_status st;
    fkt_pool_clear(&p->pool);
    FKT_TRY(draw(p, &p->pool, (uint64_t)epoch * p->draw.per_class, p->draw.per_class));
    if (p->mix.n) FKT_TRY(fkt_pool_append(&p->pool, &p->mix));
    p->epoch = epoch;
out:
    return st;
}

fkt_status cli_pictures_of_epoch(void *ctx, uint32_t epoch, struct fkt_pictures *out)
{
    struct cli_pictures *p = ctx;
    fkt_status st = FKT_OK;
    if (p->fresh && epoch != p->epoch) FKT_TRY(draw_epoch(p, epoch));
    *out = (struct fkt_pictures){p->pool.rgb, p->pool.label, p->pool.n, p->pool.size};
out:
    return st;
}

static fkt_status open_release(struct cli_pictures *p, const struct cli_train *a)
{
    struct fkt_codec_means means;
    uint64_t samples;
    fkt_status st;
    cli_codec_means(&a->means, &means);
    FKT_TRY(fkt_release_load(&p->release, a->release));
    if (a->size && a->size != p->release.task.size) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "leave --size away: a release has one size",
                           "--size is %llu, but the release "
                           "is of pictures of %u px",
                           (unsigned long long)a->size, p->release.task.size);
        goto out;
    }
    FKT_TRY(fkt_release_walk(&p->release, &means, &p->walk));
    cli_tell_dtype(&a->means, fkt_walk_codec(p->walk), &a->run);
    p->draw = (struct fkt_draw_options){
        .per_class = (size_t)a->per_class, .seed = a->draw_seed, .estimate = a->estimate, .walk = p->walk};
    p->fresh = a->fresh;
    FKT_TRY(draw_epoch(p, 0));
    if (!a->fresh || a->holdout <= 0) goto out;
    samples = (uint64_t)llround(a->holdout * (double)a->per_class);
    FKT_TRY(draw(p, &p->held, (uint64_t)a->recipe.epochs * a->per_class, samples ? (size_t)samples : 1));
out:
    return st;
}

static fkt_status read_set(struct fkt_pool *out, const struct cli_data *d, const struct fkt_pool *like, uint32_t size,
                           const struct cli_train *a, const char *folder, struct cli_pictures *p)
{
    struct fkt_dataset_options o = cli_data_options(d);
    struct fkt_pool_options read = p->options;
    struct fkt_dataset *ds = NULL;
    fkt_status st;
    if (like) {
        o.classes = (const char *const *)like->classes;
        o.n_classes = like->n_classes;
    }
    if (d->skip_bad) read.skipped = &p->skipped;
    FKT_TRY(fkt_dataset_open(&ds, d->path, &o));
    FKT_TRY(cli_tell_dataset(ds, d->path, &a->run));
    FKT_TRY(fkt_pool_read(out, ds, NULL, 0, size, (enum fkt_filter)a->filter, folder, &read));
out:
    fkt_dataset_free(ds);
    return st;
}

fkt_status cli_pictures_open(struct cli_pictures *p, const struct cli_train *a, const struct fkt_progress *progress,
                             const struct fkt_model *like)
{
    uint32_t size = a->size ? (uint32_t)a->size : like ? fkt_model_size(like) : USUAL_SIZE;
    struct cli_data mix = a->mix;
    fkt_status st;
    p->options = (struct fkt_pool_options){.threads = a->recipe.threads, .progress = progress};
    p->like = like;
    mix.skip_bad = a->data.skip_bad;
    mix.bits = a->data.bits;
    mix.fit = a->data.fit;
    if (a->release) {
        FKT_TRY(open_release(p, a));
        mix.fit = (int)p->release.task.fit;
    } else {
        FKT_TRY(read_set(&p->pool, &a->data, NULL, size, a, a->data.path, p));
        FKT_TRY(align(&p->pool, like));
    }
    if (a->holdout > 0 && !p->held.n)
        FKT_TRY(fkt_fail_in(fkt_pool_hold_out(&p->pool, &p->held, a->holdout, a->recipe.seed), "--holdout"));
    if (!a->mix.path) goto out;
    FKT_TRY(fkt_fail_in(read_set(&p->mix, &mix, &p->pool, p->pool.size, a, NULL, p), "--mix"));
    FKT_TRY(fkt_pool_append(&p->pool, &p->mix));
    if (!p->fresh) fkt_pool_clear(&p->mix);
out:
    return st;
}
