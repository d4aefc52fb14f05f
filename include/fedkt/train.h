/* SPDX-License-Identifier: Apache-2.0 */
/* train.h - training sets, and the paper's two downstream protocols on them.
 *
 * A training set is images with labels in memory: read from a dataset, drawn from a release (no images on disk), or
 * both. What it was made of decides what a model that learns from it may claim. A trainer does not know that: give the
 * set's origin to the model that comes out (fkt_model_set_origin), with those of teacher and start added
 * (fkt_model_origin_add).
 */
#ifndef FEDKT_TRAIN_H
#define FEDKT_TRAIN_H

#include "fedkt/generate.h"
#include "fedkt/learn.h"
#include "fedkt/pipeline.h"
#include "fedkt/release.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_training_set {
    uint8_t *rgb;    /* (n, S, S, 3) owned */
    uint32_t *label; /* (n) owned */
    float *teacher;  /* (n, n_classes) owned: a teacher's logits; NULL: none */
    size_t n;
    uint32_t size;  /* S */
    char **classes; /* (n_classes) owned */
    uint32_t n_classes;
    struct fkt_model_origin origin; /* recipe "" */
};
FKT_API void fkt_training_set_clear(struct fkt_training_set *p);

/* *o has also seen what `more` tells of: private only if both are; `how` (may be "") begins the words, "taught by ".
 * Two promises of different releases add up, for their records may be the same. */
FKT_API void fkt_model_origin_add(struct fkt_model_origin *o, const char *how, const struct fkt_model_origin *more);

struct fkt_training_set_options {
    unsigned threads; /* 0: all */
    const struct fkt_progress *progress;
    struct fkt_skipped *skipped; /* NULL: an unreadable image stops */
    struct fkt_device device;    /* of a classifier that is evaluated on the images; a codec has its own */
};
/* Records idx[0..n-1] (NULL: all) of ds, scaled to S. A set that fkt_generate made carries its promise along when
 * `folder` (or the folder of that file; may be NULL) holds the certificate.json of a release that was really private,
 * and these are all of the images that it was written for, unchanged; all else is not private. A certificate is the
 * word of who wrote it: a change of images, images.json and certificate together is not detected here. */
FKT_API FKT_MUST_USE fkt_status fkt_training_set_read(struct fkt_training_set *out, const struct fkt_dataset *ds,
                                                      const size_t *idx, size_t n, uint32_t size,
                                                      enum fkt_filter filter, const char *folder,
                                                      const struct fkt_training_set_options *options);

struct fkt_draw_options {
    size_t per_class;
    uint64_t seed;
    uint64_t first; /* number of the first sample of each class: another epoch, other images */
    struct fkt_estimate_options estimate;
    const struct fkt_pipeline *pipeline; /* of the release; borrowed */
    struct fkt_guided_options guided;    /* zeros: AUTO, as in fkt_generate_options */
    struct fkt_guided_facts *made;       /* filled with how they are made; may be NULL */
};
/* Samples and decodes: the same images as fkt_generate with the same seed. */
FKT_API FKT_MUST_USE fkt_status fkt_training_set_draw(struct fkt_training_set *out, const struct fkt_release *r,
                                                      const struct fkt_draw_options *draw,
                                                      const struct fkt_training_set_options *options);
/* Pictures of `more` after those of p; sizes and class names must agree, and both have a teacher's logits or neither.
 * The result is private only if both are. */
FKT_API FKT_MUST_USE fkt_status fkt_training_set_append(struct fkt_training_set *p,
                                                        const struct fkt_training_set *more);
/* Every image encoded and decoded: closer to what a network saw that was trained on decoded images. */
FKT_API FKT_MUST_USE fkt_status fkt_training_set_through_codec(struct fkt_training_set *p,
                                                               const struct fkt_codec *codec,
                                                               const struct fkt_training_set_options *options);
/* Cuts a stratified share of p off into *held (fkt_split_stratified). */
FKT_API FKT_MUST_USE fkt_status fkt_training_set_hold_out(struct fkt_training_set *p, struct fkt_training_set *held,
                                                          double share, uint64_t seed);
FKT_API FKT_MUST_USE fkt_status fkt_training_set_evaluate(struct fkt_evaluation *j /* initialised */,
                                                          const struct fkt_model *m, const struct fkt_training_set *p,
                                                          const struct fkt_predict_options *options);

/* ---- the personalised protocol: per-site accuracy on the site's own held-out records ---- */

enum fkt_personal_way {
    FKT_PERSONAL_GLOBAL = 0,   /* pretrained on X*, untouched */
    FKT_PERSONAL_TUNED,        /* pretrained on X*, last layer fine-tuned on the site's records: ours */
    FKT_PERSONAL_LOCAL,        /* trained on the site's records alone, from scratch */
    FKT_PERSONAL_FEDAVG,       /* those local models averaged once, weighted by records */
    FKT_PERSONAL_FEDAVG_TUNED, /* that average, last layer fine-tuned */
    FKT_PERSONAL_WAYS
};
FKT_API const char *
fkt_personal_name(enum fkt_personal_way w); /* "global", "tuned", "local", "fedavg", "fedavg_tuned" */

struct fkt_personal_spec {
    const struct fkt_model *pretrained;  /* on X*; borrowed */
    const struct fkt_training_set *data; /* all sites' records, borrowed */
    const struct fkt_training_set *test; /* what to evaluate on, borrowed: each class is shared out over the sites in
                                           proportion to their records of it; NULL: records of the sites' own */
    struct fkt_partition_spec partition;
    double holdout;          /* without `test`: of each class of each site, 0 to below 1; one record of it always
                                stays for training */
    struct fkt_recipe local; /* local training, also FedAvg's; its device is that of all predictions */
    struct fkt_recipe tune;  /* of the last layer */
    unsigned ways;           /* mask of 1 << fkt_personal_way; 0: all */
    uint64_t seed;           /* splits, first weights, order of batches: the seeds of `local` and `tune` do not count */
    const struct fkt_progress *progress;
    /* Each model as it is made, borrowed: TUNED, LOCAL and FEDAVG_TUNED of a site, FEDAVG once, as of site 0. None of
     * them is private, and their origins say so. May be NULL. */
    fkt_status (*model)(void *ctx, uint32_t site, enum fkt_personal_way way, const struct fkt_model *m);
    void *ctx;
};
struct fkt_personal_site {
    uint64_t train, test; /* records */
    uint32_t classes;     /* with a record */
    int untrained;        /* 1: fewer than two records to train on, so LOCAL is the network of the start,
                                           which the average leaves out */
    double *accuracy;     /* (ways) NaN: not asked for, or the site has no test record */
};
struct fkt_personal {
    uint32_t sites;
    struct fkt_personal_site *site; /* (sites) owned */
    uint32_t ways;         /* FKT_PERSONAL_WAYS of this library: the length of each array, by enum fkt_personal_way */
    double *mean, *spread; /* (ways) over sites with test records, each with the same weight; owned */
    double *pooled;        /* (ways) hits over records of all sites */
};
FKT_API FKT_MUST_USE fkt_status fkt_personalize(struct fkt_personal *out, const struct fkt_personal_spec *spec);
FKT_API void fkt_personal_clear(struct fkt_personal *p);

#ifdef __cplusplus
}
#endif
#endif
