/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h - what cells share, for the files lab*.c and for experiments that train networks of their own. */
#ifndef FKT_EXPERIMENT_LAB_H
#define FKT_EXPERIMENT_LAB_H

#include "experiment/experiment.h"

#include "fedkt/train.h"

enum { FKT_PARTITION_NAME = 192, FKT_LAB_STUDENTS = 64, FKT_LAB_CODECS = 16 };

/* Weights that a run has opened. */
struct fkt_lab_weights {
    char codec[64], sha256[FKT_SHA256_HEX];
};

/* A network that was trained, by what it learnt from. */
struct fkt_lab_student {
    char from[FKT_SHA256_HEX]; /* hash of a release, or the name of a set; "": none */
    size_t per_class;
    uint64_t seed;
    uint32_t epochs;
    int fresh;                          /* other images in each epoch */
    size_t shared;                      /* public images that it learnt from beside those */
    char shared_sha256[FKT_SHA256_HEX]; /* of the set that they are from, also where there is none; "": not asked for */
    double accuracy;
};

struct fkt_lab {
    struct fkt_experiment_options options;
    char *run;    /* folder of the run; NULL: none, nothing is written */
    char *folder; /* of encodings and calibrations */
    struct fkt_encodings *encodings;
    char set[64]; /* the open one; "": none */
    char set_sha256[FKT_SHA256_HEX];
    int unwritable;                     /* 1: the run's folder has refused a file, so no further cell can be kept */
    json_t *notes;                      /* of the cell at hand; NULL: there are no cells */
    char partition[FKT_PARTITION_NAME]; /* that was noted last, for the facts of a point; "": none */
    struct fkt_dataset *train, *test;
    struct fkt_lab_weights weights[FKT_LAB_CODECS]; /* the first ones */
    size_t n_weights;
    char calibrated_on[FKT_SHA256_HEX]; /* images of the calibrations that a run made or found; "": none */
    char calibrated_first[128];         /* name of the first of them */
    struct fkt_lab_student student[FKT_LAB_STUDENTS]; /* the last ones */
    size_t n_students;
    size_t shared; /* of the network that was trained last, for the facts of a point */
};
/* lab_notes.c: notes of the cell at hand. use: an input and its hash. limit, per_class: those of the options, where
 * they have one; network: a cell that trains one, or uses one that was kept, says which. */
FKT_MUST_USE fkt_status fkt_lab_use(struct fkt_lab *lab, const char *name, const char *sha256);
FKT_MUST_USE fkt_status fkt_lab_note_limit(struct fkt_lab *lab);
FKT_MUST_USE fkt_status fkt_lab_note_network(struct fkt_lab *lab);
FKT_MUST_USE fkt_status fkt_lab_note_per_class(struct fkt_lab *lab);
FKT_MUST_USE fkt_status fkt_lab_find(const struct fkt_lab *lab, const char *name, char **path); /* gives *path */
void fkt_lab_close_set(struct fkt_lab *lab);

/* lab_fingerprint.c: set_sha256 of the open set; then sets/NAME.json of the run is written, or it must agree. */
FKT_MUST_USE fkt_status fkt_lab_fingerprint(struct fkt_lab *lab);
FKT_MUST_USE fkt_status fkt_lab_note_set(struct fkt_lab *lab);
/* The set `public` that networks learn from beside a release; gives *out, NULL: there is none. Noted or compared in the
 * same way, its absence too. sha256: an input of cells whose networks asked for it, also where there is none. */
FKT_MUST_USE fkt_status fkt_lab_public(struct fkt_lab *lab, struct fkt_dataset **out, char sha256[FKT_SHA256_HEX]);
void fkt_lab_fingerprint_of_none(char sha256[FKT_SHA256_HEX]); /* what sha256 is where there is none */
/* A public set that calibrations are made from, compared in the same way; gives *out. note: one was made. */
FKT_MUST_USE fkt_status fkt_lab_unlabelled(struct fkt_lab *lab, const char *set, struct fkt_dataset **out,
                                           char sha256[FKT_SHA256_HEX]);
FKT_MUST_USE fkt_status fkt_lab_note_unlabelled(struct fkt_lab *lab, const char *set, const struct fkt_dataset *ds,
                                                const char *sha256);
/* FKT_E_MISMATCH when a set of the folder's run is now another one. Writes nothing. */
FKT_MUST_USE fkt_status fkt_lab_check_sets(const struct fkt_experiment_options *o, const char *folder);

