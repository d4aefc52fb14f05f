/* SPDX-License-Identifier: Apache-2.0 */
/* procedural_scenes.c - ten kinds of demo image, so that the whole pipeline can be shown without a download.
 *
 * Chosen so that a person names each thumbnail at once and yet the classes overlap for a machine: five are landscapes
 * with a horizon, two have a round thing in the middle, two are patterns. Places, sizes, colours, weather, light and
 * grain vary; the variation is large and of low frequency on purpose, since that is what class moments in some 64
 * coefficients can hold. Each scene draws its parameters first, then paints pixel by pixel from the back to the front.
 */
#include "images/procedural_scenes.h"

#include <math.h>

enum { PIXELS = FKT_DEMO_SIDE * FKT_DEMO_SIDE };

typedef struct fkt_hue hue;

static const hue white = {1, 1, 1};

struct sky {
    hue top, low, cloud;
    float horizon, cover;
};

/* Weather: clear, milky, overcast or evening. */
static struct sky draw_sky(struct fkt_canvas *c, float horizon)
{
    static const hue tops[] = {
        {0.22F, 0.45F, 0.80F}, {0.45F, 0.62F, 0.82F}, {0.55F, 0.60F, 0.66F}, {0.40F, 0.38F, 0.62F}};
    static const hue lows[] = {
        {0.70F, 0.84F, 0.95F}, {0.85F, 0.90F, 0.94F}, {0.78F, 0.80F, 0.82F}, {0.97F, 0.75F, 0.58F}};
    struct sky s = {.horizon = horizon};
    unsigned kind = fkt_paint_chance(c, 0.45F) ? 0 : (unsigned)fkt_rng_below(&c->rng, 4);
    s.top = fkt_paint_vary(c, tops[kind], 0.08F);
    s.low = fkt_paint_vary(c, lows[kind], 0.06F);
    s.cloud = fkt_paint_mix(s.low, white, 0.7F);
    s.cover = fkt_paint_uniform(c, 0, 0.8F);
    return s;
}

static hue sky_at(const struct fkt_canvas *c, const struct sky *s, float x, float y)
{
    hue h = fkt_paint_mix(s->top, s->low, (y + 1.1F) / (s->horizon + 1.1F));
    float cloud = fkt_paint_soft(0.52F, 0.75F, fkt_paint_cloud(c, 90, 1.6F * x, 3.2F * y));
    return fkt_paint_mix(h, s->cloud, cloud * s->cover);
}

static void sunset(struct fkt_canvas *c)
{
    float horizon = fkt_paint_uniform(c, 0.0F, 0.5F), sx = fkt_paint_uniform(c, -0.6F, 0.6F);
    float r = fkt_paint_uniform(c, 0.13F, 0.30F), sy = horizon - fkt_paint_uniform(c, -0.5F * r, 0.45F),
          late = fkt_paint_uniform(c, 0, 1);
    hue top = fkt_paint_vary(c, fkt_paint_mix((hue){0.45F, 0.50F, 0.72F}, (hue){0.22F, 0.16F, 0.40F}, late), 0.06F);
    hue low = fkt_paint_vary(c, fkt_paint_mix((hue){0.99F, 0.76F, 0.42F}, (hue){0.93F, 0.40F, 0.36F}, late), 0.07F);
    hue disc = fkt_paint_vary(c, (hue){1.0F, 0.93F, 0.66F}, 0.05F),
        sea = fkt_paint_vary(c, (hue){0.20F, 0.22F, 0.36F}, 0.06F);
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = c->x[i], y = c->y[i], d = fkt_paint_length(x - sx, y - sy), sway, streak;
        hue h = fkt_paint_mix(top, low, (y + 1.1F) / (horizon + 1.1F));
        float band = fkt_paint_soft(0.5F, 0.8F, fkt_paint_cloud(c, 1, 1.5F * x, 6 * y));
        h = fkt_paint_mix(h, fkt_paint_scale(low, 0.75F), 0.5F * band);
        h = fkt_paint_mix(h, disc, 0.75F / (1 + d * d / (r * r * 1.8F)));
        c->at[i] = fkt_paint_mix(h, disc, fkt_paint_edge(c, d - r));
        h = fkt_paint_mix(fkt_paint_mix(low, sea, 0.45F), sea, (y - horizon) / 0.7F);
        sway = (fkt_paint_noise(c, 5, 2 * x, 14 * y) - 0.5F) * 0.25F;
        streak = 1 - fabsf(x - sx + sway) / (r * 0.8F + 0.35F * fkt_paint_clamp(y - horizon));
        h = fkt_paint_mix(
            h, disc, 0.8F * fkt_paint_clamp(streak) * fkt_paint_soft(0.2F, 0.7F, fkt_paint_noise(c, 6, 3 * x, 12 * y)));
        fkt_paint_over(c, i, h, fkt_paint_edge(c, horizon - y));
    }
}

