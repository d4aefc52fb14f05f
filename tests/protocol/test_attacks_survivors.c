/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the list of survivors, and on which share is revealed: docs/attacks.md, "Survivors". */
#include "crypto/sign.h"
#include "secagg/coin.h"
#include "secagg/graph.h"
#include "tests/support/sa_attack.h"

enum { SITES = 6, T = 4, ALL = 0x3f }; /* of sa_small(); sets are bitmaps of one byte */

static void show_set(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    sa_edit(a, &m->survivors.survivors)[0] = (uint8_t)a->variant;
}

static void survivors_without_the_victim(void **state)
{
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_SURVIVORS, show_set, ALL & ~(1U << 2), FKT_E_PEER_AUTH);
}

static void too_few_survivors(void **state)
{
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_SURVIVORS, show_set, 0x0f, FKT_E_TOO_FEW);
    sa_attack_simple(sa_small(), FKT_SA_M_SURVIVORS, show_set, 1U << 2, FKT_E_TOO_FEW);
    sa_attack_simple(sa_small(), FKT_SA_M_SURVIVORS, show_set, 0x36, FKT_E_TOO_FEW);
    /* six of eight: t of the victim's peers are among them, but they are one too few */
    sa_attack_simple(sa_params(8, 1, 1, 0, 5, 5, 16), FKT_SA_M_SURVIVORS, show_set, 0x3f, FKT_E_TOO_FEW);
}

/* ---- a neighbour that is not a peer ---- */

static void hide_first_peer(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    sa_edit(a, &m->deliver.delivered)[0] &= 0xfe; /* site 0 */
    m->deliver.sealed.p += FKT_SA_SEALED;
    m->deliver.sealed.n -= FKT_SA_SEALED;
}

static void survivor_that_is_no_peer(void **state)
{
    struct sa_attack a;
    (void)state;
    sa_attack_init(&a, sa_small(), 81);
    a.kind = FKT_SA_M_DELIVER;
    a.bend = hide_first_peer;
    (void)sa_attack_run(&a);
    CHECK(a.struck == 1);
    sa_attack_site_stopped(&a, a.victim, FKT_E_PEER_AUTH);
    assert_int_equal(a.v.site[a.victim].said[FKT_SA_M_CONFIRM], 0);
    assert_int_equal(a.v.site[a.victim].said[FKT_SA_M_REVEAL], 0);
    sa_attack_release(&a);
}

/* ---- a large set that leaves the victim alone ---- */

static int is_neighbour(const struct sa_attack *a, uint32_t site, uint32_t of)
{
    struct fkt_sa_msg shown = {0}, advert = {0};
    int found = 0;
    sa_recall(a, &a->tape, of, FKT_SA_M_NEIGHBOURS, &shown);
    sa_recall(a, &a->tape, site, FKT_SA_M_ADVERTISE, &advert);
    for (size_t at = 0; at < shown.neighbours.adverts.n; at += FKT_SA_ADVERT)
        found |= memcmp(shown.neighbours.adverts.p + at, advert.advertise.channel_key.p, 32) == 0;
    fkt_sa_msg_clear(&shown);
    fkt_sa_msg_clear(&advert);
    return found;
}

/* `variant` of the victim's neighbours are called lost. */
static void drop_peers(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *set = sa_edit(a, &m->survivors.survivors);
    uint32_t left = a->variant;
    for (uint32_t i = 0; i < a->w.params.sites && left; i++) {
        if (!is_neighbour(a, i, l->site)) continue;
        set[i / 8] &= (uint8_t) ~(1U << (i % 8));
        left--;
    }
    assert_int_equal(left, 0);
}

static void survivors_cut_a_site_off(void **state)
{
    const struct fkt_sa_params p = sa_params(14, 3, 1, 6, 4, 5, 16); /* three of six peers are enough to be too few */
    (void)state;
    sa_attack_simple(p, FKT_SA_M_SURVIVORS, drop_peers, 3, FKT_E_TOO_FEW);
}

/* Where corrupt and lost sites together could cut the ring, t peers are not enough: three of four, and one of them
 * alone on its side. */
