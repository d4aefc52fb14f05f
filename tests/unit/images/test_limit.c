/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of records, and `limit`: N records evenly over the classes, and what one record more can move. The sets are
 * small and many, so that every case of limit.c's argument comes up often. */
#include "fedkt/image.h"

#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/support/image_files.h"
#include "tests/support/scratch.h"

#include <unistd.h>

enum { MOST = 16, K = 4 };

static struct scratch dir;

struct item {
    uint32_t id; /* its four grey pixels */
    uint8_t label;
};
struct set {
    struct item item[MOST + 1];
    size_t n;
};

static void put_u32(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(x >> (24 - 8 * i));
}

static void write_set(const struct set *s)
{
    uint8_t images[16 + 4 * (MOST + 1)] = {0, 0, 8, 3}, labels[8 + MOST + 1] = {0, 0, 8, 1};
    put_u32(images + 4, (uint32_t)s->n);
    put_u32(images + 8, 2);
    put_u32(images + 12, 2);
    put_u32(labels + 4, (uint32_t)s->n);
    for (size_t i = 0; i < s->n; i++) {
        put_u32(images + 16 + 4 * i, s->item[i].id);
        labels[8 + i] = s->item[i].label;
    }
    scratch_write(&dir, "m/train-images-idx3-ubyte", images, 16 + 4 * s->n);
    scratch_write(&dir, "m/train-labels-idx1-ubyte", labels, 8 + s->n);
}

static void open_set(struct fkt_dataset **ds, const struct set *s, size_t limit)
{
    static const char *const names[K] = {"a", "b", "c", "d"};
    const struct fkt_dataset_options o = {.classes = names, .n_classes = K, .limit = limit};
    write_set(s);
    CHECK_OK(fkt_dataset_open(ds, scratch_path(&dir, "m"), &o));
}

/* What `limit` keeps of s, in the order of s. */
static void keep(struct set *out, const struct set *s, size_t limit)
{
    struct fkt_dataset *ds = NULL;
    open_set(&ds, s, limit);
    out->n = fkt_dataset_size(ds);
    for (size_t i = 0; i < out->n; i++) {
        uint8_t *rgb = NULL;
        uint32_t w, h;
        CHECK_OK(fkt_dataset_read_original(ds, i, &rgb, &w, &h));
        out->item[i].id = 0;
        for (int p = 0; p < 4; p++) out->item[i].id = out->item[i].id << 8 | rgb[3 * p];
        out->item[i].label = (uint8_t)fkt_dataset_label(ds, i);
        fkt_image_free(rgb);
    }
    fkt_dataset_free(ds);
}

static int has(const struct set *s, struct item x)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->item[i].id == x.id && s->item[i].label == x.label) return 1;
    return 0;
}

/* What comes in and what goes out, by class, from a to b. */
struct change {
    size_t in[K], out[K];
    size_t alone, swaps; /* classes with one record in or out; with one in and one out */
};

static struct change change(const struct set *a, const struct set *b)
{
    struct change c = {0};
    for (size_t i = 0; i < b->n; i++) c.in[b->item[i].label] += !has(a, b->item[i]);
    for (size_t i = 0; i < a->n; i++) c.out[a->item[i].label] += !has(b, a->item[i]);
    for (int k = 0; k < K; k++) {
        CHECK(c.in[k] <= 1 && c.out[k] <= 1);
        c.alone += c.in[k] != c.out[k];
        c.swaps += c.in[k] && c.out[k];
    }
    return c;
}

static struct set random_set(struct fkt_rng *rng, size_t n)
{
    struct set s = {.n = n};
    uint64_t classes = 1 + fkt_rng_below(rng, K);
    for (size_t i = 0; i < n; i++) {
        uint64_t a = fkt_rng_below(rng, classes), b = fkt_rng_below(rng, classes);
        s.item[i] = (struct item){(uint32_t)fkt_rng_u64(rng), (uint8_t)(a < b ? a : b)};
    }
    return s;
}

static struct item random_item(struct fkt_rng *rng)
{
    return (struct item){(uint32_t)fkt_rng_u64(rng), (uint8_t)fkt_rng_below(rng, K)};
}

/* No class has two more than a class that could give more. */
static void check_even(const struct set *all, const struct set *kept, size_t limit)
{
    size_t n[K] = {0}, q[K] = {0};
    CHECK(kept->n == (all->n < limit ? all->n : limit));
    for (size_t i = 0; i < all->n; i++) n[all->item[i].label]++;
    for (size_t i = 0; i < kept->n; i++) q[kept->item[i].label]++;
    for (size_t i = 0; i < kept->n; i++) CHECK(has(all, kept->item[i]));
    for (int a = 0; a < K; a++)
        for (int b = 0; b < K; b++)
            if (q[a] < n[a]) CHECK(q[b] <= q[a] + (b < a));
}

