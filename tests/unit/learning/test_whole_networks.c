/* SPDX-License-Identifier: Apache-2.0 */
/* Whole models of a codec and a guide that are networks: their scores are those of the pipeline's record vectors, for
 * heads on both parts and on the guide alone, separate and joined. */
#include "fedkt/heads.h"
#include "fedkt/whole.h"

#include "base/file.h"
#include "classifier/heads.h"
#include "learning/whole.h"
#include "pipeline/pipeline.h"
#include "pipeline/release.h"
#include "tests/support/check.h"
#include "tests/support/golden_weights.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>

enum { SIZE = 16, TOP = 6, CLASSES = 10, RECORDS = 40 };

static struct scratch dir;
static struct fkt_dataset *ds;

static void write_codec(void)
{
    struct member *m = NULL;
    CHECK(!mkdir(scratch_path(&dir, "codec"), 0700));
    CHECK_OK(fkt_alloc(&m, 1));
    for (int side = 0; side < 2; side++) {
        member_init(m, 3 + (uint64_t)side);
        member_taesd(m, side, 8, 4, 0);
        member_write(m, scratch_path(&dir, side ? "codec/decoder.safetensors" : "codec/encoder.safetensors"), FKT_F32);
        member_release(m);
    }
    fkt_free(m);
}

static int open_all(void **state)
{
    const struct fkt_dataset_options o = {.limit = RECORDS};
    (void)state;
    scratch_init(&dir);
    write_codec();
    golden_weights_write(FKT_TEST_VECTORS "/guide/small-basic.txt", scratch_path(&dir, "guide.safetensors"), NULL);
    CHECK_OK(fkt_dataset_open(&ds, "demo:train", &o));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fkt_dataset_free(ds);
    scratch_release(&dir);
    return 0;
}

static void open_pipeline(struct fkt_pipeline **out, int joined)
{
    struct fkt_codec_spec spec[2] = {{.name = "tiny", .size = SIZE}, {.name = "resnet", .size = SIZE}};
    const struct fkt_dataset_options o = {.limit = 120};
    const struct fkt_pipeline_options two = {.threads = 2};
    struct fkt_codec *codec[FKT_PARTS_MAX] = {NULL};
    struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
    struct fkt_part_choice part[2] = {{0}};
    const char *classes[CLASSES];
    struct fkt_task_choices c = {.classes = classes, .n_classes = CLASSES, .joined = joined};
    struct fkt_task task = {0};
    struct fkt_dataset *known = NULL;
    spec[0].settings.weights = scratch_path(&dir, "codec");
    spec[1].settings.weights = scratch_path(&dir, "guide.safetensors");
    CHECK_OK(fkt_dataset_open(&known, "demo:test", &o));
    for (int p = 0; p < 2; p++) {
        CHECK_OK(fkt_codec_open(&codec[p], &spec[p]));
        CHECK_OK(fkt_calibrate(&cal[p], codec[p], known, FKT_FILTER_BILINEAR, TOP, "a public set", &two));
        part[p].codec = codec[p];
        part[p].calibration = &cal[p];
    }
    fkt_dataset_free(known);
    for (uint32_t k = 0; k < CLASSES; k++) classes[k] = fkt_dataset_class(ds, k);
    c.privacy.epsilon = 10;
    c.privacy.delta = 1e-5;
    CHECK_OK(fkt_task_make_into(&task, &c, part, 2));
    CHECK_OK(fkt_pipeline_assemble(out, &task, codec, cal));
    fkt_task_clear(&task);
}

static void make_release(struct fkt_release *out, const struct fkt_pipeline *pipeline)
{
    const struct fkt_pipeline_options two = {.threads = 2};
    const struct fkt_round_facts facts = {1, 1, 1, 0};
    const uint64_t seed = 4;
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger;
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &two));
    CHECK_OK(fkt_ledger_init(&ledger, 100, 1e-3));
    CHECK_OK(fkt_release_make_into(out, fkt_pipeline_task(pipeline), fkt_pipeline_calibration(pipeline, 0), m, &facts,
                                   &ledger, &seed));
    fkt_moments_free(m);
}

/* One head as a whole model, after the disk, beside the record vectors w (n, length). */
static void compare(const struct fkt_pipeline *pipeline, const struct fkt_release *r, const struct fkt_head *h,
                    const struct fkt_training_set *set, const double *w, uint32_t parts)
{
    const char *path = scratch_path(&dir, "whole");
    const size_t length = fkt_pipeline_length(pipeline);
    struct fkt_whole *made = NULL, *m = NULL;
    float *got = NULL;
    double own[4 * TOP], work[4 * TOP], scores[CLASSES];
    CHECK_OK(fkt_whole_make(&made, pipeline, h, r));
    CHECK(made->parts == parts);
    CHECK_OK(fkt_whole_save(made, path, 1));
    CHECK_OK(fkt_whole_load(&m, path));
    CHECK_OK(fkt_whole_export_onnx(m, path, 1));
    CHECK_OK(fkt_alloc(&got, set->n * CLASSES));
    CHECK_OK(fkt_whole_predict(m, set->rgb, set->n, got, NULL));
    for (size_t i = 0; i < set->n; i++) {
        size_t at = 0;
        for (uint32_t p = 0; p < fkt_head_parts(h); p++) {
            memcpy(own + at, w + i * length + fkt_head_part_offset(h, p), fkt_head_part_length(h, p) * sizeof *own);
            at += fkt_head_part_length(h, p);
        }
        fkt_head_scores(h, own, scores, work);
        for (uint32_t k = 0; k < CLASSES; k++)
            CHECK_NEAR(got[i * CLASSES + k], scores[k], 1e-3 * (1 + fabs(scores[k])));
    }
    fkt_free(got);
    fkt_whole_free(made);
    fkt_whole_free(m);
}

static void scores_are_those_of_the_pipeline(void **state)
{
    const struct fkt_training_set_options two = {.threads = 2};
    (void)state;
    for (int joined = 0; joined < 2; joined++) {
        struct fkt_pipeline *pipeline = NULL;
        struct fkt_training_set set = {0};
        struct fkt_release r;
        double *w = NULL;
        int32_t *q = NULL;
        open_pipeline(&pipeline, joined);
        make_release(&r, pipeline);
        CHECK_OK(fkt_training_set_read(&set, ds, NULL, 0, SIZE, FKT_FILTER_BILINEAR, NULL, &two));
        CHECK_OK(fkt_alloc(&w, set.n * fkt_pipeline_length(pipeline)));
        CHECK_OK(fkt_alloc(&q, set.n * fkt_pipeline_length(pipeline)));
        CHECK_OK(fkt_pipeline_vectors(pipeline, set.rgb, set.n, w, q));
        for (int on = FKT_HEADS_ALL; on <= FKT_HEADS_GUIDE; on++) {
            struct fkt_heads h;
            CHECK_OK(fkt_heads_of_release(&h, &r, (enum fkt_heads_on)on));
            for (size_t k = 0; k < h.n; k++) compare(pipeline, &r, h.head[k], &set, w, on == FKT_HEADS_ALL ? 2 : 1);
            fkt_heads_clear(&h);
        }
        fkt_free(w);
        fkt_free(q);
        fkt_training_set_clear(&set);
        fkt_release_clear(&r);
        fkt_pipeline_free(pipeline);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scores_are_those_of_the_pipeline)};
    return check_nothing_left(cmocka_run_group_tests(tests, open_all, close_all));
}
