/* SPDX-License-Identifier: Apache-2.0 */
/* Steps without the host, in plain loops: the same bits as the separate calls; what is refused; a loss that is not
 * finite. */
#include "nn/learner.h"

#include "tests/support/learner_case.h"

enum { IMAGES = 11, SIDE = 6, BATCH = 3, STEPS = 4, CLASSES = 10, IMAGE = 3 * SIDE * SIDE };

static const struct problem problem = {"resnet8", net_resnet8, SIDE, SIDE};

static uint8_t rgb[IMAGES * IMAGE];
static uint32_t label[IMAGES];
static float teacher[IMAGES * CLASSES];
static float value[3][256];
static struct fkt_view_at view[STEPS * BATCH];
static struct fkt_planned_step step[STEPS];

static void fill(int adam)
{
    struct fkt_rng r;
    fkt_rng_init(&r, 31, 0);
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)fkt_rng_below(&r, 256);
    for (size_t i = 0; i < IMAGES; i++) label[i] = (uint32_t)fkt_rng_below(&r, CLASSES);
    for (size_t i = 0; i < IMAGES * CLASSES; i++) teacher[i] = (float)(8 * fkt_rng_unit(&r) - 4);
    for (size_t i = 0; i < 3 * (size_t)256; i++) value[i / 256][i % 256] = (float)(fkt_rng_unit(&r) - 0.5);
    for (size_t i = 0; i < STEPS * BATCH; i++)
        view[i] = (struct fkt_view_at){.index = (uint32_t)fkt_rng_below(&r, IMAGES),
                                       .top = (int16_t)((int)fkt_rng_below(&r, 5) - 2),
                                       .left = (int16_t)((int)fkt_rng_below(&r, 5) - 2),
                                       .flip = (uint16_t)fkt_rng_below(&r, 2)};
    for (size_t i = 0; i < STEPS; i++) {
        step[i] = (struct fkt_planned_step){.average = i == 1 ? -1 : i ? 0.75F : 0};
        step[i].optimizer = (struct fkt_optimizer){.rate = 0.05F, .momentum = 0.9F, .decay = 1e-3F, .nesterov = 1};
        step[i].optimizer.pull = i ? 0.5F : 0;
        if (!adam) continue;
        step[i].optimizer = (struct fkt_optimizer){
            .kind = FKT_OPTIMIZER_ADAM, .rate = 1e-3F, .beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F, .step = i + 1};
    }
}

static const struct fkt_epoch_steps plan = {.steps = STEPS, .view = view, .step = step, .loss = {.smoothing = 0.1}};
static const struct fkt_epoch_steps taught = {
    .steps = STEPS, .view = view, .step = step, .loss = {.smoothing = 0.1, .temperature = 2, .share = 0.75}};

static fkt_status hold(struct fkt_learner *l, size_t n, const float *logits)
{
    return fkt_learner_hold(l,
                            &(struct fkt_held){.rgb = rgb, .label = label, .teacher = logits, .n = n, .value = value});
}

/* Pixel by pixel, written from augment.h's definition. */
static void batch_of(size_t s, float *in, uint32_t *want, float *logits)
{
    for (size_t i = 0; i < BATCH; i++) {
        const struct fkt_view_at *v = &view[s * BATCH + i];
        want[i] = label[v->index];
        memcpy(logits + i * CLASSES, teacher + v->index * (size_t)CLASSES, CLASSES * sizeof *logits);
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < SIDE; y++)
                for (int x = 0; x < SIDE; x++) {
                    const int row = y + v->top, column = (v->flip ? SIDE - 1 - x : x) + v->left;
                    float *to = &in[i * IMAGE + (size_t)((c * SIDE + y) * SIDE + x)];
                    *to = 0;
                    if (row < 0 || row >= SIDE || column < 0 || column >= SIDE) continue;
                    *to = value[c][rgb[v->index * (size_t)IMAGE + (size_t)(3 * (row * SIDE + column) + c)]];
                }
    }
}

static void same_arrays(const struct learner_case *a, const struct learner_case *b, enum fkt_learned what)
{
    for (uint32_t s = 0; s < a->net.n_slots; s++) {
        const size_t n = fkt_slot_count(&a->net.slot[s]);
        float *x = NULL, *y = NULL;
        if (what != FKT_WEIGHT && what != FKT_AVERAGE && !fkt_learner_is_parameter(a->l, s)) continue;
        CHECK_OK(fkt_alloc(&x, n));
        CHECK_OK(fkt_alloc(&y, n));
        CHECK_OK(fkt_learner_read(a->l, what, s, x));
        CHECK_OK(fkt_learner_read(b->l, what, s, y));
        assert_memory_equal(x, y, n * sizeof *x);
        fkt_free(x);
        fkt_free(y);
    }
}

