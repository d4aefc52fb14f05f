/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - `fedkt serve`: the server of one task, from its first start to the last site that fetches the result.
 *
 *   task, certificate, token (serve_open.c) -> host (its state, replayed) -> HTTPS -> until the task is over, and then
 *   until every site in the release has fetched the audit log, or for --linger seconds
 *
 * Stopping it (Ctrl-C, SIGTERM, power) loses nothing: the next start goes on where this one was. */
#include "cli/core/common.h"
#include "task/privacy_words.h"
#include "cli/federation/serve_open.h"
#include "cli/federation/serve_watch.h"
#include "cli/task/service.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "net/httpd.h"
#include "task/service.h"

#include "fedkt/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINGER = 300, FAREWELL = 15 };

struct asked {
    struct cli_serve_spec open;
    const char *out, *calibration;
    struct cli_weights settings;
    uint64_t per_class, linger;
    int format, stay;
    struct cli_run run;
};
struct server {
    const struct asked *a;
    struct cli_serve_open o;
    struct cli_progress progress;
    struct cli_watch watch;
    struct fkt_server *server;
    struct fkt_mailbox box;
    struct fkt_httpd *httpd;
    struct fkt_text privacy;
    uint8_t task[32]; /* its hash */
    char *folder;     /* the public one */
    double over_at;   /* 0: not over */
    int gave_up;
};

static fkt_status open_server(struct server *s)
{
    const struct asked *a = s->a;
    struct fkt_server_spec spec = {.task = &s->o.task,
                                   .folder = a->open.state,
                                   .out = a->out,
                                   .calibration = a->calibration,
                                   .per_class = (size_t)a->per_class,
                                   .format = (enum fkt_export_format)a->format,
                                   .progress = &s->progress.hook};
    fkt_status st;
    cli_codec_settings(&a->settings, &spec.settings);
    FKT_TRY(cli_threads(a->run.threads, &spec.threads));
    if (a->out) FKT_TRY(fkt_strdup(&s->folder, a->out));
    else FKT_TRY(fkt_path_join(&s->folder, a->open.state, "public"));
    FKT_TRY(fkt_server_open(&s->server, &spec));
    fkt_server_mailbox(s->server, &s->box);
out:
    return st;
}

/* Once the host has seen that it is too late, the task is over for ever; a clock that is wrong while the server starts
 * must not bring that about. It has not been told the time yet. */
static fkt_status check_day(const struct server *s)
{
    const uint64_t expires = s->o.task.service.expires, now = (uint64_t)time(NULL);
    struct fkt_mailbox_view v;
    char then[FKT_UTC], here[FKT_UTC];
    s->box.view(s->box.self, &v);
    if (!expires || now < expires || v.round || v.stage != FKT_STAGE_GATHERING || v.reason[0]) return FKT_OK;
    fkt_utc(then, expires);
    fkt_utc(here, now);
    return fkt_fail_hint(FKT_E_MISMATCH, "set the clock if it is wrong; otherwise make a new task",
                         "the task has expired: %s, and no round has begun; this machine's clock says %s", then, here);
}

static void fill_facts(const struct server *s, struct fkt_page_facts *f)
{
    const struct fkt_task *t = &s->o.task;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *f = (struct fkt_page_facts){.task_name = t->name,
                                 .task_sha256 = t->sha256,
                                 .privacy = s->privacy.s,
                                 .noise = fkt_noise_name(t->federation.noise),
                                 .version = fkt_version(),
                                 .sites = t->federation.sites,
                                 .names = (const char *const *)t->service.names,
                                 .roster = t->federation.roster,
                                 .classes = (const char *const *)t->classes,
                                 .n_classes = t->n_classes,
                                 .sparse = t->federation.degree < t->federation.sites - 1,
                                 .started_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
                                 .insecure = t->service.seeded};
}

/* ---- words ---- */

static fkt_status print_line(json_t *j)
{
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    if (!text) return fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON");
    puts(text);
    free(text);
    return cli_flush();
}

/* Sites come to the port that stands in the task; another one here is right where something forwards. */
static void compare_ports(const struct server *s)
{
    const char *here = strrchr(fkt_httpd_address(s->httpd), ':') + 1; /* it always has one */
    char server[FKT_SERVICE_HOST];
    uint16_t named;
    if (s->a->run.quiet || fkt_service_address(s->o.task.service.address, server, &named) != FKT_OK) return;
    if (strtoul(here, NULL, 10) != named)
        fprintf(stderr,
                "fedkt: sites come to port %u, which the task names, and this server listens on port %s: something "
                "must forward the one to the other\n",
                named, here);
}

