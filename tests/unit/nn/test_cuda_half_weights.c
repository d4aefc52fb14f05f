/* SPDX-License-Identifier: Apache-2.0 */
/* Files with convolutions in f16 and norms in f32, on nn/cuda. */
#include "tests/support/cuda_case.h"
#include "tests/support/half_weights.h"

static void cuda_reads_them(void **state)
{
    (void)state;
    half_weights_check(&fkt_backend_cuda, NULL, 0);
    half_weights_check(NULL, &fkt_learner_cuda, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cuda_reads_them)};
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
