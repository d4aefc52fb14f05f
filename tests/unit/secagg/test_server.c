/* SPDX-License-Identifier: Apache-2.0 */
/* What the server answers to each invalid message, and that the round goes on without its sender. Sites are real; their
 * messages are altered in transit. */
#include "crypto/sign.h"
#include "secagg/server.h"
#include "tests/support/sa_bend.h"

enum { SITE = 2 };

static struct fkt_sa_params small(void) { return sa_params(7, 2, 0, 0, 0, 20, 33); }
static struct fkt_sa_params ring(void) { return sa_params(12, 3, 0, 6, 0, 20, 32); }

/* The answer that the server gave to the first message of this kind from SITE. */
static fkt_status answer_to(const struct sa_world *w, enum fkt_sa_kind kind)
{
    for (size_t i = 0; i < w->logged; i++) {
        struct fkt_sa_msg m = {0};
        enum fkt_sa_kind found = FKT_SA_M_NONE;
        if (w->log[i].event != SA_RECV || w->log[i].from != SITE) continue;
        if (fkt_sa_msg_decode(&m, 1, w->log[i].bytes, w->log[i].len, w->log[i].len) == FKT_OK) found = m.kind;
        fkt_sa_msg_clear(&m);
        if (found == kind) return w->log[i].answer;
    }
    fail_msg("no such message came");
    return FKT_OK;
}

/* One message of SITE is altered: the server answers `want`, and the round succeeds. */
static void bent(struct fkt_sa_params p, enum fkt_sa_kind kind,
                 void (*edit)(struct sa_world *, uint32_t, struct fkt_sa_msg *, uint8_t *), fkt_status want)
{
    struct sa_bend bend = {.site = SITE, .kind = kind, .edit = edit};
    const uint8_t *survivors;
    const int64_t *total;
    struct sa_world w;
    CHECK_OK(sa_world_init(&w, &p, 11));
    w.hook = sa_bend_hook;
    w.self = &bend;
    CHECK_OK(sa_world_run(&w));
    CHECK(bend.seen == 1);
    CHECK_STATUS(answer_to(&w, kind), want);
    CHECK_STATUS(fkt_sa_server_site(w.server, SITE), want == FKT_E_STATE ? FKT_E_STOPPED : want);
    sa_world_check(&w);
    CHECK_OK(fkt_sa_server_total(w.server, &total, &survivors));
    CHECK(survivors[SITE] == (kind == FKT_SA_M_CONFIRM || kind == FKT_SA_M_REVEAL)); /* its vector was in by then */
    for (uint32_t i = 0; i < p.sites; i++)
        if (i != SITE) CHECK_STATUS(fkt_sa_server_site(w.server, i), FKT_OK);
    CHECK_OK(sa_world_replay(&w));
    sa_world_release(&w);
}

/* ---- what every message has ---- */

static void other_site(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)room;
    m->site = site + 1;
}
static void other_session(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    sa_bend_own(&m->session, room)[31] ^= 1;
}
static void short_session(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site, (void)room;
    m->session.n--;
}
static void site_and_session(void **state)
{
    static const enum fkt_sa_kind all[] = {FKT_SA_M_ADVERTISE, FKT_SA_M_SHARES, FKT_SA_M_MASKED, FKT_SA_M_CONFIRM,
                                           FKT_SA_M_REVEAL};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bent(small(), all[i], other_site, FKT_E_PEER_AUTH);
        bent(small(), all[i], other_session, FKT_E_STATE);
        bent(small(), all[i], short_session, FKT_E_PEER_FORMAT);
    }
    bent(ring(), FKT_SA_M_OPEN, other_site, FKT_E_PEER_AUTH);
}

/* ---- lengths ---- */

