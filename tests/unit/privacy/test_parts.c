/* SPDX-License-Identifier: Apache-2.0 */
/* Plans, releases and noise shares of record vectors of several parts, and with pooled second moments. */
#include "crypto/entropy.h"
#include "fedkt/advanced/privacy.h"
#include "privacy/discrete_gaussian.h"
#include "privacy/rounded_gaussian.h"
#include "tests/unit/privacy/csv.h"

enum { K = 3, N_MAX = 128 };

static const struct fkt_moments_layout layouts[] = {{2, {2, 3}, {64, 100}, 0},
                                                    {2, {2, 3}, {64, 100}, 1},
                                                    {1, {3}, {64}, 1},
                                                    {4, {1, 2, 1, 2}, {64, 65, 66, 67}, 0},
                                                    {4, {1, 2, 1, 2}, {64, 65, 66, 67}, 1}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static struct fkt_privacy_spec spec_of(const struct fkt_moments_layout *l, enum fkt_adjacency adjacency)
{
    struct fkt_privacy_spec s = {
        .epsilon = 1, .delta = 1e-5, .adjacency = adjacency, .split_count = 1, .parts = l->parts, .pooled = l->pooled};
    for (uint32_t p = 0; p < l->parts; p++) s.part[p] = (struct fkt_privacy_part){l->rq[p], 8 * (p + 1), 25 * (p + 1)};
    return s;
}

static void list(const char *text, double *out, uint32_t n)
{
    char *end = (char *)(uintptr_t)text;
    for (uint32_t i = 0; i < n; i++) out[i] = strtod(end, &end);
    CHECK(*end == '\0' || *end == ' ');
}

/* At least the optimum to 25 digits, and at most 1e-4 above it. */
static void check_sigma(double got, long double want)
{
    if (want == 0 && got == 0) return;
    if (!((long double)got >= want && (long double)got <= want * 1.0001L))
        fail_msg("sigma %.17g, optimum %.20Lg", got, want);
}

static void sigmas_are_the_oracles(void **state)
{
    struct csv c;
    int rows = 0, several = 0;
    (void)state;
    csv_open(&c, "calibration_parts.csv");
    for (; csv_next(&c, 11); rows++) {
        struct fkt_privacy_spec s = {.epsilon = strtod(c.field[0], NULL),
                                     .delta = strtod(c.field[1], NULL),
                                     .adjacency = (enum fkt_adjacency)fkt_adjacency_parse(c.field[2]),
                                     .pooled = c.field[3][0] == '1',
                                     .split_count = strtod(c.field[4], NULL),
                                     .parts = 1};
        double radius[4], sum[4], moment[4];
        char *sums = c.field[9], *moments = c.field[10];
        struct fkt_privacy_plan p;
        for (const char *t = c.field[5]; (t = strchr(t, ' ')); t++) s.parts++;
        list(c.field[5], radius, s.parts);
        list(c.field[6], sum, s.parts);
        list(c.field[7], moment, s.parts);
        for (uint32_t i = 0; i < s.parts; i++) s.part[i] = (struct fkt_privacy_part){radius[i], sum[i], moment[i]};
        CHECK_OK(fkt_privacy_plan(&p, &s));
        check_sigma(p.sigma_count, strtold(c.field[8], NULL));
        for (uint32_t i = 0; i < s.parts; i++) {
            check_sigma(p.sigma[i].sum, strtold(sums, &sums));
            check_sigma(p.sigma[i].moment, strtold(moments, &moments));
            CHECK(2 * (long double)p.sigma[i].cross * p.sigma[i].cross >=
                  (long double)p.sigma[i].moment * p.sigma[i].moment);
        }
        CHECK(p.epsilon_spent <= s.epsilon && fkt_privacy_delta(s.epsilon, p.mu) <= s.delta);
        several += s.parts > 1;
    }
    CHECK(rows == 360 && several == 270);
}

static void one_ball_more_costs_noise(void **state)
{
    const struct fkt_moments_layout both = {2, {2, 3}, {64, 100}, 0};
    struct fkt_privacy_spec s = spec_of(&both, FKT_ADJACENCY_ADD_REMOVE);
    struct fkt_privacy_plan two, one;
    (void)state;
    CHECK_OK(fkt_privacy_plan(&two, &s));
    s.parts = 1;
    CHECK_OK(fkt_privacy_plan(&one, &s));
    CHECK(two.sigma[0].sum > one.sigma[0].sum && two.sigma_count > one.sigma_count);
    CHECK_REL(two.mu, one.mu, 1e-9); /* both spend what was asked for */
    CHECK(one.sigma[1].sum == 0);
}

static void bad_parts_are_refused(void **state)
{
    const struct fkt_privacy_spec good = spec_of(&layouts[0], FKT_ADJACENCY_REPLACE);
    struct fkt_privacy_spec s;
    struct fkt_privacy_plan p;
    struct fkt_share_plan shares;
    (void)state;
    for (int which = 0; which < 8; which++) {
        s = good;
        switch (which) {
        case 0: s.parts = 0; break;
        case 1: s.parts = FKT_PARTS_MAX + 1; break;
        case 2: s.part[1].radius = NAN; break;
        case 3: s.part[1].radius = 0; break;
        case 4: s.part[1].split_sum = 0; break;
        case 5: s.part[1].split_moment = INFINITY; break;
        case 6: s.mechanism = FKT_MECHANISM_PAPER; break;
        case 7:
            s.parts = 1;
            s.pooled = 1;
            s.mechanism = FKT_MECHANISM_PAPER;
            break;
        }
        CHECK_STATUS(fkt_privacy_plan(&p, &s), FKT_E_ARG);
        if (which >= 6) CHECK(strstr(fkt_error_text(), "mechanism 'paper' is for one part") && *fkt_error_hint());
        if (which == 4) CHECK(strstr(fkt_error_text(), "part 2"));
        CHECK_STATUS(fkt_privacy_plan_shares(&shares, &s, 3, 5), FKT_E_ARG);
    }
}

/* Three records in each class but the last, which is empty. */
static void make_exact(int64_t *x, const struct fkt_moments_layout *l)
{
    memset(x, 0, fkt_layout_numbers(l, K) * sizeof *x);
    for (uint32_t k = 0; k + 1 < K; k++) {
        x[fkt_layout_count(l, K, k)] = 3;
        for (uint32_t p = 0; p < l->parts; p++) {
            x[fkt_layout_sum(l, K, k, p)] = -2 * (int64_t)l->rq[p];
            x[fkt_layout_moment(l, K, k, p)] += 3 * (int64_t)l->rq[p] * l->rq[p] - 50;
        }
    }
}

/* The definition of the order, written out; kind 0 count, 1 sum, 2 diagonal, 3 off it. */
struct number {
    int kind;
    uint32_t part;
};
static size_t write_order(struct number *out, const struct fkt_moments_layout *l)
{
    size_t n = 0;
    for (uint32_t k = 0; k <= K; k++) { /* one turn more for what is pooled */
        if (k < K) out[n++] = (struct number){0, 0};
        for (uint32_t p = 0; p < l->parts; p++) {
            for (uint32_t i = 0; k < K && i < l->length[p]; i++) out[n++] = (struct number){1, p};
            for (uint32_t i = 0; (k == K) == (l->pooled != 0) && i < l->length[p]; i++)
                for (uint32_t j = i; j < l->length[p]; j++) out[n++] = (struct number){i == j ? 2 : 3, p};
        }
    }
    CHECK(n == fkt_layout_numbers(l, K) && n <= N_MAX);
    return n;
}

static void every_number_gets_the_noise_of_its_part(void **state)
{
    (void)state;
    for (int run = 0; run < 3 * LAYOUTS; run++) {
        const struct fkt_moments_layout *l = &layouts[run / 3];
        const struct fkt_privacy_spec s = spec_of(l, (enum fkt_adjacency)(run % 3));
        struct fkt_privacy_plan p;
        struct fkt_ledger ledger;
        struct fkt_entropy_seeded a, b;
        struct fkt_entropy ea, eb;
        struct fkt_rounded_gaussian g;
        struct number order[N_MAX];
        int64_t exact[N_MAX], noised[N_MAX];
        const size_t n = write_order(order, l);
        make_exact(exact, l);
        CHECK_OK(fkt_privacy_plan(&p, &s));
        CHECK_OK(fkt_ledger_init(&ledger, p.mu * p.mu, 0));
        fkt_entropy_seeded_init(&a, 5, 0), fkt_entropy_seeded(&ea, &a);
        fkt_entropy_seeded_init(&b, 5, 0), fkt_entropy_seeded(&eb, &b);
        CHECK_OK(fkt_privacy_release(noised, exact, K, l, &p, &ledger, &ea));
        fkt_rounded_gaussian_init(&g, &eb);
        for (size_t i = 0; i < n; i++) {
            const struct fkt_part_sigma *part = &p.sigma[order[i].part];
            const double sigma[4] = {p.sigma_count, part->sum, part->moment, part->cross};
            struct fkt_gaussian_scale scale;
            int64_t noise = 0;
            if (sigma[order[i].kind] > 0) {
                CHECK_OK(fkt_gaussian_scale_init(&scale, sigma[order[i].kind]));
                CHECK_OK(fkt_rounded_gaussian_draw(&g, &scale, &noise));
            }
            CHECK(noised[i] == exact[i] + noise);
        }
        fkt_rounded_gaussian_clear(&g);
    }
}

static void every_share_has_the_variance_of_its_part(void **state)
{
    (void)state;
    for (int run = 0; run < 3 * LAYOUTS; run++) {
        const struct fkt_moments_layout *l = &layouts[run / 3];
        const struct fkt_privacy_spec s = spec_of(l, (enum fkt_adjacency)(run % 3));
        struct fkt_share_plan p;
        struct fkt_sigmas sigma;
        struct fkt_entropy_seeded a, b;
        struct fkt_entropy ea, eb;
        struct fkt_discrete_gaussian g;
        struct number order[N_MAX];
        int64_t exact[N_MAX], x[N_MAX], back[N_MAX];
        const size_t n = write_order(order, l);
        make_exact(exact, l);
        CHECK_OK(fkt_privacy_plan_shares(&p, &s, 7, 9));
        fkt_entropy_seeded_init(&a, 5, 0), fkt_entropy_seeded(&ea, &a);
        fkt_entropy_seeded_init(&b, 5, 0), fkt_entropy_seeded(&eb, &b);
        CHECK_OK(fkt_privacy_share(x, exact, K, l, &p, &ea));
        CHECK_OK(fkt_privacy_gather(back, x, K, l, &p, 9));
        CHECK_OK(fkt_privacy_total_sigmas(&sigma, &p, 9));
        fkt_discrete_gaussian_init(&g, &eb);
        for (size_t i = 0; i < n; i++) {
            const struct fkt_part_variance *part = &p.variance[order[i].part];
            const struct fkt_dyadic *v[4] = {&p.variance_count, &part->sum, &part->moment, &part->cross};
            const int count = order[i].kind == 0;
            struct fkt_discrete_scale scale;
            int64_t noise = 0;
            if (v[order[i].kind]->num) {
                CHECK_OK(fkt_discrete_scale_init(&scale, v[order[i].kind]));
                CHECK_OK(fkt_discrete_gaussian_draw(&g, &scale, &noise));
            }
            CHECK(x[i] == exact[i] * (count ? p.count_scale : 1) + noise);
            CHECK(count ? llabs(back[i] * p.count_scale - x[i]) <= p.count_scale / 2 : back[i] == x[i]);
        }
        for (uint32_t i = 0; i < l->parts; i++) {
            CHECK_REL(sigma.part[i].sum, p.plan.sigma[i].sum * sqrt(9.0 / 7), 1e-9);
            CHECK_REL(sigma.part[i].moment, p.plan.sigma[i].moment * sqrt(9.0 / 7), 1e-9);
        }
        CHECK(fkt_privacy_epsilon(s.delta, p.plan.mu) <= s.epsilon * (1 + 1e-9) && p.plan.epsilon_spent > 0.999);
        fkt_discrete_gaussian_clear(&g);
    }
}

/* The claim covers every part; a plan for another layout, or numbers that only fit the other part's ball, are refused
 * before the ledger pays. */
static void false_plans_and_layouts_are_refused(void **state)
{
    const struct fkt_moments_layout *l = &layouts[0], *pooled = &layouts[1];
    const struct fkt_privacy_spec s = spec_of(l, FKT_ADJACENCY_ADD_REMOVE);
    struct fkt_privacy_plan p;
    struct fkt_share_plan shares, bad;
    struct fkt_moments_layout other;
    struct fkt_ledger ledger;
    int64_t exact[N_MAX], x[N_MAX];
    (void)state;
    make_exact(exact, l);
    CHECK_OK(fkt_ledger_init(&ledger, 1e9, 0));
    CHECK_OK(fkt_privacy_plan_shares(&shares, &s, 7, 9));
    for (int which = 0; which < 4; which++) {
        CHECK_OK(fkt_privacy_plan(&p, &s));
        bad = shares;
        if (which == 0) p.sigma[1].sum *= 0.9, bad.variance[1].sum.num -= bad.variance[1].sum.num / 9;
        if (which == 1) p.sigma[1].moment *= 0.9, bad.variance[1].moment.num -= bad.variance[1].moment.num / 9;
        if (which == 2) p.sigma[1].cross *= 0.999, bad.variance[1].cross.num -= bad.variance[1].cross.num / 999;
        if (which == 3) p.sigma[1] = (struct fkt_part_sigma){0}, memset(&bad.variance[1], 0, sizeof bad.variance[1]);
        CHECK_STATUS(fkt_privacy_release(x, exact, K, l, &p, &ledger, NULL), FKT_E_ARG);
        CHECK_STATUS(fkt_privacy_share(x, exact, K, l, &bad, NULL), FKT_E_ARG);
    }
    CHECK_OK(fkt_privacy_plan(&p, &s));
    for (int which = 0; which < 3; which++) {
        other = *l;
        if (which == 0) other.parts = 1;
        if (which == 1) other.rq[1]++;
        CHECK_STATUS(fkt_privacy_release(x, exact, K, which == 2 ? pooled : &other, &p, &ledger, NULL), FKT_E_MISMATCH);
        CHECK_STATUS(fkt_privacy_share(x, exact, K, which == 2 ? pooled : &other, &shares, NULL), FKT_E_MISMATCH);
    }
    exact[fkt_layout_sum(l, K, 0, 0)] = 3 * 64 + 1; /* the second part could have it */
    CHECK_STATUS(fkt_privacy_release(x, exact, K, l, &p, &ledger, NULL), FKT_E_MISMATCH);
    make_exact(exact, l);
    exact[fkt_layout_moment(l, K, 1, 1)] = 3 * 100 * 100 + 1;
    CHECK_STATUS(fkt_privacy_share(x, exact, K, l, &shares, NULL), FKT_E_MISMATCH);
    CHECK(ledger.entries == 0);
    const struct fkt_privacy_spec of_pooled = spec_of(pooled, FKT_ADJACENCY_ADD_REMOVE);
    CHECK_OK(fkt_privacy_plan(&p, &of_pooled));
    make_exact(exact, pooled);
    exact[fkt_layout_moment(pooled, K, 0, 0)] = 6 * 64 * 64; /* six records in all */
    CHECK_OK(fkt_privacy_release(x, exact, K, pooled, &p, &ledger, NULL));
    exact[fkt_layout_moment(pooled, K, 0, 0)]++;
    CHECK_STATUS(fkt_privacy_release(x, exact, K, pooled, &p, &ledger, NULL), FKT_E_MISMATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigmas_are_the_oracles),
        cmocka_unit_test(one_ball_more_costs_noise),
        cmocka_unit_test(bad_parts_are_refused),
        cmocka_unit_test(every_number_gets_the_noise_of_its_part),
        cmocka_unit_test(every_share_has_the_variance_of_its_part),
        cmocka_unit_test(false_plans_and_layouts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
