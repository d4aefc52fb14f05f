/* SPDX-License-Identifier: Apache-2.0 */
/* Ledgers of an older fedkt, JSON files, come over whole or not at all. */
#include "base/file.h"
#include "fedkt/ledger.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <unistd.h>

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define T1 "1111111111111111111111111111111111111111111111111111111111111111"
#define T2 "2222222222222222222222222222222222222222222222222222222222222222"
#define T3 "3333333333333333333333333333333333333333333333333333333333333333"
#define S1 "4444444444444444444444444444444444444444444444444444444444444444"
#define S2 "5555555555555555555555555555555555555555555555555555555555555555"
#define S3 "6666666666666666666666666666666666666666666666666666666666666666"

#define SPENT(task) "{\"task_sha256\": \"" task "\", \"mu2\": 0.25, \"entropy\": \"operating system\"}"
#define BARE(name, entries)                                                                                            \
    "\"" name "\": {\"budget_mu2\": 0.25, \"adjacency\": \"add-remove\", \"entries\": [" entries "]}"
#define ROUND(session, state, more)                                                                                    \
    "{\"task_sha256\": \"" T2 "\", \"mu2\": 0.01, \"entropy\": \"INSECURE SEED\", \"accounting\": \"zcdp\", "          \
    "\"state\": \"" state "\", \"session\": \"" session "\"" more "}"
#define ONE "{\"schema\": \"fedkt.ledger/1\", \"records\": {" BARE(A, SPENT(T1)) "}}"
#define TWO                                                                                                            \
    "{\"schema\": \"fedkt.ledger/2\", \"records\": {" BARE(                                                            \
        A, SPENT(T1)) ", \"" B "\": {\"budget_mu2\": 9, \"budget_epsilon\": 3, \"budget_delta\": 1e-05, "              \
                               "\"adjacency\": \"replace-any\", "                                                      \
                      "\"entries\": [" ROUND(S1, "reserved", ", \"past\": [\"" S2 "\"]") "]}}}"

static struct scratch dir;
static char old[600], path[600];

static int set_up(void **state)
{
    (void)state;
    scratch_init(&dir);
    snprintf(old, sizeof old, "%s", scratch_path(&dir, "old.json"));
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "ledger.db"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_release(&dir);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

static fkt_status import(const char *text)
{
    CHECK_OK(fkt_file_write(old, text, strlen(text), 1));
    return fkt_ledger_file_import(path, old, NULL);
}

static struct fkt_ledger_charge charge(const char *fingerprint, const char *task, double mu)
{
    static char name[1][FKT_SHA256_HEX];
    snprintf(name[0], sizeof name[0], "%s", fingerprint);
    return (struct fkt_ledger_charge){.fingerprints = (const char(*)[FKT_SHA256_HEX])name,
                                      .n = 1,
                                      .task_sha256 = task,
                                      .mu = mu,
                                      .accounting = FKT_ACCOUNT_ZCDP,
                                      .adjacency = strcmp(fingerprint, B) ? FKT_ADD_REMOVE : FKT_REPLACE_ANY};
}

static void both_versions_come_over(void **state)
{
    struct fkt_ledger_book book;
    struct fkt_ledger_charge c;
    size_t n = 0;
    (void)state;
    CHECK_OK(import(ONE));
    CHECK_OK(fkt_ledger_file_read(&book, path, NULL));
    CHECK(book.n == 1 && book.accounts[0].n == 1 && book.accounts[0].entries[0].mu2 == 0.25);
    CHECK(book.accounts[0].entries[0].accounting == FKT_ACCOUNT_GDP && !book.accounts[0].entries[0].reserved);
    CHECK(book.accounts[0].entries[0].when == 0);
    fkt_ledger_book_release(&book);
    CHECK(unlink(path) == 0);
    CHECK_OK(fkt_file_write(old, TWO, strlen(TWO), 1));
    CHECK_OK(fkt_ledger_file_import(path, old, &n));
    CHECK(n == 2);
    CHECK_OK(fkt_ledger_file_read(&book, path, B));
    CHECK(book.n == 1 && book.accounts[0].n == 1 && book.accounts[0].entries[0].reserved);
    CHECK(book.accounts[0].adjacency == FKT_REPLACE_ANY && book.accounts[0].budget_epsilon == 3);
    CHECK(book.accounts[0].entries[0].insecure_seed && book.accounts[0].total.accounting == FKT_ACCOUNT_ZCDP);
    CHECK(book.accounts[0].limit_mu2 == 2 * fkt_privacy_rho(3, 1e-5));
    fkt_ledger_book_release(&book);
    /* and it goes on as it was: the budget is spent, the task is over, sessions are known, a reservation stands */
    c = charge(A, T3, 0.1);
    c.accounting = FKT_ACCOUNT_GDP;
    CHECK_STATUS(fkt_ledger_file_debit(path, &c, NULL), FKT_E_BUDGET);
    c = charge(B, T1, 0.1);
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, S3, NULL), FKT_E_BUDGET);
    c = charge(B, T2, 0.1);
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, S1, NULL), FKT_E_STATE);
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, S2, NULL), FKT_E_STATE);
    CHECK_STATUS(fkt_ledger_file_spend(path, S2), FKT_E_STATE);
    CHECK_OK(fkt_ledger_file_spend(path, S1));
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, S3, NULL), FKT_E_BUDGET);
}

