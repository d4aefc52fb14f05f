/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.c - a target with known faults, which replay.c and run_fuzzer.sh must report: an input that begins with 'C'
 * crashes, with 'L' loses memory, with 'U' overflows a signed integer (seen by sanitizers alone). */
#include "base/alloc.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *lost;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    volatile int most = INT_MAX;
    if (size && data[0] == 'C') abort();
    if (size && data[0] == 'L' && fkt_alloc(&lost, 1) != FKT_OK) abort();
    lost = NULL; /* no pointer is left, so that LeakSanitizer sees it as well as the count of blocks */
    if (size && data[0] == 'U') most = most + data[0];
    return 0;
}
