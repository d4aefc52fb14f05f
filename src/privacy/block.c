/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - checks what any sum of n records in a ball satisfies: release.md, step 3.
 * A plan made for another radius (R instead of Rq, say) would give too little noise. Honest sums always pass, so the
 * result reveals nothing about them. The same check precedes the central release and a site's noise share. Cost: one
 * pass over the numbers. */
#include "privacy/block.h"

#include "base/checked.h"

#include <math.h>

fkt_status fkt_block_sizes(uint32_t classes, uint32_t length, size_t *block, size_t *n)
{
    if (classes == 0 || length == 0)
        return fkt_fail(FKT_E_ARG, "moments need at least one class and records of length 1 or more");
    if (!fkt_mul_size((size_t)length + 1, (size_t)length + 2, block) || !fkt_mul_size(*block / 2, classes, n) ||
        *n > SIZE_MAX / sizeof(int64_t))
        return fkt_fail(FKT_E_ARG, "%u classes of records of length %u do not fit into memory", classes, length);
    *block /= 2;
    return FKT_OK;
}

fkt_status fkt_block_check(const int64_t *exact, uint32_t length, double radius)
{
    const double most = (double)exact[0] * (1 + 1e-9), sum = most * radius, moment = sum * radius;
    const int64_t *m = exact + 1 + length;
    double trace = 0; /* a sum of |q|^2, so it has the same bound as one entry */
    int ok = exact[0] >= 0 && exact[0] <= FKT_BLOCK_MAX && moment <= (double)FKT_BLOCK_MAX;
    for (uint32_t i = 0; ok && i < length; i++) ok = fabs((double)exact[1 + i]) <= sum;
    for (uint32_t i = 0; ok && i < length; i++)
        for (uint32_t j = i; ok && j < length; j++, m++) {
            ok = fabs((double)*m) <= moment && (i != j || *m >= 0);
            if (i == j) trace += (double)*m;
        }
    ok = ok && trace <= moment;
    return ok ? FKT_OK
              : fkt_fail_hint(FKT_E_MISMATCH, "plan with the integer radius Rq that the records were quantised to",
                              "the moments are not sums of records inside the plan's radius %g", radius);
}
