/* SPDX-License-Identifier: Apache-2.0 */
/* Backward by the input with fixed weights, in plain loops, operation by operation: against PyTorch
 * (tests/vectors/nn/frozen.md), and against central differences of the loops' own forward. */
#include "nn/ref/learn.h"

#include "tensor/safetensors.h"
#include "tests/support/check.h"

#define VECTORS FKT_TEST_VECTORS "/nn/frozen.safetensors"

struct example {
    char name[64];
    struct fkt_op op;
    struct fkt_ref_call call;
    float *x, *z, *y, *dy, *dx, *dz;
    float *weight, *bias, *mean, *var;
    double *scratch;
};

static size_t numbers(struct fkt_shape s, uint32_t n) { return (size_t)n * s.c * s.h * s.w; }

static const struct fkt_tensor *part(const struct fkt_safetensors *f, const char *name, const char *role)
{
    char full[128];
    snprintf(full, sizeof full, "%s/%s", name, role);
    return fkt_safetensors_find(f, full);
}

static float *copy(const struct fkt_safetensors *f, const char *name, const char *role)
{
    const struct fkt_tensor *t = part(f, name, role);
    float *x = NULL;
    if (!t) return NULL;
    CHECK_OK(fkt_alloc(&x, t->count));
    CHECK_OK(fkt_tensor_copy_f32(x, t));
    return x;
}

static struct fkt_shape shape(const struct fkt_tensor *t)
{
    CHECK(t && t->rank == 4);
    return (struct fkt_shape){(uint32_t)t->shape[1], (uint32_t)t->shape[2], (uint32_t)t->shape[3]};
}

static enum fkt_op_kind kind_of(const char *name)
{
    for (int k = 0; k < FKT_OP_KINDS; k++) {
        const char *have = fkt_op_name((enum fkt_op_kind)k);
        if (!strncmp(have, name, strlen(have)) && name[strlen(have)] == '/') return (enum fkt_op_kind)k;
    }
    fail_msg("'%s' is no operation", name);
    return FKT_OP_KINDS;
}

static void load(struct example *e, const struct fkt_safetensors *f, const char *name)
{
    struct fkt_ref_call *k = &e->call;
    int64_t n[8] = {0};
    *e = (struct example){0};
    snprintf(e->name, sizeof e->name, "%s", name);
    memcpy(n, part(f, name, "op")->data, part(f, name, "op")->count * sizeof *n);
    e->op = (struct fkt_op){.kind = kind_of(name),
                            .channels = (uint32_t)n[0],
                            .kernel = (uint32_t)n[1],
                            .stride = (uint32_t)n[2],
                            .pad = (uint32_t)n[3],
                            .groups = (uint32_t)n[4],
                            .pad_after = (uint32_t)n[7],
                            .factor = (uint32_t)n[5]};
    memcpy(e->op.value, part(f, name, "value")->data, sizeof e->op.value);
    k->op = &e->op;
    k->n = (uint32_t)n[6];
    k->x = shape(part(f, name, "x"));
    k->y = shape(part(f, name, "y"));
    k->a = e->x = copy(f, name, "x");
    k->b = e->z = copy(f, name, "z");
    k->z = e->z ? shape(part(f, name, "z")) : k->x;
    k->weight = e->weight = copy(f, name, "weight");
    k->bias = e->bias = copy(f, name, "bias");
    k->mean = e->mean = copy(f, name, "mean");
    k->var = e->var = copy(f, name, "var");
    e->dy = copy(f, name, "dy");
    CHECK_OK(fkt_alloc(&e->y, numbers(k->y, k->n)));
    CHECK_OK(fkt_alloc(&e->dx, numbers(k->x, k->n)));
    CHECK_OK(fkt_alloc(&e->dz, numbers(k->z, k->n)));
    CHECK_OK(fkt_alloc(&e->scratch, 2 * (size_t)k->x.h * k->x.w));
    k->out = e->y;
}

static void release(struct example *e)
{
    float *all[] = {e->x, e->z, e->y, e->dy, e->dx, e->dz, e->weight, e->bias, e->mean, e->var};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fkt_free(all[i]);
    fkt_free(e->scratch);
}

static void backward(struct example *e)
{
    const struct fkt_ref_back k = {
        .call = &e->call, .dy = e->dy, .da = e->dx, .db = e->z ? e->dz : NULL, .scratch = e->scratch};
    fkt_ref_backward(&k);
}

static void compare(const struct example *e, const struct fkt_safetensors *f, const char *role, const float *got)
{
    const struct fkt_tensor *t = part(f, e->name, role);
    float *want = copy(f, e->name, role);
    double largest = 1e-30;
    if (!want) fail_msg("no '%s/%s'", e->name, role);
    for (size_t i = 0; i < t->count; i++) largest = fmax(largest, fabs((double)want[i]));
    for (size_t i = 0; i < t->count; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-6 * largest))
            fail_msg("%s, %s %zu: got %.9g, want %.9g", e->name, role, i, (double)got[i], (double)want[i]);
    fkt_free(want);
}