static fkt_status announce(const struct server *s)
{
    const struct fkt_task *t = &s->o.task;
    const int local = fkt_httpd_local(s->httpd);
    const char *listen = fkt_httpd_address(s->httpd);
    char page[300];
    if (local) snprintf(page, sizeof page, "https://%s/", listen);
    else snprintf(page, sizeof page, "%s/", t->service.address);
    if (s->o.pinned && !s->a->run.quiet)
        fprintf(stderr,
                "fedkt: the pin of this server was put into '%s', which is signed anew: give it to the sites as it is "
                "now\n",
                s->a->open.task);
    if (s->a->run.json)
        return print_line(json_pack("{s:s s:s s:s s:s s:s s:s s:s s:b s:b}", "listen", listen, "address",
                                    t->service.address, "pin", s->o.tls.pin, "task_sha256", t->sha256, "page", page,
                                    "token_file", s->o.token_path, "folder", s->folder, "token_needed", !local,
                                    "pinned_now", s->o.pinned));
    printf("listening   %s\n", listen);
    printf("for sites   %s\n", t->service.address);
    printf("pin         %s\n", s->o.tls.pin);
    printf("task        %s\n", t->sha256);
    printf("page        %s\n", page);
    if (local) printf("            open to this machine alone, without a token\n");
    else printf("            %slogin?token=... with the token in '%s'\n", page, s->o.token_path);
    return cli_flush();
}

static int has_images(const char *folder)
{
    char *path = NULL;
    int yes = fkt_path_join(&path, folder, "grid.png") == FKT_OK && access(path, F_OK) == 0;
    fkt_free(path);
    return yes;
}

static fkt_status print_end(const struct server *s, const struct cli_glance *g)
{
    const char *folder = s->folder;
    if (s->a->run.json)
        return print_line(json_pack("{s:s s:i s:i s:i s:s s:s s:s}", "stage", fkt_stage_name(g->stage), "round",
                                    (int)g->round, "sites", (int)g->sites, "survivors", (int)g->survivors,
                                    "release_sha256", g->release, "folder", folder, "reason", g->reason));
    if (g->stage == FKT_STAGE_RELEASED) {
        printf("release     %s/release.safetensors\n", folder);
        printf("            sha256 %s, %u of %u sites\n", g->release, g->survivors, g->sites);
        printf("certificate %s/certificate.json\n", folder);
        if (has_images(folder)) printf("images      %s/dataset, a sample in %s/grid.png\n", folder, folder);
        else printf("images      none: its numbers are none that a decoder takes; the audit log says why\n");
    }
    printf("audit log   %s/audit.jsonl\n", folder);
    return cli_flush();
}

/* ---- running ---- */

static int fetched(void *self, uint32_t site) { return fkt_httpd_fetched(((struct server *)self)->httpd, site); }

/* Called while it serves; 1 stops it. */
static int idle(void *self)
{
    struct server *s = self;
    struct cli_glance g;
    double waited, linger;
    if (cli_progress_check("") != FKT_OK) return 1;
    cli_watch_glance(&s->watch, &g);
    cli_watch_say(&s->watch);
    if (!g.there || g.stage < FKT_STAGE_RELEASED) return 0;
    if (!s->over_at) {
        cli_progress_end(&s->progress);
        s->over_at = fkt_now();
        if (print_end(s, &g) != FKT_OK) cli_fail(FKT_E_IO); /* nobody reads it; the files are there all the same */
    }
    if (s->a->stay) return 0;
    waited = fkt_now() - s->over_at;
    linger = (double)s->a->linger;
    if (g.stage == FKT_STAGE_GIVEN_UP && linger > FAREWELL) linger = FAREWELL; /* there is little to fetch */
    return waited >= linger || cli_watch_all_counted(&s->watch, fetched, s);
}

static fkt_status how_it_ended(struct server *s, fkt_status st)
{
    struct cli_glance g;
    cli_progress_end(&s->progress);
    cli_watch_glance(&s->watch, &g);
    s->gave_up = g.there && g.stage == FKT_STAGE_GIVEN_UP;
    if (s->gave_up)
        return fkt_fail_hint(FKT_E_TOO_FEW, "nothing was released; make a new task to try again",
                             "the task was given up: %s", g.reason);
    if (cli_progress_check("") == FKT_OK) return st;
    if (s->over_at) return FKT_OK;
    if (cli_stopped_by() == SIGTERM) { /* how a supervisor ends a service: nothing has failed */
        if (!s->a->run.quiet) cli_say("fedkt: stopped; start it again with the same --state to go on");
        return FKT_OK;
    }
    return fkt_fail_hint(FKT_E_STOPPED, "start it again with the same --state to go on", "stopped");
}

