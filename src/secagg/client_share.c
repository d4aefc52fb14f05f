/* SPDX-License-Identifier: Apache-2.0 */
/* client_share.c - a site checks its neighbours' keys, agrees on secrets with each neighbour, and sends each a sealed
 * share of its own two seeds (docs/protocol.md 3.3).
 *
 *   V -> seed -> graph -> neighbours;   advert of each -> signature, keys -> seal keys, pair key
 *   s, u -> n shares each -> (share of s || share of u) sealed for j
 *
 * Pair keys are made here and not when the vector is masked. So each neighbour's mask key is checked where the protocol
 * requires it, no extra key agreement is needed, and c, s and the mask secret can be wiped at once.
 *
 * Cost for n neighbours: n verifications, 2n X25519, n*t steps of two polynomials. */
#include "secagg/client.h"
#include "secagg/coin.h"
#include "secagg/graph.h"

#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/seal.h"
#include "crypto/shamir.h"
#include "crypto/sign.h"

#include <string.h>

static fkt_status derive_seed(struct fkt_sa_client *c, struct fkt_sa_bytes v)
{
    const int sparse = !fkt_sa_complete(&c->p);
    if (v.n != (sparse ? 32 : 0)) return fkt_fail(FKT_E_PEER_FORMAT, "the coin's value has %zu bytes", v.n);
    return fkt_sa_coin_seed(c->seed, c->session, sparse ? c->root : NULL, sparse ? v.p : NULL);
}

/* Lists all `degree` neighbours, ascending, and marks those in `present`; on a sparse graph, also the witnesses. */
static fkt_status list_neighbours(struct fkt_sa_client *c, const uint8_t *present)
{
    const int sparse = !fkt_sa_complete(&c->p);
    struct fkt_sa_graph graph = {0};
    uint32_t *site = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&c->neighbour, c->p.degree));
    FKT_TRY(fkt_alloc(&c->witness, c->p.degree));
    FKT_TRY(fkt_alloc(&site, c->p.degree));
    FKT_TRY(fkt_sa_graph_make(&graph, &c->p, c->session, c->seed));
    fkt_sa_graph_neighbours(&graph, c->index, site);
    for (uint32_t i = 0; i < c->p.degree; i++) {
        c->neighbour[i].site = site[i];
        c->neighbour[i].standing = fkt_bitmap_get(present, i) ? FKT_SA_PRESENT : FKT_SA_ABSENT;
        c->neighbour[i].after = sparse && fkt_sa_graph_after(&graph, c->index, site[i]);
    }
    if (sparse) {
        fkt_sa_graph_witnesses(&graph, c->witness);
        c->witnesses = c->p.degree;
    }
out:
    fkt_sa_graph_clear(&graph);
    fkt_free(site);
    return st;
}

static fkt_status check_advert(const struct fkt_sa_client *c, uint32_t site, const uint8_t *channel_key,
                               const uint8_t *mask_key, const uint8_t *signature)
{
    uint8_t hash[32];
    fkt_sa_advert_hash(hash, c->session, site, channel_key, mask_key);
    if (!fkt_verify(signature, hash, sizeof hash, fkt_sa_roster_key(&c->p, site)))
        return fkt_fail(FKT_E_PEER_AUTH, "the signature of site %u on its keys is wrong", site);
    if (fkt_same(channel_key, c->channel_key, 32) || fkt_same(channel_key, c->mask_key, 32) ||
        fkt_same(mask_key, c->channel_key, 32) || fkt_same(mask_key, c->mask_key, 32))
        return fkt_fail(FKT_E_PEER_AUTH, "site %u presents a key of this site as its own", site);
    return FKT_OK;
}

/* to (present, 32): the keys under which our shares are sealed. */
static fkt_status agree_keys(struct fkt_sa_client *c, const uint8_t *advert, uint8_t *to)
{
    uint8_t mask_secret[32];
    fkt_status st = FKT_OK;
    fkt_sa_mask_secret(mask_secret, c->secret.mask_seed, c->session, c->index);
    for (uint32_t i = 0; i < c->p.degree; i++) {
        struct fkt_sa_neighbour *j = &c->neighbour[i];
        if (j->standing != FKT_SA_PRESENT) continue;
        FKT_TRY(check_advert(c, j->site, advert, advert + 32, advert + 64));
        FKT_TRY(fkt_sa_seal_keys(to, j->from_key, c->secret.channel, advert, c->session, c->seed, c->index, j->site));
        FKT_TRY(fkt_sa_pair_key(j->pair_key, mask_secret, advert + 32, c->session, c->seed, c->index, j->site));
        advert += FKT_SA_ADVERT;
        to += 32;
    }
out:
    fkt_wipe(mask_secret, sizeof mask_secret);
    return st;
}

