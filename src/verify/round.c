/* SPDX-License-Identifier: Apache-2.0 */
/* round.c - whose vectors are in a release, and which sites signed that.
 *
 * Source: docs/http.md 5.2, docs/protocol.md 3.5 and 3.6. A log lists the sites that survived a round; a server
 * could write anything there. It cannot forge their signatures: each site signs the list of survivors, with the session
 * (task and round) and the seed, before it reveals anything. So the list is accepted when
 *   - it is the set of sites whose vectors were accepted in this round, and at least N - D of them,
 *   - none of them was lost before without having left or sent something that was refused,
 *   - on a complete graph the seed is the one that follows from the session,
 *   - at least N - D of the survivors signed it, as no honest server continues with fewer, and t of them are witnesses,
 *   - every signature in the log is valid.
 * N - D, where the sites themselves require t: on a sparse graph a server that invents a seed can search for one whose
 * witnesses all collude with it, and t signatures could then be theirs; N - D cannot be, since N - D > C + 1.
 *
 * Cost: 66 bytes per site, one verification (0.1 ms) for each signature of the released round. */
#include "verify/verify.h"

#include "base/alloc.h"
#include "base/text.h"
#include "crypto/sign.h"
#include "secagg/coin.h"
#include "secagg/graph.h"
#include "secagg/share.h"

#include <string.h>

fkt_status fkt_log_round_new(struct fkt_log_round *r, const struct fkt_sa_params *p)
{
    const size_t map = fkt_bitmap_bytes(p->sites);
    fkt_status st;
    memset(r, 0, sizeof *r);
    FKT_TRY(fkt_alloc(&r->masked, map));
    FKT_TRY(fkt_alloc(&r->survivors, map));
    FKT_TRY(fkt_alloc(&r->confirmed, map));
    FKT_TRY(fkt_alloc(&r->lost, map));
    FKT_TRY(fkt_alloc(&r->parted, map));
    FKT_TRY(fkt_alloc(&r->signature, (size_t)p->sites * FKT_SIGN_BYTES));
out:
    if (st != FKT_OK) fkt_log_round_clear(r);
    return st;
}

void fkt_log_round_clear(struct fkt_log_round *r)
{
    fkt_free(r->masked);
    fkt_free(r->survivors);
    fkt_free(r->confirmed);
    fkt_free(r->lost);
    fkt_free(r->parted);
    fkt_free(r->signature);
    memset(r, 0, sizeof *r);
}

void fkt_log_round_begin(struct fkt_log_round *r, const struct fkt_sa_params *p)
{
    const size_t map = fkt_bitmap_bytes(p->sites);
    memset(r->masked, 0, map);
    memset(r->survivors, 0, map);
    memset(r->confirmed, 0, map);
    memset(r->lost, 0, map);
    memset(r->parted, 0, map);
    r->count = 0;
}

static fkt_status take_survivors(struct fkt_log_round *r, const struct fkt_sa_params *p, const struct fkt_log_line *l)
{
    const size_t map = fkt_bitmap_bytes(p->sites);
    if (r->count) return fkt_fail(FKT_E_MISMATCH, "its round has a list of survivors already");
    if (!fkt_unhex(r->seed, fkt_log_text(l, "seed"), sizeof r->seed) ||
        !fkt_unhex(r->survivors, fkt_log_text(l, "survivors"), map) || !fkt_bitmap_ok(r->survivors, p->sites))
        return fkt_fail(FKT_E_FORMAT, "the survivors are not a bitmap over %u sites", p->sites);
    r->count = (uint32_t)fkt_bitmap_count(r->survivors, p->sites);
    if (r->count != fkt_log_number(l, "count"))
        return fkt_fail(FKT_E_MISMATCH, "the bitmap shows %u survivors", r->count);
    if (r->count < p->sites - p->dropped)
        return fkt_fail(FKT_E_MISMATCH, "%u sites survived; a sum of fewer than %u is not allowed", r->count,
                        p->sites - p->dropped);
    return FKT_OK;
}

static fkt_status take_signature(struct fkt_log_round *r, const struct fkt_log_line *l)
{
    const uint32_t site = (uint32_t)fkt_log_number(l, "site");
    if (!r->count || !fkt_bitmap_get(r->survivors, site))
        return fkt_fail(FKT_E_MISMATCH, "site %u signed the list but is not a survivor", site);
    if (fkt_bitmap_get(r->confirmed, site)) return fkt_fail(FKT_E_MISMATCH, "site %u signed twice", site);
    fkt_bitmap_set(r->confirmed, site);
    if (!fkt_unhex(r->signature + (size_t)site * FKT_SIGN_BYTES, fkt_log_text(l, "signature"), FKT_SIGN_BYTES))
        return fkt_fail(FKT_E_FORMAT, "the signature is malformed");
    return FKT_OK;
}

/* A site is lost when it left, when what it sent was refused, or when a phase ends that it did not answer. One whose
 * vector was taken has answered the last phase before the list of survivors. */
