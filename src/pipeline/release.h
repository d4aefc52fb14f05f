/* SPDX-License-Identifier: Apache-2.0 */
/* release.h - the parts of a release that other files of this room need. */
#ifndef FKT_PIPELINE_RELEASE_H
#define FKT_PIPELINE_RELEASE_H

#include "fedkt/release.h"

#include "base/status.h"

#include <jansson.h>

/* Task, calibration, facts and plan of a release, with zeros for moments; *out is zeroed by the caller, and released by
 * it also on failure. */
FKT_MUST_USE fkt_status fkt_release_begin(struct fkt_release *out, const struct fkt_task *task,
                                          const struct fkt_calibration *calibration,
                                          const struct fkt_round_facts *facts);
/* Gives *bytes: those that fkt_release_save would write. */
FKT_MUST_USE fkt_status fkt_release_bytes(const struct fkt_release *r, uint8_t **bytes, size_t *len);
json_t *fkt_certificate_json(const struct fkt_release *r); /* new reference, or NULL when memory is out */
/* Reads sites, survivors and the seed mark out of a certificate and checks that every claim in it follows from the
 * task. */
FKT_MUST_USE fkt_status fkt_certificate_check(struct fkt_release *r, const char *json);
/* Sites and survivors must be possible: those of the task's federation where it has one. FKT_E_FORMAT. */
FKT_MUST_USE fkt_status fkt_facts_check(const struct fkt_task *task, const struct fkt_round_facts *facts);
FKT_MUST_USE fkt_status fkt_calibration_copy(struct fkt_calibration *out, const struct fkt_calibration *cal);

#endif
