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
struct fkt_release {
    struct fkt_task task;
    struct fkt_calibration calibration;
    struct fkt_privacy_plan plan; /* what is promised */
    struct fkt_share_plan shares; /* noise in shares: the plan of one; counted 0: the noise was added in one place */
    double sigma[3];              /* noise that is really in the moments (count, sum, moment), surplus shares and all */
    int64_t *moments;             /* (K, block) noised */
    struct fkt_round_facts facts;
    int paid_by_file;            /* 1: a ledger file has paid (fkt_ledger_file_pay), 0: one in memory or the sites' */
    int insecure_seed;           /* 1: the noise came from a known seed, so this is NOT private */
    char sha256[FKT_SHA256_HEX]; /* of the bytes that its file has or would have */
};
/* Plans, debits the ledger, draws; not for a task whose noise is in shares. The certificate says what paid: a ledger
 * file, where `ledger` is of fkt_ledger_file_pay (FKT_E_MISMATCH when that was for another task), else memory.
 * insecure_seed NULL: noise from the operating system, which is the caller's to say: a task that is seeded (service.h)
 * does not by itself. Copies task and calibration. */
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
FKT_API FKT_MUST_USE fkt_status fkt_release_gaussians(const struct fkt_release *r,
                                                      const struct fkt_estimate_options *options,
                                                      struct fkt_gaussians *out);

#ifdef __cplusplus
}
#endif
#endif
