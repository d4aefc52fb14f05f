/* SPDX-License-Identifier: Apache-2.0 */
/* cohorts.h - `fedkt task new --cohort-size`: a folder with a task for each cohort. */
#ifndef FKT_CLI_TASK_COHORTS_H
#define FKT_CLI_TASK_COHORTS_H

#include "cli/task/federation.h"
#include "cli/task/service.h"

#include "task/division.h"

struct cli_cohorts {
    const char *out; /* the folder */
    const struct cli_run *run;
    struct fkt_division division; /* number 0: all sites are one cohort, and there is one task */
    struct fkt_division_lists lists;
    const struct fkt_roster *roster; /* borrowed while the tasks are made */
    uint32_t corrupt, dropped;       /* of all sites, where given */
    int corrupt_given, dropped_given;
    uint32_t least, most; /* sites in a cohort */
    int is_signed, has_server;
};
/* Whether there are cohorts, and who is in which. */
FKT_MUST_USE fkt_status cli_cohorts_plan(struct cli_cohorts *c, const struct cli_federation_asked *a,
                                         const struct fkt_federation_choices *all, const struct fkt_roster *roster);
/* Makes, signs (key NULL: does not) and writes all of them; `whole` is the task of the sum. */
FKT_MUST_USE fkt_status cli_cohorts_make(struct cli_cohorts *c, const struct fkt_task *whole,
                                         const struct fkt_federation_choices *all, const struct cli_service *service,
                                         const char *key);
FKT_MUST_USE fkt_status cli_cohorts_print(const struct cli_cohorts *c, const struct fkt_task *whole);
void cli_cohorts_clear(struct cli_cohorts *c);

#endif
