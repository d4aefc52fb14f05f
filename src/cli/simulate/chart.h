/* SPDX-License-Identifier: Apache-2.0 */
/* chart.h - the charts of the report, as inline SVG whose colours come from the page's style. */
#ifndef FKT_CLI_SIMULATE_CHART_H
#define FKT_CLI_SIMULATE_CHART_H

#include "base/text.h"
#include "cli/simulate/report.h"

/* The colour a0..a5 of the style for arm a: grey (a5) for arms without privacy, the others in turn. */
size_t fkt_chart_colour(const struct fkt_report *r, size_t a);

/* Accuracies: one group of bars for each head, one bar for each arm; the dashed line is chance. */
/* The classifiers, a column each: the heads and, if one was trained, the network. */
int fkt_chart_evaluated(const struct fkt_report *r);
const char *fkt_chart_evaluated_name(const struct fkt_report *r, int column);
void fkt_chart_accuracy(struct fkt_text *t, const struct fkt_report *r);
/* Records of each class at each site: a column per site, a row per class; more than 100 sites or 60 classes are
 * binned. */
void fkt_chart_partition(struct fkt_text *t, const struct fkt_report *r);
void fkt_chart_histogram(struct fkt_text *t, const struct fkt_report_histogram *h);
/* A bar on a bounded scale, x / (1 + x): the tick in the middle is where signal and noise are equal. */
void fkt_chart_signal(struct fkt_text *t, double signal, double reach); /* with a tick at reach */
void fkt_chart_phases(struct fkt_text *t, const struct fkt_report_phase *phases, size_t n);

#endif
