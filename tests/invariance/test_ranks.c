/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks give what one process gives, to the bit: moments, digests, copies, skipped images, norms, latents and
 * scores, for 1 to 7 ranks and shards that are uneven or empty. A failure on one rank is that of all, and no file is
 * left. The set has exact copies that fall into different shards, one image under two labels, and one that cannot be
 * read. */
#include "fedkt/advanced/moments.h"
#include "fedkt/fedkt.h"

#include "pipeline/rows.h"
#include "tests/support/check.h"
#include "tests/support/image_files.h"
#include "tests/support/thread_ranks.h"

#include <unistd.h>

#define T(f) cmocka_unit_test(f)
enum { EACH = 13, RECORDS = 2 * EACH };

static struct scratch scratch;
static struct fkt_pipeline *pipeline;
static struct fkt_dataset *set;
static size_t good[RECORDS], n_good; /* without the image that cannot be read */

/* Image i of class k: the last of class 0 is a copy of its first, and image 3 is in both classes. */
static void write_image(int k, int i)
{
    char name[32];
    size_t len;
    const int shade = k == 0 && i == EACH - 1 ? 0 : i == 3 ? 70 : 100 * k + 5 * i;
    uint8_t *png = image_plain(&len, 16, 16, (uint8_t)shade, (uint8_t)(250 - shade), (uint8_t)(shade * 7));
    snprintf(name, sizeof name, "set/%c/%02d.png", 'a' + k, i);
    if (k == 1 && i == 7) scratch_write(&scratch, name, "no image", 8);
    else scratch_write(&scratch, name, png, len);
    free(png);
}

static int setup(void **state)
{
    const struct fkt_dataset_options o = {0};
    const struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    const char *classes[2] = {"a", "b"};
    struct fkt_task_choices c = {
        .name = "ranks", .classes = classes, .n_classes = 2, .privacy = {.epsilon = 1, .delta = 1e-5}};
    struct fkt_codec *codec = NULL;
    struct fkt_calibration cal = {0};
    struct fkt_task *task = NULL;
    (void)state;
    scratch_init(&scratch);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < EACH; i++) write_image(k, i);
    CHECK_OK(fkt_dataset_open(&set, scratch_path(&scratch, "set"), &o));
    assert_int_equal(fkt_dataset_size(set), RECORDS);
    for (size_t i = 0; i < RECORDS; i++)
        if (!strstr(fkt_dataset_name(set, i), "07.png") || fkt_dataset_label(set, i) == 0) good[n_good++] = i;
    assert_int_equal(n_good, RECORDS - 1);
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_calibration_embedded(&cal, codec));
    CHECK_OK(fkt_task_make(&task, &c, &(struct fkt_part_choice){.codec = codec, .calibration = &cal}, 1));
    CHECK_OK(fkt_pipeline_open(&pipeline, task, NULL, NULL));
    fkt_task_free(task);
    fkt_calibration_clear(&cal);
    fkt_codec_free(codec);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fkt_pipeline_free(pipeline);
    fkt_dataset_free(set);
    scratch_release(&scratch);
    return 0;
}

/* What one process, or rank 0, has at the end. */
struct outcome {
    const size_t *idx;
    size_t n;
    int skip;
    unsigned threads;
    enum fkt_adjacency adjacency;
    char latents[256], text[THREAD_RANKS_MAX][256];
    fkt_status st[THREAD_RANKS_MAX];
    int64_t packed[2 * 55];
    size_t copies, images, skipped, again, scored;
    uint64_t names_len, bins[FKT_NORM_BINS];
};

static void look(struct outcome *o, struct fkt_moments *m, struct fkt_records *records, const struct fkt_skipped *s)
{
    const struct fkt_record_digest *list;
    const int64_t *packed;
    if (fkt_moments_packed(m, &packed) != FKT_OK || fkt_moments_numbers(m) != 2 * 55) abort();
    memcpy(o->packed, packed, sizeof o->packed);
    if (fkt_records_list(records, &list, &o->images) != FKT_OK) abort();
    o->copies = fkt_records_copies(records);
    o->skipped = s->count;
    o->names_len = s->names ? strlen(s->names) : 0;
}

