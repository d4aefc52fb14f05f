/* SPDX-License-Identifier: Apache-2.0 */
/* load_generator.c - thousands of HTTP clients over one libcurl, for measuring a server.
 *
 *   network thread   epoll -> libcurl -> an answer is complete --> queue --> a worker: the client reads it, computes
 *                    <------------- next request, or how long to wait, or the end <------------ what comes next
 *
 * A site computes for some milliseconds in every phase of a round. In the network loop that would delay every other
 * site's answer and distort the server's figures; so clients compute in separate threads with the lowest priority, and
 * the loop only moves bytes. Each client has its own connection cache of one connection (a share handle of libcurl),
 * and when a client ends its connection is closed, as when a process dies.
 *
 * Cost: one epoll set; some kilobytes and one socket for each client. */
#include "bench/load_generator.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/pinned_curl.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, EVENTS = 256, BEAT_MS = 200, REST_MS = 10, LOWEST = 19, PING_SECONDS = 30, NOBODY = -1 };

struct member {
    struct fkt_http_client *http;
    CURL *easy;
    CURLSH *pool;
    struct curl_slist *headers;
    uint8_t *body; /* of the answer */
    size_t len, cap, max;
    int has_answer;
    struct fkt_http_client_answer answer;
    /* what a worker found */
    enum fkt_http_client_step step;
    struct fkt_http_client_request request;
    uint32_t wait_ms;
    double until; /* resting; 0: not */
    fkt_status st;
    char sentence[256], detail[CURL_ERROR_SIZE];
    int next; /* next in its queue */
};

struct queue {
    int first, last;
};

struct load {
    const struct fkt_load_spec *spec;
    struct member *member;
    CURLM *multi;
    int epoll, bell;
    double timer; /* when libcurl wants to be called; HUGE_VAL: not */
    uint32_t left, resting;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct queue to_think, thought; /* under the lock, and stop */
    int stop;
    pthread_t worker[WORKERS_MAX];
    unsigned workers;
};

/* ---- workers ---- */

static void push(struct load *c, struct queue *q, uint32_t who)
{
    c->member[who].next = NOBODY;
    if (q->first == NOBODY) q->first = (int)who;
    else c->member[q->last].next = (int)who;
    q->last = (int)who;
}

static int pop(struct load *c, struct queue *q)
{
    int who = q->first;
    if (who != NOBODY) q->first = c->member[who].next;
    return who;
}

static uint32_t scramble(uint32_t who)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint32_t)((who + 1) * 2654435761U ^ (uint32_t)t.tv_nsec * 40503U);
}

static void think(struct load *c, uint32_t who)
{
    struct member *m = &c->member[who];
    const uint64_t now = (uint64_t)(1e3 * fkt_now());
    m->st = FKT_OK;
    m->step = FKT_HTTP_CLIENT_ENDED;
    if (m->has_answer) m->st = fkt_http_client_answer(m->http, now, &m->answer);
    if (m->st == FKT_OK) m->step = fkt_http_client_next(m->http, now, scramble(who), &m->request, &m->wait_ms);
    if (m->st == FKT_OK && m->step == FKT_HTTP_CLIENT_ENDED) m->st = fkt_http_client_status(m->http);
    if (m->st != FKT_OK) snprintf(m->sentence, sizeof m->sentence, "%s", fkt_error_text());
    m->has_answer = 0;
}

static void *worker(void *self)
{
    static const uint64_t one = 1;
    struct load *c = self;
    (void)setpriority(PRIO_PROCESS, 0, LOWEST); /* of this thread only: real sites have their own machines */
    for (;;) {
        int who = NOBODY;
        pthread_mutex_lock(&c->lock);
        while (!c->stop && (who = pop(c, &c->to_think)) == NOBODY) pthread_cond_wait(&c->work, &c->lock);
        pthread_mutex_unlock(&c->lock);
        if (who == NOBODY) return NULL;
        think(c, (uint32_t)who);
        pthread_mutex_lock(&c->lock);
        push(c, &c->thought, (uint32_t)who);
        pthread_mutex_unlock(&c->lock);
        while (write(c->bell, &one, sizeof one) < 0 && errno == EINTR) continue;
    }
}