static void ring_cut_by_the_lost(void **state)
{
    (void)state;
    sa_attack_simple(sa_params(24, 4, 2, 4, 3, 5, 16), FKT_SA_M_SURVIVORS, drop_peers, 1, FKT_E_TOO_FEW);
}

/* ---- two parts of a ring, two lists ----
 *
 * Sixteen sites, four neighbours each. The server shows the first half of the ring a list without the last site, the
 * second half a list without the first, so that nearly every site agrees with all of its neighbours. The witnesses are
 * those at places 0 to 3, and sign the first list. */

enum { RING = 16, DEGREE = 4 };

static void ring_of(const struct sa_attack *a, struct fkt_sa_graph *g)
{
    struct fkt_sa_msg coin = {0}, own = {0}, shown = {0};
    uint8_t session[32], seed[32], root[FKT_SA_NODE];
    struct fkt_sa_leaf leaf;
    sa_session(a, session);
    sa_recall(a, &a->tape, 0, FKT_SA_M_COIN, &coin);
    sa_recall(a, &a->tape, 0, FKT_SA_M_ADVERTISE, &own);
    sa_recall(a, &a->tape, 0, FKT_SA_M_NEIGHBOURS, &shown);
    leaf = (struct fkt_sa_leaf){0, own.advertise.channel_key.p, own.advertise.mask_key.p, own.advertise.coin.p};
    CHECK_OK(fkt_sa_coin_climb(root, session, 1, &leaf, coin.coin.leaves, coin.coin.position, coin.coin.path.p,
                               coin.coin.path.n));
    CHECK_OK(fkt_sa_coin_seed(seed, session, root, shown.neighbours.scalar.p));
    CHECK_OK(fkt_sa_graph_make(g, &a->w.params, session, seed));
    fkt_sa_msg_clear(&coin);
    fkt_sa_msg_clear(&own);
    fkt_sa_msg_clear(&shown);
}

/* Real signatures of the four sites, over any list. */
static void tell_signatures(struct sa_attack *a, uint32_t site, const uint32_t who[DEGREE], uint8_t present)
{
    struct fkt_sa_msg m = {.kind = FKT_SA_M_CONFIRMED};
    uint8_t sigs[DEGREE * 64];
    size_t n = 0;
    for (uint32_t i = 0; i < DEGREE; i++) {
        struct fkt_sa_msg confirm = {0};
        if (!(present >> i & 1)) continue;
        sa_recall(a, &a->tape, who[i], FKT_SA_M_CONFIRM, &confirm);
        memcpy(sigs + 64 * n++, confirm.confirm.signature.p, 64);
        fkt_sa_msg_clear(&confirm);
    }
    m.confirmed.present = (struct fkt_sa_bytes){&present, 1};
    m.confirmed.signatures = (struct fkt_sa_bytes){sigs, 64 * n};
    sa_post(a, site, &m);
    sa_drain(a);
}

static void lists_for_two_parts_of_a_ring(void **state)
{
    struct sa_attack a;
    struct fkt_sa_graph g = {0};
    uint32_t witness[DEGREE], neighbours[DEGREE];
    (void)state;
    sa_attack_init(&a, sa_params(RING, 2, 1, DEGREE, 3, 5, 16), 93);
    a.mute = FKT_SA_M_SURVIVORS;
    sa_drain(&a);
    ring_of(&a, &g);
    fkt_sa_graph_witnesses(&g, witness);
    for (uint32_t place = 0; place < RING; place++) {
        const uint32_t lost = g.ring[place < RING / 2 ? RING - 1 : 0];
        uint8_t set[2] = {0xff, 0xff};
        struct fkt_sa_msg m = {.kind = FKT_SA_M_SURVIVORS};
        set[lost / 8] &= (uint8_t) ~(1U << (lost % 8));
        m.survivors.survivors = (struct fkt_sa_bytes){set, sizeof set};
        sa_post(&a, g.ring[place], &m);
        sa_drain(&a);
    }
    for (uint32_t place = RING / 2 + 2; place < RING - 2; place++) { /* all their neighbours received the same list */
        const uint32_t site = g.ring[place];
        fkt_sa_graph_neighbours(&g, site, neighbours);
        assert_int_equal(a.v.site[site].said[FKT_SA_M_CONFIRM], 1);
        if (place % 3 == 0)
            tell_signatures(&a, site, neighbours, 0x0f);              /* of sites that agree, but are not witnesses */
        if (place % 3 == 1) tell_signatures(&a, site, witness, 0x0f); /* of the witnesses: over the other list */
        if (place % 3 == 2) tell_signatures(&a, site, witness, 0x03);
        sa_attack_site_stopped(&a, site, place % 3 == 2 ? FKT_E_TOO_FEW : FKT_E_PEER_AUTH);
        assert_int_equal(a.v.site[site].said[FKT_SA_M_REVEAL], 0);
    }
    tell_signatures(&a, g.ring[5], witness, 0x0f); /* the first half may go on: there is one list only */
    assert_int_equal(a.v.site[g.ring[5]].said[FKT_SA_M_REVEAL], 1);
    fkt_sa_graph_clear(&g);
    sa_attack_release(&a);
}

