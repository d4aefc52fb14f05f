/* SPDX-License-Identifier: Apache-2.0 */
/* by_class.h - record numbers gathered by class: the common start of splits and partitions. */
#ifndef FKT_IMAGES_BY_CLASS_H
#define FKT_IMAGES_BY_CLASS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_by_class {
    size_t *records; /* n record numbers, class after class, ascending within one */
    size_t *start;   /* classes + 1 */
};

/* Counting sort; FKT_E_ARG when a label is not below `classes`. */
FKT_MUST_USE fkt_status fkt_by_class_init(struct fkt_by_class *c, const uint32_t *labels, size_t n, size_t classes);
void fkt_by_class_clear(struct fkt_by_class *c);

#endif
