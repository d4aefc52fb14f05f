/* SPDX-License-Identifier: Apache-2.0 */
/* http_transport.c - sends the requests of one HTTP client with libcurl, one after the other over one connection.
 *
 *   http_client: REQUEST --> libcurl, TLS 1.3, pinned key --> answer --> http_client       WAIT: sleep in small steps
 *
 * TLS and pinning: pinned_curl.c. Answers have at most `answer_max` bytes, and each request has the time limit that the
 * client sets. A proxy from the environment (https_proxy) is used, because many hospitals require one: it forwards the
 * TLS connection and can neither read nor change it.
 *
 * A failed request is repeated by the HTTP client, and so is one to another key (nothing was sent); only a libcurl
 * without pinning, and lack of memory, are final here. The heartbeat is called several times a second while waiting
 * and about once a second while libcurl works. */
#include "net/http_transport.h"

#include "net/pinned_curl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "crypto/entropy.h"

#include <string.h>
#include <time.h>

enum { NAP_MS = 200, FETCH_SECONDS = 600, ERROR_BYTES = 65536 };

struct line { /* one libcurl handle, and the answer under way */
    const struct fkt_http_transport_spec *spec;
    CURL *curl;
    char detail[CURL_ERROR_SIZE];
    uint8_t *body;
    size_t len, cap, max;
    FILE *file; /* not NULL: the body of a 200 goes there */
    int long_answer, stopped, disk_full;
    double until; /* gives up then; 0: never */
    int late;
};

static uint64_t now_ms(void) { return (uint64_t)(fkt_now() * 1000); }

static int beats(struct line *l)
{
    const struct fkt_http_transport_spec *s = l->spec;
    if (s->heartbeat && s->heartbeat(s->self, fkt_http_client_trouble(s->http)) != 0) l->stopped = 1;
    if (l->until > 0 && fkt_now() > l->until) l->late = 1;
    return !l->stopped && !l->late;
}

static fkt_status why_not(const struct line *l)
{
    if (l->stopped) return fkt_fail(FKT_E_STOPPED, "stopped");
    return fkt_fail_hint(FKT_E_IO, "see whether the server runs, and join again: nothing is sent twice",
                         "given up after %u seconds: %s", l->spec->patience_seconds,
                         l->detail[0] ? l->detail : "the server sends nothing");
}

static int on_progress(void *self, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return beats(self) ? 0 : 1;
}

static long code_of(const struct line *l)
{
    long code = 0;
    curl_easy_getinfo(l->curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

static size_t on_bytes(char *data, size_t one, size_t n, void *self)
{
    struct line *l = self;
    const int to_file = l->file && code_of(l) == 200;
    const size_t max = l->file && !to_file ? ERROR_BYTES : l->max;
    n *= one;
    if (l->len > max || n > max - l->len) {
        l->long_answer = 1;
        return 0;
    }
    if (to_file) {
        l->disk_full = fwrite(data, 1, n, l->file) != n;
        if (l->disk_full) return 0;
        if (l->until > 0) l->until = fkt_now() + l->spec->patience_seconds;
    } else {
        if (l->len + n > l->cap) {
            size_t cap = l->cap ? l->cap : 4096;
            while (cap < l->len + n) cap *= 2;
            if (fkt_realloc(&l->body, cap) != FKT_OK) return 0;
            l->cap = cap;
        }
        memcpy(l->body + l->len, data, n);
    }
    l->len += n;
    return n;
}

/* ---- a handle ---- */

static fkt_status open_line(struct line *l, const struct fkt_http_transport_spec *spec)
{
    CURL *c;
    fkt_status st;
    *l = (struct line){.spec = spec, .max = spec->answer_max};
    FKT_TRY(fkt_pinned_new(&l->curl, spec->address, spec->pin, l->detail));
    c = l->curl;
    if (curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes) || curl_easy_setopt(c, CURLOPT_WRITEDATA, l) ||
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress) || curl_easy_setopt(c, CURLOPT_XFERINFODATA, l) ||
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L))
        st = fkt_fail(FKT_E_NOMEM, "libcurl does not take its options");
out:
    return st;
}

static void close_line(struct line *l)
{
    if (l->curl) curl_easy_cleanup(l->curl);
    fkt_free(l->body);
}

/* ---- one request ---- */

static void read_answer(struct line *l, struct fkt_http_client_answer *a)
{
    fkt_pinned_answer(l->curl, a);
    a->body = l->body;
    a->len = l->file && a->code == 200 ? 0 : l->len;
}

/* Failures that a retry would not mend; all others are an answer of code 0. */
static fkt_status evaluate(struct line *l, CURLcode code, struct fkt_http_client_answer *a)
{
    if (l->stopped || l->late) return why_not(l);
    if (l->disk_full) return fkt_fail(FKT_E_IO, "the disk is full");
    if (code == CURLE_OUT_OF_MEMORY) return fkt_fail(FKT_E_NOMEM, "out of memory while talking to the server");
    *a = (struct fkt_http_client_answer){.wrong_key = code == CURLE_SSL_PINNEDPUBKEYNOTMATCH,
                                         .why = l->long_answer ? "its answer is too long"
                                                : l->detail[0] ? l->detail
                                                               : curl_easy_strerror(code)};
    return FKT_OK;
}

