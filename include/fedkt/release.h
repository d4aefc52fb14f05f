/* SPDX-License-Identifier: Apache-2.0 */
/* release.h - moments with noise: the only result that may leave. Its file, its certificate, its class Gaussians. */
#ifndef FEDKT_RELEASE_H
#define FEDKT_RELEASE_H

#include "fedkt/codec.h"
#include "fedkt/ledger.h"
#include "fedkt/moments.h"
#include "fedkt/pipeline.h"
#include "fedkt/privacy.h"
#include "fedkt/status.h"
#include "fedkt/synth.h"
#include "fedkt/task.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a certificate says of the round beside the task. */
struct fkt_round_facts {
    uint32_t sites, survivors;
    int simulated;           /* 1: made by a simulation, which keeps no ledger */
    double composed_epsilon; /* what this release costs with the others of its dataset, at the task's delta */
};
struct fkt_release; /* a handle; only read, it may be shared by threads */

/* Each of these gives *out, freed with fkt_release_free.
 *
 * Plans, debits the ledger, draws; not for a task whose noise is in shares. The certificate says what paid: a ledger
 * file, where `ledger` is of fkt_ledger_file_pay (FKT_E_MISMATCH when that was for another task), else memory.
 * insecure_seed NULL: noise from the operating system, which is the caller's to say: a task that is seeded (service.h)
 * does not by itself. Copies task and calibrations, of which there is one for each part of the task. */
FKT_API FKT_MUST_USE fkt_status fkt_release_make(struct fkt_release **out, const struct fkt_task *task,
                                                 const struct fkt_calibration *calibration, struct fkt_moments *m,
                                                 const struct fkt_round_facts *facts, struct fkt_ledger *ledger,
                                                 const uint64_t *insecure_seed);
/* From the total of a round whose task has noise in shares; facts->survivors of them are in it. The sites' ledgers have
 * paid. insecure_seed 1: some share came from a known seed. */
FKT_API FKT_MUST_USE fkt_status fkt_release_gather(struct fkt_release **out, const struct fkt_task *task,
                                                   const struct fkt_calibration *calibration, const int64_t *total,
                                                   const struct fkt_round_facts *facts, int insecure_seed);
FKT_API FKT_MUST_USE fkt_status fkt_release_load(struct fkt_release **out, const char *path); /* hostile input */
FKT_API void fkt_release_free(struct fkt_release *r);

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

/* What is in it. Pointers are borrowed from the release. */
FKT_API const struct fkt_task *fkt_release_task(const struct fkt_release *r);
FKT_API const struct fkt_calibration *fkt_release_calibration(const struct fkt_release *r,
                                                              uint32_t part); /* of a part of its task */
FKT_API const int64_t *fkt_release_moments(const struct fkt_release *r,
                                           size_t *n); /* noised; n numbers, in the order of fkt_task_layout */
FKT_API const struct fkt_privacy_plan *fkt_release_plan(const struct fkt_release *r); /* what is promised */
/* The plan of one site's noise share; NULL: the noise was added in one place. */
FKT_API const struct fkt_share_plan *fkt_release_shares(const struct fkt_release *r);
/* The noise that is really in the moments, surplus noise shares included. */
FKT_API const struct fkt_sigmas *fkt_release_sigma(const struct fkt_release *r);
FKT_API const struct fkt_round_facts *fkt_release_facts(const struct fkt_release *r);
FKT_API int fkt_release_insecure_seed(const struct fkt_release *r);  /* 1: noise from a known seed, so NOT private */
FKT_API const char *fkt_release_sha256(const struct fkt_release *r); /* of the bytes that its file has or would have */

/* fkt_task_promise, and weak too where the releases of the dataset have more than FKT_PROMISE_EPSILON together. */
FKT_API enum fkt_promise fkt_release_promise(const struct fkt_release *r,
                                             char why[FKT_PROMISE_WORDS] /* may be NULL */);
/* Why it is not called private: "the promise is weak", say; NULL: it is. */
FKT_API const char *fkt_release_not_private(const struct fkt_release *r);
/* An opened task from the release alone (and the weights of its networks). settings NULL: all defaults. */
FKT_API FKT_MUST_USE fkt_status fkt_release_pipeline(const struct fkt_release *r,
                                                     const struct fkt_codec_settings *settings,
                                                     struct fkt_pipeline **out);
/* The same for images that are only decoded: the guide's weights are not needed. FKT_E_STATE where the release gives no
 * images: it has no codec, or pooled moments. */
FKT_API FKT_MUST_USE fkt_status fkt_release_pipeline_codec(const struct fkt_release *r,
                                                           const struct fkt_codec_settings *settings,
                                                           struct fkt_pipeline **out);
FKT_API FKT_MUST_USE fkt_status fkt_release_certificate(const struct fkt_release *r,
                                                        char **json); /* gives *json, freed with fkt_string_free */
/* Class Gaussians of one part of the layout (fkt_task_layout); the counts are the same in all of them. */
FKT_API FKT_MUST_USE fkt_status fkt_release_gaussians(const struct fkt_release *r, uint32_t part,
                                                      const struct fkt_estimate_options *options,
                                                      struct fkt_gaussians *out);

#ifdef __cplusplus
}
#endif
#endif
