/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the learner of nn/cuda that need nothing from the host: against the same steps call by call, against nn/ref,
 * and against themselves in other portions. */
#include "classifier/augment.h"
#include "nn/loss.h"
#include "tests/support/cuda_case.h"
#include "tests/support/learner_compare.h"

enum { SIDE = 12, IMAGES = 11, BATCH = 4, STEPS = 5, CLASSES = 10 };

struct epoch {
    uint8_t rgb[IMAGES * SIDE * SIDE * 3];
    uint32_t label[IMAGES];
    float teacher[IMAGES * CLASSES]; /* read where steps.loss.share is not 0 */
    float value[3][256];
    struct fkt_view_at view[STEPS * BATCH];
    struct fkt_planned_step step[STEPS];
    struct fkt_epoch_steps steps;
};

static void epoch_init(struct epoch *e, enum fkt_optimizer_kind kind)
{
    struct fkt_rng r;
    memset(e, 0, sizeof *e);
    fkt_rng_init(&r, 17, 0);
    for (size_t i = 0; i < sizeof e->rgb; i++) e->rgb[i] = (uint8_t)fkt_rng_below(&r, 256);
    for (int i = 0; i < IMAGES; i++) e->label[i] = (uint32_t)fkt_rng_below(&r, CLASSES);
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) e->value[c][v] = ((float)v - 100 - 10 * (float)c) / 60;
    for (int i = 0; i < STEPS * BATCH; i++)
        e->view[i] = (struct fkt_view_at){.index = (uint32_t)fkt_rng_below(&r, IMAGES),
                                          .top = (int16_t)((int)fkt_rng_below(&r, 7) - 3),
                                          .left = (int16_t)((int)fkt_rng_below(&r, 7) - 3),
                                          .flip = (uint16_t)fkt_rng_below(&r, 2)};
    for (int i = 0; i < IMAGES * CLASSES; i++) e->teacher[i] = (float)(8 * fkt_rng_unit(&r) - 4);
    e->teacher[3 * CLASSES] = -4000; /* a class that cannot be: its probability is 0 in double */
    e->view[1].top = SIDE;           /* nothing of the image is seen */
    e->view[2].left = -SIDE - 1;
    for (int i = 0; i < STEPS; i++) {
        e->step[i].optimizer = (struct fkt_optimizer){.kind = kind,
                                                      .rate = 0.01F * (float)(i + 1),
                                                      .decay = 5e-4F,
                                                      .momentum = 0.9F,
                                                      .nesterov = i % 2,
                                                      .pull = kind == FKT_OPTIMIZER_SGD && i > 2 ? 1.5F : 0,
                                                      .beta1 = 0.9F,
                                                      .beta2 = 0.99F,
                                                      .epsilon = 1e-2F,
                                                      .step = (uint64_t)i + 1};
        e->step[i].average = i < 2 ? -1 : i == 2 ? 0 : 0.9F;
    }
    e->steps = (struct fkt_epoch_steps){.steps = STEPS,
                                        .view = e->view,
                                        .step = e->step,
                                        .loss = {.smoothing = 0.1, .temperature = 2},
                                        .loss_before = 0.5};
}

static fkt_status hold(struct fkt_learner *l, const struct epoch *e)
{
    return fkt_learner_hold(l, &(struct fkt_held){.rgb = e->rgb,
                                                  .label = e->label,
                                                  .teacher = e->steps.loss.share > 0 ? e->teacher : NULL,
                                                  .n = IMAGES,
                                                  .value = e->value});
}

struct sums {
    double loss;
    uint64_t hits, first_bad;
};

static const struct problem resnet = {"resnet8", net_resnet8, SIDE, SIDE};

