/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation behind parameters, graph and coin fails in turn; nothing leaks, and nothing partly made remains. */
#include "fedkt/advanced/secagg.h"

#include "crypto/group.h"
#include "crypto/shamir.h"
#include "crypto/sign.h"
#include "secagg/coin.h"
#include "secagg/graph.h"
#include "tests/support/sweep.h"

#define SITES 60U

static uint8_t roster[SITES][FKT_SA_KEY], scalar[SITES][32], point[SITES][32];
static struct fkt_sa_leaf leaf[SITES];
static struct fkt_sa_params params = {.sites = SITES,
                                      .dropped = 6,
                                      .corrupt = 6,
                                      .degree = 20,
                                      .threshold = 14,
                                      .attempts = 1,
                                      .bits = 32,
                                      .length = 1,
                                      .bound = 1,
                                      .roster = roster[0]};
static const uint8_t session[32] = {1};
static uint8_t seed[32] = {2};

static int make(void **state)
{
    uint8_t sk[FKT_SIGN_SECRET];
    (void)state;
    for (uint32_t i = 0; i < SITES; i++) {
        scalar[i][0] = (uint8_t)(i + 1);
        fkt_sign_keypair(roster[i], sk, scalar[i]);
        CHECK_OK(fkt_point_base(point[i], scalar[i]));
        leaf[i] = (struct fkt_sa_leaf){i, roster[i], roster[i], point[i]};
    }
    return 0;
}

static fkt_status check(void) { return fkt_sa_params_check(&params); }

static fkt_status copy(void)
{
    struct fkt_sa_params own;
    fkt_status st = fkt_sa_params_copy(&own, &params);
    CHECK((own.roster != NULL) == (st == FKT_OK));
    fkt_sa_params_clear(&own);
    return st;
}

static fkt_status graph(void)
{
    struct fkt_sa_graph g;
    fkt_status st = fkt_sa_graph_make(&g, &params, session, seed);
    CHECK((g.ring != NULL) == (st == FKT_OK) && (g.place != NULL) == (st == FKT_OK));
    fkt_sa_graph_clear(&g);
    return st;
}

/* A ring whose words run out allocates once more; about every second ring of this size does. */
static fkt_status large_graph(void)
{
    const struct fkt_sa_params p = {.sites = FKT_SA_SITES_MAX, .degree = 2};
    struct fkt_sa_graph g;
    fkt_status st = fkt_sa_graph_make(&g, &p, session, seed);
    CHECK((g.ring != NULL) == (st == FKT_OK));
    fkt_sa_graph_clear(&g);
    return st;
}

static fkt_status coin(void)
{
    struct fkt_sa_coin c;
    fkt_status st = fkt_sa_coin_build(&c, session, 1, leaf, SITES);
    fkt_sa_coin_clear(&c);
    return st;
}

static void parameters(void **state)
{
    (void)state;
    CHECK(sweep_allocations(check, NULL) == 2);
    CHECK(sweep_allocations(copy, NULL) == 3);
}

static void graphs(void **state)
{
    size_t least = SIZE_MAX, most = 0;
    (void)state;
    CHECK(sweep_allocations(graph, NULL) >= 4);
    for (seed[1] = 0; seed[1] < 8; seed[1]++) {
        size_t n = sweep_allocations(large_graph, NULL);
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    CHECK(most == least + 1); /* some of the eight rings needed more words */
}

static void coins(void **state)
{
    (void)state;
    CHECK(sweep_allocations(coin, NULL) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parameters), cmocka_unit_test(graphs), cmocka_unit_test(coins)};
    return cmocka_run_group_tests(tests, make, NULL);
}
