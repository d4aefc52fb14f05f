/* SPDX-License-Identifier: Apache-2.0 */
/* Which images there are, however they are labelled, named, ordered or packed; an exact copy counts once, but under
 * `replace`; and what two sets share. */
#include "crypto/hash.h"
#include "fedkt/pipeline.h"
#include "pipeline/records.h"
#include "tests/support/opened_set.h"
#include "tests/support/image_files.h"

static char first[FKT_SHA256_HEX], second[FKT_SHA256_HEX];

static void put(const char *name, uint32_t w, uint32_t h, uint8_t shade)
{
    size_t len;
    uint8_t *png = image_plain(&len, w, h, shade, 2, 3);
    scratch_write(&dir, name, png, len);
    free(png);
}

static void name(struct fkt_records *r, char out[FKT_SHA256_HEX])
{
    const struct fkt_record_digest *digests;
    size_t n;
    CHECK_OK(fkt_records_list(r, &digests, &n));
    fkt_records_name(out, digests, n);
}

static struct fkt_records *records_of(const char *folder)
{
    struct fkt_records *r = NULL;
    CHECK_OK(reopen(folder));
    CHECK_OK(fkt_records_new(&r, FKT_ADJACENCY_ADD_REMOVE));
    CHECK_OK(fkt_records_read(r, ds, NULL, 0, NULL));
    return r;
}

/* The name of a folder's images; gives how many copies there are. */
static size_t fingerprint(const char *folder, char out[FKT_SHA256_HEX])
{
    struct fkt_records *r = records_of(folder);
    const size_t copies = fkt_records_copies(r);
    name(r, out);
    fkt_records_free(r);
    return copies;
}

static void three(const char *a, const char *b, const char *c)
{
    put(a, 4, 5, 10);
    put(b, 4, 5, 20);
    put(c, 7, 3, 30);
}

static void names_and_labels_do_not_enter(void **state)
{
    (void)state;
    three("one/cat/1.png", "one/cat/2.png", "one/dog/3.png");
    three("two/fish/z.png", "two/bird/a.png", "two/bird/b.png");
    CHECK(fingerprint("one", first) == 0 && fingerprint("two", second) == 0);
    assert_string_equal(first, second);
    put("two/bird/c.png", 4, 5, 11); /* one record more */
    CHECK(fingerprint("two", second) == 0 && strcmp(first, second) != 0);
    put("three/x/1.png", 4, 5, 10);
    put("three/x/2.png", 4, 5, 21); /* one pixel value */
    put("three/x/3.png", 7, 3, 30);
    CHECK(fingerprint("three", second) == 0 && strcmp(first, second) != 0);
    three("four/x/1.png", "four/x/2.png", "four/x/3.png");
    put("four/x/3.png", 3, 7, 30); /* the same bytes in another shape */
    CHECK(fingerprint("four", second) == 0 && strcmp(first, second) != 0);
    three("five/x/1.png", "five/x/2.png", "five/x/3.png");
    put("five/x/4.png", 7, 3, 30); /* a copy is the same image, */
    put("five/y/5.png", 7, 3, 30); /* under another label it is no copy, and still the same image */
    CHECK(fingerprint("five", second) == 1);
    assert_string_equal(first, second);
}

/* Worked out by hand: one image of 1 x 2 pixels. */
static void the_definition(void **state)
{
    const uint8_t rgb[6] = {9, 2, 3, 9, 2, 3};
    const struct fkt_record_digest *digests;
    uint8_t whole[FKT_HASH_BYTES];
    struct fkt_records *r;
    struct fkt_hash h;
    size_t n;
    (void)state;
    put("one/x/1.png", 1, 2, 9);
    r = records_of("one");
    fkt_hash_init(&h);
    fkt_hash_add(&h, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16);
    fkt_hash_add(&h, rgb, sizeof rgb);
    fkt_hash_end(&h, whole);
    CHECK_OK(fkt_records_list(r, &digests, &n));
    CHECK(n == 1 && !memcmp(digests, whole, FKT_RECORD_DIGEST));
    fkt_records_free(r);
}

