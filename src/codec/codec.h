/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - what a codec is to its own room: a table of functions and the state they share. */
#ifndef FKT_CODEC_CODEC_H
#define FKT_CODEC_CODEC_H

#include "base/status.h"
#include "fedkt/codec.h"

#define FKT_IDENTITY_MAX 256 /* with the NUL; the length of fkt_calibration.codec */

/* A codec as its implementation sees it. `open` fills self, size, dim and identity from the spec; on failure it
 * leaves nothing behind. encode and decode must not change self: they run on many threads at once. */
struct fkt_codec_ops {
    const char *name;
    fkt_status (*open)(struct fkt_codec *c, const struct fkt_codec_spec *spec);
    fkt_status (*encode)(const void *self, const uint8_t *rgb, size_t n, float *z);
    fkt_status (*decode)(const void *self, const float *z, size_t n, uint8_t *rgb);
    /* Fills centre, map, unmap (allocated, zeroed), the constants and the source; NULL: this codec has no built-in
     * calibration. */
    void (*calibrate)(const void *self, struct fkt_calibration *cal);
    void (*free)(void *self);
};

struct fkt_codec {
    const struct fkt_codec_ops *ops;
    void *self; /* owned, released by ops->free */
    uint32_t size, dim;
    char identity[FKT_IDENTITY_MAX];
};

extern const struct fkt_codec_ops fkt_codec_dct;

/* Allocates the three tensors for (raw_dim, dim); the rest of *cal is zero. Release with fkt_calibration_release. */
FKT_MUST_USE fkt_status fkt_calibration_init(struct fkt_calibration *cal, uint32_t raw_dim, uint32_t dim);
/* Everything that can be wrong with a calibration by itself: FKT_E_NUMERIC says what. */
FKT_MUST_USE fkt_status fkt_calibration_sound(const struct fkt_calibration *cal);

#endif
