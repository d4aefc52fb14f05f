/* SPDX-License-Identifier: Apache-2.0 */
/* A site through rounds with a real server machine: what it sends, when it stops, what its files hold. Crashes are in
 * test_client_crash.c. */
#include "tests/support/client_world.h"

#include <sys/stat.h>

static struct scratch tmp;

static struct fkt_client_view look(const struct aw *w)
{
    struct fkt_client_view v;
    fkt_client_get_view(w->a, &v);
    return v;
}

/* A site that has heard of round 1, with no noise of its own. */
static void start(struct aw *w)
{
    aw_init(w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(w));
    aw_begin_round(w, 1);
}

static void check_total(const struct aw *w)
{
    const int64_t *total;
    const uint8_t *survivors;
    int64_t one[AW_NUMBERS], want[AW_NUMBERS] = {0};
    assert_int_equal(fkt_sa_server_state(w->server), FKT_SA_STATE_UNMASK);
    CHECK_OK(fkt_sa_server_unmask(w->server));
    CHECK_OK(fkt_sa_server_total(w->server, &total, &survivors));
    for (uint32_t i = 0; i < AW_SITES; i++) {
        if (!survivors[i]) continue;
        CHECK_OK(small_moments(NULL, i, one));
        for (int j = 0; j < AW_NUMBERS; j++) want[j] += one[j];
    }
    CHECK(survivors[AW_ME]);
    assert_memory_equal(total, want, sizeof want);
}

static void a_round_from_begin_to_release(void **state)
{
    struct aw w;
    struct stat sb;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(&w));
    assert_int_equal(fkt_client_site(w.a), AW_ME);
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_RECV);
    CHECK(stat(w.state, &sb) == 0 && (sb.st_mode & 0777) == 0600);
    aw_begin_round(&w, 1);
    while (!look(&w).masked) CHECK(aw_step(&w));
    assert_string_equal(look(&w).phase, "mask");
    CHECK(!look(&w).spent);
    aw_run(&w);
    CHECK(look(&w).spent && look(&w).begun == 1 && look(&w).sent_bytes > 200);
    assert_string_equal(look(&w).phase, "");
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_RECV);
    check_total(&w);
    CHECK_OK(aw_tell(&w, FKT_STAGE_FINISHING, FKT_OK));
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_RECV);
    CHECK_OK(aw_tell(&w, FKT_STAGE_RELEASED, FKT_OK));
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_ENDED);
    aw_crash(&w); /* the end is remembered */
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_ENDED);
    assert_int_equal(look(&w).stage, FKT_STAGE_RELEASED);
    aw_release(&w);
}

/* With a seed a site draws what fkt_federate draws, so a test can say what the total will be. */
static void seeded_noise_is_that_of_a_round_in_memory(void **state)
{
    const uint64_t seed = AW_SEED;
    struct aw w;
    struct fkt_federate_result want;
    const int64_t *total;
    const uint8_t *survivors;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_DISTRIBUTED, &seed);
    CHECK_OK(fkt_federate(&want, &(struct fkt_federate_spec){.task = &w.f.task,
                                                             .secrets = w.f.secrets,
                                                             .moments = small_moments,
                                                             .insecure_seed = &seed,
                                                             .threads = 1}));
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    aw_run(&w);
    CHECK_OK(fkt_sa_server_unmask(w.server));
    CHECK_OK(fkt_sa_server_total(w.server, &total, &survivors));
    assert_memory_equal(total, want.total, AW_NUMBERS * sizeof *total);
    fkt_federate_clear(&want);
    aw_release(&w);
}

/* ---- rounds after rounds ---- */

static void another_round_ends_the_one_under_way(void **state)
{
    struct aw w;
    (void)state;
    start(&w);
    while (!look(&w).masked) CHECK(aw_step(&w));
    aw_begin_round(&w, 2); /* the server gave up the first */
    aw_run(&w);
    CHECK(look(&w).spent && look(&w).begun == 2);
    check_total(&w);
    aw_release(&w);
}

