/* SPDX-License-Identifier: Apache-2.0 */
/* partial.c - images of an unfinished run in one file of fixed steps.
 *
 *   32 bytes "fedkt partial images 1\n", zeros | 32 bytes SHA-256 of the key | images: pixels, then 8 bytes
 *
 * The 8 bytes are the first of the SHA-256 of (the key's hash, the image's number, its pixels): after a kill or a power
 * failure the images up to the first that does not agree are used, and the rest is written again. A lock keeps a second
 * process out; the system releases it when its owner dies. */
#include "pipeline/partial.h"

#include "base/alloc.h"
#include "base/file.h"
#include "crypto/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC = 32, HEAD = 2 * 32, CHECK = 8 };
static const char magic[MAGIC] = "fedkt partial images 1\n";

struct fkt_partial {
    char *path;
    uint8_t head[HEAD];
    uint8_t *one; /* (bytes + CHECK) */
    size_t bytes; /* of an image */
    uint64_t count;
    int fd, ours; /* 1: locked, and its head is written */
};

static int read_all(int fd, void *to, size_t n, uint64_t at)
{
    for (char *p = to; n;) {
        const ssize_t got = pread(fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        p += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return 1;
}

static int write_all(int fd, const void *from, size_t n, uint64_t at)
{
    for (const char *p = from; n;) {
        const ssize_t put = pwrite(fd, p, n, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return 0;
        p += put;
        at += (uint64_t)put;
        n -= (size_t)put;
    }
    return 1;
}

static uint64_t place(const struct fkt_partial *p, uint64_t i) { return HEAD + i * (p->bytes + CHECK); }

static void checksum(const struct fkt_partial *p, uint64_t number, const uint8_t *rgb, uint8_t out[CHECK])
{
    uint8_t sum[FKT_HASH_BYTES];
    struct fkt_hash h;
    fkt_hash_init(&h);
    fkt_hash_add(&h, p->head + MAGIC, HEAD - MAGIC);
    fkt_hash_add_u64(&h, number);
    fkt_hash_add(&h, rgb, p->bytes);
    fkt_hash_end(&h, sum);
    memcpy(out, sum, CHECK);
}

static int load_one(struct fkt_partial *p, uint64_t i)
{
    uint8_t want[CHECK];
    if (!read_all(p->fd, p->one, p->bytes + CHECK, place(p, i))) return 0;
    checksum(p, i, p->one, want);
    return !memcmp(want, p->one + p->bytes, CHECK);
}

static fkt_status begin(struct fkt_partial *p, int force)
{
    uint8_t head[HEAD];
    struct stat sb;
    if (fstat(p->fd, &sb) != 0) return fkt_io_fail("read", p->path);
    if (sb.st_size && (!read_all(p->fd, head, MAGIC, 0) || memcmp(head, magic, MAGIC) != 0))
        return fkt_fail(FKT_E_EXISTS, "'%s' is in the way: it does not hold images of an unfinished run", p->path);
    if (read_all(p->fd, head, HEAD, 0) && !memcmp(head, p->head, HEAD)) {
        while (load_one(p, p->count)) p->count++;
    } else if (sb.st_size > HEAD && !force) {
        return fkt_hint_code(
            fkt_fail(FKT_E_EXISTS, "'%s' holds images of an unfinished run with other options", p->path),
            FKT_HINT_PARTIAL, "repeat that run, or replace it on purpose");
    }
    if (ftruncate(p->fd, (off_t)place(p, p->count)) != 0 || !write_all(p->fd, p->head, HEAD, 0))
        return fkt_io_fail("write", p->path);
    p->ours = 1;
    return FKT_OK;
}

fkt_status fkt_partial_open(struct fkt_partial **out, const char *folder, const char *key, size_t image_bytes,
                            int force)
{
    struct fkt_partial *p = NULL;
    size_t n = strlen(folder);
    struct fkt_hash h;
    fkt_status st;
    *out = NULL;
    while (n > 1 && folder[n - 1] == '/') n--;
    FKT_TRY(fkt_alloc(&p, 1));
    p->fd = -1;
    p->bytes = image_bytes;
    FKT_TRY(fkt_alloc(&p->one, image_bytes + CHECK));
    FKT_TRY(fkt_alloc(&p->path, n + sizeof ".partial"));
    memcpy(p->path, folder, n);
    memcpy(p->path + n, ".partial", sizeof ".partial");
    memcpy(p->head, magic, MAGIC);
    fkt_hash_init(&h);
    fkt_hash_add(&h, key, strlen(key));
    fkt_hash_end(&h, p->head + MAGIC);
    p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (p->fd < 0) {
        st = fkt_io_fail("write", p->path);
        goto out;
    }
    if (flock(p->fd, LOCK_EX | LOCK_NB) != 0) {
        st = fkt_fail(FKT_E_EXISTS, "'%s' is being written by another process", p->path);
        goto out;
    }
    FKT_TRY(begin(p, force));
    *out = p;
    return FKT_OK;
out:
    fkt_partial_free(p);
    return st;
}

uint64_t fkt_partial_count(const struct fkt_partial *p) { return p->count; }

fkt_status fkt_partial_read(struct fkt_partial *p, uint64_t at, uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (at + i >= p->count || !load_one(p, at + i))
            return fkt_fail(FKT_E_IO, "'%s' was changed while it was read", p->path);
        memcpy(rgb + i * p->bytes, p->one, p->bytes);
    }
    return FKT_OK;
}

fkt_status fkt_partial_add(struct fkt_partial *p, const uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(p->one, rgb + i * p->bytes, p->bytes);
        checksum(p, p->count, p->one, p->one + p->bytes);
        if (!write_all(p->fd, p->one, p->bytes + CHECK, place(p, p->count))) return fkt_io_fail("write", p->path);
        p->count++;
    }
    return FKT_OK;
}

void fkt_partial_remove(struct fkt_partial *p)
{
    if (p) (void)unlink(p->path);
    if (p) p->ours = 0;
}

void fkt_partial_free(struct fkt_partial *p)
{
    if (!p) return;
    if (p->fd >= 0) {
        if (p->ours && !p->count) (void)unlink(p->path);
        (void)close(p->fd);
    }
    fkt_free(p->path);
    fkt_free(p->one);
    fkt_free(p);
}
