/* SPDX-License-Identifier: Apache-2.0 */
/* Whole rounds in memory. Central noise means none in the round, so there the total must be the plain sum of the
 * survivors, to the last bit. */
#include "tests/support/small_federation.h"

enum { ENTRIES = FED_CLASSES * FED_BLOCK };

static const uint64_t seed = 9;

static struct fkt_federate_spec spec_of(const struct small_federation *f)
{
    return (struct fkt_federate_spec){
        .task = &f->task, .secrets = f->secrets, .moments = small_moments, .insecure_seed = &seed, .threads = 2};
}

static void plain_sum(int64_t *sum, const uint8_t *survived, uint32_t sites)
{
    int64_t one[ENTRIES];
    memset(sum, 0, ENTRIES * sizeof *sum);
    for (uint32_t s = 0; s < sites; s++) {
        if (!survived[s]) continue;
        CHECK_OK(small_moments(NULL, s, one));
        for (int i = 0; i < ENTRIES; i++) sum[i] += one[i];
    }
}

/* Runs a round without noise in which `lost` go, and holds its total against the plain sum. */
static void check_round(uint32_t sites, uint32_t dropped, const struct fkt_federate_loss *lost, size_t n)
{
    struct small_federation f;
    struct fkt_federate_spec spec;
    struct fkt_federate_result r;
    uint32_t early = 0, missed = 0;
    int64_t want[ENTRIES];
    CHECK_OK(small_federation_init(
        &f, (struct fkt_federation_choices){.sites = sites, .dropped = dropped, .noise = FKT_NOISE_PLACE_CENTRAL}, 10));
    spec = spec_of(&f);
    spec.lost = lost;
    spec.n_lost = n;
    CHECK_OK(fkt_federate(&r, &spec));
    for (size_t i = 0; i < n; i++) {
        int before = lost[i].phase <= FKT_SA_STATE_MASK;
        early += (uint32_t)before;
        CHECK(r.survived[lost[i].site] == !before);
    }
    for (int phase = 0; phase <= FKT_SA_STATE_REVEAL; phase++) missed += r.lost[phase];
    CHECK(r.survivors == sites - early && missed == n);
    plain_sum(want, r.survived, sites);
    assert_memory_equal(r.total, want, sizeof want);
    CHECK(r.packed == fkt_sa_packed(ENTRIES, f.task.federation.bits) && r.up > r.packed && r.down > 0);
    CHECK((r.throws > 0) == (f.task.federation.degree < sites - 1));
    fkt_federate_clear(&r);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void everyone_stays(void **state)
{
    (void)state;
    check_round(3, 0, NULL, 0);
    check_round(7, 2, NULL, 0);
    check_round(20, 2, NULL, 0);
    check_round(60, 6, NULL, 0); /* a sparse graph, with a coin */
}

static void sites_go_in_every_phase(void **state)
{
    (void)state;
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++) {
        struct fkt_federate_loss lost[2] = {{1, (enum fkt_sa_state)phase}, {6, (enum fkt_sa_state)phase}};
        check_round(9, 2, lost, 2);
        check_round(56, 4, lost, 2);
    }
}

static void sites_go_in_all_phases_together(void **state)
{
    struct fkt_federate_loss lost[6];
    (void)state;
    for (uint32_t i = 0; i < 6; i++) lost[i] = (struct fkt_federate_loss){3 * i, (enum fkt_sa_state)(i + 1)};
    check_round(20, 6, lost, 6);
    check_round(60, 6, lost, 6);
}

/* One more than the task allows: nothing is released, and the sentence says why. */
static void too_many_lost_end_the_round(void **state)
{
    struct small_federation f;
    struct fkt_federate_spec spec;
    struct fkt_federate_result r;
    (void)state;
    CHECK_OK(small_federation_init(
        &f, (struct fkt_federation_choices){.sites = 9, .dropped = 2, .noise = FKT_NOISE_PLACE_CENTRAL}, 10));
    spec = spec_of(&f);
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_MASK; phase++) {
        struct fkt_federate_loss lost[3] = {
            {0, (enum fkt_sa_state)phase}, {1, FKT_SA_STATE_ADVERTISE}, {8, FKT_SA_STATE_MASK}};
        spec.lost = lost;
        spec.n_lost = 3;
        CHECK_STATUS(fkt_federate(&r, &spec), FKT_E_TOO_FEW);
        CHECK(r.total == NULL && fkt_error_text()[0]);
    }
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void run_seeded(struct fkt_federate_result *r, const struct small_federation *f, uint64_t s, unsigned threads)
{
    struct fkt_federate_spec spec = spec_of(f);
    spec.insecure_seed = &s;
    spec.threads = threads;
    CHECK_OK(fkt_federate(r, &spec));
}

static double variance_of(const struct fkt_share_plan *p, int kind)
{
    const struct fkt_part_variance *part = &p->variance[0];
    const struct fkt_dyadic *v = kind == 0   ? &p->variance_count
                                 : kind == 1 ? &part->sum
                                 : kind == 2 ? &part->moment
                                             : &part->cross;
    return ldexp((double)v->num, -(int)v->shift);
}

