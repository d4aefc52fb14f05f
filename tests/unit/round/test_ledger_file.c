/* SPDX-License-Identifier: Apache-2.0 */
/* A release by one party and its ledger: charged to the last draw, and a ledger that is not whole pays nothing. */
#include "base/file.h"
#include "fedkt/round.h"
#include "tests/support/bent_ledger.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define T "0000000000000000000000000000000000000000000000000000000000000000"

static const char both[2][FKT_SHA256_HEX] = {A, B};
static const char only_b[1][FKT_SHA256_HEX] = {B};

static fkt_status debit(const char *path, const char (*prints)[FKT_SHA256_HEX], size_t n, const char *task, double mu,
                        double budget_epsilon, double budget_delta)
{
    return fkt_ledger_file_debit(path,
                                 &(struct fkt_ledger_charge){prints, n, task, FKT_ADD_REMOVE, mu, budget_epsilon,
                                                             budget_delta, 0, FKT_ACCOUNT_GDP, 0, NULL},
                                 NULL);
}

static void a_second_release_is_refused(void **state)
{
    struct scratch s;
    struct stat sb;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    CHECK_OK(debit(p, both, 1, T, 0.5, 0, 0));
    CHECK(stat(p, &sb) == 0 && (sb.st_mode & 0777) == 0600);
    CHECK_STATUS(debit(p, both, 1, T, 0.5, 0, 0), FKT_E_BUDGET);
    /* all or none: A has nothing left, so B must not pay */
    CHECK_STATUS(debit(p, both, 2, T, 0.5, 0, 0), FKT_E_BUDGET);
    CHECK_OK(debit(p, only_b, 1, T, 0.5, 0, 0));
    CHECK_STATUS(debit(p, only_b, 1, T, 0.5, 0, 0), FKT_E_BUDGET);
    /* a larger budget, in words of (epsilon, delta), pays for a few more */
    CHECK_OK(debit(p, both, 2, T, 0.5, 8, 1e-5));
    CHECK_OK(debit(p, both, 2, T, 0.5, 0, 0));
    scratch_release(&s);
}

static void the_budget_is_kept_to_the_last_draw(void **state)
{
    struct scratch s;
    double mu = 0.4, budget = fkt_privacy_mu(3, 1e-6);
    int allowed = (int)(budget * budget / (mu * mu)), made = 0;
    (void)state;
    scratch_init(&s);
    while (debit(scratch_path(&s, "l"), both, 1, T, mu, 3, 1e-6) == FKT_OK) made++;
    CHECK(allowed >= 2 && made == allowed);
    scratch_release(&s);
}

static void a_damaged_ledger_stops_everything(void **state)
{
    /* no ledger at all; one of an older fedkt; and one that was cut */
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "SQLite format 3",
                                      "{\"schema\": \"other\", \"records\": {}}",
                                      "{\"schema\": \"fedkt.ledger/1\", \"records\": {}}"};
    struct scratch s;
    const char *p;
    uint8_t *bytes = NULL;
    size_t len = 0;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_OK(fkt_file_write(p, bad[i], strlen(bad[i]), 1));
        CHECK_STATUS(debit(p, both, 1, T, 0.5, 0, 0), FKT_E_FORMAT);
        CHECK(*fkt_error_hint());
    }
    CHECK(strstr(fkt_error_text(), "of the old form") && strstr(fkt_error_hint(), "fedkt ledger import"));
    CHECK(unlink(p) == 0);
    CHECK_OK(debit(p, both, 1, T, 0.5, 8, 1e-5));
    CHECK_OK(fkt_file_read(&bytes, &len, p, 1U << 24));
    for (size_t cut = 512; cut < len - 4096; cut += 512) { /* the last page is an index without rows: zeros */
        CHECK_OK(fkt_file_write(p, bytes, cut, 1));
        CHECK_STATUS(debit(p, both, 1, T, 0.5, 0, 0), FKT_E_FORMAT);
    }
    for (size_t at = 4096; at < len; at += 4096) { /* a page that a disk gave back as noise */
        uint8_t page[4096];
        memcpy(page, bytes + at, sizeof page);
        memset(bytes + at, 0x5a, sizeof page);
        CHECK_OK(fkt_file_write(p, bytes, len, 1));
        if (debit(p, both, 1, T, 0.5, 0, 0) != FKT_E_FORMAT)
            fail_msg("paid with page %zu of %zu lost", at / 4096, len / 4096);
        memcpy(bytes + at, page, sizeof page);
    }
    CHECK_OK(fkt_file_write(p, bytes, len, 1));
    CHECK_OK(debit(p, both, 1, T, 0.5, 0, 0));
    fkt_free(bytes);
    CHECK_STATUS(debit(p, both, 1, T, NAN, 0, 0), FKT_E_ARG);
    CHECK_STATUS(debit(p, both, 1, T, 0.5, 1, 2), FKT_E_ARG);
    CHECK_STATUS(debit(p, both, 1, "abc", 0.5, 0, 0), FKT_E_ARG);
    scratch_release(&s);
}

