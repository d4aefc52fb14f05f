/* SPDX-License-Identifier: Apache-2.0 */
/* Learning in plain loops, operation by operation: against PyTorch (tests/vectors/nn/gradients.md), and every gradient
 * of every number against central differences of the loops' own forward. */
#include "nn/ref/learn.h"

#include "base/rng.h"
#include "tests/support/op_vectors.h"

#define VECTORS FKT_TEST_VECTORS "/nn/gradients.safetensors"

/* One operation with all its arrays, each of its own block. */
struct example {
    char name[64];
    struct fkt_op op;
    struct fkt_ref_call call;
    float *x, *z, *weight, *bias, *mean, *var, *y, *dy;
    float *dx, *dz, *dweight, *dbias;
    struct fkt_ref_moments *moments;
};

static size_t numbers(struct fkt_shape s, uint32_t n) { return (size_t)n * s.c * s.h * s.w; }

/* Forward as a learner does it. */
static void forward(struct example *e)
{
    if (e->op.kind == FKT_OP_BATCH_NORM) fkt_ref_batch_norm_learning(&e->call, e->moments);
    else fkt_ref_run(&e->call);
}

static void backward(struct example *e)
{
    const struct fkt_ref_back k = {.call = &e->call,
                                   .dy = e->dy,
                                   .da = e->dx,
                                   .db = e->dz,
                                   .dweight = e->dweight,
                                   .dbias = e->dbias,
                                   .moments = e->moments};
    fkt_ref_backward(&k);
}

static size_t weight_count(const struct example *e)
{
    struct fkt_shape x = e->call.x;
    if (e->op.kind == FKT_OP_CONV) return (size_t)e->op.channels * x.c * e->op.kernel * e->op.kernel;
    return e->op.kind == FKT_OP_LINEAR ? (size_t)e->op.channels * x.c * x.h * x.w : x.c;
}

/* Room for results and gradients; op, shapes and the arrays that go in are there already. */
static void prepare(struct example *e)
{
    struct fkt_ref_call *k = &e->call;
    k->op = &e->op;
    k->a = e->x;
    k->b = e->z;
    k->weight = e->weight;
    k->bias = e->bias;
    CHECK_OK(fkt_alloc(&e->y, numbers(k->y, k->n)));
    CHECK_OK(fkt_alloc(&e->dx, numbers(k->x, k->n)));
    CHECK_OK(fkt_alloc(&e->moments, k->x.c));
    if (e->z) CHECK_OK(fkt_alloc(&e->dz, numbers(k->z, k->n)));
    if (e->weight) CHECK_OK(fkt_alloc(&e->dweight, weight_count(e)));
    if (e->bias) CHECK_OK(fkt_alloc(&e->dbias, k->y.c));
    k->out = e->y;
}

