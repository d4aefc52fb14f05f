/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on who is who: docs/attacks.md, "Keys". Each test stands there under its name. */
#include "crypto/agree.h"
#include "crypto/sign.h"
#include "tests/support/sa_attack.h"

/* Keys that the server made itself. */
static void server_keys(uint8_t channel[32], uint8_t mask[32])
{
    uint8_t sk[32];
    memset(sk, 0x5a, sizeof sk);
    fkt_agree_public(channel, sk);
    sk[0] ^= 1;
    fkt_agree_public(mask, sk);
}

static void put_server_keys(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *advert = sa_edit(a, &m->neighbours.adverts) + FKT_SA_ADVERT, channel[32], mask[32];
    (void)l;
    server_keys(channel, mask);
    if (a->variant != 1) memcpy(advert, channel, 32);
    if (a->variant != 2) memcpy(advert + 32, mask, 32);
}

static void swapped_keys(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 3; variant++) /* both keys, the mask key alone, the channel key alone */
        sa_attack_simple(sa_small(), FKT_SA_M_NEIGHBOURS, put_server_keys, variant, FKT_E_PEER_AUTH);
}

static void put_ghost(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *advert = sa_edit(a, &m->neighbours.adverts) + FKT_SA_ADVERT;
    uint8_t channel[32], mask[32], pk[32], sk[64], seed[32] = {9};
    server_keys(channel, mask);
    fkt_sign_keypair(pk, sk, seed);
    sa_advert(a, sa_other(l->site, 1), sk, channel, mask, advert);
}

/* The same as it would come from outside: a site that is not who it says it is. */
static void advertise_as_ghost(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t pk[32], sk[64], seed[32] = {9}, advert[FKT_SA_ADVERT];
    fkt_sign_keypair(pk, sk, seed);
    sa_advert(a, l->site, sk, m->advertise.channel_key.p, m->advertise.mask_key.p, advert);
    memcpy(sa_edit(a, &m->advertise.signature), advert + 64, 64);
}

static void nonexistent_site(void **state)
{
    struct sa_attack a;
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_NEIGHBOURS, put_ghost, 0, FKT_E_PEER_AUTH);
    sa_attack_init(&a, sa_small(), 29);
    a.of_malicious = 1;
    a.kind = FKT_SA_M_ADVERTISE;
    a.bend = advertise_as_ghost;
    CHECK_OK(sa_attack_run(&a));
    CHECK(a.struck == 1 && fkt_sa_server_site(a.w.server, a.malicious) == FKT_E_PEER_AUTH);
    sa_attack_release(&a);
}

static void exchange_two(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *adverts = sa_edit(a, &m->neighbours.adverts), held[FKT_SA_ADVERT];
    (void)l;
    memcpy(held, adverts, sizeof held);
    memcpy(adverts, adverts + sizeof held, sizeof held);
    memcpy(adverts + sizeof held, held, sizeof held);
}

static void keys_of_another_site(void **state)
{
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_NEIGHBOURS, exchange_two, 0, FKT_E_PEER_AUTH);
}

static void first_twice(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *adverts = sa_edit(a, &m->neighbours.adverts);
    (void)l;
    memcpy(adverts + FKT_SA_ADVERT, adverts, FKT_SA_ADVERT);
}

static void one_neighbour_twice(void **state)
{
    (void)state;
    sa_attack_simple(sa_small(), FKT_SA_M_NEIGHBOURS, first_twice, 0, FKT_E_PEER_AUTH);
    sa_attack_simple(sa_ring(), FKT_SA_M_NEIGHBOURS, first_twice, 1, FKT_E_PEER_AUTH);
}

/* One neighbour's advert is the one that it made for `other`. */
static void put_old_advert(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *advert = sa_edit(a, &m->neighbours.adverts) + FKT_SA_ADVERT;
    struct fkt_sa_msg old = {0};
    sa_recall(a, a->other, sa_other(l->site, 1), FKT_SA_M_ADVERTISE, &old);
    memcpy(advert, old.advertise.channel_key.p, 32);
    memcpy(advert + 32, old.advertise.mask_key.p, 32);
    memcpy(advert + 64, old.advertise.signature.p, 64);
    fkt_sa_msg_clear(&old);
}

static void with_old_adverts(struct fkt_sa_params before)
{
    struct sa_attack first, a;
    sa_attack_init(&first, before, 21);
    sa_attack_next_round(&first, 1);
    CHECK_OK(sa_attack_run(&first));
    sa_attack_init(&a, sa_small(), 21); /* the same seed: the same roster */
    assert_memory_equal(a.w.params.roster, first.w.params.roster, 6 * FKT_SA_KEY);
    a.kind = FKT_SA_M_NEIGHBOURS;
    a.bend = put_old_advert;
    a.other = &first.tape;
    (void)sa_attack_run(&a);
    sa_attack_stopped(&a, FKT_E_PEER_AUTH);
    sa_attack_release(&a);
    sa_attack_release(&first);
}

static void keys_of_another_round(void **state)
{
    (void)state;
    with_old_adverts(sa_small());
}

