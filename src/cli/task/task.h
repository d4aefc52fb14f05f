/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - the words of `fedkt task`; new and show have their own files. */
#ifndef FKT_CLI_TASK_TASK_H
#define FKT_CLI_TASK_TASK_H

#include "cli/core/common.h"

int cli_task_new(const struct cli_command *self, int argc, char **argv);
int cli_task_show(const struct cli_command *self, int argc, char **argv);
/* Signs a task with the key in a file. */
FKT_MUST_USE fkt_status cli_task_sign_with(struct fkt_task *t, const char *key_path);

#endif
