/* SPDX-License-Identifier: Apache-2.0 */
/* Whole rounds: the total is the plain sum of the survivors' vectors, bit for bit, or the round ends cleanly. */
#include "tests/support/check.h"
#include "tests/support/sa_world.h"

static uint32_t survivors_of(const struct sa_world *w)
{
    const int64_t *total;
    const uint8_t *survivors;
    uint32_t n = 0;
    CHECK_OK(fkt_sa_server_total(w->server, &total, &survivors));
    for (uint32_t i = 0; i < w->params.sites; i++) n += survivors[i];
    return n;
}

/* No site is lost: every vector is in the sum, and each site's ledger and data were called once. */
static void everyone(struct fkt_sa_params p, enum sa_order order)
{
    struct fkt_sa_census c;
    struct sa_world w;
    CHECK_OK(sa_world_init(&w, &p, 1000 + p.sites));
    w.order = order;
    CHECK_OK(sa_world_run(&w));
    sa_world_check(&w);
    CHECK(survivors_of(&w) == p.sites);
    fkt_sa_server_census(w.server, &c);
    CHECK(c.advertised == p.sites && c.shared == p.sites && c.masked == p.sites && c.confirmed == p.sites &&
          c.revealed == p.sites && c.left == 0 && c.throws == (p.degree < p.sites - 1));
    for (uint32_t i = 0; i < p.sites; i++) {
        CHECK(fkt_sa_server_site(w.server, i) == FKT_OK && w.site[i].status == FKT_OK);
        CHECK(w.site[i].reserved == 1 && w.site[i].asked == 1 && w.site[i].spent == 1);
        CHECK(fkt_sa_client_state(w.site[i].client) == FKT_SA_STATE_DONE);
    }
    CHECK_OK(sa_world_replay(&w));
    sa_world_release(&w);
}

static void nobody_lost(void **state)
{
    static const uint32_t complete[] = {3, 4, 5, 6, 7, 12, 25, 40};
    (void)state;
    for (size_t i = 0; i < sizeof complete / sizeof *complete; i++)
        everyone(sa_params(complete[i], complete[i] > 4, 0, 0, 0, 50, 32), (enum sa_order)(i % 3));
    everyone(sa_params(6, 1, 0, 4, 0, 50, 32), SA_FIRST_IN);
    everyone(sa_params(17, 2, 1, 8, 0, 50, 32), SA_ANY);
    everyone(sa_params(33, 4, 2, 12, 0, 50, 32), SA_LAST_IN);
    everyone(sa_params(60, 6, 3, 20, 0, 50, 32), SA_ANY);
}

static void rings_and_keystreams(void **state)
{
    static const uint32_t bits[] = {8, 9, 16, 31, 32, 33, 40, 57, 58, 61, 62};
    (void)state;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        struct fkt_sa_params p = sa_params(7, 2, 0, 0, 0, 37, bits[i]);
        everyone(p, SA_FIRST_IN);
        p.keystream = FKT_SA_KEYSTREAM_CHACHA20;
        everyone(p, SA_ANY);
        p.length = 1;
        everyone(p, SA_ANY);
    }
}

/* `lost` sites stop answering when their message of `phase` is due. */
static fkt_status without(struct fkt_sa_params p, uint32_t lost, enum fkt_sa_state phase, uint64_t seed)
{
    int in = phase > FKT_SA_STATE_MASK;
    struct sa_world w;
    fkt_status st;
    CHECK_OK(sa_world_init(&w, &p, seed));
    w.order = (enum sa_order)(seed % 3);
    for (uint32_t i = 0; i < lost; i++) sa_world_kill(&w, (i * 5 + 1) % p.sites, phase);
    st = sa_world_run(&w);
    if (st == FKT_OK) {
        sa_world_check(&w);
        CHECK(survivors_of(&w) == p.sites - (in ? 0 : lost));
    }
    sa_world_finish_wire(&w);
    for (uint32_t i = 0; i < p.sites; i++) {
        int silent = w.site[i].silent_from != FKT_SA_STATE_DONE;
        if (st == FKT_OK) CHECK(fkt_sa_server_site(w.server, i) == (silent ? FKT_E_STOPPED : FKT_OK));
        else if (!silent) CHECK(w.site[i].told_to_abort || w.site[i].spent); /* those that revealed wait no more */
    }
    CHECK_OK(sa_world_replay(&w));
    sa_world_release(&w);
    return st;
}