/* ---- the server as a script: all six have sent their vectors ---- */

static void masked(struct sa_attack *a, uint64_t seed)
{
    sa_attack_init(a, sa_small(), seed);
    a->mute = FKT_SA_M_SURVIVORS;
    sa_drain(a);
    for (uint32_t i = 0; i < SITES; i++) assert_int_equal(a->v.site[i].said[FKT_SA_M_MASKED], 1);
}

static void tell_survivors(struct sa_attack *a, uint32_t site, uint8_t set)
{
    struct fkt_sa_msg m = {.kind = FKT_SA_M_SURVIVORS};
    m.survivors.survivors = (struct fkt_sa_bytes){&set, 1};
    sa_post(a, site, &m);
    sa_drain(a);
}

/* A signature over `set` in the name of a site, which the script can always make; honest sites make one alone. */
static void sign_set(const struct sa_attack *a, uint32_t site, uint8_t set, uint8_t sig[64])
{
    uint8_t session[32], seed[32], hash[32];
    sa_session(a, session);
    CHECK_OK(fkt_sa_coin_seed(seed, session, NULL, NULL));
    fkt_sa_confirm_hash(hash, session, seed, &set, 1);
    fkt_sign(sig, hash, sizeof hash, a->w.site[site].secret);
}

/* `who` (a set of sites) confirm to `site`; signature i is over sets[i]. */
static void tell_confirmed(struct sa_attack *a, uint32_t site, uint8_t who, const uint8_t sets[SITES])
{
    struct fkt_sa_msg m = {.kind = FKT_SA_M_CONFIRMED};
    uint8_t map = 0, sigs[SITES * 64];
    size_t n = 0;
    for (uint32_t i = 0; i < SITES; i++) {
        if (i == site || !(who >> i & 1)) continue;
        map |= (uint8_t)(1U << sa_rank(site, i));
        sign_set(a, i, sets[i], sigs + 64 * n++);
    }
    m.confirmed.present = (struct fkt_sa_bytes){&map, 1};
    m.confirmed.signatures = (struct fkt_sa_bytes){sigs, 64 * n};
    sa_post(a, site, &m);
    sa_drain(a);
}

static void nobody_revealed(struct sa_attack *a)
{
    for (uint32_t i = 0; i < SITES; i++) assert_int_equal(a->v.site[i].said[FKT_SA_M_REVEAL], 0);
}

