/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - cmocka with its prerequisites, and comparisons that NaN cannot pass. */
#ifndef FKT_TEST_CHECK_H
#define FKT_TEST_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"

/* The good case is written and negated: a NaN on either side fails. */
#define CHECK_NEAR(got, want, tol)                                                                                     \
    do {                                                                                                               \
        double got_ = (got), want_ = (want), tol_ = (tol);                                                             \
        if (!(fabs(got_ - want_) <= tol_)) fail_msg("%s: got %.17g, want %.17g +- %.3g", #got, got_, want_, tol_);     \
    } while (0)
#define CHECK_REL(got, want, rel) CHECK_NEAR(got, want, (rel)*fabs(want))
#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) fail_msg("not true: %s", #cond);                                                                  \
    } while (0)
#define CHECK_OK(call)                                                                                                 \
    do {                                                                                                               \
        fkt_status st_ = (call);                                                                                       \
        if (st_ != FKT_OK) fail_msg("%s: %s: %s", #call, fkt_status_name(st_), fkt_error_text());                      \
    } while (0)
#define CHECK_STATUS(call, want)                                                                                       \
    do {                                                                                                               \
        fkt_status st_ = (call), want_ = (want);                                                                       \
        if (st_ != want_)                                                                                              \
            fail_msg("%s: got '%s' (%s), want '%s'", #call, fkt_status_name(st_), fkt_error_text(),                    \
                     fkt_status_name(want_));                                                                          \
    } while (0)

/* For main: what a group of tests came to, and a failure where memory is left. A group's teardown cannot say so: cmocka
 * prints that it failed and returns 0. */
static inline int check_nothing_left(int failed)
{
    if (fkt_alloc_live()) fprintf(stderr, "%zu blocks of memory are left\n", fkt_alloc_live());
    return failed || fkt_alloc_live();
}

#endif
