/* SPDX-License-Identifier: Apache-2.0 */
/* train_run.c - one run of `fedkt train`: images, network, epochs, files, and finally the test set.
 *
 * The test set is opened before the first epoch, so that a wrong path costs no training, and used once, after the
 * last one, when the model is already on disk: it cannot influence the choice of an epoch. */
#include "cli/learning/train.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void cli_training_clear(struct cli_training *t)
{
    cli_evaluation_clear(&t->evaluated);
    cli_evaluation_clear(&t->evaluated_averaged);
    fkt_skipped_clear(&t->skipped);
    fkt_dataset_free(t->test);
    fkt_codec_free(t->codec);
    fkt_model_free(t->model);
    fkt_model_free(t->averaged);
    fkt_trainer_free(t->trainer);
    fkt_model_free(t->start);
    cli_images_clear(&t->images);
    fkt_model_free(t->from);
    fkt_model_free(t->teacher);
}

static void remark(const struct cli_training *t, const char *text)
{
    if (!t->asked->run.quiet) cli_say(text);
}

/* ---- the initial network ---- */

static int same_classes(const struct fkt_model *m, const struct fkt_training_set *p)
{
    if (fkt_model_classes(m) != p->n_classes) return 0;
    for (uint32_t k = 0; k < p->n_classes; k++)
        if (strcmp(fkt_model_class(m, k), p->classes[k]) != 0) return 0;
    return 1;
}

static fkt_status check_from(const struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    if (a->architecture_given && a->architecture != (int)fkt_model_architecture(t->from))
        return fkt_fail_hint(FKT_E_MISMATCH, "omit --network: --from defines the network",
                             "'%s' is a %s, but --network is %s", a->from,
                             fkt_architecture_name(fkt_model_architecture(t->from)),
                             fkt_architecture_name((enum fkt_architecture)a->architecture));
    if (a->stem_given && a->stem != (int)fkt_model_stem(t->from))
        return fkt_fail_hint(FKT_E_MISMATCH, "omit --stem: --from defines the network",
                             "'%s' has the %s stem, but --stem is %s", a->from, fkt_stem_name(fkt_model_stem(t->from)),
                             fkt_stem_name((enum fkt_stem)a->stem));
    return FKT_OK;
}

/* A model with as many classes as the images, but without class names: it gets the images' names in their order. */
static fkt_status name_classes(const struct cli_training *t, struct fkt_model **m, const char *option)
{
    const struct fkt_training_set *p = fkt_training_source_set(t->images.source);
    if (!*m || !fkt_model_numbered(*m) || fkt_model_classes(*m) != p->n_classes) return FKT_OK;
    if (!t->asked->run.quiet && !same_classes(*m, p))
        fprintf(stderr, "fedkt: %s: its classes have no names: the images' names are used in their order\n", option);
    return fkt_model_rename(m, (const char *const *)p->classes);
}

static fkt_status make_start(struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    const struct fkt_training_set *p = fkt_training_source_set(t->images.source);
    const struct fkt_model_spec spec = {.architecture = (enum fkt_architecture)a->architecture,
                                        .stem = (enum fkt_stem)a->stem,
                                        .size = p->size,
                                        .classes = (const char *const *)p->classes,
                                        .n_classes = p->n_classes,
                                        .seed = a->recipe.seed};
    int new_head;
    fkt_status st;
    if (t->from) FKT_TRY(check_from(t));
    st = fkt_model_start(&t->start, t->from, &spec, &new_head);
    FKT_TRY(t->from ? fkt_fail_in(st, "'%s'", a->from) : st);
    if (new_head) remark(t, "fedkt: --from has other classes: its last layer is initialised again");
out:
    return st;
}

static fkt_status check_teacher(const struct cli_training *t)
{
    fkt_status st;
    if (!t->teacher) return FKT_OK;
    st = fkt_training_set_check_model(fkt_training_source_set(t->images.source), t->teacher);
    return fkt_hint(fkt_fail_in(st, "teacher '%s'", t->asked->teacher),
                    "teacher and images must have the same class names, in any order");
}

/* ---- everything that can fail before the first epoch ---- */

static fkt_status open_codec(struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    struct fkt_codec_spec spec = {.name = a->codec, .size = fkt_model_size(t->start), .dim = (uint32_t)a->codec_dim};
    if (!a->through_codec || !a->codec) return FKT_OK;
    cli_codec_settings(&a->settings, &spec.settings);
    return fkt_codec_open(&t->codec, &spec);
}

/* A file with only weights has no image size: the release's is used, if there is one. */
static fkt_status load_models(struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    struct fkt_release r = {0};
    uint32_t size = (uint32_t)a->size;
    fkt_status st = FKT_OK;
    if (!a->from && !a->teacher) return FKT_OK;
    if (a->release && !size) {
        FKT_TRY(fkt_release_load_into(&r, a->release));
        size = r.task.size;
    }
    if (a->from) FKT_TRY(fkt_fail_in(cli_model_load(&t->from, a->from, size), "--from"));
    if (t->from && !size) size = fkt_model_size(t->from);
    if (a->teacher) FKT_TRY(fkt_fail_in(cli_model_load(&t->teacher, a->teacher, size), "--teacher"));
out:
    fkt_release_clear(&r);
    return st;
}

