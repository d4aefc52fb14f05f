/* SPDX-License-Identifier: Apache-2.0 */
/* Guides differentiated by their pixels on processors, against PyTorch. */
#include "tests/support/guide_gradient.h"

static void the_definition_is_pytorchs(void **state)
{
    (void)state;
    for (int i = 0; i < GUIDE_GRADIENTS; i++)
        if (!guide_gradients[i].whole) guide_gradient_check(&guide_gradients[i], &fkt_learner_ref, 1e-5);
}

static void onednn_is_pytorchs(void **state)
{
    (void)state;
    for (int i = 0; i < GUIDE_GRADIENTS; i++) guide_gradient_check(&guide_gradients[i], &fkt_learner_onednn, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_is_pytorchs),
        cmocka_unit_test(onednn_is_pytorchs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
