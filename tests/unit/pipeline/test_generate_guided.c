/* SPDX-License-Identifier: Apache-2.0 */
/* Guided images from a release with codec and guide: which way is taken, folders and training sets of the same images,
 * a run that is stopped and continued, and what is refused before anything is written. */
#include "fedkt/generate.h"
#include "fedkt/train.h"

#include "base/file.h"
#include "codec/codec.h"
#include "pipeline/pipeline.h"
#include "pipeline/release.h"
#include "tests/support/check.h"
#include "tests/support/golden_weights.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"

#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 16, K = 6, EACH = 8, CLASSES = 10, PIXELS = SIZE * SIZE * 3 };

static struct scratch dir;
static struct fkt_pipeline *pipeline;
static struct fkt_release release;

static void write_half(const char *path, int side, uint64_t channels, const char *meta)
{
    struct member *m = NULL;
    struct fkt_st_writer *w = NULL;
    CHECK_OK(fkt_alloc(&m, 1));
    member_init(m, 3 + (uint64_t)side);
    member_taesd(m, side, 8, channels, 0);
    for (size_t i = 0; side && i < m->n; i++) /* pixels around 0.5: most are not clamped */
        for (uint64_t j = 0; j < m->t[i].count; j++) {
            if (!strcmp(m->t[i].name, "1.weight")) m->t[i].data[j] *= 4;
            if (!strcmp(m->t[i].name, "19.bias")) m->t[i].data[j] = 0.5F;
        }
    CHECK_OK(fkt_st_writer_new(&w));
    if (meta) CHECK_OK(fkt_st_writer_meta(w, "fedkt.guided", meta));
    for (size_t i = 0; i < m->n; i++)
        CHECK_OK(fkt_st_writer_add(w, m->t[i].name, FKT_F32, m->t[i].rank, m->t[i].shape, m->t[i].data));
    CHECK_OK(fkt_st_writer_write(w, path, FKT_FILE_REPLACE));
    fkt_st_writer_free(w);
    member_release(m);
    fkt_free(m);
}

/* Latents of an encoder that nobody trained hardly differ: this calibration makes vectors that do. */
static void made_up(struct fkt_calibration *out, const struct fkt_codec *c)
{
    CHECK_OK(fkt_calibration_init(out, fkt_codec_dim(c), K));
    for (uint32_t i = 0; i < K; i++) {
        out->map[i * out->raw_dim + 2 * i] = 0.5F;
        out->unmap[2 * i * K + i] = 2;
    }
    out->log_mean = 1;
    out->log_spread = 0.5;
    out->radius = 3;
    snprintf(out->source, sizeof out->source, "nothing public");
    snprintf(out->codec, sizeof out->codec, "%s", fkt_codec_identity(c));
}

static void calibrate(struct fkt_calibration *out, const struct fkt_codec *c, uint32_t top)
{
    const struct fkt_dataset_options o = {.limit = 120};
    const struct fkt_pipeline_options p = {.threads = 2};
    struct fkt_dataset *ds = NULL;
    CHECK_OK(fkt_dataset_open(&ds, "demo:test", &o));
    CHECK_OK(fkt_calibrate(out, c, ds, FKT_FILTER_BILINEAR, top, "a public set", &p));
    fkt_dataset_free(ds);
}

/* Codec and guide with weights of nobody's training, a task over both, and a release of 40 painted images. */
static int open_all(void **state)
{
    struct fkt_codec_spec spec[2] = {{.name = "tiny", .size = SIZE}, {.name = "resnet", .size = SIZE}};
    struct fkt_codec *codec[FKT_PARTS_MAX] = {NULL};
    struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
    struct fkt_part_choice part[2] = {{0}};
    const struct fkt_dataset_options o = {.limit = 40};
    const struct fkt_pipeline_options two = {.threads = 2};
    const struct fkt_round_facts facts = {1, 1, 1, 0};
    const uint64_t seed = 4;
    const char *classes[CLASSES];
    struct fkt_task_choices c = {.name = "guided", .classes = classes, .n_classes = CLASSES};
    struct fkt_task task = {0};
    struct fkt_dataset *ds = NULL;
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger;
    (void)state;
    scratch_init(&dir);
    CHECK(!mkdir(scratch_path(&dir, "codec"), 0700));
    write_half(scratch_path(&dir, "codec/encoder.safetensors"), 0, 4, NULL);
    write_half(scratch_path(&dir, "codec/decoder.safetensors"), 1, 4, NULL);
    golden_weights_write(FKT_TEST_VECTORS "/guide/small-basic.txt", scratch_path(&dir, "guide.safetensors"), NULL);
    spec[0].settings.weights = scratch_path(&dir, "codec");
    spec[1].settings.weights = scratch_path(&dir, "guide.safetensors");
    for (int p = 0; p < 2; p++) {
        CHECK_OK(fkt_codec_open(&codec[p], &spec[p]));
        if (p) calibrate(&cal[p], codec[p], K);
        else made_up(&cal[p], codec[p]);
        part[p].codec = codec[p];
        part[p].calibration = &cal[p];
    }
    CHECK_OK(fkt_dataset_open(&ds, "demo:train", &o));
    for (uint32_t k = 0; k < CLASSES; k++) classes[k] = fkt_dataset_class(ds, k);
    c.privacy.epsilon = 10;
    c.privacy.delta = 1e-5;
    CHECK_OK(fkt_task_make_into(&task, &c, part, 2));
    CHECK_OK(fkt_pipeline_assemble(&pipeline, &task, codec, cal));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &two));
    CHECK_OK(fkt_ledger_init(&ledger, 100, 1e-3));
    CHECK_OK(fkt_release_make_into(&release, &task, fkt_pipeline_calibration(pipeline, 0), m, &facts, &ledger, &seed));
    fkt_moments_free(m);
    fkt_dataset_free(ds);
    fkt_task_clear(&task);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fkt_release_clear(&release);
    fkt_pipeline_free(pipeline);
    scratch_release(&dir);
    return 0;
}

