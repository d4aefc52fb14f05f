/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that the library fits carry their task, release, class names and privacy into their file, and are not used with
 * another task. */
#include "fedkt/heads.h"

#include "tensor/safetensors.h"
#include "tests/support/released.h"

static const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};

static void fit(struct fkt_heads *h, const struct fkt_release *r)
{
    struct fkt_gaussians g;
    CHECK_OK(fkt_release_gaussians(r, 0, &raw, &g));
    CHECK_OK(fkt_heads_fit(h, &g, &r->task, FKT_HEADS_DEFAULT, r));
    fkt_gaussians_clear(&g);
}

static fkt_status evaluate(const struct fkt_pipeline *p, const struct fkt_dataset *ds, const struct fkt_head *h)
{
    const struct fkt_pipeline_options o = {.threads = 2};
    struct fkt_score score;
    fkt_status st;
    CHECK_OK(fkt_score_init(&score, fkt_pipeline_task(p)->n_classes));
    st = fkt_heads_evaluate(p, ds, NULL, 0, &h, 1, &score, &o);
    fkt_score_clear(&score);
    return st;
}

static void check_meta(const char *path, const char *key, const char *want)
{
    struct fkt_safetensors *s = NULL;
    CHECK_OK(fkt_safetensors_open(&s, path));
    assert_non_null(fkt_safetensors_meta(s, key));
    assert_string_equal(fkt_safetensors_meta(s, key), want);
    fkt_safetensors_free(s);
}

static void the_file_says_where_they_come_from(void **state)
{
    const uint64_t seed = 3;
    const struct fkt_task *t = fkt_pipeline_task(pipeline);
    const char *path = scratch_path(&scratch, "head");
    (void)state;
    for (int seeded = 0; seeded < 2; seeded++) {
        struct fkt_release r;
        struct fkt_heads h;
        make_release(&r, seeded ? &seed : NULL, 0);
        fit(&h, &r);
        for (int k = 0; k < FKT_HEAD_KINDS; k++) {
            struct fkt_head *back = NULL;
            CHECK_OK(fkt_head_save(h.head[k], path, 1));
            check_meta(path, "task_sha256", t->sha256);
            check_meta(path, "release_sha256", r.sha256);
            check_meta(path, "private", seeded ? "false: the noise came from a known seed" : "true");
            CHECK_OK(fkt_head_load(&back, path));
            assert_string_equal(fkt_head_task(back), t->sha256);
            for (uint32_t c = 0; c < t->n_classes; c++) assert_string_equal(fkt_head_class(back, c), t->classes[c]);
            CHECK_OK(fkt_head_check_task(back, t));
            CHECK_OK(evaluate(pipeline, demo, back));
            fkt_head_free(back);
        }
        fkt_heads_clear(&h);
        fkt_release_clear(&r);
    }
}

/* A task of the same shape that makes another promise is another task. */
static void another_task_is_refused(void **state)
{
    const char *path = scratch_path(&scratch, "head");
    struct fkt_pipeline *other = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_head *back = NULL;
    struct fkt_gaussians g;
    struct fkt_release r;
    struct fkt_heads h;
    (void)state;
    CHECK_OK(small_pipeline(&other, &ds, 40, 4, FKT_COORDINATE_GAIN_SHAPE));
    make_release(&r, NULL, 0);
    fit(&h, &r);
    CHECK_OK(fkt_head_save(h.head[1], path, 1));
    CHECK_OK(fkt_head_load(&back, path));
    CHECK_STATUS(fkt_head_check_task(back, fkt_pipeline_task(other)), FKT_E_MISMATCH);
    CHECK_STATUS(evaluate(other, ds, back), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "the head comes from task "));
    CHECK_OK(evaluate(pipeline, demo, back));
    fkt_heads_clear(&h);
    CHECK_OK(fkt_release_gaussians(&r, 0, &raw, &g));
    CHECK_OK(fkt_heads_fit(&h, &g, &r.task, FKT_HEADS_DEFAULT,
                           NULL)); /* of no release: the numbers are compared, and no more */
    assert_string_equal(fkt_head_task(h.head[0]), "");
    CHECK_OK(evaluate(other, ds, h.head[0]));
    fkt_heads_clear(&h);
    g.classes--;
    CHECK_STATUS(fkt_heads_fit(&h, &g, &r.task, FKT_HEADS_DEFAULT, &r), FKT_E_MISMATCH);
    g.classes++;
    fkt_gaussians_clear(&g);
    fkt_head_free(back);
    fkt_release_clear(&r);
    fkt_dataset_free(ds);
    fkt_pipeline_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_says_where_they_come_from),
        cmocka_unit_test(another_task_is_refused),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, open_all, close_all));
}
