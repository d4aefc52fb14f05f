/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen networks, differentiated by their input: whole networks in plain loops against central differences; oneDNN
 * against the plain loops in f32 and bf16, on one thread and three, and under older instruction sets; what is refused,
 * and what is not kept. */
#include "nn/cpu.h"
#include "tests/support/frozen_problems.h"
#include "tests/support/winograd.h"

#include <sys/wait.h>
#include <unistd.h>

static const struct problem groups = {"groups", frozen_groups, 4, 3};

static int in_child; /* under an older instruction set */

static double distance(const float *got, const float *want, size_t n)
{
    double d = 0, w = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        w += (double)want[i] * (double)want[i];
    }
    return sqrt(d) / (sqrt(w) + 1e-7);
}

/* --- the plain loops ---------------------------------------------------------------------------------------------- */

/* <dout, forward> at in + h u. */
static double height(struct learner_case *p, const float *u, double h)
{
    float *in = NULL;
    double sum = 0;
    CHECK_OK(fkt_alloc(&in, p->n_in));
    for (size_t i = 0; i < p->n_in; i++) in[i] = (float)((double)p->in[i] + h * (double)u[i]);
    CHECK_OK(fkt_learner_forward(p->l, in, p->out));
    for (size_t i = 0; i < p->n_out; i++) sum += (double)p->dout[i] * p->out[i];
    fkt_free(in);
    return sum;
}

/* Along random directions of unit length, over the gradient's length. Kinks within the step and rounding of values to
 * float: some 1e-3. */
static void check_slopes(const struct problem *k)
{
    struct learner_case p;
    float *din;
    double norm = 0;
    frozen_case_init(&p, k, &fkt_learner_ref, 2, FKT_PRECISION_F32, 1);
    din = frozen_case_run(&p);
    for (size_t i = 0; i < p.n_in; i++) norm += (double)din[i] * din[i];
    CHECK(norm > 1e-6);
    for (uint64_t t = 0; t < 4; t++) {
        const double h = 0.002;
        float *u = random_numbers(p.n_in, 50 + t, 1);
        double length = 0, inner = 0, slope;
        for (size_t i = 0; i < p.n_in; i++) length += (double)u[i] * u[i];
        for (size_t i = 0; i < p.n_in; i++) u[i] = (float)(u[i] / sqrt(length));
        for (size_t i = 0; i < p.n_in; i++) inner += (double)din[i] * u[i];
        slope = (height(&p, u, h) - height(&p, u, -h)) / (2 * h);
        if (!(fabs(slope - inner) <= 5e-3 * sqrt(norm)))
            fail_msg("%s: slope %.6g, gradient %.6g of %.3g", k->name, slope, inner, sqrt(norm));
        fkt_free(u);
    }
    fkt_free(din);
    learner_case_release(&p);
}

static void gradients_are_slopes(void **state)
{
    (void)state;
    for (int i = 0; i < FROZEN_PROBLEMS; i++) check_slopes(&frozen_problems[i]);
    check_slopes(&groups);
}

/* --- oneDNN ------------------------------------------------------------------------------------------------------- */

static void agree(const struct problem *k, uint32_t batch, unsigned threads)
{
    struct learner_case fast, plain;
    float *got, *want;
    double d[2];
    frozen_case_init(&fast, k, &fkt_learner_onednn, batch, FKT_PRECISION_F32, threads);
    frozen_case_init(&plain, k, &fkt_learner_ref, batch, FKT_PRECISION_F32, 1);
    if (k->build == frozen_wide && batch >= 16 && winograd_is_there()) CHECK(fkt_learner_facts(fast.l)->winograd == 4);
    fkt_free(frozen_case_run(&fast)); /* the second run finds what the first left */
    got = frozen_case_run(&fast);
    want = frozen_case_run(&plain);
    d[0] = distance(fast.out, plain.out, fast.n_out);
    d[1] = distance(got, want, fast.n_in);
    if (!(d[0] <= 1e-4 && d[1] <= 1e-4))
        fail_msg("%s, batch %u, threads %u: results differ by %.3g, gradients by %.3g", k->name, batch, threads, d[0],
                 d[1]);
    fkt_free(got);
    fkt_free(want);
    learner_case_release(&fast);
    learner_case_release(&plain);
}

