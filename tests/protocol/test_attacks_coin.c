/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the coin and so on the graph: docs/attacks.md, "Coin and graph". */
#include "crypto/digest.h"
#include "crypto/group.h"
#include "secagg/coin.h"
#include "secagg/graph.h"
#include "tests/support/sa_attack.h"

/* A site's advert as it sent it. */
static void put_advert(const struct sa_attack *a, uint32_t site, uint8_t advert[FKT_SA_ADVERT])
{
    struct fkt_sa_msg m = {0};
    sa_recall(a, &a->tape, site, FKT_SA_M_ADVERTISE, &m);
    memcpy(advert, m.advertise.channel_key.p, 32);
    memcpy(advert + 32, m.advertise.mask_key.p, 32);
    memcpy(advert + 64, m.advertise.signature.p, 64);
    fkt_sa_msg_clear(&m);
}

/* Variants: a bit, one more, not below l, zero, none at all. */
static void another_v(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *v = sa_edit(a, &m->neighbours.scalar);
    (void)l;
    switch (a->variant) {
    case 0: v[5] ^= 0x10; break;
    case 1: v[0]++; break;
    case 2: memset(v, 0xff, 32); break;
    case 3: memset(v, 0, 32); break;
    default: m->neighbours.scalar.n = 0;
    }
}

/* The attack that the coin is for: V of the server's choice, and the adverts that the graph of this V needs. */
static void choose_graph(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *v = sa_edit(a, &m->neighbours.scalar), *adverts = sa_edit(a, &m->neighbours.adverts);
    uint8_t session[32], seed[32], root[FKT_SA_NODE];
    struct fkt_sa_graph graph = {0};
    struct fkt_sa_msg coin = {0}, own = {0};
    struct fkt_digest d;
    struct fkt_sa_leaf leaf;
    uint32_t neighbours[6];
    sa_session(a, session);
    sa_recall(a, &a->tape, l->site, FKT_SA_M_COIN, &coin);
    sa_recall(a, &a->tape, l->site, FKT_SA_M_ADVERTISE, &own);
    leaf = (struct fkt_sa_leaf){l->site, own.advertise.channel_key.p, own.advertise.mask_key.p, own.advertise.coin.p};
    CHECK_OK(fkt_sa_coin_climb(root, session, 1, &leaf, coin.coin.leaves, coin.coin.position, coin.coin.path.p,
                               coin.coin.path.n));
    v[0] ^= 1;
    fkt_digest_init(&d, "fedkt/1 seed", NULL);
    fkt_digest_add(&d, session, sizeof session);
    fkt_digest_add(&d, root, 32);
    fkt_digest_add(&d, v, 32);
    fkt_digest_end(&d, seed);
    CHECK_OK(fkt_sa_graph_make(&graph, &a->w.params, session, seed));
    fkt_sa_graph_neighbours(&graph, l->site, neighbours);
    for (uint32_t n = 0; n < 6; n++) put_advert(a, neighbours[n], adverts + n * FKT_SA_ADVERT);
    fkt_sa_graph_clear(&graph);
    fkt_sa_msg_clear(&coin);
    fkt_sa_msg_clear(&own);
}

static void wrong_coin_value(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++)
        sa_attack_simple(sa_ring(), FKT_SA_M_NEIGHBOURS, another_v, variant, FKT_E_PEER_AUTH);
    sa_attack_simple(sa_ring(), FKT_SA_M_NEIGHBOURS, another_v, 4, FKT_E_PEER_FORMAT);
    sa_attack_simple(sa_ring(), FKT_SA_M_NEIGHBOURS, choose_graph, 5, FKT_E_PEER_AUTH);
}

/* Variants: the digest of the first sibling, the last one's, a sibling's point for another good point. */
static void alter_path(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *path = sa_edit(a, &m->coin.path), two[32] = {2};
    (void)l;
    switch (a->variant) {
    case 0: path[0] ^= 1; break;
    case 1: path[m->coin.path.n - 64] ^= 1; break;
    default: CHECK_OK(fkt_point_base(path + 32, two));
    }
}

static void coin_path_altered(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 3; variant++) {
        struct sa_attack a;
        sa_attack_init(&a, sa_ring(), 37);
        a.kind = FKT_SA_M_COIN;
        a.bend = alter_path;
        a.variant = variant;
        a.may_say = 1; /* it opens, and learns from V that the tree was false */
        (void)sa_attack_run(&a);
        sa_attack_stopped(&a, FKT_E_PEER_AUTH);
        sa_attack_release(&a);
    }
}

