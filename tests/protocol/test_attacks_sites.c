/* SPDX-License-Identifier: Apache-2.0 */
/* Malicious sites, alone or together with the server: docs/attacks.md, "Sites that lie". */
#include "crypto/group.h"
#include "secagg/coin.h"
#include "secagg/mask.h"
#include "tests/support/sa_attack.h"

static void liar_of(struct sa_attack *a, struct fkt_sa_params p, uint64_t seed, enum fkt_sa_kind kind, sa_bender bend)
{
    sa_attack_init(a, p, seed);
    a->of_malicious = 1;
    a->v.site[a->malicious].corrupt = 1;
    a->kind = kind;
    a->bend = bend;
}

/* ---- false shares in Reveal ---- */

/* Variants: one share, all shares, one that is not a number of the field, one too few. */
static void reveal_falsely(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *shares = sa_edit(a, &m->reveal.shares);
    (void)l;
    switch (a->variant) {
    case 0: shares[3] ^= 1; break;
    case 1:
        for (size_t at = 0; at < m->reveal.shares.n; at += 32) shares[at] ^= 1;
        break;
    case 2: memset(shares, 0xff, 32); break;
    default: m->reveal.shares.n -= 32;
    }
}

static void wrong_reveal_is_named(void **state)
{ /* the owner may have dealt a single wrong share, so nobody is blamed */
    const fkt_status named[] = {FKT_OK, FKT_E_PEER_AUTH, FKT_E_PEER_FORMAT, FKT_E_PEER_FORMAT};
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++) {
        for (int lost = 0; lost < 2; lost++) { /* mask seeds too, when a site is lost before */
            struct sa_attack a;
            const struct fkt_sa_params p = lost ? sa_params(8, 2, 1, 0, 5, 5, 16) : sa_small();
            liar_of(&a, p, 401 + variant, FKT_SA_M_REVEAL, reveal_falsely);
            a.variant = variant;
            if (lost) sa_world_kill(&a.w, 0, FKT_SA_STATE_MASK); /* its share is the first that the false site holds */
            CHECK_OK(sa_attack_run(&a));
            CHECK(a.struck == 1);
            assert_int_equal(fkt_sa_server_site(a.w.server, a.malicious), named[variant]);
            for (uint32_t i = (uint32_t)lost; i < p.sites; i++) {
                if (i == a.malicious) continue;
                assert_int_equal(fkt_sa_server_site(a.w.server, i), FKT_OK);
            }
            sa_attack_release(&a);
        }
    }
}

/* Sites 4 and 5 of six: with four shares needed of each secret and three honest ones, no secret can be rebuilt. */
static void two_reveal_falsely(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    if (l->site >= a->malicious) reveal_falsely(a, l, m);
}

static void too_many_wrong_reveals(void **state)
{
    struct sa_attack a;
    (void)state;
    liar_of(&a, sa_small(), 409, FKT_SA_M_REVEAL, two_reveal_falsely);
    a.every = 1;
    a.variant = 1;
    a.v.site[5].corrupt = 1;
    CHECK_STATUS(sa_attack_run(&a), FKT_E_PEER_AUTH);
    CHECK(fkt_sa_server_state(a.w.server) == FKT_SA_STATE_FAILED);
    sa_attack_release(&a);
}

/* ---- one false share, dealt ---- */

/* Both shares for site 0 are false, all others are right. */
static void deal_one_false(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    const uint8_t plain[64] = {9};
    (void)l;
    sa_seal_as_liar(a, 0, plain, sa_edit(a, &m->shares.sealed));
}

/* Site 0 is honest and reveals what it was dealt. One secret contradicts it; all others need its share: seven sites,
 * one lost before Masked and one before Reveal leave exactly four peers for each of the rest. */
