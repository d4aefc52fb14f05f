/* SPDX-License-Identifier: Apache-2.0 */
/* Hold-outs and partitions: every record once, the right distribution, no record moved by another, and the same answer
 * for the same seed and records for ever. */
#include "fedkt/image.h"

#include "base/rng.h"
#include "tests/support/check.h"

enum { N = 6000, K = 10 };
/* Digests of these partitions as they were first made: they must never change, or published experiments could not be
 * repeated. */
#define HOLDOUT_PIN 0xa3753a01484b7fd2U
#define STRATIFIED_PIN 0x5665cd7a7cd9ef4aU
#define IID_PIN 0xe305adf275522407U
#define DIRICHLET_PIN 0x77e32ba800bb28beU /* this and the next go through libm */
#define PFLLIB_PIN 0x09c275cbd1ed238bU
#define PATHOLOGICAL_PIN 0x31a297af4e2c5616U

static uint32_t labels[N], owner[N], again[N];
static uint64_t keys[N];

/* Uneven, interleaved classes; records are their numbers. */
static void make_labels(void)
{
    for (uint32_t i = 0; i < N; i++) {
        labels[i] = (i * i + i / 7) % 45 % K;
        keys[i] = fkt_record_key(&i, sizeof i);
    }
}

/* FNV-1a: pins a partition in one number. */
static uint64_t digest(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t h = 0xcbf29ce484222325U;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3U;
    return h;
}

static void count(size_t *sizes, uint32_t sites)
{
    memset(sizes, 0, sites * sizeof *sizes);
    for (size_t i = 0; i < N; i++) {
        CHECK(owner[i] < sites);
        sizes[owner[i]]++;
    }
}

static void partition(const struct fkt_partition_spec *s, uint64_t want)
{
    uint64_t got;
    memset(owner, 0xff, sizeof owner);
    CHECK_OK(fkt_partition(owner, labels, keys, N, K, s));
    CHECK_OK(fkt_partition(again, labels, keys, N, K, s));
    CHECK(!memcmp(owner, again, sizeof owner));
    for (size_t i = 0; i < N; i++) CHECK(owner[i] < s->sites);
    got = digest(owner, sizeof owner);
    if (want && got != want)
        fail_msg("the partition has changed: digest 0x%016llx, was 0x%016llx", (unsigned long long)got,
                 (unsigned long long)want);
}

/* Beyond five standard deviations: a right rule falls out once in 1.7 million runs for each number (and the keys are
 * fixed). */
static void check_binomial(size_t got, size_t n, double p)
{
    CHECK_NEAR((double)got, p * (double)n, 5 * sqrt((double)n * p * (1 - p)));
}

static void holdout_is_binomial(void **state)
{
    uint8_t held[N], other[N];
    size_t of[K] = {0}, out[K] = {0}, differ = 0;
    (void)state;
    make_labels();
    CHECK_OK(fkt_split_holdout(held, keys, N, 0.2, 7));
    CHECK_OK(fkt_split_holdout(other, keys, N, 0.2, 8));
    for (size_t i = 0; i < N; i++) {
        CHECK(held[i] <= 1);
        of[labels[i]]++;
        out[labels[i]] += held[i];
        differ += held[i] != other[i];
    }
    for (size_t k = 0; k < K; k++) check_binomial(out[k], of[k], 0.2);
    check_binomial(differ, N, 2 * 0.2 * 0.8); /* another seed, another choice */
    if (digest(held, N) != HOLDOUT_PIN)
        fail_msg("the hold-out has changed: digest 0x%016llx", (unsigned long long)digest(held, N));
    CHECK_OK(fkt_split_holdout(other, keys, N, 0.3, 7)); /* a larger share holds the same records, and more */
    for (size_t i = 0; i < N; i++) CHECK(held[i] <= other[i]);
    CHECK_OK(fkt_split_holdout(held, keys, N, 0, 7));
    for (size_t i = 0; i < N; i++) CHECK(!held[i]);
    CHECK_OK(fkt_split_holdout(held, keys, N, 1, 7));
    for (size_t i = 0; i < N; i++) CHECK(held[i]);
    CHECK_STATUS(fkt_split_holdout(held, keys, N, 1.01, 7), FKT_E_ARG);
    CHECK_STATUS(fkt_split_holdout(held, keys, N, NAN, 7), FKT_E_ARG);
}

