/* SPDX-License-Identifier: Apache-2.0 */
/* part.h - the parts of a task, and readers of JSON values, for the files of this module. */
#ifndef FKT_TASK_PART_H
#define FKT_TASK_PART_H

#include "task/task.h"

#include <jansson.h>

/* Fills parts, joined, layout and privacy of *t; n_classes is set, the rest of *t is zero. Sets t->size. */
FKT_MUST_USE fkt_status fkt_parts_make(struct fkt_task *t, const struct fkt_task_choices *c,
                                       const struct fkt_part_choice *parts, uint32_t n);

/* The JSON of the parts into a task's: "codec", "calibration" and "coordinates" for a codec, "guide" for a guide,
 * "moments" for parts that are joined or pooled. 0, or -1 when out of memory. */
int fkt_parts_json(json_t *task, const struct fkt_task *t);
int fkt_parts_moments_json(json_t *to, const struct fkt_task *t); /* "moments" alone; the same */
json_t *fkt_split_json(const struct fkt_privacy_spec *p); /* count, then sum and moment of each part of the layout */

/* The same keys of a task from a file: hostile; NULL: absent. */
struct fkt_parts_read {
    const json_t *codec, *calibration, *coordinates, *guide, *moments;
};
FKT_MUST_USE fkt_status fkt_parts_take(struct fkt_task *t, const struct fkt_parts_read *from);
FKT_MUST_USE fkt_status fkt_split_take(struct fkt_privacy_spec *p, const json_t *list); /* p->parts is set */

/* task.c */
FKT_MUST_USE fkt_status fkt_task_copy_classes(struct fkt_task *t, const char *const *classes, uint32_t n);
FKT_MUST_USE fkt_status fkt_task_check_privacy(const struct fkt_task *t);

/* Values of a task's JSON (task_read.c); FKT_E_FORMAT names `what`. Text is plain, without NUL, and not cut. */
FKT_MUST_USE fkt_status fkt_take_text(char *out, size_t cap, const json_t *v, const char *what);
FKT_MUST_USE fkt_status fkt_take_choice(int *out, int (*parse)(const char *), const json_t *v, const char *what);
FKT_MUST_USE fkt_status fkt_take_hash(char out[FKT_SHA256_HEX], const json_t *v, const char *what);

#endif
