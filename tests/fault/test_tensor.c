/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of each operation of tensor/ until it succeeds; nothing may leak or be left
 * behind. */
#include "base/file.h"
#include "tensor/linalg.h"
#include "tensor/safetensors.h"
#include "tests/support/sweep.h"

#include <unistd.h>

static char folder[] = "/tmp/fedkt-test-XXXXXX", path[64];

/* A failed write leaves a complete file under the final name, or none. */
static void check_whole_or_absent(fkt_status st)
{
    struct fkt_safetensors *s = NULL;
    if (st == FKT_OK || access(path, F_OK) != 0) return;
    CHECK_OK(fkt_safetensors_open(&s, path));
    fkt_safetensors_free(s);
    CHECK(unlink(path) == 0);
}

static void sweep(fkt_status (*run)(void)) { CHECK(sweep_allocations(run, check_whole_or_absent) > 1); }

static fkt_status fill(struct fkt_st_writer *w)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    fkt_status st;
    FKT_TRY(fkt_st_writer_meta(w, "b", "2"));
    FKT_TRY(fkt_st_writer_meta(w, "a", "1"));
    FKT_TRY(fkt_st_writer_add(w, "x", FKT_F32, 2, (const uint64_t[]){2, 3}, x));
    FKT_TRY(fkt_st_writer_add(w, "y", FKT_F32, 1, (const uint64_t[]){6}, x));
out:
    return st;
}

static fkt_status run_bytes(void)
{
    struct fkt_st_writer *w = NULL;
    struct fkt_safetensors *s = NULL;
    uint8_t *bytes = NULL;
    size_t len;
    fkt_status st;
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fill(w));
    FKT_TRY(fkt_st_writer_bytes(w, &bytes, &len));
    FKT_TRY(fkt_safetensors_parse(&s, bytes, len, "bytes"));
    CHECK(fkt_safetensors_count(s) == 2);
out:
    fkt_safetensors_free(s);
    fkt_free(bytes);
    fkt_st_writer_free(w);
    return st;
}

static fkt_status run_write(void)
{
    struct fkt_st_writer *w = NULL;
    fkt_status st;
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fill(w));
    FKT_TRY(fkt_st_writer_write(w, path, 0));
out:
    fkt_st_writer_free(w);
    return st;
}

static fkt_status run_open(void)
{
    struct fkt_safetensors *s = NULL;
    fkt_status st = fkt_safetensors_open(&s, FKT_TEST_VECTORS "/codec/reference.safetensors");
    CHECK((s != NULL) == (st == FKT_OK));
    fkt_safetensors_free(s);
    return st;
}

static fkt_status run_stream(void)
{
    static const float rows[6] = {1, 2, 3, 4, 5, 6};
    struct fkt_st_stream *s = NULL;
    size_t id;
    fkt_status st;
    FKT_TRY(fkt_st_stream_new(&s, path, 0));
    FKT_TRY(fkt_st_stream_meta(s, "a", "1"));
    FKT_TRY(fkt_st_stream_tensor(s, "x", FKT_F32, 1, (const uint64_t[]){3}, &id));
    FKT_TRY(fkt_st_stream_rows(s, id, rows, 2));
    FKT_TRY(fkt_st_stream_tensor(s, "y", FKT_F32, 0, NULL, &id));
    FKT_TRY(fkt_st_stream_rows(s, id, rows, 2));
    FKT_TRY(fkt_st_stream_close(&s));
out:
    fkt_st_stream_free(s);
    return st;
}

static fkt_status run_eigen(void)
{
    static const double a[4] = {2, 1, 1, 3};
    double values[2], vectors[4];
    fkt_status st = fkt_eigen(values, vectors, a, 2);
    if (st == FKT_OK) CHECK_NEAR(values[0] + values[1], 5, 1e-12);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x", folder);
    sweep(run_bytes);
    sweep(run_open);
    sweep(run_eigen);
    sweep(run_write);
    CHECK(unlink(path) == 0);
    sweep(run_stream);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0); /* no temporary file is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
