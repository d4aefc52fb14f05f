/* SPDX-License-Identifier: Apache-2.0 */
/* plot.h - lines with markers and error bars as SVG: a panel of an experiment. */
#ifndef FKT_CLI_EXPERIMENT_PLOT_H
#define FKT_CLI_EXPERIMENT_PLOT_H

#include "base/text.h"
#include "experiment/summary.h"

/* The metric that is plotted: the first that any row of the panel has. */
size_t fkt_plot_metric(const struct fkt_summary *s, const struct fkt_experiment *e, const char *panel);
/* published: {"title", "values": [[x, y], ...]} or NULL. alone: 1 for a file of its own, which carries its style. */
void fkt_plot_panel(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e, const char *panel,
                    const json_t *published, int alone);

#endif