/* In portions of at most `portion` steps. */
static struct sums run(struct learner_case *p, const struct epoch *e, uint64_t portion)
{
    struct sums s;
    CHECK(fkt_learner_holds(p->l));
    CHECK_OK(hold(p->l, e));
    CHECK_OK(fkt_learner_plan_epoch(p->l, &e->steps));
    for (uint64_t done = 0, n; done < e->steps.steps; done += n) {
        n = e->steps.steps - done < portion ? e->steps.steps - done : portion;
        CHECK_OK(fkt_learner_train(p->l, n));
    }
    CHECK_OK(fkt_learner_collect(p->l, &s.loss, &s.hits, &s.first_bad));
    return s;
}

/* The same steps, each call from here. */
static struct sums run_by_calls(struct learner_case *p, const struct epoch *e)
{
    struct sums s = {e->steps.loss_before, 0, UINT64_MAX};
    for (int i = 0; i < STEPS; i++) {
        uint32_t label[BATCH];
        float dout[BATCH * CLASSES], teacher[BATCH * CLASSES];
        double loss;
        size_t hits;
        for (int k = 0; k < BATCH; k++) {
            const struct fkt_view_at *at = &e->view[i * BATCH + k];
            const struct fkt_view v = {at->top, at->left, at->flip};
            label[k] = e->label[at->index];
            memcpy(teacher + k * CLASSES, e->teacher + at->index * CLASSES, CLASSES * sizeof *teacher);
            fkt_view_apply(&v, e->value, e->rgb + at->index * SIDE * SIDE * 3, SIDE, p->in + k * 3 * SIDE * SIDE);
        }
        CHECK_OK(fkt_learner_forward(p->l, p->in, p->out));
        CHECK_OK(fkt_loss_softmax(&e->steps.loss, p->out, label, teacher, BATCH, CLASSES, &loss, dout, &hits));
        s.loss += loss;
        s.hits += hits;
        CHECK_OK(fkt_learner_backward(p->l, dout));
        CHECK_OK(fkt_learner_step(p->l, &e->step[i].optimizer));
        if (e->step[i].average >= 0) CHECK_OK(fkt_learner_average(p->l, e->step[i].average));
    }
    return s;
}

static void compare_all(const struct learner_case *a, const struct learner_case *b, double tolerance, const char *where)
{
    compare(a, b, NULL, FKT_WEIGHT, tolerance, where);
    compare(a, b, NULL, FKT_VELOCITY, 10 * tolerance, where);
    compare(a, b, NULL, FKT_AVERAGE, tolerance, where);
}

/* The card's loss and the host's may differ in the last bit of a gradient; five steps make it larger. */
static void agree(enum fkt_precision precision, enum fkt_optimizer_kind kind, double share)
{
    struct learner_case card, calls, plain;
    struct epoch *e = NULL;
    struct sums s, t, u;
    const double loose = precision ? 5e-2 : 1e-3;
    CHECK_OK(fkt_alloc(&e, 1));
    epoch_init(e, kind);
    e->steps.loss.share = share;
    learner_case_init(&card, &resnet, &fkt_learner_cuda, BATCH, precision, 1);
    learner_case_init(&calls, &resnet, &fkt_learner_cuda, BATCH, precision, 1);
    learner_case_init(&plain, &resnet, &fkt_learner_ref, BATCH, precision, 1);
    s = run(&card, e, 2);
    t = run_by_calls(&calls, e);
    u = run(&plain, e, STEPS);
    CHECK(s.first_bad == UINT64_MAX && u.first_bad == UINT64_MAX);
    CHECK_NEAR(s.loss, t.loss, precision ? 1e-3 : 1e-5);
    CHECK_NEAR(s.loss, u.loss, precision ? 5e-2 : 1e-4);
    CHECK(s.hits == t.hits);
    if (precision == FKT_PRECISION_F32) CHECK(s.hits == u.hits);
    compare_all(&card, &calls, precision ? 1e-2 : 1e-4, "call by call");
    if (precision == FKT_PRECISION_F32) compare_all(&card, &plain, loose, "plain loops");
    if (kind == FKT_OPTIMIZER_ADAM) {
        compare(&card, &calls, NULL, FKT_SECOND, 1e-3, "call by call");
        compare(&card, &plain, NULL, FKT_SECOND, 10 * loose, "plain loops");
    }
    learner_case_release(&card);
    learner_case_release(&calls);
    learner_case_release(&plain);
    fkt_free(e);
}

