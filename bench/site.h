/* SPDX-License-Identifier: Apache-2.0 */
/* site.h - one site of a benched federation over TLS: the real client of secagg.h behind an endpoint that keeps
 * nothing on disk, so that the server is measured and not its sites' syncs. */
#ifndef FKT_BENCH_SITE_H
#define FKT_BENCH_SITE_H

#include "fedkt/advanced/mailbox.h"
#include "fedkt/advanced/secagg.h"

#include "base/status.h"

struct cli_member {
    const struct fkt_sa_params *p;
    uint32_t index;
    uint8_t secret[FKT_SA_SECRET];
    enum fkt_sa_state gone; /* silent from this phase on; FKT_SA_STATE_BEGIN: it stays */
    /* entry j of its vector; the check of the sum uses the same function */
    int64_t (*number)(void *self, uint32_t site, uint32_t j);
    void *self;
    struct fkt_sa_client *client; /* of this round */
    struct fkt_sa_site brings;
    uint8_t round[FKT_MAILBOX_ROUND];
    uint32_t after;
    uint8_t *message; /* on its way; NULL: none */
    size_t message_len, out_max;
    enum fkt_stage stage;
    fkt_status lost; /* as the server reported */
    uint32_t taken;  /* messages that the server acknowledged */
};
/* Borrows p and self for the site's lifetime. */
void cli_member_init(struct cli_member *m, const struct fkt_sa_params *p, uint32_t index,
                     const uint8_t secret[FKT_SA_SECRET]);
void cli_member_clear(struct cli_member *m);
void cli_member_endpoint(struct cli_member *m, struct fkt_endpoint *out);

#endif
