/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of building a network, binding weights, running an engine and learning. */
#include "nn/learner.h"
#include "tests/support/build_net.h"
#include "tests/support/sweep.h"

static const float numbers[64] = {1, 2, 3};
static uint8_t *bytes;
static struct fkt_safetensors *file;

static fkt_status build(struct fkt_net *n)
{
    static const char *const names[] = {"q", "k", "v"};
    struct fkt_op op = {.kind = FKT_OP_CONV, .channels = 6, .kernel = 1, .stride = 1, .groups = 1};
    fkt_net_init(n, 2);
    op.weight = fkt_net_slot_parts(n, names, 3, 6, 2, 1, 1);
    op.bias = fkt_net_slot(n, "b", 6, 0, 0, 0);
    op.mean = op.var = FKT_NO_SLOT;
    fkt_net_add(n, &op);
    for (uint32_t i = 0; i < 70; i++) fkt_net_plain(n, FKT_OP_RELU, fkt_net_last(n), 0, 0); /* the list grows */
    return fkt_net_status(n);
}

static fkt_status run_engine(void)
{
    struct fkt_engine_spec spec = {.batch = 2, .height = 2, .width = 2};
    const struct fkt_safetensors *files[1] = {file};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    struct fkt_engine *e = NULL;
    float out[3 * 6 * 4];
    fkt_status st;
    FKT_TRY(build(&n));
    FKT_TRY(fkt_weights_bind(&w, &n, files, 1, NULL, NULL));
    FKT_TRY(fkt_engine_new(&e, &fkt_backend_ref, &n, w, &spec));
    FKT_TRY(fkt_engine_run(e, numbers, 3, out));
out:
    fkt_engine_free(e);
    fkt_weights_free(w);
    fkt_net_clear(&n);
    return st;
}

/* The report of a mismatch needs memory too. */
static fkt_status run_misfit(void)
{
    const struct fkt_safetensors *files[1] = {file};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    char *report = NULL;
    fkt_status st;
    fkt_net_init(&n, 2);
    fkt_net_slot(&n, "absent", 6, 2, 1, 1);
    FKT_TRY(fkt_net_status(&n));
    st = fkt_weights_bind(&w, &n, files, 1, NULL, &report);
    CHECK(!w && (report != NULL) == (st == FKT_E_MISMATCH));
    if (st == FKT_E_MISMATCH) st = FKT_OK; /* as it should be */
out:
    fkt_free(report);
    fkt_net_clear(&n);
    return st;
}

/* Weights from arrays, as a learner's are. */
static fkt_status run_arrays(void)
{
    const float *const arrays[2] = {numbers, numbers};
    struct fkt_net n;
    struct fkt_weights *w = NULL;
    fkt_status st;
    FKT_TRY(build(&n));
    FKT_TRY(fkt_weights_from_arrays(&w, &n, arrays));
out:
    fkt_weights_free(w);
    fkt_net_clear(&n);
    return st;
}

static enum fkt_precision precision;

/* The first call allocates the average; a call that fails leaves none. */
static fkt_status run_learner(void)
{
    const struct fkt_learner_spec spec = {
        .batch = 2, .height = 2, .width = 2, .precision = precision, .threads = 1, .norm_momentum = 0.1F};
    const struct fkt_optimizer sgd = {.rate = 0.1F, .momentum = 0.9F, .nesterov = 1};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    float out[2 * 6 * 4], x[12];
    fkt_status st;
    fkt_net_init(&n, 2);
    net_norm(&n, net_conv(&n, 0, 2, 6, (struct net_window){1, 1, 0, 1, 0}), FKT_OP_BATCH_NORM, 6, 1);
    FKT_TRY(fkt_net_status(&n));
    FKT_TRY(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    FKT_TRY(fkt_learner_forward(l, numbers, out));
    FKT_TRY(fkt_learner_backward(l, out));
    FKT_TRY(fkt_learner_step(l, &sgd));
    st = fkt_learner_average(l, 0.5F);
    CHECK(st == fkt_learner_read(l, FKT_AVERAGE, 0, x) || st == FKT_E_NOMEM);
    if (st == FKT_E_NOMEM) {
        CHECK_STATUS(fkt_learner_read(l, FKT_AVERAGE, 0, x), FKT_E_STATE);
        fkt_alloc_fault_at(1, 0);
        CHECK_STATUS(fkt_learner_write(l, FKT_AVERAGE, 0, numbers), FKT_E_NOMEM);
    }
out:
    fkt_learner_free(l);
    fkt_net_clear(&n);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    struct fkt_st_writer *w = NULL;
    size_t len;
    (void)state;
    CHECK_OK(fkt_st_writer_new(&w));
    CHECK_OK(fkt_st_writer_add(w, "q", FKT_F32, 2, (const uint64_t[]){2, 2}, numbers));
    CHECK_OK(fkt_st_writer_add(w, "k", FKT_F32, 2, (const uint64_t[]){2, 2}, numbers));
    CHECK_OK(fkt_st_writer_add(w, "v", FKT_F32, 2, (const uint64_t[]){2, 2}, numbers));
    CHECK_OK(fkt_st_writer_add(w, "b", FKT_F32, 1, (const uint64_t[]){6}, numbers));
    CHECK_OK(fkt_st_writer_bytes(w, &bytes, &len));
    fkt_st_writer_free(w);
    CHECK_OK(fkt_safetensors_parse(&file, bytes, len, "weights"));
    CHECK(sweep_allocations(run_engine, NULL) > 20);
    CHECK(sweep_allocations(run_misfit, NULL) > 6);
    CHECK(sweep_allocations(run_arrays, NULL) > 8);
    for (precision = FKT_PRECISION_F32; precision <= FKT_PRECISION_BF16; precision++)
        CHECK(sweep_allocations(run_learner, NULL) > 20);
    fkt_safetensors_free(file);
    fkt_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
