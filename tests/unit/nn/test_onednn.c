/* SPDX-License-Identifier: Apache-2.0 */
/* The oneDNN backend against the plain loops of nn/ref/: every operation, every pattern that is fused, shapes that fit
 * no block, in f32, low-memory f32 and bf16, and once more in child processes under older instruction sets
 * (FEDKT_MAX_ISA, which must be set before the library starts).
 *
 * f32: the largest difference is below 1e-5 of the largest number (Winograd's own error is 3e-6). bf16: below 3e-2 of
 * it, since the plain loops round to 8 bits between operations that are one step here. */
#include "nn/cpu.h"
#include "tests/support/build_net.h"
#include "tests/support/engine_case.h"
#include "tests/support/winograd.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

int omp_get_max_threads(void);
void omp_set_num_threads(int n);

static struct fkt_engine_spec spec_of(uint32_t batch, uint32_t h, uint32_t w, enum fkt_precision precision, int low)
{
    return (struct fkt_engine_spec){.batch = batch, .height = h, .width = w, .precision = precision, .low_memory = low};
}

static void compare_all(enum fkt_precision precision, int low_memory, double tolerance)
{
    static const uint32_t batches[] = {1, 3, 16};
    for (int i = 0; i < net_problems_count; i++)
        for (int b = 0; b < 3; b++) {
            struct fkt_engine_spec s =
                spec_of(batches[b], net_problems[i].height, net_problems[i].width, precision, low_memory);
            double d = engine_difference(&fkt_backend_onednn, &net_problems[i], s, batches[b] == 3 ? 2 : 1);
            if (!(d <= tolerance))
                fail_msg("%s, batch %u: differs by %.3g, allowed %.3g", net_problems[i].name, batches[b], d, tolerance);
        }
}

static void f32_agrees(void **state)
{
    (void)state;
    compare_all(FKT_PRECISION_F32, 0, 1e-5);
}

static void low_memory_agrees(void **state)
{
    (void)state;
    compare_all(FKT_PRECISION_F32, 1, 1e-5);
}

static void bf16_agrees_or_is_refused(void **state)
{
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (possible) compare_all(FKT_PRECISION_BF16, 0, 3e-2);
    else {
        struct fkt_engine_spec spec = {.batch = 1, .height = 16, .width = 16, .precision = FKT_PRECISION_BF16};
        struct fkt_engine *e = NULL;
        struct random_weights w;
        struct fkt_net net;
        net_problem("a small autoencoder")->build(&net);
        random_weights_init(&w, &net, 7);
        CHECK_STATUS(fkt_engine_new(&e, &fkt_backend_onednn, &net, w.bound, &spec), FKT_E_ARG);
        CHECK(strstr(fkt_error_text(), "bf16") && e == NULL);
        random_weights_release(&w);
        fkt_net_clear(&net);
    }
}

/* An engine with its network, weights and a batch of images. */
struct bench {
    struct fkt_net net;
    struct random_weights w;
    struct fkt_engine *e;
    size_t n, each_in, each_out;
    float *in, *out;
};

static void bench_init(struct bench *b, const struct net_problem *p, uint32_t batch, enum fkt_precision precision,
                       int low)
{
    struct fkt_engine_spec spec = spec_of(batch, p->height, p->width, precision, low);
    struct fkt_shape s;
    memset(b, 0, sizeof *b);
    p->build(&b->net);
    random_weights_init(&b->w, &b->net, 3);
    CHECK_OK(fkt_engine_new(&b->e, &fkt_backend_onednn, &b->net, b->w.bound, &spec));
    s = fkt_engine_output(b->e);
    b->n = batch;
    b->each_in = (size_t)b->net.channels * p->height * p->width;
    b->each_out = (size_t)s.c * s.h * s.w;
    b->in = engine_numbers(batch * b->each_in, 5);
    CHECK_OK(fkt_alloc(&b->out, batch * b->each_out));
    CHECK_OK(fkt_engine_run(b->e, b->in, batch, b->out));
}

static void bench_release(struct bench *b)
{
    fkt_engine_free(b->e);
    random_weights_release(&b->w);
    fkt_net_clear(&b->net);
    fkt_free(b->in);
    fkt_free(b->out);
}

/* The first image in each place of a batch, among other neighbours: the same bits as it had in the first place. */
static void place_does_not_matter(void **state)
{
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    for (int mode = 0; mode < 2 + possible; mode++)
        for (int t = 0; t < net_problems_count; t++) {
            struct bench b;
            float *in = NULL, *out = NULL;
            bench_init(&b, &net_problems[t], 7, mode == 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32, mode == 1);
            CHECK_OK(fkt_alloc(&out, b.n * b.each_out));
            for (size_t place = 0; place < b.n; place++) {
                in = engine_numbers(b.n * b.each_in, 100 + place);
                memcpy(in + place * b.each_in, b.in, b.each_in * sizeof *in);
                CHECK_OK(fkt_engine_run(b.e, in, b.n, out));
                if (memcmp(out + place * b.each_out, b.out, b.each_out * sizeof *out))
                    fail_msg("%s, mode %d: another result in place %zu", net_problems[t].name, mode, place);
                fkt_free(in);
            }
            fkt_free(out);
            bench_release(&b);
        }
}

