/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h - a listening socket from "ADDR:PORT". */
#ifndef FKT_NET_LISTEN_H
#define FKT_NET_LISTEN_H

#include "base/status.h"

#include <stdint.h>
#include <sys/socket.h>

#define FKT_LISTEN_TEXT 80

struct fkt_listen {
    int fd;                        /* the caller closes it */
    int local;                     /* 1: only this machine can reach it */
    char address[FKT_LISTEN_TEXT]; /* as bound: "127.0.0.1:43121", "[::1]:8443" */
};
/* "127.0.0.1:8443", "[::]:8443" (both families), "localhost:0" (any free port), ":8443" (all addresses). */
FKT_MUST_USE fkt_status fkt_listen_open(struct fkt_listen *out, const char *where);
/* 1: "localhost", an IPv4 address of 127/8 or "[::1]", each with or without ":PORT", and nothing else. */
int fkt_listen_names_here(const char *host);
/* An address as sixteen bytes, IPv4 mapped into IPv6; zeros for anything else. */
void fkt_listen_peer(uint8_t out[16], const struct sockaddr *a);
/* 1: such an address is this machine: 127.0.0.0/8 or ::1. */
int fkt_listen_loopback(const uint8_t peer[16]);

#endif
