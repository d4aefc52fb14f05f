/* SPDX-License-Identifier: Apache-2.0 */
/* What a site refuses: each row drives it honestly to a state, alters the next message (or the ledger, or the clock),
 * and checks the end: the status, one Leave, secrets wiped, nothing more sent; and how far the ledger was called. */
#include "crypto/agree.h"
#include "crypto/digest.h"
#include "crypto/seal.h"
#include "crypto/sign.h"
#include "tests/support/sa_alone.h"

static struct alone a;

/* a.m's own bytes, to be written to */
static uint8_t *at(struct fkt_sa_bytes b) { return (uint8_t *)(uintptr_t)b.p; }

static int tear_down(void **state)
{
    (void)state;
    alone_release(&a);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

/* The status that the server receives: a peer's fault, or no reason. */
static fkt_status told_as(fkt_status status)
{
    if (a.refuse_reserve || a.refuse_vector || a.refuse_spend) return FKT_E_STOPPED; /* whatever number they gave */
    return status == FKT_E_PEER_FORMAT || status == FKT_E_PEER_AUTH || status == FKT_E_TOO_FEW ? status : FKT_E_STOPPED;
}

/* The site has just failed with `status`. */
static void check_end(fkt_status status, int leaves)
{
    char text[768];
    size_t len = 1;
    snprintf(text, sizeof text, "%s", fkt_error_text());
    assert_true(strlen(text) > 0);
    assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_FAILED);
    assert_true(alone_zero(&a.client->secret, sizeof a.client->secret));
    assert_null(a.client->neighbour);
    assert_null(a.client->survivors);
    assert_null(a.client->out);
    assert_int_equal(fkt_sa_client_wants(a.client), leaves ? FKT_SA_SEND : FKT_SA_ENDED);
    if (leaves) {
        CHECK_STATUS(fkt_sa_client_send(a.client, a.heard, 20, &len), FKT_E_ARG); /* too small: still to come */
        alone_hear(&a);
        assert_int_equal(a.said.kind, FKT_SA_M_LEAVE);
        assert_int_equal(a.said.leave.status, told_as(status));
    }
    assert_int_equal(fkt_sa_client_wants(a.client), FKT_SA_ENDED);
    for (int again = 0; again < 2; again++) {
        (void)fkt_fail(FKT_E_IO, "something else meanwhile");
        CHECK_STATUS(fkt_sa_client_send(a.client, a.heard, ALONE_CAP, &len), status);
        assert_int_equal(len, 0);
        assert_string_equal(fkt_error_text(), text);
        (void)fkt_fail(FKT_E_IO, "something else meanwhile");
        CHECK_STATUS(fkt_sa_client_recv(a.client, a.bytes, a.len), status);
        assert_string_equal(fkt_error_text(), text);
    }
}

/* ---- alterations ---- */

static void shorter(struct fkt_sa_bytes *b, size_t by) { b->n -= by; }
static void longer(struct fkt_sa_bytes *b, size_t by) { b->n += by; }

static void begin_with_session(void) { a.m.session = (struct fkt_sa_bytes){a.session, FKT_SA_SESSION}; }
static void begin_short_round(void) { shorter(&a.m.begin.round, 1); }
static void begin_long_task(void) { longer(&a.m.begin.task, 1); }
static void begin_other_task(void) { at(a.m.begin.task)[31] ^= 1; }
static void begin_skipped(void) /* by a message that would end it, if it had a session at all */
{
    alone_make(&a, FKT_SA_M_ABORTED);
    a.m.session.n = 0;
}

