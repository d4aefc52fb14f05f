/* SPDX-License-Identifier: Apache-2.0 */
/* baselines.h - personalised federated learning by others, on the records and splits of fkt_personalize: what the
 * personalised table of the paper compares with. Research code beside the product: these methods exchange models of
 * the sites' records, round after round, and promise no privacy.
 */
#ifndef FEDKT_ADVANCED_BASELINES_H
#define FEDKT_ADVANCED_BASELINES_H

#include "fedkt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fkt_baseline {
    FKT_BASELINE_LOCAL = 0,   /* each site alone */
    FKT_BASELINE_FEDAVG_ONCE, /* the models of LOCAL, averaged once at the end */
    FKT_BASELINE_FEDAVG,      /* averaged after every round; one common model */
    FKT_BASELINE_PERFEDAVG,
    FKT_BASELINE_PFEDME,
    FKT_BASELINE_FEDAMP,
    FKT_BASELINE_FEDPHP,
    FKT_BASELINE_FEDFOMO,
    FKT_BASELINE_APPLE,
    FKT_BASELINE_PARTIALFED,
    FKT_BASELINES
};
FKT_API const char *fkt_baseline_name(enum fkt_baseline b);   /* "local", "fedavg_once", "fedavg", "perfedavg", ... */
FKT_API const char *fkt_baseline_source(enum fkt_baseline b); /* "McMahan et al., AISTATS 2017"; "": none needed */
FKT_API int fkt_baseline_parse(const char *name);             /* -1: unknown */

/* Filled by fkt_baseline_default; src/learning/baselines/ says beside each rule what a number does there. */
struct fkt_baseline_settings {
    uint32_t rounds, epochs, batch; /* epochs: at each site in each round; a site with fewer records is one batch */
    double rate;                    /* of every local step: plain SGD */
    uint32_t flip, pad;             /* as in struct fkt_recipe */
    double perfedavg_alpha;         /* rate of the inner step; 0: rate */
    double perfedavg_delta;         /* half the difference for the Hessian-vector product; 0: first order */
    uint32_t perfedavg_steps;       /* inner steps that make the personal model */
    double pfedme_lambda, pfedme_rate, pfedme_beta; /* rate: of the inner steps; 0: rate */
    uint32_t pfedme_steps;                          /* inner steps for each batch */
    uint32_t fedamp_cosine;                         /* 1: HeurFedAMP, weights by angles; 0: FedAMP, by distances */
    double fedamp_alpha, fedamp_lambda, fedamp_sigma;
    double fedamp_self; /* HeurFedAMP: weight of a site's own model */
    double fedphp_mu, fedphp_share, fedphp_temperature;
    double fedfomo_validation;                           /* part of a site's training records */
    double apple_mu, apple_rate, apple_scale, apple_end; /* scale: of `rate` for core models; 0: the number of sites */
    uint32_t partialfed_fixed; /* 1: norms and last layer stay at the site; 0: the choice is learnt */
    double partialfed_rate, partialfed_temperature;
};
FKT_API void fkt_baseline_default(struct fkt_baseline_settings *s);
/* FKT_E_ARG names what is out of range. */
FKT_API FKT_MUST_USE fkt_status fkt_baseline_check(const struct fkt_baseline_settings *s);
/* The settings as a table: name ("rounds", "pfedme_lambda", ...; NULL beyond the last), value, and a change by name. */
FKT_API const char *fkt_baseline_setting(size_t i);
FKT_API double fkt_baseline_value(const struct fkt_baseline_settings *s, size_t i);
FKT_API FKT_MUST_USE fkt_status fkt_baseline_set(struct fkt_baseline_settings *s, const char *name, double value);

struct fkt_baselines_spec {
    const struct fkt_model *like;        /* its architecture, size, classes, normalisation; no weight is used */
    const struct fkt_training_set *data; /* data, test, partition, holdout, seed: as in fkt_personal_spec, */
    const struct fkt_training_set *test; /* and the same records go to the same sites */
    struct fkt_partition_spec partition;
    double holdout;
    unsigned methods; /* mask of 1 << fkt_baseline; 0: all */
    struct fkt_baseline_settings settings;
    uint64_t seed;
    unsigned threads;                    /* 0: all; part of what repeats to the bit */
    enum fkt_learn_dtype dtype;          /* of training; evaluation is in f32 */
    struct fkt_device device;            /* zeros: the processor */
    const struct fkt_progress *progress; /* rounds of sites, over all methods; may be NULL */
    /* After every `every` rounds of a method (0: after the last alone): the personal models of all sites evaluated.
     * mean and pooled as in struct fkt_personal. A failure stops the run. May be NULL. */
    uint32_t every;
    fkt_status (*round)(void *ctx, enum fkt_baseline b, uint32_t round, double mean, double pooled);
    void *ctx;
    /* Counts visits to a site whose steps did not fit in the card's memory, and were taken one by one: slower, and
     * rounded in another way. May be NULL. */
    uint64_t *full;
};
/* Runs the methods one after the other. *out has FKT_BASELINES ways, by enum fkt_baseline; fkt_personal_clear. A site
 * that cannot train takes no part and is evaluated with the method's common model, or where there is none with the
 * start. Memory: fkt_baselines_memory beside one learner, or two; on a card also the images of a site. */
FKT_API FKT_MUST_USE fkt_status fkt_baselines_run(struct fkt_personal *out, const struct fkt_baselines_spec *spec);
/* Bytes that the models of so many sites take: the largest of the methods. */
FKT_API uint64_t fkt_baselines_memory(const struct fkt_model *like, uint32_t sites, unsigned methods);

#ifdef __cplusplus
}
#endif
#endif
