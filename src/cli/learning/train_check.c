/* SPDX-License-Identifier: Apache-2.0 */
/* train_check.c - checks the options of `fedkt train` before any work: combinations, ranges, outputs that exist
 * already. */
#include "cli/core/guided.h"
#include "cli/learning/recipe.h"
#include "cli/learning/train.h"

#include "base/file.h"
#include "base/output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE_MIN = 8, SIZE_MAX_PX = 512, PER_CLASS_MAX = 100000000 };

/* An option that was given without the option that it needs. */
static fkt_status needs(int given, const char *option, int there, const char *wanted)
{
    return given && !there ? fkt_fail(FKT_E_ARG, "%s needs %s", option, wanted) : FKT_OK;
}

static fkt_status check_teacher(const struct cli_train *a)
{
    const int taught = a->teacher || a->head_teaches, shared = a->shared.path != NULL;
    fkt_status st;
    FKT_TRY(needs(a->head_teaches, "--teacher head", a->release != NULL, "--release, whose head it is"));
    FKT_TRY(needs(a->head_kind_given, "--teacher-head", a->head_teaches, "--teacher head"));
    FKT_TRY(needs(a->head_on_given, "--teacher-parts", a->head_teaches, "--teacher head"));
    FKT_TRY(needs(a->share >= 0, "--teacher-share", taught, "--teacher"));
    FKT_TRY(needs(a->temperature_given, "--temperature", taught, "--teacher"));
    FKT_TRY(needs(shared, "--public", a->head_teaches, "--teacher head, which labels the images"));
    FKT_TRY(needs(a->shared.split != NULL, "--public-split", shared, "--public"));
    FKT_TRY(needs(a->shared.limit != 0, "--public-limit", shared, "--public"));
    FKT_TRY(needs(a->shared_each != 0, "--public-per-epoch", shared, "--public"));
out:
    return st;
}

static fkt_status check_images(const struct cli_train *a)
{
    const int release = a->release != NULL, reads = !release || a->mix.path || a->test.path || a->shared.path;
    struct fkt_guided_options guided;
    fkt_status st;
    if (!a->data.path && !release)
        return fkt_fail_hint(FKT_E_ARG, "give a set of images with --data, or draw them from a release with --release",
                             "no training images: neither --data nor --release is given");
    if (a->data.path && release)
        return fkt_fail_hint(FKT_E_ARG, "to add real images to drawn ones give them with --mix",
                             "--data and --release exclude each other");
    FKT_TRY(needs(a->fresh, "--fresh", release, "--release"));
    FKT_TRY(needs(a->per_class_given, "--per-class", release, "--release"));
    FKT_TRY(needs(a->draw_seed_given, "--draw-seed", release, "--release"));
    FKT_TRY(needs(a->guided != NULL, "--guided", release, "--release"));
    FKT_TRY(cli_guided(a->guided, &guided));
    FKT_TRY(needs(a->plain != 0, "--plain", release, "--release"));
    FKT_TRY(needs(a->blend != 0, "--blend", a->head_teaches && a->fresh, "--teacher head and --fresh"));
    if (!(a->plain >= 0 && a->plain <= 1)) return fkt_fail(FKT_E_ARG, "--plain must be between 0 and 1");
    if (!(a->blend >= 0 && a->blend <= 1)) return fkt_fail(FKT_E_ARG, "--blend must be between 0 and 1");
    FKT_TRY(needs(a->estimator != 0, "--estimator", release, "--release"));
    FKT_TRY(needs(a->estimate.tau != 0, "--tau", release, "--release"));
    FKT_TRY(needs(a->estimate.pool != 0, "--pool", release, "--release"));
    FKT_TRY(needs(a->estimate.tau != 0, "--tau", a->estimate.estimator == FKT_ESTIMATOR_CLAMP, "--estimator clamp"));
    FKT_TRY(needs(a->filter_given, "--filter", reads, "a set to read: a release is of one size"));
    FKT_TRY(needs(a->data.fit_given, "--fit", !release, "--data: a release has one already"));
    FKT_TRY(needs(a->data.bits != 0, "--bits", reads, "a set to read: --data, --mix, --public or --test"));
    FKT_TRY(needs(a->data.skip_bad, "--skip-bad", reads, "a set to read: --data, --mix, --public or --test"));
    FKT_TRY(needs(a->data.split != NULL, "--split", !release, "--data"));
    FKT_TRY(needs(a->data.limit != 0, "--limit", !release, "--data"));
    FKT_TRY(needs(a->mix.split != NULL, "--mix-split", a->mix.path != NULL, "--mix"));
    FKT_TRY(needs(a->mix.limit != 0, "--mix-limit", a->mix.path != NULL, "--mix"));
    FKT_TRY(needs(a->test.split != NULL, "--test-split", a->test.path != NULL, "--test"));
    FKT_TRY(needs(a->test.limit != 0, "--test-limit", a->test.path != NULL, "--test"));
    if ((a->per_class < 1 && !a->shared.path) || a->per_class > PER_CLASS_MAX)
        return fkt_fail(FKT_E_ARG, "--per-class must be between 1 and %d", PER_CLASS_MAX);
    if (!(a->holdout >= 0 && a->holdout < 1)) return fkt_fail(FKT_E_ARG, "--holdout must be at least 0 and below 1");
    if (a->size && (a->size < SIZE_MIN || a->size > SIZE_MAX_PX))
        return fkt_fail(FKT_E_ARG, "--size must be between %d and %d", SIZE_MIN, SIZE_MAX_PX);
out:
    return st;
}

