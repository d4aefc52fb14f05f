/* SPDX-License-Identifier: Apache-2.0 */
/* site.c - a site for the load generator: the whole protocol, without files.
 *
 *   message of a new round -> a new client -> recv -> send -> the bytes are kept until the server has them
 *
 * A real site (fedkt/client.h) also stores its messages and uses a ledger, which syncs a file several times in a
 * round; a thousand of those on one disk would dominate a benchmark of the server. A site that is to be lost ends in
 * its phase, and the load generator closes its connection. */
#include "bench/site.h"

#include "base/alloc.h"

#include <string.h>

static fkt_status agree(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)self;
    (void)session;
    return FKT_OK;
}

static fkt_status vector(void *self, int64_t *x, uint32_t length)
{
    const struct cli_member *m = self;
    for (uint32_t j = 0; j < length; j++) x[j] = m->number(m->self, m->index, j);
    return FKT_OK;
}

void cli_member_init(struct cli_member *m, const struct fkt_sa_params *p, uint32_t index,
                     const uint8_t secret[FKT_SA_SECRET])
{
    m->p = p;
    m->index = index;
    m->out_max = fkt_sa_to_server_max(p);
    m->brings = (struct fkt_sa_site){agree, vector, agree, m};
    memcpy(m->secret, secret, sizeof m->secret);
}

void cli_member_clear(struct cli_member *m)
{
    fkt_sa_client_free(m->client);
    fkt_free(m->message);
    m->client = NULL;
    m->message = NULL;
}

/* A site answers the server's message of a phase in that phase's state. */
static int is_gone(const struct cli_member *m)
{
    return m->gone != FKT_SA_STATE_BEGIN && m->client && fkt_sa_client_state(m->client) >= m->gone;
}

static unsigned wants(void *self)
{
    const struct cli_member *m = self;
    if (m->message) return FKT_ENDPOINT_SEND;
    if (is_gone(m) || m->stage >= FKT_STAGE_RELEASED) return FKT_ENDPOINT_ENDED;
    return m->client && fkt_sa_client_wants(m->client) & FKT_SA_SEND ? FKT_ENDPOINT_SEND : FKT_ENDPOINT_RECV;
}

static void has(void *self, uint8_t round[FKT_MAILBOX_ROUND], uint32_t *after)
{
    const struct cli_member *m = self;
    memcpy(round, m->round, FKT_MAILBOX_ROUND);
    *after = m->after;
}

static fkt_status send_message(void *self, uint8_t *out, size_t cap, size_t *len)
{
    struct cli_member *m = self;
    fkt_status st = FKT_OK;
    if (!m->message) {
        FKT_TRY(fkt_sa_client_send(m->client, out, cap, len));
        FKT_TRY(fkt_alloc(&m->message, *len));
        memcpy(m->message, out, *len);
        m->message_len = *len;
        return FKT_OK;
    }
    if (cap < m->message_len) return fkt_fail(FKT_E_ARG, "no space for a message of %zu bytes", m->message_len);
    memcpy(out, m->message, m->message_len);
    *len = m->message_len;
out:
    return st;
}

static fkt_status sent(void *self, int taken)
{
    struct cli_member *m = self;
    fkt_free(m->message);
    m->message = NULL;
    m->taken += taken != 0;
    return FKT_OK;
}

static fkt_status recv_message(void *self, const struct fkt_message *l)
{
    struct cli_member *m = self;
    fkt_status st = FKT_OK;
    m->stage = l->stage;
    if (l->lost != FKT_OK) m->lost = l->lost;
    if (!l->len) return FKT_OK;
    if (!m->client || memcmp(m->round, l->round, FKT_MAILBOX_ROUND) != 0) {
        fkt_sa_client_free(m->client);
        m->client = NULL;
        m->lost = FKT_OK;
        FKT_TRY(fkt_sa_client_new(&m->client, m->p, m->index, m->secret, &m->brings, NULL));
        memcpy(m->round, l->round, FKT_MAILBOX_ROUND);
    }
    m->after = l->index;
    FKT_TRY(fkt_sa_client_recv(m->client, l->bytes, l->len));
out:
    return fkt_fail_in(st, "site %u", m->index);
}

static fkt_status heard_head(void *self, uint64_t entry, const char *sha256)
{
    (void)self;
    (void)entry;
    (void)sha256;
    return FKT_OK;
}

void cli_member_endpoint(struct cli_member *m, struct fkt_endpoint *out)
{
    *out = (struct fkt_endpoint){.self = m,
                                 .out_max = m->out_max,
                                 .wants = wants,
                                 .has = has,
                                 .send = send_message,
                                 .sent = sent,
                                 .recv = recv_message,
                                 .heard_head = heard_head};
}
