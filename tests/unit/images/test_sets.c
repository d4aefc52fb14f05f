/* SPDX-License-Identifier: Apache-2.0 */
/* Image sets in folders and tars: layout, splits, classes, order, limits, links, damage. */
#include "base/threads.h"
#include "tests/support/opened_set.h"
#include "tests/support/image_files.h"

#include <sys/stat.h>
#include <unistd.h>

/* A 6 x 4 image whose red is `tag`. */
static void put_image(const char *name, uint8_t tag)
{
    size_t len;
    uint8_t *png = image_plain(&len, 6, 4, tag, 10, 20);
    scratch_write(&dir, name, png, len);
    free(png);
}

static uint8_t tag_of(size_t i)
{
    uint8_t rgb[4 * 4 * 3];
    unsigned note = 0;
    CHECK_OK(fkt_dataset_read(ds, i, 4, FKT_FILTER_BILINEAR, rgb, &note));
    CHECK(note == FKT_IMAGE_RESIZED && rgb[1] == 10 && rgb[2] == 20);
    return rgb[0];
}

/* Labels and tags of all records, as "label:tag ...". */
static const char *listing(void)
{
    static char text[1024];
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < fkt_dataset_size(ds); i++)
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s%u:%u", i ? " " : "", fkt_dataset_label(ds, i), tag_of(i));
    return text;
}

static void a_folder_is_sorted(void **state)
{
    const char *inside;
    (void)state;
    put_image("set/dog/b.png", 4);
    put_image("set/dog/a.PNG", 3);
    put_image("set/cat/x/deep.png", 2);
    put_image("set/cat/1.png", 1);
    put_image("set/.hidden/1.png", 9);
    scratch_write(&dir, "set/cat/notes.txt", "x", 1);
    scratch_write(&dir, "set/cat/.DS_Store", "x", 1);
    put_image("set/grid.png", 9);  /* an export's own file: not worth a word */
    put_image("set/loose.png", 9); /* at the root: of no class */
    CHECK_OK(reopen("set"));
    assert_string_equal(listing(), "0:1 0:2 1:3 1:4");
    assert_string_equal(fkt_dataset_format(ds), "ImageFolder");
    assert_string_equal(fkt_dataset_class(ds, 0), "cat");
    CHECK(fkt_dataset_classes(ds) == 2 && fkt_dataset_skipped(ds) == 2);
    CHECK(strstr(fkt_dataset_name(ds, 1), "set/cat/x/deep.png"));
    CHECK(strstr(fkt_dataset_skipped_name(ds, 0), "set/cat/notes.txt"));
    CHECK(strstr(fkt_dataset_skipped_name(ds, 1), "set/loose.png"));
    assert_string_equal(fkt_dataset_skipped_name(ds, 2), "");
    CHECK(fkt_dataset_nested(ds, &inside) == 1 && strstr(inside, "set/cat/x/deep.png"));
}

/* Public images: a folder of files is a set. */
static void images_without_labels_need_no_class_folders(void **state)
{
    (void)state;
    put_image("set/b.png", 2);
    put_image("set/a.png", 1);
    put_image("set/more/c.png", 3);
    put_image("set/grid.png", 9);
    scratch_write(&dir, "set/notes.txt", "x", 1);
    opt.unlabelled = 1;
    CHECK_OK(reopen("set"));
    assert_string_equal(listing(), "0:1 0:2 0:3");
    assert_string_equal(fkt_dataset_class(ds, 0), "unlabelled");
    CHECK(fkt_dataset_classes(ds) == 1 && fkt_dataset_skipped(ds) == 1);
    put_image("classes/cat/1.png", 1); /* where there are class folders, and no image beside them, nothing changes */
    put_image("classes/dog/1.png", 2);
    put_image("classes/grid.png", 9);
    CHECK_OK(reopen("classes"));
    assert_string_equal(listing(), "0:1 1:2");
    opt.unlabelled = 0;
    put_image("flat/a.png", 1);
    CHECK_STATUS(reopen("flat"), FKT_E_FORMAT);
}

