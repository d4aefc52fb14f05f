/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - torchvision's Resize(S) and CenterCrop(S) on a Pillow image, to the bit.
 *
 *   in (h, w) --horizontal pass--> strip (rows that matter, S) --vertical pass--> out (S, S)
 *
 * The rule is Pillow's (libImaging/Resample.c): the kernel is widened by the scale when shrinking (antialias), sampled
 * at pixel centres in double precision, normalised, and rounded to 22 fractional bits; each pass sums in int32 from one
 * half and clips to 8 bits, so that the strip between the passes is 8-bit too. Sides: the short one becomes S, the long
 * one floor(S*long/short); the crop starts at (length - S)/2 rounded half to even (Python's round). Where we differ:
 * only the pixels that survive the crop are computed, which changes none of them, and bounds memory by S even for a
 * picture of 16384 x 1.
 *
 * pre: sum |coefficient| < 2 (1.3 for Lanczos)   post: |sum| < 2 * 2^22 * 255 < 2^31, so int32 does not wrap.
 * Cost: 3*taps multiply-adds per pixel and pass, taps = 2*support*scale. */
#include "images/resize.h"

#include "base/alloc.h"
#include "images/dataset.h"

#include <math.h>
#include <string.h>

#define BITS 22 /* 32 - 8 for the sample - 2 for overshoot */

/* One axis: for each of the S output pixels that survive the crop its first input pixel, its taps and their weights. */
struct axis {
    uint32_t *first, *taps; /* S */
    int32_t *weight;        /* (S, stride) */
    size_t stride;
    int identity; /* the length does not change: the pass is a copy from `crop` on */
    uint32_t crop;
};

static double box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }
static double triangle(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }

static double cubic(double x) /* Keys 1981 with a = -0.5 */
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

static double sinc(double x)
{
    if (x == 0) return 1;
    x *= M_PI;
    return sin(x) / x;
}

