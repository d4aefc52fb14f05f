/* SPDX-License-Identifier: Apache-2.0 */
/* httpd.c - the server as a whole: start, run, stop (httpd_internal.h has a diagram).
 *
 * libmicrohttpd (0.9.75) does TLS through GnuTLS and HTTP/1.1 in two threads on epoll; thousands of long polls are
 * suspended connections there. What it does not do is done here: deadlines of whole requests, limits on bodies, and the
 * order of a shutdown: the inbox is closed first, so that no further request is suspended; then the mailbox thread
 * resumes all requests; then the answers get a moment to leave; only then may the daemon be stopped (it aborts the
 * process when it still holds suspended connections). */
#include "net/httpd.h"

#include "base/alloc.h"
#include "crypto/entropy.h"
#include "net/descriptors.h"
#include "net/httpd_internal.h"

#include <string.h>
#include <unistd.h>

/* X25519 before the NIST curves: clients offer a key share for it at once, which saves a round trip. */
#define PRIORITIES                                                                                                     \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-GROUP-ALL:"               \
    "+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:%SERVER_PRECEDENCE"

enum { POOL = 2, CONNECTION_MEMORY = 16 << 10, LAST_WORDS_MS = 2000, IDLE_MS = 250, CONNECTIONS_LEAST = 16 };

static uint32_t or_else(uint32_t x, uint32_t fallback) { return x ? x : fallback; }

static void fill_limits(struct fkt_httpd *h)
{
    struct fkt_httpd_limits *l = &h->limits;
    *l = h->spec.limits;
    l->connections = or_else(l->connections, FKT_HTTPD_CONNECTIONS);
    l->idle_seconds = or_else(l->idle_seconds, 60);
    l->request_seconds = or_else(l->request_seconds, 60);
    l->refusals_per_minute = or_else(l->refusals_per_minute, 120);
    l->requests_per_second = or_else(l->requests_per_second, 20);
    l->wait_seconds = or_else(l->wait_seconds, 25);
}

/* No more connections than there are descriptors for; a few in any case. */
static void fit_connections(struct fkt_httpd_limits *l)
{
    const uint32_t share = fkt_descriptors_share(1, l->connections, NULL);
    if (share < l->connections) l->connections = share > CONNECTIONS_LEAST ? share : CONNECTIONS_LEAST;
}

static fkt_status open_check(struct fkt_httpd *h)
{
    uint8_t random[FKT_AUTH_NONCE + 32];
    struct fkt_request_check_spec g = {.roster = h->spec.roster,
                                       .sites = h->spec.box->sites,
                                       .task = h->spec.task,
                                       .nonce = random,
                                       .key = random + FKT_AUTH_NONCE,
                                       .token = h->spec.token,
                                       .local = fkt_httpd_local(h),
                                       .in_max = h->spec.box->in_max,
                                       .refusals_per_minute = h->limits.refusals_per_minute,
                                       .requests_per_second = h->limits.requests_per_second,
                                       .wait_seconds = h->limits.wait_seconds};
    struct fkt_entropy os;
    fkt_status st;
    fkt_entropy_os(&os);
    FKT_TRY(os.fill(os.self, random, sizeof random));
    FKT_TRY(fkt_request_check_new(&h->check, &g));
out:
    fkt_wipe(random, sizeof random);
    return st;
}

static fkt_status start_daemon(struct fkt_httpd *h)
{
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TLS | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, fkt_ask_handle, h, MHD_OPTION_LISTEN_SOCKET, h->listen.fd, MHD_OPTION_HTTPS_MEM_CERT,
        h->spec.tls->certificate, MHD_OPTION_HTTPS_MEM_KEY, h->spec.tls->key, MHD_OPTION_HTTPS_PRIORITIES, PRIORITIES,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)POOL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->limits.connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)h->limits.connections_per_peer, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)h->limits.idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, fkt_ask_begin, h, MHD_OPTION_NOTIFY_COMPLETED,
        fkt_ask_end, h, MHD_OPTION_NOTIFY_CONNECTION, fkt_connections_notify, h, MHD_OPTION_END);
    if (!h->daemon)
        return fkt_fail_hint(FKT_E_IO, "check the certificate and its key, and the limit of open files",
                             "the HTTPS server did not start on '%s'", h->listen.address);
    return FKT_OK;
}

