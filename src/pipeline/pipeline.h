/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - records through the pipeline, for the files of this module. */
#ifndef FKT_PIPELINE_PIPELINE_H
#define FKT_PIPELINE_PIPELINE_H

#include "fedkt/pipeline.h"

#include "base/meter.h"
#include "pipeline/fingerprint.h"
#include "task/task.h"

/* Arrays go by part of the task. Vectors w and q hold the parts side by side. */
struct fkt_pipeline {
    struct fkt_task task;
    struct fkt_codec *codec[FKT_PARTS_MAX]; /* NULL: this part begins at latents */
    struct fkt_calibration calibration[FKT_PARTS_MAX];
    size_t at[FKT_PARTS_MAX];                          /* where the part begins in w */
    size_t length;                                     /* numbers of w */
    struct fkt_coordinates coordinates[FKT_PARTS_MAX]; /* the task's */
};

/* The failure of a pipeline that begins at latents and is given images. */
fkt_status fkt_pipeline_no_codec(const struct fkt_pipeline *w, uint32_t part);
FKT_MUST_USE fkt_status fkt_pipeline_can_encode(const struct fkt_pipeline *w); /* it has the network of every part */
int fkt_task_gives_images(const struct fkt_task *t); /* 0: a guide alone, or pooled moments; then FKT_E_STATE: */
FKT_MUST_USE fkt_status fkt_task_has_images(const struct fkt_task *t);
FKT_MUST_USE fkt_status fkt_pipeline_can_decode(const struct fkt_pipeline *w); /* the same, and the codec is open */

enum { FKT_PIPELINE_BATCH = 256 }; /* the largest batch */
/* Images per batch: one batch of a network, else as many pixels as fit a core's cache. */
size_t fkt_pipeline_batch(const struct fkt_codec *c);
size_t fkt_pipeline_batch_all(const struct fkt_pipeline *w); /* the largest of its networks */

/* Takes codecs and calibrations of all parts (also on failure), copies the task, checks that they belong together. A
 * codec that is NULL is not open. */
FKT_MUST_USE fkt_status fkt_pipeline_assemble(struct fkt_pipeline **out, const struct fkt_task *task,
                                              struct fkt_codec *codec[], struct fkt_calibration cal[]);
/* The network of part p, checked against the task. */
FKT_MUST_USE fkt_status fkt_pipeline_network(struct fkt_codec **out, const struct fkt_task *task, uint32_t p,
                                             const struct fkt_codec_settings *settings);

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
    const size_t *places;             /* (n) in the order that was asked for */
    const struct fkt_digest *digests; /* (n) of the original pixels */
    const float *z[FKT_PARTS_MAX];    /* by part of the task: (n, D) */
    const double *w;                  /* (n, m) parts side by side */
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
FKT_MUST_USE fkt_status fkt_skipped_merge(struct fkt_skipped *into, const struct fkt_skipped *from);

/* One record: its latents z[p] (D) -> w (m), q (m). u is room for the longest u of a part, and has that of part 0
 * afterwards. */
FKT_MUST_USE fkt_status fkt_pipeline_record(const struct fkt_pipeline *w, const float *const z[], double *u, double *wv,
                                            int32_t *q);
size_t fkt_pipeline_room(const struct fkt_pipeline *w); /* numbers of that u */

#endif