static void check_vectors(struct example *e, const struct fkt_safetensors *f)
{
    fkt_ref_run(&e->call);
    compare(e, f, "y", e->y);
    backward(e);
    compare(e, f, "dx", e->dx);
    if (e->z) compare(e, f, "dz", e->dz);
    backward(e); /* a second reader: gradients add up */
    for (size_t i = 0; i < numbers(e->call.x, e->call.n); i++) e->dx[i] /= 2;
    for (size_t i = 0; e->z && i < numbers(e->call.z, e->call.n); i++) e->dz[i] /= 2;
    compare(e, f, "dx", e->dx);
    if (e->z) compare(e, f, "dz", e->dz);
}

typedef void (*checker)(struct example *e, const struct fkt_safetensors *f);

static void each_example(checker check)
{
    struct fkt_safetensors *f = NULL;
    int seen[FKT_OP_KINDS] = {0};
    CHECK_OK(fkt_safetensors_open(&f, VECTORS));
    for (size_t i = 0; i < fkt_safetensors_count(f); i++) {
        const char *name = fkt_safetensors_at(f, i)->name, *end = strrchr(name, '/');
        char base[64];
        struct example e;
        if (strcmp(end, "/dy") != 0) continue;
        snprintf(base, sizeof base, "%.*s", (int)(end - name), name);
        load(&e, f, base);
        check(&e, f);
        seen[e.op.kind]++;
        release(&e);
    }
    for (int k = 0; k < FKT_OP_KINDS; k++)
        if (!seen[k]) fail_msg("no example of '%s'", fkt_op_name((enum fkt_op_kind)k));
    CHECK(seen[FKT_OP_CONV] == 11 && seen[FKT_OP_RESIZE] == 8 && seen[FKT_OP_ATTENTION] == 4 &&
          seen[FKT_OP_GROUP_NORM] == 3);
    fkt_safetensors_free(f);
}

static void every_gradient_is_pytorchs(void **state)
{
    (void)state;
    each_example(check_vectors);
}

/* --- central differences ------------------------------------------------------------------------------------------ */

/* The number that is differentiated: <dy, forward>. */
static double height(struct example *e)
{
    double sum = 0;
    fkt_ref_run(&e->call);
    for (size_t i = 0; i < numbers(e->call.y, e->call.n); i++) sum += (double)e->dy[i] * e->y[i];
    return sum;
}

/* Slope of the height by *x. Two central differences, of h and h/2, cancel the third derivative. */
static double slope(struct example *e, float *x, float h)
{
    const float old = *x;
    double d[2];
    for (int k = 0; k < 2; k++, h /= 2) {
        double up, down;
        *x = old + h;
        up = height(e);
        *x = old - h;
        down = height(e);
        d[k] = (up - down) / ((double)(old + h) - (double)(old - h));
    }
    *x = old;
    return (4 * d[1] - d[0]) / 3;
}

/* Far from kinks: a step of h must not change the sign of a number, nor which one is the largest of a window. */
static int has_kinks(const struct example *e)
{
    return e->op.kind == FKT_OP_RELU || e->op.kind == FKT_OP_RELU6 || e->op.kind == FKT_OP_MAX_POOL ||
           e->op.kind == FKT_OP_ATTENTION;
}

/* Values are floats, so their sum has an error of some 1e-6 of its largest term; over a step of 1/64, 1e-4. What the
 * step itself adds is below that but for numbers of norms and attention that a step changes by a large part. */
static void check_slopes(struct example *e, float *x, const float *got, size_t n)
{
    const float h = 1.0F / 64;
    double largest = 1e-3;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)got[i]));
    for (size_t i = 0; i < n; i++) {
        const double want = slope(e, &x[i], h);
        if (!(fabs((double)got[i] - want) <= 2e-3 * largest))
            fail_msg("%s, %zu: got %.9g, slope %.9g", e->name, i, (double)got[i], want);
    }
}

static void check_differences(struct example *e, const struct fkt_safetensors *f)
{
    const size_t n = numbers(e->call.x, e->call.n);
    (void)f;
    for (size_t i = 0; has_kinks(e) && i < n; i++) /* all different, and multiples of 1/8 that are not 0 */
        e->x[i] = ((float)(i * 37 % 101) - 50.5F) / 8;
    backward(e);
    check_slopes(e, e->x, e->dx, n);
    if (e->z) check_slopes(e, e->z, e->dz, numbers(e->call.z, e->call.n));
}

static void every_gradient_is_a_slope(void **state)
{
    (void)state;
    each_example(check_differences);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_is_pytorchs),
        cmocka_unit_test(every_gradient_is_a_slope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
