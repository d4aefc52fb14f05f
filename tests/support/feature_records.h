/* SPDX-License-Identifier: Apache-2.0 */
/* feature_records.h - the records of oracle/features.py, and cases of its vectors. */
#ifndef FKT_TEST_FEATURE_RECORDS_H
#define FKT_TEST_FEATURE_RECORDS_H

#include "learning/features/features.h"
#include "tests/support/vectors.h"

enum { RECORD_M = 4, RECORD_CLASSES = 3 };

/* n records of three classes at `sites` sites (0: nobody's), inside a ball of radius 2. */
static inline void feature_records(struct fkt_features *f, size_t n, uint32_t sites)
{
    CHECK_OK(fkt_features_new(f, n, RECORD_M, RECORD_CLASSES));
    f->radius = 2;
    f->sites = sites;
    if (sites) CHECK_OK(fkt_alloc(&f->owner, n));
    for (size_t i = 0; i < n; i++) {
        f->label[i] = (uint32_t)((i + i / 3) % RECORD_CLASSES);
        if (sites) f->owner[i] = (uint32_t)(i / 2 % sites);
        for (size_t j = 0; j < RECORD_M; j++)
            f->x[i * RECORD_M + j] =
                0.4 * sin(0.7 * (double)i + 1.1 * (double)j * ((double)i + 1)) + (j == f->label[i] ? 0.6 : 0);
    }
}

/* Whether a case is about this; counts it. */
static inline int feature_case(const json_t *one, const char *what, unsigned *seen)
{
    if (strcmp(vectors_text(one, "what"), what) != 0) return 0;
    ++*seen;
    return 1;
}

static inline void check_numbers(const double *got, const json_t *object, const char *key, size_t n, double tolerance)
{
    const json_t *list = json_object_get(object, key);
    CHECK(json_array_size(list) == n);
    for (size_t i = 0; i < n; i++) {
        const double want = json_number_value(json_array_get(list, i));
        if (!(fabs(got[i] - want) <= tolerance))
            fail_msg("number %zu of '%s': got %.17g, want %.17g", i, key, got[i], want);
    }
}

#endif
