/* SPDX-License-Identifier: Apache-2.0 */
/* rate_limit.c - token buckets of addresses, kept as one time each.
 *
 * A bucket of `rate` tokens that fills up evenly in a window is the time at which it will be full again (the "virtual
 * scheduling" form of the leaky bucket, ITU-T I.371 annex A): a token costs window/rate of that time, and there is one
 * left while that time is less than a window minus one token ahead of now. No timer runs; an empty slot and a
 * full bucket are the same.
 *
 * IPv6 addresses count by their /64, which is what one customer gets. The table has 1,024 sets of four slots, chosen by
 * a keyed hash. When a set is full, the fullest bucket is dropped: a peer with that many addresses has as many budgets
 * anyway, and the memory stays constant (96 KB). */
#include "net/rate_limit.h"

#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"

#include <string.h>

enum { SETS = 1024, WAYS = 4, WINDOW_MS = 60000 };

struct slot {
    uint8_t address[FKT_RATE_LIMIT_ADDRESS];
    uint64_t debt_us;
};
struct fkt_rate_limit {
    struct slot slot[SETS][WAYS];
    uint32_t per_minute;
    uint8_t key[32];
};

fkt_status fkt_rate_limit_new(struct fkt_rate_limit **out, uint32_t per_minute, const uint8_t key[32])
{
    fkt_status st = fkt_alloc(out, 1);
    if (st != FKT_OK) return st;
    (*out)->per_minute = per_minute;
    memcpy((*out)->key, key, 32);
    return FKT_OK;
}

void fkt_rate_limit_free(struct fkt_rate_limit *c)
{
    if (c) fkt_wipe(c->key, sizeof c->key);
    fkt_free(c);
}

static uint64_t step_of(uint32_t rate, uint32_t window_ms) { return (uint64_t)window_ms * 1000 / rate; }

/* How far the debt is above its limit; 0: one more fits. */
static uint64_t beyond(uint64_t debt_us, uint64_t now_ms, uint32_t rate, uint32_t window_ms)
{
    const uint64_t room = now_ms * 1000 + (uint64_t)window_ms * 1000 - step_of(rate, window_ms);
    return debt_us > room ? debt_us - room : 0;
}

static void add(uint64_t *debt_us, uint64_t now_ms, uint32_t rate, uint32_t window_ms)
{
    const uint64_t now_us = now_ms * 1000;
    *debt_us = (*debt_us > now_us ? *debt_us : now_us) + step_of(rate, window_ms);
}

int fkt_rate_limit_spend(uint64_t *debt_us, uint64_t now_ms, uint32_t rate, uint32_t window_ms)
{
    if (beyond(*debt_us, now_ms, rate, window_ms)) return 0;
    add(debt_us, now_ms, rate, window_ms);
    return 1;
}

/* The bytes that count: all of an IPv4 address, the first half of an IPv6 one. */
static void shorten(uint8_t out[FKT_RATE_LIMIT_ADDRESS], const uint8_t address[FKT_RATE_LIMIT_ADDRESS])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memcpy(out, address, FKT_RATE_LIMIT_ADDRESS);
    if (memcmp(address, mapped, sizeof mapped) != 0) memset(out + 8, 0, 8);
}

int fkt_rate_limit_same(const uint8_t a[FKT_RATE_LIMIT_ADDRESS], const uint8_t b[FKT_RATE_LIMIT_ADDRESS])
{
    uint8_t x[FKT_RATE_LIMIT_ADDRESS], y[FKT_RATE_LIMIT_ADDRESS];
    shorten(x, a);
    shorten(y, b);
    return memcmp(x, y, sizeof x) == 0;
}

static const struct slot *set_of(const struct fkt_rate_limit *c, const uint8_t shorter[FKT_RATE_LIMIT_ADDRESS])
{
    uint8_t hash[FKT_DIGEST_BYTES];
    struct fkt_digest d;
    fkt_digest_init(&d, "fedkt rate limit", c->key);
    fkt_digest_add(&d, shorter, FKT_RATE_LIMIT_ADDRESS);
    fkt_digest_end(&d, hash);
    return c->slot[(hash[0] | hash[1] << 8) % SETS];
}

uint32_t fkt_rate_limit_wait(const struct fkt_rate_limit *c, const uint8_t address[FKT_RATE_LIMIT_ADDRESS],
                             uint64_t now_ms)
{
    uint8_t shorter[FKT_RATE_LIMIT_ADDRESS];
    const struct slot *set;
    shorten(shorter, address);
    set = set_of(c, shorter);
    for (int i = 0; i < WAYS; i++)
        if (memcmp(set[i].address, shorter, sizeof shorter) == 0)
            return (uint32_t)((beyond(set[i].debt_us, now_ms, c->per_minute, WINDOW_MS) + 999999) / 1000000);
    return 0;
}

void fkt_rate_limit_blame(struct fkt_rate_limit *c, const uint8_t address[FKT_RATE_LIMIT_ADDRESS], uint64_t now_ms)
{
    uint8_t shorter[FKT_RATE_LIMIT_ADDRESS];
    struct slot *set, *best;
    shorten(shorter, address);
    set = best = (struct slot *)set_of(c, shorter);
    for (int i = 0; i < WAYS; i++) {
        if (memcmp(set[i].address, shorter, sizeof shorter) == 0) {
            best = &set[i];
            break;
        }
        if (set[i].debt_us < best->debt_us) best = &set[i];
    }
    if (memcmp(best->address, shorter, sizeof shorter) != 0) {
        memcpy(best->address, shorter, sizeof shorter);
        best->debt_us = 0;
    }
    add(&best->debt_us, now_ms, c->per_minute, WINDOW_MS);
}
