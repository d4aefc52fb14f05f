/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_bodies.c - memory for request bodies, which must be read before their signatures can be checked.
 *
 * Anybody who knows the task can begin a message under any site's name and never end it. So the memory for bodies
 * depends on the peer's standing (request_check.h): STEP for all unknown peers together, twice that when the site's
 * last signature came from the same address, and three times for connections that have brought a valid signature. So
 * each standing always has a STEP that lower ones cannot take. Within its standing a site has memory for two messages:
 * it sends one at a time, and one may be left from a connection that has died. Unknown peers of one address have
 * ADDRESS. A site that finds no memory polls, which needs no body, and retries on the same connection.
 *
 * Bytes count when they have arrived, not when they are announced, and until their answer has left. */
#include "base/alloc.h"
#include "net/httpd_internal.h"

enum { STEP = 32 << 20, ADDRESS = 8 << 20 };

fkt_status fkt_bodies_init(struct fkt_bodies *b, const struct fkt_mailbox *box)
{
    const size_t two = 2 * box->in_max;
    pthread_mutex_init(&b->lock, NULL);
    b->per_site = two;
    b->per_address = two > ADDRESS ? two : ADDRESS;
    b->step = two > STEP ? two : STEP;
    return fkt_alloc(&b->site, (size_t)box->sites * FKT_PEER_STANDINGS);
}

void fkt_bodies_clear(struct fkt_bodies *b)
{
    fkt_free(b->site);
    pthread_mutex_destroy(&b->lock);
}

static size_t *of_site(struct fkt_bodies *b, const struct fkt_ask *a)
{
    return &b->site[(size_t)a->verdict.site * FKT_PEER_STANDINGS + a->verdict.standing];
}

/* Under the lock. */
static int has_room(struct fkt_bodies *b, struct fkt_ask *a, size_t n)
{
    const enum fkt_peer_standing standing = a->verdict.standing;
    if (b->all + n > b->step * (1 + (size_t)standing) || *of_site(b, a) + n > b->per_site) return 0;
    return standing != FKT_PEER_UNKNOWN || fkt_connections_unproven_bytes(&a->h->lines, a->line) + n <= b->per_address;
}

int fkt_bodies_room(struct fkt_bodies *b, struct fkt_ask *a, size_t n)
{
    int room;
    pthread_mutex_lock(&b->lock);
    room = has_room(b, a, n);
    pthread_mutex_unlock(&b->lock);
    return room;
}

int fkt_bodies_take(struct fkt_bodies *b, struct fkt_ask *a, size_t n)
{
    int room;
    pthread_mutex_lock(&b->lock);
    room = has_room(b, a, n);
    if (room) {
        b->all += n;
        *of_site(b, a) += n;
        if (a->verdict.standing == FKT_PEER_UNKNOWN) atomic_fetch_add(&a->line->strange_bytes, n);
    }
    pthread_mutex_unlock(&b->lock);
    return room;
}

void fkt_bodies_give(struct fkt_bodies *b, struct fkt_ask *a, size_t n)
{
    if (!n) return;
    pthread_mutex_lock(&b->lock);
    b->all -= n;
    *of_site(b, a) -= n;
    if (a->verdict.standing == FKT_PEER_UNKNOWN) atomic_fetch_sub(&a->line->strange_bytes, n);
    pthread_mutex_unlock(&b->lock);
}
