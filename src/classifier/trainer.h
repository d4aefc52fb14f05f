/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.h - the internals of a training run; private to this module. A checkpoint stores fkt_progressed and the
 * learner's arrays; everything else follows from the spec. */
#ifndef FKT_CLASSIFIER_TRAINER_H
#define FKT_CLASSIFIER_TRAINER_H

#include "fedkt/learn.h"

#include "nn/learner.h"

/* The progress of a run. */
struct fkt_progressed {
    uint64_t step;        /* steps done since the first epoch began */
    uint32_t epochs;      /* done, with their evaluation: entries of history */
    double loss, seconds; /* of the current epoch: sum of its steps' losses, time spent */
    uint64_t hits;
};

struct fkt_trainer {
    struct fkt_recipe recipe;
    struct fkt_image_source source;
    struct fkt_images held;          /* n 0: none */
    const struct fkt_model *teacher; /* borrowed; NULL: none */
    struct fkt_model *model;         /* the network; its weights are those last read from the learner */
    struct fkt_learner *learner;
    size_t n;              /* images of every epoch */
    uint32_t batch;        /* min(recipe's, n) */
    uint64_t epoch_steps;  /* n / batch */
    struct fkt_images now; /* from the source, of epoch now_epoch */
    uint32_t now_epoch;
    size_t *order; /* (n) of the current epoch */
    float value[3][256], teacher_value[3][256];
    float *in, *teacher_in;           /* (batch, 3, S, S) */
    float *out, *slope, *teacher_out; /* (batch, K) */
    uint32_t *label;                  /* (batch) */
    struct fkt_progressed done;
    struct fkt_epoch *history;                  /* (recipe's epochs), done.epochs of them filled */
    uint64_t images_sum, held_sum, teacher_sum; /* checksums; 0: none */
    uint64_t start_sum;                         /* of the weights that the first step begins with */
    int failed_midway;                          /* a step or a resume failed half-way */
    int elsewhere;                              /* some steps before a resume ran on another kind of device */
    /* planned.c */
    int resident, too_large;       /* the learner holds images of the source; or they do not fit */
    uint32_t resident_epoch;       /* whose they are */
    uint64_t plan_step, plan_hits; /* done.step and done.hits when the plan was made */
};

/* As fkt_trainer_new, on a learner of the caller's choice. */
FKT_MUST_USE fkt_status fkt_trainer_new_on(struct fkt_trainer **out, const struct fkt_trainer_spec *spec,
                                           const struct fkt_learner_backend *backend);
/* The source's images of this epoch into t->now, checked: size, number, labels. */
FKT_MUST_USE fkt_status fkt_trainer_fetch(struct fkt_trainer *t, uint32_t epoch);
/* Weights or their average into m; FKT_E_NUMERIC names the tensor that is not finite. */
FKT_MUST_USE fkt_status fkt_trainer_read(const struct fkt_trainer *t, enum fkt_learned what, struct fkt_model *m);

/* epochs.c: what step number `step` does, and the failure at step done.step. */
struct fkt_optimizer fkt_trainer_optimizer(const struct fkt_trainer *t, uint64_t step);
float fkt_trainer_decay(const struct fkt_trainer *t, uint64_t step); /* of the average; negative: there is none */
fkt_status fkt_trainer_diverged(const struct fkt_trainer *t);

/* planned.c. The next `steps` steps of the epoch, on images that the learner holds. *planned 0: it takes batches. */
FKT_MUST_USE fkt_status fkt_trainer_plan(struct fkt_trainer *t, uint64_t steps, int *planned);
/* Steps until the host should look: few enough to be stopped soon, none beyond a checkpoint. */
uint64_t fkt_trainer_chunk(const struct fkt_trainer *t, uint64_t left, uint64_t checkpoint_steps /* 0: none */);
FKT_MUST_USE fkt_status fkt_trainer_planned_steps(struct fkt_trainer *t, uint64_t steps);

/* checkpoint.c; replaces an existing file. */
FKT_MUST_USE fkt_status fkt_trainer_save(const struct fkt_trainer *t, const char *path);

#endif
