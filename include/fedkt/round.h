/* SPDX-License-Identifier: Apache-2.0 */
/* round.h - the whole walk: a task that everybody agrees on, images -> moments -> release -> synthetic images, and
 * judging it.
 *
 *   task + images --fkt_pipeline_moments--> moments --fkt_release_make--> release --fkt_generate--> labelled images
 *                                                                      \------fkt_heads_fit--> closed-form heads
 * Moments and latents are PRIVATE: they carry no noise. Only a release, and what is made from it, may leave.
 */
#ifndef FEDKT_ROUND_H
#define FEDKT_ROUND_H

#include "fedkt/classifier.h"
#include "fedkt/codec.h"
#include "fedkt/federation.h"
#include "fedkt/image.h"
#include "fedkt/ledger.h"
#include "fedkt/moments.h"
#include "fedkt/privacy.h"
#include "fedkt/records.h"
#include "fedkt/service.h"
#include "fedkt/status.h"
#include "fedkt/synth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- task: everything that must be the same at every site, and its hash ---- */

struct fkt_task {
    char name[128];
    char **classes; /* (n_classes) owned; indices are labels */
    uint32_t n_classes;
    uint32_t size; /* S */
    enum fkt_filter filter;
    enum fkt_fit fit;
    char codec[64];
    uint32_t codec_dim; /* D */
    char codec_identity[256];
    char codec_sha256[FKT_SHA256_HEX];
    char calibration_source[128];
    uint64_t calibration_images;
    char calibration_sha256[FKT_SHA256_HEX];
    struct fkt_coordinates coordinates;
    struct fkt_privacy_spec privacy;  /* radius = Rq */
    struct fkt_federation federation; /* sites 0: none */
    struct fkt_service service;       /* address "": none; only with a federation */
    struct fkt_signature signature;   /* not part of the canonical JSON */
    char sha256[FKT_SHA256_HEX];      /* of the canonical JSON */
};

/* What a person chooses; everything else in a task is derived. */
struct fkt_task_choices {
    const char *name;           /* NULL: "unnamed" */
    const char *const *classes; /* borrowed */
    uint32_t n_classes;
    enum fkt_filter filter;
    enum fkt_fit fit;
    enum fkt_coordinate_kind coordinates;
    double gamma;                                    /* 0: default */
    double clip;                                     /* 0: the calibration's radius */
    uint32_t rq;                                     /* 0: default */
    struct fkt_privacy_spec privacy;                 /* radius ignored; all shares 0: default 1/24/75 */
    const struct fkt_federation_choices *federation; /* NULL: none */
    const struct fkt_service_choices *service;       /* NULL: none */
    int accept_weak;                                 /* 1: a weak promise is made, and the task says so; 0: FKT_E_ARG */
};
FKT_API FKT_MUST_USE fkt_status fkt_task_make(struct fkt_task *out, const struct fkt_task_choices *choices,
                                              const struct fkt_codec *codec, const struct fkt_calibration *calibration);
FKT_API FKT_MUST_USE fkt_status fkt_task_parse(struct fkt_task *out, const char *json,
                                               size_t len); /* hostile input; unknown keys refused */
FKT_API FKT_MUST_USE fkt_status fkt_task_load(struct fkt_task *out, const char *path);
FKT_API FKT_MUST_USE fkt_status fkt_task_save(const struct fkt_task *t, const char *path, int force);
FKT_API void fkt_task_clear(struct fkt_task *t);
/* Sound or weak (privacy.h), and why; the records are bounded by what all sites may hold of all classes. It follows
 * from the task, whose JSON carries the word "weak" under its signature: one that is weak and does not say so is
 * refused when it is read, and so is one that says so and is not. */
FKT_API enum fkt_promise fkt_task_promise(const struct fkt_task *t, char why[FKT_PROMISE_WORDS] /* may be NULL */);

/* ---- walk: one record after the other through codec, calibration, coordinates, quantisation ---- */

