/* SPDX-License-Identifier: Apache-2.0 */
/* procedural_paint.h - canvas and brushes of the demo images. Only + - * / and sqrt on floats: no libm function whose
 * last bit differs between machines, so that the images are the same bytes everywhere. */
#ifndef FKT_IMAGES_PROCEDURAL_PAINT_H
#define FKT_IMAGES_PROCEDURAL_PAINT_H

#include "base/rng.h"

#include <math.h>
#include <stdint.h>

enum { FKT_DEMO_SIDE = 32, FKT_DEMO_CLASSES = 10, FKT_DEMO_TRAIN = 600, FKT_DEMO_TEST = 150 }; /* images per class */

struct fkt_hue {
    float r, g, b; /* 0..1, as displayed */
};

struct fkt_canvas {
    struct fkt_rng rng;
    uint32_t salt;                          /* of the textures */
    float pixel;                            /* width of a pixel in scene units */
    float x[FKT_DEMO_SIDE * FKT_DEMO_SIDE]; /* where the camera sees pixel i: the frame is about [-1,1]^2, y down */
    float y[FKT_DEMO_SIDE * FKT_DEMO_SIDE];
    struct fkt_hue at[FKT_DEMO_SIDE * FKT_DEMO_SIDE];
};

/* A canvas under a camera with some shift, zoom, tilt (in turns, at most) and perhaps mirrored. */
void fkt_canvas_init(struct fkt_canvas *c, uint64_t seed, uint64_t stream, float tilt);
/* Light, haze, white balance, vignette and grain; then bytes. */
void fkt_canvas_finish(struct fkt_canvas *c, uint8_t *rgb /* (SIDE, SIDE, 3) */);

float fkt_paint_uniform(struct fkt_canvas *c, float lo, float hi);
int fkt_paint_chance(struct fkt_canvas *c, float p);
struct fkt_hue fkt_paint_vary(struct fkt_canvas *c, struct fkt_hue h, float spread); /* brightness and each channel */
struct fkt_hue fkt_paint_vivid(float turn, float saturation, float value);           /* around the colour wheel */
float fkt_paint_wave(float turns); /* sine of a full turn, to 0.0012 */
float fkt_paint_noise(const struct fkt_canvas *c, uint32_t layer, float x,
                      float y); /* smooth, 0..1, features of about 1 unit */
float fkt_paint_cloud(const struct fkt_canvas *c, uint32_t layer, float x, float y); /* three octaves of it, 0..1 */
float fkt_paint_cell(const struct fkt_canvas *c, uint32_t layer, int x, int y); /* one number 0..1 for a lattice cell */

/* Called for every pixel, hence here. */
static inline float fkt_paint_clamp(float t) { return t < 0 ? 0 : t > 1 ? 1 : t; } /* to 0..1 */
static inline float fkt_paint_length(float x, float y) { return sqrtf(x * x + y * y); }
static inline float fkt_paint_floor(float x) /* pre: |x| < 2^31 */
{
    float whole = (float)(int)x;
    return whole > x ? whole - 1 : whole;
}

/* Cover of a shape at signed distance d (inside: negative), antialiased. */
static inline float fkt_paint_edge(const struct fkt_canvas *c, float d) { return fkt_paint_clamp(0.5F - d / c->pixel); }

/* 0 at lo and before, 1 at hi and beyond, smooth between; lo may be the larger. */
static inline float fkt_paint_soft(float lo, float hi, float t)
{
    t = fkt_paint_clamp((t - lo) / (hi - lo));
    return t * t * (3 - 2 * t);
}

static inline struct fkt_hue fkt_paint_mix(struct fkt_hue a, struct fkt_hue b, float t) /* t is clamped to 0..1 */
{
    t = fkt_paint_clamp(t);
    return (struct fkt_hue){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static inline struct fkt_hue fkt_paint_scale(struct fkt_hue a, float f)
{
    return (struct fkt_hue){a.r * f, a.g * f, a.b * f};
}

static inline void fkt_paint_over(struct fkt_canvas *c, unsigned i, struct fkt_hue h,
                                  float cover) /* lays h over pixel i */
{
    c->at[i] = fkt_paint_mix(c->at[i], h, cover);
}

#endif
