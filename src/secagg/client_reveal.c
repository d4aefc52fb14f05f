/* SPDX-License-Identifier: Apache-2.0 */
/* client_reveal.c - the survivors, their confirmation, and one share of each peer (docs/protocol.md 3.5, 3.6).
 *
 *   survivors -> five checks -> for each peer, overwrite the share that must stay secret -> signature
 *   confirmations -> t valid ones for the same survivors -> one share of each peer -> spend -> ready to send
 *
 * A site holds two shares of each peer: t shares of one kind give the server the peer's self mask, t of the other its
 * pair masks, and both together its vector. The survivors decide which kind may be sent, and the other is overwritten
 * before this site signs anything.
 *
 * Whose signatures count: on a complete graph the peers'. On a sparse graph those of k witnesses, the same for all
 * sites: distant parts of a ring have no common neighbour that could notice different lists of survivors. */
#include "secagg/client.h"

#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/sign.h"

#include <assert.h>
#include <string.h>

static int survives(const struct fkt_sa_client *c, uint32_t site) { return fkt_bitmap_get(c->survivors, site); }

static int checks_sides(const struct fkt_sa_params *p)
{
    return !fkt_sa_complete(p) && fkt_sa_cuttable(p->corrupt, p->dropped, p->degree, p->threshold);
}

/* before, after: how many peers among the survivors are on each side of this site. */
static fkt_status check_sides(const struct fkt_sa_client *c, uint64_t before, uint64_t after)
{
    if (before + after < c->p.threshold)
        return fkt_fail(FKT_E_TOO_FEW, "%u peers are among the survivors, and at least %u are needed",
                        (unsigned)(before + after), c->p.threshold);
    if (checks_sides(&c->p) && (8 * before <= 3ULL * c->p.threshold || 8 * after <= 3ULL * c->p.threshold))
        return fkt_fail(FKT_E_TOO_FEW, "%u and %u survivors on the two sides, and more than %u are needed on each",
                        (unsigned)before, (unsigned)after, 3 * c->p.threshold / 8);
    return FKT_OK;
}

static fkt_status check_survivors(const struct fkt_sa_client *c)
{
    size_t n = fkt_bitmap_count(c->survivors, c->p.sites);
    uint64_t side[2] = {0};
    if (!survives(c, c->index))
        return fkt_fail(FKT_E_PEER_AUTH, "site %u is not among the survivors that it should confirm", c->index);
    if (n < c->p.sites - c->p.dropped)
        return fkt_fail(FKT_E_TOO_FEW, "there are %zu survivors, and at least %u are needed", n,
                        c->p.sites - c->p.dropped);
    for (uint32_t i = 0; i < c->p.sites; i++)
        if (survives(c, i) && !fkt_bitmap_get(c->delivered, i))
            return fkt_fail(FKT_E_PEER_AUTH, "site %u is among the survivors, but was not in the delivered set", i);
    for (uint32_t i = 0; i < c->p.degree; i++) /* neighbours among the survivors are peers by now */
        if (survives(c, c->neighbour[i].site)) side[c->neighbour[i].after]++;
    return check_sides(c, side[0], side[1]);
}

/* From here on each peer has one share, not two. */
static void drop_other_shares(struct fkt_sa_client *c)
{
    for (uint32_t i = 0; i < c->p.degree; i++) {
        struct fkt_sa_neighbour *j = &c->neighbour[i];
        if (survives(c, j->site)) fkt_wipe(j->mask_share, sizeof j->mask_share);
        else fkt_wipe(j->self_share, sizeof j->self_share);
    }
}

