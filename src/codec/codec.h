/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - what a codec is inside this module: a table of functions and the state they share. */
#ifndef FKT_CODEC_CODEC_H
#define FKT_CODEC_CODEC_H

#include "base/status.h"
#include "fedkt/codec.h"
#include "nn/net.h"
#include "nn/weights.h"

enum { FKT_CODEC_NAME_MAX = 64, FKT_GUIDE_INPUT_MAX = 512 };
#define FKT_IDENTITY_MAX 256 /* with the NUL; the length of fkt_calibration.codec */

/* A codec as its implementation sees it. `open` fills self, size, dim, dtype, batch and identity from the spec; on
 * failure it leaves nothing behind. encode and decode must not change self: they run on many threads at once. */
struct fkt_codec_net;
struct fkt_codec_ops {
    const char *name;
    fkt_status (*open)(struct fkt_codec *c, const struct fkt_codec_spec *spec);
    fkt_status (*encode)(const void *self, const uint8_t *rgb, size_t n, float *z);
    fkt_status (*decode)(const void *self, const float *z, size_t n, uint8_t *rgb); /* NULL: a guide */
    /* Fills centre, map, unmap (allocated, zeroed), the constants and the source; NULL: this codec has no built-in
     * calibration. */
    void (*calibrate)(const void *self, struct fkt_calibration *cal);
    /* Adds to *out, zeroed, what is not the same for all codecs; NULL: nothing to add. */
    fkt_status (*facts)(const void *self, struct fkt_codec_facts *out);
    /* The file that holds the calibration of this size, or NULL: none; gives *out. NULL: no files. */
    fkt_status (*calibration_file)(const void *self, char **out);
    /* Behind fkt_codec_net; NULL: no network. */
    fkt_status (*net)(const void *self, int side, struct fkt_codec_net *out);
    void (*free)(void *self);
};

struct fkt_codec {
    const struct fkt_codec_ops *ops;
    char name
        [FKT_CODEC_NAME_MAX]; /* as asked for; of a file the name of its family. Names may share an implementation */
    void *self;               /* owned, released by ops->free */
    uint32_t size, dim;
    enum fkt_codec_dtype dtype; /* what it runs in: F32 or BF16 */
    int dtype_measured;         /* AUTO: it was found out now, not remembered */
    struct fkt_device device;   /* that its networks run on; zeros without any */
    int low_memory;             /* as asked for: it changes rounding */
    uint32_t batch;             /* images that go through together; 0: one by one */
    char identity[FKT_IDENTITY_MAX];
};

extern const struct fkt_codec_ops fkt_codec_dct;
extern const struct fkt_codec_ops fkt_codec_network; /* every name of members.c */
extern const struct fkt_codec_ops fkt_codec_guide;   /* a network without decoder */

/* The parts of a name. "resnet18@128": base "resnet18", input 128; no '@': input 0. FKT_E_ARG when it is not a name. */
struct fkt_codec_title {
    char base[FKT_CODEC_NAME_MAX]; /* "" for a file */
    uint32_t input;
    char *file; /* owned; NULL: a name */
};
FKT_MUST_USE fkt_status fkt_codec_title(struct fkt_codec_title *out, const char *name);
int fkt_codec_is_path(const char *name);
/* 1 when this version has a codec (guide = 0) or a guide (1) of this name; weights are not looked at. */
int fkt_codec_known(const char *name, int guide);
/* 1 when a codec of this name is made of networks: all but dct. */
int fkt_codec_is_network(const char *name);
/* FKT_E_ARG unless the codec decodes (guide = 0) or is a guide (guide = 1). */
FKT_MUST_USE fkt_status fkt_codec_want(const struct fkt_codec *c, int guide);

/* One network of a codec, for whoever runs it in a way of its own (guided images, export). Borrowed from the codec.
 *   encoder   (input.c,h,w) = pixel/255 * pixel_scale[c] + pixel_shift[c];   z = (output - latent_shift) * latent_scale
 *   decoder   input = z / latent_scale + latent_shift;   pixel/255 = (output - pixel_shift[c]) / pixel_scale[c]
 * z is in the order channel, row, column on both sides. */
struct fkt_codec_net {
    const struct fkt_net *net;
    const struct fkt_weights *weights;
    struct fkt_shape input, output;
    float pixel_scale[3], pixel_shift[3];
    double latent_scale, latent_shift;
};
/* `side`: FKT_CODEC_SIDE_ENCODER or FKT_CODEC_SIDE_DECODER. FKT_E_STATE for a codec without networks, and for the
 * decoder of a guide. */
enum { FKT_CODEC_SIDE_ENCODER = 0, FKT_CODEC_SIDE_DECODER = 1 };
FKT_MUST_USE fkt_status fkt_codec_net(const struct fkt_codec *c, int side, struct fkt_codec_net *out);

/* 1 when the codec of this name carries calibrations of its own (the shipped networks: of some sizes); weights are not
 * looked at. */
int fkt_codec_has_calibration(const char *name);
/* FKT_E_FORMAT unless cal is, bit for bit, the calibration that is built in for its codec. */
FKT_MUST_USE fkt_status fkt_calibration_built_in(const struct fkt_calibration *cal);
/* 1 when AUTO timed the codec while it was opened, 0 when the answer was known. */
int fkt_codec_dtype_measured(const struct fkt_codec *c);

/* The first thing in which two identities differ, once for each: "size 32", "weights 0123456789ab", "kind dct/1". */
enum { FKT_DIFFERENCE_MAX = 48 };
void fkt_identity_difference(const char *a, const char *b, char in_a[FKT_DIFFERENCE_MAX],
                             char in_b[FKT_DIFFERENCE_MAX]);

/* Allocates the three tensors for (raw_dim, dim); the rest of *cal is zero. Release with fkt_calibration_clear. */
FKT_MUST_USE fkt_status fkt_calibration_init(struct fkt_calibration *cal, uint32_t raw_dim, uint32_t dim);
/* What to call it in a sentence: by the file that it was read from, else by its source. */
enum { FKT_CALIBRATION_CALLED = 320 };
const char *fkt_calibration_called(const struct fkt_calibration *cal, char out[FKT_CALIBRATION_CALLED]);
/* A list of digests from a file: hostile. cal->images is known already. */
FKT_MUST_USE fkt_status fkt_calibration_take_digests(struct fkt_calibration *cal, const uint8_t *list, uint64_t n);
/* Everything that can be wrong with a calibration by itself: FKT_E_NUMERIC says what. */
FKT_MUST_USE fkt_status fkt_calibration_sound(const struct fkt_calibration *cal);

#endif