/* Rows that no fedkt writes: none of them pays, and none of them is taken for nothing. */
static void bent_rows_stop_everything(void **state)
{
    static const char *const bends[] = {
        "UPDATE entries SET mu2 = -9.0",
        "UPDATE entries SET mu2 = 0.0",
        "UPDATE entries SET mu2 = 9e999",
        "UPDATE entries SET mu2 = 1e-300 * 'nan'",
        "UPDATE accounts SET budget_mu2 = -1.0",
        "UPDATE accounts SET budget_epsilon = 9e999",
        "UPDATE accounts SET budget_delta = NULL",
        "UPDATE accounts SET budget_delta = 1.0",
        "UPDATE accounts SET adjacency = 'none'",
        "UPDATE accounts SET fingerprint = 'aa'",
        "UPDATE entries SET account = 77",
        "UPDATE entries SET state = 'lost'",
        "UPDATE entries SET state = 'reserved' WHERE id = 1",
        "UPDATE entries SET session = 'x' WHERE id = 1",
        "UPDATE entries SET at = -1",
        "UPDATE entries SET delta = 1",
        "UPDATE entries SET name = printf('%.*c', 128, 'x')",
        "UPDATE entries SET insecure_seed = 2",
        "UPDATE entries SET accounting = 'renyi'",
        "UPDATE entries SET task = upper('a' || substr(task, 2))",
        "DELETE FROM accounts",
        "CREATE TRIGGER forget AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more(a)",
        "DROP INDEX reserved_once",
        "PRAGMA user_version = 5",
        "PRAGMA application_id = 5",
        BEND_SCHEMA "UPDATE sqlite_schema SET sql = replace(sql, 'mu2 > 0 AND', '') WHERE name = 'entries'",
        BEND_SCHEMA "UPDATE sqlite_schema SET sql = replace(sql, 'REAL NOT NULL', 'REAL') WHERE name = 'entries'",
    };
    struct scratch s;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    for (size_t i = 0; i < sizeof bends / sizeof *bends; i++) {
        struct fkt_ledger_book book;
        unlink(p);
        CHECK_OK(debit(p, both, 1, T, 0.5, 20, 1e-5));
        CHECK_OK(debit(p, both, 1, T, 0.5, 0, 0));
        bend_ledger(p, bends[i]);
        if (debit(p, both, 1, T, 0.5, 0, 0) != FKT_E_FORMAT) fail_msg("paid after: %s", bends[i]);
        if (debit(p, only_b, 1, T, 0.5, 0, 0) != FKT_E_FORMAT) fail_msg("paid for others after: %s", bends[i]);
        CHECK(*fkt_error_hint());
        if (fkt_ledger_file_read(&book, p, NULL) != FKT_E_FORMAT) fail_msg("read after: %s", bends[i]);
        CHECK(!book.accounts && book.n == 0);
    }
    scratch_release(&s);
}