static void night(struct fkt_canvas *c)
{
    float mx = fkt_paint_uniform(c, -0.65F, 0.65F), my = fkt_paint_uniform(c, -0.75F, 0.0F),
          r = fkt_paint_uniform(c, 0.15F, 0.32F);
    float bite = fkt_paint_chance(c, 0.5F) ? fkt_paint_uniform(c, 0.5F, 1.0F) : 9,
          hills = fkt_paint_uniform(c, 0.35F, 0.85F);
    float twilight = fkt_paint_uniform(c, 0, 1);
    hue top = fkt_paint_vary(c, (hue){0.06F, 0.08F, 0.20F}, 0.05F),
        moon = fkt_paint_vary(c, (hue){0.95F, 0.93F, 0.82F}, 0.05F);
    hue low = fkt_paint_vary(c, fkt_paint_mix((hue){0.10F, 0.14F, 0.32F}, (hue){0.42F, 0.34F, 0.50F}, twilight), 0.05F);
    hue land = fkt_paint_vary(c, (hue){0.05F, 0.06F, 0.09F}, 0.04F);
    float star[24][2];
    for (int s = 0; s < 24; s++)
        for (int a = 0; a < 2; a++) star[s][a] = fkt_paint_uniform(c, -1.1F, 1.1F);
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = c->x[i], y = c->y[i], d = fkt_paint_length(x - mx, y - my), lit, ridge;
        hue h = fkt_paint_mix(top, low, (y + 1) / (hills + 1));
        for (int s = 0; s < 24; s++) {
            float q = fkt_paint_length(x - star[s][0], y - star[s][1]) / 0.045F;
            if (q < 2) h = fkt_paint_mix(h, white, (0.3F + 0.02F * (float)s) * fkt_paint_clamp(1.3F - q));
        }
        h = fkt_paint_mix(h, moon, 0.40F / (1 + d * d / (r * r * 0.8F)));
        lit = fkt_paint_edge(c, d - r) *
              (1 - fkt_paint_edge(c, fkt_paint_length(x - mx - bite * r, y - my + 0.3F * r) - r));
        c->at[i] = fkt_paint_mix(h, fkt_paint_scale(moon, 0.86F + 0.2F * fkt_paint_cloud(c, 3, 6 * x, 6 * y)), lit);
        ridge = hills + 0.35F * (fkt_paint_noise(c, 1, 1.7F * x, 0) - 0.5F);
        fkt_paint_over(c, i, land, fkt_paint_edge(c, ridge - y));
    }
}

