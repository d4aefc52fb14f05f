/* SPDX-License-Identifier: Apache-2.0 */
/* golden.h - an image that is the same everywhere, and what known weights make of it. */
#ifndef FKT_CODEC_GOLDEN_H
#define FKT_CODEC_GOLDEN_H

#include "fedkt/codec.h"

enum { FKT_GOLDEN_SIZE = 32, FKT_GOLDEN_LATENTS = 16 };

void fkt_golden_image(uint8_t *rgb /* (size, size, 3) */, uint32_t size);

struct fkt_golden {
    double psnr;      /* of the image there and back, dB; NAN for a guide, which does not bring it back */
    double max_error; /* of the first latents against the recorded ones; NAN: there are none to compare with */
    int recorded;     /* 1: some are recorded for these weights, if perhaps not for this size */
};
/* Encodes the image, and decodes it where the codec can. `encoder_sha256` (may be NULL) names the encoder's file;
 * recorded latents are for FKT_GOLDEN_SIZE alone. FKT_E_NUMERIC when something is not finite. */
FKT_MUST_USE fkt_status fkt_golden_run(struct fkt_golden *out, const struct fkt_codec *codec,
                                       const char *encoder_sha256);

#endif
