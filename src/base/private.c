/* SPDX-License-Identifier: Apache-2.0 */
/* private.c - checks the owner and permissions of secret files.
 *
 * A key, token, ledger or state file that another user owns can be changed by that user at any time, whatever its mode;
 * a file that others may read is not secret. Both are refused with advice, and never repaired silently: a person must
 * decide who could have read or changed it before. root can change everything anyway, so a file of root is accepted
 * like one's own (systemd's credentials are such files).
 *
 * The check is on the open file (fstat), not on a name that may refer to another file a moment later. */
#include "base/private.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

fkt_status fkt_private_check(const struct stat *sb, const char *path, int flags)
{
    const unsigned open_to = sb->st_mode & (flags & FKT_PRIVATE_GROUP ? 037U : 077U);
    const int folder = S_ISDIR(sb->st_mode);
    char hint[384];
    if (sb->st_uid != geteuid() && sb->st_uid != 0)
        return fkt_fail_hint(
            FKT_E_STATE,
            "use one that this user has made; change the owner with 'chown' only if no other user could "
            "have written it",
            "'%s' belongs to another user (uid %u)", path, (unsigned)sb->st_uid);
    if (!open_to) return FKT_OK;
    snprintf(hint, sizeof hint, "run 'chmod %s %.240s', and make a new one if others may have read or changed %s",
             folder ? "700" : "600", path, folder ? "what is in it" : "this one");
    return fkt_fail_hint(FKT_E_STATE, hint, "users other than its owner may read or change '%s' (mode %03o)", path,
                         (unsigned)(sb->st_mode & 0777));
}

/* O_NOFOLLOW fails with ELOOP for a link. */
static fkt_status cannot_open(const char *path)
{
    if (errno != ELOOP) return fkt_io_fail("read", path);
    return fkt_fail_hint(FKT_E_STATE, "put the file itself there", "'%s' is a symbolic link", path);
}

static fkt_status read_all(int fd, uint8_t *out, size_t size, size_t *len, const char *path)
{
    ssize_t n = 1;
    while (n > 0 && *len < size) {
        n = read(fd, out + *len, size - *len);
        if (n > 0) *len += (size_t)n;
        else if (n < 0 && errno == EINTR) n = 1;
    }
    return n < 0 ? fkt_io_fail("read", path) : FKT_OK;
}

fkt_status fkt_private_read(uint8_t **out, size_t *len, const char *path, size_t max, int flags, struct stat *left)
{
    const int follow = flags & FKT_PRIVATE_LINK ? 0 : O_NOFOLLOW;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | follow);
    struct stat sb;
    fkt_status st = FKT_OK;
    *out = NULL;
    *len = 0;
    if (fd < 0 || fstat(fd, &sb) != 0) st = cannot_open(path);
    else if (!S_ISREG(sb.st_mode)) st = fkt_fail(FKT_E_IO, "cannot read '%s': not a regular file", path);
    else if (sb.st_size < 0 || (uint64_t)sb.st_size > max)
        st = fkt_fail(FKT_E_FORMAT, "'%s' is too large: %lld bytes", path, (long long)sb.st_size);
    FKT_TRY(st);
    if (left) *left = sb;
    else FKT_TRY(fkt_private_check(&sb, path, flags));
    FKT_TRY(fkt_alloc(out, (size_t)sb.st_size + 1));
    FKT_TRY(read_all(fd, *out, (size_t)sb.st_size, len, path));
    (*out)[*len] = '\0';
out:
    if (st != FKT_OK) {
        fkt_free(*out);
        *out = NULL;
    }
    if (fd >= 0) close(fd);
    return st;
}

static fkt_status make_parents(const char *path)
{
    char *parent = NULL, *slash;
    fkt_status st;
    FKT_TRY(fkt_strdup(&parent, path));
    for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--) parent[n - 1] = '\0';
    slash = strrchr(parent, '/');
    if (slash) *slash = '\0';
    if (slash && slash != parent) FKT_TRY(fkt_mkdirs(parent));
out:
    fkt_free(parent);
    return st;
}

fkt_status fkt_private_folder(const char *path)
{
    struct stat sb;
    int fd = -1;
    fkt_status st;
    FKT_TRY(make_parents(path));
    FKT_TRY(fkt_mkdir(path, 0700));
    if (lstat(path, &sb) == 0 && S_ISLNK(sb.st_mode)) {
        sb.st_mode = S_IFLNK; /* links have no mode; systemd's link to a state folder belongs to root */
        FKT_TRY(fkt_private_check(&sb, path, 0));
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR)
        st = fkt_fail_hint(FKT_E_EXISTS, "name a folder", "'%s' exists and is not a folder", path);
    else if (fd < 0 || fstat(fd, &sb) != 0) st = fkt_io_fail("open", path);
    FKT_TRY(st);
    FKT_TRY(fkt_private_check(&sb, path, 0));
out:
    if (fd >= 0) close(fd);
    return st;
}
