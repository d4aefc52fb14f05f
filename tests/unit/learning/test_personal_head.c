/* SPDX-License-Identifier: Apache-2.0 */
/* test_personal_head.c - Bayes' rule at each site: a head that says nothing becomes the site's most frequent class, one
 * that is sure is not changed, and in between the odds of two classes decide, by numbers that are worked out here. */
#include "learning/personal.h"

#include "base/alloc.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

enum { N = 600, N_TEST = 300, K = 4, SITES = 5, SEED = 3 };

static uint32_t label[N], test_label[N_TEST];
static float logits[N_TEST * K];
static const struct fkt_training_set data = {.label = label, .n = N, .n_classes = K},
                                     test = {.label = test_label, .n = N_TEST, .n_classes = K};

static struct fkt_personal_head_spec spec_of(void)
{
    return (struct fkt_personal_head_spec){
        .data = &data,
        .test = &test,
        .logits = logits,
        .partition = {.rule = FKT_PARTITION_DIRICHLET, .alpha = 0.3, .sites = SITES, .seed = SEED},
        .seed = SEED};
}

static void split(struct fkt_personal_split *out)
{
    const struct fkt_personal_head_spec spec = spec_of();
    const struct fkt_personal_labels d = {label, N, K}, t = {test_label, N_TEST, K};
    CHECK_OK(fkt_personal_split_init(out, &d, &t, &spec.partition, 0, SEED));
}

static void count(size_t n[K], const struct fkt_personal_part *p, const uint32_t *of, uint32_t site)
{
    memset(n, 0, K * sizeof *n);
    for (size_t i = p->start[site]; i < p->start[site + 1]; i++) n[of[p->record[i]]]++;
}

static void a_head_that_says_nothing_is_the_most_frequent_class(void **state)
{
    const struct fkt_personal_head_spec spec = spec_of();
    struct fkt_personal_split s;
    struct fkt_personal p;
    size_t hits = 0, seen = 0;
    double mean = 0;
    (void)state;
    memset(logits, 0, sizeof logits);
    split(&s);
    CHECK_OK(fkt_personal_head(&p, &spec));
    assert_int_equal(p.sites, SITES);
    for (uint32_t i = 0; i < SITES; i++) {
        size_t own[K], shown[K], most = 0;
        count(own, &s.train, label, i);
        count(shown, &s.test, test_label, i);
        for (size_t k = 1; k < K; k++)
            if (own[k] > own[most]) most = k;
        assert_true(p.site[i].test > 0);
        CHECK(fabs(p.site[i].accuracy[FKT_PERSONAL_HEAD_PRIOR] - (double)shown[most] / (double)p.site[i].test) < 1e-12);
        mean += (double)shown[most] / (double)p.site[i].test / SITES;
        hits += shown[most];
        seen += p.site[i].test;
    }
    CHECK(fabs(p.mean[FKT_PERSONAL_HEAD_PRIOR] - mean) < 1e-12);
    CHECK(fabs(p.pooled[FKT_PERSONAL_HEAD_PRIOR] - (double)hits / (double)seen) < 1e-12);
    CHECK(p.pooled[FKT_PERSONAL_HEAD_PLAIN] < p.pooled[FKT_PERSONAL_HEAD_PRIOR]);
    fkt_personal_split_clear(&s);
    fkt_personal_clear(&p);
}

static void a_head_that_is_sure_keeps_its_word(void **state)
{
    const struct fkt_personal_head_spec spec = spec_of();
    struct fkt_personal p;
    (void)state;
    for (size_t i = 0; i < N_TEST; i++)
        for (uint32_t k = 0; k < K; k++) logits[i * K + k] = k == test_label[i] ? 0 : -50;
    CHECK_OK(fkt_personal_head(&p, &spec));
    CHECK(p.mean[FKT_PERSONAL_HEAD_PLAIN] == 1 && p.pooled[FKT_PERSONAL_HEAD_PRIOR] == 1);
    fkt_personal_clear(&p);
}

/* The head prefers class 1 to class 0 by odds of t : 1 and excludes the rest. A site changes that exactly where it has
 * (n0 + 1) > t (n1 + 1). */
static void odds_decide(void **state)
{
    const struct fkt_personal_head_spec spec = spec_of();
    struct fkt_personal_split s;
    size_t changed = 0, kept = 0;
    (void)state;
    split(&s);
    for (double t = 0.05; t < 100; t *= 1.7) {
        struct fkt_personal p;
        for (size_t i = 0; i < N_TEST; i++) {
            const float row[K] = {0, (float)log(t), -1e6F, -1e6F};
            memcpy(logits + i * K, row, sizeof row);
        }
        CHECK_OK(fkt_personal_head(&p, &spec));
        for (uint32_t i = 0; i < SITES; i++) {
            size_t own[K], shown[K];
            uint32_t said;
            count(own, &s.train, label, i);
            count(shown, &s.test, test_label, i);
            said = (double)(own[0] + 1) > t * (double)(own[1] + 1) ? 0 : 1;
            CHECK(fabs(p.site[i].accuracy[FKT_PERSONAL_HEAD_PRIOR] - (double)shown[said] / (double)p.site[i].test) <
                  1e-12);
            changed += (t > 1) != (said == 1);
            kept += (t > 1) == (said == 1);
        }
        fkt_personal_clear(&p);
    }
    assert_true(changed > 5 && kept > 5);
    fkt_personal_split_clear(&s);
}

static void other_classes_and_no_numbers_are_refused(void **state)
{
    struct fkt_training_set fewer = test;
    struct fkt_personal_head_spec spec = spec_of();
    struct fkt_personal p;
    (void)state;
    fewer.n_classes = K - 1;
    spec.test = &fewer;
    CHECK_STATUS(fkt_personal_head(&p, &spec), FKT_E_MISMATCH);
    spec.test = &test;
    logits[5] = NAN;
    CHECK_STATUS(fkt_personal_head(&p, &spec), FKT_E_NUMERIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_that_says_nothing_is_the_most_frequent_class),
        cmocka_unit_test(a_head_that_is_sure_keeps_its_word),
        cmocka_unit_test(odds_decide),
        cmocka_unit_test(other_classes_and_no_numbers_are_refused),
    };
    for (size_t i = 0; i < N; i++) label[i] = (uint32_t)(i % K);
    for (size_t i = 0; i < N_TEST; i++) test_label[i] = (uint32_t)(i / 3 % K);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