/* Sums are of doubles to the last bit: three equal thirds of a budget fit, and are still there after a reopening. */
static void what_is_written_is_read_to_the_bit(void **state)
{
    struct fkt_ledger_book book;
    struct scratch s;
    const char *p;
    const double mu = 0.1 + 1e-17, mu2 = mu * mu;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    CHECK_STATUS(fkt_ledger_file_read(&book, p, NULL), FKT_E_IO);
    CHECK_OK(debit(p, both, 2, T, mu, 0.7, 1e-7));
    CHECK_OK(debit(p, only_b, 1, T, 3 * mu / 7, 0, 0));
    CHECK_OK(fkt_ledger_file_read(&book, p, NULL));
    CHECK(book.n == 2 && book.accounts[0].n == 1 && book.accounts[1].n == 2);
    assert_string_equal(book.accounts[0].fingerprint, A);
    CHECK(book.accounts[0].entries[0].mu2 == mu2 && book.accounts[1].entries[0].mu2 == mu2);
    CHECK(book.accounts[1].entries[1].mu2 == 3 * mu / 7 * (3 * mu / 7));
    CHECK(book.accounts[1].budget_epsilon == 0.7 && book.accounts[1].budget_delta == 1e-7);
    CHECK(book.accounts[1].limit_mu2 == fkt_privacy_mu(0.7, 1e-7) * fkt_privacy_mu(0.7, 1e-7));
    CHECK(book.accounts[0].total.mu2 == nextafter(mu2, INFINITY));
    CHECK(book.accounts[0].entries[0].when > 1600000000 && !book.accounts[0].entries[0].reserved);
    assert_string_equal(book.accounts[0].entries[0].task_sha256, T);
    assert_string_equal(book.accounts[0].entries[0].session, "");
    fkt_ledger_book_release(&book);
    CHECK_OK(fkt_ledger_file_read(&book, p, B));
    CHECK(book.n == 1 && !strcmp(book.accounts[0].fingerprint, B));
    fkt_ledger_book_release(&book);
    CHECK_OK(fkt_ledger_file_read(&book, p, T));
    CHECK(book.n == 0);
    fkt_ledger_book_release(&book);
    scratch_release(&s);
}

/* The same records twice in one sum are at twice the distance: no ledger may pay for that as for one. */
static void moments_may_stand_once_only(void **state)
{
    static const char twice[2][FKT_SHA256_HEX] = {A, A};
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_STATUS(debit(scratch_path(&s, "l"), twice, 2, T, 0.5, 0, 0), FKT_E_ARG);
    CHECK(access(scratch_path(&s, "l"), F_OK) != 0);
    scratch_release(&s);
}

/* A release with exact counts costs infinitely much under add-remove: accounts of two adjacencies must not be added. */
static void adjacencies_are_not_mixed(void **state)
{
    struct fkt_ledger_charge c = {both, 1, T, FKT_REPLACE, 0.1, 8, 1e-5, 0, FKT_ACCOUNT_GDP, 0, NULL};
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL));
    CHECK_OK(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL));
    c.adjacency = FKT_ADD_REMOVE;
    CHECK_STATUS(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL), FKT_E_BUDGET);
    scratch_release(&s);
}

static void a_link_is_the_ledger_it_points_to(void **state)
{
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_OK(debit(scratch_path(&s, "real"), both, 1, T, 0.5, 0, 0));
    CHECK(symlink(scratch_path(&s, "real"), scratch_path(&s, "link")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "link"), both, 1, T, 0.5, 0, 0), FKT_E_BUDGET);
    CHECK_OK(debit(scratch_path(&s, "link"), only_b, 1, T, 0.5, 0, 0));
    CHECK_STATUS(debit(scratch_path(&s, "real"), only_b, 1, T, 0.5, 0, 0), FKT_E_BUDGET);
    CHECK(symlink(scratch_path(&s, "nothing"), scratch_path(&s, "dangling")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "dangling"), only_b, 1, T, 0.5, 0, 0), FKT_E_IO);
    CHECK(link(scratch_path(&s, "real"), scratch_path(&s, "second")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "second"), only_b, 1, T, 0.5, 9, 1e-5), FKT_E_IO);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_release_is_refused),        cmocka_unit_test(the_budget_is_kept_to_the_last_draw),
        cmocka_unit_test(a_damaged_ledger_stops_everything),  cmocka_unit_test(bent_rows_stop_everything),
        cmocka_unit_test(what_is_written_is_read_to_the_bit), cmocka_unit_test(moments_may_stand_once_only),
        cmocka_unit_test(adjacencies_are_not_mixed),          cmocka_unit_test(a_link_is_the_ledger_it_points_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
