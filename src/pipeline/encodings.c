/* SPDX-License-Identifier: Apache-2.0 */
/* encodings.c - a folder that keeps latents by the content of their images, so that no image is encoded twice.
 *
 *   folder (0700)/KIND-0.encodings, KIND-1.encodings ... (0600)
 *   file:  "FKTENC1\n", D as four bytes, four of zero, SHA-256 of the kind's text (32), then rows
 *   row:   SHA-256 of the original image (32), z (4 D), the first 8 bytes of SHA-256 over both
 *
 * The kind's text has everything that the bits of a latent depend on beside the pixels: codec identity (weights, size),
 * dtype, low memory, filter, fit, instruction set or card, libraries, version. So a latent that is found is, bit for
 * bit, the one that would be computed, and another codec, size or weight never finds it. Rows have one length and are
 * written whole, batch by batch: an interrupted run, even one that was killed, keeps what it wrote, and half a row at
 * the end is overwritten by the next writer. A row whose checksum, digest or numbers are wrong counts as absent; the
 * image is encoded again and its row appended, and the last row of an image counts.
 *
 * A process writes to the first file of the kind that it can lock, else to a new one; files are never shortened and
 * rows never moved, so others may read meanwhile. PRIVATE: latents are as secret as the images. The folder and its
 * files must belong to the user and be closed to others, or nothing is read or written.
 *
 * Cost: 40 + 4 D bytes on disk and some 40 bytes of memory an image; one read of a row for an image that is found. */
#include "pipeline/encodings.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "base/file.h"
#include "base/text.h"
#include "base/wipe.h"
#include "codec/codec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAGIC "FKTENC1\n"
enum { HEAD = 48, CHECK = 8, NAME = 16, FILES_MAX = 64, TABLE_MIN = 1024 };

struct entry {     /* of a table with open addressing */
    uint64_t key;  /* the digest's first bytes */
    uint32_t file; /* which of the files */
    uint32_t row;  /* 1 is its first row; 0: nothing here */
};

struct fkt_encodings_kind {
    struct fkt_encodings *of;
    struct fkt_encodings_kind *next;
    uint8_t name[FKT_HASH_BYTES];
    char stem[NAME + 1];
    uint32_t dim;
    size_t row; /* bytes */
    int fd[FILES_MAX];
    uint32_t files;
    int out;       /* the file that this process writes to; -1: none yet */
    uint32_t rows; /* of that one */
    struct entry *table;
    size_t cap, used;
    pthread_mutex_t lock;
};

struct fkt_encodings {
    char *folder;
    pthread_mutex_t lock; /* guards the list of kinds */
    struct fkt_encodings_kind *kinds;
    atomic_ullong found, made;
};

/* ---- what is allowed ---- */

static fkt_status check_owner(const struct stat *sb, const char *path, const char *mode)
{
    char hint[64];
    snprintf(hint, sizeof hint, "name a folder of your own, or: chmod %s", mode);
    if (sb->st_uid != geteuid())
        return fkt_fail_hint(FKT_E_IO, "name a folder of your own", "'%s' belongs to another user", path);
    if (sb->st_mode & 077)
        return fkt_fail_hint(FKT_E_IO, hint, "'%s' keeps private encodings and is open to others (mode %o)", path,
                             (unsigned)(sb->st_mode & 07777));
    return FKT_OK;
}

fkt_status fkt_encodings_open(struct fkt_encodings **out, const char *folder)
{
    struct fkt_encodings *e = NULL;
    struct stat sb;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_mkdir(folder, 0700));
    if (lstat(folder, &sb) != 0) return fkt_io_fail("read", folder);
    if (!S_ISDIR(sb.st_mode))
        return fkt_fail_hint(FKT_E_IO, "name a folder, not a link or a file", "'%s' is not a folder for encodings",
                             folder);
    FKT_TRY(check_owner(&sb, folder, "700"));
    FKT_TRY(fkt_alloc(&e, 1));
    pthread_mutex_init(&e->lock, NULL);
    *out = e;
    st = fkt_strdup(&e->folder, folder);
    if (st != FKT_OK) fkt_encodings_close(e), *out = NULL;
out:
    return st;
}

