/* SPDX-License-Identifier: Apache-2.0 */
/* roster.h - the keys of a federation's sites, from a text file. */
#ifndef FKT_CLI_ROSTER_H
#define FKT_CLI_ROSTER_H

#include "base/status.h"

#include <stdint.h>

/* Gives *roster (n, 32), in the order of the lines. Whatever is wrong with the file is FKT_E_FORMAT and names the
 * line. */
FKT_MUST_USE fkt_status cli_roster_read(const char *path, uint8_t **roster, uint32_t *n);

#endif
