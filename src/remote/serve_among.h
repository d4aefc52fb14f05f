/* SPDX-License-Identifier: Apache-2.0 */
/* serve_among.h - fkt_serve as one of several servers in a process: those of the cohorts of a task. */
#ifndef FKT_REMOTE_SERVE_AMONG_H
#define FKT_REMOTE_SERVE_AMONG_H

#include "fedkt/serve.h"

#include "base/status.h"

/* Each server asks once, before it receives the time. expired: its task has expired, and no round of it has begun.
 * Gives 1 when that is so at all of them, 0 when it is not, and -1 when one of them has failed before it asked; waits
 * until one of these is known. */
struct fkt_serve_siblings {
    int (*all_expired)(void *self, int expired);
    void *self;
    uint32_t connections; /* that this server may have */
};
/* siblings NULL: there are none. With 0 of all_expired, an expired task is not refused: its server gives it up. */
FKT_MUST_USE fkt_status fkt_serve_among(const struct fkt_serve_spec *spec, const struct fkt_serve_siblings *siblings,
                                        struct fkt_serve_view *last);

#endif