static void release(struct example *e)
{
    float *all[] = {e->x, e->z, e->weight, e->bias, e->mean, e->var, e->y, e->dy, e->dx, e->dz, e->dweight, e->dbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fkt_free(all[i]);
    fkt_free(e->moments);
}

/* --- PyTorch ------------------------------------------------------------------------------------------------------ */

static void load(struct example *e, const struct fkt_safetensors *f, const char *name)
{
    *e = (struct example){0};
    snprintf(e->name, sizeof e->name, "%s", name);
    e->op = op_read(f, name, &e->call.n);
    e->call.x = op_shape(op_part(f, name, "x"));
    e->call.y = op_shape(op_part(f, name, "y"));
    e->x = op_copy(f, name, "x");
    e->z = op_copy(f, name, "z");
    e->call.z = e->z ? op_shape(op_part(f, name, "z")) : e->call.x;
    e->weight = op_copy(f, name, "weight");
    e->bias = op_copy(f, name, "bias");
    e->mean = op_copy(f, name, "mean");
    e->var = op_copy(f, name, "var");
    e->dy = op_copy(f, name, "dy");
    prepare(e);
}

static void check_vectors(struct example *e, const struct fkt_safetensors *f)
{
    forward(e);
    op_compare(f, e->name, "y", e->y);
    backward(e);
    op_compare(f, e->name, "dx", e->dx);
    if (e->z) op_compare(f, e->name, "dz", e->dz);
    if (e->weight) op_compare(f, e->name, "dweight", e->dweight);
    if (e->bias) op_compare(f, e->name, "dbias", e->dbias);
    backward(e); /* a second reader: inputs add up, weights do not */
    for (size_t i = 0; i < numbers(e->call.x, e->call.n); i++) e->dx[i] /= 2;
    for (size_t i = 0; e->z && i < numbers(e->call.z, e->call.n); i++) e->dz[i] /= 2;
    op_compare(f, e->name, "dx", e->dx);
    if (e->z) op_compare(f, e->name, "dz", e->dz);
    if (e->weight) op_compare(f, e->name, "dweight", e->dweight);
    if (e->bias) op_compare(f, e->name, "dbias", e->dbias);
    if (!e->mean) return;
    fkt_ref_move_statistics(e->mean, e->var, e->moments, e->call.x.c, (size_t)e->call.n * e->call.x.h * e->call.x.w,
                            (double)e->op.value[1]);
    op_compare(f, e->name, "new mean", e->mean);
    op_compare(f, e->name, "new var", e->var);
}

static void every_gradient_is_pytorchs(void **state)
{
    struct fkt_safetensors *f = NULL;
    int seen[FKT_OP_KINDS] = {0};
    (void)state;
    CHECK_OK(fkt_safetensors_open(&f, VECTORS));
    for (size_t i = 0; i < fkt_safetensors_count(f); i++) {
        const char *name = fkt_safetensors_at(f, i)->name, *end = strrchr(name, '/');
        char base[64];
        struct example e;
        if (strcmp(end, "/dy") != 0) continue;
        snprintf(base, sizeof base, "%.*s", (int)(end - name), name);
        load(&e, f, base);
        check_vectors(&e, f);
        seen[e.op.kind]++;
        release(&e);
    }
    CHECK(seen[FKT_OP_CONV] == 8 && seen[FKT_OP_LINEAR] == 2 && seen[FKT_OP_RELU] == 1 && seen[FKT_OP_ADD] == 1);
    CHECK(seen[FKT_OP_BATCH_NORM] == 3 && seen[FKT_OP_MAX_POOL] == 5 && seen[FKT_OP_MEAN] == 1);
    fkt_safetensors_free(f);
}

/* --- central differences ------------------------------------------------------------------------------------------ */

static float *random_numbers(size_t n, struct fkt_rng *r)
{
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, n));
    for (size_t i = 0; i < n; i++) x[i] = (float)(2 * fkt_rng_unit(r) - 1);
    return x;
}

