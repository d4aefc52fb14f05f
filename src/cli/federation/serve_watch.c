/* SPDX-License-Identifier: Apache-2.0 */
/* serve_watch.c - a server in words. The server's thread leaves a copy of its view here, and whoever waits for it tells
 * people: printing may block, and the mailbox must not. Numbers of sites, never which classes they hold. */
#include "cli/federation/serve_watch.h"

#include "cli/core/log.h"
#include "cli/core/options.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fkt_status cli_watch_init(struct cli_watch *w, uint32_t sites, int quiet)
{
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    w->quiet = quiet;
    w->seen.sites = sites;
    return fkt_alloc(&w->slot, sites);
}

void cli_watch_clear(struct cli_watch *w)
{
    pthread_mutex_destroy(&w->lock);
    fkt_free(w->slot);
}

void cli_watch_look(void *watch, const struct fkt_mailbox_view *v)
{
    struct cli_watch *w = watch;
    struct cli_glance *g = &w->seen;
    pthread_mutex_lock(&w->lock);
    g->there = 1;
    g->stage = v->stage;
    g->comparing = v->comparing;
    g->overdue = v->overdue;
    g->round = v->round;
    g->ready = v->ready;
    g->expected = v->expected;
    g->heard = v->heard;
    g->lost = v->lost;
    g->survivors = v->survivors;
    g->needed = v->needed;
    snprintf(g->phase, sizeof g->phase, "%s", v->phase);
    snprintf(g->reason, sizeof g->reason, "%s", v->reason);
    snprintf(g->release, sizeof g->release, "%s", v->release_sha256);
    memcpy(w->slot, v->slot, v->sites < g->sites ? v->sites : g->sites);
    pthread_mutex_unlock(&w->lock);
}

void cli_watch_glance(struct cli_watch *w, struct cli_glance *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->seen;
    pthread_mutex_unlock(&w->lock);
}

int cli_watch_all_counted(struct cli_watch *w, int (*each)(void *self, uint32_t site), void *self)
{
    uint32_t counted = 0, done = 0;
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = 0; i < w->seen.sites; i++) {
        if (w->slot[i] != FKT_SITE_COUNTED) continue;
        counted++;
        done += each(self, i) != 0;
    }
    pthread_mutex_unlock(&w->lock);
    return counted > 0 && done == counted;
}

static void sentence(struct fkt_text *t, const struct cli_glance *g)
{
    switch (g->stage) {
    case FKT_STAGE_GATHERING:
        fkt_text_addf(t, "waiting for sites: %u of %u are here, %u are needed", g->ready, g->sites, g->needed);
        if (g->reason[0]) fkt_text_addf(t, " (the last round failed: %s)", g->reason);
        return;
    case FKT_STAGE_RUNNING:
        fkt_text_addf(t, "round %u, %s: %u of %u sites have answered, %u lost", g->round, g->phase, g->heard,
                      g->expected, g->lost);
        if (g->overdue) fkt_text_add(t, "; its time is over, and the silent ones are waited for");
        return;
    case FKT_STAGE_FINISHING:
        if (g->comparing) fkt_text_add(t, "the task was over before this start: files are compared with the audit log");
        else fkt_text_addf(t, "the masks of %u sites come off, files are made", g->survivors);
        return;
    case FKT_STAGE_RELEASED: fkt_text_addf(t, "released: %u of %u sites are in it", g->survivors, g->sites); return;
    case FKT_STAGE_GIVEN_UP: fkt_text_addf(t, "given up: %s", g->reason); return;
    }
}

static void say_json(const struct cli_glance *g)
{
    cli_event("server",
              json_pack("{s:s s:s s:i s:i s:i s:i s:i s:i s:i s:i s:b s:s}", "stage", fkt_stage_name(g->stage), "phase",
                        g->phase, "round", (int)g->round, "sites", (int)g->sites, "ready", (int)g->ready, "needed",
                        (int)g->needed, "expected", (int)g->expected, "heard", (int)g->heard, "lost", (int)g->lost,
                        "survivors", (int)g->survivors, "overdue", g->overdue, "reason", g->reason));
}

/* What is worth a line at once; numbers within a phase wait for their second. */
static int another(const struct cli_glance *a, const struct cli_glance *b)
{
    return a->there != b->there || a->stage != b->stage || a->round != b->round || strcmp(a->phase, b->phase) != 0 ||
           a->overdue != b->overdue;
}

static int moved(const struct cli_glance *a, const struct cli_glance *b)
{
    return a->ready != b->ready || a->heard != b->heard || a->lost != b->lost || strcmp(a->reason, b->reason) != 0;
}

void cli_watch_say(struct cli_watch *w)
{
    struct cli_glance g;
    struct fkt_text t;
    const double now = fkt_now();
    cli_watch_glance(w, &g);
    if (w->quiet || !g.there) return;
    if (!another(&g, &w->said) && !(moved(&g, &w->said) && now - w->said_at >= 1)) return;
    w->said = g;
    w->said_at = now;
    if (cli_log_jsonl()) {
        say_json(&g);
        return;
    }
    fkt_text_init(&t);
    sentence(&t, &g);
    cli_say(t.s);
    fkt_text_clear(&t);
}
