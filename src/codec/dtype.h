/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.h - which numbers a network runs faster with on this machine. */
#ifndef FKT_CODEC_DTYPE_H
#define FKT_CODEC_DTYPE_H

#include "fedkt/codec.h"

#include "nn/engine.h"

/* Half of the bits must pay: below this the exact numbers are kept. */
#define FKT_DTYPE_GAIN 1.25

/* What is timed, and the words under which the answer is kept. */
struct fkt_dtype_trial {
    const struct fkt_backend *backend;
    const struct fkt_net *net;
    const struct fkt_weights *weights;
    struct fkt_engine_spec spec; /* its precision is not looked at */
    const char *codec;           /* "taesd", ... */
    const char *machine;         /* processor, instruction set in use, library: another one is another answer */
    int bf16;                    /* 0: this machine cannot run bf16 at all, so there is nothing to time */
    int *measured;               /* may be NULL: set to 1 when it was timed now, 0 when the answer was known */
};

/* F32 or BF16. The answer is remembered in <cache>/codecs/machine-dtype.json; a cache that cannot be read or written
 * costs a second measurement and is not a failure. A network that cannot be planned in bf16 runs in f32. */
FKT_MUST_USE fkt_status fkt_dtype_choose(enum fkt_codec_dtype *out, const struct fkt_dtype_trial *trial);

/* The decision alone, from seconds per batch; anything that is not a time means F32. */
enum fkt_codec_dtype fkt_dtype_faster(double f32_seconds, double bf16_seconds);

#endif
