/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the server's side of one task over all its rounds, as a mailbox (advanced/mailbox.h), on a journal file.
 *
 *   gather sites -> round -> (too few: another round) -> masks off -> release -> files
 *
 * Everything that is accepted is in the journal (SQLite, synchronous) before `settle` answers; the state is the replay
 * of the journal. The release is written into it once and is the same however often the process dies. No socket and no
 * clock in here: a carrier brings messages and the time, and calls `tick` before it delivers anything.
 */
#ifndef FEDKT_SERVER_H
#define FEDKT_SERVER_H

#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "fedkt/status.h"
#include "fedkt/task.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_server_spec {
    const struct fkt_task *task;        /* signed, with a service; copied */
    const char *folder;                 /* state: 0700, made when it is not there; one process at a time holds it */
    const char *out;                    /* the public folder, of this state alone; NULL: "public" in `folder` */
    const char *calibration;            /* as for fkt_pipeline_open */
    const char *guide_calibration;      /* of the task's guide; NULL: its own */
    struct fkt_codec_settings settings; /* where the codec's weights are; borrowed */
    size_t per_class;                   /* synthetic images per class; 0: as at the first opening, and then 100 */
    enum fkt_export_format format;
    unsigned threads;                    /* of the heavy work; 0: all */
    const struct fkt_progress *progress; /* may be NULL */
};

struct fkt_server;
struct fkt_mailbox; /* advanced/mailbox.h */
/* Opens codec and calibration (what could fail in the end fails now), takes the state's lock (FKT_E_STATE: somebody has
 * it), makes or replays the journal. FKT_E_MISMATCH: the folder belongs to another task, or was opened first with
 * another per_class or format. FKT_E_EXISTS: the public folder is another's, or holds what this state has not made. */
FKT_API FKT_MUST_USE fkt_status fkt_server_open(struct fkt_server **out, const struct fkt_server_spec *spec);
FKT_API void fkt_server_close(struct fkt_server *h);
FKT_API void fkt_server_mailbox(struct fkt_server *h, struct fkt_mailbox *out); /* borrows h */

#ifdef __cplusplus
}
#endif
#endif
