/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the problem of a network and the sites' images (method.h). */
#ifndef FKT_LEARNING_BASELINES_NETWORK_H
#define FKT_LEARNING_BASELINES_NETWORK_H

#include "learning/baselines/method.h"
#include "learning/personal.h"

#include "classifier/model.h"
#include "nn/learner.h"

/* Sites of the split that have enough to train on, in order; the rest take no part. */
struct fkt_site_records {
    uint32_t site;        /* of the split */
    size_t *train, *held; /* records of the set: to learn from, for validation; one block */
    size_t n_train, n_held;
};

struct fkt_network_problem {
    struct fkt_problem problem; /* what the methods see */
    const struct fkt_baselines_spec *spec;
    struct fkt_model *model, *teacher; /* work copies: their weights change */
    float *start;                      /* (state) */
    struct fkt_site_records *site;     /* (sites) */
    const struct fkt_learner_backend *backend;
    struct fkt_learner *learner[2]; /* for whole batches; for those of the small site that was last */
    uint32_t learner_batch[2];
    int taught;
    double last_loss; /* of the last gradient */
    struct fkt_loss loss;
    struct fkt_recipe views; /* flip, pad and the seed of the site at hand */
    size_t *order;           /* (records of the largest site), of site order_site in epoch order_epoch */
    uint32_t order_site, order_epoch;
    float value[3][256];
    float *in, *out, *slope, *teacher_out; /* (batch, 3, S, S), then (batch, K) */
    uint32_t *label;                       /* (batch) */
    uint8_t *rgb;                          /* (records that are predicted at once, S, S, 3) */
    float *logits;                         /* (the same, K) */
    /* blocks behind problem */
    uint64_t *records, *epoch;
    struct fkt_span *span;
    uint32_t *slot; /* (spans) of the model */
    /* progress over all methods */
    uint64_t before, total; /* rounds of sites: of earlier methods, of all */
    uint32_t done;          /* of this one */
};

/* Borrows spec and split. validation: the part of each site's records that is kept from training; 0: none. */
FKT_MUST_USE fkt_status fkt_network_problem_init(struct fkt_network_problem *q, const struct fkt_baselines_spec *spec,
                                                 const struct fkt_personal_split *split, double validation);
void fkt_network_problem_clear(struct fkt_network_problem *q);
/* The network with weights x, on records of a set: adds to both evaluations; the second may be NULL. */
FKT_MUST_USE fkt_status fkt_network_evaluate(struct fkt_network_problem *q, const float *x,
                                             const struct fkt_training_set *set, const size_t *record, size_t n,
                                             struct fkt_evaluation *one, struct fkt_evaluation *two);
/* For network_steps.c. Of a site: its batch size; the learner for it; the order of its images in an epoch, in q->order;
 * weights x into a learner; is the run to stop, with so many sites of rounds done? */
uint32_t fkt_network_batch(const struct fkt_network_problem *q, uint32_t site);
FKT_MUST_USE fkt_status fkt_network_learner(struct fkt_network_problem *q, uint32_t batch, struct fkt_learner **out);
void fkt_network_order(struct fkt_network_problem *q, uint32_t site, uint32_t epoch);
FKT_MUST_USE fkt_status fkt_network_write(struct fkt_network_problem *q, struct fkt_learner *l, const float *x);
int fkt_network_stopped(struct fkt_network_problem *q);
/* network_steps.c: `descend` of the problem, on a learner that holds the site's images. */
FKT_MUST_USE fkt_status fkt_network_descend(void *self, uint32_t site, const struct fkt_local_step *step, uint64_t n,
                                            float *x, float *anchor, int *done);
/* network_layout.c: spans of q->model's numbers, parameters before statistics, and its weights as q->start; weights x
 * into a model of the same shape. */
FKT_MUST_USE fkt_status fkt_network_layout(struct fkt_network_problem *q);
void fkt_network_store(const struct fkt_network_problem *q, const float *x, struct fkt_model *m);

#endif
