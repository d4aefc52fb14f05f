/* SPDX-License-Identifier: Apache-2.0 */
/* roster.h - the keys and names of a federation's sites, from a text file. */
#ifndef FKT_TASK_ROSTER_H
#define FKT_TASK_ROSTER_H

#include "base/status.h"

#include "task/key_file.h"

#include <stddef.h>
#include <stdint.h>

struct cli_roster {
    uint8_t *keys;      /* (n, 32) in the order of the lines */
    const char **names; /* (n) NULL: the line has none; pointers into `text` */
    size_t *lines;      /* (n) where each stands, from 1 */
    uint32_t n;
    char *text; /* owned */
};
/* At least three. Whatever is wrong with the file is FKT_E_FORMAT and names the line. */
FKT_MUST_USE fkt_status cli_roster_read(struct cli_roster *out, const char *path);
void cli_roster_clear(struct cli_roster *r);
/* All names, or NULL where no site has one; FKT_E_FORMAT, which names the line, where some have and some have not. */
FKT_MUST_USE fkt_status cli_roster_names(const struct cli_roster *r, const char *path, const char *const **names);

/* Adds n sites to the end of the file, which is made when it is not there and stays as it is in every other byte. A key
 * or a name that stands there already, or comes twice, is FKT_E_EXISTS; nothing changes then. *total: sites on it. */
FKT_MUST_USE fkt_status cli_roster_extend(const char *path, const struct cli_site *sites, uint32_t n, uint32_t *total);

#endif
