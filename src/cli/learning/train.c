/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - `fedkt train`: the table of its options. The work is in train_check.c, train_data.c, train_run.c,
 * train_report.c. */
#include "cli/learning/train.h"
#include "cli/core/guided.h"
#include "cli/core/verbs.h"

#include <string.h>

static int parse_optimizer(const char *s)
{
    return !strcmp(s, "sgd") ? FKT_LEARN_SGD : !strcmp(s, "adam") ? FKT_LEARN_ADAM : -1;
}
static int parse_dtype(const char *s) { return !strcmp(s, "f32") ? 0 : !strcmp(s, "bf16") ? 1 : -1; }

void cli_train_defaults(struct cli_train *a)
{
    memset(a, 0, sizeof *a);
    fkt_recipe_default(&a->recipe);
    a->epochs = a->recipe.epochs;
    a->batch = a->recipe.batch;
    a->pad = a->recipe.pad;
    a->schedule = (int)a->recipe.schedule;
    a->share = -1;
    a->head_kind = fkt_head_default(0);
    a->per_class = 500;
}

#define IMAGE_ROWS(a)                                                                                                  \
    CLI_OPT_HEAD("training images: a set, or a release"),                                                              \
        CLI_OPT_TEXT("data", &(a).data.path, "PATH", 0, "any image set that fedkt reads, or a folder of 'generate'"),  \
        CLI_OPT_TEXT("split", &(a).data.split, "NAME", 0, "train, test or val, where the set has splits"),             \
        CLI_OPT_WHOLE("limit", &(a).data.limit, "N", 0, "use N images of --data, spread evenly over the classes"),     \
        CLI_OPT_FLAG("skip-bad", &(a).data.skip_bad, "leave out images that cannot be read, count and name them"),     \
        CLI_OPT_TEXT("release", &(a).release, "FILE", 0, "draw and decode images in memory, not on disk"),             \
        {CLI_WHOLE, "per-class", &(a).per_class,      "N", "images drawn for each class (default: 500)", 0,            \
         NULL,      NULL,        &(a).per_class_given},                                                                \
        CLI_OPT_FLAG("fresh", &(a).fresh, "draw new images for each epoch (default: the same images)"),                \
        {CLI_WHOLE,                                                                                                    \
         "draw-seed",                                                                                                  \
         &(a).draw_seed,                                                                                               \
         "S",                                                                                                          \
         "seed of the samples, as in 'generate --seed' (default: 0)",                                                  \
         0,                                                                                                            \
         NULL,                                                                                                         \
         NULL,                                                                                                         \
         &(a).draw_seed_given},                                                                                        \
        CLI_GUIDED_ROW((a).guided),                                                                                    \
        CLI_OPT_REAL("plain", &(a).plain, "F", 0, "decode this share of the images without the guide (default: 0)"),   \
        CLI_OPT_REAL("blend", &(a).blend, "F", 0,                                                                      \
                     "with --teacher head --fresh: this share of each epoch's images is made of two (default: 0)"),    \
        CLI_OPT_CHOICE("estimator", &(a).estimator, fkt_estimator_parse, "clamp or rie",                               \
                       "how covariances are repaired"),                                                                \
        CLI_OPT_REAL("tau", &(a).estimate.tau, "T", 0, "clamp: eigenvalue floor (default: 1e-6)"),                     \
        CLI_OPT_REAL("pool", &(a).estimate.pool, "P", 0,                                                               \
                     "weight of the covariance pooled over classes, 0 to 1 (default: 0)"),                             \
        CLI_OPT_TEXT("mix", &(a).mix.path, "PATH", 0, "add real local images: the model is then NOT private"),         \
        CLI_OPT_TEXT("mix-split", &(a).mix.split, "NAME", 0, "split of --mix"),                                        \
        CLI_OPT_WHOLE("mix-limit", &(a).mix.limit, "N", 0, "use N images of --mix"),                                   \
        CLI_OPT_TEXT("public", &(a).shared.path, "PATH", 0,                                                            \
                     "add unlabelled public images, which --teacher head labels; the promise does not cover them"),    \
        CLI_OPT_TEXT("public-split", &(a).shared.split, "NAME", 0, "split of --public"),                               \
        CLI_OPT_WHOLE("public-limit", &(a).shared.limit, "N", 0, "use N images of --public"),                          \
        CLI_OPT_WHOLE("public-per-epoch", &(a).shared_each, "N", 0,                                                    \
                      "of them in each epoch, others in the next (default: as many as the other images)"),             \
        CLI_OPT_REAL("holdout", &(a).holdout, "F", 0,                                                                  \
                     "evaluate epochs on this fraction of --data or --release, never of --mix (default: 0)"),          \
        CLI_OPT_CHOICE_GIVEN("filter", &(a).filter, fkt_filter_parse, "bilinear, bicubic, lanczos or box",             \
                             "how images are scaled", &(a).filter_given),                                              \
        CLI_FIT_ROW((a).data), CLI_BITS_ROW((a).data)

