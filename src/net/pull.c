/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c - the wanted files of one repository, in one folder that appears complete.
 *
 *   <folder>.lock   held (flock) while a process pulls; it removes the file at the end
 *   <folder>.part/  files whole under their names, or unfinished as fetch.c leaves them; kept between runs
 *   <folder>/       appears by one rename when everything is there and checked
 *
 * All files come from one commit: the first answer of the hub names it, from then on it is what is asked for, and an
 * answer that names another is an error, so that a repository that changes meanwhile cannot give us files of two
 * versions. (If a hub names none, p->commit stays empty and the caller reports it.) Files of an earlier run
 * are used only under a wanted name and with the wanted hash; the rest is removed. A hash is checked
 * against the caller's where there is one, else against the hub's statement, else it is written down as first seen. */
#include "net/pull.h"

#include "base/alloc.h"
#include "base/file.h"
#include "crypto/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST (64ULL << 30) /* far above any codec; a bound on what a hub can send */

/* Is the open file still the one under its name? It may have been removed between open and lock. */
static int still_named(int fd, const char *path)
{
    struct stat ours, named;
    return fstat(fd, &ours) == 0 && lstat(path, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

static fkt_status lock_held(const struct fkt_pull *p)
{
    return fkt_fail_hint(FKT_E_STATE, "wait for it, or stop it and run this again",
                         "another process is fetching '%s' now", p->spec->folder);
}

static fkt_status take_lock(struct fkt_pull *p)
{
    enum { TRIES = 100 };
    size_t n = strlen(p->spec->folder) + 8;
    fkt_status st;
    FKT_TRY(fkt_alloc(&p->lock_path, n));
    snprintf(p->lock_path, n, "%s.lock", p->spec->folder);
    for (int i = 0; i < TRIES; i++) {
        p->lock = open(p->lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (p->lock < 0) return fkt_io_fail("write", p->lock_path);
        if (flock(p->lock, LOCK_EX | LOCK_NB) != 0)
            return errno == EWOULDBLOCK ? lock_held(p) : fkt_io_fail("lock", p->lock_path);
        p->locked = still_named(p->lock, p->lock_path);
        if (p->locked) return FKT_OK;
        close(p->lock);
        p->lock = -1;
    }
    st = lock_held(p);
out:
    return st;
}

static fkt_status make_parent(const char *folder)
{
    char *parent = NULL, *slash;
    fkt_status st = fkt_strdup(&parent, folder);
    if (st != FKT_OK) return st;
    slash = strrchr(parent, '/');
    if (slash) *slash = '\0';
    if (slash) st = fkt_mkdirs(parent);
    fkt_free(parent);
    return st;
}

/* Invalid names are refused before anything is created. */
static fkt_status check_names(const struct fkt_pull_spec *spec)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < spec->files && st == FKT_OK; i++) {
        char *url = NULL;
        st = fkt_hub_url(&url, &spec->hub, spec->file[i].name);
        fkt_free(url);
    }
    return st;
}

/* Files in the gathering folder are trusted like our own: the folder must be ours and not a link. */
static fkt_status make_part(const char *part)
{
    struct stat sb;
    if (mkdir(part, 0777) == 0) return FKT_OK;
    if (errno != EEXIST || lstat(part, &sb) != 0) return fkt_io_fail("make folder", part);
    if (S_ISDIR(sb.st_mode) && sb.st_uid == geteuid()) return FKT_OK;
    return fkt_fail_hint(FKT_E_EXISTS, "move it away and run this again", "'%s' is not a folder of yours", part);
}

fkt_status fkt_pull_begin(struct fkt_pull *p, const struct fkt_pull_spec *spec)
{
    size_t n = strlen(spec->folder) + 8;
    fkt_status st;
    memset(p, 0, sizeof *p);
    p->spec = spec;
    p->lock = -1;
    FKT_TRY(fkt_alloc(&p->part, n));
    snprintf(p->part, n, "%s.part", spec->folder);
    FKT_TRY(check_names(spec));
    FKT_TRY(make_parent(spec->folder));
    FKT_TRY(take_lock(p));
    FKT_TRY(make_part(p->part));
out:
    return st;
}

/* The hash that file i must have, from the caller or the hub; NULL: not known. */
static fkt_status agree(struct fkt_pull_file *f, const struct fkt_pull_wanted *wanted, const struct fkt_hub_says *says,
                        const char **hash)
{
    *hash = NULL;
    f->check = wanted->sha256 ? FKT_PULL_MANIFEST : says->sha256[0] ? FKT_PULL_HUB : FKT_PULL_FIRST_SEEN;
    if (wanted->sha256 && says->sha256[0] && strcmp(wanted->sha256, says->sha256) != 0)
        return fkt_fail_hint(FKT_E_MISMATCH, "the repository has changed, or it is not the one that was meant",
                             "the hub states SHA-256 %s for '%s', the manifest %s", says->sha256, wanted->name,
                             wanted->sha256);
    if (wanted->size && says->size && wanted->size != says->size)
        return fkt_fail(FKT_E_MISMATCH, "the hub states %llu bytes for '%s', the manifest %llu",
                        (unsigned long long)says->size, wanted->name, (unsigned long long)wanted->size);
    if (f->check != FKT_PULL_FIRST_SEEN) *hash = wanted->sha256 ? wanted->sha256 : says->sha256;
    return FKT_OK;
}

/* 1 when an earlier run left this file complete. */
static int is_here(struct fkt_pull_file *f, const char *path, const char *hash, uint64_t size)
{
    struct stat sb;
    if (!hash || lstat(path, &sb) != 0 || !S_ISREG(sb.st_mode) || (size && (uint64_t)sb.st_size != size)) return 0;
    if (fkt_hash_file_hex(f->sha256, path) != FKT_OK || strcmp(f->sha256, hash) != 0) return 0;
    f->size = (uint64_t)sb.st_size;
    return 1;
}

static fkt_status fetch_one(struct fkt_pull *p, size_t i)
{
    const struct fkt_pull_wanted *wanted = &p->spec->file[i];
    struct fkt_hub hub = p->spec->hub;
    struct fkt_hub_says says;
    struct fkt_fetched got;
    struct fkt_fetch_spec f = {.max = wanted->max ? wanted->max : LARGEST, .how = p->spec->how};
    char *url = NULL, *path = NULL, what[64];
    fkt_status st;
    if (p->commit[0]) hub.revision = p->commit;
    FKT_TRY(fkt_hub_ask(&says, &hub, wanted->name, &p->spec->how));
    if (i == 0) snprintf(p->commit, sizeof p->commit, "%s", says.commit);
    if (strcmp(says.commit, p->commit) != 0) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "run it again; if it happens again, use another hub",
                           "the hub answers for '%s' from commit '%s', for '%s' from '%s'", p->spec->file[0].name,
                           p->commit, wanted->name, says.commit);
        goto out;
    }
    if (p->commit[0]) hub.revision = p->commit;
    FKT_TRY(agree(&p->file[i], wanted, &says, &f.sha256));
    f.size = wanted->size ? wanted->size : says.size;
    if (f.size > f.max) {
        st = fkt_fail(FKT_E_MISMATCH, "the hub states %llu bytes for '%s', which has %llu at most",
                      (unsigned long long)f.size, wanted->name, (unsigned long long)f.max);
        goto out;
    }
    FKT_TRY(fkt_path_join(&path, p->part, wanted->name));
    if (is_here(&p->file[i], path, f.sha256, f.size)) goto out;
    FKT_TRY(fkt_hub_url(&url, &hub, wanted->name));
    snprintf(what, sizeof what, "fetching %.50s", wanted->name);
    f.url = url;
    f.path = path;
    f.what = what;
    FKT_TRY(fkt_fetch(&f, &got));
    p->file[i].size = got.size;
    p->file[i].transferred = got.transferred;
    snprintf(p->file[i].sha256, sizeof p->file[i].sha256, "%s", got.sha256);
