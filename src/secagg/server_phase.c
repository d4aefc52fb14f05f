/* SPDX-License-Identifier: Apache-2.0 */
/* server_phase.c - the end of a phase and the beginning of the next (docs/protocol.md 3 and 4).
 *
 *   ADVERTISE  -> the live sites throw the coin, or on a complete graph share at once
 *   COIN       -> all leaves opened: V, seed, graph, U1. If one did not: another throw with those that did
 *   SHARE      -> U2, after the sites with fewer than t neighbours in it are dropped, repeatedly
 *   MASK       -> S, as a bitmap
 *   CONFIRM    -> t witnesses have signed, and t peers of every site are left to reveal
 *   REVEAL     -> t shares of every secret, or the end
 *
 * Counting here is for liveness alone: it stops a round early that its sites would stop later. Each site makes its own
 * checks for its own protection. Cost: O(N k) for each phase, and for a throw 2N group operations. */
#include "secagg/server.h"

#include "secagg/inspect.h"

#include "base/alloc.h"

#include <string.h>

fkt_status fkt_sa_phase_too_few(const struct fkt_sa_server *s, uint32_t there)
{
    return fkt_fail_hint(FKT_E_TOO_FEW, "begin another round when more sites can be reached",
                         "too few sites in phase %s: %u of %u, at least %u must stay", fkt_sa_state_name(s->state),
                         there, s->p.sites, s->p.sites - s->p.dropped);
}

static fkt_status enough(const struct fkt_sa_server *s, uint32_t there)
{
    return there >= s->p.sites - s->p.dropped ? FKT_OK : fkt_sa_phase_too_few(s, there);
}

static uint32_t living(const struct fkt_sa_server *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->p.sites; i++) n += fkt_sa_alive(s, i);
    return n;
}

/* All live sites are asked, and waited for. */
static void enter(struct fkt_sa_server *s, enum fkt_sa_state state)
{
    for (uint32_t i = 0; i < s->p.sites; i++) s->slot[i].has_answered = 0;
    s->state = state;
    s->pending = s->census.expected = living(s);
    s->census.heard = 0;
    s->cursor = 0;
    s->began = 0;
}

/* Another throw, whose leaves are the live sites. */
static fkt_status throw_coin(struct fkt_sa_server *s)
{
    struct fkt_sa_leaf *leaf = NULL;
    uint32_t n = 0;
    fkt_status st;
    FKT_TRY(enough(s, living(s)));
    if (s->census.throws == s->p.attempts) {
        st = fkt_fail_hint(FKT_E_TOO_FEW, "begin another round",
                           "too few sites in phase %s: in each of %u throws one "
                           "or more did not open",
                           fkt_sa_state_name(s->state), s->p.attempts);
        goto out;
    }
    FKT_TRY(fkt_alloc(&leaf, s->p.sites));
    for (uint32_t i = 0; i < s->p.sites; i++) {
        struct fkt_sa_slot *slot = &s->slot[i];
        if (!fkt_sa_alive(s, i)) continue;
        slot->position = n;
        leaf[n++] = (struct fkt_sa_leaf){i, slot->channel_key, slot->mask_key, slot->coin};
    }
    fkt_sa_coin_clear(&s->coin);
    FKT_TRY(fkt_sa_coin_build(&s->coin, s->session, s->census.throws + 1, leaf, n));
    s->census.throws++;
    enter(s, FKT_SA_STATE_COIN);
out:
    fkt_free(leaf);
    return st;
}

/* The seed is known: compute all neighbours, and those of them that take part. */
static fkt_status draw_graph(struct fkt_sa_server *s)
{
    struct fkt_sa_graph g = {0};
    fkt_status st;
    FKT_TRY(enough(s, living(s)));
    FKT_TRY(fkt_sa_graph_make(&g, &s->p, s->session, s->seed));
    if (!fkt_sa_complete(&s->p)) {
        FKT_TRY(fkt_alloc(&s->witness, s->p.degree));
        fkt_sa_graph_witnesses(&g, s->witness);
    }
    for (uint32_t i = 0; i < s->p.sites; i++) {
        fkt_sa_graph_neighbours(&g, i, s->adjacent + (size_t)i * s->p.degree);
        if (fkt_sa_alive(s, i)) s->sets[i] |= FKT_SA_IN_SHARE;
    }
    enter(s, FKT_SA_STATE_SHARE);
out:
    fkt_sa_graph_clear(&g);
    return st;
}

