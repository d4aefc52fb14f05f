/* SPDX-License-Identifier: Apache-2.0 */
/* A site that stops at any moment and comes back says what it would have said, byte for byte, or leaves the round. */
#include "tests/support/client_world.h"

#include "base/file.h"

#include <sqlite3.h>

static struct scratch tmp;
static const uint64_t seed = AW_SEED;

/* One action at a time: a letter in, an answer out, the server's word for it. A message that the server took and of
 * which the site does not know is brought again, as by a site that stopped in between. */
enum action { NOTHING, HEARD, CARRIED, TOLD };

static enum action act(struct aw *w, enum action last, int *taken)
{
    aw_pump(w);
    if (last == CARRIED) {
        CHECK_OK(w->c.sent(w->c.self, *taken));
        return TOLD;
    }
    if (w->c.wants(w->c.self) & FKT_ENDPOINT_SEND) {
        CHECK_OK(aw_carry(w, taken));
        return CARRIED;
    }
    if (!aw_has_news(w)) return NOTHING;
    CHECK_OK(aw_recv(w));
    return HEARD;
}

static void total_of(const struct aw *w, int64_t *out)
{
    const int64_t *total;
    const uint8_t *survivors;
    CHECK_OK(fkt_sa_server_unmask(w->server));
    CHECK_OK(fkt_sa_server_total(w->server, &total, &survivors));
    CHECK(survivors[AW_ME]);
    memcpy(out, total, AW_NUMBERS * sizeof *out);
}

struct outcome {
    char said[AW_MESSAGES][FKT_HASH_HEX];
    int64_t total[AW_NUMBERS];
    int actions;
};

/* A round in which the site stops after its `at`-th action (0: never, -1: after every one). */
static void run(struct aw *w, int at, struct outcome *o)
{
    struct fkt_client_view v;
    enum action last = NOTHING;
    int taken = 0;
    memset(o, 0, sizeof *o);
    aw_forget(w);
    CHECK_OK(aw_open(w));
    aw_begin_round(w, 1);
    while ((last = act(w, last, &taken)) != NOTHING) {
        const int again = last != HEARD && !taken; /* the server had it, and says so: no endless loop */
        fkt_client_get_view(w->a, &v);
        if (++o->actions == at || (at < 0 && !again && v.phase[0])) {
            aw_crash(w);
            last = HEARD; /* what was carried and not told is carried again */
        }
    }
    fkt_client_get_view(w->a, &v);
    CHECK(v.spent && v.masked && v.begun == 1);
    assert_int_equal(w->said_twice, 0);
    memcpy(o->said, w->said, sizeof o->said);
    total_of(w, o->total);
    aw_close(w);
}

static void the_transcript_is_the_same(void **state)
{
    struct aw w;
    struct outcome plain, crashed;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_DISTRIBUTED, &seed);
    run(&w, 0, &plain);
    assert_int_equal(plain.actions, 15); /* five letters, each heard, answered and told */
    for (int at = -1; at <= plain.actions; at++) {
        run(&w, at, &crashed);
        assert_memory_equal(crashed.said, plain.said, sizeof plain.said);
        assert_memory_equal(crashed.total, plain.total, sizeof plain.total);
    }
    aw_release(&w);
}

/* The same with keys from the operating system: nothing to compare with but the site itself, and the exact total. */
static void without_a_known_seed(void **state)
{
    struct aw w;
    struct outcome plain, crashed;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    run(&w, 0, &plain);
    for (int at = -1; at <= plain.actions; at += 3) {
        run(&w, at, &crashed);
        assert_memory_equal(crashed.total, plain.total, sizeof plain.total);
        CHECK(memcmp(crashed.said, plain.said, sizeof plain.said) != 0);
    }
    aw_release(&w);
}

/* The machine gives out in the middle of something: in call `call` the n-th piece of memory is not there. The process
 * ends, and the next one finds the file as that left it. 0: there was no such call; 1: no n-th; 2: it fell. */
