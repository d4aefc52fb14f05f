/* SPDX-License-Identifier: Apache-2.0 */
/* A release by one party and its ledger: charged to its dataset to the last draw, whatever the records are; no image in
 * two datasets; and a ledger that is not whole pays nothing. */
#include "base/file.h"
#include "fedkt/ledger.h"
#include "tests/support/bent_ledger.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define T "0000000000000000000000000000000000000000000000000000000000000000"
#define U "1111111111111111111111111111111111111111111111111111111111111111"

static const struct fkt_record_digest images[] = {{{1}}, {{2}}, {{3}}, {{4}}};

static fkt_status debit_images(const char *path, const char *dataset, const struct fkt_record_digest *records, size_t n,
                               double mu, double epsilon, struct fkt_ledger_spent *spent)
{
    return fkt_ledger_file_debit(path,
                                 &(struct fkt_ledger_charge){.dataset = dataset,
                                                             .records = records,
                                                             .n_records = n,
                                                             .task_sha256 = T,
                                                             .mu = mu,
                                                             .budget_epsilon = epsilon,
                                                             .budget_delta = epsilon > 0 ? 1e-5 : 0},
                                 spent);
}

static fkt_status debit(const char *path, const char *dataset, double mu, double epsilon)
{
    return debit_images(path, dataset, NULL, 0, mu, epsilon, NULL);
}

static uint64_t known(const char *path, const char *dataset)
{
    struct fkt_ledger_contents book;
    uint64_t n;
    CHECK_OK(fkt_ledger_file_read(&book, path, dataset));
    n = book.n ? book.accounts[0].records : 0;
    fkt_ledger_contents_clear(&book);
    return n;
}

static void a_second_release_is_refused(void **state)
{
    struct scratch s;
    struct stat sb;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    CHECK_OK(debit(p, "a", 0.5, 0));
    CHECK(stat(p, &sb) == 0 && (sb.st_mode & 0777) == 0600);
    CHECK_STATUS(debit(p, "a", 0.5, 0), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "dataset 'a'"));
    CHECK_OK(debit(p, "b", 0.5, 0));
    CHECK_STATUS(debit(p, "b", 0.5, 0), FKT_E_BUDGET);
    /* a larger budget, in words of (epsilon, delta), pays for a few more */
    CHECK_OK(debit(p, "a", 0.5, 8));
    CHECK_OK(debit(p, "a", 0.5, 0));
    CHECK_STATUS(debit(p, "b", 0.5, 0), FKT_E_BUDGET);
    scratch_release(&s);
}

/* What a release is said to cost with the others is a function of the charges under its name: the same for the same
 * records, one less, none, and others. */
static void the_price_does_not_depend_on_the_records(void **state)
{
    static const struct {
        size_t from, n;
    } second[] = {{0, 3}, {0, 2}, {0, 0}, {3, 1}, {1, 3}};
    struct fkt_ledger_spent first = {0}, spent = {0};
    struct scratch s;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        unlink(p);
        CHECK_OK(debit_images(p, "a", images, 3, 0.5, 8, NULL));
        CHECK_OK(debit_images(p, "a", images + second[i].from, second[i].n, 0.5, 0, &spent));
        if (i == 0) first = spent;
        CHECK(spent.mu2 == first.mu2 && spent.accounting == first.accounting);
        CHECK(known(p, "a") == (second[i].from + second[i].n == 4 ? 4 : 3));
    }
    CHECK_REL(first.mu2, 0.5, 1e-12);
    scratch_release(&s);
}

/* An image that is known under one name cannot be charged to another: all of the charge is refused, and nothing of it
 * is kept. */
static void an_image_has_one_account(void **state)
{
    static const struct fkt_record_digest across[] = {{{1}}, {{3}}};
    char owner[FKT_LEDGER_NAME];
    struct scratch s;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    CHECK_OK(fkt_ledger_file_owner(p, images, 4, owner)); /* no ledger knows nothing, and is not made */
    CHECK(!*owner && access(p, F_OK) != 0);
    CHECK_OK(debit_images(p, "a", images, 2, 0.5, 8, NULL));
    CHECK_STATUS(debit_images(p, "b", images, 4, 0.5, 8, NULL), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "knows 2 of these 4 images under dataset 'a', not under 'b'"));
    CHECK(*fkt_error_hint());
    CHECK(known(p, "b") == 0 && known(p, "a") == 2);
    CHECK_STATUS(debit_images(p, "b", images + 1, 1, 0.5, 8, NULL), FKT_E_BUDGET);
    CHECK_OK(debit_images(p, "b", images + 2, 2, 0.5, 8, NULL));
    CHECK_STATUS(debit_images(p, "a", images + 1, 2, 0.5, 0, NULL), FKT_E_BUDGET);
    CHECK_OK(debit_images(p, "a", images, 2, 0.5, 0, NULL));
    CHECK_STATUS(debit_images(p, "c", across, 2, 0.5, 0, NULL), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_hint(), "each dataset by itself"));
    CHECK_OK(fkt_ledger_file_owner(p, images, 3, owner));
    assert_string_equal(owner, "a");
    CHECK_OK(fkt_ledger_file_owner(p, images + 3, 1, owner));
    assert_string_equal(owner, "b");
    CHECK_OK(fkt_ledger_file_owner(p, images, 0, owner));
    CHECK(!*owner);
    scratch_release(&s);
}

