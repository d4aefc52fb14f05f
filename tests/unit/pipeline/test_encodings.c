/* SPDX-License-Identifier: Apache-2.0 */
/* Kept encodings: the same bits with them and without, nothing that belongs to another codec, nothing that is damaged,
 * nothing in a folder that others can read. */
#include "pipeline/encodings.h"
#include "pipeline/pipeline.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS = 70, DIM = 8, HEAD = 48, ROW = 32 + 4 * DIM + 8 };

static struct scratch scratch;
static struct fkt_pipeline *pipeline;
static struct fkt_dataset *ds;

static int setup(void **state)
{
    (void)state;
    scratch_init(&scratch);
    return small_pipeline(&pipeline, &ds, RECORDS, 2, FKT_COORDINATE_GAIN_SHAPE) == FKT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    fkt_pipeline_free(pipeline);
    fkt_dataset_free(ds);
    scratch_release(&scratch);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

/* The hash of the moments of all records; how many encodings were found and made on the way. */
static void sum(const char *folder, unsigned threads, char hash[FKT_SHA256_HEX], uint64_t *found, uint64_t *made)
{
    struct fkt_pipeline_options o = {.threads = threads};
    struct fkt_moments *m = NULL;
    if (folder) CHECK_OK(fkt_encodings_open(&o.encodings, folder));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &o));
    CHECK_OK(fkt_moments_sha256(m, hash));
    if (folder) fkt_encodings_count(o.encodings, found, made);
    fkt_encodings_close(o.encodings);
    fkt_moments_free(m);
}

static void expect(const char *folder, uint64_t want_found, uint64_t want_made)
{
    char plain[FKT_SHA256_HEX], kept[FKT_SHA256_HEX];
    uint64_t found = 0, made = 0;
    sum(NULL, 1, plain, NULL, NULL);
    sum(folder, 3, kept, &found, &made);
    assert_string_equal(plain, kept);
    assert_int_equal(found, want_found);
    assert_int_equal(made, want_made);
}

/* The only file of a folder that was filled by expect(). */
static const char *file_in(const char *folder)
{
    static char path[700];
    char command[800];
    FILE *f;
    snprintf(command, sizeof command, "ls -d %s/*.encodings", folder);
    f = popen(command, "r");
    CHECK(f && fgets(path, sizeof path, f));
    pclose(f);
    path[strcspn(path, "\n")] = '\0';
    return path;
}

static void nothing_is_encoded_twice(void **state)
{
    const char *folder = scratch_path(&scratch, "twice");
    struct stat sb;
    (void)state;
    expect(folder, 0, RECORDS);
    expect(folder, RECORDS, 0);
    CHECK(stat(folder, &sb) == 0 && (sb.st_mode & 0777) == 0700);
    CHECK(stat(file_in(folder), &sb) == 0 && (sb.st_mode & 0777) == 0600);
    assert_int_equal(sb.st_size, HEAD + RECORDS * ROW);
}

/* A writer that was killed leaves whole rows and at most a part of one. */
static void a_cut_file_loses_its_last_row(void **state)
{
    const char *folder = scratch_path(&scratch, "cut");
    struct stat sb;
    (void)state;
    expect(folder, 0, RECORDS);
    CHECK(truncate(file_in(folder), HEAD + 40 * ROW + 17) == 0);
    expect(folder, 40, RECORDS - 40);
    CHECK(stat(file_in(folder), &sb) == 0);
    assert_int_equal(sb.st_size, HEAD + RECORDS * ROW);
    expect(folder, RECORDS, 0);
}

static void flip(const char *path, off_t at)
{
    int fd = open(path, O_RDWR);
    uint8_t b = 0;
    CHECK(fd >= 0 && pread(fd, &b, 1, at) == 1);
    b ^= 0x10;
    CHECK(pwrite(fd, &b, 1, at) == 1);
    close(fd);
}

/* One bit of a digest, of a number, of a checksum: the image is encoded again, and its new row counts from then on. */
static void what_is_damaged_is_encoded_again(void **state)
{
    const char *folder = scratch_path(&scratch, "bent");
    (void)state;
    expect(folder, 0, RECORDS);
    flip(file_in(folder), HEAD + 3 * ROW + 5);
    flip(file_in(folder), HEAD + 10 * ROW + 32 + 6);
    flip(file_in(folder), HEAD + 20 * ROW + ROW - 1);
    expect(folder, RECORDS - 3, 3);
    expect(folder, RECORDS, 0);
    flip(file_in(folder), 20); /* the head: the whole file is another's */
    expect(folder, 0, RECORDS);
    expect(folder, RECORDS, 0);
}