static void splits_are_found(void **state)
{
    (void)state;
    put_image("set/train/cat/1.png", 1);
    put_image("set/train/dog/1.png", 2);
    put_image("set/valid/dog/1.png", 3);
    CHECK_OK(reopen("set"));
    assert_string_equal(listing(), "0:1 1:2");
    opt.split = "val";
    CHECK_OK(reopen("set"));
    assert_string_equal(listing(), "1:3"); /* dog keeps its number although val has no cat */
    opt.split = "test";
    CHECK_STATUS(reopen("set"), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "no split 'test', only 'train', 'val'"));
    opt.split = NULL;
    put_image("set/extra/1.png", 5);
    CHECK_STATUS(reopen("set"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "extra/1.png' is outside of the split folders"));
    put_image("plain/train/1.png", 1); /* holds images, so it is a class */
    put_image("plain/test/1.png", 2);
    CHECK_OK(reopen("plain"));
    assert_string_equal(listing(), "0:2 1:1");
    opt.split = "train";
    CHECK_STATUS(reopen("plain"), FKT_E_ARG);
    CHECK(fkt_error_hint()[0]);
    opt.split = NULL;
    put_image("only/test/a/1.png", 7);
    CHECK_OK(reopen("only"));
    assert_string_equal(listing(), "0:7");
}

static void a_class_list_is_obeyed(void **state)
{
    static const char *const list[] = {"dog", "bird", "cat"}, *const short_list[] = {"cat", "cow"};
    (void)state;
    put_image("set/dog/1.png", 1);
    put_image("set/cat/1.png", 2);
    opt.classes = list;
    opt.n_classes = 3;
    CHECK_OK(reopen("set"));
    assert_string_equal(listing(), "0:1 2:2");
    assert_string_equal(fkt_dataset_class(ds, 1), "bird");
    CHECK(fkt_dataset_classes(ds) == 3);
    opt.classes = short_list;
    opt.n_classes = 2;
    CHECK_STATUS(reopen("set"), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "dog/1.png' is of class 'dog'") && fkt_error_hint()[0]);
    opt.n_classes = 0;
    CHECK_STATUS(reopen("set"), FKT_E_ARG);
    opt.classes = NULL;
    scratch_write(&dir, "set/empty/readme.txt", "x", 1);
    CHECK_STATUS(reopen("set"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "class folder 'empty' holds no images"));
    opt.classes = list;
    opt.n_classes = 3;
    CHECK_OK(reopen("set"));
}

static void limit_is_spread_evenly(void **state)
{
    char name[64];
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < (k == 1 ? 2 : 9); i++) {
            snprintf(name, sizeof name, "set/%c/%d.png", 'a' + k, i);
            put_image(name, (uint8_t)(10 * k + i));
        }
    opt.limit = 9; /* b has only two: a and c share the rest, the odd one is a's */
    CHECK_OK(reopen("set"));
    CHECK(fkt_dataset_size(ds) == 9);
    for (size_t i = 0; i < 9; i++) CHECK(fkt_dataset_label(ds, i) == (i < 4 ? 0U : i < 6 ? 1U : 2U));
    for (size_t i = 1; i < 9; i++) CHECK(tag_of(i - 1) < tag_of(i)); /* the order stays */
    opt.limit = 2;
    CHECK_OK(reopen("set"));
    CHECK(fkt_dataset_size(ds) == 2 && fkt_dataset_label(ds, 0) == 0 && fkt_dataset_label(ds, 1) == 1);
    opt.limit = 100;
    CHECK_OK(reopen("set"));
    CHECK(fkt_dataset_size(ds) == 20);
}

