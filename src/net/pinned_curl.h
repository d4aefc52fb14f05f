/* SPDX-License-Identifier: Apache-2.0 */
/* pinned_curl.h - libcurl for an HTTP client: a handle to a server that is known by its pin, a request put into it, an
 * answer read from it. For http_transport.c and the load generator alone. */
#ifndef FKT_NET_PINNED_CURL_H
#define FKT_NET_PINNED_CURL_H

#include "net/http_client.h"
#include "net/request.h"

#define FKT_PINNED_URL 1024

/* Gives *out, to be freed with curl_easy_cleanup: https, TLS 1.3 and this key, or nothing. `detail` as for
 * fkt_request_new. */
FKT_MUST_USE fkt_status fkt_pinned_new(CURL **out, const char *address, const char *pin, char detail[CURL_ERROR_SIZE]);
/* Method, address, body and headers of a request. Gives *headers, also on failure, to be freed when it is over; the
 * body is borrowed until then. */
FKT_MUST_USE fkt_status fkt_pinned_set(CURL *c, const char *address, const struct fkt_http_client_request *r,
                                       long seconds, struct curl_slist **headers);
/* Code and headers of an answer; they live in the handle. A header that occurs twice counts as absent. */
void fkt_pinned_answer(CURL *c, struct fkt_http_client_answer *out);

#endif