static void a_round_is_begun_once(void **state)
{
    struct aw w;
    (void)state;
    start(&w);
    CHECK(aw_step(&w));
    CHECK_OK(aw_tell(&w, FKT_STAGE_RUNNING, FKT_E_STOPPED)); /* lost */
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_RECV);
    assert_string_equal(look(&w).phase, "");
    for (int i = 0; i < 2; i++) {
        aw_begin_round(&w, 1);
        aw_pump(&w);
        CHECK_OK(aw_recv(&w));
        assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_RECV);
        assert_int_equal(look(&w).begun, 1);
        aw_crash(&w);
    }
    aw_release(&w);
}

/* The name on the envelope is not that of the Begin inside, or there is no Begin inside. */
static void a_false_begin_begins_nothing(void **state)
{
    struct aw w;
    struct fkt_message l;
    (void)state;
    start(&w);
    aw_pump(&w);
    l = aw_message(&w);
    l.round[0] ^= 1;
    CHECK_OK(w.c.recv(w.c.self, &l));
    l.round[0] ^= 3;
    l.bytes = (const uint8_t *)"nonsense";
    l.len = 8;
    CHECK_OK(w.c.recv(w.c.self, &l));
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_RECV);
    assert_int_equal(look(&w).begun, 0);
    aw_run(&w); /* and the true one is answered */
    CHECK(look(&w).spent);
    aw_release(&w);
}

static void at_most_64_rounds(void **state)
{
    struct aw w;
    int yes;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(&w));
    for (int i = 0; i <= FKT_LEDGER_ROUNDS; i++) {
        if (i == 40) aw_crash(&w);
        aw_begin_round(&w, (uint8_t)(i + 1));
        aw_pump(&w);
        if (i < FKT_LEDGER_ROUNDS) CHECK_OK(aw_recv(&w));
        else CHECK_STATUS(aw_recv(&w), FKT_E_BUDGET);
    }
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_ENDED);
    assert_int_equal(look(&w).begun, FKT_LEDGER_ROUNDS);
    CHECK(!aw_file_holds(w.state, w.moments, 256));
    aw_close(&w);
    CHECK_OK(fkt_client_has_moments(w.state, &w.f.task, w.records, &yes)); /* nor are they needed again */
    assert_int_equal(yes, 1);
    CHECK_OK(aw_open(&w)); /* the release of the last round may still come */
    CHECK(!aw_file_holds(w.state, w.moments, 256));
    CHECK_STATUS(aw_recv(&w), FKT_E_BUDGET);
    aw_crash(&w);
    CHECK_OK(aw_tell(&w, FKT_STAGE_RELEASED, FKT_OK));
    aw_release(&w);
}

static void who_has_revealed_begins_no_more(void **state)
{
    struct aw w;
    struct fkt_client_spec spec;
    int yes;
    (void)state;
    start(&w);
    aw_run(&w);
    CHECK(look(&w).spent);
    for (int i = 2; i < 4; i++) {
        aw_begin_round(&w, (uint8_t)i);
        aw_pump(&w);
        CHECK_OK(aw_recv(&w));
        assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_RECV);
        assert_int_equal(look(&w).begun, 1);
        aw_crash(&w);
    }
    aw_close(&w);
    CHECK_OK(fkt_client_has_moments(w.state, &w.f.task, w.records, &yes)); /* none are needed any more */
    assert_int_equal(yes, 1);
    spec = aw_spec(&w);
    spec.moments = NULL;
    CHECK_OK(fkt_client_open(&w.a, &spec));
    aw_close(&w);
    CHECK(unlink(w.state) == 0); /* a new state file, but the ledger remembers */
    CHECK_STATUS(aw_open(&w), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "spent"));
    aw_release(&w);
}

/* The state file is thrown away after the vector has left: the ledger knows the session, and there is no second vector
 * under it. */
static void a_session_that_only_the_ledger_knows(void **state)
{
    struct aw w;
    (void)state;
    start(&w);
    while (!look(&w).masked) CHECK(aw_step(&w));
    aw_close(&w);
    CHECK(unlink(w.state) == 0);
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    for (int taken; w.c.wants(w.c.self) != FKT_ENDPOINT_ENDED;) {
        aw_pump(&w);
        if (w.c.wants(w.c.self) & FKT_ENDPOINT_SEND) {
            CHECK_OK(aw_carry(&w, &taken));
            if (w.c.sent(w.c.self, taken) == FKT_E_STATE) break;
        } else CHECK_OK(aw_recv(&w));
    }
    CHECK(strstr(fkt_error_text(), "the ledger knows this round already"));
    CHECK(!look(&w).masked);
    assert_int_equal(fkt_sa_server_site(w.server, AW_ME), FKT_E_STOPPED); /* it left, and did not say why */
    aw_release(&w);
}

