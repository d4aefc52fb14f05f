/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - the current step, its progress, speed and remaining time. On a terminal one line that is redrawn ten
 * times a second; elsewhere a line of text every five seconds, so that logs stay short; with --log jsonl an event
 * instead. */
#include "cli/core/progress.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/core/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig) { interrupted = sig; }

/* "40 s", "12 min", "3 h 05 min" */
static void span(char *out, size_t cap, double seconds)
{
    unsigned long long minutes = (unsigned long long)(seconds / 60 + 0.5);
    if (seconds < 100) snprintf(out, cap, "%.0f s", seconds);
    else if (minutes < 100) snprintf(out, cap, "%llu min", minutes);
    else snprintf(out, cap, "%llu h %02llu min", minutes / 60, minutes % 60);
}

static void bar(struct cli_progress *p, unsigned long long done, unsigned long long total, double rate, double left)
{
    char marks[25], time[48];
    int full = total ? (int)(24.0 * (double)done / (double)total) : 0;
    for (int i = 0; i < 24; i++) marks[i] = i < full ? '#' : '.';
    marks[24] = '\0';
    span(time, sizeof time, left);
    fprintf(stderr, "\r\033[K%-14s ", p->what);
    if (total) fprintf(stderr, "[%s] %3.0f %%  ", marks, 100.0 * (double)done / (double)total);
    if (p->bytes) fprintf(stderr, "%.1f MB", 1e-6 * (double)done);
    else fprintf(stderr, "%llu", done);
    if (p->bytes && total) fprintf(stderr, " of %.1f MB", 1e-6 * (double)total);
    else if (total) fprintf(stderr, "/%llu", total);
    if (rate > 0 && p->bytes) fprintf(stderr, "  %.1f MB/s", 1e-6 * rate);
    else if (rate > 0)
        fprintf(stderr, "  %.*f%s%s/s", rate < 10 ? 2 : 0, rate, p->unit ? " " : "", p->unit ? p->unit : "");
    if (rate > 0 && total) fprintf(stderr, "  %s left", time);
    fflush(stderr);
    p->drawn = 1;
}

/* "fedkt: encoding: 1200 of 6000, 240 img/s, 20 s left" */
static void plain(const struct cli_progress *p, unsigned long long done, unsigned long long total, double rate,
                  double left)
{
    const double unit = p->bytes ? 1e-6 : 1;
    char time[48];
    span(time, sizeof time, left);
    fprintf(stderr, "fedkt: %s: %.*f", p->what, p->bytes, unit * (double)done);
    if (total) fprintf(stderr, " of %.*f", p->bytes, unit * (double)total);
    if (p->bytes) fputs(" MB", stderr);
    if (rate > 0)
        fprintf(stderr, ", %.*f%s%s/s", rate * unit < 10 ? 2 : 0, rate * unit, p->bytes || p->unit ? " " : "",
                p->bytes  ? "MB"
                : p->unit ? p->unit
                          : "");
    if (rate > 0 && total) fprintf(stderr, ", %s left", time);
    fputc('\n', stderr);
}

static int step(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    struct cli_progress *p = self;
    double now = fkt_now(), rate, left;
    if (interrupted) return 1;
    if (p->quiet) return 0;
    if (strncmp(p->what, what, sizeof p->what - 1) != 0) {
        snprintf(p->what, sizeof p->what, "%s", what);
        p->started = now; /* the first call comes after some work: neither that work nor its time is counted */
        p->before = done;
        p->shown = p->terminal ? 0 : now;
    }
    if (done < p->before) p->before = done; /* a download that starts over */
    if (now - p->shown < (p->terminal ? 0.1 : 5.0)) return 0;
    p->shown = now;
    rate = now > p->started ? (double)(done - p->before) / (now - p->started) : 0;
    left = rate > 0 && total >= done ? (double)(total - done) / rate : 0;
    if (p->terminal) bar(p, done, total, rate, left);
    else if (cli_log_jsonl())
        cli_event("progress", json_pack("{s:s s:I s:I s:f s:f s:s*}", "what", p->what, "done", (json_int_t)done,
                                        "total", (json_int_t)total, "per_second", rate, "seconds_left", left, "unit",
                                        p->bytes  ? "bytes"
                                        : p->unit ? "images"
                                                  : NULL));
    else plain(p, done, total, rate, left);
    return 0;
}

void cli_progress_init(struct cli_progress *p, int quiet)
{
    struct sigaction sa, now;
    memset(p, 0, sizeof *p);
    p->hook = (struct fkt_progress){step, p};
    p->terminal = isatty(STDERR_FILENO) && !cli_log_jsonl();
    p->quiet = quiet;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_interrupt;
    sa.sa_flags = (int)SA_RESETHAND; /* a second Ctrl-C kills at once */
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &sa, NULL); /* keep nohup's setting */
}

const volatile sig_atomic_t *cli_stop_flag(void) { return &interrupted; }

int cli_stopped_by(void) { return (int)interrupted; }

fkt_status cli_progress_check(const char *when)
{
    return interrupted ? fkt_fail(FKT_E_STOPPED, "stopped %s", when) : FKT_OK;
}

void cli_progress_end(struct cli_progress *p)
{
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = 0;
}