static fkt_status check_optimizer(struct cli_train *a)
{
    const int adam = a->optimizer == FKT_LEARN_ADAM;
    fkt_status st;
    FKT_TRY(needs(a->beta_given[0], "--beta1", adam, "--optimizer adam"));
    FKT_TRY(needs(a->beta_given[1], "--beta2", adam, "--optimizer adam"));
    FKT_TRY(needs(a->momentum_given, "--momentum", !adam, "--optimizer sgd"));
    FKT_TRY(needs(a->no_nesterov, "--no-nesterov", !adam, "--optimizer sgd"));
    a->recipe.optimizer = (enum fkt_learn_optimizer)a->optimizer;
    if (adam && !a->rate_given) a->recipe.rate = 0.001; /* PyTorch's default */
out:
    return st;
}

static fkt_status check_use(const struct cli_train *a)
{
    fkt_status st;
    FKT_TRY(needs(a->resume, "--resume", a->checkpoint != NULL, "--checkpoint"));
    FKT_TRY(needs(a->checkpoint_steps != 0, "--checkpoint-steps", a->checkpoint != NULL, "--checkpoint"));
    FKT_TRY(needs(a->ema_out != NULL, "--ema-out", a->recipe.ema != 0, "--ema"));
    FKT_TRY(needs(a->step_every_given, "--step-every", a->recipe.schedule == FKT_SCHEDULE_STEP, "--schedule step"));
    FKT_TRY(needs(a->step_by_given, "--step-by", a->recipe.schedule == FKT_SCHEDULE_STEP, "--schedule step"));
    FKT_TRY(needs(a->through_codec, "--through-codec", a->test.path != NULL, "--test"));
    FKT_TRY(
        needs(a->through_codec, "--through-codec", a->release || a->codec, "--codec, or a --release, which names one"));
    FKT_TRY(needs(a->codec != NULL, "--codec", a->through_codec, "--through-codec"));
    FKT_TRY(needs(a->codec_dim != 0, "--dim", a->codec != NULL, "--codec"));
    FKT_TRY(needs(a->settings.weights != NULL, "--weights", a->release || a->codec, "--release or --through-codec"));
    FKT_TRY(needs(a->settings.guide_weights != NULL, "--guide-weights", a->head_teaches || a->guided,
                  "--teacher head or --guided"));
    FKT_TRY(needs(a->settings.dtype != 0, "--codec-dtype", a->release || a->codec, "--release or --through-codec"));
    FKT_TRY(needs(a->settings.low_memory, "--low-memory", a->release || a->codec, "--release or --through-codec"));
    if (a->codec && a->release) return fkt_fail(FKT_E_ARG, "--codec: the release already names its codec");
    if (a->checkpoint_steps > UINT32_MAX) return fkt_fail(FKT_E_ARG, "--checkpoint-steps is too large");
out:
    return st;
}

static fkt_status check_recipe(const struct fkt_recipe *r)
{
    static const struct cli_recipe_option option[] = {CLI_RECIPE("--epochs", epochs),
                                                      CLI_RECIPE("--batch", batch),
                                                      CLI_RECIPE("--rate", rate),
                                                      CLI_RECIPE("--momentum", momentum),
                                                      CLI_RECIPE("--beta1", beta1),
                                                      CLI_RECIPE("--beta2", beta2),
                                                      CLI_RECIPE("--decay", decay),
                                                      CLI_RECIPE("--warmup", warmup),
                                                      CLI_RECIPE("--step-every", step_every),
                                                      CLI_RECIPE("--step-by", step_by),
                                                      CLI_RECIPE("--pad", pad),
                                                      CLI_RECIPE("--smoothing", smoothing),
                                                      CLI_RECIPE("--ema", ema),
                                                      CLI_RECIPE("--temperature", temperature),
                                                      CLI_RECIPE("--teacher-share", share)};
    return cli_recipe_check(r, option, CLI_COUNT(option));
}

