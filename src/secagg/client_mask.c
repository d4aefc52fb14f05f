/* SPDX-License-Identifier: Apache-2.0 */
/* client_mask.c - a site opens its peers' shares, reserves budget in its ledger, and makes its masked vector
 * (docs/protocol.md 3.4).
 *
 *   U2 -> neighbours in it are peers -> sealed shares -> all open, all below l -> reserve -> x -> |x| <= B
 *   y = x + self stream +- pair streams -> packed
 *
 * U2 goes into every pair stream: masks cancel only between sites that were sent the same U2. So a server cannot claim
 * to a site that a neighbour is gone and keep that neighbour in the sum (finder.md 1).
 *
 * The ledger is called only after all shares have been checked: a server that delivers garbage must not cause a
 * reservation. The vector exists only here: as the site's 64-bit numbers until they are in the ring, then as words
 * until they are packed; each copy is wiped after use. When a number is beyond the bound, the caller learns only that
 * (the loop treats all numbers alike, and does not report which or by how much), and the server learns nothing.
 *
 * Cost: one mask for each peer and one for the site itself, two words of memory for each number. */
#include "secagg/client.h"
#include "secagg/mask.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "crypto/seal.h"
#include "crypto/shamir.h"

#include <string.h>

/* c->delivered: U2 as received. It must contain this site, and only neighbours whose keys it has. Sets c->peers. */
static fkt_status store_delivered(struct fkt_sa_client *c, struct fkt_sa_bytes map)
{
    fkt_status st;
    if (map.n != fkt_bitmap_bytes(c->p.sites) || !fkt_bitmap_ok(map.p, c->p.sites))
        return fkt_fail(FKT_E_PEER_FORMAT, "the bitmap of the delivered is not one of %u bits", c->p.sites);
    if (!fkt_bitmap_get(map.p, c->index))
        return fkt_fail(FKT_E_PEER_AUTH, "site %u is not in the delivered set", c->index);
    FKT_TRY(fkt_alloc(&c->delivered, map.n));
    memcpy(c->delivered, map.p, map.n);
    for (uint32_t i = 0; i < c->p.degree; i++) {
        const struct fkt_sa_neighbour *j = &c->neighbour[i];
        if (!fkt_bitmap_get(c->delivered, j->site)) continue;
        if (j->standing != FKT_SA_PRESENT)
            return fkt_fail(FKT_E_PEER_AUTH, "site %u is in the delivered set, but this site has no keys of it",
                            j->site);
        c->peers++;
    }
out:
    return st;
}

static fkt_status check_list(const struct fkt_sa_client *c, struct fkt_sa_bytes sealed)
{
    if (sealed.n != (size_t)c->peers * FKT_SA_SEALED)
        return fkt_fail(FKT_E_PEER_FORMAT, "the sealed shares of %u peers have %zu bytes", c->peers, sealed.n);
    if (c->peers < c->p.threshold)
        return fkt_fail(FKT_E_TOO_FEW, "there are %u peers, and at least %u are needed", c->peers, c->p.threshold);
    return FKT_OK;
}

static fkt_status open_shares(struct fkt_sa_client *c, const uint8_t *sealed)
{
    uint8_t plain[2 * FKT_SA_SHARE_BYTES];
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < c->p.degree && st == FKT_OK; i++) {
        struct fkt_sa_neighbour *j = &c->neighbour[i];
        if (!fkt_bitmap_get(c->delivered, j->site)) continue;
        if (!fkt_unseal(plain, sealed, sizeof plain, j->from_key))
            st = fkt_fail(FKT_E_PEER_AUTH, "the shares that site %u sealed for this site do not open", j->site);
        else if (!fkt_scalar_ok(plain) || !fkt_scalar_ok(plain + FKT_SA_SHARE_BYTES))
            st = fkt_fail(FKT_E_PEER_FORMAT, "a share from site %u is not below the order of the group", j->site);
        memcpy(j->mask_share, plain, FKT_SA_SHARE_BYTES);
        memcpy(j->self_share, plain + FKT_SA_SHARE_BYTES, FKT_SA_SHARE_BYTES);
        j->standing = FKT_SA_PEER;
        if (fkt_sa_complete(&c->p)) c->witness[c->witnesses++] = j->site;
        sealed += FKT_SA_SEALED;
    }
    fkt_wipe(plain, sizeof plain);
    return st;
}

