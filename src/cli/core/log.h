/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - standard error: lines of text for people, or with --log jsonl a JSON object on every line. */
#ifndef FKT_CLI_CORE_LOG_H
#define FKT_CLI_CORE_LOG_H

#include <jansson.h>

enum { CLI_LOG_TEXT, CLI_LOG_JSONL };
int cli_log_parse(const char *name); /* "text", "jsonl"; -1: neither */
/* Call it before anything is printed: with --log jsonl in argv, everything written to `stderr` from here on becomes
 * JSON. */
void cli_log_begin(int argc, char **argv);
int cli_log_jsonl(void);
void cli_log_silence(void); /* from here on nothing is printed, neither on stdout nor on stderr */
/* A line {"event": event, "at": milliseconds since 1970, ...fields}. Takes ownership of `fields`; NULL (no memory):
 * writes nothing. */
void cli_event(const char *event, json_t *fields);

#endif