/* The first image alone in batches of other sizes. Not promised for a batch of one, where the library takes another
 * Winograd transform, nor by the library's manual for any: only this test shows that it holds. */
static void batch_does_not_matter(void **state)
{
    static const uint32_t batches[] = {5, 16};
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    for (int mode = 0; mode < 2 + possible; mode++)
        for (int t = 0; t < net_problems_count; t++) {
            enum fkt_precision precision = mode == 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
            struct bench two, other;
            bench_init(&two, &net_problems[t], 2, precision, mode == 1);
            for (int i = 0; i < 2; i++) {
                bench_init(&other, &net_problems[t], batches[i], precision, mode == 1);
                if (memcmp(two.out, other.out, 2 * two.each_out * sizeof *two.out))
                    fail_msg("%s, mode %d: another result in a batch of %u", net_problems[t].name, mode, batches[i]);
                bench_release(&other);
            }
            bench_release(&two);
        }
}

static void *again(void *arg)
{
    struct bench *b = arg;
    float *out = NULL;
    size_t bytes = b->n * b->each_out * sizeof *out;
    void *wrong = NULL;
    omp_set_num_threads(3);
    if (fkt_alloc(&out, b->n * b->each_out) != FKT_OK) return b;
    for (int i = 0; i < 4 && !wrong; i++) {
        memset(out, 0xff, bytes);
        if (fkt_engine_run(b->e, b->in, b->n, out) != FKT_OK || memcmp(out, b->out, bytes)) wrong = b;
    }
    if (omp_get_max_threads() != 3) wrong = b;
    fkt_free(out);
    return wrong;
}

/* 1, 2 and 4 threads on one engine: the same bits; each thread's OpenMP team is left as it was. */
static void threads_do_not_matter(void **state)
{
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    for (int mode = 0; mode < 2 + possible; mode++)
        for (int threads = 1; threads <= 4; threads *= 2) {
            pthread_t id[4];
            struct bench b;
            void *wrong;
            bench_init(&b, net_problem("a small autoencoder"), 3, mode == 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32,
                       mode == 1);
            for (int i = 0; i < threads; i++) CHECK(pthread_create(&id[i], NULL, again, &b) == 0);
            for (int i = 0; i < threads; i++) {
                CHECK(pthread_join(id[i], &wrong) == 0);
                if (wrong) fail_msg("mode %d: %d threads gave another result or kept the team", mode, threads);
            }
            bench_release(&b);
        }
}

static void facts_are_reported(void **state)
{
    const struct fkt_engine_facts *f;
    struct bench b;
    (void)state;
    bench_init(&b, net_problem("a small autoencoder"), 4, FKT_PRECISION_F32, 0);
    f = fkt_engine_facts(b.e);
    CHECK(f->convolutions == 13 && f->fused == 12);
    CHECK(f->packed_bytes > 9 * 64 * 64 * 9 * 4 && f->workspace_bytes >= 2 * 4 * 64 * 16 * 16 * 4);
    CHECK(f->winograd == (winograd_is_there() ? 9 : 0));
    bench_release(&b);
    bench_init(&b, net_problem("a small autoencoder"), 4, FKT_PRECISION_F32, 1);
    f = fkt_engine_facts(b.e);
    CHECK(f->winograd == 0 && f->packed_bytes < 8192); /* the biases */
    bench_release(&b);
}

static void weights_that_are_not_numbers(void **state)
{
    (void)state;
    for (int low = 0; low < 2; low++) {
        struct fkt_engine_spec spec = spec_of(1, 16, 12, FKT_PRECISION_F32, low);
        struct fkt_engine *e = NULL;
        struct random_weights w;
        struct fkt_net net;
        net_problem("first convolution")->build(&net);
        random_weights_init(&w, &net, 7);
        ((float *)(uintptr_t)fkt_safetensors_find(w.file, "0.weight")->data)[5] = NAN;
        CHECK_STATUS(fkt_engine_new(&e, &fkt_backend_onednn, &net, w.bound, &spec), FKT_E_NUMERIC);
        CHECK(strstr(fkt_error_text(), "0.weight"));
        random_weights_release(&w);
        fkt_net_clear(&net);
    }
}

/* Finite weights whose sums overflow inside the network, with a ReLU after them that makes 0 of NaN and of -infinity:
 * without inner checks the result is finite but meaningless. A workspace that failed is checked again. */
