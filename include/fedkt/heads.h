/* SPDX-License-Identifier: Apache-2.0 */
/* heads.h - the closed-form heads of classifier.h, fitted to a release and scored on images. */
#ifndef FEDKT_HEADS_H
#define FEDKT_HEADS_H

#include "fedkt/classifier.h"
#include "fedkt/image.h"
#include "fedkt/pipeline.h"
#include "fedkt/release.h"
#include "fedkt/status.h"
#include "fedkt/synth.h"
#include "fedkt/task.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_heads {
    struct fkt_head *
        *head; /* (n) owned, by enum fkt_head_kind; NULL where the moments do not allow it: QDA and RDA need a
                             * covariance for each class, and pooled moments have none */
    size_t n;
};
/* Which parts of the record vector heads take. A task without a guide has one part, which is taken whatever is asked
 * for. FKT_HEADS_DEFAULT: docs/decisions/0025-heads-on-parts.md says why. */
enum fkt_heads_on { FKT_HEADS_DEFAULT = 0, FKT_HEADS_ALL, FKT_HEADS_GUIDE };
/* g (parts of the task's layout) from FKT_ESTIMATOR_RAW: the heads shrink by themselves. They carry what `release`, of
 * that task, from which g was estimated, says: its task, its hash, the class names, and whether it is private; that is
 * saved with them. release NULL: g comes from elsewhere, and the heads carry no origin. */
FKT_API FKT_MUST_USE fkt_status fkt_heads_fit(struct fkt_heads *out, const struct fkt_gaussians *g,
                                              const struct fkt_task *task, enum fkt_heads_on on,
                                              const struct fkt_release *release);
/* Estimates the Gaussians of all parts, and fits. */
FKT_API FKT_MUST_USE fkt_status fkt_heads_of_release(struct fkt_heads *out, const struct fkt_release *release,
                                                     enum fkt_heads_on on);
FKT_API const char *fkt_heads_on_name(enum fkt_heads_on on); /* "default", "all", "guide" */
FKT_API int fkt_heads_on_parse(const char *s);               /* -1: unknown */
FKT_API void fkt_heads_clear(struct fkt_heads *h);
/* FKT_E_MISMATCH when the head comes from another task, or has another number of classes or another length. One without
 * an origin is compared by the numbers alone. */
FKT_API FKT_MUST_USE fkt_status fkt_head_check_task(const struct fkt_head *h, const struct fkt_task *task);
/* Scores n_heads heads (NULL: left out) over the records of ds in one pass. Each must pass fkt_head_check_task for the
 * pipeline's task. `scores` (n_heads) are initialised by the caller and added to. */
FKT_API FKT_MUST_USE fkt_status fkt_heads_evaluate(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                                   const size_t *idx, size_t n, const struct fkt_head *const *heads,
                                                   size_t n_heads, struct fkt_score *scores,
                                                   const struct fkt_pipeline_options *options);

#ifdef __cplusplus
}
#endif
#endif
