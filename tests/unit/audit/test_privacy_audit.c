/* SPDX-License-Identifier: Apache-2.0 */
/* test_privacy_audit.c - the audit passes what is right, and its worst cases are as bad as its promise allows. What is
 * wrong, and whether it is found, is tests/planted/. */
#include "audit/privacy_audit.h"
#include "tests/support/check.h"

static struct fkt_audit_options options(uint64_t trials)
{
    return (struct fkt_audit_options){
        .privacy = {.epsilon = 5, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{1, 24, 75}}},
        .trials = trials,
        .confidence = 1 - 1e-6};
}

/* Distance of the two datasets in units of the noise, from the integers themselves. */
static double distance(const struct fkt_privacy_spec *p, enum fkt_noise_place place, enum fkt_audit_canary canary,
                       enum fkt_audit_layout layout)
{
    struct fkt_audit_world *w = NULL;
    double mu2 = 0;
    CHECK_OK(fkt_alloc(&w, 1));
    CHECK_OK(fkt_audit_world_init(w, p, place, canary, layout));
    for (int i = 0; i < w->numbers; i++)
        if (w->seen_sigma[i] > 0) mu2 += pow(w->seen_shift[i] / w->seen_sigma[i], 2);
        else CHECK(w->seen_shift[i] == 0);
    fkt_audit_world_clear(w);
    fkt_free(w);
    return sqrt(mu2);
}

static void canaries_are_worst_cases(void **state)
{
    static const struct {
        enum fkt_adjacency adjacency;
        enum fkt_audit_canary canary;
        double split[3], least; /* of the promise */
        enum fkt_audit_layout layout;
    } rows[] = {{FKT_ADJACENCY_ADD_REMOVE, FKT_CANARY_ADD, {1, 24, 75}, 0.985, FKT_AUDIT_ONE},
                {FKT_ADJACENCY_REPLACE, FKT_CANARY_SWAP, {1, 24, 75}, 0.985, FKT_AUDIT_ONE},
                {FKT_ADJACENCY_REPLACE, FKT_CANARY_SWAP, {0, 80, 20}, 0.985, FKT_AUDIT_ONE}, /* opposite records */
                {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_SWAP, {1, 24, 75}, 0.985, FKT_AUDIT_ONE},
                {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_MOVE, {40, 20, 40}, 0.985, FKT_AUDIT_ONE},
                {FKT_ADJACENCY_ADD_REMOVE, FKT_CANARY_ADD, {1, 24, 75}, 0.985, FKT_AUDIT_PARTS},
                {FKT_ADJACENCY_REPLACE, FKT_CANARY_SWAP, {1, 24, 75}, 0.985, FKT_AUDIT_PARTS},
                {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_MOVE, {40, 20, 40}, 0.985, FKT_AUDIT_PARTS},
                {FKT_ADJACENCY_ADD_REMOVE, FKT_CANARY_ADD, {1, 24, 75}, 0.985, FKT_AUDIT_POOLED},
                {FKT_ADJACENCY_REPLACE_ANY, FKT_CANARY_MOVE, {40, 20, 40}, 0.985, FKT_AUDIT_POOLED},
                {FKT_ADJACENCY_ADD_REMOVE, FKT_CANARY_ADD, {1, 24, 75}, 0.985, FKT_AUDIT_JOINED},
                {FKT_ADJACENCY_REPLACE, FKT_CANARY_SWAP, {1, 24, 75}, 0.985, FKT_AUDIT_JOINED}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int place = 0; place < 2; place++) {
            struct fkt_privacy_spec p = {.epsilon = 5, .delta = 1e-5, .adjacency = rows[i].adjacency};
            const double promise = fkt_privacy_mu(5, 1e-5);
            p.split_count = rows[i].split[0];
            p.parts = 1;
            p.part[0] = (struct fkt_privacy_part){1, rows[i].split[1], rows[i].split[2]};
            const double mu = distance(&p, (enum fkt_noise_place)place, rows[i].canary, rows[i].layout);
            if (!(mu <= promise && mu >= rows[i].least * promise))
                fail_msg("row %zu, %s: %.5f of %.5f", i, fkt_noise_name((enum fkt_noise_place)place), mu, promise);
        }
}

static void what_is_right_passes(void **state)
{
    struct fkt_audit_outcome o;
    struct fkt_audit_options a = options(1000);
    (void)state;
    a.one_adjacency = 1;
    CHECK_OK(fkt_mechanism_audit(&o, &a));
    if (fkt_audit_broken(&o)) fail_msg("%s", fkt_audit_broken(&o));
    CHECK(o.n == 8 && o.quantised == 16 * 2000);
    CHECK_REL(o.ledger_found, o.ledger_claimed, 1e-9);
    for (size_t i = 0; i < o.n; i++) {
        CHECK(o.cases[i].mu_from < o.cases[i].mu_claimed && o.cases[i].mu_to > 0.8 * o.cases[i].mu_claimed);
        CHECK(o.cases[i].bound.epsilon_gdp_low > 0.1);
    }
    a.privacy.mechanism = FKT_MECHANISM_PAPER;
    a.one_adjacency = 0;
    CHECK_OK(fkt_mechanism_audit(&o, &a));
    CHECK(o.n == 1 && !fkt_audit_broken(&o) && o.cases[0].adjacency == FKT_ADJACENCY_REPLACE);
}

static void options_are_checked(void **state)
{
    struct fkt_audit_outcome o;
    struct fkt_audit_options a = options(999);
    (void)state;
    CHECK_STATUS(fkt_mechanism_audit(&o, &a), FKT_E_ARG);
    a = options(1000);
    a.confidence = 1;
    CHECK_STATUS(fkt_mechanism_audit(&o, &a), FKT_E_ARG);
    a = options(1000);
    a.privacy.delta = NAN;
    CHECK_STATUS(fkt_mechanism_audit(&o, &a), FKT_E_ARG);
    a = options(1000);
    a.privacy.mechanism = FKT_MECHANISM_PAPER;
    a.one_adjacency = 1;
    CHECK_STATUS(fkt_mechanism_audit(&o, &a), FKT_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canaries_are_worst_cases),
        cmocka_unit_test(what_is_right_passes),
        cmocka_unit_test(options_are_checked),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
