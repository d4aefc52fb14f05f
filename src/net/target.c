/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - request targets, in exact form only. A target is compared as it was sent, before any unescaping or
 * normalisation: there are a dozen of them, and our own programs send them exactly so. Every other spelling is refused.
 * No part of a target is used as a path: the name of a file is one of four constants. */
#include "net/target.h"

#include "base/text.h"

#include <string.h>

static const char *const files[] = {"release.safetensors", "certificate.json", "transparency.jsonl", "grid.png"};

/* What comes after the path of a row. */
enum rest { REST_NOTHING, REST_POLL, REST_FILE, REST_TOKEN };

/* The endpoints: docs/openapi.yaml is compared with this table. A further one is a member of fkt_target_what, a row
 * here, its answer in httpd_request.c or queue.c, and its description there and in docs/http.md. */
static const struct endpoint {
    const char *path;
    enum rest rest;
    enum fkt_target_what what;
    enum fkt_target_auth auth;
    const char *methods; /* of this row */
    const char *allow;   /* of all rows of the path */
} table[] = {
    {"/v1/messages", REST_NOTHING, FKT_TARGET_MESSAGES, FKT_TARGET_AUTH_SITE, "POST", "GET, POST"},
    {"/v1/messages?", REST_POLL, FKT_TARGET_POLL, FKT_TARGET_AUTH_SITE, "GET", "GET, POST"},
    {"/v1/task", REST_NOTHING, FKT_TARGET_TASK, FKT_TARGET_AUTH_SITE, "GET", "GET"},
    {"/v1/files/", REST_FILE, FKT_TARGET_FILE, FKT_TARGET_AUTH_SITE, "GET", "GET"},
    {"/healthz", REST_NOTHING, FKT_TARGET_HEALTH, FKT_TARGET_AUTH_NONE, "GET, HEAD", "GET, HEAD"},
    {"/", REST_NOTHING, FKT_TARGET_PAGE, FKT_TARGET_AUTH_OPERATOR, "GET, HEAD", "GET, HEAD"},
    {"/events", REST_NOTHING, FKT_TARGET_EVENTS, FKT_TARGET_AUTH_OPERATOR, "GET, HEAD", "GET, HEAD"},
    {"/status.json", REST_NOTHING, FKT_TARGET_STATUS, FKT_TARGET_AUTH_OPERATOR, "GET, HEAD", "GET, HEAD"},
    {"/metrics", REST_NOTHING, FKT_TARGET_METRICS, FKT_TARGET_AUTH_OPERATOR, "GET, HEAD", "GET, HEAD"},
    {"/grid.png", REST_NOTHING, FKT_TARGET_GRID, FKT_TARGET_AUTH_OPERATOR, "GET, HEAD", "GET, HEAD"},
    {"/files/", REST_FILE, FKT_TARGET_DOWNLOAD, FKT_TARGET_AUTH_OPERATOR, "GET, HEAD", "GET, HEAD"},
    {"/login?token=", REST_TOKEN, FKT_TARGET_LOGIN, FKT_TARGET_AUTH_TARGET, "GET, HEAD", "GET, HEAD"},
};

static const char *after_word(const char *s, const char *word)
{
    const size_t n = strlen(word);
    return s && strncmp(s, word, n) == 0 ? s + n : NULL;
}

/* A number in its shortest form, up to `end` or the end of the text. */
static const char *number(const char *s, uint32_t *out, char end)
{
    char digits[12];
    uint64_t x;
    size_t n = s ? strspn(s, "0123456789") : 0;
    if (n == 0 || n >= sizeof digits || (n > 1 && s[0] == '0') || s[n] != end) return NULL;
    memcpy(digits, s, n);
    digits[n] = '\0';
    if (fkt_parse_u64(&x, digits, UINT32_MAX) != FKT_OK) return NULL;
    *out = (uint32_t)x;
    return s + n + (end != '\0');
}

/* round=<32 hex or ->&after=<n>&wait=<n> */
static int read_poll(struct fkt_target *t, const char *query)
{
    char hex[2 * FKT_MAILBOX_ROUND + 1];
    const char *s = after_word(query, "round=");
    if (s && s[0] == '-') {
        t->any_round = 1;
        s++;
    } else if (s && strnlen(s, 2 * FKT_MAILBOX_ROUND) == 2 * FKT_MAILBOX_ROUND) {
        memcpy(hex, s, sizeof hex - 1);
        hex[sizeof hex - 1] = '\0';
        if (!fkt_unhex(t->round, hex, FKT_MAILBOX_ROUND)) return 0;
        s += sizeof hex - 1;
    } else {
        return 0;
    }
    s = number(after_word(s, "&after="), &t->after, '&');
    return number(after_word(s, "wait="), &t->wait, '\0') != NULL;
}

static const char *file_name(const char *name)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strcmp(name, files[i]) == 0) return files[i];
    return NULL;
}

/* 0: the row is not what the target asks for. */
static int read_rest(struct fkt_target *out, const struct endpoint *e, const char *target)
{
    const char *rest = after_word(target, e->path);
    out->what = e->what;
    if (!rest) return 0;
    switch (e->rest) {
    case REST_NOTHING: return *rest == '\0';
    case REST_POLL:
        if (!read_poll(out, rest)) out->what = FKT_TARGET_MALFORMED;
        return 1;
    case REST_FILE: return (out->name = file_name(rest)) != NULL;
    case REST_TOKEN: out->token = rest; return 1;
    }
    return 0;
}

static const struct endpoint *row_of(const struct fkt_target *t)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].what == t->what) return &table[i];
    return NULL;
}

void fkt_target_read(struct fkt_target *out, const char *target)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        memset(out, 0, sizeof *out);
        if (read_rest(out, &table[i], target)) return;
    }
    memset(out, 0, sizeof *out);
}

enum fkt_target_auth fkt_target_auth(const struct fkt_target *t)
{
    const struct endpoint *e = row_of(t);
    return e ? e->auth : FKT_TARGET_AUTH_OPERATOR;
}

int fkt_target_signed(const struct fkt_target *t) { return fkt_target_auth(t) == FKT_TARGET_AUTH_SITE; }

const char *fkt_target_methods(const struct fkt_target *t)
{
    const struct endpoint *e = row_of(t);
    return e ? e->allow : "";
}

int fkt_target_allows(const struct fkt_target *t, const char *method)
{
    const struct endpoint *e = row_of(t);
    const size_t n = strlen(method);
    for (const char *s = e && n ? e->methods : ""; *s; s += strcspn(s, " ") + (s[strcspn(s, " ")] == ' '))
        if (strcspn(s, ",") == n && memcmp(s, method, n) == 0) return 1;
    return 0;
}
