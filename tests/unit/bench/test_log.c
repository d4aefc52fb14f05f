/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "bench/log.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static const char good[] =
    "{\"at\":1000,\"entry\":1,\"event\":\"open\"}\n"
    "{\"at\":2000,\"event\":\"begin\",\"name\":\"00\",\"round\":1}\n"
    "{\"at\":2100,\"bytes\":10,\"event\":\"message\",\"kind\":\"advertise\",\"site\":0,\"verdict\":0}\n"
    "{\"at\":2200,\"bytes\":20,\"event\":\"message\",\"kind\":\"advertise\",\"site\":9,\"verdict\":0}\n"
    "{\"at\":2300,\"bytes\":5,\"event\":\"message\",\"kind\":\"advertise\",\"site\":3,\"verdict\":41}\n"
    "{\"at\":2400,\"event\":\"refused\",\"site\":4,\"times\":7,\"why\":\"replayed\"}\n"
    "{\"at\":7300,\"event\":\"phase\",\"phase\":\"advertise\",\"why\":\"deadline\"}\n"
    "{\"at\":7300,\"event\":\"survivors\",\"count\":2,\"survivors\":\"0102\"}\n"
    "{\"at\":7400,\"bytes\":1,\"event\":\"message\",\"kind\":\"reveal\",\"site\":9,\"verdict\":0}\n"
    "{\"at\":7500,\"event\":\"phase\",\"phase\":\"reveal\",\"why\":\"all\"}\n"
    "{\"at\":8750,\"event\":\"release\",\"round\":1}\n"
    "{\"at\":9000,\"event\":\"end\"}\n";

static void a_log_is_added_up(void **state)
{
    struct scratch s;
    struct cli_bench_log l;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_file_write(scratch_path(&s, "log"), good, sizeof good - 1, 0));
    CHECK_OK(cli_bench_log_read(&l, scratch_path(&s, "log"), 10));
    CHECK(l.survivors == 2 && l.survived[0] && l.survived[9] && !l.survived[3]);
    CHECK(l.taken[0] == 1 && l.taken[9] == 2 && l.taken[3] == 0);
    CHECK(l.messages == 4 && l.bytes == 36 && l.refused == 7 && l.rounds == 1);
    cli_bench_log_clear(&l);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

static void what_is_no_log_is_refused(void **state)
{
    static const char *const bad[] = {"{\n", "{\"at\":1}\n", "{\"event\":\"survivors\",\"survivors\":\"01\"}\n"};
    struct scratch s;
    struct cli_bench_log l;
    (void)state;
    scratch_init(&s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_OK(fkt_file_write(scratch_path(&s, "log"), bad[i], strlen(bad[i]), FKT_FILE_REPLACE));
        CHECK_STATUS(cli_bench_log_read(&l, scratch_path(&s, "log"), 10), FKT_E_FORMAT);
        cli_bench_log_clear(&l);
    }
    CHECK_STATUS(cli_bench_log_read(&l, scratch_path(&s, "none"), 10), FKT_E_IO);
    cli_bench_log_clear(&l);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_is_added_up),
        cmocka_unit_test(what_is_no_log_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
