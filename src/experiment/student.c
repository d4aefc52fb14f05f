/* SPDX-License-Identifier: Apache-2.0 */
/* student.c - a network that learns from a release and is evaluated once, after the last epoch, on real test images.
 *
 * A full run has the recipe of docs/results.md ("The guide"): other images in each epoch, 10,000 in all classes
 * together. An arm with a guide has its own head as the teacher, half of its images decoded without the guide, half of
 * them blends of two, and unlabelled images of the set `public`, where the folder of sets has one. Where the number of
 * images is the question (`per_class`), or the options say it, which takes minutes in place of hours without a card,
 * they are drawn once, there are no public ones and no blends, and epochs are as many as make the usual number of
 * steps. A quick run draws some images once.
 *
 * The same release gives the same network, so its accuracy is remembered: releases of one seed and as many sites do not
 * depend on the partition. The reference is a release of exact moments, which never leaves this file. */
#include "experiment/lab.h"

#include "base/alloc.h"
#include "base/file.h"
#include "fedkt/advanced/simulate.h"
#include "codec/codec.h"
#include "fedkt/training_source.h"
#include "pipeline/release.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    IMAGES = 10000, /* of an epoch */
    EPOCHS = 50,
    EPOCHS_TAUGHT = 75,
    EPOCHS_MOST = 500,
    QUICK_PER_CLASS = 40
};
#define SHARE_PLAIN 0.5
#define SHARE_BLEND 0.5
#define TEMPERATURE 4

struct student {
    struct fkt_lab *lab;
    const struct fkt_lab_run *run;
    const struct fkt_sweep *sweep;
    const struct fkt_release *release; /* one of the sweep's, or: */
    struct fkt_release exact;
    struct fkt_pipeline *pipeline;
    struct fkt_teacher *teacher;
    struct fkt_dataset *shared;
    char shared_sha256[FKT_SHA256_HEX];
    struct fkt_training_source *source;
    struct fkt_training_set test;
    struct fkt_recipe recipe;
    size_t per_class;
};

/* ---- what it learns from ---- */

static int is_taught(const struct student *s) { return s->run->arm->guide != NULL && s->run->arm->codec != NULL; }

/* Images of a class that are drawn once; 0: others in each epoch. */
static size_t drawn_once(const struct student *s)
{
    return s->run->per_class ? s->run->per_class : s->lab->options.per_class;
}

static int is_fresh(const struct student *s) { return !s->lab->options.quick && !drawn_once(s); }

static void plan(struct student *s)
{
    const uint32_t classes = s->release->task.n_classes;
    const size_t usual = IMAGES / classes ? IMAGES / classes : 1;
    fkt_lab_recipe(s->lab, s->run->seed, &s->recipe);
    if (is_taught(s)) {
        s->recipe.temperature = TEMPERATURE;
        s->recipe.share = 1;
    }
    s->per_class = drawn_once(s) ? drawn_once(s) : s->lab->options.quick ? QUICK_PER_CLASS : usual;
    if (s->lab->options.quick) return;
    s->recipe.epochs = is_taught(s) && is_fresh(s) ? EPOCHS_TAUGHT : EPOCHS;
    if (!is_fresh(s)) {
        const size_t epochs = EPOCHS * usual / s->per_class;
        s->recipe.epochs = epochs < 1 ? 1 : epochs > EPOCHS_MOST ? EPOCHS_MOST : (uint32_t)epochs;
        if (s->recipe.warmup >= s->recipe.epochs) s->recipe.warmup = 0;
    }
}

/* The reference: exact moments in the shape of a release. */
static fkt_status without_noise(struct student *s)
{
    const struct fkt_release *like = fkt_sweep_arm(s->sweep, 0)->release;
    const int64_t *exact;
    fkt_status st;
    FKT_TRY(fkt_release_begin(&s->exact, &like->task, like->calibration, &like->facts));
    FKT_TRY(fkt_moments_packed(fkt_sweep_simulation(s->sweep)->total, &exact));
    memcpy(s->exact.moments, exact, fkt_task_numbers(&like->task) * sizeof *exact);
    memset(&s->exact.sigma, 0, sizeof s->exact.sigma);
    s->exact.insecure_seed = 1; /* NOT private */
    FKT_TRY(fkt_release_seal(&s->exact));
    s->release = &s->exact;
out:
    return st;
}

/* Public images beside those of the release; neither test images nor private records may be among them. */
static fkt_status add_public(struct student *s, const struct fkt_lab_set *set)
{
    fkt_status st = FKT_OK;
    if (!s->shared) return FKT_OK;
    FKT_TRY(fkt_training_source_public(s->source, s->shared, FKT_PUBLIC_SET, 0, NULL));
    FKT_TRY(fkt_training_source_check_test(s->source, set->data));
    if (set->test) FKT_TRY(fkt_training_source_check_test(s->source, set->test));
out:
    return st;
}