/* Half {0,1,2} receives a list without 5, half {3,4,5} one without 0. Site 4 is corrupt and signs anything. */
static void unequal_survivor_sets(void **state)
{
    const uint8_t left = ALL & ~(1U << 5), right = ALL & ~1U;
    const uint8_t own[SITES] = {left, left, left, right, right, right};
    const uint8_t helped_left[SITES] = {left, left, left, right, left, right};
    struct sa_attack a;
    (void)state;
    masked(&a, 83);
    for (uint32_t i = 0; i < SITES; i++) tell_survivors(&a, i, own[i]);
    for (uint32_t i = 0; i < SITES; i++) assert_int_equal(a.v.site[i].said[FKT_SA_M_CONFIRM], 1);
    tell_confirmed(&a, 0, 0x17, helped_left); /* 1, 2 and the corrupt one: three of the four it needs */
    sa_attack_site_stopped(&a, 0, FKT_E_TOO_FEW);
    tell_confirmed(&a, 1, 0x1d, helped_left); /* 3 as well, whose signature is over the other set */
    sa_attack_site_stopped(&a, 1, FKT_E_PEER_AUTH);
    tell_confirmed(&a, 2, 0x1b, own);
    sa_attack_site_stopped(&a, 2, FKT_E_PEER_AUTH);
    tell_confirmed(&a, 3, 0x36, own); /* 1, 2, 4, 5 */
    sa_attack_site_stopped(&a, 3, FKT_E_PEER_AUTH);
    tell_confirmed(&a, 5, 0x18, own); /* 3, 4 */
    sa_attack_site_stopped(&a, 5, FKT_E_TOO_FEW);
    nobody_revealed(&a);
    sa_attack_release(&a);
}

static void both_shares_of_one_peer(void **state)
{
    const uint8_t first[SITES] = {ALL, ALL, ALL, ALL, ALL, ALL};
    struct sa_attack a;
    (void)state;
    for (unsigned again = 0; again < 2; again++) {
        masked(&a, 85);
        tell_survivors(&a, a.victim, ALL);
        if (again) tell_survivors(&a, a.victim, ALL); /* identical bytes: ignored */
        assert_int_equal(a.v.site[a.victim].said[FKT_SA_M_CONFIRM], 1);
        CHECK(fkt_sa_client_state(a.w.site[a.victim].client) != FKT_SA_STATE_FAILED);
        tell_survivors(&a, a.victim, ALL & ~1U); /* claims that site 0 is lost, to get its other share */
        sa_attack_site_stopped(&a, a.victim, FKT_E_PEER_FORMAT);
        tell_confirmed(&a, a.victim, ALL, first);
        nobody_revealed(&a);
        sa_attack_release(&a);
    }
}

static void both_shares_after_reveal(void **state)
{
    const uint8_t first[SITES] = {ALL, ALL, ALL, ALL, ALL, ALL};
    const uint8_t other = ALL & ~1U, second[SITES] = {other, other, other, other, other, other};
    struct sa_attack a;
    (void)state;
    masked(&a, 87);
    tell_survivors(&a, a.victim, ALL);
    tell_confirmed(&a, a.victim, ALL, first);
    assert_int_equal(a.v.site[a.victim].said[FKT_SA_M_REVEAL], 1);
    tell_confirmed(&a, a.victim, ALL, first);
    tell_survivors(&a, a.victim, other);
    tell_confirmed(&a, a.victim, other, second);
    assert_int_equal(a.v.site[a.victim].said[FKT_SA_M_CONFIRM], 1);
    assert_int_equal(a.v.site[a.victim].said[FKT_SA_M_REVEAL], 1);
    assert_int_equal(a.v.site[a.victim].gave[0], SA_U);
    sa_attack_release(&a);
}

/* ---- signatures ---- */

static void victim_refuses(uint8_t shown, uint8_t who, const uint8_t sets[SITES], fkt_status status)
{
    struct sa_attack a;
    masked(&a, 89);
    tell_survivors(&a, a.victim, shown);
    tell_confirmed(&a, a.victim, who, sets);
    sa_attack_site_stopped(&a, a.victim, status);
    nobody_revealed(&a);
    sa_attack_release(&a);
}

static void confirmed_for_another_set(void **state)
{
    const uint8_t other = ALL & ~(1U << 5);
    const uint8_t all_other[SITES] = {other, other, other, other, other, other};
    const uint8_t one_other[SITES] = {ALL, ALL, ALL, other, ALL, ALL};
    (void)state;
    victim_refuses(ALL, ALL, all_other, FKT_E_PEER_AUTH);
    victim_refuses(ALL, ALL, one_other, FKT_E_PEER_AUTH); /* four are valid, the fifth is not */
}

static void confirmed_by_the_lost(void **state)
{
    const uint8_t set = ALL & ~(1U << 5), sets[SITES] = {set, set, set, set, set, set};
    (void)state;
    victim_refuses(set, ALL, sets, FKT_E_PEER_AUTH);
}

