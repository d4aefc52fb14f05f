/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_task.c - reading a task: the JSON that states what all sites do, written by somebody else. What is accepted is
 * written out and read again under the same hash and the same signature. */
#include "fuzz_support.h"

#include "base/alloc.h"
#include "task/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fkt_task task, back;
    char *text = NULL;
    if (fkt_task_parse_into(&task, (const char *)data, size) != FKT_OK) {
        FUZZ_CHECK(fkt_error_text()[0] != '\0');
        return 0;
    }
    FUZZ_CHECK(fkt_json_text(&text, fkt_task_document(&task), 2) == FKT_OK);
    FUZZ_CHECK(fkt_task_parse_into(&back, text, strlen(text)) == FKT_OK);
    FUZZ_CHECK(!strcmp(task.sha256, back.sha256));
    FUZZ_CHECK(fkt_task_verify(&task, NULL) == fkt_task_verify(&back, NULL));
    fkt_free(text);
    fkt_task_clear(&back);
    fkt_task_clear(&task);
    return 0;
}
