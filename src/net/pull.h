/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - the wanted files of one repository, in one folder that appears complete. */
#ifndef FKT_NET_PULL_H
#define FKT_NET_PULL_H

#include "net/hub.h"

#include <stddef.h>

enum { FKT_PULL_FILES = 4 };

/* Against what a file's hash was checked. */
enum fkt_pull_check { FKT_PULL_MANIFEST = 0, FKT_PULL_HUB, FKT_PULL_FIRST_SEEN };

struct fkt_pull_wanted {
    const char *name;
    const char *sha256; /* NULL: not known */
    uint64_t size;      /* 0: not known */
    uint64_t max;       /* largest size; 0: no limit of its own */
};

struct fkt_pull_spec {
    struct fkt_hub hub;
    struct fkt_pull_wanted file[FKT_PULL_FILES];
    size_t files;
    const char *folder; /* final name; "<folder>.part" gathers the files */
    int force;          /* replace a folder that fedkt made */
    struct fkt_fetch_how how;
};

struct fkt_pull {
    const struct fkt_pull_spec *spec; /* borrowed */
    char *part;                       /* the gathering folder: put further files there before the commit */
    char *lock_path;
    int lock, locked;
    char commit[65];
    struct fkt_pull_file {
        uint64_t size, transferred;
        char sha256[FKT_FETCH_HASH_HEX];
        enum fkt_pull_check check;
    } file[FKT_PULL_FILES];
};

/* Takes the lock (FKT_E_STATE: another process has it) and makes the gathering folder. Clear in any case. */
FKT_MUST_USE fkt_status fkt_pull_begin(struct fkt_pull *p, const struct fkt_pull_spec *spec);
/* Asks the hub, fetches what is not there yet, checks everything; FKT_E_EXISTS, before anything is fetched, when the
 * folder must not be replaced. What arrived stays after a failure; other files are removed. */
FKT_MUST_USE fkt_status fkt_pull_fetch(struct fkt_pull *p);
/* Gives the folder its final name. The gathering folder stays when that fails. */
FKT_MUST_USE fkt_status fkt_pull_commit(struct fkt_pull *p);
void fkt_pull_clear(struct fkt_pull *p);

#endif
