/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - the frozen, public networks: images -> latents, and for a codec latents -> images; their calibrations.
 *
 * Letters: S side in pixels, D length of the codec's raw latent z, d <= D length of the calibrated vector u.
 *   encode       uint8 RGB (S,S,3) -> z in R^D
 *   calibrate    u = W (z - mu0)
 *   and back     z' = mu0 + V u
 *   decode       z' -> uint8 RGB (S,S,3)
 *
 * Calibration comes from a named PUBLIC image set (or an analytic model), never from private data. */
#ifndef FEDKT_CODEC_H
#define FEDKT_CODEC_H

#include "fedkt/machine.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_codec;

/* Between the layers of a network; a codec without weights takes no notice. AUTO measures once per processor, and is
 * BF16 on a card. F32 is IEEE binary32 on every device: a card's TF32 is not used. */
enum fkt_codec_dtype { FKT_CODEC_DTYPE_F32 = 0, FKT_CODEC_DTYPE_BF16, FKT_CODEC_DTYPE_AUTO };

/* What a machine brings along. It decides where weights are found, where and how fast they run, not what the codec is:
 * none of it is in the identity. */
struct fkt_codec_settings {
    const char *weights; /* a file, or a folder with the published files; NULL: the cache */
    enum fkt_codec_dtype dtype;
    int low_memory;           /* weights are used where the file is mapped, as far as possible; slower */
    struct fkt_device device; /* zeros: the processor */
    /* As `weights`, for the guide where a task's codec and guide are opened together (pipeline.h); fkt_codec_open takes
     * no notice. */
    const char *guide_weights;
};

struct fkt_codec_spec {
    /* "dct", "taesd", "dc-ae-f32c32-in", ...; a guide: "fedkt-guide", "resnet18", "efficientnet-lite0", where
     * "resnet18@128" asks for another side of the network's input than the published one. A file's path (it has a '/',
     * or ends in ".safetensors") stands for its family, and for settings.weights. */
    const char *name;
    uint32_t size; /* S */
    uint32_t dim;  /* D for codecs with a free length (dct: coefficients kept); 0: the codec's own default */
    struct fkt_codec_settings settings;
};

/* Copies the spec; gives *out. A codec is immutable after opening and may be used from many threads. */
FKT_API FKT_MUST_USE fkt_status fkt_codec_open(struct fkt_codec **out, const struct fkt_codec_spec *spec);
FKT_API void fkt_codec_free(struct fkt_codec *c);
FKT_API const char *fkt_codec_name(const struct fkt_codec *c);
FKT_API uint32_t fkt_codec_size(const struct fkt_codec *c);
FKT_API uint32_t fkt_codec_dim(const struct fkt_codec *c);                    /* D */
FKT_API enum fkt_codec_dtype fkt_codec_dtype_used(const struct fkt_codec *c); /* what it runs in: never AUTO */
/* What it runs on: never AUTO; the processor for a codec without weights, whatever was asked for. */
FKT_API struct fkt_device fkt_codec_device_used(const struct fkt_codec *c);
/* 1 when latents can be turned into images again; 0: a guide, an encoder without decoder (docs/codecs.md, "Guides").
 * fkt_codec_decode of a guide is FKT_E_STATE. */
FKT_API int fkt_codec_decodes(const struct fkt_codec *c);
/* One line that fixes the codec's arithmetic ("dct/1 size=32 dim=64 block=32 ..."; weight hashes for networks): its
 * hash is part of a task. */
FKT_API const char *fkt_codec_identity(const struct fkt_codec *c);

