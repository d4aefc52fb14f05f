/* SPDX-License-Identifier: Apache-2.0 */
/* server_secrets.c - rebuilds secrets from shares, some of which may be false (docs/protocol.md 3.7).
 *
 * One secret of each site of U2 is needed: the self seed of a survivor, the mask seed of a lost site. Any t shares give
 * a number, and a commitment (self seed) or public key (mask seed) shows whether it is right. When it is not, one of
 * the t is left out at a time and another respondent takes its place: with one false share among more than t, one
 * choice fits. This always works for each secret, whatever was found for others.
 *
 * A false share may come from the secret's owner or from the share's holder; the server cannot know which. So the
 * holder is only suspected: its shares of other secrets are used last, but they are used. With suspects last, secrets
 * with two or more false shares may be rebuilt as well; a secret for which no choice fits is tried again when there are
 * new suspects. A holder whose shares do not fit the secrets of two owners is blamed: its status becomes
 * FKT_E_PEER_AUTH. This changes nothing in the sum, and two corrupt owners can cause it for an honest holder. If at the
 * end no choice fits a secret, the round ends, and the error names the secret's owner.
 *
 * Cost: one join of t^2 small products for each site of U2; for each secret with a false share up to t more; for each
 * suspect one for each later secret of which it revealed a share, until it is blamed. */
#include "secagg/server.h"

#include "base/alloc.h"
#include "crypto/agree.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"
#include "crypto/shamir.h"

#include <string.h>

struct rebuild {
    struct fkt_sa_server *s;
    uint32_t *who;   /* (degree) peers that revealed their share of one secret, in the order in which they are used */
    uint32_t *x;     /* (t) points of those that are in use */
    uint8_t *shares; /* (t, 32) */
    uint32_t suspicions; /* how often a share did not fit its secret */
};

/* 1 when `secret` is what the site committed to; out gets what unmasking needs: u of a survivor, m of a lost site. */
static int matches_commitment(const struct fkt_sa_server *s, uint32_t site, const uint8_t secret[32], uint8_t out[32])
{
    const struct fkt_sa_slot *slot = &s->slot[site];
    uint8_t proof[32];
    if (s->sets[site] & FKT_SA_SURVIVED) {
        memcpy(out, secret, 32);
        fkt_sa_self_commitment(proof, s->session, site, secret);
        return fkt_same(proof, slot->self_commitment, 32);
    }
    fkt_sa_mask_secret(out, secret, s->session, site);
    fkt_agree_public(proof, out);
    return fkt_same(proof, slot->mask_key, 32);
}

/* Puts the share that `peer` revealed of the secret of `site` at place `at`. */
static void use_share(struct rebuild *r, uint32_t site, uint32_t peer, uint32_t at)
{
    const struct fkt_sa_server *s = r->s;
    r->x[at] = peer + 1;
    memcpy(r->shares + (size_t)at * FKT_SA_SHARE_BYTES,
           s->slot[peer].reveal + (size_t)fkt_sa_near_rank(s, peer, site, FKT_SA_IN_MASK) * FKT_SA_SHARE_BYTES,
           FKT_SA_SHARE_BYTES);
}

/* Joins the shares in use. *fits: they give the secret, which is then in the slot. */
static fkt_status join(struct rebuild *r, uint32_t site, int *fits)
{
    struct fkt_sa_server *s = r->s;
    uint8_t secret[32], out[32];
    fkt_status st = fkt_shamir_join(secret, r->shares, r->x, s->p.threshold);
    *fits = st == FKT_OK && matches_commitment(s, site, secret, out);
    if (*fits) memcpy(s->slot[site].secret, out, sizeof out);
    fkt_wipe(secret, sizeof secret);
    fkt_wipe(out, sizeof out);
    return st;
}

/* Joins the first t of n respondents leaving out number `skip` (n: none). */
static fkt_status attempt(struct rebuild *r, uint32_t site, uint32_t n, uint32_t skip, int *fits)
{
    uint32_t used = 0;
    *fits = 0;
    for (uint32_t k = 0; k < n && used < r->s->p.threshold; k++)
        if (k != skip) use_share(r, site, r->who[k], used++);
    return used < r->s->p.threshold ? FKT_OK : join(r, site, fits);
}

