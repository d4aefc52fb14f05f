/* SPDX-License-Identifier: Apache-2.0 */
/* The oneDNN learner against the plain loops of nn/ref/: every operation, every pattern that becomes one step, shapes
 * that fit no block, in f32 and bf16, on one thread and two, and once more in child processes under older instruction
 * sets (FEDKT_MAX_ISA, which must be set before the library starts).
 *
 * Arrays are compared by |got - want| / |want| (Euclidean). f32: 1e-4, of which Winograd's transforms need up to
 * 1e-5. */
#include "nn/cpu.h"
#include "tests/support/learner_case.h"
#include "tests/support/winograd.h"

#include <sys/wait.h>
#include <unistd.h>

static void conv_bias(struct fkt_net *n) /* three channels in, odd channels out, windows of 1, 3 and 5 */
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_relu(n, CONV(0, 3, 24, 3, 1, 1, 1, 1));
    x = net_relu(n, CONV(x, 24, 10, 5, 2, 2, 1, 1));
    CONV(x, 10, 33, 1, 1, 0, 1, 1);
}
static void conv_wide(struct fkt_net *n) /* Winograd from batch 16 on, with and without bias, tiles cut off */
{
    uint32_t x;
    fkt_net_init(n, 48);
    x = net_relu(n, CONV(0, 48, 48, 3, 1, 1, 1, 1));
    CONV(x, 48, 64, 3, 1, 1, 1, 0);
}
static void linear(struct fkt_net *n) /* from maps, and from one pixel */
{
    uint32_t x;
    fkt_net_init(n, 5);
    x = net_relu(n, net_linear(n, 0, 5 * 8 * 6, 40));
    net_linear(n, x, 40, 10);
}
static void norms(struct fkt_net *n) /* bare, with a ReLU, with an addition, with both; on the input too */
{
    uint32_t x, y;
    fkt_net_init(n, 24);
    x = net_bn(n, 0, 24);
    y = net_relu(n, net_bn(n, CONV(x, 24, 24, 3, 1, 1, 1, 0), 24));
    y = net_sum(n, net_bn(n, CONV(y, 24, 24, 3, 1, 1, 1, 0), 24), y);
    x = net_relu(n, net_sum(n, x, net_bn(n, CONV(y, 24, 24, 1, 1, 0, 1, 0), 24)));
    net_bn(n, net_relu(n, net_sum(n, x, y)), 24);
}
static void sums(struct fkt_net *n) /* many readers, a value with itself, ReLU of a sum, of a ReLU, of the input */
{
    uint32_t x, y, z;
    fkt_net_init(n, 16);
    x = CONV(net_relu(n, 0), 16, 16, 3, 1, 1, 1, 1);
    y = net_relu(n, x);
    z = net_sum(n, net_relu(n, y), net_sum(n, x, x));
    z = net_relu(n, net_sum(n, net_sum(n, z, y), x));
    y = CONV(z, 16, 16, 1, 1, 0, 1, 0);
    net_sum(n, net_sum(n, y, z), net_sum(n, z, 0));
}
static void norms_meet(struct fkt_net *n) /* two norms in one addition; a norm whose result has two readers */
{
    uint32_t a, b, c;
    fkt_net_init(n, 20);
    a = net_bn(n, CONV(0, 20, 40, 3, 2, 1, 1, 0), 40);
    b = net_bn(n, CONV(0, 20, 40, 1, 2, 0, 1, 0), 40);
    c = net_relu(n, net_sum(n, a, b));
    a = net_bn(n, c, 40);
    net_sum(n, net_relu(n, a), net_sum(n, a, c));
}
static void pools(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_pool(n, net_relu(n, CONV(0, 3, 20, 3, 1, 1, 1, 1)), 3, 2, 1);
    x = net_sum(n, x, net_pool(n, x, 3, 1, 1));
    net_end(n, net_pool(n, net_bn(n, x, 20), 2, 2, 0), 20, 10);
}
static void idle(struct fkt_net *n) /* operations that the result does not depend on */
{
    uint32_t x;
    fkt_net_init(n, 8);
    x = CONV(0, 8, 16, 3, 1, 1, 1, 1);
    net_bn(n, CONV(x, 16, 16, 3, 1, 1, 1, 1), 16);
    net_pool(n, 0, 2, 2, 0);
    CONV(x, 16, 8, 1, 1, 0, 1, 0);
}

static void imagenet(struct fkt_net *n) /* the large stem and a hundred classes */
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_relu(n, net_bn(n, CONV(0, 3, 32, 7, 2, 3, 1, 0), 32));
    x = net_pool(n, x, 3, 2, 1);
    x = net_block(n, net_block(n, x, 32, 32, 1), 32, 48, 2);
    net_end(n, x, 48, 100);
}

