/* SPDX-License-Identifier: Apache-2.0 */
/* Whole rounds of oracle/secagg.py with the C code in either part: the same bytes from the same entropy, the same total
 * and the same refusals. */
#include "tests/support/check.h"
#include "tests/support/sa_json.h"

/* A transcript opened, with all parties ready and nothing sent yet. */
struct stage {
    json_t *transcript, *events;
    struct fkt_sa_params p;
    struct sa_actor *actor; /* (sites) */
    struct fkt_sa_server *server;
    struct sa_bytes *due; /* (sites) messages of the server that are not delivered yet */
    uint8_t *buf;
    size_t cap;
};

static void stage_open(struct stage *s, const char *name)
{
    uint8_t round[FKT_SA_ROUND];
    s->transcript = sa_json_load(name);
    s->events = sa_json_get(s->transcript, "events");
    sa_json_params(&s->p, sa_json_get(s->transcript, "params"));
    CHECK_OK(fkt_sa_params_check(&s->p));
    sa_json_fixed(s->transcript, "round", round, sizeof round);
    s->actor = calloc(s->p.sites, sizeof *s->actor);
    s->due = calloc(s->p.sites, sizeof *s->due);
    for (uint32_t i = 0; i < s->p.sites; i++)
        sa_actor_init(&s->actor[i], &s->p, i, sa_json_get(s->transcript, "secrets"));
    CHECK_OK(fkt_sa_server_new(&s->server, &s->p, round, 0));
    s->cap = fkt_sa_to_site_max(&s->p);
    s->buf = malloc(s->cap);
}

static void stage_close(struct stage *s)
{
    for (uint32_t i = 0; i < s->p.sites; i++) {
        sa_actor_release(&s->actor[i]);
        free(s->due[i].p);
    }
    free(s->actor);
    free(s->due);
    free(s->buf);
    fkt_sa_server_free(s->server);
    sa_json_params_free(&s->p);
    json_decref(s->transcript);
}

/* Takes all messages that the server has to send. */
static void collect(struct stage *s)
{
    for (;;) {
        uint32_t to;
        size_t len;
        CHECK_OK(fkt_sa_server_next(s->server, &to, s->buf, s->cap, &len));
        if (len == 0) return;
        CHECK(to < s->p.sites);
        if (s->due[to].p) fail_msg("two messages to site %u at once", to);
        s->due[to].p = malloc(len);
        s->due[to].n = len;
        memcpy(s->due[to].p, s->buf, len);
    }
}

static void told(struct stage *s, uint32_t site, const json_t *bytes, size_t number)
{
    char what[64];
    collect(s);
    snprintf(what, sizeof what, "event %zu, to site %u", number, site);
    sa_json_check(s->due[site].p, s->due[site].n, bytes, what);
    CHECK_OK(sa_actor_recv(&s->actor[site], s->due[site].p, s->due[site].n));
    free(s->due[site].p);
    s->due[site].p = NULL;
    s->due[site].n = 0;
}

static void said(struct stage *s, uint32_t site, const json_t *bytes, size_t number)
{
    const struct sa_actor *a = &s->actor[site];
    char what[64];
    snprintf(what, sizeof what, "event %zu, from site %u", number, site);
    sa_json_check(a->out, a->len, bytes, what);
    CHECK_OK(fkt_sa_server_recv(s->server, site, a->out, a->len));
}

/* Everything before event `end`, and each byte as the transcript has it. */
static void play(struct stage *s, size_t end)
{
    for (size_t i = 0; i < end; i++) {
        const json_t *e = json_array_get(s->events, i), *to = json_object_get(e, "to"),
                     *from = json_object_get(e, "from");
        if (to) told(s, (uint32_t)json_integer_value(to), sa_json_get(e, "bytes"), i);
        else if (from) said(s, (uint32_t)json_integer_value(from), sa_json_get(e, "bytes"), i);
        else CHECK_OK(fkt_sa_server_close(s->server));
    }
}

