/* SPDX-License-Identifier: Apache-2.0 */
/* A site's state machine in an honest round: every message it sends is opened and checked against the document, with a
 * copy of its entropy. What it refuses: test_client_refuses.c. */
#include "crypto/agree.h"
#include "crypto/digest.h"
#include "crypto/group.h"
#include "crypto/seal.h"
#include "crypto/shamir.h"
#include "crypto/sign.h"
#include "secagg/graph.h"
#include "secagg/mask.h"
#include "tests/support/sa_alone.h"
#include "tests/support/sa_world.h"

static struct alone a;

static int tear_down(void **state)
{
    (void)state;
    alone_release(&a);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

#define GONE(field) assert_true(alone_zero(&(field), sizeof(field)))
#define THERE(field) assert_false(alone_zero(&(field), sizeof(field)))

static void same(struct fkt_sa_bytes got, const void *want, size_t n)
{
    assert_int_equal(got.n, n);
    assert_memory_equal(got.p, want, n);
}

static void check_advertise(void)
{
    uint8_t mask_secret[32], key[32], hash[32];
    alone_drive(&a, FKT_SA_STATE_ADVERTISE);
    assert_int_equal(a.said.kind, FKT_SA_M_ADVERTISE);
    fkt_agree_public(key, a.c);
    same(a.said.advertise.channel_key, key, 32);
    fkt_sa_mask_secret(mask_secret, a.s, a.session, ALONE_SITE);
    fkt_agree_public(key, mask_secret);
    same(a.said.advertise.mask_key, key, 32);
    if (fkt_sa_complete(&a.p)) assert_int_equal(a.said.advertise.coin.n, 0);
    else {
        CHECK_OK(fkt_point_base(key, a.r));
        same(a.said.advertise.coin, key, 32);
    }
    assert_int_equal(a.said.advertise.signature.n, 64);
    fkt_sa_advert_hash(hash, a.session, ALONE_SITE, a.said.advertise.channel_key.p, a.said.advertise.mask_key.p);
    assert_true(fkt_verify(a.said.advertise.signature.p, hash, 32, a.roster + 32 * ALONE_SITE));
    assert_int_equal(fkt_sa_client_wants(a.client), FKT_SA_RECV);
}

/* Both throws: what is opened was committed to before, and what is committed to next is opened next. */
static void check_open(void)
{
    uint8_t committed[32], point[32];
    memcpy(committed, a.said.advertise.coin.p, 32);
    for (uint32_t t = 1; t <= 2; t++) {
        alone_make(&a, FKT_SA_M_COIN);
        CHECK_OK(alone_tell(&a));
        alone_hear(&a);
        assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_COIN);
        assert_int_equal(a.said.kind, FKT_SA_M_OPEN);
        assert_int_equal(a.said.open.attempt, t);
        assert_int_equal(a.said.open.scalar.n, 32);
        CHECK_OK(fkt_point_base(point, a.said.open.scalar.p));
        assert_memory_equal(point, committed, 32);
        CHECK_OK(fkt_point_base(point, a.r)); /* the twin's next */
        same(a.said.open.next_coin, point, 32);
        memcpy(committed, point, 32);
    }
}

