/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between f32 and bf16, with a backend that takes as long as it is told to. */
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

#include "base/file.h"
#include "codec/dtype.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct scratch scratch;
static struct fkt_net net;
static int f32_ms, bf16_ms, plans, bf16_fails, live;

struct fake {
    int ms;
};

static fkt_status fake_plan(void **plan, const struct fkt_net *n, const struct fkt_shape *shapes,
                            const struct fkt_weights *weights, const struct fkt_engine_spec *spec,
                            struct fkt_engine_facts *facts)
{
    struct fake *f = NULL;
    fkt_status st;
    (void)n, (void)shapes, (void)weights, (void)facts;
    if (bf16_fails && spec->precision == FKT_PRECISION_BF16) return fkt_fail(FKT_E_ARG, "no bf16 here");
    if (live) fail_msg("two plans at a time");
    st = fkt_alloc(&f, 1);
    if (st != FKT_OK) return st;
    f->ms = spec->precision == FKT_PRECISION_BF16 ? bf16_ms : f32_ms;
    plans++;
    live++;
    *plan = f;
    return FKT_OK;
}
static fkt_status fake_workspace(void **workspace, const void *plan)
{
    char *d = NULL;
    fkt_status st = fkt_alloc(&d, 1);
    (void)plan;
    *workspace = d;
    return st;
}
static fkt_status fake_run(const void *plan, void *workspace, const float *in, float *out)
{
    const struct fake *f = plan;
    struct timespec t = {0, f->ms * 1000000L};
    (void)workspace;
    out[0] = in[0];
    nanosleep(&t, NULL);
    return FKT_OK;
}
static void fake_plan_free(void *plan)
{
    live--;
    fkt_free(plan);
}
static const struct fkt_backend fake = {.name = "fake",
                                        .plan = fake_plan,
                                        .workspace = fake_workspace,
                                        .run = fake_run,
                                        .workspace_free = fkt_free,
                                        .plan_free = fake_plan_free};

static struct fkt_dtype_trial trial(const char *codec)
{
    return (struct fkt_dtype_trial){.backend = &fake,
                                    .net = &net,
                                    .spec = {.batch = 2, .height = 4, .width = 4},
                                    .codec = codec,
                                    .machine = "a processor",
                                    .bf16 = 1};
}

static enum fkt_codec_dtype choose(const char *codec)
{
    struct fkt_dtype_trial t = trial(codec);
    enum fkt_codec_dtype d = FKT_CODEC_DTYPE_AUTO;
    plans = 0;
    CHECK_OK(fkt_dtype_choose(&d, &t));
    return d;
}

static int setup(void **state)
{
    (void)state;
    scratch_init(&scratch);
    setenv("FEDKT_CACHE", scratch_path(&scratch, "cache"), 1);
    f32_ms = 8, bf16_ms = 2, bf16_fails = 0, live = 0;
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    scratch_release(&scratch);
    return 0;
}

static void a_gain_must_be_large(void **state)
{
    (void)state;
    assert_int_equal(fkt_dtype_faster(1.25, 1.0), FKT_CODEC_DTYPE_BF16);
    assert_int_equal(fkt_dtype_faster(1.24, 1.0), FKT_CODEC_DTYPE_F32);
    assert_int_equal(fkt_dtype_faster(1.0, 2.0), FKT_CODEC_DTYPE_F32);
    assert_int_equal(fkt_dtype_faster(1.0, INFINITY), FKT_CODEC_DTYPE_F32);
    assert_int_equal(fkt_dtype_faster(INFINITY, 1.0), FKT_CODEC_DTYPE_F32);
    assert_int_equal(fkt_dtype_faster(NAN, 1.0), FKT_CODEC_DTYPE_F32);
    assert_int_equal(fkt_dtype_faster(1.0, NAN), FKT_CODEC_DTYPE_F32);
    assert_int_equal(fkt_dtype_faster(1.0, 0.0), FKT_CODEC_DTYPE_F32);
}

static void the_faster_one_is_measured_once(void **state)
{
    (void)state;
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    assert_int_equal(plans, 2);
    f32_ms = 2, bf16_ms = 8; /* the machine has not changed its name, so nobody asks again */
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    assert_int_equal(plans, 0);
    assert_int_equal(choose("two"), FKT_CODEC_DTYPE_F32);
    assert_int_equal(plans, 2);
    assert_int_equal(choose("two"), FKT_CODEC_DTYPE_F32);
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    assert_int_equal(plans, 0);
}

static void another_machine_size_or_mode_is_another_question(void **state)
{
    struct fkt_dtype_trial t = trial("one");
    enum fkt_codec_dtype d;
    (void)state;
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    for (int i = 0; i < 4; i++) {
        t = trial("one");
        if (i == 0) t.machine = "another processor";
        if (i == 1) t.spec.height = t.spec.width = 8;
        if (i == 2) t.spec.low_memory = 1;
        if (i == 3) t.spec.batch = 3;
        plans = 0;
        CHECK_OK(fkt_dtype_choose(&d, &t));
        assert_int_equal(plans, 2);
    }
}

