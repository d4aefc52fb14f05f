/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on shares between owner and peer: docs/attacks.md, "Shares". */
#include "crypto/seal.h"
#include "secagg/client.h"
#include "secagg/coin.h"
#include "tests/support/sa_attack.h"

enum { PEERS = 5 }; /* of a site of sa_small() */

static void exchange_boxes(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *sealed = sa_edit(a, &m->deliver.sealed), held[FKT_SA_SEALED];
    (void)l;
    memcpy(held, sealed, sizeof held);
    memcpy(sealed, sealed + sizeof held, sizeof held);
    if (a->variant == 0) memcpy(sealed + sizeof held, held, sizeof held); /* 1: one owner's twice */
}

static void share_of_the_wrong_owner(void **state)
{
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_DELIVER, exchange_boxes, 0, FKT_E_PEER_AUTH);
    sa_attack_simple(sa_small(), FKT_SA_M_DELIVER, exchange_boxes, 1, FKT_E_PEER_AUTH);
    sa_attack_simple(sa_ring(), FKT_SA_M_DELIVER, exchange_boxes, 0, FKT_E_PEER_AUTH);
}

static void flip_box(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    sa_edit(a, &m->deliver.sealed)[a->variant] ^= 0x20;
}

static void sealed_share_flipped(void **state)
{
    const unsigned at[] = {0, 31, 32, 63, 64, 79, 80, PEERS * FKT_SA_SEALED - 1}; /* text and tag, first and last box */
    (void)state;
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        sa_attack_simple(sa_small(), FKT_SA_M_DELIVER, flip_box, at[i], FKT_E_PEER_AUTH);
}

/* Variants: shorter by 1, 16 (no tag), 80; longer by 1, 16, 80. */
static void resize_boxes(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    const size_t by[] = {1, 16, FKT_SA_SEALED};
    const size_t n = m->deliver.sealed.n;
    (void)l;
    sa_resize(a, &m->deliver.sealed, a->variant < 3 ? n - by[a->variant] : n + by[a->variant - 3]);
}

static void sealed_share_cut_or_grown(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 6; variant++)
        sa_attack_simple(sa_small(), FKT_SA_M_DELIVER, resize_boxes, variant, FKT_E_PEER_FORMAT);
}

static void put_old_box(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    struct fkt_sa_msg old = {0};
    uint8_t *sealed = sa_edit(a, &m->deliver.sealed);
    sa_recall(a, a->other, l->site, FKT_SA_M_DELIVER, &old);
    memcpy(sealed + a->variant * FKT_SA_SEALED, old.deliver.sealed.p + a->variant * FKT_SA_SEALED, FKT_SA_SEALED);
    fkt_sa_msg_clear(&old);
}

static void sealed_share_of_another_round(void **state)
{
    struct sa_attack first, a;
    (void)state;
    sa_attack_init(&first, sa_small(), 61);
    CHECK_OK(sa_attack_run(&first));
    sa_attack_init(&a, sa_small(), 61);
    a.w.round[0] ^= 1; /* the same randomness, so the same channel keys: only the session differs */
    fkt_sa_server_free(a.w.server);
    a.w.server = NULL;
    CHECK_OK(fkt_sa_server_new(&a.w.server, &a.w.params, a.w.round, 0));
    a.kind = FKT_SA_M_DELIVER;
    a.bend = put_old_box;
    a.other = &first.tape;
    a.variant = 3;
    (void)sa_attack_run(&a);
    sa_attack_stopped(&a, FKT_E_PEER_AUTH);
    sa_attack_release(&a);
    sa_attack_release(&first);
}

static void reflect_box(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    struct fkt_sa_msg own = {0};
    uint8_t *sealed = sa_edit(a, &m->deliver.sealed);
    sa_recall(a, &a->tape, l->site, FKT_SA_M_SHARES, &own);
    memcpy(sealed + FKT_SA_SEALED, own.shares.sealed.p + FKT_SA_SEALED, FKT_SA_SEALED);
    fkt_sa_msg_clear(&own);
}

static void sealed_share_reflected(void **state)
{
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_DELIVER, reflect_box, 0, FKT_E_PEER_AUTH);
}

/* ---- what a corrupt owner may seal ---- */

/* Variants: the share of s is l, of s all ones, of u l, of u all ones. */
static void seal_too_large(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                                      0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
                                      0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
    uint8_t plain[64] = {1}, *sealed = sa_edit(a, &m->shares.sealed);
    uint8_t *half = a->variant < 2 ? plain : plain + 32;
    (void)l;
    if (a->variant % 2) memset(half, 0xff, 32);
    else memcpy(half, order, 32);
    sa_seal_as_liar(a, a->victim, plain, sealed + FKT_SA_SEALED * sa_rank(a->malicious, a->victim));
}

static void share_beyond_the_field(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++) {
        struct sa_attack a;
        sa_attack_init(&a, sa_small(), 67);
        a.of_malicious = 1;
        a.v.site[a.malicious].corrupt = 1;
        a.kind = FKT_SA_M_SHARES;
        a.bend = seal_too_large;
        a.variant = variant;
        CHECK_OK(sa_attack_run(&a)); /* one site may be lost, and is: the victim */
        sa_attack_stopped(&a, FKT_E_PEER_FORMAT);
        assert_int_equal(sa_watch_leaked(&a.v, a.victim), 0);
        sa_attack_release(&a);
    }
}

