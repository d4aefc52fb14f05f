/* SPDX-License-Identifier: Apache-2.0 */
/* What the oneDNN learner guarantees beyond right numbers: bits that repeat, memory checked before it is used, an
 * OpenMP team that is restored, NaN that is not hidden, facts. */
#include "base/threads.h"
#include "nn/cpu.h"
#include "tests/support/learner_case.h"
#include "tests/support/winograd.h"

int omp_get_max_threads(void);
void omp_set_num_threads(int n);

static const struct problem small = {"resnet8", net_resnet8, 16, 16};

static void each_array(const struct learner_case *p,
                       void (*fn)(const struct learner_case *p, enum fkt_learned what, uint32_t slot, size_t count,
                                  void *ctx),
                       void *ctx)
{
    for (uint32_t s = 0; s < p->net.n_slots; s++)
        for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++)
            if (fkt_learner_is_parameter(p->l, s) || what == FKT_WEIGHT || what == FKT_AVERAGE)
                fn(p, (enum fkt_learned)what, s, fkt_slot_count(&p->net.slot[s]), ctx);
}

static void same(const struct learner_case *p, enum fkt_learned what, uint32_t slot, size_t count, void *ctx)
{
    const struct learner_case *other = ctx;
    float *a = NULL, *b = NULL;
    CHECK_OK(fkt_alloc(&a, count));
    CHECK_OK(fkt_alloc(&b, count));
    CHECK_OK(fkt_learner_read(p->l, what, slot, a));
    CHECK_OK(fkt_learner_read(other->l, what, slot, b));
    if (memcmp(a, b, count * sizeof *a))
        fail_msg("array %d of '%s' has other bits", (int)what, p->net.slot[slot].name[0]);
    fkt_free(a);
    fkt_free(b);
}

/* Two learners side by side, the second after a step on other images: what an arena held before does not matter. Its
 * weights, velocities and statistics then are copied from the first, which also shows that they come back as they
 * were written. */
static void copy_array(const struct learner_case *p, enum fkt_learned what, uint32_t slot, size_t count, void *ctx)
{
    struct learner_case *to = ctx;
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, count));
    CHECK_OK(fkt_learner_read(p->l, what, slot, x));
    CHECK_OK(fkt_learner_write(to->l, what, slot, x));
    fkt_free(x);
}

static void bits_repeat(void **state)
{
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    for (int mode = 0; mode < 3 * (1 + possible); mode++) {
        enum fkt_precision precision = mode / 3 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
        struct learner_case a, b;
        learner_case_init(&a, &small, &fkt_learner_onednn, 6, precision, (unsigned)mode % 3 + 1);
        learner_case_init(&b, &small, &fkt_learner_onednn, 6, precision, (unsigned)mode % 3 + 1);
        for (size_t i = 0; i < b.n_in; i++) b.in[i] = -2 * b.in[i];
        learner_case_step(&a, 0);
        learner_case_step(&b, 0);
        memcpy(b.in, a.in, a.n_in * sizeof *a.in);
        each_array(&a, copy_array, &b);
        each_array(&a, same, &b);
        for (int i = 1; i < 4; i++) {
            learner_case_step(&a, i);
            learner_case_step(&b, i);
        }
        CHECK(!memcmp(a.out, b.out, a.n_out * sizeof *a.out));
        each_array(&a, same, &b);
        learner_case_release(&a);
        learner_case_release(&b);
    }
}

static void team_is_restored(void **state)
{
    struct learner_case p;
    (void)state;
    omp_set_num_threads(5);
    learner_case_init(&p, &small, &fkt_learner_onednn, 2, FKT_PRECISION_F32, 2);
    CHECK(omp_get_max_threads() == 5);
    learner_case_step(&p, 0);
    CHECK(omp_get_max_threads() == 5);
    learner_case_release(&p);
    omp_set_num_threads((int)fkt_cpu_count());
}