static size_t accounts(void)
{
    struct fkt_ledger_book book;
    size_t n;
    CHECK_OK(fkt_ledger_file_read(&book, path, NULL));
    n = book.n;
    fkt_ledger_book_release(&book);
    return n;
}

static void all_or_nothing(void **state)
{
    (void)state;
    CHECK_OK(import("{\"schema\": \"fedkt.ledger/2\", \"records\": {" BARE(B, SPENT(T1)) "}}"));
    CHECK_STATUS(import(TWO), FKT_E_EXISTS); /* A is new, but B is there */
    CHECK(strstr(fkt_error_text(), "bbbbbbbb...") && strstr(fkt_error_hint(), "nothing was imported"));
    CHECK(accounts() == 1);
    CHECK_OK(import(ONE)); /* other records beside them are fine */
    CHECK(accounts() == 2);
    CHECK_STATUS(import(ONE), FKT_E_EXISTS);
    CHECK(accounts() == 2);
    CHECK_OK(import("{\"schema\": \"fedkt.ledger/2\", \"records\": {}}"));
}

static void damage_is_not_brought_over(void **state)
{
#define L2(entries) "{\"schema\": \"fedkt.ledger/2\", \"records\": {" BARE(A, entries) "}}"
#define E(rest) L2("{\"task_sha256\": \"" T1 "\", \"entropy\": \"operating system\", " rest "}")
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"schema\": \"fedkt.ledger/3\", \"records\": {}}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": 1}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"" A "\": 5}}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"short\": "
        "{\"budget_mu2\": 1, \"adjacency\": \"replace\", "
        "\"entries\": []}}}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"" A "\": {\"adjacency\": \"replace\", \"entries\": []}}}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"" A "\": {\"budget_mu2\": 1, \"entries\": []}}}",
        "{\"schema\": \"fedkt.ledger/2\", \"records\": {\"" A
        "\": {\"budget_mu2\": 1, \"budget_epsilon\": 1, \"adjacency\": \"replace\", \"entries\": []}}}",
        E("\"mu2\": -9"),
        E("\"mu2\": \"x\""),
        E("\"mu2\": 0"),
        E("\"mu2\": 1, \"accounting\": \"other\""),
        E("\"mu2\": 1, \"accounting\": 3"),
        E("\"mu2\": 1, \"state\": \"lost\""),
        E("\"mu2\": 1, \"state\": null"),
        E("\"mu2\": 1, \"state\": \"reserved\""),
        E("\"mu2\": 1, \"session\": \"" S1 "\", \"past\": [7]"),
        E("\"mu2\": 1, \"session\": \"" S1 "\", \"past\": \"" S2 "\""),
        E("\"mu2\": 1, \"past\": [\"" S2 "\"]"),
        E("\"mu2\": 1, \"session\": \"x\""),
        L2("{\"mu2\": 1, \"entropy\": \"operating system\"}"),
        L2("{\"mu2\": 1, \"task_sha256\": \"" T1 "\"}"),
        BARE(A, ""),
        L2(ROUND(S1, "spent", "") ", " ROUND(S1, "spent", "")),       /* one session, twice */
        L2(ROUND(S1, "reserved", "") ", " ROUND(S2, "reserved", "")), /* one task reserved twice */
        L2(ROUND(S1, "spent", "") ", {\"task_sha256\": \"" T1 "\", \"mu2\": 1, \"entropy\": \"operating system\", "
                                  "\"session\": \"" S1 "\"}"), /* one session, two tasks */
        L2(SPENT(T1)) "x",
    };
    (void)state;
    CHECK_STATUS(fkt_ledger_file_import(path, old, NULL), FKT_E_IO);
    CHECK(access(path, F_OK) != 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (import(bad[i]) != FKT_E_FORMAT) fail_msg("%zu: %s: %s", i, bad[i], fkt_error_text());
        CHECK(*fkt_error_hint());
        if (access(path, F_OK) == 0) CHECK(accounts() == 0);
    }
    CHECK_OK(import(L2(SPENT(T1)))); /* and the good one of the same making comes over */
    CHECK(accounts() == 1);
}

/* An old ledger is not quietly started afresh, and an import does not write into it. */
static void the_old_file_stays_as_it_is(void **state)
{
    const struct fkt_ledger_charge c = charge(A, T1, 0.1);
    uint8_t *text = NULL;
    size_t len;
    (void)state;
    CHECK_OK(import(TWO));
    CHECK_STATUS(fkt_ledger_file_reserve(old, &c, S3, NULL), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_hint(), "fedkt ledger import") && strstr(fkt_error_hint(), old));
    CHECK_STATUS(fkt_ledger_file_import(old, old, NULL), FKT_E_FORMAT);
    CHECK_OK(fkt_file_read(&text, &len, old, 1U << 20));
    CHECK(len == strlen(TWO) && !memcmp(text, TWO, len));
    fkt_free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(both_versions_come_over), TEST(all_or_nothing),
                                       TEST(damage_is_not_brought_over), TEST(the_old_file_stays_as_it_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
