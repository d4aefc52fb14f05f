/* SPDX-License-Identifier: Apache-2.0 */
#include "net/queue.h"
#include "tests/support/memory_mailbox.h"
#include "tests/support/check.h"

enum { SITES = 200 };
static struct memory_mailbox box;
static struct fkt_mailbox mailbox;
static struct fkt_queue *queue;
static const struct fkt_page_counts counts;

static int set_up(void **state)
{
    static const struct fkt_page_facts facts = {
        .task_name = "t", .task_sha256 = "", .privacy = "", .noise = "", .version = "", .sites = SITES};
    (void)state;
    CHECK_OK(memory_mailbox_init(&box, &mailbox, SITES, NULL));
    CHECK_OK(fkt_queue_new(&queue, &(struct fkt_queue_spec){&mailbox, "{}", &facts}));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fkt_queue_free(queue);
    memory_mailbox_release(&box);
    return 0;
}

static void job_init(struct fkt_job *j, enum fkt_target_what what, uint32_t site, const char *body)
{
    memset(j, 0, sizeof *j);
    j->target.what = what;
    j->target.any_round = 1;
    j->target.wait = 10;
    j->site = site;
    j->body = (const uint8_t *)body;
    j->len = body ? strlen(body) : 0;
}

static struct fkt_job *turn(uint64_t now, struct fkt_job *jobs)
{
    struct fkt_job *done;
    CHECK_OK(fkt_queue_turn(queue, now, 1000000 + now, jobs, &counts, &done));
    CHECK(!done || box.settled);
    return done;
}

static const char *header(const struct fkt_job *j, const char *name)
{
    for (unsigned i = 0; i < j->answer.headers; i++)
        if (strcmp(j->answer.header[i].name, name) == 0) return j->answer.header[i].value;
    return NULL;
}

static void messages(void **state)
{
    static const struct {
        const char *body;
        int code;
    } cases[] = {{"Thello", 204}, {"Snot now", 409}, {"Flies", 422}, {"", 422}, {"Rend", 204}, {"Tlate", 410}};
    struct fkt_job j[6];
    (void)state;
    for (int i = 0; i < 6; i++) {
        job_init(&j[i], FKT_TARGET_MESSAGES, (uint32_t)i, cases[i].body);
        CHECK(turn(0, &j[i]) == &j[i]);
        if (j[i].answer.code != cases[i].code) fail_msg("'%s': %d", cases[i].body, j[i].answer.code);
        CHECK(header(&j[i], "Fedkt-Stage") && strlen(header(&j[i], "Fedkt-Log")) > 65);
        CHECK((j[i].answer.body != NULL) == (j[i].answer.code != 204));
        fkt_answer_clear(&j[i].answer);
    }
    CHECK(box.taken == 2);
}

/* Everything that came together is settled once. */
static void a_batch_is_settled_once(void **state)
{
    struct fkt_job j[SITES], *done;
    uint64_t before = box.settles;
    int n = 0;
    (void)state;
    for (uint32_t i = 0; i < SITES; i++) {
        job_init(&j[i], FKT_TARGET_MESSAGES, i, "T1");
        j[i].next = i + 1 < SITES ? &j[i + 1] : NULL;
    }
    for (done = turn(0, j); done; done = done->next) {
        CHECK(done == &j[n++] && done->answer.code == 204); /* in their order */
        fkt_answer_clear(&done->answer);
    }
    CHECK(n == SITES && box.settles == before + 1 && box.taken == SITES);
}

static void a_poll_waits_for_its_message(void **state)
{
    struct fkt_job poll, post, *done;
    (void)state;
    job_init(&poll, FKT_TARGET_POLL, 7, NULL);
    CHECK(turn(0, &poll) == NULL && fkt_queue_parked(queue) == 1);
    CHECK(turn(300, NULL) == NULL);
    job_init(&post, FKT_TARGET_MESSAGES, 7, "Tanswer");
    done = turn(400, &post);
    CHECK(done == &post && done->next == &poll && !poll.next && fkt_queue_parked(queue) == 0);
    CHECK(poll.answer.code == 200 && poll.answer.len == 7 && memcmp(poll.answer.body, "Tanswer", 7) == 0 &&
          poll.waited);
    assert_string_equal(header(&poll, "Fedkt-Round"), "ab0102030405060708090a0b0c0d0e0f");
    assert_string_equal(header(&poll, "Fedkt-Index"), "1");
    fkt_answer_clear(&poll.answer);
    job_init(&poll, FKT_TARGET_POLL, 7, NULL); /* a site that has it waits for the next, to its end */
    poll.target.any_round = 0;
    memcpy(poll.target.round, memory_mailbox_round, sizeof poll.target.round);
    poll.target.after = 1;
    CHECK(turn(500, &poll) == NULL && turn(10400, NULL) == NULL);
    CHECK(turn(10700, NULL) == &poll && poll.answer.code == 204 && !poll.answer.body && !header(&poll, "Fedkt-Round"));
    assert_string_equal(header(&poll, "Fedkt-Stage"), "running");
}

