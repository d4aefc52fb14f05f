/* SPDX-License-Identifier: Apache-2.0 */
/* serve_open.h - what a server needs before it can listen: a signed task with the right pin, a certificate, a token for
 * the operator. */
#ifndef FKT_REMOTE_SERVE_OPEN_H
#define FKT_REMOTE_SERVE_OPEN_H

#include "fedkt/serve.h"

#include "base/status.h"
#include "net/tls.h"
#include "task/task.h"

struct fkt_serving {
    struct fkt_task task;
    char *task_text; /* as in the file, or as it will be written; owned */
    struct fkt_tls tls;
    char *token, *token_path; /* owned; the token is wiped */
    int pinned;               /* 1: the pin was added to the task, which was signed again and must be written */
};
FKT_MUST_USE fkt_status fkt_serving_open(struct fkt_serving *out, const struct fkt_serve_spec *s);
/* Writes the task with its pin, when the server listens and no check is left. */
FKT_MUST_USE fkt_status fkt_serving_keep_task(const struct fkt_serving *o, const char *path);
void fkt_serving_clear(struct fkt_serving *o);

#endif
