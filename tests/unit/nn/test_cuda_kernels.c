/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of nn/cuda/kernels.h that runs networks forward, against the plain loops of nn/ref, in both precisions.
 * What only moves numbers must agree to the bit. */
#include "nn/cuda/kernels.h"
#include "nn/ref/ops.h"

#include "tests/support/cuda_case.h"

enum { ROOM = 1 << 19 };
static float input[2][ROOM], want[ROOM], got[ROOM];

static const struct fkt_shape shapes[] = {{3, 5, 7},  {4, 4, 4},  {5, 3, 1}, {8, 2, 6},
                                          {31, 3, 3}, {64, 4, 4}, {96, 1, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void test_unary(void **state)
{
    static const struct fkt_op ops[] = {{.kind = FKT_OP_RELU},
                                        {.kind = FKT_OP_SILU},
                                        {.kind = FKT_OP_SOFT_CLAMP, .value = {3}},
                                        {.kind = FKT_OP_AFFINE, .value = {1.5F, -0.25F}}};
    (void)state;
    for (int trial = 0; trial < SHAPES * 2 * 4 * CUDA_ORDERS; trial++) {
        const struct fkt_op *op = &ops[trial % 4];
        enum fkt_precision p = trial / 4 % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
        struct fkt_shape s = shapes[trial / 8 % SHAPES];
        int n = 1 + trial % 3;
        struct fkt_ref_call k = {.op = op, .n = (uint32_t)n, .x = s, .y = s, .a = input[0], .out = want};
        struct fkt_cuda_tensor x, y;
        cuda_order(trial / 8 / SHAPES);
        cuda_fill(input[0], cuda_numbers(n, s), (uint64_t)trial, p);
        fkt_ref_run(&k);
        x = cuda_put(input[0], n, s, p);
        y = cuda_put(NULL, n, s, p);
        CHECK_OK(fkt_cuda_unary(&y, &x, op, NULL));
        cuda_take(got, &y);
        cuda_same(fkt_op_name(op->kind), got, want, cuda_numbers(n, s), op->kind == FKT_OP_RELU ? 0 : 4, p);
        cudaFree(x.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),
    };
#ifndef FKT_CUDA_HOST
    if (!fkt_cuda_usable()) {
        printf("skipped: no usable CUDA card\n");
        return 77;
    }
#endif
    return check_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
