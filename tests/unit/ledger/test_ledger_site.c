/* SPDX-License-Identifier: Apache-2.0 */
/* The two steps of a site's account: what is reserved counts and stands, a task is spent once, a session is used once,
 * kill -9 leaves the file whole. */
#include "fedkt/advanced/privacy.h"
#include "fedkt/ledger.h"
#include "tests/support/bent_ledger.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define A "scans of ward A"
#define B "scans of ward B"
#define T1 "1111111111111111111111111111111111111111111111111111111111111111"
#define T2 "2222222222222222222222222222222222222222222222222222222222222222"
#define T3 "3333333333333333333333333333333333333333333333333333333333333333"

static const struct fkt_record_digest images[] = {{{1}}, {{2}}};

static struct scratch dir;
static const char *path;

static int set_up(void **state)
{
    (void)state;
    scratch_init(&dir);
    path = scratch_path(&dir, "ledger.db");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_release(&dir);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

static const char *session(unsigned i)
{
    static char text[4][FKT_SHA256_HEX];
    static int at;
    char *s = text[at++ % 4];
    snprintf(s, FKT_SHA256_HEX, "%064x", i);
    return s;
}

static struct fkt_ledger_charge charge(const char *task, double mu, double epsilon)
{
    return (struct fkt_ledger_charge){.dataset = A,
                                      .task_sha256 = task,
                                      .mu = mu,
                                      .budget_epsilon = epsilon,
                                      .budget_delta = epsilon > 0 ? 1e-5 : 0,
                                      .accounting = FKT_ACCOUNTING_ZCDP};
}

static fkt_status reserve(const char *task, double mu, double epsilon, unsigned i)
{
    const struct fkt_ledger_charge c = charge(task, mu, epsilon);
    return fkt_ledger_file_reserve(path, &c, session(i), NULL);
}

/* How many entries the ledger holds in `state` ("reserved", "spent"); NULL: in all. */
static size_t count(const char *where)
{
    struct fkt_ledger_contents book;
    size_t n = 0;
    CHECK_OK(fkt_ledger_file_read(&book, path, NULL));
    for (size_t a = 0; a < book.n; a++)
        for (size_t i = 0; i < book.accounts[a].n; i++)
            n += !where || book.accounts[a].entries[i].reserved == !strcmp(where, "reserved");
    fkt_ledger_contents_clear(&book);
    return n;
}

static enum fkt_ledger_session stands(unsigned i, const char *task, const char *dataset)
{
    enum fkt_ledger_session s = (enum fkt_ledger_session)9;
    CHECK_OK(fkt_ledger_file_session(path, session(i), task, dataset, &s));
    return s;
}

static void reserved_then_spent(void **state)
{
    (void)state;
    CHECK_STATUS(fkt_ledger_file_spend(path, session(1)), FKT_E_STATE);
    CHECK_OK(reserve(T1, 0.3, 0, 1));
    CHECK(count("reserved") == 1 && count("spent") == 0);
    CHECK_STATUS(reserve(T1, 0.3, 0, 1), FKT_E_STATE); /* the same session twice */
    CHECK_STATUS(fkt_ledger_file_spend(path, session(2)), FKT_E_STATE);
    CHECK_OK(fkt_ledger_file_spend(path, session(1)));
    CHECK(count("reserved") == 0 && count("spent") == 1);
    CHECK_STATUS(fkt_ledger_file_spend(path, session(1)), FKT_E_STATE);
    CHECK_STATUS(reserve(T1, 0.3, 0, 1), FKT_E_STATE);
    CHECK_STATUS(reserve(T1, 0.3, 0, 2), FKT_E_BUDGET); /* the first was the whole budget */
    CHECK(count(NULL) == 1);
}

static void a_new_round_of_the_same_task_takes_over(void **state)
{
    (void)state;
    CHECK_OK(reserve(T1, 0.3, 0, 1));
    CHECK_OK(reserve(T1, 0.3, 0, 2)); /* the first one's keys are gone */
    CHECK(count("reserved") == 1);
    CHECK_STATUS(fkt_ledger_file_spend(path, session(1)), FKT_E_STATE);
    CHECK_STATUS(reserve(T2, 0.3, 0, 3), FKT_E_BUDGET); /* another task pays for itself */
    CHECK(strstr(fkt_error_hint(), "reserved for a task that has no release here") &&
          !strstr(fkt_error_hint(), "sample more"));
    CHECK_OK(fkt_ledger_file_spend(path, session(2)));
    CHECK(count("reserved") == 0 && count("spent") == 1);
}

/* The first round's vector may be in a total all the same: a later round that asks for less does not make it cheaper,
 * and neither its accounting nor where its noise came from gets better. */
static void what_is_taken_over_counts_in_full(void **state)
{
    struct fkt_ledger_charge c = charge(T1, 0.001, 10);
    struct fkt_ledger_spent spent = {0};
    struct fkt_ledger_contents book;
    (void)state;
    c.accounting = FKT_ACCOUNTING_GDP;
    CHECK_OK(reserve(T1, 1, 10, 1));
    CHECK_OK(fkt_ledger_file_ask(path, &c, &spent));
    CHECK_NEAR(spent.mu2, 1, 1e-9);
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(2), &spent));
    CHECK_NEAR(spent.mu2, 1, 1e-9);
    CHECK(spent.accounting == FKT_ACCOUNTING_ZCDP && count(NULL) == 1);
    c.mu = 1.25;
    c.insecure_seed = 1;
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(3), &spent));
    c.mu = 0.5;
    c.insecure_seed = 0;
    c.delta = 1e-6;
    c.task_name = "chest-xray";
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(4), &spent));
    CHECK_OK(fkt_ledger_file_spend(path, session(4)));
    CHECK_OK(fkt_ledger_file_read(&book, path, A));
    CHECK(book.n == 1 && book.accounts[0].n == 1 && book.accounts[0].entries[0].insecure_seed);
    CHECK(book.accounts[0].entries[0].accounting == FKT_ACCOUNTING_ZCDP);
    CHECK(book.accounts[0].entries[0].delta == 1e-6);
    assert_string_equal(book.accounts[0].entries[0].task_name, "chest-xray");
    CHECK(book.accounts[0].entries[0].mu2 == 1.25 * 1.25); /* to the bit, however often it is taken over */
    fkt_ledger_contents_clear(&book);
}

