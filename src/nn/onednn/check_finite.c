/* SPDX-License-Identifier: Apache-2.0 */
/* check_finite.c - checks, step by step, that all numbers of a workspace's first run are finite.
 *
 * Weights are finite, but products of huge ones are not, and the network's output need not show it: the library's ReLU
 * turns NaN into 0, and a norm divides by infinity. So results are checked where they are made. Operations fused to a
 * convolution hide its sums, so those are bounded instead: |sum| <= largest input * largest weight * number of terms
 * + largest bias. LIMIT leaves a margin below the largest float (3.4e38) for Winograd's transforms and for an addend;
 * useful networks stay ten or more orders of magnitude below it, so the bound may be coarse.
 *
 * Only the first run is checked: overflow depends on the weights, and later images are not larger.
 * Cost: every result is read once or twice, a few per cent of one run. */
#include "nn/onednn/plan.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LIMIT 1e36F

/* Without the sign bit, the bits of floats have the order of the numbers, with infinity and NaN last. */
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
    return fkt_fail_hint(FKT_E_NUMERIC, "the weights are damaged, or are not those of this network",
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
