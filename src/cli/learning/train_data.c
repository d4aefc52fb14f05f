/* SPDX-License-Identifier: Apache-2.0 */
/* train_data.c - makes the source of training images (training_source.h) from the options of `fedkt train`.
 *
 *   --data PATH     read once
 *   --release FILE  drawn once; with --fresh anew for each epoch
 *   --mix PATH      real ones beside them
 *   --public PATH   unlabelled public ones, labelled by the release's head
 *   --holdout F     of the first two, never of --mix */
#include "cli/core/guided.h"
#include "cli/learning/train.h"

#include "pipeline/guided_draw.h"
#include "pipeline/pipeline.h"

#include <stdio.h>
#include <string.h>

enum { USUAL_SIZE = 32 };

void cli_images_clear(struct cli_images *p)
{
    fkt_training_source_free(p->source);
    fkt_teacher_free(p->teacher);
    fkt_dataset_free(p->shared);
    fkt_skipped_clear(&p->skipped);
    fkt_pipeline_free(p->pipeline);
    fkt_release_clear(&p->release);
    memset(p, 0, sizeof *p);
}

/* Opened before images are drawn: a wrong path costs no time. Labels and classes are ignored. */
static fkt_status open_public(struct cli_images *p, const struct cli_train *a)
{
    struct cli_data shared = a->shared;
    struct fkt_dataset_options o;
    fkt_status st;
    if (!shared.path) return FKT_OK;
    shared.bits = a->data.bits;
    shared.unlabelled = 1;
    shared.fit = (int)p->release.task.fit;
    o = cli_data_options(&shared);
    FKT_TRY(fkt_dataset_open(&p->shared, shared.path, &o));
    FKT_TRY(cli_print_dataset(p->shared, shared.path, &a->run));
out:
    return fkt_fail_in(st, "--public");
}

static fkt_status add_public(struct cli_images *p, const struct cli_train *a)
{
    fkt_status st;
    if (!p->shared) return FKT_OK;
    st = fkt_training_source_public(p->source, p->shared, a->shared.path, (size_t)a->shared_each,
                                    a->data.skip_bad ? &p->skipped : NULL);
    fkt_dataset_free(p->shared);
    p->shared = NULL;
    return fkt_fail_in(st, "--public");
}

/* A release of heads alone trains a network too, on public images. */
static fkt_status has_images(const struct fkt_release *r)
{
    char why[768];
    if (fkt_task_has_images(&r->task) == FKT_OK) return FKT_OK;
    snprintf(why, sizeof why, "%s", fkt_error_text());
    return fkt_fail_hint(FKT_E_STATE,
                         "its head can label public images: --teacher head --public PATH --per-class 0 trains on them",
                         "%s", why);
}

static enum fkt_head_kind head_of(const struct cli_train *a, const struct fkt_release *r)
{
    return a->head_kind_given ? (enum fkt_head_kind)a->head_kind : fkt_head_default(r->task.layout.pooled);
}

static fkt_status open_release(struct cli_images *p, const struct cli_train *a, struct fkt_training_source_spec *spec)
{
    struct fkt_codec_settings settings;
    struct fkt_guided_options guided;
    fkt_status st;
    cli_codec_settings(&a->settings, &settings);
    FKT_TRY(fkt_release_load_into(&p->release, a->release));
    if (a->size && a->size != p->release.task.size) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "omit --size: a release has one size",
                           "--size is %llu, but the release has images of %u px", (unsigned long long)a->size,
                           p->release.task.size);
        goto out;
    }
    if (a->per_class) FKT_TRY(has_images(&p->release));
    FKT_TRY(open_public(p, a));
    FKT_TRY(cli_guided(a->guided, &guided));
    if (a->head_teaches || fkt_guided_needs_network(&guided))
        FKT_TRY(fkt_release_pipeline(&p->release, &settings, &p->pipeline));
    else FKT_TRY(fkt_release_pipeline_codec(&p->release, &settings, &p->pipeline)); /* no weights of a guide */
    if (fkt_pipeline_codec(p->pipeline)) cli_print_dtype(&a->settings, fkt_pipeline_codec(p->pipeline), &a->run);
    if (a->head_teaches)
        FKT_TRY(fkt_teacher_of_release(&p->teacher, &p->release, p->pipeline, head_of(a, &p->release),
                                       (enum fkt_heads_on)a->head_on));
    spec->teacher = p->teacher;
    spec->release = &p->release;
    spec->fresh = a->fresh;
    if (a->recipe.device.kind == FKT_DEVICE_CUDA) spec->ahead = a->recipe.epochs; /* its processors are idle */
    spec->draw = (struct fkt_draw_options){
        .per_class = (size_t)a->per_class, .seed = a->draw_seed, .estimate = a->estimate, .pipeline = p->pipeline};
    spec->draw.guided = guided;
    spec->plain = a->plain;
    spec->blend = a->blend;
    FKT_TRY(fkt_training_source_new(&p->source, spec));
out:
    return st;
}

static fkt_status open_data(struct cli_images *p, const struct cli_train *a, struct fkt_training_source_spec *spec)
{
    struct fkt_dataset_options o = cli_data_options(&a->data);
    struct fkt_dataset *ds = NULL;
    fkt_status st;
    FKT_TRY(fkt_dataset_open(&ds, a->data.path, &o));
    FKT_TRY(cli_print_dataset(ds, a->data.path, &a->run));
    spec->data = ds;
    spec->folder = a->data.path;
    if (a->data.skip_bad) spec->options.skipped = &p->skipped;
    FKT_TRY(fkt_training_source_new(&p->source, spec));
out:
    fkt_dataset_free(ds);
    return st;
}

/* Read with the same settings and classes as the other images. */
static fkt_status open_mix(struct cli_images *p, const struct cli_train *a)
{
    const struct fkt_training_set *set = fkt_training_source_set(p->source);
    struct cli_data mix = a->mix;
    struct fkt_dataset_options o;
    struct fkt_dataset *ds = NULL;
    fkt_status st;
    mix.bits = a->data.bits;
    mix.fit = a->release ? (int)p->release.task.fit : a->data.fit;
    o = cli_data_options(&mix);
    o.classes = (const char *const *)set->classes;
    o.n_classes = set->n_classes;
    FKT_TRY(fkt_dataset_open(&ds, mix.path, &o));
    FKT_TRY(cli_print_dataset(ds, mix.path, &a->run));
    FKT_TRY(fkt_training_source_mix(p->source, ds, a->data.skip_bad ? &p->skipped : NULL));
out:
    fkt_dataset_free(ds);
    return st;
}

fkt_status cli_images_open(struct cli_images *p, const struct cli_train *a, const struct fkt_progress *progress,
                           const struct fkt_model *like)
{
    struct fkt_training_source_spec spec = {.size = a->size ? (uint32_t)a->size
                                                    : like  ? fkt_model_size(like)
                                                            : USUAL_SIZE,
                                            .filter = (enum fkt_filter)a->filter,
                                            .order = like,
                                            .options = {.threads = a->recipe.threads, .progress = progress}};
    fkt_status st;
    if (a->release) FKT_TRY(open_release(p, a, &spec));
    else FKT_TRY(open_data(p, a, &spec));
    if (a->holdout > 0)
        FKT_TRY(fkt_fail_in(fkt_training_source_hold_out(p->source, a->holdout, a->recipe.seed, a->recipe.epochs),
                            "--holdout"));
    if (a->mix.path) FKT_TRY(fkt_fail_in(open_mix(p, a), "--mix"));
    FKT_TRY(add_public(p, a));
out:
    return st;
}
