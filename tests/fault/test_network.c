/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation while weights are recognised, opened as a codec and used; nothing may leak. */
#include "base/file.h"
#include "codec/cache.h"
#include "codec/family.h"
#include "fedkt/codec.h"
#include "tests/support/golden_weights.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

static struct scratch dir;
static char single[600], folder[600], guide[600];
static struct member m;

static fkt_status run_family(void)
{
    struct fkt_family f;
    char *report = NULL;
    fkt_status st = fkt_family_open(&f, single, "dc-ae", &report);
    CHECK(!report && (f.file[0] != NULL) == (st == FKT_OK));
    fkt_family_clear(&f);
    return st;
}

/* The report of misfits is memory too; the operation succeeds when it is refused in full. */
static fkt_status run_misfits(void)
{
    struct fkt_family f;
    char *report = NULL;
    fkt_status st = fkt_family_open(&f, folder, "dc-ae", &report);
    CHECK(st != FKT_OK);
    if (st == FKT_E_MISMATCH) CHECK(report && strstr(report, "codec 'dc-ae' is of family 'dc-ae'"));
    fkt_free(report);
    return st == FKT_E_MISMATCH ? FKT_OK : st;
}

static fkt_status run_codec(void)
{
    static uint8_t rgb[3 * 16 * 16 * 3];
    static float z[3 * 16];
    struct fkt_codec_spec spec = {.name = "tiny", .size = 16, .settings = {.weights = folder}};
    struct fkt_codec_facts facts;
    struct fkt_codec *c = NULL;
    fkt_status st;
    FKT_TRY(fkt_codec_open(&c, &spec));
    FKT_TRY(fkt_codec_facts(c, &facts));
    FKT_TRY(fkt_codec_encode(c, rgb, 3, z));
    FKT_TRY(fkt_codec_decode(c, z, 3, rgb));
out:
    fkt_codec_free(c);
    return st;
}

/* By its file, at another side than the published one, and found as a shipped network with its calibration. */
static fkt_status run_guide(void)
{
    static uint8_t rgb[3 * 16 * 16 * 3];
    static float z[3 * 40];
    struct fkt_codec_spec spec = {.name = guide, .size = 16};
    struct fkt_calibration cal = {0};
    struct fkt_codec_net net;
    struct fkt_codec *c = NULL;
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_codec_open(&c, &spec));
    FKT_TRY(fkt_codec_net(c, FKT_CODEC_SIDE_ENCODER, &net));
    FKT_TRY(fkt_codec_encode(c, rgb, 3, z));
    FKT_TRY(fkt_codec_weights_path(&path, "resnet", NULL));
    st = fkt_calibration_embedded(&cal, c);
    CHECK(st != FKT_OK);
    if (st == FKT_E_STATE) st = FKT_OK; /* there is none */
out:
    fkt_free(path);
    fkt_codec_free(c);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    scratch_init(&dir);
    snprintf(single, sizeof single, "%s/dc.safetensors", dir.dir);
    snprintf(folder, sizeof folder, "%s", dir.dir);
    member_init(&m, 1);
    member_dcae(&m, &member_small_sana);
    member_write(&m, single, FKT_F32);
    for (int side = 0; side < 2; side++) {
        member_release(&m);
        member_taesd(&m, side, 4, 4, 0);
        member_write(&m, scratch_path(&dir, side ? "x_decoder.safetensors" : "x_encoder.safetensors"), FKT_BF16);
    }
    member_release(&m);
    CHECK(sweep_allocations(run_family, NULL) > 20);
    CHECK(sweep_allocations(run_misfits, NULL) > 20);
    CHECK(sweep_allocations(run_codec, NULL) > 20);
    CHECK_OK(fkt_mkdirs(scratch_path(&dir, "models/resnet")));
    snprintf(guide, sizeof guide, "%s/models/resnet/model.safetensors@40", dir.dir);
    golden_weights_write(FKT_TEST_VECTORS "/guide/small-basic.txt",
                         scratch_path(&dir, "models/resnet/model.safetensors"), NULL);
    CHECK(setenv("FEDKT_MODELS", scratch_path(&dir, "models"), 1) == 0);
    CHECK(sweep_allocations(run_guide, NULL) > 20);
    scratch_release(&dir);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