/* Add-remove: at most one in and one out. Either the class stays the same (a swap), or two classes change by one. */
static void one_more_moves_at_most_one(void **state)
{
    struct fkt_rng rng;
    size_t kinds[3] = {0};
    (void)state;
    fkt_rng_init(&rng, 1, 0);
    for (int turn = 0; turn < 300; turn++) {
        struct set s = random_set(&rng, 1 + (size_t)fkt_rng_below(&rng, MOST)), more = s, a, b;
        size_t limit = 1 + (size_t)fkt_rng_below(&rng, MOST), at = (size_t)fkt_rng_below(&rng, s.n + 1);
        struct change c;
        memmove(more.item + at + 1, more.item + at, (s.n - at) * sizeof *s.item);
        more.item[at] = random_item(&rng);
        more.n++;
        keep(&a, &s, limit);
        keep(&b, &more, limit);
        check_even(&s, &a, limit);
        check_even(&more, &b, limit);
        c = change(&a, &b);
        CHECK((c.alone == 0 && c.swaps <= 1) || (c.swaps == 0 && c.alone <= 2));
        CHECK(s.n < limit ? c.alone == 1 && c.swaps == 0 : c.alone != 1);
        kinds[c.swaps ? 0 : c.alone ? c.alone : 0] += c.swaps || c.alone;
    }
    CHECK(kinds[0] > 10 && kinds[1] > 10 && kinds[2] > 10); /* all three have happened */
}

/* `replace`: one in and one out of the same class, as without a limit. `replace-any`: two swaps, or one swap and two
 * classes that change by one, or less; never four classes. */
static void one_other_moves_at_most_two(void **state)
{
    struct fkt_rng rng;
    size_t worst[2] = {0};
    (void)state;
    fkt_rng_init(&rng, 2, 0);
    for (int turn = 0; turn < 300; turn++) {
        struct set s = random_set(&rng, 1 + (size_t)fkt_rng_below(&rng, MOST)), other = s, a, b;
        size_t limit = 1 + (size_t)fkt_rng_below(&rng, MOST), at = (size_t)fkt_rng_below(&rng, s.n);
        struct change c;
        other.item[at].id = (uint32_t)fkt_rng_u64(&rng);
        keep(&a, &s, limit);
        keep(&b, &other, limit);
        c = change(&a, &b);
        CHECK(c.alone == 0 && c.swaps <= 1);
        other.item[at].label = random_item(&rng).label;
        keep(&b, &other, limit);
        check_even(&other, &b, limit);
        c = change(&a, &b);
        CHECK(2 * c.swaps + c.alone <= 4 && c.alone <= 2);
        worst[0] += c.swaps == 2;
        worst[1] += c.swaps == 1 && c.alone == 2;
    }
    CHECK(worst[0] > 0 && worst[1] > 0);
}

/* Neither the order of the records nor their names decide, and the first of a class are not preferred. */
static void order_does_not_matter(void **state)
{
    struct fkt_rng rng;
    size_t first = 0;
    (void)state;
    fkt_rng_init(&rng, 3, 0);
    for (int turn = 0; turn < 60; turn++) {
        struct set s = random_set(&rng, MOST), mixed = s, a, b;
        size_t order[MOST];
        struct change c;
        for (size_t i = 0; i < MOST; i++) order[i] = i;
        fkt_rng_shuffle(&rng, order, MOST);
        for (size_t i = 0; i < MOST; i++) mixed.item[i] = s.item[order[i]];
        keep(&a, &s, 6);
        keep(&b, &mixed, 6);
        c = change(&a, &b);
        CHECK(c.alone == 0 && c.swaps == 0);
        for (size_t i = 0; i < MOST; i++) s.item[i].label = 0;
        keep(&a, &s, 8);
        first += has(&a, s.item[0]);
    }
    CHECK_NEAR((double)first, 30, 5 * sqrt(60 * 0.25)); /* five standard deviations */
}

/* Opens s with a limit by number; gives the numbers and labels of what is kept, and how many. */
static size_t numbers_of(const struct set *s, size_t limit, uint64_t numbers[MOST], uint32_t labels[MOST])
{
    static const char *const names[K] = {"a", "b", "c", "d"};
    const struct fkt_dataset_options o = {.classes = names, .n_classes = K, .limit = limit, .limit_by_number = 1};
    struct fkt_dataset *ds = NULL;
    size_t n;
    write_set(s);
    CHECK_OK(fkt_dataset_open(&ds, scratch_path(&dir, "m"), &o));
    CHECK_OK(fkt_dataset_numbers(ds, numbers));
    n = fkt_dataset_size(ds);
    for (size_t i = 0; i < n; i++) labels[i] = fkt_dataset_label(ds, i);
    fkt_dataset_free(ds);
    return n;
}