static void stratified_is_exact(void **state)
{
    uint8_t held[N];
    size_t of[K] = {0}, out[K] = {0};
    (void)state;
    make_labels();
    CHECK_OK(fkt_split_stratified(held, labels, N, K, 0.2, 7));
    for (size_t i = 0; i < N; i++) {
        of[labels[i]]++;
        out[labels[i]] += held[i];
    }
    for (size_t k = 0; k < K; k++) CHECK(out[k] == (size_t)floor(0.2 * (double)of[k] + 0.5));
    if (digest(held, N) != STRATIFIED_PIN)
        fail_msg("the stratified hold-out has changed: digest 0x%016llx", (unsigned long long)digest(held, N));
    CHECK_STATUS(fkt_split_stratified(held, labels, N, K, NAN, 7), FKT_E_ARG);
    CHECK_STATUS(fkt_split_stratified(held, labels, N, K - 1, 0.2, 7), FKT_E_ARG);
}

static void iid_sites_are_alike(void **state)
{
    size_t sizes[7000], of[7] = {0}, most = 0;
    struct fkt_partition_spec s = {.rule = FKT_PARTITION_IID, .sites = 7, .seed = 1};
    (void)state;
    make_labels();
    partition(&s, IID_PIN);
    count(sizes, 7);
    for (int i = 0; i < 7; i++) check_binomial(sizes[i], N, 1.0 / 7);
    for (size_t i = 0; i < N; i++) of[owner[i]] += labels[i] == 3;
    for (int i = 0; i < 7; i++) CHECK(of[i] > 0);
    s.sites = 7000; /* more sites than records */
    partition(&s, 0);
    count(sizes, 7000);
    for (int i = 0; i < 7000; i++) most = sizes[i] > most ? sizes[i] : most;
    CHECK(most <= 10); /* Poisson(0.86): eleven at one site of 7000 happen once in 100,000 runs */
    s.sites = 1;
    partition(&s, 0);
}

/* Of sets of 1 to 60 records in 1 to 8 classes, some of them empty, one record more at any place, of any class: nobody
 * else changes site, nobody else is held out or comes back. */
static void one_record_moves_no_other(void **state)
{
    struct fkt_rng rng;
    size_t tried = 0;
    (void)state;
    fkt_rng_init(&rng, 11, 0);
    for (int turn = 0; turn < 4000; turn++) {
        uint32_t more_labels[61], here[60], there[61], classes = 1 + (uint32_t)fkt_rng_below(&rng, 8);
        uint64_t more_keys[61];
        uint8_t held[60], more_held[61];
        size_t n = 1 + (size_t)fkt_rng_below(&rng, 60), at = (size_t)fkt_rng_below(&rng, n + 1);
        struct fkt_partition_spec s = {.rule = (enum fkt_partition_rule)(turn % 4),
                                       .sites = 1 + (uint32_t)fkt_rng_below(&rng, 12),
                                       .alpha = turn % 3 ? 0.3 : 5,
                                       .min_share = 1e-6,
                                       .seed = (uint64_t)turn};
        s.k = classes / s.sites + 1;
        if (s.k > classes) s.k = classes;
        for (size_t i = 0; i < n; i++) {
            labels[i] = (uint32_t)fkt_rng_below(&rng, classes);
            keys[i] = fkt_rng_u64(&rng);
        }
        for (size_t i = 0; i <= n; i++) {
            more_labels[i] = i == at ? (uint32_t)fkt_rng_below(&rng, classes) : labels[i - (i > at)];
            more_keys[i] = i == at ? fkt_rng_u64(&rng) : keys[i - (i > at)];
        }
        CHECK_OK(fkt_partition(here, labels, keys, n, classes, &s));
        CHECK_OK(fkt_partition(there, more_labels, more_keys, n + 1, classes, &s));
        CHECK_OK(fkt_split_holdout(held, keys, n, 0.4, s.seed));
        CHECK_OK(fkt_split_holdout(more_held, more_keys, n + 1, 0.4, s.seed));
        for (size_t i = 0; i < n; i++) {
            CHECK(here[i] == there[i + (i >= at)]);
            CHECK(held[i] == more_held[i + (i >= at)]);
            tried++;
        }
    }
    CHECK(tried > 100000);
}

