/* SPDX-License-Identifier: Apache-2.0 */
/* A ledger that somebody else holds, for longer than SQLite waits, does not cost the round. Takes eleven seconds. */
#include "tests/support/client_world.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <time.h>

enum { HELD_MS = 10800 }; /* store/db.c waits for 10000 */

static struct scratch tmp;

/* Another process begins to write, says so, and is slow. */
static pid_t hold(const char *ledger)
{
    int ends[2];
    char c = 0;
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        const struct timespec t = {HELD_MS / 1000, HELD_MS % 1000 * 1000000L};
        sqlite3 *h = NULL;
        const int good = sqlite3_open(ledger, &h) == SQLITE_OK &&
                         sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
                         write(ends[1], "x", 1) == 1 && nanosleep(&t, NULL) == 0;
        _exit(good ? 0 : 1); /* the kernel lets go */
    }
    close(ends[1]);
    CHECK(read(ends[0], &c, 1) == 1);
    close(ends[0]);
    return child;
}

static void a_ledger_that_is_busy(void **state)
{
    struct aw w;
    struct fkt_client_view v = {0};
    pid_t child = 0;
    int status;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    do {
        fkt_client_get_view(w.a, &v);
        if (v.masked && !child) child = hold(w.ledger); /* what comes next is the spending */
    } while (aw_step(&w));
    CHECK(v.spent);
    assert_int_equal(fkt_sa_server_state(w.server), FKT_SA_STATE_UNMASK);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    aw_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_ledger_that_is_busy)};
    int failed;
    scratch_init(&tmp);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&tmp);
    return failed;
}
