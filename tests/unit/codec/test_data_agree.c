/* SPDX-License-Identifier: Apache-2.0 */
/* TAESD and TAESD3 with their real weights ($FEDKT_DATA/codecs) against PyTorch in f32, encoder and decoder.
 *
 * In bf16 a single number can be off by more than 2e-2 in any implementation: rounding the inputs of each convolution
 * to eight bits, with all else exact, already gives 6e-2 in the worst of these cases. So the largest error is held
 * against PyTorch's own in bf16 where that is beyond 2e-2, and the root mean square against half of 2e-2 everywhere. */
#include "nn/cpu.h"
#include "tests/support/check.h"
#include "tests/support/golden.h"

static const uint32_t sides[] = {32, 64, 128};

static void open_codec(struct golden *g, const char *codec)
{
    char folder[512], stem[64];
    snprintf(folder, sizeof folder, "%s/codecs", getenv("FEDKT_DATA"));
    snprintf(stem, sizeof stem, "%s-real.taesd", codec);
    golden_open_real(g, stem, folder, codec);
}

static void measure(struct golden_error *e, const struct golden *g, const struct golden_run *run, const char *codec)
{
    golden_measure(e, g, run);
    print_message("%-6s %3u px %-4s%s  encode %.1e (rms %.1e) of %.2f  decode %.1e (rms %.1e) of %.2f\n", codec,
                  run->side, run->precision ? "bf16" : "f32", run->low_memory ? " low memory" : "", e->apart[0],
                  e->rms[0], e->size[0], e->apart[1], e->rms[1], e->size[1]);
}

static void in_f32(const char *codec, int low_memory)
{
    struct golden g;
    open_codec(&g, codec);
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
        struct golden_run run = {&fkt_backend_onednn, FKT_PRECISION_F32, low_memory, sides[k]};
        struct golden_error e;
        measure(&e, &g, &run, codec);
        for (int half = 0; half < 2; half++) CHECK_NEAR(e.apart[half], 0, 1e-4);
    }
    golden_release(&g);
    CHECK(fkt_alloc_live() == 0);
}

static void in_bf16(const char *codec)
{
    struct golden g;
    open_codec(&g, codec);
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
        struct golden_run run = {&fkt_backend_onednn, FKT_PRECISION_BF16, 0, sides[k]};
        struct golden_error e;
        const struct fkt_tensor *t;
        float peer[2];
        char name[32];
        snprintf(name, sizeof name, "bf16.%u", sides[k]);
        t = fkt_safetensors_find(g.vectors, name);
        CHECK(t && t->count == 2);
        CHECK_OK(fkt_tensor_copy_f32(peer, t));
        measure(&e, &g, &run, codec);
        print_message("       PyTorch's own in bf16:  encode %.1e  decode %.1e\n", peer[0], peer[1]);
        for (int half = 0; half < 2; half++) {
            CHECK_NEAR(e.apart[half], 0, fmax(2e-2, 1.25 * peer[half]));
            CHECK_NEAR(e.rms[half], 0, 1e-2);
        }
    }
    golden_release(&g);
    CHECK(fkt_alloc_live() == 0);
}

static void taesd_in_f32(void **state)
{
    (void)state;
    for (int low = 0; low < 2; low++) {
        in_f32("taesd", low);
        in_f32("taesd3", low);
    }
}

static void taesd_in_bf16(void **state)
{
    int possible = 0;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (!possible) skip();
    in_bf16("taesd");
    in_bf16("taesd3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taesd_in_f32),
        cmocka_unit_test(taesd_in_bf16),
    };
    if (!getenv("FEDKT_DATA")) {
        printf("FEDKT_DATA is not set: skipped\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
