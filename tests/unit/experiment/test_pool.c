/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool.c - trials of a membership attack: the release is that of the members or of others, as the arm says; a
 * planted leak is found, and where the members are not used nothing is. */
#include "experiment/pool.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <string.h>

enum { EACH = 6, CLASSES = 3, TRIALS = 200, N = EACH * CLASSES };
static struct scratch dir;
static struct fkt_lab *lab;

static const struct fkt_arm *arm_named(const char *name)
{
    for (size_t i = 0; i < FKT_ATTACK_ARMS; i++)
        if (!strcmp(fkt_attack_arms[i].name, name)) return &fkt_attack_arms[i];
    fail_msg("no arm '%s'", name);
    return NULL;
}

static json_t *attack(const char *arm, uint64_t seed, fkt_status (*score)(void *, struct fkt_pool *, size_t), void *ctx)
{
    const struct fkt_experiment *e = fkt_experiment_find("mia-images");
    const struct fkt_cell c = {
        .experiment = e, .panel = "demo", .arm = arm_named(arm), .x = e->x, .n_x = e->n_x, .seed = seed};
    const struct fkt_pool_spec spec = {.each = EACH, .classes = CLASSES, .trials = TRIALS};
    json_t *points = json_array();
    struct fkt_pool pool;
    CHECK_OK(fkt_pool_open(&pool, lab, &c, &spec));
    CHECK(pool.n == N && pool.classes == CLASSES);
    CHECK_OK(fkt_pool_attack(&pool, lab, &c, score, ctx, points));
    fkt_pool_clear(&pool);
    CHECK(json_array_size(points) == e->n_x);
    return points;
}

static double value(const json_t *points, size_t i, const char *key)
{
    const json_t *v = json_object_get(json_object_get(json_array_get(points, i), "values"), key);
    return v ? json_number_value(v) : NAN;
}

static double area(const char *arm, fkt_status (*score)(void *, struct fkt_pool *, size_t), void *ctx)
{
    json_t *points = attack(arm, 3, score, ctx);
    const double found = value(points, 0, "auc");
    json_decref(points);
    return found;
}

/* Classes whose released count is the number of its members are counted in *ctx. */
static fkt_status compare_counts(void *ctx, struct fkt_pool *p, size_t t)
{
    for (uint32_t k = 0; k < p->classes; k++) {
        int64_t members = 0;
        for (size_t r = 0; r < p->n; r++) members += p->label[r] == k && p->member[t * p->n + r];
        *(size_t *)ctx += p->noised[fkt_layout_count(p->layout, p->classes, k)] == members;
    }
    return FKT_OK;
}

static void the_release_is_that_of_the_arm(void **state)
{
    size_t exact = 0, others = 0;
    (void)state;
    (void)area("control", compare_counts, &exact);
    (void)area("others", compare_counts, &others);
    CHECK(exact == TRIALS * CLASSES);
    /* two binomial counts of six coins are the same with probability 924/4096 = 0.226; six standard errors */
    CHECK_NEAR((double)others / (TRIALS * CLASSES), 0.226, 6 * sqrt(0.226 * 0.774 / (TRIALS * CLASSES)));
}

/* The mean of the candidate's class, as the release has it, along the candidate. */
static fkt_status along_the_sum(void *ctx, struct fkt_pool *p, size_t t)
{
    (void)ctx;
    for (size_t r = 0; r < p->n; r++) {
        const int64_t *sum = p->noised + fkt_layout_sum(p->layout, p->classes, p->label[r], 0);
        double *to = fkt_pool_score(p, 0, t, r);
        *to = 0;
        for (uint32_t i = 0; i < p->m; i++) *to += (double)sum[i] * p->q[r * p->m + i] / 65536;
    }
    return FKT_OK;
}

/* 3,600 decisions, half of them members: the standard error of an area without any leak is 0.0096. Limits are at six
 * of them. */
static void members_that_are_not_used_are_not_found(void **state)
{
    (void)state;
    CHECK_NEAR(area("others", along_the_sum, NULL), 0.5, 6 * 0.0096);
    CHECK(area("control", along_the_sum, NULL) > 0.5 + 6 * 0.0096);
}

static fkt_status planted(void *ctx, struct fkt_pool *p, size_t t)
{
    for (size_t r = 0; r < p->n; r++)
        *fkt_pool_score(p, 0, t, r) = p->member[t * p->n + r] + fkt_rng_normal((struct fkt_rng *)ctx);
    return FKT_OK;
}

/* N(0, 1) against N(1, 1): Phi(1/sqrt 2) = 0.7602. */
static void a_planted_leak_is_found(void **state)
{
    struct fkt_rng rng;
    (void)state;
    fkt_rng_init(&rng, 11, 0);
    CHECK_NEAR(area("others", planted, &rng), 0.7602, 6 * 0.0096);
}

/* Which arms have a bound; the e2e test holds their ROC against it. */
static void only_add_remove_bounds_membership(void **state)
{
    json_t *joint = attack("joint-1", 3, along_the_sum, NULL), *paper = attack("paper-10", 3, along_the_sum, NULL),
           *control = attack("control", 3, along_the_sum, NULL);
    (void)state;
    for (size_t i = 0; i < FKT_ATTACK_RATES; i++) {
        CHECK(value(joint, i, "bound") >= fkt_attack_rates[i].x);
        CHECK(isnan(value(paper, i, "bound")) && isnan(value(control, i, "bound")));
    }
    json_decref(joint);
    json_decref(paper);
    json_decref(control);
}

static void the_seed_decides(void **state)
{
    json_t *a = attack("joint-10", 3, along_the_sum, NULL), *b = attack("joint-10", 3, along_the_sum, NULL),
           *c = attack("joint-10", 4, along_the_sum, NULL);
    (void)state;
    CHECK(json_equal(a, b));
    CHECK(!json_equal(a, c));
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

/* Without a network there is nothing to attack. */
static void networks_are_attacked_where_there_are_some(void **state)
{
    const struct fkt_experiment *list[] = {fkt_experiment_find("mia-networks")};
    struct fkt_experiment_options o = {
        .experiments = list, .n_experiments = 1, .quick = 1, .n_seeds = 1, .threads = 1, .network = 0};
    struct fkt_cell *cells = NULL;
    size_t n;
    (void)state;
    CHECK_OK(fkt_experiment_cells(&o, &cells, &n));
    CHECK(n == 0);
    fkt_free(cells);
    o.network = 1 + FKT_ARCHITECTURE_RESNET8;
    CHECK_OK(fkt_experiment_cells(&o, &cells, &n));
    CHECK(n == FKT_ATTACK_ARMS);
    fkt_free(cells);
}

static int begin(void **state)
{
    const struct fkt_experiment_options o = {.quick = 1, .n_seeds = 1, .threads = 1};
    (void)state;
    scratch_init(&dir);
    return fkt_lab_new(&lab, &o, dir.dir, scratch_path(&dir, "encodings")) != FKT_OK;
}

static int end(void **state)
{
    (void)state;
    fkt_lab_free(lab);
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_release_is_that_of_the_arm),
        cmocka_unit_test(members_that_are_not_used_are_not_found),
        cmocka_unit_test(a_planted_leak_is_found),
        cmocka_unit_test(only_add_remove_bounds_membership),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(networks_are_attacked_where_there_are_some),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
