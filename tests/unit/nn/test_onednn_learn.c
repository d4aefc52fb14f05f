/* SPDX-License-Identifier: Apache-2.0 */
/* The oneDNN learner against the plain loops of nn/ref/: every operation, every pattern that becomes one step, shapes
 * that fit no block, in f32 and bf16, on one thread and two, and once more in child processes under older instruction
 * sets (FEDKT_MAX_ISA, which must be set before the library starts). f32: 1e-4, of which Winograd's transforms need up
 * to 1e-5. */
#include "nn/cpu.h"
#include "tests/support/learner_compare.h"
#include "tests/support/winograd.h"

#include <sys/wait.h>
#include <unistd.h>

static int in_child; /* under an older instruction set: once is enough */

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