static void let_think(struct load *c, uint32_t who)
{
    pthread_mutex_lock(&c->lock);
    push(c, &c->to_think, who);
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
}

/* ---- libcurl's side ---- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *known)
{
    struct load *c = self;
    struct epoll_event e = {.data.fd = fd};
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(c->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    e.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (epoll_ctl(c->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e) != 0 && errno == EEXIST)
        epoll_ctl(c->epoll, EPOLL_CTL_MOD, fd, &e);
    curl_multi_assign(c->multi, fd, c);
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *self)
{
    struct load *c = self;
    (void)multi;
    c->timer = ms < 0 ? HUGE_VAL : fkt_now() + 1e-3 * (double)ms;
    return 0;
}

static size_t on_body(char *data, size_t one, size_t n, void *self)
{
    struct member *m = self;
    const size_t len = one * n;
    if (len > m->max - m->len) return 0;
    if (m->len + len > m->cap) {
        size_t cap = m->cap ? m->cap : 4096;
        while (cap < m->len + len) cap *= 2;
        if (fkt_realloc(&m->body, cap) != FKT_OK) return 0;
        m->cap = cap;
    }
    memcpy(m->body + m->len, data, len);
    m->len += len;
    return len;
}

static fkt_status sit_down(struct load *c, uint32_t who)
{
    struct member *m = &c->member[who];
    fkt_status st;
    m->http = c->spec->couriers[who];
    m->max = c->spec->answer_max;
    m->pool = curl_share_init();
    FKT_TRY(fkt_pinned_new(&m->easy, c->spec->address, c->spec->pin, m->detail));
    if (!m->pool || curl_share_setopt(m->pool, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) ||
        curl_easy_setopt(m->easy, CURLOPT_SHARE, m->pool) || curl_easy_setopt(m->easy, CURLOPT_PROXY, "") ||
        curl_easy_setopt(m->easy, CURLOPT_WRITEFUNCTION, on_body) || curl_easy_setopt(m->easy, CURLOPT_WRITEDATA, m) ||
        curl_easy_setopt(m->easy, CURLOPT_PRIVATE, m))
        st = fkt_fail(FKT_E_NOMEM, "libcurl does not take its options");
out:
    return st;
}

static void stand_up(struct load *c, uint32_t who)
{
    struct member *m = &c->member[who];
    if (m->easy) {
        curl_multi_remove_handle(c->multi, m->easy);
        curl_easy_cleanup(m->easy);
    }
    if (m->pool) curl_share_cleanup(m->pool); /* closes the connection */
    curl_slist_free_all(m->headers);
    fkt_free(m->body);
    m->easy = NULL;
    m->pool = NULL;
    m->headers = NULL;
    m->body = NULL;
}

static fkt_status send_off(struct load *c, uint32_t who)
{
    struct member *m = &c->member[who];
    fkt_status st;
    curl_slist_free_all(m->headers);
    m->headers = NULL;
    m->len = 0;
    FKT_TRY(fkt_pinned_set(m->easy, c->spec->address, &m->request, (long)m->request.timeout_seconds, &m->headers));
    if (curl_multi_add_handle(c->multi, m->easy)) st = fkt_fail(FKT_E_NOMEM, "libcurl takes no request");
out:
    return st;
}

