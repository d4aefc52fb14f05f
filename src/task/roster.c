/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c - a text file with a site per line, its key and after blanks its name, so that it can be written by hand and
 * compared by telephone.
 *
 * Blank lines and lines that begin with '#' are skipped, and so are editor artefacts: blanks and a carriage return at
 * the end of a line, a byte order mark at the start of the file. Everything else is an error that names its line: a
 * skipped key would exclude its site, and would change the index of every later site. A NUL byte is refused, and so is
 * a carriage return inside a line, which some editors show as two lines. Keys and names are unique.
 *
 * A site is added at the end, since the order numbers the sites; comments and blanks are kept. The file is replaced as
 * a whole under the lock "<roster>.lock" (flock), held from reading to replacing: of two processes that enroll at the
 * same time the second waits, so no site that was reported as enrolled is lost. */
#include "fedkt/keys.h"

#include "fedkt/federation.h"
#include "fedkt/service.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "crypto/sign.h"
#include "task/division.h"
#include "task/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROSTER_BYTES_MAX = 256 << 20, DIGITS = 2 * FKT_SA_KEY };

static const char hint[] = "a roster has one key of 64 lower-case hexadecimal digits per line, and after it a name if "
                           "there is one";

/* Sorted to find duplicates. */
struct entry {
    const uint8_t *key;
    const char *name;
    size_t line;
};

static int by_line(const struct entry *x, const struct entry *y) { return x->line < y->line ? -1 : x->line > y->line; }

static int by_key(const void *a, const void *b)
{
    int order = memcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key, FKT_SA_KEY);
    return order ? order : by_line(a, b);
}

/* Sites without a name come first. */
static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = !x->name != !y->name ? (x->name ? 1 : -1) : x->name ? strcmp(x->name, y->name) : 0;
    return order ? order : by_line(x, y);
}

/* Valid keys and names without duplicates. */
static fkt_status check_sites(const char *path, const struct fkt_roster *r)
{
    struct entry *e = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&e, r->n));
    for (uint32_t i = 0; i < r->n && st == FKT_OK; i++) {
        e[i] = (struct entry){r->keys + (size_t)i * FKT_SA_KEY, r->names[i], r->lines[i]};
        if (!fkt_sign_key_ok(e[i].key))
            st = fkt_fail_hint(FKT_E_FORMAT, "ask the site for the key that it signs with",
                               "line %zu of '%s' is not a usable Ed25519 key", e[i].line, path);
    }
    if (st != FKT_OK) goto out;
    qsort(e, r->n, sizeof *e, by_key);
    for (uint32_t i = 1; i < r->n && st == FKT_OK; i++)
        if (!memcmp(e[i - 1].key, e[i].key, FKT_SA_KEY))
            st = fkt_fail_hint(FKT_E_FORMAT, "every site needs its own key", "line %zu of '%s' repeats line %zu",
                               e[i].line, path, e[i - 1].line);
    qsort(e, r->n, sizeof *e, by_name);
    for (uint32_t i = 1; i < r->n && st == FKT_OK; i++)
        if (e[i - 1].name && !strcmp(e[i - 1].name, e[i].name))
            st = fkt_fail_hint(FKT_E_FORMAT, "every site needs its own name",
                               "line %zu of '%s' has the name of line %zu", e[i].line, path, e[i - 1].line);
out:
    fkt_free(e);
    return st;
}

/* `text` is one line without its end and without blanks there, with a NUL. The name is cut out of it. */
static fkt_status take_line(const char *path, size_t line, char *text, uint8_t key[FKT_SA_KEY], const char **name)
{
    size_t digits = strspn(text, "0123456789abcdef"), len = strcspn(text, " \t");
    char *rest = text + len;
    if (digits < len)
        return fkt_fail_hint(FKT_E_FORMAT, hint,
                             "line %zu of '%s' is not a key: its character %zu is not a lower-case hexadecimal digit",
                             line, path, digits + 1);
    if (len != DIGITS)
        return fkt_fail_hint(FKT_E_FORMAT, hint, "line %zu of '%s' is too %s for a key: %zu digits", line, path,
                             len < DIGITS ? "short" : "long", len);
    *name = NULL;
    if (*rest) {
        *rest++ = '\0';
        *name = rest + strspn(rest, " \t");
        if (strlen(*name) >= FKT_KEY_NAME || !fkt_plain_name(*name))
            return fkt_fail_hint(FKT_E_FORMAT, hint,
                                 "line %zu of '%s' has a name that is longer than %d bytes or not plain text", line,
                                 path, FKT_KEY_NAME - 1);
    }
    return fkt_unhex(key, text, FKT_SA_KEY) ? FKT_OK : FKT_E_FORMAT;
}

