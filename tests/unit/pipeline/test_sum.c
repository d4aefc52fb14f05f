/* SPDX-License-Identifier: Apache-2.0 */
/* The release of a task in cohorts is the exact sum of the cohorts' releases, whatever their order; what is not of one
 * division, or twice there, is refused; its file and its certificate survive, and a changed one does not. */
#include "pipeline/sum.h"
#include "tests/support/scratch.h"
#include "tests/support/small_cohorts.h"
#include "tests/support/sweep.h"

#define T(f) cmocka_unit_test(f)

struct scene {
    struct small_cohorts c;
    struct fkt_release *made[COHORTS];
};

static void scene_init(struct scene *s, uint8_t seed)
{
    CHECK_OK(small_cohorts_init(&s->c, seed));
    for (uint32_t i = 0; i < COHORTS; i++) s->made[i] = cohort_release(&s->c, i);
}

static void scene_release(struct scene *s)
{
    for (uint32_t i = 0; i < COHORTS; i++) fkt_release_free(s->made[i]);
    small_cohorts_release(&s->c);
}

static void the_sum_is_exact(void **state)
{
    struct scene s;
    struct fkt_release sum, again;
    struct fkt_release *turned[COHORTS];
    double variance = 0;
    (void)state;
    scene_init(&s, 1);
    CHECK_OK(fkt_release_sum_into(&sum, s.made, COHORTS));
    for (size_t k = 0; k < FED_CLASSES * FED_BLOCK; k++) {
        int64_t want = 0;
        for (int i = 0; i < COHORTS; i++) want += s.made[i]->moments[k];
        CHECK(sum.moments[k] == want);
    }
    for (int i = 0; i < COHORTS; i++) variance += pow(s.made[i]->sigma.part[0].moment, 2);
    CHECK_REL(sum.sigma.part[0].moment, sqrt(variance), 1e-12);
    CHECK(sum.facts.survivors == COHORT_SITES && sum.facts.sites == COHORT_SITES && sum.insecure_seed);
    for (int i = 0; i < COHORTS; i++) CHECK(sum.plan.mu >= s.made[i]->plan.mu);
    for (int i = 0; i < COHORTS; i++) turned[i] = s.made[(i + 1) % COHORTS];
    CHECK_OK(fkt_release_sum_into(&again, turned, COHORTS));
    assert_string_equal(again.sha256, sum.sha256);
    fkt_release_clear(&again);
    fkt_release_clear(&sum);
    scene_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

static void a_missing_cohort_is_said(void **state)
{
    struct scene s;
    struct fkt_release sum;
    char *text = NULL;
    (void)state;
    scene_init(&s, 1);
    CHECK_OK(fkt_release_sum_into(&sum, s.made + 1, COHORTS - 1));
    CHECK(sum.facts.survivors == COHORT_SITES - cohort_sites(&s.c, 0) && sum.sum.cohort[0].index == 1);
    CHECK_OK(fkt_release_certificate(&sum, &text));
    CHECK(strstr(text, "1 of 3 cohorts gave no release: their sites are not in the sum") != NULL);
    fkt_string_free(text);
    fkt_release_clear(&sum);
    CHECK_STATUS(fkt_release_sum_into(&sum, s.made, 0), FKT_E_TOO_FEW);
    scene_release(&s);
}

static void what_does_not_belong_is_refused(void **state)
{
    struct scene s, other;
    struct fkt_release sum, of_sum;
    struct fkt_release *mixed[2];
    (void)state;
    scene_init(&s, 1);
    scene_init(&other, 2);
    mixed[0] = s.made[0];
    mixed[1] = other.made[1];
    CHECK_STATUS(fkt_release_sum_into(&sum, mixed, 2), FKT_E_MISMATCH);
    mixed[1] = s.made[0];
    CHECK_STATUS(fkt_release_sum_into(&sum, mixed, 2), FKT_E_MISMATCH);
    s.made[1]->facts.simulated = 1;
    mixed[1] = s.made[1];
    CHECK_STATUS(fkt_release_sum_into(&sum, mixed, 2), FKT_E_MISMATCH);
    s.made[1]->facts.simulated = 0;
    CHECK_OK(fkt_release_sum_into(&sum, s.made, COHORTS));
    mixed[0] = &sum;
    CHECK_STATUS(fkt_release_sum_into(&of_sum, mixed, 1), FKT_E_MISMATCH);
    fkt_release_clear(&sum);
    s.made[0]->moments[3] = s.made[1]->moments[3] = INT64_MAX / 2;
    CHECK_STATUS(fkt_release_sum_into(&sum, s.made, COHORTS), FKT_E_NUMERIC);
    scene_release(&other);
    scene_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

/* A certificate whose list was changed by hand does not follow from it any more. */
static void a_changed_certificate_is_refused(void **state)
{
    static const struct {
        const char *key;
        json_int_t value;
    } change[] = {{"survivors", 1}, {"index", 0}, {"corrupt_tolerated", 0}, {"dropped_tolerated", 3}, {"sites", 65536}};
    struct scratch scratch;
    struct scene s;
    struct fkt_release sum, back;
    char *text = NULL;
    (void)state;
    scratch_init(&scratch);
    scene_init(&s, 1);
    CHECK_OK(fkt_release_sum_into(&sum, s.made, COHORTS));
    CHECK_OK(fkt_release_save(&sum, scratch_path(&scratch, "sum.safetensors"), 0));
    CHECK_OK(fkt_release_load_into(&back, scratch_path(&scratch, "sum.safetensors")));
    assert_string_equal(back.sha256, sum.sha256);
    assert_memory_equal(back.moments, sum.moments, FED_CLASSES * FED_BLOCK * sizeof *sum.moments);
    CHECK(back.sum.n == COHORTS && back.sum.covered == sum.sum.covered && back.sigma.count == sum.sigma.count);
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        json_t *j = fkt_certificate_json(&sum);
        json_t *one = json_array_get(json_object_get(json_object_get(j, "cohorts"), "list"), 1);
        json_object_set_new(one, change[i].key, json_integer(change[i].value));
        CHECK_OK(fkt_json_text(&text, j, 0));
        fkt_sum_clear(&back.sum);
        if (fkt_sum_take(&back, text) == FKT_OK && fkt_sum_plan(&back) == FKT_OK)
            CHECK(fkt_certificate_check(&back, text) != FKT_OK);
        fkt_free(text);
        text = NULL;
    }
    fkt_release_clear(&back);
    fkt_release_clear(&sum);
    scene_release(&s);
    scratch_release(&scratch);
    CHECK(fkt_alloc_live() == 0);
}

/* The keys that certificates of older releases may lack; there were no sums then. */
static void a_certificate_without_its_claims_is_refused(void **state)
{
    static const char *const claim[] = {"accounting", "rho", "noise_shares", "holds_against"};
    struct scene s;
    struct fkt_release sum;
    char *text = NULL;
    (void)state;
    scene_init(&s, 1);
    CHECK_OK(fkt_release_sum_into(&sum, s.made, COHORTS));
    for (int gone = 0; gone < 2; gone++) {
        json_t *j = fkt_certificate_json(&sum);
        for (size_t i = 0; gone && i < sizeof claim / sizeof *claim; i++) json_object_del(j, claim[i]);
        CHECK_OK(fkt_json_text(&text, j, 0));
        CHECK_STATUS(fkt_certificate_check(&sum, text), gone ? FKT_E_MISMATCH : FKT_OK);
        fkt_free(text);
    }
    fkt_release_clear(&sum);
    scene_release(&s);
}

static void it_is_said_for_whom_nothing_holds(void **state)
{
    static const char *const words = "nothing is stated for the sites of the cohorts that are not in the sum";
    struct scene s;
    struct fkt_release sum;
    (void)state;
    scene_init(&s, 1);
    for (uint32_t missing = 0; missing < 2; missing++) {
        json_t *said;
        CHECK_OK(fkt_release_sum_into(&sum, s.made + missing, COHORTS - missing));
        said = fkt_sum_holds_against(&sum);
        CHECK((strstr(json_string_value(said), words) != NULL) == (missing > 0));
        json_decref(said);
        fkt_release_clear(&sum);
    }
    scene_release(&s);
}

static struct scene for_sweep;

static fkt_status add_them(void)
{
    struct fkt_release sum;
    const fkt_status st = fkt_release_sum_into(&sum, for_sweep.made, COHORTS);
    if (st == FKT_OK) fkt_release_clear(&sum);
    return st;
}

static void memory_that_runs_out(void **state)
{
    (void)state;
    scene_init(&for_sweep, 1);
    CHECK(sweep_allocations(add_them, NULL) > 10);
    scene_release(&for_sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(the_sum_is_exact),
                                       T(a_missing_cohort_is_said),
                                       T(what_does_not_belong_is_refused),
                                       T(a_changed_certificate_is_refused),
                                       T(a_certificate_without_its_claims_is_refused),
                                       T(it_is_said_for_whom_nothing_holds),
                                       T(memory_that_runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
