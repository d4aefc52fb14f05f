/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - prints what a task asks of a site's noise and masks, as JSON, so that the tests can draw the same noise with
 * the oracle's sampler and speak the protocol themselves. Usage: federation_plan TASK */
#include "fedkt/advanced/federation.h"
#include "fedkt/privacy.h"
#include "fedkt/task.h"

#include "task/task.h"

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct fkt_task task = {0};
    struct fkt_sa_params p;
    struct fkt_share_plan s;
    fkt_status st = argc == 2 ? fkt_task_load_into(&task, argv[1]) : FKT_E_ARG;
    if (st == FKT_OK) st = fkt_federation_open(&task, &p, &s);
    if (st != FKT_OK) {
        fprintf(stderr, "federation_plan: %s\n", fkt_error_text());
        fkt_task_clear(&task);
        return 1;
    }
    printf("{\"sha256\":\"%s\",\"length\":%" PRIu32 ",\"vector\":%" PRIu32 ",\"count_scale\":%" PRIu32
           ",\"counted\":%" PRIu32 ",\"variance\":[",
           task.sha256, task.part[0].coordinates.length, p.length, s.count_scale, s.counted);
    const struct fkt_dyadic variance[4] = {s.variance_count, s.variance[0].sum, s.variance[0].moment,
                                           s.variance[0].cross};
    for (int i = 0; i < 4; i++)
        printf("%s[%" PRIu64 ",%u]", i ? "," : "", (uint64_t)variance[i].num, (unsigned)variance[i].shift);
    printf("]}\n");
    fkt_task_clear(&task);
    return 0;
}
