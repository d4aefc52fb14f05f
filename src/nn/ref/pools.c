/* SPDX-License-Identifier: Apache-2.0 */
/* pools.c - max-pool and mean of each map, as defined in net.h. */
#include "nn/ref/ops.h"

#include <math.h>

/* Of several largest numbers the first counts, rows before columns; a NaN counts as largest. */
size_t fkt_ref_largest(const struct fkt_ref_call *k, size_t i, size_t c, size_t oy, size_t ox)
{
    const struct fkt_op *op = k->op;
    size_t best = SIZE_MAX;
    for (size_t ky = 0; ky < op->kernel; ky++)
        for (size_t kx = 0; kx < op->kernel; kx++) {
            size_t iy = oy * op->stride + ky - op->pad, ix = ox * op->stride + kx - op->pad; /* huge outside */
            size_t at = fkt_ref_at(k->x, i, c, iy, ix);
            if (iy >= k->x.h || ix >= k->x.w) continue;
            if (best == SIZE_MAX || k->a[at] > k->a[best] || isnan(k->a[at])) best = at;
        }
    return best;
}

void fkt_ref_max_pool(const struct fkt_ref_call *k)
{
    for (size_t i = 0; i < k->n; i++)
        for (size_t c = 0; c < k->y.c; c++)
            for (size_t y = 0; y < k->y.h; y++)
                for (size_t x = 0; x < k->y.w; x++)
                    k->out[fkt_ref_at(k->y, i, c, y, x)] = k->a[fkt_ref_largest(k, i, c, y, x)];
}

void fkt_ref_mean(const struct fkt_ref_call *k)
{
    size_t plane = (size_t)k->x.h * k->x.w;
    for (size_t j = 0; j < (size_t)k->n * k->x.c; j++) {
        double sum = 0;
        for (size_t p = 0; p < plane; p++) sum += k->a[j * plane + p];
        k->out[j] = (float)(sum / (double)plane);
    }
}