/* 16 TiB for one map: an error, not a killed process. The first check, in learner.c, counts less and passes. */
static void more_than_there_is(void **state)
{
    struct fkt_learner_spec spec = {.batch = 4096, .height = 4096, .width = 4096};
    struct fkt_learner_facts facts = {0};
    struct fkt_shape shapes[2];
    struct fkt_net net;
    void *self = NULL;
    size_t live = fkt_alloc_live();
    (void)state;
    fkt_net_init(&net, 3);
    net_conv3(&net, 0, 3, 64);
    CHECK_OK(fkt_net_shapes(&net, spec.height, spec.width, shapes));
    CHECK_STATUS(fkt_learner_onednn.make(&self, &net, shapes, &spec, &facts), FKT_E_NOMEM);
    CHECK(strstr(fkt_error_text(), "batch of 4096") && strstr(fkt_error_text(), "GiB") && !self);
    CHECK(strstr(fkt_error_hint(), "smaller batch"));
    fkt_net_clear(&net);
    CHECK(fkt_alloc_live() == live);
}

static void net_pooled(struct fkt_net *n) /* the stem of ImageNet, and one block */
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_relu(n, net_bn(n, CONV(0, 3, 16, 7, 2, 3, 1, 0), 16));
    x = net_pool(n, x, 3, 2, 1);
    net_end(n, net_block(n, x, 16, 16, 1), 16, 10);
}

/* The weights of one channel of the first convolution become so large that its results overflow, those of all other
 * windows so small that nothing else does. */
static void spoil(struct learner_case *p)
{
    for (uint32_t s = 0; s < p->net.n_slots; s++) {
        const size_t count = fkt_slot_count(&p->net.slot[s]);
        float *x = NULL;
        if (p->net.slot[s].rank != 4) continue;
        CHECK_OK(fkt_alloc(&x, count));
        CHECK_OK(fkt_learner_read(p->l, FKT_WEIGHT, s, x));
        for (size_t i = 0; s && i < count; i++) x[i] *= 1e-3F;
        for (size_t i = 0; !s && i < count / 16; i++) x[3 * count / 16 + i] = 3e38F;
        CHECK_OK(fkt_learner_write(p->l, FKT_WEIGHT, s, x));
        fkt_free(x);
    }
}

/* The library's ReLU makes 0 of a NaN and its max-pool the lowest float there is, and a run that has diverged would
 * look like one that has not. */
static void nan_is_not_hidden(void **state)
{
    static const struct problem pooled = {"pooled", net_pooled, 31, 16};
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    for (int mode = 0; mode < 4 * (1 + possible); mode++) {
        struct learner_case p;
        size_t wrong = 0;
        learner_case_init(&p, mode & 1 ? &pooled : &small, &fkt_learner_onednn, 4,
                          mode & 4 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32, 2);
        if (mode & 2) spoil(&p);
        else p.in[7] = NAN;
        CHECK_OK(fkt_learner_forward(p.l, p.in, p.out));
        for (size_t i = 0; i < p.n_out; i++) wrong += isnan(p.out[i]) != 0;
        if (wrong != p.n_out) /* a batch norm spreads it over the batch */
            fail_msg("mode %d: %zu of %zu results are NaN", mode, wrong, p.n_out);
        learner_case_release(&p);
    }
}

/* No average before one is taken; a forward that is given no backward; statistics move with every forward. */
static void order_of_calls(void **state)
{
    const uint32_t mean = 3; /* of the first norm, behind a convolution and its two vectors */
    float before[16], after[16], x[16];
    struct learner_case p;
    (void)state;
    learner_case_init(&p, &small, &fkt_learner_onednn, 4, FKT_PRECISION_F32, 1);
    CHECK(!fkt_learner_is_parameter(p.l, mean));
    CHECK_STATUS(fkt_learner_read(p.l, FKT_AVERAGE, mean, x), FKT_E_STATE);
    CHECK_OK(fkt_learner_forward(p.l, p.in, p.out));
    CHECK_OK(fkt_learner_read(p.l, FKT_WEIGHT, mean, before));
    CHECK_OK(fkt_learner_forward(p.l, p.in, p.out));
    CHECK_OK(fkt_learner_read(p.l, FKT_WEIGHT, mean, after));
    for (int i = 0; i < 16; i++) CHECK_REL(after[i], (double)before[i] * 1.9, 1e-5); /* 0.9 of the first + as much */
    learner_case_release(&p);
}

