/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_calibration.c - a calibration's file, which every site of a task takes from its author.
 * What is accepted is sound, says of which images it was made, finds each of them, and is the same from another file.
 */
#include "fedkt/advanced/calibration.h"

#include "fuzz_support.h"

#include "codec/codec.h"

static void use(const struct fkt_calibration *cal)
{
    uint8_t digest[32] = {0};
    char path[160];
    struct fkt_calibration back;
    FUZZ_CHECK(fkt_calibration_sound(cal) == FKT_OK);
    FUZZ_CHECK(cal->images ? cal->n_digests >= 1 && cal->n_digests <= cal->images : !cal->n_digests || cal->digests);
    for (uint64_t i = 0; i < cal->n_digests; i++) {
        memcpy(digest, cal->digests + i * FKT_CALIBRATION_DIGEST, FKT_CALIBRATION_DIGEST);
        FUZZ_CHECK(fkt_calibration_holds(cal, digest));
    }
    snprintf(path, sizeof path, "%s", fuzz_file("again", NULL, 0));
    FUZZ_CHECK(fkt_calibration_save(cal, path, 1) == FKT_OK && fkt_calibration_load(&back, path) == FKT_OK);
    FUZZ_CHECK(back.images == cal->images && !strcmp(back.digests_sha256, cal->digests_sha256));
    fkt_calibration_clear(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fkt_calibration cal;
    if (fkt_calibration_load(&cal, fuzz_file("input", data, size)) != FKT_OK) {
        FUZZ_CHECK(!cal.map && !cal.digests && fkt_error_text()[0] != '\0');
        return 0;
    }
    use(&cal);
    fkt_calibration_clear(&cal);
    return 0;
}