static void lost_in_each_phase(void **state)
{
    struct fkt_sa_params complete = sa_params(11, 3, 0, 0, 0, 20, 32), sparse = sa_params(30, 3, 1, 16, 0, 20, 40);
    (void)state;
    for (enum fkt_sa_state phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++) {
        for (uint32_t lost = 1; lost <= 3; lost++) {
            if (phase != FKT_SA_STATE_COIN) CHECK_OK(without(complete, lost, phase, 70 + lost));
            CHECK_OK(without(sparse, lost, phase, 80 + lost));
        }
    }
}

static void one_lost_in_every_phase(void **state)
{
    struct fkt_sa_params p = sa_params(40, 6, 0, 24, 0, 20, 32);
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 5));
    for (uint32_t i = FKT_SA_STATE_ADVERTISE; i <= FKT_SA_STATE_REVEAL; i++)
        sa_world_kill(&w, 6 * i, (enum fkt_sa_state)i);
    CHECK_OK(sa_world_run(&w));
    sa_world_check(&w);
    CHECK(survivors_of(&w) == 36);
    CHECK_OK(sa_world_replay(&w));
    sa_world_release(&w);
}

static void too_few(void **state)
{
    struct fkt_sa_params complete = sa_params(11, 3, 0, 0, 0, 20, 32), sparse = sa_params(30, 3, 1, 16, 0, 20, 40);
    (void)state;
    for (enum fkt_sa_state phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_CONFIRM; phase++) {
        if (phase != FKT_SA_STATE_COIN) CHECK_STATUS(without(complete, 4, phase, 90), FKT_E_TOO_FEW);
        CHECK_STATUS(without(sparse, 4, phase, 91), FKT_E_TOO_FEW);
        CHECK(strstr(fkt_error_text(), fkt_sa_state_name(phase)) != NULL);
    }
    CHECK_OK(without(complete, 4, FKT_SA_STATE_REVEAL, 92)); /* t = 6 of 10 peers: seven sites still do */
    CHECK_STATUS(without(complete, 6, FKT_SA_STATE_REVEAL, 93), FKT_E_TOO_FEW);
    CHECK_STATUS(without(complete, 11, FKT_SA_STATE_ADVERTISE, 94), FKT_E_TOO_FEW);
}

/* Where fewer than t of a site's neighbours have shared, it is dropped from U2 (3.4), and on a ring, with t above k/2,
 * that spreads from gap to gap: the round ends in SHARE, before any vector is requested. */
static void lack_of_neighbours_spreads(void **state)
{
    struct fkt_sa_params p = sa_params(24, 5, 1, 6, 4, 20, 32);
    uint32_t well = 0, ended = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct sa_world w;
        fkt_status st;
        CHECK_OK(sa_world_init(&w, &p, seed));
        for (uint32_t i = 0; i < 4; i++) sa_world_kill(&w, 4 * i, FKT_SA_STATE_SHARE);
        st = sa_world_run(&w);
        if (st == FKT_OK) {
            sa_world_check(&w);
            well++;
        } else {
            CHECK_STATUS(st, FKT_E_TOO_FEW);
            CHECK(strstr(fkt_error_text(), "share") != NULL);
            for (uint32_t i = 0; i < p.sites; i++) CHECK(w.site[i].reserved == 0);
            ended++;
        }
        CHECK_OK(sa_world_replay(&w));
        sa_world_release(&w);
    }
    CHECK(well > 0 && ended > 0);
}

/* A site that leaves after its vector is in stays in the sum; one that leaves before is out of it. */
static void ledgers_that_refuse(void **state)
{
    struct fkt_sa_params p = sa_params(11, 3, 0, 0, 0, 20, 32);
    const int64_t *total;
    const uint8_t *survivors;
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 5));
    w.site[4].refuse_reserve = FKT_E_BUDGET;
    w.site[7].refuse_spend = FKT_E_BUDGET;
    CHECK_OK(sa_world_run(&w));
    sa_world_check(&w);
    CHECK_OK(fkt_sa_server_total(w.server, &total, &survivors));
    CHECK(!survivors[4] && survivors[7] && !w.site[4].asked);
    CHECK_STATUS(fkt_sa_server_site(w.server, 4), FKT_E_STOPPED);
    CHECK_STATUS(fkt_sa_server_site(w.server, 7), FKT_E_STOPPED);
    CHECK_OK(sa_world_replay(&w));
    sa_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_lost),
        cmocka_unit_test(rings_and_keystreams),
        cmocka_unit_test(lost_in_each_phase),
        cmocka_unit_test(one_lost_in_every_phase),
        cmocka_unit_test(too_few),
        cmocka_unit_test(lack_of_neighbours_spreads),
        cmocka_unit_test(ledgers_that_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