static uint64_t kept;

static fkt_status make(const char *folder, struct fkt_guided_options guided, unsigned threads,
                       struct fkt_guided_facts *f, const struct fkt_progress *progress)
{
    const struct fkt_generate_options o = {.per_class = EACH,
                                           .seed = 7,
                                           .format = FKT_EXPORT_NPZ,
                                           .threads = threads,
                                           .progress = progress,
                                           .pipeline = pipeline,
                                           .guided = guided,
                                           .made = f,
                                           .kept = &kept};
    return fkt_generate(&release, scratch_path(&dir, folder), &o);
}

static int is_there(const char *name)
{
    struct stat sb;
    return stat(scratch_path(&dir, name), &sb) == 0;
}

static void same_files(const char *a, const char *b)
{
    static const char *const files[] = {"dataset.npz", "images.json", "README.md", "grid.png", "certificate.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        uint8_t *x[2] = {NULL};
        size_t len[2];
        char name[64];
        snprintf(name, sizeof name, "%s/%s", a, files[i]);
        CHECK_OK(fkt_file_read(&x[0], &len[0], scratch_path(&dir, name), 1 << 22));
        snprintf(name, sizeof name, "%s/%s", b, files[i]);
        CHECK_OK(fkt_file_read(&x[1], &len[1], scratch_path(&dir, name), 1 << 22));
        if (len[0] != len[1] || memcmp(x[0], x[1], len[0]) != 0) fail_msg("'%s' differs", files[i]);
        fkt_free(x[0]);
        fkt_free(x[1]);
    }
}

static const struct fkt_guided_options two_steps = {.kind = FKT_GUIDED_GRADIENT, .steps = 2, .rate = 2};

/* Asks to stop after `left` reports. */
static int stop_soon(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    int *left = self;
    (void)what;
    (void)done;
    (void)total;
    return --*left < 0;
}

static void a_stopped_run_is_continued(void **state)
{
    struct fkt_guided_facts f;
    int left = 0;
    const struct fkt_progress stop = {stop_soon, &left};
    (void)state;
    CHECK_OK(make("whole", two_steps, 2, &f, NULL));
    CHECK(f.kind == FKT_GUIDED_GRADIENT && f.steps == 2 && f.rho == FKT_GUIDED_RHO);
    CHECK(!is_there("whole.partial") && kept == 0);
    left = 1; /* of three batches */
    CHECK_STATUS(make("parted", two_steps, 1, NULL, &stop), FKT_E_STOPPED);
    CHECK(is_there("parted.partial") && !is_there("parted"));
    CHECK_STATUS(make("parted", (struct fkt_guided_options){.kind = FKT_GUIDED_GRADIENT, .steps = 3}, 1, NULL, NULL),
                 FKT_E_EXISTS);
    CHECK(strstr(fkt_error_text(), "other options"));
    CHECK_OK(make("parted", two_steps, 1, NULL, NULL));
    CHECK(!is_there("parted.partial") && kept > 0 && kept < (uint64_t)EACH * CLASSES);
    same_files("whole", "parted");
}

