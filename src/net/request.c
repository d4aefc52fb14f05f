/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - a libcurl handle with our options, and its failures as sentences.
 *
 * HTTPS only, also after a redirect, at most five redirects; certificates checked against the system's store; TLS
 * 1.2 or later; a silent peer is given up after a while. SIGPIPE, which a TLS library may raise when the peer is
 * gone, is blocked and discarded for this thread, so that an embedding program is not affected. */
#include "net/request.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { STALL_SECONDS = 30, CONNECT_SECONDS = 20, REDIRECTS = 5 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int ready;

static void start(void) { ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; }

fkt_status fkt_request_new(CURL **out, const char *url, const struct fkt_fetch_how *how, char detail[CURL_ERROR_SIZE])
{
    long stall = how->stall_seconds ? (long)how->stall_seconds : STALL_SECONDS;
    CURL *c;
    int bad;
    *out = NULL;
    pthread_once(&once, start);
    c = ready ? curl_easy_init() : NULL;
    if (!c) return fkt_fail(FKT_E_NOMEM, "cannot start libcurl");
    detail[0] = '\0';
    bad = curl_easy_setopt(c, CURLOPT_ERRORBUFFER, detail) || curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) ||
          curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https") ||
          curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "https") ||
          curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)REDIRECTS) || curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) ||
          curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) ||
          curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) ||
          curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L) || curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, stall) ||
          curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, stall < CONNECT_SECONDS ? stall : CONNECT_SECONDS) ||
          curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L) || curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "identity") ||
          curl_easy_setopt(c, CURLOPT_USERAGENT, "fedkt/" FKT_VERSION) || curl_easy_setopt(c, CURLOPT_URL, url) ||
          (how->cacert && curl_easy_setopt(c, CURLOPT_CAINFO, how->cacert));
    if (bad) {
        curl_easy_cleanup(c);
        return fkt_fail(FKT_E_NOMEM, "libcurl does not take its options");
    }
    *out = c;
    return FKT_OK;
}

CURLcode fkt_request_run(CURL *c)
{
    static const struct timespec now = {0, 0};
    sigset_t pipe, old, pending;
    CURLcode code;
    int blocked, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    before = sigismember(&pending, SIGPIPE);
    blocked = pthread_sigmask(SIG_BLOCK, &pipe, &old) == 0;
    code = curl_easy_perform(c);
    if (blocked && !before)
        while (sigtimedwait(&pipe, NULL, &now) == SIGPIPE) continue;
    if (blocked) pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

/* The address without what follows a '?': signed addresses of a store are long and not for logs. */
static void shorten(char *out, size_t cap, const char *url)
{
    snprintf(out, cap, "%.*s", (int)strcspn(url, "?#"), url);
}

static fkt_status fail_code(CURL *c, const char *at)
{
    long code = 0;
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &code);
    if (code == 404)
        return fkt_fail_hint(FKT_E_IO, "check the names of repository, revision and file",
                             "'%s' does not exist: the server answered 404", at);
    if (code == 401 || code == 403)
        return fkt_fail_hint(FKT_E_IO, "fetch the files by hand if the repository is not public",
                             "access to '%s' is refused: the server answered %ld", at, code);
    return fkt_fail(FKT_E_IO, "cannot fetch '%s': the server answered %ld", at, code);
}

fkt_status fkt_request_fail(CURL *c, CURLcode code, const char *url, const char *detail)
{
    char at[512];
    const char *why = detail[0] ? detail : curl_easy_strerror(code);
    shorten(at, sizeof at, url);
    switch (code) {
    case CURLE_HTTP_RETURNED_ERROR: return fail_code(c, at);
    case CURLE_PEER_FAILED_VERIFICATION:
        return fkt_hint_code(fkt_fail(FKT_E_IO, "the certificate of '%s' is not trusted: %s", at, why),
                             FKT_HINT_HUB_AUTHORITY, "for a hub of your own, give its certificate authority");
    case CURLE_SSL_CACERT_BADFILE: return fkt_fail(FKT_E_IO, "cannot read certificates: %s", why);
    case CURLE_TOO_MANY_REDIRECTS: return fkt_fail(FKT_E_IO, "'%s' redirects in a circle", at);
    case CURLE_UNSUPPORTED_PROTOCOL:
        return fkt_fail(FKT_E_IO, "'%s' redirects away from https, which is not followed", at);
    case CURLE_OPERATION_TIMEDOUT: return fkt_fail(FKT_E_IO, "'%s' has sent nothing for too long: %s", at, why);
    case CURLE_OUT_OF_MEMORY: return fkt_fail(FKT_E_NOMEM, "out of memory while fetching '%s'", at);
    default: return fkt_fail(FKT_E_IO, "cannot fetch '%s': %s", at, why);
    }
}

const char *fkt_request_header(CURL *c, const char *name)
{
    struct curl_header *h = NULL;
    return curl_easy_header(c, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK && h ? h->value : "";
}