/* From the answer in f32, the fast one in bf16 is at most three times as far as the plain one, and 3e-2. */
static void agree_bf16(const struct problem *k, uint32_t batch, unsigned threads)
{
    static const struct {
        const struct fkt_learner_backend *backend;
        enum fkt_precision precision;
    } of[3] = {{&fkt_learner_onednn, FKT_PRECISION_BF16},
               {&fkt_learner_ref, FKT_PRECISION_BF16},
               {&fkt_learner_ref, FKT_PRECISION_F32}};
    struct learner_case p[3];
    float *din[3];
    double d[2];
    for (int i = 0; i < 3; i++) {
        frozen_case_init(&p[i], k, of[i].backend, batch, of[i].precision, threads);
        din[i] = frozen_case_run(&p[i]);
    }
    for (int i = 0; i < 2; i++) d[i] = distance(din[i], din[2], p[2].n_in);
    if (!(d[0] <= 3e-2 + 3 * d[1]))
        fail_msg("%s in bf16: gradients differ by %.3g, the definition's by %.3g", k->name, d[0], d[1]);
    CHECK(distance(p[0].out, p[2].out, p[2].n_out) <= 3e-2 + 3 * distance(p[1].out, p[2].out, p[2].n_out));
    for (int i = 0; i < 3; i++) {
        fkt_free(din[i]);
        learner_case_release(&p[i]);
    }
}

static void all_agree(void (*agrees)(const struct problem *k, uint32_t batch, unsigned threads))
{
    for (int i = 0; i < FROZEN_PROBLEMS; i++) {
        agrees(&frozen_problems[i], 5, 2);
        if (in_child) continue;
        agrees(&frozen_problems[i], 1, 3);
        agrees(&frozen_problems[i], 16, 1);
    }
}

static void f32_agrees(void **state)
{
    (void)state;
    all_agree(agree);
}

static void bf16_agrees(void **state)
{
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (possible) all_agree(agree_bf16);
}

