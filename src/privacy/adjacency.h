/* SPDX-License-Identifier: Apache-2.0 */
/* adjacency.h - what adjacency.c's table needs of sensitivity.c: mu^2 of each adjacency for c and (parts) a, b as in
 * fkt_privacy_mu_squared, not yet rounded up. */
#ifndef FKT_PRIVACY_ADJACENCY_H
#define FKT_PRIVACY_ADJACENCY_H

#include "fedkt/privacy.h"

typedef double fkt_mu_squared_of(double c, uint32_t parts, const double *a, const double *b);
fkt_mu_squared_of fkt_mu_squared_add_remove, fkt_mu_squared_replace, fkt_mu_squared_replace_any;

fkt_mu_squared_of *fkt_adjacency_mu_squared(enum fkt_adjacency a); /* NULL: there is no such adjacency */

#endif
