/* SPDX-License-Identifier: Apache-2.0 */
/* test_baseline_methods.c - every baseline for a few rounds on softmax regression at three sites, against NumPy
 * (oracle/baselines.py); what a run refuses, and what it leaves behind when it is stopped. */
#include "tests/support/check.h"
#include "tests/support/toy_federation.h"
#include "tests/support/vectors.h"

static void settings_of(struct fkt_baseline_settings *s, const json_t *one)
{
    json_t *list = json_object_get(one, "settings"), *value;
    const char *name;
    fkt_baseline_default(s);
    json_object_foreach (list, name, value) CHECK_OK(fkt_baseline_set(s, name, json_number_value(value)));
}

static void check_vector(const float *got, const json_t *want, double tolerance, const char *what, uint32_t site)
{
    CHECK(json_array_size(want) == TOY_STATE);
    for (size_t k = 0; k < TOY_STATE; k++) {
        const double w = json_number_value(json_array_get(want, k));
        if (!(fabs(got[k] - w) <= tolerance))
            fail_msg("%s, site %u, number %zu: got %.9g, want %.9g", what, site, k, got[k], w);
    }
}

/* Floats rounded at each of up to 100 steps: 1e-5. A difference quotient in the place of the Hessian: 2e-4. */
static void each_method_is_that_of_numpy(void **state)
{
    json_t *root, *cases = vectors_open(&root, "baselines.json"), *one;
    unsigned seen = 0;
    size_t i;
    (void)state;
    json_array_foreach (cases, i, one) {
        const char *name = vectors_text(one, "method");
        const int b = fkt_baseline_parse(name);
        const struct fkt_method *m = fkt_method_of((enum fkt_baseline)b);
        const json_t *personal = json_object_get(one, "personal");
        struct fkt_baseline_settings s;
        struct fkt_rounds r;
        struct toy_federation q;
        float start[TOY_STATE], x[TOY_STATE];
        assert_non_null(m);
        seen |= 1U << b;
        settings_of(&s, one);
        toy_federation_init(&q, start);
        CHECK_OK(fkt_rounds_init(&r, m, &q.problem, &s, start, (uint64_t)vectors_int(root, "seed")));
        for (uint32_t t = 0; t < s.rounds; t++) CHECK_OK(m->round(&r, t));
        assert_int_equal(q.done, TOY_SITES * s.rounds);
        assert_int_equal(q.taught, 0);
        CHECK(json_array_size(personal) == TOY_SITES);
        for (uint32_t site = 0; site < TOY_SITES; site++) {
            CHECK_OK(m->personal(&r, site, x));
            check_vector(x, json_array_get(personal, site), s.perfedavg_delta > 0 ? 2e-4 : 1e-5, name, site);
        }
        if (m->common)
            check_vector(r.common, json_object_get(one, "common"), s.perfedavg_delta > 0 ? 2e-4 : 1e-5, name, 99);
        fkt_rounds_clear(&r);
    }
    assert_int_equal(seen, (1U << FKT_BASELINES) - 1); /* none is left out */
    json_decref(root);
}

/* All methods but those that only train move away from what local training gives; and each differs from the others. */
static void the_vectors_tell_the_methods_apart(void **state)
{
    json_t *root, *cases = vectors_open(&root, "baselines.json");
    (void)state;
    for (size_t i = 0; i < json_array_size(cases); i++)
        for (size_t j = 0; j < i; j++) {
            const json_t *a = json_object_get(json_array_get(cases, i), "personal");
            const json_t *b = json_object_get(json_array_get(cases, j), "personal");
            double most = 0;
            for (size_t s = 0; s < TOY_SITES; s++)
                for (size_t k = 0; k < TOY_P; k++)
                    most = fmax(most, fabs(json_number_value(json_array_get(json_array_get(a, s), k)) -
                                           json_number_value(json_array_get(json_array_get(b, s), k))));
            if (!(most > 1e-3)) fail_msg("cases %zu and %zu differ by %g only", i, j, most);
        }
    json_decref(root);
}

static void a_model_that_is_not_finite_fails(void **state)
{
    (void)state;
    for (int b = 0; b < FKT_BASELINES; b++) {
        const struct fkt_method *m = fkt_method_of((enum fkt_baseline)b);
        struct toy_run t;
        CHECK_OK(toy_run_init(&t, m));
        t.q.bad_site = 1;
        CHECK_STATUS(m->round(&t.r, 0), FKT_E_NUMERIC);
        assert_non_null(strstr(fkt_error_text(), "site 1"));
        fkt_rounds_clear(&t.r);
    }
}

static void a_run_stops_where_it_is_asked_to(void **state)
{
    (void)state;
    for (int b = 0; b < FKT_BASELINES; b++) {
        const struct fkt_method *m = fkt_method_of((enum fkt_baseline)b);
        struct toy_run t;
        CHECK_OK(toy_run_init(&t, m));
        t.q.stop_after = 5;
        CHECK_OK(m->round(&t.r, 0));
        CHECK_STATUS(m->round(&t.r, 1), FKT_E_STOPPED);
        assert_int_equal(t.q.done, 5);
        fkt_rounds_clear(&t.r);
    }
}

static void models_that_do_not_fit_are_refused(void **state)
{
    struct fkt_baseline_settings s;
    struct fkt_rounds r;
    struct toy_federation q;
    float start[TOY_STATE];
    (void)state;
    fkt_baseline_default(&s);
    toy_federation_init(&q, start);
    q.problem.state = (size_t)1 << 40;
    CHECK_STATUS(fkt_rounds_init(&r, &fkt_method_local, &q.problem, &s, start, 1), FKT_E_NOMEM);
    assert_non_null(strstr(fkt_error_text(), "the models of 3 sites take"));
    fkt_rounds_clear(&r);
}

/* The figures of docs/train.md: gradients that a round of one epoch takes, and evaluations. */
static void the_cost_is_what_is_said(void **state)
{
    static const uint64_t gradients[FKT_BASELINES] = {
        [FKT_BASELINE_LOCAL] = 6,      [FKT_BASELINE_FEDAVG_ONCE] = 6, [FKT_BASELINE_FEDAVG] = 6,
        [FKT_BASELINE_PERFEDAVG] = 6,  [FKT_BASELINE_PFEDME] = 30,     [FKT_BASELINE_FEDAMP] = 6,
        [FKT_BASELINE_FEDPHP] = 6,     [FKT_BASELINE_FEDFOMO] = 6,     [FKT_BASELINE_APPLE] = 6,
        [FKT_BASELINE_PARTIALFED] = 12};
    (void)state;
    for (int b = 0; b < FKT_BASELINES; b++) {
        const struct fkt_method *m = fkt_method_of((enum fkt_baseline)b);
        struct toy_run t;
        uint64_t first;
        CHECK_OK(toy_run_init(&t, m));
        CHECK_OK(m->round(&t.r, 0));
        first = t.q.gradients;
        CHECK_OK(m->round(&t.r, 1));
        if (t.q.gradients - first != gradients[b]) fail_msg("%s: %d gradients", m->name, (int)(t.q.gradients - first));
        assert_int_equal(t.q.validations, m->validates ? TOY_SITES * (TOY_SITES + 1) : 0);
        fkt_rounds_clear(&t.r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_method_is_that_of_numpy),       cmocka_unit_test(the_vectors_tell_the_methods_apart),
        cmocka_unit_test(a_model_that_is_not_finite_fails),   cmocka_unit_test(a_run_stops_where_it_is_asked_to),
        cmocka_unit_test(models_that_do_not_fit_are_refused), cmocka_unit_test(the_cost_is_what_is_said),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
