/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - files that are complete or absent: written under a temporary name, synced, renamed. */
#ifndef FKT_BASE_FILE_H
#define FKT_BASE_FILE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads a whole regular file of at most `max` bytes; allocates *out (NUL after the last byte, not counted in *len). */
FKT_MUST_USE fkt_status fkt_file_read(uint8_t **out, size_t *len, const char *path, size_t max);

/* A file being written: write to f->stream, then commit (sync, rename) or abort (remove). clear() aborts what is not
 * committed. */
struct fkt_file {
    FILE *stream; /* NULL when not open */
    char *path, *tmp;
    int flags;
    int reserved; /* 1: the file may be longer than what was written, until commit */
};
/* `flags` below: FKT_FILE_REPLACE replaces an existing file (else FKT_E_EXISTS); FKT_FILE_PRIVATE makes it readable by
 * its owner alone (0600); FKT_FILE_FIRST fails where the file system cannot create a file exclusively, since it could
 * overwrite one that appears at the same moment. */
enum { FKT_FILE_REPLACE = 1, FKT_FILE_PRIVATE = 2, FKT_FILE_FIRST = 4 };
FKT_MUST_USE fkt_status fkt_file_begin(struct fkt_file *f, const char *path, int flags);
/* Reserves `bytes` on the disk before anything is written, so that no write up to there fails for lack of space. A
 * copy-on-write file system may not guarantee that. */
FKT_MUST_USE fkt_status fkt_file_reserve(struct fkt_file *f, uint64_t bytes);
FKT_MUST_USE fkt_status fkt_file_commit(struct fkt_file *f);
void fkt_file_clear(struct fkt_file *f);
FKT_MUST_USE fkt_status fkt_file_write(const char *path, const void *data, size_t len, int flags); /* all three */

/* A folder being written: fill f->tmp, then commit renames it to its final name. With force an old folder is replaced,
 * but only when it is empty or has the marker file `.fedkt` that commit puts into every folder of ours. begin removes
 * what a killed process left of the same path. */
struct fkt_folder {
    char *path, *tmp;
    int force;
    int keep; /* a commit that fails leaves tmp where it is */
    int lock; /* descriptor of tmp, plus 1; 0: not locked */
};
/* FKT_E_EXISTS when a commit to `path` would be refused because of what exists there. */
FKT_MUST_USE fkt_status fkt_folder_check(const char *path, int force);
FKT_MUST_USE fkt_status fkt_folder_begin(struct fkt_folder *f, const char *path, int force);
FKT_MUST_USE fkt_status fkt_folder_commit(struct fkt_folder *f);
void fkt_folder_clear(struct fkt_folder *f);
/* For a failure while filling the folder: makes the sentence name the folder by its final name. Returns st. */
fkt_status fkt_folder_fail(const struct fkt_folder *f, fkt_status st);

/* For file.c and folder.c: a fresh temporary name beside `path`; the sentence for errno; sync of the parent folder: 0,
 * also where the file system does not support it, or -1 and errno. */
FKT_MUST_USE fkt_status fkt_temp_name(char **out, const char *path);
fkt_status fkt_io_fail(const char *verb, const char *path);
int fkt_sync_parent(const char *path);

void fkt_remove_tree(const char *path); /* a file, or a folder and its contents; follows no link */
/* Makes one folder and syncs its name to disk; an existing folder is accepted. */
FKT_MUST_USE fkt_status fkt_mkdir(const char *path, unsigned mode);
FKT_MUST_USE fkt_status fkt_mkdirs(const char *path);                                 /* mkdir -p of the same kind */
FKT_MUST_USE fkt_status fkt_path_join(char **out, const char *dir, const char *name); /* allocates *out */
FKT_MUST_USE fkt_status fkt_spool(int *fd); /* an unlinked temporary file under $TMPDIR or /tmp; caller closes */

#endif