static void beach(struct fkt_canvas *c)
{
    float horizon = fkt_paint_uniform(c, -0.5F, -0.05F), shore = horizon + fkt_paint_uniform(c, 0.3F, 0.75F);
    float slope = fkt_paint_uniform(c, -0.4F, 0.4F), ux = fkt_paint_uniform(c, -0.6F, 0.6F),
          uy = fkt_paint_uniform(c, 0.15F, 0.5F);
    float ur = fkt_paint_chance(c, 0.6F) ? fkt_paint_uniform(c, 0.22F, 0.4F) : -1;
    struct sky s = draw_sky(c, horizon);
    hue deep = fkt_paint_vary(c, (hue){0.10F, 0.42F, 0.62F}, 0.09F),
        shallow = fkt_paint_vary(c, (hue){0.35F, 0.75F, 0.76F}, 0.08F);
    hue sand = fkt_paint_vary(c, (hue){0.90F, 0.79F, 0.58F}, 0.08F),
        cloth = fkt_paint_vivid(fkt_paint_uniform(c, 0, 1), 0.75F, 0.9F);
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = c->x[i], y = c->y[i], line = shore + slope * x + 0.12F * (fkt_paint_noise(c, 2, 2.5F * x, 0) - 0.5F),
              dx, dy, d;
        hue h = fkt_paint_mix(deep, shallow, (y - horizon) / (shore - horizon));
        h = fkt_paint_mix(h, white, 0.25F * fkt_paint_soft(0.55F, 0.8F, fkt_paint_noise(c, 3, 3 * x, 11 * y)));
        c->at[i] = sky_at(c, &s, x, y);
        fkt_paint_over(c, i, h, fkt_paint_edge(c, horizon - y));
        h = fkt_paint_scale(sand, 0.9F + 0.2F * fkt_paint_cloud(c, 4, 4 * x, 6 * y));
        fkt_paint_over(c, i, white, 0.85F * fkt_paint_edge(c, line - 0.09F - y));
        fkt_paint_over(c, i, h, fkt_paint_edge(c, line - y));
        dx = x - ux;
        dy = y - uy;
        d = fkt_paint_length(dx, dy) - ur;
        fkt_paint_over(c, i, fkt_paint_scale(sand, 0.7F),
                       0.8F * fkt_paint_edge(c, fkt_paint_length(dx - 0.1F, 3.5F * (dy - 0.45F)) - ur));
        fkt_paint_over(c, i, (hue){0.4F, 0.3F, 0.25F},
                       ur > 0 && dy > 0 && dy < 0.45F ? fkt_paint_edge(c, fabsf(dx) - 0.02F) : 0);
        h = fkt_paint_wave(dx / (ur * 0.9F)) > 0 ? cloth : white;
        fkt_paint_over(c, i, h, dy < 0 ? fkt_paint_edge(c, d) : 0);
    }
}

static void mountain(struct fkt_canvas *c)
{
    float px[3], py[3], grade[3], snowline = fkt_paint_uniform(c, -0.15F, 0.35F),
                                  foot = fkt_paint_uniform(c, 0.45F, 0.85F);
    struct sky s = draw_sky(c, 0.5F);
    hue rock = fkt_paint_vary(c, (hue){0.42F, 0.43F, 0.50F}, 0.07F),
        snow = fkt_paint_vary(c, (hue){0.93F, 0.95F, 0.98F}, 0.03F);
    hue wood = fkt_paint_vary(
        c, fkt_paint_mix((hue){0.16F, 0.30F, 0.22F}, (hue){0.50F, 0.60F, 0.36F}, fkt_paint_uniform(c, 0, 1)), 0.05F);
    for (int k = 0; k < 3; k++) {
        px[k] = fkt_paint_uniform(c, -0.35F, 0.35F) + (float)(k % 3 == 1) * 0.75F - (float)(k % 3 == 2) * 0.75F;
        py[k] = k == 0 ? fkt_paint_uniform(c, -0.85F, -0.35F) : fkt_paint_uniform(c, -0.45F, 0.2F);
        grade[k] = fkt_paint_uniform(c, 0.75F, 1.35F);
    }
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = c->x[i], y = c->y[i], rough = fkt_paint_cloud(c, 1, 3.5F * x, 3.5F * y) - 0.5F;
        c->at[i] = sky_at(c, &s, x, y);
        for (int k = 2; k >= 0; k--) {
            float top = py[k] + grade[k] * fabsf(x - px[k]) + 0.35F * rough;
            float shade = x < px[k] + 0.25F * rough ? 1.06F : 0.76F;
            hue h = fkt_paint_mix(snow, rock, fkt_paint_soft(-0.08F, 0.10F, y - snowline - 0.5F * rough));
            h = fkt_paint_mix(fkt_paint_scale(h, shade), s.low, k ? 0.3F : 0.06F);
            fkt_paint_over(c, i, h, fkt_paint_edge(c, 0.8F * (top - y)));
        }
        fkt_paint_over(c, i, fkt_paint_scale(wood, 0.85F + 0.5F * rough), fkt_paint_edge(c, foot + 0.3F * rough - y));
    }
}

