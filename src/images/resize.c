/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - an image of any shape becomes a square of side S, in one of three ways, to the bit of a known library:
 *
 *   crop      torchvision's Resize(S) and CenterCrop(S): the short side becomes S, the middle is kept
 *   pad       Pillow's ImageOps.pad: the long side becomes S, the rest is black
 *   stretch   torchvision's Resize((S, S)): both sides become S, the shape is lost
 *
 *   in (h, w) --horizontal pass--> strip (rows that matter, columns kept) --vertical pass--> its place in out (S, S)
 *
 * The rule is Pillow's (libImaging/Resample.c): the kernel is widened by the scale when shrinking (antialias), sampled
 * at pixel centres in double precision, normalised, and rounded to 22 fractional bits; each pass sums in int32 from one
 * half and clips to 8 bits, so that the strip between the passes is 8-bit too. Sides: crop takes floor(S*long/short)
 * for the long one, pad round(short/long*S) for the short one; a crop or a margin starts at half the difference. Both
 * roundings are half to even (Python's round). Where we differ: only the pixels that survive a crop are computed, which
 * changes none of them, and bounds memory by S even for an image of 16384 x 1; padding keeps at least one pixel of a
 * side.
 *
 * pre: sum |coefficient| < 2 (1.3 for Lanczos)   post: |sum| < 2 * 2^22 * 255 < 2^31, so int32 does not wrap.
 * Cost: 3*taps multiply-adds per pixel and pass, taps = 2*support*scale. */
#include "images/resize.h"

#include "base/alloc.h"
#include "images/dataset.h"

#include <math.h>
#include <string.h>

#define BITS 22 /* 32 - 8 for the sample - 2 for overshoot */

/* One axis: for each of the `kept` output pixels its first input pixel, its taps and their weights. */
struct axis {
    uint32_t kept, margin;  /* kept + margin <= S; they are written from `margin` on */
    uint32_t *first, *taps; /* kept */
    int32_t *weight;        /* (kept, stride) */
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

static uint32_t half(uint64_t rest) { return (uint32_t)(rest / 2 + (rest % 4 == 3)); } /* half to even */

/* `in` pixels become `scaled`. Of more than `size` the middle ones are kept, fewer get margins. */
static fkt_status axis_init(struct axis *a, uint32_t in, uint64_t scaled, uint32_t size, const struct kernel *kernel)
{
    uint64_t crop = scaled > size ? half(scaled - size) : 0;
    double scale = (double)in / (double)scaled, wide = scale < 1 ? 1 : scale, support = kernel->support * wide;
    double *w = NULL;
    fkt_status st = FKT_OK;
    memset(a, 0, sizeof *a);
    a->kept = scaled < size ? (uint32_t)scaled : size;
    a->margin = half(size - a->kept);
    a->identity = scaled == in;
    a->crop = (uint32_t)(a->identity ? crop : 0);
    if (a->identity) return FKT_OK;
    a->stride = (size_t)ceil(support) * 2 + 1;
    FKT_TRY(fkt_alloc(&w, a->stride));
    FKT_TRY(fkt_alloc(&a->first, a->kept));
    FKT_TRY(fkt_alloc(&a->taps, a->kept));
    FKT_TRY(fkt_alloc(&a->weight, a->kept * a->stride));
    for (uint32_t i = 0; i < a->kept; i++) {
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

static void horizontal(uint8_t *out, const uint8_t *row, const struct axis *a)
{
    for (uint32_t i = 0; i < a->kept; i++) {
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

/* sums (3*columns) is scratch: the tap is the outer loop, so that memory is walked in order and the inner loop is a
 * vector. */
static void vertical(uint8_t *out, const uint8_t *rows, const struct axis *a, uint32_t i, int32_t *sums, size_t stride)
{
    const int32_t *w = a->weight + i * a->stride;
    for (size_t x = 0; x < stride; x++) sums[x] = 1 << (BITS - 1);
    for (uint32_t y = 0; y < a->taps[i]; y++)
        for (size_t x = 0; x < stride; x++) sums[x] += rows[y * stride + x] * w[y];
    for (size_t x = 0; x < stride; x++) out[x] = clip8(sums[x]);
}

static void scaled_sides(uint64_t *new_w, uint64_t *new_h, uint32_t size, uint32_t w, uint32_t h, enum fkt_fit fit)
{
    uint32_t side = w < h ? w : h;
    *new_w = *new_h = size;
    if (fit == FKT_FIT_CROP) {
        *new_w = (uint64_t)size * w / side;
        *new_h = (uint64_t)size * h / side;
    } else if (fit == FKT_FIT_PAD) {
        if (w > h) *new_h = (uint64_t)nearbyint((double)h / w * size);
        if (h > w) *new_w = (uint64_t)nearbyint((double)w / h * size);
        if (*new_w == 0) *new_w = 1;
        if (*new_h == 0) *new_h = 1;
    }
}

fkt_status fkt_resize(uint8_t *out, uint32_t size, const uint8_t *in, uint32_t w, uint32_t h, enum fkt_filter filter,
                      enum fkt_fit fit)
{
    uint32_t top, bottom;
    uint64_t new_w, new_h;
    size_t stride;
    struct axis ax, ay;
    uint8_t *strip = NULL;
    int32_t *sums = NULL;
    fkt_status st;
    memset(&ax, 0, sizeof ax);
    memset(&ay, 0, sizeof ay);
    if ((unsigned)filter >= sizeof kernels / sizeof *kernels || (unsigned)fit > FKT_FIT_STRETCH)
        return fkt_fail(FKT_E_ARG, "unknown filter %d or fit %d", (int)filter, (int)fit);
    scaled_sides(&new_w, &new_h, size, w, h, fit);
    FKT_TRY(axis_init(&ax, w, new_w, size, &kernels[filter]));
    FKT_TRY(axis_init(&ay, h, new_h, size, &kernels[filter]));
    stride = 3 * (size_t)ax.kept;
    top = ay.identity ? ay.crop : ay.first[0];
    bottom = ay.identity ? ay.crop + ay.kept : ay.first[ay.kept - 1] + ay.taps[ay.kept - 1];
    FKT_TRY(fkt_alloc(&strip, (bottom - top) * stride));
    FKT_TRY(fkt_alloc(&sums, stride));
    for (uint32_t y = top; y < bottom; y++) {
        const uint8_t *row = in + 3 * (size_t)w * y;
        if (ax.identity) memcpy(strip + (y - top) * stride, row + 3 * (size_t)ax.crop, stride);
        else horizontal(strip + (y - top) * stride, row, &ax);
    }
    if (ax.kept < size || ay.kept < size) memset(out, 0, 3 * (size_t)size * size);
    for (uint32_t i = 0; i < ay.kept; i++) {
        uint8_t *to = out + 3 * ((size_t)(ay.margin + i) * size + ax.margin);
        if (ay.identity) memcpy(to, strip + i * stride, stride);
        else vertical(to, strip + (ay.first[i] - top) * stride, &ay, i, sums, stride);
    }
out:
    axis_release(&ax);
    axis_release(&ay);
    fkt_free(strip);
    fkt_free(sums);
    return st;
}