static void loops_of_links_end(void **state)
{
    const char *a = scratch_path(&dir, "set/cat/loop"), *b = scratch_path(&dir, "set/up"),
               *c = scratch_path(&dir, "set/dog"), *d = scratch_path(&dir, "set/cat/gone.png"),
               *e = scratch_path(&dir, "elsewhere"), *f = scratch_path(&dir, "set/cat/2.png"),
               *fifo = scratch_path(&dir, "set/cat/pipe.png"), *g = scratch_path(&dir, "set/cat/sub/more");
    uint8_t rgb[48];
    (void)state;
    put_image("set/cat/1.png", 1);
    put_image("elsewhere/1.png", 3);
    CHECK(symlink("..", a) == 0 && symlink(".", b) == 0 && symlink(e, c) == 0 && symlink("nowhere", d) == 0);
    CHECK(symlink("1.png", f) == 0 && mkfifo(fifo, 0600) == 0);
    scratch_write(&dir, "set/cat/sub/readme.txt", "x", 1);
    CHECK(symlink(e, g) == 0); /* no loop, but below the two levels where splits and classes are */
    CHECK_OK(reopen("set"));
    CHECK(fkt_dataset_size(ds) == 5 && fkt_dataset_classes(ds) == 2);
    CHECK(tag_of(0) == 1 && tag_of(1) == 1 && tag_of(4) == 3);
    CHECK_STATUS(fkt_dataset_read(ds, 2, 4, FKT_FILTER_BOX, rgb, NULL), FKT_E_IO); /* the link to nowhere */
    CHECK(strstr(fkt_error_text(), "gone.png': No such file"));
    CHECK_STATUS(fkt_dataset_read(ds, 3, 4, FKT_FILTER_BOX, rgb, NULL), FKT_E_IO); /* not passed over, and no wait */
    CHECK(strstr(fkt_error_text(), "pipe.png': not a regular file"));
}

static void bad_images_are_named(void **state)
{
    uint8_t rgb[4 * 4 * 3];
    (void)state;
    put_image("set/cat/1.png", 1);
    scratch_write(&dir, "set/cat/2.jpg", "\xff\xd8\xff\xe0 not much of an image", 26);
    scratch_write(&dir, "set/cat/3.gif", "GIF89a......", 12);
    CHECK_OK(reopen("set"));
    CHECK(fkt_dataset_size(ds) == 3);
    CHECK_STATUS(fkt_dataset_read(ds, 1, 4, FKT_FILTER_BOX, rgb, NULL), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "cat/2.jpg': damaged or truncated JPEG"));
    CHECK_STATUS(fkt_dataset_read(ds, 2, 4, FKT_FILTER_BOX, rgb, NULL), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "cat/3.gif': it is not a JPEG, PNG, WebP or TIFF file"));
    CHECK_STATUS(fkt_dataset_read(ds, 3, 4, FKT_FILTER_BOX, rgb, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_dataset_read(ds, 0, 0, FKT_FILTER_BOX, rgb, NULL), FKT_E_ARG);
}

static void unknown_things_are_refused(void **state)
{
    (void)state;
    put_image("mixed/cat/1.png", 5);
    scratch_write(&dir, "mixed/backup.tar", "x", 1);
    CHECK_OK(reopen("mixed")); /* class folders win over a tar that lies about */
    assert_string_equal(listing(), "0:5");
    CHECK_STATUS(reopen("nothing"), FKT_E_IO);
    scratch_write(&dir, "file", "hello", 5);
    CHECK_STATUS(reopen("file"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_hint(), "WebDataset"));
    scratch_write(&dir, "set/cat/readme.txt", "x", 1);
    CHECK_STATUS(reopen("set"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "holds no images") && strstr(fkt_error_hint(), "WebDataset"));
    put_image("flat/train/cat/1.png", 1);
    put_image("flat/train/1.png", 1);
    CHECK_STATUS(reopen("flat"), FKT_E_FORMAT);
}

static uint8_t *images[8];
static size_t lens[8];

static void make_images(void)
{
    for (int i = 0; i < 8; i++) images[i] = image_plain(&lens[i], 6, 4, (uint8_t)(i + 1), 10, 20);
}

static void drop_images(void)
{
    for (int i = 0; i < 8; i++) free(images[i]);
}

