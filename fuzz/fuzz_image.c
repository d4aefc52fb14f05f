/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_image.c - the door for a single PNG or JPEG. What is accepted is read to its last pixel. */
#include "fuzz_support.h"

#include "base/alloc.h"
#include "images/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *rgb = NULL;
    uint32_t w = 0, h = 0;
    unsigned note = 0;
    volatile uint8_t sink = 0;
    if (fkt_image_decode_memory(data, size, &rgb, &w, &h, &note) != FKT_OK) {
        FUZZ_CHECK(rgb == NULL && fkt_error_text()[0] != '\0');
        return 0;
    }
    FUZZ_CHECK(rgb != NULL && w > 0 && h > 0);
    for (size_t i = 0; i < (size_t)w * h * 3; i++) sink = (uint8_t)(sink + rgb[i]);
    (void)sink;
    fkt_free(rgb);
    return 0;
}
