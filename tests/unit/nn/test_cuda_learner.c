/* SPDX-License-Identifier: Apache-2.0 */
/* The learner of nn/cuda against the plain loops of nn/ref: every operation and every pattern that becomes one step, in
 * f32 and bf16, SGD and Adam; arrays that another backend continues with; the same bits from run to run. Steps without
 * the host: test_cuda_learner_epoch.c. On the emulation without a card, and on a card. */
#include "nn/cuda/learn.h"
#include "tests/support/cuda_case.h"
#include "tests/support/learner_compare.h"

/* Two steps of descent, the second with the weights that the first made, as for the learner of oneDNN. */
static void agree(const struct problem *k, uint32_t batch)
{
    struct learner_case fast, plain;
    char where[128];
    learner_case_init(&fast, k, &fkt_learner_cuda, batch, FKT_PRECISION_F32, 1);
    learner_case_init(&plain, k, &fkt_learner_ref, batch, FKT_PRECISION_F32, 1);
    for (int i = 0; i < 2; i++) {
        double d, tolerance = i ? 1e-2 : 1e-4;
        snprintf(where, sizeof where, "%s, batch %u, step %d", k->name, batch, i);
        spoil_gradients(&fast);
        learner_case_step(&fast, i);
        learner_case_step(&plain, i);
        d = distance(fast.out, plain.out, fast.n_out);
        if (!(d <= tolerance)) fail_msg("%s: results differ by %.3g, allowed %.3g", where, d, tolerance);
        for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++)
            compare(&fast, &plain, NULL, (enum fkt_learned)what, tolerance, where);
    }
    learner_case_release(&fast);
    learner_case_release(&plain);
}

/* bf16: from the answer in f32 at most three times as far as the plain learner, and 3e-2. */
static void agree_bf16(const struct problem *k, uint32_t batch)
{
    struct learner_case fast, plain, exact;
    char where[128];
    learner_case_init(&fast, k, &fkt_learner_cuda, batch, FKT_PRECISION_BF16, 1);
    learner_case_init(&plain, k, &fkt_learner_ref, batch, FKT_PRECISION_BF16, 1);
    learner_case_init(&exact, k, &fkt_learner_ref, batch, FKT_PRECISION_F32, 1);
    for (int i = 0; i < 2; i++) {
        snprintf(where, sizeof where, "%s in bf16, batch %u, step %d", k->name, batch, i);
        learner_case_step(&fast, i);
        learner_case_step(&plain, i);
        learner_case_step(&exact, i);
        CHECK(distance(fast.out, exact.out, fast.n_out) <= 3e-2 + 3 * distance(plain.out, exact.out, fast.n_out));
        for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++)
            compare(&fast, &exact, &plain, (enum fkt_learned)what, 3e-2, where);
    }
    learner_case_release(&fast);
    learner_case_release(&plain);
    learner_case_release(&exact);
}

static void all_agree(void (*agrees)(const struct problem *k, uint32_t batch))
{
    for (int t = 0; t < PROBLEMS; t++) {
        cuda_order(t % CUDA_ORDERS);
        agrees(&problems[t], problems[t].height > 12 ? 2 : 5);
        cuda_order((t + 1) % CUDA_ORDERS);
        agrees(&problems[t], 1);
    }
    cuda_order(0);
}

static void f32_agrees(void **state)
{
    (void)state;
    all_agree(agree);
    agree(&problems[3], 37); /* more than one partial sum of each channel */
}

static void bf16_agrees(void **state)
{
    (void)state;
    all_agree(agree_bf16);
}