struct fkt_pipeline; /* an opened task: codec + calibration + coordinates; immutable, shared by threads */
/* calibration_path NULL: the codec's embedded one; means NULL: all defaults. FKT_E_MISMATCH when hashes differ from the
 * task's. Copies the task. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_open(struct fkt_pipeline **out, const struct fkt_task *task,
                                                  const char *calibration_path,
                                                  const struct fkt_codec_settings *settings);
/* A walk that begins at latents: with a calibration file the codec is not opened, so that its weights need not be there
 * (fkt_pipeline_codec gives NULL, and images can be neither encoded nor decoded: FKT_E_STATE). Codec and calibration
 * are
 * compared with the task by their names and hashes alone. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_open_latents(struct fkt_pipeline **out, const struct fkt_task *task,
                                                          const char *calibration_path);
FKT_API void fkt_pipeline_free(struct fkt_pipeline *w);
FKT_API const struct fkt_task *fkt_pipeline_task(const struct fkt_pipeline *w);
FKT_API const struct fkt_codec *fkt_pipeline_codec(const struct fkt_pipeline *w);
FKT_API const struct fkt_calibration *fkt_pipeline_calibration(const struct fkt_pipeline *w);

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

/* A folder that keeps latents by the content of their images, so that a walk encodes no image twice: not after an
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
    struct fkt_skipped *skipped;     /* NULL: an unreadable image stops the walk */
    struct fkt_norms *norms;         /* may be NULL */
    struct fkt_records *records;     /* NULL: every record counts; else images are added, and exact copies count once */
    struct fkt_encodings *encodings; /* NULL: none are kept */
    double *moments_seconds;         /* may be NULL: thread-seconds spent adding up are added to it */
};
/* Adds records idx[0..n-1] of ds (idx NULL: all) to m. Memory does not grow with n. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_moments(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                                     const size_t *idx, size_t n, struct fkt_moments *m,
                                                     const struct fkt_pipeline_options *options);
/* Latents to a safetensors file: "latents" F32 (n, D), "labels" I64 (n), "image_sha256" U8 (n, 32). PRIVATE. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_encode(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                                    const size_t *idx, size_t n, const char *path, int force,
                                                    const struct fkt_pipeline_options *options);
/* A latents file to moments. records: as in fkt_pipeline_options. */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_latents(const struct fkt_pipeline *w, const char *path,
                                                     struct fkt_moments *m, struct fkt_records *records);
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_moments_new(const struct fkt_pipeline *w, struct fkt_moments **out);
/* w (n, m) -> pixels (n, S, S, 3) */
FKT_API FKT_MUST_USE fkt_status fkt_pipeline_decode(const struct fkt_pipeline *w, const double *vectors, size_t n,
                                                    uint8_t *rgb);

/* records: of the images in m. PRIVATE. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_save(struct fkt_moments *m, const struct fkt_task *task,
                                                 struct fkt_records *records, const char *path, int force);
/* Adds; checks the task's hash. The file's images are added to records. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_load(struct fkt_moments *into, const struct fkt_task *task,
                                                 const char *path, struct fkt_records *records);
FKT_API FKT_MUST_USE fkt_status fkt_moments_sha256(struct fkt_moments *m, char out[FKT_SHA256_HEX]);

/* ---- release ---- */

/* What a certificate says of the round beside the task. */
struct fkt_round_facts {
    uint32_t sites, survivors;
    int simulated;           /* 1: made by a simulation, which keeps no ledger */
    double composed_epsilon; /* what this release costs with the others of its dataset, at the task's delta */
};
struct fkt_release {
    struct fkt_task task;
    struct fkt_calibration calibration;
    struct fkt_privacy_plan plan; /* what is promised */
    struct fkt_share_plan shares; /* noise in shares: the plan of one; counted 0: the noise was added in one place */
    double sigma[3];              /* noise that is really in the moments (count, sum, moment), surplus shares and all */
    int64_t *moments;             /* (K, block) noised */
    struct fkt_round_facts facts;
    int insecure_seed;           /* 1: the noise came from a known seed, so this is NOT private */
    char sha256[FKT_SHA256_HEX]; /* of the bytes that its file has or would have */
};
/* Plans, debits the ledger, draws; not for a task whose noise is in shares. insecure_seed NULL: noise from the
 * operating system, which is the caller's to say: a task that is seeded (service.h) does not by itself. Copies task and
 * calibration. */
FKT_API FKT_MUST_USE fkt_status fkt_release_make(struct fkt_release *out, const struct fkt_task *task,
                                                 const struct fkt_calibration *calibration, struct fkt_moments *m,
                                                 const struct fkt_round_facts *facts, struct fkt_ledger *ledger,
                                                 const uint64_t *insecure_seed);
/* From the total of a round whose task has noise in shares; facts->survivors of them are in it. The sites' ledgers have
 * paid. insecure_seed 1: some share came from a known seed. */
FKT_API FKT_MUST_USE fkt_status fkt_release_gather(struct fkt_release *out, const struct fkt_task *task,
                                                   const struct fkt_calibration *calibration, const int64_t *total,
                                                   const struct fkt_round_facts *facts, int insecure_seed);
FKT_API FKT_MUST_USE fkt_status fkt_release_save(struct fkt_release *r, const char *path, int force);
/* The same in two steps, for a release that a ledger pays for: reserve takes the disk space of the whole file before
 * the ledger is debited, so that a full disk is seen while nothing is spent; write puts the release there and gives the
 * file its name. facts as for fkt_release_make; composed_epsilon may still be unknown. free: without write, nothing is
 * left. */
struct fkt_release_file;
FKT_API FKT_MUST_USE fkt_status fkt_release_reserve(struct fkt_release_file **out, const struct fkt_task *task,
                                                    const struct fkt_calibration *calibration,
                                                    const struct fkt_round_facts *facts, const char *path, int force);
