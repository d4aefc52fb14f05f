/* SPDX-License-Identifier: Apache-2.0 */
/* act_attention.c - ReLU linear attention (Cai et al., EfficientViT, ICCV 2023, section 3.1).
 *
 * The sum over j of v_j <k_j, q_i> is q_i times the matrix of the sums of k_j v_j^T, which is the same for all i: one
 * pass over keys and values for each head, one over queries, no matrix over pairs of pixels. Float whatever the
 * precision of the activations; the divisor can be tiny, and bfloat16 would be too coarse.
 * Cost: 4 H W L^2 operations for a head of length L. */
#include "nn/act_lanes.h"

#include <string.h>

/* One head's working memory, carved from the caller's scratch. L = length. */
struct head {
    size_t length;
    float *matrix;    /* (L, L): sums of k[c] v[e] over pixels */
    float *keys;      /* (L): sums of k[c] */
    float *one, *two; /* (16, L): pixels being worked on */
};

size_t fkt_act_attention_scratch(const struct fkt_act *src, uint32_t length)
{
    (void)src;
    return (size_t)length * (length + 1 + 2 * FKT_TILE);
}

static inline void relu(float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) v[i] = v[i] < 0 ? 0 : v[i];
}

static inline void add_scaled(float *restrict to, const float *restrict from, float by, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += by * from[i];
}

/* `at` is at the keys; values follow. */
FKT_WIDE static void gather_keys(const struct head *h, const struct fkt_act *src, struct fkt_spot at)
{
    size_t length = h->length;
    fkt_spot_load(h->one, length, src, &at);
    at.channel += length;
    fkt_spot_load(h->two, length, src, &at);
    relu(h->one, at.pixels * length);
    for (size_t p = 0; p < at.pixels; p++)
        for (size_t c = 0; c < length; c++) {
            float k = h->one[p * length + c];
            h->keys[c] += k;
            add_scaled(h->matrix + c * length, h->two + p * length, k, length);
        }
}

/* `at` is at the queries; h->two becomes the result. */
FKT_WIDE static void answer(const struct head *h, const struct fkt_act *src, struct fkt_spot at, float eps)
{
    size_t length = h->length;
    fkt_spot_load(h->one, length, src, &at);
    relu(h->one, at.pixels * length);
    memset(h->two, 0, at.pixels * length * sizeof *h->two);
    for (size_t p = 0; p < at.pixels; p++) {
        float *out = h->two + p * length, total = eps;
        for (size_t c = 0; c < length; c++) {
            float q = h->one[p * length + c];
            total += q * h->keys[c];
            add_scaled(out, h->matrix + c * length, q, length);
        }
        for (size_t e = 0; e < length; e++) out[e] /= total;
    }
}

void fkt_act_attention(const struct fkt_act *dst, const struct fkt_act *src, uint32_t length, float eps, float *scratch)
{
    size_t plane = (size_t)src->h * src->w, heads = dst->c / length, sums = (size_t)length * (length + 1);
    struct head h = {length, scratch, scratch + (size_t)length * length, scratch + sums,
                     scratch + sums + (size_t)length * FKT_TILE};
    for (size_t j = 0; j < src->n * heads; j++) {
        struct fkt_spot at = {.image = j / heads, .channels = length};
        memset(scratch, 0, sums * sizeof *scratch);
        for (at.pixel = 0; at.pixel < plane; at.pixel += FKT_TILE) {
            at.pixels = plane - at.pixel < FKT_TILE ? plane - at.pixel : FKT_TILE;
            at.channel = j % heads * 3 * length + length;
            gather_keys(&h, src, at);
        }
        for (at.pixel = 0; at.pixel < plane; at.pixel += FKT_TILE) {
            at.pixels = plane - at.pixel < FKT_TILE ? plane - at.pixel : FKT_TILE;
            at.channel = j % heads * 3 * length;
            answer(&h, src, at, eps);
            at.channel = j % heads * length;
            fkt_spot_store(dst, &at, h.two, length);
        }
    }
    fkt_act_zero_padding(dst);
}