static fkt_status check_range(const int64_t *x, uint32_t length, uint64_t bound)
{
    if (fkt_sa_in_range(x, length, bound)) return FKT_OK;
    return fkt_fail_hint(FKT_E_NUMERIC, "this is a fault of the site's own program: the bound follows from the task",
                         "a number of this site's vector is beyond the bound of the task");
}

/* Reads the site's own numbers into v. */
static fkt_status take_vector(struct fkt_sa_client *c, struct fkt_sa_vector *v)
{
    int64_t *x = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&x, c->p.length));
    FKT_TRY(fkt_sa_client_own(c, c->site->vector(c->site->self, x, c->p.length)));
    FKT_TRY(check_range(x, c->p.length, c->p.bound));
    FKT_TRY(fkt_sa_vector_init(v, &c->p));
    fkt_sa_vector_set(v, x);
out:
    fkt_free_secret(x);
    return st;
}

static fkt_status add_masks(const struct fkt_sa_client *c, struct fkt_sa_vector *v, struct fkt_stream *s)
{
    uint8_t key[32], delivered[32];
    fkt_status st;
    fkt_sa_delivered_hash(delivered, c->session, c->seed, c->delivered, fkt_bitmap_bytes(c->p.sites));
    fkt_sa_self_key(key, c->secret.self_seed, c->session, c->index);
    FKT_TRY(fkt_sa_vector_mask(v, s, key, 0));
    for (uint32_t i = 0; i < c->p.degree; i++) {
        const struct fkt_sa_neighbour *j = &c->neighbour[i];
        if (j->standing != FKT_SA_PEER) continue;
        fkt_sa_stream_key(key, j->pair_key, delivered);
        FKT_TRY(fkt_sa_vector_mask(v, s, key, j->site < c->index));
    }
out:
    fkt_wipe(key, sizeof key);
    return st;
}

static fkt_status masked(struct fkt_sa_client *c, uint8_t *packed)
{
    struct fkt_sa_vector v = {0};
    struct fkt_stream *s = NULL;
    fkt_status st;
    FKT_TRY(fkt_sa_mask_stream(&s, &c->p));
    FKT_TRY(take_vector(c, &v));
    FKT_TRY(add_masks(c, &v, s));
    fkt_sa_vector_pack(&v, packed);
out:
    fkt_sa_vector_clear(&v);
    fkt_stream_free(s);
    return st;
}

static fkt_status queue_masked(struct fkt_sa_client *c)
{
    size_t n = fkt_sa_packed(c->p.length, c->p.bits);
    struct fkt_sa_msg answer = {.kind = FKT_SA_M_MASKED};
    uint8_t *packed = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&packed, n));
    FKT_TRY(masked(c, packed));
    answer.masked.packed = (struct fkt_sa_bytes){packed, n};
    FKT_TRY(fkt_sa_client_queue(c, &answer));
out:
    fkt_free(packed);
    return st;
}

fkt_status fkt_sa_client_deliver(struct fkt_sa_client *c, const struct fkt_sa_msg *m)
{
    fkt_status st;
    FKT_TRY(store_delivered(c, m->deliver.delivered));
    FKT_TRY(check_list(c, m->deliver.sealed));
    FKT_TRY(open_shares(c, m->deliver.sealed.p));
    FKT_TRY(fkt_sa_client_own(c, c->site->reserve(c->site->self, c->session)));
    FKT_TRY(queue_masked(c));
    fkt_wipe(c->secret.self_seed, sizeof c->secret.self_seed);
    for (uint32_t i = 0; i < c->p.degree; i++) {
        fkt_wipe(c->neighbour[i].from_key, sizeof c->neighbour[i].from_key);
        fkt_wipe(c->neighbour[i].pair_key, sizeof c->neighbour[i].pair_key);
    }
out:
    return st;
}