/* What each neighbour would find: any five shares give the secrets back, four and a wrong one do not. */
static void check_shares(void)
{
    uint8_t s_shares[8 * 32], u_shares[8 * 32], plain[64], from[32], to[32], got[32];
    const uint8_t *sealed;
    uint32_t x[8], n = 0;
    alone_drive(&a, FKT_SA_STATE_SHARE);
    assert_int_equal(a.said.kind, FKT_SA_M_SHARES);
    assert_int_equal(a.said.shares.sealed.n, 7 * FKT_SA_SEALED);
    sealed = a.said.shares.sealed.p;
    for (uint32_t i = 0; i < 8; i++) {
        if (i == a.never_came) continue;
        alone_seal_keys(&a, a.neighbour[i], from, to);
        assert_true(fkt_unseal(plain, sealed + FKT_SA_SEALED * n, 64, to));
        memcpy(s_shares + 32 * n, plain, 32);
        memcpy(u_shares + 32 * n, plain + 32, 32);
        x[n++] = a.neighbour[i] + 1;
    }
    for (uint32_t first = 0; first + ALONE_T <= n; first++) {
        CHECK_OK(fkt_shamir_join(got, s_shares + 32 * first, x + first, ALONE_T));
        assert_memory_equal(got, a.s, 32);
        CHECK_OK(fkt_shamir_join(got, u_shares + 32 * first, x + first, ALONE_T));
        assert_memory_equal(got, a.u, 32);
    }
    CHECK_OK(fkt_shamir_join(got, s_shares, x, ALONE_T - 1));
    assert_memory_not_equal(got, a.s, 32);
    fkt_sa_self_commitment(got, a.session, ALONE_SITE, a.u);
    same(a.said.shares.self_commitment, got, 32);
}

/* The coefficients too are drawn in the order of the document: those of s, then those of u. */
static void check_coefficients(void)
{
    uint8_t want[2][7 * 32], plain[64], from[32], to[32];
    uint32_t x[7], n = 0;
    for (uint32_t i = 0; i < 8; i++)
        if (i != a.never_came) x[n++] = a.neighbour[i] + 1;
    CHECK_OK(fkt_shamir_split(want[0], a.s, x, n, ALONE_T, &a.twin));
    CHECK_OK(fkt_shamir_split(want[1], a.u, x, n, ALONE_T, &a.twin));
    for (uint32_t i = 0; i < n; i++) {
        alone_seal_keys(&a, x[i] - 1, from, to);
        assert_true(fkt_unseal(plain, a.said.shares.sealed.p + FKT_SA_SEALED * i, 64, to));
        assert_memory_equal(plain, want[0] + 32 * i, 32);
        assert_memory_equal(plain + 32, want[1] + 32 * i, 32);
    }
    GONE(a.client->secret.channel);
    GONE(a.client->secret.mask_seed);
    GONE(a.client->secret.coin);
    THERE(a.client->secret.self_seed);
}

/* Taking off the masks that the peers know leaves the vector. */
static void check_masked(void)
{
    struct fkt_sa_vector v;
    struct fkt_stream *stream;
    int64_t got[ALONE_LENGTH];
    uint8_t key[32], delivered[32];
    assert_string_equal(a.calls, "");
    alone_drive(&a, FKT_SA_STATE_MASK);
    assert_string_equal(a.calls, "rv");
    assert_int_equal(a.said.kind, FKT_SA_M_MASKED);
    assert_int_equal(a.said.masked.packed.n, (ALONE_LENGTH * a.p.bits + 7) / 8);
    CHECK_OK(fkt_sa_vector_init(&v, &a.p));
    CHECK_OK(fkt_stream_new(&stream, (enum fkt_keystream)a.p.keystream));
    CHECK_OK(fkt_sa_vector_add_packed(&v, a.said.masked.packed.p));
    fkt_sa_vector_signed(&v, got);
    assert_memory_not_equal(got, a.x, sizeof got);
    fkt_sa_delivered_hash(delivered, a.session, a.seed, a.delivered, fkt_bitmap_bytes(a.p.sites));
    fkt_sa_self_key(key, a.u, a.session, ALONE_SITE);
    CHECK_OK(fkt_sa_vector_mask(&v, stream, key, 1));
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t j = a.neighbour[i];
        if (!alone_is_peer(&a, i)) continue;
        CHECK_OK(fkt_sa_pair_key(key, a.other[j].mask_secret, a.client->mask_key, a.session, a.seed, j, ALONE_SITE));
        fkt_sa_stream_key(key, key, delivered);
        CHECK_OK(fkt_sa_vector_mask(&v, stream, key, j > ALONE_SITE)); /* the lower of a pair had added it */
    }
    fkt_sa_vector_signed(&v, got);
    assert_memory_equal(got, a.x, sizeof got);
    fkt_stream_free(stream);
    fkt_sa_vector_clear(&v);
    GONE(a.client->secret.self_seed);
    for (uint32_t i = 0; i < 8; i++) {
        GONE(a.client->neighbour[i].from_key);
        GONE(a.client->neighbour[i].pair_key);
    }
    THERE(a.client->secret.sign);
}

