/* SPDX-License-Identifier: Apache-2.0 */
/* An engine: batches split and padded, workspaces reused, many threads at once. A test backend counts its calls, and
 * the plain backend shows that an image's result depends on the image alone. */
#include "nn/engine.h"

#include "base/rng.h"
#include "base/threads.h"
#include "tests/support/check.h"

#include <stdatomic.h>

/* Every number plus one; remembers the largest place in a batch where a number was not zero. */
static atomic_int plans, plans_freed, workspaces, workspaces_freed, runs, shared, last_used, fail_runs;
struct counting {
    size_t each, batch;
};

static fkt_status count_plan(void **plan, const struct fkt_net *net, const struct fkt_shape *shapes,
                             const struct fkt_weights *weights, const struct fkt_engine_spec *spec,
                             struct fkt_engine_facts *facts)
{
    struct counting *c = NULL;
    fkt_status st;
    (void)net, (void)weights;
    FKT_TRY(fkt_alloc(&c, 1));
    c->each = (size_t)shapes[0].c * shapes[0].h * shapes[0].w;
    c->batch = spec->batch;
    facts->packed_bytes = 7;
    plans++;
    *plan = c;
out:
    return st;
}

static fkt_status count_workspace(void **workspace, const void *plan)
{
    atomic_int *busy = NULL;
    fkt_status st = fkt_alloc(&busy, 1);
    (void)plan;
    workspaces++;
    *workspace = busy;
    return st;
}

static fkt_status count_run(const void *plan, void *workspace, const float *in, float *out)
{
    const struct counting *c = plan;
    atomic_int *busy = workspace;
    int used = -1;
    if (atomic_exchange(busy, 1)) shared++; /* another thread uses this workspace */
    runs++;
    for (size_t i = 0; i < c->batch * c->each; i++) {
        if (fabsf(in[i]) > 0) used = (int)(i / c->each);
        out[i] = in[i] + 1;
    }
    last_used = used;
    atomic_store(busy, 0);
    return fail_runs ? fkt_fail(FKT_E_NUMERIC, "asked to") : FKT_OK;
}

static void count_workspace_free(void *workspace)
{
    workspaces_freed++;
    fkt_free(workspace);
}

static void count_plan_free(void *plan)
{
    plans_freed++;
    fkt_free(plan);
}

static const struct fkt_backend counter = {.name = "counter",
                                           .plan = count_plan,
                                           .workspace = count_workspace,
                                           .run = count_run,
                                           .workspace_free = count_workspace_free,
                                           .plan_free = count_plan_free};

enum { SIDE = 2, EACH = 3 * SIDE * SIDE, BATCH = 4 };
static const struct fkt_engine_spec small = {.batch = BATCH, .height = SIDE, .width = SIDE};

static int reset(void **state)
{
    (void)state;
    plans = plans_freed = workspaces = workspaces_freed = runs = shared = fail_runs = 0;
    return 0;
}

static void batches_are_cut_and_filled_up(void **state)
{
    struct fkt_engine *e = NULL;
    struct fkt_net n;
    float in[11 * EACH], out[11 * EACH + 1];
    (void)state;
    fkt_net_init(&n, 3);
    fkt_net_plain(&n, FKT_OP_RELU, 0, 0, 0);
    CHECK_OK(fkt_engine_new(&e, &counter, &n, NULL, &small));
    CHECK(fkt_engine_facts(e)->packed_bytes == 7 && fkt_engine_output(e).c == 3);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) in[i] = (float)(i + 1);
    for (size_t count = 0; count <= 11; count++) {
        for (size_t i = 0; i < sizeof out / sizeof *out; i++) out[i] = -7;
        runs = 0;
        CHECK_OK(fkt_engine_run(e, in, count, out));
        CHECK(runs == (int)((count + BATCH - 1) / BATCH));
        if (count)
            CHECK(last_used == (int)((count - 1) % BATCH)); /* zeros after the last image, also in a reused workspace */
        for (size_t i = 0; i < count * EACH; i++) CHECK(out[i] == (float)(i + 2));
        for (size_t i = count * EACH; i < sizeof out / sizeof *out; i++) CHECK(out[i] == -7);
    }
    CHECK(workspaces == 1); /* one thread, one workspace */
    CHECK_OK(fkt_engine_run(e, NULL, 0, NULL));
    fkt_engine_free(e);
    CHECK(plans == 1 && plans_freed == 1 && workspaces_freed == 1);
    fkt_engine_free(NULL);
    fkt_net_clear(&n);
}

