/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - records through the pipeline, for the files of this module. */
#ifndef FKT_PIPELINE_PIPELINE_H
#define FKT_PIPELINE_PIPELINE_H

#include "fedkt/pipeline.h"

#include "base/meter.h"
#include "pipeline/fingerprint.h"
#include "task/task.h"

struct fkt_pipeline {
    struct fkt_task task;
    struct fkt_codec *codec; /* NULL: the pipeline begins at latents */
    struct fkt_calibration calibration;
};

fkt_status fkt_pipeline_no_codec(
    const struct fkt_pipeline *w); /* the failure of a pipeline that begins at latents and is given images */

enum { FKT_PIPELINE_BATCH = 256 }; /* the largest batch */
/* Images per batch: one batch of a network, else as many pixels as fit a core's cache. */
size_t fkt_pipeline_batch(const struct fkt_codec *c);

/* Takes codec and calibration (also on failure), copies the task, checks that they belong together. */
FKT_MUST_USE fkt_status fkt_pipeline_assemble(struct fkt_pipeline **out, const struct fkt_task *task,
                                              struct fkt_codec *codec, struct fkt_calibration *cal);

/* evaluate.c: fkt_heads_evaluate for heads of any task with the codec, calibration and coordinates of w's, which
 * differs in its privacy parameters alone: the caller ensures that. */
struct fkt_head;
struct fkt_score;
FKT_MUST_USE fkt_status fkt_heads_score(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx,
                                        size_t n, const struct fkt_head *const *heads, size_t n_heads,
                                        struct fkt_score *scores, const struct fkt_pipeline_options *options);

/* Some records of a dataset; everything is borrowed for the call. Vectors are NULL unless the callback asked for
 * them. */
struct fkt_batch {
    size_t n;                         /* records in this batch, those left out not counted */
    const uint32_t *labels;           /* (n) */
    const struct fkt_digest *digests; /* (n) of the original pixels */
    const float *z;                   /* (n, D) */
    const double *w;                  /* (n, m) */
    const int32_t *q;                 /* (n, m) */
};
/* visit() is called from `threads` workers (0..threads-1), batches in no order, each record once. */
struct fkt_visitor {
    fkt_status (*visit)(void *ctx, unsigned worker, const struct fkt_batch *b);
    void *ctx;
    int digests;  /* 1: asks for the records' digests */
    int in_order; /* 1: called for one batch after the other, in the order of idx */
};
FKT_MUST_USE fkt_status fkt_pipeline_visit(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                           const size_t *idx, size_t n, const struct fkt_visitor *v,
                                           const struct fkt_pipeline_options *options, struct fkt_meter *meter);

/* fkt_pipeline_moments for records that were compared with the calibration's images already (public_images.h). */
FKT_MUST_USE fkt_status fkt_pipeline_moments_compared(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                                      const size_t *idx, size_t n, struct fkt_moments *m,
                                                      const struct fkt_pipeline_options *options);

FKT_MUST_USE fkt_status fkt_skipped_add(struct fkt_skipped *s, const char *why); /* one line, which names the image */

/* One latent: z (D) -> u (d), w (m), q (m). */
FKT_MUST_USE fkt_status fkt_pipeline_record(const struct fkt_pipeline *w, const float *z, double *u, double *wv,
                                            int32_t *q);

#endif
