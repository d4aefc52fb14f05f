/* SPDX-License-Identifier: Apache-2.0 */
/* serve_watch.h - what the operator is told on stderr while a server runs: sentences, or events
 * (log.h), one for each change and not more than one a second. */
#ifndef FKT_CLI_FEDERATION_SERVE_WATCH_H
#define FKT_CLI_FEDERATION_SERVE_WATCH_H

#include "fedkt/mailbox.h"

#include <pthread.h>

/* A look at the mailbox that outlives the call. */
struct cli_glance {
    int there; /* 0: nobody has looked yet */
    int comparing, overdue;
    enum fkt_stage stage;
    char phase[32], reason[512], release[80];
    uint32_t round, sites, ready, expected, heard, lost, survivors, needed;
};
struct cli_watch {
    pthread_mutex_t lock;
    struct cli_glance seen; /* written by the server's thread */
    uint8_t *slot;          /* (sites) owned */
    struct cli_glance said; /* from here on the caller's thread */
    double said_at;
    int quiet;
};
FKT_MUST_USE fkt_status cli_watch_init(struct cli_watch *w, uint32_t sites, int quiet);
void cli_watch_clear(struct cli_watch *w);
void cli_watch_look(void *watch, const struct fkt_mailbox_view *v); /* for fkt_httpd_spec.watch */
void cli_watch_glance(struct cli_watch *w, struct cli_glance *out);
/* Says what has changed. */
void cli_watch_say(struct cli_watch *w);
/* Calls each(site) for those in the release; 1 when it answered 1 for all of them, and there are some. */
int cli_watch_all_counted(struct cli_watch *w, int (*each)(void *self, uint32_t site), void *self);

#endif
