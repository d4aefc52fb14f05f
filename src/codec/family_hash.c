/* SPDX-License-Identifier: Apache-2.0 */
/* family_hash.c - one hash for a pair of networks, whatever files they came from.
 *
 *   SHA-256( for encoder, decoder: operations with all their numbers; shape and BLAKE2b(values as f32) of each slot )
 *
 * Names, layouts, order in the file and number types do not enter: the same values are the same codec. Operations do,
 * since config.json decides some of them (shortcuts, heads, activations). Slots are hashed by themselves, so that
 * several threads can share a gigabyte; every weight is read once here and a NaN is found before it spreads. Pages are
 * given back as we go. Cost: BLAKE2b, about 0.7 GB/s and thread; a copy of one slot and thread unless it lies in the
 * file as aligned f32. */
#include "codec/family.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights are hashed as little-endian numbers"
#endif

enum { THREADS_MAX = 4 }; /* each may hold a copy of one slot */

struct work {
    const struct fkt_family *family;
    uint8_t (*digest)[FKT_HASH_BYTES]; /* (slots of the encoder, then of the decoder) */
};

static void hash_ops(struct fkt_hash *h, const struct fkt_net *n)
{
    fkt_hash_add_u64(h, n->channels);
    fkt_hash_add_u64(h, n->n_ops);
    for (size_t i = 0; i < n->n_ops; i++) {
        const struct fkt_op *op = &n->op[i];
        const uint32_t numbers[] = {op->in[0],  op->in[1],  op->channels, op->kernel, op->stride, op->pad,
                                    op->groups, op->factor, op->weight,   op->bias,   op->mean,   op->var};
        const char *name = fkt_op_name(op->kind);
        fkt_hash_add(h, name, strlen(name) + 1);
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) fkt_hash_add_u64(h, numbers[k]);
        fkt_hash_add(h, op->value, sizeof op->value);
        if (op->pad_after) fkt_hash_add_u64(h, op->pad_after); /* came later: hashes without it stay as they were */
    }
}

static fkt_status check_finite(const float *x, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return fkt_fail(FKT_E_NUMERIC, "element %zu of tensor '%s' is not finite", i, name);
    return FKT_OK;
}

static fkt_status hash_slot(void *ctx, size_t item, unsigned worker)
{
    const struct work *w = ctx;
    size_t encoder = w->family->net[FKT_CODEC_SIDE_ENCODER].n_slots;
    int side = item >= encoder;
    uint32_t slot = (uint32_t)(side ? item - encoder : item);
    const struct fkt_slot *s = &w->family->net[side].slot[slot];
    const struct fkt_weights *weights = w->family->weights[side];
    const float *x = fkt_weights_mapped(weights, slot);
    size_t n = fkt_slot_count(s);
    float *copy = NULL;
    fkt_status st;
    (void)worker;
    if (!x) {
        FKT_TRY(fkt_alloc(&copy, n));
        FKT_TRY(fkt_weights_read(weights, slot, copy));
        x = copy;
    }
    FKT_TRY(check_finite(x, n, fkt_weights_name(weights, slot)));
    fkt_hash_long(w->digest[item], x, n * sizeof *x);
    fkt_weights_drop(weights, slot);
out:
    fkt_free(copy);
    return st;
}

fkt_status fkt_family_sha256(const struct fkt_family *f, char out[FKT_HASH_HEX])
{
    size_t n = f->net[FKT_CODEC_SIDE_ENCODER].n_slots + f->net[FKT_CODEC_SIDE_DECODER].n_slots, next = 0;
    unsigned threads = fkt_cpu_count();
    struct work w = {.family = f};
    struct fkt_hash h;
    fkt_status st;
    FKT_TRY(fkt_alloc(&w.digest, n));
    FKT_TRY(fkt_parallel(threads > THREADS_MAX ? THREADS_MAX : threads, n, hash_slot, &w, NULL, NULL));
    fkt_hash_init(&h);
    for (int side = 0; side < 2; side++) {
        const struct fkt_net *net = &f->net[side];
        hash_ops(&h, net);
        fkt_hash_add_u64(&h, net->n_slots);
        for (size_t i = 0; i < net->n_slots; i++) {
            fkt_hash_add_u64(&h, net->slot[i].rank);
            for (uint32_t k = 0; k < net->slot[i].rank; k++) fkt_hash_add_u64(&h, net->slot[i].shape[k]);
            fkt_hash_add(&h, w.digest[next++], FKT_HASH_BYTES);
        }
    }
    fkt_hash_hex(&h, out);
out:
    fkt_free(w.digest);
    return st;
}
