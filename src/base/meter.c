/* SPDX-License-Identifier: Apache-2.0 */
/* meter.c - a shared count behind a lock; the hook is called by one thread at a time. */
#include "base/meter.h"

void fkt_meter_init(struct fkt_meter *m, const struct fkt_progress *progress, const char *what, uint64_t total)
{
    pthread_mutex_init(&m->lock, NULL);
    m->progress = progress;
    m->what = what;
    m->done = 0;
    m->total = total;
}

void fkt_meter_clear(struct fkt_meter *m) { pthread_mutex_destroy(&m->lock); }

fkt_status fkt_meter_add(struct fkt_meter *m, uint64_t n)
{
    int stop = 0;
    if (!m) return FKT_OK;
    pthread_mutex_lock(&m->lock);
    m->done += n;
    if (m->progress && m->progress->step) stop = m->progress->step(m->progress->self, m->what, m->done, m->total);
    pthread_mutex_unlock(&m->lock);
    return stop ? fkt_fail(FKT_E_STOPPED, "stopped while %s", m->what) : FKT_OK;
}
