/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend against the plain loops of nn/ref/: every operation, every pattern that is fused, in f32 and bf16;
 * batches in all states of completeness; bytes; failures. On the emulation of tests/cuda_host, and on a card.
 *
 * f32: the largest difference is below 1e-5 of the largest number. bf16: below 3e-2 of it, since the plain loops round
 * to 8 bits between operations that are one step here. */
#include "nn/cuda/cuda.h"
#include "tests/support/build_net.h"
#include "tests/support/engine_case.h"

#include <pthread.h>
#include <stdlib.h>

#ifdef FKT_CUDA_HOST
#include "cuda_host.h"
#endif

static float pixels[3][256]; /* what a byte is for a network that takes bytes */

static uint8_t *random_bytes(size_t n, uint64_t seed)
{
    struct fkt_rng r;
    uint8_t *x = NULL;
    CHECK_OK(fkt_alloc(&x, n));
    fkt_rng_init(&r, seed, 2);
    for (size_t i = 0; i < n; i++) x[i] = (uint8_t)(fkt_rng_unit(&r) * 256);
    return x;
}

static void compare_all(enum fkt_precision precision, double tolerance)
{
    for (int i = 0; i < net_problems_count; i++)
        for (uint32_t batch = 1; batch <= 3; batch += 2) {
            double d =
                engine_difference(&fkt_backend_cuda, &net_problems[i],
                                  (struct fkt_engine_spec){.batch = batch, .precision = precision}, batch == 3 ? 2 : 1);
            if (!(d <= tolerance))
                fail_msg("%s, batch %u: differs by %.3g, allowed %.3g", net_problems[i].name, batch, d, tolerance);
        }
}

static void f32_agrees(void **state)
{
    (void)state;
    compare_all(FKT_PRECISION_F32, 1e-5);
}

static void bf16_agrees(void **state)
{
    (void)state;
    compare_all(FKT_PRECISION_BF16, 3e-2);
}

/* Seven images in batches of three, which takes two workspaces, recorded batches and an incomplete one, against each
 * image alone: it has the same bits in the same engine wherever it is. Twice, since a second run is all recorded. */
static void place_does_not_matter(void **state)
{
    static const char *const names[] = {"a small autoencoder", "DC-AE's encoder in small", "attention", "pools"};
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int p = 0; p < 2; p++) {
            struct engine_case b;
            float *in, *out = NULL, *alone = NULL;
            engine_case_init(
                &b, &fkt_backend_cuda, net_problem(names[t]),
                (struct fkt_engine_spec){.batch = 3, .precision = p ? FKT_PRECISION_BF16 : FKT_PRECISION_F32});
            in = engine_numbers(7 * b.each_in, 5);
            CHECK_OK(fkt_alloc(&out, 7 * b.each_out));
            CHECK_OK(fkt_alloc(&alone, b.each_out));
            for (int round = 0; round < 2; round++) {
                memset(out, 0xff, 7 * b.each_out * sizeof *out);
                CHECK_OK(fkt_engine_run(b.e, in, 7, out));
                for (size_t i = 0; i < 7; i++) {
                    CHECK_OK(fkt_engine_run(b.e, in + i * b.each_in, 1, alone));
                    if (memcmp(alone, out + i * b.each_out, b.each_out * sizeof *out) != 0)
                        fail_msg("%s, precision %d: another result in place %zu", names[t], p, i);
                }
            }
            engine_case_clear(&b);
            fkt_free(in);
            fkt_free(out);
            fkt_free(alone);
        }
}

struct caller {
    struct engine_case *b;
    const float *in;
    float *out;
    fkt_status st;
};

static void *call(void *p)
{
    struct caller *c = p;
    c->st = fkt_engine_run(c->b->e, c->in, 5, c->out);
    return NULL;
}

