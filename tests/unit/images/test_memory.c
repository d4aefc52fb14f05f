/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset in memory is the dataset of a .npz with the same images: labels, keys, pixels, records, moments, latents,
 * sites of a simulation and training sets agree to the bit, copied or borrowed, in one array or by pointers. */
#include "fedkt/advanced/simulate.h"
#include "fedkt/fedkt.h"

#include "crypto/hash.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"
#include "tests/support/sweep.h"

enum { N = 60, SIDE = 20, BYTES = SIDE * SIDE * 3, SHOWN = 16 };

static struct scratch dir;
static struct fkt_pipeline *pipeline;
static uint8_t *pixels; /* (N, SIDE, SIDE, 3) */
static uint32_t labels[N];
static const char *const *classes;
static size_t n_classes;

static struct fkt_dataset_arrays whole(void)
{
    return (struct fkt_dataset_arrays){.rgb = pixels,
                                       .width = SIDE,
                                       .height = SIDE,
                                       .labels = labels,
                                       .n = N,
                                       .classes = classes,
                                       .n_classes = n_classes};
}

static int open_all(void **state)
{
    struct fkt_dataset *demo = NULL;
    struct fkt_export *e = NULL;
    (void)state;
    scratch_init(&dir);
    CHECK_OK(small_pipeline(&pipeline, &demo, N, 5, FKT_COORDINATE_GAIN_SHAPE));
    classes = (const char *const *)fkt_pipeline_task(pipeline)->classes;
    n_classes = fkt_pipeline_task(pipeline)->n_classes;
    CHECK_OK(fkt_alloc(&pixels, (size_t)N * BYTES));
    CHECK_OK(fkt_export_open(&e, dir.dir, FKT_EXPORT_NPZ, "train", classes, n_classes, SIDE, N));
    for (size_t i = 0; i < N; i++) {
        labels[i] = fkt_dataset_label(demo, i);
        CHECK_OK(fkt_dataset_read(demo, i, SIDE, FKT_FILTER_BILINEAR, pixels + i * BYTES, NULL));
        CHECK_OK(fkt_export_add(e, labels[i], pixels + i * BYTES));
    }
    CHECK_OK(fkt_export_close(&e));
    fkt_dataset_free(demo);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fkt_pipeline_free(pipeline);
    fkt_free(pixels);
    scratch_release(&dir);
    return 0;
}

/* Everything that is computed from a set, in one place. */
struct outcome {
    size_t n;
    uint32_t label[N];
    uint64_t key[N];
    uint8_t shown[N][SHOWN * SHOWN * 3];
    struct fkt_record_digest record[N];
    char moments[FKT_SHA256_HEX], simulated[FKT_SHA256_HEX], latents[FKT_SHA256_HEX];
    uint32_t owner[N];
    uint8_t trained[N * SHOWN * SHOWN * 3];
};

static void simulate(const struct fkt_dataset *ds, struct outcome *o)
{
    size_t train[N];
    const struct fkt_simulation_spec spec = {.pipeline = pipeline,
                                             .data = ds,
                                             .train = train,
                                             .n_train = o->n,
                                             .partition = {.sites = 3, .seed = 4},
                                             .participation = 1,
                                             .seed = 9,
                                             .threads = 2};
    struct fkt_simulation sim;
    for (size_t i = 0; i < o->n; i++) train[i] = i;
    CHECK_OK(fkt_simulate(&sim, &spec));
    memcpy(o->owner, sim.owner, o->n * sizeof *o->owner);
    CHECK_OK(fkt_moments_sha256(sim.total, o->simulated));
    fkt_simulation_clear(&sim);
}