static void test_round(void **state)
{
    const char *name = *state;
    const int64_t *total;
    const uint8_t *survivors;
    struct stage s;
    json_t *want;
    size_t n = 0;
    stage_open(&s, name);
    play(&s, json_array_size(s.events));
    assert_int_equal(fkt_sa_server_state(s.server), FKT_SA_STATE_UNMASK);
    CHECK_OK(fkt_sa_server_unmask(s.server));
    CHECK_OK(fkt_sa_server_total(s.server, &total, &survivors));
    want = sa_json_get(s.transcript, "total");
    assert_int_equal(json_array_size(want), s.p.length);
    for (size_t i = 0; i < s.p.length; i++) assert_int_equal(total[i], json_integer_value(json_array_get(want, i)));
    want = sa_json_get(s.transcript, "survivors");
    for (uint32_t i = 0; i < s.p.sites; i++) n += survivors[i];
    assert_int_equal(n, json_array_size(want));
    for (size_t i = 0; i < n; i++) CHECK(survivors[json_integer_value(json_array_get(want, i))] == 1);
    stage_close(&s);
}

/* A site that refused has ended: it sends Leave and no more, always returns the same status, and refuses the right
 * message too. */
static void check_ended(struct sa_actor *a, fkt_status st, const json_t *right, const json_t *leave)
{
    struct sa_bytes msg = sa_json_bytes(right);
    assert_int_equal(fkt_sa_client_state(a->client), FKT_SA_STATE_FAILED);
    sa_json_check(a->out, a->len, leave, "Leave");
    CHECK_STATUS(fkt_sa_client_recv(a->client, msg.p, msg.n), st);
    CHECK(fkt_sa_client_wants(a->client) == FKT_SA_ENDED);
    free(msg.p);
}

/* What the receiver answers to altered bytes instead of event `at`. */
static fkt_status deliver_altered(struct stage *s, const json_t *refusal)
{
    const json_t *e = json_array_get(s->events, sa_json_number(refusal, "at"));
    struct sa_bytes msg = sa_json_bytes(sa_json_get(refusal, "bytes"));
    fkt_status st;
    if (json_object_get(e, "from")) {
        const json_t *o = json_object_get(refusal, "from") ? refusal : e;
        st = fkt_sa_server_recv(s->server, (uint32_t)sa_json_number(o, "from"), msg.p, msg.n);
    } else {
        struct sa_actor *a = &s->actor[sa_json_number(e, "to")];
        st = sa_actor_recv(a, msg.p, msg.n);
        if (st != FKT_OK) check_ended(a, st, sa_json_get(e, "bytes"), sa_json_get(refusal, "leave"));
    }
    free(msg.p);
    return st;
}

static void test_refusals(void **state)
{
    json_t *all = sa_json_load("refusals"), *r;
    size_t i, wrong = 0;
    (void)state;
    CHECK(json_array_size(all) > 100);
    json_array_foreach (all, i, r) {
        char name[96];
        struct stage s;
        fkt_status st;
        snprintf(name, sizeof name, "round_%s", sa_json_text(r, "round"));
        stage_open(&s, name);
        play(&s, sa_json_number(r, "at"));
        st = deliver_altered(&s, r);
        if ((uint64_t)st != sa_json_number(r, "answer")) {
            print_error("%s, %s: %s: answers %d (%s), want %d\n", sa_json_text(r, "round"),
                        sa_json_text(r, "instead_of"), sa_json_text(r, "what"), (int)st,
                        st == FKT_OK ? "" : fkt_error_text(), (int)sa_json_number(r, "answer"));
            wrong++;
        }
        stage_close(&s);
    }
    json_decref(all);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    static const char *const names[] = {"round_complete_chacha20_32", "round_complete_aes_40",
                                        "round_complete_aes_11",      "round_sparse_aes_32",
                                        "round_sparse_chacha20_40",   "round_sparse_sides"};
    enum { N = sizeof names / sizeof names[0] };
    struct CMUnitTest tests[N + 1];
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){names[i], test_round, NULL, NULL, (void *)(uintptr_t)names[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(test_refusals);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