static void check_confirm(void)
{
    uint8_t hash[32];
    alone_drive(&a, FKT_SA_STATE_CONFIRM);
    assert_int_equal(a.said.kind, FKT_SA_M_CONFIRM);
    assert_int_equal(a.said.confirm.signature.n, 64);
    fkt_sa_confirm_hash(hash, a.session, a.seed, a.survivors, 2);
    assert_true(fkt_verify(a.said.confirm.signature.p, hash, 32, a.roster + 32 * ALONE_SITE));
    GONE(a.client->secret);
    for (uint32_t i = 0; i < 8; i++) { /* of each peer one share is left, and it is the right one */
        const struct fkt_sa_neighbour *j = &a.client->neighbour[i];
        if (i == a.lost || !alone_is_peer(&a, i)) GONE(j->self_share);
        if (i != a.lost) GONE(j->mask_share);
        if (alone_is_peer(&a, i)) assert_true(alone_zero(j->self_share, 32) != alone_zero(j->mask_share, 32));
    }
}

static void check_reveal(void)
{
    const uint8_t *share;
    assert_string_equal(a.calls, "rv");
    alone_make(&a, FKT_SA_M_CONFIRMED);
    CHECK_OK(alone_tell(&a));
    assert_string_equal(a.calls, "rvs");
    assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_REVEAL);
    assert_int_equal(fkt_sa_client_wants(a.client), FKT_SA_SEND);
    assert_null(a.client->neighbour);
    alone_hear(&a);
    assert_int_equal(a.said.kind, FKT_SA_M_REVEAL);
    assert_int_equal(a.said.reveal.shares.n, 6 * 32);
    share = a.said.reveal.shares.p;
    for (uint32_t i = 0; i < 8; i++) {
        if (!alone_is_peer(&a, i)) continue;
        assert_memory_equal(share, a.other[a.neighbour[i]].plain + (i == a.lost ? 0 : 32), 32);
        share += 32;
    }
    assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_DONE);
    assert_int_equal(fkt_sa_client_wants(a.client), FKT_SA_ENDED);
    GONE(a.client->secret);
    assert_null(a.client->out);
}

static void whole_course(enum alone_kind kind)
{
    alone_init(&a, kind);
    assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_BEGIN);
    assert_int_equal(fkt_sa_client_wants(a.client), FKT_SA_RECV);
    check_advertise();
    if (kind == ALONE_SPARSE) check_open();
    check_shares();
    check_coefficients();
    check_masked();
    check_confirm();
    check_reveal();
}

static void complete_graph(void **state)
{
    (void)state;
    whole_course(ALONE_COMPLETE);
}

static void sparse_graph(void **state)
{
    (void)state;
    whole_course(ALONE_SPARSE);
}

/* The same message once more, before and after the answer is sent, changes nothing; a buffer that is too small
 * consumes nothing, calls nothing and can be followed by a larger one. */
static void repeats_and_small_buffers(void **state)
{
    uint8_t small[ALONE_CAP];
    size_t need, len;
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        alone_init(&a, (enum alone_kind)kind);
        for (enum fkt_sa_kind next; (next = alone_next(&a, fkt_sa_client_state(a.client))) != FKT_SA_M_NONE;) {
            alone_make(&a, next);
            CHECK_OK(alone_tell(&a));
            CHECK_OK(alone_tell(&a));
            need = a.client->out_len;
            CHECK_STATUS(fkt_sa_client_send(a.client, small, 0, &len), FKT_E_ARG);
            CHECK_STATUS(fkt_sa_client_send(a.client, small, need - 1, &len), FKT_E_ARG);
            assert_int_equal(len, 0);
            assert_int_equal(fkt_sa_client_wants(a.client), FKT_SA_SEND);
            alone_hear(&a);
            assert_int_equal(a.heard_len, need);
            CHECK_OK(alone_tell(&a));
            CHECK_STATUS(fkt_sa_client_send(a.client, small, sizeof small, &len), FKT_E_STATE);
            assert_int_equal(len, 0);
        }
        assert_string_equal(a.calls, "rvs");
        assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_DONE);
        if (kind == 0) alone_release(&a);
    }
}

