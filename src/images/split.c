/* SPDX-License-Identifier: Apache-2.0 */
/* split.c - a stratified hold-out for images that a network learns from: round(fraction * n_c) records of each class c,
 * drawn by the stream (seed, c). So what is held out of one class does not depend on the others, nor on how the classes
 * are interleaved.
 *
 * One record more in a class moves others of it in or out. So this must not choose the records of a private sum:
 * choice.c does that. */
#include "base/alloc.h"
#include "base/rng.h"
#include "fedkt/image.h"
#include "images/by_class.h"

#include <math.h>
#include <string.h>

fkt_status fkt_by_class_init(struct fkt_by_class *c, const uint32_t *labels, size_t n, size_t classes)
{
    size_t *at = NULL;
    fkt_status st;
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < n; i++)
        if (labels[i] >= classes)
            return fkt_fail(FKT_E_ARG, "label %u of record %zu is out of range: %zu classes", labels[i], i, classes);
    FKT_TRY(fkt_alloc(&c->records, n));
    FKT_TRY(fkt_alloc(&c->start, classes + 1));
    FKT_TRY(fkt_alloc(&at, classes + 1));
    for (size_t i = 0; i < n; i++) c->start[labels[i] + 1]++;
    for (size_t k = 0; k < classes; k++) c->start[k + 1] += c->start[k];
    memcpy(at, c->start, (classes + 1) * sizeof *at);
    for (size_t i = 0; i < n; i++) c->records[at[labels[i]]++] = i;
out:
    fkt_free(at);
    if (st != FKT_OK) fkt_by_class_clear(c);
    return st;
}

void fkt_by_class_clear(struct fkt_by_class *c)
{
    fkt_free(c->records);
    fkt_free(c->start);
    memset(c, 0, sizeof *c);
}

fkt_status fkt_split_stratified(uint8_t *held, const uint32_t *labels, size_t n, size_t classes, double fraction,
                                uint64_t seed)
{
    struct fkt_by_class c;
    fkt_status st;
    if (!(fraction >= 0 && fraction <= 1))
        return fkt_fail(FKT_E_ARG, "a fraction of %g cannot be held out: 0 to 1", fraction);
    st = fkt_by_class_init(&c, labels, n, classes);
    if (st != FKT_OK) return st;
    memset(held, 0, n);
    for (size_t k = 0; k < classes; k++) {
        size_t *records = c.records + c.start[k], count = c.start[k + 1] - c.start[k];
        size_t out = (size_t)floor(fraction * (double)count + 0.5);
        struct fkt_rng rng;
        fkt_rng_init(&rng, seed, k);
        fkt_rng_shuffle(&rng, records, count);
        for (size_t i = 0; i < out && i < count; i++) held[records[i]] = 1;
    }
    fkt_by_class_clear(&c);
    return FKT_OK;
}
