/* SPDX-License-Identifier: Apache-2.0 */
/* load_generator.h - many couriers at once, each over a TLS connection of its own: what a load tool puts before a
 * server. */
#ifndef FKT_BENCH_LOAD_GENERATOR_H
#define FKT_BENCH_LOAD_GENERATOR_H

#include "net/http_client.h"

/* One request that has ended. */
struct fkt_load_done {
    uint32_t who;
    int post;          /* 1: it brought a message; 0: a poll, which may have been long on purpose */
    int code;          /* HTTP status; 0: the server could not be reached */
    double seconds;    /* from its first step to the last byte of the answer, the handshake of a new connection in */
    double handshake;  /* of them, until TLS was ready; 0: the connection was there already */
    uint64_t up, down; /* bytes of the bodies */
};
/* A courier that has ended, and how. The sentence is borrowed; "" with FKT_OK. */
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
    unsigned workers; /* threads that couriers think in, so that thinking delays no other's bytes; 0: 1 */
    /* Both are called in the thread that runs the swarm. */
    void (*done)(void *self, const struct fkt_load_done *d);
    void (*ended)(void *self, const struct fkt_load_end *e);
    int (*heartbeat)(void *self, uint32_t left); /* some times a second; non-zero: stop (FKT_E_STOPPED); may be NULL */
    void *self;
};
/* Until every courier has ended. The connection of one that has is closed at once. */
FKT_MUST_USE fkt_status fkt_load_run(const struct fkt_load_spec *spec);

/* `n` plain GETs one after the other, 200 each, over one connection or over fresh ones: what a request costs when
 * nothing is done. Of spec it reads address and pin. */
FKT_MUST_USE fkt_status fkt_load_ping(const struct fkt_load_spec *spec, const char *target, int fresh, double *seconds,
                                      size_t n);

#endif