static void kind_free(struct fkt_encodings_kind *k)
{
    for (uint32_t i = 0; i < k->files; i++) close(k->fd[i]);
    pthread_mutex_destroy(&k->lock);
    fkt_free(k->table);
    fkt_free(k);
}

void fkt_encodings_close(struct fkt_encodings *e)
{
    if (!e) return;
    for (struct fkt_encodings_kind *k = e->kinds, *next; k; k = next) {
        next = k->next;
        kind_free(k);
    }
    pthread_mutex_destroy(&e->lock);
    fkt_free(e->folder);
    fkt_free(e);
}

void fkt_encodings_count(const struct fkt_encodings *e, uint64_t *found, uint64_t *made)
{
    *found = atomic_load(&((struct fkt_encodings *)e)->found);
    *made = atomic_load(&((struct fkt_encodings *)e)->made);
}

/* ---- the table ---- */

static uint64_t key_of(const uint8_t *digest)
{
    uint64_t key;
    memcpy(&key, digest, sizeof key);
    return key;
}

/* The place of a key, or the free one where it would go. */
static struct entry *spot(const struct fkt_encodings_kind *k, uint64_t key)
{
    size_t at = (size_t)key & (k->cap - 1);
    while (k->table[at].row && k->table[at].key != key) at = (at + 1) & (k->cap - 1);
    return &k->table[at];
}

static fkt_status grow(struct fkt_encodings_kind *k)
{
    struct entry *old = k->table;
    size_t cap = k->cap;
    fkt_status st;
    if (k->cap && k->used < k->cap / 2) return FKT_OK;
    k->table = NULL;
    st = fkt_alloc(&k->table, cap ? 2 * cap : TABLE_MIN);
    if (st != FKT_OK) {
        k->table = old;
        return st;
    }
    k->cap = cap ? 2 * cap : TABLE_MIN;
    for (size_t i = 0; i < cap; i++)
        if (old[i].row) *spot(k, old[i].key) = old[i];
    fkt_free(old);
    return FKT_OK;
}

static fkt_status remember(struct fkt_encodings_kind *k, const uint8_t *digest, uint32_t file, uint32_t row)
{
    struct entry *e;
    fkt_status st = grow(k);
    if (st != FKT_OK) return st;
    e = spot(k, key_of(digest));
    k->used += !e->row;
    *e = (struct entry){key_of(digest), file, row + 1};
    return FKT_OK;
}

/* ---- files ---- */

static void head_of(const struct fkt_encodings_kind *k, uint8_t head[HEAD])
{
    memset(head, 0, HEAD);
    memcpy(head, MAGIC, 8);
    for (int i = 0; i < 4; i++) head[8 + i] = (uint8_t)(k->dim >> 8 * i);
    memcpy(head + 16, k->name, sizeof k->name);
}

static int pread_all(int fd, void *out, size_t n, off_t at)
{
    uint8_t *p = out;
    while (n) {
        ssize_t got = pread(fd, p, n, at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        p += got;
        at += got;
        n -= (size_t)got;
    }
    return 1;
}

static uint64_t rows_in(const struct fkt_encodings_kind *k, int fd)
{
    struct stat sb;
    uint64_t n = fstat(fd, &sb) == 0 && sb.st_size > HEAD ? ((uint64_t)sb.st_size - HEAD) / k->row : 0;
    return n < UINT32_MAX ? n : UINT32_MAX - 1;
}

/* One file of the kind; a file of another kind is skipped. */
static fkt_status read_file(struct fkt_encodings_kind *k, const char *path)
{
    uint8_t head[HEAD], found[HEAD], digest[FKT_HASH_BYTES];
    struct stat sb;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    fkt_status st = FKT_OK;
    if (fd < 0 || fstat(fd, &sb) != 0) {
        st = fkt_io_fail("read", path);
        goto out;
    }
    FKT_TRY(check_owner(&sb, path, "600"));
    head_of(k, head);
    if (!S_ISREG(sb.st_mode) || !pread_all(fd, found, HEAD, 0) || memcmp(head, found, HEAD) != 0) goto out;
    for (uint64_t i = 0, n = rows_in(k, fd); i < n; i++)
        if (pread_all(fd, digest, sizeof digest, (off_t)(HEAD + i * k->row)))
            FKT_TRY(remember(k, digest, k->files, (uint32_t)i));
    k->fd[k->files++] = fd;
    fd = -1;
out:
    if (fd >= 0) close(fd);
    return st;
}

static fkt_status file_name(const struct fkt_encodings_kind *k, unsigned i, char **path)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%u.encodings", k->stem, i);
    return fkt_path_join(path, k->of->folder, name);
}

