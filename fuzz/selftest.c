/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.c - a door with known faults, for replay.c to report: 'C' first crashes, 'L' first loses memory. */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *lost;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 'C') abort();
    if (size && data[0] == 'L' && fkt_alloc(&lost, 1) != FKT_OK) abort();
    return 0;
}
