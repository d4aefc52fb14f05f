/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - several processes of this program that a launcher (mpirun, srun) has started for one piece of work. */
#ifndef FKT_CLI_CORE_LAUNCH_H
#define FKT_CLI_CORE_LAUNCH_H

#include "cli/core/options.h"

#include "fedkt/advanced/ranks.h"

/* At the start: all processes but the first become silent. FKT_E_ARG when the verb is not one that shares its work. */
FKT_MUST_USE fkt_status cli_launch_begin(const char *verb);
/* At the end. A process other than the first that failed before it joined the others waits some seconds: the launcher
 * ends all processes when one fails, and the first must have printed its failure. If this one is still there, the first
 * had none, and it prints its own. */
void cli_launch_end(int code);
/* run(ctx) on all processes that were launched, or here alone; reports its failure once. Returns the exit code. */
int cli_on_ranks(const struct cli_command *self, fkt_status (*run)(const void *ctx), const void *ctx);
struct fkt_ranks *cli_ranks(void); /* for run(); NULL: alone */
int cli_first_rank(void);          /* 1: this process writes files and prints */
/* Its number among the processes of its host, from 0; 0 where the launcher does not say it. */
unsigned long cli_local_rank(void);

#endif
