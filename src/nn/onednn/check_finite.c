/* SPDX-License-Identifier: Apache-2.0 */
/* check_finite.c - a desk's first run is looked at, step by step: are all numbers finite?
 *
 * Weights are finite, yet products of huge ones are not, and the end of the network need not show it: the library's
 * ReLU makes 0 of a NaN, and a norm divides by infinity. So results are looked at where they are made. What is fused
 * to a convolution hides its sums, so those are bounded instead: |sum| <= largest input * largest weight * how many
 * are added, + largest bias. LIMIT leaves room below the largest float (3.4e38) for Winograd's transforms and for an
 * addend; networks that are of any use stay ten and more orders of magnitude away from it, so the bound may be coarse.
 *
 * Only the first run: overflow is a matter of the weights, and the next image is not larger than the last.
 * Cost: every result read once or twice, some per cent of one run. */
#include "nn/onednn/plan.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LIMIT 1e36F

/* Without their sign, the bits of floats are in the order of the numbers, infinity and NaN last. */
float fkt_check_finite_largest(const float *x, size_t n)
{
    uint32_t most = 0;
    float out;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7FFFFFFFU;
        most = bits > most ? bits : most;
    }
    memcpy(&out, &most, sizeof out);
    return out;
}

static float largest(const struct fkt_act *a)
{
    const uint16_t *x = a->data;
    size_t n = fkt_act_count(a);
    uint16_t most = 0;
    if (a->precision == FKT_PRECISION_F32) return fkt_check_finite_largest(a->data, n);
    for (size_t i = 0; i < n; i++) {
        uint16_t bits = x[i] & 0x7FFFU;
        most = bits > most ? bits : most;
    }
    return fkt_from_bf16(most);
}

static fkt_status refuse(const struct fkt_plan *p, size_t step)
{
    const struct fkt_op *op = p->step[step].op;
    const char *weight = op && op->weight != FKT_NO_SLOT ? fkt_weights_name(p->file, op->weight) : NULL;
    return fkt_fail_hint(FKT_E_NUMERIC, "the weights are damaged, or are not what they are said to be",
                         "step %zu of the network (%s%s%s%s) gives numbers that are not finite", step,
                         op ? fkt_op_name(op->kind) : "activation", weight ? ", weight '" : "", weight ? weight : "",
                         weight ? "'" : "");
}

fkt_status fkt_check_finite_before(const struct fkt_plan *p, size_t step, const struct fkt_act *src)
{
    const struct fkt_step *s = &p->step[step];
    float x, bound = 0;
    if (s->kind == FKT_STEP_COPY) return FKT_OK;
    x = largest(src);
    if (s->kind == FKT_STEP_CALL && s->op) {
        bound = x * s->reach;
        if (s->bias) bound += fkt_check_finite_largest(s->bias, s->dst.act.c);
    } else if (s->op && s->op->kind == FKT_OP_RMS_NORM) bound = x * x * (float)src->c;
    return x <= LIMIT && bound <= LIMIT ? FKT_OK : refuse(p, step);
}

fkt_status fkt_check_finite_after(const struct fkt_plan *p, size_t step, const struct fkt_act *dst)
{
    return largest(dst) <= LIMIT ? FKT_OK : refuse(p, step);
}
