/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - what the rest of the room needs of a task beyond its public face. */
#ifndef FKT_TASK_TASK_H
#define FKT_TASK_TASK_H

#include "fedkt/task.h"

#include "base/status.h"

#include <jansson.h>

#define FKT_TASK_SCHEMA "fedkt.task/1"

json_t *fkt_task_json(const struct fkt_task *t);           /* a new reference, or NULL when memory is out */
json_t *fkt_task_document(const struct fkt_task *t);       /* the same with the signature, as it stands in its file */
FKT_MUST_USE fkt_status fkt_task_seal(struct fkt_task *t); /* the hash of what is there now */
/* FKT_E_ARG when one stands there twice: "class 'cat' is listed twice". */
FKT_MUST_USE fkt_status fkt_all_different(const char *const *names, uint32_t n, const char *what);
FKT_MUST_USE fkt_status fkt_task_copy(struct fkt_task *out, const struct fkt_task *t);
/* FKT_E_MISMATCH unless `cal` is the calibration that the task names: hash, source and number of images. */
FKT_MUST_USE fkt_status fkt_task_check_calibration(const struct fkt_task *t, const struct fkt_calibration *cal);
void fkt_calibration_sha256(const struct fkt_calibration *cal, char out[FKT_SHA256_HEX]);
/* Dumps with sorted keys: indent 0 is the canonical form that hashes are taken of; indented text ends with a newline.
 * Gives *text. Takes the reference `j` (NULL: out of memory). */
FKT_MUST_USE fkt_status fkt_json_text(char **text, json_t *j, int indent);
/* Takes j; indented, newline at the end, atomic; `flags` of base/file.h. */
FKT_MUST_USE fkt_status fkt_json_save(json_t *j, const char *path, int flags);

#endif
