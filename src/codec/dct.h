/* SPDX-License-Identifier: Apache-2.0 */
/* dct.h - the transform (dct.c) and the natural-image model behind it (dct_model.c). */
#ifndef FKT_CODEC_DCT_H
#define FKT_CODEC_DCT_H

#include "codec/codec.h"

#define FKT_DCT_SIZE_MIN 8U
#define FKT_DCT_SIZE_MAX 512U
#define FKT_DCT_DIM_MAX 4096U
#define FKT_DCT_DIM_DEFAULT 64U

/* One kept coefficient: plane 0 Y, 1 Cb, 2 Cr; u vertical, v horizontal frequency in half cycles per image. */
struct fkt_dct_coef {
    uint16_t plane, u, v;
};

/* The `dim` coefficients of largest weight, in order of weight; depends on (size, dim) alone. */
FKT_MUST_USE fkt_status fkt_dct_layout(struct fkt_dct_coef *out, uint32_t size, uint32_t dim);
/* The model's variance of a coefficient of the orthonormal transform of a size x size plane. */
double fkt_dct_energy(const struct fkt_dct_coef *c, uint32_t size);
/* The model's mean and standard deviation of log|u| for u of length dim. */
void fkt_dct_log_size(double *mean, double *deviation, uint32_t dim);

#endif
