/* SPDX-License-Identifier: Apache-2.0 */
#include "classifier/model.h"
#include "nn/cpu.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/golden_weights.h"

#include <pthread.h>

static const char *const names[] = {"a", "b", "c"};
static const struct fkt_model_spec small = {FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR, 16, names, 3, NULL, NULL, 7};

/* Against torchvision (oracle/model_vectors.py): the same weights from the same law, written as PyTorch names them,
 * loaded as a file of another program. Norms are folded and convolutions may be Winograd: numbers of order one agree to
 * 1e-5. */
static void golden(const char *name, uint32_t size, double tolerance, enum fkt_learn_dtype dtype)
{
    const struct fkt_predict_options options = {.threads = 1, .dtype = dtype};
    struct fkt_safetensors *vectors = NULL;
    struct fkt_model *m = NULL;
    struct scratch scratch;
    char list[512], key[64], hash[GOLDEN_HASH], stated[GOLDEN_HASH];
    const char *path;
    const struct fkt_tensor *want[2];
    uint8_t *rgb = NULL;
    float *got[2] = {NULL, NULL};
    scratch_init(&scratch);
    path = scratch_path(&scratch, "model.safetensors");
    snprintf(list, sizeof list, "%s/model/%s.txt", FKT_TEST_VECTORS, name);
    golden_weights_write(list, path, hash);
    golden_weights_stated(list, stated);
    assert_string_equal(hash, stated);
    CHECK_OK(fkt_model_load(&m, path, size));
    CHECK_OK(fkt_safetensors_open(&vectors, FKT_TEST_VECTORS "/model/logits.safetensors"));
    snprintf(key, sizeof key, "%s.logits", name);
    want[0] = fkt_safetensors_find(vectors, key);
    snprintf(key, sizeof key, "%s.features", name);
    want[1] = fkt_safetensors_find(vectors, key);
    CHECK(want[0] && want[1] && want[1]->shape[1] == fkt_model_features(m));
    CHECK_OK(fkt_alloc(&rgb, (size_t)2 * size * size * 3));
    CHECK_OK(fkt_alloc(&got[0], (size_t)2 * fkt_model_classes(m)));
    CHECK_OK(fkt_alloc(&got[1], (size_t)2 * fkt_model_features(m)));
    for (uint32_t i = 0; i < 2; i++) golden_image(rgb + (size_t)i * size * size * 3, size, i);
    CHECK_OK(fkt_model_predict(m, rgb, 2, got[0], got[1], &options));
    for (int what = 0; what < 2; what++) {
        const size_t kept = want[what]->shape[1], row = what ? fkt_model_features(m) : fkt_model_classes(m);
        for (size_t i = 0; i < 2 * kept; i++) {
            float value;
            memcpy(&value, (const char *)want[what]->data + i * sizeof value, sizeof value);
            CHECK_NEAR(got[what][i / kept * row + i % kept], value, tolerance);
        }
    }
    fkt_free(rgb);
    fkt_free(got[0]);
    fkt_free(got[1]);
    fkt_model_free(m);
    fkt_safetensors_free(vectors);
    scratch_release(&scratch);
}

static void logits_and_features_are_torchvisions(void **state)
{
    (void)state;
    golden("resnet8", 32, 1e-5, FKT_LEARN_DTYPE_F32);
    golden("resnet18-cifar", 32, 1e-5, FKT_LEARN_DTYPE_F32);
    golden("resnet18-imagenet", 64, 1e-5, FKT_LEARN_DTYPE_F32);
    CHECK(fkt_alloc_live() == 0);
}

static void bfloat16_is_near(void **state)
{
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (!possible) return;
    golden("resnet8", 32, 0.03, FKT_LEARN_DTYPE_BF16);
    {
        const struct fkt_predict_options half = {.threads = 1, .dtype = FKT_LEARN_DTYPE_BF16};
        struct fkt_model *m = NULL;
        uint8_t rgb[16 * 16 * 3];
        float a[3], b[3];
        memset(rgb, 77, sizeof rgb);
        CHECK_OK(fkt_model_new(&m, &small));
        CHECK_OK(fkt_model_predict(m, rgb, 1, a, NULL, NULL));
        CHECK_OK(fkt_model_predict(m, rgb, 1, b, NULL, &half));
        CHECK(memcmp(a, b, sizeof a) != 0); /* it is not the other one */
        fkt_model_free(m);
    }
}

