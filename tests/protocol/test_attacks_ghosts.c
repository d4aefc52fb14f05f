/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks with ghosts: honest sites that are left out of one Deliver and still listed as survivors:
 * docs/attacks.md, "Ghosts".
 *
 * Twenty sites on a ring of degree 6, t = 4; none is lost, two are corrupt. The server wants the sum over places 0 to
 * 9, half of the sites that take part:
 *
 *   place   0 1   2 ... 7   8 9   10        11 ... 18   19
 *           edge   inner    edge  corrupt   ghosts      corrupt
 *
 * The server claims to the edge, which alone has ghosts as neighbours, that they never shared; so the edge puts no mask
 * between itself and them. When it receives the survivors, the edge stops, but its vectors are sent, and with the
 * corrupt ones t neighbours of every site in the half are left that reveal its self seed. */
#include "crypto/group.h"
#include "secagg/graph.h"
#include "secagg/mask.h"
#include "secagg/server.h"
#include "tests/support/sa_attack.h"

enum { SITES = 20, DEGREE = 6, T = 4, HALF = 10, LENGTH = 5, MAP = (SITES + 7) / 8 };
enum audience { THE_SAME, EDGE_ALONE, ALL_OF_THE_HALF }; /* which sites get a list without the ghosts */

static struct {
    struct sa_attack a;
    struct fkt_sa_graph g;
    uint8_t session[32], seed[32], delivered[SITES][32]; /* the hash of the list that each site received */
} s;

static int corrupt(uint32_t place) { return place == HALF || place == SITES - 1; }
static int ghost(uint32_t place) { return place > HALF && place < SITES - 1; }
static int edge(uint32_t place) { return place < 2 || place == HALF - 2 || place == HALF - 1; }

static void hide_ghosts(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    static uint8_t map[MAP], sealed[DEGREE * FKT_SA_SEALED];
    const uint32_t place = s.g.sites ? s.g.place[l->site] : 0;
    uint32_t near[DEGREE], n = 0;
    if (!s.g.sites) { /* the first of them: the seed is known by now */
        memcpy(s.session, a->w.server->session, 32);
        memcpy(s.seed, a->w.server->seed, 32);
        CHECK_OK(fkt_sa_graph_make(&s.g, &a->w.params, s.session, s.seed));
        hide_ghosts(a, l, m);
        return;
    }
    memset(map, 0, sizeof map);
    for (uint32_t p = 0; p < SITES; p++)
        if (!ghost(p) || place >= HALF || a->variant == THE_SAME || (a->variant == EDGE_ALONE && !edge(place)))
            fkt_bitmap_set(map, s.g.ring[p]);
    fkt_sa_delivered_hash(s.delivered[l->site], s.session, s.seed, map, sizeof map);
    fkt_sa_graph_neighbours(&s.g, l->site, near);
    for (uint32_t k = 0; k < DEGREE; k++)
        if (fkt_bitmap_get(map, near[k]))
            memcpy(sealed + (size_t)FKT_SA_SEALED * n++, m->deliver.sealed.p + (size_t)FKT_SA_SEALED * k,
                   FKT_SA_SEALED);
    m->deliver.delivered = (struct fkt_sa_bytes){map, sizeof map};
    m->deliver.sealed = (struct fkt_sa_bytes){sealed, (size_t)FKT_SA_SEALED * n};
}

/* All have sent their vectors, all receive all as survivors, and the signers receive the witnesses' signatures. */
static void play(enum audience audience)
{
    uint8_t everyone[MAP], map = 0, signatures[DEGREE * 64];
    uint32_t witness[DEGREE], n = 0;
    struct fkt_sa_msg shown = {.kind = FKT_SA_M_SURVIVORS}, signed_by = {.kind = FKT_SA_M_CONFIRMED};
    memset(&s, 0, sizeof s);
    memset(everyone, 0xff, sizeof everyone);
    everyone[MAP - 1] = (1U << SITES % 8) - 1;
    sa_attack_init(&s.a, sa_params(SITES, 1, 2, DEGREE, T, LENGTH, 30), 601);
    s.a.mute = FKT_SA_M_SURVIVORS;
    s.a.kind = FKT_SA_M_DELIVER;
    s.a.every = 1;
    s.a.variant = audience;
    s.a.bend = hide_ghosts;
    sa_drain(&s.a);
    for (uint32_t i = 0; i < SITES; i++) assert_int_equal(s.a.v.site[i].said[FKT_SA_M_MASKED], 1);
    shown.survivors.survivors = (struct fkt_sa_bytes){everyone, sizeof everyone};
    for (uint32_t i = 0; i < SITES; i++) sa_post(&s.a, i, &shown);
    sa_drain(&s.a);
    fkt_sa_graph_witnesses(&s.g, witness);
    for (uint32_t k = 0; k < DEGREE; k++) {
        struct fkt_sa_msg confirm = {0};
        if (!s.a.v.site[witness[k]].said[FKT_SA_M_CONFIRM]) continue;
        sa_recall(&s.a, &s.a.tape, witness[k], FKT_SA_M_CONFIRM, &confirm);
        memcpy(signatures + (size_t)64 * n++, confirm.confirm.signature.p, 64);
        map |= (uint8_t)(1U << k);
        fkt_sa_msg_clear(&confirm);
    }
    signed_by.confirmed.present = (struct fkt_sa_bytes){&map, 1};
    signed_by.confirmed.signatures = (struct fkt_sa_bytes){signatures, (size_t)64 * n};
    for (uint32_t i = 0; i < SITES; i++)
        if (s.a.v.site[i].said[FKT_SA_M_CONFIRM]) sa_post(&s.a, i, &signed_by);
    sa_drain(&s.a);
}