out:
    fkt_free(url);
    fkt_free(path);
    return st;
}

static int is_wished(const struct fkt_pull_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->files; i++)
        if (!strcmp(spec->file[i].name, name)) return 1;
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* The folder that appears holds what was asked for and nothing else. */
static fkt_status remove_the_rest(const struct fkt_pull *p)
{
    DIR *d = opendir(p->part);
    const struct dirent *e;
    fkt_status st = FKT_OK;
    if (!d) return fkt_io_fail("read", p->part);
    while ((e = readdir(d))) {
        char *path = NULL;
        if (is_wished(p->spec, e->d_name)) continue;
        FKT_TRY(fkt_path_join(&path, p->part, e->d_name));
        fkt_remove_tree(path);
        fkt_free(path);
    }
out:
    closedir(d);
    return st;
}

fkt_status fkt_pull_fetch(struct fkt_pull *p)
{
    fkt_status st;
    FKT_TRY(fkt_folder_check(p->spec->folder, p->spec->force));
    for (size_t i = 0; i < p->spec->files; i++) FKT_TRY(fetch_one(p, i));
    FKT_TRY(remove_the_rest(p));
out:
    return st;
}

fkt_status fkt_pull_commit(struct fkt_pull *p)
{
    struct fkt_folder f = {.force = p->spec->force, .keep = 1};
    fkt_status st;
    FKT_TRY(fkt_strdup(&f.path, p->spec->folder));
    FKT_TRY(fkt_strdup(&f.tmp, p->part));
    return fkt_folder_commit(&f);
out:
    fkt_free(f.path);
    return st;
}

void fkt_pull_clear(struct fkt_pull *p)
{
    if (p->lock >= 0 && p->locked && p->part) (void)rmdir(p->part); /* an empty one; unfinished files keep it */
    if (p->locked)
        (void)unlink(p->lock_path); /* before the lock is released: waiting processes notice through still_named */
    if (p->lock >= 0) close(p->lock);
    fkt_free(p->lock_path);
    fkt_free(p->part);
    memset(p, 0, sizeof *p);
    p->lock = -1;
}