static void take_answer(struct load *c, struct member *m, CURLcode result)
{
    struct fkt_load_done d = {.who = (uint32_t)(m - c->member), .post = !strcmp(m->request.method, "POST")};
    curl_easy_getinfo(m->easy, CURLINFO_TOTAL_TIME, &d.seconds);
    curl_easy_getinfo(m->easy, CURLINFO_APPCONNECT_TIME, &d.handshake);
    if (result == CURLE_OK) {
        fkt_pinned_answer(m->easy, &m->answer);
        m->answer.body = m->body;
        m->answer.len = m->len;
    } else {
        m->answer = (struct fkt_http_client_answer){.why = m->detail[0] ? m->detail : curl_easy_strerror(result)};
    }
    d.code = m->answer.code;
    d.up = m->request.len;
    d.down = m->len;
    c->spec->done(c->spec->self, &d);
    m->has_answer = 1;
    let_think(c, d.who);
}

/* ---- the loop ---- */

static void take_answers(struct load *c)
{
    CURLMsg *msg;
    int more;
    while ((msg = curl_multi_info_read(c->multi, &more))) {
        CURL *easy = msg->easy_handle;
        CURLcode result = msg->data.result;
        char *m = NULL;
        if (msg->msg != CURLMSG_DONE) continue;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &m);
        curl_multi_remove_handle(c->multi, easy);
        take_answer(c, (struct member *)(void *)m, result);
    }
}

static fkt_status follow(struct load *c, uint32_t who)
{
    struct member *m = &c->member[who];
    if (m->st == FKT_OK && m->step == FKT_HTTP_CLIENT_REQUEST) return send_off(c, who);
    if (m->st == FKT_OK && m->step == FKT_HTTP_CLIENT_WAIT) {
        m->until = fkt_now() + 1e-3 * m->wait_ms;
        c->resting++;
        return FKT_OK;
    }
    c->spec->ended(c->spec->self, &(struct fkt_load_end){who, m->st, m->sentence});
    stand_up(c, who);
    c->left--;
    return FKT_OK;
}

static fkt_status follow_all(struct load *c)
{
    fkt_status st = FKT_OK;
    for (;;) {
        int who;
        pthread_mutex_lock(&c->lock);
        who = pop(c, &c->thought);
        pthread_mutex_unlock(&c->lock);
        if (who == NOBODY) return st;
        FKT_TRY(follow(c, (uint32_t)who));
    }
out:
    return st;
}

static void wake(struct load *c)
{
    const double now = fkt_now();
    if (!c->resting) return;
    for (uint32_t i = 0; i < c->spec->n; i++)
        if (c->member[i].until > 0 && c->member[i].until <= now) {
            c->member[i].until = 0;
            c->resting--;
            let_think(c, i);
        }
}

static void turn(struct load *c)
{
    struct epoll_event events[EVENTS];
    double ms = 1e3 * (c->timer - fkt_now());
    uint64_t rung;
    int running, n, cap = c->resting ? REST_MS : BEAT_MS;
    if (!(ms < cap)) ms = cap;
    n = epoll_wait(c->epoll, events, EVENTS, ms <= 0 ? 0 : (int)ceil(ms));
    for (int i = 0; i < n; i++) {
        const uint32_t e = events[i].events;
        const int what = (e & EPOLLIN ? CURL_CSELECT_IN : 0) | (e & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                         (e & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        if (events[i].data.fd == c->bell) {
            if (read(c->bell, &rung, sizeof rung) < 0) continue;
        } else curl_multi_socket_action(c->multi, events[i].data.fd, what, &running);
    }
    if (c->timer <= fkt_now()) {
        c->timer = HUGE_VAL;
        curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static fkt_status open_load(struct load *c)
{
    struct epoll_event bell = {.events = EPOLLIN};
    unsigned workers = c->spec->workers ? c->spec->workers : 1;
    fkt_status st;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->multi = curl_multi_init();
    bell.data.fd = c->bell;
    if (c->epoll < 0 || c->bell < 0 || !c->multi || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->bell, &bell) != 0 ||
        curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket) ||
        curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) ||
        curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer) ||
        curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c))
        return fkt_fail(FKT_E_IO, "cannot start the load generator: %s", strerror(errno));
    FKT_TRY(fkt_alloc(&c->member, c->spec->n));
    for (uint32_t i = 0; i < c->spec->n; i++) {
        FKT_TRY(sit_down(c, i));
        push(c, &c->to_think, i);
    }
    for (; c->workers < workers && c->workers < WORKERS_MAX; c->workers++)
        if (pthread_create(&c->worker[c->workers], NULL, worker, c) != 0) {
            st = fkt_fail(FKT_E_IO, "cannot start a thread: %s", strerror(errno));
            goto out;
        }
