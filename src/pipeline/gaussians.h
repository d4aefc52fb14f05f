/* SPDX-License-Identifier: Apache-2.0 */
/* gaussians.h - class Gaussians of the parts of a task's layout, for the files of this module and for simulate/. */
#ifndef FKT_PIPELINE_GAUSSIANS_H
#define FKT_PIPELINE_GAUSSIANS_H

#include "fedkt/advanced/synth.h"
#include "fedkt/synth.h"

#include "task/task.h"

/* Gaussians of part `part` of the task's layout from packed moments. sigma NULL: the moments are exact. */
FKT_MUST_USE fkt_status fkt_task_gaussians(struct fkt_gaussians *out, const struct fkt_task *t, const int64_t *moments,
                                           const struct fkt_sigmas *sigma, uint32_t part,
                                           const struct fkt_estimate_options *options);
/* g (FKT_PARTS_MAX), zero where the layout has no such part. */
FKT_MUST_USE fkt_status fkt_task_gaussians_all(struct fkt_gaussians g[FKT_PARTS_MAX], const struct fkt_task *t,
                                               const int64_t *moments, const struct fkt_sigmas *sigma,
                                               const struct fkt_estimate_options *options);
struct fkt_release;
FKT_MUST_USE fkt_status fkt_release_gaussians_all(const struct fkt_release *r,
                                                  const struct fkt_estimate_options *options,
                                                  struct fkt_gaussians g[FKT_PARTS_MAX]);
void fkt_gaussians_clear_all(struct fkt_gaussians g[FKT_PARTS_MAX]);

#endif
