/* SPDX-License-Identifier: Apache-2.0 */
/* Slots bound to tensors: every kind of misfit is counted and named; numbers come as they are in the file. */
#include "nn/weights.h"

#include "base/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static const float six[6] = {1, -2, 3.5F, 4, -5, 6.25F};

/* A file in memory, of one tensor after the other. */
struct bytes {
    struct fkt_st_writer *w;
    uint8_t *bytes;
    struct fkt_safetensors *file;
};

static void open_bytes(struct bytes *b)
{
    size_t len;
    CHECK_OK(fkt_st_writer_bytes(b->w, &b->bytes, &len));
    CHECK_OK(fkt_safetensors_parse(&b->file, b->bytes, len, "weights"));
}

static void free_bytes(struct bytes *b)
{
    fkt_safetensors_free(b->file);
    fkt_free(b->bytes);
    fkt_st_writer_free(b->w);
}

static void tensor(struct bytes *b, const char *name, enum fkt_dtype dtype, uint64_t x, uint64_t y, const void *data)
{
    const uint64_t shape[2] = {x, y};
    if (!b->w) CHECK_OK(fkt_st_writer_new(&b->w));
    CHECK_OK(fkt_st_writer_add(b->w, name, dtype, y ? 2 : 1, shape, data));
}

static fkt_status bind(struct fkt_weights **w, const struct fkt_net *n, const struct bytes *b,
                       int (*ignore)(const char *), char **report)
{
    const struct fkt_safetensors *files[1] = {b->file};
    return fkt_weights_bind(w, n, files, 1, ignore, report);
}

static void all_types_and_shapes_without_ones(void **state)
{
    static const uint16_t f16[6] = {0x3c00, 0xc000, 0x4300, 0x4400, 0xc500, 0x4640};
    static const uint16_t bf16[6] = {0x3f80, 0xc000, 0x4060, 0x4080, 0xc0a0, 0x40c8};
    static const double f64[6] = {1, -2, 3.5, 4, -5, 6.25};
    struct bytes b = {0};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    char old[] = "set", *report = old;
    (void)state;
    tensor(&b, "f32", FKT_F32, 2, 3, six);
    tensor(&b, "f16", FKT_F16, 2, 3, f16);
    tensor(&b, "bf16", FKT_BF16, 2, 3, bf16);
    tensor(&b, "f64", FKT_F64, 2, 3, f64);
    tensor(&b, "vector", FKT_F32, 6, 1, six);
    open_bytes(&b);
    fkt_net_init(&n, 3);
    fkt_net_slot(&n, "f32", 2, 3, 1, 1); /* a 1x1 convolution kept as a matrix */
    fkt_net_slot(&n, "f16", 2, 3, 0, 0);
    fkt_net_slot(&n, "bf16", 2, 3, 1, 1);
    fkt_net_slot(&n, "f64", 2, 3, 0, 0);
    fkt_net_slot(&n, "vector", 6, 0, 0, 0);
    CHECK_OK(bind(&w, &n, &b, NULL, &report));
    CHECK(report == NULL);
    fkt_net_clear(&n); /* is no longer needed */
    for (uint32_t i = 0; i < 5; i++) {
        float got[6] = {0};
        CHECK_OK(fkt_weights_read(w, i, got));
        assert_memory_equal(got, six, sizeof six);
    }
    assert_string_equal(fkt_weights_name(w, 1), "f16");
    CHECK(!fkt_weights_mapped(w, 1) && !fkt_weights_mapped(w, 2) && !fkt_weights_mapped(w, 3));
    fkt_weights_free(w);
    free_bytes(&b);
}

