/* SPDX-License-Identifier: Apache-2.0 */
/* secagg.h - secure aggregation as two state machines that take and give whole messages, as docs/protocol.md specifies.
 *
 * No socket, file, clock or thread is in here: the caller moves bytes, supplies the time and owns the threads. The same
 * bytes and the same entropy give the same transcript.
 *
 *   site    for (;;) switch on fkt_sa_client_wants(): SEND -> fkt_sa_client_send, RECV -> fkt_sa_client_recv, ENDED
 *   server  fkt_sa_server_recv for what comes in, fkt_sa_server_next until it has nothing to say, fkt_sa_server_tick
 *           now and then; in FKT_SA_STATE_UNMASK take the masks off (one call, or lanes for many threads); then the
 * total
 */
#ifndef FEDKT_ADVANCED_SECAGG_H
#define FEDKT_ADVANCED_SECAGG_H

#include "fedkt/secagg.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* docs/protocol.md 1; all of it is in the task. */
struct fkt_sa_params {
    uint32_t sites;     /* N */
    uint32_t dropped;   /* D */
    uint32_t corrupt;   /* C */
    uint32_t degree;    /* k; sites - 1: complete */
    uint32_t threshold; /* t */
    uint32_t attempts;
    uint32_t bits;   /* b */
    uint32_t length; /* L */
    uint64_t bound;  /* B */
    enum fkt_sa_keystream keystream;
    uint8_t task[32];      /* SHA-256 of the canonical task */
    const uint8_t *roster; /* (sites, 32) */
};
/* To be called once, when a task is opened: looks at every key of the roster too (0.1 ms each), which client_new and
 * server_new do not. On a sparse graph it cannot see whether degree and threshold are large enough: fkt_sa_find can. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_params_check(const struct fkt_sa_params *p);
/* Smallest degree and threshold for which an honest site is surrounded with probability below 2^-security and a round
 * with `dropped` lost sites fails with probability below 2^-failure. Up to 50 sites: the complete graph.
 * FKT_E_ARG when no graph will do. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_find(uint32_t sites, uint32_t corrupt, uint32_t dropped, unsigned security,
                                            unsigned failure, uint32_t *degree, uint32_t *threshold);
FKT_API uint32_t fkt_sa_bits(uint32_t sites, uint64_t bound); /* smallest b >= 8 with sites*bound < 2^(b-1); 0: > 62 */
FKT_API size_t fkt_sa_packed(uint32_t length, uint32_t bits); /* bytes of a packed vector */
/* 0 where there are fewer than 3 sites, and so no round. */
FKT_API size_t fkt_sa_to_server_max(const struct fkt_sa_params *p); /* longest message from a site */
FKT_API size_t fkt_sa_to_site_max(const struct fkt_sa_params *p);   /* longest message to a site */

/* ---- site ---- */

/* What the site brings: the account that is asked before anything leaves, and the vector, asked for once, between
 * the two. A failure of any of them ends the round for this site with that status; the server is informed that it
 * stopped, and no more. */
struct fkt_sa_site {
    fkt_status (*reserve)(void *self, const uint8_t session[FKT_SA_SESSION]); /* before the vector is asked for */
    fkt_status (*vector)(void *self, int64_t *x, uint32_t length);            /* with its noise in */
    fkt_status (*spend)(void *self, const uint8_t session[FKT_SA_SESSION]);   /* before the first share leaves */
    void *self;
};

/* A session as the ledger wants it (ledger.h): 64 lower-case hexadecimal digits and a NUL. reserve and spend call it
 * before fkt_ledger_file_reserve and fkt_ledger_file_spend. */
FKT_API void fkt_sa_session_hex(char out[2 * FKT_SA_SESSION + 1], const uint8_t session[FKT_SA_SESSION]);

enum { FKT_SA_SEND = 1, FKT_SA_RECV = 2, FKT_SA_ENDED = 4 };