/* lab_notes.c: FOLDER/FILE of the run, unless it is there. Takes j; NULL is a lack of memory. */
FKT_MUST_USE fkt_status fkt_lab_write(struct fkt_lab *lab, const char *folder, const char *file, json_t *j,
                                      size_t format);

/* lab_partition.c: partitions/NAME.json of the run, if it is not there; lab->partition becomes NAME. */
struct fkt_lab_owners {
    const size_t *record;  /* (n) numbers in the open set; NULL: 0 to n - 1 */
    const uint32_t *owner; /* (n) sites */
    size_t n;
};
struct fkt_lab_partition {
    struct fkt_partition_spec spec;
    const char *by;                    /* "content", "number", "place" */
    struct fkt_lab_owners train, test; /* test.owner NULL: sites have no test records of their own */
};
FKT_MUST_USE fkt_status fkt_lab_partition(struct fkt_lab *lab, const struct fkt_lab_partition *p);
FKT_MUST_USE fkt_status fkt_lab_sweep_partition(struct fkt_lab *lab, const struct fkt_sweep *sweep,
                                                const struct fkt_partition_spec *spec, enum fkt_adjacency adjacency);

/* lab.c: the sweep of a run, run to its end, its partition noted; gives *out. */
FKT_MUST_USE fkt_status fkt_lab_federation(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep **out);

/* lab_head.c: features of the records of a sweep, which need not have run; owners are not filled in. */
struct fkt_features;
FKT_MUST_USE fkt_status fkt_lab_features(struct fkt_lab *lab, const struct fkt_sweep *sweep, struct fkt_features *train,
                                         struct fkt_features *test);
/* Trains a softmax head on features and evaluates it on others. */
FKT_MUST_USE fkt_status fkt_lab_softmax(const struct fkt_features *train, const struct fkt_features *test,
                                        uint64_t seed, double *accuracy);
#define FKT_REFERENCE_SEED(seed) (64 * (seed)) /* of a head without noise; those of epsilons follow */
/* The bound for heads: such a head on the guide's features of the real records. */
FKT_MUST_USE fkt_status fkt_lab_real_head(struct fkt_lab *lab, const char *set, uint64_t seed, double *accuracy);

/* lab_networks.c: records of a set at its usual side, those that a sweep under add-remove trains and tests on. */
struct fkt_lab_images {
    struct fkt_training_set train, test;
    size_t *train_record,
        *test_record; /* their numbers in the set; test_record NULL: 0 to test.n - 1 of its test split */
};
FKT_MUST_USE fkt_status fkt_lab_images(struct fkt_lab *lab, const char *name, struct fkt_lab_images *out /* zeros */);
void fkt_lab_images_clear(struct fkt_lab_images *p);
/* An untrained network of the options for such images; first weights from the seed. The cell notes it. */
FKT_MUST_USE fkt_status fkt_lab_network(struct fkt_lab *lab, const struct fkt_training_set *images, uint64_t seed,
                                        struct fkt_model **out);
/* The usual training on images in memory; others change it: epochs, batch, rate, seed, threads, device. */
void fkt_lab_recipe(const struct fkt_lab *lab, uint64_t seed, struct fkt_recipe *r);
/* A network of the options with the classes and size of `like`, from scratch. */
FKT_MUST_USE fkt_status fkt_lab_learn(struct fkt_lab *lab, const struct fkt_recipe *recipe,
                                      const struct fkt_image_source *source, const struct fkt_training_set *like,
                                      struct fkt_model **out);
FKT_MUST_USE fkt_status fkt_lab_evaluate(const struct fkt_lab *lab, const struct fkt_model *m,
                                         const struct fkt_training_set *test, double *accuracy);
/* Was the same network trained already? Then its accuracy is filled in. */
int fkt_lab_recall(const struct fkt_lab *lab, struct fkt_lab_student *s);
void fkt_lab_remember(struct fkt_lab *lab, const struct fkt_lab_student *s);

/* student.c: the network of one arm of a sweep that has run: fkt_sweep_set_network. */
FKT_MUST_USE fkt_status fkt_lab_train(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep *sweep,
                                      size_t arm);
/* The network of the first epsilon. Trained once for each set and seed: networks/ of the run keeps it. Its origin names
 * the release. FKT_E_MISMATCH when the file there is not of this run's release and options. */
FKT_MUST_USE fkt_status fkt_lab_pretrained(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_model **out);
/* A sweep of the run that has not been run: its records, partition and pipeline. */
FKT_MUST_USE fkt_status fkt_lab_sweep_new(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep **out);

#endif
