/* SPDX-License-Identifier: Apache-2.0 */
/* What the exporter writes, the reader reads: the same images, labels and class names in each of the three formats. */
#include "fedkt/image.h"

#include "tests/support/check.h"
#include "tests/support/scratch.h"

enum { S = 32, BYTES = S * S * 3 };

static struct fkt_dataset *demo;

static void write_split(const char *path, enum fkt_export_format format, const char *split, const char *const *classes,
                        size_t first, size_t n)
{
    struct fkt_export *e = NULL;
    uint8_t rgb[BYTES];
    CHECK_OK(fkt_export_open(&e, path, format, split, classes, fkt_dataset_classes(demo), S, n));
    for (size_t i = first; i < first + n; i++) {
        CHECK_OK(fkt_dataset_read(demo, i, S, FKT_FILTER_BOX, rgb, NULL));
        CHECK_OK(fkt_export_add(e, fkt_dataset_label(demo, i), rgb));
    }
    CHECK_OK(fkt_export_close(&e));
}

/* A sum over (class name, pixels) that does not depend on the order of the records: ImageFolder is sorted, the others
 * are not. */
static uint64_t content(const struct fkt_dataset *ds, size_t first, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = first; i < first + n; i++) {
        uint8_t rgb[BYTES];
        uint64_t h = 0xcbf29ce484222325U;
        CHECK_OK(fkt_dataset_read(ds, i, S, FKT_FILTER_BOX, rgb, NULL));
        for (const char *c = fkt_dataset_class(ds, fkt_dataset_label(ds, i)); *c; c++)
            h = (h ^ (uint8_t)*c) * 0x100000001b3U;
        for (size_t p = 0; p < BYTES; p++) h = (h ^ rgb[p]) * 0x100000001b3U;
        sum += h;
    }
    return sum;
}

static void exports_come_back(void **state)
{
    static const char *const formats[] = {"ImageFolder", "MedMNIST npz", "WebDataset"};
    const char *classes[64];
    (void)state;
    CHECK_OK(fkt_dataset_open(&demo, "demo:train", NULL));
    CHECK(fkt_dataset_size(demo) >= 60 && fkt_dataset_classes(demo) <= 64);
    for (size_t k = 0; k < fkt_dataset_classes(demo); k++) classes[k] = fkt_dataset_class(demo, k);
    for (int f = FKT_EXPORT_FOLDER; f <= FKT_EXPORT_WEBDATASET; f++) {
        struct fkt_dataset *ds = NULL;
        struct scratch dir;
        scratch_init(&dir);
        write_split(dir.dir, (enum fkt_export_format)f, "train", classes, 0, 60);
        CHECK_OK(fkt_dataset_open(&ds, dir.dir, NULL));
        assert_string_equal(fkt_dataset_format(ds), formats[f]);
        CHECK(fkt_dataset_size(ds) == 60 && fkt_dataset_classes(ds) == fkt_dataset_classes(demo));
        CHECK(content(ds, 0, 60) == content(demo, 0, 60));
        fkt_dataset_free(ds);
        scratch_release(&dir);
    }
    fkt_dataset_free(demo);
}

static void demo_is_a_set_like_others(void **state)
{
    const struct fkt_dataset_options o = {.limit = 25};
    struct fkt_dataset *ds = NULL;
    (void)state;
    CHECK_OK(fkt_dataset_open(&ds, "demo:test", &o));
    CHECK(fkt_dataset_size(ds) == 25);
    fkt_dataset_free(ds);
    CHECK_STATUS(fkt_dataset_open(&ds, "demo:nothing", NULL), FKT_E_ARG);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exports_come_back),
                                       cmocka_unit_test(demo_is_a_set_like_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
