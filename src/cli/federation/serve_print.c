/* SPDX-License-Identifier: Apache-2.0 */
/* serve_print.c - the events of fkt_serve: its address and the result on standard output; on standard error a line
 * or an event (log.h) for each change, at most one a second. It prints numbers of sites, never the classes that they
 * hold. */
#include "fedkt/advanced/mailbox.h"

#include "cli/federation/serve.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "codec/codec.h"
#include "task/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- standard error ---- */

static void sentence(struct fkt_text *t, const struct fkt_serve_view *g)
{
    switch (g->stage) {
    case FKT_STAGE_GATHERING:
        fkt_text_addf(t, "waiting for sites: %u of %u are connected, %u are needed", g->ready, g->sites, g->needed);
        if (g->reason[0]) fkt_text_addf(t, " (the last round failed: %s)", g->reason);
        return;
    case FKT_STAGE_RUNNING:
        fkt_text_addf(t, "round %u, %s: %u of %u sites have answered, %u lost", g->round, g->phase, g->heard,
                      g->expected, g->lost);
        if (g->overdue) fkt_text_add(t, "; past its deadline, still waiting for the silent sites");
        return;
    case FKT_STAGE_FINISHING:
        if (g->comparing)
            fkt_text_add(t, "the task was already over at this start: comparing files with the transparency log");
        else fkt_text_addf(t, "unmasking the sum of %u sites and writing files", g->survivors);
        return;
    case FKT_STAGE_RELEASED: fkt_text_addf(t, "released: %u of %u sites are in it", g->survivors, g->sites); return;
    case FKT_STAGE_GIVEN_UP: fkt_text_addf(t, "given up: %s", g->reason); return;
    }
}

/* Of a cohort: which one it is. */
static json_t *with_cohort(json_t *j, const struct fkt_task *t)
{
    if (j && t->division.number) json_object_set_new(j, "cohort", json_integer(t->division.index));
    return j;
}

static void say_json(const struct fkt_task *t, const struct fkt_serve_view *g)
{
    cli_event(
        "server",
        with_cohort(json_pack("{s:s s:s s:i s:i s:i s:i s:i s:i s:i s:i s:b s:s}", "stage", fkt_stage_name(g->stage),
                              "phase", g->phase, "round", (int)g->round, "sites", (int)g->sites, "ready", (int)g->ready,
                              "needed", (int)g->needed, "expected", (int)g->expected, "heard", (int)g->heard, "lost",
                              (int)g->lost, "survivors", (int)g->survivors, "overdue", g->overdue, "reason", g->reason),
                    t));
}

/* Changes that are printed at once; counts within a phase are printed once a second. */
static int another(const struct fkt_serve_view *a, const struct fkt_serve_view *b)
{
    return a->stage != b->stage || a->round != b->round || strcmp(a->phase, b->phase) != 0 || a->overdue != b->overdue;
}

static int moved(const struct fkt_serve_view *a, const struct fkt_serve_view *b)
{
    return a->ready != b->ready || a->heard != b->heard || a->lost != b->lost || strcmp(a->reason, b->reason) != 0;
}

/* What was last said of a cohort; NULL: out of memory, and nothing is said. */
static struct cli_serve_said *said_of(struct cli_serve *s, const struct fkt_task *t)
{
    const uint32_t index = t->division.number ? t->division.index : 0;
    if (index >= s->n_said) {
        if (fkt_realloc(&s->said, (size_t)index + 1) != FKT_OK) return NULL;
        memset(s->said + s->n_said, 0, (index + 1 - s->n_said) * sizeof *s->said);
        s->n_said = index + 1;
    }
    return &s->said[index];
}

static void print_view(struct cli_serve *s, const struct fkt_task *task, const struct fkt_serve_view *v)
{
    struct cli_serve_said *said = s->a->run.quiet ? NULL : said_of(s, task);
    struct fkt_text t;
    const double now = fkt_now();
    if (!said) return;
    if (said->at && !another(v, &said->view) && !(moved(v, &said->view) && now - said->at >= 1)) return;
    said->view = *v;
    said->at = now;
    if (cli_log_jsonl()) {
        say_json(task, v);
        return;
    }
    fkt_text_init(&t);
    if (task->division.number) fkt_text_addf(&t, "cohort %u: ", task->division.index);
    sentence(&t, v);
    cli_say(t.s);
    fkt_text_clear(&t);
}

/* Sites connect to the port in the task; this server's port may differ when a forwarder is in between. */
static void compare_ports(const struct cli_serve *s, const struct fkt_task *t, const char *listen)
{
    const char *here = strrchr(listen, ':') + 1; /* it always has one */
    char server[FKT_SERVICE_HOST];
    uint16_t named;
    if (s->a->run.quiet || fkt_service_address(t->service.address, server, &named) != FKT_OK) return;
    if (strtoul(here, NULL, 10) != named)
        fprintf(stderr,
                "fedkt: sites connect to port %u, as in the task, but this server listens on port %s: forward one to "
                "the other\n",
                named, here);
}

/* ---- standard output ---- */

static fkt_status print_line(json_t *j)
{
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    if (!text) return fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON");
    puts(text);
    free(text);
    return cli_flush();
}

