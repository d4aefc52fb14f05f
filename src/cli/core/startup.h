/* SPDX-License-Identifier: Apache-2.0 */
/* startup.h - what must be right before the first number is computed, or the first secret read. */
#ifndef FKT_CLI_CORE_STARTUP_H
#define FKT_CLI_CORE_STARTUP_H

/* Starts the program anew, once, when BLAS runs on kernels that the processor outclasses; else comes back. */
void cli_startup(char **argv);
/* For verbs that hold keys or records: this process leaves no core dump, and no other one of its user may look in. */
void cli_keep_secrets(void);
/* The core that BLAS had before we asked for a better one, or NULL. */
const char *cli_startup_corrected_from(void);

#endif