static void other_session(void) { a.m.session = (struct fkt_sa_bytes){memcpy(a.buf[3], a.round, 16), 32}; }
static void no_session(void) { a.m.session.n = 0; }
static void long_session(void)
{
    memcpy(a.buf[3], a.session, 32);
    a.m.session = (struct fkt_sa_bytes){a.buf[3], 33};
}
static void begin_again(void)
{
    alone_make(&a, FKT_SA_M_BEGIN);
    a.round[0] ^= 1;
}
static void coin_instead(void)
{
    alone_make(&a, FKT_SA_M_ABORTED);
    a.m.kind = FKT_SA_M_COIN;
    memset(&a.m.coin, 0, sizeof a.m.coin);
    a.m.coin.attempt = a.m.coin.leaves = 1;
}
static void neighbours_instead(void) { alone_make(&a, FKT_SA_M_NEIGHBOURS); }
static void neighbours_again(void)
{
    alone_make(&a, FKT_SA_M_NEIGHBOURS);
    at(a.m.neighbours.adverts)[64] ^= 1; /* not identical to the last message */
}
static void survivors_instead(void) { alone_make(&a, FKT_SA_M_SURVIVORS); }

static void coin_throw_0(void) { a.m.coin.attempt = 0; }
static void coin_throw_2(void) { a.m.coin.attempt = 2; }
static void coin_throw_3(void)
{
    alone_make(&a, FKT_SA_M_COIN);
    assert_int_equal(a.m.coin.attempt, 3);
}
static void coin_throw_again(void) /* the second throw a second time, with other leaves */
{
    alone_make(&a, FKT_SA_M_COIN);
    a.m.coin.attempt = 2;
}
static void coin_many_leaves(void) { a.m.coin.leaves = 13; }
static void coin_position(void) { a.m.coin.position = 12; }
static void coin_short_path(void) { shorter(&a.m.coin.path, 64); }
static void coin_long_path(void) { longer(&a.m.coin.path, 1); }
static void coin_no_point(void) { memset(at(a.m.coin.path) + 32, 0xff, 32); }
static void coin_identity(void) { memset(at(a.m.coin.path) + 32, 0, 32); }

static void wrong_v(void) { at(a.m.neighbours.scalar)[0] ^= 1; }
static void v_beyond_l(void) { at(a.m.neighbours.scalar)[31] |= 0x20; }
static void short_v(void) { shorter(&a.m.neighbours.scalar, 1); }
static void no_v(void) { a.m.neighbours.scalar.n = 0; }
static void v_on_complete(void) { a.m.neighbours.scalar = (struct fkt_sa_bytes){a.session, 32}; }
static void neighbours_no_map(void) { a.m.neighbours.present.n = 0; }
static void neighbours_long_map(void) { longer(&a.m.neighbours.present, 1); }
static void adverts_one_fewer(void) { shorter(&a.m.neighbours.adverts, FKT_SA_ADVERT); }
static void adverts_one_more(void) { longer(&a.m.neighbours.adverts, FKT_SA_ADVERT); }
static void adverts_cut(void) { shorter(&a.m.neighbours.adverts, 1); }
static void too_few_neighbours(void)
{
    at(a.m.neighbours.present)[0] = 0x1d; /* places 0, 2, 3, 4 of 0, 2..7 */
    a.m.neighbours.adverts.n = 4 * FKT_SA_ADVERT;
}
static void map_of_another(void) { at(a.m.neighbours.present)[0] ^= 0x03; } /* the absent one for the first */
static void advert_signature(void) { at(a.m.neighbours.adverts)[64] ^= 1; }
static void adverts_swapped(void)
{
    uint8_t *p = at(a.m.neighbours.adverts), first[FKT_SA_ADVERT];
    memcpy(first, p, sizeof first);
    memcpy(p, p + FKT_SA_ADVERT, FKT_SA_ADVERT);
    memcpy(p + FKT_SA_ADVERT, first, sizeof first);
}
/* The first neighbour, corrupt, signs these instead of its own; NULL: its own. */
static void corrupt_advert(const uint8_t *channel_key, const uint8_t *mask_key)
{
    uint8_t *p = at(a.m.neighbours.adverts), hash[32];
    if (channel_key) memcpy(p, channel_key, 32);
    if (mask_key) memcpy(p + 32, mask_key, 32);
    fkt_sa_advert_hash(hash, a.session, a.neighbour[0], p, p + 32);
    fkt_sign(p + 64, hash, 32, a.other[a.neighbour[0]].sign);
}
static const uint8_t order_one[32] = {0}, order_four[32] = {1};
static void channel_is_own(void) { corrupt_advert(a.client->channel_key, NULL); }
static void channel_is_own_mask(void) { corrupt_advert(a.client->mask_key, NULL); }
static void mask_is_own(void) { corrupt_advert(NULL, a.client->mask_key); }
static void mask_is_own_channel(void) { corrupt_advert(NULL, a.client->channel_key); }
static void channel_low(void) { corrupt_advert(order_one, NULL); }
static void mask_low(void) { corrupt_advert(NULL, order_four); }
static void mask_top_bit(void)
{
    uint8_t key[32];
    memcpy(key, a.other[a.neighbour[0]].mask_key, 32);
    key[31] |= 0x80;
    corrupt_advert(NULL, key);
}

