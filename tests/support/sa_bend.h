/* SPDX-License-Identifier: Apache-2.0 */
/* sa_bend.h - one kind of message of one site, altered on its way to the server. */
#ifndef FKT_TEST_SA_BEND_H
#define FKT_TEST_SA_BEND_H

#include "tests/support/check.h"
#include "tests/support/sa_world.h"

struct sa_bend {
    uint32_t site;
    enum fkt_sa_kind kind;
    /* Alters m, whose bytes it may replace by some of its own or of `room` (64 KiB). NULL: nothing. */
    void (*edit)(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room);
    unsigned copies; /* 1 when left at 0 */
    unsigned seen;
    const struct sa_bend *also; /* a further one, or NULL */
};

static inline void sa_bend_hook(void *self, struct sa_world *w, struct sa_message *message)
{
    struct sa_bend *b = self;
    for (; b; b = (struct sa_bend *)(uintptr_t)b->also) {
        static uint8_t room[1 << 16];
        struct fkt_sa_msg m = {0};
        if (!message->to_server || message->site != b->site || message->kind != b->kind) continue;
        b->seen++;
        message->copies = b->copies ? b->copies : 1;
        if (!b->edit) continue;
        CHECK_OK(fkt_sa_msg_decode(&m, 1, message->bytes, message->len, message->len));
        b->edit(w, message->site, &m, room);
        CHECK_OK(fkt_sa_msg_encode(&m, message->bytes, message->cap, &message->len));
        fkt_sa_msg_clear(&m);
    }
}

/* A copy of the field in `room`, to be written to; the field then points there. */
static inline uint8_t *sa_bend_own(struct fkt_sa_bytes *field, uint8_t *room)
{
    memcpy(room, field->p, field->n);
    field->p = room;
    return room;
}

#endif
