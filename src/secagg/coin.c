/* SPDX-License-Identifier: Apache-2.0 */
/* coin.c - a common random number that cannot be biased once the commitments are in (docs/protocol.md 4).
 *
 *      (digest, point)                 root: R, P = V*G
 *         /        \                   parent point = left + h(parent digest) * right
 *     (d, p)      (d, p)               leaf: H(its site, keys and commitment r*G), r*G
 *
 * A tree binds all commitments of a throw into one pair of 64 bytes; each site checks its own path to the root, log2(N)
 * steps. Source: the random coefficients are those of MuSig's key aggregation (Maxwell, Poelstra, Seurin, Wuille,
 * 2019), here one for each inner node; coin.md proves the tree. We differ from plain commit-and-open, where the server
 * could show different openings to different sites: V is one number, and V*G = P has one solution.
 *
 * Cost for the server: one point multiplication for each site; for a site log2(N) + 1 of them. */
#include "secagg/coin.h"

#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/group.h"
#include "crypto/shamir.h"

#include <assert.h>
#include <string.h>

static fkt_status leaf_node(uint8_t node[FKT_SA_NODE], const uint8_t session[FKT_SA_SESSION], uint32_t throw_number,
                            const struct fkt_sa_leaf *leaf)
{
    struct fkt_digest d;
    fkt_digest_init(&d, "fedkt/1 leaf", NULL);
    fkt_digest_add(&d, session, FKT_SA_SESSION);
    fkt_digest_add_u32(&d, throw_number);
    fkt_digest_add_u32(&d, leaf->site);
    fkt_digest_add(&d, leaf->channel_key, 32);
    fkt_digest_add(&d, leaf->mask_key, 32);
    fkt_digest_add(&d, leaf->commitment, FKT_POINT_BYTES);
    fkt_digest_end(&d, node);
    memcpy(node + 32, leaf->commitment, FKT_POINT_BYTES);
    if (!fkt_point_ok(leaf->commitment))
        return fkt_fail(FKT_E_PEER_AUTH, "the coin of site %u is not a point of the group", leaf->site);
    return FKT_OK;
}

/* The coefficient of the right child, from the parent's digest. */
static void coefficient(uint8_t h[32], const uint8_t digest[32])
{
    struct fkt_digest d;
    uint8_t wide[64];
    fkt_digest_init(&d, "fedkt/1 fold 0", NULL);
    fkt_digest_add(&d, digest, 32);
    fkt_digest_end(&d, wide);
    fkt_digest_init(&d, "fedkt/1 fold 1", NULL);
    fkt_digest_add(&d, digest, 32);
    fkt_digest_end(&d, wide + 32);
    fkt_scalar_reduce(h, wide);
}

static fkt_status parent_node(uint8_t out[FKT_SA_NODE], const uint8_t left[FKT_SA_NODE],
                              const uint8_t right[FKT_SA_NODE])
{
    struct fkt_digest d;
    uint8_t digest[32], h[32];
    fkt_status st;
    fkt_digest_init(&d, "fedkt/1 node", NULL);
    fkt_digest_add(&d, left, 32);
    fkt_digest_add(&d, left + 32, FKT_POINT_BYTES);
    fkt_digest_add(&d, right, 32);
    fkt_digest_add(&d, right + 32, FKT_POINT_BYTES);
    fkt_digest_end(&d, digest);
    coefficient(h, digest);
    st = fkt_point_fold(out + 32, left + 32, h, right + 32); /* out may be left or right */
    memcpy(out, digest, sizeof digest);
    return st;
}

/* ---- server ---- */

fkt_status fkt_sa_coin_build(struct fkt_sa_coin *c, const uint8_t session[FKT_SA_SESSION], uint32_t throw_number,
                             const struct fkt_sa_leaf *leaf, uint32_t n)
{
    uint8_t *level, *up;
    fkt_status st = FKT_OK;
    assert(n >= 1);
    *c = (struct fkt_sa_coin){.leaves = n, .n_nodes = 1};
    for (uint32_t m = n; m > 1; m = (m + 1) / 2) c->n_nodes += m;
    FKT_TRY(fkt_alloc(&c->nodes, c->n_nodes * FKT_SA_NODE));
    for (uint32_t i = 0; i < n; i++)
        FKT_TRY(leaf_node(c->nodes + (size_t)i * FKT_SA_NODE, session, throw_number, &leaf[i]));
    level = c->nodes;
    for (uint32_t m = n; m > 1; m = (m + 1) / 2, level = up) {
        up = level + (size_t)m * FKT_SA_NODE;
        for (uint32_t i = 0; i < m / 2; i++) {
            const uint8_t *pair = level + (size_t)(2 * i) * FKT_SA_NODE;
            FKT_TRY(parent_node(up + (size_t)i * FKT_SA_NODE, pair, pair + FKT_SA_NODE));
        }
        if (m % 2) memcpy(up + (size_t)(m / 2) * FKT_SA_NODE, level + (size_t)(m - 1) * FKT_SA_NODE, FKT_SA_NODE);
    }
out:
    if (st != FKT_OK) fkt_sa_coin_clear(c);
    return st;
}

