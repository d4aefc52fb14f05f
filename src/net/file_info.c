/* SPDX-License-Identifier: Apache-2.0 */
/* file_info.c - what a server states about a file before it is fetched: hash, size, commit. A redirect is reported, not
 * followed: a model hub states a large file's hash on the answer that sends us to its store. */
#include "net/request.h"

#include "base/text.h"

#include <string.h>

/* A SHA-256 in quotes, as entity tags are; anything else is not a hash. */
static void take_hash(char out[FKT_FETCH_HASH_HEX], const char *tag)
{
    size_t quote = tag[0] == '"', n = strspn(tag + quote, "0123456789abcdef");
    out[0] = '\0';
    if (n == FKT_FETCH_HASH_HEX - 1 && strlen(tag) == n + 2 * quote)
        snprintf(out, FKT_FETCH_HASH_HEX, "%.64s", tag + quote);
}

static void take_number(uint64_t *out, const char *text)
{
    if (!*text || fkt_parse_u64(out, text, INT64_MAX) != FKT_OK) *out = 0;
}

fkt_status fkt_fetch_head(struct fkt_fetch_head *out, const char *url, const struct fkt_fetch_how *how)
{
    char detail[CURL_ERROR_SIZE];
    const char *commit;
    char *to = NULL;
    CURL *c = NULL;
    CURLcode code;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(fkt_request_new(&c, url, how, detail));
    if (curl_easy_setopt(c, CURLOPT_NOBODY, 1L) != CURLE_OK) {
        st = fkt_fail(FKT_E_NOMEM, "libcurl does not take its options");
        goto out;
    }
    code = fkt_request_run(c);
    if (code != CURLE_OK) {
        st = fkt_request_fail(c, code, url, detail);
        goto out;
    }
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &out->code);
    if (out->code != 200 && !(out->code >= 301 && out->code <= 308)) {
        st = fkt_fail(FKT_E_IO, "cannot fetch '%s': the server answered %ld", url, out->code);
        goto out;
    }
    if (curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &to) == CURLE_OK && to) {
        if (strlen(to) < sizeof out->location) snprintf(out->location, sizeof out->location, "%s", to);
    }
    take_hash(out->linked_sha256, fkt_request_header(c, "X-Linked-ETag"));
    take_number(&out->linked_size, fkt_request_header(c, "X-Linked-Size"));
    if (out->code == 200) take_number(&out->length, fkt_request_header(c, "Content-Length"));
    commit = fkt_request_header(c, "X-Repo-Commit");
    if (strlen(commit) < sizeof out->commit && strspn(commit, "0123456789abcdef") == strlen(commit))
        snprintf(out->commit, sizeof out->commit, "%s", commit);
    else st = fkt_fail(FKT_E_FORMAT, "the server names a commit for '%s' that is not a commit", url);
out:
    if (c) curl_easy_cleanup(c);
    return st;
}
