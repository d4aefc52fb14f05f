/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - what is being done, how far, how fast, how long still. On a terminal one line that redraws itself ten
 * times a second; elsewhere a JSON object per line, every five seconds, so that a log stays readable and short runs
 * stay silent. */
#include "cli/progress.h"

#include "base/clock.h"
#include "base/status.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

static void bar(struct cli_progress *p, unsigned long long done, unsigned long long total, double rate, double left)
{
    char marks[25];
    int full = total ? (int)(24.0 * (double)done / (double)total) : 0;
    for (int i = 0; i < 24; i++) marks[i] = i < full ? '#' : '.';
    marks[24] = '\0';
    if (total)
        fprintf(stderr, "\r\033[K%-14s [%s] %3.0f %%  %llu/%llu  %.0f/s  %.0f s left", p->what, marks,
                100.0 * (double)done / (double)total, done, total, rate, left);
    else fprintf(stderr, "\r\033[K%-14s %llu  %.0f/s", p->what, done, rate);
    fflush(stderr);
    p->drawn = 1;
}

static int step(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    struct cli_progress *p = self;
    double now = fkt_now(), rate, left;
    if (interrupted) return 1;
    if (p->quiet) return 0;
    if (strncmp(p->what, what, sizeof p->what - 1) != 0) {
        snprintf(p->what, sizeof p->what, "%s", what);
        p->started = p->shown = now;
    }
    if (now - p->shown < (p->terminal ? 0.1 : 5.0)) return 0;
    p->shown = now;
    rate = now > p->started ? (double)done / (now - p->started) : 0;
    left = rate > 0 && total >= done ? (double)(total - done) / rate : 0;
    if (p->terminal) bar(p, done, total, rate, left);
    else
        fprintf(
            stderr,
            "{\"progress\": \"%s\", \"done\": %llu, \"total\": %llu, \"per_second\": %.1f, \"seconds_left\": %.1f}\n",
            p->what, done, total, rate, left);
    return 0;
}

void cli_progress_init(struct cli_progress *p, int quiet)
{
    struct sigaction sa;
    memset(p, 0, sizeof *p);
    p->hook = (struct fkt_progress){step, p};
    p->terminal = isatty(STDERR_FILENO);
    p->quiet = quiet;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_interrupt;
    sa.sa_flags = (int)SA_RESETHAND; /* a second Ctrl-C kills at once */
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
}

fkt_status cli_progress_check(const char *when)
{
    return interrupted ? fkt_fail(FKT_E_STOPPED, "stopped %s", when) : FKT_OK;
}

void cli_progress_end(struct cli_progress *p)
{
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = 0;
}
