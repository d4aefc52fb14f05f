/* SPDX-License-Identifier: Apache-2.0 */
/* Images and latents into the card's layout and out of it (nn/cuda/kernels_bytes.cu): to the bit what plain loops give;
 * and limits that all kernels have. */
#include "nn/cuda/kernels.h"
#include "nn/cuda/launch.h"

#include "tests/support/cuda_case.h"

enum { ROOM = 1 << 18 };
static float numbers[ROOM], want[ROOM], got[ROOM];
static uint8_t bytes[ROOM], back[ROOM];

static const struct fkt_shape shapes[] = {{3, 5, 7},  {4, 4, 4},   {5, 3, 1}, {8, 2, 6},
                                          {31, 3, 3}, {64, 33, 4}, {96, 1, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes, N = 3 };

static float rounded(float x, enum fkt_precision p)
{
    return p == FKT_PRECISION_BF16 ? fkt_bf16_widen(fkt_bf16_narrow(x)) : x;
}

static void test_from_bytes(void **state)
{
    static float table[3][256];
    (void)state;
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) table[c][v] = (float)v / 127.5F - 1 + (float)c;
    for (size_t i = 0; i < SHAPES * 2 * CUDA_ORDERS; i++) {
        struct fkt_shape s = shapes[i / 2 % SHAPES];
        enum fkt_precision p = i % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
        size_t plane = (size_t)s.h * s.w, pixels = N * plane;
        struct fkt_cuda_tensor y = cuda_put(NULL, N, s, p);
        uint8_t *rgb;
        float *on_card = cuda_copy(table, sizeof table);
        cuda_order((int)(i / 2 / SHAPES));
        for (size_t j = 0; j < pixels * 3; j++) bytes[j] = (uint8_t)(j * 37 + i);
        for (size_t j = 0; j < pixels * s.c; j++) {
            size_t image = j / (s.c * plane), c = j / plane % s.c, pixel = j % plane;
            want[j] = c < 3 ? rounded(table[c][bytes[(image * plane + pixel) * 3 + c]], p) : 0;
        }
        rgb = cuda_copy(bytes, pixels * 3);
        CHECK_OK(fkt_cuda_from_bytes(&y, rgb, on_card, NULL));
        cuda_take(got, &y);
        cuda_same("from bytes", got, want, pixels * s.c, 0, p);
        cudaFree(rgb), cudaFree(on_card);
    }
}

/* What engine.c does on the host. */
static uint8_t byte_of(float x, float scale, float shift)
{
    double v = floor((x - (double)shift) * (255 / (double)scale) + 0.5);
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void test_to_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * 2 * CUDA_ORDERS; i++) {
        struct fkt_shape s = shapes[i / 2 % SHAPES];
        enum fkt_precision p = i % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
        size_t plane = (size_t)s.h * s.w, pixels = N * plane, all = pixels * s.c;
        float scale = i % 3 ? 2 : 1, shift = i % 3 ? -1 : 0;
        struct fkt_cuda_tensor x;
        int bad = 0, *flag;
        uint8_t *rgb;
        cuda_order((int)(i / 2 / SHAPES));
        cuda_fill(numbers, all, i, p);
        for (size_t j = 0; j < all; j++) {
            numbers[j] = rounded(shift + scale * (numbers[j] / 6 + 0.5F), p); /* some beyond both ends */
            if (j % 5 == 0) numbers[j] = rounded(shift + scale * ((float)(j % 256) + 0.5F) / 255, p); /* between two */
        }
        numbers[0] = INFINITY;
        x = cuda_put(numbers, N, s, p), rgb = cuda_copy(NULL, pixels * 3), flag = cuda_copy(&bad, sizeof bad);
        CHECK_OK(fkt_cuda_to_bytes(rgb, &x, scale, shift, flag, NULL));
        cuda_back(back, rgb, pixels * 3);
        cuda_back(&bad, flag, sizeof bad);
        assert_int_equal(bad, 0);
        for (size_t j = 0; j < pixels * 3; j++) {
            size_t pixel = j / 3, at = pixel / plane * s.c * plane + j % 3 * plane + pixel % plane;
            if (back[j] != byte_of(numbers[at], scale, shift))
                fail_msg("byte %zu of %.9g is %u, want %u", j, numbers[at], back[j],
                         byte_of(numbers[at], scale, shift));
        }
        cudaFree(x.data);
        numbers[plane * (s.c * (N - 1) + 3) - 1] = NAN; /* the last pixel's blue */
        x = cuda_put(numbers, N, s, p);
        CHECK_OK(fkt_cuda_to_bytes(rgb, &x, scale, shift, flag, NULL));
        cuda_back(&bad, flag, sizeof bad);
        assert_int_equal(bad, 1);
        cudaFree(x.data), cudaFree(rgb), cudaFree(flag);
    }
}

