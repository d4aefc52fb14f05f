/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - check the public files of a finished task: transparency log, release, certificate and a site's receipt. */
#ifndef FEDKT_VERIFY_H
#define FEDKT_VERIFY_H

#include "fedkt/status.h"
#include "fedkt/task.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A transparency log is lines of JSON; each holds the SHA-256 of the line before it ("prev"; zeros in the first). */
struct fkt_verification {
    uint64_t entries;
    char head[65];
    uint32_t rounds, sites, survivors;
    uint32_t confirmed; /* signatures of sites under the list of survivors that were checked */
    char task_sha256[FKT_SHA256_HEX];
    char release_sha256[FKT_SHA256_HEX]; /* "": the log ends without one, and says so */
    char operator_key[65];               /* whose signature the log's task has, as hex */
    size_t heads, messages;              /* of the receipt: all of them were found */
    int counted;                         /* 1: the vector of the receipt's site is in the release */
    uint32_t receipt_site;               /* whose it is, where one was given */
    char receipt_key[65];                /* its key on the roster, as hex */
    char receipt_name[128];              /* what the task calls that site; "": nothing */
};
/* Re-derives chain, hashes, survivors and certificate from public data: `folder` holds transparency.jsonl,
 * release.safetensors and certificate.json. task NULL: the one that the log holds. receipt NULL: none; else what a site
 * kept (client.h): every head that it received and every message that it sent must be in the log. FKT_E_MISMATCH or
 * FKT_E_FORMAT and a sentence that names the line or file. Hostile input. */
FKT_API FKT_MUST_USE fkt_status fkt_verify_folder(struct fkt_verification *out, const char *folder,
                                                  const struct fkt_task *task, const char *receipt);
/* The same for a task in cohorts (docs/scale.md): `folder` holds release.safetensors and certificate.json of the sum,
 * and in cohorts/0000, cohorts/0001, ... the public folder of every cohort, each of which is checked; their releases
 * are added again. task: of the sum or of a cohort. *out is of all cohorts together, and has no head. */
FKT_API FKT_MUST_USE fkt_status fkt_verify_sum(struct fkt_verification *out, uint32_t *cohorts, uint32_t *in_sum,
                                               const char *folder, const struct fkt_task *task, const char *receipt);

#ifdef __cplusplus
}
#endif
#endif