static uint32_t narrow(uint64_t x) { return x > UINT32_MAX ? UINT32_MAX : (uint32_t)x; }

fkt_status cli_train_check(struct cli_train *a)
{
    struct fkt_recipe *r = &a->recipe;
    fkt_status st;
    r->epochs = narrow(a->epochs);
    r->batch = narrow(a->batch);
    r->pad = narrow(a->pad);
    r->flip = !a->no_flip;
    r->nesterov = !a->no_nesterov && r->momentum != 0;
    r->schedule = (enum fkt_schedule)a->schedule;
    r->dtype = (enum fkt_learn_dtype)a->dtype;
    a->head_teaches = a->teacher && !strcmp(a->teacher, "head");
    if (a->head_teaches) a->teacher = NULL;
    r->share = !a->teacher && !a->head_teaches ? 0 : a->share >= 0 ? a->share : a->head_teaches ? 1 : 0.5;
    if (a->head_teaches && !a->temperature_given) r->temperature = FKT_TEACHER_TEMPERATURE;
    a->estimate.estimator = (enum fkt_estimator)a->estimator;
    FKT_TRY(check_images(a));
    FKT_TRY(check_teacher(a));
    FKT_TRY(check_use(a));
    FKT_TRY(check_optimizer(a));
    FKT_TRY(cli_threads(a->run.threads, &r->threads));
    FKT_TRY(check_recipe(r));
    FKT_TRY(cli_device_settle(a->settings.device, &r->device));
out:
    return st;
}

struct output {
    const char *option, *path;
};

static fkt_status check_names(const struct output *outs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (outs[i].path && outs[k].path && fkt_same_place(outs[i].path, outs[k].path))
                return fkt_fail(FKT_E_ARG, "%s and %s are both '%s'", outs[i].option, outs[k].option, outs[i].path);
    return FKT_OK;
}

/* Checks that a folder, with its parents, can be made at the end: looks at the first parent that exists. */
static fkt_status check_events(const char *path)
{
    char at[PATH_MAX];
    struct stat s;
    if (!path) return FKT_OK;
    if (!*path) return fkt_fail(FKT_E_ARG, "--tensorboard: '' is not a folder name");
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return fkt_fail(FKT_E_ARG, "--tensorboard: the name of the folder is too long");
    while (stat(at, &s) != 0) {
        char *slash = strrchr(at, '/');
        if (errno != ENOENT || !strcmp(at, ".")) return fkt_fail_in(fkt_io_fail("look at", at), "--tensorboard");
        if (!slash) snprintf(at, sizeof at, ".");
        else slash[slash == at] = '\0'; /* the root keeps its slash */
    }
    if (!S_ISDIR(s.st_mode)) return fkt_fail(FKT_E_ARG, "--tensorboard: '%s' is a file, not a folder", at);
    if (access(at, W_OK | X_OK) != 0) return fkt_fail_in(fkt_io_fail("write into folder", at), "--tensorboard");
    return FKT_OK;
}

fkt_status cli_train_outputs(const struct cli_train *a)
{
    const struct output outs[] = {
        {"--out", a->out},       {"--ema-out", a->ema_out},       {"--onnx", a->onnx},
        {"--curves", a->curves}, {"--checkpoint", a->checkpoint}, {"--tensorboard", a->tensorboard}};
    enum { FREE = 4, FILES = 5 }; /* of these: outputs that must not exist, and files */
    const char *const ins[] = {a->data.path, a->mix.path, a->shared.path, a->test.path,
                               a->release,   a->from,     a->teacher,     a->settings.weights};
    fkt_status st;
    FKT_TRY(check_names(outs, CLI_COUNT(outs)));
    for (size_t i = 0; i < FILES; i++)
        for (size_t k = 0; k < CLI_COUNT(ins); k++)
            FKT_TRY(cli_output_not_an_input(outs[i].option, outs[i].path, ins[k]));
    for (size_t i = 0; i < FREE; i++)
        if (outs[i].path) FKT_TRY(fkt_output_file(outs[i].path, a->run.force));
    FKT_TRY(check_events(a->tensorboard));
    if (!a->checkpoint) goto out;
    if (!a->resume && !a->run.force && access(a->checkpoint, F_OK) == 0) {
        st = fkt_fail_hint(FKT_E_EXISTS, "give --resume to continue from it, or --force to start again and replace it",
                           "checkpoint '%s' exists already", a->checkpoint);
        goto out;
    }
    FKT_TRY(fkt_output_file(a->checkpoint, FKT_FILE_REPLACE));
out:
    return st;
}
