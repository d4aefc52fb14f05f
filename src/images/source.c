/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - bytes at offsets, whatever they were packed in.
 *
 * Images are read in any order and from several threads, which a compressed stream cannot give. So a compressed file is
 * unpacked once, into an unlinked temporary file (base/file.h, fkt_spool), and from then on everything is pread: memory
 * stays flat, and there is no shared file position. libarchive's filters must be compiled in; those that would start an
 * outside program are not used.
 *
 * A few bytes can unpack to terabytes. So a file may unpack to at most 256 times its size plus 64 MiB, and a file that
 * was compressed twice is refused: image datasets reach a factor of some tens. The limit belongs to the file, so that a
 * zip inside a gzip shares it. */
#include "images/source.h"

#include "base/alloc.h"
#include "base/file.h"
#include "images/dataset.h"
#include "images/decode.h"

#include <archive.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNPACK_FACTOR 256U
#define UNPACK_FREE (64ULL << 20)

void fkt_source_init(struct fkt_source *s)
{
    s->fd = -1;
    s->size = s->room = 0;
}

void fkt_source_close(struct fkt_source *s)
{
    if (s->fd >= 0) close(s->fd);
    fkt_source_init(s);
}

fkt_status fkt_source_read(const struct fkt_source *s, uint64_t at, void *out, size_t len)
{
    uint8_t *p = out;
    if (at > s->size || len > s->size - at) return fkt_fail(FKT_E_FORMAT, "the file ends too early");
    while (len) {
        ssize_t n = pread(s->fd, p, len, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fkt_fail(FKT_E_IO, "%s", strerror(errno));
        if (n == 0) return fkt_fail(FKT_E_IO, "the file shrank while it was read");
        p += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return FKT_OK;
}

fkt_status fkt_source_append(struct fkt_source *s, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len) {
        ssize_t n = pwrite(s->fd, p, len, (off_t)s->size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return fkt_fail_hint(
                FKT_E_IO,
                "unpacking needs disk space: point TMPDIR at a folder with more space, or unpack the file yourself",
                "cannot write a temporary file: %s", strerror(errno));
        p += n;
        s->size += (uint64_t)n;
        len -= (size_t)n;
    }
    return FKT_OK;
}

fkt_status fkt_source_append_entry(struct fkt_source *s, struct archive *a, struct fkt_source *from, const char *path)
{
    const size_t cap = 1U << 18;
    uint8_t *buf = NULL;
    fkt_status st = FKT_OK;
    FKT_TRY(fkt_alloc(&buf, cap));
    for (;;) {
        la_ssize_t n = archive_read_data(a, buf, cap);
        if (n < 0) {
            const char *why = archive_error_string(a);
            st = fkt_fail(FKT_E_FORMAT, "cannot unpack '%s': %s", path, why ? why : "damaged data");
            break;
        }
        if (n == 0) break;
        if ((uint64_t)n > from->room) {
            st = fkt_fail_hint(FKT_E_FORMAT, "if the file is sound, store it uncompressed",
                               "'%s' unpacks to more than %u times its size: it looks like a decompression bomb", path,
                               UNPACK_FACTOR);
            break;
        }
        from->room -= (uint64_t)n;
        FKT_TRY(fkt_source_append(s, buf, (size_t)n));
    }
out:
    fkt_free(buf);
    return st;
}

static int is_packed(const uint8_t head[6])
{
    static const uint8_t gzip[] = {0x1f, 0x8b}, xz[] = {0xfd, '7', 'z', 'X', 'Z', 0}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    return !memcmp(head, gzip, sizeof gzip) || !memcmp(head, xz, sizeof xz) || !memcmp(head, zstd, sizeof zstd) ||
           (!memcmp(head, "BZh", 3) && head[3] >= '1' && head[3] <= '9');
}

static fkt_status unpack(struct fkt_source *s, const char *path)
{
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    struct fkt_source spool;
    fkt_status st = FKT_OK;
    fkt_source_init(&spool);
    if (!a) return fkt_fail(FKT_E_NOMEM, "out of memory in the archive library");
    /* ARCHIVE_WARN: would start an outside program */
    if (archive_read_support_filter_gzip(a) != ARCHIVE_OK || archive_read_support_filter_xz(a) != ARCHIVE_OK ||
        archive_read_support_filter_zstd(a) != ARCHIVE_OK || archive_read_support_filter_bzip2(a) != ARCHIVE_OK ||
        archive_read_support_format_raw(a) != ARCHIVE_OK) {
        st = fkt_fail_hint(FKT_E_IO, "unpack it yourself",
                           "cannot unpack '%s': the archive library was built without its filters", path);
        goto out;
    }
    if (lseek(s->fd, 0, SEEK_SET) != 0 || archive_read_open_fd(a, s->fd, 1U << 16) != ARCHIVE_OK ||
        archive_read_next_header(a, &e) != ARCHIVE_OK) {
        const char *why = archive_error_string(a);
        st = fkt_fail(FKT_E_FORMAT, "cannot unpack '%s': %s", path, why ? why : "it is empty");
        goto out;
    }
    if (archive_filter_count(a) > 2) { /* the file itself counts as one */
        st = fkt_fail_hint(FKT_E_FORMAT, "unpack it yourself", "'%s' is packed more than once", path);
        goto out;
    }
    FKT_TRY(fkt_spool(&spool.fd));
    FKT_TRY(fkt_source_append_entry(&spool, a, s, path));
    spool.room = s->room;
    close(s->fd);
    *s = spool;
    fkt_source_init(&spool);
out:
    archive_read_free(a);
    fkt_source_close(&spool);
    return st;
}

fkt_status fkt_source_open_plain(struct fkt_source *s, const char *path)
{
    struct stat sb;
    fkt_status st = FKT_OK;
    fkt_source_init(s);
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not block */
    if (s->fd < 0 && (errno == EMFILE || errno == ENFILE))
        st = fkt_fail_hint(FKT_E_IO, "raise the limit (ulimit -n), or join the tars: each stays open while it is read",
                           "%s", strerror(errno));
    else if (s->fd < 0 || fstat(s->fd, &sb) != 0) st = fkt_fail(FKT_E_IO, "%s", strerror(errno));
    else if (!S_ISREG(sb.st_mode)) st = fkt_fail(FKT_E_IO, "not a regular file");
    else s->size = (uint64_t)sb.st_size;
    s->room = s->size > UINT64_MAX / (2 * UNPACK_FACTOR) ? UINT64_MAX : s->size * UNPACK_FACTOR + UNPACK_FREE;
    if (st != FKT_OK) fkt_source_close(s);
    return st;
}

fkt_status fkt_source_open(struct fkt_source *s, const char *path)
{
    uint8_t head[6];
    fkt_status st = fkt_source_open_plain(s, path);
    if (st == FKT_OK && s->size >= sizeof head) st = fkt_source_read(s, 0, head, sizeof head);
    if (st != FKT_OK) {
        fkt_source_close(s);
        return fkt_fail_in(st, "cannot read '%s'", path);
    }
    if (s->size >= sizeof head && is_packed(head)) st = unpack(s, path);
    if (st != FKT_OK) fkt_source_close(s);
    return st;
}

fkt_status fkt_source_stored(const struct fkt_source *s, uint64_t at, uint64_t size, struct fkt_stored *out)
{
    fkt_status st;
    if (size > FKT_IMAGE_MAX_FILE)
        return fkt_fail(FKT_E_FORMAT, "the file is too large: %llu bytes", (unsigned long long)size);
    st = fkt_stored_reserve(out, (size_t)size);
    return st == FKT_OK ? fkt_source_read(s, at, out->bytes, (size_t)size) : st;
}

fkt_status fkt_source_decode(const struct fkt_source *s, uint64_t at, uint64_t size, unsigned bits, uint8_t **rgb,
                             uint32_t *w, uint32_t *h, struct fkt_facts *facts)
{
    struct fkt_stored data = {0};
    fkt_status st = FKT_OK;
    FKT_TRY(fkt_source_stored(s, at, size, &data));
    FKT_TRY(fkt_image_decode_memory(data.bytes, data.len, bits, rgb, w, h, facts));
out:
    fkt_free(data.bytes);
    return st;
}

/* The sum of a tar header's bytes with its checksum field read as blanks, against the octal number in that field. */
static int is_tar_header(const uint8_t *h)
{
    unsigned long sum = 0, want = 0;
    int digits = 0;
    for (int i = 0; i < 512; i++) sum += i >= 148 && i < 156 ? ' ' : h[i];
    for (int i = 148; i < 156; i++) {
        if (h[i] >= '0' && h[i] <= '7') {
            want = want * 8 + (unsigned long)(h[i] - '0');
            digits++;
        } else if (digits) {
            break;
        }
    }
    return digits > 0 && sum == want;
}

fkt_status fkt_source_kind(const struct fkt_source *s, enum fkt_kind *kind)
{
    uint8_t head[512] = {0};
    fkt_status st = fkt_source_read(s, 0, head, s->size < sizeof head ? (size_t)s->size : sizeof head);
    *kind = FKT_KIND_UNKNOWN;
    if (st != FKT_OK) return st;
    if (s->size >= sizeof head && is_tar_header(head)) *kind = FKT_KIND_TAR;
    else if (s->size >= 4 && !memcmp(head, "PK\3\4", 4)) *kind = FKT_KIND_ZIP;
    else if (s->size >= 4 && head[0] == 0 && head[1] == 0 && head[2] == 8 && (head[3] == 3 || head[3] == 1))
        *kind = FKT_KIND_IDX;
    return FKT_OK;
}
