/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/safetensors.h"

#include "base/file.h"
#include "base/rng.h"
#include "tests/support/check.h"

#include <sys/stat.h>
#include <unistd.h>

/* A file in memory: the header text after its length, then `data` bytes of zero. */
static size_t forge(uint8_t *out, const char *header, size_t data)
{
    uint64_t n = strlen(header);
    memcpy(out, &n, 8);
    memcpy(out + 8, header, n);
    memset(out + 8 + n, 0, data);
    return 8 + n + data;
}

static fkt_status parse_text(const char *header, size_t data)
{
    static uint8_t buf[1 << 16];
    struct fkt_safetensors *s = NULL;
    fkt_status st = fkt_safetensors_parse(&s, buf, forge(buf, header, data), "forged");
    fkt_safetensors_free(s);
    return st;
}

static void reference_file_is_read_exactly(void **state)
{
    static const float half[] = {0.0f, -0.0f, 1.0f, -2.0f, 65504.0f, 0x1p-14f, 0x1p-24f, -0x1p-15f, 0.333251953125f};
    static const float brain[] = {1.0f, -3.140625f, 0x1p-126f, 0x1p-133f, 3.3895313892515355e38f};
    struct fkt_safetensors *s = NULL;
    const struct fkt_tensor *t;
    float f[16];
    int64_t l[2];
    (void)state;
    CHECK_OK(fkt_safetensors_open(&s, FKT_TEST_VECTORS "/codec/reference.safetensors"));
    CHECK(fkt_safetensors_count(s) == 9 && !fkt_safetensors_at(s, 9));
    CHECK(!strcmp(fkt_safetensors_meta(s, "made"), "by the reference \xc3\xa9 \"q\""));
    CHECK(!fkt_safetensors_meta(s, "absent") && !fkt_safetensors_find(s, "absent"));
    CHECK_OK(fkt_safetensors_want(s, &t, "a.float", FKT_F32, 2, (const uint64_t[]){2, 3}));
    CHECK_OK(fkt_tensor_copy_f32(f, t));
    for (int i = 0; i < 6; i++) CHECK_NEAR(f[i], i / 4.0, 0);
    CHECK_OK(fkt_safetensors_want(s, &t, "b.double", FKT_F64, 1, (const uint64_t[]){2}));
    CHECK_OK(fkt_tensor_copy_f32(f, t));
    CHECK_NEAR(f[0], (float)(1.0 / 3), 0);
    CHECK_OK(fkt_safetensors_want(s, &t, "c.half", FKT_F16, 1, (const uint64_t[]){9}));
    CHECK_OK(fkt_tensor_copy_f32(f, t));
    CHECK(!memcmp(f, half, sizeof half));
    CHECK_OK(fkt_safetensors_want(s, &t, "d.brain", FKT_BF16, 1, (const uint64_t[]){5}));
    CHECK_OK(fkt_tensor_copy_f32(f, t));
    CHECK(!memcmp(f, brain, sizeof brain));
    CHECK_OK(fkt_safetensors_want(s, &t, "f.long", FKT_I64, 2, (const uint64_t[]){1, 2}));
    memcpy(l, t->data, sizeof l);
    CHECK(l[0] == -(INT64_C(1) << 62) && l[1] == 7);
    CHECK_STATUS(fkt_tensor_copy_f32(f, t), FKT_E_MISMATCH);
    CHECK_OK(fkt_safetensors_want(s, &t, "g.scalar", FKT_I32, 0, NULL));
    CHECK(t->count == 1);
    CHECK_OK(fkt_safetensors_want(s, &t, "h.empty", FKT_F32, 2, (const uint64_t[]){0, 4}));
    CHECK(t->count == 0);
    CHECK_OK(fkt_safetensors_want(s, &t, "i.\"quoted\"\nname", FKT_BOOL, 1, (const uint64_t[]){2}));
    CHECK_STATUS(fkt_safetensors_want(s, &t, "absent", FKT_F32, 0, NULL), FKT_E_FORMAT);
    CHECK_STATUS(fkt_safetensors_want(s, &t, "a.float", FKT_F64, 2, (const uint64_t[]){2, 3}), FKT_E_MISMATCH);
    CHECK_STATUS(fkt_safetensors_want(s, &t, "a.float", FKT_F32, 2, (const uint64_t[]){3, 2}), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "'a.float' is F32 (2,3), expected F32 (3,2)"));
    fkt_safetensors_free(s);
    CHECK(fkt_alloc_live() == 0);
}