static void shorten(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site, (void)room;
    switch (m->kind) {
    case FKT_SA_M_ADVERTISE: m->advertise.mask_key.n--; break;
    case FKT_SA_M_OPEN: m->open.scalar.n--; break;
    case FKT_SA_M_SHARES: m->shares.sealed.n -= FKT_SA_SEALED; break;
    case FKT_SA_M_MASKED: m->masked.packed.n--; break;
    case FKT_SA_M_CONFIRM: m->confirm.signature.n--; break;
    default: m->reveal.shares.n -= FKT_SA_SHARE_BYTES;
    }
}
static void swap_lengths(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site, (void)room;
    if (m->kind == FKT_SA_M_SHARES) m->shares.self_commitment.n = 0;
    else if (m->kind == FKT_SA_M_OPEN) m->open.next_coin.n = 0;
    else m->advertise.coin = m->advertise.coin.n ? (struct fkt_sa_bytes){NULL, 0} : m->advertise.mask_key;
}
static void lengths(void **state)
{
    (void)state;
    bent(small(), FKT_SA_M_ADVERTISE, shorten, FKT_E_PEER_FORMAT);
    bent(small(), FKT_SA_M_SHARES, shorten, FKT_E_PEER_FORMAT);
    bent(small(), FKT_SA_M_MASKED, shorten, FKT_E_PEER_FORMAT);
    bent(small(), FKT_SA_M_CONFIRM, shorten, FKT_E_PEER_FORMAT);
    bent(small(), FKT_SA_M_REVEAL, shorten, FKT_E_PEER_FORMAT);
    bent(ring(), FKT_SA_M_OPEN, shorten, FKT_E_PEER_FORMAT);
    bent(ring(), FKT_SA_M_OPEN, swap_lengths, FKT_E_PEER_FORMAT);
    bent(small(), FKT_SA_M_ADVERTISE, swap_lengths, FKT_E_PEER_FORMAT); /* a coin where none belongs */
    bent(ring(), FKT_SA_M_ADVERTISE, swap_lengths, FKT_E_PEER_FORMAT);  /* and none where one does */
    bent(small(), FKT_SA_M_SHARES, swap_lengths, FKT_E_PEER_FORMAT);
}

/* ---- contents ---- */

static void false_signature(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    sa_bend_own(m->kind == FKT_SA_M_CONFIRM ? &m->confirm.signature : &m->advertise.signature, room)[3] ^= 4;
}
static void false_key(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    sa_bend_own(&m->advertise.channel_key, room)[3] ^= 4;
}
/* Signed as it should be, but of order 4 (u = 1). */
static void weak_key(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    uint8_t session[32], hash[32];
    memset(room, 0, 32);
    room[0] = 1;
    m->advertise.mask_key.p = room;
    fkt_sa_session(session, &w->params, w->round);
    fkt_sa_advert_hash(hash, session, site, m->advertise.channel_key.p, m->advertise.mask_key.p);
    fkt_sign(room + 32, hash, sizeof hash, w->site[site].secret);
    m->advertise.signature.p = room + 32;
}
static void no_point(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    struct fkt_sa_bytes *coin = m->kind == FKT_SA_M_OPEN ? &m->open.next_coin : &m->advertise.coin;
    (void)w, (void)site;
    memset(room, 0xff, 32);
    coin->p = room;
}
static void false_scalar(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    sa_bend_own(&m->open.scalar, room)[0] ^= 1;
}
static void later_throw(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site, (void)room;
    m->open.attempt = 2;
}
static void spare_bits(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    sa_bend_own(&m->masked.packed, room)[m->masked.packed.n - 1] |= 0x80; /* 20 numbers of 33 bits end in half a byte */
}
static void share_past_the_field(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    memset(sa_bend_own(&m->reveal.shares, room) + 32, 0xff, 32);
}
static void contents(void **state)
{
    (void)state;
    bent(small(), FKT_SA_M_ADVERTISE, false_signature, FKT_E_PEER_AUTH);
    bent(small(), FKT_SA_M_ADVERTISE, false_key, FKT_E_PEER_AUTH);
    bent(small(), FKT_SA_M_ADVERTISE, weak_key, FKT_E_PEER_AUTH);
    bent(ring(), FKT_SA_M_ADVERTISE, no_point, FKT_E_PEER_AUTH);
    bent(ring(), FKT_SA_M_OPEN, no_point, FKT_E_PEER_AUTH);
    bent(ring(), FKT_SA_M_OPEN, false_scalar, FKT_E_PEER_AUTH);
    bent(ring(), FKT_SA_M_OPEN, later_throw, FKT_E_PEER_AUTH);
    bent(small(), FKT_SA_M_MASKED, spare_bits, FKT_E_PEER_FORMAT);
    bent(small(), FKT_SA_M_CONFIRM, false_signature, FKT_E_PEER_AUTH);
    bent(small(), FKT_SA_M_REVEAL, share_past_the_field, FKT_E_PEER_FORMAT);
}