FKT_API FKT_MUST_USE fkt_status fkt_release_write(struct fkt_release_file *f, struct fkt_release *r);
FKT_API void fkt_release_file_free(struct fkt_release_file *f);
FKT_API FKT_MUST_USE fkt_status fkt_release_load(struct fkt_release *out, const char *path); /* hostile input */
FKT_API void fkt_release_clear(struct fkt_release *r);
/* fkt_task_promise, and weak too where the releases of the dataset have more than FKT_PROMISE_EPSILON together. */
FKT_API enum fkt_promise fkt_release_promise(const struct fkt_release *r,
                                             char why[FKT_PROMISE_WORDS] /* may be NULL */);
/* Why it is not called private: "the promise is weak", say; NULL: it is. */
FKT_API const char *fkt_release_not_private(const struct fkt_release *r);
/* An opened task from the release alone (and the codec's weights, where it has any). means NULL: all defaults. */
FKT_API FKT_MUST_USE fkt_status fkt_release_pipeline(const struct fkt_release *r,
                                                     const struct fkt_codec_settings *settings,
                                                     struct fkt_pipeline **out);
FKT_API FKT_MUST_USE fkt_status fkt_release_certificate(const struct fkt_release *r,
                                                        char **json); /* gives *json, freed with fkt_string_free */
FKT_API void fkt_string_free(char *s);
FKT_API FKT_MUST_USE fkt_status fkt_release_gaussians(const struct fkt_release *r,
                                                      const struct fkt_estimate_options *options,
                                                      struct fkt_gaussians *out);

/* ---- use ---- */

struct fkt_generate_options {
    size_t per_class;
    uint64_t seed;
    enum fkt_export_format format;
    struct fkt_estimate_options estimate;
    size_t grid_columns; /* 0: 12 */
    int force;
    unsigned threads;
    const struct fkt_progress *progress;
    struct fkt_codec_settings settings;
    const struct fkt_pipeline
        *pipeline; /* of the same codec, calibration and coordinates; NULL: opened from the release */
};
/* Folder with the images, metadata, README.md (dataset card), certificate.json, grid.png. */
FKT_API FKT_MUST_USE fkt_status fkt_generate(const struct fkt_release *r, const char *folder,
                                             const struct fkt_generate_options *options);
/* Samples for a sheet: the first `rows` classes, tiles (rows, cols, S, S, 3) into `rgb`. threads 0: all. */
FKT_API FKT_MUST_USE fkt_status fkt_generate_tiles(const struct fkt_pipeline *w, const struct fkt_gaussians *g,
                                                   uint64_t seed, uint32_t rows, size_t cols, unsigned threads,
                                                   uint8_t *rgb);

struct fkt_heads {
    struct fkt_head *head[FKT_HEAD_KINDS];
};
/* g from FKT_ESTIMATOR_RAW: the heads shrink by themselves. */
FKT_API FKT_MUST_USE fkt_status fkt_heads_fit(struct fkt_heads *out, const struct fkt_gaussians *g);
FKT_API void fkt_heads_clear(struct fkt_heads *h);
/* Scores n_heads heads over the records of ds in one pass. `scores` (n_heads) are initialised by the caller and
 * added to. */
FKT_API FKT_MUST_USE fkt_status fkt_heads_evaluate(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                                   const size_t *idx, size_t n, const struct fkt_head *const *heads,
                                                   size_t n_heads, struct fkt_score *scores,
                                                   const struct fkt_pipeline_options *options);

/* Public calibration from a public set: two passes over ds. */
FKT_API FKT_MUST_USE fkt_status fkt_calibrate(struct fkt_calibration *out, const struct fkt_codec *codec,
                                              const struct fkt_dataset *ds, enum fkt_filter filter, uint32_t top,
                                              const char *source, const struct fkt_pipeline_options *options);

/* ---- names of the choices, as they stand in tasks and on the command line; -1 when unknown ---- */
FKT_API const char *fkt_adjacency_name(enum fkt_adjacency a);
FKT_API int fkt_adjacency_parse(const char *s);
FKT_API const char *fkt_adjacency_protects(enum fkt_adjacency a); /* a clause: "pixels of one record" */
FKT_API const char *fkt_mechanism_name(enum fkt_mechanism m);
FKT_API int fkt_mechanism_parse(const char *s);
FKT_API const char *fkt_coordinate_name(enum fkt_coordinate_kind k);
FKT_API int fkt_coordinate_parse(const char *s);
FKT_API const char *fkt_filter_name(enum fkt_filter f);
FKT_API int fkt_filter_parse(const char *s);
FKT_API const char *fkt_fit_name(enum fkt_fit f);
FKT_API int fkt_fit_parse(const char *s);
FKT_API const char *fkt_estimator_name(enum fkt_estimator e);
FKT_API int fkt_estimator_parse(const char *s);
FKT_API const char *fkt_export_name(enum fkt_export_format f);
FKT_API int fkt_export_parse(const char *s);
FKT_API const char *fkt_codec_dtype_name(enum fkt_codec_dtype d);
FKT_API int fkt_codec_dtype_parse(const char *s);

#ifdef __cplusplus
}
#endif
#endif