/* What the server sends next is a coin of this throw, with the victim as its only leaf. */
static void lone_coin(struct sa_attack *a, struct fkt_sa_msg *m, uint32_t attempt)
{
    (void)a;
    m->kind = FKT_SA_M_COIN;
    memset(&m->coin, 0, sizeof m->coin);
    m->coin.attempt = attempt;
    m->coin.leaves = 1;
}

static void same_throw(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    lone_coin(a, m, 1);
}

static void second_tree_for_one_throw(void **state)
{
    struct sa_attack a;
    (void)state;
    sa_attack_init(&a, sa_ring(), 41);
    a.kind = FKT_SA_M_NEIGHBOURS;
    a.bend = same_throw;
    (void)sa_attack_run(&a);
    sa_attack_stopped(&a, FKT_E_PEER_FORMAT);
    assert_int_equal(a.v.site[a.victim].said[FKT_SA_M_OPEN], 1);
    sa_attack_release(&a);
}

static void gap(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    lone_coin(a, m, a->variant);
}

static void throw_with_a_gap(void **state)
{
    (void)state;
    sa_attack_simple(sa_ring(), FKT_SA_M_NEIGHBOURS, gap, 3, FKT_E_PEER_FORMAT); /* 1, 3 */
    sa_attack_simple(sa_ring(), FKT_SA_M_NEIGHBOURS, gap, 0, FKT_E_PEER_FORMAT); /* 1, 0 */
    sa_attack_simple(sa_ring(), FKT_SA_M_COIN, gap, 2, FKT_E_PEER_FORMAT);       /* 2 first */
    sa_attack_simple(sa_ring(), FKT_SA_M_COIN, gap, 0, FKT_E_PEER_FORMAT);       /* 0 first */
}

/* The server claims to the victim alone that the coin was thrown again, several times. */
static void throw_on(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)m;
    l->copies = 0;
    for (uint32_t attempt = 2; attempt <= a->w.params.attempts + 1; attempt++) {
        struct fkt_sa_msg coin = {0};
        lone_coin(a, &coin, attempt);
        sa_post(a, l->site, &coin);
    }
    m->kind = FKT_SA_M_NONE;
}

static void too_many_throws(void **state)
{
    struct sa_attack a;
    (void)state;
    sa_attack_init(&a, sa_ring(), 43);
    a.kind = FKT_SA_M_NEIGHBOURS;
    a.bend = throw_on;
    a.may_say = a.w.params.attempts - 1;
    (void)sa_attack_run(&a);
    sa_attack_stopped(&a, FKT_E_PEER_FORMAT);
    assert_int_equal(a.v.site[a.victim].said[FKT_SA_M_OPEN], a.w.params.attempts);
    sa_attack_release(&a);
}

/* Variants: beyond the leaves, no leaves, more leaves than sites, a path too short, too long, ragged, an
 * invalid point, the identity. */
static void impossible_tree(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    switch (a->variant) {
    case 0: m->coin.position = m->coin.leaves; break;
    case 1: m->coin.leaves = 0; break;
    case 2:
        m->coin.leaves = 13; /* of the same depth as 12 */
        break;
    case 3: m->coin.path.n -= FKT_SA_NODE; break;
    case 4: sa_resize(a, &m->coin.path, m->coin.path.n + FKT_SA_NODE); break;
    case 5: m->coin.path.n--; break;
    case 6: memset(sa_edit(a, &m->coin.path) + 32, 0xff, 32); break;
    default: memset(sa_edit(a, &m->coin.path) + 32, 0, 32);
    }
}

static void coin_tree_that_cannot_be(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 6; variant++)
        sa_attack_simple(sa_ring(), FKT_SA_M_COIN, impossible_tree, variant, FKT_E_PEER_FORMAT);
    sa_attack_simple(sa_ring(), FKT_SA_M_COIN, impossible_tree, 6, FKT_E_PEER_AUTH);
    sa_attack_simple(sa_ring(), FKT_SA_M_COIN, impossible_tree, 7, FKT_E_PEER_AUTH);
}

