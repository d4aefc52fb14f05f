/* SPDX-License-Identifier: Apache-2.0 */
/* One name for the same pictures, however they are labelled, named, ordered or packed; another one for others. */
#include "crypto/hash.h"
#include "fedkt/round.h"
#include "round/fingerprint.h"
#include "tests/support/opened_set.h"
#include "tests/support/pictures.h"

static char first[FKT_SHA256_HEX], second[FKT_SHA256_HEX];

static void put(const char *name, uint32_t w, uint32_t h, uint8_t shade)
{
    size_t len;
    uint8_t *png = picture_plain(&len, w, h, shade, 2, 3);
    scratch_write(&dir, name, png, len);
    free(png);
}

static void fingerprint(const char *folder, char out[FKT_SHA256_HEX])
{
    CHECK_OK(reopen(folder));
    CHECK_OK(fkt_records_fingerprint(ds, NULL, 0, NULL, out));
    CHECK(strlen(out) == 64 && strspn(out, "0123456789abcdef") == 64);
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
    fingerprint("one", first);
    fingerprint("two", second);
    assert_string_equal(first, second);
    put("two/bird/c.png", 4, 5, 11); /* one record more */
    fingerprint("two", second);
    CHECK(strcmp(first, second) != 0);
    put("three/x/1.png", 4, 5, 10);
    put("three/x/2.png", 4, 5, 21); /* one pixel value */
    put("three/x/3.png", 7, 3, 30);
    fingerprint("three", second);
    CHECK(strcmp(first, second) != 0);
    three("four/x/1.png", "four/x/2.png", "four/x/3.png");
    put("four/x/3.png", 3, 7, 30); /* the same bytes in another shape */
    fingerprint("four", second);
    CHECK(strcmp(first, second) != 0);
    put("five/x/1.png", 4, 5, 10);
    put("five/x/2.png", 4, 5, 20);
    put("five/x/3.png", 7, 3, 30);
    put("five/x/4.png", 7, 3, 30); /* a record twice is two */
    fingerprint("five", second);
    CHECK(strcmp(first, second) != 0);
}

/* Worked out by hand from the header's sentence: one record of 1 x 2 pixels. */
static void the_definition(void **state)
{
    const uint8_t rgb[6] = {9, 2, 3, 9, 2, 3};
    uint8_t digest[FKT_HASH_BYTES];
    struct fkt_hash h;
    (void)state;
    put("one/x/1.png", 1, 2, 9);
    fingerprint("one", first);
    fkt_hash_init(&h);
    fkt_hash_add(&h, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16);
    fkt_hash_add(&h, rgb, sizeof rgb);
    fkt_hash_end(&h, digest);
    fkt_hash_init(&h);
    fkt_hash_add(&h, "fedkt records v1\0\1\0\0\0\0\0\0\0", 25);
    fkt_hash_add(&h, digest, sizeof digest);
    fkt_hash_hex(&h, second);
    assert_string_equal(first, second);
}

/* Of digests of 32 sevens and threes, which are cats, and fives, a dog: by Python's hashlib from the sentence at the
 * top of fingerprint.c. In which order the classes stand is not in it; what they are called is. */
static void which_are_of_one_class(void **state)
{
    static const char want[] = "a287abe32644ccb69c9f549a61b79aab62af62d65a97f5c9ee90c72ab5a43553";
    static const struct {
        uint32_t label[3];
        const char *names[2];
        int same;
    } set[] = {{{0, 0, 1}, {"cat", "dog"}, 1},
               {{1, 1, 0}, {"dog", "cat"}, 1},
               {{0, 1, 1}, {"cat", "dog"}, 0},
               {{0, 0, 1}, {"dog", "cat"}, 0}};
    static const uint8_t byte[3] = {7, 3, 5};
    struct fkt_labelled list[3];
    (void)state;
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
        for (int i = 0; i < 3; i++) {
            memset(&list[i].picture, byte[i], sizeof list[i].picture);
            list[i].label = set[k].label[i];
        }
        fkt_labelled_end(list, 3, set[k].names, first);
        assert_int_equal(strcmp(first, want) == 0, set[k].same);
    }
}

static void a_choice_of_records_and_bad_ones(void **state)
{
    const size_t idx[] = {2, 0, 1}, two[] = {1, 0};
    struct fkt_skipped skipped = {0};
    const struct fkt_walk_options lenient = {.threads = 1, .skipped = &skipped};
    (void)state;
    three("one/x/1.png", "one/x/2.png", "one/x/3.png");
    fingerprint("one", first);
    CHECK_OK(fkt_records_fingerprint(ds, idx, 3, NULL, second));
    assert_string_equal(first, second);
    CHECK_OK(fkt_records_fingerprint(ds, two, 2, NULL, second));
    CHECK(strcmp(first, second) != 0);
    CHECK_STATUS(fkt_records_fingerprint(ds, (const size_t[]){3}, 1, NULL, second), FKT_E_ARG);
    scratch_write(&dir, "one/x/4.png", "no picture", 10);
    CHECK_OK(reopen("one"));
    CHECK(fkt_dataset_size(ds) == 4);
    CHECK_STATUS(fkt_records_fingerprint(ds, NULL, 0, NULL, second), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "4.png"));
    CHECK_OK(fkt_records_fingerprint(ds, NULL, 0, &lenient, second)); /* left out, as the walk leaves it out */
    assert_string_equal(first, second);
    CHECK(skipped.count == 0); /* the walk counts it, and once is enough */
}

static void threads_and_limits_do_not_matter(void **state)
{
    const struct fkt_walk_options one = {.threads = 1}, five = {.threads = 5};
    (void)state;
    opt.limit = 60;
    CHECK_OK(reopen_path("demo:train"));
    CHECK_OK(fkt_records_fingerprint(ds, NULL, 0, &one, first));
    CHECK_OK(fkt_records_fingerprint(ds, NULL, 0, &five, second));
    assert_string_equal(first, second);
    CHECK_OK(fkt_records_fingerprint(ds, (const size_t[]){0}, 0, NULL, second)); /* no record has a name, too */
    CHECK(strcmp(first, second) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(names_and_labels_do_not_enter), T(the_definition), T(which_are_of_one_class),
                                       T(a_choice_of_records_and_bad_ones), T(threads_and_limits_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
