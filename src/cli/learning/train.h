/* SPDX-License-Identifier: Apache-2.0 */
/* train.h - options and state of a run of `fedkt train`; one file per part. */
#ifndef FKT_CLI_LEARNING_TRAIN_H
#define FKT_CLI_LEARNING_TRAIN_H

#include "cli/learning/evaluation.h"

#include "fedkt/training_source.h"

struct cli_train {
    struct cli_data data, mix, test, shared; /* shared: --public */
    const char *release, *from, *teacher;    /* teacher: a model's file; after the check NULL for a head */
    int head_teaches, head_kind, head_kind_given, head_on, head_on_given;
    uint64_t shared_each; /* --public-per-epoch; 0: as many as the others */
    uint64_t per_class, draw_seed;
    const char *guided; /* as typed; NULL: not given */
    int fresh, filter;
    double plain, blend; /* shares of the images of an epoch */
    int per_class_given, draw_seed_given, filter_given;
    struct fkt_estimate_options estimate;
    int estimator;
    const char *codec; /* of --through-codec; NULL: the release's */
    uint64_t codec_dim;
    struct cli_weights settings;
    double holdout;
    int architecture, architecture_given, stem, stem_given;
    uint64_t size; /* 0: the release's, the model's, or 32 */
    struct fkt_recipe recipe;
    uint64_t epochs, batch, pad; /* the recipe, as typed */
    double share;                /* of the teacher; negative: not given */
    int optimizer, rate_given, momentum_given, beta_given[2];
    int no_flip, no_nesterov, dtype, schedule, temperature_given, step_every_given, step_by_given;
    const char *out, *ema_out, *onnx, *curves, *tensorboard, *checkpoint;
    uint64_t checkpoint_steps;
    int resume, through_codec;
    struct cli_run run;
};

/* Where the images of each epoch come from. */
struct cli_images {
    struct fkt_release release;    /* task.n_classes 0: none */
    struct fkt_pipeline *pipeline; /* of the release */
    struct fkt_teacher *teacher;   /* its head; NULL: none, or a model */
    struct fkt_training_source *source;
    struct fkt_dataset *shared; /* --public, until its images are read */
    struct fkt_skipped skipped;
};

/* One run of `fedkt train` from its options to its results. */
struct cli_training {
    const struct cli_train *asked;
    struct cli_progress progress;
    struct cli_images images;
    struct fkt_model *start, *from, *teacher;
    struct fkt_trainer *trainer;
    struct fkt_model *model, *averaged; /* the trained models; the second only with --ema */
    struct fkt_codec *codec;            /* of --through-codec, opened here; NULL: the pipeline's, or none */
    struct fkt_dataset *test;
    struct cli_evaluation evaluated, evaluated_averaged;
    struct fkt_skipped skipped; /* of the test set */
    double began, seconds;
    int resumed;
};

/* verb_train.c */
void cli_train_defaults(struct cli_train *a);

/* train_check.c: checks combinations of options and outputs that exist; fills in the recipe. */
FKT_MUST_USE fkt_status cli_train_check(struct cli_train *a);
FKT_MUST_USE fkt_status cli_train_outputs(const struct cli_train *a);

/* train_recipe.c: the effective options in one line, without paths, which may be private. */
/* head: the teacher, or NULL; what it is may depend on the release. */
void cli_train_recipe_line(char *out, size_t cap, const struct cli_train *a, const struct fkt_model *m,
                           const struct fkt_teacher *head, int moved);

/* train_data.c: like (may be NULL): the model whose size and class order are the default. */
FKT_MUST_USE fkt_status cli_images_open(struct cli_images *p, const struct cli_train *a,
                                        const struct fkt_progress *progress, const struct fkt_model *like);
void cli_images_clear(struct cli_images *p);

/* train_run.c: the whole run; or in two steps, without files and evaluation: first everything that can fail before
 * the first epoch, which sets the start's classes and size; then the epochs, which set the model and its provenance. */
FKT_MUST_USE fkt_status cli_train_run(struct cli_training *t);
FKT_MUST_USE fkt_status cli_train_prepare(struct cli_training *t);
FKT_MUST_USE fkt_status cli_train_learn(struct cli_training *t);
void cli_training_clear(struct cli_training *t);

/* train_report.c */
FKT_MUST_USE fkt_status cli_train_epoch(void *ctx, const struct fkt_epoch *e); /* ctx: struct cli_training; stderr */
FKT_MUST_USE fkt_status cli_train_print(const struct cli_training *t);

/* curve.c: accuracies of all epochs as a text chart on stdout; nothing for fewer than three. */
void cli_curve_show(const struct fkt_epoch *e, size_t n);

#endif