static void a_ledger_that_refuses(void **state)
{
    struct fkt_ledger_charge charge;
    struct aw w;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_DISTRIBUTED, NULL);
    CHECK_OK(fkt_contribution_charge(&charge, &w.f.task, &w.shares, AW_DATASET));
    charge.task_sha256 =
        "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5"; /* another task has had all there is */
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    CHECK(aw_step(&w));
    CHECK_OK(fkt_ledger_file_debit(w.ledger, &charge, NULL));
    for (int taken;;) {
        aw_pump(&w);
        if (w.c.wants(w.c.self) & FKT_ENDPOINT_SEND) {
            fkt_status st;
            CHECK_OK(aw_carry(&w, &taken));
            st = w.c.sent(w.c.self, taken);
            if (st == FKT_E_BUDGET) break;
            CHECK_OK(st);
        } else CHECK_OK(aw_recv(&w));
    }
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_ENDED);
    CHECK(!look(&w).masked);
    assert_int_equal(fkt_sa_server_site(w.server, AW_ME), FKT_E_STOPPED);
    CHECK_STATUS(aw_tell(&w, FKT_STAGE_RUNNING, FKT_OK), FKT_E_BUDGET);
    CHECK(!aw_file_holds(w.state, w.moments, 256)); /* it is over here, whatever the server does */
    aw_close(&w);
    CHECK_STATUS(aw_open(&w), FKT_E_BUDGET);
    aw_release(&w);
}

static void ends_of_a_task(void **state)
{
    static const enum fkt_stage ends[] = {FKT_STAGE_RELEASED, FKT_STAGE_GIVEN_UP};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct aw w;
        aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
        CHECK_OK(aw_open(&w));
        aw_begin_round(&w, 1);
        for (int j = 0; j < 3; j++) CHECK(aw_step(&w));
        CHECK_OK(aw_tell(&w, ends[i], FKT_OK));
        assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_ENDED);
        CHECK_OK(aw_recv(&w)); /* a letter that comes too late */
        assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_ENDED);
        aw_crash(&w);
        assert_int_equal(look(&w).stage, ends[i]);
        aw_release(&w);
    }
}

/* A server that lies in a round gets a Leave; the next round is another matter. */
static void a_lie_ends_the_round_alone(void **state)
{
    struct aw w;
    int taken;
    (void)state;
    start(&w);
    for (int i = 0; i < 2; i++) CHECK(aw_step(&w));
    aw_pump(&w);
    w.newest[w.newest_len - 1] ^= 1;
    CHECK_OK(aw_recv(&w));
    assert_string_equal(look(&w).phase, "");
    assert_int_equal(w.c.wants(w.c.self), FKT_ENDPOINT_SEND);
    CHECK_OK(aw_carry(&w, &taken));
    CHECK(taken);
    CHECK_OK(w.c.sent(w.c.self, taken));
    assert_int_equal(fkt_sa_server_site(w.server, AW_ME), FKT_E_PEER_AUTH);
    aw_begin_round(&w, 2);
    aw_run(&w);
    CHECK(look(&w).spent);
    aw_release(&w);
}

/* ---- who may open ---- */

