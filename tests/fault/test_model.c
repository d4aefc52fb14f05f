/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation in turn of making, copying, changing the head, saving, loading, predicting and evaluating a
 * model. */
#include "fedkt/learn.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

static struct scratch scratch;
static const char *path;
static const char *const names[] = {"a", "b", "c"}, *const others[] = {"x", "y"};
static const struct fkt_model_spec spec = {FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR, 8, names, 3, NULL, NULL, 7};

static fkt_status made(void)
{
    struct fkt_model *m = NULL, *copy = NULL, *head = NULL;
    fkt_status st;
    FKT_TRY(fkt_model_new(&m, &spec));
    FKT_TRY(fkt_model_copy(&copy, m));
    FKT_TRY(fkt_model_new_head(&head, copy, others, 2, 1));
out:
    fkt_model_free(m);
    fkt_model_free(copy);
    fkt_model_free(head);
    return st;
}

static fkt_status on_disk(void)
{
    struct fkt_model *m = NULL, *again = NULL;
    fkt_status st;
    FKT_TRY(fkt_model_new(&m, &spec));
    FKT_TRY(fkt_model_save(m, path, 1));
    FKT_TRY(fkt_model_load(&again, path, 0));
out:
    if (st != FKT_OK && again) fail_msg("a model came out of a failed load");
    fkt_model_free(m);
    fkt_model_free(again);
    return st;
}

static fkt_status from_another_hand(void)
{
    struct fkt_model *m = NULL;
    fkt_status st = fkt_model_load(&m, path, 0);
    fkt_model_free(m);
    return st;
}

static fkt_status asked(void)
{
    static uint8_t rgb[20 * 8 * 8 * 3];
    static float logits[20 * 3], features[20 * 64];
    static const uint32_t label[20];
    const struct fkt_predict_options options = {.threads = 1, .dtype = FKT_LEARN_DTYPE_F32};
    struct fkt_evaluation j = {0};
    struct fkt_model *m = NULL;
    fkt_status st;
    FKT_TRY(fkt_model_new(&m, &spec));
    FKT_TRY(fkt_model_predict(m, rgb, 20, logits, features, &options));
    FKT_TRY(fkt_evaluation_init(&j, 3));
    FKT_TRY(fkt_evaluation_add(&j, logits, label, 20));
out:
    fkt_evaluation_clear(&j);
    fkt_model_free(m);
    return st;
}

static void making(void **state)
{
    (void)state;
    CHECK(sweep_allocations(made, NULL) > 150);
}

static void saving_and_loading(void **state)
{
    (void)state;
    CHECK(sweep_allocations(on_disk, NULL) > 200);
}

/* The same file without our metadata: class names are generated. */
static void loading_what_pytorch_wrote(void **state)
{
    struct fkt_model *m = NULL;
    uint8_t bytes[8];
    FILE *f;
    (void)state;
    CHECK_OK(fkt_model_new(&m, &spec));
    CHECK_OK(fkt_model_save(m, path, 1));
    fkt_model_free(m);
    f = fopen(path, "r+b");
    CHECK(f && fread(bytes, 1, 8, f) == 8);
    for (int c = 0, n = 0; n < 4096 && (c = fgetc(f)) != EOF; n++) /* "fedkt.model/1" becomes "pedkt.model/1" */
        if (c == 'f' && fgetc(f) == 'e' && fgetc(f) == 'd') {
            CHECK(!fseek(f, -3, SEEK_CUR) && fputc('p', f) == 'p');
            break;
        }
    CHECK(fclose(f) == 0);
    CHECK_OK(fkt_model_load(&m, path, 0));
    CHECK(!strcmp(fkt_model_class(m, 0), "0"));
    fkt_model_free(m);
    CHECK(sweep_allocations(from_another_hand, NULL) > 50);
}

static void predicting_and_evaluating(void **state)
{
    (void)state;
    CHECK(sweep_allocations(asked, NULL) > 100);
}

static int begin(void **state)
{
    (void)state;
    scratch_init(&scratch);
    path = scratch_path(&scratch, "model.safetensors");
    return 0;
}
static int end(void **state)
{
    (void)state;
    scratch_release(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making),
        cmocka_unit_test(saving_and_loading),
        cmocka_unit_test(loading_what_pytorch_wrote),
        cmocka_unit_test(predicting_and_evaluating),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