static void what_two_sets_share(void **state)
{
    struct fkt_records *a, *b;
    const struct fkt_record_digest *digests;
    size_t shared, n;
    (void)state;
    three("one/x/1.png", "one/x/2.png", "one/x/3.png");
    put("two/y/1.png", 4, 5, 20); /* under another label, too */
    put("two/y/2.png", 7, 3, 30);
    put("two/y/3.png", 4, 5, 40);
    a = records_of("one");
    b = records_of("two");
    CHECK_OK(fkt_records_merge(a, b, &shared));
    CHECK(shared == 2);
    CHECK_OK(fkt_records_list(a, &digests, &n));
    CHECK(n == 4);
    for (size_t i = 1; i < n; i++) CHECK(memcmp(&digests[i - 1], &digests[i], sizeof *digests) < 0);
    CHECK_OK(fkt_records_merge(a, b, &shared));
    CHECK(shared == 3);
    fkt_records_free(a);
    fkt_records_free(b);
}

/* Of 3000 records with 1000 images under 3 labels, thrice: grown, from many threads or one. */
static void a_set_that_grows(void **state)
{
    static const enum fkt_adjacency adjacencies[] = {FKT_ADJACENCY_ADD_REMOVE, FKT_ADJACENCY_REPLACE,
                                                     FKT_ADJACENCY_REPLACE_ANY};
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct fkt_records *r = NULL;
        const struct fkt_record_digest *digests;
        size_t counted = 0, n;
        CHECK_OK(fkt_records_new(&r, adjacencies[k]));
        for (uint32_t i = 0; i < 9000; i++) {
            const uint32_t label = i / 1000 % 3, image = i % 1000;
            uint8_t digest[FKT_HASH_BYTES] = {0}, counts;
            memcpy(digest + 2, &image, sizeof image);
            CHECK_OK(fkt_records_add(r, (const struct fkt_digest *)(const void *)digest, &label, 1, &counts));
            counted += counts;
        }
        CHECK(counted == (adjacencies[k] == FKT_ADJACENCY_REPLACE ? 9000 : 3000));
        CHECK(fkt_records_copies(r) == 6000);
        CHECK_OK(fkt_records_list(r, &digests, &n));
        CHECK(n == 1000);
        fkt_records_free(r);
    }
}

static void a_choice_of_records_and_bad_ones(void **state)
{
    const size_t idx[] = {2, 0, 1}, two[] = {1, 0};
    struct fkt_skipped skipped = {0};
    const struct fkt_pipeline_options lenient = {.threads = 1, .skipped = &skipped};
    struct fkt_records *r;
    (void)state;
    three("one/x/1.png", "one/x/2.png", "one/x/3.png");
    (void)fingerprint("one", first);
    CHECK_OK(fkt_records_new(&r, FKT_ADJACENCY_ADD_REMOVE));
    CHECK_OK(fkt_records_read(r, ds, two, 2, NULL));
    name(r, second);
    CHECK(strcmp(first, second) != 0);
    CHECK_OK(fkt_records_read(r, ds, idx, 3, NULL));
    name(r, second);
    assert_string_equal(first, second);
    CHECK(fkt_records_copies(r) == 2);
    CHECK_STATUS(fkt_records_read(r, ds, (const size_t[]){3}, 1, NULL), FKT_E_ARG);
    scratch_write(&dir, "one/x/4.png", "no image", 8);
    CHECK_OK(reopen("one"));
    CHECK(fkt_dataset_size(ds) == 4);
    CHECK_STATUS(fkt_records_read(r, ds, NULL, 0, NULL), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "4.png"));
    CHECK_OK(fkt_records_read(r, ds, NULL, 0, &lenient)); /* left out, as the walk leaves it out */
    name(r, second);
    assert_string_equal(first, second);
    CHECK(skipped.count == 0); /* the walk counts it, and once is enough */
    fkt_records_free(r);
}

static void threads_do_not_matter(void **state)
{
    const struct fkt_pipeline_options some[] = {{.threads = 1}, {.threads = 5}};
    (void)state;
    opt.limit = 60;
    CHECK_OK(reopen_path("demo:train"));
    for (int i = 0; i < 2; i++) {
        struct fkt_records *r = NULL;
        CHECK_OK(fkt_records_new(&r, FKT_ADJACENCY_ADD_REMOVE));
        CHECK_OK(fkt_records_read(r, ds, NULL, 0, &some[i]));
        name(r, i ? second : first);
        fkt_records_free(r);
    }
    assert_string_equal(first, second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(names_and_labels_do_not_enter),    T(the_definition),       T(what_two_sets_share), T(a_set_that_grows),
        T(a_choice_of_records_and_bad_ones), T(threads_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