static void whose_file_it_is(void **state)
{
    struct aw w;
    struct fkt_client_spec spec;
    struct fkt_client *second = NULL;
    struct fkt_records *others;
    char digit;
    (void)state;
    aw_records(&others, 0xb5);
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    spec = aw_spec(&w);
    spec.moments = NULL;
    CHECK_STATUS(fkt_client_open(&second, &spec), FKT_E_ARG);
    CHECK_OK(aw_open(&w));
    spec = aw_spec(&w);
    CHECK_STATUS(fkt_client_open(&second, &spec), FKT_E_STATE); /* held */
    aw_close(&w);
    spec.secret = w.f.secrets;
    CHECK_STATUS(fkt_client_open(&second, &spec), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "another key"));
    spec = aw_spec(&w);
    spec.records = others;
    CHECK_STATUS(fkt_client_open(&second, &spec), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "other records"));
    spec = aw_spec(&w);
    spec.dataset = "others";
    CHECK_STATUS(fkt_client_open(&second, &spec), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "another dataset"));
    spec = aw_spec(&w);
    digit = w.f.task.sha256[0];
    w.f.task.sha256[0] = digit == '0' ? '1' : '0';
    CHECK_STATUS(fkt_client_open(&second, &spec), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "another task"));
    w.f.task.sha256[0] = digit;
    w.f.secrets[AW_ME * FKT_SA_SECRET + 40] ^= 1;
    CHECK_STATUS(fkt_client_open(&second, &spec), FKT_E_MISMATCH);
    w.f.secrets[AW_ME * FKT_SA_SECRET + 40] ^= 1;
    spec.dataset = NULL;
    CHECK_STATUS(fkt_client_open(&second, &spec), FKT_E_ARG);
    fkt_records_free(others);
    aw_release(&w);
}

static void moments_that_are_there_already(void **state)
{
    struct aw w;
    struct fkt_client_spec spec;
    struct fkt_records *others;
    int yes;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(fkt_client_has_moments(w.state, &w.f.task, w.records, &yes));
    assert_int_equal(yes, 0);
    CHECK_OK(aw_open(&w));
    aw_close(&w);
    CHECK_OK(fkt_client_has_moments(w.state, &w.f.task, w.records, &yes));
    assert_int_equal(yes, 1);
    aw_records(&others, 0xb5);
    CHECK_OK(fkt_client_has_moments(w.state, &w.f.task, others, &yes));
    fkt_records_free(others);
    assert_int_equal(yes, 0);
    spec = aw_spec(&w);
    spec.moments = NULL;
    CHECK_OK(fkt_client_open(&w.a, &spec));
    fkt_client_endpoint(w.a, &w.c);
    aw_begin_round(&w, 1);
    aw_run(&w);
    check_total(&w);
    aw_release(&w);
}

static void too_many_records(void **state)
{
    struct aw w;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    w.moments[FED_BLOCK] = 17;
    CHECK_STATUS(aw_open(&w), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "17 records of class 'dog'"));
    aw_release(&w);
}

/* ---- what stays ---- */

/* Keys and noise are two streams of the seed: of one stream for both, shares of secrets would tell the noise. */
static void noise_has_a_stream_of_its_own(void **state)
{
    struct aw w;
    uint8_t seed[32] = {0};
    int64_t mine[AW_NUMBERS], x[AW_NUMBERS];
    const int64_t *total;
    const uint8_t *survivors;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_DISTRIBUTED, NULL);
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    CHECK(aw_step(&w));
    aw_close(&w);
    aw_seed(&w, seed);
    CHECK_OK(aw_open(&w));
    aw_run(&w);
    CHECK_OK(fkt_sa_server_unmask(w.server));
    CHECK_OK(fkt_sa_server_total(w.server, &total, &survivors));
    memcpy(mine, total, sizeof mine);
    for (uint32_t i = 0; i < AW_SITES; i++) { /* the others' are known */
        struct fkt_entropy_seeded own;
        struct fkt_entropy noise;
        int64_t exact[AW_NUMBERS];
        CHECK(survivors[i]);
        fkt_entropy_seeded_init(&own, AW_SEED, FKT_STREAM_NOISE(i));
        fkt_entropy_seeded(&noise, &own);
        if (i == AW_ME) {
            fkt_entropy_keyed_init(&own, seed, 1);
            fkt_entropy_keyed(&noise, &own);
        }
        CHECK_OK(small_moments(NULL, i, exact));
        CHECK_OK(fkt_contribution_make(x, exact, &w.f.task, &w.shares, &noise));
        for (int k = 0; k < AW_NUMBERS; k++) mine[k] -= x[k];
    }
    for (int k = 0; k < AW_NUMBERS; k++) CHECK(mine[k] == 0);
    aw_release(&w);
}