/* One owner's secret contradicts a holder's share. Each secret does so once at most, so the second is another's. */
static void suspect(struct rebuild *r, uint32_t holder)
{
    struct fkt_sa_server *s = r->s;
    r->suspicions++;
    if (s->sets[holder] & FKT_SA_SUSPECT) {
        s->sets[holder] |= FKT_SA_BLAMED;
        fkt_sa_server_lose(s, holder, FKT_E_PEER_AUTH);
    }
    s->sets[holder] |= FKT_SA_SUSPECT;
}

/* The secret was rebuilt from the shares in use. Checks the shares of suspects that were not used. Number `known` was
 * already found false for this secret. */
static fkt_status check_suspects(struct rebuild *r, uint32_t site, uint32_t n, uint32_t known)
{
    fkt_status st = FKT_OK;
    for (uint32_t k = 0; k < n && st == FKT_OK; k++) {
        uint32_t holder = r->who[k], used = 0;
        int fits;
        if (k == known || (r->s->sets[holder] & (FKT_SA_SUSPECT | FKT_SA_BLAMED)) != FKT_SA_SUSPECT) continue;
        while (used < r->s->p.threshold && r->x[used] != holder + 1) used++;
        if (used < r->s->p.threshold) continue;
        use_share(r, site, holder, 0);
        st = join(r, site, &fits);
        if (st == FKT_OK && !fits) suspect(r, holder);
    }
    return st;
}

/* The respondents for one secret: unsuspected ones first, blamed ones last. */
static uint32_t list_respondents(struct rebuild *r, uint32_t site)
{
    static const uint8_t standing[] = {0, FKT_SA_SUSPECT, FKT_SA_SUSPECT | FKT_SA_BLAMED};
    const struct fkt_sa_server *s = r->s;
    const uint32_t *near = fkt_sa_near(s, site);
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof standing; i++)
        for (uint32_t k = 0; k < s->p.degree; k++)
            if ((s->sets[near[k]] & (FKT_SA_HAS_REVEALED | FKT_SA_SUSPECT | FKT_SA_BLAMED)) ==
                (FKT_SA_HAS_REVEALED | standing[i]))
                r->who[n++] = near[k];
    return n;
}

static fkt_status one_secret(struct rebuild *r, uint32_t site)
{
    struct fkt_sa_server *s = r->s;
    const uint32_t n = list_respondents(r, site);
    uint32_t skip = n;
    int fits;
    fkt_status st;
    FKT_TRY(attempt(r, site, n, n, &fits));
    for (uint32_t k = 0; !fits && k < s->p.threshold && n > s->p.threshold; k++)
        FKT_TRY(attempt(r, site, n, skip = k, &fits));
    if (!fits) return FKT_OK;
    s->sets[site] |= FKT_SA_REBUILT;
    if (skip < n) suspect(r, r->who[skip]);
    FKT_TRY(check_suspects(r, site, n, skip));
out:
    return st;
}

fkt_status fkt_sa_server_rebuild(struct fkt_sa_server *s)
{
    struct rebuild r = {.s = s};
    uint32_t before, missing, t = s->p.threshold;
    fkt_status st;
    FKT_TRY(fkt_alloc(&r.who, s->p.degree));
    FKT_TRY(fkt_alloc(&r.x, t));
    FKT_TRY(fkt_alloc(&r.shares, (size_t)t * FKT_SA_SHARE_BYTES));
    do {
        before = r.suspicions;
        missing = UINT32_MAX;
        for (uint32_t i = 0; i < s->p.sites; i++) {
            if ((s->sets[i] & (FKT_SA_IN_MASK | FKT_SA_REBUILT)) != FKT_SA_IN_MASK) continue;
            FKT_TRY(one_secret(&r, i));
            if (!(s->sets[i] & FKT_SA_REBUILT)) missing = i;
        }
    } while (missing != UINT32_MAX && r.suspicions > before);
    if (missing != UINT32_MAX)
        st = fkt_fail_hint(FKT_E_PEER_AUTH, "begin another round without that site",
                           "the revealed shares of site %u's secret do not match its commitment for any choice of %u",
                           missing, t);
out:
    if (r.shares) fkt_wipe(r.shares, (size_t)t * FKT_SA_SHARE_BYTES);
    fkt_free(r.shares);
    fkt_free(r.x);
    fkt_free(r.who);
    return st;
}
