/* SPDX-License-Identifier: Apache-2.0 */
/* pinned_curl.c - the libcurl options of every connection of a site to its server.
 *
 * The SHA-256 of the server's public key is in the task that the operator signed. So the key must be that one, and
 * nothing else counts: neither the issuer of the certificate nor the name and dates in it. A compromised authority or a
 * changed name therefore has no effect. A connection to any other key ends before the first byte of a request.
 *
 * HTTPS only, HTTP/1.1, TLS 1.3, no redirects, no cookies. */
#include "net/pinned_curl.h"

#include <string.h>

enum { CONNECT_SECONDS = 10 };

static fkt_status check(const char *address, const char *pin)
{
    if (strncmp(address, "https://", 8) != 0)
        return fkt_fail(FKT_E_ARG, "the server's address '%s' does not begin with https://", address);
    if (!pin || strncmp(pin, "sha256//", 8) != 0 || strlen(pin) != 52 || strpbrk(pin, ";\r\n"))
        return fkt_fail_hint(FKT_E_ARG, "ask the operator for the task that was signed after the server's first start",
                             "the task does not say which key the server has");
    return FKT_OK;
}

fkt_status fkt_pinned_new(CURL **out, const char *address, const char *pin, char detail[CURL_ERROR_SIZE])
{
    const struct fkt_fetch_how how = {0};
    CURL *c = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(check(address, pin));
    FKT_TRY(fkt_request_new(&c, address, &how, detail));
    /* Only the pin decides (see above): libcurl compares it independently of the two options for authorities and
     * names, and a build without pinning would refuse the option here. */
    if (curl_easy_setopt(c, CURLOPT_PINNEDPUBLICKEY, pin) || curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L) ||
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L) ||
        curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3) ||
        curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ||
        curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) || curl_easy_setopt(c, CURLOPT_FAILONERROR, 0L) ||
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 0L) || curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 0L) ||
        curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS) ||
        curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) || curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L)) {
        curl_easy_cleanup(c);
        st = fkt_fail(FKT_E_STATE, "libcurl on this machine cannot pin a server's key, or has no TLS 1.3");
        goto out;
    }
    *out = c;
out:
    return st;
}

static int set_headers(struct curl_slist **list, const struct fkt_http_client_request *r)
{
    struct curl_slist *more = curl_slist_append(NULL, "Expect:"); /* no pause before a long body */
    *list = more;
    for (size_t i = 0; more && i < sizeof r->headers / sizeof *r->headers && r->headers[i]; i++) {
        more = curl_slist_append(*list, r->headers[i]);
        if (more) *list = more;
    }
    return more != NULL;
}

fkt_status fkt_pinned_set(CURL *c, const char *address, const struct fkt_http_client_request *r, long seconds,
                          struct curl_slist **headers)
{
    const int post = !strcmp(r->method, "POST");
    char url[FKT_PINNED_URL]; /* libcurl keeps a copy */
    int n = snprintf(url, sizeof url, "%s%s", address, r->target);
    if (n < 0 || (size_t)n >= sizeof url) {
        *headers = NULL;
        return fkt_fail(FKT_E_ARG, "the address '%s' is too long", address);
    }
    if (!set_headers(headers, r) || curl_easy_setopt(c, CURLOPT_URL, url) ||
        curl_easy_setopt(c, CURLOPT_TIMEOUT, seconds) || curl_easy_setopt(c, CURLOPT_HTTPHEADER, *headers) ||
        (post ? curl_easy_setopt(c, CURLOPT_POST, 1L) ||
                    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->len) ||
                    curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body)
              : curl_easy_setopt(c, CURLOPT_HTTPGET, 1L)))
        return fkt_fail(FKT_E_NOMEM, "out of memory while talking to the server");
    return FKT_OK;
}

static const char *header(CURL *c, const char *name)
{
    struct curl_header *h = NULL;
    return curl_easy_header(c, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK && h && h->amount == 1 ? h->value : NULL;
}

void fkt_pinned_answer(CURL *c, struct fkt_http_client_answer *out)
{
    long code = 0;
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &code);
    *out = (struct fkt_http_client_answer){.code = (int)code,
                                           .nonce = header(c, "Fedkt-Nonce"),
                                           .floor = header(c, "Fedkt-Floor"),
                                           .round = header(c, "Fedkt-Round"),
                                           .index = header(c, "Fedkt-Index"),
                                           .stage = header(c, "Fedkt-Stage"),
                                           .lost = header(c, "Fedkt-Lost"),
                                           .log = header(c, "Fedkt-Log"),
                                           .retry_after = header(c, "Retry-After")};
}