/* After the end nothing is accepted, nothing is sent, and nothing changes. */
static void after_the_end(void **state)
{
    static const enum fkt_sa_kind kinds[] = {FKT_SA_M_BEGIN, FKT_SA_M_SURVIVORS, FKT_SA_M_ABORTED};
    size_t len;
    (void)state;
    alone_init(&a, ALONE_COMPLETE);
    alone_drive(&a, FKT_SA_STATE_DONE);
    for (size_t i = 0; i < 3; i++) {
        alone_make(&a, kinds[i]);
        CHECK_STATUS(alone_tell(&a), FKT_E_STATE);
        assert_int_equal(fkt_sa_client_wants(a.client), FKT_SA_ENDED);
        CHECK_STATUS(fkt_sa_client_send(a.client, a.heard, ALONE_CAP, &len), FKT_E_STATE);
        assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_DONE);
    }
}

static void making_one(void **state)
{
    struct fkt_sa_client *c;
    struct fkt_sa_site doors;
    uint8_t secret[64];
    (void)state;
    alone_init(&a, ALONE_COMPLETE);
    CHECK_STATUS(fkt_sa_client_new(&c, &a.p, 9, a.secret, &a.doors, &a.entropy), FKT_E_ARG);
    assert_null(c);
    CHECK_STATUS(fkt_sa_client_new(&c, &a.p, 4, a.secret, &a.doors, &a.entropy), FKT_E_MISMATCH);
    memcpy(secret, a.secret, 64);
    secret[40] ^= 1; /* the public half of the key: signing with it would leak the private one */
    CHECK_STATUS(fkt_sa_client_new(&c, &a.p, ALONE_SITE, secret, &a.doors, &a.entropy), FKT_E_MISMATCH);
    CHECK_STATUS(fkt_sa_client_new(&c, &a.p, ALONE_SITE, a.secret, NULL, &a.entropy), FKT_E_ARG);
    for (int k = 0; k < 3; k++) {
        doors = a.doors;
        if (k == 0) doors.reserve = NULL;
        if (k == 1) doors.vector = NULL;
        if (k == 2) doors.spend = NULL;
        CHECK_STATUS(fkt_sa_client_new(&c, &a.p, ALONE_SITE, a.secret, &doors, &a.entropy), FKT_E_ARG);
    }
    a.p.threshold = 4;
    CHECK_STATUS(fkt_sa_client_new(&c, &a.p, ALONE_SITE, a.secret, &a.doors, &a.entropy), FKT_E_ARG);
    a.p.threshold = ALONE_T;
    CHECK_OK(fkt_sa_client_new(&c, &a.p, ALONE_SITE, a.secret, &a.doors, NULL)); /* the system's entropy */
    alone_make(&a, FKT_SA_M_BEGIN);
    CHECK_OK(fkt_sa_msg_encode(&a.m, a.bytes, ALONE_CAP, &a.len));
    CHECK_OK(fkt_sa_client_recv(c, a.bytes, a.len));
    CHECK_OK(alone_tell(&a));
    assert_memory_not_equal(c->channel_key, a.client->channel_key, 32);
    fkt_sa_client_free(c);
    fkt_sa_client_free(NULL);
}