/* On a sparse graph, adverts of everybody without any coin, with V of the server's own choice. */
static void no_coin(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    static const uint8_t map[1] = {0x3f};
    struct fkt_sa_bytes adverts = {NULL, 0}, v = {NULL, 0};
    (void)l;
    m->kind = FKT_SA_M_NEIGHBOURS;
    memset(&m->neighbours, 0, sizeof m->neighbours);
    m->neighbours.present = (struct fkt_sa_bytes){map, 1};
    sa_resize(a, &adverts, 6 * FKT_SA_ADVERT);
    m->neighbours.adverts = adverts;
    if (a->variant == 1) {
        sa_resize(a, &v, 32)[0] = 1;
        m->neighbours.scalar = v;
    }
}

static void coin_out_of_place(void **state)
{
    struct fkt_sa_params p = sa_small();
    (void)state;
    sa_attack_simple(sa_ring(), FKT_SA_M_COIN, no_coin, 0, FKT_E_PEER_FORMAT);
    sa_attack_simple(sa_ring(), FKT_SA_M_COIN, no_coin, 1, FKT_E_PEER_FORMAT);
    p.attempts = 3;
    sa_attack_simple(p, FKT_SA_M_NEIGHBOURS, same_throw, 2, FKT_E_PEER_FORMAT);
}

static void open_falsely(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *r = sa_edit(a, &m->open.scalar);
    (void)l;
    if (a->variant == 0) r[1] ^= 4;
    else memset(r, 0xff, 32);
}

static void coin_opened_falsely(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 2; variant++) {
        struct fkt_sa_census census;
        struct sa_attack a;
        sa_attack_init(&a, sa_ring(), 47);
        a.of_malicious = 1;
        a.v.site[a.malicious].corrupt = 1;
        a.kind = FKT_SA_M_OPEN;
        a.bend = open_falsely;
        a.variant = variant;
        CHECK_OK(sa_attack_run(&a));
        fkt_sa_server_census(a.w.server, &census);
        assert_int_equal(census.throws, 2);
        assert_int_equal(fkt_sa_server_site(a.w.server, a.malicious), FKT_E_PEER_AUTH);
        sa_attack_release(&a);
    }
}

/* ---- two halves, two coins ----
 *
 * The server is scripted here from the coin on: it shows each half of the sites the tree of that half alone, so that
 * each opens correctly and gets a V that fits. N 12, k 10, t 6: each site has nearly all others as neighbours, but only
 * five of them in its own half. */

enum { HALF = 6, BOTH = 12 };

struct half {
    struct fkt_sa_coin coin;
    struct fkt_sa_graph graph;
    uint8_t v[32];
};

static void plant_tree(struct sa_attack *a, struct half *h, uint32_t first)
{
    struct fkt_sa_msg advert[HALF];
    struct fkt_sa_leaf leaf[HALF];
    uint8_t session[32];
    sa_session(a, session);
    for (uint32_t i = 0; i < HALF; i++) {
        sa_recall(a, &a->tape, first + i, FKT_SA_M_ADVERTISE, &advert[i]);
        leaf[i] = (struct fkt_sa_leaf){first + i, advert[i].advertise.channel_key.p, advert[i].advertise.mask_key.p,
                                       advert[i].advertise.coin.p};
    }
    CHECK_OK(fkt_sa_coin_build(&h->coin, session, 1, leaf, HALF));
    for (uint32_t i = 0; i < HALF; i++) {
        struct fkt_sa_msg m = {.kind = FKT_SA_M_COIN};
        uint8_t path[4 * FKT_SA_NODE];
        fkt_sa_coin_path(&h->coin, i, path);
        m.coin.attempt = 1;
        m.coin.leaves = HALF;
        m.coin.position = i;
        m.coin.path = (struct fkt_sa_bytes){path, fkt_sa_coin_path_bytes(HALF, i)};
        sa_post(a, first + i, &m);
        fkt_sa_msg_clear(&advert[i]);
    }
}

