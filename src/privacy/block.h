/* SPDX-License-Identifier: Apache-2.0 */
/* block.h - the moments of all classes as one run of integers (fedkt/layout.h): size, range, what each number is. */
#ifndef FKT_PRIVACY_BLOCK_H
#define FKT_PRIVACY_BLOCK_H

#include "fedkt/layout.h"
#include "fedkt/privacy.h"

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_BLOCK_MAX ((int64_t)1 << 61) /* no exact number is larger */

/* *n numbers in all. FKT_E_ARG when there are none, or more than fit memory. */
FKT_MUST_USE fkt_status fkt_block_sizes(uint32_t classes, const struct fkt_moments_layout *l, size_t *n);
/* FKT_E_MISMATCH when the spec is for another layout, or when `exact` cannot be a sum of records inside its radii:
 * release.md, step 3. */
FKT_MUST_USE fkt_status fkt_block_check(const int64_t *exact, uint32_t classes, const struct fkt_moments_layout *l,
                                        const struct fkt_privacy_spec *spec);

enum fkt_number_kind { FKT_NUMBER_COUNT = 0, FKT_NUMBER_SUM, FKT_NUMBER_MOMENT, FKT_NUMBER_CROSS };
/* Calls back for every number of the vector in its order; the first failure ends it and is returned. */
typedef fkt_status fkt_number_fn(void *data, size_t at, enum fkt_number_kind kind, uint32_t part);
FKT_MUST_USE fkt_status fkt_block_each(uint32_t classes, const struct fkt_moments_layout *l, fkt_number_fn *fn,
                                       void *data);

#endif