static void flip_delivered(uint32_t site) { at(a.m.deliver.delivered)[site / 8] ^= (uint8_t)(1U << site % 8); }
static void deliver_spare_bit(void) { flip_delivered(a.p.sites); }
static void deliver_no_map(void) { a.m.deliver.delivered.n = 0; }
static void deliver_short_map(void) { shorter(&a.m.deliver.delivered, 1); }
static void deliver_long_map(void) { longer(&a.m.deliver.delivered, 1); }
static void deliver_not_me(void) { flip_delivered(ALONE_SITE); }
static void deliver_never_came(void)
{
    flip_delivered(a.neighbour[a.never_came]);
    longer(&a.m.deliver.sealed, FKT_SA_SEALED);
}
static void deliver_one_fewer(void) { shorter(&a.m.deliver.sealed, FKT_SA_SEALED); }
static void deliver_one_more(void) { longer(&a.m.deliver.sealed, FKT_SA_SEALED); }
static void deliver_cut(void) { shorter(&a.m.deliver.sealed, 1); }
static void deliver_too_few(void)
{
    flip_delivered(a.neighbour[6]);
    flip_delivered(a.neighbour[7]);
    a.m.deliver.sealed.n = 4 * FKT_SA_SEALED;
}
static void sealed_flipped(void) { at(a.m.deliver.sealed)[5 * FKT_SA_SEALED + 79] ^= 1; }
static void sealed_swapped(void)
{
    uint8_t *p = at(a.m.deliver.sealed), first[FKT_SA_SEALED];
    memcpy(first, p, sizeof first);
    memcpy(p, p + FKT_SA_SEALED, FKT_SA_SEALED);
    memcpy(p + FKT_SA_SEALED, first, sizeof first);
}
static void sealed_for_another(void) /* who never shared, for the one before */
{
    flip_delivered(a.neighbour[3]);
    flip_delivered(a.neighbour[4]);
}
static void sealed_reflected(void)
{
    uint8_t from[32], to[32];
    alone_seal_keys(&a, a.neighbour[0], from, to);
    fkt_seal(at(a.m.deliver.sealed), a.other[a.neighbour[0]].plain, 64, to);
}
static void sealed_beyond_l(size_t half)
{
    uint8_t from[32], to[32], plain[64] = {0};
    alone_seal_keys(&a, a.neighbour[0], from, to);
    memset(plain + 32 * half, 0xff, 32);
    plain[32 * half + 31] = 0x1f;
    fkt_seal(at(a.m.deliver.sealed), plain, 64, from);
}
static void first_beyond_l(void) { sealed_beyond_l(0); }
static void second_beyond_l(void) { sealed_beyond_l(1); }
static void ledger_refuses(void) { a.refuse_reserve = FKT_E_BUDGET; }
static void ledger_does_not_believe(void) { a.refuse_reserve = FKT_E_PEER_AUTH; }
static void no_vector(void) { a.refuse_vector = FKT_E_IO; }
static void no_vector_for_too_few(void) { a.refuse_vector = FKT_E_TOO_FEW; } /* of its records, for example */
static void first_above(void) { a.x[0] = 50001; }
static void last_below(void) { a.x[ALONE_LENGTH - 1] = -50001; }
static void far_below(void) { a.x[7] = INT64_MIN; }
static void far_above(void) { a.x[8] = INT64_MAX; }
static void wraps_to_zero(void) { a.x[9] = INT64_C(1) << 41; }