static void parts_stack_along_the_first_dimension(void **state)
{
    static const char *const near[] = {"a", "b"}, *const far[] = {"b", "a"};
    struct bytes b = {0};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    const float *mapped;
    float got[6];
    (void)state;
    tensor(&b, "a", FKT_F32, 1, 3, six);
    tensor(&b, "b", FKT_F32, 1, 3, six + 3);
    open_bytes(&b);
    fkt_net_init(&n, 3);
    fkt_net_slot_parts(&n, near, 2, 2, 3, 1, 1);
    fkt_net_slot_parts(&n, far, 2, 2, 3, 1, 1);
    CHECK_OK(bind(&w, &n, &b, NULL, NULL));
    CHECK_OK(fkt_weights_read(w, 0, got));
    assert_memory_equal(got, six, sizeof six);
    CHECK_OK(fkt_weights_read(w, 1, got));
    assert_memory_equal(got, six + 3, sizeof six / 2);
    assert_memory_equal(got + 3, six, sizeof six / 2);
    mapped = fkt_weights_mapped(w, 0);
    CHECK(mapped == NULL || mapped == fkt_safetensors_find(b.file, "a")->data);
    CHECK(fkt_weights_mapped(w, 1) == NULL); /* the second part does not follow the first */
    fkt_weights_drop(w, 0);                  /* borrowed bytes stay */
    CHECK_OK(fkt_weights_read(w, 0, got));
    assert_memory_equal(got, six, sizeof six);
    fkt_weights_free(w);
    fkt_net_clear(&n);
    free_bytes(&b);
}

static int is_counter(const char *name) { return !strcmp(name, "steps"); }

static void every_misfit_is_named(void **state)
{
    static const int64_t whole[2] = {1, 2};
    static const char *const parts[] = {"part", "lost"};
    struct bytes b = {0};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    char *report = NULL;
    (void)state;
    tensor(&b, "shape", FKT_F32, 3, 2, six);
    tensor(&b, "type", FKT_I64, 2, 0, whole);
    tensor(&b, "part", FKT_F32, 2, 3, six);
    tensor(&b, "good", FKT_F32, 6, 0, six);
    tensor(&b, "steps", FKT_I64, 1, 0, whole);
    tensor(&b, "stray\n", FKT_F32, 2, 0, six);
    open_bytes(&b);
    fkt_net_init(&n, 3);
    fkt_net_slot(&n, "missing", 4, 0, 0, 0);
    fkt_net_slot(&n, "shape", 2, 3, 1, 1);
    fkt_net_slot(&n, "type", 2, 0, 0, 0);
    fkt_net_slot(&n, "good", 6, 0, 0, 0);
    fkt_net_slot_parts(&n, parts, 2, 2, 3, 0, 0);
    CHECK_STATUS(bind(&w, &n, &b, is_counter, &report), FKT_E_MISMATCH);
    CHECK(w == NULL);
    assert_string_equal(report, "'missing' (4) is missing\n"
                                "'shape' is (3,2), expected (2,3,1,1)\n"
                                "'type' is I64, which is not a weight type\n"
                                "'part' is (2,3), expected (1,3)\n"
                                "'lost' (1,3) is missing\n"
                                "'stray?' (2) is not part of this network\n");
    assert_string_equal(fkt_error_text(),
                        "6 tensors do not fit the network: 'missing' (4) is missing; 'shape' is (3,2), expected "
                        "(2,3,1,1); 'type' is I64, which is not a weight type; ...");
    fkt_free(report);
    CHECK_STATUS(bind(&w, &n, &b, NULL, NULL), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "7 tensors do not fit"));
    fkt_net_clear(&n);
    free_bytes(&b);
}

static void one_misfit_is_one(void **state)
{
    struct bytes b = {0};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    (void)state;
    tensor(&b, "t", FKT_F32, 1, 6, six);
    open_bytes(&b);
    fkt_net_init(&n, 3);
    fkt_net_slot(&n, "t", 6, 0, 0, 0); /* the same numbers in the same order, but ones in front are not dropped */
    CHECK_STATUS(bind(&w, &n, &b, NULL, NULL), FKT_E_MISMATCH);
    assert_string_equal(fkt_error_text(), "1 tensor does not fit the network: 't' is (1,6), expected (6)");
    fkt_net_clear(&n);
    free_bytes(&b);
}