static void field(struct fkt_canvas *c)
{
    static const hue crops[] = {
        {0.40F, 0.62F, 0.22F}, {0.83F, 0.72F, 0.30F}, {0.55F, 0.42F, 0.68F}, {0.52F, 0.66F, 0.34F}};
    static const hue soils[] = {
        {0.36F, 0.30F, 0.18F}, {0.62F, 0.48F, 0.20F}, {0.30F, 0.42F, 0.24F}, {0.26F, 0.40F, 0.14F}};
    unsigned kind = (unsigned)fkt_rng_below(&c->rng, 4);
    float horizon = fkt_paint_uniform(c, -0.45F, 0.1F), vx = fkt_paint_uniform(c, -0.7F, 0.7F),
          rows = fkt_paint_uniform(c, 0.9F, 2.2F);
    float phase = fkt_paint_uniform(c, 0, 1), trees = fkt_paint_uniform(c, -0.05F, 0.22F);
    struct sky s = draw_sky(c, horizon);
    hue crop = fkt_paint_vary(c, crops[kind], 0.07F), soil = fkt_paint_vary(c, soils[kind], 0.06F);
    hue leaf = fkt_paint_vary(c, (hue){0.16F, 0.32F, 0.16F}, 0.05F);
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = c->x[i], y = c->y[i], depth = y - horizon + 0.12F, blur, row, bush;
        hue h;
        c->at[i] = sky_at(c, &s, x, y);
        bush = trees * (0.4F + 1.2F * fkt_paint_noise(c, 3, 3 * x, 0));
        fkt_paint_over(c, i, fkt_paint_scale(leaf, 0.8F + 0.5F * fkt_paint_cloud(c, 4, 7 * x, 7 * y)),
                       fkt_paint_edge(c, horizon - bush - y));
        if (depth < 0.02F) continue;
        blur = fkt_paint_clamp(depth / (c->pixel * rows * 3)); /* rows finer than pixels melt into their mean */
        row = 0.5F + 0.5F * fkt_paint_wave(phase + rows * (x - vx) / depth) * blur;
        h = fkt_paint_mix(soil, crop, 0.1F + 0.9F * row);
        h = fkt_paint_scale(h, 0.85F + 0.3F * fkt_paint_cloud(c, 6, 5 * x, 8 * y));
        fkt_paint_over(c, i, fkt_paint_mix(s.low, h, 0.6F + depth), fkt_paint_edge(c, horizon - y));
    }
}

static void road(struct fkt_canvas *c)
{
    static const hue sides[] = {
        {0.36F, 0.50F, 0.24F}, {0.72F, 0.58F, 0.38F}, {0.56F, 0.54F, 0.44F}, {0.50F, 0.60F, 0.28F}};
    float horizon = fkt_paint_uniform(c, -0.4F, 0.1F), vx = fkt_paint_uniform(c, -0.45F, 0.45F),
          lean = fkt_paint_uniform(c, -0.3F, 0.3F);
    float bend = fkt_paint_uniform(c, -0.5F, 0.5F), width = fkt_paint_uniform(c, 0.42F, 0.8F),
          phase = fkt_paint_uniform(c, 0, 1);
    struct sky s = draw_sky(c, horizon);
    hue ground = fkt_paint_vary(c, sides[fkt_rng_below(&c->rng, 4)], 0.07F),
        tar = fkt_paint_vary(c, (hue){0.36F, 0.36F, 0.39F}, 0.09F);
    hue paint = fkt_paint_mix(white, (hue){0.98F, 0.80F, 0.25F}, fkt_paint_chance(c, 0.4F) ? 1 : 0);
    hue hill = fkt_paint_vary(c, fkt_paint_mix(ground, s.low, 0.5F), 0.06F);
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = c->x[i], y = c->y[i], depth = y - horizon, centre, off, half, dash;
        float ridge = horizon - 0.3F * fkt_paint_noise(c, 3, 1.6F * x, 0) + 0.08F;
        hue h;
        c->at[i] = sky_at(c, &s, x, y);
        fkt_paint_over(c, i, hill, fkt_paint_edge(c, ridge - y));
        h = fkt_paint_scale(ground, 0.8F + 0.4F * fkt_paint_cloud(c, 5, 4 * x, 9 * y));
        fkt_paint_over(c, i, h, fkt_paint_edge(c, horizon - y));
        if (depth <= 0) continue;
        centre = vx + lean * depth + bend * (depth - 0.8F) * depth;
        half = width * depth + 0.02F;
        off = fabsf(x - centre);
        h = fkt_paint_scale(tar, 0.92F + 0.16F * fkt_paint_cloud(c, 7, 6 * x, 6 * y));
        fkt_paint_over(c, i, h, fkt_paint_edge(c, off - half));
        fkt_paint_over(c, i, paint, 0.75F * fkt_paint_edge(c, fabsf(off - 0.88F * half) - 0.04F * depth));
        dash = fkt_paint_wave(phase + 0.9F / (depth + 0.12F)) > -0.1F ? 1 : 0;
        fkt_paint_over(c, i, paint, dash * fkt_paint_edge(c, off - 0.06F * half));
    }
}