/* Others may hold this site's numbers in a total of that task already: a second one is never free, and never cheap. */
static void a_task_that_was_spent_is_over(void **state)
{
    struct fkt_ledger_charge c = charge(T1, 0.3, 10);
    (void)state;
    CHECK_OK(reserve(T1, 0.3, 10, 1)); /* epsilon 10 would hold dozens */
    CHECK_OK(fkt_ledger_file_spend(path, session(1)));
    CHECK_STATUS(reserve(T1, 0.3, 10, 2), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "spent") && strstr(fkt_error_hint(), "is a new task"));
    CHECK_STATUS(reserve(T1, 0.3, 100, 2), FKT_E_BUDGET); /* whatever the budget */
    c.dataset = B;
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(2), NULL), FKT_E_BUDGET); /* whichever the records */
    CHECK(count(NULL) == 1);
    CHECK_OK(reserve(T2, 0.3, 0, 2));
    CHECK_OK(fkt_ledger_file_spend(path, session(2)));
    c.task_sha256 = T3;
    CHECK_OK(fkt_ledger_file_debit(path, &c, NULL)); /* spent at once, and in one place: the same rule */
    CHECK_STATUS(reserve(T3, 0.3, 0, 3), FKT_E_BUDGET);
}

/* Two sets of records stand ready for one task: whichever reveals first, the other may not any more. */
static void two_accounts_do_not_spend_one_task(void **state)
{
    struct fkt_ledger_charge c = charge(T1, 0.3, 0);
    (void)state;
    CHECK_OK(reserve(T1, 0.3, 0, 1));
    c.dataset = B;
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(2), NULL));
    CHECK_OK(fkt_ledger_file_spend(path, session(2)));
    CHECK_STATUS(fkt_ledger_file_spend(path, session(1)), FKT_E_BUDGET);
    CHECK(count("spent") == 1 && count("reserved") == 1);
}

