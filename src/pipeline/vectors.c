/* SPDX-License-Identifier: Apache-2.0 */
/* vectors.c - from pixels to record vectors, for a program that adds them up, stores or inspects them itself.
 *
 *   rgb (n,S,S,3) -> network: z -> calibration: u -> coordinates: w -> quantiser: q      for each part, side by side
 *
 * The same calls, record by record, as in walk.c: an image's numbers do not depend on n or on its neighbours, so
 * adding q up gives what fkt_pipeline_moments gives. Cost: the networks; memory for the latents of one batch. */
#include "fedkt/pipeline.h"

#include "pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/wipe.h"

#include <string.h>

fkt_status fkt_pipeline_vectors(const struct fkt_pipeline *w, const uint8_t *rgb, size_t n, double *vectors,
                                int32_t *integers)
{
    const size_t image = (size_t)w->task.size * w->task.size * 3, m = w->length;
    double *u = NULL;
    float *z[FKT_PARTS_MAX] = {NULL};
    const float *row[FKT_PARTS_MAX];
    size_t batch;
    fkt_status st;
    FKT_TRY(fkt_pipeline_can_encode(w));
    batch = fkt_pipeline_batch_all(w);
    for (uint32_t p = 0; p < w->task.parts; p++) FKT_TRY(fkt_alloc(&z[p], batch * w->task.part[p].dim));
    FKT_TRY(fkt_alloc(&u, fkt_pipeline_room(w)));
    for (size_t first = 0; first < n; first += batch) {
        const size_t here = n - first < batch ? n - first : batch;
        for (uint32_t p = 0; p < w->task.parts; p++)
            FKT_TRY(fkt_codec_encode(w->codec[p], rgb + first * image, here, z[p]));
        for (size_t i = 0; i < here; i++) {
            const size_t at = (first + i) * m;
            for (uint32_t p = 0; p < w->task.parts; p++) row[p] = z[p] + i * w->task.part[p].dim;
            st = fkt_pipeline_record(w, row, u, vectors + at, integers + at);
            FKT_TRY(fkt_fail_in(st, "image %zu", first + i));
        }
    }
out:
    if (st != FKT_OK) {
        memset(vectors, 0, n * m * sizeof *vectors);
        memset(integers, 0, n * m * sizeof *integers);
    }
    fkt_free_secret(u);
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) fkt_free_secret(z[p]);
    return st;
}