/* Thousands go in and are found by one statement each. */
static void many_images(void **state)
{
    enum { N = 20000 };
    static struct fkt_record_digest many[N];
    struct scratch s;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    for (uint32_t i = 0; i < N; i++) memcpy(&many[i].bytes[5], &i, sizeof i);
    CHECK_OK(debit_images(p, "a", many, N, 0.5, 8, NULL));
    CHECK(known(p, "a") == N);
    CHECK_STATUS(debit_images(p, "b", many + N - 1, 1, 0.5, 0, NULL), FKT_E_BUDGET);
    CHECK_STATUS(debit_images(p, "b", many, N, 0.5, 0, NULL), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "knows 20000 of these 20000"));
    scratch_release(&s);
}

static void names_of_datasets(void **state)
{
    char name[FKT_LEDGER_NAME + 1];
    struct scratch s;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "l");
    memset(name, 'x', sizeof name);
    name[FKT_LEDGER_NAME] = '\0';
    CHECK_STATUS(debit(p, name, 0.5, 0), FKT_E_ARG);
    CHECK_STATUS(debit(p, "", 0.5, 0), FKT_E_ARG);
    CHECK_STATUS(debit(p, "two\nlines", 0.5, 0), FKT_E_ARG);
    CHECK_STATUS(debit(p, "\xff", 0.5, 0), FKT_E_ARG);
    CHECK(access(p, F_OK) != 0);
    name[FKT_LEDGER_NAME - 1] = '\0';
    CHECK_OK(debit(p, name, 0.5, 0));
    CHECK_STATUS(debit(p, name, 0.5, 0), FKT_E_BUDGET);
    CHECK_OK(debit(p,
                   "Thorax, S\xc3\xbc"
                   "d 2024 'A'",
                   0.5, 0));
    scratch_release(&s);
}

static void the_budget_is_kept_to_the_last_draw(void **state)
{
    struct scratch s;
    double mu = 0.4, budget = fkt_privacy_mu(3, 1e-5);
    int allowed = (int)(budget * budget / (mu * mu)), made = 0;
    (void)state;
    scratch_init(&s);
    while (debit(scratch_path(&s, "l"), "a", mu, 3) == FKT_OK) made++;
    CHECK(allowed >= 2 && made == allowed);
    scratch_release(&s);
}

