/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - files that are complete or absent (folders: folder.c).
 *
 *   begin: open "<path>.tmp-<pid>-<n>"  ->  caller writes  ->  commit: fflush, fsync, rename, fsync of the folder
 *
 * kill -9 at any moment leaves the old file or the new one under the final name, never a partial one. A full disk is
 * detected at fflush or fsync, before the rename; with fkt_file_reserve, before the first byte is written. */
#include "base/file.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_uint serial;

/* General advice; a caller that knows the purpose of the file gives a better hint. */
static const char *advice(int e, const char *verb)
{
    const int reads = !strcmp(verb, "read") || !strcmp(verb, "open");
    switch (e) {
    case ENOENT: return reads ? "check the name" : "check that its folder exists";
    case ENOTDIR: return "a part of that path is a file, not a folder";
    case EISDIR: return "that is a folder: give the name of a file";
    case EACCES:
    case EPERM:
        return "check the permissions with 'ls -l'; run fedkt as a permitted user, or change them with chmod or chown";
    case EFBIG: return "a limit on file sizes applies: see 'ulimit -f'";
    case EROFS: return "choose a place that is writable";
    case EEXIST: return "move the existing one away, or choose another name";
    default: return "check the disk and the folder, and try again";
    }
}

fkt_status fkt_io_fail(const char *verb, const char *path)
{
    int e = errno;
    if (e == ENOSPC || e == EDQUOT)
        return fkt_fail_hint(FKT_E_IO, "free some space or choose another output folder; nothing was left half-written",
                             "cannot %s '%s': %s", verb, path, strerror(e));
    fkt_fail(FKT_E_IO, "cannot %s '%s': %s", verb, path, strerror(e));
    return fkt_hint_weakly(FKT_E_IO, advice(e, verb));
}

fkt_status fkt_file_read(uint8_t **out, size_t *len, const char *path, size_t max)
{
    FILE *f = NULL;
    uint8_t *buf = NULL;
    struct stat sb;
    fkt_status st = FKT_OK;
    size_t n;
    int fd;

    *out = NULL;
    *len = 0;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* opening a pipe must not block */
    f = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (!f || fstat(fd, &sb) != 0) {
        st = fkt_io_fail("read", path);
        goto out;
    }
    if (!S_ISREG(sb.st_mode)) {
        st = fkt_fail(FKT_E_IO, "cannot read '%s': not a regular file", path);
        goto out;
    }
    if ((uint64_t)sb.st_size > max) {
        st = fkt_fail(FKT_E_FORMAT, "'%s' is too large: %lld bytes, at most %zu", path, (long long)sb.st_size, max);
        goto out;
    }
    n = (size_t)sb.st_size;
    FKT_TRY(fkt_alloc(&buf, n + 1));
    if (fread(buf, 1, n, f) != n) {
        st = ferror(f) ? fkt_io_fail("read", path) : fkt_fail(FKT_E_IO, "'%s' shrank while it was read", path);
        goto out;
    }
    *out = buf;
    *len = n;
    buf = NULL;
out:
    fkt_free(buf);
    if (f) fclose(f);
    else if (fd >= 0) close(fd);
    return st;
}

fkt_status fkt_temp_name(char **out, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    fkt_status st = fkt_alloc(out, n + 48);
    if (st == FKT_OK)
        snprintf(*out, n + 48, "%.*s.tmp-%ld-%u", (int)n, path, (long)getpid(), atomic_fetch_add(&serial, 1));
    return st;
}

/* After a rename nothing may fail, so this allocates nothing. Some file systems cannot sync a folder; that is not an
 * error here. */
int fkt_sync_parent(const char *path)
{
    char dir[4096];
    const char *slash = strrchr(path, '/');
    size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    int fd, bad, e;
    if (n >= sizeof dir) {
        errno = ENAMETOOLONG;
        return -1;
    }
    snprintf(dir, sizeof dir, "%.*s", (int)n, path);
    fd = open(n ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -1;
    bad = fsync(fd) != 0 && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP;
    e = errno;
    close(fd);
    errno = e;
    return bad ? -1 : 0;
}

static fkt_status file_there(const char *path)
{
    return fkt_hint_code(fkt_fail(FKT_E_EXISTS, "'%s' exists already", path), FKT_HINT_EXISTS,
                         "choose another name, or replace it on purpose");
}

static fkt_status check_name_free(const char *path, int flags)
{
    struct stat sb;
    size_t n = strlen(path);
    if (n == 0 || path[n - 1] == '/') return fkt_fail(FKT_E_ARG, "'%s' is not a file name", path);
    if (lstat(path, &sb) != 0) return FKT_OK;
    if (!S_ISREG(sb.st_mode)) /* folders, links, pipes and devices are never replaced, whatever the flags */
        return fkt_fail_hint(FKT_E_EXISTS, "name a file", "'%s' exists and is not a regular file", path);
    if (!(flags & FKT_FILE_REPLACE)) return file_there(path);
    return FKT_OK;
}

fkt_status fkt_file_begin(struct fkt_file *f, const char *path, int flags)
{
    fkt_status st;
    int fd;
    memset(f, 0, sizeof *f);
    f->flags = flags;
    FKT_TRY(check_name_free(path, flags));
    FKT_TRY(fkt_strdup(&f->path, path));
    do { /* a name left behind by a killed run is skipped, never opened */
        fkt_free(f->tmp);
        FKT_TRY(fkt_temp_name(&f->tmp, path));
        fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, flags & FKT_FILE_PRIVATE ? 0600 : 0666);
    } while (fd < 0 && errno == EEXIST);
    if (fd >= 0) f->stream = fdopen(fd, "wb");
    if (!f->stream) {
        st = fkt_io_fail("write", path);
        if (fd >= 0) {
            close(fd);
            unlink(f->tmp);
        }
    }
out:
    if (st != FKT_OK) fkt_file_clear(f);
    return st;
}