static void flip_survivor(uint32_t site) { at(a.m.survivors.survivors)[site / 8] ^= (uint8_t)(1U << site % 8); }
static void survivors_spare_bit(void) { flip_survivor(a.p.sites); }
static void survivors_short(void) { shorter(&a.m.survivors.survivors, 1); }
static void survivors_long(void) { longer(&a.m.survivors.survivors, 1); }
static void survivors_not_me(void)
{
    flip_survivor(ALONE_SITE);
    flip_survivor(a.neighbour[a.lost]); /* still as many */
}
static void survivors_too_few(void) { flip_survivor(a.neighbour[0]); }
static uint32_t stranger(void)
{
    uint32_t j = 0, near = 1;
    for (; near; j += near) {
        near = j == ALONE_SITE;
        for (uint32_t i = 0; i < a.p.degree; i++) near |= a.neighbour[i] == j;
    }
    return j;
}
static void survivors_stranger_missing(void) { flip_survivor(stranger()); } /* all is well with its neighbours */
static void survivor_never_came(void) { flip_survivor(a.neighbour[a.never_came]); }
static void survivor_never_shared(void) { flip_survivor(a.neighbour[a.never_shared]); }
static void survivor_far_away_never_shared(void) /* no neighbour, so nothing of it was due here */
{
    const uint32_t j = stranger();
    a.client->delivered[j / 8] ^= (uint8_t)(1U << j % 8);
}
static void survivors_far_away(void)
{
    a.client->p.dropped = 4; /* enough in all, yet one peer too few */
    flip_survivor(a.neighbour[0]);
}

static void confirmed_spare_bit(void) { at(a.m.confirmed.present)[0] |= 0x40; }
static void confirmed_one_fewer(void) { shorter(&a.m.confirmed.signatures, 64); }
static void confirmed_one_more(void) { longer(&a.m.confirmed.signatures, 64); }
static uint32_t places_of_survivors(void)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < a.witnesses; i++)
        if (fkt_bitmap_get(a.survivors, a.witness[i])) places |= 1U << i;
    return places;
}
static void confirmed_too_few(void) /* one fewer than the threshold */
{
    uint32_t places = places_of_survivors();
    while (__builtin_popcount(places) >= ALONE_T) places &= places - 1;
    alone_confirm(&a, places);
}
static void confirmed_flipped(void) { at(a.m.confirmed.signatures)[4 * 64] ^= 1; }
/* The first signature is over something else, or by somebody else. */
static void first_confirms(const uint8_t *session, const uint8_t *seed, const uint8_t *set, uint32_t site)
{
    uint8_t hash[32];
    fkt_sa_confirm_hash(hash, session, seed, set, 2);
    fkt_sign(at(a.m.confirmed.signatures), hash, 32, a.other[site].sign);
}
static uint32_t first_witness(void) { return a.witness[__builtin_ctz(places_of_survivors())]; }
static void confirmed_by_another(void)
{
    first_confirms(a.session, a.seed, a.survivors, first_witness() == ALONE_SITE ? 0 : ALONE_SITE);
}
static void confirmed_other_set(void)
{
    uint8_t set[2] = {a.survivors[0], a.survivors[1] ^ 1};
    first_confirms(a.session, a.seed, set, first_witness());
}
static void confirmed_other_seed(void) { first_confirms(a.session, a.session, a.survivors, first_witness()); }
static void confirmed_other_session(void) { first_confirms(a.seed, a.seed, a.survivors, first_witness()); }
static void confirmed_by_the_lost(void) /* properly signed, besides all the others */
{
    uint32_t places = places_of_survivors(), lost = ~places & ((1U << a.witnesses) - 1);
    assert_true(lost != 0);
    alone_confirm(&a, places | (lost & -lost));
}
/* Peers that survive, enough of them and properly signed, but not the witnesses of this graph. */
static void confirmed_by_neighbours(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a.p.degree; i++)
        if (alone_is_peer(&a, i) && i != a.lost) a.witness[n++] = a.neighbour[i];
    a.witnesses = n;
    alone_confirm(&a, (1U << n) - 1);
}
static void ledger_refuses_to_spend(void) { a.refuse_spend = FKT_E_BUDGET; }
static void ledger_spends_for_too_few(void) { a.refuse_spend = FKT_E_TOO_FEW; }
static void second_survivors(void)
{
    alone_make(&a, FKT_SA_M_SURVIVORS);
    flip_survivor(a.neighbour[a.lost]);
}

