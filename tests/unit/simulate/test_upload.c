/* SPDX-License-Identifier: Apache-2.0 */
/* What a site uploads for a record vector of two parts: a codec and a guide of 64 numbers each, ten classes. The bound
 * is the paper's upload for one part, 327.5 KiB. One width for all numbers keeps it: 44,210 of up to 60 bits. */
#include "fedkt/advanced/federation.h"

#include "pipeline/contribution.h"
#include "tests/support/check.h"
#include "tests/support/guided_task.h"

enum { DIM = 64, NUMBERS = 10 * (1 + 2 * (65 + 65 * 66 / 2)), PAPER = 335360 /* 327.5 KiB */, SITES_MAX = 1000 };

static uint8_t roster[SITES_MAX * FKT_SA_KEY], secrets[SITES_MAX * FKT_SA_SECRET];

static fkt_status no_records(void *self, uint32_t site, int64_t *exact)
{
    (void)self;
    (void)site;
    memset(exact, 0, NUMBERS * sizeof *exact);
    return FKT_OK;
}

static void federation(struct guided_task *g, uint32_t sites, uint64_t records, double epsilon, int joined)
{
    const uint64_t seed = 3;
    const struct fkt_federation_choices c = {
        .sites = sites, .dropped = sites / 10, .corrupt = (sites + 9) / 10, .records = records, .roster = roster};
    CHECK_OK(fkt_federation_keys(roster, secrets, sites, &seed));
    CHECK_OK(guided_task(
        g, 1, DIM,
        (struct fkt_task_choices){
            .federation = &c, .joined = joined, .accept_weak = 1, .privacy = {.epsilon = epsilon, .delta = 1e-5}}));
}

/* The bytes that were really sent: fkt_federate carries the messages of every site and counts them. */
static void a_round_sends_no_more_than_the_paper(void **state)
{
    struct fkt_federate_result r;
    struct guided_task g;
    const uint64_t seed = 3;
    struct fkt_federate_spec spec = {
        .task = &g.task, .secrets = secrets, .moments = no_records, .insecure_seed = &seed, .threads = 2};
    (void)state;
    federation(&g, 20, FKT_RECORDS_UNKNOWN, 1, 0);
    CHECK(fkt_task_numbers(&g.task) == NUMBERS);
    CHECK_OK(fkt_federate(&r, &spec));
    CHECK(r.survivors == 20 && r.packed == ((uint64_t)NUMBERS * g.task.federation.bits + 7) / 8);
    print_message("a site sends %llu bytes: %u bits a number\n", (unsigned long long)r.up, g.task.federation.bits);
    if (r.up > PAPER) fail_msg("a site sends %llu bytes", (unsigned long long)r.up);
    CHECK(r.up > r.packed && r.up < r.packed + 8192); /* and little beside its numbers */
    fkt_federate_clear(&r);
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

/* The longest messages of a site, for more sites, more records and more noise than that. */
static void other_federations_send_no_more_either(void **state)
{
    static const struct {
        uint32_t sites;
        uint64_t records;
        double epsilon;
    } made[] = {{3, 1, 20},
                {20, 5000, 10},
                {20, 5000, 0.1},
                {100, FKT_RECORDS_UNKNOWN, 0.3},
                {SITES_MAX, FKT_RECORDS_UNKNOWN, 0.3},
                {SITES_MAX, (uint64_t)1 << 30, 0.3}};
    struct fkt_contribution_message m[FKT_CONTRIBUTION_MESSAGES];
    struct fkt_share_plan shares;
    struct fkt_sa_params params;
    struct guided_task g;
    (void)state;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        uint64_t sum = 0;
        federation(&g, made[i].sites, made[i].records, made[i].epsilon, 0);
        CHECK_OK(fkt_federation_open(&g.task, &params, &shares));
        CHECK(params.length == NUMBERS && params.bits <= 60);
        for (size_t j = fkt_contribution_messages(m, &params); j-- > 0;) sum += m[j].bytes;
        if (sum > PAPER)
            fail_msg("%u sites, %llu records: %llu bytes of %u bits", made[i].sites,
                     (unsigned long long)made[i].records, (unsigned long long)sum, params.bits);
        guided_parts_clear(&g);
    }
    federation(&g, 20, 5000, 1, 1); /* joined: twice the numbers, and so more than the paper's */
    CHECK(fkt_task_numbers(&g.task) == 10 * (131 * 132 / 2));
    guided_parts_clear(&g);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_sends_no_more_than_the_paper),
        cmocka_unit_test(other_federations_send_no_more_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