static void a_session_is_known_for_ever(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 5; i++) CHECK_OK(reserve(T1, 0.1, 10, i));
    for (unsigned i = 1; i <= 5; i++) CHECK_STATUS(reserve(T1, 0.1, 10, i), FKT_E_STATE);
    for (unsigned i = 1; i <= 5; i++) CHECK_STATUS(reserve(T2, 0.1, 10, i), FKT_E_STATE); /* for any task */
    for (unsigned i = 1; i <= 4; i++) CHECK_STATUS(fkt_ledger_file_spend(path, session(i)), FKT_E_STATE);
    CHECK(count(NULL) == 1);
    CHECK_OK(fkt_ledger_file_spend(path, session(5)));
    for (unsigned i = 1; i <= 5; i++) CHECK_STATUS(reserve(T2, 0.1, 10, i), FKT_E_STATE);
}

static void a_task_has_64_rounds(void **state)
{
    struct fkt_ledger_charge c = charge(T1, 0.1, 10);
    (void)state;
    for (unsigned i = 0; i < FKT_LEDGER_ROUNDS; i++) {
        c.dataset = i % 2 ? A : B; /* counted over all accounts */
        CHECK_OK(fkt_ledger_file_reserve(path, &c, session(i), NULL));
    }
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(100), NULL), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "64 rounds") && *fkt_error_hint());
    CHECK_OK(reserve(T2, 0.1, 10, 100));
    CHECK_OK(fkt_ledger_file_spend(path, session(FKT_LEDGER_ROUNDS - 1)));
}

static void reservations_count_against_the_budget(void **state)
{
    const double mu = 0.05, all = 2 * fkt_privacy_rho(1, 1e-5);
    const unsigned fit = (unsigned)(all / (mu * mu));
    (void)state;
    for (unsigned i = 0; i < fit; i++) {
        char task[FKT_SHA256_HEX];
        snprintf(task, sizeof task, "%064x", 1000 + i);
        CHECK_OK(reserve(task, mu, 1, i));
        if (i % 2) CHECK_OK(fkt_ledger_file_spend(path, session(i)));
    }
    CHECK(fit == 24 && count(NULL) == fit);
    CHECK_STATUS(reserve(T1, mu, 1, 99), FKT_E_BUDGET);
    CHECK_STATUS(reserve(T1, mu, 0, 99), FKT_E_BUDGET);
    CHECK_OK(reserve(T1, mu, 2, 99)); /* what is reserved stands: only a larger total makes room */
}

/* The Gaussian formula would let 28 through; one charge in zCDP makes it 24, whatever the others are. */
static void accountings_are_mixed_on_the_safe_side(void **state)
{
    struct fkt_ledger_charge c = charge(T1, 0.05, 1);
    struct fkt_ledger_spent spent = {0};
    const double gdp = fkt_privacy_mu(1, 1e-5);
    unsigned made = 0;
    (void)state;
    c.accounting = FKT_ACCOUNTING_GDP;
    while (fkt_ledger_file_debit(path, &c, &spent) == FKT_OK) {
        CHECK(spent.accounting == FKT_ACCOUNTING_GDP);
        made++;
    }
    CHECK(made == 28 && made == (unsigned)(gdp * gdp / 0.0025));
    CHECK_REL(fkt_ledger_epsilon(1e-5, &spent), fkt_privacy_epsilon(1e-5, sqrt(made * 0.0025)), 1e-9);
    CHECK_STATUS(reserve(T2, 0.05, 0, 1), FKT_E_BUDGET);
    CHECK(unlink(path) == 0);
    for (made = 0; made < 10; made++) CHECK_OK(fkt_ledger_file_debit(path, &c, NULL));
    c.accounting = FKT_ACCOUNTING_ZCDP;
    c.task_sha256 = T2;
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(1), &spent));
    CHECK(spent.accounting == FKT_ACCOUNTING_ZCDP);
    CHECK_REL(spent.mu2, 11 * 0.0025, 1e-12);
    CHECK_REL(fkt_ledger_epsilon(1e-5, &spent), fkt_privacy_epsilon_zcdp(1e-5, 11 * 0.0025 / 2), 1e-9);
    c.accounting = FKT_ACCOUNTING_GDP;
    for (made = 11; fkt_ledger_file_debit(path, &c, NULL) == FKT_OK;) made++;
    CHECK(made == 24);
}

