/* SPDX-License-Identifier: Apache-2.0 */
/* test_personal_split.c - who trains on what and who is evaluated on what: every record once, shares as promised, no
 * class evaluated that was not trained on. */
#include "learning/personal.h"

#include "base/rng.h"
#include "tests/support/check.h"

enum { N = 2000, K = 7, SITES = 11, N_TEST = 500 };

static uint32_t label[N], test_label[N_TEST];
static uint64_t key[N];

static void uneven_labels(uint32_t *out, size_t n, uint64_t seed)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, seed, 0);
    for (size_t i = 0; i < n; i++) {
        uint64_t a = fkt_rng_below(&rng, K), b = fkt_rng_below(&rng, K);
        out[i] = (uint32_t)(a < b ? a : b);
    }
}

static struct fkt_partition_spec dirichlet(double alpha, uint64_t seed)
{
    return (struct fkt_partition_spec){.rule = FKT_PARTITION_DIRICHLET, .alpha = alpha, .sites = SITES, .seed = seed};
}

static size_t count(const struct fkt_personal_part *p, const uint32_t *of, uint32_t site, uint32_t k)
{
    size_t n = 0;
    for (size_t i = p->start[site]; i < p->start[site + 1]; i++) n += of[p->record[i]] == k;
    return n;
}

/* No record is there twice; gives how many there are. */
static size_t check_once(const struct fkt_personal_part *a, const struct fkt_personal_part *b, uint32_t sites, size_t n)
{
    uint8_t *seen = NULL;
    size_t total = a->start[sites] + (b ? b->start[sites] : 0);
    CHECK_OK(fkt_alloc(&seen, n));
    assert_int_equal(a->start[0], 0);
    for (size_t i = 0; i < total; i++) {
        size_t record = i < a->start[sites] ? a->record[i] : b->record[i - a->start[sites]];
        CHECK(record < n);
        CHECK(!seen[record]);
        seen[record] = 1;
    }
    fkt_free(seen);
    return total;
}

/* The rule, said again and counted: min(round(share * n), n - 1) of the n records of a class at a site. */
static void own_records_by_class(void **state)
{
    static const double shares[] = {0, 0.25, 0.5, 0.9, 0.999};
    const struct fkt_personal_labels data = {label, N, K};
    uint32_t *owner = NULL;
    (void)state;
    CHECK_OK(fkt_alloc(&owner, N));
    for (size_t j = 0; j < sizeof shares / sizeof *shares; j++) {
        struct fkt_partition_spec p = dirichlet(0.1, 3 + j);
        struct fkt_personal_split s;
        size_t singles = 0;
        CHECK_OK(fkt_partition(owner, label, key, N, K, &p));
        CHECK_OK(fkt_personal_split_init(&s, &data, NULL, &p, shares[j], 5));
        assert_int_equal(s.sites, SITES);
        assert_int_equal(check_once(&s.train, &s.test, SITES, N), N);
        for (uint32_t site = 0; site < SITES; site++)
            for (uint32_t k = 0; k < K; k++) {
                size_t held = 0, train = count(&s.train, label, site, k), test = count(&s.test, label, site, k);
                for (size_t i = 0; i < N; i++) held += owner[i] == site && label[i] == k;
                size_t want = (size_t)floor(shares[j] * (double)held + 0.5);
                if (want >= held && held) want = held - 1;
                assert_int_equal(train + test, held);
                assert_int_equal(test, want);
                singles += held == 1;
            }
        CHECK(j != 1 || singles > 0);                 /* the case of one record was there at all */
        for (uint32_t site = 0; site < SITES; site++) /* in the order of the pool */
            for (size_t i = s.train.start[site]; i + 1 < s.train.start[site + 1]; i++)
                CHECK(s.train.record[i] < s.train.record[i + 1]);
        fkt_personal_split_clear(&s);
    }
    fkt_free(owner);
}

/* Each class of the test pool in proportion: a site with a share x of a class is evaluated on floor or ceil of x *
 * n. */
static void test_set_follows_the_sites(void **state)
{
    const struct fkt_personal_labels data = {label, N, K}, test = {test_label, N_TEST, K};
    struct fkt_partition_spec p = dirichlet(0.3, 1);
    struct fkt_personal_split s;
    (void)state;
    CHECK_OK(fkt_personal_split_init(&s, &data, &test, &p, NAN /* has no say here */, 5));
    assert_int_equal(check_once(&s.train, NULL, SITES, N), N);
    assert_int_equal(check_once(&s.test, NULL, SITES, N_TEST), N_TEST);
    for (uint32_t k = 0; k < K; k++) {
        size_t all = 0, tests = 0;
        for (size_t i = 0; i < N; i++) all += label[i] == k;
        for (size_t i = 0; i < N_TEST; i++) tests += test_label[i] == k;
        for (uint32_t site = 0; site < SITES; site++) {
            size_t train = count(&s.train, label, site, k), got = count(&s.test, test_label, site, k);
            CHECK_NEAR((double)got, (double)tests * (double)train / (double)all, 1);
            CHECK(train || !got); /* nobody is evaluated on a class it does not hold */
        }
    }
    fkt_personal_split_clear(&s);
}

