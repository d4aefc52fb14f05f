/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - encodes a public image set once and uses its latents twice: for centre and whitening, then for the
 * lengths |u|.
 *
 * Between the two passes the latents are in an unlinked temporary file: running a network takes far longer than reading
 * a disk. Both passes see the same numbers in the same order, so the result does not depend on threads. Memory: a
 * chunk of latents, one batch of pixels per worker and 32 bytes an image. The result keeps the digests of the images
 * (codec/calibration_images.c), for which they are decoded a second time. For PUBLIC images only: the result is
 * published (docs/method.md 1.1). */
#include "fedkt/advanced/calibration.h"

#include "pipeline/fingerprint.h"
#include "pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/meter.h"
#include "base/threads.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1024 }; /* latents are added up in steps of this, whatever the batch */

struct chunk {
    const struct fkt_codec *codec;
    const struct fkt_dataset *ds;
    enum fkt_filter filter;
    size_t first, n, batch;
    uint8_t *rgb; /* (workers, batch, S, S, 3) */
    float *z;     /* (CHUNK, D) */
    int spool;    /* (n, D) floats */
    struct fkt_meter *meter;
};

static fkt_status encode_some(void *ctx, size_t item, unsigned worker)
{
    struct chunk *c = ctx;
    size_t S = fkt_codec_size(c->codec), pixels = S * S * 3, from = item * c->batch,
           n = c->n - from < c->batch ? c->n - from : c->batch;
    uint8_t *rgb = c->rgb + worker * c->batch * pixels;
    fkt_status st;
    for (size_t i = 0; i < n; i++)
        FKT_TRY(fkt_dataset_read(c->ds, c->first + from + i, (uint32_t)S, c->filter, rgb + i * pixels, NULL));
    FKT_TRY(fkt_codec_encode(c->codec, rgb, n, c->z + from * fkt_codec_dim(c->codec)));
    FKT_TRY(fkt_meter_add(c->meter, n));
out:
    return st;
}

/* The chunk's latents to the spool or back from it. */
static fkt_status move(struct chunk *c, int back)
{
    size_t row = fkt_codec_dim(c->codec) * sizeof *c->z, len = c->n * row, at = 0;
    while (at < len) {
        void *p = (uint8_t *)c->z + at;
        off_t where = (off_t)(c->first * row + at);
        ssize_t k = back ? pread(c->spool, p, len - at, where) : pwrite(c->spool, p, len - at, where);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            return fkt_fail_hint(FKT_E_IO, "point TMPDIR at a folder with more space: latents are stored there",
                                 "cannot %s a temporary file: %s", back ? "read" : "write",
                                 k < 0 ? strerror(errno) : "it is too short");
        at += (size_t)k;
    }
    return FKT_OK;
}

/* One pass over the chunks: encoded in the first, read back in the second. */
static fkt_status look(struct chunk *c, size_t n, unsigned threads, int back, struct fkt_calibrator *k)
{
    fkt_status st = FKT_OK;
    for (c->first = 0; c->first < n; c->first += CHUNK) {
        c->n = n - c->first < CHUNK ? n - c->first : CHUNK;
        if (!back)
            FKT_TRY(fkt_parallel(threads, (c->n + c->batch - 1) / c->batch, encode_some, c, NULL, "calibrating"));
        FKT_TRY(move(c, back));
        FKT_TRY(fkt_calibrator_add(k, c->z, c->n));
    }
out:
    return st;
}

static fkt_status keep_digests(struct fkt_calibration *cal, const struct fkt_dataset *ds,
                               const struct fkt_pipeline_options *options)
{
    struct fkt_digest *digests = NULL;
    uint8_t *bad = NULL;
    size_t n = fkt_dataset_size(ds);
    fkt_status st;
    FKT_TRY(fkt_records_digests(ds, NULL, n, options, &digests, &bad));
    for (size_t i = 0; i < n; i++)
        if (bad[i]) {
            st = fkt_fail(FKT_E_IO, "'%s' changed while it was read", fkt_dataset_name(ds, i));
            goto out;
        }
    FKT_TRY(fkt_calibration_set_images(cal, (const uint8_t(*)[32])digests, n));
out:
    fkt_free(digests);
    fkt_free(bad);
    return st;
}

fkt_status fkt_calibrate(struct fkt_calibration *out, const struct fkt_codec *codec, const struct fkt_dataset *ds,
                         enum fkt_filter filter, uint32_t top, const char *source,
                         const struct fkt_pipeline_options *options)
{
    size_t n = fkt_dataset_size(ds), S = fkt_codec_size(codec);
    unsigned threads = options->threads ? options->threads : fkt_cpu_count();
    struct fkt_calibrator *k = NULL;
    struct fkt_meter meter;
    struct chunk c = {
        .codec = codec, .ds = ds, .filter = filter, .batch = fkt_pipeline_batch(codec), .spool = -1, .meter = &meter};
    fkt_status st;
    memset(out, 0, sizeof *out);
    fkt_meter_init(&meter, options->progress, "calibrating", n);
    FKT_TRY(fkt_calibrator_new(&k, codec, top, source));
    FKT_TRY(fkt_calibrator_enough(k, n));
    FKT_TRY(fkt_spool(&c.spool));
    FKT_TRY(fkt_alloc(&c.rgb, threads * c.batch * S * S * 3));
    FKT_TRY(fkt_alloc(&c.z, CHUNK * (size_t)fkt_codec_dim(codec)));
    FKT_TRY(look(&c, n, threads, 0, k));
    FKT_TRY(fkt_calibrator_middle(k));
    FKT_TRY(look(&c, n, threads, 1, k));
    FKT_TRY(fkt_calibrator_finish(k, out));
    FKT_TRY(keep_digests(out, ds, options));
out:
    if (st != FKT_OK) fkt_calibration_clear(out);
    fkt_calibrator_free(k);
    fkt_free(c.rgb);
    fkt_free(c.z);
    if (c.spool >= 0) close(c.spool);
    fkt_meter_clear(&meter);
    return st;
}
