/* SPDX-License-Identifier: Apache-2.0 */
/* http_transport.h - libcurl for one HTTP client: TLS 1.3, the server known by its pin alone, retries with jitter. */
#ifndef FKT_NET_HTTP_TRANSPORT_H
#define FKT_NET_HTTP_TRANSPORT_H

#include "net/http_client.h"

struct fkt_http_transport_spec {
    const char *address; /* "https://host:port" */
    const char *pin;     /* "sha256//..." */
    struct fkt_http_client *http;
    size_t answer_max; /* in bytes */
    /* Called now and then, also while waiting; non-zero: stop (FKT_E_STOPPED). `trouble` "": there is none. */
    int (*heartbeat)(void *self, const char *trouble);
    void *self;
    uint32_t
        patience_seconds; /* of fkt_http_transport_fetch: give up when nothing has come for so long; 0: see `expires` */
    uint64_t expires;     /* of the task, in seconds; 0: never. Without patience fkt_http_transport_fetch ends then */
};
FKT_MUST_USE fkt_status fkt_http_transport_run(const struct fkt_http_transport_spec *spec);
/* A public file of the finished task to `path`, authenticated like the rest: GET /v1/files/NAME. */
FKT_MUST_USE fkt_status fkt_http_transport_fetch(const struct fkt_http_transport_spec *spec, const char *name,
                                                 const char *path, uint64_t max, int force);

#endif