static void steps_agree(void **state)
{
    (void)state;
    agree(FKT_PRECISION_F32, FKT_OPTIMIZER_SGD, 0);
    agree(FKT_PRECISION_F32, FKT_OPTIMIZER_ADAM, 0);
    agree(FKT_PRECISION_BF16, FKT_OPTIMIZER_SGD, 0);
    agree(FKT_PRECISION_F32, FKT_OPTIMIZER_SGD, 1);
    agree(FKT_PRECISION_F32, FKT_OPTIMIZER_SGD, 0.3);
    agree(FKT_PRECISION_BF16, FKT_OPTIMIZER_SGD, 0.5);
}

/* A step, an epoch at once or in portions, with threads in another order: the same bits; and a second epoch works. */
static void portions_do_not_matter(void **state)
{
    struct learner_case a, b;
    struct epoch *e = NULL;
    (void)state;
    CHECK_OK(fkt_alloc(&e, 1));
    epoch_init(e, FKT_OPTIMIZER_SGD);
    learner_case_init(&a, &resnet, &fkt_learner_cuda, BATCH, FKT_PRECISION_BF16, 1);
    learner_case_init(&b, &resnet, &fkt_learner_cuda, BATCH, FKT_PRECISION_BF16, 1);
    for (int epoch = 0; epoch < 2; epoch++) {
        struct sums s, t;
        s = run(&a, e, 1);
        cuda_order(CUDA_ORDERS - 1);
        t = run(&b, e, STEPS);
        cuda_order(0);
        CHECK(s.loss == t.loss && s.hits == t.hits && s.loss > 0.5 && s.first_bad == UINT64_MAX);
        compare_all(&a, &b, 0, "portions");
    }
    learner_case_release(&a);
    learner_case_release(&b);
    fkt_free(e);
}

/* Trains all but the last step, turns the signs of the first convolution's weights `turns` times, and trains that. */
static double run_and_turn(struct learner_case *p, const struct epoch *e, int turns)
{
    struct sums s;
    float *w;
    CHECK_OK(hold(p->l, e));
    CHECK_OK(fkt_learner_plan_epoch(p->l, &e->steps));
    CHECK_OK(fkt_learner_train(p->l, e->steps.steps - 1));
    w = array_of(p, FKT_WEIGHT, 0);
    for (int k = 0; k < turns; k++) {
        for (size_t i = 0; i < fkt_slot_count(&p->net.slot[0]); i++) w[i] = -w[i];
        CHECK_OK(fkt_learner_write(p->l, FKT_WEIGHT, 0, w));
    }
    CHECK_OK(fkt_learner_train(p->l, 1));
    CHECK_OK(fkt_learner_collect(p->l, &s.loss, &s.hits, &s.first_bad));
    fkt_free(w);
    return s.loss;
}

/* Weights that are written between two portions are seen by the second: turned once it has another loss, turned back it
 * has all the bits of an epoch that nobody touched. */
static void writes_between_are_seen(void **state)
{
    struct learner_case a, once, twice;
    struct epoch *e = NULL;
    double loss;
    (void)state;
    CHECK_OK(fkt_alloc(&e, 1));
    epoch_init(e, FKT_OPTIMIZER_SGD);
    e->steps.steps = 3;
    learner_case_init(&a, &resnet, &fkt_learner_cuda, BATCH, FKT_PRECISION_BF16, 1);
    learner_case_init(&once, &resnet, &fkt_learner_cuda, BATCH, FKT_PRECISION_BF16, 1);
    learner_case_init(&twice, &resnet, &fkt_learner_cuda, BATCH, FKT_PRECISION_BF16, 1);
    loss = run(&a, e, 3).loss;
    CHECK(fabs(run_and_turn(&once, e, 1) - loss) > 1e-3);
    CHECK(run_and_turn(&twice, e, 2) == loss);
    compare_all(&a, &twice, 0, "weights written back");
    learner_case_release(&a);
    learner_case_release(&once);
    learner_case_release(&twice);
    fkt_free(e);
}

