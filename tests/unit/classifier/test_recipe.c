/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes: the rate of every step against PyTorch's schedulers, and what is refused. */
#include "classifier/recipe.h"

#include "base/threads.h"
#include "tests/support/vectors.h"

static void rates_are_those_of_pytorch(void **state)
{
    json_t *root, *cases = vectors_open(&root, "classifier/schedules.json"), *one;
    size_t i, seen = 0;
    (void)state;
    json_array_foreach (cases, i, one) {
        struct fkt_recipe r;
        const json_t *want = json_object_get(one, "rates");
        const uint64_t per_epoch = (uint64_t)vectors_int(one, "steps_per_epoch");
        fkt_recipe_default(&r);
        r.schedule = (enum fkt_schedule)fkt_schedule_parse(vectors_text(one, "schedule"));
        r.epochs = (uint32_t)vectors_int(one, "epochs");
        r.rate = vectors_number(one, "rate");
        r.warmup = vectors_number(one, "warmup");
        r.step_every = vectors_number(one, "step_every");
        r.step_by = vectors_number(one, "step_by");
        CHECK_OK(fkt_recipe_check(&r));
        CHECK(json_array_size(want) == r.epochs * per_epoch);
        for (uint64_t s = 0; s < r.epochs * per_epoch; s++, seen++) {
            const double w = json_number_value(json_array_get(want, s));
            CHECK_NEAR(fkt_recipe_rate(&r, s, per_epoch), w, 1e-12 * r.rate);
        }
    }
    CHECK(seen > 300);
    json_decref(root);
}

static void rates_have_the_stated_corners(void **state)
{
    struct fkt_recipe r;
    (void)state;
    fkt_recipe_default(&r);
    r.epochs = 4;
    r.rate = 0.1;
    CHECK(fkt_recipe_rate(&r, 0, 5) == 0.1);
    CHECK_NEAR(fkt_recipe_rate(&r, 10, 5), 0.05, 1e-15);
    CHECK(fkt_recipe_rate(&r, 19, 5) > 0); /* the last step has a rate above 0 */
    CHECK(fkt_recipe_rate(&r, 20, 5) == fkt_recipe_rate(&r, 19, 5));
    r.warmup = 1;
    CHECK_NEAR(fkt_recipe_rate(&r, 0, 5), 0.02, 1e-15);
    CHECK(fkt_recipe_rate(&r, 4, 5) == 0.1 && fkt_recipe_rate(&r, 5, 5) == 0.1);
    r.warmup = 0;
    r.schedule = FKT_SCHEDULE_ONE_CYCLE;
    CHECK_NEAR(fkt_recipe_rate(&r, 0, 5), 0.1 / 25, 1e-15);
    CHECK_NEAR(fkt_recipe_rate(&r, 5, 5), 0.1, 1e-15);
    CHECK_NEAR(fkt_recipe_rate(&r, 19, 5), 0.1 / 25e4, 1e-15);
}

static void names_go_both_ways(void **state)
{
    (void)state;
    for (int s = 0; s <= FKT_SCHEDULE_ONE_CYCLE; s++)
        CHECK(fkt_schedule_parse(fkt_schedule_name((enum fkt_schedule)s)) == s);
    CHECK(fkt_schedule_parse("linear") == -1 && fkt_schedule_parse("") == -1);
    assert_string_equal(fkt_schedule_name((enum fkt_schedule)9), "unknown");
}

/* Sets one field, expects the refusal to name it, and a good recipe again without it. */
#define REFUSED(field, bad, word)                                                                                      \
    do {                                                                                                               \
        struct fkt_recipe r_;                                                                                          \
        fkt_recipe_default(&r_);                                                                                       \
        CHECK_OK(fkt_recipe_check(&r_));                                                                               \
        r_.field = (bad);                                                                                              \
        CHECK_STATUS(fkt_recipe_check(&r_), FKT_E_ARG);                                                                \
        if (!strstr(fkt_error_text(), word)) fail_msg("'%s' does not say '%s'", fkt_error_text(), word);               \
    } while (0)

