/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - the 1st, 2nd, 3rd ... allocation of an operation fails in turn until none is left to fail. */
#ifndef FKT_TEST_SWEEP_H
#define FKT_TEST_SWEEP_H

#include "tests/support/check.h"

/* Each failing run must say FKT_E_NOMEM and leak nothing; `after` (may be NULL) looks at what a run left behind. Gives
 * the number of the first run that succeeded. */
static inline size_t sweep_allocations(fkt_status (*run)(void), void (*after)(fkt_status st))
{
    size_t before = fkt_alloc_live(), n;
    for (n = 1; n < 100000; n++) {
        fkt_status st;
        fkt_alloc_fault_at(n, 0);
        st = run();
        fkt_alloc_fault_at(0, 0);
        if (fkt_alloc_live() != before) fail_msg("allocation %zu: %zu blocks leaked", n, fkt_alloc_live() - before);
        if (after) after(st);
        if (st == FKT_OK) return n;
        if (st != FKT_E_NOMEM) fail_msg("allocation %zu: '%s' (%s)", n, fkt_status_name(st), fkt_error_text());
    }
    fail_msg("no run succeeded");
    return 0;
}

#endif
