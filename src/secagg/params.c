/* SPDX-License-Identifier: Apache-2.0 */
/* params.c - the parameters of one round: checked once, copied, and the sizes that follow from them (docs/protocol.md
 * 1).
 *
 * An error names the rule and the numbers that break it, since they come from a file that a person wrote. Each rule is
 * one line of threshold_check, in 64-bit arithmetic, where N, C, D, k, t < 2^17 cannot wrap.
 *
 * The public check also verifies every key of the roster (0.1 ms each); it is made once, when a task is opened. Copying
 * skips that: a thousand sites in one process would check a million keys. Skipping it is safe. A key that is not a
 * point, or is of small order, verifies nothing, so its site can never take part. A key with a small-order component
 * verifies for its owner alone (crypto/sign.c), but other implementations may decide differently about its signatures,
 * and sites would then disagree about who takes part. Both paths check that the keys are distinct.
 *
 * Message sizes follow protobuf's wire format, field by field as in proto/fedkt.proto: a tag of one byte (all field
 * numbers are below 16), a varint, and for bytes their length. They are limits applied before decoding, so they are
 * exact: the longest message that an honest party can send. */
#include "secagg/params.h"

#include "fedkt/advanced/secagg.h"

#include "base/alloc.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "crypto/sign.h"

#include <stdlib.h>
#include <string.h>

#define SITES_MIN 3U
#define MESSAGE_MAX 0x7fffffffU /* bytes; several protobuf libraries stop at 2 GiB */

uint32_t fkt_sa_bits(uint32_t sites, uint64_t bound)
{
    if (sites == 0) return 0;
    for (uint32_t b = 8; b <= 62; b++)
        if (bound <= (((uint64_t)1 << (b - 1)) - 1) / sites) return b;
    return 0;
}

size_t fkt_sa_packed(uint32_t length, uint32_t bits) { return (size_t)(((uint64_t)length * bits + 7) / 8); }

const char *fkt_sa_state_name(enum fkt_sa_state s)
{
    switch (s) {
    case FKT_SA_STATE_BEGIN: return "begin";
    case FKT_SA_STATE_ADVERTISE: return "advertise";
    case FKT_SA_STATE_COIN: return "coin";
    case FKT_SA_STATE_SHARE: return "share";
    case FKT_SA_STATE_MASK: return "mask";
    case FKT_SA_STATE_CONFIRM: return "confirm";
    case FKT_SA_STATE_REVEAL: return "reveal";
    case FKT_SA_STATE_UNMASK: return "unmask";
    case FKT_SA_STATE_DONE: return "done";
    case FKT_SA_STATE_FAILED: return "failed";
    }
    return "unknown state";
}

/* ---- the rules ---- */

static fkt_status shape_check(const struct fkt_sa_params *p)
{
    if (p->sites < SITES_MIN || p->sites > FKT_SA_SITES_MAX)
        return fkt_fail(FKT_E_ARG, "%u sites: there must be %u to %u", p->sites, SITES_MIN, FKT_SA_SITES_MAX);
    if (!fkt_sa_complete(p) && (p->degree < 2 || p->degree > p->sites - 2 || p->degree % 2))
        return fkt_fail(FKT_E_ARG, "degree %u for %u sites: it must be %u (everyone), or even and from 2 to %u",
                        p->degree, p->sites, p->sites - 1, p->sites - 2);
    if (p->attempts < 1 || p->attempts > 16)
        return fkt_fail(FKT_E_ARG, "%u attempts at the coin: there must be 1 to 16", p->attempts);
    if (p->keystream != FKT_SA_KEYSTREAM_AES_256_CTR && p->keystream != FKT_SA_KEYSTREAM_CHACHA20)
        return fkt_fail(FKT_E_ARG, "keystream %d is unknown", (int)p->keystream);
    if (p->length < 1) return fkt_fail(FKT_E_ARG, "the vector length is 0");
    if (p->bits < 8 || p->bits > 62) return fkt_fail(FKT_E_ARG, "a ring of %u bits: there must be 8 to 62", p->bits);
    if (p->bound < 1 || p->bound > (((uint64_t)1 << (p->bits - 1)) - 1) / p->sites)
        return fkt_fail_hint(FKT_E_ARG, "take more bits, or a smaller bound",
                             "%u numbers up to %llu do not fit into %u bits with their sign", p->sites,
                             (unsigned long long)p->bound, p->bits);
    if (fkt_sa_to_server_max(p) > MESSAGE_MAX)
        return fkt_fail(FKT_E_ARG, "a vector of %u numbers of %u bits exceeds 2 GiB", p->length, p->bits);
    if (!p->roster) return fkt_fail(FKT_E_ARG, "the roster is missing");
    return FKT_OK;
}