/* Without (epsilon, delta) there is no way to turn one accounting into the other. */
static void a_bare_budget_keeps_to_one_accounting(void **state)
{
    struct fkt_ledger_charge c = charge(T2, 0.5, 0);
    (void)state;
    c.accounting = FKT_ACCOUNTING_GDP;
    CHECK_OK(fkt_ledger_file_debit(path, &c, NULL));
    bend_ledger(path, "UPDATE accounts SET budget_mu2 = 100.0");
    c = charge(T1, 0.5, 0);
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(1), NULL), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "accounting") && *fkt_error_hint());
    c.accounting = FKT_ACCOUNTING_GDP;
    CHECK_OK(fkt_ledger_file_debit(path, &c, NULL));
    c = charge(T3, 0.5, 20);
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(1), NULL));
    CHECK_OK(fkt_ledger_file_spend(path, session(1)));
}

/* A reservation may be in a total, so its images belong to its dataset from then on. */
static void reserved_images_have_one_account(void **state)
{
    struct fkt_ledger_charge c = charge(T1, 0.1, 9);
    char owner[FKT_LEDGER_NAME];
    (void)state;
    c.records = images;
    c.n_records = 1;
    CHECK_OK(fkt_ledger_file_ask(path, &c, NULL));
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(1), NULL));
    c.dataset = B;
    c.task_sha256 = T2;
    c.n_records = 2;
    CHECK_STATUS(fkt_ledger_file_ask(path, &c, NULL), FKT_E_BUDGET);
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(2), NULL), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "knows 1 of these 2 images under dataset '" A "'"));
    CHECK_STATUS(fkt_ledger_file_debit(path, &c, NULL), FKT_E_BUDGET);
    CHECK(count(NULL) == 1);
    c.dataset = A;
    CHECK_OK(fkt_ledger_file_ask(path, &c, NULL)); /* to ask tells the ledger of no image */
    CHECK_OK(fkt_ledger_file_owner(path, images + 1, 1, owner));
    CHECK(!*owner);
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(2), NULL));
    CHECK_OK(fkt_ledger_file_owner(path, images + 1, 1, owner));
    assert_string_equal(owner, A);
    CHECK(count("reserved") == 2);
}

