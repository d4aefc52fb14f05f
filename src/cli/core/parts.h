/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the networks of a task from options: codec, guide, or both, for `task new` and `simulate`. */
#ifndef FKT_CLI_CORE_PARTS_H
#define FKT_CLI_CORE_PARTS_H

#include "cli/core/common.h"

struct cli_parts {
    uint32_t n;
    struct fkt_codec *codec[FKT_PARTS_MAX];
    struct fkt_calibration calibration[FKT_PARTS_MAX];
    struct fkt_part_choice choice[FKT_PARTS_MAX]; /* they borrow the above */
};
/* Opens them, and fills in the choices of a task: filter, fit, coordinates, moments, and its privacy at `epsilon`. It
 * accepts any promise: call cli_check_promise afterwards. */
FKT_MUST_USE fkt_status cli_open_parts(struct cli_parts *out, struct fkt_task_choices *task, const struct cli_codec *c,
                                       const struct cli_privacy *p, double epsilon);
void cli_parts_clear(struct cli_parts *parts);
/* FKT_E_ARG when `option` asks for images and the task will give none. */
FKT_MUST_USE fkt_status cli_parts_want_images(const struct cli_codec *c, const char *option);

#endif
