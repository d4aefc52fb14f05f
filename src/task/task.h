/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - the struct of a task, and its internal functions. */
#ifndef FKT_TASK_TASK_H
#define FKT_TASK_TASK_H

#include "fedkt/task.h"

#include "base/status.h"

#include <jansson.h>

#define FKT_TASK_SCHEMA "fedkt.task/1"
#define FKT_TASK_WEAK "weak" /* the mark of a weak promise in its JSON */
#define FKT_TASK_CLASSES_MAX 65536U

struct fkt_task {
    char name[128];
    char **classes; /* (n_classes) owned; indices are labels */
    uint32_t n_classes;
    uint32_t size; /* S */
    enum fkt_filter filter;
    enum fkt_fit fit;
    uint32_t parts;
    struct fkt_task_part part[FKT_PARTS_MAX]; /* (parts) the codec, where there is one, then the guide */
    int joined;
    struct fkt_moments_layout layout; /* derived */
    struct fkt_privacy_spec privacy;  /* radii = Rq of the layout */
    struct fkt_division division;     /* number 0: not in cohorts */
    struct fkt_federation federation; /* sites 0: none */
    struct fkt_service service;       /* address "": none; only with a federation */
    struct fkt_signature signature;   /* not part of the canonical JSON */
    char sha256[FKT_SHA256_HEX];      /* of the canonical JSON */
};
/* Like the public functions of the same name, but they fill a struct of the caller, which fkt_task_clear empties. */
FKT_MUST_USE fkt_status fkt_task_make_into(struct fkt_task *out, const struct fkt_task_choices *choices,
                                           const struct fkt_part_choice *parts, uint32_t n);
FKT_MUST_USE fkt_status fkt_task_parse_into(struct fkt_task *out, const char *json, size_t len);
FKT_MUST_USE fkt_status fkt_task_load_into(struct fkt_task *out, const char *path);
void fkt_task_clear(struct fkt_task *t);

json_t *fkt_task_json(const struct fkt_task *t);           /* a new reference, or NULL when out of memory */
json_t *fkt_task_document(const struct fkt_task *t);       /* the same with the signature, as in its file */
FKT_MUST_USE fkt_status fkt_task_seal(struct fkt_task *t); /* the hash of the present contents */
/* FKT_E_ARG when one is listed twice: "class 'cat' is listed twice". */
FKT_MUST_USE fkt_status fkt_all_different(const char *const *names, uint32_t n, const char *what);
FKT_MUST_USE fkt_status fkt_task_copy(struct fkt_task *out, const struct fkt_task *t);
/* FKT_E_MISMATCH where this version has no network of a part's name and kind; no weights are read. */
FKT_MUST_USE fkt_status fkt_task_check_known(const struct fkt_task *t);
static inline size_t fkt_task_numbers(const struct fkt_task *t) { return fkt_layout_numbers(&t->layout, t->n_classes); }
/* Of the tensor "moments" in files: (classes, numbers of a class), or (numbers) where moments are pooled. Gives the
 * rank. */
static inline unsigned fkt_task_moments_shape(const struct fkt_task *t, uint64_t shape[2])
{
    shape[0] = t->layout.pooled ? fkt_task_numbers(t) : t->n_classes;
    shape[1] = fkt_task_numbers(t) / t->n_classes;
    return t->layout.pooled ? 1 : 2;
}
/* FKT_E_MISMATCH unless `cal` is the calibration that the task names for part p: hash, source and number of images. */
FKT_MUST_USE fkt_status fkt_task_check_calibration(const struct fkt_task *t, uint32_t p,
                                                   const struct fkt_calibration *cal);
void fkt_calibration_sha256(const struct fkt_calibration *cal, char out[FKT_SHA256_HEX]);
/* Dumps with sorted keys: indent 0 is the canonical form, which is hashed; indented text ends with a newline. Sets
 * *text. Takes ownership of `j` (NULL: out of memory). */
FKT_MUST_USE fkt_status fkt_json_text(char **text, json_t *j, int indent);
/* Takes ownership of j; indented, newline at the end, atomic; `flags` of base/file.h. */
FKT_MUST_USE fkt_status fkt_json_save(json_t *j, const char *path, int flags);

#endif
