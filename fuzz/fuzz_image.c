/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_image.c - decoding a single image file. An input is decoded twice: with the depth of 16-bit samples not
 * stated, and with one that its length chooses. What is accepted is read to its last pixel. */
#include "fuzz_support.h"

#include "base/alloc.h"
#include "images/decode.h"

static void decode(const uint8_t *data, size_t size, unsigned bits)
{
    uint8_t *rgb = NULL;
    uint32_t w = 0, h = 0;
    struct fkt_facts facts = {0};
    volatile uint8_t sink = 0;
    if (fkt_image_decode_memory(data, size, bits, &rgb, &w, &h, &facts) != FKT_OK) {
        FUZZ_CHECK(rgb == NULL && fkt_error_text()[0] != '\0');
        return;
    }
    FUZZ_CHECK(rgb != NULL && w > 0 && h > 0);
    for (size_t i = 0; i < (size_t)w * h * 3; i++) sink = (uint8_t)(sink + rgb[i]);
    (void)sink;
    fkt_free(rgb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(data, size, 0);
    decode(data, size, 9 + (unsigned)(size % 8));
    return 0;
}
