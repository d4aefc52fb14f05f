/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_connections.c - connections and their deadlines.
 *
 * libmicrohttpd closes a silent connection, but one byte now and then is not silence. So each connection has a deadline
 * here: for a request from its first line to its last byte, plus a second for every eight kilobytes of body received;
 * for an answer according to its length; between two requests idle time plus request time, because the first byte of
 * the next request is not reported to us; none while a request waits for the mailbox thread. A connection past its
 * deadline is shut down, not closed: the descriptor belongs to libmicrohttpd, which sees the end and cleans up. It
 * removes the connection from this list before it closes the descriptor, and both happen under the lock here, so
 * another connection with the same number is never shut down by mistake.
 *
 * A connection is proven by a valid signature or token, until it sends something invalid. Unproven connections
 * cannot keep others out: those of one address have at most SHARE of all connections, and their next one ends their
 * oldest; when nearly all are taken, each new one ends the oldest unproven one; and when three quarters are taken,
 * no unproven one has more than HURRY_MS. (A new connection is accepted rather than refused, because it may be a
 * site behind the same address.) A site has at most SITE_LINES connections and one message in flight, which is a
 * copy in memory until it has been read. The list is scanned for each new connection: 4,096 entries cost far less
 * than a handshake. */
#include "base/alloc.h"
#include "net/httpd_internal.h"

#include <sys/socket.h>

enum { HURRY_MS = 5000, SHARE = 4, SHARE_LEAST = 64, SPARE = 16, SITE_LINES = 8 };

void fkt_connections_init(struct fkt_connections *l, uint32_t max)
{
    pthread_mutex_init(&l->lock, NULL);
    l->max = max;
}

void fkt_connections_clear(struct fkt_connections *l) { pthread_mutex_destroy(&l->lock); }

static struct fkt_connection *line_new(struct fkt_httpd *h, struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *peer = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct fkt_connection *line = NULL;
    if (!fd || fkt_alloc(&line, 1) != FKT_OK) return NULL;
    line->fd = fd->connect_fd;
    fkt_listen_peer(line->peer, peer ? peer->client_addr : NULL);
    line->since_ms = fkt_clock_us() / 1000;
    atomic_store(&line->deadline_ms, line->since_ms + 1000 * (uint64_t)h->limits.request_seconds);
    return line;
}

/* Under the lock. */
static void cut(struct fkt_connections *l, struct fkt_connection *line)
{
    if (line->cut) return;
    (void)shutdown(line->fd, SHUT_RDWR);
    line->cut = 1;
    l->cut++;
}

/* Under the lock: makes room for a new connection. */
static void make_way(struct fkt_connections *l, const struct fkt_connection *newcomer)
{
    const uint32_t share = l->max / SHARE > SHARE_LEAST ? l->max / SHARE : SHARE_LEAST;
    struct fkt_connection *theirs = NULL, *any = NULL;
    uint32_t n = 0;
    for (struct fkt_connection *line = l->last; line != newcomer; line = line->prev) {
        if (line->cut || atomic_load(&line->proven)) continue;
        if (!any) any = line;
        if (!fkt_rate_limit_same(line->peer, newcomer->peer)) continue;
        if (!theirs) theirs = line;
        n++;
    }
    if (n >= share) cut(l, theirs);
    else if (any && l->count - l->cut > l->max - l->max / SPARE) cut(l, any);
}

void fkt_connections_prove(struct fkt_connections *l, struct fkt_connection *line, uint32_t site)
{
    struct fkt_connection *oldest = NULL;
    uint32_t n = 0;
    atomic_store(&line->proven, 1);
    if (site == FKT_MAILBOX_NOBODY || line->site == site + 1) return;
    pthread_mutex_lock(&l->lock);
    line->site = site + 1;
    for (struct fkt_connection *other = l->last; other; other = other->prev) {
        if (other->cut || other->site != line->site) continue;
        if (!oldest && other != line) oldest = other;
        n++;
    }
    if (n > SITE_LINES) cut(l, oldest);
    pthread_mutex_unlock(&l->lock);
}

size_t fkt_connections_unproven_bytes(struct fkt_connections *l, const struct fkt_connection *line)
{
    size_t sum = 0;
    pthread_mutex_lock(&l->lock);
    for (const struct fkt_connection *other = l->first; other; other = other->next) {
        const size_t n = atomic_load(&other->strange_bytes);
        if (n && fkt_rate_limit_same(other->peer, line->peer)) sum += n;
    }
    pthread_mutex_unlock(&l->lock);
    return sum;
}

void fkt_connections_message(struct fkt_connections *l, struct fkt_connection *line, struct fkt_connection **reading)
{
    pthread_mutex_lock(&l->lock);
    if (*reading && *reading != line) cut(l, *reading);
    *reading = line;
    pthread_mutex_unlock(&l->lock);
}

void fkt_connections_read(struct fkt_connections *l, const struct fkt_connection *line, struct fkt_connection **reading)
{
    pthread_mutex_lock(&l->lock);
    if (*reading == line) *reading = NULL;
    pthread_mutex_unlock(&l->lock);
}

void fkt_connections_doubt(struct fkt_connections *l, struct fkt_connection *line)
{
    atomic_store(&line->proven, 0);
    if (!line->site) return;
    pthread_mutex_lock(&l->lock);
    line->site = 0;
    pthread_mutex_unlock(&l->lock);
}

void fkt_connections_notify(void *httpd, struct MHD_Connection *c, void **context,
                            enum MHD_ConnectionNotificationCode toe)
{
    struct fkt_httpd *h = httpd;
    struct fkt_connections *l = &h->lines;
    struct fkt_connection *line = *context;
    if (toe == MHD_CONNECTION_NOTIFY_STARTED) {
        atomic_fetch_add(&h->counters.connections, 1);
        *context = line = line_new(h, c);
        if (!line) return;
        pthread_mutex_lock(&l->lock);
        line->next = l->first;
        if (line->next) line->next->prev = line;
        else l->last = line;
        l->first = line;
        l->count++;
        make_way(l, line);
        pthread_mutex_unlock(&l->lock);
        return;
    }
    atomic_fetch_sub(&h->counters.connections, 1);
    if (!line) return;
    pthread_mutex_lock(&l->lock);
    if (line->prev) line->prev->next = line->next;
    else l->first = line->next;
    if (line->next) line->next->prev = line->prev;
    else l->last = line->prev;
    l->count--;
    l->cut -= (uint32_t)line->cut;
    pthread_mutex_unlock(&l->lock);
    fkt_free(line);
    *context = NULL;
}

void fkt_connections_reap(struct fkt_connections *l, uint64_t now_ms)
{
    pthread_mutex_lock(&l->lock);
    const int crowded = l->count > l->max / 4 * 3;
    for (struct fkt_connection *line = l->first; line; line = line->next) {
        const uint64_t deadline = atomic_load(&line->deadline_ms);
        const int hurried = crowded && !atomic_load(&line->proven) && now_ms > line->since_ms + HURRY_MS;
        if (deadline && (now_ms > deadline || hurried)) {
            cut(l, line);
            atomic_store(&line->deadline_ms, 0);
        }
    }
    pthread_mutex_unlock(&l->lock);
}
