/* SPDX-License-Identifier: Apache-2.0 */
/* Small members of both families against PyTorch, in every published layout and on both backends. The weights are made
 * here; names, shapes, config.json and results are PyTorch's and diffusers' (oracle/codec_vectors.py). */
#include "nn/cpu.h"
#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/golden_weights.h"

static const struct {
    const char *stem;
    uint32_t side;
} cases[] = {
    {"taesd.taesd", 16},           {"taesd.diffusers", 16},       {"tiny-f32.efficientvit", 32},
    {"tiny-f32.diffusers", 32},    {"tiny-f32.efficientvit", 64}, {"tiny-f32.diffusers", 64},
    {"tiny-f64.efficientvit", 64}, {"tiny-f64.diffusers", 64},    {"tiny-sana.efficientvit", 64},
    {"tiny-sana.diffusers", 64},
};

static void agree(const struct fkt_backend *backend, enum fkt_precision precision, int low_memory, double limit)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct golden_run run = {backend, precision, low_memory, cases[k].side};
        struct golden_error e;
        struct golden g;
        golden_open(&g, cases[k].stem);
        golden_measure(&e, &g, &run);
        golden_release(&g);
        for (int half = 0; half < 2; half++)
            if (!(e.apart[half] <= limit * e.size[half]))
                fail_msg("%s, %u px, %s, half %d: off by %.2e of %.2e", cases[k].stem, cases[k].side, backend->name,
                         half, e.apart[half], e.size[half]);
        print_message("%-22s %2u px %-6s %s  %.1e %.1e\n", cases[k].stem, cases[k].side, backend->name,
                      precision ? "bf16" : "f32 ", e.apart[0] / e.size[0], e.apart[1] / e.size[1]);
    }
    CHECK(fkt_alloc_live() == 0);
}

static void plain_loops_agree_with_pytorch(void **state)
{
    (void)state;
    agree(&fkt_backend_ref, FKT_PRECISION_F32, 0, 1e-5);
}

static void onednn_agrees_with_pytorch(void **state)
{
    (void)state;
    agree(&fkt_backend_onednn, FKT_PRECISION_F32, 0, 2e-5);
    agree(&fkt_backend_onednn, FKT_PRECISION_F32, 1, 2e-5);
}

/* Eight bits of mantissa between layers. */
static void half_the_bits_agree_with_pytorch(void **state)
{
    int possible = 0;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (!possible) skip();
    agree(&fkt_backend_onednn, FKT_PRECISION_BF16, 0, 5e-2);
}

static void weights_are_those_of_python(void **state)
{
    static const char *const stems[] = {"taesd.taesd_encoder",   "taesd.taesd_decoder", "taesd.diffusers",
                                        "tiny-f32.efficientvit", "tiny-f32.diffusers",  "tiny-f64.efficientvit",
                                        "tiny-f64.diffusers",    "tiny-sana.diffusers", "tiny-sana.efficientvit"};
    (void)state;
    for (size_t k = 0; k < sizeof stems / sizeof *stems; k++) {
        char list[512], want[GOLDEN_HASH], got[GOLDEN_HASH];
        struct scratch s;
        snprintf(list, sizeof list, FKT_TEST_VECTORS "/codec/%s.txt", stems[k]);
        scratch_init(&s);
        golden_weights_stated(list, want);
        golden_weights_write(list, scratch_path(&s, "weights.safetensors"), got);
        scratch_release(&s);
        assert_string_equal(got, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_python),
        cmocka_unit_test(plain_loops_agree_with_pytorch),
        cmocka_unit_test(onednn_agrees_with_pytorch),
        cmocka_unit_test(half_the_bits_agree_with_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
