/* SPDX-License-Identifier: Apache-2.0 */
/* The plain backend against PyTorch: every operation, from tests/vectors/nn/ops.safetensors (see ops.md there). */
#include "nn/act.h"
#include "nn/engine.h"
#include "nn/ref/ops.h"

#include "tests/support/check.h"

#define VECTORS FKT_TEST_VECTORS "/nn/ops.safetensors"

static int any(const char *name)
{
    (void)name;
    return 1;
}

/* One case of the file: a network of one operation, its weights, and what PyTorch made of it. */
struct example {
    const struct fkt_safetensors *file;
    char name[64]; /* "convolution/3x3" */
    struct fkt_op op;
    uint32_t batch;
    struct fkt_shape x;
    struct fkt_net net;
    struct fkt_weights *weights;
};

static const struct fkt_tensor *part(const struct example *e, const char *role)
{
    char name[128];
    snprintf(name, sizeof name, "%s/%s", e->name, role);
    return fkt_safetensors_find(e->file, name);
}

static uint32_t slot(struct example *e, const char *role)
{
    const struct fkt_tensor *t = part(e, role);
    uint32_t d[4] = {0};
    char name[128];
    if (!t) return FKT_NO_SLOT;
    CHECK(t->rank <= 4);
    for (unsigned i = 0; i < t->rank; i++) d[i] = (uint32_t)t->shape[i];
    snprintf(name, sizeof name, "%s/%s", e->name, role);
    return fkt_net_slot(&e->net, name, d[0], d[1], d[2], d[3]);
}

static struct fkt_shape shape(const struct fkt_tensor *t)
{
    CHECK(t->rank == 4);
    return (struct fkt_shape){(uint32_t)t->shape[1], (uint32_t)t->shape[2], (uint32_t)t->shape[3]};
}

static enum fkt_op_kind kind_of(const char *name)
{
    const char *end = strchr(name, '/');
    for (int k = 0; k < FKT_OP_KINDS; k++) {
        const char *have = fkt_op_name((enum fkt_op_kind)k);
        if (strlen(have) == (size_t)(end - name) && !strncmp(have, name, strlen(have))) return (enum fkt_op_kind)k;
    }
    fail_msg("'%s' is no operation", name);
    return FKT_OP_KINDS;
}

static void begin(struct example *e, const struct fkt_safetensors *file, const char *result)
{
    int64_t numbers[8] = {0};
    const struct fkt_safetensors *files[1] = {file};
    *e = (struct example){.file = file};
    snprintf(e->name, sizeof e->name, "%.*s", (int)(strlen(result) - 2), result);
    memcpy(numbers, part(e, "op")->data, part(e, "op")->count * sizeof *numbers);
    e->op.kind = kind_of(e->name);
    e->op.channels = (uint32_t)numbers[0];
    e->op.kernel = (uint32_t)numbers[1];
    e->op.stride = (uint32_t)numbers[2];
    e->op.pad = (uint32_t)numbers[3];
    e->op.groups = (uint32_t)numbers[4];
    e->op.factor = (uint32_t)numbers[5];
    e->batch = (uint32_t)numbers[6];
    e->op.pad_after = (uint32_t)numbers[7];
    memcpy(e->op.value, part(e, "value")->data, sizeof e->op.value);
    e->x = shape(part(e, "x"));
    fkt_net_init(&e->net, e->x.c);
    e->op.weight = slot(e, "weight");
    e->op.bias = slot(e, "bias");
    e->op.mean = slot(e, "mean");
    e->op.var = slot(e, "var");
    fkt_net_add(&e->net, &e->op);
    CHECK_OK(fkt_weights_bind(&e->weights, &e->net, files, 1, any, NULL));
}

static void end(struct example *e)
{
    fkt_weights_free(e->weights);
    fkt_net_clear(&e->net);
}

static float *numbers_of(const struct fkt_tensor *t)
{
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, t->count));
    CHECK_OK(fkt_tensor_copy_f32(x, t));
    return x;
}

static void compare(const struct example *e, const float *got)
{
    const struct fkt_tensor *t = part(e, "y");
    float *want = numbers_of(t);
    double largest = 0;
    for (size_t i = 0; i < t->count; i++) largest = fmax(largest, fabs((double)want[i]));
    for (size_t i = 0; i < t->count; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-6 * fmax(largest, 1e-30)))
            fail_msg("%s, number %zu: got %.9g, want %.9g", e->name, i, (double)got[i], (double)want[i]);
    fkt_free(want);
}

