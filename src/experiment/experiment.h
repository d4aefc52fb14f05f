/* SPDX-License-Identifier: Apache-2.0 */
/* experiment.h - tables and figures of the paper as lists of cells.
 *
 *   experiment     a table in one file: positions on an axis, arms, panels, and what one cell computes
 *   cell           (experiment, panel, arm, position, seed) -> points, a JSON file of its own (store.c)
 *   lab            what cells share: image sets, networks, kept encodings (lab.c)
 *   summary        all points of a folder, averaged over seeds (summary.h); tables, plots and the report are made of it
 *
 * To add an experiment: a file with a `const struct fkt_experiment`, and its name in the list of experiments.c. All
 * randomness of a cell comes from its seed, noise included: the results are measurements, and NOT private. */
#ifndef FKT_EXPERIMENT_EXPERIMENT_H
#define FKT_EXPERIMENT_EXPERIMENT_H

#include "fedkt/sweep.h"

#include "base/status.h"

#include <jansson.h>

#define FKT_EXPERIMENT_DELTA 1e-5
#define FKT_PUBLIC_SET "public" /* unlabelled images that networks of arms with a guide learn from; no panel */
#define FKT_UNLABELLED_ENDING ".unlabelled"  /* of the file of a set that calibrations are made from; of no set */
#define FKT_CALIBRATION_INPUT "calibration-" /* and codec, size, length, directions: an input of cells */
#define FKT_WEIGHTS_INPUT "weights-"         /* and codec, likewise */
enum { FKT_CELL_KEY = 160, FKT_SEEDS_MAX = 32 };

/* A place on the axis; label NULL: x itself. */
struct fkt_position {
    double x;
    const char *label;
};

/* One line of a plot, one row of a table: what is compared. */
struct fkt_arm {
    const char *name, *title;  /* name: in file names */
    const char *codec, *guide; /* NULL: none */
    uint32_t size, dim, top;   /* 0: the set's, the codec's; top: principal directions kept of a public calibration */
    enum fkt_coordinate_kind coordinates;
    enum fkt_mechanism mechanism;
    enum fkt_adjacency adjacency;
    int noise;   /* enum fkt_noise_place; -1: as a federation has it */
    int kind;    /* of the experiment's own, or FKT_ARM_REAL */
    int trains;  /* 1: it has no cell where the options have no network */
    int rounds;  /* 1: it takes the rounds of the experiment */
    double more; /* the same */
};

enum { FKT_ARM_REAL = 100 }; /* what can be had from the real records: run.c has its cell, whatever the experiment */

/* A number of a point that tables and plots show. The first one of an experiment is plotted. */
struct fkt_metric {
    const char *key, *title; /* NULL: those of `head` */
    double scale;            /* 100: a share, shown in percent */
    int digits;
    int head; /* enum fkt_head_kind */
};

const char *fkt_metric_key(const struct fkt_metric *m);
const char *fkt_metric_title(const struct fkt_metric *m);

struct fkt_lab;
struct fkt_cell;

struct fkt_experiment {
    const char *name, *title;
    const char *paper; /* where the paper has it: "Table 1" */
    const char *about; /* one line */
    const char *time;  /* what a quick run takes, measured on one machine: "quick: 1 min of processor time" */
    const char *x_title, *y_title;
    int x_log, y_log, plotted;
    const struct fkt_position *x, *x_quick; /* (n_x), (n_quick) */
    size_t n_x, n_quick;
    int apart; /* 1: a cell for each position; 0: one cell has them all */
    const struct fkt_arm *arm;
    size_t n_arms;
    const struct fkt_arm *arm_more; /* (n_more) of runs that are not quick; may be NULL */
    size_t n_more;
    const char *const *panel; /* (n_panels) NULL: image sets, those of `sets` */
    size_t n_panels;
    const char *const *sets; /* (n_sets) of a run that is not quick */
    size_t n_sets;
    const struct fkt_metric *metric; /* (n_metrics) */
    size_t n_metrics;
    uint32_t rounds, rounds_quick; /* of federated methods; 0: it has none */
    int trains_quick;              /* 1: quick runs train networks too */
    int needs_network;             /* 1: there is nothing without one: no cells where none is trained */
    int invariant;     /* 1: the exact moments of an arm must be the same in all cells of a panel; the report says so */
    int measures_time; /* 1: results are times or come from the operating system's randomness: they do not repeat */
    fkt_status (*run)(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points);
};
const struct fkt_experiment *fkt_experiment_find(const char *name);                 /* NULL: unknown */
const struct fkt_experiment *fkt_experiment_at(size_t i);                           /* in order; NULL beyond the last */
const struct fkt_arm *fkt_experiment_arm(const struct fkt_experiment *e, size_t i); /* of all; NULL likewise */

