/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a check fails in turn: one clear status, nothing leaked, no verdict. */
#include "fedkt/server.h"
#include "fedkt/verify.h"
#include "tests/support/log_maker.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

static struct scratch scratch;

static fkt_status verify(void)
{
    struct fkt_verification r;
    fkt_status st = fkt_verify_folder(&r, scratch.dir, NULL, scratch_path(&scratch, "receipt.json"));
    CHECK(st == FKT_OK || (r.entries == 0 && r.release_sha256[0] == '\0'));
    return st;
}

static void sweep(uint32_t n)
{
    struct log_maker maker;
    scratch_init(&scratch);
    CHECK_OK(log_maker_init(&maker, n, n > 50 ? 2 : 1, 1));
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK(sweep_allocations(verify, NULL) > 20);
    log_maker_release(&maker);
    scratch_release(&scratch);
}

static void a_complete_graph(void **state)
{
    (void)state;
    sweep(5);
}

static void a_sparse_graph(void **state)
{
    (void)state;
    sweep(52);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_complete_graph), cmocka_unit_test(a_sparse_graph)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