static void a_second_poll_ends_the_first(void **state)
{
    struct fkt_job a, b;
    (void)state;
    job_init(&a, FKT_TARGET_POLL, 3, NULL);
    job_init(&b, FKT_TARGET_POLL, 3, NULL);
    CHECK(turn(0, &a) == NULL);
    CHECK(turn(10, &b) == &a && a.answer.code == 204 && !a.next && fkt_queue_parked(queue) == 1);
    job_init(&a, FKT_TARGET_POLL, 4, NULL);
    a.target.wait = 0;
    CHECK(turn(20, &a) == &a && a.answer.code == 204 && !a.waited);
    CHECK(fkt_queue_close(queue) == &b && b.answer.code == 503 && strcmp(header(&b, "Retry-After"), "5") == 0);
    fkt_answer_clear(&b.answer);
    CHECK(fkt_queue_parked(queue) == 0 && fkt_queue_close(queue) == NULL);
}

static void who_is_lost_hears_it_at_once(void **state)
{
    struct fkt_job j;
    (void)state;
    job_init(&j, FKT_TARGET_MESSAGES, 5, "Flie");
    CHECK(turn(0, &j) == &j);
    fkt_answer_clear(&j.answer);
    job_init(&j, FKT_TARGET_POLL, 5, NULL);
    j.target.any_round = 0;
    memcpy(j.target.round, memory_mailbox_round, sizeof j.target.round);
    CHECK(turn(0, &j) == &j && j.answer.code == 204);
    assert_string_equal(header(&j, "Fedkt-Lost"), "40");
}

static void the_end_is_told_to_all(void **state)
{
    struct fkt_job poll[SITES], end, *done;
    int n = 0;
    (void)state;
    for (uint32_t i = 0; i < SITES; i++) {
        job_init(&poll[i], FKT_TARGET_POLL, i, NULL);
        CHECK(turn(0, &poll[i]) == NULL);
    }
    job_init(&end, FKT_TARGET_MESSAGES, 0, "Wwork");
    CHECK(turn(30, &end) == &end); /* and site 0's letter, which a sweep brings */
    CHECK(fkt_queue_has_work(queue) == 1);
    CHECK(fkt_queue_has_work(queue) == 1); /* nobody could begin it: there was no thread to be had */
    fkt_queue_worked(queue, FKT_OK);
    CHECK(fkt_queue_has_work(queue) == 0);
    for (done = turn(60, NULL); done; done = done->next, n++) {
        CHECK(done->answer.code == 410 && strcmp(header(done, "Fedkt-Stage"), "released") == 0);
        fkt_answer_clear(&done->answer);
    }
    CHECK(n == SITES || n == SITES - 1);
    fkt_answer_clear(&poll[0].answer);
}

/* With many parked, deliveries do not cost a look at each of them every time, and none waits long. */
static void a_burst_sweeps_now_and_then(void **state)
{
    struct fkt_job poll[SITES], post, *done;
    uint64_t before;
    (void)state;
    for (uint32_t i = 0; i < SITES - 1; i++) {
        job_init(&poll[i], FKT_TARGET_POLL, i, NULL);
        turn(0, &poll[i]);
    }
    before = box.collects;
    for (int i = 0; i < 100; i++) {
        job_init(&post, FKT_TARGET_MESSAGES, SITES - 1, "Tx");
        done = turn(1 + (uint64_t)i / 10, &post);
        CHECK(done == &post && !done->next);
    }
    CHECK(box.collects - before <= SITES);
    CHECK(fkt_queue_due(queue) <= 40);
    for (done = fkt_queue_close(queue); done; done = done->next) fkt_answer_clear(&done->answer);
}