/* Makes engines, runs and frees them, each with streams of its own. */
static void *come_and_go(void *p)
{
    struct caller *c = p;
    for (int i = 0; i < 12 && c->st == FKT_OK; i++) {
        struct engine_case b;
        float *in, *out = NULL;
        engine_case_init(&b, &fkt_backend_cuda, net_problem("a small autoencoder"),
                         (struct fkt_engine_spec){.batch = 2});
        in = engine_numbers(5 * b.each_in, 9);
        c->st = fkt_alloc(&out, 5 * b.each_out);
        if (c->st == FKT_OK) c->st = fkt_engine_run(b.e, in, 5, out);
        engine_case_clear(&b);
        fkt_free(in);
        fkt_free(out);
    }
    return NULL;
}

/* Streams of other engines are destroyed while this one runs, and records: cuDNN must not reach for them. */
static void engines_come_and_go_beside_one_that_stays(void **state)
{
    struct engine_case b;
    struct caller other[2] = {{0}};
    pthread_t thread[2];
    float *in, *want = NULL, *out = NULL;
    (void)state;
    for (int i = 0; i < 2; i++) CHECK(!pthread_create(&thread[i], NULL, come_and_go, &other[i]));
    engine_case_init(&b, &fkt_backend_cuda, net_problem("DC-AE's decoder in small"),
                     (struct fkt_engine_spec){.batch = 2});
    in = engine_numbers(5 * b.each_in, 9);
    CHECK_OK(fkt_alloc(&want, 5 * b.each_out));
    CHECK_OK(fkt_alloc(&out, 5 * b.each_out));
    CHECK_OK(fkt_engine_run(b.e, in, 5, want));
    for (int i = 0; i < 12; i++) {
        CHECK_OK(fkt_engine_run(b.e, in, 5, out));
        assert_memory_equal(out, want, 5 * b.each_out * sizeof *out);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        CHECK_OK(other[i].st);
    }
    engine_case_clear(&b);
    fkt_free(in);
    fkt_free(want);
    fkt_free(out);
}

