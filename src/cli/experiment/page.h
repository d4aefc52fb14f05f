/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - what is made of the cells of an experiment's folder: tables, plots, report.html, blocks of a document. */
#ifndef FKT_CLI_EXPERIMENT_PAGE_H
#define FKT_CLI_EXPERIMENT_PAGE_H

#include "experiment/summary.h"

struct fkt_page {
    const struct fkt_summary *summary;
    const json_t *paper;   /* fkt_paper_figures */
    const json_t *skipped; /* of fkt_experiment_run; may be NULL */
};
/* tables/NAME.{csv,json}, plots/NAME-PANEL.svg and report.html, in place of those that are there. */
FKT_MUST_USE fkt_status fkt_page_write(const struct fkt_page *p, const char *folder);
/* Fills what stands between <!-- experiment:NAME --> and <!-- /experiment:NAME --> of a Markdown file for each
 * experiment of the summary; *filled of them had marks. */
FKT_MUST_USE fkt_status fkt_page_fill(const struct fkt_page *p, const char *file, size_t *filled);

#endif
