/* SPDX-License-Identifier: Apache-2.0 */
/* encodings.h - latents that were computed before, found by the digest of their image. */
#ifndef FKT_PIPELINE_ENCODINGS_H
#define FKT_PIPELINE_ENCODINGS_H

#include "pipeline/fingerprint.h"

/* The latents of one kind: of one codec, dtype, way of scaling, processor and version. Lives as long as e. */
struct fkt_encodings_kind;
FKT_MUST_USE fkt_status fkt_encodings_of(struct fkt_encodings *e, const struct fkt_codec *codec, enum fkt_filter filter,
                                         enum fkt_fit fit, struct fkt_encodings_kind **out);
/* 1: z (D) is the latent of that image. A damaged row counts as absent. */
int fkt_encodings_find(struct fkt_encodings_kind *k, const struct fkt_digest *image, float *z);
/* Keeps n latents, from any thread; on disk, for the next process, when it returns. */
FKT_MUST_USE fkt_status fkt_encodings_keep(struct fkt_encodings_kind *k, const struct fkt_digest *images,
                                           const float *z /* (n, D) */, size_t n);

#endif