static void keys_of_another_task(void **state)
{
    struct fkt_sa_params p = sa_small();
    (void)state;
    p.task[31] ^= 1;
    with_old_adverts(p);
}

/* Neighbour `malicious` signs what it is told to: the keys of variant's choice. The server passes it on to the victim.
 * */
static void reflect(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *advert = sa_edit(a, &m->neighbours.adverts) + FKT_SA_ADVERT * sa_rank(l->site, a->malicious);
    struct fkt_sa_msg own = {0};
    uint8_t channel[32], mask[32];
    sa_recall(a, &a->tape, l->site, FKT_SA_M_ADVERTISE, &own);
    memcpy(channel, advert, 32);
    memcpy(mask, advert + 32, 32);
    if (a->variant != 1) memcpy(channel, own.advertise.channel_key.p, 32);
    if (a->variant != 2) memcpy(mask, own.advertise.mask_key.p, 32);
    fkt_sa_msg_clear(&own);
    sa_advert(a, a->malicious, a->w.site[a->malicious].secret, channel, mask, advert);
}

static void own_keys_reflected(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 3; variant++)
        sa_attack_simple(sa_small(), FKT_SA_M_NEIGHBOURS, reflect, variant, FKT_E_PEER_AUTH);
}

/* ---- points that are none ---- */

static const char *const low_order[] = {
    "0000000000000000000000000000000000000000000000000000000000000000", /* 0 */
    "0100000000000000000000000000000000000000000000000000000000000000", /* 1 */
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800", /* of order 8 */
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157", /* of order 8 */
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"  /* p - 1 */
};
static const char *const non_canonical[] = {
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* p, another 0 */
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* p + 1, another 1 */
    "f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* p + 9: another name of the base point */
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0900000000000000000000000000000000000000000000000000000000000080" /* the base point with its top bit set */
};

static void from_hex(uint8_t out[32], const char *hex)
{
    for (int i = 0; i < 32; i++) {
        unsigned x;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &x), 1);
        out[i] = (uint8_t)x;
    }
}

/* Variants 0..4: low order, 5..9: not canonical; plus 10: as the mask key, else as the channel key. */
static void bad_point(unsigned variant, uint8_t channel[32], uint8_t mask[32])
{
    const unsigned n = variant % 10;
    from_hex(variant < 10 ? channel : mask, n < 5 ? low_order[n] : non_canonical[n - 5]);
}

static void show_bad_point(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *advert = sa_edit(a, &m->neighbours.adverts) + FKT_SA_ADVERT * sa_rank(l->site, a->malicious);
    uint8_t channel[32], mask[32];
    memcpy(channel, advert, 32);
    memcpy(mask, advert + 32, 32);
    bad_point(a->variant, channel, mask);
    sa_advert(a, a->malicious, a->w.site[a->malicious].secret, channel, mask, advert);
}

static void advertise_bad_point(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *channel = sa_edit(a, &m->advertise.channel_key), *mask = sa_edit(a, &m->advertise.mask_key);
    uint8_t advert[FKT_SA_ADVERT];
    bad_point(a->variant, channel, mask);
    sa_advert(a, l->site, a->w.site[l->site].secret, channel, mask, advert);
    memcpy(sa_edit(a, &m->advertise.signature), advert + 64, 64);
}

/* A server that passes it on gets nothing from the victim; a server that is honest goes on without the malicious site.
 * */
static void with_bad_point(unsigned variant)
{
    struct sa_attack a;
    sa_attack_simple(sa_small(), FKT_SA_M_NEIGHBOURS, show_bad_point, variant, FKT_E_PEER_AUTH);
    sa_attack_init(&a, sa_small(), 31);
    a.of_malicious = 1;
    a.v.site[a.malicious].corrupt = 1;
    a.kind = FKT_SA_M_ADVERTISE;
    a.bend = advertise_bad_point;
    a.variant = variant;
    CHECK_OK(sa_attack_run(&a));
    CHECK(a.struck == 1 && fkt_sa_server_site(a.w.server, a.malicious) == FKT_E_PEER_AUTH);
    sa_attack_release(&a);
}

static void low_order_keys(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 5; n++) with_bad_point(n);
    for (unsigned n = 10; n < 15; n++) with_bad_point(n);
}

static void non_canonical_keys(void **state)
{
    (void)state;
    for (unsigned n = 5; n < 10; n++) with_bad_point(n);
    for (unsigned n = 15; n < 20; n++) with_bad_point(n);
}

/* ---- who is a neighbour ---- */

static void keep_few(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *present = sa_edit(a, &m->neighbours.present);
    (void)l;
    memset(present, 0, m->neighbours.present.n);
    for (uint32_t i = 0; i < a->variant; i++) fkt_bitmap_set(present, i);
    m->neighbours.adverts.n = (size_t)a->variant * FKT_SA_ADVERT;
}

static void too_few_neighbours(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4; n++) {
        sa_attack_simple(sa_small(), FKT_SA_M_NEIGHBOURS, keep_few, n, FKT_E_TOO_FEW);
        sa_attack_simple(sa_ring(), FKT_SA_M_NEIGHBOURS, keep_few, n, FKT_E_TOO_FEW);
    }
}