static double lanczos3(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

static const struct kernel {
    double (*at)(double x);
    double support;
} kernels[] = {[FKT_FILTER_BILINEAR] = {triangle, 1},
               [FKT_FILTER_BICUBIC] = {cubic, 2},
               [FKT_FILTER_LANCZOS] = {lanczos3, 3},
               [FKT_FILTER_BOX] = {box, 0.5}};

static void axis_release(struct axis *a)
{
    fkt_free(a->first);
    fkt_free(a->taps);
    fkt_free(a->weight);
}

/* `in` pixels become `scaled`, of which `size` from (scaled - size)/2 on are kept. */
static fkt_status axis_init(struct axis *a, uint32_t in, uint64_t scaled, uint32_t size, const struct kernel *kernel)
{
    uint64_t rest = scaled - size, crop = rest / 2 + (rest % 4 == 3); /* half to even */
    double scale = (double)in / (double)scaled, wide = scale < 1 ? 1 : scale, support = kernel->support * wide;
    double *w = NULL;
    fkt_status st = FKT_OK;
    memset(a, 0, sizeof *a);
    a->identity = scaled == in;
    a->crop = (uint32_t)(a->identity ? crop : 0);
    if (a->identity) return FKT_OK;
    a->stride = (size_t)ceil(support) * 2 + 1;
    FKT_TRY(fkt_alloc(&w, a->stride));
    FKT_TRY(fkt_alloc(&a->first, size));
    FKT_TRY(fkt_alloc(&a->taps, size));
    FKT_TRY(fkt_alloc(&a->weight, size * a->stride));
    for (uint32_t i = 0; i < size; i++) {
        double centre = ((double)(crop + i) + 0.5) * scale, total = 0;
        int lo = (int)(centre - support + 0.5), hi = (int)(centre + support + 0.5);
        int32_t *out = a->weight + i * a->stride;
        if (lo < 0) lo = 0;
        if (hi > (int)in) hi = (int)in;
        for (int x = 0; x < hi - lo; x++) total += w[x] = kernel->at((x + lo - centre + 0.5) * (1 / wide));
        for (int x = 0; x < hi - lo; x++) {
            double v = total != 0 ? w[x] / total : w[x];
            out[x] = (int32_t)((v < 0 ? -0.5 : 0.5) + v * (1 << BITS));
        }
        a->first[i] = (uint32_t)lo;
        a->taps[i] = (uint32_t)(hi - lo);
    }
out:
    fkt_free(w);
    return st;
}

static uint8_t clip8(int32_t sum)
{
    sum >>= BITS; /* arithmetic shift, as every compiler of ours does it */
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void horizontal(uint8_t *out, const uint8_t *row, const struct axis *a, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        const uint8_t *p = row + 3 * (size_t)a->first[i];
        const int32_t *w = a->weight + i * a->stride;
        int32_t r = 1 << (BITS - 1), g = r, b = r;
        for (uint32_t x = 0; x < a->taps[i]; x++, p += 3) {
            r += p[0] * w[x];
            g += p[1] * w[x];
            b += p[2] * w[x];
        }
        out[3 * i] = clip8(r);
        out[3 * i + 1] = clip8(g);
        out[3 * i + 2] = clip8(b);
    }
}

/* sums (3*size) is scratch: the tap is the outer loop, so that memory is walked in order and the inner loop is a
 * vector. */
static void vertical(uint8_t *out, const uint8_t *rows, const struct axis *a, uint32_t i, int32_t *sums, size_t stride)
{
    const int32_t *w = a->weight + i * a->stride;
    for (size_t x = 0; x < stride; x++) sums[x] = 1 << (BITS - 1);
    for (uint32_t y = 0; y < a->taps[i]; y++)
        for (size_t x = 0; x < stride; x++) sums[x] += rows[y * stride + x] * w[y];
    for (size_t x = 0; x < stride; x++) out[x] = clip8(sums[x]);
}

fkt_status fkt_resize_crop(uint8_t *out, uint32_t size, const uint8_t *in, uint32_t w, uint32_t h,
                           enum fkt_filter filter)
{
    uint32_t side = w < h ? w : h, top, bottom;
    uint64_t new_w = (uint64_t)size * w / side, new_h = (uint64_t)size * h / side;
    size_t stride = 3 * (size_t)size;
    struct axis ax, ay;
    uint8_t *strip = NULL;
    int32_t *sums = NULL;
    fkt_status st;
    memset(&ax, 0, sizeof ax);
    memset(&ay, 0, sizeof ay);
    if ((unsigned)filter >= sizeof kernels / sizeof *kernels)
        return fkt_fail(FKT_E_ARG, "unknown filter %d", (int)filter);
    FKT_TRY(axis_init(&ax, w, new_w, size, &kernels[filter]));
    FKT_TRY(axis_init(&ay, h, new_h, size, &kernels[filter]));
    top = ay.identity ? ay.crop : ay.first[0];
    bottom = ay.identity ? ay.crop + size : ay.first[size - 1] + ay.taps[size - 1];
    FKT_TRY(fkt_alloc(&strip, (bottom - top) * stride));
    for (uint32_t y = top; y < bottom; y++) {
        const uint8_t *row = in + 3 * (size_t)w * y;
        if (ax.identity) memcpy(strip + (y - top) * stride, row + 3 * (size_t)ax.crop, stride);
        else horizontal(strip + (y - top) * stride, row, &ax, size);
    }
    if (ay.identity) {
        memcpy(out, strip, size * stride);
        goto out;
    }
    FKT_TRY(fkt_alloc(&sums, stride));
    for (uint32_t i = 0; i < size; i++)
        vertical(out + i * stride, strip + (ay.first[i] - top) * stride, &ay, i, sums, stride);
out:
    axis_release(&ax);
    axis_release(&ay);
    fkt_free(strip);
    fkt_free(sums);
    return st;
}
