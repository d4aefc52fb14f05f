/* SPDX-License-Identifier: Apache-2.0 */
/* A calibration that cannot be is refused before the first image is encoded. */
#include "fedkt/pipeline.h"
#include "tests/support/check.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"

static int told;

static int count(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)self, (void)what, (void)done, (void)total;
    told++;
    return 0;
}

static void refuse(const struct fkt_codec_spec *spec, fkt_status want, const char *text)
{
    const struct fkt_progress hook = {.step = count};
    const struct fkt_pipeline_options o = {.threads = 1, .progress = &hook};
    const struct fkt_dataset_options few = {.limit = 8};
    struct fkt_calibration cal = {0};
    struct fkt_dataset *ds = NULL;
    struct fkt_codec *codec = NULL;
    CHECK_OK(fkt_dataset_open(&ds, "demo:test", &few));
    CHECK_OK(fkt_codec_open(&codec, spec));
    told = 0;
    CHECK_STATUS(fkt_calibrate(&cal, codec, ds, FKT_FILTER_BILINEAR, 0, "demo", &o), want);
    if (!strstr(fkt_error_text(), text)) fail_msg("'%s' does not say '%s'", fkt_error_text(), text);
    CHECK(!told);
    fkt_codec_free(codec);
    fkt_dataset_free(ds);
    CHECK(fkt_alloc_live() == 0);
}

static void too_few_images(void **state)
{
    const struct fkt_codec_spec spec = {.name = "dct", .size = 32, .dim = 64};
    (void)state;
    refuse(&spec, FKT_E_STATE, "8 images of 'demo' are too few to fit 64 directions");
}

/* A covariance of 2^40 numbers. */
static void too_many_numbers(void **state)
{
    struct fkt_codec_spec spec = {.name = "taesd", .size = 4096};
    static struct member m;
    struct scratch dir;
    (void)state;
    scratch_init(&dir);
    for (int side = 0; side < 2; side++) {
        member_init(&m, 5 + (uint64_t)side);
        member_taesd(&m, side, 16, 4, 0);
        member_write(&m, scratch_path(&dir, side ? "taesd_decoder.safetensors" : "taesd_encoder.safetensors"), FKT_F32);
        member_release(&m);
    }
    spec.settings.weights = dir.dir;
    refuse(&spec, FKT_E_NOMEM, "needs more than half of this machine's memory");
    scratch_release(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_few_images),
        cmocka_unit_test(too_many_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