/* shares (2, present, 32): of s, then of u. The evaluation point of neighbour j is j + 1. */
static fkt_status split(struct fkt_sa_client *c, uint8_t *shares)
{
    uint32_t *x = NULL, n = 0;
    fkt_status st;
    FKT_TRY(fkt_alloc(&x, c->present));
    for (uint32_t i = 0; i < c->p.degree; i++)
        if (c->neighbour[i].standing == FKT_SA_PRESENT) x[n++] = c->neighbour[i].site + 1;
    FKT_TRY(fkt_shamir_split(shares, c->secret.mask_seed, x, n, c->p.threshold, c->entropy));
    FKT_TRY(fkt_shamir_split(shares + (size_t)n * FKT_SA_SHARE_BYTES, c->secret.self_seed, x, n, c->p.threshold,
                             c->entropy));
out:
    fkt_free(x);
    return st;
}

static void seal_all(uint8_t *sealed, const uint8_t *shares, const uint8_t *to, uint32_t n)
{
    uint8_t plain[2 * FKT_SA_SHARE_BYTES];
    for (size_t i = 0; i < n; i++) {
        memcpy(plain, shares + i * FKT_SA_SHARE_BYTES, FKT_SA_SHARE_BYTES);
        memcpy(plain + FKT_SA_SHARE_BYTES, shares + (n + i) * FKT_SA_SHARE_BYTES, FKT_SA_SHARE_BYTES);
        fkt_seal(sealed + i * FKT_SA_SEALED, plain, sizeof plain, to + i * 32);
    }
    fkt_wipe(plain, sizeof plain);
}

static fkt_status queue_shares(struct fkt_sa_client *c, const uint8_t *to)
{
    struct fkt_sa_msg answer = {.kind = FKT_SA_M_SHARES};
    uint8_t *shares = NULL, *sealed = NULL, commitment[32];
    size_t n = c->present;
    fkt_status st;
    FKT_TRY(fkt_alloc(&shares, 2 * n * FKT_SA_SHARE_BYTES));
    FKT_TRY(fkt_alloc(&sealed, n * FKT_SA_SEALED));
    FKT_TRY(split(c, shares));
    seal_all(sealed, shares, to, c->present);
    fkt_sa_self_commitment(commitment, c->session, c->index, c->secret.self_seed);
    answer.shares.sealed = (struct fkt_sa_bytes){sealed, n * FKT_SA_SEALED};
    answer.shares.self_commitment = (struct fkt_sa_bytes){commitment, sizeof commitment};
    FKT_TRY(fkt_sa_client_queue(c, &answer));
out:
    if (shares) fkt_wipe(shares, 2 * n * FKT_SA_SHARE_BYTES);
    fkt_free(shares);
    fkt_free(sealed);
    return st;
}

fkt_status fkt_sa_client_neighbours(struct fkt_sa_client *c, const struct fkt_sa_msg *m)
{
    uint8_t *to = NULL;
    fkt_status st;
    FKT_TRY(fkt_sa_client_list(c, "neighbours that take part", m->neighbours.present, c->p.degree,
                               m->neighbours.adverts, FKT_SA_ADVERT, &c->present));
    FKT_TRY(derive_seed(c, m->neighbours.scalar));
    FKT_TRY(list_neighbours(c, m->neighbours.present.p));
    FKT_TRY(fkt_alloc(&to, (size_t)c->present * 32));
    FKT_TRY(agree_keys(c, m->neighbours.adverts.p, to));
    FKT_TRY(queue_shares(c, to));
    fkt_wipe(c->secret.channel, sizeof c->secret.channel);
    fkt_wipe(c->secret.mask_seed, sizeof c->secret.mask_seed);
    fkt_wipe(c->secret.coin, sizeof c->secret.coin);
out:
    if (to) fkt_wipe(to, (size_t)c->present * 32);
    fkt_free(to);
    return st;
}