static const struct problem problems[] = {
    {"conv_bias", conv_bias, 9, 12},
    {"conv_wide", conv_wide, 11, 10},
    {"linear", linear, 8, 6},
    {"norms", norms, 7, 5},
    {"sums", sums, 6, 7},
    {"norms_meet", norms_meet, 8, 9},
    {"pools", pools, 11, 9},
    {"idle", idle, 6, 6},
    {"resnet8", net_resnet8, 12, 12},
    {"imagenet", imagenet, 24, 19},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static int in_child; /* under an older instruction set: once is enough */

static double distance(const float *got, const float *want, size_t n)
{
    double d = 0, w = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        w += (double)want[i] * (double)want[i];
    }
    return sqrt(d) / (sqrt(w) + 1e-7);
}

static float *array_of(const struct learner_case *p, enum fkt_learned what, uint32_t slot)
{
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, fkt_slot_count(&p->net.slot[slot])));
    CHECK_OK(fkt_learner_read(p->l, what, slot, x));
    return x;
}

/* All arrays of one kind: as near to `want` as tolerance says, or three times as far more as `other` is. */
static void compare(const struct learner_case *got, const struct learner_case *want, const struct learner_case *other,
                    enum fkt_learned what, double tolerance, const char *where)
{
    for (uint32_t s = 0; s < got->net.n_slots; s++) {
        size_t n = fkt_slot_count(&got->net.slot[s]);
        float *a, *b, *c;
        double d, allowed = tolerance;
        if (!fkt_learner_is_parameter(got->l, s) && (what == FKT_GRADIENT || what == FKT_VELOCITY)) continue;
        a = array_of(got, what, s);
        b = array_of(want, what, s);
        c = other ? array_of(other, what, s) : NULL;
        d = distance(a, b, n);
        if (c) allowed += 3 * distance(c, b, n);
        if (!(d <= allowed))
            fail_msg("%s: array %d of '%s' differs by %.3g, allowed %.3g", where, (int)what, got->net.slot[s].name[0],
                     d, allowed);
        fkt_free(a);
        fkt_free(b);
        fkt_free(c);
    }
}

/* Gradients are replaced, not added to, those of operations that nothing depends on too. */
static void spoil_gradients(struct learner_case *p)
{
    for (uint32_t s = 0; s < p->net.n_slots; s++) {
        float *x;
        if (!fkt_learner_is_parameter(p->l, s)) continue;
        x = random_numbers(fkt_slot_count(&p->net.slot[s]), 7 + s, 1);
        CHECK_OK(fkt_learner_write(p->l, FKT_GRADIENT, s, x));
        fkt_free(x);
    }
}

/* Two steps of descent, the second with the weights that the first made. A difference of one bit may put a number on
 * the other side of a ReLU's kink, which is rare in the first step and allowed for in the second. */
