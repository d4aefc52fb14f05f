/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - RESIZE and its backward by the input, with the weights of nn/resize.h. Sums run in double and are rounded
 * once. */
#include "nn/resize.h"
#include "nn/ref/learn.h"

static double weight(uint32_t from, uint32_t to, uint32_t i, uint32_t j)
{
    return (double)fkt_resize_t(from, to, i, j) / (double)fkt_resize_total(from, to, i);
}

void fkt_ref_resize(const struct fkt_ref_call *k)
{
    for (size_t m = 0; m < (size_t)k->n * k->x.c; m++)
        for (uint32_t y = 0; y < k->y.h; y++)
            for (uint32_t x = 0; x < k->y.w; x++) {
                const struct fkt_resize_span rows = fkt_resize_reads(k->x.h, k->y.h, y);
                const struct fkt_resize_span columns = fkt_resize_reads(k->x.w, k->y.w, x);
                double sum = 0;
                for (uint32_t i = rows.first; i < rows.end; i++)
                    for (uint32_t j = columns.first; j < columns.end; j++)
                        sum += weight(k->x.h, k->y.h, y, i) * weight(k->x.w, k->y.w, x, j) *
                               k->a[(m * k->x.h + i) * k->x.w + j];
                k->out[(m * k->y.h + y) * k->y.w + x] = (float)sum;
            }
}

void fkt_ref_resize_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    for (size_t m = 0; k->da && m < (size_t)f->n * f->x.c; m++)
        for (uint32_t i = 0; i < f->x.h; i++)
            for (uint32_t j = 0; j < f->x.w; j++) {
                const struct fkt_resize_span rows = fkt_resize_readers(f->x.h, f->y.h, i);
                const struct fkt_resize_span columns = fkt_resize_readers(f->x.w, f->y.w, j);
                const size_t at = (m * f->x.h + i) * f->x.w + j;
                double sum = 0;
                for (uint32_t y = rows.first; y < rows.end; y++)
                    for (uint32_t x = columns.first; x < columns.end; x++)
                        sum += weight(f->x.h, f->y.h, y, i) * weight(f->x.w, f->y.w, x, j) *
                               k->dy[(m * f->y.h + y) * f->y.w + x];
                k->da[at] = (float)(k->da[at] + sum);
            }
}
