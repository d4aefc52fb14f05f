/* SPDX-License-Identifier: Apache-2.0 */
/* Files with convolutions in f16 and norms in f32, on processors. */
#include "tests/support/half_weights.h"

static void engines_read_them(void **state)
{
    (void)state;
    half_weights_check(&fkt_backend_ref, NULL, 0);
    half_weights_check(&fkt_backend_onednn, NULL, 0);
    half_weights_check(&fkt_backend_onednn, NULL, 1);
}

static void learners_read_them(void **state)
{
    (void)state;
    half_weights_check(NULL, &fkt_learner_ref, 0);
    half_weights_check(NULL, &fkt_learner_onednn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(engines_read_them), cmocka_unit_test(learners_read_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