static void other_kind(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    memset(room, 1, 64);
    m->kind = FKT_SA_M_CONFIRM;
    m->confirm.signature = (struct fkt_sa_bytes){room, 64};
}
static void ahead_of_its_phase(void **state)
{
    struct fkt_sa_params p = small();
    struct sa_bend bend = {.site = SITE, .kind = FKT_SA_M_SHARES, .edit = other_kind};
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    w.hook = sa_bend_hook;
    w.self = &bend;
    CHECK_OK(sa_world_run(&w));
    CHECK_STATUS(answer_to(&w, FKT_SA_M_CONFIRM), FKT_E_PEER_AUTH);
    CHECK_STATUS(fkt_sa_server_site(w.server, SITE), FKT_E_PEER_AUTH);
    sa_world_check(&w);
    sa_world_release(&w);
}

/* Bytes that are not a message, a message that is too long, one from no site. */
static void noise(void **state)
{
    struct fkt_sa_params p = small();
    uint8_t bytes[64], *oversize;
    size_t max;
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    max = fkt_sa_to_server_max(&w.params);
    oversize = calloc(max + 1, 1);
    memset(bytes, 0xa5, sizeof bytes);
    CHECK_STATUS(fkt_sa_server_recv(w.server, p.sites, bytes, sizeof bytes), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_server_recv(w.server, 0, bytes, sizeof bytes), FKT_E_PEER_FORMAT);
    CHECK(strstr(fkt_error_text(), "site 0: ") == fkt_error_text());
    CHECK_STATUS(fkt_sa_server_recv(w.server, 0, bytes, sizeof bytes), FKT_E_STATE); /* lost, and not heard again */
    CHECK_STATUS(fkt_sa_server_recv(w.server, 1, oversize, max + 1), FKT_E_PEER_FORMAT);
    CHECK_OK(sa_world_run(&w));
    CHECK_STATUS(fkt_sa_server_site(w.server, 0), FKT_E_PEER_FORMAT);
    CHECK_STATUS(fkt_sa_server_site(w.server, 1), FKT_E_PEER_FORMAT);
    CHECK_STATUS(fkt_sa_server_site(w.server, p.sites), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_server_recv(w.server, 3, bytes, sizeof bytes), FKT_E_STATE);
    sa_world_check(&w);
    free(oversize);
    sa_world_release(&w);
}

static void repeats_change_nothing(void **state)
{
    static const enum fkt_sa_kind all[] = {FKT_SA_M_ADVERTISE, FKT_SA_M_OPEN,    FKT_SA_M_SHARES,
                                           FKT_SA_M_MASKED,    FKT_SA_M_CONFIRM, FKT_SA_M_REVEAL};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct fkt_sa_params p = ring();
        struct sa_bend bend = {.site = SITE, .kind = all[i], .copies = 3};
        size_t ignored = 0;
        struct sa_world w;
        CHECK_OK(sa_world_init(&w, &p, 11));
        w.hook = sa_bend_hook;
        w.self = &bend;
        CHECK_OK(sa_world_run(&w));
        for (size_t k = 0; k < w.logged; k++) ignored += w.log[k].answer == FKT_E_STATE;
        CHECK(ignored == 2 && fkt_sa_server_site(w.server, SITE) == FKT_OK);
        sa_world_check(&w);
        sa_world_release(&w);
    }
}

/* Three sites side by side on a ring of degree six: next to the gap a site has three neighbours and needs four, so it
 * is dropped, and the gap grows. The server stops when too few are left, not when nobody is. */
