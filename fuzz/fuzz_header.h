/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_header.h - a safetensors file from the JSON of its header alone.
 *
 * The smallest models have thousands of numbers, so that few mutations of a whole file would hit the header. A target
 * takes the header as its input and puts as many numbers after it as the header requires. */
#ifndef FKT_FUZZ_HEADER_H
#define FKT_FUZZ_HEADER_H

#include "fuzz_support.h"

/* The largest number in the header that stands after a ',' inside "data_offsets":[a,b]; at most `most`. */
static inline size_t fuzz_data_length(const uint8_t *head, size_t size, size_t most)
{
    static const char key[] = "\"data_offsets\":[";
    size_t largest = 0;
    for (size_t i = 0; i + sizeof key < size; i++) {
        size_t end = 0, at = i + sizeof key - 1;
        if (memcmp(head + i, key, sizeof key - 1) != 0) continue;
        while (at < size && head[at] != ',' && head[at] != ']') at++;
        for (at++; at < size && head[at] >= '0' && head[at] <= '9' && end < most; at++)
            end = end * 10 + (size_t)(head[at] - '0');
        if (end > largest) largest = end;
    }
    return largest < most ? largest : most;
}

/* The length of the header, the header, and small positive numbers, at most `most` bytes of them. Gives *len bytes,
 * released with free. */
static inline uint8_t *fuzz_behind_header(const uint8_t *head, size_t size, size_t most, size_t *len)
{
    const size_t more = fuzz_data_length(head, size, most);
    uint8_t *bytes = malloc(8 + size + more);
    FUZZ_CHECK(bytes != NULL);
    for (size_t i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)size >> 8 * i);
    if (size) memcpy(bytes + 8, head, size);
    for (size_t i = 0; i < more; i++) bytes[8 + size + i] = i % 2 ? 0x3D : (uint8_t)(i / 2);
    *len = 8 + size + more;
    return bytes;
}

#endif