/* Sums and second moments of the difference, squared, in units of the variance that `shares` shares have. */
static double squares(const int64_t *total, const int64_t *want, const struct fkt_share_plan *p, uint32_t shares)
{
    double sum = 0;
    for (int k = 0; k < FED_CLASSES; k++) {
        int at = k * FED_BLOCK + 1;
        for (int i = 0; i < FED_LENGTH; i++, at++)
            sum += pow((double)(total[at] - want[at]), 2) / (shares * variance_of(p, 1));
        for (int i = 0; i < FED_LENGTH; i++)
            for (int j = i; j < FED_LENGTH; j++, at++)
                sum += pow((double)(total[at] - want[at]), 2) / (shares * variance_of(p, i == j ? 2 : 3));
    }
    return sum;
}

/* The noise in a total is that of as many shares as survived: one share too few of eight would give 0.875. */
static void the_total_carries_every_survivors_noise(void **state)
{
    enum { ROUNDS = 60, DRAWS = ROUNDS * FED_CLASSES * (FED_BLOCK - 1) };
    struct small_federation f;
    struct fkt_sa_params p;
    struct fkt_share_plan shares;
    uint8_t all[8];
    int64_t want[ENTRIES];
    double sum = 0;
    (void)state;
    memset(all, 1, sizeof all);
    plain_sum(want, all, 8);
    CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = 8, .dropped = 2, .corrupt = 1}, 10));
    CHECK_OK(fkt_federation_open(&f.task, &p, &shares));
    CHECK(shares.counted == 5);
    for (uint64_t s = 0; s < ROUNDS; s++) {
        struct fkt_federate_result r;
        run_seeded(&r, &f, s, 2);
        sum += squares(r.total, want, &shares, 8);
        CHECK(llabs(r.total[0] - want[0] * shares.count_scale) <= shares.tail);
        fkt_federate_clear(&r);
    }
    /* beyond five standard errors once in a million; the seeds are fixed */
    CHECK_NEAR(sum / DRAWS, 1, 5 * sqrt(2.0 / DRAWS));
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void a_seed_fixes_everything_and_nothing_else_does(void **state)
{
    struct small_federation f;
    struct fkt_federate_result a, b, c, d;
    struct fkt_federate_spec spec;
    (void)state;
    CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = 8, .dropped = 2, .corrupt = 1}, 10));
    run_seeded(&a, &f, 1, 1);
    run_seeded(&b, &f, 1, 3);
    run_seeded(&c, &f, 2, 1);
    spec = spec_of(&f);
    spec.insecure_seed = NULL;
    CHECK_OK(fkt_federate(&d, &spec));
    assert_memory_equal(a.total, b.total, ENTRIES * sizeof *a.total);
    CHECK(a.up == b.up && a.down == b.down);
    CHECK(memcmp(a.total, c.total, ENTRIES * sizeof *a.total) != 0);
    CHECK(memcmp(a.total, d.total, ENTRIES * sizeof *a.total) != 0);
    fkt_federate_clear(&a);
    fkt_federate_clear(&b);
    fkt_federate_clear(&c);
    fkt_federate_clear(&d);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static fkt_status greedy(void *self, uint32_t site, int64_t *exact)
{
    fkt_status st = small_moments(self, site, exact);
    if (site == 2) exact[FED_BLOCK] = 17; /* of class 'dog'; the task allows 16 */
    return st;
}

static fkt_status broken(void *self, uint32_t site, int64_t *exact)
{
    (void)self;
    (void)exact;
    return site == 3 ? fkt_fail(FKT_E_IO, "the disk is gone") : small_moments(NULL, site, exact);
}

static int stop_at_once(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)self;
    (void)what;
    (void)total;
    return done > 2;
}

static void what_goes_wrong_is_told(void **state)
{
    struct small_federation f;
    struct fkt_federate_spec spec;
    struct fkt_federate_result r;
    struct fkt_progress hook = {stop_at_once, NULL};
    struct fkt_federate_loss twice[2] = {{1, FKT_SA_STATE_MASK}, {1, FKT_SA_STATE_SHARE}}, odd = {1, FKT_SA_STATE_DONE},
                             stranger = {5, FKT_SA_STATE_MASK};
    (void)state;
    CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = 5, .corrupt = 1}, 10));
    spec = spec_of(&f);
    spec.moments = greedy;
    CHECK_STATUS(fkt_federate(&r, &spec), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "site 2") && strstr(fkt_error_text(), "17 records of class 'dog'"));
    spec.moments = broken;
    CHECK_STATUS(fkt_federate(&r, &spec), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "site 3: the disk is gone"));
    spec = spec_of(&f);
    spec.progress = &hook;
    CHECK_STATUS(fkt_federate(&r, &spec), FKT_E_STOPPED);
    spec = spec_of(&f);
    spec.lost = twice;
    spec.n_lost = 2;
    CHECK_STATUS(fkt_federate(&r, &spec), FKT_E_ARG);
    spec.n_lost = 1;
    spec.lost = &odd;
    CHECK_STATUS(fkt_federate(&r, &spec), FKT_E_ARG);
    spec.lost = &stranger;
    CHECK_STATUS(fkt_federate(&r, &spec), FKT_E_ARG);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everyone_stays),
        cmocka_unit_test(sites_go_in_every_phase),
        cmocka_unit_test(sites_go_in_all_phases_together),
        cmocka_unit_test(too_many_lost_end_the_round),
        cmocka_unit_test(the_total_carries_every_survivors_noise),
        cmocka_unit_test(a_seed_fixes_everything_and_nothing_else_does),
        cmocka_unit_test(what_goes_wrong_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
