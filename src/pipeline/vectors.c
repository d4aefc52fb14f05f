/* SPDX-License-Identifier: Apache-2.0 */
/* vectors.c - from pixels to record vectors, for a program that adds them up, stores or inspects them itself.
 *
 *   rgb (n,S,S,3) -> codec: z -> calibration: u -> coordinates: w -> quantiser: q
 *
 * The same calls, record by record, as in pipeline.c: an image's numbers do not depend on n or on its neighbours, so
 * adding q up gives what fkt_pipeline_moments gives. Cost: the codec; memory for the latents of one of its batches. */
#include "fedkt/pipeline.h"

#include "pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/wipe.h"

#include <string.h>

fkt_status fkt_pipeline_vectors(const struct fkt_pipeline *w, const uint8_t *rgb, size_t n, double *vectors,
                                int32_t *integers)
{
    const size_t image = (size_t)w->task.size * w->task.size * 3, D = w->task.part[0].dim,
                 m = w->task.part[0].coordinates.length;
    double *u = NULL;
    float *z = NULL;
    size_t batch;
    fkt_status st;
    FKT_TRY(w->codec ? FKT_OK : fkt_pipeline_no_codec(w));
    batch = fkt_pipeline_batch(w->codec);
    FKT_TRY(fkt_alloc(&z, batch * D));
    FKT_TRY(fkt_alloc(&u, w->task.part[0].coordinates.dim));
    for (size_t first = 0; first < n; first += batch) {
        const size_t here = n - first < batch ? n - first : batch;
        FKT_TRY(fkt_codec_encode(w->codec, rgb + first * image, here, z));
        for (size_t i = 0; i < here; i++) {
            const size_t at = (first + i) * m;
            st = fkt_pipeline_record(w, z + i * D, u, vectors + at, integers + at);
            FKT_TRY(fkt_fail_in(st, "image %zu", first + i));
        }
    }
out:
    if (st != FKT_OK) {
        memset(vectors, 0, n * m * sizeof *vectors);
        memset(integers, 0, n * m * sizeof *integers);
    }
    fkt_free_secret(u);
    fkt_free_secret(z);
    return st;
}
