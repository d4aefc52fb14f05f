/* SPDX-License-Identifier: Apache-2.0 */
/* meter.h - a count of work done, shared by threads, that drives the caller's progress hook. */
#ifndef FKT_BASE_METER_H
#define FKT_BASE_METER_H

#include "base/status.h"

#include <pthread.h>
#include <stdint.h>

struct fkt_meter {
    pthread_mutex_t lock;
    const struct fkt_progress *progress; /* may be NULL */
    const char *what;
    uint64_t done, total;
};
void fkt_meter_init(struct fkt_meter *m, const struct fkt_progress *progress, const char *what, uint64_t total);
void fkt_meter_clear(struct fkt_meter *m);
FKT_MUST_USE fkt_status fkt_meter_add(struct fkt_meter *m, uint64_t n); /* FKT_E_STOPPED when asked; NULL is fine */

#endif