static void use(const struct fkt_dataset *ds, struct outcome *o)
{
    const struct fkt_training_set_options two = {.threads = 2};
    const struct fkt_record_digest *list;
    struct fkt_pipeline_options options = {.threads = 2};
    struct fkt_training_set set;
    struct fkt_moments *m = NULL;
    size_t found;
    memset(o, 0, sizeof *o);
    o->n = fkt_dataset_size(ds);
    CHECK(o->n <= N);
    CHECK_OK(fkt_dataset_keys(ds, NULL, 0, 2, o->key));
    for (size_t i = 0; i < o->n; i++) {
        o->label[i] = fkt_dataset_label(ds, i);
        CHECK_OK(fkt_dataset_read(ds, i, SHOWN, FKT_FILTER_BICUBIC, o->shown[i], NULL));
    }
    CHECK_OK(fkt_records_new(&options.records, FKT_ADJACENCY_ADD_REMOVE));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &options));
    CHECK_OK(fkt_moments_sha256(m, o->moments));
    CHECK_OK(fkt_records_list(options.records, &list, &found));
    memcpy(o->record, list, found * sizeof *list);
    simulate(ds, o);
    CHECK_OK(fkt_pipeline_encode(pipeline, ds, NULL, 0, scratch_path(&dir, "latents"), 1, &options));
    CHECK_OK(fkt_hash_file_hex(o->latents, scratch_path(&dir, "latents")));
    CHECK_OK(fkt_training_set_read(&set, ds, NULL, 0, SHOWN, FKT_FILTER_BILINEAR, "a set", &two));
    memcpy(o->trained, set.rgb, set.n * SHOWN * SHOWN * 3);
    fkt_training_set_clear(&set);
    fkt_moments_free(m);
    fkt_records_free(options.records);
}

static void check_same(const struct outcome *want, const struct fkt_dataset *ds)
{
    static struct outcome got;
    use(ds, &got);
    CHECK(got.n == want->n);
    assert_memory_equal(got.label, want->label, sizeof got.label);
    assert_memory_equal(got.key, want->key, sizeof got.key);
    assert_memory_equal(got.shown, want->shown, sizeof got.shown);
    assert_memory_equal(got.record, want->record, sizeof got.record);
    assert_string_equal(got.moments, want->moments);
    assert_string_equal(got.latents, want->latents);
    assert_string_equal(got.simulated, want->simulated);
    assert_memory_equal(got.owner, want->owner, sizeof got.owner);
    assert_memory_equal(got.trained, want->trained, sizeof got.trained);
}

/* By a pointer each, in reverse order in memory. */
static void pointers_to(const uint8_t *image[N], uint8_t **copy, uint32_t side[N])
{
    CHECK_OK(fkt_alloc(copy, (size_t)N * BYTES));
    for (size_t i = 0; i < N; i++) {
        uint8_t *at = *copy + (N - 1 - i) * BYTES;
        memcpy(at, pixels + i * BYTES, BYTES);
        image[i] = at;
        side[i] = SIDE;
    }
}

static void it_is_the_set_of_a_npz(void **state)
{
    static struct outcome want;
    const size_t limits[] = {0, 23};
    const uint8_t *image[N];
    uint32_t side[N];
    uint8_t *copy;
    (void)state;
    pointers_to(image, &copy, side);
    for (size_t l = 0; l < 2; l++) {
        const struct fkt_dataset_options o = {.classes = classes, .n_classes = n_classes, .limit = limits[l]};
        struct fkt_dataset_arrays a = whole();
        struct fkt_dataset *ds = NULL;
        CHECK_OK(fkt_dataset_open(&ds, scratch_path(&dir, "dataset.npz"), &o));
        use(ds, &want);
        fkt_dataset_free(ds);
        CHECK_OK(fkt_dataset_from_arrays(&ds, &a, &o));
        assert_string_equal(fkt_dataset_format(ds), "arrays in memory");
        if (!l) assert_string_equal(fkt_dataset_name(ds, 7), "memory[7]");
        check_same(&want, ds);
        fkt_dataset_free(ds);
        a.rgb = NULL;
        a.images = image;
        a.borrow = 1;
        CHECK_OK(fkt_dataset_from_arrays(&ds, &a, &o));
        check_same(&want, ds);
        fkt_dataset_free(ds);
        a.widths = a.heights = side;
        a.width = a.height = 0;
        CHECK_OK(fkt_dataset_from_arrays(&ds, &a, &o));
        check_same(&want, ds);
        fkt_dataset_free(ds);
    }
    fkt_free(copy);
}

