/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/train_epoch.h"
#include "tests/support/check.h"

enum { CLASSES = 3, PX = 8, BATCH = 8, IMAGES = 50 };

/* Plain loops keep images too, so that what a card is timed with runs everywhere. */
static void epochs_of_plain_loops(void **state)
{
    static const char *const names[CLASSES] = {"a", "b", "c"};
    const struct fkt_model_spec model = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = PX, .classes = names, .n_classes = CLASSES, .seed = 1};
    struct fkt_learner_spec spec = {.batch = BATCH, .height = PX, .width = PX, .threads = 1, .norm_momentum = 0.1F};
    struct fkt_bench_epochs e;
    struct fkt_learner *l = NULL;
    struct fkt_model *m = NULL;
    struct fkt_net net;
    (void)state;
    CHECK_OK(fkt_model_new(&m, &model));
    fkt_net_init(&net, 3);
    fkt_resnet_build(&net, FKT_ARCHITECTURE_RESNET8, fkt_model_stem(m), CLASSES);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &net, &spec));
    for (uint32_t s = 0; s < net.n_slots; s++)
        CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, s, fkt_model_tensor(m, s).data));
    CHECK(fkt_learner_holds(l));
    CHECK_OK(fkt_bench_epochs(l, m, BATCH, PX, IMAGES, &e));
    CHECK(e.steps == IMAGES / BATCH && e.epochs >= 1);
    CHECK(e.best > 0 && e.best >= e.median && e.median > 0 && e.plan >= 0);
    CHECK(e.last < e.first);
    fkt_learner_free(l);
    fkt_net_clear(&net);
    fkt_model_free(m);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_of_plain_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
