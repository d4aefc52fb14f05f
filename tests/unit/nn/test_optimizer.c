/* SPDX-License-Identifier: Apache-2.0 */
/* Adam: on plain arrays and in the learners, against PyTorch's (tests/vectors/nn/gradients.md). */
#include "nn/learner.h"

#include "tensor/safetensors.h"
#include "tests/support/learner_case.h"

#define VECTORS FKT_TEST_VECTORS "/nn/gradients.safetensors"
enum { N = 8, STEPS = 5 };

static const char *const names[] = {"usual", "decay", "large epsilon", "no memory"};
enum { NAMES = sizeof names / sizeof *names };

/* One case: all that PyTorch had and made. */
struct run {
    float weight[N], g[STEPS * N], after[STEPS * N], m[STEPS * N], v[STEPS * N];
    struct fkt_optimizer o;
};

static void load(struct run *r, const char *name)
{
    const char *const role[] = {"weight", "g", "after", "m", "v", "value"};
    float value[5], *const to[] = {r->weight, r->g, r->after, r->m, r->v, value};
    struct fkt_safetensors *f = NULL;
    CHECK_OK(fkt_safetensors_open(&f, VECTORS));
    for (int i = 0; i < 6; i++) {
        char full[64];
        snprintf(full, sizeof full, "adam/%s/%s", name, role[i]);
        CHECK_OK(fkt_tensor_copy_f32(to[i], fkt_safetensors_find(f, full)));
    }
    fkt_safetensors_free(f);
    r->o = (struct fkt_optimizer){.kind = FKT_OPTIMIZER_ADAM,
                                  .rate = value[0],
                                  .decay = value[1],
                                  .beta1 = value[2],
                                  .beta2 = value[3],
                                  .epsilon = value[4]};
}

/* Float is stored after each step: some units in the last place of numbers around 1. */
static void near_all(const char *name, const float *got, const float *want)
{
    for (int i = 0; i < N; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-6))
            fail_msg("%s, %d: got %.9g, want %.9g", name, i, (double)got[i], (double)want[i]);
}

static void plain_arrays_are_pytorchs(void **state)
{
    (void)state;
    for (int k = 0; k < NAMES; k++) {
        struct run r;
        float m[N] = {0}, v[N] = {0};
        load(&r, names[k]);
        for (int i = 0; i < STEPS; i++) {
            r.o.step = (uint64_t)i + 1;
            fkt_adam(r.weight, r.g + N * i, m, v, N, &r.o);
            near_all(names[k], r.weight, r.after + N * i);
            near_all(names[k], m, r.m + N * i);
            near_all(names[k], v, r.v + N * i);
        }
    }
}

static void check_learner(const struct fkt_learner_backend *backend, const char *name)
{
    const struct fkt_learner_spec spec = {.batch = 1, .height = 1, .width = 1, .threads = 1};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    struct run r;
    float got[N];
    load(&r, name);
    fkt_net_init(&n, N);
    net_linear(&n, 0, N, 1);
    CHECK_OK(fkt_learner_new(&l, backend, &n, &spec));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, 0, r.weight));
    CHECK_STATUS(fkt_learner_read(l, FKT_SECOND, 0, got), FKT_E_STATE);
    for (int i = 0; i < STEPS; i++) {
        r.o.step = (uint64_t)i + 1;
        CHECK_OK(fkt_learner_write(l, FKT_GRADIENT, 0, r.g + N * i));
        CHECK_OK(fkt_learner_step(l, &r.o));
        CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, 0, got));
        near_all(name, got, r.after + N * i);
        CHECK_OK(fkt_learner_read(l, FKT_VELOCITY, 0, got));
        near_all(name, got, r.m + N * i);
        CHECK_OK(fkt_learner_read(l, FKT_SECOND, 0, got));
        near_all(name, got, r.v + N * i);
    }
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

static void learners_are_pytorchs(void **state)
{
    (void)state;
    for (int k = 0; k < NAMES; k++) {
        check_learner(&fkt_learner_ref, names[k]);
        check_learner(&fkt_learner_onednn, names[k]);
    }
}

/* Moments that are written continue as if the learner had made them: what a checkpoint needs. */
static void check_continues(const struct fkt_learner_backend *backend)
{
    static const struct problem k = {"resnet8", net_resnet8, 8, 8};
    struct fkt_optimizer o = {
        .kind = FKT_OPTIMIZER_ADAM, .rate = 1e-3F, .beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F};
    static const enum fkt_learned all[] = {FKT_WEIGHT, FKT_VELOCITY, FKT_SECOND};
    struct learner_case a, b;
    learner_case_init(&a, &k, backend, 4, FKT_PRECISION_F32, 1);
    learner_case_init(&b, &k, backend, 4, FKT_PRECISION_F32, 1);
    for (o.step = 1; o.step <= 4; o.step++) {
        CHECK_OK(fkt_learner_forward(a.l, a.in, a.out));
        CHECK_OK(fkt_learner_backward(a.l, a.dout));
        CHECK_OK(fkt_learner_step(a.l, &o));
        for (uint32_t s = 0; o.step == 2 && s < a.net.n_slots; s++)
            for (int w = 0; w < 3; w++) {
                const size_t n = fkt_slot_count(&a.net.slot[s]);
                float *x = NULL;
                if (w && !fkt_learner_is_parameter(a.l, s)) continue;
                CHECK_OK(fkt_alloc(&x, n));
                CHECK_OK(fkt_learner_read(a.l, all[w], s, x));
                CHECK_OK(fkt_learner_write(b.l, all[w], s, x));
                fkt_free(x);
            }
        if (o.step <= 2) continue;
        CHECK_OK(fkt_learner_forward(b.l, a.in, b.out));
        CHECK_OK(fkt_learner_backward(b.l, a.dout));
        CHECK_OK(fkt_learner_step(b.l, &o));
        assert_memory_equal(a.out, b.out, a.n_out * sizeof *a.out);
    }
    for (uint32_t s = 0; s < a.net.n_slots; s++) {
        const size_t n = fkt_slot_count(&a.net.slot[s]);
        float *x = NULL, *y = NULL;
        CHECK_OK(fkt_alloc(&x, n));
        CHECK_OK(fkt_alloc(&y, n));
        CHECK_OK(fkt_learner_read(a.l, FKT_WEIGHT, s, x));
        CHECK_OK(fkt_learner_read(b.l, FKT_WEIGHT, s, y));
        assert_memory_equal(x, y, n * sizeof *x);
        fkt_free(x);
        fkt_free(y);
    }
    learner_case_release(&a);
    learner_case_release(&b);
}

static void written_moments_continue(void **state)
{
    (void)state;
    check_continues(&fkt_learner_ref);
    check_continues(&fkt_learner_onednn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_arrays_are_pytorchs),
        cmocka_unit_test(learners_are_pytorchs),
        cmocka_unit_test(written_moments_continue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