/* Removes the ignored parts of a line; *len 0: the whole line is ignored. */
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

static fkt_status take_lines(const char *path, size_t len, struct fkt_roster *r, uint32_t most)
{
    char *text = r->text, *end = text + len, *next;
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
        if (r->n == most) {
            st = fkt_fail(FKT_E_FORMAT, "'%s' holds more than %u keys", path, most);
            goto out;
        }
        FKT_TRY(take_line(path, line, text, r->keys + (size_t)r->n * FKT_SA_KEY, &r->names[r->n]));
        r->lines[r->n++] = line;
    }
out:
    return st;
}

/* Takes `text`. */
static fkt_status take_roster(struct fkt_roster *out, const char *path, uint8_t *text, size_t len, uint32_t at_least,
                              uint32_t most)
{
    size_t room = len / DIGITS + 1; /* a key takes at least its digits */
    fkt_status st;
    memset(out, 0, sizeof *out);
    out->text = (char *)text;
    FKT_TRY(fkt_alloc(&out->keys, room * FKT_SA_KEY));
    FKT_TRY(fkt_alloc(&out->names, room));
    FKT_TRY(fkt_alloc(&out->lines, room));
    FKT_TRY(fkt_strdup(&out->path, path));
    if (len && text[0] == '{') { /* most likely the public part of a site's key */
        st = fkt_hint_code(fkt_fail(FKT_E_FORMAT, "'%s' is not a roster but a JSON file", path), FKT_HINT_ROSTER_FILE,
                           "the public part of a site's key must be enrolled in a roster");
        goto out;
    }
    FKT_TRY(take_lines(path, len, out, most));
    if (!out->n && at_least) st = fkt_fail_hint(FKT_E_FORMAT, hint, "'%s' holds no key", path);
    else if (out->n < at_least)
        st = fkt_hint_code(fkt_fail(FKT_E_FORMAT, "'%s' holds %u key%s; a federation has at least %u sites", path,
                                    out->n, out->n == 1 ? "" : "s", at_least),
                           FKT_HINT_ENROLL_MORE, "enrol further sites");
    else st = check_sites(path, out);
out:
    if (st != FKT_OK) fkt_roster_clear(out);
    return st;
}

static fkt_status load(struct fkt_roster *out, const char *path, uint32_t most)
{
    uint8_t *text;
    size_t len;
    fkt_status st = fkt_file_read(&text, &len, path, ROSTER_BYTES_MAX);
    memset(out, 0, sizeof *out);
    return st == FKT_OK ? take_roster(out, path, text, len, 3, most) : st;
}

fkt_status fkt_roster_load(struct fkt_roster *out, const char *path) { return load(out, path, FKT_SA_SITES_MAX); }

fkt_status fkt_roster_load_all(struct fkt_roster *out, const char *path)
{
    return load(out, path, FKT_ROSTER_SITES_MAX);
}

void fkt_roster_clear(struct fkt_roster *r)
{
    fkt_free(r->keys);
    fkt_free(r->names);
    fkt_free(r->lines);
    fkt_free(r->text);
    fkt_free(r->path);
    memset(r, 0, sizeof *r);
}

fkt_status fkt_roster_apply(const struct fkt_roster *r, struct fkt_federation_choices *federation,
                            struct fkt_service_choices *service)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < r->n; i++) named += r->names[i] != NULL;
    for (uint32_t i = 0; service && named && i < r->n; i++)
        if (!r->names[i])
            return fkt_fail_hint(FKT_E_FORMAT, "give every site a name, or give none to any",
                                 "line %zu of '%s' has no name, but others have one", r->lines[i], r->path);
    if (service) service->names = named ? r->names : NULL;
    if (federation) {
        federation->sites = r->n;
        federation->roster = r->keys;
    }
    return FKT_OK;
}

/* Reads the file's sites into *r and its text into *t; both are empty when there is no file. */
static fkt_status read_if_there(const char *path, struct fkt_roster *r, struct fkt_text *t)
{
    uint8_t *text;
    size_t len;
    struct stat sb;
    fkt_status st;
    if (lstat(path, &sb) != 0 && errno == ENOENT) return FKT_OK;
    st = fkt_file_read(&text, &len, path, ROSTER_BYTES_MAX);
    if (st != FKT_OK) return st;
    fkt_text_addn(t, (const char *)text, len);
    if (len && text[len - 1] != '\n') fkt_text_add(t, "\n");
    return take_roster(r, path, text, len, 0, FKT_ROSTER_SITES_MAX);
}

