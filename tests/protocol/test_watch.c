/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the transcript checker itself: each promise is broken once in the name of an honest site. */
#include "tests/support/check.h"
#include "tests/support/sa_watch.h"

static struct sa_world w;
static struct sa_watch v;

static int set_up(void **state)
{
    const struct fkt_sa_params p = sa_params(4, 1, 0, 0, 2, 3, 20);
    (void)state;
    if (sa_world_init(&w, &p, 3) != FKT_OK || sa_watch_init(&v, &w) != 0) return -1;
    v.honest_only = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sa_watch_release(&v);
    sa_world_release(&w);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

/* As if the site had sent it. */
static void say_bytes(uint32_t site, uint8_t *bytes, size_t len)
{
    struct sa_message l = {.site = site, .to_server = 1, .bytes = bytes, .len = len, .cap = len, .copies = 1};
    w.hook(w.self, &w, &l);
}

static void say(uint32_t site, struct fkt_sa_msg *m)
{
    uint8_t bytes[1024], session[FKT_SA_SESSION];
    size_t len;
    fkt_sa_session(session, &w.params, w.round);
    m->session = (struct fkt_sa_bytes){session, sizeof session};
    m->site = site;
    CHECK_OK(fkt_sa_msg_encode(m, bytes, sizeof bytes, &len));
    say_bytes(site, bytes, len);
}

static void sees(const char *what)
{
    if (!strstr(v.broken, what)) fail_msg("it saw '%s', not '%s'", v.broken, what);
}

/* Share `kind` of `owner`, as site 1 holds it. */
static void reveal_one(uint32_t owner, unsigned kind)
{
    struct fkt_sa_msg m = {.kind = FKT_SA_M_REVEAL};
    uint8_t share[32];
    CHECK(sa_watch_share(&v, owner, kind, 1, share));
    m.reveal.shares = (struct fkt_sa_bytes){share, sizeof share};
    say(1, &m);
}

static void an_honest_round(void **state)
{
    (void)state;
    CHECK_OK(sa_world_run(&w));
    assert_string_equal(v.broken, "");
    assert_int_equal(v.revealed, 4 * 3); /* all of them recognised, each as one kind of one owner */
    for (uint32_t i = 1; i < 4; i++) assert_int_equal(v.site[0].gave[i], SA_U);
    assert_int_equal(sa_watch_known(&v, 0, SA_U), 3);
    assert_int_equal(sa_watch_known(&v, 0, SA_S), 0);
}

static void both_kinds_of_share(void **state)
{
    (void)state;
    CHECK_OK(sa_world_run(&w));
    v.site[1].said[FKT_SA_M_REVEAL] = 0; /* a second message is a different violation */
    reveal_one(2, SA_S);
    sees("revealed both kinds of share of site 2");
}

static void no_share_at_all(void **state)
{
    struct fkt_sa_msg m = {.kind = FKT_SA_M_REVEAL};
    uint8_t number[32] = {7};
    (void)state;
    CHECK_OK(sa_world_run(&w));
    v.site[1].said[FKT_SA_M_REVEAL] = 0;
    m.reveal.shares = (struct fkt_sa_bytes){number, sizeof number};
    say(1, &m);
    sees("a number that is no share");
}

static void before_the_ledger(void **state)
{
    struct fkt_sa_msg masked = {.kind = FKT_SA_M_MASKED};
    (void)state;
    say(0, &masked);
    sees("sent its vector before it reserved");
    v.broken[0] = '\0';
    w.site[1].reserved = 1;
    say(1, &(struct fkt_sa_msg){.kind = FKT_SA_M_REVEAL});
    sees("revealed before it spent");
    v.broken[0] = '\0';
    w.site[2].reserved = w.site[2].spent = 1;
    say(2, &masked);
    sees("spent before it sent its vector");
}

static void too_often_and_backwards(void **state)
{
    struct fkt_sa_msg advertise = {.kind = FKT_SA_M_ADVERTISE}, confirm = {.kind = FKT_SA_M_CONFIRM};
    (void)state;
    say(0, &advertise);
    assert_string_equal(v.broken, "");
    say(0, &advertise);
    sees("too often");
    v.broken[0] = '\0';
    say(1, &confirm);
    assert_string_equal(v.broken, "");
    say(1, &advertise);
    sees("went back");
}

static void after_a_failure(void **state)
{
    uint8_t nonsense[3] = {1, 2, 3};
    (void)state;
    say(0, &(struct fkt_sa_msg){.kind = FKT_SA_M_LEAVE});
    sees("had not failed");
    v.broken[0] = '\0';
    CHECK(fkt_sa_client_recv(w.site[1].client, nonsense, sizeof nonsense) != FKT_OK);
    say(1, &(struct fkt_sa_msg){.kind = FKT_SA_M_CONFIRM});
    sees("after it failed");
    v.broken[0] = '\0';
    say_bytes(2, nonsense, sizeof nonsense);
    sees("do not decode");
}

static void in_the_name_of_another(void **state)
{
    struct fkt_sa_msg m = {.kind = FKT_SA_M_ADVERTISE};
    uint8_t bytes[64];
    size_t len;
    (void)state;
    m.site = 3;
    CHECK_OK(fkt_sa_msg_encode(&m, bytes, sizeof bytes, &len));
    say_bytes(1, bytes, len);
    sees("calls itself 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_honest_round, set_up, tear_down),
        cmocka_unit_test_setup_teardown(both_kinds_of_share, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_share_at_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(before_the_ledger, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_often_and_backwards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(after_a_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_the_name_of_another, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
