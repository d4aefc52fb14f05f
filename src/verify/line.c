/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - one line of a transparency log: is it well formed, and does it continue the chain?
 *
 * Source: docs/http.md 5.1. The log comes from the party that is being checked, so nothing in it is trusted. A
 * line has exactly one form: it is parsed and written again, and the bytes must be the same, so that two readers can
 * never read different things in it. Each event has exactly the keys of the table below, each of its type; a key more
 * or less is refused. Numbers are below 2^53, which every JSON parser can hold.
 *
 * Cost: a few microseconds and a few kilobytes per line; nothing is allocated before the length is known to be
 * small. */
#include "verify/verify.h"

#include "task/task.h"

#include "base/alloc.h"
#include "base/text.h"
#include "crypto/hash.h"

#include <string.h>

#define WHOLE_MAX ((json_int_t)1 << 53)
#define TEXT_MAX 1024

enum kind { NONE = 0, WHOLE, SITE_OR_NULL, TEXT, HEX16, HEX32, HEX64, BITMAP, OBJECT };

struct key {
    const char *name;
    enum kind kind;
};
enum { COMMON = 4, KEYS = 6 };
static const struct key common[COMMON] = {{"at", WHOLE}, {"entry", WHOLE}, {"event", TEXT}, {"prev", HEX32}};

static const struct {
    const char *name;
    struct key key[KEYS];
} events[FKT_LOG_EVENTS] = {
    [FKT_LOG_OPEN] = {"open", {{"schema", TEXT}, {"task", OBJECT}, {"version", TEXT}}},
    [FKT_LOG_START] = {"start", {{"version", TEXT}}},
    [FKT_LOG_REFUSED] = {"refused", {{"site", SITE_OR_NULL}, {"times", WHOLE}, {"why", TEXT}}},
    [FKT_LOG_BEGIN] = {"begin", {{"name", HEX16}, {"round", WHOLE}}},
    [FKT_LOG_MESSAGE] =
        {"message",
         {{"bytes", WHOLE}, {"kind", TEXT}, {"round", WHOLE}, {"sha256", HEX32}, {"site", WHOLE}, {"verdict", WHOLE}}},
    [FKT_LOG_PHASE] = {"phase",
                       {{"expected", WHOLE}, {"heard", WHOLE}, {"phase", TEXT}, {"round", WHOLE}, {"why", TEXT}}},
    [FKT_LOG_LOST] = {"lost", {{"phase", TEXT}, {"round", WHOLE}, {"site", WHOLE}, {"status", WHOLE}}},
    [FKT_LOG_SURVIVORS] = {"survivors", {{"count", WHOLE}, {"round", WHOLE}, {"seed", HEX32}, {"survivors", BITMAP}}},
    [FKT_LOG_CONFIRMED] = {"confirmed", {{"round", WHOLE}, {"signature", HEX64}, {"site", WHOLE}}},
    [FKT_LOG_FAILED] = {"failed", {{"reason", TEXT}, {"round", WHOLE}}},
    [FKT_LOG_GIVEN_UP] = {"given-up", {{"reason", TEXT}}},
    [FKT_LOG_RELEASE] = {"release",
                         {{"certificate_sha256", HEX32}, {"round", WHOLE}, {"sha256", HEX32}, {"survivors", WHOLE}}},
    [FKT_LOG_FILE] = {"file", {{"bytes", WHOLE}, {"name", TEXT}, {"sha256", HEX32}}},
    [FKT_LOG_NO_DATASET] = {"no-dataset", {{"reason", TEXT}}},
    [FKT_LOG_END] = {"end", {{NULL, NONE}}},
};

const char *fkt_log_event_name(enum fkt_log_event e) { return events[e].name; }

int fkt_log_is_hex(const char *s, size_t bytes)
{
    return s && strlen(s) == 2 * bytes && strspn(s, "0123456789abcdef") == 2 * bytes;
}

static int is_whole(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < WHOLE_MAX;
}

