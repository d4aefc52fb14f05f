/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - one measured figure beside the bound that it is held against; `fedkt bench ROOM` prints them. */
#ifndef FKT_CLI_BENCH_H
#define FKT_CLI_BENCH_H

#include "base/status.h"

#include <stddef.h>

struct fkt_bench_row {
    char name[64];
    double value;
    char unit[16];
    double bound; /* in the same unit, measured in the same run */
    double ratio_to_bound;
    char bound_name[64];
    char note[128];
};

/* Each checks its answer against a slow twin first and fails when it is wrong; then fills at most `cap` rows, best of
 * ten runs or more. */
FKT_MUST_USE fkt_status fkt_bench_moments(struct fkt_bench_row *rows, size_t cap, size_t *n);

FKT_MUST_USE fkt_status fkt_bench_privacy(struct fkt_bench_row *rows, size_t cap, size_t *n);

#endif
