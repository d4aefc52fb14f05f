/* SPDX-License-Identifier: Apache-2.0 */
/* serve_watch.c - the mailbox thread copies its view, and the caller's thread reads the copy: a hook may block, and
 * the mailbox must not. It holds numbers of sites, never the classes that they have. */
#include "remote/serve_watch.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

fkt_status fkt_serve_watch_init(struct fkt_serve_watch *w, uint32_t sites)
{
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    w->seen.sites = sites;
    return fkt_alloc(&w->slot, sites);
}

void fkt_serve_watch_clear(struct fkt_serve_watch *w)
{
    if (w->slot) pthread_mutex_destroy(&w->lock);
    fkt_free(w->slot);
}

void fkt_serve_watch_look(void *watch, const struct fkt_mailbox_view *v)
{
    struct fkt_serve_watch *w = watch;
    struct fkt_serve_view *g = &w->seen;
    pthread_mutex_lock(&w->lock);
    w->there = 1;
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
    snprintf(g->release_sha256, sizeof g->release_sha256, "%s", v->release_sha256);
    memcpy(w->slot, v->slot, v->sites < g->sites ? v->sites : g->sites);
    pthread_mutex_unlock(&w->lock);
}

int fkt_serve_watch_get(struct fkt_serve_watch *w, struct fkt_serve_view *out)
{
    int there;
    pthread_mutex_lock(&w->lock);
    *out = w->seen;
    there = w->there;
    pthread_mutex_unlock(&w->lock);
    return there;
}

int fkt_serve_watch_all_counted(struct fkt_serve_watch *w, int (*each)(void *self, uint32_t site), void *self)
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
