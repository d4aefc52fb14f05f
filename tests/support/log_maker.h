/* SPDX-License-Identifier: Apache-2.0 */
/* log_maker.h - the public folder of a task that nobody ran: a log whose rounds never happened, with real signatures.
 *
 * Lines are kept as JSON without number and chain until they are written, so that a test can lie in one place and chain
 * everything anew: what a server that rewrites its log would do. */
#ifndef FKT_TEST_LOG_MAKER_H
#define FKT_TEST_LOG_MAKER_H

#include "tests/support/small_federation.h"

#include <jansson.h>

struct log_maker {
    struct small_federation f;
    json_t *lines;    /* array of objects: event and its keys */
    json_t *receipt;  /* of site 1; heads and messages are filled in by write */
    uint32_t dropped; /* sites 0 .. dropped - 1 are lost before their vectors */
    char grid[32];
    uint32_t claimed; /* survivors by the release; as many as there are unless a test says otherwise */
    int seeded;       /* 1: the release says that its noise came from a seed */
    int64_t made_up;  /* unless 0: the released sum of class 0's first coordinate, whatever the sites sent */
};

/* `sites` of which `dropped` may be lost, and are. */
fkt_status log_maker_init(struct log_maker *m, uint32_t sites, uint32_t dropped, uint32_t corrupt);
void log_maker_release(struct log_maker *m);
/* transparency.jsonl, release.safetensors, certificate.json, grid.png and receipt.json of site 1 into folder, and
 * task.json beside them. */
fkt_status log_maker_write(struct log_maker *m, const char *folder);
/* The first line of that event from `from` on; its index, or SIZE_MAX. */
size_t log_maker_find(const struct log_maker *m, const char *event, size_t from);
json_t *log_maker_line(const struct log_maker *m, const char *event, size_t from);

#endif
