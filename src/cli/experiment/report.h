/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - tables, plots and report.html from cells: of a run that has ended, and of several together. */
#ifndef FKT_CLI_EXPERIMENT_REPORT_H
#define FKT_CLI_EXPERIMENT_REPORT_H

#include "fedkt/status.h"

#include <jansson.h>

/* All cells of a run's folder, into that folder. fill: a Markdown file; NULL: none. */
FKT_MUST_USE fkt_status cli_run_report(const char *folder, const json_t *skipped, const char *fill);

/* `fedkt experiment report PLACE...`: cells of several folders or kept files together. */
struct cli_joined {
    char **place; /* (places) */
    size_t places;
    const char *out;  /* NULL: the first place, which must be the folder of a run */
    const char *fill; /* NULL: none */
    const char *keep; /* folder of kept cells; NULL: they are not kept */
    int json;
};
FKT_MUST_USE fkt_status cli_joined_report(const struct cli_joined *r);
/* Where the page is, on stdout. */
void cli_say_report(const char *folder);

#endif