static fkt_status leave_advertise(struct fkt_sa_server *s)
{
    fkt_status st;
    if (!fkt_sa_complete(&s->p)) return throw_coin(s);
    st = fkt_sa_coin_seed(s->seed, s->session, NULL, NULL);
    return st == FKT_OK ? draw_graph(s) : st;
}

/* All leaves must have opened, including sites that were lost meanwhile. */
static fkt_status leave_coin(struct fkt_sa_server *s)
{
    uint8_t *scalars = NULL;
    fkt_status st;
    if (s->census.heard < s->coin.leaves) return throw_coin(s);
    FKT_TRY(fkt_alloc(&scalars, (size_t)s->coin.leaves * 32));
    for (uint32_t i = 0; i < s->p.sites; i++)
        if (s->slot[i].has_answered) memcpy(scalars + (size_t)s->slot[i].position * 32, s->slot[i].scalar, 32);
    fkt_sa_coin_open(&s->coin, scalars, s->v);
    FKT_TRY(fkt_sa_coin_seed(s->seed, s->session, fkt_sa_coin_root(&s->coin), s->v));
    FKT_TRY(draw_graph(s));
    fkt_sa_coin_clear(&s->coin);
out:
    fkt_free(scalars);
    return st;
}

/* protocol.md 3.4: a site with fewer than t neighbours in U2 is dropped, which may leave its neighbours with too few.
 * On a ring the gap usually grows until no site is left (at its edge a site has k/2 neighbours, and t is more). The
 * loop stops as soon as too few are left, after D + 1 passes at most. */
static fkt_status leave_share(struct fkt_sa_server *s)
{
    uint32_t left = living(s);
    int again;
    fkt_status st;
    for (uint32_t i = 0; i < s->p.sites; i++)
        if (fkt_sa_alive(s, i)) s->sets[i] |= FKT_SA_IN_MASK;
    do {
        again = 0;
        FKT_TRY(enough(s, left));
        for (uint32_t i = 0; i < s->p.sites && left >= s->p.sites - s->p.dropped; i++) {
            if (!(s->sets[i] & FKT_SA_IN_MASK) || fkt_sa_near_count(s, i, FKT_SA_IN_MASK) >= s->p.threshold) continue;
            s->sets[i] &= (uint8_t)~FKT_SA_IN_MASK;
            fkt_sa_server_lose(s, i, FKT_E_TOO_FEW);
            left--;
            again = 1;
        }
    } while (again);
    for (uint32_t i = 0; i < s->p.sites; i++)
        if (s->sets[i] & FKT_SA_IN_MASK) fkt_bitmap_set(s->delivered, i);
    fkt_sa_delivered_hash(s->delivered_hash, s->session, s->seed, s->delivered, fkt_bitmap_bytes(s->p.sites));
    enter(s, FKT_SA_STATE_MASK);
out:
    return st;
}

static int has_revealed(const struct fkt_sa_server *s, uint32_t site) { return s->sets[site] & FKT_SA_HAS_REVEALED; }

typedef int site_test(const struct fkt_sa_server *s, uint32_t site);

/* Every site of U2 has a secret that is needed: t peers must be able to reveal it. Returns the first site that has
 * fewer, with their number in *n; p.sites when there is none. */
static uint32_t uncovered(const struct fkt_sa_server *s, site_test *can_reveal, uint32_t *n)
{
    uint32_t i = 0;
    for (; i < s->p.sites; i++) {
        const uint32_t *near = fkt_sa_near(s, i);
        if (!(s->sets[i] & FKT_SA_IN_MASK)) continue;
        *n = 0;
        for (uint32_t k = 0; k < s->p.degree; k++) *n += s->sets[near[k]] & FKT_SA_IN_MASK && can_reveal(s, near[k]);
        if (*n < s->p.threshold) break;
    }
    return i;
}

static fkt_status covered(const struct fkt_sa_server *s, site_test *can_reveal)
{
    uint32_t n = 0;
    const uint32_t site = uncovered(s, can_reveal, &n);
    if (site == s->p.sites) return FKT_OK;
    return fkt_fail_hint(FKT_E_TOO_FEW, "begin another round when more sites can be reached",
                         "too few sites in phase %s: %u peers of site %u are left, and its secret needs %u",
                         fkt_sa_state_name(s->state), n, site, s->p.threshold);
}