/* Where a file system cannot allocate without writing, zeros are written. Returns an errno, 0 on success. */
static int fill(int fd, uint64_t bytes)
{
    static const char zeros[1 << 16];
    for (uint64_t at = 0; at < bytes;) {
        const size_t n = bytes - at < sizeof zeros ? (size_t)(bytes - at) : sizeof zeros;
        const ssize_t did = pwrite(fd, zeros, n, (off_t)at);
        if (did < 0 && errno != EINTR) return errno;
        at += did > 0 ? (uint64_t)did : 0;
    }
    return fsync(fd) != 0 ? errno : 0; /* delayed allocation fails here */
}

fkt_status fkt_file_reserve(struct fkt_file *f, uint64_t bytes)
{
    int e = bytes > INT64_MAX ? EFBIG : fallocate(fileno(f->stream), 0, 0, (off_t)bytes) != 0 ? errno : 0;
    if (e == EOPNOTSUPP || e == ENOSYS) e = fill(fileno(f->stream), bytes);
    f->reserved = 1;
    errno = e;
    return e ? fkt_io_fail("write", f->path) : FKT_OK;
}

/* Everything is written; space reserved beyond it is released. */
static int finish(struct fkt_file *f)
{
    if (fflush(f->stream) != 0 || ferror(f->stream)) return -1;
    if (f->reserved && ftruncate(fileno(f->stream), ftello(f->stream)) != 0) return -1;
    return fsync(fileno(f->stream));
}

/* Without FKT_FILE_REPLACE a file that appeared since begin must not be overwritten either. */
static int move_into_place(const struct fkt_file *f)
{
    if (!(f->flags & FKT_FILE_REPLACE)) {
        if (renameat2(AT_FDCWD, f->tmp, AT_FDCWD, f->path, RENAME_NOREPLACE) == 0) return 0;
        if (errno != EINVAL && errno != ENOSYS) return -1; /* these two: the file system does not support it */
        if (link(f->tmp, f->path) == 0) return unlink(f->tmp);
        if (errno == EEXIST || f->flags & FKT_FILE_FIRST) return -1;
    }
    return rename(f->tmp, f->path);
}

static fkt_status move_error(const struct fkt_file *f)
{
    fkt_status st;
    if (errno == EEXIST) return file_there(f->path);
    st = fkt_io_fail("write", f->path);
    if (f->flags & FKT_FILE_FIRST)
        fkt_hint(st, "choose a place on another file system: this one cannot create a file exclusively");
    return st;
}

fkt_status fkt_file_commit(struct fkt_file *f)
{
    fkt_status st = FKT_OK;
    if (finish(f) != 0) st = fkt_io_fail("write", f->path);
    if (fclose(f->stream) != 0 && st == FKT_OK) st = fkt_io_fail("write", f->path);
    f->stream = NULL;
    if (st == FKT_OK && move_into_place(f) != 0) st = move_error(f);
    if (st == FKT_OK) (void)fkt_sync_parent(f->path);
    else unlink(f->tmp);
    fkt_free(f->tmp);
    f->tmp = NULL;
    fkt_file_clear(f);
    return st;
}

void fkt_file_clear(struct fkt_file *f)
{
    if (f->stream) {
        fclose(f->stream);
        unlink(f->tmp);
    }
    fkt_free(f->path);
    fkt_free(f->tmp);
    memset(f, 0, sizeof *f);
}

fkt_status fkt_file_write(const char *path, const void *data, size_t len, int flags)
{
    struct fkt_file f;
    fkt_status st = fkt_file_begin(&f, path, flags);
    if (st != FKT_OK) return st;
    if (fwrite(data, 1, len, f.stream) != len) {
        st = fkt_io_fail("write", path);
        fkt_file_clear(&f);
        return st;
    }
    return fkt_file_commit(&f);
}

fkt_status fkt_mkdir(const char *path, unsigned mode)
{
    if (mkdir(path, (mode_t)mode) != 0) return errno == EEXIST ? FKT_OK : fkt_io_fail("make folder", path);
    return fkt_sync_parent(path) == 0 ? FKT_OK : fkt_io_fail("make folder", path);
}

fkt_status fkt_mkdirs(const char *path)
{
    char *p = NULL;
    fkt_status st;
    FKT_TRY(fkt_strdup(&p, path));
    if (!*p) goto out;
    for (char *s = p + 1;; s++) {
        char c = *s;
        if (c != '/' && c != '\0') continue;
        *s = '\0';
        FKT_TRY(fkt_mkdir(p, 0777));
        *s = c;
        if (c == '\0') break;
    }
out:
    fkt_free(p);
    return st;
}

fkt_status fkt_path_join(char **out, const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    fkt_status st = fkt_alloc(out, n);
    if (st == FKT_OK) snprintf(*out, n, "%s%s%s", dir, !*dir || dir[strlen(dir) - 1] == '/' ? "" : "/", name);
    return st;
}

fkt_status fkt_spool(int *fd)
{
    const char *dir = getenv("TMPDIR");
    char *path = NULL;
    fkt_status st = fkt_path_join(&path, dir && *dir ? dir : "/tmp", "fedkt-spool-XXXXXX");
    *fd = -1;
    if (st != FKT_OK) return st;
    *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0) st = fkt_io_fail("make a temporary file", path);
    else unlink(path);
    fkt_free(path);
    return st;
}