static void nothing_secret_stays(void **state)
{
    struct aw w;
    uint8_t seed[32] = {0}, message[64], zero[32] = {0};
    (void)state;
    start(&w);
    for (int i = 0; i < 4; i++) CHECK(aw_step(&w));
    aw_pump(&w);
    CHECK_OK(aw_recv(&w));
    memcpy(message, w.newest + w.newest_len - sizeof message, sizeof message);
    aw_close(&w);
    aw_seed(&w, seed);
    CHECK(memcmp(seed, zero, sizeof seed) != 0);
    CHECK(aw_file_holds(w.state, seed, sizeof seed));
    CHECK(aw_file_holds(w.state, w.moments, 256));
    CHECK(aw_file_holds(w.state, message, sizeof message));
    CHECK_OK(aw_open(&w));
    aw_run(&w);
    CHECK(look(&w).spent); /* it waits for the release, with the file open */
    CHECK(!aw_file_holds(w.state, seed, sizeof seed));
    CHECK(!aw_file_holds(w.state, w.moments, 256));
    CHECK(!aw_file_holds(w.state, message, sizeof message));
    aw_release(&w);
}

static void a_round_that_is_over_leaves_no_seed(void **state)
{
    struct aw w;
    uint8_t seed[32] = {0};
    (void)state;
    start(&w);
    for (int i = 0; i < 3; i++) CHECK(aw_step(&w));
    aw_close(&w);
    aw_seed(&w, seed);
    CHECK(aw_file_holds(w.state, seed, sizeof seed));
    CHECK_OK(aw_open(&w));
    CHECK_OK(aw_tell(&w, FKT_STAGE_RUNNING, FKT_E_STOPPED));
    CHECK(!aw_file_holds(w.state, seed, sizeof seed));
    CHECK(aw_file_holds(w.state, w.moments, 256)); /* for the next one */
    aw_release(&w);
}

/* The task's last day is over: what was never asked for goes, and what has begun goes on. */
static void a_task_that_expires(void **state)
{
    struct aw w;
    uint8_t seed[32] = {0};
    int goes_on = 1;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(fkt_client_expire(w.state, &w.f.task, &goes_on));
    assert_int_equal(goes_on, 0);
    CHECK(access(w.state, F_OK) != 0);
    CHECK_OK(aw_open(&w));
    CHECK_STATUS(fkt_client_expire(w.state, &w.f.task, &goes_on), FKT_E_STATE); /* held */
    aw_close(&w);
    CHECK(aw_file_holds(w.state, w.moments, 256));
    CHECK_OK(fkt_client_expire(w.state, &w.f.task, &goes_on));
    assert_int_equal(goes_on, 0);
    CHECK(!aw_file_holds(w.state, w.moments, 256));
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    CHECK(aw_step(&w));
    for (int i = 0; i < 2; i++) {
        aw_close(&w);
        CHECK_OK(fkt_client_expire(w.state, &w.f.task, &goes_on));
        assert_int_equal(goes_on, 1);
        if (i == 0) aw_seed(&w, seed);
        CHECK(aw_file_holds(w.state, w.moments, 256) == (i == 0));
        CHECK(aw_file_holds(w.state, seed, sizeof seed) == (i == 0));
        CHECK_OK(aw_open(&w));
        aw_run(&w); /* the second time: it has revealed, and waits for the release */
        CHECK(look(&w).spent);
    }
    aw_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_from_begin_to_release),
        cmocka_unit_test(seeded_noise_is_that_of_a_round_in_memory),
        cmocka_unit_test(another_round_ends_the_one_under_way),
        cmocka_unit_test(a_round_is_begun_once),
        cmocka_unit_test(a_false_begin_begins_nothing),
        cmocka_unit_test(at_most_64_rounds),
        cmocka_unit_test(who_has_revealed_begins_no_more),
        cmocka_unit_test(a_session_that_only_the_ledger_knows),
        cmocka_unit_test(a_ledger_that_refuses),
        cmocka_unit_test(ends_of_a_task),
        cmocka_unit_test(a_lie_ends_the_round_alone),
        cmocka_unit_test(whose_file_it_is),
        cmocka_unit_test(moments_that_are_there_already),
        cmocka_unit_test(too_many_records),
        cmocka_unit_test(noise_has_a_stream_of_its_own),
        cmocka_unit_test(nothing_secret_stays),
        cmocka_unit_test(a_round_that_is_over_leaves_no_seed),
        cmocka_unit_test(a_task_that_expires),
    };
    int failed;
    scratch_init(&tmp);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&tmp);
    return failed;
}
