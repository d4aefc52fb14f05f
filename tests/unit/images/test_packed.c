/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of equal, uncompressed images: CIFAR binary, MNIST idx, MedMNIST npz (the latter as NumPy itself writes them).
 */
#include "tests/support/opened_set.h"
#include "tests/support/image_files.h"

#include <unistd.h>
#include <zlib.h>

static uint8_t cifar[3 * 3074];

/* Records with labels a, b, c; pixel i of record r is (r*50 + plane*10 + i%7). */
static void make_cifar(int skip, int a, int b, int c)
{
    const int labels[3] = {a, b, c};
    for (int r = 0; r < 3; r++) {
        uint8_t *p = cifar + r * (3072 + skip);
        p[0] = 19;
        p[skip - 1] = (uint8_t)labels[r];
        for (int i = 0; i < 3072; i++) p[skip + i] = (uint8_t)(r * 50 + i / 1024 * 10 + i % 1024 % 7);
    }
}

static void check_cifar(size_t i, int r)
{
    uint8_t rgb[32 * 32 * 3];
    unsigned note = 77;
    CHECK_OK(fkt_dataset_read(ds, i, 32, FKT_FILTER_BILINEAR, rgb, &note));
    CHECK(note == 0);
    for (int p = 0; p < 1024; p++)
        for (int c = 0; c < 3; c++) CHECK(rgb[3 * p + c] == r * 50 + c * 10 + p % 7);
}

static void cifar10_is_read(void **state)
{
    (void)state;
    make_cifar(1, 9, 0, 3);
    scratch_write(&dir, "c/data_batch_1.bin", cifar, 3 * 3073);
    scratch_write(&dir, "c/data_batch_5.bin", cifar, 3073);
    scratch_write(&dir, "c/test_batch.bin", cifar + 3073, 2 * 3073);
    CHECK_OK(reopen("c"));
    assert_string_equal(fkt_dataset_format(ds), "CIFAR-10 binary");
    CHECK(fkt_dataset_size(ds) == 4 && fkt_dataset_classes(ds) == 10);
    CHECK(fkt_dataset_label(ds, 0) == 9 && fkt_dataset_label(ds, 2) == 3 && fkt_dataset_label(ds, 3) == 9);
    check_cifar(1, 1);
    check_cifar(3, 0);
    CHECK(strstr(fkt_dataset_name(ds, 2), "data_batch_1.bin[2]"));
    opt.split = "test";
    scratch_write(&dir, "c/batches.meta.txt",
                  "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n", 62);
    CHECK_OK(reopen("c"));
    CHECK(fkt_dataset_size(ds) == 2 && fkt_dataset_label(ds, 0) == 0);
    assert_string_equal(fkt_dataset_class(ds, 9), "truck");
    check_cifar(1, 2);
    opt.split = NULL;
    CHECK_OK(reopen("c/data_batch_1.bin"));
    CHECK(fkt_dataset_size(ds) == 3);
    assert_string_equal(fkt_dataset_class(ds, 0), "airplane");
    scratch_write(&dir, "c/batches.meta.txt", "a\nb\na\n", 6);
    CHECK_STATUS(reopen("c"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "class 'a' is listed twice"));
    make_cifar(1, 9, 10, 3);
    scratch_write(&dir, "c/data_batch_2.bin", cifar, 3 * 3073);
    scratch_write(&dir, "c/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", 20);
    CHECK_STATUS(reopen("c"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "data_batch_2.bin[1]' has the label 10, out of range"));
    scratch_write(&dir, "c/data_batch_2.bin", cifar, 3 * 3073 - 1);
    CHECK_STATUS(reopen("c"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "data_batch_2.bin' is truncated"));
}

static void cifar100_is_read(void **state)
{
    (void)state;
    make_cifar(2, 99, 0, 42);
    scratch_write(&dir, "c/train.bin", cifar, 3 * 3074);
    scratch_write(&dir, "odd", cifar, 2 * 3074);
    CHECK_OK(reopen("c"));
    assert_string_equal(fkt_dataset_format(ds), "CIFAR-100 binary");
    CHECK(fkt_dataset_classes(ds) == 100 && fkt_dataset_label(ds, 0) == 99 && fkt_dataset_label(ds, 2) == 42);
    check_cifar(2, 2);
    CHECK_OK(reopen("odd")); /* known by its size alone */
    CHECK(fkt_dataset_size(ds) == 2 && fkt_dataset_label(ds, 0) == 99);
    scratch_write(&dir, "c/test_batch.bin", cifar, 3073);
    CHECK_STATUS(reopen("c"), FKT_E_FORMAT);
}