static void dealer_blames_a_holder(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < 2; gone++) { /* the dealer's u is needed, or its s */
        struct sa_attack a;
        liar_of(&a, sa_params(7, 2, 1, 0, 4, 5, 30), 83, FKT_SA_M_SHARES, deal_one_false);
        sa_world_kill(&a.w, gone ? a.malicious : 6, FKT_SA_STATE_MASK);
        sa_world_kill(&a.w, gone ? 6 : a.malicious, FKT_SA_STATE_REVEAL);
        CHECK_OK(sa_attack_run(&a));
        CHECK(a.struck == 1);
        sa_world_check(&a.w);
        assert_int_equal(fkt_sa_server_site(a.w.server, 0), FKT_OK);
        sa_attack_release(&a);
    }
}

/* ---- vectors ---- */

static void send_large(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *y = sa_edit(a, &m->masked.packed);
    const unsigned low = y[0] + 0x10U; /* 10,000 more in the first number of 16 bits */
    (void)l;
    y[0] = (uint8_t)low;
    y[1] = (uint8_t)(y[1] + 0x27 + (low >> 8));
}

static void masked_out_of_range(void **state)
{
    struct fkt_sa_params p = sa_small();
    struct sa_attack a;
    (void)state;
    p.bound = 100; /* six of them make 600, in a ring of 65,536 */
    liar_of(&a, p, 419, FKT_SA_M_MASKED, send_large);
    CHECK_STATUS(sa_attack_run(&a), FKT_E_PEER_AUTH);
    CHECK(a.struck == 1 && fkt_sa_server_state(a.w.server) == FKT_SA_STATE_FAILED);
    sa_attack_honest_spent(&a);
    sa_attack_release(&a);
}

/* Variants: the highest of seven unused bits, the lowest, a byte too many, a byte too few. */
static void spare_bits(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    uint8_t *y = sa_edit(a, &m->masked.packed);
    const size_t n = m->masked.packed.n;
    (void)l;
    if (a->variant == 0) y[n - 1] |= 0x80;
    if (a->variant == 1) y[n - 1] |= 0x02;
    if (a->variant == 2) sa_resize(a, &m->masked.packed, n + 1);
    if (a->variant == 3) sa_resize(a, &m->masked.packed, n - 1);
}

static void masked_with_spare_bits(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++) {
        struct sa_attack a;
        liar_of(&a, sa_params(6, 1, 1, 0, 4, 5, 13), 421, FKT_SA_M_MASKED, spare_bits);
        a.variant = variant;
        CHECK_OK(sa_attack_run(&a)); /* and the sum is that of the other five */
        CHECK(a.struck == 1);
        assert_int_equal(fkt_sa_server_site(a.w.server, a.malicious), FKT_E_PEER_FORMAT);
        sa_attack_release(&a);
    }
}

/* ---- names ---- */

static void call_itself_victim(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    m->site = a->victim;
    if (a->variant) { /* and leaves */
        m->kind = FKT_SA_M_LEAVE;
        m->leave.status = FKT_E_BUDGET;
    }
}

static void site_impersonates_another(void **state)
{
    const enum fkt_sa_kind kinds[] = {FKT_SA_M_ADVERTISE, FKT_SA_M_SHARES, FKT_SA_M_MASKED, FKT_SA_M_CONFIRM,
                                      FKT_SA_M_REVEAL};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (unsigned variant = 0; variant < 2; variant++) {
            struct sa_attack a;
            liar_of(&a, sa_small(), 431, kinds[k], call_itself_victim);
            a.variant = variant;
            CHECK_OK(sa_attack_run(&a));
            CHECK(a.struck == 1);
            assert_int_equal(fkt_sa_server_site(a.w.server, a.malicious), FKT_E_PEER_AUTH);
            assert_int_equal(fkt_sa_server_site(a.w.server, a.victim), FKT_OK);
            CHECK(fkt_sa_client_state(a.w.site[a.victim].client) == FKT_SA_STATE_DONE);
            sa_attack_release(&a);
        }
    }
}

/* A message of a later phase, complete and well formed, from the same round run before. */
static void answer_early(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    const struct sa_taped *t = sa_taped(a->other, l->site, (enum fkt_sa_kind)a->variant);
    CHECK(t->p != NULL && t->n <= l->cap);
    memcpy(l->bytes, t->p, t->n);
    l->len = t->n;
    m->kind = FKT_SA_M_NONE;
}

