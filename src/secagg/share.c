/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - every key, commitment and signed hash of docs/protocol.md 3, each defined once.
 *
 * All are BLAKE2b over a label and length-prefixed parts (2.1), so that no two of them can be confused, and all are
 * bound to the session and so to the task and the round. Keys of a pair also depend on the seed of the graph: two sites
 * that were sent different graphs have no key in common. The stream between two sites depends on the list of sites
 * whose shares were delivered: masks cancel only between sites that were sent the same list.
 * Cost: a hash each, and one X25519 where a peer's key comes in. */
#include "secagg/share.h"

#include "crypto/agree.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"

static void begin(struct fkt_digest *d, const char *label, const uint8_t *key, const uint8_t session[FKT_SA_SESSION])
{
    fkt_digest_init(d, label, key);
    fkt_digest_add(d, session, FKT_SA_SESSION);
}

/* One secret, one site. */
static void site_key(uint8_t out[32], const char *label, const uint8_t key[32], const uint8_t session[FKT_SA_SESSION],
                     uint32_t site)
{
    struct fkt_digest d;
    begin(&d, label, key, session);
    fkt_digest_add_u32(&d, site);
    fkt_digest_end(&d, out);
}

/* One shared secret, two sites in a fixed order. */
static void pair_key(uint8_t out[32], const char *label, const uint8_t shared[32],
                     const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32], uint32_t first, uint32_t second)
{
    struct fkt_digest d;
    begin(&d, label, shared, session);
    fkt_digest_add(&d, seed, 32);
    fkt_digest_add_u32(&d, first);
    fkt_digest_add_u32(&d, second);
    fkt_digest_end(&d, out);
}

void fkt_sa_mask_secret(uint8_t sk[32], const uint8_t mask_seed[32], const uint8_t session[FKT_SA_SESSION],
                        uint32_t site)
{
    site_key(sk, "fedkt/1 mask key", mask_seed, session, site);
}

void fkt_sa_self_key(uint8_t out[32], const uint8_t self_seed[32], const uint8_t session[FKT_SA_SESSION], uint32_t site)
{
    site_key(out, "fedkt/1 self", self_seed, session, site);
}

void fkt_sa_advert_hash(uint8_t out[32], const uint8_t session[FKT_SA_SESSION], uint32_t site,
                        const uint8_t channel_key[32], const uint8_t mask_key[32])
{
    struct fkt_digest d;
    begin(&d, "fedkt/1 advertise", NULL, session);
    fkt_digest_add_u32(&d, site);
    fkt_digest_add(&d, channel_key, 32);
    fkt_digest_add(&d, mask_key, 32);
    fkt_digest_end(&d, out);
}

/* The hash of a bitmap over the roster. */
static void list_hash(uint8_t out[32], const char *label, const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32],
                      const uint8_t *map, size_t bytes)
{
    struct fkt_digest d;
    begin(&d, label, NULL, session);
    fkt_digest_add(&d, seed, 32);
    fkt_digest_add(&d, map, bytes);
    fkt_digest_end(&d, out);
}

void fkt_sa_confirm_hash(uint8_t out[32], const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32],
                         const uint8_t *survivors, size_t bytes)
{
    list_hash(out, "fedkt/1 confirm", session, seed, survivors, bytes);
}

void fkt_sa_delivered_hash(uint8_t out[32], const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32],
                           const uint8_t *delivered, size_t bytes)
{
    list_hash(out, "fedkt/1 delivered", session, seed, delivered, bytes);
}

void fkt_sa_stream_key(uint8_t out[32], const uint8_t pair_key[32], const uint8_t delivered_hash[32])
{
    struct fkt_digest d;
    fkt_digest_init(&d, "fedkt/1 pair stream", pair_key);
    fkt_digest_add(&d, delivered_hash, 32);
    fkt_digest_end(&d, out);
}

void fkt_sa_self_commitment(uint8_t out[32], const uint8_t session[FKT_SA_SESSION], uint32_t site,
                            const uint8_t self_seed[32])
{
    struct fkt_digest d;
    begin(&d, "fedkt/1 self commitment", NULL, session);
    fkt_digest_add_u32(&d, site);
    fkt_digest_add(&d, self_seed, 32);
    fkt_digest_end(&d, out);
}

fkt_status fkt_sa_pair_key(uint8_t out[32], const uint8_t mask_secret[32], const uint8_t peer_key[32],
                           const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32], uint32_t site, uint32_t peer)
{
    uint8_t shared[32];
    fkt_status st = fkt_agree(shared, mask_secret, peer_key);
    if (st == FKT_OK)
        pair_key(out, "fedkt/1 pair", shared, session, seed, site < peer ? site : peer, site < peer ? peer : site);
    fkt_wipe(shared, sizeof shared);
    return fkt_fail_in(st, "mask key of site %u", peer);
}

fkt_status fkt_sa_seal_keys(uint8_t to_peer[32], uint8_t from_peer[32], const uint8_t channel_secret[32],
                            const uint8_t peer_key[32], const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32],
                            uint32_t site, uint32_t peer)
{
    uint8_t shared[32];
    fkt_status st = fkt_agree(shared, channel_secret, peer_key);
    if (st == FKT_OK) {
        pair_key(to_peer, "fedkt/1 seal", shared, session, seed, site, peer);
        pair_key(from_peer, "fedkt/1 seal", shared, session, seed, peer, site);
    }
    fkt_wipe(shared, sizeof shared);
    return fkt_fail_in(st, "channel key of site %u", peer);
}
