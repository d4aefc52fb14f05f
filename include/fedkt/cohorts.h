/* SPDX-License-Identifier: Apache-2.0 */
/* cohorts.h - a task in cohorts (docs/scale.md): the folder of its tasks, and the sum of the cohorts' releases.
 *
 *   fkt_cohorts_load -> a server for each task (server.h, or all of them: fkt_serve_cohorts) -> fkt_cohorts_add_up
 */
#ifndef FEDKT_COHORTS_H
#define FEDKT_COHORTS_H

#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "fedkt/secagg.h"
#include "fedkt/status.h"
#include "fedkt/task.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_COHORTS_MAX 4096U /* of one folder */

/* The tasks of all cohorts of one division; a handle, only read, that threads may share. */
struct fkt_cohorts;
/* Reads folder/cohort-0000.json and so on; hostile input. FKT_E_MISMATCH: they are not the tasks of one division, all
 * of them, or their rosters together are not the roster that they name. Signatures are not checked. */
FKT_API FKT_MUST_USE fkt_status fkt_cohorts_load(struct fkt_cohorts **out, const char *folder);
FKT_API void fkt_cohorts_free(struct fkt_cohorts *c);
FKT_API uint32_t fkt_cohorts_number(const struct fkt_cohorts *c);
/* Borrowed; NULL when there is no cohort i. */
FKT_API const struct fkt_task *fkt_cohorts_task(const struct fkt_cohorts *c, uint32_t i);
FKT_API const char *fkt_cohorts_file(const struct fkt_cohorts *c, uint32_t i); /* the path that it was read from */

/* Of a task in cohorts. To which cohort the site with this public key belongs; FKT_DIVISION_WHOLE: t is in none. */
FKT_API uint32_t fkt_task_cohort_of(const struct fkt_task *t, const uint8_t key[FKT_SA_KEY]);
/* The hash of the task of the sum, which is the same for all cohorts of a division. FKT_E_ARG: t is in none. */
FKT_API FKT_MUST_USE fkt_status fkt_task_sum_sha256(const struct fkt_task *t, char out[FKT_SHA256_HEX]);

/* Borrowed for the call. */
struct fkt_cohorts_sum_spec {
    const struct fkt_cohorts *cohorts;
    const char *out;                   /* public folder of the sum; that of cohort 0 is cohorts/0000 in it, and so on */
    const char *const *release_sha256; /* (number) which release each cohort ended with; NULL or "": it gave none */
    struct fkt_codec_settings settings;
    size_t per_class; /* synthetic images per class; 0: 100 */
    enum fkt_export_format format;
    unsigned threads;                    /* 0: all */
    const struct fkt_progress *progress; /* may be NULL */
};
struct fkt_cohorts_sum {
    uint32_t in_sum, sites, survivors; /* cohorts that are in it; sites of all cohorts; survivors of those in it */
    char release_sha256[FKT_SHA256_HEX];
};
/* Adds the releases up and writes release, certificate and images of the sum to spec->out. It has no state: made again
 * from the same releases it is the same. FKT_E_TOO_FEW: no cohort has a release. */
FKT_API FKT_MUST_USE fkt_status fkt_cohorts_add_up(struct fkt_cohorts_sum *out,
                                                   const struct fkt_cohorts_sum_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