static fkt_status count_batch(void *ctx, unsigned worker, const struct fkt_batch *b)
{
    struct outcome *o = ctx;
    (void)worker;
    if (!b->w) return FKT_E_STATE;
    for (size_t i = 0; i < b->n; i++)
        if (o->scored < RECORDS && b->places[i] >= o->scored) o->scored++; /* in order */
    return FKT_OK;
}

static void body(void *ctx, struct fkt_ranks *r)
{
    struct outcome *o = ctx;
    struct fkt_skipped skipped = {0}, again = {0};
    struct fkt_norms norms = {.lo = -10, .hi = 10};
    struct fkt_moments *m = NULL;
    struct fkt_records *records = NULL;
    struct fkt_pipeline_options options = {
        .threads = o->threads, .skipped = o->skip ? &skipped : NULL, .norms = &norms, .ranks = r};
    const struct fkt_visitor v = {.visit = count_batch, .ctx = o, .in_order = 1};
    const int first = !r || !r->rank;
    fkt_status st;
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &m));
    FKT_TRY(fkt_records_new(&records, o->adjacency));
    options.records = records;
    FKT_TRY(fkt_pipeline_moments(pipeline, set, o->idx, o->n, m, &options));
    if (first) look(o, m, records, &skipped);
    if (first) memcpy(o->bins, norms.bins, sizeof o->bins);
    options.skipped = o->skip ? &again : NULL;
    FKT_TRY(fkt_pipeline_encode(pipeline, set, o->idx, o->n, o->latents, 0, &options));
    if (first) o->again = again.count;
    FKT_TRY(fkt_rows_visit(FKT_ROWS_W, pipeline, set, o->idx, o->n, &v, &options, "looking"));
out:
    st = fkt_ranks_agree(r, st);
    o->st[r ? r->rank : 0] = st;
    if (st != FKT_OK) snprintf(o->text[r ? r->rank : 0], sizeof *o->text, "%s", fkt_error_text());
    fkt_skipped_clear(&skipped);
    fkt_skipped_clear(&again);
    fkt_records_free(records);
    fkt_moments_free(m);
}

static size_t file_bytes(const char *path, uint8_t *bytes, size_t cap)
{
    FILE *f = fopen(path, "rb");
    size_t n;
    assert_non_null(f);
    n = fread(bytes, 1, cap, f);
    fclose(f);
    assert_true(n > 0 && n < cap);
    return n;
}

static void same(const struct outcome *want, const struct outcome *got)
{
    static uint8_t a[1 << 16], b[1 << 16];
    const size_t n = file_bytes(want->latents, a, sizeof a);
    assert_memory_equal(got->packed, want->packed, sizeof got->packed);
    assert_memory_equal(got->bins, want->bins, sizeof got->bins);
    assert_int_equal(got->copies, want->copies);
    assert_int_equal(got->images, want->images);
    assert_int_equal(got->skipped, want->skipped);
    assert_int_equal(got->again, want->skip);
    assert_int_equal(got->skipped, got->again);
    assert_int_equal(got->names_len, want->names_len);
    assert_int_equal(got->scored, want->scored);
    assert_int_equal(file_bytes(got->latents, b, sizeof b), n);
    assert_memory_equal(a, b, n);
}

static void compare_ranks(const struct outcome *asked)
{
    struct outcome alone = *asked;
    snprintf(alone.latents, sizeof alone.latents, "%s", scratch_path(&scratch, "alone"));
    body(&alone, NULL);
    assert_int_equal(alone.st[0], FKT_OK);
    for (uint32_t size = 1; size <= 7; size++) {
        struct outcome shared = *asked;
        snprintf(shared.latents, sizeof shared.latents, "%s", scratch_path(&scratch, "shared"));
        assert_int_equal(thread_ranks(size, body, &shared), 0);
        for (uint32_t i = 0; i < size; i++) assert_int_equal(shared.st[i], FKT_OK);
        same(&alone, &shared);
        unlink(shared.latents);
    }
    unlink(alone.latents);
}

static void any_number_of_ranks_gives_the_same(void **state)
{
    const struct outcome all = {.idx = good, .n = RECORDS - 1, .threads = 1};
    struct outcome few = all, threads = all, skip = {.idx = NULL, .skip = 1, .threads = 1}, exact = all;
    (void)state;
    compare_ranks(&all);
    few.n = 3; /* most shards are empty */
    compare_ranks(&few);
    threads.threads = 3;
    compare_ranks(&threads);
    compare_ranks(&skip);
    exact.adjacency = FKT_ADJACENCY_REPLACE; /* copies count */
    compare_ranks(&exact);
}