static void brick(struct fkt_canvas *c)
{
    float rows = fkt_paint_uniform(c, 1.5F, 3.2F), gap = fkt_paint_uniform(c, 0.06F, 0.13F),
          sx = fkt_paint_uniform(c, 0, 2);
    float sy = fkt_paint_uniform(c, 0, 2), uneven = fkt_paint_uniform(c, 0.15F, 0.5F),
          lx = fkt_paint_uniform(c, -0.3F, 0.3F);
    hue clay = fkt_paint_vary(
        c, fkt_paint_mix((hue){0.66F, 0.30F, 0.22F}, (hue){0.74F, 0.58F, 0.42F}, fkt_paint_uniform(c, 0, 1)), 0.07F);
    hue mortar = fkt_paint_vary(
        c, fkt_paint_mix((hue){0.80F, 0.77F, 0.72F}, (hue){0.36F, 0.33F, 0.32F}, fkt_paint_chance(c, 0.3F) ? 1 : 0),
        0.06F);
    float shadow = fkt_paint_chance(c, 0.4F) ? fkt_paint_uniform(c, -0.6F, 0.6F) : 9;
    for (unsigned i = 0; i < PIXELS; i++) {
        float v = (c->y[i] + sy) * rows, fv = fkt_paint_floor(v),
              u = (c->x[i] + sx) * rows * 0.5F + 0.5F * (float)((int)fv & 1), fu = fkt_paint_floor(u);
        float along = (0.5F - fabsf(u - fu - 0.5F)) * 2 / rows,
              across = (0.5F - fabsf(v - fv - 0.5F)) / rows; /* to the joint */
        float inside = fkt_paint_edge(c, gap * 0.5F - (along < across ? along : across));
        hue h = fkt_paint_scale(clay, 1 + uneven * (fkt_paint_cell(c, 1, (int)fu, (int)fv) - 0.5F));
        h.r += 0.10F * (fkt_paint_cell(c, 2, (int)fu, (int)fv) - 0.5F);
        h = fkt_paint_scale(h, 0.85F + 0.3F * fkt_paint_cloud(c, 3, 4 * c->x[i], 5 * c->y[i]));
        h = fkt_paint_mix(mortar, h, inside);
        h = fkt_paint_scale(h, 1 + lx * c->x[i] -
                                   0.35F * fkt_paint_soft(-0.08F, 0.08F, c->x[i] + 0.6F * c->y[i] - shadow));
        c->at[i] = h;
    }
}