static void a_failed_network_binds_nothing(void **state)
{
    static const char *const names[] = {"a"};
    struct bytes b = {0};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    (void)state;
    tensor(&b, "a", FKT_F32, 6, 0, six);
    open_bytes(&b);
    fkt_net_init(&n, 3);
    fkt_net_slot_parts(&n, names, 0, 6, 0, 0, 0);
    CHECK_STATUS(bind(&w, &n, &b, NULL, NULL), FKT_E_ARG);
    CHECK(w == NULL);
    fkt_net_clear(&n);
    free_bytes(&b);
}

static void the_first_of_two_files_wins(void **state)
{
    struct bytes a = {0}, b = {0};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    const struct fkt_safetensors *files[2];
    float got[3];
    (void)state;
    tensor(&a, "x", FKT_F32, 3, 0, six);
    tensor(&b, "y", FKT_F32, 3, 0, six + 3);
    open_bytes(&a);
    open_bytes(&b);
    files[0] = a.file;
    files[1] = b.file;
    fkt_net_init(&n, 3);
    fkt_net_slot(&n, "y", 3, 0, 0, 0);
    fkt_net_slot(&n, "x", 3, 0, 0, 0);
    CHECK_OK(fkt_weights_bind(&w, &n, files, 2, NULL, NULL));
    CHECK_OK(fkt_weights_read(w, 0, got));
    assert_memory_equal(got, six + 3, sizeof got);
    fkt_weights_free(w);
    files[1] = a.file;
    CHECK_STATUS(fkt_weights_bind(&w, &n, files, 2, NULL, NULL), FKT_E_MISMATCH);
    assert_string_equal(fkt_error_text(),
                        "2 tensors do not fit the network: 'y' (3) is missing; 'x' (3) is not part of this network");
    fkt_net_clear(&n);
    free_bytes(&a);
    free_bytes(&b);
}

static void what_is_not_finite_is_named(void **state)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct bytes b = {0};
        struct fkt_net n;
        struct fkt_weights *w = NULL;
        float bad[6], got[6];
        memcpy(bad, six, sizeof bad);
        bad[4] = wrong[i];
        tensor(&b, "layer.weight", FKT_F32, 6, 0, bad);
        open_bytes(&b);
        fkt_net_init(&n, 3);
        fkt_net_slot(&n, "layer.weight", 6, 0, 0, 0);
        CHECK_OK(bind(&w, &n, &b, NULL, NULL));
        CHECK_STATUS(fkt_weights_read(w, 0, got), FKT_E_NUMERIC);
        CHECK(strstr(fkt_error_text(), "element 4") && strstr(fkt_error_text(), "layer.weight"));
        fkt_weights_free(w);
        fkt_net_clear(&n);
        free_bytes(&b);
    }
}

/* Kilobytes of the mapped file that this process holds in memory. */
static long held(const char *path)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    long kb = 0;
    int ours = 0;
    CHECK(f);
    while (fgets(line, sizeof line, f)) {
        if (strchr(line, '-') && strstr(line, " r--p ")) ours = strstr(line, path) != NULL;
        if (ours && !strncmp(line, "Rss:", 4)) kb += strtol(line + 4, NULL, 10), ours = 0;
    }
    fclose(f);
    return kb;
}

