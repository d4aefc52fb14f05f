/* SPDX-License-Identifier: Apache-2.0 */
/* Memory ends at the 1st, 2nd, 3rd ... allocation while image sets of every format are opened and read, and while
 * records are split and shared out: always FKT_E_NOMEM, never a lost block or file. */
#include "fedkt/image.h"

#include "tests/support/check.h"
#include "tests/support/image_files.h"

#include <dirent.h>
#include <png.h>

static struct scratch dir;
static uint8_t cifar[2 * 3073], idx_images[16 + 8] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2},
                                                idx_labels[10] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};

static size_t open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;
    CHECK(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static int make_sets(void **state)
{
    uint8_t samples[12 * 9 * 4], *png, *plain;
    size_t len, plain_len;
    (void)state;
    scratch_init(&dir);
    for (size_t i = 0; i < sizeof samples; i++) samples[i] = (uint8_t)(i * 3);
    png = image_png(&len, samples, 12, 9, PNG_COLOR_TYPE_RGB_ALPHA, 8, 1, 0);
    plain = image_plain(&plain_len, 5, 7, 1, 2, 3);
    {
        const struct packed_file files[] = {{"set/train/cat/1.png", png, len},
                                            {"set/train/dog/x/2.png", plain, plain_len}};
        const struct packed_file web[] = {
            {"1.png", png, len}, {"1.cls", "1", 1}, {"2.json", "{\"label\": 0}", 12}, {"2.png", plain, plain_len}};
        scratch_write(&dir, "folder/cat/1.png", png, len);
        scratch_write(&dir, "folder/dog/x/2.png", plain, plain_len);
        scratch_archive(&dir, "plain.tar", "pax", "none", files, 2);
        scratch_archive(&dir, "packed.tar.gz", "ustar", "gzip", files, 2);
        scratch_write(&dir, "shards/classes.json", "[\"a\",\"b\"]", 9);
        scratch_archive(&dir, "shards/train-0.tar", "ustar", "none", web, 4);
        scratch_archive(&dir, "shards/train-1.tar", "ustar", "none", web, 4);
    }
    cifar[0] = 3;
    scratch_write(&dir, "cifar/data_batch_1.bin", cifar, sizeof cifar);
    scratch_write(&dir, "cifar/batches.meta.txt", "a\nb\nc\nd\n", 8);
    scratch_write(&dir, "mnist/train-images-idx3-ubyte", idx_images, sizeof idx_images);
    scratch_write(&dir, "mnist/train-labels-idx1-ubyte", idx_labels, sizeof idx_labels);
    free(png);
    free(plain);
    return 0;
}

static int drop_sets(void **state)
{
    (void)state;
    scratch_release(&dir);
    return 0;
}

static fkt_status open_and_read(const char *path, const struct fkt_dataset_options *o)
{
    struct fkt_dataset *ds = NULL;
    uint8_t rgb[6 * 6 * 3];
    fkt_status st = fkt_dataset_open(&ds, path, o);
    for (size_t i = 0; st == FKT_OK && i < fkt_dataset_size(ds); i++)
        st = fkt_dataset_read(ds, i, 6, FKT_FILTER_BICUBIC, rgb, NULL);
    CHECK(st == FKT_OK || !ds || fkt_dataset_size(ds) > 0);
    fkt_dataset_free(ds);
    return st;
}

/* Fails allocation n = 1, 2, ... until the whole goes through; json_* has its own memory, which is not touched. */
static void sweep_set(const char *path, const struct fkt_dataset_options *o)
{
    size_t live = fkt_alloc_live(), files = open_files(), n = 1;
    for (;; n++) {
        fkt_status st;
        fkt_alloc_fault_at(n, n % 2 == 0);
        st = open_and_read(path, o);
        fkt_alloc_fault_at(0, 0);
        CHECK(fkt_alloc_live() == live && open_files() == files);
        if (st == FKT_OK) break;
        if (st != FKT_E_NOMEM)
            fail_msg("'%s', allocation %zu: %s (%s)", path, n, fkt_status_name(st), fkt_error_text());
        CHECK(n < 10000);
    }
    CHECK(n > 5);
}

static void sets_survive(void **state)
{
    static const char *const sets[] = {"folder", "plain.tar", "packed.tar.gz", "shards", "cifar", "mnist"};
    static const char *const classes[] = {"zebra", "dog", "cat", "b", "a", "c", "d", "0", "1"};
    const struct fkt_dataset_options wishes = {.classes = classes, .n_classes = 9, .limit = 1}, none = {0};
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const char *path = scratch_path(&dir, sets[i]);
        sweep_set(path, &none);
        sweep_set(path, &wishes);
    }
    sweep_set(FKT_TEST_VECTORS "/images/deflated.npz", &none);
}

static fkt_status share_out(enum fkt_partition_rule rule)
{
    uint32_t labels[200], owner[200];
    uint64_t keys[200];
    uint8_t held[200];
    struct fkt_partition_spec s = {.rule = rule, .alpha = 1, .k = 2, .sites = 4, .seed = 1};
    fkt_status st;
    for (uint32_t i = 0; i < 200; i++) {
        labels[i] = i % 5;
        keys[i] = i;
    }
    st = fkt_partition(owner, labels, keys, 200, 5, &s);
    return st == FKT_OK ? fkt_split_stratified(held, labels, 200, 5, 0.5, 1) : st;
}

static void partitions_survive(void **state)
{
    (void)state;
    for (int rule = FKT_PARTITION_IID; rule <= FKT_PARTITION_PATHOLOGICAL; rule++) {
        size_t n = 1;
        for (;; n++) {
            fkt_status st;
            fkt_alloc_fault_at(n, 0);
            st = share_out((enum fkt_partition_rule)rule);
            fkt_alloc_fault_at(0, 0);
            CHECK(fkt_alloc_live() == 0);
            if (st == FKT_OK) break;
            CHECK(st == FKT_E_NOMEM && n < 100);
        }
        CHECK(n > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sets_survive), cmocka_unit_test(partitions_survive)};
    return cmocka_run_group_tests(tests, make_sets, drop_sets);
}