/* The number that is differentiated: <dy, forward>. */
static double height(struct example *e)
{
    double sum = 0;
    forward(e);
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

static void check_slopes(struct example *e, const char *what, float *x, const float *got, size_t n, float h)
{
    for (size_t i = 0; i < n; i++) {
        double want = slope(e, &x[i], h);
        if (!(fabs((double)got[i] - want) <= 1e-4))
            fail_msg("%s, %s %zu: got %.9g, slope %.9g", e->name, what, i, (double)got[i], want);
    }
}

/* What is linear in the step has no error but rounding (2e-7 of a height around 3, over a step of 1/8: 5e-6); batch
 * norms have h^4 times the fifth derivative besides, some 1e-5. Numbers are kept farther than h from the kinks of ReLU
 * and max-pool: multiples of 1/2, shifted by 1/4. */
static void check_differences(struct example *e, uint64_t seed)
{
    const float h = 0.125F;
    struct fkt_rng r;
    size_t in = numbers(e->call.x, e->call.n);
    fkt_rng_init(&r, seed, 3);
    e->x = random_numbers(in, &r);
    if (e->op.kind == FKT_OP_RELU)
        for (size_t i = 0; i < in; i++) e->x[i] = floorf(4 * e->x[i]) / 2 + 0.25F;
    if (e->op.kind == FKT_OP_MAX_POOL) /* all different: a stride through the whole range */
        for (size_t i = 0; i < in; i++) e->x[i] = (float)(i * 37 % 101) / 2;
    if (fkt_op_reads_two(&e->op)) e->z = random_numbers(in, &r);
    if (e->op.weight != FKT_NO_SLOT) e->weight = random_numbers(weight_count(e), &r);
    if (e->op.bias != FKT_NO_SLOT) e->bias = random_numbers(e->call.y.c, &r);
    e->dy = random_numbers(numbers(e->call.y, e->call.n), &r);
    prepare(e);
    forward(e);
    backward(e);
    check_slopes(e, "dx", e->x, e->dx, in, h);
    if (e->z) check_slopes(e, "dz", e->z, e->dz, in, h);
    if (e->weight) check_slopes(e, "dweight", e->weight, e->dweight, weight_count(e), h);
    if (e->bias) check_slopes(e, "dbias", e->bias, e->dbias, e->call.y.c, h);
    release(e);
}

static struct example plain(enum fkt_op_kind kind, struct fkt_shape x, struct fkt_shape y)
{
    struct example e = {.op = {.kind = kind, .stride = 1, .weight = FKT_NO_SLOT, .bias = FKT_NO_SLOT}};
    snprintf(e.name, sizeof e.name, "%s", fkt_op_name(kind));
    e.call = (struct fkt_ref_call){.n = 2, .x = x, .z = x, .y = y};
    return e;
}

static struct example windowed(enum fkt_op_kind kind, struct fkt_shape x, uint32_t channels, const uint32_t w[3])
{
    struct example e = plain(kind, x, (struct fkt_shape){channels, 0, 0});
    e.op.channels = channels;
    e.op.kernel = w[0];
    e.op.stride = w[1];
    e.op.pad = w[2];
    e.op.groups = 1;
    e.call.y.h = (x.h + 2 * w[2] - w[0]) / w[1] + 1;
    e.call.y.w = (x.w + 2 * w[2] - w[0]) / w[1] + 1;
    if (kind == FKT_OP_CONV) e.op.weight = e.op.bias = 0;
    return e;
}

static void convolutions_have_their_slopes(void **state)
{
    static const uint32_t w[][3] = {{3, 1, 1}, {3, 2, 1}, {1, 2, 0}, {7, 2, 3}, {2, 3, 2}};
    (void)state;
    for (uint64_t i = 0; i < sizeof w / sizeof *w; i++) {
        struct example e = windowed(FKT_OP_CONV, (struct fkt_shape){2, 5, 4}, 3, w[i]);
        check_differences(&e, i);
    }
}

static void the_rest_has_its_slopes(void **state)
{
    static const struct fkt_shape x = {3, 4, 3};
    static const uint32_t pools[][3] = {{3, 2, 1}, {2, 2, 0}, {3, 1, 1}};
    struct example e = plain(FKT_OP_LINEAR, x, (struct fkt_shape){4, 1, 1});
    (void)state;
    e.op.channels = 4;
    e.op.weight = e.op.bias = 0;
    check_differences(&e, 1);
    e = plain(FKT_OP_RELU, x, x), check_differences(&e, 2);
    e = plain(FKT_OP_ADD, x, x), check_differences(&e, 3);
    e = plain(FKT_OP_MEAN, x, (struct fkt_shape){3, 1, 1}), check_differences(&e, 4);
    e = plain(FKT_OP_BATCH_NORM, x, x);
    e.op.weight = e.op.bias = 0;
    e.op.value[0] = 0.01F;
    check_differences(&e, 5);
    for (uint64_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        e = windowed(FKT_OP_MAX_POOL, (struct fkt_shape){2, 5, 4}, 2, pools[i]);
        check_differences(&e, i);
    }
}

/* The network's input needs no gradient: none is asked for, none is written. */
static void no_gradient_of_the_input_is_needed(void **state)
{
    struct example e = windowed(FKT_OP_CONV, (struct fkt_shape){2, 4, 4}, 2, (const uint32_t[]){3, 1, 1});
    struct fkt_rng r;
    float weight[36], *dx;
    (void)state;
    fkt_rng_init(&r, 8, 0);
    e.call.n = 1;
    e.x = random_numbers(32, &r);
    e.weight = random_numbers(36, &r);
    e.bias = random_numbers(2, &r);
    e.dy = random_numbers(32, &r);
    prepare(&e);
    forward(&e);
    backward(&e);
    memcpy(weight, e.dweight, sizeof weight);
    dx = e.dx;
    e.dx = NULL;
    backward(&e);
    assert_memory_equal(e.dweight, weight, sizeof weight);
    e.dx = dx;
    release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_is_pytorchs),
        cmocka_unit_test(convolutions_have_their_slopes),
        cmocka_unit_test(the_rest_has_its_slopes),
        cmocka_unit_test(no_gradient_of_the_input_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