static fkt_status announce(const struct cli_serve *s, const struct fkt_task *t, const struct fkt_serve_place *at)
{
    char page[300];
    if (at->local) snprintf(page, sizeof page, "https://%s/", at->listen);
    else snprintf(page, sizeof page, "%s/", t->service.address);
    if (at->pinned && !s->a->run.quiet)
        fprintf(stderr,
                "fedkt: this server's pin was added to '%s', which is signed again: give it to the sites as it is "
                "now\n",
                s->a->task);
    if (s->a->run.json)
        return print_line(with_cohort(json_pack("{s:s s:s s:s s:s s:s s:s s:s s:b s:b}", "listen", at->listen,
                                                "address", t->service.address, "pin", at->pin, "task_sha256", t->sha256,
                                                "page", page, "token_file", at->token_file, "folder", at->folder,
                                                "token_needed", !at->local, "pinned_now", at->pinned),
                                      t));
    if (t->division.number) printf("cohort      %u\n", t->division.index);
    printf("listening   %s\n", at->listen);
    printf("for sites   %s\n", t->service.address);
    printf("pin         %s\n", at->pin);
    printf("task        %s\n", t->sha256);
    printf("page        %s\n", page);
    if (at->local) printf("            open to this machine only, without a token\n");
    else printf("            %slogin?token=... with the token in '%s'\n", page, at->token_file);
    return cli_flush();
}

static int has_images(const char *folder)
{
    char *path = NULL;
    int yes = fkt_path_join(&path, folder, "grid.png") == FKT_OK && access(path, F_OK) == 0;
    fkt_free(path);
    return yes;
}

static fkt_status print_end(const struct cli_serve *s, const struct fkt_task *t, const char *folder,
                            const struct fkt_serve_view *g)
{
    if (s->a->run.json)
        return print_line(
            with_cohort(json_pack("{s:s s:i s:i s:i s:s s:s s:s}", "stage", fkt_stage_name(g->stage), "round",
                                  (int)g->round, "sites", (int)g->sites, "survivors", (int)g->survivors,
                                  "release_sha256", g->release_sha256, "folder", folder, "reason", g->reason),
                        t));
    if (t->division.number) printf("cohort      %u: %s\n", t->division.index, fkt_stage_name(g->stage));
    if (g->stage == FKT_STAGE_RELEASED) {
        printf("release     %s/release.safetensors\n", folder);
        printf("            sha256 %s, %u of %u sites\n", g->release_sha256, g->survivors, g->sites);
        printf("certificate %s/certificate.json\n", folder);
        if (has_images(folder)) printf("images      %s/dataset, a sample in %s/grid.png\n", folder, folder);
        else printf("images      none: its numbers cannot be decoded; the transparency log has the reason\n");
    }
    printf("log         %s/transparency.jsonl\n", folder);
    return cli_flush();
}

static fkt_status print_sum(const struct cli_serve *s, const char *folder, const struct fkt_serve_view *g)
{
    if (s->a->run.json)
        return print_line(json_pack("{s:s s:b s:i s:i s:s s:s}", "stage", "released", "sum", 1, "sites", (int)g->sites,
                                    "survivors", (int)g->survivors, "release_sha256", g->release_sha256, "folder",
                                    folder));
    printf("sum         %s/release.safetensors\n", folder);
    printf("            sha256 %s, %u of %u sites\n", g->release_sha256, g->survivors, g->sites);
    printf("certificate %s/certificate.json says which cohorts are in it, and what the split costs\n", folder);
    return cli_flush();
}

/* The server has opened the codec, so that this finds the device that it found. */
static void print_device(const struct cli_serve *s, const struct fkt_task *task)
{
    const struct cli_weights *m = &s->a->settings;
    struct fkt_device d;
    if (!fkt_codec_is_network(fkt_task_part(task, 0)->name) || cli_device_settle(m->device, &d) != FKT_OK) return;
    cli_print_device(m->device, d,
                     m->dtype == FKT_CODEC_DTYPE_AUTO ? "bf16" : fkt_codec_dtype_name((enum fkt_codec_dtype)m->dtype),
                     s->a->run.quiet || cli_log_jsonl());
}

int cli_serve_event(void *self, const struct fkt_serve_event *e)
{
    struct cli_serve *s = self;
    fkt_status st;
    switch (e->kind) {
    case FKT_SERVE_EVENT_LISTENING:
        compare_ports(s, e->task, e->place->listen);
        print_device(s, e->task);
        st = announce(s, e->task, e->place);
        if (st == FKT_OK) return 0;
        fkt_failure_save(&s->failed, st);
        return 1;
    case FKT_SERVE_EVENT_VIEW: print_view(s, e->task, e->view); return 0;
    case FKT_SERVE_EVENT_SUM:
        cli_progress_end(&s->progress);
        if (print_sum(s, e->place->folder, e->view) != FKT_OK) cli_fail(FKT_E_IO);
        return 0;
    case FKT_SERVE_EVENT_OVER:
        cli_progress_end(&s->progress);
        /* standard output may be closed; the files exist anyway */
        if (print_end(s, e->task, e->place->folder, e->view) != FKT_OK) cli_fail(FKT_E_IO);
        return 0;
    }
    return 0;
}
