/* SPDX-License-Identifier: Apache-2.0 */
/* Guides differentiated by their pixels on nn/cuda, against PyTorch; those of published sizes on a card alone. */
#include "tests/support/cuda_case.h"
#include "tests/support/guide_gradient.h"

static void cuda_is_pytorchs(void **state)
{
    (void)state;
    for (int i = 0; i < GUIDE_GRADIENTS; i++)
        if (!guide_gradients[i].whole || CUDA_ORDERS == 1)
            guide_gradient_check(&guide_gradients[i], &fkt_learner_cuda, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cuda_is_pytorchs)};
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
