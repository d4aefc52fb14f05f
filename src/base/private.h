/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - files and folders that belong to one user alone: secrets are read from nothing else. */
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
/* The whole of a regular file of at most `max` bytes that passes the check; gives *out as fkt_file_read does. What is
 * checked is what is read: both go by one descriptor. With `sb` the check is left to the caller, who first sees whether
 * it is a secret at all. */
FKT_MUST_USE fkt_status fkt_private_read(uint8_t **out, size_t *len, const char *path, size_t max, int flags,
                                         struct stat *sb /* may be NULL */);
/* A folder, 0700 from its first moment; one that exists must pass the check, and so must the owner of a link to it. Its
 * parents are made as fkt_mkdirs makes them. */
FKT_MUST_USE fkt_status fkt_private_folder(const char *path);

#endif
