/* SPDX-License-Identifier: Apache-2.0 */
/* procedural_paint.c - canvas and brushes of the demo images: a camera, soft edges, value noise, light and grain.
 *
 * Each pixel is drawn once at its centre; shapes are signed distances whose cover falls from 1 to 0 over one pixel,
 * which is what area sampling would give for a straight edge. Textures are value noise: hashed lattice numbers,
 * smoothly interpolated. Cost: some hundred operations a pixel; about 0.15 ms an image. */
#include "images/procedural_paint.h"

#include <math.h>

enum { PIXELS = FKT_DEMO_SIDE * FKT_DEMO_SIDE };

float fkt_paint_uniform(struct fkt_canvas *c, float lo, float hi)
{
    return lo + (hi - lo) * (float)fkt_rng_unit(&c->rng);
}
int fkt_paint_chance(struct fkt_canvas *c, float p) { return fkt_paint_uniform(c, 0, 1) < p; }

/* Bhaskara's parabola for half a turn, then one refinement that brings the error below 0.0012. */
float fkt_paint_wave(float turns)
{
    float t = turns - fkt_paint_floor(turns), half = t < 0.5F ? t : t - 0.5F;
    float s = 16 * half * (0.5F - half);
    s = 0.225F * (s * s - s) + s;
    return t < 0.5F ? s : -s;
}

struct fkt_hue fkt_paint_vary(struct fkt_canvas *c, struct fkt_hue h, float spread)
{
    float all = fkt_paint_uniform(c, -spread, spread);
    h.r = fkt_paint_clamp(h.r + all + fkt_paint_uniform(c, -spread, spread) * 0.6F);
    h.g = fkt_paint_clamp(h.g + all + fkt_paint_uniform(c, -spread, spread) * 0.6F);
    h.b = fkt_paint_clamp(h.b + all + fkt_paint_uniform(c, -spread, spread) * 0.6F);
    return h;
}

static float channel(float turn)
{
    float t = turn - fkt_paint_floor(turn), d = fabsf(t - 0.5F) * 6; /* 3 at the channel's own hue, 0 opposite */
    return fkt_paint_clamp(d - 1);
}

struct fkt_hue fkt_paint_vivid(float turn, float saturation, float value)
{
    struct fkt_hue h = {channel(turn), channel(turn - 1.0F / 3), channel(turn - 2.0F / 3)};
    return fkt_paint_scale(fkt_paint_mix((struct fkt_hue){1, 1, 1}, h, saturation), value);
}

float fkt_paint_cell(const struct fkt_canvas *c, uint32_t layer, int x, int y)
{
    uint32_t h = c->salt ^ layer * 0x9e3779b9U ^ (uint32_t)x * 0x85ebca6bU ^ (uint32_t)y * 0xc2b2ae35U;
    h = (h ^ (h >> 16)) * 0x7feb352dU;
    h = (h ^ (h >> 15)) * 0x846ca68bU;
    return (float)((h ^ (h >> 16)) >> 8) * 0x1p-24F;
}

float fkt_paint_noise(const struct fkt_canvas *c, uint32_t layer, float x, float y)
{
    float fx = fkt_paint_floor(x), fy = fkt_paint_floor(y), u = fkt_paint_soft(0, 1, x - fx),
          v = fkt_paint_soft(0, 1, y - fy);
    int ix = (int)fx, iy = (int)fy;
    float a = fkt_paint_cell(c, layer, ix, iy), b = fkt_paint_cell(c, layer, ix + 1, iy);
    float d = fkt_paint_cell(c, layer, ix, iy + 1), e = fkt_paint_cell(c, layer, ix + 1, iy + 1);
    return (a + (b - a) * u) * (1 - v) + (d + (e - d) * u) * v;
}

float fkt_paint_cloud(const struct fkt_canvas *c, uint32_t layer, float x, float y)
{
    float sum = fkt_paint_noise(c, layer, x, y) * 4 + fkt_paint_noise(c, layer + 1, 2.1F * x, 2.1F * y) * 2;
    return (sum + fkt_paint_noise(c, layer + 2, 4.3F * x, 4.3F * y)) / 7;
}

void fkt_canvas_init(struct fkt_canvas *c, uint64_t seed, uint64_t stream, float tilt)
{
    float zoom, turn, dx, dy, flip, s, k;
    fkt_rng_init(&c->rng, seed, stream);
    c->salt = (uint32_t)fkt_rng_u64(&c->rng);
    zoom = fkt_paint_uniform(c, 0.75F, 1.30F);
    turn = fkt_paint_uniform(c, -tilt, tilt);
    dx = fkt_paint_uniform(c, -0.22F, 0.22F);
    dy = fkt_paint_uniform(c, -0.22F, 0.22F);
    flip = fkt_paint_chance(c, 0.5F) ? -1 : 1;
    s = fkt_paint_wave(turn);
    k = fkt_paint_wave(turn + 0.25F);
    c->pixel = 2.0F / FKT_DEMO_SIDE * zoom;
    for (int i = 0; i < PIXELS; i++) {
        float u = (2 * (float)(i % FKT_DEMO_SIDE) + 1) / FKT_DEMO_SIDE - 1,
              v = (2 * (float)(i / FKT_DEMO_SIDE) + 1) / FKT_DEMO_SIDE - 1;
        c->x[i] = zoom * flip * (k * u - s * v) + dx;
        c->y[i] = zoom * (s * u + k * v) + dy;
        c->at[i] = (struct fkt_hue){0, 0, 0};
    }
}

/* Mean 0, variance 1, bell-shaped: the sum of four 16-bit numbers from one draw. */
static float grain(struct fkt_rng *r)
{
    uint64_t x = fkt_rng_u64(r);
    float sum = (float)(x & 0xffff) + (float)(x >> 16 & 0xffff) + (float)(x >> 32 & 0xffff) + (float)(x >> 48);
    return (sum / 65535 - 2) * 1.7320508F;
}

static uint8_t byte(float t) { return (uint8_t)(fkt_paint_clamp(t) * 255 + 0.5F); }

void fkt_canvas_finish(struct fkt_canvas *c, uint8_t *rgb)
{
    float gain = fkt_paint_uniform(c, 0.66F, 1.16F), haze = fkt_paint_uniform(c, 0, 0.40F),
          warm = fkt_paint_uniform(c, -0.11F, 0.11F);
    float gx = fkt_paint_uniform(c, -0.12F, 0.12F), gy = fkt_paint_uniform(c, -0.10F, 0.10F),
          vignette = fkt_paint_uniform(c, 0, 0.16F);
    float noise = fkt_paint_uniform(c, 0.008F, 0.045F);
    struct fkt_hue veil = fkt_paint_vary(c, (struct fkt_hue){0.70F, 0.72F, 0.75F}, 0.15F);
    for (int i = 0; i < PIXELS; i++) {
        float u = (float)(i % FKT_DEMO_SIDE) / 15.5F - 1, v = (float)(i / FKT_DEMO_SIDE) / 15.5F - 1;
        float light = gain * (1 + gx * u + gy * v) * (1 - vignette * (u * u + v * v) * 0.5F);
        struct fkt_hue h = fkt_paint_scale(fkt_paint_mix(c->at[i], veil, haze), light);
        rgb[3 * i] = byte(h.r * (1 + warm) + noise * grain(&c->rng));
        rgb[3 * i + 1] = byte(h.g + noise * grain(&c->rng));
        rgb[3 * i + 2] = byte(h.b * (1 - warm) + noise * grain(&c->rng));
    }
}
