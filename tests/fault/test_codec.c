/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of each operation of codec/ until it succeeds; nothing may leak. */
#include "base/rng.h"
#include "fedkt/advanced/calibration.h"
#include "fedkt/codec.h"
#include "tests/support/sweep.h"

#include <unistd.h>

enum { D = 6, N = 40 };
static const struct fkt_codec_spec spec = {.name = "dct", .size = 8, .dim = D};
static struct fkt_codec *codec;
static float latents[N * D];
static char folder[] = "/tmp/fedkt-test-XXXXXX", path[64], saved[64];

static void tidy(fkt_status st)
{
    (void)st;
    unlink(path); /* whole or absent: tests/fault/test_tensor.c looks at that */
}

static void sweep(fkt_status (*run)(void)) { CHECK(sweep_allocations(run, tidy) > 1); }

static fkt_status run_open(void)
{
    struct fkt_codec *c = NULL;
    fkt_status st = fkt_codec_open(&c, &spec);
    CHECK((c != NULL) == (st == FKT_OK));
    fkt_codec_free(c);
    return st;
}

static fkt_status run_codec(void)
{
    static uint8_t rgb[8 * 8 * 3];
    float z[D];
    fkt_status st = fkt_codec_encode(codec, rgb, 1, z);
    return st == FKT_OK ? fkt_codec_decode(codec, z, 1, rgb) : st;
}

static fkt_status run_embedded(void)
{
    struct fkt_calibration cal;
    fkt_status st;
    FKT_TRY(fkt_calibration_embedded(&cal, codec));
    FKT_TRY(fkt_calibration_check(&cal, codec));
    FKT_TRY(fkt_calibration_save(&cal, path, 0));
out:
    fkt_calibration_clear(&cal);
    return st;
}

static fkt_status run_load(void)
{
    struct fkt_calibration cal;
    fkt_status st = fkt_calibration_load(&cal, saved);
    CHECK((cal.map != NULL) == (st == FKT_OK));
    fkt_calibration_clear(&cal);
    return st;
}

static fkt_status run_fit(void)
{
    struct fkt_calibrator *k = NULL;
    struct fkt_calibration cal;
    fkt_status st;
    memset(&cal, 0, sizeof cal);
    FKT_TRY(fkt_calibrator_new(&k, codec, 4, "set"));
    FKT_TRY(fkt_calibrator_add(k, latents, N));
    FKT_TRY(fkt_calibrator_middle(k));
    FKT_TRY(fkt_calibrator_add(k, latents, N));
    FKT_TRY(fkt_calibrator_finish(k, &cal));
out:
    fkt_calibrator_free(k);
    fkt_calibration_clear(&cal);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    struct fkt_calibration cal;
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 1, 1);
    for (int i = 0; i < N * D; i++) latents[i] = (float)fkt_rng_normal(&r);
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x", folder);
    snprintf(saved, sizeof saved, "%s/saved", folder);
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_calibration_embedded(&cal, codec));
    CHECK_OK(fkt_calibration_save(&cal, saved, 0));
    fkt_calibration_clear(&cal);
    sweep(run_open);
    sweep(run_codec);
    sweep(run_embedded);
    sweep(run_load);
    sweep(run_fit);
    fkt_codec_free(codec);
    CHECK(unlink(saved) == 0 && rmdir(folder) == 0 && fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