static void dropped_pages_come_back(void **state)
{
    enum { MANY = 64 * 1024 };
    struct scratch s;
    struct fkt_st_writer *out = NULL;
    struct fkt_safetensors *file = NULL;
    struct fkt_weights *w = NULL;
    struct fkt_net n;
    const uint64_t shape[2] = {MANY, 1};
    float *many = NULL, *got = NULL;
    const float *mapped;
    const char *path;
    (void)state;
    scratch_init(&s);
    path = scratch_path(&s, "w.safetensors");
    CHECK_OK(fkt_alloc(&many, MANY));
    CHECK_OK(fkt_alloc(&got, MANY));
    for (size_t i = 0; i < MANY; i++) many[i] = (float)i;
    CHECK_OK(fkt_st_writer_new(&out));
    CHECK_OK(fkt_st_writer_add(out, "tiny", FKT_F32, 1, (const uint64_t[]){6}, six));
    CHECK_OK(fkt_st_writer_add(out, "many", FKT_F32, 1, shape, many));
    CHECK_OK(fkt_st_writer_add(out, "end", FKT_F32, 1, (const uint64_t[]){6}, six));
    CHECK_OK(fkt_st_writer_write(out, path, 0));
    fkt_st_writer_free(out);
    CHECK_OK(fkt_safetensors_open(&file, path));
    fkt_net_init(&n, 3);
    fkt_net_slot(&n, "tiny", 6, 0, 0, 0);
    fkt_net_slot(&n, "many", MANY, 0, 0, 0);
    fkt_net_slot(&n, "end", 6, 0, 0, 0);
    {
        const struct fkt_safetensors *files[1] = {file};
        CHECK_OK(fkt_weights_bind(&w, &n, files, 1, NULL, NULL));
    }
    mapped = fkt_weights_mapped(w, 1);
    CHECK(mapped == fkt_safetensors_find(file, "many")->data && mapped[MANY - 1] == MANY - 1);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fkt_weights_read(w, 1, got));
        assert_memory_equal(got, many, MANY * sizeof *many);
        CHECK(held(path) >= 256);
        for (uint32_t slot = 0; slot < 3; slot++) fkt_weights_drop(w, slot);
        CHECK(held(path) < 128); /* what shares a page with a neighbour stays */
        CHECK_OK(fkt_weights_read(w, 2, got));
        assert_memory_equal(got, six, sizeof six);
    }
    fkt_weights_free(w);
    fkt_net_clear(&n);
    fkt_safetensors_free(file);
    fkt_free(many);
    fkt_free(got);
    scratch_release(&s);
}

/* Numbers in memory behave like those of a file: borrowed, where they lie, and looked at when they are read. */
static void arrays_are_weights_too(void **state)
{
    static const char *const parts[] = {"q", "k", "v"};
    static float bad[6] = {1, 2, NAN, 4, 5, 6};
    const float *arrays[3] = {six, six, bad};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    float got[6] = {0};
    (void)state;
    fkt_net_init(&n, 3);
    fkt_net_slot(&n, "matrix", 2, 3, 0, 0);
    fkt_net_slot_parts(&n, parts, 3, 6, 0, 0, 0);
    fkt_net_slot(&n, "broken", 6, 1, 1, 1);
    CHECK_OK(fkt_weights_from_arrays(&w, &n, arrays));
    fkt_net_clear(&n); /* is no longer needed */
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(fkt_weights_mapped(w, i) == six);
        fkt_weights_drop(w, i);
        CHECK_OK(fkt_weights_read(w, i, got));
        assert_memory_equal(got, six, sizeof six);
    }
    assert_string_equal(fkt_weights_name(w, 0), "matrix");
    assert_string_equal(fkt_weights_name(w, 1), "q");
    CHECK_STATUS(fkt_weights_read(w, 2, got), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "element 2") && strstr(fkt_error_text(), "'broken'"));
    bad[2] = 3; /* they are borrowed: what is written there is read */
    CHECK_OK(fkt_weights_read(w, 2, got));
    CHECK(got[2] == 3);
    fkt_weights_free(w);
    fkt_net_init(&n, 3);
    fkt_net_slot_parts(&n, parts, 0, 1, 0, 0, 0);
    CHECK_STATUS(fkt_weights_from_arrays(&w, &n, arrays), FKT_E_ARG);
    CHECK(!w);
    fkt_net_clear(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types_and_shapes_without_ones),
        cmocka_unit_test(parts_stack_along_the_first_dimension),
        cmocka_unit_test(every_misfit_is_named),
        cmocka_unit_test(one_misfit_is_one),
        cmocka_unit_test(a_failed_network_binds_nothing),
        cmocka_unit_test(the_first_of_two_files_wins),
        cmocka_unit_test(what_is_not_finite_is_named),
        cmocka_unit_test(dropped_pages_come_back),
        cmocka_unit_test(arrays_are_weights_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
