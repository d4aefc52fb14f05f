/* SPDX-License-Identifier: Apache-2.0 */
/* teacher.h - for this module: the failure of a teacher that a release does not have. */
#ifndef FKT_LEARNING_TEACHER_H
#define FKT_LEARNING_TEACHER_H

#include "fedkt/teacher.h"

#include "base/status.h"

fkt_status fkt_teacher_none(enum fkt_head_kind kind); /* FKT_E_ARG: pooled moments have no such head */

#endif