static int is_kind(const json_t *v, enum kind kind)
{
    const char *s = json_string_value(v); /* NULL unless text */
    switch (kind) {
    case WHOLE: return is_whole(v);
    case SITE_OR_NULL: return json_is_null(v) || is_whole(v);
    case TEXT: return s && strlen(s) <= TEXT_MAX;
    case HEX16: return fkt_log_is_hex(s, 16);
    case HEX32: return fkt_log_is_hex(s, 32);
    case HEX64: return fkt_log_is_hex(s, 64);
    case BITMAP: return s && strlen(s) % 2 == 0 && strspn(s, "0123456789abcdef") == strlen(s);
    case OBJECT: return json_is_object(v);
    default: return 0;
    }
}

static fkt_status check_keys(const json_t *root, const struct key *key, size_t n, size_t *there)
{
    for (size_t i = 0; i < n && key[i].name; i++, ++*there)
        if (!is_kind(json_object_get(root, key[i].name), key[i].kind))
            return fkt_fail(FKT_E_FORMAT, "'%s' is missing or has the wrong type", key[i].name);
    return FKT_OK;
}

static fkt_status take(struct fkt_log_line *l, uint64_t entry, const char *prev)
{
    const char *event;
    size_t there = 0, e;
    fkt_status st;
    FKT_TRY(check_keys(l->root, common, COMMON, &there));
    event = fkt_log_text(l, "event");
    for (e = 0; e < FKT_LOG_EVENTS && strcmp(event, events[e].name) != 0; e++) continue;
    if (e == FKT_LOG_EVENTS) return fkt_fail(FKT_E_FORMAT, "there is no such event");
    l->event = (enum fkt_log_event)e;
    FKT_TRY(check_keys(l->root, events[e].key, KEYS, &there));
    if (json_object_size(l->root) != there)
        return fkt_fail(FKT_E_FORMAT, "it holds a key that event '%s' does not have", event);
    if (fkt_log_number(l, "entry") != entry)
        return fkt_fail(FKT_E_MISMATCH, "it claims to be entry %llu: lines were removed, added or moved",
                        (unsigned long long)fkt_log_number(l, "entry"));
    if (strcmp(fkt_log_text(l, "prev"), prev) != 0)
        return fkt_fail(FKT_E_MISMATCH, "it does not follow from the line before: one of the two was changed");
out:
    return st;
}

/* The canonical form. */
static fkt_status canonical(const struct fkt_log_line *l, const char *bytes, size_t len)
{
    char *text = NULL;
    fkt_status st = fkt_json_text(&text, json_incref(l->root), 0);
    if (st == FKT_OK && (strlen(text) != len || memcmp(text, bytes, len) != 0))
        st = fkt_fail(FKT_E_FORMAT, "it is not in canonical form: keys sorted, no blanks");
    fkt_free(text);
    return st;
}

fkt_status fkt_log_line_read(struct fkt_log_line *out, const char *bytes, size_t len, uint64_t entry, const char *prev)
{
    json_error_t e;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (len > (entry == 1 ? FKT_LOG_OPEN_MAX : FKT_LOG_LINE_MAX)) {
        st = fkt_fail(FKT_E_FORMAT, "it is longer than any line of a log may be");
        goto out;
    }
    out->root = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &e);
    if (!json_is_object(out->root)) {
        st = fkt_fail(FKT_E_FORMAT, "it is not a JSON object");
        goto out;
    }
    FKT_TRY(canonical(out, bytes, len));
    FKT_TRY(take(out, entry, prev));
    fkt_hash_bytes_hex(out->sha256, bytes, len);
out:
    if (st != FKT_OK) {
        fkt_log_line_clear(out);
        st = fkt_fail_in(st, "transparency.jsonl line %llu", (unsigned long long)entry);
    }
    return st;
}

void fkt_log_line_clear(struct fkt_log_line *l)
{
    json_decref(l->root);
    memset(l, 0, sizeof *l);
}

uint64_t fkt_log_number(const struct fkt_log_line *l, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(l->root, key));
}

const char *fkt_log_text(const struct fkt_log_line *l, const char *key)
{
    return json_string_value(json_object_get(l->root, key));
}
