/* SPDX-License-Identifier: Apache-2.0 */
/* personal.h - what the files of the personalised protocol share: the split of the records, and the run. */
#ifndef FKT_LEARNING_PERSONAL_H
#define FKT_LEARNING_PERSONAL_H

#include "fedkt/train.h"

#include "base/status.h"

struct fkt_model_average;

/* Site after site: record[start[s]..start[s+1]) are those of site s, in the order of their set. */
struct fkt_personal_part {
    size_t *record; /* (start[sites]) */
    size_t *start;  /* (sites + 1) */
};
struct fkt_personal_split {
    uint32_t sites;
    struct fkt_personal_part train, test; /* test: records of the test set, if there is one */
};
struct fkt_personal_labels {
    const uint32_t *label; /* (n) */
    size_t n, classes;
};
/* Partition by its own seed. Then, without test: for each site and class about holdout of the records (rounded to
 * nearest, but at least one stays for training) by (seed, site, class). With test: each class of it in proportion to
 * the sites' records of that class, by (seed, class); a class that no site holds is left out. */
FKT_MUST_USE fkt_status fkt_personal_split_init(struct fkt_personal_split *out, const struct fkt_personal_labels *data,
                                                const struct fkt_personal_labels *test /* NULL: none */,
                                                const struct fkt_partition_spec *partition, double holdout,
                                                uint64_t seed);
void fkt_personal_split_clear(struct fkt_personal_split *s);

enum { FKT_PERSONAL_LEAST = 2 }; /* records to train on: batch norm needs two images in a batch */

/* personal_result.c. FKT_E_MISMATCH: the sets are not of the network's size and classes. */
FKT_MUST_USE fkt_status fkt_personal_check_sets(const struct fkt_model *m, const struct fkt_training_set *data,
                                                const struct fkt_training_set *test /* NULL: none */);
/* New weights for a network like `like`, from the seed of the run: the same for everything that starts anew on it. */
FKT_MUST_USE fkt_status fkt_personal_start(struct fkt_model **out, const struct fkt_model *like,
                                           const struct fkt_training_set *data, uint64_t seed);
/* Fills what is known before any network runs; all accuracies are NaN. */
FKT_MUST_USE fkt_status fkt_personal_describe(struct fkt_personal *out, const struct fkt_personal_split *split,
                                              const struct fkt_training_set *data, uint32_t ways);
/* Mean and standard deviation over the sites that could be evaluated; NaN where there are too few for either.
 * pooled (ways). */
void fkt_personal_summarise(struct fkt_personal *p, const struct fkt_evaluation *pooled);

/* One count of images through a network, over all of a run. */
struct fkt_personal_course {
    struct fkt_progress hook; /* what trainer and prediction step */
    const struct fkt_progress *outer;
    unsigned long long before, total; /* before: images of finished parts */
};

struct fkt_personal_run {
    const struct fkt_personal_spec *spec;
    struct fkt_personal *out;
    struct fkt_personal_split split;
    unsigned ways;
    struct fkt_model *start, *average;
    struct fkt_model_average *sum;
    struct fkt_evaluation pooled[FKT_PERSONAL_WAYS];
    struct fkt_personal_course course;
    /* of the site at hand */
    uint32_t site;
    struct fkt_images train, test;
    uint8_t *rgb;
    uint32_t *label;
    float *logits, *features; /* (n of the largest site, K), (the same, F) */
};
int fkt_personal_asked(const struct fkt_personal_run *r, enum fkt_personal_way w);
int fkt_personal_asked_local(const struct fkt_personal_run *r);   /* local models are needed */
int fkt_personal_asked_average(const struct fkt_personal_run *r); /* and their average */
/* The seed of a site's random choices. */
uint64_t fkt_personal_seed(const struct fkt_personal_run *r, uint64_t stream, uint32_t site);
size_t fkt_personal_count(const struct fkt_personal_part *p, uint32_t site);
void fkt_personal_plan(struct fkt_personal_run *r); /* course, from the split */

void fkt_personal_load(struct fkt_personal_run *r, uint32_t site);
/* Evaluates a common network as it is, and with its last layer tuned at this site. */
FKT_MUST_USE fkt_status fkt_personal_base(struct fkt_personal_run *r, const struct fkt_model *base,
                                          enum fkt_personal_way plain, enum fkt_personal_way tuned);
/* Trains from r->start, adds to r->sum, evaluates. */
FKT_MUST_USE fkt_status fkt_personal_local(struct fkt_personal_run *r);
/* A model trained on a site's records claims no privacy: a release's promise does not cover it. */
void fkt_personal_disown(struct fkt_model *m, const char *how, const struct fkt_model *before /* may be NULL */);
FKT_MUST_USE fkt_status fkt_personal_hand_out(const struct fkt_personal_run *r, enum fkt_personal_way way,
                                              const struct fkt_model *m);

/* personal_head.c: a common classifier as it is, and with each site's class proportions as its prior. */
enum { FKT_PERSONAL_HEAD_PLAIN = 0, FKT_PERSONAL_HEAD_PRIOR, FKT_PERSONAL_HEAD_WAYS };
struct fkt_personal_head_spec {
    const struct fkt_training_set *data, *test; /* borrowed; pixels are not used */
    const float *logits; /* (test->n, K) borrowed: log posterior of each test record for equal priors */
    struct fkt_partition_spec partition;
    uint64_t seed; /* as in fkt_personal_spec: the same records go to the same sites */
};
FKT_MUST_USE fkt_status fkt_personal_head(struct fkt_personal *out, const struct fkt_personal_head_spec *spec);

#endif
