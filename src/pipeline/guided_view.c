/* SPDX-License-Identifier: Apache-2.0 */
/* guided_view.c - the shift and mirroring that an image is looked at under in one step, and its transpose.
 *
 * Without them the gradient finds pixel patterns that fool the guide and mean nothing to another network. */
#include "pipeline/guided.h"

#include "base/rng.h"

#include <string.h>

/* The finaliser of splitmix64, as in synth/sample.c. The constant keeps these streams apart from those of samples. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

struct fkt_guided_view fkt_guided_view(const struct fkt_guided_image *i, uint32_t step, uint32_t shift)
{
    const uint64_t image = mix(mix((uint64_t)i->label + 0x2545f4914f6cdd1dU) ^ i->number);
    struct fkt_guided_view v;
    struct fkt_rng rng;
    fkt_rng_init(&rng, i->seed, mix(image + step));
    v.top = (int32_t)fkt_rng_below(&rng, 2 * (uint64_t)shift + 1) - (int32_t)shift;
    v.left = (int32_t)fkt_rng_below(&rng, 2 * (uint64_t)shift + 1) - (int32_t)shift;
    v.flip = (int)fkt_rng_below(&rng, 2);
    return v;
}

static size_t cut(int64_t at, uint32_t side) { return at < 0 ? 0 : at >= side ? side - 1 : (size_t)at; }

static size_t from(const struct fkt_guided_view *v, uint32_t side, uint32_t y, uint32_t x)
{
    const uint32_t across = v->flip ? side - 1 - x : x;
    return cut((int64_t)y + v->top, side) * side + cut((int64_t)across + v->left, side);
}

void fkt_guided_move(const struct fkt_guided_view *v, uint32_t side, const float *in, float *out)
{
    const size_t plane = (size_t)side * side;
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side; x++) {
            const size_t to = (size_t)y * side + x, at = from(v, side, y, x);
            for (size_t c = 0; c < 3; c++) out[c * plane + to] = in[c * plane + at];
        }
}

void fkt_guided_move_back(const struct fkt_guided_view *v, uint32_t side, const float *dout, float *din)
{
    const size_t plane = (size_t)side * side;
    memset(din, 0, 3 * plane * sizeof *din);
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side; x++) {
            const size_t to = (size_t)y * side + x, at = from(v, side, y, x);
            for (size_t c = 0; c < 3; c++) din[c * plane + at] += dout[c * plane + to];
        }
}