static int run(const struct asked *a)
{
    struct server s = {.a = a};
    struct fkt_page_facts facts;
    struct fkt_httpd_spec spec;
    fkt_status st;
    int code;
    fkt_text_init(&s.privacy);
    cli_progress_init(&s.progress, a->run.quiet);
    signal(SIGPIPE, SIG_IGN);
    FKT_TRY(cli_serve_open(&s.o, &a->open));
    FKT_TRY(cli_watch_init(&s.watch, s.o.task.federation.sites, a->run.quiet));
    FKT_TRY(open_server(&s));
    FKT_TRY(check_day(&s));
    FKT_TRY(fkt_privacy_words(&s.privacy, &s.o.task));
    fill_facts(&s, &facts);
    (void)fkt_unhex(s.task, s.o.task.sha256, sizeof s.task); /* it is hex: the task's own */
    spec = (struct fkt_httpd_spec){.listen = a->open.listen,
                                   .address = s.o.task.service.address,
                                   .tls = &s.o.tls,
                                   .box = &s.box,
                                   .roster = s.o.task.federation.roster,
                                   .task = s.task,
                                   .task_text = s.o.task_text,
                                   .facts = &facts,
                                   .token = s.o.token,
                                   .watch = cli_watch_look,
                                   .watcher = &s.watch};
    FKT_TRY(fkt_httpd_start(&s.httpd, &spec));
    FKT_TRY(cli_serve_keep_task(&s.o, a->open.task));
    compare_ports(&s);
    FKT_TRY(announce(&s));
    st = how_it_ended(&s, fkt_httpd_run(s.httpd, idle, &s));
out:
    code = cli_fail(st);
    fkt_httpd_free(s.httpd);
    fkt_server_close(s.server);
    if (s.watch.slot) cli_watch_clear(&s.watch);
    fkt_text_clear(&s.privacy);
    fkt_free(s.folder);
    cli_serve_clear(&s.o);
    return s.gave_up ? CLI_OVER : code;
}

int cli_serve(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {.linger = LINGER};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.open.task, "FILE", 1, "the task, signed; its pin is put in at the first start"),
        CLI_OPT_TEXT("state", &a.open.state, "DIR", 1, "what must survive: journal, certificate, token; made 0700"),
        CLI_OPT_TEXT("listen", &a.open.listen, "ADDR:PORT", 1, "0.0.0.0:8443 for all of IPv4, [::]:8443 for everybody"),
        CLI_OPT_TEXT("key", &a.open.key, "FILE", 0, "the operator's key, needed once: to sign the task with its pin"),
        CLI_OPT_TEXT("certificate", &a.open.certificate, "PEM", 0, "of the server, with its chain (default: made)"),
        CLI_OPT_TEXT("private-key", &a.open.private_key, "PEM", 0, "of the certificate"),
        CLI_WEAK_ROW(a.open.accept_weak),
        CLI_OPT_FLAG("stay", &a.stay, "go on serving files when the task is over, until it is stopped"),
        CLI_OPT_WHOLE("linger", &a.linger, "S", 0,
                      "wait so long for sites to fetch the audit log when it is over (default: 300)"),
        CLI_OPT_HEAD("what is made in the end"),
        CLI_OPT_TEXT("out", &a.out, "DIR", 0, "public folder (default: 'public' in the state)"),
        CLI_OPT_WHOLE("per-class", &a.per_class, "N", 0, "synthetic images per class (default: 100)"),
        CLI_OPT_CHOICE("format", &a.format, fkt_export_parse, "folder, npz or webdataset", "how they are stored"),
        CLI_OPT_TEXT("calibration", &a.calibration, "FILE", 0, "the task's calibration (default: the codec's own)"),
        CLI_WEIGHTS_ROWS(a.settings),
        CLI_TALK_ROWS(a.run),
        CLI_OPT_WHOLE("threads", &a.run.threads, "N", 0, "worker threads of the heavy work (default: all cores)"),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    cli_keep_secrets();
    if (code >= 0) return code;
    if (!a.open.certificate != !a.open.private_key)
        return cli_misuse(self, fkt_fail_hint(FKT_E_ARG,
                                              "give both for a certificate of your own, neither for one that is made",
                                              "--certificate and --private-key go together"));
    return run(&a);
}