static fkt_status open_public(struct student *s)
{
    return is_taught(s) && is_fresh(s) ? fkt_lab_public(s->lab, &s->shared, s->shared_sha256) : FKT_OK;
}

static fkt_status open_source(struct student *s, const struct fkt_lab_set *set)
{
    const int card = s->lab->options.device.kind == FKT_DEVICE_CUDA;
    const struct fkt_codec_settings settings = {
        .weights = fkt_codec_has_calibration(s->run->arm->codec) ? NULL : s->lab->options.weights,
        .dtype = card ? FKT_CODEC_DTYPE_BF16 : FKT_CODEC_DTYPE_F32,
        .device = s->lab->options.device};
    struct fkt_training_source_spec spec = {
        .release = s->release,
        .fresh = is_fresh(s),
        .ahead = is_fresh(s) && card ? s->recipe.epochs : 0,
        .plain = is_taught(s) ? SHARE_PLAIN : 0,
        .blend = is_taught(s) && is_fresh(s) ? SHARE_BLEND : 0,
        .options = {.threads = s->lab->options.threads, .progress = s->lab->options.progress}};
    fkt_status st;
    FKT_TRY(open_public(s)); /* before images are drawn */
    FKT_TRY(fkt_release_pipeline(s->release, &settings, &s->pipeline));
    if (is_taught(s))
        FKT_TRY(fkt_teacher_of_release(&s->teacher, s->release, s->pipeline,
                                       fkt_head_default(s->release->task.layout.pooled), FKT_HEADS_DEFAULT));
    spec.teacher = s->teacher;
    spec.draw = (struct fkt_draw_options){.per_class = s->per_class, .seed = s->run->seed, .pipeline = s->pipeline};
    FKT_TRY(fkt_training_source_new(&s->source, &spec));
    FKT_TRY(add_public(s, set));
out:
    return st;
}

static fkt_status read_test(struct student *s)
{
    const struct fkt_training_set_options read = {.threads = s->lab->options.threads,
                                                  .progress = s->lab->options.progress};
    size_t n;
    const size_t *idx = fkt_sweep_test_records(s->sweep, &n);
    return fkt_training_set_read(&s->test, fkt_sweep_test_data(s->sweep), idx, n, s->release->task.size,
                                 s->release->task.filter, NULL, &read);
}

static void clear(struct student *s)
{
    fkt_training_set_clear(&s->test);
    fkt_training_source_free(s->source);
    fkt_dataset_free(s->shared);
    fkt_teacher_free(s->teacher);
    fkt_pipeline_free(s->pipeline);
    fkt_release_clear(&s->exact);
}

/* ---- the network ---- */

/* How it learns, as its file says it: a kept network must say the same. */
static void describe(const struct student *s, struct fkt_model_origin *o)
{
    snprintf(o->recipe, sizeof o->recipe, "an experiment: seed %llu, %u epochs of %zu images of a class, %s%s%s",
             (unsigned long long)s->run->seed, s->recipe.epochs, s->per_class,
             is_fresh(s) ? "new in each" : "drawn once", s->shared_sha256[0] ? ", public images " : "",
             s->shared_sha256);
}

static fkt_status learn(struct student *s, struct fkt_model **out)
{
    struct fkt_model_origin origin;
    struct fkt_image_source images;
    struct fkt_lab_set set;
    fkt_status st;
    FKT_TRY(fkt_lab_set(s->lab, s->run->set, &set));
    FKT_TRY(open_source(s, &set));
    fkt_training_source_images(s->source, &images);
    FKT_TRY(fkt_lab_learn(s->lab, &s->recipe, &images, fkt_training_source_set(s->source), out));
    origin = fkt_training_source_set(s->source)->origin;
    describe(s, &origin);
    fkt_model_set_origin(*out, &origin);
out:
    return st;
}

/* What the cell says of the network, however it came by it. */
static fkt_status note(struct student *s)
{
    fkt_status st;
    FKT_TRY(fkt_lab_note_network(s->lab));
    if (!s->run->per_class) FKT_TRY(fkt_lab_note_per_class(s->lab));
    if (s->shared_sha256[0]) FKT_TRY(fkt_lab_use(s->lab, FKT_PUBLIC_SET, s->shared_sha256));
out:
    return st;
}