/* The first three rules hold on any graph. On a sparse graph the fourth is finder.md 4, with the largest number of
 * corrupt neighbours that 2t > k + that number allows; on the complete graph C is their number. */
static fkt_status threshold_check(const struct fkt_sa_params *p)
{
    const int64_t n = p->sites, d = p->dropped, c = p->corrupt, k = p->degree, t = p->threshold;
    if (n - d - c < 2)
        return fkt_fail(FKT_E_ARG, "%u sites less %u lost and %u corrupt leave fewer than two honest ones", p->sites,
                        p->dropped, p->corrupt);
    if (t > k) return fkt_fail(FKT_E_ARG, "threshold %u is above the %u neighbours of a site", p->threshold, p->degree);
    if (2 * t <= k)
        return fkt_fail(FKT_E_ARG, "threshold %u of %u neighbours is not more than half", p->threshold, p->degree);
    if (!fkt_sa_complete(p)) {
        if (fkt_sa_only_once(n, c, d, k, t)) return FKT_OK;
        return fkt_fail_hint(FKT_E_ARG, "with sites >= corrupt + 3*dropped it always holds; or take the complete graph",
                             "too many of %u sites could take part in a second total, with %u lost, %u corrupt, "
                             "degree %u and threshold %u",
                             p->sites, p->dropped, p->corrupt, p->degree, p->threshold);
    }
    if (2 * t <= n - 1 + c)
        return fkt_fail(FKT_E_ARG, "threshold %u: with %u sites, %u of them corrupt, it must be above %lld",
                        p->threshold, p->sites, p->corrupt, (long long)((n - 1 + c) / 2));
    if (t > n - 1 - d)
        return fkt_fail(FKT_E_ARG, "threshold %u: with %u of %u sites lost it may not be above %lld", p->threshold,
                        p->dropped, p->sites, (long long)(n - 1 - d));
    if (t <= c + d)
        return fkt_fail(FKT_E_ARG, "threshold %u is not above %u corrupt and %u lost sites", p->threshold, p->corrupt,
                        p->dropped);
    return FKT_OK;
}

struct owned_key {
    uint8_t key[FKT_SA_KEY];
    uint32_t site;
};