static void adam_agrees(void **state)
{
    struct fkt_optimizer o = {
        .kind = FKT_OPTIMIZER_ADAM, .rate = 0.01F, .decay = 1e-3F, .beta1 = 0.9F, .beta2 = 0.99F, .epsilon = 1e-3F};
    struct learner_case fast, plain;
    (void)state;
    learner_case_init(&fast, &problems[6], &fkt_learner_cuda, 4, FKT_PRECISION_F32, 1);
    learner_case_init(&plain, &problems[6], &fkt_learner_ref, 4, FKT_PRECISION_F32, 1);
    for (o.step = 1; o.step <= 3; o.step++) {
        struct learner_case *both[] = {&fast, &plain};
        for (int k = 0; k < 2; k++) {
            CHECK_OK(fkt_learner_forward(both[k]->l, both[k]->in, both[k]->out));
            CHECK_OK(fkt_learner_backward(both[k]->l, both[k]->dout));
            CHECK_OK(fkt_learner_step(both[k]->l, &o));
        }
        compare(&fast, &plain, NULL, FKT_WEIGHT, o.step == 1 ? 1e-5 : 1e-3, "Adam");
        compare(&fast, &plain, NULL, FKT_VELOCITY, o.step == 1 ? 1e-4 : 1e-2, "Adam");
    }
    for (uint32_t s = 0; s < fast.net.n_slots; s++) {
        float *a, *b;
        double d;
        if (!fkt_learner_is_parameter(fast.l, s)) continue;
        a = array_of(&fast, FKT_SECOND, s);
        b = array_of(&plain, FKT_SECOND, s);
        d = distance(a, b, fkt_slot_count(&fast.net.slot[s]));
        if (!(d <= 1e-2)) fail_msg("the second moment of '%s' differs by %.3g", fast.net.slot[s].name[0], d);
        fkt_free(a);
        fkt_free(b);
    }
    learner_case_release(&fast);
    learner_case_release(&plain);
}

static void copy_arrays(const struct learner_case *from, struct learner_case *to)
{
    for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++)
        for (uint32_t s = 0; s < from->net.n_slots; s++) {
            float *x;
            if (what == FKT_GRADIENT || (what == FKT_VELOCITY && !fkt_learner_is_parameter(from->l, s))) continue;
            x = array_of(from, (enum fkt_learned)what, s);
            CHECK_OK(fkt_learner_write(to->l, (enum fkt_learned)what, s, x));
            fkt_free(x);
        }
}

/* What a card has learned a processor continues, and back: reading and writing lose nothing. */
static void other_backends_continue(void **state)
{
    static const struct fkt_learner_backend *const others[] = {&fkt_learner_ref, &fkt_learner_onednn};
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct learner_case a, b, back;
        const struct problem *p = &problems[k < 2 ? 8 : 2];
        learner_case_init(&a, p, &fkt_learner_cuda, 3, FKT_PRECISION_F32, 1);
        learner_case_init(&b, p, others[k % 2], 3, FKT_PRECISION_F32, 1);
        learner_case_init(&back, p, &fkt_learner_cuda, 3, FKT_PRECISION_F32, 1);
        learner_case_step(&a, 0);
        CHECK_OK(fkt_learner_forward(back.l, back.in, back.out)); /* its copies of weights are old afterwards */
        copy_arrays(&a, &b);
        copy_arrays(&b, &back);
        for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++)
            if (what != FKT_GRADIENT) compare(&back, &a, NULL, (enum fkt_learned)what, 0, p->name);
        learner_case_step(&a, 1);
        learner_case_step(&b, 1);
        learner_case_step(&back, 1);
        for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++) {
            compare(&b, &a, NULL, (enum fkt_learned)what, 1e-3, p->name);
            compare(&back, &a, NULL, (enum fkt_learned)what, 0, p->name);
        }
        learner_case_release(&a);
        learner_case_release(&b);
        learner_case_release(&back);
    }
}

static void bits_repeat(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        struct learner_case a, b;
        learner_case_init(&a, &problems[8], &fkt_learner_cuda, 3, (enum fkt_precision)p, 1);
        learner_case_init(&b, &problems[8], &fkt_learner_cuda, 3, (enum fkt_precision)p, 4);
        for (int i = 0; i < 3; i++) {
            cuda_order(0);
            learner_case_step(&a, i);
            cuda_order(CUDA_ORDERS - 1); /* on the emulation: blocks and threads from last to first */
            learner_case_step(&b, i);
        }
        cuda_order(0);
        CHECK(!memcmp(a.out, b.out, a.n_out * sizeof *a.out));
        for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++)
            compare(&a, &b, NULL, (enum fkt_learned)what, 0, "the same again");
        learner_case_release(&a);
        learner_case_release(&b);
    }
}