/* Many sites and a server: the sum is the plain one. */
static void with_a_server(void **state)
{
    struct sa_world w;
    struct fkt_sa_params p[] = {sa_params(9, 3, 1, 0, 0, 50, 21), sa_params(12, 3, 1, 8, 5, 50, 41)};
    (void)state;
    memset(&a, 0, sizeof a);
    for (int k = 0; k < 2; k++) {
        CHECK_OK(sa_world_init(&w, &p[k], 5));
        sa_world_kill(&w, 2, FKT_SA_STATE_MASK);
        sa_world_kill(&w, 5, FKT_SA_STATE_CONFIRM);
        CHECK_OK(sa_world_run(&w));
        sa_world_check(&w);
        sa_world_release(&w);
    }
}

/* If a share of the other kind still existed when shares are sent, the round would end, in every build. */
static void never_both(void **state)
{
    (void)state;
    for (int kind = ALONE_COMPLETE; kind <= ALONE_SPARSE; kind++)
        for (int lost = 0; lost < 2; lost++) {
            struct fkt_sa_neighbour *j;
            uint32_t i = 0;
            alone_init(&a, (enum alone_kind)kind);
            alone_drive(&a, FKT_SA_STATE_CONFIRM);
            if (lost) i = a.lost;
            else
                while (!alone_is_peer(&a, i) || i == a.lost) i++;
            j = &a.client->neighbour[i];
            assert_true(alone_zero(lost ? j->self_share : j->mask_share, 32));
            (lost ? j->self_share : j->mask_share)[31] = 1;
            alone_make(&a, FKT_SA_M_CONFIRMED);
            CHECK_STATUS(alone_tell(&a), FKT_E_STATE);
            assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_FAILED);
            assert_true(!a.client->neighbour && !a.client->out);
            alone_hear(&a);
            assert_int_equal(a.said.leave.status, FKT_E_STOPPED);
            assert_string_equal(a.calls, "rv");
            alone_release(&a);
        }
    memset(&a, 0, sizeof a);
}

/* Where corrupt and lost sites could cut the ring, five surviving peers must be two and three, not one and four. */
static void both_sides(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 8; way++) {
        const int same = way & 1, cuttable = way >> 1 & 1;
        const uint32_t begin = 1 + (way >> 2); /* which side loses one, or three */
        uint32_t side[8], first = 0, second = 0;
        struct fkt_sa_graph g;
        alone_init(&a, ALONE_SPARSE);
        alone_drive(&a, FKT_SA_STATE_COIN);
        alone_make(&a, FKT_SA_M_NEIGHBOURS); /* for a.seed and a.neighbour */
        CHECK_OK(fkt_sa_graph_make(&g, &a.p, a.session, a.seed));
        for (int i = 0; i < 8; i++) /* from the ring itself: after us within four steps */
            for (uint32_t step = side[i] = 1; step <= 4; step++)
                if (g.ring[(g.place[ALONE_SITE] + step) % 12] == a.neighbour[i]) side[i] = 2;
        fkt_sa_graph_clear(&g);
        while (side[first] != begin) first++;
        while (second == first || (side[second] == begin) != same) second++;
        a.never_came = first;
        a.never_shared = second;
        for (a.lost = 0; a.lost == first || a.lost == second || (side[a.lost] == begin) != same;) a.lost++;
        if (cuttable) a.client->p.corrupt = 6; /* 8 neighbours <= 6 + 3, and 2*5 <= 8 + 6 */
        alone_drive(&a, FKT_SA_STATE_MASK);
        alone_make(&a, FKT_SA_M_SURVIVORS);
        CHECK_STATUS(alone_tell(&a), same && cuttable ? FKT_E_TOO_FEW : FKT_OK);
        alone_release(&a);
    }
    memset(&a, 0, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(complete_graph, tear_down),
        cmocka_unit_test_teardown(sparse_graph, tear_down),
        cmocka_unit_test_teardown(repeats_and_small_buffers, tear_down),
        cmocka_unit_test_teardown(after_the_end, tear_down),
        cmocka_unit_test_teardown(making_one, tear_down),
        cmocka_unit_test_teardown(with_a_server, tear_down),
        cmocka_unit_test_teardown(never_both, tear_down),
        cmocka_unit_test_teardown(both_sides, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