static void no_images_need_no_workspace(void **state)
{
    struct fkt_engine *e = NULL;
    struct fkt_net n;
    (void)state;
    fkt_net_init(&n, 3);
    CHECK_OK(fkt_engine_new(&e, &counter, &n, NULL, &small));
    CHECK_OK(fkt_engine_run(e, NULL, 0, NULL));
    CHECK(workspaces == 0 && runs == 0);
    fkt_engine_free(e);
    fkt_net_clear(&n);
}

static void failures_come_back_and_the_workspace_too(void **state)
{
    struct fkt_engine *e = NULL;
    struct fkt_net n;
    float in[BATCH * EACH] = {0}, out[BATCH * EACH];
    (void)state;
    fkt_net_init(&n, 3);
    CHECK_OK(fkt_engine_new(&e, &counter, &n, NULL, &small));
    fail_runs = 1;
    for (size_t count = 1; count <= BATCH; count++) CHECK_STATUS(fkt_engine_run(e, in, count, out), FKT_E_NUMERIC);
    assert_string_equal(fkt_error_text(), "asked to");
    fail_runs = 0;
    CHECK_OK(fkt_engine_run(e, in, 1, out));
    CHECK(workspaces == 1);
    fkt_engine_free(e);
    fkt_net_clear(&n);
}

static void what_cannot_be_is_refused(void **state)
{
    struct fkt_engine_spec spec = small;
    struct fkt_engine *e = NULL;
    struct fkt_net n;
    (void)state;
    fkt_net_init(&n, 3);
    spec.batch = 0;
    CHECK_STATUS(fkt_engine_new(&e, &counter, &n, NULL, &spec), FKT_E_ARG);
    spec.batch = 4097;
    CHECK_STATUS(fkt_engine_new(&e, &counter, &n, NULL, &spec), FKT_E_ARG);
    spec = small;
    spec.width = 0;
    CHECK_STATUS(fkt_engine_new(&e, &counter, &n, NULL, &spec), FKT_E_ARG);
    fkt_net_plain(&n, FKT_OP_GLU, 0, 0, 0); /* three channels have no halves */
    CHECK_STATUS(fkt_engine_new(&e, &counter, &n, NULL, &small), FKT_E_ARG);
    CHECK(!e && plans == plans_freed);
    fkt_net_clear(&n);
}

/* A network with every kind of mixing between pixels and channels, and no weights. */
static void build_mixing(struct fkt_net *n)
{
    struct fkt_op attention = {.kind = FKT_OP_ATTENTION, .groups = 1, .value = {1e-5F, 0}};
    uint32_t a, b;
    attention.weight = attention.bias = attention.mean = attention.var = FKT_NO_SLOT;
    fkt_net_init(n, 3);
    a = fkt_net_move(n, FKT_OP_UNSHUFFLE, 0, 2);
    attention.in[0] = a;
    b = fkt_net_add(n, &attention);
    b = fkt_net_move(n, FKT_OP_REPEAT, b, 12);
    b = fkt_net_plain(n, FKT_OP_ADD, a, b, 0);
    b = fkt_net_plain(n, FKT_OP_GLU, b, 0, 0);
    fkt_net_plain(n, FKT_OP_SOFT_CLAMP, b, 0, 3);
    CHECK_OK(fkt_net_status(n));
}

