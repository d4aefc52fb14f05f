/* SPDX-License-Identifier: Apache-2.0 */
/* decode_webp.c - WebP through libwebp: lossy and lossless, with and without alpha; the pixels that Pillow gives.
 *
 * Sides and area are checked from the header before libwebp takes memory for them, and pixels go straight into our own
 * block. An animation is refused: a record is one image, and which frame was meant is not known. A file that ends too
 * early is an error, although libwebp would give the rows that it has. */
#include "images/decode.h"

#include "base/alloc.h"
#include "images/dataset.h"
#include "images/exif.h"

#include <string.h>

#include <webp/decode.h>

static fkt_status refuse(VP8StatusCode code)
{
    if (code == VP8_STATUS_OUT_OF_MEMORY) return fkt_fail(FKT_E_NOMEM, "out of memory in the WebP library");
    return fkt_fail(FKT_E_FORMAT, "damaged or truncated WebP (%s)",
                    code == VP8_STATUS_NOT_ENOUGH_DATA       ? "the file ends too early"
                    : code == VP8_STATUS_UNSUPPORTED_FEATURE ? "a feature that the library does not know"
                                                             : "bad data");
}

fkt_status fkt_webp_decode(struct fkt_pixels *out, const uint8_t *data, size_t len)
{
    WebPDecoderConfig config;
    VP8StatusCode code;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!WebPInitDecoderConfig(&config)) return fkt_fail(FKT_E_IO, "the WebP library is of another version");
    code = WebPGetFeatures(data, len, &config.input);
    if (code != VP8_STATUS_OK) return refuse(code);
    if (config.input.has_animation)
        return fkt_fail_hint(FKT_E_FORMAT, "save the frame that is meant as an image of its own",
                             "the WebP is an animation");
    FKT_TRY(fkt_image_check_size("the WebP is", (uint32_t)config.input.width, (uint32_t)config.input.height));
    out->w = (uint32_t)config.input.width;
    out->h = (uint32_t)config.input.height;
    out->channels = config.input.has_alpha ? 4 : 3;
    out->note = config.input.has_alpha ? FKT_IMAGE_HAD_ALPHA : 0;
    out->orientation = fkt_exif_of_webp(data, len);
    FKT_TRY(fkt_alloc(&out->samples, (size_t)out->w * out->h * out->channels));
    config.output.colorspace = config.input.has_alpha ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out->samples;
    config.output.u.RGBA.stride = (int)(out->w * out->channels); /* at most 16384 * 4 */
    config.output.u.RGBA.size = (size_t)out->w * out->h * out->channels;
    code = WebPDecode(data, len, &config);
    if (code != VP8_STATUS_OK) st = refuse(code);
out:
    if (st != FKT_OK) {
        fkt_free(out->samples);
        memset(out, 0, sizeof *out);
    }
    return st;
}