static void a_damaged_ledger_stops_everything(void **state)
{
    /* no ledger at all, and one that was cut */
    static const char *const bad[] = {"", "{", "[]", "SQLite format 3", "{\"schema\": \"other\", \"records\": {}}"};
    struct scratch s;
    const char *p;
    uint8_t *bytes = NULL;
    size_t len = 0;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_OK(fkt_file_write(p, bad[i], strlen(bad[i]), 1));
        CHECK_STATUS(debit(p, "a", 0.5, 0), FKT_E_FORMAT);
        CHECK(*fkt_error_hint());
    }
    CHECK(unlink(p) == 0);
    CHECK_OK(debit_images(p, "a", images, 4, 0.5, 8, NULL));
    CHECK_OK(fkt_file_read(&bytes, &len, p, 1U << 24));
    for (size_t cut = 512; cut < len - 4096; cut += 512) { /* the last page is an index without rows: zeros */
        CHECK_OK(fkt_file_write(p, bytes, cut, 1));
        CHECK_STATUS(debit(p, "a", 0.5, 0), FKT_E_FORMAT);
    }
    for (size_t at = 4096; at < len; at += 4096) { /* a page that a disk gave back as noise */
        uint8_t page[4096];
        memcpy(page, bytes + at, sizeof page);
        memset(bytes + at, 0x5a, sizeof page);
        CHECK_OK(fkt_file_write(p, bytes, len, 1));
        if (debit(p, "a", 0.5, 0) != FKT_E_FORMAT) fail_msg("paid with page %zu of %zu lost", at / 4096, len / 4096);
        memcpy(bytes + at, page, sizeof page);
    }
    CHECK_OK(fkt_file_write(p, bytes, len, 1));
    CHECK_OK(debit(p, "a", 0.5, 0));
    fkt_free(bytes);
    struct fkt_ledger_charge c = {.dataset = "a", .task_sha256 = T, .mu = NAN};
    CHECK_STATUS(fkt_ledger_file_debit(p, &c, NULL), FKT_E_ARG);
    c = (struct fkt_ledger_charge){.dataset = "a", .task_sha256 = T, .mu = 0.5, .budget_epsilon = 1, .budget_delta = 2};
    CHECK_STATUS(fkt_ledger_file_debit(p, &c, NULL), FKT_E_ARG);
    c = (struct fkt_ledger_charge){.dataset = "a", .task_sha256 = "abc", .mu = 0.5};
    CHECK_STATUS(fkt_ledger_file_debit(p, &c, NULL), FKT_E_ARG);
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
        "UPDATE accounts SET dataset = ''",
        "UPDATE records SET account = 77 WHERE digest = (SELECT min(digest) FROM records)",
        "UPDATE records SET digest = x'00' WHERE digest = (SELECT min(digest) FROM records)",
        "DROP TABLE records",
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
        "PRAGMA user_version = 6",
        "PRAGMA user_version = 4",
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
        struct fkt_ledger_contents book;
        unlink(p);
        CHECK_OK(debit_images(p, "a", images, 4, 0.5, 20, NULL));
        CHECK_OK(debit(p, "a", 0.5, 0));
        bend_ledger(p, bends[i]);
        if (debit(p, "a", 0.5, 0) != FKT_E_FORMAT) fail_msg("paid after: %s", bends[i]);
        if (debit(p, "b", 0.5, 0) != FKT_E_FORMAT) fail_msg("paid for others after: %s", bends[i]);
        CHECK(*fkt_error_hint());
        if (fkt_ledger_file_read(&book, p, NULL) != FKT_E_FORMAT) fail_msg("read after: %s", bends[i]);
        CHECK(!book.accounts && book.n == 0);
    }
    scratch_release(&s);
}

/* Sums are of doubles to the last bit: three equal thirds of a budget fit, and are still there after a reopening. */
static void what_is_written_is_read_to_the_bit(void **state)
{
    struct fkt_ledger_contents book;
    struct scratch s;
    const char *p;
    const double mu = 0.1 + 1e-17, mu2 = mu * mu;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.db");
    CHECK_STATUS(fkt_ledger_file_read(&book, p, NULL), FKT_E_IO);
    CHECK_OK(debit(p, "a", mu, 0.7));
    CHECK_OK(debit(p, "b", mu, 0.7));
    CHECK_OK(debit(p, "b", 3 * mu / 7, 0));
    CHECK_OK(fkt_ledger_file_read(&book, p, NULL));
    CHECK(book.n == 2 && book.accounts[0].n == 1 && book.accounts[1].n == 2);
    assert_string_equal(book.accounts[0].dataset, "a");
    CHECK(book.accounts[0].entries[0].mu2 == mu2 && book.accounts[1].entries[0].mu2 == mu2);
    CHECK(book.accounts[1].entries[1].mu2 == 3 * mu / 7 * (3 * mu / 7));
    CHECK(book.accounts[1].budget_epsilon == 0.7 && book.accounts[1].budget_delta == 1e-5);
    CHECK(book.accounts[1].limit_mu2 == fkt_privacy_mu(0.7, 1e-5) * fkt_privacy_mu(0.7, 1e-5));
    CHECK(book.accounts[0].total.mu2 == nextafter(mu2, INFINITY));
    CHECK(book.accounts[0].entries[0].when > 1600000000 && !book.accounts[0].entries[0].reserved);
    assert_string_equal(book.accounts[0].entries[0].task_sha256, T);
    assert_string_equal(book.accounts[0].entries[0].session, "");
    fkt_ledger_contents_clear(&book);
    CHECK_OK(fkt_ledger_file_read(&book, p, "b"));
    CHECK(book.n == 1 && !strcmp(book.accounts[0].dataset, "b"));
    fkt_ledger_contents_clear(&book);
    CHECK_OK(fkt_ledger_file_read(&book, p, "c"));
    CHECK(book.n == 0);
    fkt_ledger_contents_clear(&book);
    scratch_release(&s);
}