static void threads_do_not_matter(void **state)
{
    struct engine_case b;
    struct caller c[4];
    pthread_t thread[4];
    float *in, *want = NULL;
    (void)state;
    engine_case_init(&b, &fkt_backend_cuda, net_problem("DC-AE's decoder in small"),
                     (struct fkt_engine_spec){.batch = 2});
    in = engine_numbers(5 * b.each_in, 9);
    CHECK_OK(fkt_alloc(&want, 5 * b.each_out));
    CHECK_OK(fkt_engine_run(b.e, in, 5, want));
    for (int i = 0; i < 4; i++) {
        c[i] = (struct caller){.b = &b, .in = in};
        CHECK_OK(fkt_alloc(&c[i].out, 5 * b.each_out));
        CHECK(pthread_create(&thread[i], NULL, call, &c[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(thread[i], NULL) == 0);
        CHECK(c[i].st == FKT_OK);
        CHECK(memcmp(c[i].out, want, 5 * b.each_out * sizeof *want) == 0);
        fkt_free(c[i].out);
    }
    engine_case_clear(&b);
    fkt_free(in);
    fkt_free(want);
}

/* Bytes in and out, against the conversions of engine.c around the plain loops. A byte may be the next one where the
 * number is near the middle. */
static void bytes_agree(void **state)
{
    (void)state;
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) pixels[c][v] = (float)v / 127.5f - 1 + 0.1f * (float)c;
    for (int p = 0; p < 2; p++) {
        const enum fkt_precision precision = p ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
        struct fkt_engine_spec in_spec = {.batch = 2, .precision = precision, .pixels_in = (const float(*)[256])pixels};
        struct fkt_engine_spec out_spec = {.batch = 2, .precision = precision, .bytes_out = 1, .out_scale = 2};
        struct engine_case fast, plain;
        uint8_t *rgb, *got_bytes = NULL, *want_bytes = NULL;
        float *in, *got = NULL, *want = NULL;
        size_t n = 5;
        out_spec.out_shift = -1;
        engine_case_init(&fast, &fkt_backend_cuda, net_problem("a small autoencoder"), in_spec);
        engine_case_init(&plain, &fkt_backend_ref, net_problem("a small autoencoder"), in_spec);
        rgb = random_bytes(n * fast.each_in, 3);
        CHECK_OK(fkt_alloc(&got, n * fast.each_out));
        CHECK_OK(fkt_alloc(&want, n * fast.each_out));
        CHECK_OK(fkt_engine_run_bytes(fast.e, rgb, n, got));
        CHECK_OK(fkt_engine_run_bytes(plain.e, rgb, n, want));
        CHECK(engine_relative(got, want, n * fast.each_out) <= (p ? 3e-2 : 1e-5));
        engine_case_clear(&fast);
        engine_case_clear(&plain);
        engine_case_init(&fast, &fkt_backend_cuda, net_problem("DC-AE's decoder in small"), out_spec);
        engine_case_init(&plain, &fkt_backend_ref, net_problem("DC-AE's decoder in small"), out_spec);
        in = engine_numbers(n * fast.each_in, 4);
        CHECK_OK(fkt_alloc(&got_bytes, n * fast.each_out));
        CHECK_OK(fkt_alloc(&want_bytes, n * fast.each_out));
        CHECK_OK(fkt_engine_run_to_bytes(fast.e, in, n, got_bytes));
        CHECK_OK(fkt_engine_run_to_bytes(plain.e, in, n, want_bytes));
        for (size_t i = 0; i < n * fast.each_out; i++)
            if (abs(got_bytes[i] - want_bytes[i]) > (p ? 24 : 1))
                fail_msg("byte %zu is %d, want %d", i, got_bytes[i], want_bytes[i]);
        engine_case_clear(&fast);
        engine_case_clear(&plain);
        fkt_free(rgb);
        fkt_free(in);
        fkt_free(got);
        fkt_free(want);
        fkt_free(got_bytes);
        fkt_free(want_bytes);
    }
}

/* A NaN in the first batch of a plan is found where it enters; in a later one, where bytes are made of it. */
static void not_a_number(void **state)
{
    struct fkt_engine_spec spec = {.batch = 2, .bytes_out = 1, .out_scale = 1};
    struct engine_case b;
    float *in;
    uint8_t *out = NULL;
    (void)state;
    engine_case_init(&b, &fkt_backend_cuda, net_problem("DC-AE's decoder in small"), spec);
    in = engine_numbers(2 * b.each_in, 4);
    CHECK_OK(fkt_alloc(&out, 2 * b.each_out));
    in[b.each_in + 3] = NAN;
    CHECK_STATUS(fkt_engine_run_to_bytes(b.e, in, 2, out), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "step 0") != NULL);
    in[b.each_in + 3] = 0;
    CHECK_OK(fkt_engine_run_to_bytes(b.e, in, 2, out));
    CHECK_OK(fkt_engine_run_to_bytes(b.e, in, 2, out));
    in[b.each_in + 3] = NAN;
    CHECK_STATUS(fkt_engine_run_to_bytes(b.e, in, 2, out), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "gave NaN") != NULL);
    CHECK_OK(fkt_engine_run_to_bytes(b.e, in, 1, out));
    engine_case_clear(&b);
    fkt_free(in);
    fkt_free(out);
}

/* Weights and a bias whose sums overflow; with the second and the last a ReLU hides it, since all are negative. */
static void overflow_inside_is_found(void **state)
{
    static const char *const names[] = {"3.weight", "3.bias", "16.weight", "3.weight"};
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct fkt_engine_spec spec = {.batch = 2, .height = 16, .width = 16, .precision = (enum fkt_precision)(i / 4)};
        static float in[3 * 16 * 16], out[4 * 4 * 4];
        const struct fkt_tensor *t;
        struct fkt_engine *e = NULL;
        struct random_weights w;
        struct fkt_net net;
        net_problem("a small autoencoder")->build(&net);
        random_weights_init(&w, &net, 7);
        t = fkt_safetensors_find(w.file, names[i % 4]);
        CHECK(t);
        for (size_t k = 0; k < t->count; k++)
            ((float *)(uintptr_t)t->data)[k] = i % 4 == 3 ? -1e15F : i % 4 == 1 ? -3e38F : k % 2 ? 2e38F : -3e38F;
        t = fkt_safetensors_find(w.file, "1.weight"); /* large alone is no fault */
        for (size_t k = 0; i % 4 == 3 && k < t->count; k++) ((float *)(uintptr_t)t->data)[k] *= 1e25F;
        for (size_t k = 0; k < 3 * 16 * 16; k++) in[k] = (float)(k % 7) - 3;
        CHECK_OK(fkt_engine_new(&e, &fkt_backend_cuda, &net, w.bound, &spec));
        for (int again = 0; again < 2; again++) {
            CHECK_STATUS(fkt_engine_run(e, in, 1, out), FKT_E_NUMERIC);
            CHECK(strstr(fkt_error_text(), "not finite") && strstr(fkt_error_text(), "convolution"));
            CHECK(strstr(fkt_error_text(), i % 4 == 2 ? "'16.weight'" : "'3.weight'"));
        }
        fkt_engine_free(e);
        random_weights_release(&w);
        fkt_net_clear(&net);
    }
}

