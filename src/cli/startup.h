/* SPDX-License-Identifier: Apache-2.0 */
/* startup.h - what must be right before the first number is computed. */
#ifndef FKT_CLI_STARTUP_H
#define FKT_CLI_STARTUP_H

/* Starts the program anew, once, when BLAS runs on kernels that the processor outclasses; else comes back. */
void cli_startup(char **argv);
/* The core that BLAS had before we asked for a better one, or NULL. */
const char *cli_startup_corrected_from(void);

#endif
