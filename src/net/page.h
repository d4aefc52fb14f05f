/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - the status page of a server, its events, and Prometheus metrics. Read only, and nothing in it is secret. All
 * of it is text made from a view; httpd.c decides who may see it. */
#ifndef FKT_NET_PAGE_H
#define FKT_NET_PAGE_H

#include "fedkt/advanced/mailbox.h"

#include "base/text.h"

/* What does not change while a task runs. Borrowed. */
struct fkt_page_facts {
    const char *task_name, *task_sha256;
    const char *privacy; /* sentences: "epsilon 1, delta 1e-05: ..." in words for people */
    const char *noise;   /* "distributed" or "central" */
    const char *version;
    uint32_t sites;
    const char *const *names; /* (sites) or NULL */
    const uint8_t *roster;    /* (sites, 32) keys, shown as fingerprints beside the names; or NULL */
    const char *const *classes;
    uint32_t n_classes;
    int sparse;          /* 1: the round has a coin phase, which draws the graph */
    uint64_t started_ms; /* this process, since 1970 */
    int insecure;        /* 1: seeded: nothing of it is private */
};
#define FKT_PAGE_BOUNDS 16
/* What the HTTP server counts. */
struct fkt_page_counts {
    uint64_t requests, answers_2xx, answers_4xx, answers_5xx;
    uint64_t bytes_in, bytes_out;
    uint32_t connections, parked, streams;
    /* Requests answered within bound i (fkt_page_bounds_us), long waits not counted. Cumulative: a fast one counts in
     * every bin from its own to the last, which therefore equals latency_count. */
    uint64_t latency_le_us[FKT_PAGE_BOUNDS];
    uint64_t latency_sum_us, latency_count;
};
extern const uint64_t fkt_page_bounds_us[FKT_PAGE_BOUNDS]; /* ascending; the last is UINT64_MAX */

/* The whole page, one HTML file; static, NUL-terminated. It opens /events, falls back to /status.json, and when the
 * task is released shows /grid.png and links to /files/NAME (docs/http.md 4). */
const char *fkt_page_html(void);
/* The value of its Content-Security-Policy header: its own script and style by their hashes, nothing else. Static. */
const char *fkt_page_csp(void);
/* One line of JSON, the data of a server-sent event and of /status.json (docs/schema/status.json). */
void fkt_page_status(struct fkt_text *out, const struct fkt_page_facts *f, const struct fkt_mailbox_view *v,
                     const struct fkt_page_counts *c, uint64_t now_ms, int grid);
/* Prometheus text format 0.0.4. */
void fkt_page_metrics(struct fkt_text *out, const struct fkt_page_facts *f, const struct fkt_mailbox_view *v,
                      const struct fkt_page_counts *c, uint64_t now_ms);

#endif
