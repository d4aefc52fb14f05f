/* SPDX-License-Identifier: Apache-2.0 */
/* hub.h - the addresses of a model hub, and what it states about a file. */
#ifndef FKT_NET_HUB_H
#define FKT_NET_HUB_H

#include "net/fetch.h"

/* One revision of one repository. All borrowed. */
struct fkt_hub {
    const char *endpoint; /* "https://hub.example", from fkt_hub_endpoint */
    const char *repo;     /* "owner/name" */
    const char *revision; /* branch, tag or commit */
};

/* `asked` (may be NULL), else $HF_ENDPOINT, else the public hub; without a slash at the end. Gives *out. FKT_E_ARG
 * when it is not an https address. */
FKT_MUST_USE fkt_status fkt_hub_endpoint(char **out, const char *asked);

/* {endpoint}/{repo}/resolve/{revision}/{file}; gives *out. FKT_E_ARG when a part is not a name. */
FKT_MUST_USE fkt_status fkt_hub_url(char **out, const struct fkt_hub *hub, const char *file);

/* What the hub states about a file. A repository that has moved is followed as long as it stays on this hub. */
struct fkt_hub_says {
    char sha256[FKT_FETCH_HASH_HEX]; /* "": it does not say (small files) */
    uint64_t size;                   /* 0: it does not say */
    char commit[65];                 /* "": it does not say */
};
FKT_MUST_USE fkt_status fkt_hub_ask(struct fkt_hub_says *out, const struct fkt_hub *hub, const char *file,
                                    const struct fkt_fetch_how *how);

#endif
