/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - one HTTPS GET into a file that is complete and checked, or absent.
 *
 *   GET [Range, If-Range]  ->  <path>.part (+ .part.tag: address and entity tag)  ->  fsync, SHA-256  ->  rename
 *
 * A download is resumed (RFC 9110, 13.1.5 and 14): the entity tag of the first answer is written beside the part
 * before its first byte, and is sent again as If-Range, so that a file that changed in between is sent whole. Only a
 * file with a known hash is resumed: after a power failure a part may hold zeros, and only the hash detects it. A
 * resumed file with a wrong hash is fetched again once; a newly fetched one with a wrong hash is an error. kill -9
 * leaves a part or the complete file, never an incomplete file under the final name. */
#include "net/request.h"

#include "base/alloc.h"
#include "base/file.h"
#include "crypto/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRUITLESS = 3, PAUSE_US = 100000, TAG_MAX = 512 };

struct transfer {
    const struct fkt_fetch_spec *spec;
    CURL *curl;
    char *part, *tag;
    char etag[TAG_MAX]; /* strong tag of what the part holds; "" when there is none */
    int fd;
    int begun;         /* the head of this answer has been checked */
    int restart;       /* what is here cannot be continued */
    uint64_t at;       /* bytes in the part */
    uint64_t got;      /* bytes received in this call */
    fkt_status failed; /* of a callback, with its sentence */
};

static fkt_status start_over(struct transfer *t)
{
    t->at = 0;
    t->etag[0] = '\0';
    (void)unlink(t->tag);
    return ftruncate(t->fd, 0) == 0 && lseek(t->fd, 0, SEEK_SET) == 0 ? FKT_OK : fkt_io_fail("write", t->part);
}

/* A value that is sent as a header must not contain a line break. */
static int is_tag(const uint8_t *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] < 0x20 || text[i] == 0x7F) return 0;
    return 1;
}

/* Address and tag of the part, as an earlier call wrote them; without them the part is useless. */
static fkt_status take_up(struct transfer *t)
{
    uint8_t *text = NULL;
    size_t len, url = strlen(t->spec->url);
    struct stat sb;
    fkt_status st = FKT_OK;
    if (fstat(t->fd, &sb) != 0) return fkt_io_fail("read", t->part);
    if (sb.st_size == 0 || !t->spec->sha256 || access(t->tag, R_OK) != 0) return start_over(t);
    FKT_TRY(fkt_file_read(&text, &len, t->tag, 8192));
    if (len < url + 2 || memcmp(text, t->spec->url, url) != 0 || text[url] != '\n' || len - url - 2 >= TAG_MAX ||
        !is_tag(text + url + 1, len - url - 2) || (t->spec->size && (uint64_t)sb.st_size > t->spec->size) ||
        (uint64_t)sb.st_size > t->spec->max) {
        st = start_over(t);
        goto out;
    }
    memcpy(t->etag, text + url + 1, len - url - 2);
    t->etag[len - url - 2] = '\0';
    t->at = (uint64_t)sb.st_size;
    if (lseek(t->fd, 0, SEEK_END) < 0) st = fkt_io_fail("write", t->part);
out:
    fkt_free(text);
    return st;
}

static fkt_status write_tag(struct transfer *t)
{
    const char *tag = fkt_request_header(t->curl, "ETag");
    char *text = NULL;
    size_t n = strlen(t->spec->url) + strlen(tag) + 3;
    fkt_status st;
    t->etag[0] = '\0';
    if (tag[0] != '"' || strlen(tag) >= TAG_MAX) return FKT_OK; /* a weak tag does not promise the same bytes */
    FKT_TRY(fkt_alloc(&text, n));
    snprintf(text, n, "%s\n%s\n", t->spec->url, tag);
    FKT_TRY(fkt_file_write(t->tag, text, n - 1, FKT_FILE_REPLACE));
    snprintf(t->etag, sizeof t->etag, "%s", tag);
out:
    fkt_free(text);
    return st;
}

static fkt_status too_much(const struct transfer *t, uint64_t size)
{
    if (t->spec->size)
        return fkt_fail(FKT_E_MISMATCH, "'%s' does not have the size that was announced: %llu bytes, not %llu",
                        t->spec->url, (unsigned long long)size, (unsigned long long)t->spec->size);
    return fkt_fail(FKT_E_MISMATCH, "'%s' is too large: more than %llu bytes", t->spec->url,
                    (unsigned long long)t->spec->max);
}

