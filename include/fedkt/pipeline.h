/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - images to moments under a task: the networks of its parts, calibration, coordinates, quantisation, one
 * record at a time. Record vectors w and q hold the parts of the task side by side.
 *
 *   task + images --fkt_pipeline_moments--> moments --fkt_release_make--> release --fkt_generate--> labelled images
 *                                                                      \------fkt_heads_fit--> closed-form heads
 * Moments and latents are PRIVATE: they carry no noise. Only a release (release.h) and what is made from it may leave.
 */
#ifndef FEDKT_PIPELINE_H
#define FEDKT_PIPELINE_H

#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "fedkt/moments.h"
#include "fedkt/records.h"
#include "fedkt/status.h"
#include "fedkt/task.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct
    fkt_pipeline; /* an opened task: network + calibration + coordinates of each part; immutable, shared by threads */
/* Calibration files by the kind of the part; NULL: the network's own. */
struct fkt_part_files {
    const char *calibration, *guide_calibration;
};
/* files NULL: no file; settings NULL: all defaults. FKT_E_MISMATCH when hashes differ from the task's. Copies the
 * task. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_open(struct fkt_pipeline **out, const struct fkt_task *task,
                                                  const struct fkt_part_files *files,
                                                  const struct fkt_codec_settings *settings);
/* A pipeline that begins at latents: with calibration files no network is opened, so that weights need not be there
 * (fkt_pipeline_encoder gives NULL, and images can be neither encoded nor decoded: FKT_E_STATE). Networks and
 * calibrations are compared with the task by their names and hashes alone. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_open_latents(struct fkt_pipeline **out, const struct fkt_task *task,
                                                          const struct fkt_part_files *files);
FKT_API void fkt_pipeline_free(struct fkt_pipeline *w);
FKT_API const struct fkt_task *fkt_pipeline_task(const struct fkt_pipeline *w);
FKT_API const struct fkt_codec *fkt_pipeline_codec(const struct fkt_pipeline *w); /* that decodes; NULL: none is open */
/* Of a part of the task; NULL where it is not open, or there is no such part. */
FKT_API const struct fkt_codec *fkt_pipeline_encoder(const struct fkt_pipeline *w, uint32_t part);
FKT_API const struct fkt_calibration *fkt_pipeline_calibration(const struct fkt_pipeline *w, uint32_t part);
FKT_API size_t fkt_pipeline_length(const struct fkt_pipeline *w); /* m: numbers of w, all parts */

struct fkt_ranks; /* advanced/ranks.h */
/* Names and number of the images left out because they could not be read (only when the caller asks for it). */
struct fkt_skipped {
    size_t count;
    char *names; /* one per line, the first 1000; owned */
};
FKT_API void fkt_skipped_clear(struct fkt_skipped *s);

/* Counts of log|u| in equal bins between c - 1.5 s and c + 1.5 s, ends included: for a look at the coordinates. NOT
 * private. */
#define FKT_NORM_BINS 48
struct fkt_norms {
    double lo, hi;
    uint64_t bins[FKT_NORM_BINS];
};

/* A folder that keeps latents by the content of their images, so that no image is encoded twice: not after an
 * interruption, nor under another task of the same codec. PRIVATE: as secret as the images. It is made if need be, and
 * must belong to the user and be closed to others (FKT_E_IO). Results are the same, bit for bit, with it and without.
 */
struct fkt_encodings;
FKT_API FKT_MUST_USE fkt_status fkt_encodings_open(struct fkt_encodings **out, const char *folder);
FKT_API void fkt_encodings_close(struct fkt_encodings *e);
FKT_API void fkt_encodings_count(const struct fkt_encodings *e, uint64_t *found, uint64_t *made);

struct fkt_pipeline_options {
    unsigned threads; /* 0: all */
    const struct fkt_progress *progress;
    struct fkt_skipped *skipped;     /* NULL: an unreadable image stops the call */
    struct fkt_norms *norms;         /* may be NULL */
    struct fkt_records *records;     /* NULL: every record counts; else images are added, and exact copies count once */
    struct fkt_encodings *encodings; /* NULL: none are kept */
    double *moments_seconds;         /* may be NULL: thread-seconds spent adding up are added to it */
    struct fkt_ranks *ranks; /* advanced/ranks.h: processes that share the work; all make the same call. NULL: alone.
                                Results, files, records, skipped and norms are those of rank 0 */
};
/* Adds records idx[0..n-1] of ds (idx NULL: all) to m. Memory does not grow with n. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_moments(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                                     const size_t *idx, size_t n, struct fkt_moments *m,
                                                     const struct fkt_pipeline_options *options);
/* Latents to a safetensors file: "latents" F32 (n, D) of the codec, "latents.guide" of the guide, "labels" I64 (n),
 * "image_sha256" U8 (n, 32). PRIVATE. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_encode(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                                    const size_t *idx, size_t n, const char *path, int force,
                                                    const struct fkt_pipeline_options *options);
/* A latents file to moments. records: as in fkt_pipeline_options. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_latents(const struct fkt_pipeline *w, const char *path,
                                                     struct fkt_moments *m, struct fkt_records *records);
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_moments_new(const struct fkt_pipeline *w, struct fkt_moments **out);
/* Pixels to record vectors and their integers: rgb (n, S, S, 3) of the task's size, w (n, m), q (n, m). PRIVATE. Adding
 * q up with fkt_moments_add gives what fkt_pipeline_moments gives for the same pixels, to the bit. On failure w and q
 * are zero. It runs on the calling thread; several may call at once. Images of other sizes: fkt_dataset_from_arrays. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_vectors(const struct fkt_pipeline *pipeline, const uint8_t *rgb, size_t n,
                                                     double *w, int32_t *q);
/* w (n, m) -> pixels (n, S, S, 3), by the codec's part of w. FKT_E_STATE for a task that gives no images. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_decode(const struct fkt_pipeline *w, const double *vectors, size_t n,
                                                    uint8_t *rgb);

/* records: of the images in m. PRIVATE. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_save(struct fkt_moments *m, const struct fkt_task *task,
                                                 struct fkt_records *records, const char *path, int force);
/* Adds; checks the task's hash. The file's images are added to records. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_load(struct fkt_moments *into, const struct fkt_task *task,
                                                 const char *path, struct fkt_records *records);
FKT_API FKT_MUST_USE fkt_status fkt_moments_sha256(struct fkt_moments *m, char out[FKT_SHA256_HEX]);

/* Public calibration from a public set: two passes over ds. */
FKT_API FKT_MUST_USE fkt_status fkt_calibrate(struct fkt_calibration *out, const struct fkt_codec *codec,
                                              const struct fkt_dataset *ds, enum fkt_filter filter, uint32_t top,
                                              const char *source, const struct fkt_pipeline_options *options);

#ifdef __cplusplus
}
#endif
#endif
