/* SPDX-License-Identifier: Apache-2.0 */
/* The networks in models/ of the source tree, found as an installed program finds them: their size and work, a
 * calibration for 32 and for 64 px, a model card, and an image that comes back. Skips where the folder has no weights
 * ($FEDKT_MODELS may name another one). */
#include "codec/cache.h"
#include "codec/golden.h"
#include "codec/manifest.h"
#include "crypto/hash.h"
#include "fedkt/advanced/calibration.h"
#include "fedkt/codec.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static const double taesd_gflop = 0.4778; /* its encoder at 32 px */
enum { BYTES_MAX = 8500000 };

static struct scratch dir;
static char place[2][512];
static const char *const names[2] = {"fedkt-ae", "fedkt-guide"};

static struct fkt_codec *open_one(int which, uint32_t size)
{
    const struct fkt_codec_spec spec = {.name = names[which], .size = size};
    struct fkt_codec *c = NULL;
    CHECK_OK(fkt_codec_open(&c, &spec));
    CHECK(fkt_codec_decodes(c) == (which == 0) && fkt_codec_size(c) == size);
    return c;
}

static void the_work_is_at_most_twice_that_of_taesd(void **state)
{
    struct fkt_codec_facts f;
    double sum = 0;
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct fkt_codec *c = open_one(k, 32);
        CHECK_OK(fkt_codec_facts(c, &f));
        sum += 1e-9 * (double)f.flops[0];
        fkt_codec_free(c);
    }
    print_message("both encoders: %.3f GFLOP\n", sum);
    CHECK(sum <= 2 * taesd_gflop);
}

static void files_are_small_and_have_a_card(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct fkt_codec *c = open_one(k, 32);
        struct fkt_codec_facts f;
        struct stat sb;
        char card[600];
        long long sum = 0;
        CHECK_OK(fkt_codec_facts(c, &f));
        for (int i = 0; i < 2 && f.file[i]; i++) {
            CHECK(stat(f.file[i], &sb) == 0);
            sum += (long long)sb.st_size;
        }
        CHECK(sum <= BYTES_MAX);
        snprintf(card, sizeof card, "%s/MODEL_CARD.md", place[k]);
        if (stat(card, &sb) != 0 || sb.st_size < 500) fail_msg("'%s' is missing or says little", card);
        fkt_codec_free(c);
    }
}

/* So that `codec verify` can tell a damaged installation from a whole one. */
static void hashes_are_those_of_the_manifest(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct fkt_codec *c = open_one(k, 32);
        struct fkt_codec_facts f;
        CHECK_OK(fkt_codec_facts(c, &f));
        for (int i = 0; i < 2 && f.file[i]; i++) {
            const char *name = strrchr(f.file[i], '/') + 1;
            const struct fkt_known_file *known = fkt_known_file_named(names[k], name);
            char sha256[FKT_HASH_HEX];
            struct stat sb;
            struct fkt_golden g;
            CHECK_OK(fkt_hash_file_hex(sha256, f.file[i]));
            if (!known || strcmp(known->sha256, sha256) != 0)
                fail_msg("'%s' is %s: put that into src/codec/manifest.c", f.file[i], sha256);
            CHECK(stat(f.file[i], &sb) == 0 && known->size == (uint64_t)sb.st_size);
            if (i) continue;
            CHECK_OK(fkt_golden_run(&g, c, sha256)); /* latents by PyTorch: oracle/golden_image.py */
            print_message("%s: latents within %.2g of PyTorch's\n", names[k], g.max_error);
            CHECK(g.recorded && g.max_error < 1e-4);
        }
        fkt_codec_free(c);
    }
}

static void calibrations_fit(void **state)
{
    static const uint32_t sizes[] = {32, 64};
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int s = 0; s < 2; s++) {
            struct fkt_codec *c = open_one(k, sizes[s]);
            struct fkt_calibration cal;
            CHECK_OK(fkt_calibration_embedded(&cal, c));
            print_message("%s, %u px: %u of %u directions, %llu images of '%s'\n", names[k], sizes[s], cal.dim,
                          cal.raw_dim, (unsigned long long)cal.images, cal.source);
            CHECK(cal.dim >= 64 && cal.images >= 1000 && cal.n_digests >= 1000);
            fkt_calibration_clear(&cal);
            fkt_codec_free(c);
        }
}

static void an_image_comes_back(void **state)
{
    struct fkt_codec *c = open_one(0, 64), *guide = open_one(1, 64);
    struct fkt_golden g;
    (void)state;
    CHECK_OK(fkt_golden_run(&g, c, NULL));
    print_message("%.2f dB\n", g.psnr);
    CHECK(g.psnr >= 15);
    CHECK_OK(fkt_golden_run(&g, guide, NULL));
    fkt_codec_free(c);
    fkt_codec_free(guide);
}

static int begin(void **state)
{
    (void)state;
    scratch_init(&dir);
    return setenv("FEDKT_CACHE", scratch_path(&dir, "cache"), 1);
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
        cmocka_unit_test(the_work_is_at_most_twice_that_of_taesd),
        cmocka_unit_test(files_are_small_and_have_a_card),
        cmocka_unit_test(hashes_are_those_of_the_manifest),
        cmocka_unit_test(calibrations_fit),
        cmocka_unit_test(an_image_comes_back),
    };
    for (int k = 0; k < 2; k++) {
        char *path = NULL;
        if (fkt_codec_weights_path(&path, names[k], NULL) != FKT_OK) {
            printf("skipped: %s\n", fkt_error_text());
            return 77;
        }
        snprintf(place[k], sizeof place[k], "%s", path);
        fkt_free(path);
    }
    return cmocka_run_group_tests(tests, begin, end);
}
