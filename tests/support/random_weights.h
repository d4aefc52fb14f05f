/* SPDX-License-Identifier: Apache-2.0 */
/* random_weights.h - a file of random weights for any network, in memory: what a backend is tried on. */
#ifndef FKT_TEST_RANDOM_WEIGHTS_H
#define FKT_TEST_RANDOM_WEIGHTS_H

#include "base/rng.h"
#include "nn/weights.h"
#include "tests/support/check.h"

struct random_weights {
    uint8_t *bytes;
    struct fkt_safetensors *file;
    struct fkt_weights *bound;
};

static inline void random_weights_release(struct random_weights *w)
{
    fkt_weights_free(w->bound);
    fkt_safetensors_free(w->file);
    fkt_free(w->bytes);
    memset(w, 0, sizeof *w);
}

/* Matrices keep the size of what goes through them: uniform with variance 1 / inputs; vectors near 1 ("var" must be
 * positive), or small when the name ends in "bias" or "mean". */
static inline void random_weights_init(struct random_weights *w, const struct fkt_net *net, uint64_t seed)
{
    struct fkt_st_writer *writer = NULL;
    float **data = NULL;
    size_t len, n = net->n_slots;
    memset(w, 0, sizeof *w);
    CHECK_OK(fkt_st_writer_new(&writer));
    CHECK_OK(fkt_alloc(&data, n * FKT_SLOT_PARTS));
    for (size_t s = 0; s < n; s++) {
        const struct fkt_slot *slot = &net->slot[s];
        size_t count = fkt_slot_count(slot) / slot->parts, tail = strlen(slot->name[0]);
        int small =
            tail >= 4 && (!strcmp(slot->name[0] + tail - 4, "bias") || !strcmp(slot->name[0] + tail - 4, "mean"));
        double size = slot->rank > 1 ? sqrt(3.0 * slot->shape[0] / (double)fkt_slot_count(slot)) : small ? 0.3 : 0.2;
        uint64_t shape[FKT_SLOT_RANK];
        for (unsigned i = 0; i < slot->rank; i++) shape[i] = slot->shape[i];
        shape[0] /= slot->parts;
        for (uint32_t p = 0; p < slot->parts; p++) {
            struct fkt_rng r;
            float *x;
            CHECK_OK(fkt_alloc(&data[s * FKT_SLOT_PARTS + p], count));
            x = data[s * FKT_SLOT_PARTS + p];
            fkt_rng_init(&r, seed, s * FKT_SLOT_PARTS + p);
            for (size_t i = 0; i < count; i++)
                x[i] = (float)((2 * fkt_rng_unit(&r) - 1) * size + (slot->rank == 1 && !small));
            CHECK_OK(fkt_st_writer_add(writer, slot->name[p], FKT_F32, slot->rank, shape, x));
        }
    }
    CHECK_OK(fkt_st_writer_bytes(writer, &w->bytes, &len));
    fkt_st_writer_free(writer);
    for (size_t i = 0; i < n * FKT_SLOT_PARTS; i++) fkt_free(data[i]);
    fkt_free(data);
    CHECK_OK(fkt_safetensors_parse(&w->file, w->bytes, len, "random weights"));
    CHECK_OK(fkt_weights_bind(&w->bound, net, (const struct fkt_safetensors *const[]){w->file}, 1, NULL, NULL));
}

#endif