#define NETWORK_ROWS(a)                                                                                                \
    CLI_OPT_HEAD("network"),                                                                                           \
        CLI_OPT_CHOICE_GIVEN("network", &(a).architecture, fkt_architecture_parse, "resnet18 or resnet8",              \
                             "architecture; resnet8 is for quick runs", &(a).architecture_given),                      \
        CLI_OPT_CHOICE_GIVEN("stem", &(a).stem, fkt_stem_parse, "cifar or imagenet",                                   \
                             "first layers: for small images, or for large ones", &(a).stem_given),                    \
        CLI_OPT_WHOLE("size", &(a).size, "PX", 0, "side of the images (default: the release's, --from's, or 32)"),     \
        CLI_OPT_TEXT("from", &(a).from, "FILE", 0, "start from these weights (safetensors or ONNX)"),                  \
        CLI_OPT_TEXT("teacher", &(a).teacher, "head|FILE", 0,                                                          \
                     "distillation: from the release's own head, or from a model"),                                    \
        CLI_OPT_CHOICE_GIVEN("teacher-head", &(a).head_kind, fkt_head_parse, "rda, lda, qda or nearest_mean",          \
                             "which head of the release teaches", &(a).head_kind_given),                               \
        CLI_OPT_CHOICE_GIVEN("teacher-parts", &(a).head_on, fkt_heads_on_parse, "default, all or guide",               \
                             "which parts of an image's record vector it looks at; default: the guide alone, if any",  \
                             &(a).head_on_given),                                                                      \
        {CLI_REAL,                                                                                                     \
         "temperature",                                                                                                \
         &(a).recipe.temperature,                                                                                      \
         "T",                                                                                                          \
         "softmax temperature of the teacher (default: 4; a head: 2)",                                                 \
         0,                                                                                                            \
         NULL,                                                                                                         \
         NULL,                                                                                                         \
         &(a).temperature_given},                                                                                      \
        CLI_OPT_REAL("teacher-share", &(a).share, "F", 0, "weight of the teacher's loss (default: 0.5; a head: 1)")

#define RECIPE_ROWS(a)                                                                                                 \
    CLI_OPT_HEAD("recipe"), CLI_OPT_WHOLE("epochs", &(a).epochs, "N", 0, "passes over the images (default: 20)"),      \
        CLI_OPT_WHOLE("batch", &(a).batch, "N", 0, "images per step (default: 64)"),                                   \
        CLI_OPT_CHOICE("optimizer", &(a).optimizer, parse_optimizer, "sgd or adam", "as PyTorch's SGD and Adam"),      \
        {CLI_REAL,                                                                                                     \
         "rate",                                                                                                       \
         &(a).recipe.rate,                                                                                             \
         "R",                                                                                                          \
         "largest learning rate of the schedule (default: 0.05; adam: 0.001)",                                         \
         0,                                                                                                            \
         NULL,                                                                                                         \
         NULL,                                                                                                         \
         &(a).rate_given},                                                                                             \
        {CLI_REAL, "momentum", &(a).recipe.momentum, "M", "sgd: Nesterov momentum (default: 0.9)", 0,                  \
         NULL,     NULL,       &(a).momentum_given},                                                                   \
        CLI_OPT_FLAG("no-nesterov", &(a).no_nesterov, "sgd: plain momentum"),                                          \
        {CLI_REAL, "beta1", &(a).recipe.beta1, "B", "adam: decay of the mean of gradients (default: 0.9)", 0,          \
         NULL,     NULL,    &(a).beta_given[0]},                                                                       \
        {CLI_REAL, "beta2", &(a).recipe.beta2, "B", "adam: decay of the mean of their squares (default: 0.999)", 0,    \
         NULL,     NULL,    &(a).beta_given[1]},                                                                       \
        CLI_OPT_REAL("decay", &(a).recipe.decay, "D", 0, "weight decay (default: 0.0005)"),                            \
        CLI_OPT_CHOICE("schedule", &(a).schedule, fkt_schedule_parse, "cosine, constant, step or one-cycle",           \
                       "schedule of the learning rate"),                                                               \
        CLI_OPT_REAL("warmup", &(a).recipe.warmup, "E", 0, "epochs in which the rate grows from 0 (default: 0)"),      \
        {CLI_REAL, "step-every", &(a).recipe.step_every, "E", "step: every E epochs (default: 10) ...", 0,             \
         NULL,     NULL,         &(a).step_every_given},                                                               \
        {CLI_REAL, "step-by", &(a).recipe.step_by, "F", "... the rate is multiplied by F (default: 0.1)", 0,           \
         NULL,     NULL,      &(a).step_by_given},                                                                     \
        CLI_OPT_FLAG("no-flip", &(a).no_flip, "do not mirror images (default: one in two is mirrored)"),               \
        CLI_OPT_WHOLE("pad", &(a).pad, "PX", 0, "shift images at random by up to PX pixels (default: 4)"),             \
        CLI_OPT_REAL("smoothing", &(a).recipe.smoothing, "S", 0, "label smoothing, 0 to 1 (default: 0)"),              \
        CLI_OPT_REAL("ema", &(a).recipe.ema, "D", 0, "also keep a moving average of the weights: its decay per step"), \
        CLI_OPT_WHOLE("seed", &(a).recipe.seed, "S", 0,                                                                \
                      "first weights, order, augmentation (default: 1); repeats to the bit on one machine with the "   \
                      "same --threads and --device"),                                                                  \
        CLI_OPT_CHOICE("dtype", &(a).dtype, parse_dtype, "f32 or bf16",                                                \
                       "number format between layers; weights are f32; f32 is IEEE f32, also on a card"),              \
        CLI_DEVICE_ROW((a).settings.device)