/* 4096 maps of a million pixels: 2^32 rows of a product. */
static void too_many_numbers_are_refused(void **state)
{
    const struct fkt_engine_spec spec = {.batch = 4096, .height = 1024, .width = 1024};
    struct fkt_engine *e = NULL;
    struct random_weights w;
    struct fkt_net net;
    (void)state;
    fkt_net_init(&net, 1);
    net_conv(&net, 0, 1, 8, (struct net_window){1, 1, 0, 1, 1});
    random_weights_init(&w, &net, 7);
    CHECK_STATUS(fkt_engine_new(&e, &fkt_backend_cuda, &net, w.bound, &spec), FKT_E_ARG);
    CHECK(!e && strstr(fkt_error_text(), "input: a value has 4294967296 numbers"));
    CHECK(!strcmp(fkt_error_hint(), "use a smaller batch"));
    random_weights_release(&w);
    fkt_net_clear(&net);
}

static void facts_are_reported(void **state)
{
    struct engine_case b;
    const struct fkt_engine_facts *f;
    (void)state;
    engine_case_init(&b, &fkt_backend_cuda, net_problem("DC-AE's encoder in small"),
                     (struct fkt_engine_spec){.batch = 2});
    f = fkt_engine_facts(b.e);
    CHECK(f->max_workspaces == 2 && f->packed_bytes > 0 && f->workspace_bytes > 0);
    CHECK(f->convolutions == 8);
    CHECK(f->fused == 2 * 2 + 3 + 2 + 1); /* two SiLUs and additions; a shortcut with a mean, one without; the last */
    engine_case_clear(&b);
}

#ifdef FKT_CUDA_HOST
/* The first test: no card has been opened yet. */
static void cards_that_cannot_be_used(void **state)
{
    const struct fkt_host_machine good = fkt_host_machine;
    struct fkt_cuda_device *d = NULL;
    (void)state;
    fkt_host_machine.devices = 0;
    CHECK(!fkt_cuda_usable() && fkt_cuda_count() == 0 && !fkt_error_text()[0]);
    CHECK_STATUS(fkt_cuda_device(&d, 0), FKT_E_STATE);
    CHECK(strstr(fkt_error_text(), "no NVIDIA card") && fkt_error_hint()[0]);
    fkt_host_machine = good;
    fkt_host_machine.major = 7;
    CHECK_STATUS(fkt_cuda_device(&d, 0), FKT_E_STATE);
    CHECK(strstr(fkt_error_text(), "too old: compute capability 7.") && fkt_error_hint()[0]);
    fkt_host_machine = good;
    CHECK_STATUS(fkt_cuda_device(&d, good.devices), FKT_E_ARG);
    CHECK_STATUS(fkt_cuda_device(&d, -1), FKT_E_ARG);
    CHECK_OK(fkt_cuda_device(&d, 0));
    CHECK(fkt_cuda_usable() && fkt_cuda_count() == good.devices);
}