static void agree(const struct problem *k, uint32_t batch, unsigned threads)
{
    struct learner_case fast, plain;
    char where[128];
    learner_case_init(&fast, k, &fkt_learner_onednn, batch, FKT_PRECISION_F32, threads);
    learner_case_init(&plain, k, &fkt_learner_ref, batch, FKT_PRECISION_F32, 1);
    if (k->build == conv_wide && batch >= 16 && winograd_is_there()) CHECK(fkt_learner_facts(fast.l)->winograd == 5);
    for (int i = 0; i < 2; i++) {
        double d, tolerance = i ? 1e-2 : 1e-4;
        snprintf(where, sizeof where, "%s, batch %u, threads %u, step %d", k->name, batch, threads, i);
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

/* bf16, where two right answers may be far apart: from that in f32, the fast one is at most three times as far as the
 * plain one, and 3e-2. */
static void agree_bf16(const struct problem *k, uint32_t batch, unsigned threads)
{
    struct learner_case fast, plain, exact;
    char where[128];
    learner_case_init(&fast, k, &fkt_learner_onednn, batch, FKT_PRECISION_BF16, threads);
    learner_case_init(&plain, k, &fkt_learner_ref, batch, FKT_PRECISION_BF16, 1);
    learner_case_init(&exact, k, &fkt_learner_onednn, batch, FKT_PRECISION_F32, 1);
    for (int i = 0; i < 2; i++) {
        snprintf(where, sizeof where, "%s in bf16, batch %u, threads %u, step %d", k->name, batch, threads, i);
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

/* Odd and even batches, one image alone; a team of one, two and three. */
static void all_agree(void (*agrees)(const struct problem *k, uint32_t batch, unsigned threads))
{
    for (int t = 0; t < PROBLEMS; t++) {
        int large = problems[t].height > 12;
        agrees(&problems[t], large ? 2 : 5, 2);
        if (in_child) continue;
        agrees(&problems[t], 1, 3);
        agrees(&problems[t], large ? 3 : problems[t].build == net_resnet8 ? 7 : 16, 1);
    }
}

static void f32_agrees(void **state)
{
    (void)state;
    all_agree(agree);
}

/* Variances of 3e-7 beside an epsilon of 1e-5: where it stands in the formula shows. */
static void small_variances_meet_epsilon(void **state)
{
    const struct problem *k = &problems[3];
    struct learner_case fast, plain;
    double d;
    (void)state;
    CHECK(k->build == norms); /* the first of them is on the input */
    learner_case_init(&fast, k, &fkt_learner_onednn, 5, FKT_PRECISION_F32, 2);
    learner_case_init(&plain, k, &fkt_learner_ref, 5, FKT_PRECISION_F32, 1);
    for (size_t i = 0; i < fast.n_in; i++) fast.in[i] = plain.in[i] *= 1e-3F;
    learner_case_step(&fast, 0);
    learner_case_step(&plain, 0);
    d = distance(fast.out, plain.out, fast.n_out);
    if (!(d <= 1e-4)) fail_msg("results differ by %.3g", d);
    for (int what = FKT_WEIGHT; what <= FKT_AVERAGE; what++)
        compare(&fast, &plain, NULL, (enum fkt_learned)what, 1e-4, "small variances");
    learner_case_release(&fast);
    learner_case_release(&plain);
}

/* Kernels read copies of some weights, most on the way back: after a write they have the new ones, also when the old
 * ones were read before. */
static void written_weights_are_read(void **state)
{
    (void)state;
    for (int t = 0; t < PROBLEMS; t++) {
        struct learner_case a, b;
        learner_case_init(&a, &problems[t], &fkt_learner_onednn, 5, FKT_PRECISION_F32, 1);
        learner_case_init(&b, &problems[t], &fkt_learner_onednn, 5, FKT_PRECISION_F32, 1);
        learner_case_step(&a, 0);
        CHECK_OK(fkt_learner_forward(b.l, b.in, b.out));
        for (uint32_t s = 0; s < a.net.n_slots; s++) {
            float *x = array_of(&a, FKT_WEIGHT, s);
            CHECK_OK(fkt_learner_write(b.l, FKT_WEIGHT, s, x));
            fkt_free(x);
        }
        CHECK_OK(fkt_learner_forward(a.l, a.in, a.out));
        CHECK_OK(fkt_learner_forward(b.l, b.in, b.out));
        CHECK_OK(fkt_learner_backward(a.l, a.dout));
        CHECK_OK(fkt_learner_backward(b.l, b.dout));
        CHECK(!memcmp(a.out, b.out, a.n_out * sizeof *a.out));
        compare(&a, &b, NULL, FKT_GRADIENT, 0, problems[t].name);
        learner_case_release(&a);
        learner_case_release(&b);
    }
}

static void bf16_agrees_or_is_refused(void **state)
{
    struct fkt_learner_spec spec = {
        .batch = 2, .height = 16, .width = 16, .precision = FKT_PRECISION_BF16, .threads = 1, .norm_momentum = 0.1F};
    struct fkt_learner *l = NULL;
    struct fkt_net net;
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (possible) {
        all_agree(agree_bf16);
        return;
    }
    net_resnet8(&net);
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_onednn, &net, &spec), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "bf16") && !strcmp(fkt_error_hint(), "use f32") && !l);
    fkt_net_clear(&net);
}

/* This test again, as a process of its own. */
static int child(const char *isa)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("FEDKT_MAX_ISA", isa, 1);
        execl("/proc/self/exe", "test_onednn_learn", isa, (char *)NULL);
        _exit(99);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static void older_processors(void **state)
{
    static const char *const isas[] = {"sse41", "avx2", "avx512", "avx512_bf16"};
    (void)state;
    for (int i = 0; i < 4; i++)
        if (child(isas[i]) != 0) fail_msg("under FEDKT_MAX_ISA=%s", isas[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(f32_agrees), cmocka_unit_test(small_variances_meet_epsilon),
                                       cmocka_unit_test(written_weights_are_read),
                                       cmocka_unit_test(bf16_agrees_or_is_refused), cmocka_unit_test(older_processors)};
    const struct CMUnitTest twice[] = {cmocka_unit_test(f32_agrees), cmocka_unit_test(bf16_agrees_or_is_refused)};
    (void)argv;
    in_child = argc > 1;
    return in_child ? cmocka_run_group_tests(twice, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
