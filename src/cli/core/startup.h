/* SPDX-License-Identifier: Apache-2.0 */
/* startup.h - checks before the first number is computed or the first secret is read. */
#ifndef FKT_CLI_CORE_STARTUP_H
#define FKT_CLI_CORE_STARTUP_H

/* Restarts the program, once, when BLAS has chosen kernels for an older processor; else returns. */
void cli_startup(char **argv);
/* For verbs that hold keys or records: this process writes no core dump, and other processes of the same user may
 * not trace it. */
void cli_keep_secrets(void);
/* The core that BLAS had chosen before the restart, or NULL. */
const char *cli_startup_corrected_from(void);

#endif