/* A map of more than 2^16 pixels is a batch of its own. */
static void large_images_come_one_by_one(void **state)
{
    struct fkt_model_spec spec = small;
    struct fkt_model *m = NULL;
    uint8_t *rgb = NULL;
    float logits[6];
    (void)state;
    spec.size = 264;
    CHECK_OK(fkt_model_new(&m, &spec));
    CHECK_OK(fkt_alloc(&rgb, (size_t)2 * 264 * 264 * 3));
    CHECK_OK(fkt_model_predict(m, rgb, 2, logits, NULL, NULL));
    assert_memory_equal(logits, logits + 3, 3 * sizeof *logits);
    fkt_free(rgb);
    fkt_model_free(m);
}

static void fill(uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < n; i++) rgb[i] = (uint8_t)(i * i * 31 + i * 7 + (i >> 8));
}

/* An image's result does not depend on the batch, its position, or on threads: bit for bit. */
static void an_image_is_alone(void **state)
{
    enum { N = 37, IMAGE = 16 * 16 * 3 };
    static uint8_t rgb[N * IMAGE];
    static float logits[N * 3], features[N * 64];
    struct fkt_predict_options options = {.threads = 1, .dtype = FKT_LEARN_DTYPE_F32};
    struct fkt_model *m = NULL;
    float one[3], its[64];
    (void)state;
    fill(rgb, sizeof rgb);
    CHECK_OK(fkt_model_new(&m, &small));
    CHECK_OK(fkt_model_predict(m, rgb, N, logits, features, &options));
    for (size_t i = 0; i < N; i += 5) {
        CHECK_OK(fkt_model_predict(m, rgb + i * IMAGE, 1, one, its, &options));
        CHECK(!memcmp(one, logits + 3 * i, sizeof one) && !memcmp(its, features + 64 * i, sizeof its));
    }
    for (options.threads = 2; options.threads < 5; options.threads++) {
        static float again[N * 3], seen[N * 64];
        memset(again, 0, sizeof again);
        CHECK_OK(fkt_model_predict(m, rgb, N, again, seen, &options));
        CHECK(!memcmp(again, logits, sizeof again) && !memcmp(seen, features, sizeof seen));
    }
    CHECK(memcmp(logits, logits + 3, 3 * sizeof *logits) != 0); /* images differ, and so do answers */
    CHECK_OK(fkt_model_predict(m, rgb, 0, NULL, NULL, NULL));
    CHECK_OK(fkt_model_predict(m, rgb, 1, one, NULL, NULL));
    CHECK(!memcmp(one, logits, sizeof one));
    fkt_model_free(m);
}

static void the_last_layer_is_applied_to_features(void **state)
{
    uint8_t rgb[16 * 16 * 3];
    float logits[3], features[64], want[3];
    struct fkt_model *m = NULL;
    struct fkt_model_tensor w, b;
    (void)state;
    fill(rgb, sizeof rgb);
    CHECK_OK(fkt_model_new(&m, &small));
    w = fkt_model_tensor(m, fkt_model_tensors(m) - 2);
    b = fkt_model_tensor(m, fkt_model_tensors(m) - 1);
    CHECK_OK(fkt_model_predict(m, rgb, 1, logits, features, NULL));
    for (int k = 0; k < 3; k++) {
        double sum = b.data[k];
        for (int f = 0; f < 64; f++) sum += (double)w.data[k * 64 + f] * features[f];
        CHECK_NEAR(logits[k], sum, 1e-6);
    }
    fkt_model_last_layer(m, features, 1, want);
    CHECK(!memcmp(want, logits, sizeof want));
    fkt_model_free(m);
}

