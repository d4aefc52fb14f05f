/* SPDX-License-Identifier: Apache-2.0 */
/* httpd.h - the HTTPS server: libmicrohttpd does the I/O, one thread of ours calls the mailbox (docs/http.md).
 *
 *   connections --(epoll threads: read, limit, authenticate)--> queue --(mailbox thread: deliver*, settle)--> answers
 *   long polls and event streams are parked (suspended) and cost a connection each, no thread
 */
#ifndef FKT_NET_HTTPD_H
#define FKT_NET_HTTPD_H

#include "fedkt/advanced/mailbox.h"

#include "base/status.h"
#include "net/page.h"
#include "net/tls.h"

#include <stdint.h>

#define FKT_HTTPD_CONNECTIONS 4096U
struct fkt_httpd_limits {
    uint32_t connections;          /* in all; 0: FKT_HTTPD_CONNECTIONS. Fewer, where there are not enough descriptors */
    uint32_t connections_per_peer; /* 0: 0, none: behind one NAT there may be many sites */
    uint32_t idle_seconds;         /* idle limit of a connection; 0: 60 */
    uint32_t request_seconds; /* from a request's first byte to its last, and 1 for each 8 KB that have come; 0: 60 */
    uint32_t refusals_per_minute; /* of one address, before its connections are refused; 0: 120 */
    uint32_t requests_per_second; /* of one site; 0: 20 */
    uint32_t wait_seconds;        /* longest long poll; 0: 25 */
};
struct fkt_httpd_spec {
    const char *listen;  /* "127.0.0.1:8443", "[::]:8443", port 0: any free one */
    const char *address; /* the address for sites, "https://HOST:PORT"; borrowed; NULL: not known */
    const struct fkt_tls *tls;
    const struct fkt_mailbox *box;      /* borrowed; only the mailbox thread calls it */
    const uint8_t *roster;              /* (box->sites, 32) borrowed */
    const uint8_t *task;                /* (32) its hash */
    const char *task_text;              /* the signed task as JSON; borrowed */
    const struct fkt_page_facts *facts; /* for the page; borrowed */
    const char *token;                  /* the operator's; NULL: there is none */
    struct fkt_httpd_limits limits;
    /* Called by the mailbox thread a few times a second with the current view; must not block. May be NULL. */
    void (*watch)(void *watcher, const struct fkt_mailbox_view *view);
    void *watcher;
};
struct fkt_httpd;
FKT_MUST_USE fkt_status fkt_httpd_start(struct fkt_httpd **out, const struct fkt_httpd_spec *spec);
const char *fkt_httpd_address(const struct fkt_httpd *h); /* "127.0.0.1:43121" as bound */
/* 1: it listens on loopback, and sites find it there too: people on this machine need no token. When sites come by
 * another address something carries them here, and whoever knocks may be anybody. */
int fkt_httpd_local(const struct fkt_httpd *h);
/* Serves until `idle`, called a few times a second in the calling thread, answers non-zero, or until the mailbox cannot
 * go on: its status and sentence. */
FKT_MUST_USE fkt_status fkt_httpd_run(struct fkt_httpd *h, int (*idle)(void *self), void *self);
/* 1: this site has fetched the finished task's transparency.jsonl completely. From any thread. */
int fkt_httpd_fetched(const struct fkt_httpd *h, uint32_t site);
void fkt_httpd_free(struct fkt_httpd *h); /* answers parked requests, closes, joins the threads */

#endif