#define OUTPUT_ROWS(a)                                                                                                 \
    CLI_OPT_HEAD("checkpoints"),                                                                                       \
        CLI_OPT_TEXT("checkpoint", &(a).checkpoint, "FILE", 0, "checkpoint, written after every epoch and on Ctrl-C"), \
        CLI_OPT_WHOLE("checkpoint-steps", &(a).checkpoint_steps, "N", 0,                                               \
                      "write the checkpoint also after every N steps"),                                                \
        CLI_OPT_FLAG("resume", &(a).resume, "continue from --checkpoint, to the same bits"),                           \
        CLI_OPT_HEAD("test set, used once, after the last epoch"),                                                     \
        CLI_OPT_TEXT("test", &(a).test.path, "PATH", 0, "real images to evaluate the model on"),                       \
        CLI_OPT_TEXT("test-split", &(a).test.split, "NAME", 0, "split of --test"),                                     \
        CLI_OPT_WHOLE("test-limit", &(a).test.limit, "N", 0, "use N test images in all"),                              \
        CLI_OPT_FLAG("through-codec", &(a).through_codec,                                                              \
                     "evaluate again with test images encoded and decoded first"),                                     \
        CLI_OPT_TEXT("codec", &(a).codec, "NAME", 0, "codec of --through-codec (default: the release's)"),             \
        CLI_OPT_WHOLE("dim", &(a).codec_dim, "D", 0, "its latent's length, for codecs that let you choose"),           \
        CLI_OPT_TEXT("weights", &(a).settings.weights, "PATH", 0, "its weights (default: the cache)"),                 \
        CLI_OPT_TEXT("guide-weights", &(a).settings.guide_weights, "PATH", 0, "the same for the release's guide"),     \
        CLI_OPT_CHOICE("codec-dtype", &(a).settings.dtype, fkt_codec_dtype_parse, "f32, bf16 or auto",                 \
                       "number format between the codec's layers"),                                                    \
        CLI_OPT_FLAG("low-memory", &(a).settings.low_memory,                                                           \
                     "use the codec's weights in the mapped file: less memory, slower"),                               \
        CLI_OPT_HEAD("files"),                                                                                         \
        CLI_OPT_TEXT("out", &(a).out, "FILE", 1, "the model: safetensors, with torchvision's names"),                  \
        CLI_OPT_TEXT("ema-out", &(a).ema_out, "FILE", 0, "the same with averaged weights (--ema)"),                    \
        CLI_OPT_TEXT("onnx", &(a).onnx, "FILE", 0, "the model as ONNX as well"),                                       \
        CLI_OPT_TEXT("curves", &(a).curves, "FILE", 0, "loss and accuracy by epoch as CSV"),                           \
        CLI_OPT_TEXT("tensorboard", &(a).tensorboard, "DIR", 0, "the same as a TensorBoard events file")

int cli_train(const struct cli_command *self, int argc, char **argv)
{
    struct cli_train a;
    struct cli_training t = {.asked = &a};
    const struct cli_option table[] = {IMAGE_ROWS(a), NETWORK_ROWS(a), RECIPE_ROWS(a), OUTPUT_ROWS(a),
                                       CLI_RUN_ROWS(a.run)};
    fkt_status st;
    int code;
    cli_train_defaults(&a);
    code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    if (code >= 0) return code;
    st = cli_train_check(&a);
    if (st == FKT_OK) st = cli_train_run(&t);
    cli_training_clear(&t);
    return cli_misuse(self, st);
}
