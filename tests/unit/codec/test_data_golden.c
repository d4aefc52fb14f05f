/* SPDX-License-Identifier: Apache-2.0 */
/* Real weights on the golden image: what PyTorch gave is what we give. Reads $FEDKT_DATA/codecs. */
#include "codec/golden.h"
#include "codec/manifest.h"
#include "crypto/hash.h"
#include "tests/support/check.h"

#include <stdlib.h>

static void check(const char *name, enum fkt_codec_dtype dtype, double tolerance, double psnr)
{
    char folder[1024];
    struct fkt_codec_spec spec = {
        .name = name, .size = FKT_GOLDEN_SIZE, .settings = {.weights = folder, .dtype = dtype}};
    struct fkt_codec *codec = NULL;
    struct fkt_codec_facts facts;
    struct fkt_golden g;
    char hash[FKT_HASH_HEX];
    snprintf(folder, sizeof folder, "%s/codecs", getenv("FEDKT_DATA"));
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_codec_facts(codec, &facts));
    CHECK_OK(fkt_hash_file_hex(hash, facts.file[0]));
    CHECK(fkt_known_file_find(hash) != NULL);
    CHECK_OK(fkt_golden_run(&g, codec, hash));
    CHECK(g.max_error <= tolerance);
    CHECK(g.psnr >= psnr);
    fkt_codec_free(codec);
}

static void the_recorded_latents_come_out(void **state)
{
    (void)state;
    check("taesd", FKT_CODEC_DTYPE_F32, 1e-4, 18);
    check("taesd3", FKT_CODEC_DTYPE_F32, 1e-4, 24);
    check("taesd", FKT_CODEC_DTYPE_BF16, 5e-2, 18);
    check("taesd3", FKT_CODEC_DTYPE_BF16, 5e-2, 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_recorded_latents_come_out)};
    if (!getenv("FEDKT_DATA")) {
        puts("FEDKT_DATA is not set");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
