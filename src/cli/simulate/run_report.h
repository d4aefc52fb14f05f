/* SPDX-License-Identifier: Apache-2.0 */
/* run_report.h - grid.png and report.html of a run. */
#ifndef FKT_CLI_SIMULATE_RUN_REPORT_H
#define FKT_CLI_SIMULATE_RUN_REPORT_H

#include "cli/simulate/run.h"

FKT_MUST_USE fkt_status cli_run_images(const struct cli_sim *s, const struct cli_outcome *o, const char *folder);

#endif
