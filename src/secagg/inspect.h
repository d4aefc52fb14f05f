/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h - public facts of a server's round, for the module that logs it; nothing secret. */
#ifndef FKT_SECAGG_INSPECT_H
#define FKT_SECAGG_INSPECT_H

#include "fedkt/advanced/secagg.h"

/* From CONFIRM on: what the sites sign (protocol.md 3.5). Borrowed: (32) the round's seed, and the survivors as a
 * bitmap over the roster. FKT_E_STATE before, and once the round has failed. */
FKT_MUST_USE fkt_status fkt_sa_server_signed(const struct fkt_sa_server *s, const uint8_t **seed,
                                             const uint8_t **survivors);
/* 1 in MASK, CONFIRM and REVEAL if closing the phase now would end the round without a sum, while answers that are
 * still missing could lead to one. */
int fkt_sa_server_worth_waiting(const struct fkt_sa_server *s);

#endif