/* Files are numbered without a gap, so that all are found by trying. */
static fkt_status read_files(struct fkt_encodings_kind *k)
{
    struct stat sb;
    fkt_status st = FKT_OK;
    for (unsigned i = 0; i < FILES_MAX && st == FKT_OK; i++) {
        char *path = NULL;
        st = file_name(k, i, &path);
        if (st == FKT_OK && lstat(path, &sb) != 0) i = FILES_MAX;
        else if (st == FKT_OK) st = read_file(k, path);
        fkt_free(path);
    }
    return st;
}

/* A new file with a free number; FKT_E_EXISTS when there are too many. */
static fkt_status new_file(struct fkt_encodings_kind *k)
{
    uint8_t head[HEAD];
    char *path = NULL;
    int fd = -1;
    fkt_status st = FKT_OK;
    head_of(k, head);
    for (unsigned i = 0; fd < 0 && i < FILES_MAX && k->files < FILES_MAX; i++) {
        fkt_free(path);
        path = NULL;
        FKT_TRY(file_name(k, i, &path));
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd < 0 && path && errno != EEXIST) st = fkt_io_fail("write", path);
    else if (fd < 0)
        st = fkt_fail_hint(FKT_E_EXISTS, "remove the folder, or name another", "'%s' holds too many files",
                           k->of->folder);
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0 || pwrite(fd, head, HEAD, 0) != HEAD) st = fkt_io_fail("write", path);
    if (st == FKT_OK) {
        k->out = (int)k->files;
        k->rows = 0;
        k->fd[k->files++] = fd;
        fd = -1;
    }
out:
    if (fd >= 0) close(fd);
    fkt_free(path);
    return st;
}

/* The first file that no other process writes to. Rows that another process added meanwhile stay. */
static fkt_status choose_file(struct fkt_encodings_kind *k)
{
    for (uint32_t i = 0; i < k->files && k->out < 0; i++)
        if (flock(k->fd[i], LOCK_EX | LOCK_NB) == 0) {
            k->out = (int)i;
            k->rows = (uint32_t)rows_in(k, k->fd[i]);
        }
    return k->out >= 0 ? FKT_OK : new_file(k);
}

/* ---- kinds ---- */

static fkt_status describe(struct fkt_encodings_kind *k, const struct fkt_codec *codec, enum fkt_filter filter,
                           enum fkt_fit fit)
{
    struct fkt_text t;
    struct fkt_hash h;
    struct fkt_device_facts f;
    const struct fkt_device device = fkt_codec_device_used(codec);
    fkt_status st;
    fkt_text_init(&t);
    FKT_TRY(fkt_device_describe(device, &f));
    fkt_text_addf(&t, "fedkt.encodings/1\n%s\n%s\n%s%s\nfilter %d fit %d\n%s %s\n", FKT_VERSION,
                  fkt_codec_identity(codec), fkt_codec_dtype_name(fkt_codec_dtype_used(codec)),
                  codec->low_memory ? " low-memory" : "", (int)filter, (int)fit, f.capability, f.libraries);
    /* cards of one model agree; a driver may compile kernels */
    if (device.kind == FKT_DEVICE_CUDA) fkt_text_addf(&t, "cuda %s %s\n", f.name, f.driver);
    FKT_TRY(fkt_text_status(&t));
    fkt_hash_init(&h);
    fkt_hash_add(&h, t.s, strlen(t.s));
    fkt_hash_end(&h, k->name);
    fkt_hex(k->stem, k->name, NAME / 2);
    k->dim = fkt_codec_dim(codec);
    k->row = FKT_HASH_BYTES + (size_t)k->dim * sizeof(float) + CHECK;
out:
    fkt_text_clear(&t);
    return st;
}

