/* SPDX-License-Identifier: Apache-2.0 */
/* fkt_serve without a site: what it refuses, where it listens, how it is stopped. */
#include "fedkt/advanced/mailbox.h"
#include "fedkt/serve.h"
#include "tests/support/small_site.h"

#include <time.h>
#include <unistd.h>

static void fields_that_must_be_there(void **state)
{
    const struct fkt_serve_spec none = {0},
                                half = {.task = "t", .state = "s", .listen = "127.0.0.1:0", .certificate = "c"},
                                nowhere = {.task = "t", .state = "s", .listen = "127.0.0.1:x"};
    struct fkt_serve_view last;
    (void)state;
    CHECK_STATUS(fkt_serve(&none, &last), FKT_E_ARG);
    CHECK_STATUS(fkt_serve(&half, &last), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "private key") != NULL);
    CHECK_STATUS(fkt_serve(&nowhere, NULL), FKT_E_ARG);
}

struct heard {
    unsigned listening, views;
    char listen[64];
    enum fkt_serve_event_kind stop_at;
};

static int hear(void *self, const struct fkt_serve_event *e)
{
    struct heard *h = self;
    CHECK(e->task != NULL && e->place != NULL);
    if (e->kind == FKT_SERVE_EVENT_LISTENING) {
        h->listening++;
        CHECK(e->place->local && e->place->pinned && !strncmp(e->place->pin, "sha256//", 8));
        CHECK(access(e->place->token_file, R_OK) == 0);
        snprintf(h->listen, sizeof h->listen, "%s", e->place->listen);
    }
    if (e->kind == FKT_SERVE_EVENT_VIEW) {
        h->views++;
        CHECK(e->view->stage == FKT_STAGE_GATHERING && e->view->sites == 3 && e->view->ready == 0);
    }
    return e->kind == h->stop_at;
}

/* The task gets its pin, is signed with it, and the next start needs no key. */
static void it_listens_until_it_is_stopped(void **state)
{
    const struct fkt_service_choices unpinned = {.address = "https://127.0.0.1:8443",
                                                 .expires = (uint64_t)time(NULL) + 600};
    struct heard h = {.stop_at = FKT_SERVE_EVENT_VIEW};
    struct fkt_serve_spec spec = {.listen = "127.0.0.1:0", .event = hear, .self = &h};
    struct fkt_serve_view last;
    struct fkt_task task = {0};
    struct fkt_key operator_key = {.site = {.name = "operator"}};
    struct small_site w;
    sigset_t mask;
    (void)state;
    small_site_init(&w, &unpinned, 1);
    memcpy(operator_key.site.key, w.f.roster + 3 * FKT_SA_KEY, FKT_SA_KEY);
    memcpy(operator_key.secret, small_operator(&w.f), FKT_SA_SECRET);
    CHECK_OK(fkt_key_save(&operator_key, scratch_path(&w.s, "operator.key"), 0, NULL));
    spec.task = w.spec.task;
    spec.state = w.spec.state;
    CHECK_STATUS(fkt_serve(&spec, &last), FKT_E_STATE); /* no pin, and no key to sign it with */
    CHECK(h.listening == 0);
    spec.key = w.paths[5];
    snprintf(w.paths[5], sizeof w.paths[5], "%s", scratch_path(&w.s, "operator.key"));
    CHECK_STATUS(fkt_serve(&spec, &last), FKT_E_STOPPED);
    CHECK(h.listening == 1 && h.views == 1 && strncmp(h.listen, "127.0.0.1:", 10) == 0);
    CHECK(last.stage == FKT_STAGE_GATHERING && last.sites == 3);
    CHECK_OK(fkt_task_load_into(&task, w.spec.task));
    CHECK_OK(fkt_task_verify(&task, operator_key.site.key));
    CHECK(task.service.pin[0] != '\0');
    fkt_task_clear(&task);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGPIPE));
    small_site_clear(&w);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_that_must_be_there),
        cmocka_unit_test(it_listens_until_it_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
