/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - exact forms only. Targets are compared as they came, before anybody unescapes or normalises them: there
 * are a dozen of them, made by programs of ours, and what looks like one but is written otherwise is none. No part of a
 * target is ever used as a path: the name of a file is one of four constants. */
#include "net/target.h"

#include "base/text.h"

#include <string.h>

static const char *const files[] = {"release.safetensors", "certificate.json", "transparency.jsonl", "grid.png"};

static const struct {
    const char *path;
    enum fkt_target_what what;
} plain[] = {
    {"/v1/messages", FKT_TARGET_MESSAGES}, {"/v1/task", FKT_TARGET_TASK},
    {"/healthz", FKT_TARGET_HEALTH},       {"/", FKT_TARGET_PAGE},
    {"/events", FKT_TARGET_EVENTS},        {"/status.json", FKT_TARGET_STATUS},
    {"/metrics", FKT_TARGET_METRICS},      {"/grid.png", FKT_TARGET_GRID},
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

static void read_file(struct fkt_target *t, const char *name, enum fkt_target_what what)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strcmp(name, files[i]) == 0) {
            t->what = what;
            t->name = files[i];
        }
}

void fkt_target_read(struct fkt_target *out, const char *target)
{
    const char *rest;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(target, plain[i].path) == 0) {
            out->what = plain[i].what;
            return;
        }
    if ((rest = after_word(target, "/v1/messages?"))) {
        out->what = read_poll(out, rest) ? FKT_TARGET_POLL : FKT_TARGET_MALFORMED;
    } else if ((rest = after_word(target, "/v1/files/"))) {
        read_file(out, rest, FKT_TARGET_FILE);
    } else if ((rest = after_word(target, "/files/"))) {
        read_file(out, rest, FKT_TARGET_DOWNLOAD);
    } else if ((rest = after_word(target, "/login?token="))) {
        out->what = FKT_TARGET_LOGIN;
        out->token = rest;
    }
}

int fkt_target_signed(const struct fkt_target *t)
{
    return t->what >= FKT_TARGET_MESSAGES && t->what <= FKT_TARGET_FILE;
}

const char *fkt_target_methods(const struct fkt_target *t)
{
    if (t->what >= FKT_TARGET_HEALTH) return "GET, HEAD";
    if (t->what == FKT_TARGET_MESSAGES || t->what == FKT_TARGET_POLL) return "GET, POST";
    return "GET";
}

int fkt_target_allows(const struct fkt_target *t, const char *method)
{
    if (strcmp(method, "GET") == 0) return t->what != FKT_TARGET_MESSAGES;
    if (strcmp(method, "POST") == 0) return t->what == FKT_TARGET_MESSAGES;
    return strcmp(method, "HEAD") == 0 && t->what >= FKT_TARGET_HEALTH;
}
