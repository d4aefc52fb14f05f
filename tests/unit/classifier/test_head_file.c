/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "classifier/heads.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"

#include <unistd.h>

static const double count[] = {50, 80, 20}, mean[] = {1, 0, -1, 0.5, 0, -2}, edge[] = {0.1, 0.05, 0.2},
                    noise[] = {0.01, 0.02, 0.03}, cov[] = {1, 0.2, 0.2, 2, 3, 0, 0, 1, 1, -0.5, -0.5, 1};
static const struct fkt_class_statistics toy = {
    .classes = 3, .length = 2, .count = count, .mean = mean, .cov = cov, .noise_edge = edge, .mean_noise = noise};
static char path[64];

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/fedkt-head-%ld", (long)getpid());
    return 0;
}
static int drop_path(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void a_head_survives_the_disk(void **state)
{
    static const char *const names[] = {"owl", "a \"b\"", "\xc3\xa9tang"};
    (void)state;
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
        struct fkt_head *a = NULL, *b = NULL;
        CHECK_OK(fkt_head_fit(&a, (enum fkt_head_kind)kind, &toy));
        if (kind) CHECK_OK(fkt_head_set_classes(a, names)); /* one without names, as older files are */
        CHECK_OK(fkt_head_save(a, path, 1));
        CHECK_STATUS(fkt_head_save(a, path, 0), FKT_E_EXISTS);
        CHECK_OK(fkt_head_load(&b, path));
        CHECK(b->kind == a->kind && b->classes == 3 && b->length == 2);
        for (uint32_t k = 0; k < 4; k++) assert_string_equal(fkt_head_class(b, k), kind && k < 3 ? names[k] : "");
        for (double x = -3; x < 3; x += 0.7)
            for (double y = -3; y < 3; y += 0.7) {
                double w[2] = {x, y}, sa[3], sb[3], work[2];
                fkt_head_scores(a, w, sa, work);
                fkt_head_scores(b, w, sb, work);
                CHECK(!memcmp(sa, sb, sizeof sa));
            }
        fkt_head_free(a);
        fkt_head_free(b);
    }
    CHECK(fkt_alloc_live() == 0);
}

/* Writes a head file with one thing wrong and expects the loader to say so. */
struct lie {
    const char *format, *kind, *names;
    uint64_t bias, classes, length, map;
    double value;
    int without_map, flat;
    const char *parts;
};
static void expect_refusal(struct lie l, fkt_status want)
{
    double data[64] = {0};
    const uint64_t bias[] = {l.bias}, two[] = {l.classes, l.length}, three[] = {l.classes, l.length, l.map};
    struct fkt_st_writer *w = NULL;
    struct fkt_head *h = NULL;
    data[0] = l.value;
    CHECK_OK(fkt_st_writer_new(&w));
    if (l.format) CHECK_OK(fkt_st_writer_meta(w, "format", l.format));
    if (l.kind) CHECK_OK(fkt_st_writer_meta(w, "kind", l.kind));
    if (l.names) CHECK_OK(fkt_st_writer_meta(w, "classes", l.names));
    if (l.parts) CHECK_OK(fkt_st_writer_meta(w, "parts", l.parts));
    CHECK_OK(fkt_st_writer_add(w, "bias", FKT_F64, 1, bias, data));
    CHECK_OK(fkt_st_writer_add(w, "mean", FKT_F64, l.flat ? 1 : 2, two, data));
    if (!l.without_map) CHECK_OK(fkt_st_writer_add(w, "map", FKT_F64, 3, three, data));
    CHECK_OK(fkt_st_writer_write(w, path, 1));
    fkt_st_writer_free(w);
    if (want == FKT_OK) CHECK_OK(fkt_head_load(&h, path));
    else {
        fkt_status st = fkt_head_load(&h, path);
        if (st != want && !(want == FKT_E_FORMAT && st == FKT_E_MISMATCH))
            fail_msg("got %s: %s", fkt_status_name(st), fkt_error_text());
        CHECK(h == NULL && strstr(fkt_error_text(), path));
    }
    fkt_head_free(h);
    CHECK(fkt_alloc_live() == 0);
}

static void a_false_file_is_refused(void **state)
{
    const struct lie good = {"fedkt.head/1", "qda", "[\"a\",\"b\",\"c\"]", 3, 3, 2, 2, 1.0, 0, 0, NULL};
    struct lie l;
    struct fkt_head *h = NULL;
    (void)state;
    expect_refusal(good, FKT_OK);
    l = good, l.format = NULL, expect_refusal(l, FKT_E_FORMAT);
    l = good, l.format = "fedkt.head/2", expect_refusal(l, FKT_E_FORMAT);
    l = good, l.kind = NULL, expect_refusal(l, FKT_E_FORMAT);
    l = good, l.kind = "svm", expect_refusal(l, FKT_E_FORMAT);
    l = good, l.kind = "lda", expect_refusal(l, FKT_E_FORMAT); /* has no weight */
    l = good, l.bias = 4, expect_refusal(l, FKT_E_FORMAT);
    l = good, l.map = 3, expect_refusal(l, FKT_E_FORMAT);
    l = good, l.without_map = 1, expect_refusal(l, FKT_E_FORMAT);
    l = good, l.flat = 1, expect_refusal(l, FKT_E_FORMAT);
    l = good, l.classes = 0, l.bias = 0, expect_refusal(l, FKT_E_FORMAT);
    l = good, l.length = 0, expect_refusal(l, FKT_E_FORMAT);
    l = good, l.names = NULL, expect_refusal(l, FKT_OK);
    l = good, l.names = "[\"a\",\"b\"]", expect_refusal(l, FKT_E_FORMAT);
    l = good, l.names = "[\"a\",\"b\",3]", expect_refusal(l, FKT_E_FORMAT);
    l = good, l.names = "[\"a\",\"b\",\"\\u001b\"]", expect_refusal(l, FKT_E_FORMAT);
    l = good, l.names = "{", expect_refusal(l, FKT_E_FORMAT);
    l = good, l.parts = "[[5,2]]", expect_refusal(l, FKT_OK);
    {
        static const char *const lies[] = {"",
                                           "{}",
                                           "[]",
                                           "[[0,3]]",
                                           "[[0,1]]",
                                           "[[-1,2]]",
                                           "[[0,\"2\"]]",
                                           "[[0,2,1]]",
                                           "[[0,1],[0,1]]",
                                           "[[4,1],[0,1]]",
                                           "[[0,2],[2,0]]",
                                           "[[0,1],[1,1]]" /* of two parts: no map.0 */,
                                           "[[2147483648,2]]",
                                           "[[0,1],[1,1],[2,1],[3,1],[4,1]]"};
        for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
            l = good, l.parts = lies[i], expect_refusal(l, FKT_E_FORMAT);
    }
    l = good, l.value = NAN, expect_refusal(l, FKT_E_NUMERIC);
    l = good, l.value = INFINITY, expect_refusal(l, FKT_E_NUMERIC);
    CHECK_OK(fkt_file_write(path, "not a head", 10, 1));
    CHECK(fkt_head_load(&h, path) != FKT_OK && h == NULL);
    unlink(path);
    CHECK_STATUS(fkt_head_load(&h, path), FKT_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_survives_the_disk),
        cmocka_unit_test(a_false_file_is_refused),
    };
    return cmocka_run_group_tests(tests, make_path, drop_path);
}