static void answer_before_the_question(void **state)
{
    const enum fkt_sa_kind kinds[] = {FKT_SA_M_ADVERTISE, FKT_SA_M_SHARES, FKT_SA_M_MASKED, FKT_SA_M_CONFIRM,
                                      FKT_SA_M_REVEAL};
    struct sa_attack whole, a;
    (void)state;
    sa_attack_init(&whole, sa_small(), 433);
    CHECK_OK(sa_attack_run(&whole));
    for (size_t due = 0; due < 5; due++) {
        for (size_t came = due + 1; came < 5; came++) {
            liar_of(&a, sa_small(), 433, kinds[due], answer_early);
            a.variant = kinds[came];
            a.other = &whole.tape;
            CHECK_OK(sa_attack_run(&a));
            CHECK(a.struck == 1);
            assert_int_equal(fkt_sa_server_site(a.w.server, a.malicious), FKT_E_PEER_AUTH);
            sa_attack_release(&a);
        }
    }
    sa_attack_release(&whole);
}

/* Site 0 sends first; a second, different and equally valid message follows in the same phase. */
static void say_otherwise(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    struct fkt_sa_msg other = *m;
    uint8_t bytes[2048], advert[FKT_SA_ADVERT];
    size_t len;
    if (m->kind == FKT_SA_M_ADVERTISE) {
        uint8_t *key = sa_edit(a, &other.advertise.channel_key);
        memcpy(key, m->advertise.mask_key.p, 32);
        sa_advert(a, l->site, a->w.site[l->site].secret, key, m->advertise.mask_key.p, advert);
        memcpy(sa_edit(a, &other.advertise.signature), advert + 64, 64);
    } else {
        sa_edit(a, m->kind == FKT_SA_M_MASKED ? &other.masked.packed : &other.shares.self_commitment)[0] ^= 1;
    }
    CHECK_OK(fkt_sa_msg_encode(&other, bytes, sizeof bytes, &len));
    sa_world_post(&a->w, l->site, 1, bytes, len);
    a->w.wire[a->w.on_wire - 1].delay =
        a->w.params.sites; /* after the messages to the other five, and after the first */
    m->kind = FKT_SA_M_NONE;
}

static void advert_withdrawn(void **state)
{
    const enum fkt_sa_kind kinds[] = {FKT_SA_M_ADVERTISE, FKT_SA_M_SHARES, FKT_SA_M_MASKED};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct sa_attack a;
        unsigned late = 0;
        sa_attack_init(&a, sa_small(), 439);
        a.malicious = 0;
        a.of_malicious = 1;
        a.kind = kinds[k];
        a.bend = say_otherwise;
        CHECK_OK(sa_attack_run(&a));
        CHECK(a.struck == 1);
        for (size_t i = 0; i < a.w.logged; i++) late += a.w.log[i].answer == FKT_E_STATE;
        assert_int_equal(late, 1);
        assert_int_equal(fkt_sa_server_site(a.w.server, 0), FKT_OK);
        sa_attack_release(&a);
    }
}

/* ---- collusion ----
 *
 * Nine sites, 7 and 8 corrupt, one honest site lost after it shared. The server subtracts everything that it can: self
 * masks of survivors, pair masks with the corrupt and with the lost. What remains on an honest vector are the pair
 * masks with the other honest survivors, and for none of them are t shares of a mask seed known. */

enum { NINE = 9, CORRUPT = 7, LOST = 0 };

/* The mask secret and the self seed of a site, from what it drew. */
static void secrets_of(const struct sa_attack *a, uint32_t site, uint8_t mask_secret[32], uint8_t self_seed[32])
{
    uint8_t session[32], s[32];
    sa_session(a, session);
    fkt_scalar_reduce(s, a->v.site[site].drawn + 32);
    fkt_scalar_reduce(self_seed, a->v.site[site].drawn + 96);
    fkt_sa_mask_secret(mask_secret, s, session, site);
}