static void overflow_inside_is_found(void **state)
{
    static const char *const names[] = {"3.weight", "3.bias", "16.weight"};
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    for (int i = 0; i < 3 * (2 + possible); i++) {
        struct fkt_engine_spec spec = spec_of(2, 16, 16, (enum fkt_precision)(i / 3 == 2), i / 3 == 1);
        static float in[3 * 16 * 16], out[4 * 4 * 4];
        const struct fkt_tensor *t;
        struct fkt_engine *e = NULL;
        struct random_weights w;
        struct fkt_net net;
        net_problem("a small autoencoder")->build(&net);
        random_weights_init(&w, &net, 7);
        t = fkt_safetensors_find(w.file, names[i % 3]);
        CHECK(t);
        for (size_t k = 0; k < t->count; k++)
            ((float *)(uintptr_t)t->data)[k] = i % 3 == 1 ? -3e38F : k % 2 ? 2e38F : -3e38F;
        for (size_t k = 0; k < 3 * 16 * 16; k++) in[k] = (float)(k % 7) - 3;
        CHECK_OK(fkt_engine_new(&e, &fkt_backend_onednn, &net, w.bound, &spec));
        for (int again = 0; again < 2; again++) {
            CHECK_STATUS(fkt_engine_run(e, in, 1, out), FKT_E_NUMERIC);
            CHECK(strstr(fkt_error_text(), "not finite") && strstr(fkt_error_text(), "convolution"));
            CHECK(strstr(fkt_error_text(), i % 3 == 2 ? "'16.weight'" : "'3.weight'"));
        }
        fkt_engine_free(e);
        random_weights_release(&w);
        fkt_net_clear(&net);
    }
}

/* Squares that overflow in a norm make it divide by infinity: zeros, which look like numbers. */
static void overflow_in_a_norm_is_found(void **state)
{
    struct fkt_engine_spec spec = {.batch = 1, .height = 2, .width = 2, .precision = FKT_PRECISION_F32};
    struct fkt_engine *e = NULL;
    struct random_weights w;
    struct fkt_net net;
    float in[16 * 4], out[16 * 4];
    (void)state;
    fkt_net_init(&net, 16);
    net_norm(&net, 0, FKT_OP_RMS_NORM, 16, 1);
    random_weights_init(&w, &net, 7);
    for (int i = 0; i < 16 * 4; i++) in[i] = 1e20F;
    CHECK_OK(fkt_engine_new(&e, &fkt_backend_onednn, &net, w.bound, &spec));
    CHECK_STATUS(fkt_engine_run(e, in, 1, out), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "RMS norm") && strstr(fkt_error_text(), "'0.weight'"));
    fkt_engine_free(e);
    random_weights_release(&w);
    fkt_net_clear(&net);
}

static void amx_is_used_only_when_it_works(void **state)
{
    const struct fkt_cpu_facts good = {1, 0x20, 1, 1};
    struct fkt_cpu_facts f;
    (void)state;
    CHECK(fkt_amx_usable(&good));
    f = good;
    f.amx_announced = 0;
    CHECK(!fkt_amx_usable(&f));
    f = good;
    f.max_leaf = 0x1C; /* a virtual machine that hides the tiles' description */
    CHECK(!fkt_amx_usable(&f));
    f = good;
    f.palettes = 0;
    CHECK(!fkt_amx_usable(&f));
    f = good;
    f.tiles_permitted = 0;
    CHECK(!fkt_amx_usable(&f));
}

/* This test again, as a process of its own. */
static int child(const char *isa, const char *what)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("FEDKT_MAX_ISA", isa, 1);
        execl("/proc/self/exe", "test_onednn", what, (char *)NULL);
        _exit(99);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static void older_processors(void **state)
{
    static const char *const isas[] = {"sse41", "avx2", "avx512", "avx512_bf16", "amx"};
    (void)state;
    for (int i = 0; i < 5; i++)
        if (child(isas[i], isas[i]) != 0) fail_msg("under FEDKT_MAX_ISA=%s", isas[i]);
    CHECK(child("pentium", "refused") == 0);
}

static int run_child(const char *what)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(f32_agrees),
                                       cmocka_unit_test(low_memory_agrees),
                                       cmocka_unit_test(bf16_agrees_or_is_refused),
                                       cmocka_unit_test(place_does_not_matter),
                                       cmocka_unit_test(batch_does_not_matter),
                                       cmocka_unit_test(facts_are_reported)};
    const char *isa;
    fkt_status st = fkt_cpu_isa(&isa);
    if (!strcmp(what, "refused")) return st == FKT_E_ARG && strstr(fkt_error_text(), "pentium") ? 0 : 1;
    if (st != FKT_OK || !strcmp(isa, "none")) return 2;
    if (!strcmp(what, "sse41") && strcmp(isa, "sse41")) return 3; /* every machine has this one */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_agrees),
        cmocka_unit_test(low_memory_agrees),
        cmocka_unit_test(bf16_agrees_or_is_refused),
        cmocka_unit_test(place_does_not_matter),
        cmocka_unit_test(batch_does_not_matter),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(facts_are_reported),
        cmocka_unit_test(weights_that_are_not_numbers),
        cmocka_unit_test(overflow_inside_is_found),
        cmocka_unit_test(overflow_in_a_norm_is_found),
        cmocka_unit_test(amx_is_used_only_when_it_works),
        cmocka_unit_test(older_processors),
    };
    if (argc > 1) return run_child(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
