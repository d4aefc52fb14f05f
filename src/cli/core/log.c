/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - one format for all lines on standard error (docs/decisions/0015-standard-error.md).
 *
 * Text is the default, on a terminal and in a pipe. With --log jsonl, for log collectors, the stream `stderr` is
 * replaced by one that turns each finished line of text into {"event": "note", ...}; structured events (progress,
 * errors, events of serve and join) are written as whole lines too. So every line is JSON, also one that a library
 * wrote. glibc lets `stderr` be assigned and has fopencookie(). What is not UTF-8 becomes '?'. */
#include "cli/core/log.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int jsonl, silent;
static char line[8192]; /* an unfinished line; longer ones are cut into several */
static size_t filled;

int cli_log_parse(const char *name)
{
    return !strcmp(name, "text") ? CLI_LOG_TEXT : !strcmp(name, "jsonl") ? CLI_LOG_JSONL : -1;
}

int cli_log_jsonl(void) { return jsonl; }

void cli_event(const char *event, json_t *fields)
{
    struct timespec now;
    json_t *j = json_object();
    char *text = NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    if (j && fields && json_object_set_new(j, "event", json_string(event)) == 0 &&
        json_object_set_new(j, "at", json_integer((json_int_t)now.tv_sec * 1000 + now.tv_nsec / 1000000)) == 0 &&
        json_object_update(j, fields) == 0)
        text = json_dumps(j, JSON_REAL_PRECISION(6));
    if (text && !silent) dprintf(STDERR_FILENO, "%s\n", text);
    free(text);
    json_decref(fields);
    json_decref(j);
}

static void note(void)
{
    char text[sizeof line + 1];
    const char *said = text;
    line[filled] = '\0';
    fkt_text_cut(text, sizeof text, line);
    if (!strncmp(said, "fedkt: ", 7)) said += 7;
    if (*said) cli_event("note", json_pack("{s:s}", "text", said));
    filled = 0;
}

static ssize_t take(void *self, const char *bytes, size_t n)
{
    (void)self;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') line[filled++] = bytes[i];
        if (bytes[i] == '\n' || filled == sizeof line - 1) note();
    }
    return (ssize_t)n;
}

static ssize_t drop(void *self, const char *bytes, size_t n)
{
    (void)self;
    (void)bytes;
    return (ssize_t)n;
}

void cli_log_silence(void)
{
    const cookie_io_functions_t how = {.write = drop};
    FILE *stream = fopencookie(NULL, "w", how);
    silent = 1;
    if (stream) stdout = stderr = stream;
}

void cli_log_begin(int argc, char **argv)
{
    const cookie_io_functions_t how = {.write = take};
    FILE *stream;
    for (int i = 1; i < argc; i++)
        jsonl |= !strcmp(argv[i], "--log=jsonl") ||
                 (!strcmp(argv[i], "--log") && i + 1 < argc && !strcmp(argv[i + 1], "jsonl"));
    if (!jsonl) return;
    stream = fopencookie(NULL, "w", how);
    if (!stream || setvbuf(stream, NULL, _IOLBF, 4096) != 0) return;
    stderr = stream;
}
