/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.c - the numbers of an optimiser, checked; and Adam on plain arrays (Kingma and Ba, ICLR 2015).
 *
 * As PyTorch's Adam: the decay is added to the gradient (L2, not AdamW), both moments are corrected for their start at
 * zero, and epsilon is added outside the root. PyTorch computes in the arrays' type; here the arithmetic is double, and
 * what is stored is rounded once. */
#include "nn/learner.h"

#include <math.h>

static int is_share(float x) { return x >= 0 && x < 1; }

fkt_status fkt_optimizer_check(const struct fkt_optimizer *o)
{
    if (!(isfinite(o->rate) && o->decay >= 0 && isfinite(o->decay)))
        return fkt_fail(FKT_E_ARG, "a step takes a finite rate and a decay that is not negative");
    switch (o->kind) {
    case FKT_OPTIMIZER_SGD:
        if (!(o->pull >= 0 && isfinite(o->pull))) return fkt_fail(FKT_E_ARG, "a step's pull is finite, not negative");
        return is_share(o->momentum) ? FKT_OK : fkt_fail(FKT_E_ARG, "a step of SGD takes a momentum of 0 to 1");
    case FKT_OPTIMIZER_ADAM:
        if (!(is_share(o->beta1) && is_share(o->beta2) && o->epsilon > 0 && isfinite(o->epsilon)))
            return fkt_fail(FKT_E_ARG, "a step of Adam takes betas of 0 to 1 and an epsilon above 0");
        if (o->pull != 0) return fkt_fail(FKT_E_ARG, "a step of Adam has no pull");
        return o->step ? FKT_OK : fkt_fail(FKT_E_ARG, "the steps of Adam count from 1");
    }
    return fkt_fail(FKT_E_ARG, "no such optimiser");
}

void fkt_adam(float *x, const float *g, float *m, float *v, size_t n, const struct fkt_optimizer *o)
{
    const double b1 = (double)o->beta1, b2 = (double)o->beta2, t = (double)o->step;
    const double rate = (double)o->rate / (1 - pow(b1, t)), root = sqrt(1 - pow(b2, t));
    for (size_t i = 0; i < n; i++) {
        const double slope = (double)g[i] + (double)o->decay * x[i];
        m[i] = (float)(b1 * m[i] + (1 - b1) * slope);
        v[i] = (float)(b2 * v[i] + (1 - b2) * slope * slope);
        x[i] = (float)(x[i] - rate * m[i] / (sqrt((double)v[i]) / root + (double)o->epsilon));
    }
}