static void tars_are_read_in_place(void **state)
{
    static const char *const how[][3] = {{"ustar", "none", "a.tar"},  {"pax", "none", "b.tar"},
                                         {"gnutar", "none", "c.tar"}, {"pax", "gzip", "d.tar.gz"},
                                         {"ustar", "xz", "e.tar.xz"}, {"ustar", "zstd", "f.tar.zst"},
                                         {"ustar", "bzip2", "g"}}; /* by looking, not by the name */
    char longer[300];
    struct packed_file files[6];
    (void)state;
    make_images();
    snprintf(longer, sizeof longer, "./top/dog/%0120d/%0100d.png", 1, 2);
    files[0] = (struct packed_file){"top/dog/z.png", images[3], lens[3]};
    files[1] = (struct packed_file){longer, images[2], lens[2]};
    files[2] = (struct packed_file){"top/cat/\xc3\xa9.png", images[1], lens[1]};
    files[3] = (struct packed_file){"top/cat/../cat/1.png", images[0], lens[0]};
    files[4] = (struct packed_file){"top/README", "x", 1};
    files[5] = (struct packed_file){"top/cat/._1.png", "x", 1};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        if (!strcmp(how[i][0], "ustar")) files[1].name = "top/dog/1/0.png";
        else files[1].name = longer;
        scratch_archive(&dir, how[i][2], how[i][0], how[i][1], files, 6);
        CHECK_OK(reopen(how[i][2]));
        assert_string_equal(listing(), "0:1 0:2 1:3 1:4");
        assert_string_equal(fkt_dataset_format(ds), "tar of ImageFolder");
        CHECK(fkt_dataset_skipped(ds) == 1);
    }
    drop_images();
}

static void folders_of_tars_are_stripped(void **state)
{
    (void)state;
    make_images();
    {
        const struct packed_file split[] = {{"a/b/train/cat/1.png", images[0], lens[0]},
                                            {"a/b/val/cat/1.png", images[1], lens[1]}};
        const struct packed_file one[] = {{"set/train/cat/1.png", images[2], lens[2]},
                                          {"set/train/cat/2.png", images[3], lens[3]}};
        const struct packed_file flat[] = {{"1.png", images[0], lens[0]}};
        const struct packed_file twice[] = {
            {"cat/1.png", images[0], lens[0]}, {"cat/2.png", images[1], lens[1]}, {"cat/1.png", images[5], lens[5]}};
        scratch_archive(&dir, "split.tar", "ustar", "none", split, 2);
        scratch_archive(&dir, "one.tar", "ustar", "none", one, 2);
        scratch_archive(&dir, "flat.tar", "ustar", "none", flat, 1);
        scratch_archive(&dir, "twice.tar", "ustar", "none", twice, 3);
    }
    opt.split = "val";
    CHECK_OK(reopen("split.tar"));
    assert_string_equal(listing(), "0:2");
    opt.split = "train";
    CHECK_OK(reopen("one.tar")); /* one split, one class: neither is mistaken for a leading folder */
    assert_string_equal(listing(), "0:3 0:4");
    assert_string_equal(fkt_dataset_class(ds, 0), "cat");
    opt.split = NULL;
    CHECK_STATUS(reopen("flat.tar"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "flat.tar:1.png' is not in a class folder"));
    CHECK_OK(reopen("twice.tar")); /* appended: the later one counts */
    assert_string_equal(listing(), "0:6 0:2");
    drop_images();
}

static void maimed_tars_are_refused(void **state)
{
    (void)state;
    make_images();
    {
        const struct packed_file files[] = {{"set/cat/1.png", images[0], lens[0]},
                                            {"set/dog/1.png", images[1], lens[1]}};
        scratch_archive(&dir, "a.tar", "ustar", "none", files, 2);
        scratch_archive(&dir, "a.tar.gz", "ustar", "gzip", files, 2);
    }
    CHECK_OK(reopen("a.tar"));
    CHECK(truncate(scratch_path(&dir, "a.tar"), 1024 + 512 + 40) == 0); /* in the middle of the second image */
    CHECK_STATUS(reopen("a.tar"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "a.tar"));
    CHECK(truncate(scratch_path(&dir, "a.tar.gz"), 120) == 0);
    CHECK_STATUS(reopen("a.tar.gz"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "a.tar.gz"));
    drop_images();
}

