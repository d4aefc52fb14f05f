/* SPDX-License-Identifier: Apache-2.0 */
/* The networks that come with the program: in which order folders are searched, that an installation is found from
 * where it was loaded, and the calibrations beside the weights. */
#include "base/file.h"
#include "codec/cache.h"
#include "codec/codec.h"
#include "codec/models.h"
#include "fedkt/advanced/calibration.h"
#include "tests/support/check.h"
#include "tests/support/golden_weights.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DIM = 256, KEPT = 8, IMAGES = 40 };

static struct scratch dir;

static void folder(const char *name) { CHECK_OK(fkt_mkdirs(scratch_path(&dir, name))); }

static void put(const char *name)
{
    FILE *f = fopen(scratch_path(&dir, name), "wb");
    CHECK(f && fputs("weights", f) >= 0 && fclose(f) == 0);
}

static void found_in(const char *want)
{
    char *got = NULL;
    CHECK_OK(fkt_codec_weights_path(&got, "fedkt-guide", NULL));
    if (strcmp(got, scratch_path(&dir, want)) != 0) fail_msg("'%s' and not '%s'", got, want);
    fkt_free(got);
}

static void copy_program(const char *to)
{
    char buffer[4096];
    FILE *a = fopen("/proc/self/exe", "rb"), *b = fopen(to, "wb");
    size_t n;
    CHECK(a && b);
    while ((n = fread(buffer, 1, sizeof buffer, a)) > 0) CHECK(fwrite(buffer, 1, n, b) == n);
    CHECK(fclose(a) == 0 && fclose(b) == 0 && chmod(to, 0700) == 0);
}

/* This program, copied to `program`, is asked where its models are; "" for nowhere. */
static void asked(const char *program, char out[512])
{
    char command[640];
    FILE *pipe;
    copy_program(scratch_path(&dir, program));
    snprintf(command, sizeof command, "'%s' where", scratch_path(&dir, program));
    pipe = popen(command, "r");
    CHECK(pipe);
    if (!fgets(out, 512, pipe)) *out = '\0';
    out[strcspn(out, "\n")] = '\0';
    CHECK(pclose(pipe) == 0);
}

static void folders_are_searched_in_order(void **state)
{
    (void)state;
    folder("named/fedkt-guide");
    folder("cache/codecs/fedkt-guide");
    CHECK(setenv("FEDKT_MODELS", scratch_path(&dir, "named"), 1) == 0);
    CHECK(setenv("FEDKT_CACHE", scratch_path(&dir, "cache"), 1) == 0);
    put("cache/codecs/fedkt-guide/model.safetensors");
    found_in("cache/codecs/fedkt-guide"); /* a folder without weights does not count */
    put("named/fedkt-guide/model.safetensors");
    found_in("named/fedkt-guide");
    CHECK(unsetenv("FEDKT_MODELS") == 0);
    found_in("cache/codecs/fedkt-guide");
}

/* Whoever sets the variable wants these weights, and not those that come with the program. */
static void a_named_folder_that_is_not_there_is_an_error(void **state)
{
    char *got = NULL;
    (void)state;
    folder("cache/codecs/fedkt-guide");
    put("cache/codecs/fedkt-guide/model.safetensors");
    CHECK(setenv("FEDKT_CACHE", scratch_path(&dir, "cache"), 1) == 0);
    CHECK(setenv("FEDKT_MODELS", scratch_path(&dir, "nowhere"), 1) == 0);
    CHECK_STATUS(fkt_codec_weights_path(&got, "fedkt-guide", NULL), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "which FEDKT_MODELS names"));
    CHECK(!got && unsetenv("FEDKT_MODELS") == 0);
    found_in("cache/codecs/fedkt-guide");
}

static void an_installation_is_found_from_its_place(void **state)
{
    char got[512];
    (void)state;
    folder("prefix/share/fedkt/models/fedkt-guide");
    folder("prefix/bin");
    folder("prefix/lib/x86_64-linux-gnu");
    folder("elsewhere/bin");
    asked("prefix/bin/program", got);
    assert_string_equal(got, ""); /* no weights yet */
    put("prefix/share/fedkt/models/fedkt-guide/model.safetensors");
    asked("prefix/bin/program", got);
    assert_string_equal(got, scratch_path(&dir, "prefix/share/fedkt/models/fedkt-guide"));
    asked("prefix/lib/x86_64-linux-gnu/program", got);
    assert_string_equal(got, scratch_path(&dir, "prefix/share/fedkt/models/fedkt-guide"));
    asked("elsewhere/bin/program", got);
    assert_string_equal(got, "");
}