static void nonsense_and_damage_are_refused(void **state)
{
    static const char *const bends[] = {
        "UPDATE entries SET accounting = 'other'",
        "UPDATE entries SET state = 'lost'",
        "UPDATE entries SET session = NULL",
        "UPDATE entries SET mu2 = -0.1",
        "UPDATE entries SET session = '" T2 "'",
        "UPDATE sessions SET task = 7",
        "DELETE FROM sessions",
        "INSERT INTO entries SELECT 9, account, task, mu2, accounting, 'spent', 'abc', 0, 0, NULL, NULL FROM entries",
    };
    struct fkt_ledger_charge c = charge(T1, 0.3, 0);
    (void)state;
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, "abc", NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_ledger_file_spend(path, T1 "0"), FKT_E_ARG);
    c.dataset = "";
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(1), NULL), FKT_E_ARG);
    c = charge(T1, NAN, 0);
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(1), NULL), FKT_E_ARG);
    c = charge(T1, 0.3, -1);
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(1), NULL), FKT_E_ARG);
    c = charge("T1", 0.3, 0);
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(1), NULL), FKT_E_ARG);
    c = charge(T1, 0.3, 0);
    c.accounting = (enum fkt_accounting)7;
    CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(1), NULL), FKT_E_ARG);
    CHECK(access(path, F_OK) != 0);
    for (size_t i = 0; i < sizeof bends / sizeof *bends; i++) {
        unlink(path);
        CHECK_OK(reserve(T1, 0.1, 9, 1));
        bend_ledger(path, bends[i]);
        CHECK_STATUS(reserve(T1, 0.3, 0, 2), FKT_E_FORMAT);
        CHECK(strstr(fkt_error_hint(), "backup"));
        c = charge(T1, 0.3, 0);
        c.dataset = B; /* another account's damage may hide that the task is spent */
        CHECK_STATUS(fkt_ledger_file_reserve(path, &c, session(2), NULL), FKT_E_FORMAT);
        CHECK_STATUS(fkt_ledger_file_spend(path, session(1)), FKT_E_FORMAT);
        CHECK_STATUS(fkt_ledger_file_ask(path, &c, NULL), FKT_E_FORMAT);
        enum fkt_ledger_session s;
        CHECK_STATUS(fkt_ledger_file_session(path, session(1), T1, A, &s), FKT_E_FORMAT);
        CHECK(s == FKT_LEDGER_SESSION_UNKNOWN);
    }
}

/* Whoever resumes after a crash learns what the ledger had said. */
static void how_a_session_stands(void **state)
{
    enum fkt_ledger_session s;
    (void)state;
    CHECK(stands(1, T1, A) == FKT_LEDGER_SESSION_UNKNOWN);
    CHECK_STATUS(fkt_ledger_file_session(path, "abc", T1, A, &s), FKT_E_ARG);
    CHECK(access(path, F_OK) != 0); /* asking makes no ledger */
    CHECK_OK(reserve(T1, 0.1, 9, 1));
    CHECK(stands(1, T1, A) == FKT_LEDGER_SESSION_RESERVED);
    CHECK(stands(1, T2, A) == FKT_LEDGER_SESSION_UNKNOWN && stands(1, T1, B) == FKT_LEDGER_SESSION_UNKNOWN);
    CHECK(stands(2, T1, A) == FKT_LEDGER_SESSION_UNKNOWN);
    CHECK_OK(reserve(T1, 0.1, 9, 2));
    CHECK(stands(1, T1, A) == FKT_LEDGER_SESSION_UNKNOWN &&
          stands(2, T1, A) == FKT_LEDGER_SESSION_RESERVED); /* taken over */
    CHECK_OK(fkt_ledger_file_spend(path, session(2)));
    CHECK(stands(2, T1, A) == FKT_LEDGER_SESSION_SPENT && stands(2, T2, A) == FKT_LEDGER_SESSION_UNKNOWN);
    CHECK(count(NULL) == 1);
}

