/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - a public image set through the codec twice: once for centre and whitening, once for the sizes |u|.
 * The two passes see the same latents in the same order, so the result does not depend on threads. For PUBLIC images
 * only: what comes out is shipped in the clear (docs/method.md 1.1). */
#include "fedkt/round.h"

#include "base/alloc.h"
#include "base/meter.h"
#include "base/threads.h"

enum { CHUNK = 1024, BATCH = 32 };

struct chunk {
    const struct fkt_codec *codec;
    const struct fkt_dataset *ds;
    enum fkt_filter filter;
    size_t first, n;
    uint8_t *rgb; /* (CHUNK, S, S, 3) */
    float *z;     /* (CHUNK, D) */
    struct fkt_meter *meter;
};

static fkt_status encode_some(void *ctx, size_t item, unsigned worker)
{
    struct chunk *c = ctx;
    size_t S = fkt_codec_size(c->codec), pixels = S * S * 3, from = item * BATCH,
           n = c->n - from < BATCH ? c->n - from : BATCH;
    fkt_status st;
    (void)worker;
    for (size_t i = 0; i < n; i++)
        FKT_TRY(
            fkt_dataset_read(c->ds, c->first + from + i, (uint32_t)S, c->filter, c->rgb + (from + i) * pixels, NULL));
    FKT_TRY(fkt_codec_encode(c->codec, c->rgb + from * pixels, n, c->z + from * fkt_codec_dim(c->codec)));
    FKT_TRY(fkt_meter_add(c->meter, n));
out:
    return st;
}

fkt_status fkt_calibrate(struct fkt_calibration *out, const struct fkt_codec *codec, const struct fkt_dataset *ds,
                         enum fkt_filter filter, uint32_t top, const char *source,
                         const struct fkt_walk_options *options)
{
    size_t n = fkt_dataset_size(ds), S = fkt_codec_size(codec);
    struct fkt_calibrator *k = NULL;
    struct fkt_meter meter;
    struct chunk c = {.codec = codec, .ds = ds, .filter = filter, .meter = &meter};
    fkt_status st;
    fkt_meter_init(&meter, options->progress, "calibrating", 2 * n);
    FKT_TRY(fkt_alloc(&c.rgb, CHUNK * S * S * 3));
    FKT_TRY(fkt_alloc(&c.z, CHUNK * (size_t)fkt_codec_dim(codec)));
    FKT_TRY(fkt_calibrator_new(&k, codec, top, source));
    for (int pass = 0; pass < 2; pass++) {
        for (c.first = 0; c.first < n; c.first += CHUNK) {
            c.n = n - c.first < CHUNK ? n - c.first : CHUNK;
            FKT_TRY(fkt_parallel(options->threads, (c.n + BATCH - 1) / BATCH, encode_some, &c, NULL, "calibrating"));
            FKT_TRY(fkt_calibrator_add(k, c.z, c.n));
        }
        if (pass == 0) FKT_TRY(fkt_calibrator_middle(k));
    }
    FKT_TRY(fkt_calibrator_finish(k, out));
out:
    fkt_calibrator_free(k);
    fkt_free(c.rgb);
    fkt_free(c.z);
    fkt_meter_release(&meter);
    return st;
}