static void check_same(int adam, enum fkt_precision precision, const struct fkt_epoch_steps *e)
{
    static float in[BATCH * IMAGE], out[BATCH * CLASSES], slope[BATCH * CLASSES], logits[BATCH * CLASSES];
    const int is_taught = e->loss.share > 0;
    struct learner_case a, b;
    double want = 0, loss, got;
    uint64_t hits, bad, want_hits = 0;
    fill(adam);
    learner_case_init(&a, &problem, &fkt_learner_ref, BATCH, precision, 1);
    learner_case_init(&b, &problem, &fkt_learner_ref, BATCH, precision, 1);
    for (size_t s = 0; s < STEPS; s++) {
        uint32_t labels[BATCH];
        size_t right;
        batch_of(s, in, labels, logits);
        CHECK_OK(fkt_learner_forward(a.l, in, out));
        CHECK_OK(
            fkt_loss_softmax(&e->loss, out, labels, is_taught ? logits : NULL, BATCH, CLASSES, &loss, slope, &right));
        CHECK_OK(fkt_learner_backward(a.l, slope));
        CHECK_OK(fkt_learner_step(a.l, &step[s].optimizer));
        if (step[s].average >= 0) CHECK_OK(fkt_learner_average(a.l, step[s].average));
        want += loss;
        want_hits += right;
    }
    CHECK(fkt_learner_holds(b.l));
    CHECK_OK(hold(b.l, IMAGES, is_taught ? teacher : NULL));
    CHECK_OK(fkt_learner_plan_epoch(b.l, e));
    memset(rgb, 0, sizeof rgb); /* all of it has been copied */
    memset(teacher, 0, sizeof teacher);
    memset(view, 0, sizeof view);
    memset(step, 0, sizeof step);
    CHECK_OK(fkt_learner_train(b.l, 1));
    CHECK_OK(fkt_learner_train(b.l, 0));
    CHECK_OK(fkt_learner_train(b.l, STEPS - 1));
    CHECK_OK(fkt_learner_collect(b.l, &got, &hits, &bad));
    CHECK(got == want && hits == want_hits && bad == UINT64_MAX);
    same_arrays(&a, &b, FKT_WEIGHT);
    same_arrays(&a, &b, FKT_VELOCITY);
    same_arrays(&a, &b, FKT_AVERAGE);
    if (adam) same_arrays(&a, &b, FKT_SECOND);
    learner_case_release(&a);
    learner_case_release(&b);
}

static void same_bits_as_separate_calls(void **state)
{
    (void)state;
    check_same(0, FKT_PRECISION_F32, &plan);
    check_same(1, FKT_PRECISION_F32, &plan);
    check_same(1, FKT_PRECISION_BF16, &plan);
    check_same(0, FKT_PRECISION_F32, &taught);
    check_same(1, FKT_PRECISION_BF16, &taught);
}

static void a_plan_begins_the_sums(void **state)
{
    struct learner_case p;
    struct fkt_epoch_steps continued = plan;
    double first, second;
    uint64_t hits, bad;
    (void)state;
    fill(0);
    learner_case_init(&p, &problem, &fkt_learner_ref, BATCH, FKT_PRECISION_F32, 1);
    CHECK_OK(hold(p.l, IMAGES, NULL));
    CHECK_OK(fkt_learner_plan_epoch(p.l, &plan));
    CHECK_OK(fkt_learner_collect(p.l, &first, &hits, &bad));
    CHECK(first == 0 && hits == 0 && bad == UINT64_MAX);
    CHECK_OK(fkt_learner_train(p.l, 2));
    CHECK_OK(fkt_learner_collect(p.l, &first, &hits, &bad));
    CHECK_OK(fkt_learner_collect(p.l, &second, &hits, &bad)); /* twice: the same */
    CHECK(first > 0 && first == second);
    continued.loss_before = 0.1;
    CHECK_OK(fkt_learner_plan_epoch(p.l, &continued));
    CHECK_OK(fkt_learner_collect(p.l, &first, &hits, &bad));
    CHECK(first == 0.1 && hits == 0); /* exactly */
    learner_case_release(&p);
}

static void a_bad_loss_is_named(void **state)
{
    struct learner_case p;
    double loss;
    uint64_t hits, bad;
    (void)state;
    fill(0);
    step[1].optimizer.rate = 1e30F;
    learner_case_init(&p, &problem, &fkt_learner_ref, BATCH, FKT_PRECISION_F32, 1);
    CHECK_OK(hold(p.l, IMAGES, NULL));
    CHECK_OK(fkt_learner_plan_epoch(p.l, &plan));
    CHECK_OK(fkt_learner_train(p.l, STEPS));
    CHECK_OK(fkt_learner_collect(p.l, &loss, &hits, &bad));
    CHECK(isnan(loss) && bad == 2);
    learner_case_release(&p);
}