/* Is `s` among the n sites before it, or on the roster? */
static fkt_status check_new(const char *path, const struct fkt_roster *r, const struct fkt_site_key *s,
                            const struct fkt_site_key *before, uint32_t n)
{
    char print[FKT_FINGERPRINT];
    fkt_status st;
    if (!fkt_sign_key_ok(s->key)) return fkt_fail(FKT_E_ARG, "site %u has no usable Ed25519 key", n + 1);
    if (s->name[0] && (st = fkt_service_check_name(s->name, "the roster")) != FKT_OK) return st;
    fkt_fingerprint(print, s->key);
    for (uint32_t i = 0; i < r->n; i++) {
        if (!memcmp(r->keys + (size_t)i * FKT_SA_KEY, s->key, FKT_SA_KEY))
            return fkt_fail_hint(FKT_E_EXISTS, "it is enrolled already; enrol only the others",
                                 "key %s ('%s') is already in line %zu of '%s'", print, s->name, r->lines[i], path);
        if (s->name[0] && r->names[i] && !strcmp(r->names[i], s->name))
            return fkt_fail_hint(FKT_E_EXISTS, "if its key was lost, remove the old line by hand",
                                 "a site '%s' with another key is already in line %zu of '%s'", s->name, r->lines[i],
                                 path);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!memcmp(before[i].key, s->key, FKT_SA_KEY))
            return fkt_fail_hint(FKT_E_EXISTS, "give each site's file once", "key %s ('%s') is given twice", print,
                                 s->name);
        if (s->name[0] && !strcmp(before[i].name, s->name))
            return fkt_fail_hint(FKT_E_EXISTS, "ask one of them for a key with another name",
                                 "two of the sites have the name '%s'", s->name);
    }
    return FKT_OK;
}

/* Is the open file still the one under its name? The previous holder removes the lock file when it unlocks. */
static int still_named(int fd, const char *path)
{
    struct stat ours, named;
    return fstat(fd, &ours) == 0 && lstat(path, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

/* Waits until no other process adds to the roster. */
static fkt_status take_lock(const char *roster, char **path, int *fd)
{
    enum { TRIES = 10000 }; /* each failure means that another process has finished its turn */
    const size_t n = strlen(roster) + 6;
    fkt_status st;
    FKT_TRY(fkt_alloc(path, n));
    snprintf(*path, n, "%s.lock", roster);
    for (int i = 0; i < TRIES; i++) {
        int got;
        *fd = open(*path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (*fd < 0) return fkt_io_fail("write", *path);
        do got = flock(*fd, LOCK_EX);
        while (got != 0 && errno == EINTR);
        if (got == 0 && still_named(*fd, *path)) return FKT_OK;
        if (got != 0) st = fkt_io_fail("lock", *path);
        close(*fd);
        *fd = -1;
        FKT_TRY(st);
    }
    st = fkt_fail(FKT_E_IO, "cannot lock '%s': other processes keep replacing it", *path);
out:
    return st;
}

static void drop_lock(char *path, int fd)
{
    if (fd >= 0) {
        unlink(path); /* removed while it is locked: a waiting process checks that the file still has its name */
        close(fd);
    }
    fkt_free(path);
}

fkt_status fkt_roster_enroll(const char *path, const struct fkt_site_key *sites, uint32_t n, uint32_t *total)
{
    struct fkt_roster r = {0};
    struct fkt_text t;
    char hex[DIGITS + 1], *lock = NULL;
    int fd = -1;
    fkt_status st;
    fkt_text_init(&t);
    FKT_TRY(take_lock(path, &lock, &fd));
    FKT_TRY(read_if_there(path, &r, &t));
    if (n > FKT_ROSTER_SITES_MAX - r.n) {
        st = fkt_fail(FKT_E_ARG, "a roster holds at most %u sites", FKT_ROSTER_SITES_MAX);
        goto out;
    }
    for (uint32_t i = 0; i < n; i++) {
        FKT_TRY(check_new(path, &r, &sites[i], sites, i));
        fkt_hex(hex, sites[i].key, FKT_SA_KEY);
        fkt_text_addf(&t, "%s%s%s\n", hex, sites[i].name[0] ? "  " : "", sites[i].name);
    }
    FKT_TRY(fkt_text_status(&t));
    FKT_TRY(fkt_file_write(path, t.s, t.len, FKT_FILE_REPLACE));
    *total = r.n + n;
out:
    drop_lock(lock, fd);
    fkt_roster_clear(&r);
    fkt_text_clear(&t);
    return st;
}
