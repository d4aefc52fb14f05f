/* SPDX-License-Identifier: Apache-2.0 */
/* promise.c - the limits of (epsilon, delta) up to which a release may be called private.
 *
 *   epsilon   20: with delta 1e-5 the best guess whether a record was present is right 96 % of the time
 *   delta     one over the public bound on the records, 1e-3 where there is none or where it is larger
 *
 * Both are conventions, not theorems: beyond them the noise is as exact as before, but weaker than what a reader
 * expects from the word "private". The reason for delta: a mechanism that publishes each of n records unchanged with
 * probability delta is (0, delta)-private, and at delta = 1/n one record of the set is expected to be published (Dwork
 * and Roth 2014, section 2.3). Only this file defines the two limits; docs/privacy.md explains them. */
#include "fedkt/privacy.h"

#include <stdio.h>

double fkt_promise_delta(double records) { return records > 1 / FKT_PROMISE_DELTA ? 1 / records : FKT_PROMISE_DELTA; }

enum fkt_promise fkt_privacy_promise(double epsilon, double delta, double records, char why[FKT_PROMISE_WORDS])
{
    const double most = fkt_promise_delta(records);
    const int loose = !(epsilon <= FKT_PROMISE_EPSILON), slack = !(delta <= most * (1 + 1e-12));
    char first[64] = "", second[96] = "";
    if (loose) snprintf(first, sizeof first, "epsilon %g is above %g", epsilon, FKT_PROMISE_EPSILON);
    if (slack && most < FKT_PROMISE_DELTA)
        snprintf(second, sizeof second, "delta %g is above %.3g, one over the bound of %.15g records", delta, most,
                 records);
    else if (slack) snprintf(second, sizeof second, "delta %g is above %g", delta, FKT_PROMISE_DELTA);
    if (why) snprintf(why, FKT_PROMISE_WORDS, "%s%s%s", first, loose && slack ? " and " : "", second);
    return loose || slack ? FKT_PROMISE_WEAK : FKT_PROMISE_SOUND;
}
