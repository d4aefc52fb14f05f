/* SPDX-License-Identifier: Apache-2.0 */
/* load_generator.h - many HTTP clients at once, each with its own TLS connection. */
#ifndef FKT_BENCH_LOAD_GENERATOR_H
#define FKT_BENCH_LOAD_GENERATOR_H

#include "net/http_client.h"

/* One request that has ended. */
struct fkt_load_done {
    uint32_t who;
    int post;          /* 1: it carried a message; 0: a poll, which may be long on purpose */
    int code;          /* HTTP status; 0: the server could not be reached */
    double seconds;    /* from its first step to the last byte of the answer, the handshake of a new connection in */
    double handshake;  /* of them, until TLS was ready; 0: the connection was there already */
    uint64_t up, down; /* bytes of the bodies */
};
/* A client that has ended, and its result. The message is borrowed; "" with FKT_OK. */
struct fkt_load_end {
    uint32_t who;
    fkt_status st;
    const char *sentence;
};
struct fkt_load_spec {
    const char *address, *pin; /* as in post.h */
    struct fkt_http_client *const *couriers;
    uint32_t n;
    size_t answer_max;
    unsigned workers; /* threads that clients compute in, so that they do not delay other clients' bytes; 0: 1 */
    /* Both are called in the thread that runs the load generator. */
    void (*done)(void *self, const struct fkt_load_done *d);
    void (*ended)(void *self, const struct fkt_load_end *e);
    int (*heartbeat)(void *self, uint32_t left); /* some times a second; non-zero: stop (FKT_E_STOPPED); may be NULL */
    void *self;
};
/* Runs until every client has ended. A client's connection is closed when it ends. */
FKT_MUST_USE fkt_status fkt_load_run(const struct fkt_load_spec *spec);

/* `n` plain GETs one after the other, 200 each, over one connection or over new ones: the cost of an empty request.
 * It uses only address and pin of spec. */
FKT_MUST_USE fkt_status fkt_load_ping(const struct fkt_load_spec *spec, const char *target, int fresh, double *seconds,
                                      size_t n);

#endif