static struct fkt_codec *open_guide(uint32_t size)
{
    const struct fkt_codec_spec spec = {.name = "fedkt-guide", .size = size};
    struct fkt_codec *c = NULL;
    CHECK_OK(fkt_codec_open(&c, &spec));
    return c;
}

/* Any latents do: the file is looked at, not the fit. */
static void calibrate(const struct fkt_codec *c, const char *path)
{
    static float z[IMAGES * DIM];
    static uint8_t digest[IMAGES][32];
    struct fkt_calibrator *k = NULL;
    struct fkt_calibration cal;
    CHECK(fkt_codec_dim(c) == DIM);
    for (size_t i = 0; i < IMAGES * DIM; i++) z[i] = (float)sin((double)(i * i % 1009));
    for (size_t i = 0; i < IMAGES; i++) digest[i][0] = (uint8_t)i;
    CHECK_OK(fkt_calibrator_new(&k, c, KEPT, "public images"));
    CHECK_OK(fkt_calibrator_add(k, z, IMAGES));
    CHECK_OK(fkt_calibrator_middle(k));
    CHECK_OK(fkt_calibrator_add(k, z, IMAGES));
    CHECK_OK(fkt_calibrator_finish(k, &cal));
    CHECK_OK(fkt_calibration_set_images(&cal, (const uint8_t(*)[32])digest, IMAGES));
    CHECK_OK(fkt_calibration_save(&cal, path, 1));
    fkt_calibration_clear(&cal);
    fkt_calibrator_free(k);
}

static void calibrations_lie_beside_the_weights(void **state)
{
    struct fkt_calibration cal;
    struct fkt_codec *at32, *at64;
    (void)state;
    folder("shipped/fedkt-guide");
    CHECK(setenv("FEDKT_MODELS", scratch_path(&dir, "shipped"), 1) == 0);
    golden_weights_write(FKT_TEST_VECTORS "/guide/fedkt-guide.txt",
                         scratch_path(&dir, "shipped/fedkt-guide/model.safetensors"), NULL);
    at32 = open_guide(32);
    at64 = open_guide(64);
    CHECK(fkt_codec_has_calibration("fedkt-guide") && fkt_codec_has_calibration("fedkt-ae"));
    CHECK(!fkt_codec_has_calibration("resnet18") && fkt_codec_has_calibration("dct"));
    CHECK_STATUS(fkt_calibration_embedded(&cal, at32), FKT_E_STATE);
    CHECK(strstr(fkt_error_text(), "guide 'fedkt-guide' has no built-in calibration for this size: 32"));
    calibrate(at32, scratch_path(&dir, "shipped/fedkt-guide/calibration-32.safetensors"));
    CHECK_OK(fkt_calibration_embedded(&cal, at32));
    CHECK(cal.dim == KEPT && cal.raw_dim == DIM && cal.images == IMAGES && cal.n_digests == IMAGES && cal.file);
    fkt_calibration_clear(&cal);
    calibrate(at32, scratch_path(&dir, "shipped/fedkt-guide/calibration-64.safetensors"));
    CHECK_STATUS(fkt_calibration_embedded(&cal, at64), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "is of another codec: it has size 32, codec 'fedkt-guide' has size 64"));
    fkt_codec_free(at32);
    fkt_codec_free(at64);
    CHECK(unsetenv("FEDKT_MODELS") == 0);
}

static int begin(void **state)
{
    (void)state;
    scratch_init(&dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_release(&dir);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_searched_in_order),
        cmocka_unit_test(a_named_folder_that_is_not_there_is_an_error),
        cmocka_unit_test(an_installation_is_found_from_its_place),
        cmocka_unit_test(calibrations_lie_beside_the_weights),
    };
    if (argc > 1 && !strcmp(argv[1], "where")) {
        char *got = NULL;
        if (fkt_models_installed(&got, "fedkt-guide") != FKT_OK) return 1;
        printf("%s\n", got ? got : "");
        fkt_free(got);
        return 0;
    }
    return cmocka_run_group_tests(tests, begin, end);
}
