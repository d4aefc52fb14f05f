/* SPDX-License-Identifier: Apache-2.0 */
/* Guided images with both networks on nn/cuda, against PyTorch. */
#include "tests/support/cuda_case.h"
#include "tests/support/guided_case.h"

static void cuda_is_pytorchs(void **state)
{
    (void)state;
    for (int o = 0; o < CUDA_ORDERS; o++) {
        cuda_order(o);
        guided_case_check(&fkt_learner_cuda, 1);
        guided_case_check(&fkt_learner_cuda, 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cuda_is_pytorchs)};
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
