/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - what the files of `fedkt serve` share. */
#ifndef FKT_CLI_FEDERATION_SERVE_H
#define FKT_CLI_FEDERATION_SERVE_H

#include "fedkt/serve.h"

#include "base/status.h"
#include "cli/core/common.h"

struct cli_serve_asked {
    const char *task, *state, *listen, *key, *certificate, *private_key, *out, *calibration, *guide_calibration;
    struct cli_weights settings;
    uint64_t per_class, linger;
    int format, stay, accept_weak;
    int cohorts; /* the task is a folder with a task for each cohort */
    struct cli_run run;
};
/* The listener of fkt_serve's events. */
struct cli_serve {
    const struct cli_serve_asked *a;
    struct cli_progress progress;
    struct cli_serve_said {
        struct fkt_serve_view view; /* the last line printed */
        double at;                  /* 0: nothing yet */
    } * said;                       /* (n_said) by cohort; one where there are none */
    uint32_t n_said;
    struct fkt_failure failed; /* the error of standard output that ended it; status FKT_OK: none */
};
int cli_serve_event(void *self, const struct fkt_serve_event *e);

#endif
