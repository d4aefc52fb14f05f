/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - from the tensors of a file to the arrays that the kernels read.
 *
 * Planning records what must be packed. Then all of it is packed, one tensor at a time on each processor (Winograd's
 * transform of DC-AE's weights takes seconds): read as float where the file is not float or a batch norm is folded in,
 * packed, and released. The peak is the packed size plus one tensor for each processor. A low-memory plan packs one
 * tensor after the other, and in f32 uses weights directly in the mapped file (shared by every process that maps it):
 * nothing is folded into them, and what cannot be used in place is copied unchanged. */
#include "nn/onednn/plan.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LINE = 64 };

/* An aligned block owned by the plan; counted as packed. */
static fkt_status own(struct fkt_plan *p, size_t bytes, void **out)
{
    uint8_t *block = NULL;
    fkt_status st;
    *out = NULL;
    if (p->n_owned == p->owned_room) {
        FKT_TRY(fkt_realloc(&p->owned, p->owned_room + 256));
        p->owned_room += 256;
    }
    FKT_TRY(fkt_alloc(&block, bytes + LINE));
    p->owned[p->n_owned++] = block;
    p->facts->packed_bytes += bytes;
    *out = block + (LINE - (uintptr_t)block % LINE) % LINE;
out:
    return st;
}

static size_t length(const struct fkt_plan *p, uint32_t slot) { return fkt_slot_count(&p->net->slot[slot]); }

fkt_status fkt_plan_vector(struct fkt_plan *p, uint32_t slot, const float **out)
{
    void *v = NULL;
    fkt_status st = FKT_OK;
    *out = NULL;
    if (slot == FKT_NO_SLOT) return FKT_OK;
    FKT_TRY(own(p, length(p, slot) * sizeof(float), &v));
    FKT_TRY(fkt_weights_read(p->file, slot, v));
    *out = v;
out:
    return st;
}

fkt_status fkt_plan_scale(struct fkt_plan *p, const struct fkt_op *norm, const float **scale, const float **shift)
{
    size_t n = length(p, norm->weight);
    float *mean = NULL, *var = NULL, *s, *b;
    void *vs = NULL, *vb = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&mean, n));
    FKT_TRY(fkt_alloc(&var, n));
    FKT_TRY(fkt_weights_read(p->file, norm->mean, mean));
    FKT_TRY(fkt_weights_read(p->file, norm->var, var));
    FKT_TRY(own(p, n * sizeof(float), &vs));
    FKT_TRY(own(p, n * sizeof(float), &vb));
    s = vs;
    b = vb;
    FKT_TRY(fkt_weights_read(p->file, norm->weight, s));
    FKT_TRY(fkt_weights_read(p->file, norm->bias, b));
    for (size_t i = 0; i < n; i++) {
        double root = sqrt((double)var[i] + (double)norm->value[0]);
        if (!(root > 0)) {
            st = fkt_fail(FKT_E_NUMERIC, "'%s' is not a variance: element %zu is %g",
                          fkt_weights_name(p->file, norm->var), i, (double)var[i]);
            goto out;
        }
        b[i] = (float)((double)b[i] - (double)mean[i] * (double)s[i] / root);
        s[i] = (float)((double)s[i] / root);
    }
    *scale = s;
    *shift = b;
out:
    fkt_free(mean);
    fkt_free(var);
    return st;
}

/* Bias of a convolution whose output goes through x * scale + shift. */
static fkt_status folded_bias(struct fkt_plan *p, const struct fkt_op *conv, const float *scale, const float *shift,
                              const float **out)
{
    const float *read = NULL;
    float *b;
    fkt_status st;
    FKT_TRY(fkt_plan_vector(p, conv->bias, &read));
    *out = read ? read : shift;
    if (!read || !scale) goto out;
    b = (float *)(uintptr_t)read; /* owned by this function */
    for (uint32_t i = 0; i < conv->channels; i++) b[i] = b[i] * scale[i] + shift[i];
out:
    return st;
}

/* Mapped numbers were never read, so they were not checked for NaN. */
static fkt_status check_finite(const struct fkt_plan *p, uint32_t slot, const float *x)
{
    size_t n = length(p, slot);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return fkt_fail(FKT_E_NUMERIC, "'%s' holds a number that is not finite: element %zu",
                            fkt_weights_name(p->file, slot), i);
    return FKT_OK;
}

/* See check_finite.c; infinite where folding a norm made a weight infinite. */
static float reach(const struct fkt_plan *p, uint32_t slot, const float *x)
{
    size_t n = length(p, slot);
    return fkt_check_finite_largest(x, n) * (float)(n / p->net->slot[slot].shape[0]);
}

