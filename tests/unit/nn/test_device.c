/* SPDX-License-Identifier: Apache-2.0 */
/* test_device.c - devices by name, what AUTO becomes, and what can be said of them, on any machine. */
#include "fedkt/machine.h"
#include "nn/backends.h"
#include "tests/support/check.h"

#include <string.h>

static const struct fkt_backend_row *card_row(void)
{
    const struct fkt_backend_row *r;
    for (size_t i = 0; (r = fkt_backend_row(i)); i++)
        if (r->kind == FKT_DEVICE_CUDA) return r;
    return NULL;
}

static void names_are_read_and_written(void **state)
{
    static const struct {
        const char *in, *out;
        enum fkt_device_kind kind;
        int index;
    } good[] = {{"cpu", "cpu", FKT_DEVICE_CPU, 0},           {"cuda", "cuda:0", FKT_DEVICE_CUDA, 0},
                {"cuda:0", "cuda:0", FKT_DEVICE_CUDA, 0},    {"cuda:1", "cuda:1", FKT_DEVICE_CUDA, 1},
                {"cuda:63", "cuda:63", FKT_DEVICE_CUDA, 63}, {"auto", "auto", FKT_DEVICE_AUTO, 0}};
    static const char *const bad[] = {
        "",        "gpu",     "CPU",     "cpu:0",   "auto:0",   "cuda:",
        "cuda:-1", "cuda:+1", "cuda: 1", "cuda:1 ", "cuda:01",  "cuda:64",
        "cuda:1x", "cudax",   "cuda1",   " cuda",   "cuda:0x1", "cuda:99999999999999999999"};
    struct fkt_device d;
    char name[FKT_DEVICE_NAME];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(fkt_device_parse(&d, good[i].in) == FKT_OK);
        CHECK(d.kind == good[i].kind && d.index == good[i].index);
        fkt_device_name(d, name);
        CHECK(!strcmp(name, good[i].out));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        d = (struct fkt_device){FKT_DEVICE_AUTO, 7};
        CHECK(fkt_device_parse(&d, bad[i]) == FKT_E_ARG && d.kind == FKT_DEVICE_AUTO && d.index == 7);
        CHECK(strstr(fkt_error_text(), "unknown device") && fkt_error_hint()[0] && !strchr(fkt_error_text(), '\n'));
    }
}

static void zeros_are_the_processor(void **state)
{
    struct fkt_device d = {0};
    struct fkt_device_facts f;
    char why[256] = "left over";
    (void)state;
    CHECK(fkt_device_resolve(&d, why, sizeof why) == FKT_OK && d.kind == FKT_DEVICE_CPU && d.index == 0 && !why[0]);
    CHECK(fkt_backend_for(d) == fkt_backend_pick(NULL) && fkt_learner_for(d) == fkt_learner_pick(NULL));
    CHECK(fkt_device_describe(d, &f) == FKT_OK && f.name[0] && f.capability[0] && f.libraries[0]);
    CHECK(!f.driver[0] && !f.memory && !f.memory_free);
}

/* With a card it is the card; without one there is a reason, and the processor. */
static void auto_settles(void **state)
{
    struct fkt_device d = {FKT_DEVICE_AUTO, 0}, card = {FKT_DEVICE_CUDA, 0};
    struct fkt_device_facts f;
    char why[256];
    (void)state;
    CHECK(!fkt_backend_for(d) && !fkt_learner_for(d) && fkt_device_describe(d, &f) == FKT_E_ARG);
    CHECK(fkt_device_resolve(&d, why, sizeof why) == FKT_OK && d.index == 0);
    if (fkt_device_resolve(&card, NULL, 0) == FKT_OK) {
        CHECK(d.kind == FKT_DEVICE_CUDA && !why[0] && fkt_device_cards() > 0 && fkt_backend_for(card));
        CHECK(fkt_device_describe(card, &f) == FKT_OK && f.name[0] && f.driver[0] && f.memory);
    } else {
        CHECK(d.kind == FKT_DEVICE_CPU && why[0] && !strchr(why, '\n') && fkt_backend_for(d));
        CHECK(fkt_device_describe(card, &f) != FKT_OK && !f.name[0]);
    }
}

static void a_card_that_is_not_there_is_refused(void **state)
{
    struct fkt_device d = {FKT_DEVICE_CUDA, 63}, none = {FKT_DEVICE_CUDA, -1}, odd = {(enum fkt_device_kind)9, 0};
    char why[8] = "x";
    (void)state;
    CHECK(fkt_device_resolve(&d, why, sizeof why) == FKT_E_STATE && !why[0]);
    CHECK(fkt_error_hint()[0] && d.kind == FKT_DEVICE_CUDA && d.index == 63);
    CHECK(fkt_device_resolve(&none, NULL, 0) == FKT_E_ARG);
    CHECK(fkt_device_resolve(&odd, NULL, 0) == FKT_E_ARG);
    if (card_row()) return;
    CHECK(fkt_device_resolve(&d, NULL, 0) == FKT_E_STATE && strstr(fkt_error_text(), "this build has no CUDA"));
    CHECK(fkt_error_hint_code() == FKT_HINT_DEVICE_BUILD && fkt_device_cards() == 0);
    CHECK(!fkt_backend_for(d) && !fkt_learner_for(d) && !fkt_backend_pick("cuda"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_and_written),
        cmocka_unit_test(zeros_are_the_processor),
        cmocka_unit_test(auto_settles),
        cmocka_unit_test(a_card_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