/* The same calls give the same bits; kernels split their sums by the number of threads. */
static void runs_repeat(void **state)
{
    (void)state;
    for (int i = 0; i < FROZEN_PROBLEMS; i++) {
        struct learner_case one, three;
        float *a, *b;
        frozen_case_init(&one, &frozen_problems[i], &fkt_learner_onednn, 4, FKT_PRECISION_F32, 1);
        frozen_case_init(&three, &frozen_problems[i], &fkt_learner_onednn, 4, FKT_PRECISION_F32, 3);
        a = frozen_case_run(&one);
        b = frozen_case_run(&one);
        assert_memory_equal(a, b, one.n_in * sizeof *a);
        fkt_free(b);
        b = frozen_case_run(&three);
        CHECK(distance(a, b, one.n_in) <= 1e-5);
        fkt_free(a);
        fkt_free(b);
        learner_case_release(&one);
        learner_case_release(&three);
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static void check_calls(const struct fkt_learner_backend *backend)
{
    const struct fkt_optimizer sgd = {.rate = 0.1F};
    const struct problem *k = &frozen_problems[1];
    struct learner_case p, learns;
    float *before = NULL, *after = NULL, *din;
    size_t n;
    frozen_case_init(&p, k, backend, 2, FKT_PRECISION_F32, 1);
    n = fkt_slot_count(&p.net.slot[p.net.op[0].mean]);
    CHECK_OK(fkt_alloc(&before, n));
    CHECK_OK(fkt_alloc(&after, n));
    CHECK_OK(fkt_learner_read(p.l, FKT_WEIGHT, p.net.op[0].mean, before));
    CHECK_STATUS(fkt_learner_backward_input(p.l, p.dout, p.in), FKT_E_STATE); /* before a forward */
    din = frozen_case_run(&p);
    CHECK_STATUS(fkt_learner_backward_input(p.l, p.dout, din), FKT_E_STATE); /* one backward each */
    CHECK_OK(fkt_learner_read(p.l, FKT_WEIGHT, p.net.op[0].mean, after));
    assert_memory_equal(before, after, n * sizeof *before); /* statistics have not moved */
    CHECK_OK(fkt_learner_forward(p.l, p.in, p.out));
    CHECK_STATUS(fkt_learner_backward(p.l, p.dout), FKT_E_STATE);
    CHECK_STATUS(fkt_learner_step(p.l, &sgd), FKT_E_STATE);
    CHECK_STATUS(fkt_learner_average(p.l, 0), FKT_E_STATE);
    CHECK(!fkt_learner_holds(p.l));
    CHECK_STATUS(fkt_learner_read(p.l, FKT_GRADIENT, p.net.op[0].weight, after), FKT_E_ARG);
    CHECK_STATUS(fkt_learner_write(p.l, FKT_VELOCITY, p.net.op[0].weight, after), FKT_E_ARG);
    CHECK_STATUS(fkt_learner_write(p.l, FKT_AVERAGE, p.net.op[0].weight, after), FKT_E_ARG);
    learner_case_init(&learns, k, backend, 2, FKT_PRECISION_F32, 1);
    CHECK_OK(fkt_learner_forward(learns.l, learns.in, learns.out));
    CHECK_STATUS(fkt_learner_backward_input(learns.l, learns.dout, din), FKT_E_STATE);
    CHECK_OK(fkt_learner_backward(learns.l, learns.dout)); /* that call took nothing away */
    /* neither gradients nor velocity are kept: a third of the memory, and copies */
    CHECK(fkt_learner_facts(p.l)->weight_bytes * 2 < fkt_learner_facts(learns.l)->weight_bytes);
    CHECK(fkt_learner_facts(p.l)->convolutions < fkt_learner_facts(learns.l)->convolutions);
    fkt_free(before);
    fkt_free(after);
    fkt_free(din);
    learner_case_release(&p);
    learner_case_release(&learns);
}

static void calls_have_an_order(void **state)
{
    (void)state;
    check_calls(&fkt_learner_ref);
    check_calls(&fkt_learner_onednn);
}

/* What learning and oneDNN do not know is named. */
static void what_is_refused(void **state)
{
    struct fkt_learner_spec spec = {.batch = 1, .height = 4, .width = 3, .threads = 1, .frozen = 1};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    (void)state;
    frozen_groups(&n);
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_onednn, &n, &spec), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "attention") && strstr(fkt_error_text(), "differentiated") && !l);
    spec.frozen = 2;
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec), FKT_E_ARG);
    spec.frozen = 0;
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec), FKT_E_ARG);
    fkt_net_clear(&n);
    frozen_decoder(&n);
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_onednn, &n, &spec), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "cannot learn") && !l);
    fkt_net_clear(&n);
}

/* This test again, as a process of its own. */
static void older_processors(void **state)
{
    static const char *const isas[] = {"sse41", "avx2", "avx512"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        int status = -1;
        const pid_t pid = fork();
        if (pid == 0) {
            setenv("FEDKT_MAX_ISA", isas[i], 1);
            execl("/proc/self/exe", "test_frozen", isas[i], (char *)NULL);
            _exit(99);
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("under FEDKT_MAX_ISA=%s", isas[i]);
    }
}

/* Its root divides: what is no variance would make every result NaN. One that learns uses those of its batches. */
static void a_variance_is_not_negative(void **state)
{
    struct fkt_learner_spec spec = {.batch = 2, .height = 2, .width = 2, .norm_momentum = 0.1F, .frozen = 1};
    const float bad[3] = {1, 0, -1e-3F}, good[3] = {1, 0, 2};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    uint32_t var;
    (void)state;
    fkt_net_init(&n, 3);
    net_bn(&n, 0, 3);
    var = n.op[0].var;
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    CHECK_STATUS(fkt_learner_write(l, FKT_WEIGHT, var, bad), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "is not a variance: element 2 is -0.001"));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, var, good));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, n.op[0].mean, bad));
    fkt_learner_free(l);
    spec.frozen = 0;
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, var, bad));
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes), cmocka_unit_test(f32_agrees),
        cmocka_unit_test(bf16_agrees),          cmocka_unit_test(runs_repeat),
        cmocka_unit_test(calls_have_an_order),  cmocka_unit_test(what_is_refused),
        cmocka_unit_test(older_processors),     cmocka_unit_test(a_variance_is_not_negative),
    };
    const struct CMUnitTest again[] = {cmocka_unit_test(f32_agrees)};
    (void)argv;
    in_child = argc > 1;
    return in_child ? cmocka_run_group_tests(again, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