/* The copies are what this test is about: they must be there. */
static void a_copy_in_another_shard_counts_once(void **state)
{
    struct outcome o = {.idx = good, .n = RECORDS - 1, .threads = 1};
    (void)state;
    snprintf(o.latents, sizeof o.latents, "%s", scratch_path(&scratch, "copies"));
    assert_int_equal(thread_ranks(4, body, &o), 0);
    unlink(o.latents);
    assert_int_equal(o.st[0], FKT_OK);
    assert_int_equal(o.copies, 1);
    assert_int_equal(o.images, RECORDS - 3); /* unreadable, copy, and the image under two labels */
    assert_int_equal(o.packed[0], EACH - 1);
    assert_int_equal(o.packed[55], EACH - 1);
}

static void a_failure_on_one_rank_is_that_of_all(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= 5; size++) {
        struct outcome o = {.idx = NULL, .threads = 1};
        snprintf(o.latents, sizeof o.latents, "%s", scratch_path(&scratch, "none"));
        assert_int_equal(thread_ranks(size, body, &o), 0);
        for (uint32_t i = 0; i < size; i++) {
            assert_int_equal(o.st[i], FKT_E_FORMAT);
            assert_non_null(strstr(o.text[i], "07.png"));
        }
        assert_int_equal(access(o.latents, F_OK), -1);
    }
}

/* Rank 0 alone knows that the output is there. */
static void an_output_that_exists_ends_all_ranks(void **state)
{
    struct outcome o = {.idx = good, .n = RECORDS - 1, .threads = 1};
    (void)state;
    scratch_write(&scratch, "there", "x", 1);
    snprintf(o.latents, sizeof o.latents, "%s", scratch_path(&scratch, "there"));
    assert_int_equal(thread_ranks(3, body, &o), 0);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(o.st[i], FKT_E_EXISTS);
}

struct sum {
    uint64_t n_max;
    int64_t each;
    fkt_status st[THREAD_RANKS_MAX];
    int64_t count;
};

static void add_counts(void *ctx, struct fkt_ranks *r)
{
    struct sum *s = ctx;
    const struct fkt_moments_layout layout = {.parts = 1, .length = {1}, .rq = {64}};
    int64_t packed[3] = {s->each, 0, s->each * 4096};
    const int64_t *total;
    struct fkt_moments *m = NULL;
    fkt_status st;
    FKT_TRY(fkt_moments_new(&m, 1, &layout, s->n_max));
    FKT_TRY(fkt_moments_add_packed(m, packed));
    FKT_TRY(fkt_moments_reduce(m, r));
    if (!r->rank) FKT_TRY(fkt_moments_packed(m, &total));
    if (!r->rank) s->count = total[0];
out:
    s->st[r->rank] = st;
    fkt_moments_free(m);
}

/* Entries close to 2^61: what fits is exact, and what does not is refused on all ranks, also where a sum of int64 would
 * wrap around to something plausible. */
static void sums_are_checked_at_every_step(void **state)
{
    const int64_t most = ((INT64_C(1) << 61) - 1) / 4096;
    struct sum fits = {.each = most / 8}, full = {.each = most}, tight = {.n_max = 23, .each = 3};
    (void)state;
    assert_int_equal(thread_ranks(8, add_counts, &fits), 0);
    for (int i = 0; i < 8; i++) assert_int_equal(fits.st[i], FKT_OK);
    assert_true(fits.count == 8 * (most / 8));
    assert_int_equal(thread_ranks(8, add_counts, &full), 0);
    for (int i = 0; i < 8; i++) assert_int_equal(full.st[i], FKT_E_NUMERIC);
    assert_int_equal(thread_ranks(8, add_counts, &tight), 0);
    for (int i = 0; i < 8; i++) assert_int_equal(tight.st[i], FKT_E_NUMERIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(any_number_of_ranks_gives_the_same),   T(a_copy_in_another_shard_counts_once),
        T(a_failure_on_one_rank_is_that_of_all), T(an_output_that_exists_ends_all_ranks),
        T(sums_are_checked_at_every_step),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, setup, teardown));
}