static int run_out(struct aw *w, int call, size_t n, struct outcome *o)
{
    int result = 0, taken = 0;
    memset(o, 0, sizeof *o);
    aw_forget(w);
    CHECK_OK(aw_open(w));
    aw_begin_round(w, 1);
    for (int i = 0;; i++) {
        fkt_status st;
        aw_pump(w);
        if (!(w->c.wants(w->c.self) & FKT_ENDPOINT_SEND) && !aw_has_news(w)) break;
        if (w->c.wants(w->c.self) & FKT_ENDPOINT_SEND) CHECK_OK(aw_carry(w, &taken));
        if (i == call) fkt_alloc_fault_at(n, 0);
        st = w->c.wants(w->c.self) & FKT_ENDPOINT_SEND ? w->c.sent(w->c.self, taken) : aw_recv(w);
        fkt_alloc_fault_at(0, 0);
        if (i == call) result = 1 + (st != FKT_OK);
        if (i == call && st == FKT_E_NOMEM) aw_crash(w);
        else CHECK_OK(st);
    }
    assert_int_equal(w->said_twice, 0);
    memcpy(o->said, w->said, sizeof o->said);
    total_of(w, o->total);
    aw_close(w);
    return result;
}

static void memory_that_is_not_there(void **state)
{
    struct aw w;
    struct outcome plain, crashed;
    int calls = 0, falls = 0, result;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_DISTRIBUTED, &seed);
    run(&w, 0, &plain);
    for (result = 1; result; calls++) {
        size_t n = 1;
        while ((result = run_out(&w, calls, n++, &crashed)) == 2) {
            falls++;
            assert_memory_equal(crashed.said, plain.said, sizeof plain.said);
            assert_memory_equal(crashed.total, plain.total, sizeof plain.total);
        }
    }
    CHECK(calls > 10 && falls > 50);
    aw_release(&w);
}

/* ---- a file that is not what it was ---- */

static void meddle(const struct aw *w, const char *sql)
{
    sqlite3 *h = NULL;
    CHECK(sqlite3_open(w->state, &h) == SQLITE_OK);
    if (sqlite3_exec(h, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(h));
    CHECK(sqlite3_changes(h) == 1);
    sqlite3_close(h);
}

/* After six actions the Shares are out; whatever is changed then, all that still leaves is one Leave. */
static void a_changed_file_ends_the_round(void **state)
{
    static const char *const changes[] = {
        "UPDATE round SET seed = randomblob(32)",
        "UPDATE letter SET bytes = (SELECT bytes FROM letter WHERE idx = 1) WHERE idx = 2",
        "UPDATE letter SET bytes = zeroblob(100) WHERE idx = 1",
        "UPDATE message SET sha256 = randomblob(32) WHERE idx = 1",
        "UPDATE message SET sha256 = randomblob(32) WHERE idx = 2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct aw w;
        struct fkt_client_view v;
        enum action last = NOTHING;
        int taken = 0;
        char before[AW_MESSAGES][FKT_HASH_HEX];
        aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
        CHECK_OK(aw_open(&w));
        aw_begin_round(&w, 1);
        for (int j = 0; j < 6; j++) last = act(&w, last, &taken);
        memcpy(before, w.said, sizeof before);
        aw_close(&w);
        meddle(&w, changes[i]);
        CHECK_OK(aw_open(&w));
        assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_SEND);
        memset(w.said, 0, sizeof w.said);
        CHECK_OK(aw_carry(&w, &taken));
        CHECK(taken);
        assert_int_equal(fkt_sa_server_site(w.server, AW_ME), FKT_E_STOPPED);
        CHECK_OK(w.c.sent(w.c.self, taken));
        assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_RECV);
        fkt_client_get_view(w.a, &v);
        assert_string_equal(v.phase, "");
        aw_begin_round(&w, 2); /* a fresh one is fine */
        aw_run(&w);
        fkt_client_get_view(w.a, &v);
        CHECK(v.spent);
        aw_release(&w);
    }
}

static void copy_file(const char *from, const char *to)
{
    uint8_t *bytes = NULL;
    size_t len;
    CHECK_OK(fkt_file_read(&bytes, &len, from, 1U << 26));
    CHECK_OK(fkt_file_write(to, bytes, len, FKT_FILE_REPLACE | FKT_FILE_PRIVATE));
    fkt_free(bytes);
}

/* A snapshot from before the last letter comes back after the site has revealed, and the machine gives out at the n-th
 * piece of memory while that letter is heard again. 1: there was no n-th. */