fkt_status fkt_sa_client_survivors(struct fkt_sa_client *c, const struct fkt_sa_msg *m)
{
    const struct fkt_sa_bytes set = m->survivors.survivors;
    struct fkt_sa_msg answer = {.kind = FKT_SA_M_CONFIRM};
    uint8_t hash[32], signature[FKT_SIGN_BYTES];
    fkt_status st;
    assert(!c->survivors); /* survivors are set once */
    if (set.n != fkt_bitmap_bytes(c->p.sites) || !fkt_bitmap_ok(set.p, c->p.sites))
        return fkt_fail(FKT_E_PEER_FORMAT, "the bitmap of survivors is not one of %u bits", c->p.sites);
    FKT_TRY(fkt_alloc(&c->survivors, set.n));
    memcpy(c->survivors, set.p, set.n);
    FKT_TRY(check_survivors(c));
    drop_other_shares(c);
    fkt_sa_confirm_hash(hash, c->session, c->seed, c->survivors, set.n);
    fkt_sign(signature, hash, sizeof hash, c->secret.sign);
    fkt_wipe(c->secret.sign, sizeof c->secret.sign);
    answer.confirm.signature = (struct fkt_sa_bytes){signature, sizeof signature};
    FKT_TRY(fkt_sa_client_queue(c, &answer));
out:
    return st;
}

static fkt_status check_confirmations(const struct fkt_sa_client *c, const uint8_t *present, const uint8_t *signature)
{
    uint8_t hash[32];
    fkt_sa_confirm_hash(hash, c->session, c->seed, c->survivors, fkt_bitmap_bytes(c->p.sites));
    for (uint32_t i = 0; i < c->witnesses; i++) {
        const uint32_t j = c->witness[i];
        if (!fkt_bitmap_get(present, i)) continue;
        if (!survives(c, j)) return fkt_fail(FKT_E_PEER_AUTH, "site %u confirms, but did not survive", j);
        if (!fkt_verify(signature, hash, sizeof hash, fkt_sa_roster_key(&c->p, j)))
            return fkt_fail(FKT_E_PEER_AUTH, "site %u has not signed the survivors that this site knows", j);
        signature += FKT_SIGN_BYTES;
    }
    return FKT_OK;
}

/* The only function that sends shares. It sends one of each peer, never both: drop_other_shares has wiped the other.
 * If that did not happen (a bug, or a memory fault), the site stops here. */
static fkt_status reveal(const struct fkt_sa_client *c, uint8_t *shares)
{
    static const uint8_t gone[FKT_SA_SHARE_BYTES];
    for (uint32_t i = 0; i < c->p.degree; i++) {
        const struct fkt_sa_neighbour *j = &c->neighbour[i];
        const int self = survives(c, j->site);
        if (j->standing != FKT_SA_PEER) continue;
        if (!fkt_same(self ? j->mask_share : j->self_share, gone, sizeof gone))
            return fkt_fail(FKT_E_STATE, "both shares of site %u are still there", j->site);
        memcpy(shares, self ? j->self_share : j->mask_share, FKT_SA_SHARE_BYTES);
        shares += FKT_SA_SHARE_BYTES;
    }
    return FKT_OK;
}

fkt_status fkt_sa_client_confirmed(struct fkt_sa_client *c, const struct fkt_sa_msg *m)
{
    struct fkt_sa_msg answer = {.kind = FKT_SA_M_REVEAL};
    size_t bytes = (size_t)c->peers * FKT_SA_SHARE_BYTES;
    uint8_t *shares = NULL;
    uint32_t n;
    fkt_status st;
    FKT_TRY(fkt_sa_client_list(c, "confirmations", m->confirmed.present, c->witnesses, m->confirmed.signatures,
                               FKT_SIGN_BYTES, &n));
    FKT_TRY(check_confirmations(c, m->confirmed.present.p, m->confirmed.signatures.p));
    FKT_TRY(fkt_alloc(&shares, bytes));
    FKT_TRY(reveal(c, shares));
    answer.reveal.shares = (struct fkt_sa_bytes){shares, bytes};
    FKT_TRY(fkt_sa_client_queue(c, &answer));
    /* last: after the budget is spent nothing can fail before the shares are sent */
    FKT_TRY(fkt_sa_client_own(c, c->site->spend(c->site->self, c->session)));
    fkt_sa_neighbours_free(c->neighbour, c->p.degree);
    c->neighbour = NULL;
out:
    if (shares) fkt_wipe(shares, bytes);
    fkt_free(shares);
    return st;
}
