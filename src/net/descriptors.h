/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.h - how many connections the servers of a process may have, by its limit of open files. */
#ifndef FKT_NET_DESCRIPTORS_H
#define FKT_NET_DESCRIPTORS_H

#include <stdint.h>

/* Raises the limit, as far as the system lets it, for `servers` servers with `most` connections each. Gives how many
 * connections each of them may have, at most `most`; 0: there is no room for any. *limit (may be NULL): what holds now.
 */
uint32_t fkt_descriptors_share(uint32_t servers, uint32_t most, uint64_t *limit);

#endif