/* Names in the images' own order, which is lost when they are sorted into another model's order. */
static fkt_status name_models(struct cli_training *t)
{
    const int as_they_came = !t->from || fkt_model_numbered(t->from);
    fkt_status st;
    FKT_TRY(name_classes(t, &t->from, "--from"));
    if (as_they_came) FKT_TRY(name_classes(t, &t->teacher, "--teacher"));
out:
    return st;
}

/* Warns of a class that --limit or --skip-bad has left without images: it is never trained, and nothing later shows
 * why. */
static void remark_missing(const struct cli_training *t)
{
    const struct fkt_training_set *p = fkt_training_source_set(t->images.source);
    char text[256];
    uint32_t missing = 0, first = 0;
    for (uint32_t k = p->n_classes; k-- > 0;) {
        size_t i = 0;
        while (i < p->n && p->label[i] != k) i++;
        if (i < p->n) continue;
        missing++;
        first = k;
    }
    if (!missing) return;
    snprintf(text, sizeof text, "fedkt: there is no image of class '%.100s'", p->classes[first]);
    if (missing > 1) snprintf(text + strlen(text), sizeof text - strlen(text), ", nor of %u others", missing - 1);
    remark(t, text);
}

/* As the training images were read. */
static fkt_status open_test(struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    struct cli_data test = a->test;
    test.bits = a->data.bits;
    test.fit = a->release ? (int)t->images.release.task.fit : a->data.fit;
    test.fit_given = 1;
    return cli_open_for_model(&t->test, &test, t->start, &a->run);
}

fkt_status cli_train_prepare(struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    fkt_status st;
    cli_progress_init(&t->progress, a->run.quiet);
    cli_print_device(a->settings.device, a->recipe.device, a->recipe.dtype == FKT_LEARN_DTYPE_BF16 ? "bf16" : "f32",
                     a->run.quiet);
    if (a->mix.path) remark(t, "fedkt: --mix: the model is trained on real images too and will NOT be private");
    if (a->shared.path)
        remark(t,
               "fedkt: --public: the model's promise does not cover these images; private ones must not be among them");
    FKT_TRY(load_models(t));
    FKT_TRY(cli_images_open(&t->images, a, &t->progress.hook, t->from ? t->from : t->teacher));
    cli_progress_end(&t->progress);
    cli_print_skipped(&t->images.skipped);
    if (fkt_training_source_set(t->images.source)->n_classes < 2) {
        st = fkt_fail_hint(FKT_E_FORMAT, "give a set with a folder for each class",
                           "all images are of class '%s': at least two classes are needed",
                           fkt_training_source_set(t->images.source)->classes[0]);
        goto out;
    }
    remark_missing(t);
    FKT_TRY(name_models(t));
    FKT_TRY(make_start(t));
    FKT_TRY(check_teacher(t));
    if (a->test.path) FKT_TRY(fkt_fail_in(open_test(t), "--test"));
    if (a->test.path) FKT_TRY(fkt_fail_in(fkt_training_source_check_test(t->images.source, t->test), "--public"));
    FKT_TRY(open_codec(t));
out:
    cli_progress_end(&t->progress);
    return st;
}

/* ---- training ---- */

static fkt_status resume(struct cli_training *t)
{
    const char *path = t->asked->checkpoint;
    fkt_status st;
    if (!t->asked->resume) return FKT_OK;
    if (access(path, F_OK) != 0) {
        remark(t, "fedkt: --resume: there is no checkpoint yet; starting with the first epoch");
        return FKT_OK;
    }
    st = fkt_trainer_resume(t->trainer, path);
    t->resumed = st == FKT_OK;
    return st;
}

static fkt_status stopped(const struct cli_training *t, fkt_status st)
{
    const char *path = t->asked->checkpoint;
    if (st != FKT_E_STOPPED) return st;
    if (!path || access(path, F_OK) != 0)
        return fkt_fail_hint(st, path ? "no step was done yet" : "with --checkpoint FILE a run can be continued later",
                             "stopped while training; nothing is kept");
    return fkt_fail_hint(st, "run the same command with --resume to continue, to the same bits",
                         "stopped while training; checkpoint '%s' holds the state", path);
}

/* The library's hints name no options. */
static fkt_status name_options(fkt_status st)
{
    static const struct {
        const char *hint, *with_options;
    } words[] = {{"use a smaller batch", "use a smaller --batch"},
                 {"use a smaller rate; an older", "use a smaller --rate; an older checkpoint is unchanged"},
                 {"use a smaller rate", "use a smaller --rate, or a --warmup"}};
    char why[768];
    if (st != FKT_E_NUMERIC && st != FKT_E_NOMEM) return st;
    snprintf(why, sizeof why, "%s", fkt_error_text());
    for (size_t i = 0; i < CLI_COUNT(words); i++)
        if (!strncmp(fkt_error_hint(), words[i].hint, strlen(words[i].hint)))
            return fkt_fail_hint(st, words[i].with_options, "%s", why);
    return st;
}

