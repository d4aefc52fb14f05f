/* SPDX-License-Identifier: Apache-2.0 */
/* The loss against PyTorch (tests/vectors/nn/gradients.md), against its own slope, and everything that is refused. */
#include "nn/loss.h"

#include "tensor/safetensors.h"
#include "tests/support/check.h"

#define VECTORS FKT_TEST_VECTORS "/nn/gradients.safetensors"

enum { ROWS = 6, CLASSES = 10, NUMBERS = ROWS * CLASSES };

static const struct fkt_tensor *part(const struct fkt_safetensors *f, const char *name, const char *role)
{
    char full[128];
    const struct fkt_tensor *t;
    snprintf(full, sizeof full, "%s/%s", name, role);
    t = fkt_safetensors_find(f, full);
    if (!t) fail_msg("no '%s'", full);
    return t;
}

static void check_case(const struct fkt_safetensors *f, const char *name)
{
    float z[NUMBERS], teacher[NUMBERS], want[NUMBERS], got[NUMBERS];
    uint32_t label[ROWS];
    int32_t right;
    double value[3], loss_want, loss;
    size_t hits;
    struct fkt_loss k;
    CHECK(part(f, name, "z")->count == NUMBERS && part(f, name, "label")->count == ROWS);
    CHECK_OK(fkt_tensor_copy_f32(z, part(f, name, "z")));
    CHECK_OK(fkt_tensor_copy_f32(teacher, part(f, name, "teacher")));
    CHECK_OK(fkt_tensor_copy_f32(want, part(f, name, "dz")));
    memcpy(label, part(f, name, "label")->data, sizeof label);
    memcpy(value, part(f, name, "value")->data, sizeof value);
    memcpy(&loss_want, part(f, name, "loss")->data, sizeof loss_want);
    memcpy(&right, part(f, name, "hits")->data, sizeof right);
    k = (struct fkt_loss){value[0], value[1], value[2]};
    CHECK_OK(fkt_loss_softmax(&k, z, label, value[2] > 0 ? teacher : NULL, ROWS, CLASSES, &loss, got, &hits));
    CHECK_REL(loss, loss_want, 1e-12);
    CHECK(hits == (size_t)right);
    for (size_t i = 0; i < NUMBERS; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-7))
            fail_msg("%s, number %zu: got %.9g, want %.9g", name, i, (double)got[i], (double)want[i]);
    CHECK_OK(fkt_loss_softmax(&k, z, label, teacher, ROWS, CLASSES, &loss, NULL, NULL)); /* neither is needed */
    CHECK_REL(loss, loss_want, 1e-12);
}

static void losses_are_pytorchs(void **state)
{
    struct fkt_safetensors *f = NULL;
    size_t seen = 0;
    (void)state;
    CHECK_OK(fkt_safetensors_open(&f, VECTORS));
    for (size_t i = 0; i < fkt_safetensors_count(f); i++) {
        const char *name = fkt_safetensors_at(f, i)->name;
        char base[128];
        if (strncmp(name, "loss/", 5) != 0 || strcmp(name + strlen(name) - 2, "/z") != 0) continue;
        snprintf(base, sizeof base, "%.*s", (int)(strlen(name) - 2), name);
        check_case(f, base);
        seen++;
    }
    CHECK(seen == 6);
    fkt_safetensors_free(f);
}

/* Central differences with a step of 2^-10, exact in float; the third derivative times its square is below 1e-6, the
 * loss is a double, and so 1e-5 is ample. */
static void gradient_is_the_slope(void **state)
{
    static const struct fkt_loss kinds[] = {{0, 1, 0}, {0.1, 1, 0}, {0.1, 3, 0.4}, {0, 0.7, 1}};
    const float h = 1.0F / 1024;
    (void)state;
    for (size_t q = 0; q < sizeof kinds / sizeof *kinds; q++) {
        float z[12] = {0.5F, -1, 2, 0.25F, 0, 0, 0, 0, 3, -3, 1, 1}, t[12] = {1, 2, -1, 0, 2, 1, 0, -2, 0, 1, 0.5F, 2};
        const uint32_t label[3] = {2, 0, 1};
        float dz[12];
        double loss, up, down;
        CHECK_OK(fkt_loss_softmax(&kinds[q], z, label, t, 3, 4, &loss, dz, NULL));
        for (int i = 0; i < 12; i++) {
            const float old = z[i];
            z[i] = old + h;
            CHECK_OK(fkt_loss_softmax(&kinds[q], z, label, t, 3, 4, &up, NULL, NULL));
            z[i] = old - h;
            CHECK_OK(fkt_loss_softmax(&kinds[q], z, label, t, 3, 4, &down, NULL, NULL));
            z[i] = old;
            CHECK_NEAR((double)dz[i], (up - down) / (2 * (double)h), 1e-5);
        }
    }
}

