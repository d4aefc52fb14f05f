/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of the server's parts: gate, desk, answers, and a whole server from its start
 * to its end. What libmicrohttpd allocates is its own. */
#include "crypto/sign.h"
#include "net/queue.h"
#include "net/httpd.h"
#include "tests/support/memory_mailbox.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

enum { SITES = 3 };
static const uint8_t task[32] = {7}, nonce[16] = {1}, key[32] = {5}, roster[SITES * 32];
static const struct fkt_page_facts facts = {
    .task_name = "t", .task_sha256 = "", .privacy = "", .noise = "", .version = "", .sites = SITES};
static struct memory_mailbox box;
static struct fkt_mailbox mailbox;
static struct fkt_tls tls;

static fkt_status run_check(void)
{
    const struct fkt_request_check_spec spec = {.roster = roster,
                                                .sites = SITES,
                                                .task = task,
                                                .nonce = nonce,
                                                .key = key,
                                                .token = "t",
                                                .in_max = 10,
                                                .refusals_per_minute = 5,
                                                .requests_per_second = 5,
                                                .wait_seconds = 5};
    struct fkt_request_check *g;
    fkt_status st = fkt_request_check_new(&g, &spec);
    if (st == FKT_OK) fkt_request_check_free(g);
    return st;
}

/* A poll with a letter, a status and a refusal: without memory an answer says so, and none is lost. */
static fkt_status run_queue(void)
{
    static const struct fkt_page_counts none;
    struct fkt_job job[3];
    struct fkt_job *done = NULL;
    struct fkt_queue *d = NULL;
    int busy = 0, bare = 0;
    fkt_status st;
    memset(job, 0, sizeof job);
    job[0].target = (struct fkt_target){.what = FKT_TARGET_POLL, .any_round = 1};
    job[1].target.what = FKT_TARGET_STATUS;
    job[2].target = (struct fkt_target){.what = FKT_TARGET_FILE, .name = "transparency.jsonl"};
    job[0].next = &job[1], job[1].next = &job[2];
    FKT_TRY(fkt_queue_new(&d, &(struct fkt_queue_spec){&mailbox, "{}", &facts}));
    FKT_TRY(fkt_queue_turn(d, 0, 0, job, &none, &done));
    for (int i = 0; i < 3; i++) {
        CHECK(job[i].answer.code == (i < 2 ? 200 : 404) || job[i].answer.code == 503);
        busy += job[i].answer.code == 503;
        bare += job[i].answer.code > 204 && !job[i].answer.body;
        fkt_answer_clear(&job[i].answer);
    }
    if (busy || bare) st = FKT_E_NOMEM;
out:
    fkt_queue_free(d);
    return st;
}

static int at_once(void *self)
{
    (void)self;
    return 1;
}

static fkt_status run_server(void)
{
    const struct fkt_httpd_spec spec = {.listen = "127.0.0.1:0",
                                        .tls = &tls,
                                        .box = &mailbox,
                                        .roster = roster,
                                        .task = task,
                                        .task_text = "{}",
                                        .facts = &facts,
                                        .limits = {.connections = 16}};
    struct fkt_httpd *h = NULL;
    fkt_status st = fkt_httpd_start(&h, &spec);
    if (st == FKT_OK) st = fkt_httpd_run(h, at_once, NULL);
    fkt_httpd_free(h);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_OK(memory_mailbox_init(&box, &mailbox, SITES, NULL));
    CHECK_OK(mailbox.deliver(mailbox.self, 0, (const uint8_t *)"Tx", 2));
    CHECK_OK(fkt_tls_own(&tls, s.dir, "127.0.0.1"));
    CHECK(sweep_allocations(run_check, NULL) > 3);
    CHECK(sweep_allocations(run_queue, NULL) > 6);
    CHECK(sweep_allocations(run_server, NULL) > 10);
    fkt_tls_clear(&tls);
    memory_mailbox_release(&box);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