/* Our writer, given the reference's order, gives the reference's bytes. */
static void writer_gives_the_reference_bytes(void **state)
{
    struct fkt_safetensors *s = NULL;
    struct fkt_st_writer *w = NULL;
    uint8_t *want = NULL, *got = NULL;
    size_t want_len, got_len;
    (void)state;
    CHECK_OK(fkt_file_read(&want, &want_len, FKT_TEST_VECTORS "/codec/reference.safetensors", 1 << 20));
    CHECK_OK(fkt_safetensors_parse(&s, want, want_len, "reference"));
    CHECK_OK(fkt_st_writer_new(&w));
    CHECK_OK(fkt_st_writer_meta(w, "made", fkt_safetensors_meta(s, "made")));
    for (size_t i = 0; i < fkt_safetensors_count(s); i++) {
        const struct fkt_tensor *t = fkt_safetensors_at(s, i);
        CHECK_OK(fkt_st_writer_add(w, t->name, t->dtype, t->rank, t->shape, t->data));
    }
    CHECK_OK(fkt_st_writer_bytes(w, &got, &got_len));
    CHECK(got_len == want_len && !memcmp(got, want, want_len));
    fkt_free(got);
    fkt_st_writer_free(w);
    fkt_safetensors_free(s);
    fkt_free(want);
    CHECK(fkt_alloc_live() == 0);
}

static void half_floats_are_exact(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t bits = (uint16_t)h;
        unsigned e = (h >> 10) & 31, m = h & 1023;
        struct fkt_tensor t = {.name = "h", .dtype = FKT_F16, .rank = 0, .data = &bits, .count = 1};
        float x = 7;
        double want = e ? (1 + m / 1024.0) * pow(2, (int)e - 15) : m / 1024.0 * pow(2, -14);
        if (e == 31) {
            CHECK_STATUS(fkt_tensor_copy_f32(&x, &t), FKT_E_NUMERIC);
        } else {
            CHECK_OK(fkt_tensor_copy_f32(&x, &t));
            CHECK_NEAR(x, h & 0x8000 ? -want : want, 0);
            CHECK(!signbit(x) == !(h & 0x8000));
        }
        t.dtype = FKT_BF16;
        if (((h >> 7) & 255) == 255) {
            CHECK_STATUS(fkt_tensor_copy_f32(&x, &t), FKT_E_NUMERIC);
        } else {
            uint32_t back;
            CHECK_OK(fkt_tensor_copy_f32(&x, &t));
            memcpy(&back, &x, 4);
            CHECK(back == h << 16);
        }
    }
}

static void non_finite_numbers_are_named(void **state)
{
    float f[4] = {1, 2, NAN, 4}, out[4];
    double d[2] = {1, 1e300};
    struct fkt_tensor t = {.name = "weights", .dtype = FKT_F32, .data = f, .count = 4};
    (void)state;
    CHECK_STATUS(fkt_tensor_copy_f32(out, &t), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "element 2 of tensor 'weights'"));
    f[2] = -INFINITY;
    CHECK_STATUS(fkt_tensor_copy_f32(out, &t), FKT_E_NUMERIC);
    t = (struct fkt_tensor){.name = "wide", .dtype = FKT_F64, .data = d, .count = 2};
    CHECK_STATUS(fkt_tensor_copy_f32(out, &t), FKT_E_NUMERIC);
}