static void a_bad_step_is_named(void **state)
{
    static const struct fkt_learner_backend *const both[] = {&fkt_learner_cuda, &fkt_learner_ref};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct learner_case p;
        struct epoch *e = NULL;
        struct sums s;
        CHECK_OK(fkt_alloc(&e, 1));
        epoch_init(e, FKT_OPTIMIZER_SGD);
        e->step[2].optimizer.rate = 1e38F;
        learner_case_init(&p, &resnet, both[k], BATCH, FKT_PRECISION_F32, 1);
        s = run(&p, e, STEPS);
        CHECK(s.first_bad == 3 && isnan(s.loss));
        learner_case_release(&p);
        fkt_free(e);
    }
}

#ifdef FKT_CUDA_HOST
/* No memory for the dataset or the average: an error that names it, and with more memory the learner goes on. */
static void too_little_memory(void **state)
{
    const size_t memory = fkt_host_machine.memory;
    struct learner_case p;
    struct epoch *e = NULL;
    size_t before;
    int without = 0;
    (void)state;
    CHECK_OK(fkt_alloc(&e, 1));
    epoch_init(e, FKT_OPTIMIZER_ADAM);
    learner_case_init(&p, &resnet, &fkt_learner_cuda, BATCH, FKT_PRECISION_BF16, 1);
    before = fkt_host_memory_used();
    for (size_t more = 0; more < 1 << 20; more += 1 << 12) {
        fkt_status st;
        fkt_host_machine.memory = fkt_host_memory_used() + more;
        st = hold(p.l, e);
        if (st != FKT_OK) CHECK(fkt_host_memory_used() == before && ++without); /* no part of it stays */
        if (st == FKT_OK) st = fkt_learner_plan_epoch(p.l, &e->steps);
        if (st == FKT_OK) break;
        CHECK_STATUS(st, FKT_E_NOMEM);
        CHECK(strstr(fkt_error_text(), "of the card's memory"));
        CHECK_STATUS(fkt_learner_train(p.l, 1), FKT_E_STATE);
    }
    fkt_host_machine.memory = memory;
    CHECK(without > 1);
    CHECK(run(&p, e, STEPS).first_bad == UINT64_MAX);
    learner_case_release(&p);
    fkt_free(e);
}

/* Whatever is lost during an epoch is an error by the time of collect. */
static void a_lost_card_is_an_error(void **state)
{
    struct learner_case p;
    struct epoch *e = NULL;
    struct sums s;
    fkt_status st;
    (void)state;
    CHECK_OK(fkt_alloc(&e, 1));
    epoch_init(e, FKT_OPTIMIZER_SGD);
    learner_case_init(&p, &resnet, &fkt_learner_cuda, BATCH, FKT_PRECISION_F32, 1);
    CHECK_OK(hold(p.l, e));
    CHECK_OK(fkt_learner_plan_epoch(p.l, &e->steps));
    CHECK_OK(fkt_learner_train(p.l, 2));
    fkt_host_machine.lost = cudaErrorLaunchFailure;
    st = fkt_learner_train(p.l, 1);
    CHECK(st != FKT_OK && fkt_learner_collect(p.l, &s.loss, &s.hits, &s.first_bad) != FKT_OK);
    CHECK(fkt_learner_forward(p.l, p.in, p.out) != FKT_OK);
    CHECK(strstr(fkt_error_text(), "card") != NULL);
    fkt_host_machine.lost = cudaSuccess;
    learner_case_release(&p);
    fkt_free(e);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_agree),
        cmocka_unit_test(portions_do_not_matter),
        cmocka_unit_test(writes_between_are_seen),
        cmocka_unit_test(a_bad_step_is_named),
#ifdef FKT_CUDA_HOST
        cmocka_unit_test(too_little_memory),
        cmocka_unit_test(a_lost_card_is_an_error),
#endif
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