static void ties_go_to_the_first(void **state)
{
    const struct fkt_loss k = {0, 1, 0};
    const float z[6] = {1, 1, 0, 2, 5, 5};
    double loss;
    size_t hits;
    (void)state;
    CHECK_OK(fkt_loss_softmax(&k, z, (const uint32_t[]){0, 1}, NULL, 2, 3, &loss, NULL, &hits));
    CHECK(hits == 2);
    CHECK_OK(fkt_loss_softmax(&k, z, (const uint32_t[]){1, 2}, NULL, 2, 3, &loss, NULL, &hits));
    CHECK(hits == 0);
}

static void softmax_sums_to_one(void **state)
{
    const float z[6] = {1e4F, 1e4F, -1e4F, logf(1), logf(2), logf(5)};
    float p[6];
    (void)state;
    fkt_softmax(z, 2, 3, p);
    CHECK(p[0] == 0.5F && p[1] == 0.5F && p[2] == 0);
    CHECK_NEAR((double)p[3], 0.125, 1e-7);
    CHECK_NEAR((double)p[4], 0.25, 1e-7);
    CHECK_NEAR((double)p[5], 0.625, 1e-7);
}

static void refuse(struct fkt_loss k, const float *teacher, size_t n, size_t classes, const char *why)
{
    static const float z[4] = {0, 1, 2, 3};
    static const uint32_t label[4] = {0};
    double loss = 7;
    CHECK_STATUS(fkt_loss_softmax(&k, z, label, teacher, n, classes, &loss, NULL, NULL), FKT_E_ARG);
    if (!strstr(fkt_error_text(), why)) fail_msg("'%s' does not say '%s'", fkt_error_text(), why);
    CHECK(isnan(loss));
}

static void bad_input_is_named(void **state)
{
    const struct fkt_loss plain = {0, 1, 0}, taught = {0, 2, 0.5};
    float z[6] = {0}, t[6] = {0};
    double loss;
    (void)state;
    refuse((struct fkt_loss){-0.1, 1, 0}, NULL, 2, 2, "smoothing");
    refuse((struct fkt_loss){1.1, 1, 0}, NULL, 2, 2, "smoothing");
    refuse((struct fkt_loss){NAN, 1, 0}, NULL, 2, 2, "smoothing");
    refuse((struct fkt_loss){0, 1, -0.1}, z, 2, 2, "share");
    refuse((struct fkt_loss){0, 1, 1.1}, z, 2, 2, "share");
    refuse((struct fkt_loss){0, 1, NAN}, z, 2, 2, "share");
    refuse((struct fkt_loss){0, 0, 0.5}, z, 2, 2, "temperature");
    refuse((struct fkt_loss){0, NAN, 0.5}, z, 2, 2, "temperature");
    refuse((struct fkt_loss){0, INFINITY, 0.5}, z, 2, 2, "temperature");
    refuse((struct fkt_loss){0, 1, 0.5}, NULL, 2, 2, "there is no teacher");
    refuse(plain, NULL, 0, 2, "at least one image");
    refuse(plain, NULL, 2, 0, "at least one image");
    CHECK_STATUS(fkt_loss_softmax(&plain, z, (const uint32_t[]){2, 3}, NULL, 2, 3, &loss, NULL, NULL), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "label 3 of row 1") && strstr(fkt_error_text(), "3 classes"));
    z[4] = NAN;
    CHECK_STATUS(fkt_loss_softmax(&plain, z, (const uint32_t[]){0, 0}, NULL, 2, 3, &loss, NULL, NULL), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "logits of row 1"));
    z[4] = -INFINITY;
    CHECK_STATUS(fkt_loss_softmax(&plain, z, (const uint32_t[]){0, 0}, NULL, 2, 3, &loss, NULL, NULL), FKT_E_NUMERIC);
    z[4] = 0;
    t[0] = NAN;
    CHECK_STATUS(fkt_loss_softmax(&taught, z, (const uint32_t[]){0, 0}, t, 2, 3, &loss, NULL, NULL), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "teacher's logits of row 0"));
    CHECK_OK(fkt_loss_softmax(&plain, z, (const uint32_t[]){0, 0}, t, 2, 3, &loss, NULL, NULL)); /* it is not read */
    CHECK_NEAR(loss, log(3), 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_pytorchs),  cmocka_unit_test(gradient_is_the_slope),
        cmocka_unit_test(ties_go_to_the_first), cmocka_unit_test(softmax_sums_to_one),
        cmocka_unit_test(bad_input_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