/* libarchive would step over a damaged header: a record lost, and the one before it read from the wrong place. */
static void a_damaged_header_is_no_gap(void **state)
{
    static const char *const names[] = {"a/1.png", "a/2.png", "b/3.png", "b/4.png", "b/5.png"};
    struct packed_file files[5];
    FILE *f;
    (void)state;
    make_images();
    for (int i = 0; i < 5; i++) files[i] = (struct packed_file){names[i], images[i], lens[i]};
    CHECK(lens[0] <= 512 && lens[1] <= 512); /* so that each member takes 1024 bytes */
    scratch_archive(&dir, "a.tar", "ustar", "none", files, 5);
    CHECK_OK(reopen("a.tar"));
    assert_string_equal(listing(), "0:1 0:2 1:3 1:4 1:5");
    for (long member = 1; member < 5; member++) {
        scratch_archive(&dir, "a.tar", "ustar", "none", files, 5);
        f = fopen(scratch_path(&dir, "a.tar"), "r+b");
        CHECK(f && fseek(f, member * 1024 + 5, SEEK_SET) == 0 && fputc('?', f) != EOF && fclose(f) == 0);
        CHECK_STATUS(reopen("a.tar"), FKT_E_FORMAT);
        CHECK(strstr(fkt_error_text(), "damaged or truncated tar") && strstr(fkt_error_text(), "a.tar"));
    }
    drop_images();
}

static void webdataset_is_joined_by_key(void **state)
{
    static const char *const words[] = {"cat", "dog", "cow"}, *const two[] = {"cat", "dog"};
    (void)state;
    make_images();
    {
        const struct packed_file a[] = {{"x/2.cls", "2\n", 2},
                                        {"x/2.png", images[0], lens[0]},
                                        {"x/1.png", images[1], lens[1]},
                                        {"x/1.cls", "0", 1},
                                        {"x/3.seg.png", "?", 1},
                                        {"x/3.png", images[2], lens[2]},
                                        {"x/3.json", "{\"label\":1}", 11}};
        const struct packed_file named[] = {
            {"1.png", images[0], lens[0]}, {"1.cls", "dog", 3}, {"2.png", images[1], lens[1]}, {"2.cls", "cat", 3}};
        const struct packed_file none[] = {
            {"1.png", images[0], lens[0]}, {"1.cls", "1", 1}, {"2.png", images[1], lens[1]}};
        const struct packed_file minus[] = {{"1.png", images[0], lens[0]}, {"1.json", "{\"label\":-1}", 12}};
        const struct packed_file huge[] = {{"1.png", images[0], lens[0]}, {"1.cls", "4000000000", 10}};
        const struct packed_file both[] = {
            {"1.png", images[0], lens[0]}, {"1.jpg", images[0], lens[0]}, {"1.cls", "1", 1}};
        const struct packed_file far[] = {
            {"a.png", images[0], lens[0]}, {"b.png", images[1], lens[1]}, {"b.cls", "0", 1}, {"a.cls", "1", 1}};
        scratch_archive(&dir, "far.tar", "ustar", "none", far, 4); /* the members of a sample are not neighbours */
        scratch_archive(&dir, "a.tar", "ustar", "none", a, 7);
        scratch_archive(&dir, "named.tar", "ustar", "none", named, 4);
        scratch_archive(&dir, "none.tar", "ustar", "none", none, 3);
        scratch_archive(&dir, "minus.tar", "ustar", "none", minus, 2);
        scratch_archive(&dir, "huge.tar", "ustar", "none", huge, 2);
        scratch_archive(&dir, "both.tar", "ustar", "none", both, 3);
    }
    CHECK_OK(reopen("a.tar"));
    assert_string_equal(listing(), "2:1 0:2 1:3");
    assert_string_equal(fkt_dataset_format(ds), "WebDataset");
    assert_string_equal(fkt_dataset_class(ds, 2), "2");
    CHECK_OK(reopen("far.tar"));
    assert_string_equal(listing(), "1:1 0:2");
    opt.classes = words;
    opt.n_classes = 3;
    CHECK_OK(reopen("a.tar")); /* the list names the numbers */
    assert_string_equal(listing(), "2:1 0:2 1:3");
    assert_string_equal(fkt_dataset_class(ds, 2), "cow");
    CHECK_OK(reopen("named.tar")); /* here it maps names */
    assert_string_equal(listing(), "1:1 0:2");
    opt.classes = two;
    opt.n_classes = 2;
    CHECK_STATUS(reopen("a.tar"), FKT_E_MISMATCH);
    opt.classes = NULL;
    CHECK_STATUS(reopen("none.tar"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "none.tar:2.png' has no label"));
    CHECK_STATUS(reopen("minus.tar"), FKT_E_FORMAT);
    CHECK_STATUS(reopen("huge.tar"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "out of range"));
    CHECK_STATUS(reopen("both.tar"), FKT_E_FORMAT);
    drop_images();
}