out:
    return st;
}

static void close_load(struct load *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = 1;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->workers; i++) pthread_join(c->worker[i], NULL);
    for (uint32_t i = 0; c->member && i < c->spec->n; i++) stand_up(c, i);
    if (c->multi) curl_multi_cleanup(c->multi);
    if (c->epoll >= 0) close(c->epoll);
    if (c->bell >= 0) close(c->bell);
    fkt_free(c->member);
    pthread_cond_destroy(&c->work);
    pthread_mutex_destroy(&c->lock);
}

fkt_status fkt_load_run(const struct fkt_load_spec *spec)
{
    struct load c = {.spec = spec,
                     .epoll = -1,
                     .bell = -1,
                     .timer = HUGE_VAL,
                     .left = spec->n,
                     .to_think = {NOBODY, NOBODY},
                     .thought = {NOBODY, NOBODY}};
    sigset_t pipe, old;
    double beat = fkt_now();
    fkt_status st;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); /* a TLS library may raise it when the peer is gone; the workers inherit this */
    pthread_sigmask(SIG_BLOCK, &pipe, &old);
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.work, NULL);
    FKT_TRY(open_load(&c));
    while (c.left) {
        turn(&c);
        take_answers(&c);
        FKT_TRY(follow_all(&c));
        wake(&c);
        if (spec->heartbeat && fkt_now() - beat > 1e-3 * BEAT_MS) {
            beat = fkt_now();
            if (spec->heartbeat(spec->self, c.left)) {
                st = fkt_fail(FKT_E_STOPPED, "stopped the swarm");
                goto out;
            }
        }
    }
out:
    close_load(&c);
    while (sigtimedwait(&pipe, NULL, &(struct timespec){0, 0}) == SIGPIPE) continue;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return st;
}

fkt_status fkt_load_ping(const struct fkt_load_spec *spec, const char *target, int fresh, double *seconds, size_t n)
{
    const struct fkt_http_client_request get = {.method = "GET", .target = target};
    struct member m = {.max = 65536};
    fkt_status st;
    FKT_TRY(fkt_pinned_new(&m.easy, spec->address, spec->pin, m.detail));
    FKT_TRY(fkt_pinned_set(m.easy, spec->address, &get, PING_SECONDS, &m.headers));
    if (curl_easy_setopt(m.easy, CURLOPT_PROXY, "") || curl_easy_setopt(m.easy, CURLOPT_WRITEFUNCTION, on_body) ||
        curl_easy_setopt(m.easy, CURLOPT_WRITEDATA, &m) ||
        curl_easy_setopt(m.easy, CURLOPT_FRESH_CONNECT, (long)fresh) ||
        curl_easy_setopt(m.easy, CURLOPT_FORBID_REUSE, (long)fresh)) {
        st = fkt_fail(FKT_E_NOMEM, "libcurl does not take its options");
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        long code = 0;
        CURLcode result;
        m.len = 0;
        result = fkt_request_run(m.easy);
        curl_easy_getinfo(m.easy, CURLINFO_RESPONSE_CODE, &code);
        if (result != CURLE_OK || code != 200) {
            st = fkt_fail(FKT_E_IO, "the server does not answer '%s': %s", target, m.detail);
            goto out;
        }
        curl_easy_getinfo(m.easy, CURLINFO_TOTAL_TIME, &seconds[i]);
    }
out:
    curl_easy_cleanup(m.easy);
    curl_slist_free_all(m.headers);
    fkt_free(m.body);
    return st;
}