/* For people and benchmarks. [0] is the encoder, [1] the decoder; zero, "" and NULL where there is nothing to say. */
struct fkt_codec_facts {
    char kind[24];                       /* "dct", "taesd", "dc-ae", "resnet", "efficientnet-lite0" */
    char layout[32];                     /* of the weights: "taesd", "diffusers", "efficientvit", "torchvision", ... */
    char variant[48];                    /* of a guide: "basic 2+2+2+2, 7x7 stem" */
    uint32_t input;                      /* of a guide: side that images are resampled to */
    uint32_t latent_channels, reduction; /* of a guide its features, and 0 */
    double latent_scale, latent_shift;
    uint64_t parameters[2];
    uint64_t flops[2];           /* of one image, counted as direct convolutions */
    uint64_t packed_bytes[2];    /* private copies of weights, once the direction has been used */
    uint64_t workspace_bytes[2]; /* activations of one thread, likewise */
    uint32_t batch[2];           /* images that go through the network together */
    const char *file[2];         /* borrowed from the codec; the second is NULL where one file holds both */
    const char *config;          /* config.json that was read, likewise; NULL: none */
};
FKT_API FKT_MUST_USE fkt_status fkt_codec_facts(const struct fkt_codec *c, struct fkt_codec_facts *out);

/* Images that go through together: whole multiples of it are fastest to encode and decode. At least 1. */
FKT_API size_t fkt_codec_batch(const struct fkt_codec *c);
/* n images at a time; the result of an image does not depend on n or on its neighbours. */
FKT_API FKT_MUST_USE fkt_status fkt_codec_encode(const struct fkt_codec *c, const uint8_t *rgb /* (n,S,S,3) */,
                                                 size_t n, float *z /* (n,D) */);
FKT_API FKT_MUST_USE fkt_status fkt_codec_decode(const struct fkt_codec *c, const float *z /* (n,D) */, size_t n,
                                                 uint8_t *rgb /* (n,S,S,3) */);

/* The public calibration. Plain data; tensors are owned. */
struct fkt_calibration {
    uint32_t raw_dim;  /* D */
    uint32_t dim;      /* d <= D */
    float *centre;     /* (D) mu0 */
    float *map;        /* (d, D) W */
    float *unmap;      /* (D, d) V: pseudo-inverse of W */
    double log_mean;   /* c: mean of log|u| over the public set */
    double log_spread; /* s: three standard deviations of log|u| */
    double radius;     /* R of the clip coordinates, in units of u */
    uint64_t images;   /* how many public images; 0 for an analytic model */
    char source[128];  /* "analytic natural-image spectrum", or the public set's name */
    char codec[256];   /* identity of the codec it belongs to */
    char *file;        /* that it was read from, for sentences; NULL: none */
    /* Which images: the first 8 bytes of the SHA-256 of each (docs/formats.md, "Files of the pipeline"), ascending,
     * each once. NULL for an analytic model, and inside a release, where their hash stands for them. */
    uint8_t *digests; /* (n_digests, FKT_CALIBRATION_DIGEST) */
    uint64_t n_digests;
    char digests_sha256[65]; /* of the list; "": none was ever kept */
};
#define FKT_CALIBRATION_DIGEST 8

/* The calibration that is built in for this codec; FKT_E_STATE with a hint when there is none. */
FKT_API FKT_MUST_USE fkt_status fkt_calibration_embedded(struct fkt_calibration *out, const struct fkt_codec *c);
FKT_API FKT_MUST_USE fkt_status fkt_calibration_load(struct fkt_calibration *out, const char *path); /* safetensors */
FKT_API FKT_MUST_USE fkt_status fkt_calibration_save(const struct fkt_calibration *cal, const char *path, int force);
FKT_API FKT_MUST_USE fkt_status fkt_calibration_check(const struct fkt_calibration *cal,
                                                      const struct fkt_codec *c); /* FKT_E_MISMATCH / NUMERIC */
FKT_API void fkt_calibration_clear(struct fkt_calibration *cal);
/* Names, as in a task and on the command line; -1 when unknown. */
FKT_API const char *fkt_codec_dtype_name(enum fkt_codec_dtype d);
FKT_API int fkt_codec_dtype_parse(const char *s);

#ifdef __cplusplus
}
#endif
#endif
