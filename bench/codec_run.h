/* SPDX-License-Identifier: Apache-2.0 */
/* codec_run.h - many images through a codec in both directions, timed: what `bench codec` and `bench cost` share. */
#ifndef FKT_BENCH_CODEC_RUN_H
#define FKT_BENCH_CODEC_RUN_H

#include "bench/bench.h"

enum { FKT_BENCH_PASSES = 5 };

struct fkt_bench_codec_run {
    struct fkt_codec *codec;
    struct fkt_codec_facts facts;
    size_t n, batch;
    unsigned threads;
    uint8_t *rgb, *back; /* (n, S, S, 3) */
    float *z;            /* (n, D) from the encoder */
    const float *given;  /* (n, D) into the decoder: z unless the caller sets another */
    double first;        /* seconds from opening to the first latent */
    double seconds[2];   /* fastest pass over all images: encode, decode */
    double median[2];    /* of the same passes */
    double peak_mb[2];
    struct cli_progress progress;
    struct fkt_meter *meter; /* of the side that is timed now */
};

/* Opens the codec of the options, draws the images (of the built-in set, o->images of them) and encodes one. */
FKT_MUST_USE fkt_status fkt_bench_codec_open(struct fkt_bench_codec_run *j, const struct cli_bench *o);
/* All images, FKT_BENCH_PASSES times after one pass that sets up a workspace per worker. decode 0: rgb to z, 1: given
 * to back. */
FKT_MUST_USE fkt_status fkt_bench_codec_time(struct fkt_bench_codec_run *j, int decode);
/* Single images must give the same bits as whole batches: the first, the last and one between. After both timings. */
FKT_MUST_USE fkt_status fkt_bench_codec_check(const struct fkt_bench_codec_run *j);
void fkt_bench_codec_release(struct fkt_bench_codec_run *j);
size_t fkt_bench_codec_pixels(const struct fkt_bench_codec_run *j); /* bytes of an image */

#endif