static void a_class_that_nobody_holds_is_not_evaluated(void **state)
{
    static const uint32_t two[] = {0, 0, 1, 1}, three[] = {0, 1, 2, 2, 1, 0};
    const struct fkt_personal_labels data = {two, 4, 3}, test = {three, 6, 3};
    const struct fkt_partition_spec p = {.rule = FKT_PARTITION_IID, .sites = 2, .seed = 1};
    struct fkt_personal_split s;
    (void)state;
    CHECK_OK(fkt_personal_split_init(&s, &data, &test, &p, 0, 1));
    assert_int_equal(check_once(&s.test, NULL, 2, 6), 4);
    for (uint32_t site = 0; site < 2; site++) assert_int_equal(count(&s.test, three, site, 2), 0);
    fkt_personal_split_clear(&s);
}

static int same(const struct fkt_personal_split *a, const struct fkt_personal_split *b)
{
    return !memcmp(a->train.start, b->train.start, (SITES + 1) * sizeof(size_t)) &&
           !memcmp(a->train.record, b->train.record, a->train.start[SITES] * sizeof(size_t)) &&
           !memcmp(a->test.record, b->test.record, a->test.start[SITES] * sizeof(size_t));
}

/* The seed moves records between training and evaluating, and none from site to site. */
static void seeds_decide(void **state)
{
    const struct fkt_personal_labels data = {label, N, K};
    const struct fkt_partition_spec p = dirichlet(1, 1);
    struct fkt_personal_split a, b, c;
    (void)state;
    CHECK_OK(fkt_personal_split_init(&a, &data, NULL, &p, 0.25, 5));
    CHECK_OK(fkt_personal_split_init(&b, &data, NULL, &p, 0.25, 5));
    CHECK_OK(fkt_personal_split_init(&c, &data, NULL, &p, 0.25, 6));
    CHECK(same(&a, &b));
    CHECK(!same(&a, &c));
    assert_memory_equal(a.train.start, c.train.start, (SITES + 1) * sizeof(size_t));
    assert_memory_equal(a.test.start, c.test.start, (SITES + 1) * sizeof(size_t));
    fkt_personal_split_clear(&a);
    fkt_personal_split_clear(&b);
    fkt_personal_split_clear(&c);
}

/* Sites do not hold out the same places; of a test pool the seed chooses the records. Seeds are fixed; of others, one
 * in 10^7 would agree by chance. */
static void chance_is_each_ones_own(void **state)
{
    static uint32_t one_class[80];
    const struct fkt_personal_labels data = {one_class, 80, 1}, test = {one_class, 40, 1};
    const struct fkt_partition_spec p = {.rule = FKT_PARTITION_IID, .sites = 2, .seed = 1};
    uint8_t place[2][80] = {{0}};
    size_t least = 80;
    struct fkt_personal_split a, b;
    (void)state;
    CHECK_OK(fkt_personal_split_init(&a, &data, NULL, &p, 0.5, 5));
    for (uint32_t site = 0; site < 2; site++) { /* train and test, merged, are the site's records in order */
        size_t i = a.train.start[site], j = a.test.start[site], n = 0;
        while (i < a.train.start[site + 1] || j < a.test.start[site + 1]) {
            int held =
                i == a.train.start[site + 1] || (j < a.test.start[site + 1] && a.test.record[j] < a.train.record[i]);
            CHECK(n < 80);
            place[site][n++] = (uint8_t)held;
            i += !held;
            j += held;
        }
        if (n < least) least = n;
    }
    CHECK(least >= 25);
    CHECK(memcmp(place[0], place[1], least) != 0);
    fkt_personal_split_clear(&a);
    CHECK_OK(fkt_personal_split_init(&a, &data, &test, &p, 0, 5));
    CHECK_OK(fkt_personal_split_init(&b, &data, &test, &p, 0, 6));
    CHECK(a.test.start[1] >= 12 && b.test.start[1] == a.test.start[1]);
    CHECK(memcmp(a.test.record, b.test.record, a.test.start[1] * sizeof *a.test.record) != 0);
    fkt_personal_split_clear(&a);
    fkt_personal_split_clear(&b);
}

static void bad_shares_are_refused(void **state)
{
    static const double bad[] = {-0.1, 1, 2, NAN};
    const struct fkt_personal_labels data = {label, N, K};
    const struct fkt_partition_spec p = dirichlet(1, 1);
    struct fkt_personal_split s;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        CHECK_STATUS(fkt_personal_split_init(&s, &data, NULL, &p, bad[i], 5), FKT_E_ARG);
        CHECK(strstr(fkt_error_text(), "cannot be held out"));
    }
    assert_int_equal(fkt_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_records_by_class),
        cmocka_unit_test(test_set_follows_the_sites),
        cmocka_unit_test(a_class_that_nobody_holds_is_not_evaluated),
        cmocka_unit_test(seeds_decide),
        cmocka_unit_test(chance_is_each_ones_own),
        cmocka_unit_test(bad_shares_are_refused),
    };
    uneven_labels(label, N, 1);
    for (size_t i = 0; i < N; i++) key[i] = i;
    uneven_labels(test_label, N_TEST, 2);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
