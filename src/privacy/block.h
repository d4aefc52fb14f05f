/* SPDX-License-Identifier: Apache-2.0 */
/* block.h - the moments of one class as one run of integers (n, S, M upper triangle row by row): size and range. */
#ifndef FKT_PRIVACY_BLOCK_H
#define FKT_PRIVACY_BLOCK_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_BLOCK_MAX ((int64_t)1 << 61) /* no exact number is larger */

/* *block numbers a class, *n in all. FKT_E_ARG when there are none, or more than fit memory. */
FKT_MUST_USE fkt_status fkt_block_sizes(uint32_t classes, uint32_t length, size_t *block, size_t *n);
/* FKT_E_MISMATCH when `exact` (block) cannot be a sum of records inside the radius: release.md, step 3. */
FKT_MUST_USE fkt_status fkt_block_check(const int64_t *exact, uint32_t length, double radius);

#endif
