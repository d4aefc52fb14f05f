/* SPDX-License-Identifier: Apache-2.0 */
/* guided_twin.h - guided images in one pass, by a decoder that was trained on public images to take (z, s). */
#ifndef FKT_PIPELINE_GUIDED_TWIN_H
#define FKT_PIPELINE_GUIDED_TWIN_H

#include "fedkt/codec.h"

#include "codec/codec.h"
#include "crypto/hash.h"
#include "nn/engine.h"

/* Hashes (hex) that a task knows: of the codec's identity, the guide's identity and the guide's calibration. codec
 * NULL: nothing is compared, for benchmarks, which have no task. */
struct fkt_guided_pair {
    const char *codec, *guide, *guide_calibration;
};

struct fkt_guided_twin_spec {
    struct fkt_guided_pair pair;
    struct fkt_codec_net decoder;        /* the codec's own: shapes and scales */
    const struct fkt_calibration *codec; /* borrowed until the twin is freed */
    uint32_t features;                   /* k */
    const struct fkt_backend *backend;
    enum fkt_precision precision;
    uint32_t batch;
    int device; /* number of the card */
};

struct fkt_guided_twin; /* immutable: shared by threads */
/* FKT_E_MISMATCH: made for another codec, guide or calibration (one line says which), or its tensors do not fit them;
 * FKT_E_FORMAT: not such a file. */
FKT_MUST_USE fkt_status fkt_guided_twin_open(struct fkt_guided_twin **out, const char *path,
                                             const struct fkt_guided_twin_spec *spec);
void fkt_guided_twin_free(struct fkt_guided_twin *t);
const char *fkt_guided_twin_sha256(const struct fkt_guided_twin *t); /* of the file, hex */
/* Any n, from any number of threads: u (n, d), s (n, k) -> rgb (n, S, S, 3). */
FKT_MUST_USE fkt_status fkt_guided_twin_run(const struct fkt_guided_twin *t, const double *u, const double *s, size_t n,
                                            uint8_t *rgb);

#endif
