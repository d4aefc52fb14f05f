/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - a simulated federation from images to accuracies: the same records released at several epsilons.
 *
 *   fkt_sweep_new     hold-out, federation, a task for each epsilon; all that can fail before an image is encoded
 *   fkt_sweep_run     the sites' moments, a round and a release for each epsilon, closed-form heads, their accuracies
 *   fkt_sweep_train   a network for each arm, trained on images drawn from it
 *   fkt_sweep_results_json, fkt_sweep_generate, fkt_sweep_arm   what came out
 *
 * Arms are numbered: one for each epsilon in the order given, and last the reference: the same estimates from exact
 * moments. The reference is NOT private, nor are the accuracies; only releases and what is made of them may leave.
 * A sweep keeps no ledger: each run is a further release of the same records. */
#ifndef FEDKT_SWEEP_H
#define FEDKT_SWEEP_H

#include "fedkt/generate.h"
#include "fedkt/heads.h"
#include "fedkt/learn.h"
#include "fedkt/release.h"
#include "fedkt/secagg.h"
#include "fedkt/task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_SWEEP_EPSILONS_MAX 8
#define FKT_SWEEP_DRAWS_MAX 100
#define FKT_SWEEP_DEFAULT UINT32_MAX

struct fkt_ranks;
struct fkt_sweep;
struct fkt_federate_result; /* advanced/federation.h */
struct fkt_simulation;      /* advanced/simulate.h */

struct fkt_sweep_spec {
    const struct fkt_dataset *data; /* records of all sites; borrowed until the sweep is freed */
    const struct fkt_dataset *test; /* borrowed as long, with the classes of data; NULL: none, or a hold-out */
    double holdout; /* 0: none; else the share of data that is tested on, fkt_split_holdout with seed 0 */
    uint32_t parts; /* of the record vector: the codec, then the guide, or one of them */
    struct fkt_codec *codec[FKT_PARTS_MAX];             /* (parts) taken, also when fkt_sweep_new fails */
    struct fkt_calibration *calibration[FKT_PARTS_MAX]; /* their content is taken, also when fkt_sweep_new fails */
    struct fkt_part_choice part[FKT_PARTS_MAX];         /* codec and calibration in them are ignored */
    struct fkt_task_choices task; /* of each arm; classes, epsilon, federation and service are ignored */
    const double *epsilon;        /* (n_epsilon) different from each other; copied */
    size_t n_epsilon;             /* 1 to FKT_SWEEP_EPSILONS_MAX */
    size_t draws;                 /* of each release, 0: 1; those after the first are only evaluated, so without test
                                     data there is one */

    struct fkt_partition_spec partition;
    double participation; /* as in fkt_simulation_spec, like the next */
    double dropout[FKT_SA_STATE_REVEAL + 1];
    /* 0: one federation. Else about so many sites in each cohort, whose releases are added up (docs/scale.md); where
     * all that take part fit into one, nothing is divided. Noise is distributed. */
    uint32_t cohort_size;
    /* The federation of those that take part; in cohorts, each tolerates its part of the two numbers, rounded up.
     * Fewer than three sites have none: exact sums, and noise in one place. */
    uint32_t dropped, corrupt; /* FKT_SWEEP_DEFAULT: what a task has by default, and no fewer than `dropout` loses */
    uint64_t records;          /* most of one class at one site; 0: FKT_RECORDS_UNKNOWN */
    int noise;                 /* enum fkt_noise_place; -1: distributed where mechanism and sites allow it */
    enum fkt_sa_keystream keystream;

    enum fkt_estimator estimator;     /* of images */
    struct fkt_guided_options guided; /* the same; zeros: AUTO */
    uint64_t seed;                    /* drop-out, samples; public. The partition has its own */
    const uint64_t *insecure_seed;    /* copied; NULL: noise and keys from the operating system */
    struct fkt_encodings *encodings;  /* borrowed; NULL: none are kept */
    int skip_bad;                     /* 1: an unreadable image is left out and counted */
    unsigned threads;                 /* 0: all */
    struct fkt_ranks *ranks; /* advanced/ranks.h: processes that share the encoding; borrowed until the sweep is freed.
                                Releases and results are those of rank 0; other ranks have none. NULL: alone */
    const struct fkt_progress *progress; /* borrowed until the sweep is freed; may be NULL */
    /* After each draw of an arm is made, before any is evaluated; a failure ends the sweep. May be NULL. */
    fkt_status (*released)(void *ctx, const struct fkt_sweep *s, size_t arm);
    void *ctx;
};
FKT_API void fkt_sweep_default(struct fkt_sweep_spec *spec); /* 20 sites, iid, all take part */
FKT_API FKT_MUST_USE fkt_status fkt_sweep_new(struct fkt_sweep **out, const struct fkt_sweep_spec *spec);
FKT_API FKT_MUST_USE fkt_status fkt_sweep_run(struct fkt_sweep *s);
FKT_API void fkt_sweep_free(struct fkt_sweep *s);

/* ---- a network for each arm ---- */

struct fkt_sweep_network {
    enum fkt_architecture architecture;
    struct fkt_recipe recipe; /* its seed is also that of the first weights */
    size_t per_class;         /* images drawn for each class, with the sweep's seed */
    int skip_bad;             /* as in fkt_sweep_spec */
    int head_teaches; /* 1: the arm's head is the teacher (teacher.h), with the recipe's temperature and share */
    enum fkt_head_kind head;
    enum fkt_heads_on head_on;
    const struct fkt_dataset *shared; /* public images, as in fkt_training_source_public; borrowed; NULL: none */
    const char *shared_name;
    size_t shared_each;
    int unguided;                        /* 1: where images are guided, another one learns from unguided images */
    size_t only;                         /* 1 + the number of the only arm that is trained; 0: all */
    const struct fkt_progress *progress; /* borrowed; may be NULL */
    fkt_status (*trained)(void *ctx, const struct fkt_sweep *s, size_t arm); /* after each arm; may be NULL */
    void *ctx;
};
/* After the run: trains from scratch on images of each arm's first draw and evaluates once, after the last epoch, on
 * the test images. FKT_E_STATE without test data; FKT_E_MISMATCH when a public image is a record or a test image. */
