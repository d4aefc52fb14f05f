/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - long work on stderr: a bar on a terminal, lines elsewhere; Ctrl-C stops cleanly. */
#ifndef FKT_CLI_CORE_PROGRESS_H
#define FKT_CLI_CORE_PROGRESS_H

#include "fedkt/status.h"

#include <signal.h>

struct cli_progress {
    struct fkt_progress hook; /* pass &hook on */
    int terminal, quiet;
    int bytes;        /* steps count bytes: shown as MB */
    const char *unit; /* unit of the count, "img"; NULL: none is printed */
    char what[64];
    double started, shown;
    unsigned long long before; /* value of done at `started` */
    int drawn;
};
void cli_progress_init(struct cli_progress *p, int quiet);
void cli_progress_end(struct cli_progress *p); /* wipes the bar */
/* Between two steps: FKT_E_STOPPED when Ctrl-C was pressed; `when` ends the sentence "stopped ...". */
FKT_MUST_USE fkt_status cli_progress_check(const char *when);

const volatile sig_atomic_t *cli_stop_flag(void); /* not 0 once a signal has asked to stop */
int cli_stopped_by(void);                         /* the signal that asked to stop; 0: none */

#endif