void fkt_sa_coin_clear(struct fkt_sa_coin *c)
{
    fkt_free(c->nodes);
    memset(c, 0, sizeof *c);
}

size_t fkt_sa_coin_path_bytes(uint32_t leaves, uint32_t position)
{
    size_t n = 0;
    if (position >= leaves) return 0;
    for (; leaves > 1; leaves = leaves / 2 + leaves % 2, position /= 2)
        if ((position ^ 1) < leaves) n += FKT_SA_NODE;
    return n;
}

void fkt_sa_coin_path(const struct fkt_sa_coin *c, uint32_t position, uint8_t *path)
{
    const uint8_t *level = c->nodes;
    for (uint32_t m = c->leaves; m > 1; m = (m + 1) / 2, position /= 2) {
        if ((position ^ 1) < m) {
            memcpy(path, level + (size_t)(position ^ 1) * FKT_SA_NODE, FKT_SA_NODE);
            path += FKT_SA_NODE;
        }
        level += (size_t)m * FKT_SA_NODE;
    }
}

const uint8_t *fkt_sa_coin_root(const struct fkt_sa_coin *c) { return c->nodes + (c->n_nodes - 1) * FKT_SA_NODE; }

/* Folds the scalars in place as the points were folded. */
void fkt_sa_coin_open(const struct fkt_sa_coin *c, uint8_t *scalars, uint8_t v[32])
{
    const uint8_t *up = c->nodes;
    uint8_t h[32];
    for (uint32_t m = c->leaves; m > 1; m = (m + 1) / 2) {
        up += (size_t)m * FKT_SA_NODE;
        for (uint32_t i = 0; i < m / 2; i++) {
            uint8_t *pair = scalars + (size_t)(2 * i) * 32;
            coefficient(h, up + (size_t)i * FKT_SA_NODE);
            fkt_scalar_fold(scalars + (size_t)i * 32, pair, h, pair + 32);
        }
        if (m % 2) memmove(scalars + (size_t)(m / 2) * 32, scalars + (size_t)(m - 1) * 32, 32);
    }
    memcpy(v, scalars, 32);
}

/* ---- site, and the seed for both ---- */

fkt_status fkt_sa_coin_climb(uint8_t root[FKT_SA_NODE], const uint8_t session[FKT_SA_SESSION], uint32_t throw_number,
                             const struct fkt_sa_leaf *own, uint32_t leaves, uint32_t position, const uint8_t *path,
                             size_t path_len)
{
    fkt_status st;
    memset(root, 0, FKT_SA_NODE);
    if (leaves > FKT_SA_SITES_MAX || position >= leaves || path_len != fkt_sa_coin_path_bytes(leaves, position))
        return fkt_fail(FKT_E_PEER_FORMAT, "the coin's path has %zu bytes for leaf %u of %u", path_len, position,
                        leaves);
    FKT_TRY(leaf_node(root, session, throw_number, own));
    for (; leaves > 1; leaves = (leaves + 1) / 2, position /= 2) {
        if ((position ^ 1) >= leaves) continue;
        if (position & 1) FKT_TRY(parent_node(root, path, root));
        else FKT_TRY(parent_node(root, root, path));
        path += FKT_SA_NODE;
    }
out:
    return st;
}

static int opens(const uint8_t scalar[32], const uint8_t point[FKT_POINT_BYTES])
{
    uint8_t p[FKT_POINT_BYTES];
    return fkt_scalar_ok(scalar) && fkt_point_base(p, scalar) == FKT_OK && fkt_same(p, point, sizeof p);
}

fkt_status fkt_sa_coin_seed(uint8_t seed[32], const uint8_t session[FKT_SA_SESSION], const uint8_t *root,
                            const uint8_t *v)
{
    struct fkt_digest d;
    memset(seed, 0, 32);
    assert((root == NULL) == (v == NULL));
    if (root && !opens(v, root + 32))
        return fkt_fail(FKT_E_PEER_AUTH, "the coin's value does not match its commitment");
    fkt_digest_init(&d, "fedkt/1 seed", NULL);
    fkt_digest_add(&d, session, FKT_SA_SESSION);
    if (root) {
        fkt_digest_add(&d, root, 32);
        fkt_digest_add(&d, v, 32);
    }
    fkt_digest_end(&d, seed);
    return FKT_OK;
}
