/* SPDX-License-Identifier: Apache-2.0 */
/* A server that tells a site the log that it publishes, from the first line on, and lies about that site in it: what
 * its messages were, whether they were taken, when it was lost. The heads fit; what the site kept of its messages does
 * not, or the log contradicts itself. */
#include "fedkt/server.h"
#include "fedkt/verify.h"
#include "tests/support/log_maker.h"
#include "tests/support/server_world.h"
#include "tests/support/scratch.h"

enum { SITES = 7, LOST = 1, CORRUPT = 1, REFUSED = FKT_E_PEER_AUTH };

static const char other[] = "4444444444444444444444444444444444444444444444444444444444444444";
static struct scratch scratch;
static struct log_maker maker;
static json_t *sent; /* what site 1 kept of its messages before anybody lied */

static const char *receipt(void) { return scratch_path(&scratch, "receipt.json"); }

static int set_up(void **state)
{
    json_t *j;
    (void)state;
    scratch_init(&scratch);
    CHECK_OK(log_maker_init(&maker, SITES, LOST, CORRUPT));
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK((j = json_load_file(receipt(), 0, NULL)) != NULL);
    sent = json_deep_copy(json_object_get(j, "messages"));
    json_decref(j);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(sent);
    log_maker_release(&maker);
    scratch_release(&scratch);
    return 0;
}

static fkt_status verify(const char *with)
{
    struct fkt_verification r;
    return fkt_verify_folder(&r, scratch.dir, NULL, with);
}

/* The log as it is now, with all its heads, and the messages as the site knows them. */
static void publish(void)
{
    json_t *j;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK((j = json_load_file(receipt(), 0, NULL)) != NULL);
    json_object_set(j, "messages", sent);
    CHECK(json_dump_file(j, receipt(), 0) == 0);
    json_decref(j);
}

static void fails(const char *with, const char *words)
{
    if (verify(with) == FKT_OK) fail_msg("'%s' is not noticed", words);
    if (!strstr(fkt_error_text(), words)) fail_msg("'%s' has not '%s' in it", fkt_error_text(), words);
}

/* Nobody but the site can tell. */
static void only_the_site_sees(const char *words)
{
    publish();
    CHECK_OK(verify(NULL));
    fails(receipt(), words);
}

/* The first message of site 1 of that kind, from line `from` on. */
static json_t *message(const char *kind, uint32_t site, size_t from, size_t *at)
{
    json_t *l;
    for (*at = from; (*at = log_maker_find(&maker, "message", *at)) != SIZE_MAX; ++*at) {
        l = json_array_get(maker.lines, *at);
        if (json_integer_value(json_object_get(l, "site")) == site &&
            !strcmp(json_string_value(json_object_get(l, "kind")), kind))
            return l;
    }
    fail_msg("site %u has no message '%s'", site, kind);
    return NULL;
}

static void set(json_t *line, const char *key, json_t *v) { CHECK(json_object_set_new(line, key, v) == 0); }

static void insert_lost(size_t at, uint32_t site, const char *phase)
{
    json_array_insert_new(maker.lines, at,
                          json_pack("{s:s s:i s:i s:i s:s}", "event", "lost", "round", 2, "site", (int)site, "status",
                                    FKT_E_STOPPED, "phase", phase));
}

static void what_was_taken_is_called_refused(void **state)
{
    size_t at;
    json_t *line = message("advertise", 1, 0, &at); /* of round 1, which failed: the log alone holds */
    (void)state;
    set(line, "verdict", json_integer(REFUSED));
    only_the_site_sees("it records a message of site 1 as refused that the server acknowledged");
    json_object_set_new(json_array_get(sent, 0), "taken", json_false()); /* the answer was lost: it cannot know */
    publish();
    CHECK_OK(verify(receipt()));
}

static void a_refused_message_that_it_never_sent(void **state)
{
    size_t at;
    json_t *line = json_deep_copy(message("advertise", 1, 0, &at));
    (void)state;
    set(line, "verdict", json_integer(REFUSED));
    set(line, "kind", json_string("unreadable"));
    set(line, "sha256", json_string(other));
    json_array_insert_new(maker.lines, at + 1, line);
    only_the_site_sees("a message that site 1 did not send");
}