static void gap(void *self, struct sa_world *w, struct sa_message *message)
{
    struct fkt_sa_graph g;
    (void)self;
    if (message->kind != FKT_SA_M_SHARES) return;
    CHECK_OK(fkt_sa_graph_make(&g, &w->params, w->server->session, w->server->seed));
    if (g.place[message->site] < 3) message->copies = 0;
    fkt_sa_graph_clear(&g);
}
static void a_gap_grows_no_further_than_it_must(void **state)
{
    struct fkt_sa_params p = sa_params(40, 4, 1, 6, 4, 5, 32);
    uint32_t dropped = 0;
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    w.hook = gap;
    CHECK_STATUS(sa_world_run(&w), FKT_E_TOO_FEW);
    CHECK(strstr(fkt_error_text(), "share: 35 of 40") != NULL);
    for (uint32_t i = 0; i < p.sites; i++) dropped += fkt_sa_server_site(w.server, i) == FKT_E_TOO_FEW;
    assert_int_equal(dropped, 2);
    sa_world_release(&w);
}

/* ---- leaving, deadlines, the transport ---- */

static void leaving(void **state)
{
    struct fkt_sa_params p = small();
    struct fkt_sa_msg m = {.kind = FKT_SA_M_LEAVE};
    struct fkt_sa_census c;
    uint8_t session[32], bytes[128];
    size_t len;
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    fkt_sa_session(session, &w.params, w.round);
    m.session = (struct fkt_sa_bytes){session, 32};
    m.leave.status = FKT_E_STOPPED;
    CHECK_OK(fkt_sa_msg_encode(&m, bytes, sizeof bytes, &len));
    CHECK_OK(fkt_sa_server_recv(w.server, 0, bytes, len));
    m.site = 1;
    m.leave.status = FKT_E_BUDGET; /* none that a site tells */
    CHECK_OK(fkt_sa_msg_encode(&m, bytes, sizeof bytes, &len));
    CHECK_STATUS(fkt_sa_server_recv(w.server, 1, bytes, len), FKT_E_PEER_FORMAT);
    CHECK_STATUS(fkt_sa_server_site(w.server, 0), FKT_E_STOPPED);
    CHECK_STATUS(fkt_sa_server_site(w.server, 1), FKT_E_PEER_FORMAT);
    fkt_sa_server_census(w.server, &c);
    CHECK(c.left == 1 && c.expected == 7 && c.heard == 0);
    CHECK_OK(sa_world_run(&w));
    sa_world_check(&w);
    sa_world_release(&w);
}

static void time_and_transport(void **state)
{
    struct fkt_sa_params p = small();
    struct fkt_sa_server *s;
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    CHECK_OK(fkt_sa_server_new(&s, &w.params, w.round, 100));
    CHECK_OK(fkt_sa_server_tick(s, 5000)); /* counted from the first tick, not from zero */
    CHECK_OK(fkt_sa_server_tick(s, 5099));
    CHECK_STATUS(fkt_sa_server_tick(s, 5098), FKT_E_ARG);
    CHECK(fkt_sa_server_state(s) == FKT_SA_STATE_ADVERTISE);
    CHECK_STATUS(fkt_sa_server_tick(s, 5100), FKT_E_TOO_FEW);
    CHECK(fkt_sa_server_state(s) == FKT_SA_STATE_FAILED);
    CHECK(strstr(fkt_error_text(), "0 of 7") && strstr(fkt_error_text(), "advertise"));
    CHECK_STATUS(fkt_sa_server_tick(s, 5101), FKT_E_TOO_FEW);
    CHECK_STATUS(fkt_sa_server_close(s), FKT_E_TOO_FEW);
    CHECK_STATUS(fkt_sa_server_lost(s, 1), FKT_E_TOO_FEW);
    fkt_sa_server_free(s);

    CHECK_STATUS(fkt_sa_server_lost(w.server, p.sites), FKT_E_ARG);
    CHECK_OK(fkt_sa_server_lost(w.server, 1));
    CHECK_OK(fkt_sa_server_lost(w.server, 1));
    CHECK_OK(fkt_sa_server_lost(w.server, 6));
    CHECK_OK(fkt_sa_server_tick(w.server, UINT64_MAX)); /* no patience given: no deadline */
    CHECK(fkt_sa_server_state(w.server) == FKT_SA_STATE_ADVERTISE);
    CHECK_STATUS(fkt_sa_server_lost(w.server, 2), FKT_E_TOO_FEW); /* known before anybody else is heard */
    CHECK(strstr(fkt_error_text(), "4 of 7"));
    sa_world_release(&w);
}