/* A copy does not see later changes, what is borrowed does. */
static void copied_or_borrowed(void **state)
{
    uint8_t red[2 * 3 * 3] = {200}, *got;
    const uint32_t label = 0;
    struct fkt_dataset_arrays a = {.rgb = red, .width = 3, .height = 2, .labels = &label, .n = 1, .classes = classes};
    struct fkt_dataset *ds[2];
    uint32_t w, h;
    (void)state;
    a.n_classes = 1;
    for (int i = 0; i < 2; i++) {
        a.borrow = i;
        CHECK_OK(fkt_dataset_from_arrays(&ds[i], &a, NULL));
    }
    red[0] = 100;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(fkt_dataset_read_original(ds[i], 0, &got, &w, &h));
        CHECK(w == 3 && h == 2 && got[0] == (i ? 100 : 200));
        fkt_image_free(got);
        fkt_dataset_free(ds[i]);
    }
}

static void refuse(struct fkt_dataset_arrays a, const char *why)
{
    struct fkt_dataset *ds = NULL;
    CHECK_STATUS(fkt_dataset_from_arrays(&ds, &a, NULL), FKT_E_ARG);
    CHECK(ds == NULL);
    if (!strstr(fkt_error_text(), why)) fail_msg("'%s' does not say '%s'", fkt_error_text(), why);
}

static void bad_arrays_are_refused(void **state)
{
    static const char *const twice[] = {"a", "b", "a"}, *const nameless[] = {"a", ""};
    const uint8_t *missing[N] = {0};
    uint32_t bad[N], side[N] = {0};
    struct fkt_dataset *ds = NULL;
    const struct fkt_dataset_options split = {.split = "train"};
    struct fkt_dataset_arrays a;
    (void)state;
#define REFUSE(change, why)                                                                                            \
    do {                                                                                                               \
        a = whole();                                                                                                   \
        change;                                                                                                        \
        refuse(a, why);                                                                                                \
    } while (0)
    memcpy(bad, labels, sizeof bad);
    bad[N - 1] = (uint32_t)n_classes;
    REFUSE(a = (struct fkt_dataset_arrays){0}, "at least one image");
    REFUSE(a.n = 0, "at least one image");
    REFUSE(a.labels = NULL, "labels");
    REFUSE(a.rgb = NULL, "not both");
    REFUSE(a.images = missing, "not both");
    REFUSE((a.rgb = NULL, a.images = missing), "image 0 is NULL");
    REFUSE(a.width = 0, "0 x 20 pixels");
    REFUSE(a.height = UINT32_MAX, "4294967295 pixels");
    REFUSE(a.widths = side, "belong together");
    REFUSE((a.widths = side, a.heights = side), "of one size");
    REFUSE((a.rgb = NULL, a.images = missing, a.widths = side, a.heights = side), "image 0 is 0 x 0");
    REFUSE(a.labels = bad, "image 59: label 10 is outside 0..9");
    REFUSE(a.classes = NULL, "class names");
    REFUSE(a.n_classes = 0, "class names");
    REFUSE(a.n_classes = SIZE_MAX, "class names");
    REFUSE((a.classes = twice, a.n_classes = 3), "listed twice");
    REFUSE((a.classes = nameless, a.n_classes = 2), "has no name");
    a = whole();
    CHECK_STATUS(fkt_dataset_from_arrays(&ds, &a, &split), FKT_E_ARG);
}

static fkt_status make_and_read(void)
{
    static uint8_t rgb[BYTES];
    struct fkt_dataset_arrays a = whole();
    struct fkt_dataset *ds = NULL;
    fkt_status st = fkt_dataset_from_arrays(&ds, &a, NULL);
    if (st == FKT_OK) st = fkt_dataset_read(ds, 3, 8, FKT_FILTER_BOX, rgb, NULL);
    fkt_dataset_free(ds);
    return st;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    CHECK(sweep_allocations(make_and_read, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_set_of_a_npz),
        cmocka_unit_test(copied_or_borrowed),
        cmocka_unit_test(bad_arrays_are_refused),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, open_all, close_all));
}
