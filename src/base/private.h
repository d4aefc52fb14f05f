/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - files and folders that belong to one user; secrets are read only from these. */
#ifndef FKT_BASE_PRIVATE_H
#define FKT_BASE_PRIVATE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* `flags`: FKT_PRIVATE_GROUP lets a group read, FKT_PRIVATE_LINK lets the name be a symbolic link. */
enum { FKT_PRIVATE_GROUP = 1, FKT_PRIVATE_LINK = 2 };
/* FKT_E_STATE unless it belongs to this process's user, or to root, and others may neither read nor change it. */
FKT_MUST_USE fkt_status fkt_private_check(const struct stat *sb, const char *path, int flags);
/* Reads a regular file of at most `max` bytes that passes the check; allocates *out as fkt_file_read does. Check and
 * read use one descriptor. With `sb` the check is left to the caller, who first decides whether the file is a secret.
 * */
FKT_MUST_USE fkt_status fkt_private_read(uint8_t **out, size_t *len, const char *path, size_t max, int flags,
                                         struct stat *sb /* may be NULL */);
/* Makes a folder with mode 0700 from the start; an existing one must pass the check, and so must the owner of a link to
 * it. Its parents are made as by fkt_mkdirs. */
FKT_MUST_USE fkt_status fkt_private_folder(const char *path);

#endif