static void check_bad_plan(struct fkt_learner *l, struct fkt_epoch_steps e)
{
    CHECK_STATUS(fkt_learner_plan_epoch(l, &e), FKT_E_ARG);
    fill(0);
}

static void what_is_refused(void **state)
{
    struct learner_case p, other;
    double loss;
    uint64_t hits, bad;
    (void)state;
    fill(0);
    learner_case_init(&p, &problem, &fkt_learner_ref, BATCH, FKT_PRECISION_F32, 1);
    CHECK_STATUS(fkt_learner_plan_epoch(p.l, &plan), FKT_E_STATE);
    CHECK_STATUS(fkt_learner_train(p.l, 1), FKT_E_STATE);
    CHECK_STATUS(fkt_learner_collect(p.l, &loss, &hits, &bad), FKT_E_STATE);
    CHECK_STATUS(hold(p.l, 0, NULL), FKT_E_ARG);
    label[7] = CLASSES;
    CHECK_STATUS(hold(p.l, IMAGES, NULL), FKT_E_ARG);
    label[7] = 0;
    teacher[13] = NAN;
    CHECK_STATUS(hold(p.l, IMAGES, teacher), FKT_E_NUMERIC);
    fill(0);
    CHECK_OK(hold(p.l, IMAGES, teacher));
    CHECK_OK(fkt_learner_plan_epoch(p.l, &taught));
    check_bad_plan(p.l, (struct fkt_epoch_steps){.steps = STEPS, .view = view, .step = step, .loss = {.share = 0.5}});
    check_bad_plan(p.l, (struct fkt_epoch_steps){
                            .steps = STEPS, .view = view, .step = step, .loss = {.share = 2, .temperature = 1}});
    CHECK_OK(hold(p.l, IMAGES, NULL)); /* without a teacher: what follows has none to take */
    step[0].optimizer.pull = 1;        /* the average comes after it */
    CHECK_STATUS(fkt_learner_plan_epoch(p.l, &plan), FKT_E_STATE);
    step[0].optimizer.pull = 0;
    view[5].index = IMAGES, check_bad_plan(p.l, plan);
    step[3].average = 1, check_bad_plan(p.l, plan);
    step[3].average = NAN, check_bad_plan(p.l, plan);
    step[2].optimizer.rate = NAN, check_bad_plan(p.l, plan);
    check_bad_plan(p.l, (struct fkt_epoch_steps){.steps = STEPS, .view = view, .step = step, .loss = {.smoothing = 2}});
    check_bad_plan(p.l, (struct fkt_epoch_steps){
                            .steps = STEPS, .view = view, .step = step, .loss = {.share = 0.5, .temperature = 1}});
    CHECK_OK(fkt_learner_plan_epoch(p.l, &plan));
    CHECK_STATUS(fkt_learner_train(p.l, STEPS + 1), FKT_E_ARG);
    CHECK_OK(fkt_learner_train(p.l, STEPS));
    CHECK_STATUS(fkt_learner_train(p.l, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_learner_step(p.l, &step[0].optimizer), FKT_E_STATE); /* its gradients are gone */
    learner_case_release(&p);
    learner_case_init(&other, &problem, &fkt_learner_onednn, BATCH, FKT_PRECISION_F32, 1);
    CHECK(!fkt_learner_holds(other.l));
    CHECK_STATUS(hold(other.l, IMAGES, NULL), FKT_E_STATE);
    learner_case_release(&other);
}

/* A plan's average is there once the step that takes it has been queued, and not before. */
static void an_average_is_there_when_it_is_taken(void **state)
{
    struct learner_case p;
    (void)state;
    fill(0);
    for (size_t i = 0; i < STEPS; i++) step[i].average = i == 2 ? 0.5F : -1, step[i].optimizer.pull = 0;
    learner_case_init(&p, &problem, &fkt_learner_ref, BATCH, FKT_PRECISION_F32, 1);
    CHECK_OK(hold(p.l, IMAGES, NULL));
    CHECK_OK(fkt_learner_plan_epoch(p.l, &plan));
    for (int k = 0; k < 3; k++) {
        const int taken = k == 2;
        CHECK_OK(fkt_learner_train(p.l, 1));
        step[0].optimizer.pull = 1;
        if (taken) CHECK_OK(fkt_learner_plan_epoch(p.l, &plan));
        else CHECK_STATUS(fkt_learner_plan_epoch(p.l, &plan), FKT_E_STATE);
        step[0].optimizer.pull = 0;
    }
    learner_case_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_as_separate_calls),
        cmocka_unit_test(a_plan_begins_the_sums),
        cmocka_unit_test(a_bad_loss_is_named),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(an_average_is_there_when_it_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