static void a_message_is_called_another(void **state)
{
    size_t at;
    json_t *line = message("advertise", 1, 0, &at);
    (void)state;
    set(line, "kind", json_string("leave"));
    only_the_site_sees("it records message 1 of site 1 as 'leave', the receipt as 'advertise'");
    json_object_set_new(json_array_get(sent, 0), "taken", json_false());
    set(line, "kind", json_string("unreadable"));
    set(line, "verdict", json_integer(FKT_E_PEER_FORMAT));
    only_the_site_sees("it records message 1 of site 1 as 'unreadable'");
}

/* A receipt that names no kind, or one that no site sends, is none. */
static void kinds_of_a_receipt(void **state)
{
    (void)state;
    json_object_set_new(json_array_get(sent, 0), "kind", json_string("unreadable"));
    publish();
    fails(receipt(), "message 1 is not");
    json_object_del(json_array_get(sent, 0), "kind");
    publish();
    fails(receipt(), "message 1 is not");
}

static void lost_though_its_vector_is_there(void **state)
{
    size_t at, first;
    json_t *line = message("masked", 2, 0, &at);
    (void)state;
    insert_lost(at + 1, 2, "mask");
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    fails(NULL, "site 2 is lost before the survivors are known, although its vector was accepted");
    json_array_remove(maker.lines, at + 1);
    insert_lost(at, 2, "mask"); /* and before it: then no vector comes any more */
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    fails(NULL, "site 2 was lost but sends a message");
    json_array_remove(maker.lines, at);
    line = json_deep_copy(line); /* who says good-bye after the vector is lost, and in the sum */
    set(line, "kind", json_string("leave"));
    set(line, "sha256", json_string(other));
    json_array_insert_new(maker.lines, at + 1, line);
    insert_lost(at + 2, 2, "mask");
    first = log_maker_find(&maker, "confirmed", 0);
    while (json_integer_value(json_object_get(json_array_get(maker.lines, first), "site")) != 2)
        first = log_maker_find(&maker, "confirmed", first + 1);
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    fails(NULL, "site 2 was lost but sends a message"); /* its confirm; the next check has it gone */
    (void)message("confirm", 2, 0, &at);
    CHECK(first == at + 1);
    json_array_remove(maker.lines, first);
    json_array_remove(maker.lines, at);
    (void)message("reveal", 2, 0, &at);
    json_array_remove(maker.lines, at);
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    fails(NULL, "5 sites signed the list of survivors"); /* the good-bye is all right, and now too few are there */
}

static void lost_twice(void **state)
{
    size_t at = log_maker_find(&maker, "lost", 0);
    (void)state;
    json_array_insert(maker.lines, at, json_array_get(maker.lines, at));
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    fails(NULL, "site 0 is lost twice");
}

/* A real host: one site never sends its vector, and while that is waited for another sends garbage after its own. */
static void a_real_one_that_goes_after_its_vector(void **state)
{
    struct fkt_verification r;
    struct server_world w;
    char path[600];
    int spoken = 0;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 7, .dropped = 2, .corrupt = 1});
    w.site[3].silent_from = FKT_SA_STATE_MASK;
    for (int turn = 0; turn < 4000 && server_world_view(&w).stage < FKT_STAGE_FINISHING; turn++) {
        struct fkt_mailbox_view v;
        server_world_talk(&w);
        v = server_world_view(&w);
        if (!spoken && !strcmp(v.phase, "mask") && v.slot[5] == FKT_SITE_HEARD) {
            CHECK_STATUS(w.box.deliver(w.box.self, 5, (const uint8_t *)"garbage", 7), FKT_E_PEER_FORMAT);
            spoken = 1;
        }
        server_world_tick(&w, 1000);
    }
    CHECK(spoken && server_world_run(&w) == FKT_STAGE_RELEASED);
    snprintf(path, sizeof path, "%s/public", w.folder);
    CHECK_OK(fkt_verify_folder(&r, path, &w.task, NULL));
    CHECK(r.survivors == 6 && r.confirmed == 5);
    server_world_release(&w);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(what_was_taken_is_called_refused),
        CASE(a_refused_message_that_it_never_sent),
        CASE(a_message_is_called_another),
        CASE(kinds_of_a_receipt),
        CASE(lost_though_its_vector_is_there),
        CASE(lost_twice),
        cmocka_unit_test(a_real_one_that_goes_after_its_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