static int hear_again(struct aw *w, const char *copy, const struct fkt_message *last, size_t n)
{
    struct fkt_client_view v;
    fkt_status st;
    copy_file(copy, w->state);
    CHECK_OK(aw_open(w));
    fkt_alloc_fault_at(n, 0);
    st = w->c.recv(w->c.self, last);
    fkt_alloc_fault_at(0, 0);
    fkt_client_get_view(w->a, &v);
    CHECK(!v.spent);
    aw_close(w);
    if (st != FKT_E_NOMEM) return 1;
    if (aw_open(w) != FKT_OK) return 0;
    fkt_client_get_view(w->a, &v);
    CHECK(!v.spent); /* or it would have its Reveal in hand again */
    aw_close(w);
    return 0;
}

static void a_state_that_is_put_back_reveals_nothing(void **state)
{
    struct aw w;
    struct fkt_client_view v = {0};
    struct fkt_message last = {0};
    uint8_t *bytes = NULL;
    char copy[300];
    size_t n = 1;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(fkt_alloc(&bytes, fkt_sa_to_site_max(&w.params)));
    snprintf(copy, sizeof copy, "%s.copy", w.state);
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    while (!v.spent) {
        aw_pump(&w);
        if (!(w.c.wants(w.c.self) & FKT_ENDPOINT_SEND)) {
            last = aw_message(&w);
            memcpy(bytes, last.bytes, last.len);
            last.bytes = bytes;
            aw_close(&w);
            copy_file(w.state, copy);
            CHECK_OK(aw_open(&w));
        }
        CHECK(aw_step(&w));
        fkt_client_get_view(w.a, &v);
    }
    aw_close(&w);
    while (!hear_again(&w, copy, &last, n)) n++;
    CHECK(n > 10);
    fkt_free(bytes);
    CHECK(unlink(copy) == 0);
    aw_release(&w);
}

/* The round was deleted, and the machine stopped before its bytes were gone. */
static void what_was_deleted_is_gone_after_a_start(void **state)
{
    struct aw w;
    uint8_t secret[32];
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    CHECK(aw_step(&w));
    aw_close(&w);
    aw_seed(&w, secret);
    meddle(&w, "DELETE FROM letter");
    meddle(&w, "PRAGMA secure_delete = OFF; DELETE FROM round");
    CHECK(aw_file_holds(w.state, secret, sizeof secret));
    CHECK_OK(aw_open(&w));
    CHECK(!aw_file_holds(w.state, secret, sizeof secret));
    aw_begin_round(&w, 2); /* also when another round is under way by then */
    CHECK(aw_step(&w));
    aw_close(&w);
    meddle(&w, "INSERT INTO letter VALUES(99, CAST('a letter of the round before this' AS BLOB))");
    meddle(&w, "PRAGMA secure_delete = OFF; DELETE FROM letter WHERE idx = 99");
    CHECK(aw_file_holds(w.state, "of the round before", 19));
    CHECK_OK(aw_open(&w));
    CHECK(!aw_file_holds(w.state, "of the round before", 19));
    aw_run(&w);
    assert_int_equal(fkt_sa_server_state(w.server), FKT_SA_STATE_UNMASK);
    aw_release(&w);
}

static void changed_moments_are_refused(void **state)
{
    struct aw w;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(&w));
    aw_close(&w);
    meddle(&w, "UPDATE moments SET numbers = zeroblob(length(numbers))");
    CHECK_STATUS(aw_open(&w), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "damaged"));
    CHECK(strstr(fkt_error_hint(), "never restore one from a backup"));
    meddle(&w, "UPDATE moments SET numbers = zeroblob(8)");
    CHECK_STATUS(aw_open(&w), FKT_E_FORMAT);
    meddle(&w, "DELETE FROM moments");
    CHECK_OK(aw_open(&w)); /* computed again */
    aw_begin_round(&w, 1);
    CHECK(aw_step(&w));
    aw_close(&w);
    meddle(&w, "UPDATE round SET seed = zeroblob(31)");
    CHECK_STATUS(aw_open(&w), FKT_E_FORMAT);
    aw_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_transcript_is_the_same),
        cmocka_unit_test(without_a_known_seed),
        cmocka_unit_test(memory_that_is_not_there),
        cmocka_unit_test(a_changed_file_ends_the_round),
        cmocka_unit_test(a_state_that_is_put_back_reveals_nothing),
        cmocka_unit_test(what_was_deleted_is_gone_after_a_start),
        cmocka_unit_test(changed_moments_are_refused),
    };
    int failed;
    scratch_init(&tmp);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&tmp);
    return failed;
}
