/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_task.c - the door for a task: the JSON that fixes what all sites do, written by someone else. */
#include "fuzz_support.h"

#include "round/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fkt_task task;
    if (fkt_task_parse(&task, (const char *)data, size) != FKT_OK) {
        FUZZ_CHECK(fkt_error_text()[0] != '\0');
        return 0;
    }
    fkt_task_release(&task);
    return 0;
}
