/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/site.h"
#include "tests/support/check.h"
#include "tests/support/small_federation.h"

enum { SITES = 6 };

static int64_t number(void *self, uint32_t site, uint32_t j)
{
    (void)self;
    return (int64_t)site * 100 + j % 50;
}

struct hall {
    struct small_federation fed;
    struct fkt_sa_params p;
    struct fkt_sa_server *server;
    struct cli_member member[SITES];
    struct fkt_endpoint side[SITES];
    uint32_t messages[SITES];
    uint8_t in[16384], out[16384];
};

static void open_hall(struct hall *h, uint32_t lost, enum fkt_sa_state phase)
{
    static const uint8_t round[FKT_SA_ROUND] = "round of members";
    struct fkt_share_plan shares;
    memset(h, 0, sizeof *h);
    CHECK_OK(small_federation_init(&h->fed, (struct fkt_federation_choices){.sites = SITES, .dropped = 1, .corrupt = 1},
                                   10));
    CHECK_OK(fkt_federation_open(&h->fed.task, &h->p, &shares));
    CHECK_OK(fkt_sa_server_new(&h->server, &h->p, round, 0));
    for (uint32_t i = 0; i < SITES; i++) {
        struct cli_member *m = &h->member[i];
        cli_member_init(m, &h->p, i, h->fed.secrets + (size_t)i * FKT_SA_SECRET);
        m->number = number;
        m->gone = i == lost ? phase : FKT_SA_STATE_BEGIN;
        cli_member_endpoint(m, &h->side[i]);
        CHECK(h->side[i].wants(m) == FKT_ENDPOINT_RECV && h->side[i].out_max <= sizeof h->out);
    }
}

static void close_hall(struct hall *h)
{
    for (uint32_t i = 0; i < SITES; i++) cli_member_clear(&h->member[i]);
    fkt_sa_server_free(h->server);
    small_federation_release(&h->fed);
    CHECK(fkt_alloc_live() == 0);
}

/* One letter to one member; what it says is asked for twice, as after a failed request. */
static void post(struct hall *h, uint32_t to, size_t len)
{
    struct fkt_endpoint *c = &h->side[to];
    struct fkt_message message = {.round = "round of members",
                                  .index = ++h->messages[to],
                                  .bytes = h->in,
                                  .len = len,
                                  .stage = FKT_STAGE_RUNNING};
    uint8_t again[sizeof h->out];
    size_t n, m;
    if (c->wants(c->self) == FKT_ENDPOINT_ENDED) return;
    CHECK_OK(c->recv(c->self, &message));
    if (!(c->wants(c->self) & FKT_ENDPOINT_SEND)) return;
    CHECK_OK(c->send(c->self, h->out, sizeof h->out, &n));
    CHECK_OK(c->send(c->self, again, sizeof again, &m));
    CHECK(n == m && !memcmp(h->out, again, n));
    CHECK_OK(fkt_sa_server_recv(h->server, to, h->out, n));
    CHECK_OK(c->sent(c->self, 1));
}

static void play(struct hall *h)
{
    while (fkt_sa_server_state(h->server) < FKT_SA_STATE_UNMASK) {
        uint32_t to;
        size_t len;
        CHECK_OK(fkt_sa_server_next(h->server, &to, h->in, sizeof h->in, &len));
        if (len) post(h, to, len);
        else CHECK_OK(fkt_sa_server_close(h->server));
    }
    CHECK(fkt_sa_server_state(h->server) == FKT_SA_STATE_UNMASK);
    CHECK_OK(fkt_sa_server_unmask(h->server));
}

static void members_add_up_whoever_is_lost(void **state)
{
    static const enum fkt_sa_state phases[] = {FKT_SA_STATE_BEGIN, FKT_SA_STATE_ADVERTISE, FKT_SA_STATE_SHARE,
                                               FKT_SA_STATE_MASK,  FKT_SA_STATE_CONFIRM,   FKT_SA_STATE_REVEAL};
    (void)state;
    for (size_t k = 0; k < sizeof phases / sizeof *phases; k++) {
        struct hall h;
        const int64_t *total;
        const uint8_t *survived;
        const int in_sum = phases[k] == FKT_SA_STATE_BEGIN || phases[k] > FKT_SA_STATE_MASK;
        open_hall(&h, 2, phases[k]);
        play(&h);
        CHECK_OK(fkt_sa_server_total(h.server, &total, &survived));
        CHECK(survived[2] == in_sum);
        for (uint32_t j = 0; j < h.p.length; j++) {
            int64_t want = 0;
            for (uint32_t i = 0; i < SITES; i++) want += i == 2 && !in_sum ? 0 : number(NULL, i, j);
            CHECK(total[j] == want);
        }
        for (uint32_t i = 0; i < SITES; i++) {
            struct fkt_message over = {.stage = FKT_STAGE_RELEASED};
            CHECK(i == 2 || h.member[i].taken == 5);
            CHECK_OK(h.side[i].recv(h.side[i].self, &over));
            CHECK(h.side[i].wants(h.side[i].self) == FKT_ENDPOINT_ENDED);
        }
        close_hall(&h);
    }
}

/* What it has is told as the letter said, and a letter of another round starts again. */
static void another_round_is_another_machine(void **state)
{
    struct hall h;
    uint8_t round[FKT_MAILBOX_ROUND];
    uint32_t to, after;
    size_t len, n;
    struct fkt_message message = {.round = "one", .index = 1, .stage = FKT_STAGE_RUNNING};
    (void)state;
    open_hall(&h, SITES, FKT_SA_STATE_BEGIN);
    CHECK_OK(fkt_sa_server_next(h.server, &to, h.in, sizeof h.in, &len));
    message.bytes = h.in;
    message.len = len;
    for (int i = 0; i < 2; i++) {
        message.round[0] = (uint8_t)i;
        CHECK_OK(h.side[to].recv(h.side[to].self, &message));
        h.side[to].has(h.side[to].self, round, &after);
        CHECK(!memcmp(round, message.round, sizeof round) && after == 1);
        CHECK_OK(h.side[to].send(h.side[to].self, h.out, sizeof h.out, &n));
        CHECK_OK(h.side[to].sent(h.side[to].self, 0));
    }
    CHECK(h.member[to].taken == 0);
    close_hall(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_add_up_whoever_is_lost),
        cmocka_unit_test(another_round_is_another_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