/* A release with exact counts costs infinitely much under add-remove: accounts of two adjacencies must not be added. */
static void adjacencies_are_not_mixed(void **state)
{
    struct fkt_ledger_charge c = {.dataset = "a",
                                  .task_sha256 = T,
                                  .adjacency = FKT_ADJACENCY_REPLACE,
                                  .mu = 0.1,
                                  .budget_epsilon = 8,
                                  .budget_delta = 1e-5};
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL));
    CHECK_OK(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL));
    c.adjacency = FKT_ADJACENCY_ADD_REMOVE;
    CHECK_STATUS(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL), FKT_E_BUDGET);
    scratch_release(&s);
}

static void a_link_is_the_ledger_it_points_to(void **state)
{
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_OK(debit(scratch_path(&s, "real"), "a", 0.5, 0));
    CHECK(symlink(scratch_path(&s, "real"), scratch_path(&s, "link")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "link"), "a", 0.5, 0), FKT_E_BUDGET);
    CHECK_OK(debit(scratch_path(&s, "link"), "b", 0.5, 0));
    CHECK_STATUS(debit(scratch_path(&s, "real"), "b", 0.5, 0), FKT_E_BUDGET);
    CHECK(symlink(scratch_path(&s, "nothing"), scratch_path(&s, "dangling")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "dangling"), "b", 0.5, 0), FKT_E_IO);
    CHECK(link(scratch_path(&s, "real"), scratch_path(&s, "second")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "second"), "b", 0.5, 9), FKT_E_IO);
    scratch_release(&s);
}

/* Of all releases of a dataset together, at the task's delta, whatever the budget allows. */
static void an_account_stays_below_the_most_of_a_charge(void **state)
{
    struct fkt_ledger_charge c = {.dataset = "a",
                                  .task_sha256 = T,
                                  .mu = 1,
                                  .delta = 1e-5,
                                  .budget_epsilon = 100,
                                  .budget_delta = 1e-5,
                                  .most_epsilon = fkt_privacy_epsilon(1e-5, 1)};
    struct fkt_ledger_contents book = {0};
    struct fkt_ledger_spent spent;
    struct scratch s;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "most");
    CHECK_OK(fkt_ledger_file_debit(p, &c, &spent)); /* exactly as much */
    CHECK(fabs(spent.mu2 - 1) < 1e-9);
    CHECK_STATUS(fkt_ledger_file_debit(p, &c, &spent), FKT_E_BUDGET);
    CHECK(fabs(spent.mu2 - 2) < 1e-9);
    if (!strstr(fkt_error_text(), "would be too weak to be called private")) fail_msg("%s", fkt_error_text());
    c.task_sha256 = U;
    CHECK_STATUS(fkt_ledger_file_ask(p, &c, &spent), FKT_E_BUDGET);
    CHECK(fabs(spent.mu2 - 2) < 1e-9);
    CHECK_STATUS(fkt_ledger_file_reserve(p, &c, U, NULL), FKT_E_BUDGET);
    CHECK_OK(fkt_ledger_file_read(&book, p, "a"));
    CHECK(book.accounts[0].n == 1);
    fkt_ledger_contents_clear(&book);
    c.budget_epsilon = 3;
    spent.mu2 = 0;
    CHECK_STATUS(fkt_ledger_file_ask(p, &c, &spent), FKT_E_BUDGET); /* by the budget: nothing is said of a sum */
    CHECK(spent.mu2 == 0);
    c.most_epsilon = 0;
    c.budget_epsilon = 100;
    CHECK_OK(fkt_ledger_file_debit(p, &c, NULL));
    c.most_epsilon = 1;
    c.delta = 0;
    CHECK_STATUS(fkt_ledger_file_debit(p, &c, NULL), FKT_E_ARG);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_release_is_refused),
        cmocka_unit_test(an_account_stays_below_the_most_of_a_charge),
        cmocka_unit_test(the_price_does_not_depend_on_the_records),
        cmocka_unit_test(an_image_has_one_account),
        cmocka_unit_test(many_images),
        cmocka_unit_test(names_of_datasets),
        cmocka_unit_test(the_budget_is_kept_to_the_last_draw),
        cmocka_unit_test(a_damaged_ledger_stops_everything),
        cmocka_unit_test(bent_rows_stop_everything),
        cmocka_unit_test(what_is_written_is_read_to_the_bit),
        cmocka_unit_test(adjacencies_are_not_mixed),
        cmocka_unit_test(a_link_is_the_ledger_it_points_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
