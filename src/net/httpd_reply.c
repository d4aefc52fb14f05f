/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_reply.c - answers to libmicrohttpd responses, with the headers that all of them have. */
#include "base/alloc.h"
#include "net/httpd_internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void fkt_reply_headers(struct MHD_Response *r, const char *type, const char *policy)
{
    if (type) (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    (void)MHD_add_response_header(r, "Content-Security-Policy", policy ? policy : "default-src 'none'");
    (void)MHD_add_response_header(r, "Strict-Transport-Security", "max-age=31536000");
    (void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
}

/* NULL: the file is gone. */
static struct MHD_Response *of_file(const char *path, uint64_t *len)
{
    struct MHD_Response *r = NULL;
    struct stat sb;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode)) {
        *len = (uint64_t)sb.st_size;
        r = MHD_create_response_from_fd64(*len, fd); /* takes fd */
    }
    if (!r && fd >= 0) close(fd);
    return r;
}

static struct MHD_Response *of_answer(struct fkt_answer *a, uint64_t *len)
{
    struct MHD_Response *r;
    if (a->path) {
        r = of_file(a->path, len);
        if (r) return r;
        a->headers = 0;
        fkt_answer_problem(a, 404, "not-found", "the file cannot be read");
    }
    if (a->text) {
        *len = strlen(a->text);
        return MHD_create_response_from_buffer(*len, (void *)(uintptr_t)a->text, MHD_RESPMEM_PERSISTENT);
    }
    *len = a->len;
    r = MHD_create_response_from_buffer_with_free_callback(a->body ? a->len : 0, a->body, a->body ? fkt_free : NULL);
    if (r) a->body = NULL; /* taken */
    return r;
}

enum MHD_Result fkt_reply(struct fkt_ask *a)
{
    struct fkt_httpd *h = a->h;
    struct fkt_answer *answer = &a->job.answer;
    const char *policy = a->verdict.target.what == FKT_TARGET_PAGE && answer->code == 200 ? fkt_page_csp() : NULL;
    const uint64_t now_us = fkt_clock_us();
    uint64_t len = 0;
    struct MHD_Response *r = of_answer(answer, &len);
    enum MHD_Result ok;
    if (!r) return MHD_NO;
    fkt_reply_headers(r, answer->type, policy);
    for (unsigned i = 0; i < answer->headers; i++)
        (void)MHD_add_response_header(r, answer->header[i].name, answer->header[i].value);
    /* A connection with an unread body is closed. One that is refused for its rate is not: a new handshake costs
     * more. */
    if (a->closes) (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    fkt_counters_answer(&h->counters, answer->code, len);
    if (!a->job.waited && a->heard_us) fkt_counters_latency(&h->counters, now_us - a->heard_us);
    /* A client must read at least eight kilobytes a second. */
    atomic_store(&a->line->deadline_ms, now_us / 1000 + 1000 * (uint64_t)h->limits.request_seconds + len / 8);
    if (answer->code == 200 && a->job.target.what == FKT_TARGET_POLL)
        fkt_connections_message(&h->lines, a->line, &h->reading[a->job.site]);
    a->state = FKT_ASK_ANSWERED;
    ok = MHD_queue_response(a->c, (unsigned)answer->code, r);
    MHD_destroy_response(r);
    return ok;
}
