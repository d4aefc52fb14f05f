/* SPDX-License-Identifier: Apache-2.0 */
/* teacher.h - a closed-form head as the teacher of a network: logits for images, from the images' own record vectors.
 *
 *   pixels --codec, guide, coordinates--> w --head--> log posterior, K numbers
 *
 * A head of a release is post-processing of it, and so is what it says of images that came out of the same release or
 * are public: a network that learns from both is as private as the release. Equal priors, as in classifier.h.
 */
#ifndef FEDKT_TEACHER_H
#define FEDKT_TEACHER_H

#include "fedkt/heads.h"
#include "fedkt/pipeline.h"
#include "fedkt/release.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_TEACHER_TEMPERATURE 2.0 /* of a head, where nothing else is asked for */

struct fkt_teacher; /* immutable, shared by threads */
/* The head of that kind on those parts, fitted to r. The pipeline is r's, opened with all its networks, and borrowed
 * until the teacher is freed. */
FKT_API FKT_MUST_USE fkt_status fkt_teacher_of_release(struct fkt_teacher **out, const struct fkt_release *r,
                                                       const struct fkt_pipeline *pipeline, enum fkt_head_kind kind,
                                                       enum fkt_heads_on on);
/* The same with a head that was fitted elsewhere, for the pipeline's task; both are borrowed. */
FKT_API FKT_MUST_USE fkt_status fkt_teacher_of_head(struct fkt_teacher **out, const struct fkt_head *head,
                                                    const struct fkt_pipeline *pipeline);
FKT_API void fkt_teacher_free(struct fkt_teacher *t);
FKT_API uint32_t fkt_teacher_classes(const struct fkt_teacher *t); /* K, in the order of the task */
FKT_API enum fkt_head_kind fkt_teacher_kind(const struct fkt_teacher *t);
/* rgb (n, S, S, 3) of the task's size -> logits (n, K): the logarithm of the head's posterior. Those of an image depend
 * on it alone, not on n or threads. */
FKT_API FKT_MUST_USE fkt_status fkt_teacher_logits(const struct fkt_teacher *t, const uint8_t *rgb, size_t n,
                                                   float *logits, const struct fkt_pipeline_options *options);

#ifdef __cplusplus
}
#endif
#endif