fkt_status fkt_lab_train(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep *sweep, size_t arm)
{
    struct student s = {.lab = lab, .run = run, .sweep = sweep, .release = fkt_sweep_arm(sweep, arm)->release};
    const char *name = fkt_architecture_name((enum fkt_architecture)(lab->options.network - 1));
    struct fkt_lab_student known;
    struct fkt_model *model = NULL;
    fkt_status st = FKT_OK;
    if (!s.release) FKT_TRY(without_noise(&s));
    plan(&s);
    known = (struct fkt_lab_student){
        .per_class = s.per_class, .seed = run->seed, .epochs = s.recipe.epochs, .fresh = is_fresh(&s)};
    snprintf(known.from, sizeof known.from, "%s", s.release->sha256);
    if (fkt_lab_recall(lab, &known)) memcpy(s.shared_sha256, known.shared_sha256, sizeof s.shared_sha256);
    else {
        FKT_TRY(read_test(&s));
        FKT_TRY(learn(&s, &model));
        FKT_TRY(fkt_lab_evaluate(lab, model, &s.test, &known.accuracy));
        known.shared = fkt_training_source_public_facts(s.source).images;
        memcpy(known.shared_sha256, s.shared_sha256, sizeof known.shared_sha256);
        fkt_lab_remember(lab, &known);
    }
    FKT_TRY(note(&s));
    lab->shared = known.shared;
    FKT_TRY(fkt_sweep_set_network(sweep, arm, name, known.accuracy, 0));
out:
    fkt_model_free(model);
    clear(&s);
    return st;
}

/* ---- a network that is kept ---- */

/* NULL: the network is one that the release and the options would give. */
static const char *difference(const struct student *s, const struct fkt_model *m)
{
    const struct fkt_task *task = &s->release->task;
    struct fkt_model_origin wanted;
    if ((int)fkt_model_architecture(m) + 1 != s->lab->options.network) return "it has another architecture";
    if (fkt_model_size(m) != task->size) return "it takes images of another size";
    if (fkt_model_classes(m) != task->n_classes) return "it has another number of classes";
    for (uint32_t k = 0; k < task->n_classes; k++)
        if (strcmp(fkt_model_class(m, k), task->classes[k]) != 0) return "it has other classes";
    if (strcmp(fkt_model_origin(m)->release_sha256, s->release->sha256) != 0) return "it learnt from another release";
    describe(s, &wanted);
    return strcmp(fkt_model_origin(m)->recipe, wanted.recipe) ? "it learnt in another way, or from other images" : NULL;
}

/* The hash of the release covers set, seed, codecs and mechanism, and the file has nothing else that says which seed
 * and which records it is of: so the release is made again for the comparison. With kept encodings that is sums, masks
 * and noise alone (a quick run of one cell that does little else takes 3.4 s); a second file beside the network could
 * be as wrong as the first. On a machine whose encodings differ in their last bits the release is another one, and the
 * network is refused too: a table has networks of one release. */
static fkt_status load_kept(const struct student *s, const char *file, struct fkt_model **out)
{
    static const char hint[] = "delete the file: the network is then trained again";
    const char *why;
    fkt_status st = fkt_hint(fkt_model_load(out, file, 0), hint);
    if (st != FKT_OK) return st;
    why = difference(s, *out);
    if (!why) return FKT_OK;
    fkt_model_free(*out);
    *out = NULL;
    return fkt_fail_hint(FKT_E_MISMATCH, hint, "'%s' is not the network of this run: %s", file, why);
}

/* The most expensive file of a run. */
static fkt_status keep(struct fkt_lab *lab, const struct fkt_model *m, const char *folder, const char *file)
{
    fkt_status st = fkt_mkdirs(folder);
    if (st == FKT_OK) st = fkt_model_save(m, file, 1);
    if (st != FKT_OK) lab->unwritable = 1;
    return st;
}

fkt_status fkt_lab_pretrained(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_model **out)
{
    struct student s = {.lab = lab, .run = run};
    struct fkt_sweep *sweep = NULL;
    char name[128], *folder = NULL, *file = NULL;
    fkt_status st;
    *out = NULL;
    snprintf(name, sizeof name, "%s.%llu.safetensors", run->set, (unsigned long long)run->seed);
    FKT_TRY(fkt_path_join(&folder, lab->run, "networks"));
    FKT_TRY(fkt_path_join(&file, folder, name));
    FKT_TRY(fkt_lab_federation(lab, run, &sweep));
    s.sweep = sweep;
    s.release = fkt_sweep_arm(sweep, 0)->release;
    plan(&s);
    if (access(file, F_OK) == 0) {
        FKT_TRY(open_public(&s)); /* it learnt from that set: a run has one */
        FKT_TRY(load_kept(&s, file, out));
    } else {
        FKT_TRY(learn(&s, out));
        FKT_TRY(keep(lab, *out, folder, file));
    }
    st = note(&s);
out:
    clear(&s);
    fkt_sweep_free(sweep);
    fkt_free(folder);
    fkt_free(file);
    return st;
}