static fkt_status carry(struct line *l, const struct fkt_http_client_request *r, long seconds,
                        struct fkt_http_client_answer *a)
{
    struct curl_slist *headers = NULL;
    CURLcode code;
    fkt_status st = FKT_OK;
    l->len = 0;
    l->long_answer = 0;
    l->detail[0] = '\0';
    FKT_TRY(fkt_pinned_set(l->curl, l->spec->address, r, seconds, &headers));
    code = fkt_request_run(l->curl);
    if (code != CURLE_OK) st = evaluate(l, code, a);
    else read_answer(l, a);
out:
    curl_easy_setopt(l->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return st;
}

static fkt_status nap(struct line *l, uint32_t ms)
{
    const double until = fkt_now() + ms / 1000.0;
    for (;;) {
        double left = until - fkt_now();
        long piece = left > NAP_MS / 1000.0 ? NAP_MS : (long)(left * 1000) + 1;
        struct timespec t = {0, piece * 1000000L};
        if (!beats(l)) return why_not(l);
        if (left <= 0) return FKT_OK;
        nanosleep(&t, NULL);
    }
}

static fkt_status draw(uint32_t *random)
{
    struct fkt_entropy os;
    uint8_t b[4];
    fkt_status st;
    fkt_entropy_os(&os);
    st = os.fill(os.self, b, sizeof b);
    *random = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return st;
}

fkt_status fkt_http_transport_run(const struct fkt_http_transport_spec *spec)
{
    struct fkt_http_client_request request;
    struct fkt_http_client_answer a;
    struct line l = {0};
    uint32_t random = 0, wait = 0;
    fkt_status st;
    FKT_TRY(open_line(&l, spec));
    for (;;) {
        enum fkt_http_client_step step;
        FKT_TRY(draw(&random));
        step = fkt_http_client_next(spec->http, now_ms(), random, &request, &wait);
        if (step == FKT_HTTP_CLIENT_ENDED) break;
        if (step == FKT_HTTP_CLIENT_WAIT) {
            FKT_TRY(nap(&l, wait));
            continue;
        }
        if (!beats(&l)) {
            st = why_not(&l);
            goto out;
        }
        FKT_TRY(carry(&l, &request, (long)request.timeout_seconds, &a));
        FKT_TRY(fkt_http_client_answer(spec->http, now_ms(), &a));
    }
    st = fkt_http_client_status(spec->http);
out:
    close_line(&l);
    return st;
}

/* ---- files ---- */

#define FILES "/v1/files/"
static const char *name_of(const char *target) { return target + sizeof FILES - 1; }

/* One attempt; *a is the answer, already interpreted. */
static fkt_status try_fetch(struct line *l, const char *target, const char *path, int force,
                            struct fkt_http_client_answer *a, int *again)
{
    struct fkt_http_client_request request;
    struct fkt_file f = {0};
    fkt_status st;
    *again = 0;
    FKT_TRY(fkt_file_begin(&f, path, force ? FKT_FILE_REPLACE : 0));
    l->file = f.stream;
    fkt_http_client_get(l->spec->http, target, &request);
    FKT_TRY(carry(l, &request, FETCH_SECONDS, a));
    if (l->long_answer)
        st = fkt_fail(FKT_E_MISMATCH, "'%s' at the server is longer than %zu bytes", name_of(target), l->max);
    else if (a->code == 404) st = fkt_fail(FKT_E_STATE, "the server has no file '%s'", name_of(target));
    else st = fkt_http_client_fetched(l->spec->http, now_ms(), a, again);
    if (st == FKT_OK && !*again) st = fkt_file_commit(&f);
out:
    l->file = NULL;
    fkt_file_clear(&f);
    return st;
}

/* Without a time limit a site waits until the task has expired, and at least some minutes from its first failure. */
static fkt_status too_late(const struct line *l, double since)
{
    const struct fkt_http_transport_spec *s = l->spec;
    if (s->patience_seconds || !s->expires || (uint64_t)time(NULL) <= s->expires || fkt_now() - since < FETCH_SECONDS)
        return FKT_OK;
    return fkt_fail_hint(FKT_E_IO, "ask the operator to start the server again, and join again",
                         "given up, since the task has expired: %s", fkt_http_client_trouble(s->http));
}

fkt_status fkt_http_transport_fetch(const struct fkt_http_transport_spec *spec, const char *name, const char *path,
                                    uint64_t max, int force)
{
    struct fkt_http_client_answer a = {0};
    struct line l = {0};
    char target[160];
    uint32_t random = 0, wait = 0;
    const double since = fkt_now();
    int again = 1;
    fkt_status st;
    snprintf(target, sizeof target, FILES "%s", name);
    FKT_TRY(open_line(&l, spec));
    l.max = max < SIZE_MAX ? (size_t)max : SIZE_MAX;
    if (spec->patience_seconds) l.until = fkt_now() + spec->patience_seconds;
    while (again) {
        FKT_TRY(try_fetch(&l, target, path, force, &a, &again));
        if (again) FKT_TRY(too_late(&l, since));
        FKT_TRY(draw(&random));
        while (again && fkt_http_client_pause(spec->http, now_ms(), random, &wait)) FKT_TRY(nap(&l, wait));
    }
out:
    close_line(&l);
    return fkt_fail_in(st, "cannot fetch '%s'", name);
}
