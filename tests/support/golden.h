/* SPDX-License-Identifier: Apache-2.0 */
/* golden.h - a neural codec beside what PyTorch made of the same weights and images (oracle/codec_vectors.py). */
#ifndef FKT_TEST_GOLDEN_H
#define FKT_TEST_GOLDEN_H

#include "codec/family.h"
#include "nn/engine.h"
#include "tests/support/scratch.h"

enum { GOLDEN_IMAGES = 2 };

struct golden {
    struct fkt_family family;
    struct fkt_safetensors *vectors;
    struct scratch scratch;
};

/* Stem: "<name>.<layout>" of tests/vectors/codec. Writes the weights as that layout publishes them and lets the family
 * be recognised from the folder. */
void golden_open(struct golden *g, const char *stem);
/* The same with weights that are there already. */
void golden_open_real(struct golden *g, const char *stem, const char *folder, const char *codec);
void golden_release(struct golden *g);

/* Largest and root mean square difference from PyTorch, and PyTorch's largest number, both halves; the decoder gets
 * PyTorch's latents. NaN makes a difference infinite. */
struct golden_error {
    double apart[2], rms[2], size[2];
};
struct golden_run {
    const struct fkt_backend *backend;
    enum fkt_precision precision;
    int low_memory;
    uint32_t side;
};
void golden_measure(struct golden_error *out, const struct golden *g, const struct golden_run *run);

/* The image by formula: uint8 (side, side, 3). */
void golden_image(uint8_t *rgb, uint32_t side, uint32_t which);

#endif