/* Shares that open, are below l, and lie on no polynomial. */
static void deal_garbage(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *sealed = sa_edit(a, &m->shares.sealed);
    (void)l;
    for (uint32_t n = 0; n < PEERS; n++) {
        uint8_t plain[64];
        memset(plain, (int)(17 * n + 1), sizeof plain);
        plain[31] = plain[63] = 0;
        sa_seal_as_liar(a, sa_other(a->malicious, n), plain, sealed + n * FKT_SA_SEALED);
    }
}

static void false_shares_dealt(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < 2; gone++) { /* as a survivor (u is needed), and as one lost later (s is) */
        struct sa_attack a;
        sa_attack_init(&a, sa_small(), 71 + gone);
        a.of_malicious = 1;
        a.v.site[a.malicious].corrupt = 1;
        a.kind = FKT_SA_M_SHARES;
        a.bend = deal_garbage;
        if (gone) sa_world_kill(&a.w, a.malicious, FKT_SA_STATE_MASK);
        CHECK_STATUS(sa_attack_run(&a), FKT_E_PEER_AUTH);
        CHECK(a.struck == 1 && fkt_sa_server_state(a.w.server) == FKT_SA_STATE_FAILED);
        CHECK(strstr(fkt_error_text(), "site 4's secret") != NULL);
        sa_attack_honest_spent(&a);
        sa_attack_release(&a);
    }
}

static void commit_falsely(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    sa_edit(a, &m->shares.self_commitment)[7] ^= 1;
}

static void false_self_commitment(void **state)
{
    struct sa_attack a;
    (void)state;
    sa_attack_init(&a, sa_small(), 73);
    a.of_malicious = 1;
    a.v.site[a.malicious].corrupt = 1;
    a.kind = FKT_SA_M_SHARES;
    a.bend = commit_falsely;
    CHECK_STATUS(sa_attack_run(&a), FKT_E_PEER_AUTH);
    CHECK(a.struck == 1 && fkt_sa_server_state(a.w.server) == FKT_SA_STATE_FAILED);
    CHECK(strstr(fkt_error_text(), "site 4's secret") != NULL);
    sa_attack_honest_spent(&a);
    sa_attack_release(&a);
}

/* ---- who is delivered ---- */

/* Site 5 never advertised, so no site has keys of it; the delivery names it anyway. Variants: with a box; without
 * one. */
static void add_stranger(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *sealed;
    (void)l;
    fkt_bitmap_set(sa_edit(a, &m->deliver.delivered), 5);
    if (a->variant) return;
    sealed = sa_resize(a, &m->deliver.sealed, m->deliver.sealed.n + FKT_SA_SEALED);
    memcpy(sealed + m->deliver.sealed.n - FKT_SA_SEALED, sealed, FKT_SA_SEALED);
}

static void delivery_of_an_unknown_site(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 2; variant++) {
        struct sa_attack a;
        sa_attack_init(&a, sa_small(), 79);
        sa_world_kill(&a.w, 5, FKT_SA_STATE_ADVERTISE);
        a.kind = FKT_SA_M_DELIVER;
        a.bend = add_stranger;
        a.variant = variant;
        (void)sa_attack_run(&a);
        sa_attack_stopped(&a, FKT_E_PEER_AUTH);
        sa_attack_release(&a);
    }
}

/* The first `variant` peers alone; the corrupt one, site 4, is then the only one when variant is 0. */
static void cut_graph(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *map = sa_edit(a, &m->deliver.delivered), *sealed = sa_edit(a, &m->deliver.sealed);
    const struct fkt_sa_neighbour *near = a->w.site[l->site].client->neighbour;
    const uint32_t corrupt = sa_rank(l->site, a->malicious);
    memset(map, 0, m->deliver.delivered.n);
    fkt_bitmap_set(map, l->site);
    for (uint32_t i = 0; i < a->variant; i++) fkt_bitmap_set(map, near[i].site);
    m->deliver.sealed.n = a->variant * FKT_SA_SEALED;
    if (a->variant) return;
    fkt_bitmap_set(map, a->malicious);
    memmove(sealed, sealed + corrupt * FKT_SA_SEALED, FKT_SA_SEALED);
    m->deliver.sealed.n = FKT_SA_SEALED;
}

static void graph_cut(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4; n++) sa_attack_simple(sa_small(), FKT_SA_M_DELIVER, cut_graph, n, FKT_E_TOO_FEW);
    sa_attack_simple(sa_ring(), FKT_SA_M_DELIVER, cut_graph, 3, FKT_E_TOO_FEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share_of_the_wrong_owner),    cmocka_unit_test(sealed_share_flipped),
        cmocka_unit_test(sealed_share_cut_or_grown),   cmocka_unit_test(sealed_share_of_another_round),
        cmocka_unit_test(sealed_share_reflected),      cmocka_unit_test(share_beyond_the_field),
        cmocka_unit_test(delivery_of_an_unknown_site), cmocka_unit_test(graph_cut),
        cmocka_unit_test(false_shares_dealt),          cmocka_unit_test(false_self_commitment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
