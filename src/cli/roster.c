/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c - a text file with one key per line, so that it can be put together by hand and read over the telephone.
 *
 * Blank lines and lines that begin with '#' do not count; blanks after a key, a carriage return at the end of a line
 * and a byte order mark at the start of the file are what editors leave behind, and are passed over. Nothing else is:
 * a key that is skipped in silence would be a site that takes no part, and every index after it would be another's. So
 * a NUL byte, or a carriage return inside a line, which shows as two lines in some editors and as one in others, is
 * refused, and each complaint names its line. */
#include "cli/roster.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "crypto/sign.h"

#include "fedkt/secagg.h"

#include <stdlib.h>
#include <string.h>

enum { ROSTER_BYTES_MAX = 16 << 20, DIGITS = 2 * FKT_SA_KEY };

static const char hint[] = "a roster has one key of 64 lower-case hexadecimal digits per line";

/* Sorting finds keys that stand there twice. */
struct entry {
    uint8_t key[FKT_SA_KEY];
    size_t line;
};

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = memcmp(x->key, y->key, FKT_SA_KEY);
    return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

/* Good keys, each once; e comes back in another order. */
static fkt_status check_keys(const char *path, struct entry *e, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!fkt_sign_key_ok(e[i].key))
            return fkt_fail_hint(FKT_E_FORMAT, "ask the site for the key that it signs with",
                                 "line %zu of '%s' is no good Ed25519 key", e[i].line, path);
    qsort(e, n, sizeof *e, by_key);
    for (uint32_t i = 1; i < n; i++)
        if (!memcmp(e[i - 1].key, e[i].key, FKT_SA_KEY))
            return fkt_fail_hint(FKT_E_FORMAT, "every site has a key of its own", "line %zu of '%s' repeats line %zu",
                                 e[i].line, path, e[i - 1].line);
    return FKT_OK;
}

/* `text` (len bytes, NUL after them) is one line without its end and without blanks after the key. */
static fkt_status take_key(const char *path, size_t line, const char *text, size_t len, uint8_t key[FKT_SA_KEY])
{
    size_t digits = strspn(text, "0123456789abcdef");
    if (digits < len)
        return fkt_fail_hint(FKT_E_FORMAT, hint,
                             "line %zu of '%s' is no key: its character %zu is not a lower-case hexadecimal digit",
                             line, path, digits + 1);
    if (len != DIGITS)
        return fkt_fail_hint(FKT_E_FORMAT, hint, "line %zu of '%s' is too %s for a key: %zu digits", line, path,
                             len < DIGITS ? "short" : "long", len);
    return fkt_unhex(key, text, FKT_SA_KEY) ? FKT_OK : FKT_E_FORMAT;
}

/* Cuts what does not count off a line; *len 0: nothing of it counts. */
static fkt_status trim(const char *path, size_t line, char *text, size_t *len)
{
    if (memchr(text, '\0', *len))
        return fkt_fail_hint(FKT_E_FORMAT, hint, "line %zu of '%s' has a NUL byte", line, path);
    if (*len && text[*len - 1] == '\r') --*len;
    if (memchr(text, '\r', *len))
        return fkt_fail_hint(FKT_E_FORMAT, hint, "line %zu of '%s' has a carriage return before its end", line, path);
    while (*len && (text[*len - 1] == ' ' || text[*len - 1] == '\t')) --*len;
    if (*text == '#') *len = 0;
    text[*len] = '\0';
    return FKT_OK;
}

static fkt_status take_lines(const char *path, char *text, size_t len, uint8_t *roster, struct entry *e, uint32_t *n)
{
    char *end = text + len, *next;
    fkt_status st = FKT_OK;
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) text += 3;
    for (size_t line = 1; text < end; text = next, line++) {
        char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t size;
        if (!stop) stop = end;
        next = stop + 1;
        size = (size_t)(stop - text);
        FKT_TRY(trim(path, line, text, &size));
        if (!size) continue;
        if (*n == FKT_SA_SITES_MAX) {
            st = fkt_fail(FKT_E_FORMAT, "'%s' holds more than %u keys", path, FKT_SA_SITES_MAX);
            goto out;
        }
        FKT_TRY(take_key(path, line, text, size, e[*n].key));
        memcpy(roster + (size_t)*n * FKT_SA_KEY, e[*n].key, FKT_SA_KEY);
        e[(*n)++].line = line;
    }
out:
    return st;
}

fkt_status cli_roster_read(const char *path, uint8_t **roster, uint32_t *n)
{
    uint8_t *text = NULL;
    struct entry *e = NULL;
    size_t len, room;
    fkt_status st;
    *roster = NULL;
    *n = 0;
    FKT_TRY(fkt_file_read(&text, &len, path, ROSTER_BYTES_MAX));
    room = len / DIGITS + 1; /* a key takes at least its digits */
    FKT_TRY(fkt_alloc(roster, room * FKT_SA_KEY));
    FKT_TRY(fkt_alloc(&e, room));
    FKT_TRY(take_lines(path, (char *)text, len, *roster, e, n));
    if (!*n) st = fkt_fail_hint(FKT_E_FORMAT, hint, "'%s' holds no key", path);
    else if (*n < 3) st = fkt_fail(FKT_E_FORMAT, "'%s' holds %u keys; a federation has at least 3 sites", path, *n);
    else st = check_keys(path, e, *n);
out:
    fkt_free(text);
    fkt_free(e);
    return st;
}
