/* SPDX-License-Identifier: Apache-2.0 */
/* False shares among those revealed: the total is still right and the false holder is blamed, or the round ends. */
#include "tests/support/sa_bend.h"

enum { SITES = 9, ALL = 99 };

/* D = 2, t = 6 of 8 peers: two respondents to spare. */
static struct fkt_sa_params nine(void) { return sa_params(SITES, 2, 0, 0, 6, 15, 32); }

static uint32_t target; /* whose share is false; ALL: everyone's */

/* On the complete graph the share of site j stands at place j, or j - 1 behind oneself. */
static void lie(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    uint8_t *shares = sa_bend_own(&m->reveal.shares, room + 4096 * (size_t)site);
    (void)w;
    for (uint32_t j = 0; j < SITES; j++)
        if (j != site && (target == ALL || target == j)) shares[32 * (j - (j > site))] ^= 1;
}

/* A round in which the sites of `liars` reveal false shares of `target`, and site 8 lost before its vector came. */
static fkt_status lied(struct sa_world *w, const uint32_t *liars, size_t n, uint32_t about)
{
    struct fkt_sa_params p = nine();
    struct sa_bend bend[SITES];
    fkt_status st;
    target = about;
    CHECK(n <= SITES);
    CHECK_OK(sa_world_init(w, &p, 21));
    sa_world_kill(w, 8, FKT_SA_STATE_MASK);
    for (size_t i = 0; i < n; i++)
        bend[i] = (struct sa_bend){
            .site = liars[i], .kind = FKT_SA_M_REVEAL, .edit = lie, .also = i + 1 < n ? &bend[i + 1] : NULL};
    w->hook = n ? sa_bend_hook : NULL;
    w->self = bend;
    st = sa_world_run(w);
    for (size_t i = 0; i < n; i++) CHECK(bend[i].seen == 1);
    w->hook = NULL;
    return st;
}

static void a_false_holder_is_blamed_by_two_owners(void **state)
{
    static const uint32_t about[] = {ALL, 0, 5, 8}; /* survivors, and the lost site */
    struct sa_world w;
    (void)state;
    for (uint32_t malicious = 0; malicious < 8; malicious++)
        for (size_t i = 0; i < sizeof about / sizeof *about; i++) {
            uint32_t named = 0;
            CHECK_OK(lied(&w, &malicious, 1, about[i]));
            sa_world_check(&w);
            for (uint32_t k = 0; k < SITES; k++) named += fkt_sa_server_site(w.server, k) == FKT_E_PEER_AUTH;
            CHECK(named == (fkt_sa_server_site(w.server, malicious) == FKT_E_PEER_AUTH));
            /* one owner's secret is not enough; shares that are used last are not needed, and not found false */
            CHECK(named == (about[i] == ALL && malicious < 7));
            CHECK_OK(sa_world_replay(&w));
            sa_world_release(&w);
        }
}

/* Two respondents to spare, and three with false shares of every secret: nothing fits. */
static void too_many_false_holders(void **state)
{
    static const uint32_t three[] = {1, 2, 3};
    struct sa_world w;
    (void)state;
    CHECK_STATUS(lied(&w, three, 3, ALL), FKT_E_PEER_AUTH);
    CHECK(strstr(fkt_error_text(), "secret") != NULL);
    CHECK(fkt_sa_server_state(w.server) == FKT_SA_STATE_FAILED);
    CHECK_OK(sa_world_replay(&w));
    sa_world_release(&w);
    CHECK_OK(lied(&w, NULL, 0, ALL));
    sa_world_check(&w);
    sa_world_release(&w);
}

/* Sites 1 and 2 both reveal false shares of site 0, for which nothing fits at first. But each alone has a false share
 * of another site, is suspected there and used last from then on; so site 0's secret is rebuilt, and blames them. */
static void lie_about_two(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    uint8_t *shares = sa_bend_own(&m->reveal.shares, room + 4096 * (size_t)site);
    (void)w;
    shares[0] ^= 1;                                /* of site 0 */
    shares[32 * (site == 1 ? 4 - 1 : 5 - 1)] ^= 1; /* of site 4, or of site 5 */
}
static void false_holders_found_by_other_secrets(void **state)
{
    struct fkt_sa_params p = nine();
    struct sa_bend second = {.site = 2, .kind = FKT_SA_M_REVEAL, .edit = lie_about_two},
                   first = {.site = 1, .kind = FKT_SA_M_REVEAL, .edit = lie_about_two, .also = &second};
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 21));
    w.hook = sa_bend_hook;
    w.self = &first;
    CHECK_OK(sa_world_run(&w));
    sa_world_check(&w);
    CHECK_STATUS(fkt_sa_server_site(w.server, 1), FKT_E_PEER_AUTH);
    CHECK_STATUS(fkt_sa_server_site(w.server, 2), FKT_E_PEER_AUTH);
    sa_world_release(&w);
}

/* A site that commits to something else than it shared ends the round, and the error names it. */
static void wrong_commitment(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    sa_bend_own(&m->shares.self_commitment, room)[0] ^= 1;
}
static void false_commitment(void **state)
{
    struct fkt_sa_params p = nine();
    struct sa_bend bend = {.site = 3, .kind = FKT_SA_M_SHARES, .edit = wrong_commitment};
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 21));
    w.hook = sa_bend_hook;
    w.self = &bend;
    CHECK_STATUS(sa_world_run(&w), FKT_E_PEER_AUTH);
    CHECK(strstr(fkt_error_text(), "site 3's secret") != NULL);
    sa_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_false_holder_is_blamed_by_two_owners),
        cmocka_unit_test(too_many_false_holders),
        cmocka_unit_test(false_holders_found_by_other_secrets),
        cmocka_unit_test(false_commitment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