static fkt_status leave_mask(struct fkt_sa_server *s)
{
    fkt_status st;
    FKT_TRY(enough(s, s->census.heard));
    FKT_TRY(covered(s, fkt_sa_alive));
    for (uint32_t i = 0; i < s->p.sites; i++) {
        if (!s->slot[i].has_answered) continue;
        s->sets[i] |= FKT_SA_SURVIVED;
        fkt_bitmap_set(s->survivors, i);
    }
    enter(s, FKT_SA_STATE_CONFIRM);
out:
    return st;
}

static int has_confirmed(const struct fkt_sa_server *s, uint32_t site)
{
    return (s->sets[site] & FKT_SA_HAS_CONFIRMED) != 0;
}

static uint32_t witnesses(const struct fkt_sa_server *s, site_test *signs)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->p.degree; k++) n += signs(s, s->witness[k]) != 0;
    return n;
}

static fkt_status witnessed(const struct fkt_sa_server *s)
{
    const uint32_t n = witnesses(s, has_confirmed);
    if (n >= s->p.threshold) return FKT_OK;
    return fkt_fail_hint(FKT_E_TOO_FEW, "begin another round when more sites can be reached",
                         "too few sites in phase %s: %u of the %u witnesses signed, and %u are needed",
                         fkt_sa_state_name(s->state), n, s->p.degree, s->p.threshold);
}

static fkt_status leave_confirm(struct fkt_sa_server *s)
{
    fkt_status st;
    FKT_TRY(enough(s, s->census.heard));
    if (s->witness) FKT_TRY(witnessed(s)); /* on a complete graph N - D - 1 >= t peers of each site have signed now */
    FKT_TRY(covered(s, fkt_sa_alive));
    enter(s, FKT_SA_STATE_REVEAL);
out:
    return st;
}

static fkt_status leave_reveal(struct fkt_sa_server *s)
{
    fkt_status st;
    FKT_TRY(covered(s, has_revealed));
    FKT_TRY(fkt_sa_server_rebuild(s));
    FKT_TRY(fkt_sa_server_list_jobs(s));
    s->state = FKT_SA_STATE_UNMASK;
out:
    return st;
}

fkt_status fkt_sa_phase_leave(struct fkt_sa_server *s)
{
    for (uint32_t i = 0; i < s->p.sites; i++)
        if (!s->slot[i].has_answered) fkt_sa_server_lose(s, i, FKT_E_STOPPED);
    switch (s->state) {
    case FKT_SA_STATE_ADVERTISE: return leave_advertise(s);
    case FKT_SA_STATE_COIN: return leave_coin(s);
    case FKT_SA_STATE_SHARE: return leave_share(s);
    case FKT_SA_STATE_MASK: return leave_mask(s);
    case FKT_SA_STATE_CONFIRM: return leave_confirm(s);
    default: return leave_reveal(s);
    }
}

/* ---- whether waiting can help ---- */

/* Which answers count if the phase ends now, and if all missing answers still arrive; and which sites can still reveal
 * a secret: in REVEAL those that have answered, before it those that have not left. */
static int answered(const struct fkt_sa_server *s, uint32_t site) { return s->slot[site].has_answered; }
static int may_answer(const struct fkt_sa_server *s, uint32_t site)
{
    return answered(s, site) || fkt_sa_alive(s, site);
}
static int reveals_now(const struct fkt_sa_server *s, uint32_t site)
{
    return answered(s, site) && (s->state == FKT_SA_STATE_REVEAL || fkt_sa_alive(s, site));
}
static int reveals_later(const struct fkt_sa_server *s, uint32_t site)
{
    return fkt_sa_alive(s, site) || (s->state == FKT_SA_STATE_REVEAL && answered(s, site));
}

static int would_succeed(const struct fkt_sa_server *s, site_test *answers, site_test *can_reveal)
{
    uint32_t n = 0, few;
    for (uint32_t i = 0; i < s->p.sites; i++) n += answers(s, i) != 0;
    if (s->state != FKT_SA_STATE_REVEAL && n < s->p.sites - s->p.dropped) return 0;
    if (s->state == FKT_SA_STATE_CONFIRM && s->witness && witnesses(s, answers) < s->p.threshold) return 0;
    return uncovered(s, can_reveal, &few) == s->p.sites;
}

int fkt_sa_server_worth_waiting(const struct fkt_sa_server *s)
{
    if (s->state != FKT_SA_STATE_MASK && s->state != FKT_SA_STATE_CONFIRM && s->state != FKT_SA_STATE_REVEAL) return 0;
    return !would_succeed(s, answered, reveals_now) && would_succeed(s, may_answer, reveals_later);
}
