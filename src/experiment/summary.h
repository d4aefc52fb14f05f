/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - all points of some cells, averaged over seeds, and tables of them. */
#ifndef FKT_EXPERIMENT_SUMMARY_H
#define FKT_EXPERIMENT_SUMMARY_H

#include "experiment/experiment.h"

struct fkt_summary_value {
    size_t n; /* seeds; 0: none */
    double mean, deviation;
    struct fkt_summary_seed {
        uint64_t seed;
        double value;
    } * each; /* (n) */
};
struct fkt_summary_row { /* one panel, arm and position of an experiment */
    const struct fkt_experiment *experiment;
    char panel[64], arm[96], arm_name[48], at[48], reference[48]; /* reference "": at a position */
    double x;
    size_t order;                    /* of the panel, then of the arm */
    struct fkt_summary_value *value; /* (n_metrics) */
    char moments[65];                /* hash of the exact moments; "": none, or */
    int differ;                      /* 1: cells have several */
};
/* What cells are made of: a set, the set `public`, the images of a calibration. One name stands for one thing. */
struct fkt_summary_input {
    char name[160], hash[FKT_SHA256_HEX], cell[192]; /* cell: in words */
    long long limit;                                 /* of a set: records that were taken; quick: 1 */
    int quick;
};
/* The exact moments of an arm on one machine: another one's networks may round in another way. */
struct fkt_summary_moments {
    const struct fkt_experiment *experiment;
    char panel[64], arm[96], arm_name[48], machine[96], hash[65];
    int differ; /* 1: some cells have another hash */
};
enum { FKT_SETTINGS = 4, FKT_NAMES_MAX = 8 };
struct fkt_summary_source { /* of the cells of one panel of an experiment, or of all its panels */
    const struct fkt_experiment *experiment;
    char panel[64];
    struct fkt_summary_names {
        char name[FKT_NAMES_MAX][96]; /* (n) in order */
        size_t n;
        int others; /* 1: there were more */
    } version, machine;
    uint64_t seed[FKT_SEEDS_MAX]; /* (n_seeds) ascending */
    size_t n_seeds;
    int quick;
    int noted[FKT_SETTINGS];         /* 1: a cell has said so */
    long long setting[FKT_SETTINGS]; /* summary_source.c; 0: the usual ones */
};
struct fkt_summary {
    struct fkt_summary_row *row; /* by experiment, panel, arm, x; references last */
    size_t n, cap;
    struct fkt_summary_source *source; /* (n_sources) */
    size_t n_sources;
    struct fkt_summary_moments *moments; /* (n_moments) in the order of rows, then by machine */
    size_t n_moments;
    struct fkt_summary_input *input; /* (n_inputs) */
    size_t n_inputs;
};
/* Each cell once: one that stands in several folders, or the parts of one that was computed twice with the same values,
 * counts once. FKT_E_MISMATCH when two cells of one seed have different values, when an experiment has quick cells and
 * others, when a set has cells of other limits, rounds, images of a class or networks, and when two sets have one name:
 * those of the cells, of public images, or of calibrations. */
FKT_MUST_USE fkt_status fkt_summary_make(struct fkt_summary *out, const json_t *cells);
void fkt_summary_clear(struct fkt_summary *s);
/* Place of the arm in its table; that of an arm which is not there is the last. */
size_t fkt_summary_arm_place(const struct fkt_experiment *e, const char *name);
const char *fkt_cell_text(const json_t *j, const char *key); /* of an object in a cell; "": it is no text */
/* The columns of an experiment's table: labels of its positions in order, at most cap; then there may be references. */
size_t fkt_summary_positions(const struct fkt_summary *s, const struct fkt_experiment *e, struct fkt_position *out,
                             char (*label)[48], size_t cap);
const struct fkt_summary_row *fkt_summary_find(const struct fkt_summary *s, const struct fkt_experiment *e,
                                               const char *panel, const char *arm, const char *at,
                                               const char *reference);

/* summary_source.c */
struct fkt_text;
typedef void fkt_escape(struct fkt_text *t, const char *s); /* fkt_text_add, fkt_markdown_text, fkt_html_text */
FKT_MUST_USE fkt_status fkt_summary_source_note(struct fkt_summary *s, const struct fkt_experiment *e,
                                                const json_t *cell);
void fkt_summary_source_sort(struct fkt_summary *s); /* by panel, whatever order the cells came in */
int fkt_summary_source_quick(const struct fkt_summary *s,
                             const struct fkt_experiment *e); /* are its cells quick ones? */
struct fkt_summary_source fkt_summary_source_all(const struct fkt_summary *s,
                                                 const struct fkt_experiment *e); /* all panels as one */
/* "a and b" or, for JSON, whatever stands between. */
void fkt_summary_source_names(struct fkt_text *t, const struct fkt_summary_names *names, const char *between,
                              fkt_escape *escape);
void fkt_summary_source_seeds(struct fkt_text *t, const struct fkt_summary_source *o); /* "0, 1, 2" */
/* "fedkt 0.1.0; AMD EPYC, 2 threads; seeds 0, 1, 2"; a sentence for each source where panels differ. */
void fkt_summary_source_text(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e,
                             fkt_escape *escape);

/* What the cells had in place of the usual, by the names that cells have for it. Gives an object; NULL: no memory. */
json_t *fkt_summary_source_settings(const struct fkt_summary_source *o);

/* tables.c */
void fkt_table_csv(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e);
FKT_MUST_USE fkt_status fkt_table_json(char **out, const struct fkt_summary *s, const struct fkt_experiment *e);
/* Words of a cell inside Markdown: no markup, no end of a line or of a column. */
void fkt_markdown_text(struct fkt_text *t, const char *s);
void fkt_table_markdown(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e,
                        const json_t *paper);
void fkt_value_text(char out[32], const struct fkt_summary_value *v, const struct fkt_metric *m); /* "81.2 ± 0.3" */
/* The same with "(1 seed)" behind it where others of its panel have more. "": no row, or no value. */
void fkt_row_text(char out[48], const struct fkt_summary *s, const struct fkt_summary_row *r, size_t m);
/* 1: it has. */
int fkt_summary_fewer(const struct fkt_summary *s, const struct fkt_summary_row *r, size_t m);
int fkt_summary_references(const struct fkt_summary *s, const struct fkt_experiment *e); /* are there any? */

/* summary_inputs.c */
FKT_MUST_USE fkt_status fkt_summary_inputs_note(struct fkt_summary *s, const struct fkt_experiment *e,
                                                const json_t *cell);

/* summary_moments.c. hash: of a point of the cell; hostile. */
FKT_MUST_USE fkt_status fkt_summary_moments_note(struct fkt_summary *s, const struct fkt_experiment *e,
                                                 const json_t *cell, const char *hash);
void fkt_summary_moments_sort(struct fkt_summary *s);
/* Do all cells that one machine has computed of an arm and a panel have the same exact moments? 1, 0, or -1: there are
 * none. *machines (may be NULL): the most that an arm of a panel has. */
int fkt_summary_invariant(const struct fkt_summary *s, const struct fkt_experiment *e, size_t *machines);

#endif