static void apple(struct fkt_canvas *c)
{
    float table = fkt_paint_uniform(c, 0.15F, 0.6F), ax = fkt_paint_uniform(c, -0.3F, 0.3F),
          r = fkt_paint_uniform(c, 0.34F, 0.56F);
    float ay = fkt_paint_uniform(c, -0.1F, 0.25F), tall = fkt_paint_uniform(c, 0.9F, 1.12F),
          bent = fkt_paint_uniform(c, -0.2F, 0.2F);
    float kind = fkt_paint_uniform(c, 0, 1);
    hue skin = kind < 0.55F  ? (hue){0.80F, 0.14F, 0.14F}
               : kind < 0.8F ? (hue){0.55F, 0.74F, 0.22F}
                             : (hue){0.92F, 0.72F, 0.22F},
        blush;
    hue wall = fkt_paint_vivid(fkt_paint_uniform(c, 0, 1), fkt_paint_uniform(c, 0.05F, 0.3F),
                               fkt_paint_uniform(c, 0.6F, 0.95F));
    hue wood = fkt_paint_vary(
        c, fkt_paint_mix((hue){0.62F, 0.43F, 0.28F}, (hue){0.86F, 0.82F, 0.76F}, fkt_paint_uniform(c, 0, 1)), 0.06F);
    skin = fkt_paint_vary(c, skin, 0.07F);
    blush = fkt_paint_mix(skin, (hue){0.88F, 0.40F, 0.20F}, fkt_paint_uniform(c, 0, 0.7F));
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = (c->x[i] - ax) / r, y = (c->y[i] - ay) / (r * tall),
              grain = fkt_paint_cloud(c, 3, 2 * c->x[i], 12 * c->y[i]);
        float lobe = fkt_paint_length(fabsf(x) - 0.30F, y + 0.06F) - 0.72F,
              belly = fkt_paint_length(x, y - 0.12F) - 0.86F;
        float d =
            (lobe < belly ? lobe : belly) + 0.55F * fkt_paint_clamp(0.3F - fabsf(x)) * fkt_paint_clamp(-y - 0.35F);
        float glow = fkt_paint_clamp(1 - fkt_paint_length(x + 0.35F, y + 0.38F) / 0.34F), leaf;
        float shade = 1.08F - 0.35F * fkt_paint_clamp(fkt_paint_length(x + 0.3F, y + 0.35F) - 0.35F);
        hue h;
        c->at[i] = fkt_paint_scale(wall, 0.94F + 0.12F * fkt_paint_cloud(c, 1, 2 * c->x[i], 2 * c->y[i]));
        fkt_paint_over(c, i, fkt_paint_scale(wood, 0.8F + 0.4F * grain), fkt_paint_edge(c, table - c->y[i]));
        fkt_paint_over(c, i, fkt_paint_scale(wood, 0.35F),
                       0.6F * fkt_paint_soft(1.25F, 0.7F, fkt_paint_length(x - 0.15F, 3.2F * (y - 0.92F))));
        h = fkt_paint_mix(skin, blush, fkt_paint_soft(0.3F, 0.8F, fkt_paint_noise(c, 6, 2 * x, 1.2F * y)));
        h = fkt_paint_mix(fkt_paint_scale(h, shade), white, 0.75F * glow);
        fkt_paint_over(c, i, h, fkt_paint_edge(c, d * r));
        if (y < -0.55F && y > -1.12F)
            fkt_paint_over(c, i, (hue){0.30F, 0.20F, 0.12F},
                           fkt_paint_edge(c, (fabsf(x - bent * (y + 0.55F)) - 0.07F) * r));
        leaf = fkt_paint_length((x - 0.32F) * 0.8F + (y + 0.95F) * 0.3F, ((y + 0.95F) * 1.9F + (x - 0.32F) * 0.7F)) -
               0.28F;
        fkt_paint_over(c, i, (hue){0.30F, 0.55F, 0.20F}, fkt_paint_edge(c, leaf * r));
    }
}

static void target(struct fkt_canvas *c)
{
    float cx = fkt_paint_uniform(c, -0.35F, 0.35F), cy = fkt_paint_uniform(c, -0.3F, 0.3F),
          r = fkt_paint_uniform(c, 0.5F, 0.95F);
    float rings = (float)(2 + fkt_rng_below(&c->rng, 3)), squash = fkt_paint_uniform(c, 0.75F, 1.0F),
          base = fkt_paint_uniform(c, 0, 1);
    int classic = fkt_paint_chance(c, 0.45F);
    hue a = classic ? (hue){0.82F, 0.14F, 0.16F}
                    : fkt_paint_vivid(base, fkt_paint_uniform(c, 0.5F, 0.9F), fkt_paint_uniform(c, 0.4F, 0.9F));
    hue b =
        classic ? (hue){0.96F, 0.95F, 0.92F} : fkt_paint_vivid(base + fkt_paint_uniform(c, 0.3F, 0.7F), 0.35F, 0.95F);
    hue wall = fkt_paint_vivid(fkt_paint_uniform(c, 0, 1), fkt_paint_uniform(c, 0.05F, 0.4F),
                               fkt_paint_uniform(c, 0.35F, 0.9F));
    int swap = fkt_paint_chance(c, 0.3F);
    a = fkt_paint_vary(c, a, 0.06F);
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = c->x[i], y = c->y[i], d = fkt_paint_length((x - cx) / squash, y - cy), step = r / (rings + 0.5F);
        c->at[i] = fkt_paint_scale(wall, 0.8F + 0.4F * fkt_paint_cloud(c, 1, 2.2F * x, 2.2F * y));
        fkt_paint_over(
            c, i, fkt_paint_scale(wall, 0.5F),
            0.6F * fkt_paint_soft(0.12F, -0.06F, fkt_paint_length((x - cx) / squash - 0.05F, y - cy - 0.06F) - r));
        for (int k = (int)rings; k >= 0; k--)
            fkt_paint_over(c, i, (k & 1) == swap ? a : b, fkt_paint_edge(c, d - step * ((float)k + 0.5F)));
        fkt_paint_over(c, i, white, 0.18F * fkt_paint_edge(c, d - r) * fkt_paint_clamp(0.5F - x - y));
    }
}

