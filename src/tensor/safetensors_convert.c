/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_convert.c - any floating tensor as float. F16 and BF16 are subsets of F32, so their conversion is
 * exact, sub-normal numbers included; F64 is rounded to nearest, and a number beyond float's range is refused like a
 * NaN. Done on bits, without half-precision instructions: the result is the same on every machine. */
#include "tensor/safetensors_header.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* IEEE binary16: 1 sign, 5 exponent (bias 15), 10 fraction. */
static float from_f16(uint16_t h)
{
    int exponent = (h >> 10) & 31, fraction = h & 1023;
    float x;
    if (exponent == 31) return fraction ? NAN : (h & 0x8000 ? -INFINITY : INFINITY);
    x = exponent ? ldexpf((float)(fraction + 1024), exponent - 25) : ldexpf((float)fraction, -24);
    return h & 0x8000 ? -x : x;
}

/* bfloat16 is the upper half of a float. */
static float from_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float element(const struct fkt_tensor *t, uint64_t i)
{
    const uint8_t *p = (const uint8_t *)t->data + i * fkt_dtype_size(t->dtype);
    uint16_t h;
    float f;
    double d;
    switch (t->dtype) {
    case FKT_F32: memcpy(&f, p, sizeof f); return f;
    case FKT_F64: memcpy(&d, p, sizeof d); return (float)d;
    case FKT_F16: memcpy(&h, p, sizeof h); return from_f16(h);
    default: memcpy(&h, p, sizeof h); return from_bf16(h);
    }
}

fkt_status fkt_tensor_copy_f32(float *out, const struct fkt_tensor *t)
{
    char shown[FKT_ST_SHOWN];
    if (t->dtype != FKT_F32 && t->dtype != FKT_F64 && t->dtype != FKT_F16 && t->dtype != FKT_BF16)
        return fkt_fail(FKT_E_MISMATCH, "tensor '%s' is %s, not a floating type", fkt_st_shown(shown, t->name),
                        fkt_dtype_name(t->dtype));
    for (uint64_t i = 0; i < t->count; i++) {
        out[i] = element(t, i);
        if (!isfinite(out[i]))
            return fkt_fail(FKT_E_NUMERIC, "element %" PRIu64 " of tensor '%s' is not a finite float", i,
                            fkt_st_shown(shown, t->name));
    }
    return FKT_OK;
}