enum { IMAGES = 37, LARGE = 8, IN = 3 * LARGE * LARGE, OUT = 6 * LARGE * LARGE / 4, CALLS = 64 };

struct rate_limit {
    struct fkt_engine *e;
    const float *in, *want;
};

/* Some run of images, in one call: the bits must be those of the whole set in one call. */
static fkt_status ask(void *ctx, size_t item, unsigned worker)
{
    const struct rate_limit *c = ctx;
    size_t first = item * 5 % IMAGES, n = 1 + item % 9;
    float out[9 * OUT];
    fkt_status st;
    (void)worker;
    if (n > IMAGES - first) n = IMAGES - first;
    st = fkt_engine_run(c->e, c->in + first * IN, n, out);
    if (st != FKT_OK) return st;
    return memcmp(out, c->want + first * OUT, n * OUT * sizeof *out) ? fkt_fail(FKT_E_NUMERIC, "call %zu differs", item)
                                                                     : FKT_OK;
}

static void an_image_depends_on_itself_alone(void **state)
{
    static float in[IMAGES * IN], want[IMAGES * OUT];
    struct fkt_engine_spec spec = {.batch = 4, .height = LARGE, .width = LARGE};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 3, 0);
    for (size_t i = 0; i < IMAGES * IN; i++) in[i] = (float)fkt_rng_normal(&r);
    build_mixing(&n);
    CHECK_OK(fkt_weights_bind(&w, &n, NULL, 0, NULL, NULL));
    for (spec.batch = 1; spec.batch <= 8; spec.batch *= 2) {
        struct rate_limit c = {NULL, in, want};
        CHECK_OK(fkt_engine_new(&c.e, &fkt_backend_ref, &n, w, &spec));
        CHECK(fkt_engine_output(c.e).c == 6 && fkt_engine_output(c.e).h == LARGE / 2);
        if (spec.batch == 1) CHECK_OK(fkt_engine_run(c.e, in, IMAGES, want));
        for (unsigned threads = 1; threads <= 8; threads *= 2)
            CHECK_OK(fkt_parallel(threads, CALLS, ask, &c, NULL, ""));
        fkt_engine_free(c.e);
    }
    fkt_weights_free(w);
    fkt_net_clear(&n);
}

static fkt_status ask_counter(void *ctx, size_t item, unsigned worker)
{
    float in[5 * EACH], out[5 * EACH];
    fkt_status st;
    (void)worker;
    for (size_t i = 0; i < 5 * EACH; i++) in[i] = (float)(item * 1000 + i);
    st = fkt_engine_run(ctx, in, 5, out);
    for (size_t i = 0; st == FKT_OK && i < 5 * EACH; i++)
        if (!(out[i] == in[i] + 1)) st = fkt_fail(FKT_E_NUMERIC, "call %zu has numbers of another", item);
    return st;
}

static void each_thread_has_its_own_workspace(void **state)
{
    struct fkt_engine *e = NULL;
    struct fkt_net n;
    (void)state;
    fkt_net_init(&n, 3);
    CHECK_OK(fkt_engine_new(&e, &counter, &n, NULL, &small));
    CHECK_OK(fkt_parallel(8, 2000, ask_counter, e, NULL, ""));
    CHECK(!shared && runs == 4000 && workspaces >= 1 && workspaces <= 8);
    fkt_engine_free(e);
    CHECK(workspaces_freed == workspaces);
    fkt_net_clear(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(batches_are_cut_and_filled_up, reset),
        cmocka_unit_test_setup(no_images_need_no_workspace, reset),
        cmocka_unit_test_setup(failures_come_back_and_the_workspace_too, reset),
        cmocka_unit_test_setup(what_cannot_be_is_refused, reset),
        cmocka_unit_test_setup(an_image_depends_on_itself_alone, reset),
        cmocka_unit_test_setup(each_thread_has_its_own_workspace, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