/* The head of the answer that carries the body: does it continue the part, or start from the beginning? */
static fkt_status begin_body(struct transfer *t)
{
    unsigned long long from = 0;
    curl_off_t length = -1;
    long code = 0;
    fkt_status st = FKT_OK;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (code == 206) {
        if (sscanf(fkt_request_header(t->curl, "Content-Range"), "bytes %llu-", &from) != 1 || from != t->at ||
            !t->at) {
            t->restart = 1;
            return fkt_fail(FKT_E_IO, "'%s' was continued at the wrong place", t->spec->url);
        }
    } else if (code == 200) {
        FKT_TRY(start_over(t));
        FKT_TRY(write_tag(t));
    } else {
        return fkt_fail(FKT_E_IO, "cannot fetch '%s': the server answered %ld", t->spec->url, code);
    }
    if (length >= 0 && t->spec->size && t->at + (uint64_t)length != t->spec->size)
        st = too_much(t, t->at + (uint64_t)length);
    else if (length >= 0 && t->at + (uint64_t)length > t->spec->max) st = too_much(t, t->at + (uint64_t)length);
out:
    return st;
}

static size_t on_bytes(char *data, size_t one, size_t n, void *self)
{
    struct transfer *t = self;
    uint64_t bound = t->spec->size ? t->spec->size : t->spec->max;
    size_t done = 0;
    n *= one;
    if (!t->begun) t->failed = begin_body(t);
    t->begun = 1;
    if (t->failed == FKT_OK && t->at + n > bound) t->failed = too_much(t, t->at + n);
    while (t->failed == FKT_OK && done < n) {
        ssize_t w = write(t->fd, data + done, n - done);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) {
            t->failed = fkt_hint(fkt_fail(FKT_E_IO, "cannot write '%s': %s", t->part, strerror(errno)),
                                 "free some space and run it again: what has arrived is kept");
            break;
        }
        done += (size_t)w;
        t->at += (uint64_t)w;
        t->got += (uint64_t)w;
    }
    return t->failed == FKT_OK ? n : 0;
}

static int on_progress(void *self, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up)
{
    struct transfer *t = self;
    const struct fkt_progress *p = t->spec->how.progress;
    (void)total;
    (void)now;
    (void)up_total;
    (void)up;
    if (t->failed == FKT_OK && p && p->step && p->step(p->self, t->spec->what, t->at, t->spec->size) != 0)
        t->failed = fkt_fail_hint(FKT_E_STOPPED, "run it again: it is resumed", "stopped while %s", t->spec->what);
    return t->failed != FKT_OK;
}

/* One GET, from where we are. FKT_OK: the answer ended as it announced. */
static fkt_status get_once(struct transfer *t)
{
    char detail[CURL_ERROR_SIZE], range[32], condition[TAG_MAX + 16];
    struct curl_slist *headers = NULL;
    CURLcode code;
    long http = 0;
    int bad;
    fkt_status st = FKT_OK;
    t->begun = t->restart = 0;
    t->failed = FKT_OK;
    t->curl = NULL;
    FKT_TRY(fkt_request_new(&t->curl, t->spec->url, &t->spec->how, detail));
    bad = curl_easy_setopt(t->curl, CURLOPT_FOLLOWLOCATION, 1L) ||
          curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_bytes) ||
          curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t) ||
          curl_easy_setopt(t->curl, CURLOPT_XFERINFOFUNCTION, on_progress) ||
          curl_easy_setopt(t->curl, CURLOPT_XFERINFODATA, t) || curl_easy_setopt(t->curl, CURLOPT_NOPROGRESS, 0L);
    if (t->at) {
        snprintf(range, sizeof range, "%llu-", (unsigned long long)t->at);
        snprintf(condition, sizeof condition, "If-Range: %s", t->etag);
        headers = curl_slist_append(NULL, condition);
        bad = bad || !headers || curl_easy_setopt(t->curl, CURLOPT_RANGE, range) ||
              curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, headers);
    }
    if (bad) {
        st = fkt_fail(FKT_E_NOMEM, "libcurl does not take its options");
        goto out;
    }
    code = fkt_request_run(t->curl);
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    if (http == 416) t->restart = 1;
    if (t->failed != FKT_OK) st = t->failed;
    else if (code != CURLE_OK)
        st =
            fkt_hint(fkt_request_fail(t->curl, code, t->spec->url, detail), t->at ? "run it again: it is resumed" : "");
    else if (!t->begun) st = begin_body(t); /* an answer without a body */
out:
    curl_slist_free_all(headers);
    if (t->curl) curl_easy_cleanup(t->curl);
    t->curl = NULL;
    return st;
}

