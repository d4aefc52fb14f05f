/* SPDX-License-Identifier: Apache-2.0 */
/* Backward by the input with fixed weights, in plain loops, operation by operation: against PyTorch
 * (tests/vectors/nn/frozen.md), and against central differences of the loops' own forward. */
#include "nn/ref/learn.h"

#include "tests/support/op_vectors.h"

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

static void load(struct example *e, const struct fkt_safetensors *f, const char *name)
{
    struct fkt_ref_call *k = &e->call;
    *e = (struct example){0};
    snprintf(e->name, sizeof e->name, "%s", name);
    e->op = op_read(f, name, &k->n);
    k->op = &e->op;
    k->x = op_shape(op_part(f, name, "x"));
    k->y = op_shape(op_part(f, name, "y"));
    k->a = e->x = op_copy(f, name, "x");
    k->b = e->z = op_copy(f, name, "z");
    k->z = e->z ? op_shape(op_part(f, name, "z")) : k->x;
    k->weight = e->weight = op_copy(f, name, "weight");
    k->bias = e->bias = op_copy(f, name, "bias");
    k->mean = e->mean = op_copy(f, name, "mean");
    k->var = e->var = op_copy(f, name, "var");
    e->dy = op_copy(f, name, "dy");
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

static void check_vectors(struct example *e, const struct fkt_safetensors *f)
{
    fkt_ref_run(&e->call);
    op_compare(f, e->name, "y", e->y);
    backward(e);
    op_compare(f, e->name, "dx", e->dx);
    if (e->z) op_compare(f, e->name, "dz", e->dz);
    backward(e); /* a second reader: gradients add up */
    for (size_t i = 0; i < numbers(e->call.x, e->call.n); i++) e->dx[i] /= 2;
    for (size_t i = 0; e->z && i < numbers(e->call.z, e->call.n); i++) e->dz[i] /= 2;
    op_compare(f, e->name, "dx", e->dx);
    if (e->z) op_compare(f, e->name, "dz", e->dz);
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
