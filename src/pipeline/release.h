/* SPDX-License-Identifier: Apache-2.0 */
/* release.h - what is in a release, and calls on it that are not public. */
#ifndef FKT_PIPELINE_RELEASE_H
#define FKT_PIPELINE_RELEASE_H

#include "fedkt/advanced/privacy.h"
#include "fedkt/release.h"

#include "base/status.h"
#include "task/task.h"

#include <jansson.h>

/* Of a sum of cohorts: which are in it, and what follows (sum.c). */
struct fkt_sum_cohort {
    uint32_t index;
    char task_sha256[FKT_SHA256_HEX], release_sha256[FKT_SHA256_HEX];
};
struct fkt_sum {
    uint32_t n;                     /* cohorts in the sum; 0: it is not one */
    struct fkt_sum_cohort *cohort;  /* (n) owned, by ascending index */
    struct fkt_cohort *shape;       /* (n) owned, the same order */
    struct fkt_cohorts_noise noise; /* derived, as the next */
    uint32_t covered;               /* colluding sites of all (fkt_privacy_covered) */
};

struct fkt_release {
    struct fkt_task task;
    struct fkt_calibration calibration[FKT_PARTS_MAX]; /* (parts of the task) */
    struct fkt_privacy_plan plan;                      /* what is promised */
    struct fkt_share_plan shares; /* noise in shares: the plan of one; counted 0: the noise was added in one place */
    struct fkt_sum sum;           /* of cohorts */
    struct fkt_sigmas sigma;      /* noise that is really in the moments, surplus shares and all */
    int64_t *moments;             /* in the order of the task's layout, noised */
    struct fkt_round_facts facts;
    int paid_by_file;            /* 1: a ledger file has paid (fkt_ledger_file_pay), 0: one in memory or the sites' */
    int insecure_seed;           /* 1: the noise came from a known seed, so this is NOT private */
    char sha256[FKT_SHA256_HEX]; /* of the bytes that its file has or would have */
};
/* The public calls of the same name, into a struct of the caller's, which fkt_release_clear empties. */
FKT_MUST_USE fkt_status fkt_release_make_into(struct fkt_release *out, const struct fkt_task *task,
                                              const struct fkt_calibration *calibration, struct fkt_moments *m,
                                              const struct fkt_round_facts *facts, struct fkt_ledger *ledger,
                                              const uint64_t *insecure_seed);
FKT_MUST_USE fkt_status fkt_release_gather_into(struct fkt_release *out, const struct fkt_task *task,
                                                const struct fkt_calibration *calibration, const int64_t *total,
                                                const struct fkt_round_facts *facts, int insecure_seed);
FKT_MUST_USE fkt_status fkt_release_load_into(struct fkt_release *out, const char *path);
void fkt_release_clear(struct fkt_release *r);

/* Task, calibration, facts and plan of a release, with zeros for moments; *out is zeroed by the caller, and released by
 * it also on failure. */
FKT_MUST_USE fkt_status fkt_release_begin(struct fkt_release *out, const struct fkt_task *task,
                                          const struct fkt_calibration *calibration,
                                          const struct fkt_round_facts *facts);
FKT_MUST_USE fkt_status fkt_release_seal(struct fkt_release *r); /* the hash of its present content */
/* Gives *bytes: those that fkt_release_save would write. */
FKT_MUST_USE fkt_status fkt_release_bytes(const struct fkt_release *r, uint8_t **bytes, size_t *len);
json_t *fkt_certificate_json(const struct fkt_release *r); /* new reference, or NULL when memory is out */
/* Reads sites, survivors and the seed mark out of a certificate and checks that every claim in it follows from the
 * task. */
FKT_MUST_USE fkt_status fkt_certificate_check(struct fkt_release *r, const char *json);
/* Sites and survivors must be possible: those of the task's federation where it has one. FKT_E_FORMAT. */
FKT_MUST_USE fkt_status fkt_facts_check(const struct fkt_task *task, const struct fkt_round_facts *facts);
FKT_MUST_USE fkt_status fkt_release_has_images(const struct fkt_release *r); /* FKT_E_STATE: it has heads alone */
/* release_parts.c: the calibrations of all parts, to a file and from one, where each must be the one that the task
 * names for its part. */
struct fkt_st_writer;
struct fkt_safetensors;
FKT_MUST_USE fkt_status fkt_release_add_calibrations(struct fkt_st_writer *w, const struct fkt_release *r);
FKT_MUST_USE fkt_status fkt_release_load_calibrations(struct fkt_release *r, const struct fkt_safetensors *file);
FKT_MUST_USE fkt_status fkt_calibration_copy(struct fkt_calibration *out, const struct fkt_calibration *cal);

#endif