/* Size, length, dtype, filter and fit each have their own. */
static void another_codec_finds_nothing(void **state)
{
    const struct fkt_codec_spec specs[] = {{.name = "dct", .size = 16, .dim = DIM},
                                           {.name = "dct", .size = 24, .dim = DIM},
                                           {.name = "dct", .size = 16, .dim = DIM + 1},
                                           {.name = "dct", .size = 16, .dim = DIM, .settings = {.low_memory = 1}}};
    const struct fkt_digest image = {{7, 7, 7}};
    const float z[DIM + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct fkt_encodings_kind *kind = NULL, *first = NULL;
    struct fkt_encodings *e = NULL;
    struct fkt_codec *codec[4];
    float back[DIM + 1];
    (void)state;
    CHECK_OK(fkt_encodings_open(&e, scratch_path(&scratch, "kinds")));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(fkt_codec_open(&codec[i], &specs[i]));
        CHECK_OK(fkt_encodings_of(e, codec[i], FKT_FILTER_BOX, FKT_FIT_CROP, &kind));
        if (i == 0) CHECK_OK(fkt_encodings_keep(kind, &image, z, 1));
        if (i == 0) first = kind;
        assert_int_equal(fkt_encodings_find(kind, &image, back), i == 0);
    }
    CHECK_OK(fkt_encodings_of(e, codec[0], FKT_FILTER_LANCZOS, FKT_FIT_CROP, &kind));
    assert_int_equal(fkt_encodings_find(kind, &image, back), 0);
    CHECK_OK(fkt_encodings_of(e, codec[0], FKT_FILTER_BOX, FKT_FIT_PAD, &kind));
    assert_int_equal(fkt_encodings_find(kind, &image, back), 0);
    CHECK_OK(fkt_encodings_of(e, codec[0], FKT_FILTER_BOX, FKT_FIT_CROP, &kind));
    CHECK(kind == first && fkt_encodings_find(kind, &image, back) == 1);
    assert_memory_equal(back, z, DIM * sizeof *z);
    fkt_encodings_close(e);
    for (int i = 0; i < 4; i++) fkt_codec_free(codec[i]);
}

/* The digest's first eight bytes lead to a row; all of it must be equal. */
static void a_digest_is_compared_whole(void **state)
{
    const struct fkt_digest image = {{7, 7, 7}}, twin = {{7, 7, 7, [31] = 1}};
    const float z[DIM] = {1}, bad[DIM] = {NAN};
    struct fkt_encodings_kind *kind = NULL;
    struct fkt_encodings *e = NULL;
    float back[DIM];
    (void)state;
    CHECK_OK(fkt_encodings_open(&e, scratch_path(&scratch, "twins")));
    CHECK_OK(fkt_encodings_of(e, fkt_pipeline_codec(pipeline), FKT_FILTER_BOX, FKT_FIT_CROP, &kind));
    CHECK_OK(fkt_encodings_keep(kind, &image, z, 1));
    assert_int_equal(fkt_encodings_find(kind, &twin, back), 0);
    assert_int_equal(fkt_encodings_find(kind, &image, back), 1);
    CHECK_OK(fkt_encodings_keep(kind, &image, bad, 1)); /* the last row counts, and this one is no latent */
    assert_int_equal(fkt_encodings_find(kind, &image, back), 0);
    fkt_encodings_close(e);
}

/* Two at once: neither writes into the other's file, and the next one finds all. */
static void two_writers_keep_apart(void **state)
{
    const struct fkt_digest a = {{1}}, b = {{2}};
    const float z[DIM] = {1}, y[DIM] = {2};
    struct fkt_encodings_kind *k1 = NULL, *k2 = NULL, *k3 = NULL;
    struct fkt_encodings *e1 = NULL, *e2 = NULL, *e3 = NULL;
    const char *folder = scratch_path(&scratch, "two");
    float back[DIM];
    (void)state;
    CHECK_OK(fkt_encodings_open(&e1, folder));
    CHECK_OK(fkt_encodings_of(e1, fkt_pipeline_codec(pipeline), FKT_FILTER_BOX, FKT_FIT_CROP, &k1));
    CHECK_OK(fkt_encodings_keep(k1, &a, z, 1));
    CHECK_OK(fkt_encodings_open(&e2, folder));
    CHECK_OK(fkt_encodings_of(e2, fkt_pipeline_codec(pipeline), FKT_FILTER_BOX, FKT_FIT_CROP, &k2));
    CHECK_OK(fkt_encodings_keep(k2, &b, y, 1));
    CHECK_OK(fkt_encodings_keep(k1, &b, z, 1));
    CHECK_OK(fkt_encodings_open(&e3, folder));
    CHECK_OK(fkt_encodings_of(e3, fkt_pipeline_codec(pipeline), FKT_FILTER_BOX, FKT_FIT_CROP, &k3));
    CHECK(fkt_encodings_find(k3, &a, back) && back[0] == 1);
    CHECK(fkt_encodings_find(k3, &b, back));
    fkt_encodings_close(e1);
    fkt_encodings_close(e2);
    fkt_encodings_close(e3);
}

static void folders_of_others_are_refused(void **state)
{
    struct fkt_encodings *e = NULL;
    struct fkt_pipeline_options o = {.threads = 1};
    struct fkt_moments *m = NULL;
    const char *folder = scratch_path(&scratch, "open");
    char link[700];
    (void)state;
    CHECK(mkdir(folder, 0755) == 0 && chmod(folder, 0750) == 0);
    CHECK_STATUS(fkt_encodings_open(&e, folder), FKT_E_IO);
    CHECK(!e && strstr(fkt_error_text(), "open to others (mode 750)"));
    CHECK(chmod(folder, 0700) == 0);
    snprintf(link, sizeof link, "%s", scratch_path(&scratch, "link"));
    CHECK(symlink(folder, link) == 0);
    CHECK_STATUS(fkt_encodings_open(&e, link), FKT_E_IO);
    expect(folder, 0, RECORDS);
    CHECK(chmod(file_in(folder), 0640) == 0);
    CHECK_OK(fkt_encodings_open(&o.encodings, folder));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_STATUS(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &o), FKT_E_IO);
    fkt_moments_free(m);
    fkt_encodings_close(o.encodings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_encoded_twice),         cmocka_unit_test(a_cut_file_loses_its_last_row),
        cmocka_unit_test(what_is_damaged_is_encoded_again), cmocka_unit_test(another_codec_finds_nothing),
        cmocka_unit_test(a_digest_is_compared_whole),       cmocka_unit_test(two_writers_keep_apart),
        cmocka_unit_test(folders_of_others_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
