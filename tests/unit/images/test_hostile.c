/* SPDX-License-Identifier: Apache-2.0 */
/* Sets made to exhaust the reader: files that unpack to far more than they are, too many classes, too many shards. */
#include "images/formats.h"
#include "tests/support/opened_set.h"
#include "tests/support/image_files.h"

#include <sys/resource.h>

enum { ZEROS = 100 << 20 }; /* more than 64 MiB and 256 times what any filter makes of it */

static struct packed_file zeros(const char *name)
{
    static uint8_t *data;
    if (!data) data = calloc(1, ZEROS);
    CHECK(data);
    return (struct packed_file){name, data, ZEROS};
}

static void bombs_are_not_unpacked(void **state)
{
    static const char *const filters[] = {"gzip", "bzip2", "xz", "zstd"};
    struct packed_file file = zeros("a/1.png");
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        scratch_archive(&dir, "bomb", "ustar", filters[i], &file, 1);
        CHECK_STATUS(reopen("bomb"), FKT_E_FORMAT);
        if (!strstr(fkt_error_text(), "bomb' unpacks to more than 256 times its size"))
            fail_msg("%s: %s", filters[i], fkt_error_text());
        CHECK(fkt_error_hint()[0]);
    }
}

/* The members together count, and so does what a gzip around the zip has used up already. */
static void npz_bombs_are_not_unpacked(void **state)
{
    struct packed_file files[2] = {zeros("train_images.npy"), zeros("train_labels.npy")};
    uint8_t *zip, *head;
    FILE *f;
    size_t len;
    (void)state;
    scratch_archive(&dir, "bomb.npz", "zip", "deflate", files, 1);
    CHECK_STATUS(reopen("bomb.npz"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "bomb.npz' unpacks to more than 256 times its size"));
    head = malloc(50 << 20);
    CHECK(head);
    memset(head, 0, 50 << 20);
    memcpy(head, "\x93NUMPY\1\0\x76\0{'descr': '|u1', 'fortran_order': False, 'shape': (52428672,), }", 75);
    memset(head + 75, ' ', 53);
    files[0] = (struct packed_file){"train_images.npy", head, 50 << 20};
    files[1] = (struct packed_file){"train_labels.npy", head, 50 << 20};
    scratch_archive(&dir, "two.npz", "zip", "deflate", files, 2); /* each of them alone would pass */
    CHECK_STATUS(reopen("two.npz"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "two.npz' unpacks to more than 256 times its size"));
    scratch_archive(&dir, "one.npz", "zip", "deflate", files, 1);
    CHECK_STATUS(reopen("one.npz"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "without 'train_labels'"));
    free(head);
    files[0] = zeros("train_images.npy");
    files[0].len = 75 << 20;
    scratch_archive(&dir, "some.npz", "zip", "deflate", files, 1); /* passes by itself, thanks to its 75 KB */
    CHECK_STATUS(reopen("some.npz"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "not a NumPy array"));
    f = fopen(scratch_path(&dir, "some.npz"), "rb");
    zip = malloc(1 << 20);
    CHECK(f && zip);
    len = fread(zip, 1, 1 << 20, f);
    fclose(f);
    scratch_archive(&dir, "around.gz", "raw", "gzip", &(struct packed_file){"x", zip, len}, 1);
    CHECK_STATUS(reopen("around.gz"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "around.gz' unpacks to more than 256 times its size"));
    free(zip);
}

static void what_is_packed_twice_is_refused(void **state)
{
    size_t len;
    uint8_t *png = image_plain(&len, 6, 4, 1, 2, 3);
    const struct packed_file file = {"a/1.png", png, len};
    (void)state;
    scratch_archive(&dir, "twice", "ustar", "gzip+bzip2", &file, 1);
    CHECK_STATUS(reopen("twice"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "twice' is packed more than once") && fkt_error_hint()[0]);
    scratch_archive(&dir, "once", "ustar", "gzip", &file, 1);
    CHECK_OK(reopen("once"));
    free(png);
}

/* classes.json with the names n-1 .. 0, so that each goes in front of all before it. */
static void write_classes(size_t n)
{
    size_t cap = n * 12 + 2, at = 0;
    char *text = malloc(cap);
    CHECK(text);
    text[at++] = '[';
    for (size_t i = n; i-- > 0;) at += (size_t)snprintf(text + at, cap - at, "\"c%07zu\"%s", i, i ? "," : "]");
    scratch_write(&dir, "web/classes.json", text, at);
    free(text);
}

static void classes_are_counted(void **state)
{
    size_t len;
    uint8_t *png = image_plain(&len, 6, 4, 1, 2, 3);
    const struct packed_file files[] = {{"1.png", png, len}, {"1.cls", "7", 1}};
    const char **list = calloc(65537, sizeof *list);
    (void)state;
    CHECK(list);
    write_classes(65536);
    scratch_archive(&dir, "web/0.tar", "ustar", "none", files, 2);
    CHECK_OK(reopen("web"));
    CHECK(fkt_dataset_classes(ds) == 65536 && fkt_dataset_label(ds, 0) == 7);
    assert_string_equal(fkt_dataset_class(ds, 7), "c0065528");
    write_classes(65537);
    CHECK_STATUS(reopen("web"), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "too many classes: at most 65536"));
    for (size_t i = 0; i < 65537; i++) list[i] = "a";
    opt.classes = list;
    opt.n_classes = 65537;
    CHECK_STATUS(reopen("web"), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "65537 names: at most 65536"));
    free(list);
    free(png);
}

static void too_many_shards_get_a_hint(void **state)
{
    size_t len;
    uint8_t *png = image_plain(&len, 6, 4, 1, 2, 3);
    const struct packed_file files[] = {{"1.png", png, len}, {"1.cls", "0", 1}};
    struct rlimit had, few;
    char name[32];
    fkt_status st;
    (void)state;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "web/%d.tar", i);
        if (!i) scratch_write(&dir, "web/README", "x", 1);
        scratch_archive(&dir, name, "ustar", "none", files, 2);
    }
    CHECK_OK(reopen("web"));
    CHECK(getrlimit(RLIMIT_NOFILE, &had) == 0);
    fkt_dataset_free(ds);
    ds = NULL;
    few = had;
    few.rlim_cur = 30;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    st = reopen("web");
    CHECK(setrlimit(RLIMIT_NOFILE, &had) == 0);
    CHECK(st == FKT_E_IO && strstr(fkt_error_text(), "Too many open files") && strstr(fkt_error_hint(), "ulimit -n"));
    free(png);
}

/* The tars of a folder may vanish between the look at the folder and their listing. */
static void no_tars_at_all_is_an_error(void **state)
{
    struct fkt_dataset_builder b;
    const char *none = NULL;
    (void)state;
    memset(&b, 0, sizeof b);
    CHECK_OK(fkt_alloc(&b.ds, 1));
    b.path = "gone";
    CHECK_STATUS(fkt_tars_open(&b, &none, 0, NULL), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "'gone' does not hold tars any more"));
    fkt_builder_clear(&b);
    fkt_dataset_free(b.ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(bombs_are_not_unpacked), T(npz_bombs_are_not_unpacked), T(what_is_packed_twice_is_refused),
        T(classes_are_counted),    T(too_many_shards_get_a_hint), T(no_tars_at_all_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
