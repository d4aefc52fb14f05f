/* SPDX-License-Identifier: Apache-2.0 */
/* serve_open.h - what `fedkt serve` needs before it can listen: a signed task with the right pin, a certificate, a
 * token for the operator. */
#ifndef FKT_CLI_FEDERATION_SERVE_OPEN_H
#define FKT_CLI_FEDERATION_SERVE_OPEN_H

#include "fedkt/task.h"

#include "net/tls.h"
#include "task/task.h"

struct cli_serve_spec {
    const char *task, *state, *listen;
    const char *certificate, *private_key, *key; /* may be NULL */
    int accept_weak;
};
struct cli_serve_open {
    struct fkt_task task;
    char *task_text; /* as it stands in the file, or will, owned */
    struct fkt_tls tls;
    char *token, *token_path; /* owned; the token is wiped on release */
    int pinned;               /* 1: the pin was put into the task, which was signed anew and is to be kept */
};
FKT_MUST_USE fkt_status cli_serve_open(struct cli_serve_open *out, const struct cli_serve_spec *s);
/* Writes the task that was pinned: when nothing can be refused any more, the server listens. */
FKT_MUST_USE fkt_status cli_serve_keep_task(const struct cli_serve_open *o, const char *path);
void cli_serve_clear(struct cli_serve_open *o);

#endif
