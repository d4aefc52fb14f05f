/* SPDX-License-Identifier: Apache-2.0 */
/* A whole model scores as its pipeline and head do, and is the same after it was written and read again; false files
 * are refused. */
#include "fedkt/heads.h"
#include "fedkt/whole.h"

#include "base/file.h"
#include "tensor/safetensors.h"
#include "tests/support/released.h"
#include "tests/support/whole_toy.h"

#include <sys/stat.h>

static const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};

/* The codec without weights becomes one linear operation. */
static void scores_are_those_of_the_pipeline(void **state)
{
    const uint32_t classes = fkt_pipeline_task(pipeline)->n_classes,
                   length = fkt_pipeline_task(pipeline)->part[0].coordinates.length;
    struct fkt_training_set set = {0};
    struct fkt_gaussians g;
    struct fkt_release r;
    struct fkt_heads h;
    double *w = NULL, *scores = NULL, work[64];
    int32_t *q = NULL;
    float *got = NULL;
    (void)state;
    make_release(&r, NULL, 0);
    CHECK_OK(fkt_release_gaussians(&r, 0, &raw, &g));
    CHECK_OK(fkt_heads_fit(&h, &g, &r.task, FKT_HEADS_DEFAULT, &r));
    CHECK_OK(fkt_training_set_read(&set, demo, NULL, 0, 16, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK_OK(fkt_alloc(&w, set.n * length));
    CHECK_OK(fkt_alloc(&q, set.n * length));
    CHECK_OK(fkt_alloc(&scores, classes));
    CHECK_OK(fkt_alloc(&got, set.n * classes));
    CHECK_OK(fkt_pipeline_vectors(pipeline, set.rgb, set.n, w, q));
    for (size_t k = 0; k < h.n; k++) {
        struct fkt_whole *m = NULL;
        struct fkt_evaluation j;
        uint32_t label[64];
        size_t hits = 0;
        CHECK_OK(fkt_whole_make(&m, pipeline, h.head[k], &r));
        CHECK(fkt_whole_size(m) == 16 && fkt_whole_classes(m) == classes && !*fkt_whole_not_private(m));
        CHECK(fkt_whole_origin(m)->is_private && fkt_whole_origin(m)->epsilon == 5);
        assert_string_equal(fkt_whole_class(m, 2), fkt_pipeline_task(pipeline)->classes[2]);
        CHECK_OK(fkt_whole_predict(m, set.rgb, set.n, got, NULL));
        CHECK_OK(fkt_head_predict(h.head[k], w, set.n, label));
        for (size_t i = 0; i < set.n; i++) {
            fkt_head_scores(h.head[k], w + i * length, scores, work);
            hits += label[i] == set.label[i];
            for (uint32_t c = 0; c < classes; c++)
                CHECK_NEAR(got[i * classes + c], scores[c], 2e-4 * (1 + fabs(scores[c])));
        }
        CHECK_OK(fkt_evaluation_init(&j, classes));
        CHECK_OK(fkt_whole_evaluate(&j, m, demo, &two));
        CHECK_NEAR(fkt_evaluation_accuracy(&j), (double)hits / (double)set.n, 1e-12);
        fkt_evaluation_clear(&j);
        fkt_whole_free(m);
    }
    fkt_free(w);
    fkt_free(q);
    fkt_free(scores);
    fkt_free(got);
    fkt_training_set_clear(&set);
    fkt_heads_clear(&h);
    fkt_gaussians_clear(&g);
    fkt_release_clear(&r);
}

static void what_is_not_private_says_so(void **state)
{
    const char *path = scratch_path(&scratch, "whole");
    const uint64_t seed = 4;
    struct fkt_whole *m = NULL, *back = NULL;
    struct fkt_gaussians g;
    struct fkt_release r;
    struct fkt_heads h;
    struct stat info;
    (void)state;
    make_release(&r, &seed, 0);
    CHECK_OK(fkt_release_gaussians(&r, 0, &raw, &g));
    CHECK_OK(fkt_heads_fit(&h, &g, &r.task, FKT_HEADS_DEFAULT, &r));
    CHECK_OK(fkt_whole_make(&m, pipeline, h.head[FKT_HEAD_LDA], &r));
    CHECK_OK(fkt_whole_save(m, path, 0));
    CHECK_STATUS(fkt_whole_save(m, path, 0), FKT_E_EXISTS);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
    CHECK_OK(fkt_whole_load(&back, path));
    assert_string_equal(fkt_whole_not_private(back), "the noise came from a known seed");
    CHECK(!fkt_whole_origin(back)->is_private && fkt_whole_origin(back)->epsilon == 0);
    assert_string_equal(fkt_whole_origin(back)->release_sha256, r.sha256);
    fkt_whole_free(m);
    fkt_whole_free(back);
    fkt_heads_clear(&h);
    fkt_gaussians_clear(&g);
    fkt_release_clear(&r);
}

enum { N = 37 };

static void it_survives_the_disk(void **state)
{
    static uint8_t rgb[N * 3 * TOY_SIZE * TOY_SIZE];
    static float a[N * TOY_CLASSES], b[N * TOY_CLASSES];
    const char *path = scratch_path(&scratch, "toy");
    (void)state;
    toy_pictures(rgb, N);
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++)
        for (uint32_t parts = 1; parts < 3; parts++)
            for (int clip = 0; clip < 2; clip++) {
                const struct fkt_predict_options one = {.threads = 1};
                struct fkt_whole *m = NULL, *back = NULL;
                toy_whole(&m, (enum fkt_head_kind)kind, parts, clip);
                CHECK_OK(fkt_whole_save(m, path, 1));
                CHECK_OK(fkt_whole_load(&back, path));
                CHECK(!memcmp(fkt_whole_origin(m), fkt_whole_origin(back), sizeof(struct fkt_model_origin)));
                CHECK_OK(fkt_whole_predict(m, rgb, N, a, NULL));
                CHECK_OK(fkt_whole_predict(back, rgb, N, b, &one));
                CHECK(!memcmp(a, b, sizeof a));
                CHECK_OK(fkt_whole_predict(back, rgb + 3 * TOY_SIZE * TOY_SIZE, 1, b, NULL)); /* alone */
                CHECK(!memcmp(a + TOY_CLASSES, b, TOY_CLASSES * sizeof *a));
                fkt_whole_free(m);
                fkt_whole_free(back);
            }
}

/* Halves are exact or not used: the stem of the toy is exact, the rest is not. */
static void halves_are_exact(void **state)
{
    const char *path = scratch_path(&scratch, "toy");
    struct fkt_safetensors *s = NULL;
    struct fkt_whole *m = NULL;
    (void)state;
    toy_whole(&m, FKT_HEAD_LDA, 1, 0);
    CHECK_OK(fkt_whole_save(m, path, 1));
    CHECK_OK(fkt_safetensors_open(&s, path));
    CHECK(fkt_safetensors_find(s, "net.0.stem.weight")->dtype == FKT_F16);
    CHECK(fkt_safetensors_find(s, "net.0.deep.weight")->dtype == FKT_F32);
    fkt_safetensors_free(s);
    fkt_whole_free(m);
}

/* The file with one piece of its header replaced by another of the same length. */
static void expect_refusal(const uint8_t *bytes, size_t len, const char *from, const char *to)
{
    const char *path = scratch_path(&scratch, "bent");
    struct fkt_whole *m = NULL;
    uint8_t *copy = NULL;
    size_t at = 0, n = strlen(from);
    CHECK(n == strlen(to));
    CHECK_OK(fkt_alloc(&copy, len));
    memcpy(copy, bytes, len);
    while (at + n <= len && memcmp(copy + at, from, n) != 0) at++;
    if (at + n > len) fail_msg("no '%s' in the file", from);
    memcpy(copy + at, to, n);
    CHECK_OK(fkt_file_write(path, copy, len, FKT_FILE_REPLACE));
    if (fkt_whole_load(&m, path) == FKT_OK || m) fail_msg("accepted with '%s'", to);
    CHECK(strstr(fkt_error_text(), path));
    fkt_free(copy);
}

static void false_files_are_refused(void **state)
{
    static const char *const lies[][2] = {
        {"fedkt.whole/1", "fedkt.whole/2"},
        {"\"size\":\"20\"", "\"size\":\"00\""},
        {"\"size\":\"20\"", "\"size\":\"2x\""},
        {"\"size\":\"20\"", "\"size\":\"08\""}, /* the latent has another size then */
        {"\"filter\":\"bilinear\"", "\"filter\":\"biLinear\""},
        {"\"fit\":\"crop\"", "\"fit\":\"cr0p\""},
        {"\"kind\":\"qda\"", "\"kind\":\"qdb\""},
        {"\"private\":\"true\"", "\"privatE\":\"true\""},
        {"\"epsilon\":\"1\"", "\"epsilon\":\"0\""},
        {"\"epsilon\":\"1\"", "\"epsilOn\":\"1\""},
        {"add-remove", "add-reMove"},
        {"\"parts\":\"[[0,6],[6,6]]\"", "\"parts\":\"[[0,6],[5,6]]\""},
        {"\"parts\":\"[[0,6],[6,6]]\"", "\"parts\":\"[[0,6],[6,7]]\""},
        {"\\\"convolution\\\"", "\\\"convolutioN\\\""},
        {"\\\"ReLU6\\\"", "\\\"SiLU\\\" "},
        {"\\\"gain-shape\\\"", "\\\"gain-shapE\\\""},
        {"\\\"dim\\\":5", "\\\"dim\\\":6"},
        {"\\\"rq\\\":256", "\\\"rq\\\":001"},
        {"\\\"stem.weight\\\",8,3,3,3", "\\\"stem.weight\\\",9,3,3,3"},
        {"\\\"norm.mean\\\",8", "\\\"norm.bias\\\",8"},
        {"\\\"resizing\\\",0", "\\\"resizing\\\",9"}, /* reads what is not made yet */
        {"\\\"network\\\"", "\\\"netwOrk\\\""},
        {"net.0.stem.weight", "net.1.stem.weight"},
        {"calibration.1.map", "calibration.2.map"},
        {"head.map.1", "head.map.2"},
        {"\"classes\"", "\"cLasses\""},
        {"\"release_sha256\"", "\"reLease_sha256\""},
    };
    const char *path = scratch_path(&scratch, "toy");
    struct fkt_whole *m = NULL;
    uint8_t *bytes = NULL;
    size_t len;
    (void)state;
    toy_whole(&m, FKT_HEAD_QDA, 2, 0);
    CHECK_OK(fkt_whole_save(m, path, 1));
    fkt_whole_free(m);
    CHECK_OK(fkt_whole_load(&m, path));
    fkt_whole_free(m);
    CHECK_OK(fkt_file_read(&bytes, &len, path, 1 << 20));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) expect_refusal(bytes, len, lies[i][0], lies[i][1]);
    for (size_t cut = 0; cut < len; cut += 97) {
        CHECK_OK(fkt_file_write(path, bytes, cut, FKT_FILE_REPLACE));
        CHECK(fkt_whole_load(&m, path) != FKT_OK && !m);
    }
    fkt_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_the_pipeline),
        cmocka_unit_test(what_is_not_private_says_so),
        cmocka_unit_test(it_survives_the_disk),
        cmocka_unit_test(halves_are_exact),
        cmocka_unit_test(false_files_are_refused),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, open_all, close_all));
}