struct fkt_sa_client; /* holds secret keys */
/* Copies params (the roster too), which fkt_sa_params_check has seen, and the signing key; `site` and `entropy` are
 * borrowed for the client's life. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_client_new(struct fkt_sa_client **out, const struct fkt_sa_params *params,
                                                  uint32_t index, const uint8_t secret[FKT_SA_SECRET],
                                                  const struct fkt_sa_site *site, struct fkt_entropy *entropy);
FKT_API void fkt_sa_client_free(struct fkt_sa_client *c); /* wipes */
FKT_API unsigned fkt_sa_client_wants(const struct fkt_sa_client *c);
FKT_API enum fkt_sa_state fkt_sa_client_state(const struct fkt_sa_client *c);
/* A whole message, borrowed. Errors are sticky: after one every call answers the same status, secrets are wiped, and
 * the only thing that may still be sent is one Leave, which says what others did wrong or nothing at all. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_client_recv(struct fkt_sa_client *c, const uint8_t *msg, size_t len);
/* cap >= fkt_sa_to_server_max() always suffices; FKT_E_ARG, not sticky, when it does not. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_client_send(struct fkt_sa_client *c, uint8_t *out, size_t cap, size_t *len);

/* ---- server ---- */

struct fkt_sa_server;
/* Copies params, which fkt_sa_params_check has seen. `round` must be fresh: 16 random bytes, never the same ones again.
 * `patience_ms`: how long each phase waits, counted from its first tick; 0: no deadline, only fkt_sa_server_close ends
 * a phase. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_new(struct fkt_sa_server **out, const struct fkt_sa_params *params,
                                                  const uint8_t round[FKT_SA_ROUND], uint64_t patience_ms);
FKT_API void fkt_sa_server_free(struct fkt_sa_server *s);
FKT_API enum fkt_sa_state fkt_sa_server_state(const struct fkt_sa_server *s);
/* `from` is what the transport authenticated. The answer is about this message: FKT_OK, FKT_E_PEER_* (the site is
 * lost), FKT_E_STATE (too late, twice, or of another round: ignored); or it is what ended the round, and the state is
 * then FKT_SA_STATE_FAILED. Such failures are sticky: every call but next, which informs the sites, returns them again.
 * */
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_recv(struct fkt_sa_server *s, uint32_t from, const uint8_t *msg,
                                                   size_t len);
/* One message to one site; *len 0: nothing to say now. cap >= fkt_sa_to_site_max() always suffices. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_next(struct fkt_sa_server *s, uint32_t *to, uint8_t *out, size_t cap,
                                                   size_t *len);
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_tick(struct fkt_sa_server *s, uint64_t now_ms); /* never goes back */
FKT_API FKT_MUST_USE fkt_status
fkt_sa_server_close(struct fkt_sa_server *s); /* ends the phase now, as a deadline does */
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_lost(struct fkt_sa_server *s, uint32_t site); /* the transport gave up */

/* Taking the masks off. One call does it all; or: lanes, jobs 0..jobs-1 in any order over any lanes, each lane in one
 * thread at a time, the server only read; then finish with all lanes. Lanes are made in FKT_SA_STATE_UNMASK.
 * FKT_E_STATE, and nothing is changed, when a job is to run twice in a lane, or finish finds one that ran twice or not
 * at all. */
struct fkt_sa_lane;
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_unmask(struct fkt_sa_server *s);
FKT_API size_t fkt_sa_server_jobs(const struct fkt_sa_server *s);
FKT_API FKT_MUST_USE fkt_status fkt_sa_lane_new(struct fkt_sa_lane **out, const struct fkt_sa_server *s);
FKT_API void fkt_sa_lane_free(struct fkt_sa_lane *lane);
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_job(const struct fkt_sa_server *s, size_t job, struct fkt_sa_lane *lane);
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_finish(struct fkt_sa_server *s, struct fkt_sa_lane *const *lanes,
                                                     size_t n);
/* DONE only. Borrowed: (length) the sum over the survivors; (sites) 1 for a survivor. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_server_total(const struct fkt_sa_server *s, const int64_t **total,
                                                    const uint8_t **survivors);

/* What an operator sees: who is where. */
struct fkt_sa_census {
    uint32_t expected, heard; /* in this phase */
    uint32_t advertised, shared, masked, confirmed, revealed, left;
    uint32_t throws;
};
FKT_API void fkt_sa_server_census(const struct fkt_sa_server *s, struct fkt_sa_census *out);
/* 0: fine so far; else the status a site left or was lost with, FKT_E_STOPPED when it was silent. */
FKT_API fkt_status fkt_sa_server_site(const struct fkt_sa_server *s, uint32_t site);

#ifdef __cplusplus
}
#endif
#endif
