/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - one function per verb; main.c lists them. */
#ifndef FKT_CLI_CORE_VERBS_H
#define FKT_CLI_CORE_VERBS_H

#include "cli/core/options.h"

int cli_privacy(const struct cli_command *self, int argc, char **argv);
int cli_codec(const struct cli_command *self, int argc, char **argv);
int cli_keygen(const struct cli_command *self, int argc, char **argv);
int cli_enroll(const struct cli_command *self, int argc, char **argv);
int cli_task(const struct cli_command *self, int argc, char **argv);
int cli_encode(const struct cli_command *self, int argc, char **argv);
int cli_moments(const struct cli_command *self, int argc, char **argv);
int cli_release(const struct cli_command *self, int argc, char **argv);
int cli_ledger(const struct cli_command *self, int argc, char **argv);
int cli_generate(const struct cli_command *self, int argc, char **argv);
int cli_heads(const struct cli_command *self, int argc, char **argv);
int cli_evaluate(const struct cli_command *self, int argc, char **argv);
int cli_train(const struct cli_command *self, int argc, char **argv);
int cli_personalize(const struct cli_command *self, int argc, char **argv);
int cli_simulate(const struct cli_command *self, int argc, char **argv);
int cli_demo(const struct cli_command *self, int argc, char **argv);
int cli_audit(const struct cli_command *self, int argc, char **argv);
int cli_join(const struct cli_command *self, int argc, char **argv);
int cli_serve(const struct cli_command *self, int argc, char **argv);
int cli_verify(const struct cli_command *self, int argc, char **argv);
int cli_experiment(const struct cli_command *self, int argc, char **argv);
int cli_bench(const struct cli_command *self, int argc, char **argv);

#endif
