/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - a libcurl handle with our options: for fetch.c and file_info.c alone. */
#ifndef FKT_NET_REQUEST_H
#define FKT_NET_REQUEST_H

#include "net/fetch.h"

#include <curl/curl.h>

/* Gives *out, to be freed with curl_easy_cleanup. `detail` gets libcurl's own sentence and must outlive the handle. */
FKT_MUST_USE fkt_status fkt_request_new(CURL **out, const char *url, const struct fkt_fetch_how *how,
                                        char detail[CURL_ERROR_SIZE]);
/* Runs it with SIGPIPE blocked. */
CURLcode fkt_request_run(CURL *c);
/* The sentence for a transfer that failed. */
fkt_status fkt_request_fail(CURL *c, CURLcode code, const char *url, const char *detail);
/* A header of the last response, "" when it is absent. Valid until the next run. */
const char *fkt_request_header(CURL *c, const char *name);

#endif