FKT_API FKT_MUST_USE fkt_status fkt_sweep_train(struct fkt_sweep *s, const struct fkt_sweep_network *network);
/* The same for a network that was trained elsewhere: name (copied) and accuracy of arm i stand in the results. seconds
 * are added up. */
FKT_API FKT_MUST_USE fkt_status fkt_sweep_set_network(struct fkt_sweep *s, size_t i, const char *name, double accuracy,
                                                      double seconds);
/* The accuracy of a network of the same name that learnt from images which were not guided. */
FKT_API FKT_MUST_USE fkt_status fkt_sweep_set_unguided(struct fkt_sweep *s, size_t i, double accuracy, double seconds);
/* Where networks ran, for the results: before, it is the codec's device. fkt_sweep_train sets it. */
FKT_API void fkt_sweep_set_device(struct fkt_sweep *s, struct fkt_device used);

/* ---- what came out; pointers are borrowed until the sweep is freed ---- */

struct fkt_sweep_arm {
    const char *name;                        /* "epsilon 10", "no privacy" */
    const struct fkt_task *task;             /* NULL: the reference, like the next two */
    struct fkt_release *release;             /* the first draw */
    const struct fkt_federate_result *round; /* its round; survivors 0: fewer than three sites, so no protocol */
    uint32_t parts;                          /* of the layout: of the next two */
    const struct fkt_gaussians *images;      /* by the estimator of images; NULL: the task gives none */
    const struct fkt_gaussians *measured;    /* raw: what heads are made of */
    size_t draws;
    double network;  /* accuracy; NaN: none was trained */
    double unguided; /* the same of a network that learnt from unguided images */
    double seconds_release, seconds_generate;
};
FKT_API size_t fkt_sweep_arms(const struct fkt_sweep *s); /* with the reference */
FKT_API const struct fkt_sweep_arm *fkt_sweep_arm(const struct fkt_sweep *s, size_t i);
FKT_API const struct fkt_score *fkt_sweep_score(const struct fkt_sweep *s, size_t i, enum fkt_head_kind head,
                                                size_t draw); /* empty without test data */
/* Mean and standard deviation (0 for one draw) of a head's accuracy over the draws of an arm; NaN without test data. */
FKT_API void fkt_sweep_accuracy(const struct fkt_sweep *s, size_t i, enum fkt_head_kind head, double *mean,
                                double *deviation /* may be NULL */);
FKT_API const char *fkt_sweep_network_name(const struct fkt_sweep *s); /* NULL: none was trained */

FKT_API const struct fkt_pipeline *fkt_sweep_pipeline(const struct fkt_sweep *s); /* its task is arm 0's */
FKT_API const struct fkt_simulation *fkt_sweep_simulation(const struct fkt_sweep *s);
FKT_API const size_t *fkt_sweep_train_records(const struct fkt_sweep *s, size_t *n); /* of data */
FKT_API const struct fkt_dataset *fkt_sweep_data(const struct fkt_sweep *s);         /* all records of the sites */
FKT_API const struct fkt_dataset *fkt_sweep_test_data(const struct fkt_sweep *s);    /* data or test; NULL: none */
FKT_API const size_t *fkt_sweep_test_records(const struct fkt_sweep *s, size_t *n);  /* of it */
FKT_API struct fkt_records *fkt_sweep_records(const struct fkt_sweep *s);            /* in the total */
FKT_API const struct fkt_skipped *fkt_sweep_skipped(const struct fkt_sweep *s);
FKT_API double
fkt_sweep_composed_epsilon(const struct fkt_sweep *s); /* of all draws of all arms, at the task's delta */
/* Why noise was added in one place though the spec did not ask for it, a sentence; NULL: it was not, or it did. */
FKT_API const char *fkt_sweep_fallback(const struct fkt_sweep *s);
struct fkt_sweep_seconds {
    double encode, moments, aggregate, release, generate, evaluate, train;
};
FKT_API void fkt_sweep_seconds(const struct fkt_sweep *s, struct fkt_sweep_seconds *out);

/* How images are made: kind NONE where they are not guided. */
FKT_API const struct fkt_guided_facts *fkt_sweep_guided(const struct fkt_sweep *s);
/* Samples of an arm, for a sheet: fkt_generate_tiles with the sweep's seed. guided 0: decoded without the guide. */
FKT_API FKT_MUST_USE fkt_status fkt_sweep_tiles(const struct fkt_sweep *s, size_t i, int guided, uint32_t rows,
                                                size_t cols, uint8_t *rgb /* (rows, cols, S, S, 3) */);
/* A dataset from the release of an arm, as fkt_generate writes it. */
FKT_API FKT_MUST_USE fkt_status fkt_sweep_generate(struct fkt_sweep *s, size_t i, const char *folder, size_t per_class,
                                                   enum fkt_export_format format, int force);
/* fedkt.results/1, and fedkt.partition/1 with the owner of each record. NOT private. Both give *json, freed with
 * fkt_string_free. */
FKT_API FKT_MUST_USE fkt_status fkt_sweep_results_json(const struct fkt_sweep *s, char **json);
FKT_API FKT_MUST_USE fkt_status fkt_sweep_partition_json(const struct fkt_sweep *s, char **json);

#ifdef __cplusplus
}
#endif
#endif
