/* SPDX-License-Identifier: Apache-2.0 */
/* promise.c - a site or a server takes part in a task with a weak promise only if its user has accepted that
 * (task.h, privacy/promise.c). */
#include "remote/remote.h"

fkt_status fkt_remote_check_promise(const struct fkt_task *t, int accept_weak)
{
    char why[FKT_PROMISE_WORDS];
    if (accept_weak || fkt_task_promise(t, why) == FKT_PROMISE_SOUND) return FKT_OK;
    return fkt_hint_code(fkt_fail(FKT_E_MISMATCH, "the promise of task '%s' is weak: %s", t->name, why),
                         FKT_HINT_ACCEPT_WEAK,
                         "ask its author for a stricter task, or accept that nothing made of it is called private");
}
