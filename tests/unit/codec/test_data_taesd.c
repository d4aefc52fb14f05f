/* SPDX-License-Identifier: Apache-2.0 */
/* The published TAESD weights on real CIFAR-10 images: encode, decode, and come back as close as is known of them
 * (18.7 dB for taesd, 24.1 dB for taesd3 at 32 pixels). Skips without FEDKT_DATA. */
#include "base/file.h"
#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "tests/support/check.h"

enum { N = 400, SIZE = 32, IMAGE = SIZE * SIZE * 3 };

static const char *data_dir;
static uint8_t rgb[N * IMAGE], back[N * IMAGE];

static void load(void)
{
    struct fkt_dataset_options o = {.split = "test"};
    struct fkt_dataset *ds = NULL;
    char *path = NULL;
    size_t step;
    CHECK_OK(fkt_path_join(&path, data_dir, "cifar10.tar.xz"));
    CHECK_OK(fkt_dataset_open(&ds, path, &o));
    step = fkt_dataset_size(ds) / N;
    for (size_t i = 0; i < N; i++)
        CHECK_OK(fkt_dataset_read(ds, i * step, SIZE, FKT_FILTER_BILINEAR, rgb + i * IMAGE, NULL));
    fkt_dataset_free(ds);
    fkt_free(path);
}

/* From the mean square error over all images, as the known figures are; the mean of each image's own is 1 dB higher. */
static double psnr(void)
{
    double e = 0;
    for (size_t k = 0; k < sizeof rgb; k++) e += pow((double)rgb[k] - back[k], 2);
    return 10 * log10(255.0 * 255.0 * sizeof rgb / e);
}

static void check(const char *name, uint32_t dim, double want)
{
    struct fkt_codec_spec spec = {.name = name, .size = SIZE};
    struct fkt_codec *c = NULL;
    char *path = NULL;
    float *z = malloc(N * (size_t)dim * sizeof *z);
    double got;
    CHECK_OK(fkt_path_join(&path, data_dir, "codecs"));
    spec.settings.weights = path;
    CHECK_OK(fkt_codec_open(&c, &spec));
    CHECK(z && fkt_codec_dim(c) == dim);
    CHECK_OK(fkt_codec_encode(c, rgb, N, z));
    CHECK_OK(fkt_codec_decode(c, z, N, back));
    got = psnr();
    print_message("%s: %.2f dB, %s\n", name, got, fkt_codec_identity(c));
    CHECK_NEAR(got, want, 0.4);
    free(z);
    fkt_free(path);
    fkt_codec_free(c);
}

static void images_come_back(void **state)
{
    (void)state;
    load();
    check("taesd", 64, 18.7);
    check("taesd3", 256, 24.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(images_come_back)};
    data_dir = getenv("FEDKT_DATA");
    if (!data_dir) {
        puts("FEDKT_DATA is not set: skipped");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