/* What the paper has published, beside ours: docs/experiments.md. Gives *out, an array. */
FKT_MUST_USE fkt_status fkt_paper_figures(json_t **out);

/* ---- what is asked for ---- */

struct fkt_experiment_options {
    const struct fkt_experiment *const *experiments;
    size_t n_experiments;
    const char *data;        /* folder with image sets; NULL: the embedded one */
    const char *const *sets; /* (n_sets) NULL: those of each experiment, or the embedded one without `data` */
    size_t n_sets;
    const char *const *arms; /* (n_arms) NULL: all */
    size_t n_arms;
    int quick;
    size_t per_class; /* images of a class that a network learns from, drawn once; 0: as the recipe has it */
    size_t limit;     /* records of a set that sites share, evenly over the classes; 0: all, or those of a quick run */
    uint64_t seed[FKT_SEEDS_MAX];
    size_t n_seeds;
    int network;              /* 1 + enum fkt_architecture; 0: none is trained */
    uint32_t rounds;          /* of federated methods; 0: those of the experiment */
    struct fkt_device device; /* never AUTO */
    unsigned threads;
    const char *weights; /* folder with published weights; NULL: the cache */
    const struct fkt_progress *progress;
};

struct fkt_cell {
    const struct fkt_experiment *experiment;
    const char *panel; /* borrowed from the options or the experiment */
    const struct fkt_arm *arm;
    const struct fkt_position *x; /* (n_x) */
    size_t n_x;
    uint64_t seed;
    char key[FKT_CELL_KEY]; /* "epsilon.eurosat.joint.0": the name of its file */
};
int fkt_cell_is_first(const struct fkt_cell *c); /* of the positions of its experiment; the next: the last */
int fkt_cell_is_last(const struct fkt_cell *c);
/* plan.c: all cells in order; gives *out, freed with fkt_free. FKT_E_ARG without data where there must be some. check:
 * FKT_E_ARG also where there are none. */
FKT_MUST_USE fkt_status fkt_experiment_cells(const struct fkt_experiment_options *o, struct fkt_cell **out, size_t *n);
FKT_MUST_USE fkt_status fkt_experiment_check(const struct fkt_experiment_options *o);

/* Only letters, digits, '.', '-' and '_', no dot first? room (may be NULL): the word with a dash for all others. */
int fkt_experiment_plain(const char *word, char room[96]);
/* 1: a name that inputs of cells have which are no sets: weights, images of calibrations. */
int fkt_experiment_is_input(const char *name);

/* ---- the lab ---- */

FKT_MUST_USE fkt_status fkt_lab_new(struct fkt_lab **out, const struct fkt_experiment_options *o,
                                    const char *folder /* of the run */, const char *encodings /* folder */);
void fkt_lab_free(struct fkt_lab *lab);
const struct fkt_experiment_options *fkt_lab_options(const struct fkt_lab *lab);
int fkt_lab_unwritable(const struct fkt_lab *lab); /* 1: the run's folder has refused a file */
/* lab_notes.c: what the cell at hand says of itself beside its points (docs/formats.md: inputs, limit, network,
 * per_class). begin: nothing yet. Borrowed. */
