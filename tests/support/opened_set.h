/* SPDX-License-Identifier: Apache-2.0 */
/* opened_set.h - for tests that write image sets into a scratch folder and open them: one folder and one opened set at
 * a time, both gone after each test, which also checks that no memory is lost. */
#ifndef FKT_TEST_OPENED_SET_H
#define FKT_TEST_OPENED_SET_H

#include "fedkt/image.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static struct scratch dir;
static struct fkt_dataset *ds;
static struct fkt_dataset_options opt;

static int set_up(void **state)
{
    (void)state;
    scratch_init(&dir);
    ds = NULL;
    memset(&opt, 0, sizeof opt);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fkt_dataset_free(ds);
    scratch_release(&dir);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

static inline fkt_status reopen_path(const char *path)
{
    fkt_dataset_free(ds);
    ds = NULL;
    return fkt_dataset_open(&ds, path, &opt);
}

static inline fkt_status reopen(const char *name) { return reopen_path(scratch_path(&dir, name)); }

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