static fkt_status learn(struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    struct fkt_trainer_spec spec = {.start = t->start,
                                    .recipe = a->recipe,
                                    .held = fkt_training_source_held(t->images.source),
                                    .teacher = t->teacher};
    const struct fkt_trainer_hooks hooks = {.epoch = cli_train_epoch,
                                            .ctx = t,
                                            .checkpoint = a->checkpoint,
                                            .checkpoint_steps = (uint32_t)a->checkpoint_steps,
                                            .progress = &t->progress.hook};
    fkt_status st;
    fkt_training_source_images(t->images.source, &spec.source);
    FKT_TRY(name_options(fkt_trainer_new(&t->trainer, &spec)));
    FKT_TRY(resume(t));
    t->progress.unit = "img";
    t->began = fkt_now();
    st = fkt_trainer_run(t->trainer, &hooks);
    cli_progress_end(&t->progress);
    t->progress.unit = NULL;
    t->seconds = fkt_now() - t->began;
    FKT_TRY(stopped(t, name_options(st)));
out:
    return st;
}

/* ---- results ---- */

static void set_origin(struct cli_training *t)
{
    struct fkt_model_origin o;
    fkt_training_origin(&o, fkt_training_source_set(t->images.source), t->from, t->teacher);
    cli_train_recipe_line(o.recipe, sizeof o.recipe, t->asked, t->model, t->images.teacher,
                          fkt_trainer_moved(t->trainer));
    fkt_model_set_origin(t->model, &o);
    if (t->averaged) fkt_model_set_origin(t->averaged, &o);
}

/* An error after the model is on disk must say that the model is complete. */
static fkt_status after_model(const struct cli_training *t, fkt_status st, const char *what)
{
    return fkt_fail_in(st, "model '%s' is complete, %s is not", t->asked->out, what);
}

static fkt_status keep_rest(const struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    size_t n;
    const struct fkt_epoch *e = fkt_trainer_history(t->trainer, &n);
    fkt_status st = FKT_OK;
    if (a->ema_out) FKT_TRY(fkt_model_save(t->averaged, a->ema_out, a->run.force));
    if (a->onnx) FKT_TRY(fkt_model_export_onnx(t->model, a->onnx, a->run.force));
    if (a->curves) FKT_TRY(fkt_curves_csv(a->curves, e, n, a->run.force));
    if (a->tensorboard) FKT_TRY(fkt_curves_tensorboard(a->tensorboard, e, n, (double)time(NULL) - t->seconds));
out:
    return st;
}

static fkt_status keep(struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    fkt_status st;
    FKT_TRY(fkt_model_save(t->model, a->out, a->run.force));
    FKT_TRY(after_model(t, keep_rest(t), "what goes with it"));
out:
    return st;
}

static fkt_status evaluate(struct cli_training *t)
{
    const struct cli_train *a = t->asked;
    const struct fkt_codec *codec = t->codec                                 ? t->codec
                                    : a->through_codec && t->images.pipeline ? fkt_pipeline_codec(t->images.pipeline)
                                                                             : NULL;
    struct fkt_skipped again = {0}, *count = a->data.skip_bad ? &t->skipped : NULL;
    fkt_status st = FKT_OK;
    if (!t->test) return FKT_OK;
    FKT_TRY(cli_evaluate_model(&t->evaluated, t->model, t->test, (enum fkt_filter)a->filter, codec, a->recipe.threads,
                               a->recipe.device, &t->progress.hook, count));
    if (t->averaged)
        FKT_TRY(cli_evaluate_model(&t->evaluated_averaged, t->averaged, t->test, (enum fkt_filter)a->filter, codec,
                                   a->recipe.threads, a->recipe.device, &t->progress.hook, count ? &again : NULL));
out:
    fkt_skipped_clear(&again);
    cli_progress_end(&t->progress);
    cli_print_skipped(&t->skipped);
    return st;
}

fkt_status cli_train_learn(struct cli_training *t)
{
    fkt_status st;
    FKT_TRY(learn(t));
    FKT_TRY(fkt_trainer_model(t->trainer, 0, &t->model));
    if (t->asked->recipe.ema > 0) FKT_TRY(fkt_trainer_model(t->trainer, 1, &t->averaged));
    set_origin(t);
out:
    return st;
}

fkt_status cli_train_run(struct cli_training *t)
{
    fkt_status st;
    FKT_TRY(cli_train_outputs(t->asked));
    FKT_TRY(cli_train_prepare(t));
    FKT_TRY(cli_train_learn(t));
    FKT_TRY(keep(t));
    FKT_TRY(fkt_hint(after_model(t, evaluate(t), "its evaluation"), "'fedkt evaluate' evaluates it at any time"));
    FKT_TRY(cli_train_print(t));
out:
    return st;
}
