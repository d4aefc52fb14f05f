/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - folders that are complete or absent.
 *
 *   begin: mkdir "<path>.tmp-<pid>-<n>"  ->  caller fills it  ->  commit: marker file, swap or rename, remove the old
 *
 * What exists under the final name is checked twice, at begin and at commit: a folder that is not empty is replaced
 * only with force and only when it has our marker. Where the file system supports it, old and new are exchanged in one
 * step (RENAME_EXCHANGE); elsewhere the old one is renamed away first and restored on failure.
 *
 * A process that is killed leaves its temporary folder. The folder is locked while it is filled, and the system
 * releases the lock when the process dies: the next begin for the same path removes the temporary folders that are
 * unlocked, ours and without marker. Where the file system has no locks for folders, they stay. */
#include "base/file.h"

#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKER ".fedkt"

enum folder_state { ABSENT, EMPTY, OURS, FOREIGN, NO_FOLDER };

static enum folder_state inspect(const char *path)
{
    struct stat sb;
    struct dirent *e;
    enum folder_state found = EMPTY;
    DIR *d;
    if (lstat(path, &sb) != 0) return ABSENT;
    if (!S_ISDIR(sb.st_mode)) return NO_FOLDER;
    d = opendir(path);
    if (!d) return FOREIGN;
    while ((e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (!strcmp(e->d_name, MARKER)) found = OURS;
        else if (found == EMPTY) found = FOREIGN;
    }
    closedir(d);
    return found;
}

static fkt_status check_replaceable(const char *path, enum folder_state found, int force)
{
    if (found == NO_FOLDER) return fkt_fail(FKT_E_EXISTS, "'%s' exists and is not a folder", path);
    if ((found == OURS || found == FOREIGN) && !force)
        return fkt_hint_code(fkt_fail(FKT_E_EXISTS, "output folder '%s' is not empty", path), FKT_HINT_EXISTS_FOLDER,
                             "name another folder, or replace this one on purpose");
    if (found == FOREIGN)
        return fkt_hint_code(fkt_fail(FKT_E_EXISTS, "folder '%s' holds files that fedkt did not make", path),
                             FKT_HINT_FOREIGN_FOLDER, "name a new folder: only folders that fedkt made are replaced");
    return FKT_OK;
}

fkt_status fkt_folder_check(const char *path, int force) { return check_replaceable(path, inspect(path), force); }

/* Through folder handles: allocates nothing, so it works when memory has run out, and follows no link. */
static void remove_tree_at(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (unlinkat(fd, e->d_name, 0) != 0) remove_tree_at(fd, e->d_name);
    }
    if (d) closedir(d);
    else if (fd >= 0) close(fd);
    unlinkat(at, name, AT_REMOVEDIR);
}

void fkt_remove_tree(const char *path)
{
    if (unlink(path) != 0) remove_tree_at(AT_FDCWD, path);
}

/* 1: `name` is "<base>.tmp-<digits>-<digits>", as fkt_temp_name writes it. */
static int is_temp_name(const char *name, const char *base)
{
    const size_t n = strlen(base);
    size_t pid, number;
    if (strncmp(name, base, n) != 0 || strncmp(name + n, ".tmp-", 5) != 0) return 0;
    name += n + 5;
    pid = strspn(name, "0123456789");
    if (!pid || name[pid] != '-') return 0;
    number = strspn(name + pid + 1, "0123456789");
    return number && !name[pid + 1 + number];
}

