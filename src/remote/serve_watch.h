/* SPDX-License-Identifier: Apache-2.0 */
/* serve_watch.h - the view of a running server, copied from the mailbox thread to the caller's. */
#ifndef FKT_REMOTE_SERVE_WATCH_H
#define FKT_REMOTE_SERVE_WATCH_H

#include "fedkt/advanced/mailbox.h"
#include "fedkt/serve.h"

#include "base/status.h"

#include <pthread.h>

struct fkt_serve_watch {
    pthread_mutex_t lock;
    struct fkt_serve_view seen;
    int there;     /* 0: not read yet */
    uint8_t *slot; /* (sites) owned; NULL: not initialised */
};
FKT_MUST_USE fkt_status fkt_serve_watch_init(struct fkt_serve_watch *w, uint32_t sites);
void fkt_serve_watch_clear(struct fkt_serve_watch *w);
void fkt_serve_watch_look(void *watch, const struct fkt_mailbox_view *v);       /* for fkt_httpd_spec.watch */
int fkt_serve_watch_get(struct fkt_serve_watch *w, struct fkt_serve_view *out); /* 0: there is none yet */
/* Calls each(site) for those in the release; 1 when it returned 1 for all of them, and there is at least one. */
int fkt_serve_watch_all_counted(struct fkt_serve_watch *w, int (*each)(void *self, uint32_t site), void *self);

#endif