static void it_says_whether_it_measured(void **state)
{
    struct fkt_dtype_trial t = trial("two");
    enum fkt_codec_dtype d;
    int measured = -1;
    (void)state;
    t.measured = &measured;
    CHECK_OK(fkt_dtype_choose(&d, &t));
    assert_int_equal(measured, 1);
    CHECK_OK(fkt_dtype_choose(&d, &t));
    assert_int_equal(measured, 0);
}

static void nothing_is_timed_where_bf16_cannot_be(void **state)
{
    struct fkt_dtype_trial t = trial("one");
    enum fkt_codec_dtype d = FKT_CODEC_DTYPE_AUTO;
    (void)state;
    t.bf16 = 0;
    plans = 0;
    CHECK_OK(fkt_dtype_choose(&d, &t));
    assert_int_equal(d, FKT_CODEC_DTYPE_F32);
    assert_int_equal(plans, 0);
    bf16_fails = 1;
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_F32);
}

static void put_cache(const char *text)
{
    CHECK_OK(fkt_mkdirs(scratch_path(&scratch, "cache/codecs")));
    CHECK_OK(fkt_file_write(scratch_path(&scratch, "cache/codecs/machine-dtype.json"), text, strlen(text),
                            FKT_FILE_REPLACE));
}

static void a_bad_cache_is_measured_again(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"choices\": 3}",
        "{\"choices\": {\"a processor | one 4 px, batch 2\": 3}}",
        "{\"choices\": {\"a processor | one 4 px, batch 2\": {\"dtype\": \"f16\"}}}",
        "{\"choices\": {\"a processor | one 4 px, batch 2\": {\"dtype\": 1}}}",
        "\xff\xfe",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_cache(bad[i]);
        assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
        assert_int_equal(plans, 2);
        assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
        assert_int_equal(plans, 0);
    }
    put_cache("{\"choices\": {\"a processor | one 4 px, batch 2\": {\"dtype\": \"f32\"}}}");
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_F32); /* what stands there is believed */
    assert_int_equal(plans, 0);
}

/* The word decides on digits, so it must be our own. */
static void a_cache_that_others_may_write_is_measured_again(void **state)
{
    char path[600], other[600];
    struct stat sb;
    (void)state;
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    f32_ms = 2, bf16_ms = 8;
    snprintf(path, sizeof path, "%s", scratch_path(&scratch, "cache/codecs/machine-dtype.json"));
    CHECK(stat(path, &sb) == 0 && (sb.st_mode & 0777) == 0600);
    CHECK(chmod(path, 0622) == 0);
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_F32);
    assert_int_equal(plans, 2);
    CHECK(stat(path, &sb) == 0 && (sb.st_mode & 0777) == 0600);
    f32_ms = 8, bf16_ms = 2;
    snprintf(other, sizeof other, "%s", scratch_path(&scratch, "other.json"));
    CHECK(rename(path, other) == 0 && symlink(other, path) == 0);
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    assert_int_equal(plans, 2);
}

static void a_cache_that_cannot_be_written_is_no_failure(void **state)
{
    (void)state;
    CHECK_OK(fkt_mkdirs(scratch_path(&scratch, "cache/codecs/machine-dtype.json"))); /* a folder in its place */
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    assert_int_equal(plans, 2);
    setenv("FEDKT_CACHE", "/proc/none", 1);
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
    unsetenv("FEDKT_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_int_equal(choose("one"), FKT_CODEC_DTYPE_BF16);
}

static fkt_status sweep_run(void)
{
    struct fkt_dtype_trial t = trial("one");
    enum fkt_codec_dtype d;
    return fkt_dtype_choose(&d, &t);
}
static void forget(fkt_status st)
{
    (void)st;
    unlink(scratch_path(&scratch, "cache/codecs/machine-dtype.json"));
}
static void no_allocation_is_taken_for_granted(void **state)
{
    (void)state;
    f32_ms = bf16_ms = 0;
    CHECK(sweep_allocations(sweep_run, forget) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_gain_must_be_large, setup, teardown),
        cmocka_unit_test_setup_teardown(the_faster_one_is_measured_once, setup, teardown),
        cmocka_unit_test_setup_teardown(another_machine_size_or_mode_is_another_question, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_timed_where_bf16_cannot_be, setup, teardown),
        cmocka_unit_test_setup_teardown(it_says_whether_it_measured, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_cache_is_measured_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cache_that_others_may_write_is_measured_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cache_that_cannot_be_written_is_no_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(no_allocation_is_taken_for_granted, setup, teardown),
    };
    int failed;
    fkt_net_init(&net, 3);
    fkt_net_plain(&net, FKT_OP_RELU, 0, 0, 0);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    fkt_net_clear(&net);
    return failed;
}