static void check_one(const struct example *e)
{
    struct fkt_engine_spec spec = {.batch = e->batch, .height = e->x.h, .width = e->x.w};
    struct fkt_engine *engine = NULL;
    const struct fkt_tensor *y = part(e, "y");
    struct fkt_shape out = shape(y), have;
    float *x = numbers_of(part(e, "x")), *got = NULL;
    CHECK_OK(fkt_alloc(&got, y->count));
    CHECK_OK(fkt_engine_new(&engine, &fkt_backend_ref, &e->net, e->weights, &spec));
    have = fkt_engine_output(engine);
    CHECK(have.c == out.c && have.h == out.h && have.w == out.w);
    CHECK_OK(fkt_engine_run(engine, x, e->batch, got));
    compare(e, got);
    fkt_engine_free(engine);
    fkt_free(got);
    fkt_free(x);
}

/* A network has one input; the loops themselves take two. */
static void check_two(const struct example *e)
{
    const struct fkt_tensor *y = part(e, "y");
    struct fkt_ref_call k = {.op = &e->op, .n = e->batch, .x = e->x, .z = shape(part(e, "z")), .y = shape(y)};
    float *a = numbers_of(part(e, "x")), *b = numbers_of(part(e, "z")), *got = NULL;
    CHECK_OK(fkt_alloc(&got, y->count));
    k.a = a;
    k.b = b;
    k.out = got;
    fkt_ref_run(&k);
    compare(e, got);
    fkt_free(a);
    fkt_free(b);
    fkt_free(got);
}

static void each_result(const char *path, int seen[FKT_OP_KINDS])
{
    struct fkt_safetensors *file = NULL;
    CHECK_OK(fkt_safetensors_open(&file, path));
    for (size_t i = 0; i < fkt_safetensors_count(file); i++) {
        const char *name = fkt_safetensors_at(file, i)->name;
        struct example e;
        if (strcmp(name + strlen(name) - 2, "/y") != 0) continue;
        begin(&e, file, name);
        seen[e.op.kind]++;
        if (part(&e, "z")) check_two(&e);
        else check_one(&e);
        end(&e);
    }
    fkt_safetensors_free(file);
}

static void every_operation_is_pytorchs(void **state)
{
    int seen[FKT_OP_KINDS] = {0};
    (void)state;
    each_result(VECTORS, seen);
    each_result(FKT_TEST_VECTORS "/nn/frozen.safetensors", seen);
    for (int k = 0; k < FKT_OP_KINDS; k++)
        if (!seen[k]) fail_msg("no example of %s", fkt_op_name((enum fkt_op_kind)k));
}

/* With bfloat16: input, matrix and result are rounded, nothing between; vectors are not. */
static void bfloat16_rounds_what_it_says(void **state)
{
    struct fkt_safetensors *file = NULL;
    struct fkt_engine_spec spec = {.precision = FKT_PRECISION_BF16};
    struct fkt_engine *engine = NULL;
    struct example e;
    float *x, *w, *b, *got = NULL;
    size_t count;
    (void)state;
    CHECK_OK(fkt_safetensors_open(&file, VECTORS));
    begin(&e, file, "convolution/depthwise/y");
    x = numbers_of(part(&e, "x"));
    w = numbers_of(part(&e, "weight"));
    b = numbers_of(part(&e, "bias"));
    spec.batch = e.batch;
    spec.height = e.x.h;
    spec.width = e.x.w;
    count = part(&e, "y")->count;
    CHECK_OK(fkt_alloc(&got, count));
    CHECK_OK(fkt_engine_new(&engine, &fkt_backend_ref, &e.net, e.weights, &spec));
    CHECK_OK(fkt_engine_run(engine, x, e.batch, got));
    for (size_t i = 0; i < part(&e, "x")->count; i++) x[i] = fkt_from_bf16(fkt_bf16(x[i]));
    for (size_t i = 0; i < part(&e, "weight")->count; i++) w[i] = fkt_from_bf16(fkt_bf16(w[i]));
    for (size_t i = 0; i < count; i++) {
        size_t px = i % e.x.w, py = i / e.x.w % e.x.h, c = i / ((size_t)e.x.w * e.x.h) % e.x.c;
        double sum = (double)b[c];
        for (size_t ky = 0; ky < 3; ky++)
            for (size_t kx = 0; kx < 3; kx++)
                if (py + ky - 1 < e.x.h && px + kx - 1 < e.x.w)
                    sum += (double)w[c * 9 + ky * 3 + kx] * (double)x[i + (ky - 1) * e.x.w + kx - 1];
        CHECK(fkt_from_bf16(fkt_bf16(got[i])) == got[i]); /* is one */
        CHECK_NEAR((double)got[i], sum, fabs(sum) / 256 + 1e-7);
    }
    CHECK(fkt_engine_facts(engine)->convolutions == 1);
    fkt_engine_free(engine);
    fkt_free(got);
    fkt_free(x);
    fkt_free(w);
    fkt_free(b);
    end(&e);
    fkt_safetensors_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_pytorchs),
        cmocka_unit_test(bfloat16_rounds_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