/* A 3x3 window of stride 1 as a 4x4 window of stride 2 with four times the outputs, one for each pixel of a 2x2 square:
 * row (o, dy, dx) holds the window of o shifted by (dy, dx), padded with zeros. */
static void spread(float *to /* (rows, 2, 2, C, 4, 4) */, const float *from /* (rows, C, 3, 3) */, size_t rows,
                   size_t channels)
{
    for (size_t o = 0; o < rows; o++)
        for (size_t phase = 0; phase < 4; phase++)
            for (size_t c = 0; c < channels; c++)
                for (size_t y = 0; y < 3; y++)
                    for (size_t x = 0; x < 3; x++)
                        to[(((o * 4 + phase) * channels + c) * 4 + y + phase / 2) * 4 + x + phase % 2] =
                            from[((o * channels + c) * 3 + y) * 3 + x];
}

static fkt_status pack(struct fkt_plan *p, const struct fkt_packing *k)
{
    const struct fkt_slot *slot = &p->net->slot[k->slot];
    const float *mapped = fkt_weights_mapped(p->file, k->slot), *from = mapped;
    size_t n = fkt_slot_count(slot), row = n / slot->shape[0];
    float *plain = NULL, *wide = NULL;
    fkt_status st;
    if (mapped && !k->scale) FKT_TRY(check_finite(p, k->slot, mapped));
    else {
        FKT_TRY(fkt_alloc(&plain, n));
        FKT_TRY(fkt_weights_read(p->file, k->slot, plain));
        for (size_t i = 0; k->scale && i < n; i++) plain[i] *= k->scale[i / row];
        from = plain;
    }
    p->step[k->step].reach = reach(p, k->slot, from);
    if (k->phases) {
        FKT_TRY(fkt_alloc(&wide, 4 * slot->shape[0] * slot->shape[1] * 16));
        spread(wide, from, slot->shape[0], slot->shape[1]);
        from = wide;
    }
    FKT_TRY(fkt_dnn_pack(k->prim, k->packed, from));
    fkt_weights_drop(p->file, k->slot);
out:
    fkt_free(plain);
    fkt_free(wide);
    return st;
}

static fkt_status pack_one(void *plan, size_t item, unsigned worker)
{
    struct fkt_plan *p = plan;
    int team = fkt_dnn_alone();
    fkt_status st = pack(p, &p->packing[item]);
    (void)worker;
    fkt_dnn_together(team);
    return st;
}

fkt_status fkt_plan_pack(struct fkt_plan *p)
{
    fkt_status st = fkt_parallel(p->spec.low_memory ? 1 : 0, p->n_packings, pack_one, p, NULL, NULL);
    fkt_free(p->packing);
    p->packing = NULL;
    p->n_packings = p->packing_room = 0;
    return st;
}

static fkt_status repeat_bias(struct fkt_plan *p, size_t n, const float **bias)
{
    void *v = NULL;
    fkt_status st;
    FKT_TRY(own(p, 4 * n * sizeof(float), &v));
    for (size_t i = 0; i < 4 * n; i++) ((float *)v)[i] = (*bias)[i / 4];
    *bias = v;
out:
    return st;
}

fkt_status fkt_plan_weights(struct fkt_plan *p, const struct fkt_op *conv, const struct fkt_op *norm, int phases,
                            const struct fkt_dnn_prim *prim, struct fkt_step *step)
{
    const float *mapped = fkt_weights_mapped(p->file, conv->weight);
    struct fkt_packing k = {.slot = conv->weight, .step = p->n_steps, .prim = prim, .phases = phases};
    const float *shift = NULL;
    fkt_status st;
    if (norm) FKT_TRY(fkt_plan_scale(p, norm, &k.scale, &shift));
    FKT_TRY(folded_bias(p, conv, k.scale, shift, &step->bias));
    if (phases && step->bias) FKT_TRY(repeat_bias(p, conv->channels, &step->bias));
    if (p->layout == FKT_NCHW && mapped && fkt_dnn_plain(prim)) {
        step->weights = mapped;
        step->reach = reach(p, conv->weight, mapped);
        return check_finite(p, conv->weight, mapped);
    }
    if (p->n_packings == p->packing_room) {
        FKT_TRY(fkt_realloc(&p->packing, p->packing_room + 256));
        p->packing_room += 256;
    }
    FKT_TRY(own(p, fkt_dnn_weight_bytes(prim), &k.packed));
    step->weights = k.packed;
    p->packing[p->n_packings++] = k;
out:
    return st;
}