/* Removes one temporary folder, unless a process is filling it, it is complete, or somebody else owns it. */
static void remove_leftover(int at, const char *name)
{
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat sb;
    if (fd < 0) return;
    /* The marker last: before the lock was ours, another process may have completed the folder. */
    if (fstat(fd, &sb) == 0 && sb.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        faccessat(fd, MARKER, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        remove_tree_at(at, name); /* under the lock: a process that has just made this folder takes another name */
    close(fd);
}

/* What killed processes left beside `path`. Failures do not matter here: the folders stay. */
static void remove_leftovers(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    char parent[4096];
    const size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    struct dirent *e;
    DIR *d;
    if (n >= sizeof parent) return;
    snprintf(parent, sizeof parent, "%.*s", (int)n, path);
    d = opendir(n ? parent : ".");
    while (d && (e = readdir(d)))
        if (is_temp_name(e->d_name, base)) remove_leftover(dirfd(d), e->d_name);
    if (d) closedir(d);
}

/* Locks the temporary folder that was just made, where the file system can. 0: another process is removing it. */
static int lock(struct fkt_folder *f, const char *tmp)
{
    struct stat sb;
    const int fd = open(tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno != ENOENT;
    if ((flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || (stat(tmp, &sb) != 0 && errno == ENOENT)) {
        close(fd);
        return 0;
    }
    f->lock = fd + 1;
    return 1;
}

static fkt_status make_temp(struct fkt_folder *f)
{
    char *tmp = NULL;
    int made;
    fkt_status st;
    do { /* only a folder made here is used: a name that is taken, by a link or a killed run, is skipped */
        fkt_free(tmp);
        tmp = NULL;
        FKT_TRY(fkt_temp_name(&tmp, f->path));
        made = mkdir(tmp, 0777) == 0;
        if (!made && errno != EEXIST) FKT_TRY(fkt_io_fail("make folder", f->path));
    } while (!made || !lock(f, tmp));
    f->tmp = tmp;
    tmp = NULL;
out:
    fkt_free(tmp);
    return st;
}

/* A process that is killed meanwhile leaves a folder without marker, which the next run removes. */
static void remove_marker_first(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        (void)unlinkat(fd, MARKER, 0);
        close(fd);
    }
    fkt_remove_tree(folder);
}

/* The folders above `path`, as far as they are missing. */
static fkt_status make_parent(const char *path)
{
    char *p = NULL, *slash;
    fkt_status st = fkt_strdup(&p, path);
    if (st != FKT_OK) return st;
    slash = strrchr(p, '/');
    if (slash && slash != p) {
        *slash = '\0';
        st = fkt_mkdirs(p);
    }
    fkt_free(p);
    return st;
}

fkt_status fkt_folder_begin(struct fkt_folder *f, const char *path, int force)
{
    size_t n;
    fkt_status st;
    memset(f, 0, sizeof *f);
    f->force = force;
    FKT_TRY(check_replaceable(path, inspect(path), force));
    FKT_TRY(fkt_strdup(&f->path, path));
    n = strlen(f->path);
    while (n > 1 && f->path[n - 1] == '/') f->path[--n] = '\0';
    FKT_TRY(make_parent(f->path));
    remove_leftovers(f->path);
    FKT_TRY(make_temp(f));
out:
    if (st != FKT_OK) fkt_folder_clear(f);
    return st;
}

/* f->path is an older folder of ours: it is moved to f->tmp, and the new one to f->path. */
static fkt_status swap_in(struct fkt_folder *f)
{
    char *old = NULL;
    fkt_status st = FKT_OK;
    if (renameat2(AT_FDCWD, f->tmp, AT_FDCWD, f->path, RENAME_EXCHANGE) == 0) return FKT_OK;
    if (errno != EINVAL && errno != ENOSYS) return fkt_io_fail("replace", f->path);
    FKT_TRY(fkt_temp_name(&old, f->path));
    if (rename(f->path, old) != 0) {
        st = fkt_io_fail("replace", f->path);
    } else if (rename(f->tmp, f->path) != 0) {
        st = fkt_io_fail("replace", f->path);
        (void)rename(old, f->path); /* restore it; if that fails, it keeps a name that begins with its own */
    } else {
        fkt_free(f->tmp);
        f->tmp = old;
        old = NULL;
    }
out:
    fkt_free(old);
    return st;
}

fkt_status fkt_folder_commit(struct fkt_folder *f)
{
    enum folder_state found = inspect(f->path);
    char *marker = NULL;
    fkt_status st;
    FKT_TRY(check_replaceable(f->path, found, f->force));
    FKT_TRY(fkt_path_join(&marker, f->tmp, MARKER));
    FKT_TRY(fkt_file_write(marker, "", 0, FKT_FILE_REPLACE));
    if (found == OURS) {
        FKT_TRY(swap_in(f));
    } else {
        if (found == EMPTY) (void)rmdir(f->path); /* no longer empty: the rename below fails, and nothing is lost */
        if (rename(f->tmp, f->path) != 0) {
            st = errno == ENOTEMPTY || errno == EEXIST ? check_replaceable(f->path, FOREIGN, 0)
                                                       : fkt_io_fail("write", f->path);
            goto out;
        }
        fkt_free(f->tmp);
        f->tmp = NULL;
    }
    (void)fkt_sync_parent(f->path);
out:
    fkt_free(marker);
    if (st != FKT_OK && f->keep) {
        fkt_free(f->tmp);
        f->tmp = NULL;
    }
    fkt_folder_clear(f); /* removes what f->tmp still names: the unfinished folder, or the old one */
    return st;
}

void fkt_folder_clear(struct fkt_folder *f)
{
    if (f->tmp) remove_marker_first(f->tmp);
    if (f->lock) close(f->lock - 1);
    fkt_free(f->path);
    fkt_free(f->tmp);
    memset(f, 0, sizeof *f);
}

fkt_status fkt_folder_fail(const struct fkt_folder *f, fkt_status st)
{
    struct fkt_failure e;
    char *at;
    if (st == FKT_OK || !f->tmp) return st;
    fkt_failure_save(&e, st);
    while ((at = strstr(e.text, f->tmp))) { /* tmp begins with path, so only its ending has to go */
        char *end = at + strlen(f->tmp);
        memmove(at + strlen(f->path), end, strlen(end) + 1);
    }
    return fkt_failure_restore(&e);
}