/* The victim's second neighbour becomes a site that is none, with its own, proper advert. */
static void put_far_site(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *adverts = sa_edit(a, &m->neighbours.adverts);
    const size_t n = m->neighbours.adverts.n / FKT_SA_ADVERT;
    for (uint32_t site = 0; site < a->w.params.sites; site++) {
        struct fkt_sa_msg far = {0};
        size_t i;
        sa_recall(a, &a->tape, site, FKT_SA_M_ADVERTISE, &far);
        for (i = 0; i < n && memcmp(adverts + i * FKT_SA_ADVERT, far.advertise.channel_key.p, 32) != 0; i++) continue;
        if (i == n && site != l->site) {
            memcpy(adverts + FKT_SA_ADVERT, far.advertise.channel_key.p, 32);
            memcpy(adverts + FKT_SA_ADVERT + 32, far.advertise.mask_key.p, 32);
            memcpy(adverts + FKT_SA_ADVERT + 64, far.advertise.signature.p, 64);
            fkt_sa_msg_clear(&far);
            return;
        }
        fkt_sa_msg_clear(&far);
    }
    fail_msg("every site is a neighbour");
}

static void neighbours_of_another_graph(void **state)
{
    (void)state;
    sa_attack_simple(sa_ring(), FKT_SA_M_NEIGHBOURS, put_far_site, 0, FKT_E_PEER_AUTH);
}

static struct fkt_sa_bytes *map_of(struct fkt_sa_msg *m)
{
    switch (m->kind) {
    case FKT_SA_M_NEIGHBOURS: return &m->neighbours.present;
    case FKT_SA_M_DELIVER: return &m->deliver.delivered;
    case FKT_SA_M_SURVIVORS: return &m->survivors.survivors;
    default: return &m->confirmed.present;
    }
}

static struct fkt_sa_bytes *list_of(struct fkt_sa_msg *m, size_t *width)
{
    switch (m->kind) {
    case FKT_SA_M_NEIGHBOURS: *width = FKT_SA_ADVERT; return &m->neighbours.adverts;
    case FKT_SA_M_DELIVER: *width = FKT_SA_SEALED; return &m->deliver.sealed;
    default: *width = 64; return &m->confirmed.signatures;
    }
}

/* Variant 0: a bit beyond the last; 1: and an entry for it; 2: a byte of bitmap too many; 3: a byte too few. */
static void spare_bits(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    struct fkt_sa_bytes *map = map_of(m), *list;
    uint8_t *entries;
    size_t width;
    (void)l;
    if (a->variant >= 2) {
        sa_resize(a, map, a->variant == 2 ? map->n + 1 : map->n - 1);
        return;
    }
    sa_edit(a, map)[map->n - 1] |= 0x80;
    if (a->variant == 0 || m->kind == FKT_SA_M_SURVIVORS) return;
    list = list_of(m, &width);
    entries = sa_resize(a, list, list->n + width);
    memcpy(entries + list->n - width, entries, width);
}

static void bitmap_with_spare_bits(void **state)
{
    const enum fkt_sa_kind kinds[] = {FKT_SA_M_NEIGHBOURS, FKT_SA_M_DELIVER, FKT_SA_M_SURVIVORS, FKT_SA_M_CONFIRMED};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (unsigned variant = 0; variant < 4; variant++)
            sa_attack_simple(sa_small(), kinds[k], spare_bits, variant, FKT_E_PEER_FORMAT);
}

/* Variants: an entry too few, one too many, a byte too few, a byte too many. */
static void wrong_list(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    size_t width;
    struct fkt_sa_bytes *list = list_of(m, &width);
    (void)l;
    switch (a->variant) {
    case 0: sa_resize(a, list, list->n - width); break;
    case 1: sa_resize(a, list, list->n + width); break;
    case 2: sa_resize(a, list, list->n - 1); break;
    default: sa_resize(a, list, list->n + 1);
    }
}

static void bitmap_and_list_disagree(void **state)
{
    const enum fkt_sa_kind kinds[] = {FKT_SA_M_NEIGHBOURS, FKT_SA_M_DELIVER, FKT_SA_M_CONFIRMED};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (unsigned variant = 0; variant < 4; variant++)
            sa_attack_simple(sa_small(), kinds[k], wrong_list, variant, FKT_E_PEER_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swapped_keys),
        cmocka_unit_test(nonexistent_site),
        cmocka_unit_test(keys_of_another_site),
        cmocka_unit_test(keys_of_another_round),
        cmocka_unit_test(keys_of_another_task),
        cmocka_unit_test(own_keys_reflected),
        cmocka_unit_test(low_order_keys),
        cmocka_unit_test(non_canonical_keys),
        cmocka_unit_test(one_neighbour_twice),
        cmocka_unit_test(too_few_neighbours),
        cmocka_unit_test(neighbours_of_another_graph),
        cmocka_unit_test(bitmap_with_spare_bits),
        cmocka_unit_test(bitmap_and_list_disagree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
