/* SPDX-License-Identifier: Apache-2.0 */
/* small_task.h - the demo set, a codec of 8 numbers and a task over them: the smallest whole walk. */
#ifndef FKT_TEST_SMALL_TASK_H
#define FKT_TEST_SMALL_TASK_H

#include "fedkt/generate.h"
#include "fedkt/heads.h"
#include "fedkt/pipeline.h"
#include "fedkt/release.h"
#include "fedkt/task.h"

#include "base/alloc.h"
#include "pipeline/release.h"

/* Gives *walk and *ds; the set has `limit` records of "demo:train". */
static inline fkt_status small_pipeline(struct fkt_pipeline **pipeline, struct fkt_dataset **ds, size_t limit,
                                        double epsilon, enum fkt_coordinate_kind kind)
{
    struct fkt_dataset_options o = {.limit = limit};
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    struct fkt_codec *codec = NULL;
    struct fkt_calibration cal = {0};
    struct fkt_task task = {0};
    const char *classes[64];
    struct fkt_task_choices c = {.name = "small", .classes = classes, .privacy = {.epsilon = epsilon, .delta = 1e-5}};
    fkt_status st;
    *pipeline = NULL;
    *ds = NULL;
    FKT_TRY(fkt_dataset_open(ds, "demo:train", &o));
    c.n_classes = (uint32_t)fkt_dataset_classes(*ds);
    for (uint32_t k = 0; k < c.n_classes; k++) classes[k] = fkt_dataset_class(*ds, k);
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&cal, codec));
    FKT_TRY(fkt_task_make_into(&task, &c,
                               &(struct fkt_part_choice){.codec = codec, .calibration = &cal, .coordinates = kind}, 1));
    FKT_TRY(fkt_pipeline_open(pipeline, &task, NULL, NULL));
out:
    fkt_task_clear(&task);
    fkt_calibration_clear(&cal);
    fkt_codec_free(codec);
    if (st != FKT_OK) {
        fkt_pipeline_free(*pipeline);
        *pipeline = NULL;
        fkt_dataset_free(*ds);
        *ds = NULL;
    }
    return st;
}

#endif
