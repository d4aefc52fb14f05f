/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/check.h"

#include "fedkt/machine.h"
#include "tensor/blas_core.h"
#include "tensor/linalg.h"

static void old_cores_are_outclassed(void **state)
{
    static const char *const old[] = {"Prescott", "Nehalem", "Core2", "Atom", "Barcelona", "Sandybridge", "Bulldozer"};
    (void)state;
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        assert_string_equal(fkt_blas_core_wanted(old[i], FKT_CPU_AVX2_FMA | FKT_CPU_AVX512), "SkylakeX");
        assert_string_equal(fkt_blas_core_wanted(old[i], FKT_CPU_AVX2_FMA), "Haswell");
        assert_null(fkt_blas_core_wanted(old[i], 0));
    }
}

static void good_and_unknown_cores_are_left_alone(void **state)
{
    static const char *const good[] = {"Haswell", "Zen",     "SkylakeX", "Cooperlake", "Excavator",  "SapphireRapids",
                                       "ARMV8",   "Unknown", "",         "prescot",    "Neoversen1", "PRESCOTT"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (unsigned v = 0; v < 4; v++) assert_null(fkt_blas_core_wanted(good[i], v));
}

/* The advised kernel set is accepted: advice is not given again after it was followed. */
static void advice_ends(void **state)
{
    (void)state;
    assert_null(fkt_blas_core_wanted("SkylakeX", fkt_cpu_vectors()));
    assert_null(fkt_blas_core_wanted("Haswell", fkt_cpu_vectors()));
    assert_ptr_equal(fkt_blas_core_advice(), fkt_blas_core_wanted(fkt_blas_core(), fkt_cpu_vectors()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_cores_are_outclassed),
        cmocka_unit_test(good_and_unknown_cores_are_left_alone),
        cmocka_unit_test(advice_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
