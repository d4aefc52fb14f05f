/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/rng.h"
#include "fedkt/image.h"
#include "images/export.h"
#include "tests/support/check.h"

#include <archive.h>
#include <archive_entry.h>
#include <ftw.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 8, PIXELS = SIZE * SIZE * 3, TOTAL = 23 };
static const char *const classes[] = {"cat", "a/b", "..", "caf\xc3\xa9 \"x\""};

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw)
{
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void temp_folder(char *path, size_t cap)
{
    snprintf(path, cap, "/tmp/fkt_export_XXXXXX");
    CHECK(mkdtemp(path));
}
static void remove_folder(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static void image(uint8_t *rgb, size_t i)
{
    struct fkt_rng r;
    fkt_rng_init(&r, 77, i);
    for (size_t k = 0; k < PIXELS; k++) rgb[k] = (uint8_t)fkt_rng_below(&r, 256);
}
static uint32_t label_of(size_t i) { return (uint32_t)(i * 7 % 4); }

static void write_set(const char *path, enum fkt_export_format format, const char *split, size_t total)
{
    struct fkt_export *e = NULL;
    uint8_t rgb[PIXELS];
    CHECK_OK(fkt_export_open(&e, path, format, split, classes, 4, SIZE, total));
    for (size_t i = 0; i < total; i++) {
        image(rgb, i);
        CHECK_OK(fkt_export_add(e, label_of(i), rgb));
    }
    CHECK_OK(fkt_export_close(&e));
    CHECK(e == NULL);
}

static uint8_t *slurp(const char *folder, const char *name, size_t *len)
{
    char path[256];
    uint8_t *bytes = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(fkt_file_read(&bytes, len, path, 1 << 28));
    return bytes;
}

static int have_python(void) { return system("/usr/bin/python3 -c 'import numpy, PIL' 2>/dev/null") == 0; }

static int python(const char *folder, const char *script)
{
    char command[4096];
    snprintf(command, sizeof command, "cd '%s' && /usr/bin/python3 -c \"%s\"", folder, script);
    return system(command);
}

static void names_become_safe_and_unique(void **state)
{
    static const char *const in[] = {"cat",         "a/b", "a_b",      "",     "..",        ".hidden",
                                     "-rf",         "CON", "Cat",      "x.",   "tab\there", "bad\xff",
                                     "caf\xc3\xa9", "a:b", "lpt1.txt", "class"};
    static const char *const want[] = {"cat",         "a_b",       "a_b_2",          "class",  "class_2",  "_hidden",
                                       "_rf",         "class_CON", "Cat_2",          "x",      "tab_here", "bad_",
                                       "caf\xc3\xa9", "a_b_3",     "class_lpt1.txt", "class_3"};
    enum { N = sizeof in / sizeof *in };
    char longer[400], **out = NULL;
    const char *both[2] = {longer, longer};
    (void)state;
    CHECK_OK(fkt_safe_names(&out, in, N));
    for (size_t i = 0; i < N; i++) assert_string_equal(out[i], want[i]);
    fkt_safe_names_free(out, N);
    for (size_t i = 0; i < sizeof longer - 1; i++) longer[i] = "\xc3\xa9"[i % 2];
    longer[sizeof longer - 1] = '\0';
    CHECK_OK(fkt_safe_names(&out, both, 2));
    CHECK(strlen(out[0]) == 100 && strlen(out[1]) == 102 && fkt_utf8_length(out[0] + 98) == 2);
    fkt_safe_names_free(out, 2);
}

/* As many classes as an export may have, all alike: cubic work would take hours here, so that a hang is the failure. */
static void many_equal_names_are_quick(void **state)
{
    enum { N = 65536 };
    const char **in = malloc(N * sizeof *in);
    char **out = NULL, want[32];
    (void)state;
    CHECK(in);
    for (size_t i = 0; i < N; i++) in[i] = i % 2 ? "Same" : "same";
    in[5] = "same_3"; /* given to the fourth; this one wants it too */
    in[1] = "same_7";
    CHECK_OK(fkt_safe_names(&out, in, N));
    assert_string_equal(out[0], "same");
    assert_string_equal(out[1], "same_7");
    assert_string_equal(out[2], "same_2");
    assert_string_equal(out[3], "Same_3");
    assert_string_equal(out[5], "same_3_2");
    assert_string_equal(out[7], "Same_6");
    assert_string_equal(out[8], "same_8");
    for (size_t i = 8; i < N; i++) {
        snprintf(want, sizeof want, "%s_%zu", in[i], i);
        assert_string_equal(out[i], want);
    }
    fkt_safe_names_free(out, N);
    free(in);
}

/* torchvision numbers classes by the sorted names of their folders: that order must be ours. */
static void folders_are_in_the_order_of_the_labels(void **state)
{
    static const char *const plain[] = {"cat", "dog", "owl"}, *const other[] = {"owl", "cat", "dog"};
    const char *many[12];
    char **out = NULL;
    (void)state;
    CHECK_OK(fkt_folder_names(&out, plain, 3));
    assert_string_equal(out[2], "owl");
    fkt_safe_names_free(out, 3);
    CHECK_OK(fkt_folder_names(&out, other, 3));
    assert_string_equal(out[0], "0_owl");
    assert_string_equal(out[2], "2_dog");
    fkt_safe_names_free(out, 3);
    for (int k = 0; k < 12; k++) many[k] = k % 2 ? "odd" : "even";
    CHECK_OK(fkt_folder_names(&out, many, 12));
    assert_string_equal(out[2], "02_even_2");
    for (int k = 1; k < 12; k++) CHECK(strcmp(out[k - 1], out[k]) < 0);
    fkt_safe_names_free(out, 12);
    CHECK(fkt_alloc_live() == 0);
}

static void folder_rows_name_every_image(void **state)
{
    char path[64];
    size_t len, png_len, rows = 0;
    uint8_t *bytes, *got, *png, rgb[PIXELS];
    (void)state;
    temp_folder(path, sizeof path);
    write_set(path, FKT_EXPORT_FOLDER, "train", TOTAL);
    write_set(path, FKT_EXPORT_FOLDER, "test", 5);
    bytes = slurp(path, "test/metadata.jsonl", &len);
    for (size_t i = 0; i < len; i++) rows += bytes[i] == '\n';
    CHECK(rows == 5);
    CHECK(strstr(
        (char *)bytes,
        "{\"file_name\": \"3_caf\xc3\xa9 _x_/000001.png\", \"label\": 3, \"class\": \"caf\xc3\xa9 \\\"x\\\"\"}\n"));
    fkt_free(bytes);
    bytes = slurp(path, "train/metadata.jsonl", &len);
    for (size_t i = 0; i < len; i++) rows += bytes[i] == '\n';
    CHECK(rows == TOTAL + 5);
    CHECK(strstr((char *)bytes, "{\"file_name\": \"0_cat/000000.png\", \"label\": 0, \"class\": \"cat\"}\n") ==
          (char *)bytes);
    CHECK(strstr((char *)bytes, "{\"file_name\": \"2_class/000002.png\", \"label\": 2, \"class\": \"..\"}\n"));
    image(rgb, 3);
    CHECK_OK(fkt_png_encode(&png, &png_len, rgb, SIZE, SIZE));
    got = slurp(path, "train/1_a_b/000003.png", &len);
    CHECK(len == png_len && !memcmp(got, png, len));
    fkt_free(got);
    fkt_free(bytes);
    fkt_image_free(png);
    if (have_python())
        CHECK(
            python(path,
                   "import json; from PIL import Image; rows = [json.loads(l) for l in open('train/metadata.jsonl')]; "
                   "names = json.load(open('classes.json')); assert len(names) == 4; "
                   "assert all(Image.open('train/' + r['file_name']).size == (8, 8) and names[r['label']] == "
                   "r['class'] for r "
                   "in rows)") == 0);
    remove_folder(path);
    CHECK(fkt_alloc_live() == 0);
}

static void npz_opens_in_numpy(void **state)
{
    char path[64], name[128];
    FILE *f;
    uint8_t rgb[PIXELS];
    (void)state;
    if (!have_python()) skip();
    temp_folder(path, sizeof path);
    write_set(path, FKT_EXPORT_NPZ, "train", TOTAL);
    snprintf(name, sizeof name, "%s/raw", path);
    f = fopen(name, "wb");
    CHECK(f);
    for (size_t i = 0; i < TOTAL; i++) {
        image(rgb, i);
        CHECK(fwrite(rgb, 1, PIXELS, f) == PIXELS);
    }
    fclose(f);
    CHECK(python(path, "import numpy as np; z = np.load('dataset.npz'); x = z['train_images']; y = z['train_labels']; "
                       "assert sorted(z.files) == ['train_images', 'train_labels'] and x.dtype == y.dtype == np.uint8; "
                       "assert x.shape == (23, 8, 8, 3) and y.shape == (23, 1) and not x.flags.f_contiguous; "
                       "assert (x.ravel() == np.fromfile('raw', np.uint8)).all(); "
                       "assert (y[:, 0] == np.arange(23) * 7 % 4).all()") == 0);
    remove_folder(path);
}

static void many_classes_get_wide_labels(void **state)
{
    char path[64], text[300][8];
    const char *names[300];
    struct fkt_export *e = NULL;
    uint8_t rgb[PIXELS] = {0};
    (void)state;
    if (!have_python()) skip();
    for (int i = 0; i < 300; i++) {
        snprintf(text[i], sizeof text[i], "c%d", i);
        names[i] = text[i];
    }
    temp_folder(path, sizeof path);
    CHECK_OK(fkt_export_open(&e, path, FKT_EXPORT_NPZ, "test", names, 300, SIZE, 2));
    CHECK_OK(fkt_export_add(e, 299, rgb));
    CHECK_OK(fkt_export_add(e, 7, rgb));
    CHECK_OK(fkt_export_close(&e));
    CHECK(python(path, "import numpy as np; y = np.load('dataset.npz')['test_labels']; "
                       "assert y.dtype == np.uint16 and y.tolist() == [[299], [7]]") == 0);
    remove_folder(path);
}

/* 10,001 samples: two shards, keys that count on, ustar headers without the machine in them. */
static void shards_hold_ten_thousand(void **state)
{
    char path[64], name[96], key[32];
    size_t seen = 0;
    (void)state;
    temp_folder(path, sizeof path);
    write_set(path, FKT_EXPORT_WEBDATASET, "train", 10001);
    for (int shard = 0; shard < 2; shard++) {
        struct archive *a = archive_read_new();
        struct archive_entry *entry;
        snprintf(name, sizeof name, "%s/train-%06d.tar", path, shard);
        archive_read_support_format_tar(a);
        CHECK(archive_read_open_filename(a, name, 65536) == ARCHIVE_OK);
        while (archive_read_next_header(a, &entry) == ARCHIVE_OK) {
            char text[16] = "", want[16];
            snprintf(key, sizeof key, "%06zu.%s", seen / 2, seen % 2 ? "cls" : "png");
            assert_string_equal(archive_entry_pathname(entry), key);
            CHECK(archive_entry_mtime(entry) == 315532800 && archive_entry_uid(entry) == 0 &&
                  archive_entry_perm(entry) == 0644);
            if (seen % 2) {
                snprintf(want, sizeof want, "%u", label_of(seen / 2));
                CHECK(archive_read_data(a, text, sizeof text - 1) == (la_ssize_t)strlen(want));
                assert_string_equal(text, want);
            }
            seen++;
        }
        CHECK(archive_format(a) == ARCHIVE_FORMAT_TAR_USTAR);
        archive_read_free(a);
        CHECK(seen == (shard ? 20002 : 20000));
    }
    remove_folder(path);
    CHECK(fkt_alloc_live() == 0);
}

static void bytes_depend_on_the_content_alone(void **state)
{
    static const char *const files[] = {"train/metadata.jsonl", "dataset.npz", "train-000000.tar"};
    (void)state;
    for (int format = 0; format < 3; format++) {
        char a[64], b[64];
        size_t na, nb;
        uint8_t *x, *y;
        temp_folder(a, sizeof a);
        temp_folder(b, sizeof b);
        setenv("TZ", "UTC", 1);
        tzset();
        write_set(a, (enum fkt_export_format)format, "train", TOTAL);
        setenv("TZ", "EAST-14", 1); /* 14 hours east; spelt so that no zone files are needed */
        tzset();
        write_set(b, (enum fkt_export_format)format, "train", TOTAL);
        x = slurp(a, files[format], &na);
        y = slurp(b, files[format], &nb);
        CHECK(na == nb && na > 100 && !memcmp(x, y, na));
        fkt_free(x);
        fkt_free(y);
        remove_folder(a);
        remove_folder(b);
    }
    unsetenv("TZ");
    tzset();
}

/* Several at a time on several threads: the same bytes as one by one, single images of a folder included. */
static void several_images_are_as_one_by_one(void **state)
{
    static const char *const files[] = {"train/metadata.jsonl", "dataset.npz", "train-000000.tar"};
    static uint8_t rgb[TOTAL * PIXELS];
    uint32_t label[TOTAL];
    (void)state;
    for (size_t i = 0; i < TOTAL; i++) {
        image(rgb + i * PIXELS, i);
        label[i] = label_of(i);
    }
    for (int format = 0; format < 3; format++) {
        struct fkt_export *e = NULL;
        char a[64], b[64];
        temp_folder(a, sizeof a);
        temp_folder(b, sizeof b);
        write_set(a, (enum fkt_export_format)format, "train", TOTAL);
        CHECK_OK(fkt_export_open(&e, b, (enum fkt_export_format)format, "train", classes, 4, SIZE, TOTAL));
        for (size_t i = 0, n; i < TOTAL; i += n) {
            n = TOTAL - i < 9 ? TOTAL - i : 9;
            CHECK_OK(fkt_export_add_some(e, label + i, rgb + i * PIXELS, n, 4));
        }
        CHECK_STATUS(fkt_export_add_some(e, label, rgb, 2, 4), FKT_E_STATE); /* more than announced */
        CHECK_OK(fkt_export_close(&e));
        for (size_t i = 0; i < (format ? 1 : 4); i++) {
            const char *name[] = {files[format], "train/0_cat/000012.png", "train/0_cat/000020.png",
                                  "train/0_cat/000000.png"};
            size_t na, nb;
            uint8_t *x = slurp(a, name[i], &na), *y = slurp(b, name[i], &nb);
            CHECK(na == nb && na > 50 && !memcmp(x, y, na));
            fkt_free(x);
            fkt_free(y);
        }
        remove_folder(a);
        remove_folder(b);
    }
}

static void broken_promises_leave_no_file(void **state)
{
    char path[64], name[96];
    struct fkt_export *e = NULL;
    uint8_t rgb[PIXELS] = {0};
    (void)state;
    temp_folder(path, sizeof path);
    CHECK_STATUS(fkt_export_open(&e, path, FKT_EXPORT_NPZ, "dev", classes, 4, SIZE, 2), FKT_E_ARG);
    CHECK_STATUS(fkt_export_open(&e, path, FKT_EXPORT_NPZ, "train", classes, 0, SIZE, 2), FKT_E_ARG);
    CHECK_STATUS(fkt_export_open(&e, path, FKT_EXPORT_NPZ, "train", classes, 4, 0, 2), FKT_E_ARG);
    CHECK_STATUS(fkt_export_open(&e, path, FKT_EXPORT_NPZ, "train", classes, 4, SIZE, 0), FKT_E_ARG);
    CHECK_STATUS(fkt_export_open(&e, path, FKT_EXPORT_NPZ, "train", classes, 4, SIZE, SIZE_MAX), FKT_E_ARG);
    CHECK_STATUS(fkt_export_open(&e, path, (enum fkt_export_format)9, "train", classes, 4, SIZE, 2), FKT_E_ARG);
    CHECK_STATUS(fkt_export_open(&e, "/nonexistent/x", FKT_EXPORT_NPZ, "train", classes, 4, SIZE, 2), FKT_E_IO);
    CHECK_STATUS(fkt_export_open(&e, "/nonexistent/x", FKT_EXPORT_FOLDER, "train", classes, 4, SIZE, 2), FKT_E_IO);
    CHECK(e == NULL);
    for (int format = 0; format < 3; format++) {
        CHECK_OK(fkt_export_open(&e, path, (enum fkt_export_format)format, "train", classes, 4, SIZE, 2));
        CHECK_STATUS(fkt_export_add(e, 4, rgb), FKT_E_ARG);
        CHECK_OK(fkt_export_add(e, 3, rgb));
        CHECK_STATUS(fkt_export_close(&e), FKT_E_STATE);
        CHECK(e == NULL);
    }
    CHECK_OK(fkt_export_open(&e, path, FKT_EXPORT_NPZ, "train", classes, 4, SIZE, 1));
    CHECK_OK(fkt_export_add(e, 0, rgb));
    CHECK_STATUS(fkt_export_add(e, 0, rgb), FKT_E_STATE);
    fkt_export_free(e);
    for (int i = 0; i < 4; i++) {
        static const char *const files[] = {"train/metadata.jsonl", "dataset.npz", "train-000000.tar", "classes.json"};
        snprintf(name, sizeof name, "%s/%s", path, files[i]);
        CHECK(access(name, F_OK) != 0);
    }
    CHECK_STATUS(fkt_export_open(&e, path, FKT_EXPORT_FOLDER, "train", classes, 4, SIZE, 2), FKT_E_EXISTS);
    remove_folder(path);
    CHECK(fkt_alloc_live() == 0);
}

/* A file size limit stands in for a full disk: the write that passes it fails, with the cause in the sentence. */
static void a_full_disk_leaves_no_file(void **state)
{
    static const char *const files[] = {"train/metadata.jsonl", "dataset.npz", "train-000000.tar"};
    struct rlimit old, small;
    (void)state;
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    signal(SIGXFSZ, SIG_IGN);
    for (int format = 0; format < 3; format++) {
        struct fkt_export *e = NULL;
        uint8_t rgb[PIXELS];
        char path[64], name[96];
        fkt_status st = FKT_OK;
        temp_folder(path, sizeof path);
        CHECK_OK(fkt_export_open(&e, path, (enum fkt_export_format)format, "train", classes, 4, SIZE, 600));
        small = (struct rlimit){20000, old.rlim_max};
        CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
        for (size_t i = 0; i < 600 && st == FKT_OK; i++) {
            image(rgb, i);
            st = fkt_export_add(e, 0, rgb);
        }
        if (st == FKT_OK) st = fkt_export_close(&e);
        else CHECK_STATUS(fkt_export_close(&e), FKT_E_STATE);
        CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
        CHECK(st == FKT_E_IO && e == NULL);
        snprintf(name, sizeof name, "%s/%s", path, files[format]);
        CHECK(access(name, F_OK) != 0);
        remove_folder(path);
    }
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_safe_and_unique),
        cmocka_unit_test(many_equal_names_are_quick),
        cmocka_unit_test(folders_are_in_the_order_of_the_labels),
        cmocka_unit_test(folder_rows_name_every_image),
        cmocka_unit_test(npz_opens_in_numpy),
        cmocka_unit_test(many_classes_get_wide_labels),
        cmocka_unit_test(shards_hold_ten_thousand),
        cmocka_unit_test(bytes_depend_on_the_content_alone),
        cmocka_unit_test(several_images_are_as_one_by_one),
        cmocka_unit_test(broken_promises_leave_no_file),
        cmocka_unit_test(a_full_disk_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