/* ---- the table ---- */

enum { BOTH = 2 };
static const struct row {
    const char *name;
    int kind; /* enum alone_kind or BOTH */
    enum fkt_sa_state state;
    void (*bend)(void);
    fkt_status want;
    const char *calls; /* how far ledger and data were called */
} rows[] = {
#define R(bend, kind, state, want, calls)                                                                              \
    {                                                                                                                  \
#bend, kind, FKT_SA_STATE_##state, bend, FKT_E_##want, calls                                                   \
    }
    R(begin_with_session, BOTH, BEGIN, PEER_FORMAT, ""),
    R(begin_short_round, BOTH, BEGIN, PEER_FORMAT, ""),
    R(begin_long_task, BOTH, BEGIN, PEER_FORMAT, ""),
    R(begin_other_task, BOTH, BEGIN, PEER_AUTH, ""),
    R(begin_skipped, BOTH, BEGIN, PEER_AUTH, ""),
    R(other_session, BOTH, ADVERTISE, PEER_AUTH, ""),
    R(no_session, BOTH, ADVERTISE, PEER_AUTH, ""),
    R(long_session, BOTH, ADVERTISE, PEER_AUTH, ""),
    R(begin_again, BOTH, ADVERTISE, PEER_FORMAT, ""),
    R(coin_instead, ALONE_COMPLETE, ADVERTISE, PEER_FORMAT, ""),
    R(survivors_instead, BOTH, ADVERTISE, PEER_FORMAT, ""),
    R(neighbours_instead, ALONE_SPARSE, ADVERTISE, PEER_FORMAT, ""),
    R(coin_throw_0, ALONE_SPARSE, ADVERTISE, PEER_FORMAT, ""),
    R(coin_throw_2, ALONE_SPARSE, ADVERTISE, PEER_FORMAT, ""),
    R(coin_many_leaves, ALONE_SPARSE, ADVERTISE, PEER_FORMAT, ""),
    R(coin_position, ALONE_SPARSE, ADVERTISE, PEER_FORMAT, ""),
    R(coin_short_path, ALONE_SPARSE, ADVERTISE, PEER_FORMAT, ""),
    R(coin_long_path, ALONE_SPARSE, ADVERTISE, PEER_FORMAT, ""),
    R(coin_no_point, ALONE_SPARSE, ADVERTISE, PEER_AUTH, ""),
    R(coin_identity, ALONE_SPARSE, ADVERTISE, PEER_AUTH, ""),
    R(coin_throw_3, ALONE_SPARSE, COIN, PEER_FORMAT, ""),
    R(coin_throw_again, ALONE_SPARSE, COIN, PEER_FORMAT, ""),
    R(wrong_v, ALONE_SPARSE, COIN, PEER_AUTH, ""),
    R(v_beyond_l, ALONE_SPARSE, COIN, PEER_AUTH, ""),
    R(short_v, ALONE_SPARSE, COIN, PEER_FORMAT, ""),
    R(no_v, ALONE_SPARSE, COIN, PEER_FORMAT, ""),
    R(v_on_complete, ALONE_COMPLETE, ADVERTISE, PEER_FORMAT, ""),
    R(neighbours_no_map, ALONE_COMPLETE, ADVERTISE, PEER_FORMAT, ""),
    R(neighbours_long_map, ALONE_COMPLETE, ADVERTISE, PEER_FORMAT, ""),
    R(adverts_one_fewer, ALONE_SPARSE, COIN, PEER_FORMAT, ""),
    R(adverts_one_more, ALONE_SPARSE, COIN, PEER_FORMAT, ""),
    R(adverts_cut, ALONE_COMPLETE, ADVERTISE, PEER_FORMAT, ""),
    R(too_few_neighbours, ALONE_COMPLETE, ADVERTISE, TOO_FEW, ""),
    R(too_few_neighbours, ALONE_SPARSE, COIN, TOO_FEW, ""),
    R(map_of_another, ALONE_COMPLETE, ADVERTISE, PEER_AUTH, ""),
    R(advert_signature, ALONE_SPARSE, COIN, PEER_AUTH, ""),
    R(adverts_swapped, ALONE_COMPLETE, ADVERTISE, PEER_AUTH, ""),
    R(channel_is_own, ALONE_COMPLETE, ADVERTISE, PEER_AUTH, ""),
    R(channel_is_own_mask, ALONE_COMPLETE, ADVERTISE, PEER_AUTH, ""),
    R(mask_is_own, ALONE_SPARSE, COIN, PEER_AUTH, ""),
    R(mask_is_own_channel, ALONE_SPARSE, COIN, PEER_AUTH, ""),
    R(channel_low, ALONE_COMPLETE, ADVERTISE, PEER_AUTH, ""),
    R(mask_low, ALONE_COMPLETE, ADVERTISE, PEER_AUTH, ""),
    R(mask_top_bit, ALONE_SPARSE, COIN, PEER_AUTH, ""),
    R(neighbours_again, BOTH, SHARE, PEER_FORMAT, ""),
    R(deliver_spare_bit, BOTH, SHARE, PEER_FORMAT, ""),
    R(deliver_no_map, BOTH, SHARE, PEER_FORMAT, ""),
    R(deliver_short_map, BOTH, SHARE, PEER_FORMAT, ""),
    R(deliver_long_map, BOTH, SHARE, PEER_FORMAT, ""),
    R(deliver_not_me, BOTH, SHARE, PEER_AUTH, ""),
    R(deliver_never_came, BOTH, SHARE, PEER_AUTH, ""),
    R(deliver_one_fewer, BOTH, SHARE, PEER_FORMAT, ""),
    R(deliver_one_more, BOTH, SHARE, PEER_FORMAT, ""),
    R(deliver_cut, BOTH, SHARE, PEER_FORMAT, ""),
    R(deliver_too_few, BOTH, SHARE, TOO_FEW, ""),
    R(sealed_flipped, BOTH, SHARE, PEER_AUTH, ""),
    R(sealed_swapped, BOTH, SHARE, PEER_AUTH, ""),
    R(sealed_for_another, BOTH, SHARE, PEER_AUTH, ""),
    R(sealed_reflected, BOTH, SHARE, PEER_AUTH, ""),
    R(first_beyond_l, BOTH, SHARE, PEER_FORMAT, ""),
    R(second_beyond_l, BOTH, SHARE, PEER_FORMAT, ""),
    R(ledger_refuses, BOTH, SHARE, BUDGET, "r"),
    R(ledger_does_not_believe, BOTH, SHARE, PEER_AUTH, "r"),
    R(no_vector, BOTH, SHARE, IO, "rv"),
    R(no_vector_for_too_few, BOTH, SHARE, TOO_FEW, "rv"),
    R(first_above, BOTH, SHARE, NUMERIC, "rv"),
    R(last_below, BOTH, SHARE, NUMERIC, "rv"),
    R(far_below, BOTH, SHARE, NUMERIC, "rv"),
    R(far_above, BOTH, SHARE, NUMERIC, "rv"),
    R(wraps_to_zero, BOTH, SHARE, NUMERIC, "rv"),
    R(other_session, BOTH, MASK, PEER_AUTH, "rv"),
    R(survivors_spare_bit, BOTH, MASK, PEER_FORMAT, "rv"),
    R(survivors_short, BOTH, MASK, PEER_FORMAT, "rv"),
    R(survivors_long, BOTH, MASK, PEER_FORMAT, "rv"),
    R(survivors_not_me, BOTH, MASK, PEER_AUTH, "rv"),
    R(survivors_too_few, BOTH, MASK, TOO_FEW, "rv"),
    R(survivors_stranger_missing, ALONE_SPARSE, MASK, TOO_FEW, "rv"),
    R(survivor_never_came, BOTH, MASK, PEER_AUTH, "rv"),
    R(survivor_never_shared, BOTH, MASK, PEER_AUTH, "rv"),
    R(survivor_far_away_never_shared, ALONE_SPARSE, MASK, PEER_AUTH, "rv"),
    R(survivors_far_away, BOTH, MASK, TOO_FEW, "rv"),
    R(second_survivors, BOTH, CONFIRM, PEER_FORMAT, "rv"),
    R(confirmed_spare_bit, ALONE_COMPLETE, CONFIRM, PEER_FORMAT, "rv"),
    R(confirmed_one_fewer, BOTH, CONFIRM, PEER_FORMAT, "rv"),
    R(confirmed_one_more, BOTH, CONFIRM, PEER_FORMAT, "rv"),
    R(confirmed_too_few, BOTH, CONFIRM, TOO_FEW, "rv"),
    R(confirmed_flipped, BOTH, CONFIRM, PEER_AUTH, "rv"),
    R(confirmed_by_another, BOTH, CONFIRM, PEER_AUTH, "rv"),
    R(confirmed_other_set, BOTH, CONFIRM, PEER_AUTH, "rv"),
    R(confirmed_other_seed, BOTH, CONFIRM, PEER_AUTH, "rv"),
    R(confirmed_other_session, BOTH, CONFIRM, PEER_AUTH, "rv"),
    R(confirmed_by_the_lost, BOTH, CONFIRM, PEER_AUTH, "rv"),
    R(confirmed_by_neighbours, ALONE_SPARSE, CONFIRM, PEER_AUTH, "rv"),
    R(ledger_refuses_to_spend, BOTH, CONFIRM, BUDGET, "rvs"),
    R(ledger_spends_for_too_few, BOTH, CONFIRM, TOO_FEW, "rvs"),
};