static void test_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * 2 * CUDA_ORDERS; i++) {
        struct fkt_shape s = shapes[i / 2 % SHAPES], wide = {s.c + 5, s.h, s.w};
        enum fkt_precision p = i % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
        size_t plane = (size_t)s.h * s.w, all = cuda_numbers(N, s);
        struct fkt_cuda_tensor y = cuda_put(NULL, N, wide, p), copy = y;
        float *in, *out;
        cuda_order((int)(i / 2 / SHAPES));
        cuda_fill(numbers, all, i, p);
        in = cuda_copy(numbers, all * sizeof *in), out = cuda_copy(NULL, all * sizeof *out);
        CHECK_OK(fkt_cuda_from_nchw(&y, in, (int)s.c, NULL));
        CHECK_OK(fkt_cuda_to_nchw(out, &y, (int)s.c, NULL));
        cuda_back(got, out, all * sizeof *out);
        cuda_same("to nchw", got, numbers, all, 0, p);
        copy.precision = p == FKT_PRECISION_BF16 ? FKT_PRECISION_F32 : FKT_PRECISION_BF16;
        copy.data = cuda_copy(NULL, fkt_cuda_bytes_of(&copy));
        CHECK_OK(fkt_cuda_cast(&copy, &y, NULL));
        cuda_take(got, &copy);
        cuda_take(want, &y);
        for (size_t j = 0; j < cuda_numbers(N, wide); j++) {
            size_t image = j / (wide.c * plane), c = j / plane % wide.c;
            float x = c < s.c ? numbers[(image * s.c + c) * plane + j % plane] : 0;
            if (!(fabsf(want[j] - x) <= 0)) fail_msg("number %zu is %.9g, want %.9g", j, want[j], x);
            want[j] = rounded(x, FKT_PRECISION_BF16);
        }
        cuda_same("cast", got, want, cuda_numbers(N, wide), 0, p);
        cudaFree(in), cudaFree(out);
    }
}

static void test_limits(void **state)
{
    static const struct fkt_op op = {.kind = FKT_OP_RELU};
    struct fkt_cuda_tensor huge = {NULL, 4096, 1024, 1024, 1, FKT_PRECISION_F32},
                           none = {NULL, 0, 4, 4, 3, FKT_PRECISION_F32};
    (void)state;
    CHECK_STATUS(fkt_cuda_unary(&huge, &huge, &op, NULL), FKT_E_ARG);
    CHECK_OK(fkt_cuda_unary(&none, &none, &op, NULL)); /* nothing to do is not an error */
    CHECK_OK(fkt_cuda_countable(INT32_MAX, "test"));
    CHECK_STATUS(fkt_cuda_countable((size_t)INT32_MAX + 1, "test"), FKT_E_ARG);
#ifdef FKT_CUDA_HOST
    huge = cuda_put(NULL, 1, (struct fkt_shape){3, 2, 2}, FKT_PRECISION_F32);
    fkt_host_machine.lost = cudaErrorLaunchFailure;
    CHECK_STATUS(fkt_cuda_unary(&huge, &huge, &op, NULL), FKT_E_STATE);
    assert_non_null(strstr(fkt_error_text(), "kernel 'each_kernel'"));
    fkt_host_machine.lost = cudaSuccess;
    cudaFree(huge.data);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_bytes),
        cmocka_unit_test(test_to_bytes),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_limits),
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