static int by_key(const void *a, const void *b)
{
    const struct owned_key *x = a, *y = b;
    for (size_t i = 0; i < FKT_SA_KEY; i++)
        if (x->key[i] != y->key[i]) return x->key[i] < y->key[i] ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static fkt_status keys_differ(const struct fkt_sa_params *p)
{
    struct owned_key *k = NULL;
    fkt_status st = FKT_OK;
    FKT_TRY(fkt_alloc(&k, p->sites));
    for (uint32_t i = 0; i < p->sites; i++) {
        memcpy(k[i].key, fkt_sa_roster_key(p, i), FKT_SA_KEY);
        k[i].site = i;
    }
    qsort(k, p->sites, sizeof *k, by_key);
    for (uint32_t i = 1; i < p->sites; i++)
        if (fkt_same(k[i - 1].key, k[i].key, FKT_SA_KEY)) {
            st = fkt_fail(FKT_E_ARG, "sites %u and %u have the same key in the roster", k[i - 1].site, k[i].site);
            goto out;
        }
out:
    fkt_free(k);
    return st;
}

static fkt_status all_but_points(const struct fkt_sa_params *p)
{
    fkt_status st;
    FKT_TRY(shape_check(p));
    FKT_TRY(threshold_check(p));
    FKT_TRY(keys_differ(p));
out:
    return st;
}

fkt_status fkt_sa_params_check(const struct fkt_sa_params *p)
{
    fkt_status st;
    FKT_TRY(all_but_points(p));
    for (uint32_t i = 0; i < p->sites; i++)
        if (!fkt_sign_key_ok(fkt_sa_roster_key(p, i)))
            return fkt_fail(FKT_E_ARG, "site %u has a key in the roster that is not an Ed25519 key", i);
out:
    return st;
}

fkt_status fkt_sa_params_copy(struct fkt_sa_params *out, const struct fkt_sa_params *p)
{
    uint8_t *roster = NULL;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(all_but_points(p));
    FKT_TRY(fkt_alloc(&roster, (size_t)p->sites * FKT_SA_KEY));
    memcpy(roster, p->roster, (size_t)p->sites * FKT_SA_KEY);
    *out = *p;
    out->roster = roster;
out:
    return st;
}

void fkt_sa_params_clear(struct fkt_sa_params *p)
{
    fkt_free((void *)(uintptr_t)p->roster); /* allocated by fkt_sa_params_copy */
    memset(p, 0, sizeof *p);
}

void fkt_sa_session(uint8_t session[FKT_SA_SESSION], const struct fkt_sa_params *p, const uint8_t round[FKT_SA_ROUND])
{
    struct fkt_digest d;
    fkt_digest_init(&d, "fedkt/1 session", NULL);
    fkt_digest_add(&d, p->task, sizeof p->task);
    fkt_digest_add(&d, round, FKT_SA_ROUND);
    fkt_digest_end(&d, session);
}

void fkt_sa_session_hex(char out[2 * FKT_SA_SESSION + 1], const uint8_t session[FKT_SA_SESSION])
{
    fkt_hex(out, session, FKT_SA_SESSION);
}

/* ---- bitmaps ---- */

int fkt_bitmap_ok(const uint8_t *map, size_t bits) { return bits % 8 == 0 || map[bits / 8] >> (bits % 8) == 0; }

size_t fkt_bitmap_count(const uint8_t *map, size_t bits)
{
    size_t n = 0;
    for (size_t i = 0; i < bits; i++) n += (size_t)fkt_bitmap_get(map, i);
    return n;
}

/* ---- the longest messages ---- */

static uint64_t varint(uint64_t x) /* bytes of x */
{
    uint64_t n = 1;
    while (x >>= 7) n++;
    return n;
}
static uint64_t number(uint64_t x) { return x ? 1 + varint(x) : 0; }    /* a field; omitted when zero */
static uint64_t bytes(uint64_t n) { return n ? 1 + varint(n) + n : 0; } /* a field; omitted when empty */
static uint64_t body(uint64_t n) { return 1 + varint(n) + n; }          /* a message in a field, even if empty */
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

size_t fkt_sa_to_server_max(const struct fkt_sa_params *p)
{
    const uint64_t k = p->degree, sparse = !fkt_sa_complete(p);
    uint64_t most = 2 * bytes(32) + sparse * bytes(32) + bytes(64); /* Advertise; Confirm and Leave are shorter */
    if (p->sites < SITES_MIN) return 0;
    most = larger(most, sparse * (number(p->attempts) + 2 * bytes(32))); /* Open */
    most = larger(most, bytes(80 * k) + bytes(32));                      /* Shares; Reveal is shorter */
    most = larger(most, bytes(fkt_sa_packed(p->length, p->bits)));       /* Masked */
    return (size_t)(bytes(FKT_SA_SESSION) + number(p->sites - 1) + body(most));
}

/* Among N leaves the deepest have ceil(log2 N) siblings: all of the left half (2^(depth-1) leaves), and some of the
 * right part when it is more than half as large. Of those, take the position whose number is longest on the wire; a
 * position with one sibling fewer is always shorter. */
static uint64_t coin_body(const struct fkt_sa_params *p)
{
    uint64_t depth = 0, left, place;
    while ((uint64_t)1 << depth < p->sites) depth++;
    left = (uint64_t)1 << (depth - 1);
    place = p->sites - left > left / 2 ? left : left - 1;
    return number(p->attempts) + number(p->sites) + number(place) + bytes(64 * depth);
}

size_t fkt_sa_to_site_max(const struct fkt_sa_params *p)
{
    const uint64_t k = p->degree, sparse = !fkt_sa_complete(p), map = bytes((k + 7) / 8);
    uint64_t most = sparse * bytes(32) + map + bytes(128 * k); /* Neighbours; Confirmed is shorter */
    if (p->sites < SITES_MIN) return 0;
    if (sparse) most = larger(most, coin_body(p));                          /* Coin */
    most = larger(most, bytes(fkt_bitmap_bytes(p->sites)) + bytes(80 * k)); /* Deliver; Survivors is shorter */
    return (size_t)(bytes(FKT_SA_SESSION) + body(most));                    /* Begin has 54 bytes: always shorter */
}