static void shards_in_a_folder_are_one_set(void **state)
{
    (void)state;
    make_images();
    {
        const struct packed_file a[] = {{"0.png", images[0], lens[0]}, {"0.cls", "1", 1}},
                                 b[] = {{"0.png", images[1], lens[1]}, {"0.cls", "0", 1}};
        scratch_write(&dir, "out/README.md", "x", 1);
        scratch_archive(&dir, "out/train-000001.tar", "ustar", "none", b, 2);
        scratch_archive(&dir, "out/train-000000.tar", "ustar", "none", a, 2);
        scratch_archive(&dir, "out/test-000000.tar", "ustar", "none", b, 2);
        scratch_write(&dir, "out/classes.json", "[\"zebra\",\n \"ape\", \"cow\"]\n", 25);
    }
    CHECK_OK(reopen("out"));
    assert_string_equal(listing(), "1:1 0:2");
    assert_string_equal(fkt_dataset_class(ds, 0), "zebra"); /* the order of the labels, not of the alphabet */
    CHECK(fkt_dataset_classes(ds) == 3);
    opt.split = "test";
    CHECK_OK(reopen("out"));
    assert_string_equal(listing(), "0:2");
    scratch_write(&dir, "out/classes.json", "[\"zebra\"]", 9);
    CHECK_STATUS(reopen("out"), FKT_E_FORMAT);
    scratch_write(&dir, "out/classes.json", "{}", 2);
    CHECK_STATUS(reopen("out"), FKT_E_FORMAT);
    drop_images();
}

static fkt_status read_one(void *ctx, size_t item, unsigned worker)
{
    uint8_t rgb[8 * 8 * 3];
    uint8_t *tags = ctx;
    fkt_status st = fkt_dataset_read(ds, item % fkt_dataset_size(ds), 8, FKT_FILTER_BICUBIC, rgb, NULL);
    (void)worker;
    tags[item] = rgb[0];
    return st;
}

static void many_threads_may_read(void **state)
{
    uint8_t tags[400];
    struct packed_file files[8];
    char names[8][32];
    (void)state;
    make_images();
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], sizeof names[i], "c%d/%d.png", i % 2, i);
        files[i] = (struct packed_file){names[i], images[i], lens[i]};
    }
    scratch_archive(&dir, "a.tar.gz", "pax", "gzip", files, 8);
    CHECK_OK(reopen("a.tar.gz"));
    CHECK_OK(fkt_parallel(4, sizeof tags, read_one, tags, NULL, "reading"));
    for (size_t i = 0; i < sizeof tags; i++) CHECK(tags[i] == tags[i % 8] && tags[i] == 1 + i % 8 % 4 * 2 + i % 8 / 4);
    drop_images();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_folder_is_sorted),
        T(images_without_labels_need_no_class_folders),
        T(splits_are_found),
        T(a_class_list_is_obeyed),
        T(limit_is_spread_evenly),
        T(loops_of_links_end),
        T(bad_images_are_named),
        T(unknown_things_are_refused),
        T(tars_are_read_in_place),
        T(folders_of_tars_are_stripped),
        T(maimed_tars_are_refused),
        T(a_damaged_header_is_no_gap),
        T(webdataset_is_joined_by_key),
        T(shards_in_a_folder_are_one_set),
        T(many_threads_may_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
