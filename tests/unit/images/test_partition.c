/* SPDX-License-Identifier: Apache-2.0 */
/* Hold-outs and partitions: every record once, the right counts, and the same answer for the same seed for ever. */
#include "fedkt/image.h"

#include "tests/support/check.h"

enum { N = 6000, K = 10 };
/* Digests of these partitions as they were first made: they must never change, or published experiments could not be
 * repeated. */
#define HOLDOUT_PIN 0x5665cd7a7cd9ef4aU
#define IID_PIN 0xd08476160a518422U
#define DIRICHLET_PIN 0x90556fa8882d16bfU /* this and the next go through libm */
#define PFLLIB_PIN 0xe3435320239ad1e8U
#define PATHOLOGICAL_PIN 0xf0ead7a3f1cd337eU

static uint32_t labels[N], owner[N], again[N];

/* Uneven, interleaved classes. */
static void make_labels(void)
{
    for (uint32_t i = 0; i < N; i++) labels[i] = (i * i + i / 7) % 45 % K;
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
    CHECK_OK(fkt_partition(owner, labels, N, K, s));
    CHECK_OK(fkt_partition(again, labels, N, K, s));
    CHECK(!memcmp(owner, again, sizeof owner));
    for (size_t i = 0; i < N; i++) CHECK(owner[i] < s->sites);
    got = digest(owner, sizeof owner);
    if (want && got != want)
        fail_msg("the partition has changed: digest 0x%016llx, was 0x%016llx", (unsigned long long)got,
                 (unsigned long long)want);
}

static void holdout_is_stratified(void **state)
{
    uint8_t held[N], other[N];
    size_t of[K] = {0}, out[K] = {0}, differ = 0;
    (void)state;
    make_labels();
    CHECK_OK(fkt_split_holdout(held, labels, N, K, 0.2, 7));
    CHECK_OK(fkt_split_holdout(other, labels, N, K, 0.2, 8));
    for (size_t i = 0; i < N; i++) {
        CHECK(held[i] <= 1);
        of[labels[i]]++;
        out[labels[i]] += held[i];
        differ += held[i] != other[i];
    }
    for (size_t k = 0; k < K; k++) CHECK(out[k] == (size_t)floor(0.2 * (double)of[k] + 0.5));
    CHECK(differ > N / 10);
    if (digest(held, N) != HOLDOUT_PIN)
        fail_msg("the hold-out has changed: digest 0x%016llx", (unsigned long long)digest(held, N));
    CHECK_OK(fkt_split_holdout(held, labels, N, K, 0, 7));
    for (size_t i = 0; i < N; i++) CHECK(!held[i]);
    CHECK_OK(fkt_split_holdout(held, labels, N, K, 1, 7));
    for (size_t i = 0; i < N; i++) CHECK(held[i]);
    CHECK_STATUS(fkt_split_holdout(held, labels, N, K, 1.01, 7), FKT_E_ARG);
    CHECK_STATUS(fkt_split_holdout(held, labels, N, K, NAN, 7), FKT_E_ARG);
    CHECK_STATUS(fkt_split_holdout(held, labels, N, K - 1, 0.2, 7), FKT_E_ARG);
}

static void iid_parts_are_equal(void **state)
{
    size_t sizes[7000];
    struct fkt_partition_spec s = {.rule = FKT_PARTITION_IID, .sites = 7, .seed = 1};
    (void)state;
    make_labels();
    partition(&s, IID_PIN);
    count(sizes, 7);
    for (int i = 0; i < 7; i++) CHECK(sizes[i] == N / 7 || sizes[i] == N / 7 + 1);
    s.sites = 7000; /* more sites than records */
    partition(&s, 0);
    count(sizes, 7000);
    for (int i = 0; i < 7000; i++) CHECK(sizes[i] <= 1);
    s.sites = 1;
    partition(&s, 0);
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
    s.alpha = 1000; /* even: the largest of 20 shares is 5 % and a little */
    partition(&s, 0);
    CHECK(concentration(20) < 0.062);
    s.alpha = 0;
    CHECK_STATUS(fkt_partition(owner, labels, N, K, &s), FKT_E_ARG);
    s.alpha = NAN;
    CHECK_STATUS(fkt_partition(owner, labels, N, K, &s), FKT_E_ARG);
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
        CHECK_OK(fkt_partition(owner, labels, N, K, &s));
        for (size_t i = 0; i < N; i++) {
            n[labels[i]]++;
            first[labels[i]] += owner[i] == 0;
        }
        for (int k = 0; k < K; k++) sum += (double)first[k] / (double)n[k];
    }
    CHECK_NEAR(sum / (400 * K), 0.2, 0.017);
}

static void pfllib_leaves_nobody_short(void **state)
{
    size_t sizes[200];
    struct fkt_partition_spec s = {.rule = FKT_PARTITION_PFLLIB, .sites = 20, .alpha = 0.1, .seed = 5};
    (void)state;
    make_labels();
    partition(&s, PFLLIB_PIN);
    count(sizes, 20);
    for (int i = 0; i < 20; i++) CHECK(sizes[i] >= 10);
    s.min_records = 40;
    s.alpha = 1;
    partition(&s, 0);
    count(sizes, 20);
    for (int i = 0; i < 20; i++) CHECK(sizes[i] >= 40);
    s.sites = 200; /* 30 each at most */
    CHECK_STATUS(fkt_partition(owner, labels, N, K, &s), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "cannot give") && fkt_error_hint()[0]);
    s.min_records = 30;
    s.alpha = 0.01;
    s.sites = 150;
    CHECK_STATUS(fkt_partition(owner, labels, 6000, K, &s), FKT_E_ARG); /* ends, with a sentence */
    CHECK(strstr(fkt_error_text(), "no draw of"));
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
    CHECK_STATUS(fkt_partition(owner, labels, N, K, &s), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "leave some of the 10 classes to nobody") && fkt_error_hint()[0]);
    s.k = 11;
    CHECK_STATUS(fkt_partition(owner, labels, N, K, &s), FKT_E_ARG);
    s.k = 0;
    CHECK_STATUS(fkt_partition(owner, labels, N, K, &s), FKT_E_ARG);
    s.k = 4;
    CHECK_OK(fkt_partition(owner, labels, N, 50, &s)); /* classes without records need no owner */
    s.sites = 0;
    CHECK_STATUS(fkt_partition(owner, labels, N, K, &s), FKT_E_ARG);
    s.sites = 3;
    s.rule = (enum fkt_partition_rule)17;
    CHECK_STATUS(fkt_partition(owner, labels, N, K, &s), FKT_E_ARG);
    s.rule = FKT_PARTITION_IID;
    CHECK_STATUS(fkt_partition(owner, labels, N, K - 1, &s), FKT_E_ARG);
    CHECK_STATUS(fkt_partition(owner, labels, 0, K, &s), FKT_E_ARG);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holdout_is_stratified),
        cmocka_unit_test(iid_parts_are_equal),
        cmocka_unit_test(dirichlet_goes_from_one_owner_to_all),
        cmocka_unit_test(dirichlet_shares_are_fair),
        cmocka_unit_test(pfllib_leaves_nobody_short),
        cmocka_unit_test(pathological_sites_hold_k_classes),
        cmocka_unit_test(pathological_refuses_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