/* Largest share of a class that one site holds, averaged over the classes. */
static double concentration(uint32_t sites)
{
    double total = 0;
    for (uint32_t k = 0; k < K; k++) {
        size_t held[128] = {0}, n = 0, most = 0;
        for (size_t i = 0; i < N; i++)
            if (labels[i] == k) {
                n++;
                if (++held[owner[i]] > most) most = held[owner[i]];
            }
        CHECK(sites <= 128);
        total += (double)most / (double)n;
    }
    return total / K;
}

static void dirichlet_goes_from_one_owner_to_all(void **state)
{
    struct fkt_partition_spec s = {.rule = FKT_PARTITION_DIRICHLET, .sites = 20, .alpha = 0.5, .seed = 3};
    double mid;
    (void)state;
    make_labels();
    partition(&s, DIRICHLET_PIN);
    mid = concentration(20);
    CHECK(mid > 0.1 && mid < 0.6);
    s.alpha = 0.001; /* a class is one site's, as good as always */
    partition(&s, 0);
    CHECK(concentration(20) > 0.97);
    s.alpha = 1e-6;
    partition(&s, 0);
    CHECK(concentration(20) > 0.999);
    s.alpha = 1000; /* even: of 600 records the largest of 20 sites has 41 or so */
    partition(&s, 0);
    CHECK(concentration(20) < 0.08);
    s.alpha = 0;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
    s.alpha = NAN;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
}

/* The mean share of site 0 over many seeds is 1/sites: 400 draws x 10 classes of Dirichlet(0.5) over 5 sites, standard
 * deviation of one share 0.214, of the mean 0.0034; beyond five of those a right sampler falls once in 1.7 million runs
 * (and the seeds are fixed). */
static void dirichlet_shares_are_fair(void **state)
{
    struct fkt_partition_spec s = {.rule = FKT_PARTITION_DIRICHLET, .sites = 5, .alpha = 0.5};
    double sum = 0;
    (void)state;
    make_labels();
    for (s.seed = 0; s.seed < 400; s.seed++) {
        size_t n[K] = {0}, first[K] = {0};
        CHECK_OK(fkt_partition(owner, labels, keys, N, K, &s));
        for (size_t i = 0; i < N; i++) {
            n[labels[i]]++;
            first[labels[i]] += owner[i] == 0;
        }
        for (int k = 0; k < K; k++) sum += (double)first[k] / (double)n[k];
    }
    CHECK_NEAR(sum / (400 * K), 0.2, 0.017);
}

/* How often a site holds a record of a class is the same for every site: 300 seeds, 10 classes of 60 records, 20 sites,
 * Dirichlet(0.1). A cut at floor(share * n) gives the last site a record nearly always and the first one rarely. 3000
 * draws a site, beyond five standard deviations: one false alarm in 86,000 runs for 20 sites (and seeds are fixed). */
static void dirichlet_sites_are_alike(void **state)
{
    enum { SEEDS = 300, SITES = 20, RECORDS = 600 };
    struct fkt_partition_spec s = {.rule = FKT_PARTITION_DIRICHLET, .sites = SITES, .alpha = 0.1};
    size_t holds[SITES] = {0}, all = 0;
    double p;
    (void)state;
    make_labels();
    for (size_t i = 0; i < RECORDS; i++) labels[i] = (uint32_t)(i % K);
    for (s.seed = 0; s.seed < SEEDS; s.seed++) {
        uint8_t has[SITES][K] = {{0}};
        CHECK_OK(fkt_partition(owner, labels, keys, RECORDS, K, &s));
        for (size_t i = 0; i < RECORDS; i++) has[owner[i]][labels[i]] = 1;
        for (int site = 0; site < SITES; site++)
            for (int k = 0; k < K; k++) holds[site] += has[site][k];
    }
    for (int site = 0; site < SITES; site++) all += holds[site];
    p = (double)all / (SITES * SEEDS * K);
    CHECK(p > 0.2 && p < 0.5);
    for (int site = 0; site < SITES; site++) check_binomial(holds[site], SEEDS * K, p);
}