static void no_answer_leaves_when_it_is_not_on_disk(void **state)
{
    struct fkt_job poll, post, late, *done;
    (void)state;
    job_init(&poll, FKT_TARGET_POLL, 1, NULL);
    CHECK(turn(0, &poll) == NULL);
    box.fail_settle = 1;
    job_init(&post, FKT_TARGET_MESSAGES, 2, "Tx");
    CHECK_STATUS(fkt_queue_turn(queue, 1, 1, &post, &counts, &done), FKT_E_IO);
    CHECK(done == &post && done->next == &poll && post.answer.code == 503 && poll.answer.code == 503);
    box.fail_settle = 0;
    job_init(&late, FKT_TARGET_MESSAGES, 3, "Tx"); /* it never talks to the mailbox again */
    CHECK_STATUS(fkt_queue_turn(queue, 900, 900, &late, &counts, &done), FKT_E_IO);
    CHECK(done == &late && late.answer.code == 503 && box.taken == 1 && fkt_queue_has_work(queue) == 0);
    fkt_answer_clear(&post.answer);
    fkt_answer_clear(&poll.answer);
    fkt_answer_clear(&late.answer);
}

static void a_mailbox_that_cannot_go_on(void **state)
{
    struct fkt_job j, *done;
    (void)state;
    job_init(&j, FKT_TARGET_MESSAGES, 2, "X");
    CHECK_STATUS(fkt_queue_turn(queue, 1, 1, &j, &counts, &done), FKT_E_IO);
    CHECK(done == &j && j.answer.code == 503);
    fkt_answer_clear(&j.answer);
}

static void people_and_news(void **state)
{
    struct fkt_job j;
    struct fkt_text t;
    (void)state;
    job_init(&j, FKT_TARGET_STATUS, FKT_MAILBOX_NOBODY, NULL);
    CHECK(turn(0, &j) == &j && j.answer.code == 200 && j.answer.body[0] == '{' && !header(&j, "Fedkt-Stage"));
    fkt_answer_clear(&j.answer);
    job_init(&j, FKT_TARGET_METRICS, FKT_MAILBOX_NOBODY, NULL);
    CHECK(turn(0, &j) == &j && j.answer.code == 200 && j.answer.body[0] == '#');
    fkt_answer_clear(&j.answer);
    job_init(&j, FKT_TARGET_TASK, 1, NULL);
    CHECK(turn(0, &j) == &j && j.answer.code == 200 && strcmp(j.answer.text, "{}") == 0 && header(&j, "Fedkt-Log"));
    job_init(&j, FKT_TARGET_FILE, 1, NULL);
    j.target.name = "transparency.jsonl";
    CHECK(turn(0, &j) == &j && j.answer.code == 404);
    fkt_answer_clear(&j.answer);
    box.stage = FKT_STAGE_FINISHING; /* they will be there soon: ask again */
    CHECK(turn(0, &j) == &j && j.answer.code == 503 && header(&j, "Retry-After"));
    fkt_answer_clear(&j.answer);
    box.stage = FKT_STAGE_GATHERING;
    fkt_text_init(&t);
    CHECK(fkt_queue_news(queue, 1, &counts, 0, &t) == 1 && t.len > 0);
    fkt_text_clear(&t);
    CHECK(fkt_queue_news(queue, 2, &(struct fkt_page_counts){.requests = 9}, 0, &t) == 0 && t.len == 0);
    CHECK(fkt_queue_news(queue, 3, &counts, 1, &t) == 1);
    fkt_text_clear(&t);
    fkt_queue_note(queue, 3, FKT_REFUSAL_REPLAYED);
    CHECK(box.refused[FKT_REFUSAL_REPLAYED] == 1 && box.last_refused == 3);
    CHECK(fkt_queue_news(queue, 4, &counts, 0, &t) == 1);
    fkt_text_clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_batch_is_settled_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_poll_waits_for_its_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_second_poll_ends_the_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_lost_hears_it_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_is_told_to_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_burst_sweeps_now_and_then, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_answer_leaves_when_it_is_not_on_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_mailbox_that_cannot_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(people_and_news, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