static fkt_status take_loss(struct fkt_log_round *r, uint32_t site)
{
    if (fkt_bitmap_get(r->lost, site)) return fkt_fail(FKT_E_MISMATCH, "site %u is lost twice", site);
    if (!r->count && fkt_bitmap_get(r->masked, site) && !fkt_bitmap_get(r->parted, site))
        return fkt_fail(FKT_E_MISMATCH,
                        "site %u is lost before the survivors are known, although its vector was accepted", site);
    fkt_bitmap_set(r->lost, site);
    return FKT_OK;
}

fkt_status fkt_log_round_line(struct fkt_log_round *r, const struct fkt_sa_params *p, const struct fkt_log_line *l)
{
    const uint32_t site = (uint32_t)fkt_log_number(l, "site"); /* below p->sites: checked in verify.c */
    if (l->event == FKT_LOG_SURVIVORS) return take_survivors(r, p, l);
    if (l->event == FKT_LOG_CONFIRMED) return take_signature(r, l);
    if (l->event == FKT_LOG_LOST) return take_loss(r, site);
    if (l->event != FKT_LOG_MESSAGE) return FKT_OK;
    if (fkt_bitmap_get(r->lost, site)) return fkt_fail(FKT_E_MISMATCH, "site %u was lost but sends a message", site);
    if (fkt_log_number(l, "verdict") != 0 || !strcmp(fkt_log_text(l, "kind"), "leave")) fkt_bitmap_set(r->parted, site);
    if (fkt_log_number(l, "verdict") != 0 || strcmp(fkt_log_text(l, "kind"), "masked") != 0) return FKT_OK;
    if (fkt_bitmap_get(r->masked, site))
        return fkt_fail(FKT_E_MISMATCH, "two vectors of site %u were accepted in one round", site);
    fkt_bitmap_set(r->masked, site);
    return FKT_OK;
}

static fkt_status check_seed(const struct fkt_log_round *r, const struct fkt_sa_params *p,
                             const uint8_t session[FKT_SA_SESSION])
{
    uint8_t seed[32];
    fkt_status st;
    if (!fkt_sa_complete(p)) return FKT_OK;
    st = fkt_sa_coin_seed(seed, session, NULL, NULL);
    if (st == FKT_OK && memcmp(seed, r->seed, sizeof seed) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "the seed of its round does not follow from task and round");
    return st;
}

/* How many of the witnesses signed; on a complete graph everyone is one. */
static fkt_status count_witnesses(const struct fkt_log_round *r, const struct fkt_sa_params *p,
                                  const uint8_t session[FKT_SA_SESSION], uint32_t *out)
{
    struct fkt_sa_graph g = {0};
    uint32_t *witness = NULL;
    fkt_status st = FKT_OK;
    *out = (uint32_t)fkt_bitmap_count(r->confirmed, p->sites);
    if (fkt_sa_complete(p)) return FKT_OK;
    *out = 0;
    FKT_TRY(fkt_sa_graph_make(&g, p, session, r->seed));
    FKT_TRY(fkt_alloc(&witness, p->degree));
    fkt_sa_graph_witnesses(&g, witness);
    for (uint32_t k = 0; k < p->degree; k++) *out += (uint32_t)fkt_bitmap_get(r->confirmed, witness[k]);
out:
    fkt_free(witness);
    fkt_sa_graph_clear(&g);
    return st;
}

fkt_status fkt_log_round_check(const struct fkt_log_round *r, const struct fkt_sa_params *p, uint32_t *signatures)
{
    const size_t map = fkt_bitmap_bytes(p->sites);
    uint8_t session[FKT_SA_SESSION], hash[32];
    uint32_t witnesses = 0;
    fkt_status st;
    if (!r->count) return fkt_fail(FKT_E_MISMATCH, "its round has no list of survivors");
    if (memcmp(r->masked, r->survivors, map) != 0)
        return fkt_fail(FKT_E_MISMATCH, "its survivors are not the sites whose vectors were accepted");
    *signatures = (uint32_t)fkt_bitmap_count(r->confirmed, p->sites);
    fkt_sa_session(session, p, r->name);
    FKT_TRY(check_seed(r, p, session));
    FKT_TRY(count_witnesses(r, p, session, &witnesses));
    if (*signatures < p->sites - p->dropped || witnesses < p->threshold)
        return fkt_fail(FKT_E_MISMATCH,
                        "%u sites signed the list of survivors, %u of them witnesses; %u and %u are needed",
                        *signatures, witnesses, p->sites - p->dropped, p->threshold);
    fkt_sa_confirm_hash(hash, session, r->seed, r->survivors, map);
    for (uint32_t i = 0; i < p->sites; i++)
        if (fkt_bitmap_get(r->confirmed, i) &&
            !fkt_verify(r->signature + (size_t)i * FKT_SIGN_BYTES, hash, sizeof hash, fkt_sa_roster_key(p, i)))
            return fkt_fail(FKT_E_MISMATCH, "the signature of site %u under the survivors is invalid", i);
out:
    return st;
}
