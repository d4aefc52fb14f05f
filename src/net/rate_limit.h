/* SPDX-License-Identifier: Apache-2.0 */
/* rate_limit.h - how often each network address has been refused of late, in a table of fixed size. */
#ifndef FKT_NET_RATE_LIMIT_H
#define FKT_NET_RATE_LIMIT_H

#include "base/status.h"

#include <stdint.h>

#define FKT_RATE_LIMIT_ADDRESS 16 /* IPv6, or IPv4 as ::ffff:a.b.c.d */

struct fkt_rate_limit;
/* per_minute: refusals that an address may have at once; they expire evenly over a minute. key (32): secret, so
 * that no peer can choose addresses that collide in the table. */
FKT_MUST_USE fkt_status fkt_rate_limit_new(struct fkt_rate_limit **out, uint32_t per_minute, const uint8_t key[32]);
void fkt_rate_limit_free(struct fkt_rate_limit *c);
/* Seconds until requests of the address are accepted again; 0: now. The time never goes back. */
uint32_t fkt_rate_limit_wait(const struct fkt_rate_limit *c, const uint8_t address[FKT_RATE_LIMIT_ADDRESS],
                             uint64_t now_ms);
void fkt_rate_limit_blame(struct fkt_rate_limit *c, const uint8_t address[FKT_RATE_LIMIT_ADDRESS], uint64_t now_ms);

int fkt_rate_limit_same(const uint8_t a[FKT_RATE_LIMIT_ADDRESS],
                        const uint8_t b[FKT_RATE_LIMIT_ADDRESS]); /* 1: they count as one */

/* The same for any limit of `rate` events in `window_ms`: *debt is a time, zero at first. 1: the event is within the
 * limit and is counted; 0: it is not, and nothing changes. */
int fkt_rate_limit_spend(uint64_t *debt_us, uint64_t now_ms, uint32_t rate, uint32_t window_ms);

#endif
