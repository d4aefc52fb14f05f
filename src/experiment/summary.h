/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - all points of some cells, averaged over seeds, and tables of them. */
#ifndef FKT_EXPERIMENT_SUMMARY_H
#define FKT_EXPERIMENT_SUMMARY_H

#include "experiment/experiment.h"

struct fkt_summary_value {
    size_t n; /* seeds; 0: none */
    double mean, deviation;
};
struct fkt_summary_row { /* one panel, arm and position of an experiment */
    const struct fkt_experiment *experiment;
    char panel[64], arm[96], arm_name[48], at[48], reference[48]; /* reference "": at a position */
    double x;
    size_t order;                    /* of the panel, then of the arm */
    struct fkt_summary_value *value; /* (n_metrics) */
    char moments[65];                /* hash of the exact moments: "" none, "differ" where cells disagree */
};
struct fkt_summary {
    struct fkt_summary_row *row; /* by experiment, panel, arm, x; references last */
    size_t n, cap;
    char machine[160], version[32]; /* of the cells; "several" */
    char seeds[96];
    int quick;
};
FKT_MUST_USE fkt_status fkt_summary_make(struct fkt_summary *out, const json_t *cells);
void fkt_summary_clear(struct fkt_summary *s);
/* The columns of an experiment's table: labels of its positions in order, at most cap; then there may be references. */
size_t fkt_summary_positions(const struct fkt_summary *s, const struct fkt_experiment *e, struct fkt_position *out,
                             char (*label)[48], size_t cap);
const struct fkt_summary_row *fkt_summary_find(const struct fkt_summary *s, const struct fkt_experiment *e,
                                               const char *panel, const char *arm, const char *at,
                                               const char *reference);

/* tables.c */
struct fkt_text;
void fkt_table_csv(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e);
FKT_MUST_USE fkt_status fkt_table_json(char **out, const struct fkt_summary *s, const struct fkt_experiment *e);
/* Words of a cell inside Markdown: no markup, no end of a line or of a column. */
void fkt_markdown_text(struct fkt_text *t, const char *s);
void fkt_table_markdown(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e,
                        const json_t *paper);
void fkt_value_text(char out[32], const struct fkt_summary_value *v, const struct fkt_metric *m); /* "81.2 ± 0.3" */
int fkt_summary_references(const struct fkt_summary *s, const struct fkt_experiment *e);          /* are there any? */
size_t fkt_summary_seeds(const struct fkt_summary *s, const struct fkt_experiment *e); /* the most that a value has */
/* Do all cells of each arm and panel have the same exact moments? 1, 0, or -1: there are none. */
int fkt_summary_invariant(const struct fkt_summary *s, const struct fkt_experiment *e);

#endif
