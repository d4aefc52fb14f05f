/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - a whole model: pixels in, classes out. A head with the encoders that it needs, their calibrations and
 * coordinates, in one file, and what it may claim. It needs neither the release nor the published weights any more.
 *
 *   release --fkt_heads_fit--> head --fkt_whole_make--> whole model --> safetensors, ONNX, predictions
 * Letters: n images, K classes, S side in pixels. Pixels are uint8 RGB.
 */
#ifndef FEDKT_WHOLE_H
#define FEDKT_WHOLE_H

#include "fedkt/classifier.h"
#include "fedkt/learn.h"
#include "fedkt/pipeline.h"
#include "fedkt/release.h"
#include "fedkt/status.h"
#include "fedkt/train.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_whole; /* immutable; shared by threads */
/* Copies everything. The head must be of the release's task, and the pipeline as well; FKT_E_STATE where an encoder has
 * an operation that other runtimes do not. */
FKT_API FKT_MUST_USE fkt_status fkt_whole_make(struct fkt_whole **out, const struct fkt_pipeline *pipeline,
                                               const struct fkt_head *head, const struct fkt_release *release);
FKT_API void fkt_whole_free(struct fkt_whole *m);

FKT_API uint32_t fkt_whole_size(const struct fkt_whole *m); /* S */
/* How images are scaled to S, and made square: as those of the release were. */
FKT_API enum fkt_filter fkt_whole_filter(const struct fkt_whole *m);
FKT_API enum fkt_fit fkt_whole_fit(const struct fkt_whole *m);
FKT_API uint32_t fkt_whole_classes(const struct fkt_whole *m);
FKT_API const char *fkt_whole_class(const struct fkt_whole *m, uint32_t k); /* borrowed */
FKT_API const struct fkt_head *fkt_whole_head(const struct fkt_whole *m);   /* borrowed */
FKT_API const struct fkt_model_origin *fkt_whole_origin(const struct fkt_whole *m);
FKT_API const char *fkt_whole_not_private(const struct fkt_whole *m); /* why it is not; "": it is */

/* safetensors, format "fedkt.whole/1" (docs/formats.md). Loading: hostile input. What is not private is written for its
 * owner alone (0600), as ONNX too. */
FKT_API FKT_MUST_USE fkt_status fkt_whole_save(const struct fkt_whole *m, const char *path, int force);
FKT_API FKT_MUST_USE fkt_status fkt_whole_load(struct fkt_whole **out, const char *path);
/* ONNX, opset 13: input "images" uint8 (N,3,S,S), RGB as it is in a file; output "logits" float (N,K), the head's
 * scores. Resizing, normalisation, networks, whitening, coordinates and head are in the graph. */
FKT_API FKT_MUST_USE fkt_status fkt_whole_export_onnx(const struct fkt_whole *m, const char *path, int force);

/* rgb (n, S, S, 3) -> scores (n, K): those of fkt_head_predict on the record vectors of the images. The result of an
 * image does not depend on n, its neighbours or threads. */
FKT_API FKT_MUST_USE fkt_status fkt_whole_predict(const struct fkt_whole *m, const uint8_t *rgb, size_t n,
                                                  float *scores, const struct fkt_predict_options *options);
/* Opens a dataset with the model's classes, in its order, and its way to make images square; options->classes and fit
 * are ignored. */
FKT_API FKT_MUST_USE fkt_status fkt_whole_open_dataset(struct fkt_dataset **out, const struct fkt_whole *m,
                                                       const char *path, const struct fkt_dataset_options *options);
/* All images of ds, in pieces; j is initialised by the caller and added to. The classes of ds are those of m. */
FKT_API FKT_MUST_USE fkt_status fkt_whole_evaluate(struct fkt_evaluation *j, const struct fkt_whole *m,
                                                   const struct fkt_dataset *ds,
                                                   const struct fkt_training_set_options *options);

#ifdef __cplusplus
}
#endif
#endif