/* Subtracts the pair masks of `site` with each peer in `with` (and its self mask if requested) from its vector as sent;
 * x gets the rest. */
static void strip(const struct sa_attack *a, uint32_t site, unsigned with, int self, int64_t *x)
{
    uint8_t session[32], seed[32], mask_secret[32], self_seed[32], key[32], delivered[32];
    const uint8_t everyone[2] = {0xff, 0x01}; /* shared */
    struct fkt_sa_vector v = {0};
    struct fkt_stream *stream = NULL;
    struct fkt_sa_msg masked = {0};
    sa_session(a, session);
    CHECK_OK(fkt_sa_coin_seed(seed, session, NULL, NULL));
    fkt_sa_delivered_hash(delivered, session, seed, everyone, sizeof everyone);
    sa_recall(a, &a->tape, site, FKT_SA_M_MASKED, &masked);
    CHECK_OK(fkt_sa_vector_init(&v, &a->w.params));
    CHECK_OK(fkt_stream_new(&stream, FKT_KEYSTREAM_AES));
    CHECK_OK(fkt_sa_vector_add_packed(&v, masked.masked.packed.p));
    secrets_of(a, site, mask_secret, self_seed);
    fkt_sa_self_key(key, self_seed, session, site);
    if (self) CHECK_OK(fkt_sa_vector_mask(&v, stream, key, 1));
    for (uint32_t j = 0; j < NINE; j++) {
        struct fkt_sa_msg advert = {0};
        if (j == site || !(with >> j & 1)) continue;
        sa_recall(a, &a->tape, j, FKT_SA_M_ADVERTISE, &advert);
        CHECK_OK(fkt_sa_pair_key(key, mask_secret, advert.advertise.mask_key.p, session, seed, site, j));
        fkt_sa_stream_key(key, key, delivered);
        CHECK_OK(fkt_sa_vector_mask(&v, stream, key, j > site));
        fkt_sa_msg_clear(&advert);
    }
    fkt_sa_vector_signed(&v, x);
    fkt_sa_vector_clear(&v);
    fkt_stream_free(stream);
    fkt_sa_msg_clear(&masked);
}

static void colluders_pool_everything(void **state)
{
    const struct fkt_sa_params p = sa_params(NINE, 1, 2, 0, 6, 16, 30);
    const unsigned everyone = 0x1ff, known = 3U << CORRUPT | 1U << LOST;
    struct sa_attack a;
    (void)state;
    sa_attack_init(&a, p, 443);
    a.v.site[CORRUPT].corrupt = a.v.site[CORRUPT + 1].corrupt = 1;
    sa_world_kill(&a.w, LOST, FKT_SA_STATE_MASK);
    CHECK_OK(sa_attack_run(&a));
    CHECK(sa_watch_known(&a.v, LOST, SA_S) >= p.threshold && sa_watch_known(&a.v, LOST, SA_U) == 2);
    for (uint32_t i = LOST + 1; i < CORRUPT; i++) {
        int64_t left[16], bare[16];
        unsigned differ = 0;
        CHECK(sa_watch_known(&a.v, i, SA_U) >= p.threshold);
        assert_int_equal(sa_watch_known(&a.v, i, SA_S), 2);
        strip(&a, i, known, 1, left);
        strip(&a, i, everyone, 1, bare);
        assert_memory_equal(bare, a.w.site[i].x, sizeof bare); /* so these were all the masks there are */
        for (int k = 0; k < 16; k++) differ += left[k] != bare[k];
        CHECK(differ >= 14); /* of 16 numbers of 30 bits two are right by chance less than once in 10^15 */
    }
    sa_attack_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colluders_pool_everything), cmocka_unit_test(wrong_reveal_is_named),
        cmocka_unit_test(too_many_wrong_reveals),    cmocka_unit_test(masked_out_of_range),
        cmocka_unit_test(masked_with_spare_bits),    cmocka_unit_test(site_impersonates_another),
        cmocka_unit_test(advert_withdrawn),          cmocka_unit_test(answer_before_the_question),
        cmocka_unit_test(dealer_blames_a_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