static void flag(struct fkt_canvas *c)
{
    float turn =
        fkt_paint_uniform(c, 0, 1) < 0.7F ? 0.25F * (float)fkt_rng_below(&c->rng, 2) : fkt_paint_uniform(c, 0, 1);
    float s = fkt_paint_wave(turn), k = fkt_paint_wave(turn + 0.25F),
          stripes = (float)(3 + 2 * fkt_rng_below(&c->rng, 2));
    float length = fkt_paint_uniform(c, 0.5F, 1.1F), phase = fkt_paint_uniform(c, 0, 1),
          depth = fkt_paint_uniform(c, 0.03F, 0.10F);
    float first = fkt_paint_uniform(c, 0, 1), half = fkt_paint_uniform(c, 0.85F, 1.3F);
    hue cloth[3];
    cloth[0] = fkt_paint_vivid(first, fkt_paint_uniform(c, 0.55F, 0.95F), fkt_paint_uniform(c, 0.35F, 0.95F));
    cloth[1] = fkt_paint_chance(c, 0.6F) ? (hue){0.95F, 0.95F, 0.93F} : (hue){0.96F, 0.82F, 0.25F};
    cloth[2] = fkt_paint_vivid(first + fkt_paint_uniform(c, 0.25F, 0.75F), fkt_paint_uniform(c, 0.5F, 0.9F),
                               fkt_paint_uniform(c, 0.3F, 0.95F));
    for (unsigned i = 0; i < PIXELS; i++) {
        float x = c->x[i], y = c->y[i], roll = phase + x / length + 0.25F * y;
        float t = (k * y + s * x + depth * fkt_paint_wave(roll) + half) / (2 * half) * stripes, f = fkt_paint_floor(t),
              blend;
        int n = (int)f, m = n + (t - f < 0.5F ? -1 : 1);
        hue h = cloth[((n % 3) + 3) % 3], next = cloth[((m % 3) + 3) % 3];
        if (stripes > 4) h = cloth[((n % 2) + 2) % 2], next = cloth[((m % 2) + 2) % 2];
        blend = 0.5F - (0.5F - fabsf(t - f - 0.5F)) * (2 * half / stripes) / c->pixel;
        h = fkt_paint_mix(h, next, fkt_paint_clamp(blend));
        h = fkt_paint_scale(h,
                            0.86F + 0.16F * fkt_paint_wave(roll + 0.25F) + 0.06F * fkt_paint_cloud(c, 2, 5 * x, 5 * y));
        c->at[i] = h;
    }
}

static const struct {
    const char *name;
    void (*paint)(struct fkt_canvas *c);
    float tilt; /* how far the camera may be turned, in turns */
} scenes[FKT_DEMO_CLASSES] = {
    {"apple", apple, 0.04F},   {"beach", beach, 0.02F},       {"brick", brick, 0.05F}, {"field", field, 0.02F},
    {"flag", flag, 0.05F},     {"mountain", mountain, 0.02F}, {"night", night, 0.02F}, {"road", road, 0.02F},
    {"sunset", sunset, 0.02F}, {"target", target, 0.05F},
};

const char *fkt_demo_class(unsigned k) { return scenes[k].name; }

void fkt_demo_draw(uint8_t *rgb, int test, unsigned k, unsigned index)
{
    struct fkt_canvas c;
    fkt_canvas_init(&c, 20240501 + (test ? 1 : 0), (uint64_t)index * FKT_DEMO_CLASSES + k, scenes[k].tilt);
    scenes[k].paint(&c);
    fkt_canvas_finish(&c, rgb);
}