static void bent(void **state)
{
    (void)state;
    for (const struct row *r = rows; r < rows + sizeof rows / sizeof *rows; r++)
        for (int kind = ALONE_COMPLETE; kind <= ALONE_SPARSE; kind++) {
            fkt_status st;
            if (r->kind != BOTH && r->kind != kind) continue;
            alone_init(&a, (enum alone_kind)kind);
            alone_drive(&a, r->state);
            alone_make(&a, alone_next(&a, r->state));
            r->bend();
            st = alone_tell(&a);
            if (st != r->want)
                fail_msg("%s, %s graph: got '%s' (%s), want '%s'", r->name,
                         kind == ALONE_SPARSE ? "sparse" : "complete", fkt_status_name(st), fkt_error_text(),
                         fkt_status_name(r->want));
            check_end(r->want, r->state != FKT_SA_STATE_BEGIN);
            if (strcmp(a.calls, r->calls) != 0) fail_msg("%s: calls '%s', want '%s'", r->name, a.calls, r->calls);
            alone_release(&a);
        }
    memset(&a, 0, sizeof a);
}

static const enum fkt_sa_state states[] = {FKT_SA_STATE_ADVERTISE, FKT_SA_STATE_COIN, FKT_SA_STATE_SHARE,
                                           FKT_SA_STATE_MASK, FKT_SA_STATE_CONFIRM};