static void a_training_set_has_the_images_of_the_folder(void **state)
{
    const struct fkt_training_set_options two = {.threads = 2};
    struct fkt_draw_options d = {.per_class = EACH, .seed = 7, .pipeline = pipeline, .guided = two_steps};
    const struct fkt_dataset_options o = {.n_classes = CLASSES, .classes = (const char *const *)release.task.classes};
    struct fkt_training_set drawn = {0}, plain = {0}, more = {0}, folder = {0};
    struct fkt_dataset *ds = NULL;
    (void)state;
    CHECK_OK(fkt_training_set_draw(&drawn, &release, &d, &two));
    CHECK_OK(fkt_dataset_open(&ds, scratch_path(&dir, "whole/dataset.npz"), &o));
    CHECK_OK(fkt_training_set_read(&folder, ds, NULL, 0, SIZE, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK(folder.n == drawn.n && drawn.n == EACH * CLASSES);
    assert_memory_equal(folder.rgb, drawn.rgb, drawn.n * PIXELS);
    d.first = 1; /* sample 1 is the same, whatever is drawn before it */
    CHECK_OK(fkt_training_set_draw(&more, &release, &d, &two));
    for (size_t k = 0; k < CLASSES; k++)
        assert_memory_equal(more.rgb + k * EACH * PIXELS, drawn.rgb + (k * EACH + 1) * PIXELS, PIXELS);
    d.first = 0;
    d.guided = (struct fkt_guided_options){.kind = FKT_GUIDED_NONE};
    CHECK_OK(fkt_training_set_draw(&plain, &release, &d, &two));
    CHECK(memcmp(plain.rgb, drawn.rgb, drawn.n * PIXELS) != 0);
    fkt_dataset_free(ds);
    fkt_training_set_clear(&drawn);
    fkt_training_set_clear(&plain);
    fkt_training_set_clear(&more);
    fkt_training_set_clear(&folder);
}

static void the_twin_is_used_for_its_pair_alone(void **state)
{
    const struct fkt_guided_options any = {.kind = FKT_GUIDED_AUTO}, on = {.kind = FKT_GUIDED_ON};
    const struct fkt_task_part *part = release.task.part;
    struct fkt_guided_facts f;
    char meta[512];
    (void)state;
    CHECK_OK(make("none", any, 2, &f, NULL));
    CHECK(f.kind == FKT_GUIDED_NONE && strstr(f.why, "no decoder of guided images") && f.gradient_possible);
    CHECK_OK(make("on", on, 2, &f, NULL)); /* without a twin: by gradient */
    CHECK(f.kind == FKT_GUIDED_GRADIENT && f.steps == FKT_GUIDED_STEPS);
    snprintf(meta, sizeof meta, "{\"codec_sha256\":\"%s\",\"guide_sha256\":\"%s\",\"guide_calibration_sha256\":\"%s\"}",
             part[0].sha256, part[1].sha256, part[0].calibration_sha256);
    write_half(scratch_path(&dir, "codec/guided.safetensors"), 1, 4 + K, meta);
    CHECK_OK(make("other", any, 2, &f, NULL));
    CHECK(f.kind == FKT_GUIDED_NONE && strstr(f.why, "another calibration of the guide"));
    same_files("none", "other");
    CHECK_STATUS(make("refused", on, 2, &f, NULL), FKT_E_MISMATCH);
    CHECK(!is_there("refused") && !is_there("refused.partial"));
    snprintf(meta, sizeof meta, "{\"codec_sha256\":\"%s\",\"guide_sha256\":\"%s\",\"guide_calibration_sha256\":\"%s\"}",
             part[0].sha256, part[1].sha256, part[1].calibration_sha256);
    write_half(scratch_path(&dir, "codec/guided.safetensors"), 1, 4 + K, meta);
    CHECK_OK(make("twin", any, 2, &f, NULL));
    CHECK(f.kind == FKT_GUIDED_TWIN && strlen(f.twin_sha256) == 64);
    CHECK_OK(make("twin1", on, 1, &f, NULL));
    same_files("twin", "twin1");
    CHECK_OK(make("off", (struct fkt_guided_options){.kind = FKT_GUIDED_NONE}, 1, &f, NULL));
    same_files("none", "off");
    CHECK(!unlink(scratch_path(&dir, "codec/guided.safetensors")));
}

static void what_cannot_be_guided_is_refused(void **state)
{
    const struct fkt_guided_options bad[] = {{.kind = FKT_GUIDED_GRADIENT, .steps = 10001},
                                             {.kind = FKT_GUIDED_GRADIENT, .rho = -1},
                                             {.kind = FKT_GUIDED_GRADIENT, .rate = NAN},
                                             {.kind = FKT_GUIDED_TWIN}};
    struct fkt_pipeline *small = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_gaussians none = {0};
    uint8_t rgb[1];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(make("refused", bad[i], 1, NULL, NULL), FKT_E_ARG);
    CHECK(!is_there("refused") && !is_there("refused.partial"));
    CHECK_OK(small_pipeline(&small, &ds, 40, 5, FKT_COORDINATE_GAIN_SHAPE)); /* no guide */
    CHECK_STATUS(fkt_generate_tiles(small, &none, &two_steps, 1, 1, 1, 1, rgb), FKT_E_STATE);
    CHECK(strstr(fkt_error_text(), "the release has no guide"));
    fkt_dataset_free(ds);
    fkt_pipeline_free(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_run_is_continued),
        cmocka_unit_test(a_training_set_has_the_images_of_the_folder),
        cmocka_unit_test(the_twin_is_used_for_its_pair_alone),
        cmocka_unit_test(what_cannot_be_guided_is_refused),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