static void what_is_out_of_range_is_named(void **state)
{
    (void)state;
    REFUSED(epochs, 0, "epochs is 0: it must be at least 1");
    REFUSED(epochs, 2000000, "epochs");
    REFUSED(batch, 0, "batch");
    REFUSED(batch, 100000, "batch");
    REFUSED(rate, 0, "rate is 0: it must be more than 0");
    REFUSED(rate, -1, "rate");
    REFUSED(rate, NAN, "rate");
    REFUSED(rate, INFINITY, "rate");
    REFUSED(momentum, 1, "less than 1");
    REFUSED(momentum, NAN, "momentum");
    REFUSED(beta1, 1, "less than 1");
    REFUSED(beta2, -0.1, "beta2");
    REFUSED(beta2, 1 - 1e-12, "beta2"); /* which as float is 1 */
    REFUSED(optimizer, (enum fkt_learn_optimizer)2, "optimizer");
    REFUSED(decay, -1e-4, "decay");
    REFUSED(decay, NAN, "decay");
    REFUSED(nesterov, 2, "nesterov");
    REFUSED(momentum, 0, "nesterov needs a momentum");
    REFUSED(schedule, (enum fkt_schedule)4, "schedule");
    REFUSED(warmup, -1, "warm-up");
    REFUSED(warmup, NAN, "warm-up");
    REFUSED(warmup, 20, "leaves none of 20 epochs");
    REFUSED(step_every, 0, "step every");
    REFUSED(step_by, 0, "step by");
    REFUSED(step_by, 1.5, "step by");
    REFUSED(flip, 3, "flip");
    REFUSED(flip, -1, "flip");
    REFUSED(pad, 257, "pad");
    REFUSED(smoothing, 1, "smoothing");
    REFUSED(ema, 1, "average's decay");
    REFUSED(ema, -0.1, "average's decay");
    REFUSED(ema, 1 - 1e-12, "average's decay"); /* which as float is 1, as the next is, and the two below are 0 */
    REFUSED(momentum, 1 - 1e-12, "momentum");
    REFUSED(rate, 1e-60, "rate");
    REFUSED(temperature, 1e-60, "temperature");
    REFUSED(temperature, 0, "temperature");
    REFUSED(share, 1.1, "teacher's share");
    REFUSED(share, NAN, "teacher's share");
    REFUSED(dtype, (enum fkt_learn_dtype)2, "type");
    REFUSED(threads, 5000, "threads");
}

static void a_warm_up_needs_a_schedule_that_has_one(void **state)
{
    struct fkt_recipe r;
    (void)state;
    fkt_recipe_default(&r);
    r.warmup = 1;
    CHECK_OK(fkt_recipe_check(&r));
    r.schedule = FKT_SCHEDULE_ONE_CYCLE;
    CHECK_STATUS(fkt_recipe_check(&r), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "'one-cycle' does not support a warm-up") &&
          strstr(fkt_error_hint(), "leave out the warm-up"));
}

/* Two recipes that differ in one field differ in that field's text alone: a checkpoint finds every difference. */
static void each_field_has_its_text(void **state)
{
    struct fkt_recipe a, b;
    char x[FKT_RECIPE_TEXT], y[FKT_RECIPE_TEXT];
    size_t differ = 0;
    (void)state;
    fkt_recipe_default(&a);
    a.threads = 1;
    b = (struct fkt_recipe){.epochs = 3,
                            .batch = 5,
                            .optimizer = FKT_LEARN_ADAM,
                            .rate = nextafter(a.rate, 1),
                            .momentum = 0.1,
                            .decay = 0.3,
                            .nesterov = 0,
                            .beta1 = 0.5,
                            .beta2 = 0.75,
                            .schedule = FKT_SCHEDULE_STEP,
                            .warmup = 1,
                            .step_every = 3,
                            .step_by = 0.5,
                            .flip = 0,
                            .pad = 1,
                            .smoothing = 0.1,
                            .ema = 0.9,
                            .temperature = 2,
                            .share = 1,
                            .dtype = FKT_LEARN_DTYPE_BF16,
                            .seed = UINT64_MAX,
                            .threads = 3};
    for (size_t i = 0; i < FKT_RECIPE_FIELDS; i++) {
        fkt_recipe_field_text(&a, i, x);
        fkt_recipe_field_text(&b, i, y);
        differ += strcmp(x, y) != 0;
        CHECK(strlen(fkt_recipe_field_name(i)) > 0);
        if (!strcmp(fkt_recipe_field_name(i), "seed")) assert_string_equal(y, "18446744073709551615");
        if (!strcmp(fkt_recipe_field_name(i), "threads")) { /* all of them are as many as there are */
            a.threads = 0;
            b.threads = fkt_cpu_count();
            fkt_recipe_field_text(&a, i, x);
            fkt_recipe_field_text(&b, i, y);
            assert_string_equal(x, y);
        }
    }
    CHECK(differ == FKT_RECIPE_FIELDS);
}

/* docs/train.md and the help of `fedkt train` say these. */
static void defaults_are_those_of_the_documents(void **state)
{
    struct fkt_recipe r;
    (void)state;
    fkt_recipe_default(&r);
    CHECK(r.epochs == 20 && r.batch == 64 && r.nesterov && r.flip && r.pad == 4 && r.dtype == FKT_LEARN_DTYPE_F32);
    CHECK(r.rate == 0.05 && r.momentum == 0.9 && r.decay == 5e-4 && r.schedule == FKT_SCHEDULE_COSINE);
    CHECK(r.optimizer == FKT_LEARN_SGD && r.beta1 == 0.9 && r.beta2 == 0.999);
    CHECK(r.warmup == 0 && r.smoothing == 0 && r.ema == 0 && r.share == 0 && r.temperature == 4 && r.seed == 1);
    CHECK_OK(fkt_recipe_check(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_pytorch),
        cmocka_unit_test(rates_have_the_stated_corners),
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(what_is_out_of_range_is_named),
        cmocka_unit_test(a_warm_up_needs_a_schedule_that_has_one),
        cmocka_unit_test(each_field_has_its_text),
        cmocka_unit_test(defaults_are_those_of_the_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
