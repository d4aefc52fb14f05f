/* SPDX-License-Identifier: Apache-2.0 */
/* guided.h - images whose own guide features match a drawn vector: the definition, by gradient.
 *
 * Letters: u (d) and s (k) are the drawn vectors of codec and guide in whitened units, mu0 and V the codec's
 * calibration, W and mu_g the guide's. The image is dec(mu0 + V (u + a)) with a (d) from STEPS steps of Adam on
 *
 *   loss(a) = mean over k of (W (guide(view(clamp(dec(mu0 + V (u + a))))) - mu_g) - s)^2 + rho * mean over d of a^2
 *
 * that begin at a = 0. clamp cuts pixels to [0,1]; its derivative is 1 inside and on the edge, 0 outside, as PyTorch's.
 * view is another one in each step: a shift by at most `shift` pixels each way, pixels of the edge repeated, and a
 * mirroring in one of two cases, from the stream of (seed, class, sample number, step). The image itself is decoded
 * without a view. The networks run in float32 on every device.
 *
 * docs/method.md 1.6; docs/decisions/0024-guided-images.md. */
#ifndef FKT_PIPELINE_GUIDED_H
#define FKT_PIPELINE_GUIDED_H

#include "fedkt/codec.h"

#include "codec/codec.h"
#include "nn/learner.h"

/* Which image: views follow it, so that an image does not depend on the batch that it is in. */
struct fkt_guided_image {
    uint64_t seed, number;
    uint32_t label;
};
struct fkt_guided_view {
    int32_t top, left;
    int flip;
};
/* Step counts from 1; out(y, x) = in(y + top, x' + left) with x' = S - 1 - x when flipped, places outside cut to the
 * edge. */
struct fkt_guided_view fkt_guided_view(const struct fkt_guided_image *i, uint32_t step, uint32_t shift);
/* in, out (3, side, side). The second is the transpose of the first: the gradient by `in` from that by `out`. */
void fkt_guided_move(const struct fkt_guided_view *v, uint32_t side, const float *in, float *out);
void fkt_guided_move_back(const struct fkt_guided_view *v, uint32_t side, const float *dout, float *din);

/* Everything is borrowed and must outlive what is made of it. */
struct fkt_guided_spec {
    struct fkt_codec_net decoder, guide;
    const struct fkt_calibration *codec, *features;
    uint32_t size;         /* S */
    uint32_t steps, shift; /* 0 steps: plain decoding */
    double rho, rate;
    uint32_t batch;
    const struct fkt_learner_backend *backend;
    int device; /* number of the card */
};

struct fkt_guided; /* two frozen networks and their memory: belongs to one thread at a time */
/* FKT_E_MISMATCH where networks, calibrations and size do not fit; FKT_E_ARG for numbers out of range, and where the
 * backend cannot differentiate a network. */
FKT_MUST_USE fkt_status fkt_guided_new(struct fkt_guided **out, const struct fkt_guided_spec *spec);
void fkt_guided_free(struct fkt_guided *g);
/* 1 to batch images: u (n, d), s (n, k) -> rgb (n, S, S, 3), and a (n, d) where it is not NULL. FKT_E_NUMERIC names the
 * image whose numbers are not finite. */
FKT_MUST_USE fkt_status fkt_guided_run(struct fkt_guided *g, const struct fkt_guided_image *image, const double *u,
                                       const double *s, size_t n, uint8_t *rgb, float *a);

#endif