static void too_little_memory(void **state)
{
    const struct fkt_host_machine good = fkt_host_machine;
    const struct net_problem *p = net_problem("a small autoencoder");
    struct fkt_engine_spec spec = {.batch = 64, .height = p->height, .width = p->width};
    const size_t before = fkt_host_memory_used();
    struct fkt_engine *e = NULL;
    struct random_weights w;
    struct fkt_net net;
    float in[3 * 16 * 16] = {0}, out[64];
    (void)state;
    p->build(&net);
    random_weights_init(&w, &net, 7);
    fkt_host_machine.memory = before + (1 << 21); /* the weights fit */
    CHECK_OK(fkt_engine_new(&e, &fkt_backend_cuda, &net, w.bound, &spec));
    CHECK_STATUS(fkt_engine_run(e, in, 1, out), FKT_E_NOMEM);
    CHECK(strstr(fkt_error_text(), "a batch needs") && strstr(fkt_error_text(), "are free") && fkt_error_hint()[0]);
    fkt_engine_free(e);
    fkt_host_machine.memory = before + 1000;
    CHECK_STATUS(fkt_engine_new(&e, &fkt_backend_cuda, &net, w.bound, &spec), FKT_E_NOMEM);
    CHECK(strstr(fkt_error_text(), "weights") != NULL && e == NULL);
    fkt_host_machine = good;
    CHECK(fkt_host_memory_used() == before);
    random_weights_release(&w);
    fkt_net_clear(&net);
}

static void a_lost_card(void **state)
{
    struct engine_case b;
    float *in, *out = NULL;
    (void)state;
    engine_case_init(&b, &fkt_backend_cuda, net_problem("first convolution"), (struct fkt_engine_spec){.batch = 1});
    in = engine_numbers(4 * b.each_in, 5);
    CHECK_OK(fkt_alloc(&out, 4 * b.each_out));
    CHECK_OK(fkt_engine_run(b.e, in, 4, out));
    fkt_host_machine.lost = cudaErrorIllegalAddress;
    CHECK_STATUS(fkt_engine_run(b.e, in, 4, out), FKT_E_STATE);
    CHECK(strstr(fkt_error_text(), "lost") && fkt_error_hint()[0]);
    fkt_host_machine.lost = cudaSuccess;
    CHECK_OK(fkt_engine_run(b.e, in, 4, out));
    engine_case_clear(&b);
    fkt_free(in);
    fkt_free(out);
}

/* Every allocation in turn fails: the failure is told, and nothing stays behind. */
static void memory_of_the_host_runs_out(void **state)
{
    const struct net_problem *p = net_problem("DC-AE's decoder in small");
    struct fkt_engine_spec spec = {.batch = 1, .height = p->height, .width = p->width};
    const size_t before = fkt_host_memory_used();
    struct random_weights w;
    struct fkt_net net;
    (void)state;
    p->build(&net);
    random_weights_init(&w, &net, 7);
    for (size_t n = 1;; n++) {
        const size_t live = fkt_alloc_live();
        struct fkt_engine *e = NULL;
        fkt_status st;
        fkt_alloc_fault_at(n, 0);
        st = fkt_engine_new(&e, &fkt_backend_cuda, &net, w.bound, &spec);
        fkt_alloc_fault_at(0, 0);
        fkt_engine_free(e);
        CHECK(fkt_alloc_live() == live && fkt_host_memory_used() == before);
        if (st == FKT_OK) break;
        CHECK(st == FKT_E_NOMEM && n < 5000);
    }
    random_weights_release(&w);
    fkt_net_clear(&net);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef FKT_CUDA_HOST
        cmocka_unit_test(cards_that_cannot_be_used),
        cmocka_unit_test(too_little_memory),
        cmocka_unit_test(a_lost_card),
        cmocka_unit_test(memory_of_the_host_runs_out),
#endif
        cmocka_unit_test(f32_agrees),
        cmocka_unit_test(bf16_agrees),
        cmocka_unit_test(place_does_not_matter),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(engines_come_and_go_beside_one_that_stays),
        cmocka_unit_test(bytes_agree),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(overflow_inside_is_found),
        cmocka_unit_test(facts_are_reported),
        cmocka_unit_test(too_many_numbers_are_refused),
    };
#ifndef FKT_CUDA_HOST
    if (!fkt_cuda_usable()) {
        printf("skipped: this machine has no NVIDIA card that can be used\n");
        return 77;
    }
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