enum { STATES = sizeof states / sizeof *states };

static void no_message_at_all(void **state)
{
    (void)state;
    for (int i = 0; i < STATES; i++)
        for (int way = 0; way < 3; way++) {
            size_t most;
            alone_init(&a, ALONE_SPARSE);
            alone_drive(&a, states[i]);
            alone_make(&a, alone_next(&a, states[i]));
            CHECK_OK(fkt_sa_msg_encode(&a.m, a.bytes, ALONE_CAP, &a.len));
            most = fkt_sa_to_site_max(&a.p);
            if (way == 0) a.len = 0;
            if (way == 1) a.len--;
            if (way == 2) a.len = most + 1;
            CHECK_STATUS(fkt_sa_client_recv(a.client, a.bytes, a.len), FKT_E_PEER_FORMAT);
            check_end(FKT_E_PEER_FORMAT, 1);
            alone_release(&a);
        }
    memset(&a, 0, sizeof a);
}

/* The next message before the last answer has left: the server cannot have meant it. */
static void too_early(void **state)
{
    (void)state;
    for (int i = 0; i < STATES - 1; i++) {
        alone_init(&a, ALONE_COMPLETE);
        if (states[i] == FKT_SA_STATE_COIN) {
            alone_release(&a);
            continue;
        }
        alone_drive(&a, states[i]);
        alone_make(&a, alone_next(&a, states[i]));
        CHECK_OK(alone_tell(&a));
        assert_int_equal(fkt_sa_client_wants(a.client), FKT_SA_SEND);
        alone_make(&a, alone_next(&a, fkt_sa_client_state(a.client)));
        CHECK_STATUS(alone_tell(&a), FKT_E_PEER_FORMAT);
        check_end(FKT_E_PEER_FORMAT, 1);
        alone_release(&a);
    }
    memset(&a, 0, sizeof a);
}