void fkt_lab_begin_cell(struct fkt_lab *lab);
const json_t *fkt_lab_notes(const struct fkt_lab *lab);

/* A simulated federation of one arm. */
struct fkt_lab_run {
    const char *set;
    const struct fkt_arm *arm;
    const double *epsilon;
    size_t n_epsilon;
    uint32_t sites;
    const char *partition; /* "dirichlet:0.1" */
    double participation;
    uint64_t seed;
    size_t per_class; /* images that a network learns from; 0: the usual number */
    int train;        /* 1: a network, where the options have one, for the first epsilon */
    int train_all;    /* 1: for all */
    int reference;    /* 1: also the point without noise (of one cell of each arm and seed) */
};
/* Adds a point for each epsilon, at x[i] (n_epsilon), and one without noise where it is asked for. */
FKT_MUST_USE fkt_status fkt_lab_sweep(struct fkt_lab *lab, const struct fkt_lab_run *run, const struct fkt_position *x,
                                      json_t *points);
/* The bounds of a set: a softmax head on the guide's features of the real records and, where the cell's experiment
 * trains networks, a network on the images. Adds one point without a position. */
FKT_MUST_USE fkt_status fkt_lab_real(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points);
int fkt_experiment_trains(const struct fkt_experiment *e, const struct fkt_experiment_options *o); /* any networks? */

/* Images of a set; both are the lab's. test NULL: a hold-out of *holdout. */
struct fkt_lab_set {
    const char *name, *sha256; /* sha256: the lab's; lab_fingerprint.c says of what */
    const struct fkt_dataset *data, *test;
    double holdout;
    uint32_t size; /* usual side */
};
FKT_MUST_USE fkt_status fkt_lab_set(struct fkt_lab *lab, const char *name, struct fkt_lab_set *out);
const char *fkt_lab_set_title(const char *name); /* "EuroSAT"; the name itself where it is unknown */
/* The networks of an arm at a size, with their calibrations: into spec (codec, calibration, part, parts), whose
 * calibration must point to room for FKT_PARTS_MAX. */
FKT_MUST_USE fkt_status fkt_lab_parts(struct fkt_lab *lab, const struct fkt_arm *arm, uint32_t size,
                                      struct fkt_sweep_spec *spec);

/* A point: {"x", "at", "values", "facts"}; x NULL: a reference without a position. Takes values and facts. */
FKT_MUST_USE fkt_status fkt_point_add(json_t *points, const struct fkt_position *x, const char *reference,
                                      json_t *values, json_t *facts);
int fkt_values_have_network(const json_t *values); /* of a point: 1, it has the accuracy of a network */
void fkt_position_label(const struct fkt_position *x, char out[48]);

/* ---- a run ---- */

/* run.c: runs what is missing. A cell that fails is skipped: its key, the reason and the hint go to skipped.json and
 * *skipped (an array, given); a stop, or no memory, ends the run. rank, ranks: only cells i with i mod ranks = rank. */
struct fkt_skip {
    const char *why, *hint; /* hint "": there is none */
};
struct fkt_experiment_run {
    const struct fkt_experiment_options *options;
    const char *folder, *encodings;
    uint32_t rank, ranks;             /* 0, 1: alone */
    const struct fkt_progress *cells; /* counts cells; may be NULL */
    void (*done)(void *ctx, const struct fkt_cell *c, const struct fkt_skip *skip /* NULL: it was computed */);
    void (*hint)(char *out, size_t cap); /* the hint of the last failure in the program's terms; NULL: the library's */
    void *ctx;
};
FKT_MUST_USE fkt_status fkt_experiment_run(const struct fkt_experiment_run *run, json_t **skipped);
/* On rank 0, once all ranks have run: adds what the others have skipped. */
FKT_MUST_USE fkt_status fkt_experiment_gather(const struct fkt_experiment_run *run, json_t *skipped);

#endif