static void end(void)
{
    fkt_sa_graph_clear(&s.g);
    sa_attack_release(&s.a);
}

/* Subtracts what the server can: the self mask of site i, and its masks with the corrupt ones. */
static void strip(struct fkt_sa_vector *v, struct fkt_stream *stream, uint32_t i)
{
    uint32_t near[DEGREE];
    uint8_t key[32], seed[32];
    fkt_scalar_reduce(seed, s.a.v.site[i].drawn + 96);
    fkt_sa_self_key(key, seed, s.session, i);
    CHECK_OK(fkt_sa_vector_mask(v, stream, key, 1));
    fkt_sa_graph_neighbours(&s.g, i, near);
    for (uint32_t k = 0; k < DEGREE; k++) {
        const uint32_t j = near[k];
        struct fkt_sa_msg advert = {0};
        if (!corrupt(s.g.place[j])) continue;
        fkt_scalar_reduce(seed, s.a.v.site[j].drawn + 32);
        fkt_sa_mask_secret(key, seed, s.session, j);
        sa_recall(&s.a, &s.a.tape, i, FKT_SA_M_ADVERTISE, &advert);
        CHECK_OK(fkt_sa_pair_key(key, key, advert.advertise.mask_key.p, s.session, s.seed, j, i));
        fkt_sa_stream_key(key, key, s.delivered[i]);
        CHECK_OK(fkt_sa_vector_mask(v, stream, key, j > i));
        fkt_sa_msg_clear(&advert);
    }
}

/* 1 when the vectors of the honest sites at the first `places` places, so stripped, add up to their plain sum. */
static int server_has_the_sum(uint32_t places)
{
    struct fkt_sa_vector v = {0};
    struct fkt_stream *stream = NULL;
    int64_t got[LENGTH], want[LENGTH] = {0};
    CHECK_OK(fkt_sa_vector_init(&v, &s.a.w.params));
    CHECK_OK(fkt_stream_new(&stream, FKT_KEYSTREAM_AES));
    for (uint32_t p = 0; p < places; p++) {
        const uint32_t i = s.g.ring[p];
        struct fkt_sa_msg masked = {0};
        if (corrupt(p)) continue;
        sa_recall(&s.a, &s.a.tape, i, FKT_SA_M_MASKED, &masked);
        CHECK_OK(fkt_sa_vector_add_packed(&v, masked.masked.packed.p));
        strip(&v, stream, i);
        for (int n = 0; n < LENGTH; n++) want[n] += s.a.w.site[i].x[n];
        fkt_sa_msg_clear(&masked);
    }
    fkt_sa_vector_signed(&v, got);
    fkt_sa_vector_clear(&v);
    fkt_stream_free(stream);
    return memcmp(got, want, sizeof got) == 0;
}

/* The edge receives a shorter list than the others. All self seeds of the half are revealed, but the server cannot
 * obtain its sum, since no mask between an edge site and an inner one cancels. With one list for all, the sum over all
 * results. */
static void ghosts_hidden_from_the_edge(void **state)
{
    (void)state;
    play(EDGE_ALONE);
    for (uint32_t p = 0; p < HALF; p++) {
        CHECK(sa_watch_known(&s.a.v, s.g.ring[p], SA_U) >= T);
        if (edge(p)) sa_attack_site_stopped(&s.a, s.g.ring[p], FKT_E_PEER_AUTH);
    }
    CHECK(!server_has_the_sum(HALF));
    CHECK(!server_has_the_sum(SITES));
    end();
    play(THE_SAME);
    for (uint32_t i = 0; i < SITES; i++) assert_int_equal(s.a.v.site[i].said[FKT_SA_M_REVEAL], 1);
    CHECK(server_has_the_sum(SITES));
    CHECK(!server_has_the_sum(HALF));
    end();
}

/* The whole half receives the shorter list: its masks cancel, but no site in it signs or reveals anything. */
static void ghosts_hidden_from_a_half(void **state)
{
    (void)state;
    play(ALL_OF_THE_HALF);
    CHECK(server_has_the_sum(HALF)); /* would have, with the self seeds that this test knows */
    for (uint32_t p = 0; p < HALF; p++) {
        sa_attack_site_stopped(&s.a, s.g.ring[p], FKT_E_PEER_AUTH);
        assert_int_equal(s.a.v.site[s.g.ring[p]].said[FKT_SA_M_CONFIRM], 0);
        CHECK(sa_watch_known(&s.a.v, s.g.ring[p], SA_U) < T);
    }
    end();
}

/* The delivery is to everyone but the victim. */
static void leave_out(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    sa_edit(a, &m->deliver.delivered)[0] &= (uint8_t) ~(1U << l->site);
}

static void delivery_without_the_victim(void **state)
{
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_DELIVER, leave_out, 0, FKT_E_PEER_AUTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ghosts_hidden_from_the_edge),
                                       cmocka_unit_test(ghosts_hidden_from_a_half),
                                       cmocka_unit_test(delivery_without_the_victim)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
