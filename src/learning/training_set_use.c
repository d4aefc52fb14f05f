/* SPDX-License-Identifier: Apache-2.0 */
/* training_set_use.c - passes images in memory through a codec and back, and evaluates a classifier on them.
 *
 * A network trained on decoded images has not seen the fine detail that a codec loses. Real images after the same
 * loss (encode, decode; no calibration, no noise) may be closer to its training images. */
#include "fedkt/model_data.h"

#include "pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <string.h>

struct passage {
    struct fkt_training_set *set;
    const struct fkt_codec *codec;
    size_t batch;
    struct fkt_meter *meter;
};

static fkt_status pass_some(void *ctx, size_t item, unsigned worker)
{
    struct passage *p = ctx;
    size_t from = item * p->batch, n = p->set->n - from < p->batch ? p->set->n - from : p->batch;
    uint8_t *rgb = p->set->rgb + from * p->set->size * p->set->size * 3;
    float *z = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&z, n * fkt_codec_dim(p->codec)));
    FKT_TRY(fkt_codec_encode(p->codec, rgb, n, z));
    FKT_TRY(fkt_codec_decode(p->codec, z, n, rgb));
    FKT_TRY(fkt_meter_add(p->meter, n));
out:
    fkt_free(z);
    return st;
}

fkt_status fkt_training_set_through_codec(struct fkt_training_set *p, const struct fkt_codec *codec,
                                          const struct fkt_training_set_options *options)
{
    struct fkt_meter meter;
    struct passage job = {p, codec, fkt_pipeline_batch(codec), &meter};
    fkt_status st;
    if (fkt_codec_size(codec) != p->size)
        return fkt_fail(FKT_E_MISMATCH, "codec '%s' is open for images of %u px, but these have %u px",
                        fkt_codec_name(codec), fkt_codec_size(codec), p->size);
    fkt_meter_init(&meter, options->progress, "through codec", p->n);
    st = fkt_parallel(options->threads, (p->n + job.batch - 1) / job.batch, pass_some, &job, NULL, "through codec");
    fkt_meter_clear(&meter);
    return st;
}

fkt_status fkt_training_set_evaluate(struct fkt_evaluation *j, const struct fkt_model *m,
                                     const struct fkt_training_set *p, const struct fkt_predict_options *options)
{
    float *logits = NULL;
    fkt_status st;
    FKT_TRY(fkt_training_set_check_model(p, m));
    FKT_TRY(fkt_alloc(&logits, p->n * p->n_classes));
    FKT_TRY(fkt_model_predict(m, p->rgb, p->n, logits, NULL, options));
    FKT_TRY(fkt_evaluation_add(j, logits, p->label, p->n));
out:
    fkt_free(logits);
    return st;
}
