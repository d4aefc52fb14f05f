/* SPDX-License-Identifier: Apache-2.0 */
/* hub.c - the addresses of a model hub, and what it states about a file.
 *
 *   HEAD {endpoint}/{repo}/resolve/{revision}/{file}
 *     X-Repo-Commit   the commit that the revision names now
 *     X-Linked-ETag   SHA-256 of a large file (kept in a store, to which GET is redirected)
 *     X-Linked-Size   its size
 *
 * This is what the hub's own client asks (huggingface_hub, file_download.py). We differ: a small file has only a git
 * blob's SHA-1, which is not asked for; what arrives is written down as first seen. */
#include "net/hub.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC_HUB "https://huggingface.co"
#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

enum { HOPS = 5 };

fkt_status fkt_hub_endpoint(char **out, const char *asked)
{
    const char *given = getenv("HF_ENDPOINT"), *hub = asked ? asked : given && *given ? given : PUBLIC_HUB;
    size_t n = strlen(hub);
    fkt_status st;
    *out = NULL;
    while (n > 0 && hub[n - 1] == '/') n--;
    if (n < 9 || n > 512 || strncmp(hub, "https://", 8) != 0 || hub[8] == '/' || strspn(hub + 8, WORD "/:[]~%") < n - 8)
        return fkt_fail_hint(FKT_E_ARG, "a hub's address is like https://hub.example.org",
                             "'%s' is not the https address of a hub", hub);
    FKT_TRY(fkt_alloc(out, n + 1));
    memcpy(*out, hub, n);
out:
    return st;
}

/* Parts of WORD letters between single slashes, none of which is '..'. */
static int is_path(const char *s, int slashes)
{
    int found = 0;
    for (;;) {
        size_t n = strspn(s, WORD);
        if (n == 0 || n > 128 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.')) return 0;
        s += n;
        if (*s == '\0') return slashes < 0 || found == slashes;
        if (*s++ != '/') return 0;
        found++;
    }
}

fkt_status fkt_hub_url(char **out, const struct fkt_hub *hub, const char *file)
{
    char revision[1024] = "";
    size_t at = 0, n;
    fkt_status st;
    *out = NULL;
    if (!is_path(hub->repo, 1)) return fkt_fail(FKT_E_ARG, "'%s' is not a repository like owner/name", hub->repo);
    if (!is_path(hub->revision, -1) || strlen(hub->revision) > 256)
        return fkt_fail(FKT_E_ARG, "'%s' is not a branch, tag or commit", hub->revision);
    if (!is_path(file, 0)) return fkt_fail(FKT_E_ARG, "'%s' is not a file of a repository", file);
    for (const char *s = hub->revision; *s; s++) /* slashes in a branch are not path separators */
        at += (size_t)snprintf(revision + at, sizeof revision - at, *s == '/' ? "%%2F" : "%c", *s);
    n = strlen(hub->endpoint) + strlen(hub->repo) + at + strlen(file) + 16;
    FKT_TRY(fkt_alloc(out, n));
    snprintf(*out, n, "%s/%s/resolve/%s/%s", hub->endpoint, hub->repo, revision, file);
out:
    return st;
}

fkt_status fkt_hub_ask(struct fkt_hub_says *out, const struct fkt_hub *hub, const char *file,
                       const struct fkt_fetch_how *how)
{
    struct fkt_fetch_head h;
    char *url = NULL, *next = NULL;
    size_t home = strlen(hub->endpoint);
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(fkt_hub_url(&url, hub, file));
    for (int hop = 0;; hop++) {
        FKT_TRY(fkt_fetch_head(&h, url, how));
        if (h.code == 200 || h.linked_sha256[0]) break;
        if (strncmp(h.location, hub->endpoint, home) != 0 || h.location[home] != '/') break; /* redirected to a store */
        if (hop == HOPS) {
            st = fkt_fail(FKT_E_IO, "'%s' redirects in a circle", url);
            goto out;
        }
        FKT_TRY(fkt_strdup(&next, h.location));
        fkt_free(url);
        url = next;
        next = NULL;
    }
    snprintf(out->sha256, sizeof out->sha256, "%s", h.linked_sha256);
    snprintf(out->commit, sizeof out->commit, "%s", h.commit);
    out->size = h.linked_size ? h.linked_size : h.length;
out:
    fkt_free(url);
    return st;
}