/* By number: other pixels move no record, and the numbers are those in the whole set. */
static void by_number_pixels_do_not_matter(void **state)
{
    struct fkt_rng rng;
    size_t first = 0, gaps = 0;
    (void)state;
    fkt_rng_init(&rng, 4, 0);
    for (int turn = 0; turn < 100; turn++) {
        struct set s = random_set(&rng, 1 + (size_t)fkt_rng_below(&rng, MOST)), other = s;
        size_t limit = 1 + (size_t)fkt_rng_below(&rng, MOST), at = (size_t)fkt_rng_below(&rng, s.n), n;
        uint64_t a[MOST], b[MOST];
        uint32_t la[MOST], lb[MOST];
        other.item[at].id = (uint32_t)fkt_rng_u64(&rng);
        n = numbers_of(&s, limit, a, la);
        CHECK(n == (s.n < limit ? s.n : limit) && numbers_of(&other, limit, b, lb) == n);
        for (size_t i = 0; i < n; i++) {
            CHECK(a[i] == b[i] && la[i] == lb[i]);
            CHECK(a[i] < s.n && la[i] == s.item[a[i]].label && (i == 0 || a[i] > a[i - 1]));
            gaps += a[i] != i;
        }
        first += s.n > limit && a[0] != 0;
    }
    CHECK(gaps > 10 && first > 10); /* not the first of each class */
}

/* By bytes the numbers depend on pixels, and are not given; where nothing was left out, they do not. */
static void no_numbers_after_a_limit_by_bytes(void **state)
{
    static const struct set s = {{{1, 0}, {2, 0}, {3, 1}}, 3};
    uint64_t numbers[3] = {9, 9, 9};
    (void)state;
    for (size_t limit = 0; limit < 4; limit++) {
        struct fkt_dataset *ds = NULL;
        open_set(&ds, &s, limit);
        CHECK_STATUS(fkt_dataset_numbers(ds, numbers), limit % 3 ? FKT_E_ARG : FKT_OK);
        fkt_dataset_free(ds);
    }
    CHECK(numbers[0] == 0 && numbers[1] == 1 && numbers[2] == 2);
}

static void keys_are_of_bytes_alone(void **state)
{
    static const struct set s = {{{0x01020304, 1}, {0x05060708, 0}, {0x01020304, 2}}, 3};
    static const uint8_t one[4] = {1, 2, 3, 4}, two[4] = {5, 6, 7, 8};
    const size_t last[] = {2}, beyond[] = {3};
    struct fkt_dataset *ds = NULL;
    uint64_t keys[3];
    (void)state;
    open_set(&ds, &s, 0);
    CHECK_OK(fkt_dataset_keys(ds, NULL, 0, 1, keys));
    CHECK(keys[0] == fkt_record_key(one, 4) && keys[1] == fkt_record_key(two, 4) && keys[2] == keys[0]);
    keys[0] = 0;
    CHECK_OK(fkt_dataset_keys(ds, last, 1, 2, keys));
    CHECK(keys[0] == fkt_record_key(one, 4));
    CHECK_STATUS(fkt_dataset_keys(ds, beyond, 1, 1, keys), FKT_E_ARG);
    fkt_dataset_free(ds);
    ds = NULL;
    scratch_write(&dir, "f/cat/a.png", "abc", 3); /* nothing is decoded */
    scratch_write(&dir, "f/cat/c.png", "abc", 3);
    CHECK(symlink("nowhere", scratch_path(&dir, "f/cat/b.png")) == 0);
    CHECK_OK(fkt_dataset_open(&ds, scratch_path(&dir, "f"), NULL));
    CHECK_OK(fkt_dataset_keys(ds, NULL, 0, 0, keys));
    CHECK(keys[0] == fkt_record_key("abc", 3) && keys[1] == fkt_record_key(NULL, 0) && keys[2] == keys[0]);
    fkt_dataset_free(ds);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_of_bytes_alone),        cmocka_unit_test(one_more_moves_at_most_one),
        cmocka_unit_test(one_other_moves_at_most_two),    cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(by_number_pixels_do_not_matter), cmocka_unit_test(no_numbers_after_a_limit_by_bytes),
    };
    int failed;
    scratch_init(&dir);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&dir);
    return failed;
}