fkt_status fkt_encodings_of(struct fkt_encodings *e, const struct fkt_codec *codec, enum fkt_filter filter,
                            enum fkt_fit fit, struct fkt_encodings_kind **out)
{
    struct fkt_encodings_kind *k = NULL, *have;
    fkt_status st;
    *out = NULL;
    pthread_mutex_lock(&e->lock);
    FKT_TRY(fkt_alloc(&k, 1));
    pthread_mutex_init(&k->lock, NULL);
    k->of = e;
    k->out = -1;
    FKT_TRY(describe(k, codec, filter, fit));
    for (have = e->kinds; have && memcmp(have->name, k->name, sizeof k->name) != 0;) have = have->next;
    if (!have) {
        FKT_TRY(grow(k));
        FKT_TRY(read_files(k));
        k->next = e->kinds;
        e->kinds = have = k;
        k = NULL;
    }
    *out = have;
out:
    if (k) kind_free(k);
    pthread_mutex_unlock(&e->lock);
    return st;
}

/* ---- rows ---- */

static void checksum(uint8_t out[CHECK], const uint8_t *digest, const float *z, uint32_t dim)
{
    uint8_t whole[FKT_HASH_BYTES];
    struct fkt_hash h;
    fkt_hash_init(&h);
    fkt_hash_add(&h, digest, FKT_HASH_BYTES);
    fkt_hash_add(&h, z, dim * sizeof *z);
    fkt_hash_end(&h, whole);
    memcpy(out, whole, CHECK);
}

int fkt_encodings_find(struct fkt_encodings_kind *k, const struct fkt_digest *image, float *z)
{
    uint8_t digest[FKT_HASH_BYTES], check[CHECK], want[CHECK];
    struct iovec part[3] = {{digest, sizeof digest}, {z, k->dim * sizeof *z}, {check, CHECK}};
    struct entry e;
    int fd;
    pthread_mutex_lock(&k->lock);
    e = *spot(k, key_of(image->bytes));
    fd = e.row ? k->fd[e.file] : -1;
    pthread_mutex_unlock(&k->lock);
    if (fd < 0 || preadv(fd, part, 3, (off_t)(HEAD + (size_t)(e.row - 1) * k->row)) != (ssize_t)k->row) return 0;
    checksum(want, digest, z, k->dim);
    if (memcmp(digest, image->bytes, sizeof digest) != 0 || memcmp(check, want, CHECK) != 0) return 0;
    for (uint32_t j = 0; j < k->dim; j++)
        if (!isfinite(z[j])) return 0;
    atomic_fetch_add(&k->of->found, 1);
    return 1;
}

static fkt_status write_rows(struct fkt_encodings_kind *k, const uint8_t *rows, size_t len)
{
    off_t at = (off_t)(HEAD + (size_t)k->rows * k->row);
    while (len) {
        ssize_t n = pwrite(k->fd[k->out], rows, len, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return fkt_fail_hint(FKT_E_IO, "free some space, or keep encodings elsewhere; the stored ones stay",
                                 "cannot write encodings to '%s': %s", k->of->folder, strerror(errno));
        rows += n;
        at += n;
        len -= (size_t)n;
    }
    return FKT_OK;
}

fkt_status fkt_encodings_keep(struct fkt_encodings_kind *k, const struct fkt_digest *images, const float *z, size_t n)
{
    uint8_t *rows = NULL;
    fkt_status st;
    if (!n) return FKT_OK;
    pthread_mutex_lock(&k->lock);
    FKT_TRY(fkt_alloc(&rows, n * k->row));
    if (k->out < 0) FKT_TRY(choose_file(k));
    for (size_t i = 0; i < n; i++) {
        uint8_t *r = rows + i * k->row;
        memcpy(r, images[i].bytes, FKT_HASH_BYTES);
        memcpy(r + FKT_HASH_BYTES, z + i * k->dim, k->dim * sizeof *z);
        checksum(r + k->row - CHECK, images[i].bytes, z + i * k->dim, k->dim);
    }
    FKT_TRY(write_rows(k, rows, n * k->row));
    for (size_t i = 0; i < n; i++) FKT_TRY(remember(k, images[i].bytes, (uint32_t)k->out, k->rows + (uint32_t)i));
    k->rows += (uint32_t)n;
    atomic_fetch_add(&k->of->made, n);
out:
    pthread_mutex_unlock(&k->lock);
    fkt_free_secret(rows);
    return st;
}
