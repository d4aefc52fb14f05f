/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - what a request asks for, read from its target (docs/http.md 3 and 4). */
#ifndef FKT_NET_TARGET_H
#define FKT_NET_TARGET_H

#include "fedkt/advanced/mailbox.h"

#include <stdint.h>

enum fkt_target_what {
    FKT_TARGET_NONE = 0,  /* no such path */
    FKT_TARGET_MALFORMED, /* a path of ours with a query that is not of its form */
    FKT_TARGET_MESSAGES,
    FKT_TARGET_POLL,
    FKT_TARGET_TASK,
    FKT_TARGET_FILE,
    FKT_TARGET_HEALTH,
    FKT_TARGET_PAGE,
    FKT_TARGET_EVENTS,
    FKT_TARGET_STATUS,
    FKT_TARGET_METRICS,
    FKT_TARGET_GRID,
    FKT_TARGET_DOWNLOAD, /* a file, as FILE */
    FKT_TARGET_LOGIN
};
/* How a request proves that it may be made. */
enum fkt_target_auth {
    FKT_TARGET_AUTH_OPERATOR = 0, /* from this machine, or with the operator's token or cookie */
    FKT_TARGET_AUTH_SITE,         /* a site's signature */
    FKT_TARGET_AUTH_TARGET,       /* the operator's token is in the target */
    FKT_TARGET_AUTH_NONE          /* it need not */
};
struct fkt_target {
    enum fkt_target_what what;
    int any_round; /* POLL: the site has no message */
    uint8_t round[FKT_MAILBOX_ROUND];
    uint32_t after, wait;
    const char *name;  /* FILE, DOWNLOAD: static */
    const char *token; /* LOGIN: the rest of the target, borrowed */
};
void fkt_target_read(struct fkt_target *out, const char *target);
enum fkt_target_auth fkt_target_auth(const struct fkt_target *t);
/* 1: signed by a site. */
int fkt_target_signed(const struct fkt_target *t);
/* What may be done with it: "GET", "POST", "GET, HEAD"; "GET, POST" where the query decides. */
const char *fkt_target_methods(const struct fkt_target *t);
int fkt_target_allows(const struct fkt_target *t, const char *method);

#endif