static void send_neighbours(struct sa_attack *a, struct half *h, uint32_t first)
{
    uint8_t scalars[HALF * 32], session[32], seed[32], map[2] = {0xff, 0x03}, adverts[10 * FKT_SA_ADVERT];
    uint32_t neighbours[10];
    sa_session(a, session);
    for (uint32_t i = 0; i < HALF; i++) {
        struct fkt_sa_msg open = {0};
        sa_recall(a, &a->tape, first + i, FKT_SA_M_OPEN, &open);
        memcpy(scalars + i * 32, open.open.scalar.p, 32);
        fkt_sa_msg_clear(&open);
    }
    fkt_sa_coin_open(&h->coin, scalars, h->v);
    CHECK_OK(fkt_sa_coin_seed(seed, session, fkt_sa_coin_root(&h->coin), h->v));
    CHECK_OK(fkt_sa_graph_make(&h->graph, &a->w.params, session, seed));
    for (uint32_t i = 0; i < HALF; i++) {
        struct fkt_sa_msg m = {.kind = FKT_SA_M_NEIGHBOURS};
        fkt_sa_graph_neighbours(&h->graph, first + i, neighbours);
        for (uint32_t n = 0; n < 10; n++) put_advert(a, neighbours[n], adverts + n * FKT_SA_ADVERT);
        m.neighbours.scalar = (struct fkt_sa_bytes){h->v, 32};
        m.neighbours.present = (struct fkt_sa_bytes){map, sizeof map};
        m.neighbours.adverts = (struct fkt_sa_bytes){adverts, sizeof adverts};
        sa_post(a, first + i, &m);
    }
}

/* The index of `of` among `site`'s neighbours; 10: absent. */
static uint32_t place_among(const struct half *h, uint32_t site, uint32_t of)
{
    uint32_t neighbours[10], n;
    fkt_sa_graph_neighbours(&h->graph, site, neighbours);
    for (n = 0; n < 10 && neighbours[n] != of; n++) continue;
    return n;
}

/* Everything that was sealed for the site by every site whose neighbour it is; own_half: by its own half alone. */
static void deliver(struct sa_attack *a, const struct half h[2], uint32_t site, int own_half)
{
    const uint32_t mine = site / HALF;
    uint8_t map[(BOTH + 7) / 8] = {0}, sealed[10 * FKT_SA_SEALED];
    struct fkt_sa_msg m = {.kind = FKT_SA_M_DELIVER};
    uint32_t neighbours[10];
    size_t n = 0;
    fkt_sa_graph_neighbours(&h[mine].graph, site, neighbours);
    for (uint32_t i = 0; i < 10; i++) {
        const uint32_t from = neighbours[i], at = place_among(&h[from / HALF], from, site);
        struct fkt_sa_msg shares = {0};
        if (at == 10 || (own_half && from / HALF != mine)) continue;
        sa_recall(a, &a->tape, from, FKT_SA_M_SHARES, &shares);
        memcpy(sealed + n++ * FKT_SA_SEALED, shares.shares.sealed.p + at * FKT_SA_SEALED, FKT_SA_SEALED);
        fkt_bitmap_set(map, from);
        fkt_sa_msg_clear(&shares);
    }
    fkt_bitmap_set(map, site);
    m.deliver.delivered = (struct fkt_sa_bytes){map, sizeof map};
    m.deliver.sealed = (struct fkt_sa_bytes){sealed, n * FKT_SA_SEALED};
    sa_post(a, site, &m);
}

static void different_seeds(void **state)
{
    struct fkt_sa_params p = sa_params(BOTH, 2, 1, 10, 6, 5, 16);
    struct half h[2];
    struct sa_attack a;
    (void)state;
    memset(h, 0, sizeof h);
    sa_attack_init(&a, p, 53);
    a.mute = FKT_SA_M_COIN;
    sa_drain(&a);
    for (uint32_t i = 0; i < 2; i++) plant_tree(&a, &h[i], i * HALF);
    sa_drain(&a);
    for (uint32_t i = 0; i < 2; i++) send_neighbours(&a, &h[i], i * HALF);
    sa_drain(&a);
    for (uint32_t i = 0; i < BOTH; i++) deliver(&a, h, i, i % 2);
    sa_drain(&a);
    for (uint32_t i = 0; i < BOTH; i++) {
        sa_attack_site_stopped(&a, i, i % 2 ? FKT_E_TOO_FEW : FKT_E_PEER_AUTH);
        assert_int_equal(sa_watch_leaked(&a.v, i), 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        fkt_sa_coin_clear(&h[i].coin);
        fkt_sa_graph_clear(&h[i].graph);
    }
    sa_attack_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_coin_value),          cmocka_unit_test(coin_path_altered),
        cmocka_unit_test(second_tree_for_one_throw), cmocka_unit_test(too_many_throws),
        cmocka_unit_test(throw_with_a_gap),          cmocka_unit_test(different_seeds),
        cmocka_unit_test(coin_tree_that_cannot_be),  cmocka_unit_test(coin_out_of_place),
        cmocka_unit_test(coin_opened_falsely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
