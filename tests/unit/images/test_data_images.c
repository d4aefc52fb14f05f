/* SPDX-License-Identifier: Apache-2.0 */
/* Real photographs from the tars under FEDKT_DATA: the counts are right, and the pixels are Pillow's to the last bit,
 * after decoding, scaling and cropping. Skips without FEDKT_DATA, or without Pillow. */
#include "base/file.h"
#include "fedkt/image.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <unistd.h>

#define ORACLE FKT_TEST_VECTORS "/../../oracle/resize.py"
#define PYTHON "/usr/bin/python3"

static const char *data_dir;

static struct fkt_dataset *open_data(const char *name, const char *split)
{
    struct fkt_dataset *ds = NULL;
    struct fkt_dataset_options o = {.split = split};
    char *path = NULL;
    CHECK_OK(fkt_path_join(&path, data_dir, name));
    CHECK_OK(fkt_dataset_open(&ds, path, &o));
    fkt_free(path);
    return ds;
}

static void counts_are_right(void **state)
{
    static const struct {
        const char *file, *split;
        size_t n, classes;
    } sets[] = {{"eurosat.tar", NULL, 27000, 10},       {"imagenette64.tar", "train", 9469, 10},
                {"imagenette64.tar", "val", 3925, 10},  {"tiny-imagenet-12k.tar", NULL, 12000, 200},
                {"cifar10.tar.xz", "train", 50000, 10}, {"cifar10.tar.xz", "test", 10000, 10}};
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct fkt_dataset *ds = open_data(sets[i].file, sets[i].split);
        CHECK(fkt_dataset_size(ds) == sets[i].n && fkt_dataset_classes(ds) == sets[i].classes);
        assert_string_equal(fkt_dataset_format(ds), "tar of ImageFolder");
        fkt_dataset_free(ds);
    }
}

/* Every step-th record of the set against the oracle's bytes. */
static void compare(const char *file, uint32_t size, enum fkt_filter filter, const char *filter_name, size_t step)
{
    struct fkt_dataset *ds = open_data(file, NULL);
    struct scratch dir;
    const char *names, *raw;
    char *command = NULL;
    size_t bytes = (size_t)size * size * 3, seen = 0;
    uint8_t *got = malloc(bytes), *want = malloc(bytes);
    FILE *f;
    scratch_init(&dir);
    names = scratch_path(&dir, "names");
    raw = scratch_path(&dir, "raw");
    f = fopen(names, "w");
    CHECK(f && got && want);
    for (size_t i = 0; i < fkt_dataset_size(ds); i += step)
        fprintf(f, "%s\n", strrchr(fkt_dataset_name(ds, i), ':') + 1);
    fclose(f);
    CHECK(asprintf(&command, PYTHON " '" ORACLE "' tar '%s/%s' %u %s < '%s' > '%s'", data_dir, file, size, filter_name,
                   names, raw) > 0);
    CHECK(system(command) == 0);
    f = fopen(raw, "rb");
    CHECK(f);
    for (size_t i = 0; i < fkt_dataset_size(ds); i += step, seen++) {
        CHECK_OK(fkt_dataset_read(ds, i, size, filter, got, NULL));
        CHECK(fread(want, 1, bytes, f) == bytes);
        if (memcmp(got, want, bytes))
            fail_msg("'%s' at %u pixels, %s: not Pillow's pixels", fkt_dataset_name(ds, i), size, filter_name);
    }
    CHECK(seen >= 40);
    fclose(f);
    free(got), free(want), free(command);
    scratch_release(&dir);
    fkt_dataset_free(ds);
}

static void pixels_are_pillows(void **state)
{
    (void)state;
    if (system(PYTHON " -c 'import PIL, numpy' 2>/dev/null") != 0) skip();
    compare("eurosat.tar", 64, FKT_FILTER_BILINEAR, "bilinear", 540);
    compare("eurosat.tar", 32, FKT_FILTER_BILINEAR, "bilinear", 540);
    compare("eurosat.tar", 50, FKT_FILTER_LANCZOS, "lanczos", 540);
    compare("imagenette64.tar", 32, FKT_FILTER_BICUBIC, "bicubic", 200);
    compare("imagenette64.tar", 128, FKT_FILTER_BICUBIC, "bicubic", 200);
    compare("imagenette64.tar", 33, FKT_FILTER_BOX, "box", 200);
    compare("tiny-imagenet-12k.tar", 32, FKT_FILTER_LANCZOS, "lanczos", 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_right), cmocka_unit_test(pixels_are_pillows)};
    data_dir = getenv("FEDKT_DATA");
    if (!data_dir || !*data_dir) {
        puts("FEDKT_DATA is not set: skipped");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