static void pfllib_leaves_nobody_short(void **state)
{
    size_t sizes[200];
    struct fkt_partition_spec s = {.rule = FKT_PARTITION_PFLLIB, .sites = 20, .alpha = 0.1, .seed = 5};
    (void)state;
    make_labels();
    partition(&s, PFLLIB_PIN);
    s.min_share = 0.4; /* 120 of 300 records expected for classes of one size; these differ by a factor of two */
    s.alpha = 1;
    partition(&s, 0);
    count(sizes, 20);
    for (int i = 0; i < 20; i++) CHECK(sizes[i] >= 40);
    s.min_share = 0.9;
    s.alpha = 0.01;
    s.sites = 150;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG); /* ends, with a sentence */
    CHECK(strstr(fkt_error_text(), "no draw of") && fkt_error_hint()[0]);
    s.min_share = 1.5;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
    s.min_share = NAN;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
}

static void pathological_sites_hold_k_classes(void **state)
{
    static const uint32_t cases[][2] = {{10, 2}, {5, 3}, {5, 2}, {100, 2}, {7, 10}, {10, 1}, {33, 4}};
    (void)state;
    make_labels();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct fkt_partition_spec s = {
            .rule = FKT_PARTITION_PATHOLOGICAL, .sites = cases[c][0], .k = cases[c][1], .seed = 9};
        uint8_t holds[100][K] = {{0}};
        size_t sites_of[K] = {0};
        partition(&s, c ? 0 : PATHOLOGICAL_PIN);
        for (size_t i = 0; i < N; i++) holds[owner[i]][labels[i]] = 1;
        for (uint32_t site = 0; site < s.sites; site++) {
            uint32_t classes = 0;
            for (int k = 0; k < K; k++) {
                classes += holds[site][k];
                sites_of[k] += holds[site][k];
            }
            CHECK(classes == s.k);
        }
        for (int k = 0; k < K; k++)
            CHECK(sites_of[k] == s.sites * s.k / K || sites_of[k] == (s.sites * s.k + K - 1) / K);
    }
}

static void pathological_refuses_orphans(void **state)
{
    struct fkt_partition_spec s = {.rule = FKT_PARTITION_PATHOLOGICAL, .sites = 3, .k = 3, .seed = 9};
    (void)state;
    make_labels();
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "leave some of the 10 classes without a site") && fkt_error_hint()[0]);
    s.k = 11;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
    s.k = 0;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
    s.k = 4;
    CHECK_OK(fkt_partition(owner, labels, keys, N, 12, &s));
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, 13, &s), FKT_E_ARG); /* also for classes without records */
    s.sites = 0;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
    s.sites = 3;
    s.rule = (enum fkt_partition_rule)17;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K, &s), FKT_E_ARG);
    s.rule = FKT_PARTITION_IID;
    CHECK_STATUS(fkt_partition(owner, labels, keys, N, K - 1, &s), FKT_E_ARG);
    CHECK_STATUS(fkt_partition(owner, labels, keys, 0, K, &s), FKT_E_ARG);
    CHECK(fkt_alloc_live() == 0);
}

static void rules_have_a_text(void **state)
{
    static const char *const good[] = {"iid", "dirichlet:0.3", "pfllib:1e-06", "pathological:2"};
    static const char *const bad[] = {"",
                                      "iid:1",
                                      "IID",
                                      "dirichlet",
                                      "dirichlet:",
                                      "pfllib:much",
                                      "pathological:-1",
                                      "pathological:1.5",
                                      "pathological:65536",
                                      "i"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct fkt_partition_spec p = {.sites = 7, .seed = 5};
        char text[FKT_PARTITION_TEXT];
        CHECK_OK(fkt_partition_parse(&p, good[i]));
        assert_int_equal(p.rule, i); /* in the order of the enum */
        fkt_partition_text(&p, text);
        assert_string_equal(text, good[i]);
        CHECK(p.sites == 7 && p.seed == 5);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fkt_partition_spec p = {.k = 3};
        CHECK_STATUS(fkt_partition_parse(&p, bad[i]), FKT_E_ARG);
        assert_int_equal(p.k, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_have_a_text),
        cmocka_unit_test(holdout_is_binomial),
        cmocka_unit_test(stratified_is_exact),
        cmocka_unit_test(iid_sites_are_alike),
        cmocka_unit_test(one_record_moves_no_other),
        cmocka_unit_test(dirichlet_goes_from_one_owner_to_all),
        cmocka_unit_test(dirichlet_shares_are_fair),
        cmocka_unit_test(dirichlet_sites_are_alike),
        cmocka_unit_test(pfllib_leaves_nobody_short),
        cmocka_unit_test(pathological_sites_hold_k_classes),
        cmocka_unit_test(pathological_refuses_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
