/* SPDX-License-Identifier: Apache-2.0 */
/* test_lab_parts.c - weights and calibrations of the codecs of a run: which are noted, and which do not go together. */
#include "experiment/lab.h"

#include "base/file.h"
#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"

#include <string.h>
#include <unistd.h>

enum { IMAGES = 96 };

static struct scratch dir;

/* A folder of data with images that calibrations are made from. */
static void make_public(const char *data, uint64_t seed)
{
    char name[96], path[600];
    struct fkt_rng rng;
    uint8_t rgb[32 * 32 * 3];
    fkt_rng_init(&rng, seed, 0);
    snprintf(name, sizeof name, "%s/tiny-imagenet-12k/any", data);
    CHECK_OK(fkt_mkdirs(scratch_path(&dir, name)));
    for (int i = 0; i < IMAGES; i++) {
        for (size_t k = 0; k < sizeof rgb; k++) rgb[k] = (uint8_t)fkt_rng_below(&rng, 256);
        snprintf(path, sizeof path, "%s/%d.png", scratch_path(&dir, name), i);
        CHECK_OK(fkt_png_write(path, rgb, 32, 32, 1));
    }
}

static struct fkt_lab *lab_of(const char *data, const char *weights, const char *run)
{
    static char folder[8][600], place[8][600], from[8][600];
    static int n;
    struct fkt_experiment_options o = {.threads = 1, .n_seeds = 1};
    struct fkt_lab *lab = NULL;
    snprintf(folder[n], sizeof folder[n], "%s/%s", dir.dir, run);
    snprintf(place[n], sizeof place[n], "%s/%s", dir.dir, data);
    snprintf(from[n], sizeof from[n], "%s/%s", dir.dir, weights);
    o.data = place[n];
    o.weights = from[n];
    CHECK_OK(fkt_lab_new(&lab, &o, folder[n], scratch_path(&dir, "encodings")));
    n++;
    return lab;
}

static void open_codec(struct fkt_lab *lab, const char *codec, uint32_t size, fkt_status wanted)
{
    const struct fkt_arm arm = {.name = "any", .codec = codec, .noise = -1};
    struct fkt_calibration calibration = {0};
    struct fkt_sweep_spec spec = {.calibration = {&calibration}};
    fkt_lab_begin_cell(lab);
    CHECK_STATUS(fkt_lab_parts(lab, &arm, size, &spec), wanted);
    if (wanted == FKT_OK) fkt_codec_free(spec.codec[0]);
    fkt_calibration_clear(&calibration);
}

static const char *input_of(const struct fkt_lab *lab, const char *name)
{
    return json_string_value(json_object_get(json_object_get(fkt_lab_notes(lab), "inputs"), name));
}

static void weights_are_an_input_and_of_one_codec(void **state)
{
    struct fkt_lab *lab = lab_of("first", "weights", "run");
    char was[FKT_SHA256_HEX];
    (void)state;
    open_codec(lab, "taesd", 32, FKT_OK);
    assert_non_null(input_of(lab, "weights-taesd"));
    snprintf(was, sizeof was, "%s", input_of(lab, "weights-taesd"));
    open_codec(lab, "taesd", 32, FKT_OK);
    assert_string_equal(input_of(lab, "weights-taesd"), was);
    open_codec(lab, "tiny", 32, FKT_E_MISMATCH); /* takes any network of its kind */
    assert_string_equal(fkt_error_text(), "codecs 'taesd' and 'tiny' have found the same weights");
    assert_null(input_of(lab, "calibration-tiny-32-64-0"));
    open_codec(lab, "taesd", 32, FKT_OK);
    open_codec(lab, "dct", 32, FKT_OK); /* it has none */
    assert_null(json_object_get(fkt_lab_notes(lab), "inputs"));
    fkt_lab_free(lab);
    lab = lab_of("first", "weights-others", "run-others");
    open_codec(lab, "tiny", 32, FKT_OK);
    assert_non_null(input_of(lab, "weights-tiny"));
    assert_string_not_equal(input_of(lab, "weights-tiny"), was);
    fkt_lab_free(lab);
}

static void calibrations_of_a_run_are_of_the_same_images(void **state)
{
    struct fkt_lab *lab = lab_of("first", "weights", "run-first");
    (void)state;
    open_codec(lab, "taesd", 32, FKT_OK);
    fkt_lab_free(lab);
    lab = lab_of("second", "weights", "run-second"); /* the file of 32 px is there, of the first images */
    open_codec(lab, "taesd", 32, FKT_OK);
    open_codec(lab, "taesd", 16, FKT_E_MISMATCH);
    assert_string_equal(
        fkt_error_text(),
        "'calibration-taesd-32-64-0.safetensors' and 'calibration-taesd-16-16-0.safetensors', beside the "
        "encodings, are made from different images");
    assert_int_not_equal(access(scratch_path(&dir, "encodings/calibration-taesd-16-16-0.safetensors"), F_OK), 0);
    fkt_lab_free(lab);
    assert_int_equal(remove(scratch_path(&dir, "encodings/calibration-taesd-32-64-0.safetensors")), 0);
    lab = lab_of("second", "weights", "run-third");
    open_codec(lab, "taesd", 16, FKT_OK);
    open_codec(lab, "taesd", 32, FKT_OK);
    fkt_lab_free(lab);
}

static int begin(void **state)
{
    (void)state;
    scratch_init(&dir);
    make_public("first", 1);
    make_public("second", 2);
    member_write_taesd(scratch_path(&dir, "weights"), 5);
    member_write_taesd(scratch_path(&dir, "weights-others"), 9);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_an_input_and_of_one_codec),
        cmocka_unit_test(calibrations_of_a_run_are_of_the_same_images),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
