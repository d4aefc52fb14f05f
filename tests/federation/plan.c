/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - prints what a task asks of a site's noise and masks, as JSON, so that the tests can draw the same noise with
 * the oracle's sampler and speak the protocol themselves. Usage: federation_plan TASK */
#include "fedkt/advanced/federation.h"
#include "fedkt/privacy.h"
#include "fedkt/task.h"

#include "task/task.h"

#include <inttypes.h>
#include <stdio.h>

static void print_variance(struct fkt_dyadic v) { printf("[%" PRIu64 ",%u]", (uint64_t)v.num, (unsigned)v.shift); }

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
    printf("{\"sha256\":\"%s\",\"classes\":%" PRIu32 ",\"pooled\":%s,\"vector\":%" PRIu32 ",\"count_scale\":%" PRIu32
           ",\"counted\":%" PRIu32 ",\"lengths\":[",
           task.sha256, task.n_classes, task.layout.pooled ? "true" : "false", p.length, s.count_scale, s.counted);
    for (uint32_t i = 0; i < task.layout.parts; i++) printf("%s%" PRIu32, i ? "," : "", task.layout.length[i]);
    printf("],\"variance\":[");
    print_variance(s.variance_count);
    for (uint32_t i = 0; i < task.layout.parts; i++) {
        const struct fkt_dyadic of[3] = {s.variance[i].sum, s.variance[i].moment, s.variance[i].cross};
        for (int j = 0; j < 3; j++) {
            putchar(',');
            print_variance(of[j]);
        }
    }
    printf("]}\n");
    fkt_task_clear(&task);
    return 0;
}