/* What a reservation would be told, and nothing changes; again and again. */
static void asking_changes_nothing(void **state)
{
    struct fkt_ledger_charge c = charge(T1, 0.1, 1), other;
    struct fkt_ledger_spent asked = {0}, got = {0};
    (void)state;
    CHECK_OK(fkt_ledger_file_ask(path, &c, &asked));
    CHECK(access(path, F_OK) != 0);
    CHECK_REL(asked.mu2, 0.01, 1e-12);
    CHECK_OK(fkt_ledger_file_reserve(path, &c, session(1), &got));
    CHECK(got.mu2 == asked.mu2 && got.accounting == asked.accounting);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fkt_ledger_file_ask(path, &c, &asked)); /* the same task would take it over */
        CHECK(asked.mu2 == got.mu2);
        other = charge(T2, 0.1, 0);
        CHECK_OK(fkt_ledger_file_ask(path, &other, &asked));
        CHECK_REL(asked.mu2, 0.02, 1e-12);
        other = charge(T2, 5, 0);
        CHECK_STATUS(fkt_ledger_file_ask(path, &other, NULL), FKT_E_BUDGET);
        other = charge(T2, 5, 100); /* a larger total is asked about, not set */
        CHECK_OK(fkt_ledger_file_ask(path, &other, NULL));
        CHECK(count("reserved") == 1 && stands(1, T1, A) == FKT_LEDGER_SESSION_RESERVED);
    }
    other = charge(T2, 5, 0);
    CHECK_STATUS(fkt_ledger_file_ask(path, &other, NULL), FKT_E_BUDGET);
    CHECK_OK(fkt_ledger_file_spend(path, session(1)));
    CHECK_STATUS(fkt_ledger_file_ask(path, &c, NULL), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "spent task"));
    for (unsigned i = 0; i < FKT_LEDGER_ROUNDS; i++) CHECK_OK(reserve(T3, 0.1, 0, 100 + i));
    c = charge(T3, 0.1, 0);
    CHECK_STATUS(fkt_ledger_file_ask(path, &c, NULL), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "64 rounds"));
    c.dataset = "";
    CHECK_STATUS(fkt_ledger_file_ask(path, &c, NULL), FKT_E_ARG);
}

static void child_runs(int to, unsigned first)
{
    for (unsigned i = first;; i++) {
        char task[FKT_SHA256_HEX];
        snprintf(task, sizeof task, "%064x", i - (i % 3 == 1)); /* one of three is left, the next takes it over */
        if (reserve(task, 0.001, 100, i) != FKT_OK || write(to, "r", 1) != 1) _exit(1);
        if (i % 3 == 0) continue;
        if (fkt_ledger_file_spend(path, session(i)) != FKT_OK || write(to, "s", 1) != 1) _exit(1);
    }
}

/* Reads what the child told, one letter a step; -1: until it is gone. How many of it were 's'. */
static size_t hear(int from, int messages)
{
    size_t spent = 0;
    char c;
    for (; messages != 0 && read(from, &c, 1) == 1; messages--) spent += c == 's';
    return spent;
}

/* Kills a child that reserves, takes over and spends without end; what it was told to be on disk must be there. The
 * kill comes a few steps in, and then at any moment of a step. */
static void kill_9_leaves_the_ledger_whole(void **state)
{
    size_t spent = 0;
    unsigned seed = 1;
    (void)state;
    CHECK_OK(reserve(T1, 0.001, 100, 999999));
    for (unsigned round = 0; round < 25; round++) {
        int pipes[2], status = 0;
        CHECK(pipe(pipes) == 0);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) child_runs(pipes[1], 1000 * (round + 1));
        close(pipes[1]);
        size_t told = hear(pipes[0], 2 + (int)round % 6);
        seed = seed * 1103515245U + 12345U;
        nanosleep(&(struct timespec){.tv_nsec = (long)(seed >> 8) % 2000000}, NULL);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status)); /* and no step had failed */
        told += hear(pipes[0], -1);
        close(pipes[0]);
        const size_t now = count("spent");
        if (!(now == spent + told || now == spent + told + 1))
            fail_msg("round %u: %zu spent on disk, %zu before and %zu since", round, now, spent, told);
        CHECK(count("reserved") <= round + 2); /* one of each that was killed, and the first */
        spent = now;
    }
    CHECK(spent >= 20);
}

