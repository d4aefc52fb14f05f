/* SPDX-License-Identifier: Apache-2.0 */
/* Images of an unfinished run: found again, cut where they are damaged, refused where they are another run's. */
#include "pipeline/partial.h"

#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 48, STEP = BYTES + 8, HEAD = 64 };

static void fill(uint8_t *rgb, uint64_t from, size_t n)
{
    for (size_t i = 0; i < n * BYTES; i++) rgb[i] = (uint8_t)(from * 7 + i * 13 + i / BYTES);
}

static void bend(const char *path, long at)
{
    FILE *f = fopen(path, "r+");
    int c;
    CHECK(f && !fseek(f, at, SEEK_SET));
    c = fgetc(f);
    CHECK(c != EOF && !fseek(f, at, SEEK_SET));
    fputc(c ^ 1, f);
    CHECK(!fclose(f));
}

static void what_was_kept_is_found(void **state)
{
    struct scratch dir;
    struct fkt_partial *p = NULL, *second = NULL;
    uint8_t rgb[10 * BYTES], got[10 * BYTES];
    const char *folder, *path;
    struct stat sb;
    (void)state;
    scratch_init(&dir);
    folder = scratch_path(&dir, "out/");
    path = scratch_path(&dir, "out.partial");
    fill(rgb, 0, 10);
    CHECK_OK(fkt_partial_open(&p, folder, "key", BYTES, 0));
    CHECK(fkt_partial_count(p) == 0);
    CHECK_OK(fkt_partial_add(p, rgb, 4));
    CHECK_OK(fkt_partial_add(p, rgb + 4 * BYTES, 6));
    CHECK_STATUS(fkt_partial_open(&second, folder, "key", BYTES, 1), FKT_E_EXISTS); /* locked */
    CHECK_STATUS(fkt_partial_read(p, 5, got, 6), FKT_E_IO);
    fkt_partial_free(p);
    CHECK_OK(fkt_partial_open(&p, folder, "key", BYTES, 0));
    CHECK(fkt_partial_count(p) == 10);
    CHECK_OK(fkt_partial_read(p, 2, got, 8));
    assert_memory_equal(got, rgb + 2 * BYTES, 8 * (size_t)BYTES);
    fkt_partial_free(p);
    /* a torn write, and a bit that changed */
    CHECK(!truncate(path, HEAD + 9 * STEP + 5));
    CHECK_OK(fkt_partial_open(&p, folder, "key", BYTES, 0));
    CHECK(fkt_partial_count(p) == 9);
    fkt_partial_free(p);
    bend(path, HEAD + 3 * STEP + 1);
    CHECK_OK(fkt_partial_open(&p, folder, "key", BYTES, 0));
    CHECK(fkt_partial_count(p) == 3);
    CHECK_OK(fkt_partial_add(p, rgb + 3 * BYTES, 1));
    CHECK_OK(fkt_partial_read(p, 0, got, 4));
    assert_memory_equal(got, rgb, 4 * (size_t)BYTES);
    fkt_partial_remove(p);
    fkt_partial_free(p);
    CHECK(stat(path, &sb) != 0);
    scratch_release(&dir);
}

static void another_run_is_not_overwritten(void **state)
{
    struct scratch dir;
    struct fkt_partial *p = NULL;
    uint8_t rgb[2 * BYTES];
    const char *folder, *path;
    struct stat sb;
    FILE *f;
    (void)state;
    scratch_init(&dir);
    folder = scratch_path(&dir, "out");
    path = scratch_path(&dir, "out.partial");
    fill(rgb, 3, 2);
    CHECK_OK(fkt_partial_open(&p, folder, "key", BYTES, 0));
    fkt_partial_free(p);
    CHECK(stat(path, &sb) != 0); /* nothing was kept */
    CHECK_OK(fkt_partial_open(&p, folder, "key", BYTES, 0));
    CHECK_OK(fkt_partial_add(p, rgb, 2));
    fkt_partial_free(p);
    CHECK_STATUS(fkt_partial_open(&p, folder, "other", BYTES, 0), FKT_E_EXISTS);
    CHECK(strstr(fkt_error_text(), "other options") && !p);
    CHECK_OK(fkt_partial_open(&p, folder, "key", BYTES, 0));
    CHECK(fkt_partial_count(p) == 2);
    fkt_partial_free(p);
    CHECK_OK(fkt_partial_open(&p, folder, "other", BYTES, 1));
    CHECK(fkt_partial_count(p) == 0);
    fkt_partial_free(p);
    f = fopen(path, "w");
    CHECK(f && fputs("a diary", f) >= 0 && !fclose(f));
    CHECK_STATUS(fkt_partial_open(&p, folder, "other", BYTES, 1), FKT_E_EXISTS);
    CHECK(!stat(path, &sb) && sb.st_size == 7);
    scratch_release(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_kept_is_found),
        cmocka_unit_test(another_run_is_not_overwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