static void written_weights_count_from_then_on(void **state)
{
    uint8_t rgb[16 * 16 * 3];
    float before[3], after[3], fresh[3];
    struct fkt_model *m = NULL, *copy = NULL;
    (void)state;
    fill(rgb, sizeof rgb);
    CHECK_OK(fkt_model_new(&m, &small));
    CHECK_OK(fkt_model_predict(m, rgb, 1, before, NULL, NULL));
    for (size_t i = 0; i < fkt_model_tensor(m, 0).count; i++) fkt_model_tensor(m, 0).data[i] *= 1.5F;
    fkt_model_changed(m);
    CHECK_OK(fkt_model_predict(m, rgb, 1, after, NULL, NULL));
    CHECK_OK(fkt_model_copy(&copy, m));
    CHECK_OK(fkt_model_predict(copy, rgb, 1, fresh, NULL, NULL));
    CHECK(memcmp(before, after, sizeof after) != 0 && !memcmp(after, fresh, sizeof after));
    fkt_model_free(m);
    fkt_model_free(copy);
    CHECK(fkt_alloc_live() == 0);
}

struct asker {
    const struct fkt_model *m;
    const uint8_t *rgb;
    float logits[20 * 3];
    fkt_status st;
};
static void *ask(void *ctx)
{
    struct asker *a = ctx;
    const struct fkt_predict_options options = {.threads = 1, .dtype = FKT_LEARN_DTYPE_F32};
    a->st = fkt_model_predict(a->m, a->rgb, 20, a->logits, NULL, &options);
    return NULL;
}

/* The engine is made while several threads need it. */
static void threads_share_a_model(void **state)
{
    static uint8_t rgb[20 * 16 * 16 * 3];
    static struct asker a[4];
    pthread_t t[4];
    struct fkt_model *m = NULL;
    (void)state;
    fill(rgb, sizeof rgb);
    CHECK_OK(fkt_model_new(&m, &small));
    for (int i = 0; i < 4; i++) {
        a[i] = (struct asker){.m = m, .rgb = rgb};
        CHECK(pthread_create(&t[i], NULL, ask, &a[i]) == 0);
    }
    for (int i = 0; i < 4; i++) CHECK(pthread_join(t[i], NULL) == 0);
    for (int i = 0; i < 4; i++) {
        CHECK(a[i].st == FKT_OK);
        CHECK(!memcmp(a[i].logits, a[0].logits, sizeof a[0].logits));
    }
    fkt_model_free(m);
}

static int stop_at_second(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    unsigned *calls = self;
    CHECK(!strcmp(what, "predicting") && done <= total && total == 40);
    return ++*calls == 2;
}

static void non_finite_results_and_stops_are_reported(void **state)
{
    static uint8_t rgb[40 * 16 * 16 * 3];
    static float logits[40 * 3];
    unsigned calls = 0;
    const struct fkt_progress progress = {stop_at_second, &calls};
    struct fkt_predict_options options = {.threads = 1, .dtype = FKT_LEARN_DTYPE_F32, .progress = &progress};
    struct fkt_model *m = NULL;
    (void)state;
    fill(rgb, sizeof rgb);
    CHECK_OK(fkt_model_new(&m, &small));
    CHECK_STATUS(fkt_model_predict(m, rgb, 40, logits, NULL, &options), FKT_E_STOPPED);
    CHECK(calls == 2);
    fkt_model_tensor(m, fkt_model_tensors(m) - 1).data[1] = INFINITY;
    fkt_model_changed(m);
    options.progress = NULL;
    CHECK_STATUS(fkt_model_predict(m, rgb, 40, logits, NULL, &options), FKT_E_NUMERIC);
    assert_string_equal(fkt_error_text(), "the model's output for image 0 is not finite");
    fkt_model_free(m);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_and_features_are_torchvisions),
        cmocka_unit_test(bfloat16_is_near),
        cmocka_unit_test(large_images_come_one_by_one),
        cmocka_unit_test(an_image_is_alone),
        cmocka_unit_test(the_last_layer_is_applied_to_features),
        cmocka_unit_test(written_weights_count_from_then_on),
        cmocka_unit_test(threads_share_a_model),
        cmocka_unit_test(non_finite_results_and_stops_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
