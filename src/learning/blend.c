/* SPDX-License-Identifier: Apache-2.0 */
/* blend.c - images made of two: a rectangle of one in the other (Yun et al. 2019, CutMix), or the mean of both (Zhang
 * et al. 2018, mixup), each half of the time.
 *
 * Both papers also mix the labels. Here a teacher sees the blend itself and says what it is: the student learns the
 * teacher's function where images of a release alone do not reach (Beyer et al. 2022, "A good teacher is patient and
 * consistent"). Weights and areas are uniform.
 *
 * Sums are in integers: the same bytes on every machine. */
#include "learning/blend.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

#define BLENDS (1ULL << 60) /* streams of the seed; public_set.c has bit 61, classifier/augment.c 62 and 63 */

static void plan_one(struct fkt_blend *b, struct fkt_rng *r, size_t first, size_t n, uint32_t size)
{
    const double side = sqrt(fkt_rng_unit(r)) * (size + 1); /* the area's fraction is uniform */
    const uint32_t edge = (uint32_t)side;
    *b = (struct fkt_blend){.first = first, .second = (size_t)fkt_rng_below(r, n)};
    b->cut = (int)fkt_rng_below(r, 2);
    b->height = b->width = edge;
    b->top = (uint32_t)fkt_rng_below(r, size - edge + 1);
    b->left = (uint32_t)fkt_rng_below(r, size - edge + 1);
    b->weight = (uint32_t)fkt_rng_below(r, 257);
}

fkt_status fkt_blend_plan(struct fkt_blend **out, size_t *count, size_t n, uint32_t size, double share, uint64_t seed,
                          uint32_t epoch)
{
    struct fkt_rng r;
    fkt_status st;
    *out = NULL;
    *count = 0;
    FKT_TRY(fkt_alloc(out, n ? n : 1));
    fkt_rng_init(&r, seed, BLENDS | epoch);
    for (size_t i = 0; i < n; i++)
        if (fkt_rng_unit(&r) < share) plan_one(&(*out)[(*count)++], &r, i, n, size);
out:
    return st;
}

void fkt_blend_make(const struct fkt_blend *b, const uint8_t *rgb, uint32_t size, uint8_t *out)
{
    const size_t bytes = (size_t)size * size * 3, row = (size_t)size * 3;
    const uint8_t *first = rgb + b->first * bytes, *second = rgb + b->second * bytes;
    if (!b->cut) {
        for (size_t i = 0; i < bytes; i++)
            out[i] = (uint8_t)((first[i] * b->weight + second[i] * (256 - b->weight) + 128) / 256);
        return;
    }
    memcpy(out, first, bytes);
    for (uint32_t y = 0; y < b->height; y++) {
        const size_t at = (b->top + y) * row + (size_t)b->left * 3;
        memcpy(out + at, second + at, (size_t)b->width * 3);
    }
}
