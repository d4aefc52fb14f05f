/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - tries to prove that a release procedure is less private than it claims.
 *
 * The procedure is run many times on two neighbouring datasets, and an attacker guesses from the output which one it
 * was. A lower bound above the claim is a bug in the procedure (or one run in 1/(1 - confidence) by chance); a bound
 * below it proves nothing. */
#ifndef FKT_PRIVACY_AUDIT_H
#define FKT_PRIVACY_AUDIT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_audit_spec {
    size_t length;       /* numbers in one release */
    const double *shift; /* (length) dataset 1 less dataset 0, before noise */
    const double *sigma; /* (length) the noise that is claimed; 0 where none is */
    uint64_t trials;     /* of each dataset: one half chooses the attack, the other half measures it; 1000..2^32 */
    double delta;        /* epsilon_low is given at this delta */
    double confidence;   /* of each bound by itself, for example 0.999 */
};

struct fkt_audit_result {
    double epsilon_low;     /* (epsilon, delta)-DP with a smaller epsilon is refuted; nothing is assumed */
    double mu_low;          /* mu-GDP with a smaller mu is refuted; nothing is assumed */
    double epsilon_gdp_low; /* what mu_low costs at delta, if the mechanism is Gaussian; sharper at small delta */
    uint64_t measured;      /* trials of each dataset behind the bounds */
};

/* Fills out (length) with a release of dataset 0 or 1; a failure stops the audit. */
typedef fkt_status (*fkt_audit_release)(void *self, int dataset, int64_t *out);

/* Borrows everything until return. */
FKT_MUST_USE fkt_status fkt_privacy_audit(struct fkt_audit_result *result, const struct fkt_audit_spec *spec,
                                          fkt_audit_release release, void *self);

#endif