static void aborted_by_the_server(void **state)
{
    (void)state;
    for (int i = 0; i < STATES; i++)
        for (int pending = 0; pending < 2; pending++) {
            alone_init(&a, ALONE_SPARSE);
            alone_drive(&a, states[i]);
            if (pending) {
                alone_make(&a, alone_next(&a, states[i]));
                CHECK_OK(alone_tell(&a));
            }
            alone_make(&a, FKT_SA_M_ABORTED);
            CHECK_STATUS(alone_tell(&a), FKT_E_STOPPED);
            assert_non_null(strstr(fkt_error_text(), "too few peers"));
            check_end(FKT_E_STOPPED, 0);
            alone_release(&a);
        }
    alone_init(&a, ALONE_COMPLETE); /* before Begin there is no session to compare, and nothing to lose */
    alone_make(&a, FKT_SA_M_ABORTED);
    a.m.session = (struct fkt_sa_bytes){memcpy(a.buf[3], a.roster, 32), 32};
    CHECK_STATUS(alone_tell(&a), FKT_E_STOPPED);
    check_end(FKT_E_STOPPED, 0);
    alone_release(&a);
    alone_init(&a, ALONE_COMPLETE); /* of another session: a lie like any other */
    alone_drive(&a, FKT_SA_STATE_ADVERTISE);
    alone_make(&a, FKT_SA_M_ABORTED);
    other_session();
    CHECK_STATUS(alone_tell(&a), FKT_E_PEER_AUTH);
    check_end(FKT_E_PEER_AUTH, 1);
}

/* A source of entropy that runs dry at the n-th call. */
static unsigned left;
static fkt_status dry(void *self, uint8_t *out, size_t len)
{
    struct fkt_entropy source;
    if (left-- == 0) return fkt_fail(FKT_E_ENTROPY, "the test's entropy ran dry");
    fkt_entropy_seeded(&source, self);
    return source.fill(source.self, out, len);
}

static void entropy_runs_out(void **state)
{
    unsigned calls;
    (void)state;
    for (calls = 0; calls < 100; calls++) {
        fkt_status st = FKT_OK;
        alone_init(&a, ALONE_SPARSE);
        a.entropy.fill = dry;
        left = calls;
        while (st == FKT_OK && fkt_sa_client_state(a.client) != FKT_SA_STATE_SHARE) {
            alone_make(&a, alone_next(&a, fkt_sa_client_state(a.client)));
            if ((st = alone_tell(&a)) == FKT_OK) alone_hear(&a);
        }
        if (st == FKT_OK) break;
        assert_int_equal(st, FKT_E_ENTROPY);
        check_end(FKT_E_ENTROPY, 1);
        alone_release(&a);
    }
    assert_true(calls >= 8); /* c, s, u, r; two throws; two polynomials */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(bent, tear_down),
        cmocka_unit_test_teardown(no_message_at_all, tear_down),
        cmocka_unit_test_teardown(too_early, tear_down),
        cmocka_unit_test_teardown(aborted_by_the_server, tear_down),
        cmocka_unit_test_teardown(entropy_runs_out, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