fkt_status fkt_httpd_start(struct fkt_httpd **out, const struct fkt_httpd_spec *spec)
{
    struct fkt_httpd *h = NULL;
    pthread_condattr_t attr;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&h, 1));
    h->spec = *spec;
    h->listen.fd = -1;
    fill_limits(h);
    fit_connections(&h->limits);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->over, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&h->lock, NULL);
    fkt_connections_init(&h->lines, h->limits.connections);
    fkt_streams_init(&h->streams);
    FKT_TRY(fkt_inbox_init(&h->inbox, spec->box->sites));
    FKT_TRY(fkt_bodies_init(&h->bodies, spec->box));
    FKT_TRY(fkt_alloc(&h->fetched, spec->box->sites));
    FKT_TRY(fkt_alloc(&h->reading, spec->box->sites));
    FKT_TRY(fkt_listen_open(&h->listen, spec->listen));
    FKT_TRY(open_check(h));
    FKT_TRY(fkt_queue_new(&h->queue, &(struct fkt_queue_spec){spec->box, spec->task_text, spec->facts}));
    atomic_store(&h->heartbeat, fkt_clock_us() / 1000);
    if (pthread_create(&h->mailbox_thread, NULL, fkt_mailbox_thread_main, h) != 0) {
        st = fkt_fail(FKT_E_NOMEM, "cannot start a thread");
        goto out;
    }
    h->has_mailbox_thread = 1;
    FKT_TRY(start_daemon(h));
    *out = h;
    h = NULL;
out:
    fkt_httpd_free(h);
    return st;
}

const char *fkt_httpd_address(const struct fkt_httpd *h) { return h->listen.address; }

int fkt_httpd_local(const struct fkt_httpd *h)
{
    static const char scheme[] = "https://";
    const char *address = h->spec.address;
    return h->listen.local && address && strncmp(address, scheme, sizeof scheme - 1) == 0 &&
           fkt_listen_names_here(address + sizeof scheme - 1);
}

int fkt_httpd_fetched(const struct fkt_httpd *h, uint32_t site)
{
    return site < h->spec.box->sites && atomic_load(&h->fetched[site]);
}

fkt_status fkt_httpd_run(struct fkt_httpd *h, int (*idle)(void *self), void *self)
{
    struct fkt_failure how = {.status = FKT_OK};
    int stop = 0, ended = 0;
    while (!stop && !ended) {
        const uint64_t until_ms = fkt_clock_us() / 1000 + IDLE_MS;
        const struct timespec until = {(time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000};
        pthread_mutex_lock(&h->lock);
        if (!h->mailbox_thread_ended) (void)pthread_cond_timedwait(&h->over, &h->lock, &until);
        ended = h->mailbox_thread_ended;
        if (ended) how = h->failure;
        pthread_mutex_unlock(&h->lock);
        if (!ended && idle) stop = idle(self);
    }
    return fkt_failure_restore(&how);
}

/* Answers are being sent; they get at most LAST_WORDS_MS. */
static void let_go(struct fkt_httpd *h)
{
    const struct timespec moment = {0, 10000000};
    const int fd = MHD_quiesce_daemon(h->daemon);
    for (int i = 0; i < LAST_WORDS_MS / 10 && atomic_load(&h->asks); i++) nanosleep(&moment, NULL);
    MHD_stop_daemon(h->daemon);
    if (fd >= 0) close(fd);
}

void fkt_httpd_free(struct fkt_httpd *h)
{
    if (!h) return;
    if (h->has_mailbox_thread) {
        fkt_inbox_close(&h->inbox);
        pthread_join(h->mailbox_thread, NULL);
    }
    if (h->daemon) let_go(h);
    else if (h->listen.fd >= 0) close(h->listen.fd);
    fkt_queue_free(h->queue);
    fkt_request_check_free(h->check);
    fkt_inbox_clear(&h->inbox);
    fkt_bodies_clear(&h->bodies);
    fkt_streams_clear(&h->streams);
    fkt_connections_clear(&h->lines);
    fkt_free(h->fetched);
    fkt_free(h->reading);
    pthread_cond_destroy(&h->over);
    pthread_mutex_destroy(&h->lock);
    fkt_free(h);
}
