/* SPDX-License-Identifier: Apache-2.0 */
/* memory_mailbox.h - a mailbox in memory, for carriers' tests: it does what the first letter of a message tells it to.
 *
 *   'T' taken, and the whole message comes back to the site as its next letter    'F' false, and the site is lost
 *   'R' taken, and the task is over: released    'G' the same: given up    'W' taken, and there is heavy work, after
 *   which the task is released    'X' the server cannot go on    anything else: not wanted
 */
#ifndef FKT_TEST_MEMORY_MAILBOX_H
#define FKT_TEST_MEMORY_MAILBOX_H

#include "fedkt/advanced/mailbox.h"

#define BOX_MESSAGE 65536

struct box_slot {
    uint8_t *message; /* owned; the newest for this site */
    size_t len;
    uint32_t index;
    int lost, present;
};
struct memory_mailbox {
    struct box_slot *slots; /* (sites) */
    uint8_t *slot_view;     /* (sites) */
    uint32_t sites;
    enum fkt_stage stage;
    int work; /* 1: waits, 2: done, not told */
    int settled, fail_settle;
    uint64_t taken, bytes, collects, settles, ticks, refused[FKT_REFUSALS], entries;
    uint32_t last_refused; /* site */
    char folder[512];      /* of files; "": there are none */
    char path[600];
};
/* folder may be NULL. */
fkt_status memory_mailbox_init(struct memory_mailbox *b, struct fkt_mailbox *out, uint32_t sites, const char *folder);
void memory_mailbox_release(struct memory_mailbox *b);
extern const uint8_t memory_mailbox_round[FKT_MAILBOX_ROUND];

#endif