/* Every allocation of the host fails once; nothing is left. */
static void allocations_fail(void **state)
{
    struct fkt_learner_spec spec = {.batch = 2, .height = 4, .width = 4, .norm_momentum = 0.1F};
    struct fkt_learner *l = NULL;
    struct fkt_net net;
    size_t before, at = 0;
    fkt_status st = FKT_E_NOMEM;
    (void)state;
    net_resnet8(&net);
    spec.precision = FKT_PRECISION_BF16;
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_cuda, &net, &spec)); /* what is kept for the next is made */
    fkt_learner_free(l);
    before = fkt_alloc_live();
    while (st != FKT_OK) {
        CHECK(st == FKT_E_NOMEM && at < 10000);
        fkt_alloc_fault_at(++at, 0);
        st = fkt_learner_new(&l, &fkt_learner_cuda, &net, &spec);
        fkt_alloc_fault_at(0, 0);
        if (st != FKT_OK) CHECK(!l && fkt_alloc_live() == before);
    }
    CHECK(at > 10);
    fkt_learner_free(l);
    CHECK(fkt_alloc_live() == before);
    fkt_net_clear(&net);
}

/* A grid has at most 65,535 blocks in its second and third dimension. */
static void a_batch_must_fit_a_grid(void **state)
{
    const struct fkt_learner_spec spec = {.batch = 65536, .height = 1, .width = 1, .norm_momentum = 0.1F};
    struct fkt_learner *l = NULL;
    struct fkt_net net;
    (void)state;
    fkt_net_init(&net, 3);
    net_conv3(&net, 0, 3, 8);
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_cuda, &net, &spec), FKT_E_ARG);
    CHECK(!l && strstr(fkt_error_text(), "at most 65535 images"));
    fkt_net_clear(&net);
}

#ifdef FKT_CUDA_HOST
/* The stream of the weights' gradients may fall behind as far as the events let it: nothing that it reads is gone. */
static void streams_may_drift(void **state)
{
    (void)state;
    for (int t = 0; t < PROBLEMS; t++) {
        struct learner_case a, b;
        learner_case_init(&a, &problems[t], &fkt_learner_cuda, 3, FKT_PRECISION_BF16, 1);
        learner_case_init(&b, &problems[t], &fkt_learner_cuda, 3, FKT_PRECISION_BF16, 1);
        for (int i = 0; i < 2; i++) {
            learner_case_step(&a, i);
            fkt_cuda_aside_late = 1;
            learner_case_step(&b, i);
            fkt_cuda_aside_late = 0;
        }
        for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++)
            compare(&a, &b, NULL, (enum fkt_learned)what, 0, problems[t].name);
        learner_case_release(&a);
        learner_case_release(&b);
    }
}

static void too_large_a_batch_is_named(void **state)
{
    const struct fkt_learner_spec spec = {.batch = 64, .height = 24, .width = 24, .norm_momentum = 0.1F};
    const size_t memory = fkt_host_machine.memory;
    struct fkt_learner *l = NULL;
    struct fkt_net net;
    (void)state;
    net_resnet8(&net);
    fkt_host_machine.memory = 1 << 20;
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_cuda, &net, &spec), FKT_E_NOMEM);
    CHECK(fkt_host_memory_used() == 0);
    CHECK(!l && strstr(fkt_error_text(), "a batch of 64 images of 24 x 24 needs"));
    CHECK(strstr(fkt_error_text(), "0.0 GB are free") && !strcmp(fkt_error_hint(), "use a smaller batch"));
    fkt_host_machine.memory = memory;
    fkt_net_clear(&net);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_agrees),
        cmocka_unit_test(bf16_agrees),
        cmocka_unit_test(adam_agrees),
        cmocka_unit_test(other_backends_continue),
        cmocka_unit_test(bits_repeat),
        cmocka_unit_test(allocations_fail),
        cmocka_unit_test(a_batch_must_fit_a_grid),
#ifdef FKT_CUDA_HOST
        cmocka_unit_test(streams_may_drift),
        cmocka_unit_test(too_large_a_batch_is_named),
#endif
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
