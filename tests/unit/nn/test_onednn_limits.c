/* SPDX-License-Identifier: Apache-2.0 */
/* What the oneDNN backend does at its limits: more memory than there is, and maps that few kernels take. */
#include "nn/engine.h"
#include "tests/support/build_net.h"
#include "tests/support/random_weights.h"

/* 16 TiB for one workspace: an error, not a killed process. */
static void more_than_there_is(void **state)
{
    struct fkt_engine_spec spec = {.batch = 4096, .height = 4096, .width = 4096};
    struct fkt_engine *e = NULL;
    struct random_weights w;
    struct fkt_net net;
    (void)state;
    fkt_net_init(&net, 3);
    net_conv3(&net, 0, 3, 64);
    random_weights_init(&w, &net, 7);
    CHECK_STATUS(fkt_engine_new(&e, &fkt_backend_onednn, &net, w.bound, &spec), FKT_E_NOMEM);
    CHECK(strstr(fkt_error_text(), "GiB") && fkt_error_hint_code() == FKT_HINT_SMALLER_SIZE && !e);
    random_weights_release(&w);
    fkt_net_clear(&net);
}

/* Odd channels and windows on maps of one to four pixels, with weights where they are mapped. */
static void tiny_maps_with_little_memory(void **state)
{
    static const uint32_t channels[] = {1, 3, 5, 17, 20, 34};
    (void)state;
    for (uint32_t i = 0; i < 6 * 6 * 2 * 4; i++) {
        uint32_t from = channels[i % 6], to = channels[i / 6 % 6], kernel = i / 36 % 2 ? 3 : 1, side = i / 72 + 1;
        struct fkt_engine_spec spec = {.batch = 3, .height = side, .width = side, .low_memory = 1};
        static float in[34 * 16], got[34 * 16], want[34 * 16];
        struct fkt_engine *fast = NULL, *plain = NULL;
        struct random_weights w;
        struct fkt_net net;
        fkt_net_init(&net, from);
        net_one(&net, FKT_OP_SILU, net_conv(&net, 0, from, to, (struct net_window){kernel, 1, kernel / 2, 1, 1}));
        random_weights_init(&w, &net, 7);
        for (int k = 0; k < 34 * 16; k++) in[k] = (float)(k * 7 % 13) / 6 - 1;
        CHECK_OK(fkt_engine_new(&fast, &fkt_backend_onednn, &net, w.bound, &spec));
        CHECK_OK(fkt_engine_new(&plain, &fkt_backend_ref, &net, w.bound, &spec));
        CHECK_OK(fkt_engine_run(fast, in, 1, got));
        CHECK_OK(fkt_engine_run(plain, in, 1, want));
        for (uint32_t k = 0; k < to * side * side; k++) CHECK_NEAR(got[k], want[k], 1e-5 * (1 + fabsf(want[k])));
        fkt_engine_free(fast);
        fkt_engine_free(plain);
        random_weights_release(&w);
        fkt_net_clear(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_there_is),
        cmocka_unit_test(tiny_maps_with_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