/* A round that fails tells everyone that may still wait, and not who has left. */
static void failure_is_sent_to_sites(void **state)
{
    struct fkt_sa_params p = small();
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    for (uint32_t i = 0; i < 3; i++) sa_world_kill(&w, i, FKT_SA_STATE_MASK);
    w.site[3].refuse_reserve = FKT_E_BUDGET; /* leaves */
    CHECK_STATUS(sa_world_run(&w), FKT_E_TOO_FEW);
    CHECK(strstr(fkt_error_text(), "mask") != NULL);
    sa_world_finish_wire(&w);
    CHECK_STATUS(fkt_sa_server_site(w.server, 3), FKT_E_STOPPED); /* not that its budget is spent */
    CHECK(!w.site[3].told_to_abort);
    for (uint32_t i = 4; i < 7; i++) CHECK(w.site[i].told_to_abort);
    CHECK_STATUS(fkt_sa_server_unmask(w.server), FKT_E_TOO_FEW);
    CHECK_OK(sa_world_replay(&w));
    sa_world_release(&w);
}

/* A buffer that is too small costs nothing: the same message comes again. */
static void small_buffers(void **state)
{
    struct fkt_sa_params p = small();
    uint8_t bytes[128];
    uint32_t to = 99;
    size_t len;
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    CHECK_STATUS(fkt_sa_server_next(w.server, &to, bytes, 10, &len), FKT_E_ARG);
    CHECK(len == 0);
    for (uint32_t i = 0; i < p.sites; i++) {
        CHECK_OK(fkt_sa_server_next(w.server, &to, bytes, sizeof bytes, &len));
        CHECK(to == i && len > 0);
    }
    CHECK_OK(fkt_sa_server_next(w.server, &to, bytes, sizeof bytes, &len));
    CHECK(len == 0);
    sa_world_release(&w);
}

/* ---- the coin ---- */

static void coin_is_thrown_again(void **state)
{
    struct fkt_sa_params p = ring();
    struct fkt_sa_census c;
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    sa_world_kill(&w, 5, FKT_SA_STATE_COIN);
    CHECK_OK(sa_world_run(&w));
    sa_world_check(&w);
    fkt_sa_server_census(w.server, &c);
    CHECK(c.throws == 2 && c.advertised == 12 && c.masked == 11);
    CHECK_STATUS(fkt_sa_server_site(w.server, 5), FKT_E_STOPPED);
    sa_world_release(&w);

    p.attempts = 1;
    CHECK_OK(sa_world_init(&w, &p, 11));
    sa_world_kill(&w, 5, FKT_SA_STATE_COIN);
    CHECK_STATUS(sa_world_run(&w), FKT_E_TOO_FEW);
    CHECK(strstr(fkt_error_text(), "throws") != NULL);
    sa_world_release(&w);
}

/* ---- the witnesses ---- */

/* The signatures of the first two witnesses never come; nobody else is lost. */
static void without_two_witnesses(void *self, struct sa_world *w, struct sa_message *message)
{
    (void)self;
    if (message->kind != FKT_SA_M_CONFIRM) return;
    message->copies = message->site != w->server->witness[0] && message->site != w->server->witness[1];
}
static void too_few_witnesses(void **state)
{
    struct fkt_sa_params p = sa_params(30, 3, 0, 8, 7, 20, 32);
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 11));
    w.hook = without_two_witnesses;
    CHECK_STATUS(sa_world_run(&w), FKT_E_TOO_FEW);
    CHECK(strstr(fkt_error_text(), "6 of the 8 witnesses") != NULL);
    for (uint32_t i = 0; i < p.sites; i++) CHECK(!w.site[i].spent);
    CHECK_OK(sa_world_replay(&w));
    sa_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(site_and_session),
        cmocka_unit_test(lengths),
        cmocka_unit_test(contents),
        cmocka_unit_test(ahead_of_its_phase),
        cmocka_unit_test(noise),
        cmocka_unit_test(repeats_change_nothing),
        cmocka_unit_test(a_gap_grows_no_further_than_it_must),
        cmocka_unit_test(leaving),
        cmocka_unit_test(time_and_transport),
        cmocka_unit_test(failure_is_sent_to_sites),
        cmocka_unit_test(small_buffers),
        cmocka_unit_test(coin_is_thrown_again),
        cmocka_unit_test(too_few_witnesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
