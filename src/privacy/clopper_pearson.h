/* SPDX-License-Identifier: Apache-2.0 */
/* clopper_pearson.h - exact bounds for a probability given k successes in n trials. */
#ifndef FKT_PRIVACY_CLOPPER_PEARSON_H
#define FKT_PRIVACY_CLOPPER_PEARSON_H

#include <stdint.h>

/* One-sided: the true probability lies below `lower` (above `upper`) with probability at most alpha. Rounded outwards.
 * NaN unless k <= n, 1 <= n <= 2^40, 0 < alpha < 0.5. */
double fkt_clopper_pearson_lower(uint64_t k, uint64_t n, double alpha);
double fkt_clopper_pearson_upper(uint64_t k, uint64_t n, double alpha);

#endif
