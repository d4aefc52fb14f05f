/* SPDX-License-Identifier: Apache-2.0 */
/* procedural.c - "demo:train" and "demo:test" as a dataset: ten classes of 32 x 32 images that are drawn on demand.
 *
 * Nothing is stored: record r of a split is image r / 10 of class r mod 10, a pure function of (split, r). So the set
 * is the same on every machine, costs no memory, and may be read from many threads. 600 and 150 images a class. */
#include "images/backend.h"

#include "base/alloc.h"
#include "images/procedural_scenes.h"

#include <string.h>

struct demo {
    int test;
};

static fkt_status demo_decode(const void *self, size_t r, uint8_t **rgb, uint32_t *w, uint32_t *h,
                              struct fkt_facts *facts)
{
    const struct demo *d = self;
    fkt_status st = fkt_alloc(rgb, FKT_DEMO_SIDE * FKT_DEMO_SIDE * 3);
    (void)facts;
    if (st != FKT_OK) return st;
    fkt_demo_draw(*rgb, d->test, (unsigned)(r % FKT_DEMO_CLASSES), (unsigned)(r / FKT_DEMO_CLASSES));
    *w = *h = FKT_DEMO_SIDE;
    return FKT_OK;
}

/* Split and number are all that there is of a record: they determine its pixels. */
static fkt_status demo_stored(const void *self, size_t r, struct fkt_stored *out)
{
    const struct demo *d = self;
    fkt_status st = fkt_stored_reserve(out, 9);
    if (st != FKT_OK) return st;
    out->bytes[0] = (uint8_t)d->test;
    for (int i = 0; i < 8; i++) out->bytes[1 + i] = (uint8_t)((uint64_t)r >> 8 * i);
    return FKT_OK;
}

static const struct fkt_dataset_backend backend = {"procedural demo", demo_decode, fkt_free, demo_stored};

fkt_status fkt_procedural_open(struct fkt_dataset_builder *b, const char *which)
{
    struct demo *d = NULL;
    size_t n;
    uint32_t k;
    fkt_status st = FKT_OK;

    if (strcmp(which, "train") != 0 && strcmp(which, "test") != 0)
        return fkt_fail_hint(FKT_E_ARG, "the embedded set is 'demo:train' or 'demo:test'", "there is no demo set '%s'",
                             which);
    FKT_TRY(fkt_alloc(&d, 1));
    d->test = !strcmp(which, "test");
    fkt_builder_keep_order(b);
    for (unsigned c = 0; c < FKT_DEMO_CLASSES; c++) FKT_TRY(fkt_builder_class(b, fkt_demo_class(c), &k));
    n = (size_t)FKT_DEMO_CLASSES * (d->test ? FKT_DEMO_TEST : FKT_DEMO_TRAIN);
    for (size_t r = 0; r < n; r++)
        FKT_TRY(fkt_builder_add(b, (uint32_t)(r % FKT_DEMO_CLASSES), which, "demo:%s[%zu]", which, r));
    fkt_builder_backend(b, &backend, d);
    d = NULL;
out:
    fkt_free(d);
    return st;
}
