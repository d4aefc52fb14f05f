/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.h - a site's conversation with the server as requests and answers, without a socket: which request comes
 * next, what an answer means, how long to wait (docs/http.md 3). http_transport.c drives one with libcurl, the load
 * generator many.
 *
 *   for (;;) { fkt_http_client_next(): REQUEST -> carry it out, fkt_http_client_answer | WAIT ms | ENDED }
 */
#ifndef FKT_NET_HTTP_CLIENT_H
#define FKT_NET_HTTP_CLIENT_H

#include "fedkt/advanced/mailbox.h"

#include "base/status.h"
#include "net/auth.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_http_client_spec {
    const uint8_t *task; /* (32) */
    uint32_t site;
    const uint8_t *secret;          /* (64) copied */
    struct fkt_endpoint *site_side; /* borrowed */
    uint32_t wait_seconds;          /* of a long poll; 0: 25 */
    uint32_t patience_seconds;      /* give up when the server cannot be reached for so long; 0: never */
    uint64_t clock;                 /* where sequence numbers begin: microseconds since 1970 */
};
enum fkt_http_client_step { FKT_HTTP_CLIENT_REQUEST = 1, FKT_HTTP_CLIENT_WAIT, FKT_HTTP_CLIENT_ENDED };
struct fkt_http_client_request {
    const char *method, *target;
    const char *headers[4]; /* "Name: value", NULL after the last */
    const uint8_t *body;
    size_t len;
    uint32_t timeout_seconds;
};
/* An answer, or code 0: the server could not be reached, for the reason `why` (in words; may be NULL), or `wrong_key`:
 * what answered has another key than the task names, and nothing was sent to it. Headers that matter, NULL when absent.
 */
struct fkt_http_client_answer {
    int code, wrong_key;
    const char *why;
    const uint8_t *body;
    size_t len;
    const char *nonce, *floor, *round, *index, *stage, *lost, *log, *retry_after; /* docs/http.md 2.3 */
};
struct fkt_http_client;
FKT_MUST_USE fkt_status fkt_http_client_new(struct fkt_http_client **out, const struct fkt_http_client_spec *spec);
void fkt_http_client_free(struct fkt_http_client *c); /* wipes */
/* *request is borrowed until the answer; *wait_ms with WAIT: jitter is in it, from `random` (any 32 bits). */
enum fkt_http_client_step fkt_http_client_next(struct fkt_http_client *c, uint64_t now_ms, uint32_t random,
                                               struct fkt_http_client_request *request, uint32_t *wait_ms);
/* FKT_OK also for answers that mean "try again"; anything else is the end. */
FKT_MUST_USE fkt_status fkt_http_client_answer(struct fkt_http_client *c, uint64_t now_ms,
                                               const struct fkt_http_client_answer *a);
/* After ENDED: FKT_OK, or the status and sentence of what ended it. */
FKT_MUST_USE fkt_status fkt_http_client_status(const struct fkt_http_client *c);
/* Requests under the site's name outside the conversation, for files: pause (1: wait so long first), get, fetched. The
 * last gives FKT_OK with *again 0: the file is there; with 1: begin with the pause again. FKT_E_STATE: it has none. */
int fkt_http_client_pause(struct fkt_http_client *c, uint64_t now_ms, uint32_t random, uint32_t *wait_ms);
void fkt_http_client_get(struct fkt_http_client *c, const char *target, struct fkt_http_client_request *request);
FKT_MUST_USE fkt_status fkt_http_client_fetched(struct fkt_http_client *c, uint64_t now_ms,
                                                const struct fkt_http_client_answer *a, int *again);
const char *
fkt_http_client_trouble(const struct fkt_http_client *c); /* why it waits, for people: "", or "cause: details" */

#endif