/* As many GETs as needed while they make progress; a few consecutive ones without progress are allowed, after a pause:
 * a reset connection loses the bytes in flight. */
static fkt_status get_all(struct transfer *t)
{
    uint64_t furthest = t->at;
    fkt_status st = FKT_OK;
    int restarted = 0, fruitless = 0;
    while (!(t->at && t->at == t->spec->size)) {
        if (t->at && (!t->etag[0] || !t->spec->sha256)) FKT_TRY(start_over(t));
        st = get_once(t);
        if (st == FKT_OK) break;
        if (t->restart && !restarted) {
            restarted = 1;
            FKT_TRY(start_over(t));
            continue;
        }
        if (st != FKT_E_IO || t->failed != FKT_OK) break;
        if (t->at > furthest) {
            furthest = t->at;
            fruitless = 0;
        } else if (++fruitless == FRUITLESS) break;
        usleep((useconds_t)PAUSE_US << fruitless);
    }
    if (st == FKT_OK && t->spec->size && t->at != t->spec->size) st = too_much(t, t->at);
out:
    return st;
}

static fkt_status hash_part(const struct transfer *t, char out[FKT_FETCH_HASH_HEX])
{
    const struct fkt_progress *p = t->spec->how.progress;
    uint8_t buf[65536];
    struct fkt_hash h;
    uint64_t done = 0;
    ssize_t n;
    fkt_hash_init(&h);
    while ((n = pread(t->fd, buf, sizeof buf, (off_t)done)) > 0) {
        fkt_hash_add(&h, buf, (size_t)n);
        done += (uint64_t)n;
        if (p && p->step && p->step(p->self, "checking", done, t->at) != 0)
            return fkt_fail(FKT_E_STOPPED, "stopped while checking '%s'", t->spec->path);
    }
    if (n < 0 || done != t->at) return fkt_io_fail("read", t->part);
    fkt_hash_hex(&h, out);
    return FKT_OK;
}

/* The part is complete: compares its hash. */
static fkt_status check_part(struct transfer *t, char hash[FKT_FETCH_HASH_HEX])
{
    fkt_status st;
    FKT_TRY(hash_part(t, hash));
    if (t->spec->sha256 && strcmp(hash, t->spec->sha256) != 0) {
        st = fkt_fail(FKT_E_MISMATCH, "'%s' has the wrong SHA-256: %s, not %s", t->spec->url, hash, t->spec->sha256);
        goto out;
    }
out:
    return st;
}

static fkt_status get_and_check(struct transfer *t, char hash[FKT_FETCH_HASH_HEX])
{
    int resumed = t->at > 0;
    fkt_status st;
    FKT_TRY(get_all(t));
    st = check_part(t, hash);
    if (st == FKT_E_MISMATCH && resumed) { /* the earlier bytes may be damaged */
        FKT_TRY(start_over(t));
        FKT_TRY(get_all(t));
        st = check_part(t, hash);
    }
out:
    return st;
}

static fkt_status open_part(struct transfer *t)
{
    size_t n = strlen(t->spec->path) + 16;
    struct stat sb;
    fkt_status st;
    FKT_TRY(fkt_alloc(&t->part, n));
    FKT_TRY(fkt_alloc(&t->tag, n));
    snprintf(t->part, n, "%s.part", t->spec->path);
    snprintf(t->tag, n, "%s.part.tag", t->spec->path);
    t->fd = open(t->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (t->fd < 0 || fstat(t->fd, &sb) != 0) st = fkt_io_fail("write", t->part);
    else if (!S_ISREG(sb.st_mode)) st = fkt_fail(FKT_E_IO, "cannot write '%s': not a regular file", t->part);
    else st = take_up(t);
out:
    return st;
}

fkt_status fkt_fetch(const struct fkt_fetch_spec *spec, struct fkt_fetched *out)
{
    struct transfer t = {.spec = spec, .fd = -1};
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(open_part(&t));
    FKT_TRY(get_and_check(&t, out->sha256));
    if (fsync(t.fd) != 0 || rename(t.part, spec->path) != 0) {
        st = fkt_io_fail("write", spec->path);
        goto out;
    }
    (void)unlink(t.tag);
    (void)fkt_sync_parent(spec->path);
    out->size = t.at;
    out->transferred = t.got;
out:
    if (st == FKT_E_MISMATCH && t.part) { /* not worth resuming */
        (void)unlink(t.part);
        (void)unlink(t.tag);
    }
    if (t.fd >= 0) close(t.fd);
    fkt_free(t.part);
    fkt_free(t.tag);
    return st;
}
