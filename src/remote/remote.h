/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - what join and serve share. */
#ifndef FKT_REMOTE_REMOTE_H
#define FKT_REMOTE_REMOTE_H

#include "fedkt/task.h"

#include "base/status.h"
#include "task/task.h"

/* FKT_E_MISMATCH when the task's promise is weak and the caller does not accept that. */
FKT_MUST_USE fkt_status fkt_remote_check_promise(const struct fkt_task *t, int accept_weak);

#endif
