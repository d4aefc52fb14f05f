/* SPDX-License-Identifier: Apache-2.0 */
/* Degrees and thresholds against oracle/finder.py, which counts in integers. */
#include "crypto/sign.h"
#include "fedkt/advanced/secagg.h"
#include "tests/support/check.h"

static void as_counted_in_integers(void **state)
{
    FILE *f = fopen(FKT_TEST_VECTORS "/secagg_finder.csv", "r");
    unsigned sites, corrupt, dropped, security, failure, want_k, want_t, rows = 0;
    char line[128];
    (void)state;
    CHECK(f);
    CHECK(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        uint32_t k, t;
        fkt_status st;
        CHECK(sscanf(line, "%u,%u,%u,%u,%u,%u,%u", &sites, &corrupt, &dropped, &security, &failure, &want_k, &want_t) ==
              7);
        st = fkt_sa_find(sites, corrupt, dropped, security, failure, &k, &t);
        if (k != want_k || t != want_t || st != (want_k ? FKT_OK : FKT_E_ARG))
            fail_msg("%u,%u,%u,%u,%u: got (%u, %u), want (%u, %u)", sites, corrupt, dropped, security, failure, k, t,
                     want_k, want_t);
        rows++;
    }
    fclose(f);
    CHECK(rows == 70);
}

/* Every result passes the check that every party makes. */
static void what_is_found_is_taken(void **state)
{
    static uint8_t roster[300][FKT_SA_KEY];
    uint8_t seed[FKT_SIGN_SEED] = {0}, sk[FKT_SIGN_SECRET];
    uint32_t found = 0;
    (void)state;
    for (uint32_t i = 0; i < 300; i++) {
        seed[0] = (uint8_t)i, seed[1] = (uint8_t)(i >> 8);
        fkt_sign_keypair(roster[i], sk, seed);
    }
    for (uint32_t n = 3; n <= 300; n = n < 60 ? n + 1 : n + 80)
        for (uint32_t c = 0; c < n; c += 1 + n / 7)
            for (uint32_t d = 0; d < n; d += 1 + n / 7) {
                struct fkt_sa_params p = {.sites = n,
                                          .corrupt = c,
                                          .dropped = d,
                                          .attempts = 1,
                                          .bits = 32,
                                          .length = 1,
                                          .bound = 1,
                                          .roster = roster[0]};
                if (fkt_sa_find(n, c, d, 40, 20, &p.degree, &p.threshold) != FKT_OK) {
                    CHECK(n < c + 2 * d + 2 && p.degree == 0 && p.threshold == 0);
                    continue;
                }
                CHECK_OK(fkt_sa_params_check(&p));
                CHECK(n > 50 || p.degree == n - 1);
                found++;
            }
    CHECK(found > 500);
}

static void refused(void **state)
{
    uint32_t k, t;
    (void)state;
    CHECK_STATUS(fkt_sa_find(2, 0, 0, 40, 20, &k, &t), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_find(65537, 0, 0, 40, 20, &k, &t), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_find(100, 10, 10, 0, 20, &k, &t), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_find(100, 10, 10, 40, 0, &k, &t), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_find(100, 10, 10, 257, 20, &k, &t), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_find(100, UINT32_MAX, UINT32_MAX, 40, 20, &k, &t), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_find(100, 40, 30, 40, 20, &k, &t), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "40 corrupt and 30 lost"));
    CHECK(fkt_error_hint()[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_counted_in_integers),
                                       cmocka_unit_test(what_is_found_is_taken), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
