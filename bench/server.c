/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - a server for a benchmark in a separate process: its cost can be separated from that of a thousand
 * sites, and it is the program that an operator runs. Its first line of JSON has the address. Processor time comes
 * from /proc/PID/stat, in clock ticks of 10 ms; memory from VmHWM. */
#include "bench/server.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS = 60000, END_SECONDS = 60, LINE = 8192 };

static void become(const char *const *words, int out, const char *log)
{
    int talk = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), nothing = open("/dev/null", O_RDONLY);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (talk < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(out, 1) < 0 || dup2(talk, 2) < 0) _exit(127);
    execv("/proc/self/exe", (char *const *)(uintptr_t)words);
    _exit(127);
}

/* One line, or the rest before the end. */
static fkt_status first_line(int fd, char *line, size_t cap, const char *log)
{
    size_t len = 0;
    while (len + 1 < cap) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n = poll(&p, 1, START_MS) > 0 ? read(fd, line + len, 1) : -1;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fkt_fail(FKT_E_IO, "the benched server did not start: its log is '%s'", log);
        if (line[len] == '\n') break;
        len++;
    }
    line[len] = '\0';
    return FKT_OK;
}

fkt_status cli_bench_server_start(struct cli_bench_server *s, const char *const *words, const char *log)
{
    char line[LINE];
    const char *address = NULL;
    json_t *said = NULL;
    int pair[2];
    fkt_status st;
    memset(s, 0, sizeof *s);
    s->out = -1;
    if (pipe2(pair, O_CLOEXEC) != 0) return fkt_fail(FKT_E_IO, "no pipe for a benchmark: %s", strerror(errno));
    s->pid = fork();
    if (s->pid == 0) become(words, pair[1], log);
    close(pair[1]);
    s->out = pair[0];
    if (s->pid < 0) {
        s->pid = 0;
        return fkt_fail(FKT_E_IO, "no process for a benchmark: %s", strerror(errno));
    }
    FKT_TRY(first_line(s->out, line, sizeof line, log));
    said = json_loads(line, 0, NULL);
    address = json_string_value(json_object_get(said, "listen"));
    if (!address || strlen(address) >= sizeof s->address)
        st = fkt_fail(FKT_E_FORMAT, "the benched server does not print its address: '%s'", line);
    else snprintf(s->address, sizeof s->address, "%s", address);
out:
    json_decref(said);
    return st;
}

static fkt_status read_proc(const struct cli_bench_server *s, const char *name, char *out, size_t cap)
{
    char path[64];
    ssize_t n;
    int fd;
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)s->pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, out, cap - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return fkt_fail(FKT_E_IO, "the benched server is gone");
    out[n] = '\0';
    return FKT_OK;
}

fkt_status cli_bench_server_usage(const struct cli_bench_server *s, double *cpu, double *peak_mb)
{
    char text[LINE];
    const char *at;
    unsigned long user = 0, kernel = 0, kib = 0;
    fkt_status st;
    FKT_TRY(read_proc(s, "stat", text, sizeof text));
    at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2) {
        st = fkt_fail(FKT_E_FORMAT, "cannot read the processor time of the benched server");
        goto out;
    }
    *cpu = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    FKT_TRY(read_proc(s, "status", text, sizeof text));
    at = strstr(text, "VmHWM:");
    if (!at || sscanf(at, "VmHWM: %lu", &kib) != 1) {
        st = fkt_fail(FKT_E_FORMAT, "cannot read the memory of the benched server");
        goto out;
    }
    *peak_mb = 1024e-6 * (double)kib;
out:
    return st;
}

fkt_status cli_bench_server_stop(struct cli_bench_server *s)
{
    int code = 0;
    kill(s->pid, SIGTERM);
    for (int i = 0; i < END_SECONDS * 100; i++) {
        pid_t got = waitpid(s->pid, &code, WNOHANG);
        if (got == s->pid) {
            s->pid = 0;
            if (WIFEXITED(code) && WEXITSTATUS(code) == 0) return FKT_OK;
            return fkt_fail(FKT_E_IO, "the benched server did not end well");
        }
        usleep(10000);
    }
    return fkt_fail(FKT_E_IO, "the benched server does not end");
}

void cli_bench_server_clear(struct cli_bench_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    if (s->out >= 0) close(s->out);
    s->pid = 0;
    s->out = -1;
}