enum { EVEN = 8 };
static void one_norm(struct fkt_net *n)
{
    fkt_net_init(n, EVEN);
    net_bn(n, 0, EVEN);
}

/* All numbers of a channel are the same but the first, which the sums are taken around: v (n - 1) / n and about v^2 / n
 * are left of numbers that are n times as large. Rounding makes some of these variances negative, by more than the
 * epsilon; sums of floats over all pixels would lose the mean too. */
static void one_pixel_unlike_all_others(void **state)
{
    static const struct problem bare = {"one norm", one_norm, 64, 64};
    static const float v[EVEN] = {10.1F, 100.3F, 1000.7F, 3.3F, 333.3F, 0, -10.1F, -100.3F};
    const size_t images = 128, pixels = (size_t)64 * 64, n = images * pixels;
    const uint32_t mean = 2, var = 3;
    float got[EVEN];
    struct learner_case p;
    (void)state;
    learner_case_init(&p, &bare, &fkt_learner_onednn, (uint32_t)images, FKT_PRECISION_F32, 1);
    for (size_t i = 0; i < p.n_in; i++) p.in[i] = v[i / pixels % EVEN];
    for (size_t c = 0; c < EVEN; c++) p.in[c * pixels] = 0;
    CHECK_OK(fkt_learner_forward(p.l, p.in, p.out));
    for (size_t i = 0; i < p.n_out; i++) CHECK(isfinite(p.out[i]));
    CHECK_OK(fkt_learner_read(p.l, FKT_WEIGHT, mean, got));
    for (size_t c = 0; c < EVEN; c++)
        CHECK_NEAR(got[c], 0.1 * (double)v[c] * (double)(n - 1) / (double)n, 1e-6 * fabs((double)v[c]));
    CHECK_OK(fkt_learner_read(p.l, FKT_WEIGHT, var, got)); /* 0.9 of the first, which is 1, and a tenth of this one */
    for (size_t c = 0; c < EVEN; c++) {
        const double want = (double)v[c] * (double)v[c] / (double)n;
        CHECK(got[c] >= 0.9F);
        CHECK_NEAR(got[c], 0.9 + 0.1 * want, 1e-6 * (double)v[c] * (double)v[c] + 1e-6);
    }
    learner_case_release(&p);
}

static void facts_are_reported(void **state)
{
    const struct fkt_learner_facts *f;
    struct learner_case p;
    (void)state;
    learner_case_init(&p, &small, &fkt_learner_onednn, 64, FKT_PRECISION_F32, 2);
    f = fkt_learner_facts(p.l);
    CHECK(f->flops > 1000000);
    CHECK(f->convolutions == 3 * 10 - 1); /* nine and the linear map; the first has no backward-data */
    CHECK(f->fused == 3 + 7);             /* additions and ReLUs */
    CHECK(f->winograd == (winograd_is_there() ? 3 * 2 : 0)); /* 32 channels at 8x8, 256 tiles; 64 at 4x4, 64 tiles */
    CHECK(f->arena_bytes > (uint64_t)2 * 64 * 16 * 16 * 16 * 4);
    CHECK(f->weight_bytes >= 3 * 4 * (uint64_t)fkt_net_parameters(&p.net));
    learner_case_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_repeat),
        cmocka_unit_test(team_is_restored),
        cmocka_unit_test(more_than_there_is),
        cmocka_unit_test(nan_is_not_hidden),
        cmocka_unit_test(order_of_calls),
        cmocka_unit_test(facts_are_reported),
        cmocka_unit_test(one_pixel_unlike_all_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