enum { IMAGES = 16 + 5 * 4 * 3, LABELS = 8 + 5 };
static uint8_t idx_images[IMAGES] = {0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 3},
               idx_labels[LABELS] = {0, 0, 8, 1, 0, 0, 0, 5, 4, 0, 1, 1, 7};

static void write_gz(const char *name, const uint8_t *data, unsigned len)
{
    gzFile f = gzopen(scratch_path(&dir, name), "wb");
    CHECK(f && gzwrite(f, data, len) == (int)len && gzclose(f) == Z_OK);
}

static void idx_pairs_are_read(void **state)
{
    static const char *const words[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    uint8_t rgb[3 * 3 * 3];
    unsigned note;
    (void)state;
    for (int i = 16; i < IMAGES; i++) idx_images[i] = (uint8_t)i;
    scratch_write(&dir, "m/train-images-idx3-ubyte", idx_images, IMAGES);
    scratch_write(&dir, "m/train-labels-idx1-ubyte", idx_labels, LABELS);
    write_gz("m/t10k-images-idx3-ubyte.gz", idx_images, IMAGES);
    write_gz("m/t10k-labels-idx1-ubyte.gz", idx_labels, LABELS);
    CHECK_OK(reopen("m"));
    assert_string_equal(fkt_dataset_format(ds), "MNIST idx");
    CHECK(fkt_dataset_size(ds) == 5 && fkt_dataset_classes(ds) == 8 && fkt_dataset_label(ds, 4) == 7);
    CHECK_OK(
        fkt_dataset_read(ds, 2, 3, FKT_FILTER_BILINEAR, rgb, &note)); /* 3 wide, 4 high: cropped at round(0.5) = 0 */
    CHECK(note == (FKT_IMAGE_WAS_GREY | FKT_IMAGE_RESIZED));
    for (int i = 0; i < 9; i++) CHECK(rgb[3 * i] == 16 + 24 + i && rgb[3 * i + 2] == rgb[3 * i]);
    opt.split = "test";
    opt.classes = words;
    opt.n_classes = 8;
    CHECK_OK(reopen("m"));
    CHECK(fkt_dataset_size(ds) == 5 && strstr(fkt_dataset_name(ds, 3), "t10k-images-idx3-ubyte.gz[3]"));
    assert_string_equal(fkt_dataset_class(ds, 7), "h");
    opt.n_classes = 7;
    CHECK_STATUS(reopen("m"), FKT_E_MISMATCH);
    opt.classes = NULL;
    opt.split = NULL;
    CHECK_OK(reopen("m/train-images-idx3-ubyte"));
    CHECK(fkt_dataset_size(ds) == 5);
    CHECK_OK(reopen("m/t10k-images-idx3-ubyte.gz"));
    CHECK(fkt_dataset_size(ds) == 5);
    scratch_write(&dir, "m/train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x04\1\1\1\1", 12);
    CHECK_STATUS(reopen("m"), FKT_E_MISMATCH);
    scratch_write(&dir, "m/train-images-idx3-ubyte", idx_images, IMAGES - 1);
    CHECK_STATUS(reopen("m"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "train-images-idx3-ubyte' is truncated"));
    scratch_write(&dir, "m/train-images-idx3-ubyte", "\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                  16);
    CHECK_STATUS(reopen("m"), FKT_E_FORMAT);
}

/* No images of 16384 x 16384: the size is a lie before there is anything to read. */
static void huge_images_are_refused(void **state)
{
    (void)state;
    scratch_write(&dir, "m/train-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\0\0\0\x40\0\0\0\x40\0", 16);
    scratch_write(&dir, "m/train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\0", 8);
    CHECK_STATUS(reopen("m"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "train-images-idx3-ubyte': the images are 16384 x 16384 pixels") &&
          strstr(fkt_error_text(), "67108864 in all"));
    scratch_write(&dir, "m/train-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\0\0\0\x40\0\0\0\x10\0", 16);
    CHECK_STATUS(reopen("m"), FKT_E_FORMAT); /* 2^26 pixels are fine, but there are no images */
    CHECK(strstr(fkt_error_text(), "holds no images"));
}

static void numpys_npz_is_read(void **state)
{
    static const char *const files[] = {FKT_TEST_VECTORS "/images/stored.npz", FKT_TEST_VECTORS "/images/deflated.npz"};
    static const struct {
        const char *split;
        size_t n, shift;
    } splits[] = {{"train", 7, 0}, {"val", 3, 1}, {"test", 4, 2}};
    uint8_t want[9 * 9 * 3], rgb[9 * 9 * 3];
    (void)state;
    image_draw(want, 9, 9);
    for (size_t f = 0; f < 2; f++)
        for (size_t s = 0; s < 3; s++) {
            opt.split = splits[s].split;
            CHECK_OK(reopen_path(files[f]));
            assert_string_equal(fkt_dataset_format(ds), "MedMNIST npz");
            CHECK(fkt_dataset_size(ds) == splits[s].n && fkt_dataset_classes(ds) == 3);
            for (size_t j = 0; j < splits[s].n; j++) {
                CHECK(fkt_dataset_label(ds, j) == (j + splits[s].shift) % 3);
                CHECK_OK(fkt_dataset_read(ds, j, 9, FKT_FILTER_BILINEAR, rgb, NULL));
                for (size_t i = 0; i < sizeof rgb; i++) CHECK(rgb[i] == want[i] / (1 + splits[s].shift + j));
            }
        }
}

/* A .npy in memory: version 1 or 2, header text, data. */
static struct packed_file npy(const char *name, uint8_t *buf, int version, const char *header, const void *data,
                              size_t n)
{
    size_t len = strlen(header), at = version == 1 ? 10 : 12;
    memcpy(buf, "\x93NUMPY", 6);
    buf[6] = (uint8_t)version;
    memset(buf + 7, 0, 5);
    buf[8] = (uint8_t)(len & 255);
    buf[9] = (uint8_t)(len >> 8);
    memcpy(buf + at, header, len);
    memcpy(buf + at + len, data, n);
    return (struct packed_file){name, buf, at + len + n};
}

static fkt_status open_npz(int version, const char *images, const void *pixels, size_t n_pixels, const char *labels,
                           const void *values, size_t n_values)
{
    uint8_t a[4096], b[4096];
    struct packed_file files[3] = {npy("test_images.npy", a, version, images, pixels, n_pixels),
                                   npy("test_labels.npy", b, version, labels, values, n_values),
                                   {"other.npy", "x", 1}};
    scratch_write(&dir, "m/README.md", "x", 1);
    scratch_archive(&dir, "m/dataset.npz", "zip", version == 1 ? "store" : "deflate", files, 3);
    return reopen("m");
}

#define GREY "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 2), }"
#define PIXELS "\1\2\3\4\5\6\7\x8", 8

static void labels_of_many_types(void **state)
{
    static const char *const words[] = {"cow", "dog"};
    uint8_t rgb[12];
    (void)state;
    CHECK_OK(open_npz(1, GREY, PIXELS, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
                      "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
    CHECK(fkt_dataset_label(ds, 0) == 1 && fkt_dataset_label(ds, 1) == 0 && fkt_dataset_classes(ds) == 2);
    CHECK_OK(fkt_dataset_read(ds, 1, 2, FKT_FILTER_BOX, rgb, NULL));
    CHECK(rgb[0] == 5 && rgb[11] == 8);
    CHECK_OK(open_npz(2, GREY, PIXELS, "{'descr':'>u2','fortran_order':False,'shape':(2,1)}", "\1\2\0\1", 4));
    CHECK(fkt_dataset_label(ds, 0) == 258 && fkt_dataset_label(ds, 1) == 1 && fkt_dataset_classes(ds) == 259);
    CHECK_OK(open_npz(2, GREY, PIXELS, "{'descr':'|b1','fortran_order':False,'shape':(2,1)}", "\1\0", 2));
    CHECK_OK(open_npz(2, "{'descr':'|u1','fortran_order':False,'shape':(2,1,1,3)}", "\1\2\3\4\5\6", 6,
                      "{'descr':'|i1','fortran_order':False,'shape':(2,1)}", "\1\0", 2));
    CHECK_OK(fkt_dataset_read(ds, 1, 1, FKT_FILTER_BOX, rgb, NULL));
    CHECK(rgb[0] == 4 && rgb[2] == 6);
    scratch_write(&dir, "m/classes.json", "[\"dog\", \"cow\"]", 14);
    CHECK_OK(reopen("m"));
    assert_string_equal(fkt_dataset_class(ds, 0), "dog");
    opt.classes = words;
    opt.n_classes = 2;
    CHECK_OK(reopen("m")); /* by name, now that there are names */
    CHECK(fkt_dataset_label(ds, 0) == 0);
}

static void odd_npz_is_refused(void **state)
{
    static const struct {
        const char *images, *labels, *why;
        size_t n_labels;
    } cases[] = {
        {GREY, "{'descr':'|i1','fortran_order':False,'shape':(2,)}", "a label is negative", 2},
        {GREY, "{'descr':'|u1','fortran_order':False,'shape':(3,)}", "2 images but 3 labels", 3},
        {GREY, "{'descr':'|u1','fortran_order':False,'shape':(2,3)}", "3 labels per image", 6},
        {GREY, "{'descr':'<f8','fortran_order':False,'shape':(2,)}", "are not integers", 16},
        {GREY, "{'descr':'|u1','fortran_order':False,'shape':(9,)}", "shape and its size disagree", 2},
        {GREY, "{'descr':'|u1','fortran_order':False,'shape':(18446744073709551615,)}", "invalid shape", 2},
        {GREY, "{'descr':'|O','fortran_order':False,'shape':(2,)}", "unknown type", 2},
        {GREY, "{'descr':'<U21','fortran_order':False,'shape':(2,)}", "unknown type", 2},
        {GREY, "{'descr':'|u1','fortran_order':True,'shape':(2,)}", "Fortran order", 2},
        {GREY, "{'descr':'|u1','fortran_order':False,'shape':(2", "invalid shape", 0},
        {GREY, "nothing of the kind", "no element type", 2},
        {"{'descr':'|u1','fortran_order':False,'shape':(2,1,1,4)}",
         "{'descr':'|u1','fortran_order':False,'shape':(2,)}", "is not uint8 of shape", 2},
        {"{'descr':'<u2','fortran_order':False,'shape':(2,2,1)}", "{'descr':'|u1','fortran_order':False,'shape':(2,)}",
         "is not uint8 of shape", 2},
        {"{'descr':'|u1','fortran_order':False,'shape':(2,4,0)}", "{'descr':'|u1','fortran_order':False,'shape':(2,)}",
         "disagree", 2},
        {"{'descr':'|u1','fortran_order':False,'shape':(4294967296,4294967296,8)}",
         "{'descr':'|u1','fortran_order':False,'shape':(2,)}", "disagree", 2},
        {GREY, "{'descr':'|u1','fortran_order':False,'shape':(4294967296,4294967296,0)}", "disagree", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_STATUS(open_npz(1, cases[i].images, PIXELS, cases[i].labels,
                              "\xff\xff\xff\xff\xff\xff\xff\xff\1\1\1\1\1\1\1\1", cases[i].n_labels),
                     i == 1 ? FKT_E_MISMATCH : FKT_E_FORMAT);
        if (!strstr(fkt_error_text(), cases[i].why))
            fail_msg("case %zu: '%s' does not say '%s'", i, fkt_error_text(), cases[i].why);
    }
    CHECK_OK(open_npz(2, GREY, PIXELS, "{'descr':'|u1','fortran_order':False,'shape':(2,)}", "\1\1", 2));
    for (off_t cut = 400; cut > 0; cut -= 7) {
        CHECK(truncate(scratch_path(&dir, "m/dataset.npz"), cut) == 0);
        CHECK_STATUS(reopen("m"), FKT_E_FORMAT);
    }
    scratch_archive(&dir, "empty.npz", "zip", "store", &(struct packed_file){"a.npy", "x", 1}, 1);
    CHECK_STATUS(reopen("empty.npz"), FKT_E_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(cifar10_is_read),         T(cifar100_is_read),   T(idx_pairs_are_read),
                                       T(huge_images_are_refused), T(numpys_npz_is_read), T(labels_of_many_types),
                                       T(odd_npz_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