/* Many at once: the lock lets exactly as many through as the budget holds. */
static void parallel_reservations_do_not_pass_the_budget(void **state)
{
    pid_t child[8];
    int passed = 0;
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        child[i] = fork();
        CHECK(child[i] >= 0);
        if (child[i] == 0) {
            char task[FKT_SHA256_HEX];
            snprintf(task, sizeof task, "%064x", i);
            const fkt_status st = reserve(task, 0.14, 1, i); /* three of them fit epsilon 1 */
            _exit(st == FKT_OK ? 0 : st == FKT_E_BUDGET ? 3 : 1);
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        int status = 0;
        CHECK(waitpid(child[i], &status, 0) == child[i] && WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3);
        passed += WEXITSTATUS(status) == 0;
    }
    CHECK(passed == 3 && count("reserved") == 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* Everything that shows from outside: names, modes, times and lengths of all that lies in the folder. Where there is a
 * log, SQLite notes its readers in the log's index: no time for that one. */
static void look_around(char out[1024])
{
    struct dirent **names;
    const int n = scandir(dir.dir, &names, NULL, alphasort);
    size_t at = 0;
    CHECK(n > 2);
    for (int i = 0; i < n; i++) {
        struct stat sb;
        char name[512];
        snprintf(name, sizeof name, "%s/%s", dir.dir, names[i]->d_name);
        CHECK(stat(name, &sb) == 0);
        if (strstr(name, "-shm")) sb.st_mtim = (struct timespec){0};
        if (strcmp(names[i]->d_name, "..") != 0)
            at +=
                (size_t)snprintf(out + at, 1024 - at, "%s %o %lld %lld.%09ld\n", names[i]->d_name, (unsigned)sb.st_mode,
                                 (long long)sb.st_size, (long long)sb.st_mtim.tv_sec, sb.st_mtim.tv_nsec);
        free(names[i]);
    }
    free(names);
}

/* To ask and to read leaves no trace, whatever the name and the mode of the file, or a log that somebody left. */
static void asking_touches_nothing(void **state)
{
    const struct fkt_ledger_charge c = charge(T1, 0.3, 0), other = charge(T2, 0.3, 5);
    struct fkt_ledger_contents book;
    char before[1024], after[1024];
    (void)state;
    path = scratch_path(&dir, "a ledger #1?%41.db");
    CHECK_OK(reserve(T1, 0.3, 0, 1));
    CHECK(chmod(path, 0640) == 0);
    for (int i = 0; i < 2; i++) {
        look_around(before);
        CHECK_OK(fkt_ledger_file_ask(path, &c, NULL));
        CHECK_OK(fkt_ledger_file_ask(path, &other, NULL));
        CHECK_OK(fkt_ledger_file_read(&book, path, NULL));
        CHECK(book.n == 1 && book.accounts[0].n == 1u + (unsigned)i);
        fkt_ledger_contents_clear(&book);
        look_around(after);
        assert_string_equal(after, before);
        if (i == 0) { /* one that was killed left its log, and what is in it counts */
            const pid_t child = fork();
            int status;
            if (child == 0) {
                sqlite3 *h = NULL; /* stays open: the last one to close the file would tidy up */
                if (sqlite3_open(path, &h) != SQLITE_OK) _exit(1);
                if (sqlite3_exec(h, "SELECT count(*) FROM entries", NULL, NULL, NULL) != SQLITE_OK) _exit(1);
                _exit(reserve(T2, 0.3, 5, 2) == FKT_OK ? 0 : 1);
            }
            CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
    }
    path = scratch_path(&dir, "ledger.db");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reserved_then_spent),
        TEST(a_new_round_of_the_same_task_takes_over),
        TEST(what_is_taken_over_counts_in_full),
        TEST(a_task_that_was_spent_is_over),
        TEST(two_accounts_do_not_spend_one_task),
        TEST(a_session_is_known_for_ever),
        TEST(a_task_has_64_rounds),
        TEST(reservations_count_against_the_budget),
        TEST(accountings_are_mixed_on_the_safe_side),
        TEST(a_bare_budget_keeps_to_one_accounting),
        TEST(reserved_images_have_one_account),
        TEST(nonsense_and_damage_are_refused),
        TEST(how_a_session_stands),
        TEST(asking_changes_nothing),
        TEST(asking_touches_nothing),
        TEST(kill_9_leaves_the_ledger_whole),
        TEST(parallel_reservations_do_not_pass_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
