/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.h - one file over HTTPS: complete and checked, or absent. */
#ifndef FKT_NET_FETCH_H
#define FKT_NET_FETCH_H

#include "base/status.h"

#include <stdint.h>

#define FKT_FETCH_HASH_HEX 65 /* SHA-256 with the NUL */

/* How to reach a server. */
struct fkt_fetch_how {
    const char *cacert;                  /* certificates to trust besides the system's, PEM; NULL: none */
    unsigned stall_seconds;              /* give up when nothing arrives for so long; 0: 30 */
    const struct fkt_progress *progress; /* bytes; may be NULL */
};

struct fkt_fetch_spec {
    const char *url;    /* https only, redirects too */
    const char *path;   /* final name; "<path>.part" and "<path>.part.tag" carry an unfinished download */
    const char *what;   /* for progress: "fetching x" */
    const char *sha256; /* what it must be; NULL: not known, and then nothing is resumed */
    uint64_t size;      /* what it must be; 0: not known */
    uint64_t max;       /* not a byte more */
    struct fkt_fetch_how how;
};
struct fkt_fetched {
    uint64_t size;
    uint64_t transferred; /* of them in this call: the rest was present */
    char sha256[FKT_FETCH_HASH_HEX];
};
/* Fetches and puts the file under its final name, replacing what is there. FKT_E_MISMATCH: wrong hash or size;
 * FKT_E_STOPPED: progress asked for it; FKT_E_IO: the rest. After a failure the unfinished part stays for the next
 * call, unless it cannot be used. One call per path at a time: the caller holds a lock. */
FKT_MUST_USE fkt_status fkt_fetch(const struct fkt_fetch_spec *spec, struct fkt_fetched *out);

/* What a server states about a file before it is fetched; "" and 0 where it states nothing. */
struct fkt_fetch_head {
    long code;                              /* 200, or a redirect, which is not followed */
    char location[2048];                    /* of a redirect, absolute */
    char linked_sha256[FKT_FETCH_HASH_HEX]; /* X-Linked-ETag, where it is a SHA-256 */
    uint64_t linked_size;                   /* X-Linked-Size */
    uint64_t length;                        /* Content-Length of a 200 */
    char commit[65];                        /* X-Repo-Commit */
};
FKT_MUST_USE fkt_status fkt_fetch_head(struct fkt_fetch_head *out, const char *url, const struct fkt_fetch_how *how);

#endif