static void confirmed_by_too_few(void **state)
{
    const uint8_t sets[SITES] = {ALL, ALL, ALL, ALL, ALL, ALL};
    (void)state;
    victim_refuses(ALL, 0x0b, sets, FKT_E_TOO_FEW);
    victim_refuses(ALL, 0x01, sets, FKT_E_TOO_FEW);
    victim_refuses(ALL, 0x00, sets, FKT_E_TOO_FEW);
}

/* Variants: a bit of R, a bit of S, the server's own key, S + l (another encoding of the same signature). */
static void forge(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                                      0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
                                      0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
    uint8_t *sig = sa_edit(a, &m->confirmed.signatures) + 64, pk[32], sk[64], seed[32] = {3};
    unsigned carry = 0;
    (void)l;
    switch (a->variant) {
    case 0: sig[3] ^= 8; break;
    case 1: sig[40] ^= 8; break;
    case 2:
        fkt_sign_keypair(pk, sk, seed);
        fkt_sign(sig, pk, sizeof pk, sk);
        break;
    default:
        for (int i = 0; i < 32; i++, carry >>= 8) sig[32 + i] = (uint8_t)(carry += sig[32 + i] + order[i]);
    }
}

static void confirmed_forged(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++)
        sa_attack_simple(sa_small(), FKT_SA_M_CONFIRMED, forge, variant, FKT_E_PEER_AUTH);
}

static void signature_twice(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *sigs = sa_edit(a, &m->confirmed.signatures);
    (void)l;
    memcpy(sigs + 64, sigs, 64);
}

static void one_confirmation_twice(void **state)
{
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_CONFIRMED, signature_twice, 0, FKT_E_PEER_AUTH);
}

/* The server has the victim's vector and claims that it is lost, so that all sites reveal its mask seed. Its self mask
 * stays: of the self seed the server has only the share of the corrupt site 4. Then it asks for the other kind. */
static void called_lost_after_masked(void **state)
{
    const uint8_t set = ALL & ~(1U << 2);
    const uint8_t first[SITES] = {set, set, set, set, set, set}, second[SITES] = {ALL, ALL, ALL, ALL, ALL, ALL};
    struct sa_attack a;
    (void)state;
    masked(&a, 91);
    a.v.site[a.malicious].corrupt = 1;
    for (uint32_t i = 0; i < SITES; i++) tell_survivors(&a, i, set);
    sa_attack_site_stopped(&a, a.victim, FKT_E_PEER_AUTH);
    for (uint32_t i = 0; i < SITES; i++) tell_confirmed(&a, i, set, first);
    CHECK(sa_watch_known(&a.v, a.victim, SA_S) >= T);
    for (uint32_t i = 0; i < SITES; i++) tell_survivors(&a, i, ALL);
    for (uint32_t i = 0; i < SITES; i++) tell_confirmed(&a, i, ALL, second);
    assert_int_equal(sa_watch_known(&a.v, a.victim, SA_U), 1);
    for (uint32_t i = 0; i < SITES; i++) { /* and nobody else's pair masks open */
        if (i == a.victim || i == a.malicious) continue;
        assert_int_equal(sa_watch_known(&a.v, i, SA_S), 1);
    }
    sa_attack_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survivors_without_the_victim),
        cmocka_unit_test(too_few_survivors),
        cmocka_unit_test(unequal_survivor_sets),
        cmocka_unit_test(survivor_that_is_no_peer),
        cmocka_unit_test(survivors_cut_a_site_off),
        cmocka_unit_test(ring_cut_by_the_lost),
        cmocka_unit_test(lists_for_two_parts_of_a_ring),
        cmocka_unit_test(both_shares_of_one_peer),
        cmocka_unit_test(both_shares_after_reveal),
        cmocka_unit_test(confirmed_for_another_set),
        cmocka_unit_test(confirmed_forged),
        cmocka_unit_test(confirmed_by_the_lost),
        cmocka_unit_test(confirmed_by_too_few),
        cmocka_unit_test(one_confirmation_twice),
        cmocka_unit_test(called_lost_after_masked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