#define T(name, dtype, shape, a, b)                                                                                    \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" a "," b "]}"

static void hostile_headers_are_refused(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } bad[] = {
        {"", 0, "not JSON"},
        {"[]", 0, "not a JSON object"},
        {"{} x", 0, "not JSON"},
        {"{\"a\":1}", 0, "'a' is not an object"},
        {"{" T("a", "F32", "[1]", "0", "4") "," T("a", "F32", "[1]", "0", "4") "}", 4, "duplicate"},
        {"{\"__metadata__\":{\"k\":1}}", 0, "metadata 'k' is not a string"},
        {"{\"__metadata__\":[]}", 0, "not an object"},
        {"{" T("a", "F33", "[1]", "0", "4") "}", 4, "unknown dtype 'F33'"},
        {"{" T("a", "F32", "[-1]", "0", "4") "}", 4, "dimension 0"},
        {"{" T("a", "F32", "[1.0]", "0", "4") "}", 4, "dimension 0"},
        {"{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, "9 dimensions"},
        {"{" T("a", "F32", "[4294967296,4294967296]", "0", "0") "}", 0, "overflows"},
        {"{" T("a", "F32", "[4611686018427387904]", "0", "0") "}", 0, "overflows"},
        {"{" T("a", "F32", "[99999999999999999999]", "0", "4") "}", 4, "not JSON"},
        {"{" T("a", "F32", "{}", "0", "4") "}", 4, "no shape"},
        {"{" T("a", "F32", "[1]", "4", "0") "}", 4, "end before its start"},
        {"{" T("a", "F32", "[1]", "-4", "0") "}", 4, "offset"},
        {"{" T("a", "F32", "[1]", "0", "4.0") "}", 4, "offset"},
        {"{" T("a", "F32", "[2]", "0", "8") "}", 4, "ends at byte 8 of a data part of 4"},
        {"{" T("a", "F32", "[1]", "0", "9223372036854775807") "}", 4, "ends at byte"},
        {"{" T("a", "F32", "[2]", "0", "4") "}", 4, "needs 8"},
        {"{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[1]", "4", "8") "}", 8, "'b' overlaps"},
        {"{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "0", "4") "}", 4, "overlaps"},
        {"{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "8", "12") "}", 12, "4 bytes before tensor 'b'"},
        {"{" T("a", "F32", "[1]", "0", "4") "}", 7, "last 3 bytes"},
        {"{}", 1, "last 1 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "pair of data offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "pair of data offsets"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}", 4, "does not know"},
        {"{\"a\\nb\":1}", 0, "'a?b'"},
        {"{\"a\\u009bb\\u00a0\":1}", 0, "'a?b\xc2\xa0'"},
        {"{\"\\u0000\":1}", 0, "not JSON"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fkt_status st = parse_text(bad[i].header, bad[i].data);
        if (st != FKT_E_FORMAT || !strstr(fkt_error_text(), bad[i].says) || !strstr(fkt_error_text(), "'forged'"))
            fail_msg("%s: status %d, said: %s", bad[i].header, st, fkt_error_text());
        CHECK(fkt_alloc_live() == 0);
    }
    {
        static const uint8_t long_header[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
        struct fkt_safetensors *s = NULL;
        CHECK_STATUS(fkt_safetensors_parse(&s, long_header, sizeof long_header, "forged"), FKT_E_FORMAT);
        CHECK(strstr(fkt_error_text(), "does not fit a file of 10"));
    }
    CHECK_OK(parse_text("{}", 0));
    CHECK_OK(parse_text("{" T("b", "F32", "[1]", "4", "8") "," T("a", "F32", "[1]", "0", "4") "}   \n", 8));
    CHECK_OK(parse_text("{" T("e", "F32", "[0,9]", "4", "4") "," T("a", "F32", "[1]", "0", "4") "}", 4));
}

/* Each prefix of a good file, and a good file with any one byte changed, is refused or read, without any other effect.
 * */
static void truncated_and_altered_files_do_no_harm(void **state)
{
    uint8_t *good = NULL, *bent = NULL;
    size_t len, accepted = 0;
    struct fkt_rng r;
    (void)state;
    CHECK_OK(fkt_file_read(&good, &len, FKT_TEST_VECTORS "/codec/reference.safetensors", 1 << 20));
    for (size_t n = 0; n < len; n++) {
        struct fkt_safetensors *s = NULL;
        CHECK_OK(fkt_alloc(&bent, n)); /* exact size: the sanitizer sees a read past the end */
        memcpy(bent, good, n);
        CHECK_STATUS(fkt_safetensors_parse(&s, bent, n, "cut"), FKT_E_FORMAT);
        CHECK(!s);
        fkt_free(bent);
    }
    fkt_rng_init(&r, 5, 0);
    for (int i = 0; i < 20000; i++) {
        struct fkt_safetensors *s = NULL;
        size_t at = (size_t)fkt_rng_below(&r, len);
        uint8_t was = good[at];
        good[at] ^= (uint8_t)(1 + fkt_rng_below(&r, 255));
        if (fkt_safetensors_parse(&s, good, len, "bent") == FKT_OK) {
            for (size_t k = 0; k < fkt_safetensors_count(s); k++) {
                const struct fkt_tensor *t = fkt_safetensors_at(s, k);
                const uint8_t *p = t->data;
                CHECK(p >= good && p + t->count * fkt_dtype_size(t->dtype) <= good + len);
            }
            accepted++;
        }
        fkt_safetensors_free(s);
        good[at] = was;
    }
    CHECK(accepted > 1000 && accepted < 10000); /* bytes of data and of names may change, bytes of structure may not */
    fkt_free(good);
    CHECK(fkt_alloc_live() == 0);
}

static void odd_files_get_clean_errors(void **state)
{
    char dir[] = "/tmp/fedkt-test-XXXXXX", path[64];
    static const uint8_t huge[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'};
    struct fkt_safetensors *s = NULL;
    (void)state;
    CHECK(mkdtemp(dir));
    CHECK_STATUS(fkt_safetensors_open(&s, dir), FKT_E_IO);
    snprintf(path, sizeof path, "%s/x", dir);
    CHECK_STATUS(fkt_safetensors_open(&s, path), FKT_E_IO);
    CHECK(symlink(path, path) == 0);
    CHECK_STATUS(fkt_safetensors_open(&s, path), FKT_E_IO);
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK_STATUS(fkt_safetensors_open(&s, path), FKT_E_IO);
    CHECK(unlink(path) == 0);
    CHECK_OK(fkt_file_write(path, "", 0, 0));
    CHECK_STATUS(fkt_safetensors_open(&s, path), FKT_E_FORMAT);
    CHECK_OK(fkt_file_write(path, "1234567", 7, 1));
    CHECK_STATUS(fkt_safetensors_open(&s, path), FKT_E_FORMAT);
    CHECK_OK(fkt_file_write(path, huge, sizeof huge, 1));
    CHECK_STATUS(fkt_safetensors_open(&s, path), FKT_E_FORMAT);
    CHECK(!s && unlink(path) == 0 && rmdir(dir) == 0);
    CHECK(fkt_alloc_live() == 0);
}

static void writer_refuses_what_it_cannot_write(void **state)
{
    struct fkt_st_writer *w = NULL;
    float x[4] = {0};
    const uint64_t two[] = {2}, huge[] = {UINT64_MAX, 2};
    (void)state;
    CHECK_OK(fkt_st_writer_new(&w));
    CHECK_OK(fkt_st_writer_add(w, "a", FKT_F32, 1, two, x));
    CHECK_STATUS(fkt_st_writer_add(w, "a", FKT_F32, 1, two, x), FKT_E_ARG);
    CHECK_STATUS(fkt_st_writer_add(w, "__metadata__", FKT_F32, 1, two, x), FKT_E_ARG);
    CHECK_STATUS(fkt_st_writer_add(w, "\xff", FKT_F32, 1, two, x), FKT_E_ARG);
    CHECK_STATUS(fkt_st_writer_add(w, "b", FKT_F32, 2, huge, x), FKT_E_ARG);
    CHECK_STATUS(fkt_st_writer_add(w, "b", FKT_F32, 1, (const uint64_t[]){UINT64_C(1) << 61}, x), FKT_E_ARG);
    CHECK_STATUS(fkt_st_writer_add(w, "b", FKT_F32, 9, huge, x), FKT_E_ARG);
    CHECK_STATUS(fkt_st_writer_add(w, "b", (enum fkt_dtype)99, 1, two, x), FKT_E_ARG);
    CHECK_OK(fkt_st_writer_meta(w, "k", "v"));
    CHECK_STATUS(fkt_st_writer_meta(w, "k", "w"), FKT_E_ARG);
    CHECK_STATUS(fkt_st_writer_meta(w, "l", "\xc3"), FKT_E_ARG);
    fkt_st_writer_free(w);
    CHECK(fkt_alloc_live() == 0);
}

static void written_bytes_are_pinned(void **state)
{
    static const char want[] =
        "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"},\"z\":{\"dtype\":\"U8\",\"shape\":[3],"
        "\"data_offsets\":[0,3]},\"y\":{\"dtype\":\"I16\",\"shape\":[1,2],\"data_offsets\":[3,7]}}";
    struct fkt_st_writer *w = NULL;
    uint8_t *bytes = NULL, *file = NULL;
    size_t len, file_len;
    const uint8_t z[3] = {1, 2, 3};
    const int16_t y[2] = {-1, 2};
    char dir[] = "/tmp/fedkt-test-XXXXXX", path[64];
    (void)state;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/x", dir);
    CHECK_OK(fkt_st_writer_new(&w));
    CHECK_OK(fkt_st_writer_meta(w, "b", "2"));
    CHECK_OK(fkt_st_writer_add(w, "z", FKT_U8, 1, (const uint64_t[]){3}, z));
    CHECK_OK(fkt_st_writer_add(w, "y", FKT_I16, 2, (const uint64_t[]){1, 2}, y));
    CHECK_OK(fkt_st_writer_meta(w, "a", "1"));
    CHECK_OK(fkt_st_writer_bytes(w, &bytes, &len));
    CHECK(bytes[0] % 8 == 0 && len == 8 + (size_t)bytes[0] + 7);
    CHECK(!memcmp(bytes + 8, want, sizeof want - 1));
    for (size_t i = 8 + sizeof want - 1; i < len - 7; i++) CHECK(bytes[i] == ' ');
    CHECK(!memcmp(bytes + len - 7, z, 3) && !memcmp(bytes + len - 4, y, 4));
    CHECK_OK(fkt_st_writer_write(w, path, 0));
    CHECK_STATUS(fkt_st_writer_write(w, path, 0), FKT_E_EXISTS);
    CHECK_OK(fkt_st_writer_write(w, path, 1));
    CHECK_OK(fkt_file_read(&file, &file_len, path, 1000));
    CHECK(file_len == len && !memcmp(file, bytes, len));
    CHECK(unlink(path) == 0 && rmdir(dir) == 0);
    fkt_free(file);
    fkt_free(bytes);
    fkt_st_writer_free(w);
    CHECK(fkt_alloc_live() == 0);
}

/* The plainest failure: there is no such folder. */
static void a_failed_write_leaves_nothing(void **state)
{
    struct fkt_st_writer *w = NULL;
    struct fkt_st_stream *s = NULL;
    (void)state;
    CHECK_OK(fkt_st_writer_new(&w));
    CHECK_STATUS(fkt_st_writer_write(w, "/nonexistent-folder/x", 0), FKT_E_IO);
    fkt_st_writer_free(w);
    CHECK_STATUS(fkt_st_stream_new(&s, "/nonexistent-folder/x", 0), FKT_E_IO);
    CHECK(!s && fkt_alloc_live() == 0);
}

static void stream_equals_writer(void **state)
{
    enum { N = 5000, D = 7 };
    static float z[N][D];
    static int64_t labels[N];
    struct fkt_st_writer *w = NULL;
    struct fkt_st_stream *s = NULL;
    uint8_t *want = NULL, *got = NULL;
    size_t want_len, got_len, zi, li;
    char dir[] = "/tmp/fedkt-test-XXXXXX", path[64];
    (void)state;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/x", dir);
    for (int i = 0; i < N; i++) {
        labels[i] = i * 3 - 1;
        for (int j = 0; j < D; j++) z[i][j] = (float)(i * D + j) / 3;
    }
    CHECK_OK(fkt_st_writer_new(&w));
    CHECK_OK(fkt_st_writer_meta(w, "k", "v"));
    CHECK_OK(fkt_st_writer_add(w, "z", FKT_F32, 2, (const uint64_t[]){N, D}, z));
    CHECK_OK(fkt_st_writer_add(w, "labels", FKT_I64, 1, (const uint64_t[]){N}, labels));
    CHECK_OK(fkt_st_writer_bytes(w, &want, &want_len));

    CHECK_OK(fkt_st_stream_new(&s, path, 0));
    CHECK_OK(fkt_st_stream_tensor(s, "z", FKT_F32, 1, (const uint64_t[]){D}, &zi));
    CHECK_OK(fkt_st_stream_tensor(s, "labels", FKT_I64, 0, NULL, &li));
    CHECK_OK(fkt_st_stream_meta(s, "k", "v"));
    for (size_t i = 0; i < N; i += 100) {
        CHECK_OK(fkt_st_stream_rows(s, zi, z[i], 100));
        for (size_t j = 0; j < 100; j++) CHECK_OK(fkt_st_stream_rows(s, li, &labels[i + j], 1));
    }
    CHECK_STATUS(fkt_st_stream_rows(s, 2, z, 1), FKT_E_ARG);
    CHECK_OK(fkt_st_stream_close(&s));
    CHECK(!s);
    CHECK_OK(fkt_file_read(&got, &got_len, path, 1 << 20));
    CHECK(got_len == want_len && !memcmp(got, want, want_len));

    CHECK_STATUS(fkt_st_stream_new(&s, path, 0), FKT_E_EXISTS);
    CHECK_OK(fkt_st_stream_new(&s, path, 1)); /* uneven: the old file stays */
    CHECK_OK(fkt_st_stream_tensor(s, "z", FKT_F32, 1, (const uint64_t[]){D}, &zi));
    CHECK_OK(fkt_st_stream_tensor(s, "labels", FKT_I64, 0, NULL, &li));
    CHECK_OK(fkt_st_stream_rows(s, zi, z, 2));
    CHECK_OK(fkt_st_stream_rows(s, li, labels, 1));
    CHECK_STATUS(fkt_st_stream_close(&s), FKT_E_STATE);
    CHECK(!s);
    fkt_free(got);
    CHECK_OK(fkt_file_read(&got, &got_len, path, 1 << 20));
    CHECK(got_len == want_len);
    fkt_free(got);
    fkt_free(want);
    fkt_st_writer_free(w);
    CHECK(unlink(path) == 0 && rmdir(dir) == 0); /* rmdir: no temporary file is left */
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_file_is_read_exactly), cmocka_unit_test(writer_gives_the_reference_bytes),
        cmocka_unit_test(half_floats_are_exact),          cmocka_unit_test(non_finite_numbers_are_named),
        cmocka_unit_test(hostile_headers_are_refused),    cmocka_unit_test(truncated_and_altered_files_do_no_harm),
        cmocka_unit_test(odd_files_get_clean_errors),     cmocka_unit_test(writer_refuses_what_it_cannot_write),
        cmocka_unit_test(written_bytes_are_pinned),       cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(stream_equals_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
