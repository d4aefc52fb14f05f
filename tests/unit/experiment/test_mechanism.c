/* SPDX-License-Identifier: Apache-2.0 */
/* test_mechanism.c - the experiment `mechanism`: noise by the formulas of docs/method.md 1.4, what it costs, and that
 * the error falls as epsilon and records grow. */
#include "experiment/experiment.h"

#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <string.h>

static struct scratch dir;
static struct fkt_lab *lab;

static json_t *points_of(const char *arm, const char *panel, uint64_t seed)
{
    const struct fkt_experiment *e = fkt_experiment_find("mechanism");
    struct fkt_cell c = {.experiment = e, .panel = panel, .x = e->x_quick, .n_x = e->n_quick, .seed = seed};
    json_t *points = json_array();
    for (size_t i = 0; i < e->n_arms; i++)
        if (!strcmp(e->arm[i].name, arm)) c.arm = &e->arm[i];
    assert_non_null(c.arm);
    CHECK_OK(e->run(lab, &c, points));
    return points;
}

static double value(const json_t *points, const char *at, const char *key)
{
    const json_t *p;
    size_t i;
    json_array_foreach (points, i, p)
        if (!strcmp(json_string_value(json_object_get(p, "at")), at))
            return json_number_value(json_object_get(json_object_get(p, "values"), key));
    return NAN;
}

/* Multiples of R and R^2, and the epsilon that each costs under `replace` at delta 1e-5, from an independent
 * calculation (docs/method.md 1.4). */
static void noise_is_that_of_the_formulas(void **state)
{
    static const struct {
        const char *arm, *at;
        double sum, moment, spent;
    } rows[] = {{"paper", "10", 1.838, 1.838, 5.17},    {"paper", "1", 14.70, 14.70, 0.508},
                {"authors", "10", 0.919, 0.919, 11.94}, {"authors", "1", 7.35, 7.35, 1.084},
                {"clamp", "10", 1.02, 0.577, NAN},      {"clamp", "1", 7.6, 4.31, NAN}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *p = points_of(rows[i].arm, "200-records", 0);
        CHECK_REL(value(p, rows[i].at, "sigma_sum"), rows[i].sum, 3e-3);
        CHECK_REL(value(p, rows[i].at, "sigma_moment"), rows[i].moment, 3e-3);
        if (!isnan(rows[i].spent)) CHECK_REL(value(p, rows[i].at, "epsilon_replace"), rows[i].spent, 3e-3);
        json_decref(p);
    }
}

static void errors_fall_with_epsilon_and_records(void **state)
{
    json_t *few = points_of("rie", "200-records", 1), *many = points_of("rie", "20000-records", 1),
           *paper = points_of("paper", "20000-records", 1);
    (void)state;
    CHECK(value(few, "10", "covariance_error") < value(few, "0.3", "covariance_error"));
    CHECK(value(many, "1", "covariance_error") < value(few, "1", "covariance_error"));
    CHECK(value(many, "1", "covariance_error") < value(paper, "1", "covariance_error") / 2);
    CHECK(value(many, "10", "mean_error") < 0.01);
    json_decref(few);
    json_decref(many);
    json_decref(paper);
}

static void the_seed_decides_everything(void **state)
{
    json_t *a = points_of("authors", "200-records", 5), *b = points_of("authors", "200-records", 5),
           *c = points_of("authors", "200-records", 6);
    (void)state;
    assert_true(json_equal(a, b));
    assert_false(json_equal(a, c));
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

static int begin(void **state)
{
    const struct fkt_experiment_options o = {.quick = 1, .threads = 1};
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
        cmocka_unit_test(noise_is_that_of_the_formulas),
        cmocka_unit_test(errors_fall_with_epsilon_and_records),
        cmocka_unit_test(the_seed_decides_everything),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
