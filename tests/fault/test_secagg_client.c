/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a site fails in turn during a round: the site reports it, wipes its secrets, leaves and leaks
 * nothing. The server's messages are recorded from an honest run; the site's entropy is the same each time, so they
 * fit.
 */
#include "tests/support/sa_alone.h"
#include "tests/support/sweep.h"

enum { MESSAGES_MAX = 8 };
static struct alone a;
static uint8_t message[MESSAGES_MAX][ALONE_CAP];
static size_t length[MESSAGES_MAX], messages;
static unsigned before_reserve, after_reserve; /* failures */

static void record(enum alone_kind kind)
{
    enum fkt_sa_kind next;
    alone_init(&a, kind);
    for (messages = 0; (next = alone_next(&a, fkt_sa_client_state(a.client))) != FKT_SA_M_NONE; messages++) {
        alone_make(&a, next);
        CHECK_OK(alone_tell(&a));
        alone_hear(&a);
        memcpy(message[messages], a.bytes, a.len);
        length[messages] = a.len;
    }
    assert_int_equal(fkt_sa_client_state(a.client), FKT_SA_STATE_DONE);
    alone_release(&a);
}

/* After an allocation failure: all secrets are wiped, and the Leave needs no memory. */
static fkt_status check_end(fkt_status st, size_t heard)
{
    struct fkt_sa_client *c = a.client;
    const struct fkt_sa_msg leave = {.kind = FKT_SA_M_LEAVE,
                                     .session = {c->session, FKT_SA_SESSION},
                                     .site = ALONE_SITE,
                                     .leave.status = FKT_E_STOPPED}; /* the reason is not sent */
    uint8_t bytes[64];
    size_t len, want;
    static const struct fkt_sa_secrets gone;
    if (st != FKT_E_NOMEM) return st;
    assert_int_equal(fkt_sa_client_state(c), FKT_SA_STATE_FAILED);
    assert_memory_equal(&c->secret, &gone, sizeof gone);
    assert_true(!c->neighbour && !c->survivors && !c->out);
    if (fkt_sa_client_wants(c) & FKT_SA_SEND) {
        CHECK_OK(fkt_sa_client_send(c, a.heard, ALONE_CAP, &len));
        CHECK_OK(fkt_sa_msg_encode(&leave, bytes, sizeof bytes, &want));
        assert_int_equal(len, want);
        assert_memory_equal(a.heard, bytes, want);
    } else assert_int_equal(heard, 0); /* before a session is known no Leave is sent */
    assert_int_equal(fkt_sa_client_wants(c), FKT_SA_ENDED);
    CHECK_STATUS(fkt_sa_client_recv(c, message[heard], length[heard]), FKT_E_NOMEM);
    CHECK_STATUS(fkt_sa_client_send(c, a.heard, ALONE_CAP, &len), FKT_E_NOMEM);
    assert_null(strchr(a.calls, 's')); /* after the spend nothing failed */
    if (strchr(a.calls, 'r')) after_reserve++;
    else before_reserve++;
    return st;
}

static fkt_status course(void)
{
    fkt_status st;
    memset(a.calls, 0, sizeof a.calls);
    fkt_entropy_seeded_init(&a.seeded, 78, 1);
    FKT_TRY(fkt_sa_client_new(&a.client, &a.p, ALONE_SITE, a.secret, &a.doors, &a.entropy));
    for (size_t i = 0; i < messages && st == FKT_OK; i++) {
        st = check_end(fkt_sa_client_recv(a.client, message[i], length[i]), i);
        if (st == FKT_OK) FKT_TRY(fkt_sa_client_send(a.client, a.heard, ALONE_CAP, &a.heard_len));
    }
out:
    fkt_sa_client_free(a.client);
    a.client = NULL;
    return st;
}

static void sweep(enum alone_kind kind, size_t at_least)
{
    record(kind);
    before_reserve = after_reserve = 0;
    assert_true(sweep_allocations(course, NULL) > at_least);
    assert_string_equal(a.calls, "rvs");
    assert_true(before_reserve >= 10); /* begin, neighbours, deliver */
    assert_true(after_reserve >= 10);  /* the vector, survivors, confirmed */
}

static void complete_graph(void **state)
{
    (void)state;
    sweep(ALONE_COMPLETE, 35);
}

static void sparse_graph(void **state)
{
    (void)state;
    sweep(ALONE_SPARSE, 45);
}

/* All allocations fail from now on. */
static void no_memory_any_more(void **state)
{
    (void)state;
    record(ALONE_SPARSE);
    for (size_t n = 1;; n++) {
        fkt_status st;
        fkt_alloc_fault_at(n, 1);
        st = course();
        fkt_alloc_fault_at(0, 0);
        assert_int_equal(fkt_alloc_live(), 0);
        if (st == FKT_OK) break;
        assert_int_equal(st, FKT_E_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_graph),
        cmocka_unit_test(sparse_graph),
        cmocka_unit_test(no_memory_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
