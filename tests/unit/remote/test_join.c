/* SPDX-License-Identifier: Apache-2.0 */
/* What fkt_join refuses before it opens a connection, what it reports, and what its preview says. Conversations with a
 * server are in tests/net and tests/federation. */
#include "tests/support/small_site.h"

#include <math.h>
#include <unistd.h>

static void fields_that_must_be_there(void **state)
{
    const struct fkt_join_spec none = {0};
    struct fkt_join_spec spec = {.task = "t", .key = "k", .data = "d", .patience_seconds = UINT32_MAX};
    struct fkt_join_result r;
    struct fkt_join_preview p;
    (void)state;
    CHECK_STATUS(fkt_join(&none, &r), FKT_E_ARG);
    CHECK(!r.task && !r.out && !r.over);
    CHECK_STATUS(fkt_join_preview(&none, &p), FKT_E_ARG);
    CHECK_STATUS(fkt_join(&spec, &r), FKT_E_ARG);
    spec.patience_seconds = 0;
    spec.threads = 257;
    CHECK_STATUS(fkt_join(&spec, &r), FKT_E_ARG);
    spec.threads = 0;
    spec.budget_epsilon = NAN;
    CHECK_STATUS(fkt_join(&spec, &r), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "budget") != NULL);
    spec.budget_epsilon = 1;
    CHECK_STATUS(fkt_join(&spec, &r), FKT_E_ARG);
    spec.budget_epsilon = 21;
    spec.budget_delta = 1e-5;
    CHECK_STATUS(fkt_join(&spec, &r), FKT_E_ARG);
    spec.accept_weak = 1;
    CHECK_STATUS(fkt_join(&spec, &r), FKT_E_IO); /* now it looks for the task */
    fkt_join_result_clear(&r);
}

struct heard {
    unsigned seen; /* a bit for each kind */
    int stop_at;   /* the kind that answers 1; -1: none */
    size_t images;
};

static int hear(void *self, const struct fkt_join_event *e)
{
    struct heard *h = self;
    h->seen |= 1u << e->kind;
    CHECK(e->task != NULL);
    if (e->kind == FKT_JOIN_EVENT_DATASET) h->images = fkt_dataset_size(e->dataset);
    return (int)e->kind == h->stop_at;
}

static void a_preview_says_what_it_costs(void **state)
{
    struct heard h = {.stop_at = -1};
    struct small_site w;
    struct fkt_join_preview p;
    (void)state;
    small_site_init(&w, NULL, 1);
    w.spec.event = hear;
    w.spec.self = &h;
    w.spec.operator_key = w.f.roster + 3 * FKT_SA_KEY;
    CHECK_OK(fkt_join_preview(&w.spec, &p));
    CHECK(p.site == 0 && p.records == 4 && p.held[0] == 2 && p.held[1] == 2 && p.skipped.count == 0);
    CHECK(!strcmp(fkt_task_name(p.task), "served") && !strcmp(p.dataset, "served") && !strcmp(p.ledger, w.spec.ledger));
    CHECK(p.n_messages == 5 && !strcmp(p.messages[0].kind, "advertise")); /* three sites throw no coin */
    CHECK(p.epsilon_before == 0 && p.epsilon_after > 0 && p.epsilon_after < 10.1);
    CHECK(p.sigma_count > 0 && p.sigma[0].sum > 0 && p.sigma[0].moment > 0 && p.sigma[1].sum == 0);
    CHECK(strstr(p.privacy, "Protected") != NULL && !p.over);
    CHECK(h.images == 4);
    CHECK(h.seen == (1u << FKT_JOIN_EVENT_SIGNED | 1u << FKT_JOIN_EVENT_DATASET | 1u << FKT_JOIN_EVENT_CODEC |
                     1u << FKT_JOIN_EVENT_RECORDS));
    CHECK(access(w.spec.state, F_OK) != 0 && access(w.spec.ledger, F_OK) != 0 && access(w.spec.out, F_OK) != 0);
    fkt_join_preview_clear(&p);
    small_site_clear(&w);
    CHECK(fkt_alloc_live() == 0);
}

static void tasks_that_are_refused(void **state)
{
    static const uint64_t seed = 3;
    const struct fkt_service_choices seeded = {.address = "https://a:1", .pin = SERVICE_PIN, .insecure_seed = &seed};
    const struct fkt_service_choices unpinned = {.address = "https://a:1"};
    const struct fkt_service_choices over = {.address = "https://a:1", .pin = SERVICE_PIN, .expires = 1700000000};
    struct small_site w;
    struct fkt_join_result r;
    (void)state;
    small_site_init(&w, NULL, 0);
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_STATE); /* not signed */
    fkt_join_result_clear(&r);
    small_site_clear(&w);
    small_site_init(&w, NULL, 1);
    w.spec.operator_key = w.f.roster; /* a site's key is not the operator's */
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_PEER_AUTH);
    fkt_join_result_clear(&r);
    w.spec.operator_key = NULL;
    w.spec.accept_insecure_seed = 1;
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_ARG);
    fkt_join_result_clear(&r);
    w.spec.accept_insecure_seed = 0;
    w.spec.out = w.spec.data;
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "overwrite the input") != NULL);
    fkt_join_result_clear(&r);
    small_site_clear(&w);
    small_site_init(&w, &seeded, 1);
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_MISMATCH);
    fkt_join_result_clear(&r);
    small_site_clear(&w);
    small_site_init(&w, &unpinned, 1);
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_MISMATCH);
    fkt_join_result_clear(&r);
    small_site_clear(&w);
    small_site_init(&w, &over, 1);
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_MISMATCH);
    CHECK(r.over && strstr(fkt_error_text(), "expired") != NULL);
    fkt_join_result_clear(&r);
    small_site_clear(&w);
    CHECK(fkt_alloc_live() == 0);
}

static void it_can_be_stopped_before_anything_is_sent(void **state)
{
    volatile sig_atomic_t stop = 1;
    struct heard h = {.stop_at = FKT_JOIN_EVENT_RECORDS};
    struct small_site w;
    struct fkt_join_result r;
    (void)state;
    small_site_init(&w, NULL, 1);
    w.spec.stop = &stop;
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_STOPPED);
    CHECK(r.task && !r.out && !r.over);
    fkt_join_result_clear(&r);
    w.spec.stop = NULL;
    w.spec.event = hear;
    w.spec.self = &h;
    CHECK_STATUS(fkt_join(&w.spec, &r), FKT_E_STOPPED);
    CHECK(access(w.spec.state, F_OK) != 0);
    fkt_join_result_clear(&r);
    small_site_clear(&w);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_that_must_be_there),
        cmocka_unit_test(a_preview_says_what_it_costs),
        cmocka_unit_test(tasks_that_are_refused),
        cmocka_unit_test(it_can_be_stopped_before_anything_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
